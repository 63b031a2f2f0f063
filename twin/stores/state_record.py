"""The fields of a state record that every store with messages has, and which of them are known.

Sources: docs/state.md. `messages` counts whatever holds storage, what is left of a measured baseline included. A usage
is known once a queue operation of the store was applied (counted) or a MEASURE had it (measured); else it is null.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from kernels import clock, layout, meter_rows, meters
from twin.alerts.fillers import growth_span
from twin.alerts.readers import QueueFact, Readers
from twin.events import Measured
from twin.events.measured import without_nulls
from twin.records import DataSetState, DeepQueue, ExpandStatus, StateRecord, StructureState
from twin.units import as_text

Record = TypeVar("Record", bound=StateRecord)

# Of each field of a usage the sets of measured fields of which one makes it known; (): none does.
KnownBy = Mapping[str, tuple[frozenset[str], ...]]

EXPAND_STATUS: dict[int, ExpandStatus] = {layout.NORMAL: "NORMAL", layout.FAILED: "FAILED", layout.MAXIMUM: "MAXIMUM"}
_MAX_QUEUES = 10
_COUNTED_ONLY: KnownBy = dict.fromkeys(("bytes", "uncommitted", "in_doubt", "expired_held", "demand"), ())
_DEMAND_TICKS = 90  # of which the demand is the mean: 15 minutes
_OF_DATASET = ("blocks_used", "pages_used", "messages")
COUNTERS = (  # fields of the record that SCALARS has, too
    *("bytes", "uncommitted", "in_doubt", "events", "duplicates", "gaps", "unmatched_gets"),
    *("full_puts", "queue_full_puts", "overfull_puts", "refused_alters"),
)
SCALARS = itemgetter(
    *map((layout.SCALARS.names or ()).index, ("clock", "messages", "base_messages", "expiring", *COUNTERS))
)
_QUEUE = itemgetter(
    *map((layout.QUEUE.names or ()).index, ("bytes", "puts", "gets", "puts_before", "gets_before", "got_at"))
)
_OF_SCM = ("used", "ents", "elems", "messages", "aug_dynamic")


def any_of(*fields: str) -> tuple[frozenset[str], ...]:
    """Return that a usage is known by any of these measured fields."""
    return tuple(frozenset({field}) for field in fields)


def all_of(*fields: str) -> tuple[frozenset[str], ...]:
    """Return that a usage is known by these measured fields together."""
    return (frozenset(fields),)


def has_counted(events: npt.NDArray[Any]) -> bool:
    """Return True if events, EVENT[n], contain a queue operation, which counts what a store holds."""
    return bool((events["op"] <= layout.CLEAR).any())


def fields_to_take(measured: Measured, fields: Collection[str], qmgrs: Collection[str]) -> set[str]:
    """Return the fields of a measurement that a baseline takes over; those of data sets as smds/QM01/blocks_used."""
    datasets = ((qmgr, real) for qmgr, real in measured.get("smds", {}).items() if qmgr in qmgrs)
    of_datasets = {f"smds/{qmgr}/{name}" for qmgr, real in datasets for name in _OF_DATASET if name in real}
    return {name for name in fields if name in measured} | of_datasets


def with_kept(measured: Measured, record: StateRecord, fields: Collection[str]) -> Measured:
    """Return a measurement in which some fields, named as by `fields_to_take`, are as the state record has them."""
    result: dict[str, Any] = {**measured}
    for field in fields:
        _, _, of_dataset = field.partition("/")
        if not of_dataset:
            result[field] = getattr(record, field)
            continue
        qmgr, _, name = of_dataset.rpartition("/")
        datasets, known = result.get("smds", {}), data_sets_of(record)[qmgr]
        result["smds"] = {**datasets, qmgr: {**datasets.get(qmgr, {}), name: getattr(known, name)}}
    return without_nulls(result)


def data_sets_of(record: StateRecord) -> dict[str, DataSetState]:
    """Return the data sets of a state record, by queue manager; those of a structure, as others have none."""
    return record.smds if isinstance(record, StructureState) else {}


def known_part(record: Record, known_by: KnownBy, measured: Collection[str]) -> Record:
    """Return the state record of a store of which nothing was counted, with null for what was not measured either."""
    known_fields = frozenset(measured)
    unknown: dict[str, object] = dict.fromkeys(_unknown(tuple(known_by.items()), known_fields))
    if isinstance(record, StructureState):
        unknown["smds"] = {
            qmgr: replace(
                dataset, **dict.fromkeys(name for name in _OF_DATASET if f"smds/{qmgr}/{name}" not in known_fields)
            )
            for qmgr, dataset in record.smds.items()
        }
        unknown["scm"] = record.scm and replace(record.scm, **dict.fromkeys(_OF_SCM))
    return replace(record, **unknown)


@lru_cache(maxsize=1024)
def _unknown(known_by: tuple[tuple[str, tuple[frozenset[str], ...]], ...], measured: frozenset[str]) -> tuple[str, ...]:
    """Return the fields that are unknown where nothing was counted. Arguments as of `known_part`."""
    ways = {**_COUNTED_ONLY, **dict(known_by)}
    return tuple(name for name, sets in ways.items() if not any(fields <= measured for fields in sets))


def demand_rates(
    store: layout.Store, weights: Callable[[], npt.NDArray[Any]], began: int | None
) -> tuple[float, float]:
    """Return the demand of the last 15 minutes with refused puts: (messages, elements, pages or blocks) per second.
    `weights` returns f8[CLASSES], what a message put takes.
    """
    scalars, asked = store.scalars[0], np.empty(meters.DEMAND)
    now, current = int(scalars["clock"]), int(scalars["bin"])
    if now == layout.NEVER or not store.counts.size:  # no put so far
        return 0.0, 0.0
    since = now // clock.TICK - _DEMAND_TICKS + 1
    first = int(meters.read_demand(store.bins, store.counts, current, since, asked))
    known_from = max(now - clock.TICK if first == layout.NEVER else first * clock.TICK, began or 0)
    seconds = max(clock.TICK, now - known_from) / clock.SECOND
    put, at_max_depth, space = asked[: meter_rows.CLASSES], asked[meter_rows.CLASSES], asked[meter_rows.CLASSES + 1]
    total = float(put.sum() + at_max_depth), float((put @ weights() if put.any() else 0.0) + space)
    return round(total[0] / seconds, 3), round(total[1] / seconds, 3)


def data_set_state(dataset: np.void, used: np.void) -> DataSetState:
    """Return the state of one data set."""
    blocks, _, maximum, held, pages, *_ = used.item()
    return DataSetState(
        blocks_total=int(dataset["blocks_total"]),
        blocks_max=maximum,
        blocks_used=blocks,
        pages_used=pages,
        messages=held,
        status=EXPAND_STATUS[int(dataset["status"])],
    )


def deepest(
    rows: npt.NDArray[Any], names: Sequence[str], readers: Readers, now: int, began: int | None
) -> tuple[DeepQueue, ...]:
    """Return the ten deepest queues that hold anything, by depth, then name; depths of unreported ones are of
    `readers`.
    """
    depths = rows["depth"]
    if not readers.facts and not depths.any():
        return ()
    is_counted = bool(rows["puts"].any() or rows["gets"].any())
    if not is_counted and readers.facts:
        _, depths = readers.depths(names, now, now)
    order = sorted(np.flatnonzero(depths).tolist(), key=lambda row: (-int(depths[row]), names[row]))[:_MAX_QUEUES]
    seconds, tick = growth_span(now, began) / clock.SECOND, now // clock.TICK
    queues = []
    for row in order:
        size, puts, gets, puts_before, gets_before, got_at = _QUEUE(rows[row].item())
        put_rate: float | UnsetType = UNSET  # neither was ever reported
        got_rate: float | UnsetType = UNSET
        if puts or gets:
            put_rate = round((puts - puts_before) / seconds, 3)
            got_rate = round((gets - gets_before) / seconds, 3) if tick - got_at <= clock.MINUTE_TICKS else 0.0
        queues.append(
            DeepQueue(
                name=names[row],
                depth=int(depths[row]),
                bytes=size if is_counted else None,
                puts_per_s=put_rate,
                gets_per_s=got_rate,
                **_facts(readers.recent(names[row], now), now, gets),
            )
        )
    return tuple(queues)


def _facts(fact: QueueFact | None, now: int, got: int) -> dict[str, Any]:
    """Return the fields of the facts that are known of a queue, none for None."""
    if fact is None:
        return {}
    getters = fact.known_getters(now, got)
    since = fact.unread_since if getters == 0 else None
    times = {
        "last_get": fact.last_get,
        "last_put": fact.last_put,
        "measured_at": fact.measured_at,
        "unread_since": since,
    }
    fields: dict[str, Any] = {
        "getters": getters,
        "putters": fact.putters,
        "oldest_s": fact.oldest_s,
        "uncommitted": fact.uncommitted,
        **{name: None if time is None else as_text(time) for name, time in times.items()},
        "asked": None if getters is None or not fact.asked else tuple(fact.asked),
    }
    return {name: value for name, value in fields.items() if value is not None}
