"""The option `--sink`: where alerts go besides, by distributions that others have installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from twin.errors import UsageError
from twin.hooks import SINKS, WithAdded
from twin.records import AlertRecord

Sink = Callable[[str], AbstractContextManager[Callable[[AlertRecord], object]]]


def _check(sink: Sink) -> str:
    return "" if callable(sink) else "a function of a text that returns a context manager"


ADDED: WithAdded[Sink] = WithAdded(SINKS, {}, _check)


@contextmanager
def open_sink(words: str | None) -> Iterator[Callable[[AlertRecord], object]]:
    """Yield what takes each alert record. words: NAME or NAME:TEXT; None: nothing does. UsageError: no such sink."""
    if words is None:
        yield lambda _: None
        return
    name, _, text = words.partition(":")
    if name not in ADDED:
        there_are = ", ".join(ADDED) or "one that a distribution adds, docs/hooks.md: none is installed"
        raise UsageError(f"--sink {name}: no such sink; expected: {there_are}")
    with ADDED[name](text) as deliver:
        yield deliver
