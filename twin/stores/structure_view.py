"""The resources of a structure: its pools, its data sets, storage class memory.

Storage class memory: what kernels need to know of it, its part of the state record, its pace. Sources:
docs/storage-model.md, "Storage class memory"; [IBM: How storage class memory works with IBM MQ for z/OS] (pre-staging
above 90 %, applications wait for a read of SCM); [assumed] (bandwidth of the mover, when the wait is worth an alert);
docs/alerts.md, "Conditions".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np
from typing_extensions import override

from kernels import clock, layout, meter_rows, scm
from kernels.pools import SMALLEST_ELEMENTS, exceeds
from twin.alerts import readers, texts
from twin.alerts.episodes import Alert, Episodes, Finding
from twin.alerts.findings import WATCHED_PCT, ResourceView
from twin.alerts.texts import NOTHING, OURS, Facts, Runbook
from twin.base.conditions import AUGMENTED, CRITICAL, ELEMENTS, ENTRIES, INFO, SCM, Condition, Pool, Resource
from twin.base.units import as_times, percent, readable_size
from twin.capacity import assured_scm, bounds
from twin.estate import Estate, Structure
from twin.estate.model import DYNAMIC_AUGMENTED_PPM, FIXED_AUGMENTED
from twin.records import Action, Filler, ScmState
from twin.records.usage import usage_pct
from twin.state.arrays import Array
from twin.state.tables import Tables
from twin.stores.resources import DATA_SET, EXPAND_STATUS, STRUCTURE, StoreResource, read_usage

_LACKS = {SCM: scm.NO_SCM, AUGMENTED: scm.NO_AUGMENTED}
LAST_WATCHED_PCT = 95  # of a pool that is measured, from which an alert is open whatever FULLTHRESHOLD is [assumed]
_LEAST = {ENTRIES: 1, ELEMENTS: SMALLEST_ELEMENTS}  # what a message takes of a pool
_POOL_ROWS = (STRUCTURE[Pool.ENTRIES].row, STRUCTURE[Pool.ELEMENTS].row)
_LAST_FULL = {ENTRIES: "last_full_ents", ELEMENTS: "last_full_elems"}  # field of the scalars


def structure_resource(
    config: Structure,
    store: layout.Store,
    qmgrs: Sequence[str],
    queues: int,
    resource: Resource,
    of_mean_length: int = 0,
    room: int | None = None,
    *,
    grows: bool,
) -> ResourceView:
    """Return the view of a structure's resource. `room`: bytes left for it, or None; `grows`: z/OS will enlarge it."""
    rows = store.queues[:queues]
    if resource in _LEAST:
        of_pool = _Pool if config.holds_queues else _Level
        return of_pool(config, store, rows, resource, of_mean_length, room, grows=grows)
    if resource in (SCM, AUGMENTED):
        return _Scm(config, store, rows, resource)
    return _DataSet(config, store, rows, qmgrs.index(resource.owner), resource)


def pools_pct(store: layout.Store) -> float:
    """Return the percentage in use of the pool that is used more, by the USAGE last read."""
    used, total = store.usage["used"].tolist(), store.usage["total"].tolist()
    return max(usage_pct(used[row], total[row]) for row in _POOL_ROWS)


class _OfStructure(StoreResource):
    """A resource of a structure; puts are refused for all of them together."""

    _config: Structure

    @property
    @override
    def last_refused(self) -> int:
        """Event time of the last put for which any resource had no room, microseconds, or NEVER."""
        scalars, sets = self._store.scalars[0], self._store.datasets
        of_sets = int(sets["last_full"].max()) if sets.size else layout.NEVER
        return max(int(scalars["last_full_ents"]), int(scalars["last_full_elems"]), of_sets)


