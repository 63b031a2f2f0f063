"""The estate of the demo, in the package: a queue-sharing group of two, small enough to fill in two hours."""

from __future__ import annotations

from importlib.resources import as_file, files

from twin.estate import Estate, load_estate

DEMO = "demo.toml"


def demo_estate() -> Estate:
    """The estate in demo.toml; its text says what is in it."""
    with as_file(files(__package__) / DEMO) as path:
        return load_estate(path)


def demo_estate_text() -> str:
    """The text of demo.toml, for who wants a file of it."""
    return (files(__package__) / DEMO).read_text(encoding="utf-8")
