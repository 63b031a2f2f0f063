"""What a store that others share keeps from one batch to the next: everything, as it has no pages."""

from __future__ import annotations

from typing import Any

import msgspec

from kernels.clock import FAR, MAX_SUPPORT, TRUST
from twin.alerts.episodes import Episode
from twin.stores.drift import Drift
from twin.stores.reports import Frontier

VERSION = 2


class Own(msgspec.Struct, array_like=True):
    """An ALTER or MEASURE not yet acted on. time: the store's clock then, microseconds."""

    time: int
    op: int
    content: bytes


class OwnClock(msgspec.Struct):
    """The latest time of the store's own events; `kernels.clock` says what moves it, and when it goes back."""

    time: int | None = None
    far: int | None = None
    back: int | None = None
    support: int = 0

    def after(self, time: int) -> int:
        """The clock, microseconds, as an event of that time leaves it."""
        if self.time is None or (self.far is not None and abs(time - self.far) <= FAR):
            self.time = max(time, self.time or time, self.far or time)
            self.far, self.back, self.support = None, None, TRUST
        elif time > self.time + FAR:
            self.far = time
        elif time >= self.time - FAR:
            self.time, self.far, self.support = max(self.time, time), None, min(self.support + 1, MAX_SUPPORT)
        else:
            self.far, self.support = None, self.support - 1
            self.back = time if self.back is None or abs(time - self.back) > FAR else max(self.back, time)
            if self.support <= 0:
                self.time, self.back, self.support = self.back, None, TRUST + 1  # the event agrees with it
        return self.time


class Kept(msgspec.Struct, kw_only=True):
    """The header of a shared store: all of its state."""

    version: int = VERSION
    described: dict[str, Any] = {}  # attributes as the estate had them when last opened
    attributes: dict[str, Any] = {}  # as they are now, after ALTER
    sources: list[str] = []  # as the estate had them when last opened
    now: int | None = None  # event time acted up to, microseconds
    turns: int = 0  # how often `now` went back
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
