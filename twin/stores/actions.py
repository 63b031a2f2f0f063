"""Actions: what people changed in a store, as its events show it, and how much longer it has since.

An ALTER, REBUILD or CLEAR is a change, and a MEASURE with another SIZE than the one before it; so is a getter that was
away while its queue filled the store, and is back. What is done while an alert about filling is open becomes part of
its incident, and of the records of its alerts: docs/incidents.md, "What was done". `twin.reporting` asks here, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from kernels.clock import MINUTE_TICKS, TICK
from kernels.layout import ALTER, CLEAR, MEASURE, REBUILD
from twin.estate import StoreConfig
from twin.estate.rows import Attribute, Table
from twin.events.fields import OPS
from twin.forecast.refusals import LEFT_HOURS, Left
from twin.forecast.view import ForecastView
from twin.records import GETTERS, DoneAction, is_full_now
from twin.stores.kind import StoreKind
from twin.units import as_span, as_text

IS_CHANGE = np.isin(np.arange(len(OPS)), (ALTER, REBUILD, CLEAR, MEASURE))  # by op
_LEAST_CLEARED = 0.01  # share of what a store holds: smaller drops are not counted as an action
_AWAY = 0.25  # gets a put, below which getters are away [assumed]
_BACK = 0.5  # gets a put, from which they are back [assumed]
_AWAY_MINUTES = 3  # as long as `twin.forecast.evidence` waits before it says that they stopped
_BACK_MINUTES = 2
_LEAST_GOT = 20  # messages in these minutes: fewer may be somebody who looks
_SAID_FOR = 10 * MINUTE_TICKS  # in which the same is not said again


class StoreChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a store."""

    op: int  # its operation
    content: dict[str, Any]  # attributes as in the event; of a MEASURE `size`, and `before`, the one measured before it
    queue: str = ""  # the queue that was cleared; "": no CLEAR

    def action_id(self, rows: Table) -> str:
        """Return the id of the action in runbooks that it matches; "" without one. rows: those of the store."""
        if self.op == REBUILD:
            return "scm" if "scm_max_size" in self.content else "cfrm-size"
        return next((row.action for name, row in rows.items() if name in self.content and row.action), "")


def read_change(
    event: np.void, content: bytes, queue: str, config: StoreConfig, sized: int | None
) -> tuple[StoreChange | None, int | None]:
    """Return the change that an event is (EVENT, one of `IS_CHANGE`), or None, and the SIZE by which the next
    measurement is judged. `sized`: SIZE as measured last, None: not since the last ALTER or REBUILD, so that one that
    shows it is not another change.
    """
    op = int(event["op"])
    if op == CLEAR:
        return StoreChange(op=op, content={}, queue=queue), sized
    attributes = msgspec.json.decode(content)
    if op != MEASURE:
        return (StoreChange(op=op, content=attributes) if attributes or op == REBUILD else None), None
    size = attributes.get("size")
    if not config.has_measured_size or config.allow_auto_alter or not isinstance(size, int):
        return None, sized
    if sized in (None, size):
        return None, size
    return StoreChange(op=op, content={"size": size, "before": sized}), size


class Watched:
    """A store just before a change, then applied to it. Unless `is_timed`, the time until full is not computed."""

    def __init__(self, store: StoreKind, change: StoreChange, *, is_timed: bool = True) -> None:
        self._change = change
        self._values = {name: store.value_of(name) for name in change.content}
        self._messages, self._refused, self._duplicates = _counts(store)
        self._left = Left.ask(store) if is_timed and change.op != MEASURE else None  # the model keeps its SIZE

    def done(self, store: StoreKind, time: int) -> DoneAction | None:
        """Return the change and its effect, just after it was applied; None: it was a duplicate."""
        messages, refused, duplicates = _counts(store)
        if duplicates > self._duplicates:
            return None
        is_refused = refused > self._refused
        return _done(
            self._change.action_id(store.config.rows),
            time,
            _text(store, self._change, self._values, self._messages - messages, is_refused=is_refused),
            self._left,
            None if self._left is None or is_refused else Left.ask(store, self._left),
            is_refused=is_refused,
        )

    def is_slight(self, store: StoreKind) -> bool:
        """Return True if it cleared too few of the store's messages to count as an operator's action."""
        cleared = self._messages - _counts(store)[0]
        return self._change.op == CLEAR and cleared <= _LEAST_CLEARED * self._messages


def _counts(store: ForecastView) -> tuple[int, int, int]:
    """Return the messages that a store holds, its refused alters and its duplicates."""
    scalars = store.tables.store.scalars[0]
    return int(scalars["messages"]), int(scalars["refused_alters"]), int(scalars["duplicates"])


def _done(
    action_id: str, time: int, text: str, before: Left | None, after: Left | None, *, is_refused: bool = False
) -> DoneAction:
    left = None if before is None else before.seconds
    now = None if after is None else after.seconds
    is_known = left is not None and now is not None
    return DoneAction(
        id=action_id,
        time=as_text(time),
        text=text,
        is_refused=is_refused,
        before_s=_finite(left) if is_known else None,
        after_s=_finite(now) if is_known else None,
        effect=_effect(left, now) if left is not None and now is not None else None,
    )


# --- getters ---------------------------------------------------------------------------------------------------------


