"""Headers: the state of a store that is not in pages. A shared store has no pages: its header is all of its state."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from kernels.clock import MAX_SUPPORT, TRUST, confirms_far, is_far_ahead, is_far_behind, latest_behind
from kernels.layout import NEVER
from twin.alerts.episodes import Episode, OpenIncident
from twin.alerts.readers import Readers
from twin.base.decoding import UNREADABLE
from twin.forecast.monitor import ForecastMemory
from twin.state import tables
from twin.state.tables import StateError
from twin.stores.changes import ActionMemory
from twin.stores.drift import Drift
from twin.stores.estimate import Estimate
from twin.stores.reports import Frontier

MESSAGE_VERSION = 11  # of stores that hold messages
SHARED_VERSION = 4
STATE_FORMAT = f"{MESSAGE_VERSION}.{SHARED_VERSION}"  # of headers and pages; state is written in no other format
READ_FORMATS = ("10.3", STATE_FORMAT)  # state of these is read: each store is migrated when it is opened
_T = TypeVar("_T")
_MESSAGE_VERSIONS = range(tables.OLDEST, MESSAGE_VERSION + 1)
_SHARED_VERSIONS = range(3, SHARED_VERSION + 1)


class Format(msgspec.Struct, kw_only=True):
    """The fields that a header of every version has. kind: kind of a store that holds messages; None: it is shared."""

    version: int
    kind: str | None = None


# --- stores that hold messages ---------------------------------------------------------------------------------------


class Header(msgspec.Struct, kw_only=True):
    """The state of a twin that is not in pages."""

    version: int
    kind: str
    rows: dict[str, int]
    names_size: int
    journals: dict[str, int]
    records: dict[str, bytes]
    described: dict[str, Any]  # attributes as the estate described them when the twin was last opened
    attributes: dict[str, Any]  # current attributes, after ALTER and REBUILD
    kind_state: msgspec.Raw  # see StoreKind._kind_state
    episodes: list[Episode]
    drift: Drift
    forecasts: ForecastMemory
    began: int | None = None  # see StoreKind
    counted: list[str] = []  # queues, see StoreKind
    is_counted: bool = False  # see StoreKind
    incident: OpenIncident | None = None
    acts: ActionMemory = msgspec.field(default_factory=ActionMemory)
    readers: Readers = msgspec.field(default_factory=Readers)  # state before these facts has none
    estimate: Estimate = msgspec.field(default_factory=Estimate)  # state before it has none


def decode_header(content: bytes, kind: str, name: str) -> Header:
    """Return the header of a store; its `version` is that of the pages. StateError: another kind or unread version."""
    written = _decoded(content, Format, name)
    if written.version not in _MESSAGE_VERSIONS or written.kind != kind:
        raise StateError(
            f"state of {name} is of a {written.kind}, version {written.version}; this program reads that of a {kind}, "
            f"version {_words(_MESSAGE_VERSIONS)}: begin with a new checkpoint"
        )
    header = _decoded(content, Header, name)
    if header.version == 10:  # it did not say whether there was a queue operation; the first put reserves `counts`
        header.is_counted = header.rows["counts"] > 0
    return header


# --- shared stores --------------------------------------------------------------------------------------------------


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

    version: int = SHARED_VERSION
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
    incident: OpenIncident | None = None


def decode_shared_state(content: bytes, name: str) -> SharedState:
    """Return the state in the header of a shared store, in the present version. StateError: it is not read."""
    version = _decoded(content, Format, name).version
    if version not in _SHARED_VERSIONS:
        raise StateError(
            f"state of {name} has version {version}; this program reads {_words(_SHARED_VERSIONS)}: "
            "begin with a new checkpoint"
        )
    state = _decoded(content, SharedState, name)
    if version == 3:  # every report was released as it came
        state.frontier.released_ticks = dict(state.frontier.last_ticks)
        state.frontier.leaving = list(state.frontier.former_sources)
    state.version = SHARED_VERSION
    return state


# --- any store ------------------------------------------------------------------------------------------------------


def is_older(header: bytes, name: str) -> bool:
    """Return True if a header is of an earlier version, migrated when its store is opened. StateError: not read."""
    written = _decoded(header, Format, name)
    versions = _SHARED_VERSIONS if written.kind is None else _MESSAGE_VERSIONS
    if written.version not in versions:
        raise StateError(f"state of {name} has version {written.version}; this program reads {_words(versions)}")
    return written.version != versions[-1]


def _decoded(content: bytes, kind: type[_T], name: str) -> _T:
    """Return decoded msgpack. Raise StateError if it is of no known format; name: its store, for the error."""
    try:
        return msgspec.msgpack.decode(content, type=kind)
    except UNREADABLE as error:
        raise StateError(f"state of {name} is of no format known here: {error}") from error


def _words(versions: range) -> str:
    """Return versions as text, such as "10 to 11"."""
    return f"{versions[0]} to {versions[-1]}"