class _Pool(_OfStructure):
    """Entries or elements."""

    def __init__(
        self,
        config: Structure,
        store: layout.Store,
        queues: Array,
        resource: Resource,
        of_mean_length: int,
        room: int | None,
        *,
        grows: bool,
    ) -> None:
        super().__init__(config, store, queues, resource, STRUCTURE[Pool(resource.pool)])
        self._grows = grows
        self._of_mean_length = of_mean_length
        self._room = room

    @property
    @override
    def threshold_pct(self) -> float:
        return float(self._store.params[0]["full_threshold"])

    @property
    @override
    def watched_pct(self) -> float:
        """FULLTHRESHOLD, no later than where a structure that was taken over is watched; without one as others."""
        own = self._config.full_threshold or WATCHED_PCT
        return min(own, LAST_WATCHED_PCT) if self.is_measured else self.threshold_pct

    @property
    @override
    def threshold_name(self) -> str:
        return "FULLTHRESHOLD" if self.threshold_pct == self._config.full_threshold else "watched from"

    @property
    @override
    def maximum_pct(self) -> float:
        """Percent of the size that automatic alter can reach."""
        return self.usage_pct / self._times if self._grows else self.usage_pct

    @property
    def _times(self) -> float:
        """Factor by which an alter can enlarge the structure. The size of one with data in SCM stays."""
        size = int(self._store.params[0]["size_now"])
        is_fixed = size <= 0 or size >= self._config.size or int(self._store.scm[0]["messages"]) > 0
        return 1.0 if is_fixed else self._config.size / size

    @property
    @override
    def growth(self) -> str:
        return f"SIZE allows {as_times(self._times)} as much" if self._times > 1 else ""

    @property
    @override
    def growth_ahead(self) -> str:
        return f"; {self.growth}" if self.growth else ""

    @property
    @override
    def last_full(self) -> int:
        return int(self._store.scalars[0][_LAST_FULL[self.resource]])

    @property
    @override
    def is_exhausted(self) -> bool:
        used, total, _ = self._usage
        return used + _LEAST[self.resource] > total

    @property
    @override
    def evidence(self) -> tuple[str, ...]:
        if self.resource != ELEMENTS or not self._of_mean_length:
            return ()
        used, total, _ = self._usage
        low, high = max(0, used - self._of_mean_length), used + self._of_mean_length
        messages = "1 message held is" if self._of_mean_length == 1 else f"{self._of_mean_length:,} messages held are"
        pcts = f"{usage_pct(low, total):.1f} to {usage_pct(high, total):.1f} %"
        return (f"{messages} known from counts with a mean length: {low:,} to {high:,} elements are in use, {pcts}",)

    @override
    def describe(self, condition: str) -> str:
        sentence = super().describe(condition)
        if scm.is_share_used(self._store):
            share, maximum = int(scm.bound(self._store)), int(self._config.scm_max_size or 0)
            sentence += (
                f"; its share of {self._config.coupling_facility}'s SCM, {readable_size(share)} of"
                f" SCMMAXSIZE {readable_size(maximum)}, is used up"
            )
        if not self._config.allow_auto_alter:
            return sentence
        size = int(self._store.params[0]["size_now"])
        if size < self._config.size and not self._grows:
            return f"{sentence}; automatic alter is on, and has not enlarged it"
        if size < self._config.size:
            return f"{sentence}; automatic alter is on, at {readable_size(size)} of {readable_size(self._config.size)}"
        return f"{sentence}; automatic alter has reached SIZE, {readable_size(size)}, and cannot relieve it"

    @override
    def facts(self, ranked: tuple[Filler, ...]) -> Facts:
        size, alterable = int(self._store.params[0]["size_now"]), int(self._store.scm[0]["messages"]) == 0
        return texts.pool_facts(self._config, self.resource, size, ranked, alterable=alterable, room=self._room)


class _Level(_Pool):
    """Entries or elements of a structure that holds no queues: measured, and what takes them is not known."""

    has_fillers = False
    evidence = ()

    @property
    @override
    def consequence(self) -> str:
        return texts.fails_when_full(self._config)

    @override
    def describe(self, condition: str) -> str:
        if condition == Condition.FULL:
            return f"{self.text}: {self.usage}, full: {self.consequence}"
        return f"{super().describe(condition)}; when it is full, {self.consequence}"

    @override
    def facts(self, ranked: tuple[Filler, ...]) -> Facts:
        size = int(self._store.params[0]["size_now"])
        return texts.pool_facts(self._config, self.resource, size, (), alterable=True, room=self._room)

    @override
    def actions(
        self, condition: str, fillers: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING, runbook: Runbook = OURS
    ) -> tuple[Action, ...]:
        return super().actions(condition, fillers, NOTHING, runbook)


class _DataSet(_OfStructure):
    """The blocks of one shared message data set."""

    def __init__(self, config: Structure, store: layout.Store, queues: Array, row: int, resource: Resource) -> None:
        super().__init__(config, store, queues, resource, DATA_SET, DATA_SET.row + row)
        self._number = row

    @property
    def _dataset(self) -> np.void:
        row: np.void = self._store.datasets[self._number]
        return row

    @property
    @override
    def is_limit_known(self) -> bool:
        return bool(self._dataset["limited"])

    @property
    @override
    def is_exhausted(self) -> bool:
        used, total, _ = self._usage
        return int(self._dataset["room"]) == 0 and used >= total

    @property
    @override
    def last_full(self) -> int:
        return int(self._dataset["last_full"])

    @property
    @override
    def can_expand(self) -> bool:
        return int(self._dataset["status"]) == layout.NORMAL

    @property
    @override
    def expansion_problem(self) -> str:
        return f"EXPANDST {EXPAND_STATUS[int(self._dataset['status'])]}"

    @override
    def by_queue(self) -> tuple[Array, Array]:
        messages = self._store.messages[: int(self._store.scalars[0]["message_high"])]
        held = readers.pages_in_dataset(messages, self._number, self._queues.size)
        # Growth is known over all data sets only; a queue added to this one no more than it holds there.
        return np.minimum(super().by_queue()[0], held), held

    @override
    def facts(self, ranked: tuple[Filler, ...]) -> Facts:
        return texts.dataset_facts(self._config, self.resource, ranked, has_failed=not self.can_expand)


