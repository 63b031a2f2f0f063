"""Changes of a store: of a structure's attributes, and what people did, as the store's events show it.

- Attributes: ALTER CFSTRUCT, SETXCF START,ALTER, REBUILD, a changed estate. Pure functions: each returns what the
  structure is afterwards, or None where the change is refused; the twin assigns it. Sources: docs/storage-model.md,
  "Alter and rebuild".
- Actions: what people changed in a store, and how much longer it has since. `twin.reporting` asks here, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from kernels import layout
from kernels.clock import MINUTE_TICKS, SECOND, TICK
from kernels.layout import ALTER, CLEAR, MEASURE, REBUILD
from kernels.pools import AUTO_ALTER_GROWTH_PCT
from kernels.watch import ALTER_TICKS
from twin.base.units import as_span, as_text
from twin.capacity import Allocation, Usage, allocate, pool_sizes
from twin.estate import SMDS_MAX_SIZE, EstateError, Smds, StoreConfig, Structure, parse_attributes
from twin.estate.rows import Attribute, Table
from twin.events.fields import OPS
from twin.forecast.fill_model import ForecastView
from twin.forecast.rule import LEFT_HOURS, Left
from twin.records import GETTERS, DoneAction, is_full_now
from twin.stores.kind import StoreKind, copied_params

# --- attributes of a structure ----------------------------------------------------------------------------------------

_POLICY = frozenset({"init_size", "scm_max_size", "coupling_facility"})  # taken by REBUILD only
# Of the CFRM policy in the estate: in effect from the next allocation on [assumed: not FULLTHRESHOLD and ALLOWAUTOALT]
_PENDING = frozenset({"size", *_POLICY})
_OFFLOADS = {"NONE": layout.OFFLOAD_NONE, "SMDS": layout.OFFLOAD_SMDS, "DB2": layout.OFFLOAD_DB2}
SEEN_AFTER_US = 180 * SECOND  # at FULLTHRESHOLD, after which a measurement would show an automatic alter [assumed]
IN_LINE_PCT = 5  # percent of one pool left when the other runs out, up to which the ratio stays [assumed]
_NO_CHANGES: Mapping[str, Any] = {}
_NOT_DESCRIBED = Smds()


class Altered(NamedTuple):
    """A structure after a change. may_expand: its data sets try to expand again."""

    config: Structure
    allocation: Allocation
    may_expand: bool = False


def with_attributes(config: Structure, attributes: dict[str, Any]) -> Structure:
    """Return `config` with attributes that may change, as plain values."""
    datasets = {qmgr: Smds(**content) for qmgr, content in attributes["smds"].items()}
    return replace(config, **(attributes | {"smds": {**config.smds, **datasets}}))


def structure_params(config: Structure, allocation: Allocation) -> dict[str, int | list[int]]:
    """Return the fields of PARAMS that follow from a structure's attributes and allocation."""
    ents_max, elems_max = pool_sizes(config, *allocation)
    return copied_params(config) | {
        "kind": layout.STRUCTURE,
        "size_now": allocation.size,
        "ents_max": ents_max,
        "elems_max": elems_max,
        "offld_th": [rule.th for rule in config.rules],
        "offld_sz": [layout.RULE_OFF if rule.off else rule.sz for rule in config.rules],
        "offload": _OFFLOADS[config.offload],
    }


def alter(config: Structure, allocation: Allocation, usage: Usage, attributes: dict[str, Any]) -> Altered | None:
    """Return a structure after ALTER CFSTRUCT or SETXCF START,ALTER (`size`), which is taken or refused as a whole.

    The caller refuses a `size` while data is in SCM; the other attributes are MQ's definition, which may change. A size
    below `usage`, what it holds, is refused.
    """
    changes = _parse(config, "ALTER", attributes)
    if changes is None:
        return None
    size = changes.pop("size", None)
    if size is not None and not _fits(config, Allocation(size, allocation.ratio), usage):
        return None
    if _POLICY & changes.keys() or _reblocks_data(config, usage, changes):
        return None
    altered = allocation if size is None else allocation._replace(size=size)
    return Altered(replace(config, **changes), altered, bool(changes.get("ds_expand")))


def rebuild(
    config: Structure, usage: Usage, attributes: dict[str, Any], pending: Mapping[str, Any] = _NO_CHANGES
) -> Altered | None:
    """Return a structure after SETXCF START,REBUILD under a new policy: allocated anew, at INITSIZE, else SIZE.
    `pending`: changes of the policy that waited for it; `attributes` override them.
    """
    changes = _parse(config, "REBUILD", attributes)
    if changes is None:
        return None
    rebuilt = replace(config, **(dict(pending) | changes))
    if (rebuilt.init_size or 0) > rebuilt.size or _reblocks_data(config, usage, changes):
        return None
    return Altered(rebuilt, allocate(rebuilt), bool(changes.get("ds_expand")))


def adopt(
    config: Structure, usage: Usage, before: dict[str, Any], described: dict[str, Any], pending: Mapping[str, Any]
) -> tuple[Structure, dict[str, Any]]:
    """Return a structure with what the estate says differently since the store was last opened, and what waits.

    The rest stays as events left it. A changed DSBLOCK waits until the data sets are empty, as in the real system:
    `described`, which the header keeps, gets the old one, and the next opening asks again. A changed CFRM policy waits
    for a REBUILD, as a start of the job rebuilds nothing [IBM: How storage class memory works with IBM MQ for z/OS]. A
    data set whose queue manager has left the estate stays as it was: what it holds is there still.
    """
    if _reblocks_data(config, usage, {"ds_block": described["ds_block"]}):
        described["ds_block"] = before["ds_block"]
    changes = {name: value for name, value in described.items() if name != "smds" and before.get(name) != value}
    waiting = dict(pending) | {name: value for name, value in changes.items() if name in _PENDING}
    waiting = {name: value for name, value in sorted(waiting.items()) if getattr(config, name) != value}
    datasets = {qmgr: Smds(**content) for qmgr, content in described["smds"].items()}
    in_effect = {name: value for name, value in changes.items() if name not in _PENDING}
    return replace(config, **in_effect, smds={**config.smds, **datasets}), waiting