class Getters(msgspec.Struct, kw_only=True):
    """Memory of the getters of the queue that fills a store, while an alert names it."""

    queue: str
    tick: int  # until which they were counted
    gets: int  # gets, puts: messages got and put until then
    puts: int
    away: int = 0  # minutes in a row in which hardly any message was got
    back: int = 0  # minutes in a row since then in which they were
    back_at: int = 0  # tick at which the first of these gets came; 0: none has come
    got: int = 0  # messages got in them
    left_s: float | None = None  # the store had left while they were away; inf: beyond `LEFT_HOURS`; None: not known

    @property
    def are_away(self) -> bool:
        """True if they have been away for long enough, and are not known to be back."""
        return self.away >= _AWAY_MINUTES


class ActionMemory(msgspec.Struct, kw_only=True):
    """Memory of operators' actions on a store, kept in its header."""

    sized: int | None = None  # SIZE as it was measured last, as of `read_change`
    getters: Getters | None = None  # memory of those of the queue that fills the store; None: no alert names one
    said_at: int | None = None  # tick at which getters were last said to be back

    def turn_back(self, tick: int) -> None:
        """Continue from an earlier tick."""
        self.getters = None
        self.said_at = None if self.said_at is None else min(self.said_at, tick)

    def note_getters(self, store: ForecastView, tick: int) -> DoneAction | None:
        """Count the gets of the queue that fills a store, once a minute; return the action if its getters are back."""
        filling = store.episodes.filling
        if filling is None:
            self.getters = None
            return None
        fillers = filling.last_finding().fillers
        own, queue = self.getters, fillers[0].queue if fillers else ""
        if own is None or (own.queue != queue and not own.are_away):
            own = self.getters = _counted(store, queue, tick)
        if own is None:
            return None
        row = store.tables.store.queues[store.queues.index(own.queue)]
        got, put = int(row["gets"]) - own.gets, int(row["puts"]) - own.puts
        own.back_at = own.back_at or (tick - 1 if got else 0)
        if tick - own.tick < MINUTE_TICKS:
            return None
        own.tick, own.gets, own.puts = tick, int(row["gets"]), int(row["puts"])
        if got < _AWAY * put:
            own.away, own.back, own.back_at, own.got = own.away + 1, 0, 0, 0
            own.left_s = Left.ask(store).seconds if own.are_away else None
        elif got >= _BACK * put and got > 0:
            own.back, own.got = own.back + 1, own.got + got
            if not own.are_away:
                own.away, own.back_at = 0, 0
            elif own.back >= _BACK_MINUTES and own.got >= _LEAST_GOT:
                return self._back(store, own, tick)
        return None

    def _back(self, store: ForecastView, own: Getters, tick: int) -> DoneAction | None:
        """Return that getters are back, unless it was said a short while ago.

        The effect is unknown while the store is still full: they have just begun to drain it.
        """
        own.away, is_said = 0, self.said_at is not None and tick - self.said_at < _SAID_FOR
        if is_said:
            return None
        self.said_at = tick
        before, after = Left(own.left_s, store.fill_model(tick), ()), Left.ask(store, changed_at=own.back_at)
        is_full = after.seconds is not None and is_full_now(after.seconds)
        text = f"Getters of {own.queue} have been back"
        return _done(GETTERS, own.back_at * TICK, text, before, None if is_full else after)


def _counted(store: ForecastView, queue: str, tick: int) -> Getters | None:
    """Return the count of a queue from a tick on; None: the store has no such queue."""
    if queue not in store.queues:
        return None
    row = store.tables.store.queues[store.queues.index(queue)]
    return Getters(queue=queue, tick=tick, gets=int(row["gets"]), puts=int(row["puts"]))


# --- words -----------------------------------------------------------------------------------------------------------


def _text(
    store: StoreKind, change: StoreChange, before: Mapping[str, object], cleared: int, *, is_refused: bool
) -> str:
    rows = store.config.rows
    if change.op == CLEAR:
        return f"{change.queue} cleared of {cleared:,} messages"
    if change.op == MEASURE:
        return f"{_raised(rows['size'], change.content['before'], change.content['size'])}, as measured"
    words = [rows[name].word for name in change.content]
    if is_refused:
        what = "REBUILD" if change.op == REBUILD else "ALTER"
        return f"{what} of {', '.join(words)} refused" if words else f"{what} refused"
    texts = [
        _raised(rows[name], before[name], store.value_of(name))
        for name in change.content
        if store.value_of(name) != before[name]
    ]
    return ", ".join(texts) or ("rebuilt" if change.op == REBUILD else f"{', '.join(words)} set as it was")


def _raised(row: Attribute, before: object, after: object) -> str:
    """Return the change of a value: `SIZE raised from 1G to 2G`, `OFFLOAD set to SMDS`."""
    if isinstance(before, int) and isinstance(after, int) and not isinstance(after, bool):
        direction = "raised" if after > before else "lowered"
        return f"{row.word} {direction} from {row.form.text(before)} to {row.form.text(after)}"
    return f"{row.word} set to {row.form.text(after)}"


def _effect(before: float, after: float) -> str:
    """Return the effect of a change: `full in 3.0 h instead of in 11 min`. Arguments: seconds until full."""
    was, is_now = _full_in(before), _full_in(after)
    return f"{is_now}, as before" if was == is_now else f"{is_now} instead of {was.removeprefix('full ')}"


def _full_in(seconds: float) -> str:
    if not np.isfinite(seconds):
        return f"not full within {as_span(LEFT_HOURS * 3600)}"
    return "full now" if is_full_now(seconds) else f"full in {as_span(seconds)}"


def _finite(seconds: float | None) -> float | None:
    return None if seconds is None or not np.isfinite(seconds) else round(seconds, 1)
