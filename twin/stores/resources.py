"""The resources of stores that hold messages, the depth of a queue, and the fields that all their state records have.

- A resource is a row of USAGE (`kernels.meters`); the words for it are in `twin.records.usage`.
- Depth: how long until one queue holds MAXDEPTH messages; then a put fails with 2053. The forecast is a straight line,
  so its alert is a watch: the depth of a queue has no offload rules, and `queue-full` follows when the limit is
  reached.
- State records: the fields that every store with messages has, and which of them are known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from typing_extensions import override

from kernels import clock, layout, meter_rows, meters, page_set, queue_file, smds, watch
from kernels.clock import SECOND
from kernels.pools import SMALLEST_ELEMENTS
from kernels.watch import MIN_GROWTH_PCT, QUEUE_SAMPLE_US
from twin.alerts import readers, texts
from twin.alerts.episodes import STEP, Alert, Episode, Episodes, Finding
from twin.alerts.findings import CALM_AFTER_FULL, HYSTERESIS_PCT, ResourceView
from twin.alerts.readers import QueueFact, Readers, growth, growth_span
from twin.alerts.texts import NOTHING, OURS, Facts, Runbook
from twin.base.conditions import Condition, Pool, Resource
from twin.base.units import as_span, as_text, percent
from twin.estate import ForecastSettings, StoreConfig
from twin.estate.attributes import MAX_DEPTH
from twin.events import Measured
from twin.events.fields import without_nulls
from twin.records import DataSetState, DeepQueue, ExpandStatus, Filler, StateRecord, StructureState
from twin.records.usage import RESOURCES, usage_pct
from twin.state.arrays import Array


class Spec(NamedTuple):
    """A resource of a kind of store, as its kernels know it."""

    row: int  # row of USAGE; of data sets the first one
    counted: str  # field of QUEUE whose growth fills it
    bits: Mapping[str, int] = {}  # bits of `fired` by condition
    threshold_pct: int | None = 0  # percent of the present size from which "threshold" holds; None: FULLTHRESHOLD
    fills: bool = True  # True if puts fail once it is full, so that its usage is sampled


STRUCTURE = {
    Pool.ENTRIES: Spec(
        meter_rows.ENTRIES,
        "depth",
        {Condition.THRESHOLD: watch.THRESHOLD_ENTRIES, Condition.FULL: watch.FULL_ENTRIES},
        threshold_pct=None,
    ),
    Pool.ELEMENTS: Spec(
        meter_rows.SPACE,
        "elems",
        {Condition.THRESHOLD: watch.THRESHOLD_ELEMENTS, Condition.FULL: watch.FULL_ELEMENTS},
        threshold_pct=None,
    ),
    Pool.SCM: Spec(meter_rows.SCM, "depth", {Condition.SCM_EXHAUSTED: watch.SCM_EXHAUSTED}, fills=False),
    Pool.AUGMENTED: Spec(
        meter_rows.AUGMENTED, "depth", {Condition.AUGMENTED_EXHAUSTED: watch.AUGMENTED_EXHAUSTED}, fills=False
    ),
}
DATA_SET = Spec(
    meter_rows.DATA_SETS,
    "pages",
    {
        Condition.THRESHOLD: watch.DATASET_THRESHOLD,
        Condition.CANNOT_EXPAND: watch.DATASET_CANNOT_EXPAND,
        Condition.FULL: watch.DATASET_FULL,
    },
    threshold_pct=smds.EXPAND_ABOVE,
)
PAGE_SET = {
    Pool.PAGES: Spec(
        meter_rows.SPACE,
        "elems",  # of a page set, bytes: messages of several queues may share a page
        {
            Condition.THRESHOLD: watch.THRESHOLD,
            Condition.CANNOT_EXPAND: watch.CANNOT_EXPAND,
            Condition.FULL: watch.FULL,
        },
        threshold_pct=page_set.EXPAND_ABOVE,
    )
}
QUEUE_FILE = {
    Pool.FILE: Spec(
        meter_rows.SPACE,
        "pages",
        {Condition.THRESHOLD: watch.THRESHOLD, Condition.FULL: watch.FULL},
        threshold_pct=queue_file.WARN_ABOVE,
    ),
    Pool.BLOCKS: Spec(meter_rows.BLOCKS, "pages", threshold_pct=queue_file.WARN_ABOVE, fills=False),
}

LEAST: Mapping[str, int] = {
    Pool.ELEMENTS: SMALLEST_ELEMENTS
}  # what a message takes of a resource, where it is more than 1


def conditions_of(specs: Mapping[Pool, Spec]) -> dict[int, tuple[str, Resource]]:
    """Return condition and resource by bit of scalars.fired, as alerts of one event are published."""
    rows = [(condition, pool, bit) for pool, row in specs.items() for condition, bit in row.bits.items()]
    for condition, pool, _ in rows:
        if Condition(condition).order is None or pool not in Condition(condition).pools:
            raise TypeError(f"condition {condition} of {pool} has a bit; expected: one of its pools, raised by puts")
    rows.sort(key=lambda row: Condition(row[0]).order or 0)
    return {bit: (condition, Resource(pool)) for condition, pool, bit in rows}


def read_usage(store: layout.Store) -> Array:
    """Return USAGE of a store, as it is now; the next call overwrites it."""
    meters.read_usage(store)
    return store.usage


class StoreResource(ResourceView):
    """One resource of a store that holds messages, as USAGE has it, in `row`; None: that of `spec`."""

    def __init__(
        self,
        config: StoreConfig,
        store: layout.Store,
        queues: Array,
        resource: Resource,
        spec: Spec,
        row: int | None = None,
    ) -> None:
        super().__init__(store)
        self._config = config
        self._queues = queues
        self._spec = spec
        self._row = spec.row if row is None else row
        self.resource = resource
        words = RESOURCES[resource.pool]
        self.text = words.subject.format(store=config.name, owner=resource.owner)
        self.unit, self.present = words.grown, words.present

    @cached_property
    def _usage(self) -> tuple[int, int, int]:
        """(used, total, maximum) at the moment of the view."""
        used, total, maximum, *_ = read_usage(self._store)[self._row].tolist()
        return used, total, maximum

    @override
    def _read_usage_pct(self) -> float:
        used, total, _ = self._usage
        return usage_pct(used, total)

    @property
    @override
    def beyond_share(self) -> float:
        _, total, maximum = self._usage
        return self.beyond_pct / 100 * total / max(1, maximum)

    @property
    def is_limit_known(self) -> bool:
        """True if it is known up to where the resource can expand, or that it cannot."""
        return True

    @property
    @override
    def maximum_pct(self) -> float:
        used, total, maximum = self._usage
        limit = maximum if self.is_limit_known else total
        return usage_pct(used, limit) + self.beyond_pct * total / max(1, limit)

    @property
    @override
    def threshold_pct(self) -> float:
        return float(self._spec.threshold_pct or 0)

    @override
    def by_queue(self) -> tuple[Array, Array]:
        return readers.growth(self._queues, self._spec.counted), self._queues[self._spec.counted]


# --- the depth of one queue as a resource -----------------------------------------------------------------------------
# Sources: [IBM: MQ 9.1, MaxQDepth, q103290_] (2053 at MAXDEPTH; storage may run out before), [IBM: MQ 9.0,
# CurrentQDepth, q106410_] (what counts), [IBM: MQRC 2053, q041240_] (more getters, or a larger MAXDEPTH); [assumed]
# (the line, the growth from which it is believed, when the alert is over); docs/alerts.md.

_CALM_LEAD_RATIO = 2.5  # of the lead: beyond it MAXDEPTH is too far off to matter


class QueueDepth(ResourceView):
    """Messages on one queue against its MAXDEPTH. `store_usage`, percent: has a larger MAXDEPTH storage behind it?"""

    unit = "messages"

    def __init__(
        self,
        store: layout.Store,
        queues: Array,
        row: int,
        resource: Resource,
        store_name: str,
        store_usage: Mapping[Resource, float],
    ) -> None:
        super().__init__(store)
        self._queues = queues
        self._row = row
        self.resource = resource  # the depth of that queue
        self._store_name = store_name
        self._store_usage = store_usage
        self.text = f"Depth of {resource.owner}"

    @property
    def _limit(self) -> int:
        return int(self._queues["max_depth"][self._row])

    @property
    def _depth(self) -> int:
        return int(watch.depth(self._store, self._row))

    @property
    def _is_refusing(self) -> bool:
        return self.last_full + CALM_AFTER_FULL > int(self._store.scalars[0]["clock"])

    @override
    def _read_usage_pct(self) -> float:
        """Percent of MAXDEPTH; 100 for a queue that refused a put and whose MAXDEPTH the estate does not give."""
        return percent(self._depth, self._limit, of_nothing=100.0)

    @property
    @override
    def last_full(self) -> int:
        return int(self._queues["last_full"][self._row])

    @override
    def by_queue(self) -> tuple[Array, Array]:
        own = np.zeros(self._queues.size, np.int64)
        own[self._row] = 1
        return growth(self._queues, "depth") * own, self._queues["depth"] * own

    @override
    def is_over(self, condition: str, now: int) -> bool:
        calm = self.last_full + CALM_AFTER_FULL <= now
        return calm and (not self._limit or self.usage_pct < 100.0 - HYSTERESIS_PCT)

    @override
    def describe(self, condition: str) -> str:
        if not self._limit:
            return f"{self.text}: {self._depth:,} messages, puts fail with 2053; its MAXDEPTH is not in the estate"
        fails = "puts fail" if self._is_refusing else "the next put fails"
        return f"{self.text}: {self._depth:,} of MAXDEPTH({self._limit}), {fails} with 2053"

    @override
    def facts(self, fillers: tuple[Filler, ...]) -> Facts:
        resource, usage = max(self._store_usage.items(), key=lambda entry: entry[1])
        is_shared = int(self._store.params[0]["kind"]) == layout.STRUCTURE
        room = f"{usage:.1f} % of {resource} of {self._store_name} in use"
        return depth_facts(self.resource, self._limit, room, self._store_name, is_shared=is_shared)


def depth_facts(resource: Resource, limit: int, room: str, store: str, *, is_shared: bool) -> Facts:
    """Return the facts about a queue that reaches MAXDEPTH, `limit` or 0: not known; `room`: of the store, in words."""
    facts = texts.queue_facts(resource.owner, is_shared=is_shared)
    return facts.where(queue=True, depth_known=limit, depth_can_grow=0 < limit < MAX_DEPTH).adding(
        store=store,
        resource=resource.label,
        room=room,
        max_depth=str(limit),
        larger_depth=str(min(2 * limit, MAX_DEPTH)),
    )


# --- the forecast ----------------------------------------------------------------------------------------------------


def depth_lead_s(config: ForecastSettings) -> float:
    """Return the seconds before MAXDEPTH from which an alert opens: a line is not reliable further ahead."""
    return min(config.forecast_lead_s, config.forecast_page_lead_s)


def seconds_left(queues: Array, span_s: float) -> Array:
    """Return f8[n], seconds until each queue holds MAXDEPTH messages by its growth in `span_s`, or inf."""
    limits = queues["max_depth"]
    grown = growth(queues, "depth")
    room = np.maximum(limits - (queues["depth"] - queues["uncommitted_gets"]), 0)
    grows = (limits > 0) & (100 * grown >= MIN_GROWTH_PCT * limits)
    left: Array = np.where(grows, room * span_s / np.maximum(grown, 1), np.inf)
    return left


def check_depth(
    queues: Array,
    names: list[str],
    view_of: Callable[[Resource], ResourceView],
    with_reader: Callable[[Finding], Finding],
    lead_s: float,
    began: int | None,
    episodes: Episodes,
    now: int,
) -> list[Alert]:
    """Open, update or clear the alerts about queues that reach MAXDEPTH within `lead_s`; return what is published."""
    if not queues["max_depth"].any():
        return []
    span = growth_span(now, began)
    span_s, is_known = (
        span / SECOND,
        span >= QUEUE_SAMPLE_US,
    )  # of a store that began a moment ago the rate says nothing
    alerts: list[Alert] = []
    for row, left in enumerate(seconds_left(queues, span_s).tolist()):
        resource = Resource(Pool.QUEUE, names[row])
        episode = episodes.get(Condition.QUEUE_FULL_FORECAST, resource)
        if episode is not None:
            alerts += _review(episode, episodes, view_of(resource), with_reader, left, span_s, lead_s, now)
        elif is_known and 0 < left <= lead_s:  # at MAXDEPTH `queue-full` is open
            alerts += episodes.open(with_reader(_finding(view_of(resource), left, span_s, episodes.runbook)), now)
    return alerts


def _review(
    episode: Episode,
    episodes: Episodes,
    view: ResourceView,
    with_reader: Callable[[Finding], Finding],
    left: float,
    span_s: float,
    lead_s: float,
    now: int,
) -> list[Alert]:
    """Update an open alert where usage has risen, or clear it once MAXDEPTH has been far off for a while."""
    is_over = left > _CALM_LEAD_RATIO * lead_s
    cleared = episodes.settle(episode, lambda: _finding(view, None, span_s), now, is_over=is_over)
    has_risen = left > 0 and (view.usage_pct or 0.0) >= episode.usage_pct + 2 * STEP
    if has_risen and not is_over:
        return episodes.update(episode, with_reader(_finding(view, left, span_s, episodes.runbook)), now)
    return cleared


def _finding(view: ResourceView, left: float | None, span_s: float, runbook: Runbook = OURS) -> Finding:
    """Return the finding about a queue. left: seconds until MAXDEPTH; None: it is over."""
    what = "alert cleared"
    if left is not None:
        what = f"reached in {as_span(left)} if it grows as in the last {as_span(span_s)}, then puts fail with 2053"
    return Finding(
        condition=Condition.QUEUE_FULL_FORECAST,
        resource=view.resource,
        severity=Condition.QUEUE_FULL_FORECAST.severity,
        usage_pct=view.usage_pct,
        fillers=(Filler(view.resource.owner, 1.0),),
        cause=f"{view.text}: {view.usage_pct:.1f} % of MAXDEPTH, {what}.",
        runbook=() if left is None else view.actions(Condition.QUEUE_FULL_FORECAST, (), NOTHING, runbook),
    )


# --- fields of a state record -----------------------------------------------------------------------------------------
# Sources: docs/state.md. `messages` counts whatever holds storage, what is left of a measured baseline included. A
# usage is known once a queue operation of the store was applied (counted) or a MEASURE had it (measured); else it is
# null.

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
