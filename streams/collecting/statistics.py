"""A recording of statistics beside a live feed of spans, read again whenever it has been replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from twin.errors import UsageError
from twin.estate import Estate
from twin.feeds import Event
from twin.feeds.importing import recorded
from twin.feeds.live_coverage import LiveCoverage


class Statistics:
    """Scaling of spans by a recording of statistics.

    Args:
        path: the recording, as `mqtwin import smf` writes it; it may be missing at first.
        estate: the estate.
        known: coverage that an earlier process knew, see `LiveCoverage.known`.
        say: called with what is learnt, and why a recording cannot be read.
    """

    def __init__(
        self, path: Path, estate: Estate, known: dict[str, tuple[int, int]], say: Callable[[str], None]
    ) -> None:
        self.coverage = LiveCoverage(estate, known)
        self._path = path
        self._say = say
        self._version: tuple[int, int] | None = None

    def scale(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield events of spans, and what they stand for beyond themselves; first read a changed recording."""
        self._refresh()
        yield from self.coverage.scale(events)

    def _refresh(self) -> None:
        try:
            status = self._path.stat()
        except OSError:
            return
        version = (status.st_mtime_ns, status.st_size)
        if version == self._version:
            return
        self._version = version
        try:
            self.coverage.learn(recorded(self._path), self._say)
        except UsageError as error:
            self._say(f"{error}; the coverage stays as it was")