class _Scm(StoreResource):
    """Storage class memory, or storage of the coupling facility for its dynamic augmented space.

    It is full, or so full that the structure cannot be altered.
    """

    _config: Structure

    def __init__(self, config: Structure, store: layout.Store, queues: Array, resource: Resource) -> None:
        super().__init__(config, store, queues, resource, STRUCTURE[Pool(resource.pool)])
        if resource == SCM and self._usage[1] < (config.scm_max_size or 0):
            self.text += f" (its share of {config.coupling_facility})"

    @override
    def _read_usage_pct(self) -> float:
        used, total, _ = self._usage
        return percent(used, total, of_nothing=100.0)

    @override
    def by_queue(self) -> tuple[Array, Array]:
        messages = self._store.messages[: int(self._store.scalars[0]["message_high"])]
        held = readers.messages_in_scm(messages, self._queues.size)
        return np.minimum(super().by_queue()[0], held), held

    @override
    def is_over(self, condition: str, now: int) -> bool:
        """True if nothing is in storage class memory any more, or if what pre-staging lacked is there again."""
        if condition == Condition.THRESHOLD:
            return super().is_over(condition, now)
        if condition == Condition.NOT_ALTERABLE:
            return int(self._store.scm[0]["messages"]) == 0
        return int(scm.lacking(self._store)) != _LACKS[self.resource]

    @override
    def describe(self, condition: str) -> str:
        if condition == Condition.THRESHOLD:
            return super().describe(condition)
        used, total, _ = self._usage
        if condition == Condition.NOT_ALTERABLE:
            return texts.cannot_alter(self._config, used, int(self._store.scm[0]["messages"]))
        return texts.stopped_staging(self.text, used, total, pools_pct(self._store))

    @override
    def facts(self, ranked: tuple[Filler, ...]) -> Facts:
        return texts.scm_facts(self._config, self.resource, ranked)


# --- storage class memory behind a structure --------------------------------------------------------------------------
# A structure knows its own bounds only: SCMMAXSIZE, what the estate leaves of its facility's storage, and of
# over-committed SCM the share that is left when all structures take theirs: what the others use at the moment would
# have to arrive from the facility's twin at a place among its events that depends on batches. Its own puts may show
# that they leave it more, or less. The alerts about its pace look at the event time since the last tick.

_SECOND_NS = 10**9
MAX_WAIT_PCT = 10.0  # of event time that gets wait for faults, together, above which the alert opens [assumed]
_CALM_RATIO = 0.8  # of either limit, below which the alert may clear [assumed]


def scm_params(estate: Estate, config: Structure) -> dict[str, int]:
    """Return the fields of PARAMS that bound a structure's SCM and give its speeds."""
    scm_most, aug_max = bounds(estate, config)
    return {
        "scm_max": min(scm_most, assured_scm(estate, config)),
        "scm_most": scm_most,
        "aug_max": aug_max,
        "aug_ppm": DYNAMIC_AUGMENTED_PPM,
        "stage_ns": _block_ns(config.scm_prestage_rate),
        "fetch_ns": _block_ns(config.scm_prefetch_rate),
        "read_us": config.scm_read_us,
    }


def enrol(tables: Tables, *, has_scm: bool) -> None:
    """Add SCM to a structure or remove it, if that has changed: its messages are put in order, or moved back."""
    store = tables.store
    if store.scm[0]["enrolled"] == has_scm:
        return
    if not has_scm:
        scm.bring_back(store)
        store.scm[:] = np.zeros(1, layout.SCM_USE)
        return
    tables.reserve("order", store.messages.size)
    by_age = np.argsort(store.messages["age"][: int(store.scalars[0]["message_high"])], kind="stable")
    scm.enrol(tables.store, by_age)


def scm_state(store: layout.Store) -> ScmState | None:
    """Return the state of a structure's SCM; None where the structure has none."""
    use = store.scm[0]
    if not use["enrolled"]:
        return None
    usage = read_usage(store)
    return ScmState(
        max=int(usage[meter_rows.SCM]["total"]),
        used=int(usage[meter_rows.SCM]["used"]),
        ents=int(scm.messages_in_use(store)),
        elems=int(scm.elements_in_use(store)),
        messages=int(scm.messages_in_use(store)),
        aug_fixed=FIXED_AUGMENTED,
        aug_dynamic=int(usage[meter_rows.AUGMENTED]["used"]),
        prestaged=int(use["prestaged"]),
        prefetched=int(use["prefetched"]),
        faults=int(use["faults"]),
        fault_wait_s=int(use["fault_wait_us"]) / 1e6,
    )


