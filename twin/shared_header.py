"""What a store that others share keeps from one batch to the next: everything, as it has no pages."""

from __future__ import annotations

from typing import Any

import msgspec

from kernels.clock import FAR
from twin.alerts import Episode
from twin.measurement import Drift
from twin.reports import Frontier

VERSION = 1


class Own(msgspec.Struct, array_like=True):
    """An ALTER or MEASURE not yet acted on. time: the store's clock then, microseconds."""

    time: int
    op: int
    content: bytes


class OwnClock(msgspec.Struct):
    """The latest time of the store's own events; contract section 7 on those more than 24 hours ahead of it."""

    time: int | None = None
    far: int | None = None

    def after(self, time: int) -> int:
        """The clock, microseconds, as an event of that time leaves it."""
        if self.time is None:
            self.time = time
        elif self.far is not None and abs(time - self.far) <= FAR:
            self.time, self.far = max(self.time, self.far, time), None
        elif time > self.time + FAR:
            self.far = time
        else:
            self.time, self.far = max(self.time, time), None
        return self.time


class Kept(msgspec.Struct, kw_only=True):
    """The header of a shared store: all of its state."""

    version: int = VERSION
    described: dict[str, Any] = {}  # attributes as the estate had them when last opened
    attributes: dict[str, Any] = {}  # as they are now, after ALTER
    sources: list[str] = []  # as the estate had them when last opened
    now: int | None = None  # event time acted up to, microseconds
    settled: int | None = None  # the tick after which time alone changes nothing
    events: int = 0
    refused_alters: int = 0
    late_reports: int = 0  # of ticks that had been acted on without them
    clock: OwnClock = msgspec.field(default_factory=OwnClock)
    own: list[Own] = []
    frontier: Frontier = msgspec.field(default_factory=Frontier)
    episodes: list[Episode] = []
    drift: Drift = msgspec.field(default_factory=Drift)
    contents: bytes = b""  # of the kind of store