def assumed_sets(config: Structure, qmgrs: Sequence[str]) -> set[str]:
    """Return the queue managers whose data set is not described, so that its size is assumed."""
    return {qmgr for qmgr in qmgrs if config.smds.get(qmgr, _NOT_DESCRIBED) == _NOT_DESCRIBED}


def describe_dataset(dataset: np.void, config: Structure, qmgr: str) -> None:
    """Fill a new row of DATASET from the estate."""
    dataset["last_full"] = layout.NEVER
    dataset["filling"] = layout.NONE
    dataset["armed"] = 0xFF
    resize_dataset(dataset, config, qmgr)


def resize_dataset(dataset: np.void, config: Structure, qmgr: str) -> None:
    """Give a row of DATASET the size that the estate describes."""
    dataset["size"] = config.smds.get(qmgr, _NOT_DESCRIBED).size
    dataset["status"] = layout.NORMAL
    reblock_dataset(dataset, config, qmgr)


def reblock_dataset(dataset: np.void, config: Structure, qmgr: str) -> None:
    """Count a row of DATASET in blocks of the structure's DSBLOCK; it keeps its bytes."""
    described = config.smds.get(qmgr, _NOT_DESCRIBED)
    dataset["blocks_total"] = dataset["size"] // config.ds_block
    dataset["limit"] = (described.max_size or SMDS_MAX_SIZE) // config.ds_block
    dataset["limited"] = described.max_size is not None
    dataset["extent"] = max(1, described.secondary // config.ds_block) if described.secondary else 0


def _fits(config: Structure, allocation: Allocation, usage: Usage) -> bool:
    """Return True if an allocation is between what is used (at least one entry) and SIZE."""
    entries, elements = pool_sizes(config, *allocation)
    return entries >= max(1, usage.entries) and elements >= usage.elements and allocation.size <= config.size


def _reblocks_data(config: Structure, usage: Usage, changes: dict[str, Any]) -> bool:
    """Return True if the changes have a new DSBLOCK while a data set holds messages."""
    return usage.holds_data and changes.get("ds_block", config.ds_block) != config.ds_block


def _parse(config: Structure, op: Literal["ALTER", "REBUILD"], attributes: dict[str, Any]) -> dict[str, Any] | None:
    """Return the attributes as values; None where input checks let through what this structure cannot take."""
    try:
        return dict(parse_attributes(config, op, attributes))
    except EstateError:
        return None


# --- ALLOWAUTOALT(YES): what z/OS alters of a structure that fills ----------------------------------------------------

# [published] z/OS, Setting Up a Sysplex: automatic alter from FULLTHRESHOLD on; the ratio stays where it is "in line"
# with the one in use (Conditions preventing a system-initiated alter). [assumed] a sample every 60 s of event time, to
# the ratio in use, then by 10 % up to SIZE; in line is what servers of CICS coupling facility data tables take so,
# ALTERELEMPC(5) and ALTERENTRYPC(5).


def count_samples(before: int, tick: int) -> int:
    """Return how many times the structure is sampled after the tick `before`, up to `tick`."""
    return tick // ALTER_TICKS - before // ALTER_TICKS


def is_at_threshold(config: Structure, allocation: Allocation, usage: Usage) -> bool:
    """Return True if entries or elements in use reach FULLTHRESHOLD of an allocation (0: never)."""
    threshold = config.full_threshold
    if threshold == 0:
        return False
    ents_max, elems_max = pool_sizes(config, *allocation)
    return usage.entries * 100 >= threshold * ents_max or usage.elements * 100 >= threshold * elems_max


def _next_ratio(config: Structure, allocation: Allocation, usage: Usage) -> Fraction:
    """Return the ratio in use, or the allocated one where both are in line: z/OS alters no ratio for a small drift."""
    ents_max, elems_max = pool_sizes(config, *allocation)
    less, more = sorted((usage.entries * elems_max, usage.elements * ents_max))  # shares in use, times both totals
    if less == 0 or (more - less) * 100 <= IN_LINE_PCT * more:
        return Fraction(allocation.ratio)
    return Fraction(usage.elements, usage.entries)


def can_relieve(config: Structure, allocation: Allocation, usage: Usage) -> bool:
    """Return True if automatic alter takes what is in use below FULLTHRESHOLD, by ratio and SIZE, in time."""
    largest = Allocation(max(allocation.size, config.size), _next_ratio(config, allocation, usage))
    return not is_at_threshold(config, largest, usage)


def next_allocation(config: Structure, allocation: Allocation, usage: Usage) -> Allocation:
    """Return the allocation that automatic alter gives a structure at its threshold."""
    ratio = _next_ratio(config, allocation, usage)
    size = allocation.size
    if is_at_threshold(config, Allocation(size, ratio), usage):
        size = max(size, min(config.size, size + size * AUTO_ALTER_GROWTH_PCT // 100))
    return Allocation(size, ratio)


# --- actions ----------------------------------------------------------------------------------------------------------
# An ALTER, REBUILD or CLEAR is a change, and a MEASURE with another SIZE than the one before it; so is a getter that
# was away while its queue filled the store, and is back. What is done while an alert about filling is open becomes part
# of its incident, and of the records of its alerts: docs/incidents.md, "What was done".

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
