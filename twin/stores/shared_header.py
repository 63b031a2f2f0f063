"""The header of a shared store: all of its state, as it has no pages."""

from __future__ import annotations

from typing import Any

import msgspec

from kernels.clock import MAX_SUPPORT, TRUST, confirms_far, is_far_ahead, is_far_behind, latest_behind
from kernels.layout import NEVER
from twin.alerts.episodes import Episode
from twin.stores.drift import Drift
from twin.stores.reports import Frontier

VERSION = 4


class Format(msgspec.Struct):
    """The field of a header that every version has."""

    version: int


class PendingEvent(msgspec.Struct, array_like=True):
    """An ALTER or MEASURE not yet applied. time: the store's clock when it arrived, microseconds."""

    time: int
    op: int
    content: bytes


class EventClock(msgspec.Struct):
    """The clock of the store's own events, microseconds, with the rules and fields of `kernels.clock`."""

    time: int | None = None
    far: int | None = None
    back: int | None = None
    support: int = 0

    def advance(self, time: int) -> int:
        """Move the clock by an event of that time, possibly back; return the clock, microseconds."""
        if self.time is None or confirms_far(_or_never(self.far), time):
            self.time = max(time, self.time or time, self.far or time)
            self.far, self.back, self.support = None, None, TRUST
        elif is_far_ahead(self.time, time):
            self.far = time
        elif is_far_behind(self.time, time):
            self.far, self.support = None, self.support - 1
            self.back = latest_behind(_or_never(self.back), time)
            if self.support <= 0:
                self.time, self.back, self.support = self.back, None, TRUST + 1  # the event supports the new clock
        else:
            self.time, self.far, self.support = max(self.time, time), None, min(self.support + 1, MAX_SUPPORT)
        return self.time


def _or_never(time: int | None) -> int:
    return NEVER if time is None else time


class SharedState(msgspec.Struct, kw_only=True):
    """The state of a shared store."""

    version: int = VERSION
    described: dict[str, Any] = {}  # attributes as the estate described them when the twin was last opened
    attributes: dict[str, Any] = {}  # current attributes, after ALTER
    sources: list[str] = []  # sources in the estate when the twin was last opened
    now: int | None = None  # event time processed, microseconds
    turns: int = 0  # how often `now` has gone back
    settled_tick: int | None = None  # the last tick at which time alone may change anything
    events: int = 0
    refused_alters: int = 0
    late_reports: int = 0  # reports read too late for their ticks, which had been processed
    clock: EventClock = msgspec.field(default_factory=EventClock)
    pending_events: list[PendingEvent] = []
    frontier: Frontier = msgspec.field(default_factory=Frontier)
    episodes: list[Episode] = []
    drift: Drift = msgspec.field(default_factory=Drift)
    kind_state: bytes = b""  # see SharedStore._kind_state
