"""Tools for tests: the twins of an estate, driven by hand or by a script with pauses and crashes.

    >>> driver = Driver("estate.toml")
    >>> driver.put("ORDERS", length=2048, count=10_000)
    []
    >>> driver.wait(minutes=5)
    []
    >>> driver.state("QSG1/APP1").messages
    10000

Events go the way of a replay: decoder, player, twins. Described in docs/testing.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from os import PathLike
from types import TracebackType
from typing import Any, Self

import msgspec

from twin.alerts.episodes import Alert
from twin.base.errors import UsageError
from twin.base.units import EventTime, event_us
from twin.estate import Estate, Route, as_estate
from twin.estate.errors import known_hint, listed
from twin.events import Decoder, EventError
from twin.events.fields import FIELD, MEASURED
from twin.playback.replays import Player
from twin.records import StateRecord, StatesByKind
from twin.stores.open import Twin, open_store
from twin.stores.warm_up import warm

__all__ = ["ABORT", "EOF", "PAUSE", "Driver", "Item", "Signal"]

HEARTBEAT_S = 10  # between two heartbeats of a queue manager while a driver waits
START = "2026-01-01T00:00:00Z"

_SECOND_US = 1_000_000


class Signal(Enum):
    """A sentinel among the events of a script, see `Driver.play`."""

    PAUSE = "pause"  # a batch ends: the twins are saved and opened again
    ABORT = "abort"  # a crash: what follows the last pause is forgotten and applied again
    EOF = "eof"  # the script ends here


PAUSE, ABORT, EOF = Signal.PAUSE, Signal.ABORT, Signal.EOF

Item = Mapping[str, Any] | bytes | Signal
"""An item of a script: an event, an event as a JSON text, or a sentinel."""


@dataclass(slots=True)
class _SavedTwin:
    """The state of a twin as a state store keeps it. pages: by page number."""

    header: bytes = b""
    pages: dict[int, bytes] = field(default_factory=dict)


class Driver(StatesByKind):
    """The twins of an estate, driven by hand: a call is an event, or several, and is applied at once.

    Each call returns the alerts that it caused. Events between two calls of `wait` have the same time. A driver holds
    memory only: as a context manager it does nothing else, and its alerts and states can be read after the block.

    Attributes:
        estate: what exists.
        alerts: the sink: every alert in the order of the calls, those of one call by time, then store.
        time: event time of the next event, microseconds since 1970; may be set, to text or a datetime too.
    """

    def __init__(
        self, estate: Estate | str | PathLike[str], *, start: EventTime = START, sink: list[Alert] | None = None
    ) -> None:
        """Begin with empty stores.

        Args:
            estate: what exists, or the path of its file.
            start: event time of the first event: RFC 3339, microseconds since 1970, or a datetime with a zone.
            sink: a list to append alerts to; a new one where absent.

        Raises:
            UsageError: the estate cannot be read, or `start` is not a time.
        """
        warm()
        self.estate = as_estate(estate)
        self.alerts: list[Alert] = [] if sink is None else sink
        self._time = _checked("start", start)
        self._decoder = Decoder(self.estate)
        self._player = self._new_player()
        self._saved: dict[str, _SavedTwin] = {}
        self._saved_time = self.time
        self._saved_alerts = len(self.alerts)
        self._routes_of_queue: dict[str, list[Route]] = {}
        for route in self.estate.routes:
            if route.reported is not None:
                self._routes_of_queue.setdefault(route.reported, []).append(route)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    @property
    def time(self) -> int:
        """Event time of the next event, microseconds since 1970."""
        return self._time

    @time.setter
    def time(self, time: EventTime) -> None:
        self._time = _checked("time", time)

    # --- events of queues ------------------------------------------------------------------------------------------

    def put(self, queue: str, *, length: int, qmgr: str | None = None, **fields: Any) -> list[Alert]:
        """Put messages.

        Args:
            queue: the queue, or an alias of it.
            length: bytes of a message.
            qmgr: the queue manager that puts; the first one that has the queue where absent.
            **fields: further fields of the event: `count`, `msgid`, `priority`, `persistent`, `uow`, `direct`,
                `reason`.

        Raises:
            UsageError: the event would be a dead letter; nothing was applied. So do all calls.
        """
        return self._send_to_queue("PUT", queue, qmgr, {"length": length, **fields})

    def get(self, queue: str, *, qmgr: str | None = None, **fields: Any) -> list[Alert]:
        """Get messages destructively. Arguments as of `put`."""
        return self._send_to_queue("GET", queue, qmgr, fields)

    def commit(self, queue: str, uow: str, *, qmgr: str | None = None) -> list[Alert]:
        """Commit what a unit of work did to a queue."""
        return self._send_to_queue("COMMIT", queue, qmgr, {"uow": uow})

    def backout(self, queue: str, uow: str, *, qmgr: str | None = None) -> list[Alert]:
        """Back out what a unit of work did to a queue."""
        return self._send_to_queue("BACKOUT", queue, qmgr, {"uow": uow})

    def expire(self, queue: str, *, qmgr: str | None = None, **fields: Any) -> list[Alert]:
        """Remove messages that have expired: the oldest ones, or the one of `msgid`."""
        return self._send_to_queue("EXPIRE", queue, qmgr, fields)

    def clear(self, queue: str, *, qmgr: str | None = None) -> list[Alert]:
        """Empty a queue."""
        return self._send_to_queue("CLEAR", queue, qmgr, {})

    # --- events of stores and queue managers -----------------------------------------------------------------------

    def restart(self, qmgr: str) -> list[Alert]:
        """Restart a queue manager: its open units of work are backed out."""
        return self.send({"time": self.time, "qmgr": qmgr, "op": "RESTART"})

    def alter(self, store: str, **attributes: Any) -> list[Alert]:
        """Alter a store as ALTER CFSTRUCT or SETXCF START,ALTER do. attributes: as in the estate."""
        return self._send_to_store("ALTER", store, {"attributes": attributes})

    def rebuild(self, store: str, **attributes: Any) -> list[Alert]:
        """Rebuild a structure. attributes: what changed in its policy."""
        return self._send_to_store("REBUILD", store, {"attributes": attributes})

    def measure(self, store: str, **measured: Any) -> list[Alert]:
        """Report what the real system holds. measured: fields of the state record, such as `ents_used=120_000`."""
        for name in measured:
            if name not in (*MEASURED, "asked"):
                raise UsageError(f"{name} cannot be measured{known_hint(name, MEASURED)}")
        return self._send_to_store("MEASURE", store, {"measured": measured})

    def wait(self, *, hours: float = 0, minutes: float = 0, seconds: float = 0) -> list[Alert]:
        """Let event time pass: every queue manager sends a HEARTBEAT every ten seconds, and one at the end."""
        waited = hours * 3600 + minutes * 60 + seconds
        end = self.time + round(waited * _SECOND_US)
        if end <= self.time:
            raise UsageError(f"wait of {waited:g} s; expected: hours, minutes or seconds above 0")
        times = [*range(self.time + HEARTBEAT_S * _SECOND_US, end, HEARTBEAT_S * _SECOND_US), end]
        qmgrs = sorted({route.qmgr for route in self.estate.routes if route.reported is None})
        return self.send(*({"time": time, "qmgr": qmgr, "op": "HEARTBEAT"} for time in times for qmgr in qmgrs))

    def send(self, *events: Mapping[str, Any] | bytes) -> list[Alert]:
        """Apply events as one batch, and return the alerts they caused by time, then store.

        Args:
            *events: dictionaries with the fields of docs/events.md, or JSON texts of such; each has its `time`.

        Raises:
            UsageError: an event would be a dead letter, or has an unknown field; none of the batch was applied.
        """
        if not events:
            return []
        decoded = self._decoder.json([_encode(event) for event in events])
        if decoded.rejects:
            reject = decoded.rejects[0]
            raise UsageError(f"event {reject.record} of {len(events)} is refused ({reject.reason}): {reject.detail}")
        self.time = max(self.time, int(decoded.events["time"].max()))
        alerts = sorted(self._player.feed(decoded), key=lambda alert: (alert.time, alert.store))
        self.alerts += alerts
        return alerts

    # --- pauses and crashes ----------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Save the twins as the stream does at the end of a batch, header and pages, and open them again."""
        for name, twin in self._player.twins.items():
            saved = self._saved.setdefault(name, _SavedTwin())
            saved.pages.update(twin.dirty_pages())
            saved.header = twin.header()
        self._saved_time = self.time
        self._saved_alerts = len(self.alerts)
        self._open_saved()

    def abort(self) -> None:
        """Forget everything since the last pause, alerts too, as a job that is killed does."""
        del self.alerts[self._saved_alerts :]
        self.time = self._saved_time
        self._open_saved()

    def play(self, source: Iterable[Item]) -> None:
        """Play a script: events in batches, with the crashes and pauses of a job.

        PAUSE ends a batch. ABORT forgets what was done since the last PAUSE, then applies it again with what follows,
        as a job does that is killed and reads its topic again. EOF ends the script; an iterator can be played on from
        there. Alerts and states are those of the same script without PAUSE and ABORT.

        Args:
            source: events as for `send`, and sentinels. What was done before the script is saved first, so that an
                ABORT concerns the script alone.

        Raises:
            UsageError: as `send`.
        """
        self.pause()
        batch: list[Mapping[str, Any] | bytes] = []
        for item in source:
            if not isinstance(item, Signal):
                batch.append(item)
                continue
            if item is EOF:
                break
            self.send(*batch)
            if item is PAUSE:
                self.pause()
                batch = []
            else:
                self.abort()
        self.send(*batch)

    # --- results ---------------------------------------------------------------------------------------------------

    def state(self, store: str) -> StateRecord:
        """Return the state record of a store; that of a new one where it got no event.

        `structure`, `page_set`, ... return it with the type of its kind.
        """
        self._check_store(store)
        twin = self._player.twins.get(store)
        return (open_store(self.estate, store) if twin is None else twin).state()

    def states(self) -> dict[str, StateRecord]:
        """Return the state records of all stores that got an event, by store name."""
        return self._player.states()

    # --- internals -------------------------------------------------------------------------------------------------

    def _send_to_queue(self, op: str, queue: str, qmgr: str | None, fields: dict[str, Any]) -> list[Alert]:
        qmgr = self._qmgr_of_queue(queue) if qmgr is None else qmgr
        return self.send({"time": self.time, "qmgr": qmgr, "op": op, "queue": queue, **fields})

    def _send_to_store(self, op: str, store: str, fields: dict[str, Any]) -> list[Alert]:
        self._check_store(store)
        qmgr = next(route.qmgr for route in self.estate.routes if route.store == store and route.reported is None)
        return self.send({"time": self.time, "qmgr": qmgr, "op": op, "store": store, **fields})

    def _qmgr_of_queue(self, queue: str) -> str:
        """Return the first queue manager with a queue. UsageError where queue managers have different ones."""
        routes = self._routes_of_queue.get(queue)
        if routes is None:
            raise UsageError(f"no queue manager has a queue {queue}{known_hint(queue, self._routes_of_queue)}")
        stores = {route.store for route in routes}
        if len(stores) > 1:
            raise UsageError(f"queue {queue} is in {listed(stores)}; expected: qmgr= says which one")
        return routes[0].qmgr

    def _check_store(self, store: str) -> None:
        if store not in self.estate.stores:
            raise UsageError(f"the estate has no store {store}{known_hint(store, self.estate.stores)}")

    def _open_saved(self) -> None:
        twins: dict[str, Twin] = {
            name: open_store(self.estate, name, None, saved.header, saved.pages.items())
            for name, saved in self._saved.items()
        }
        self._player = self._new_player(twins)

    def _new_player(self, twins: Mapping[str, Twin] | None = None) -> Player:
        """Return a player whose events come as they happen: those sent are all that exist."""
        player = Player(self.estate, twins)
        player.catch_up()
        return player


def _checked(name: str, time: EventTime) -> int:
    """Return a time of events in microseconds. UsageError: it is none."""
    try:
        checked: int = FIELD["time"].checked(event_us(time) if isinstance(time, datetime) else time)
    except EventError as error:
        raise UsageError(f"{name}: {error.detail}") from None
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
    return checked


def _encode(event: Mapping[str, Any] | bytes) -> bytes:
    """Return an event as JSON. UsageError where it has a field that no event has: the decoder ignores those."""
    if isinstance(event, bytes):
        return event
    for name in event:
        if name not in FIELD:
            raise UsageError(f"{name} is no field of an event{known_hint(name, FIELD)}")
    return msgspec.json.encode(event)
