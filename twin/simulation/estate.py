"""Estate of the demo: a queue-sharing group of two queue managers, small enough to fill in two hours."""

from __future__ import annotations

from importlib.resources import as_file, files

from twin.estate import Estate, load_estate

DEMO = "demo.toml"


def demo_estate() -> Estate:
    """Load the estate of demo.toml."""
    with as_file(files(__package__) / DEMO) as path:
        return load_estate(path)


def demo_estate_text() -> str:
    """Return the text of demo.toml."""
    return (files(__package__) / DEMO).read_text(encoding="utf-8")