def _block_ns(rate: int) -> int:
    """Return the nanoseconds that a block of 4 KB takes at `rate` bytes/s, rounded up."""
    return -(-scm.BLOCK_BYTES * _SECOND_NS // rate)


# --- pace ------------------------------------------------------------------------------------------------------------


class Counters(NamedTuple):
    """Messages that a structure holds, and microseconds that gets have waited for faults so far."""

    messages: int = 0
    fault_wait_us: int = 0


class Pace(NamedTuple):
    """Rates since the previous tick."""

    growth: float  # messages/s put and not removed
    mover: float  # messages/s that it can write
    wait_pct: float  # percent of event time


def count_waits(store: layout.Store) -> Counters:
    """Return the counters of a structure."""
    return Counters(int(store.scalars[0]["messages"]), int(store.scm[0]["fault_wait_us"]))


def measure_pace(store: layout.Store, before: Counters, now: Counters, ticks: int) -> Pace:
    """Return the pace of the last ticks, with messages of the mean size of those held."""
    seconds = ticks * clock.TICK / clock.SECOND
    growth = now.messages - before.messages
    waited_us = max(0, now.fault_wait_us - before.fault_wait_us)
    return Pace(growth / seconds, mover_rate(store), 100.0 * waited_us / (seconds * 1e6))


def mover_rate(store: layout.Store) -> float:
    """Return the messages/s of the mean size held that the mover can write; 0 without messages."""
    use = store.scm[0]
    entries, elements_used = read_usage(store)["used"][[meter_rows.ENTRIES, meter_rows.SPACE]].tolist()
    messages = entries + int(use["messages"])
    if messages == 0:
        return 0.0
    elements = -(-(elements_used + int(use["elems"])) // messages)
    return 1e9 / (int(scm.blocks_of(1, elements)) * int(store.params[0]["stage_ns"]))


def check_pace(store: layout.Store, config: Structure, pace: Pace, episodes: Episodes, now: int) -> list[Alert]:
    """Open or clear the alerts about the pace of SCM; return what is published."""
    prestages = bool(exceeds(store, scm.PRESTAGE_ABOVE)) or int(store.scm[0]["messages"]) > 0
    overrun = Finding(
        condition=Condition.SCM_OVERRUN,
        resource=SCM,
        severity=CRITICAL if exceeds(store, scm.PRESTAGE_ABOVE) else INFO,
        usage_pct=_usage_pct(store),
        cause=(
            f"SCM of {config.name}: the structure grows by {pace.growth:,.0f} messages/s, the mover takes"
            f" {pace.mover:,.0f} messages/s of their size. Above 90 % the structure fills although SCM has room."
        ),
    )
    wait = Finding(
        condition=Condition.FAULT_WAIT,
        resource=SCM,
        severity=Condition.FAULT_WAIT.severity,
        usage_pct=_usage_pct(store),
        cause=(
            f"SCM of {config.name}: gets waited for messages in SCM for {pace.wait_pct:.1f} % of the time"
            f" (limit {MAX_WAIT_PCT:.0f} %); an application is blocked while it waits."
        ),
    )
    limit = pace.mover if prestages else float("inf")
    publish = partial(_publish, config, episodes, now)
    return [
        *publish(overrun, holds=pace.growth > limit > 0, is_over=pace.growth < _CALM_RATIO * limit),
        *publish(wait, holds=pace.wait_pct > MAX_WAIT_PCT, is_over=pace.wait_pct < _CALM_RATIO * MAX_WAIT_PCT),
    ]


def _publish(
    config: Structure, episodes: Episodes, now: int, finding: Finding, *, holds: bool, is_over: bool
) -> list[Alert]:
    def with_actions() -> Finding:  # every tick asks, few publish
        facts = texts.structure_facts(config, SCM, ())
        return msgspec.structs.replace(finding, runbook=episodes.runbook.actions(finding.condition, facts))

    episode = episodes.get(finding.condition, finding.resource)
    if episode is None:
        return episodes.open(with_actions(), now) if holds else []
    cleared = f"{finding.cause.partition(':')[0]}: alert cleared."
    if finding.severity != episode.severity and episode.severity == INFO and not is_over:
        return episodes.update(episode, with_actions(), now)
    over = msgspec.structs.replace(finding, severity=episode.severity, cause=cleared)
    return episodes.settle(episode, lambda: over, now, is_over=is_over)


def _usage_pct(store: layout.Store) -> float:
    used, total, *_ = read_usage(store)[meter_rows.SCM].tolist()
    return percent(used, total, of_nothing=100.0)
