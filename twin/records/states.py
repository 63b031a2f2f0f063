"""The state record of each kind of store, as in the state topic: docs/state.md describes the fields.

A record is written with all fields, in the order of its struct. Null is a usage that was neither counted nor measured,
or what a store does not have. Fields with a default are those that records of version 0.1.0 lack.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from twin.units import check_time

ExpandStatus = Literal["NORMAL", "FAILED", "MAXIMUM"]
Baseline = dict[str, object]  # what was measured beyond the model, by field


class DeepQueue(msgspec.Struct, frozen=True, kw_only=True):
    """One of the ten deepest queues."""

    name: str
    depth: int
    bytes: int


class SizePair(msgspec.Struct, frozen=True, kw_only=True):
    """A size that was last measured other than the twin has it."""

    twin: int
    measured: int


class TimeToFull(msgspec.Struct, frozen=True, kw_only=True):
    """Quantiles of the time until full, seconds, given that the resource becomes full."""

    p10: float
    p50: float
    p90: float


class ResourceForecast(msgspec.Struct, frozen=True, kw_only=True):
    """The forecast for one resource; without `time_to_full_s` where it is not full within the horizon."""

    resource: str
    usage_pct: float
    full_probability: float
    time_to_full_s: TimeToFull | None


class StateForecast(msgspec.Struct, frozen=True, kw_only=True):
    """The forecast of a store: the resource that is full first, then others that may be."""

    time: str
    resources: tuple[ResourceForecast, ...]


class MeasuredLevels(msgspec.Struct, frozen=True, kw_only=True):
    """Levels of a store whose puts and gets nothing reports, which its forecast extends.

    Attributes:
        known: their number, of the present rise where there is one; at most `needed`.
        needed: number from which a forecast can be made.
        last: time of the last one.
        is_recent: False once further ones should have come.
    """

    known: int
    needed: int
    last: str
    is_recent: bool

    @property
    def lacking(self) -> str:
        """Why no forecast can be made, in words; "" if one can be: `not known yet, 3 of 5 levels`."""
        if self.known < self.needed:
            return f"not known yet, {self.known} of {self.needed} levels"
        return "" if self.is_recent else f"not known, no level since {self.last[11:16]}"


class ProbabilityBin(msgspec.Struct, frozen=True, kw_only=True):
    """Looks of about the same probability: their number, those that full followed, and the mean probability."""

    looks: int
    full: int
    predicted: float


class HorizonScore(msgspec.Struct, frozen=True, kw_only=True):
    """How good the probability to be full within a horizon was.

    Attributes:
        horizon_s: the horizon, seconds.
        looks: looks that are settled.
        full: those after which the store was full within the horizon.
        brier: mean squared error of the probability.
        climatology: that of a rule that always says the share of looks that full followed.
        bins: by fifths of the probability, those with any looks.
    """

    horizon_s: int
    looks: int
    full: int
    brier: float
    climatology: float
    bins: tuple[ProbabilityBin, ...]

    @property
    def skill(self) -> float | None:
        """Share of the error of climatology that the forecast avoids; None where climatology has none."""
        return 1.0 - self.brier / self.climatology if self.climatology else None


class IntervalScore(msgspec.Struct, frozen=True, kw_only=True):
    """Intervals p10..p90 of fillings, those that contained the time of full, and the factor by which they are wider."""

    count: int
    inside: int
    coverage: float | None
    width: float


class PageScore(msgspec.Struct, frozen=True, kw_only=True):
    """Pages: in time before a put was refused, too late, and without any put refused."""

    right: int
    late: int
    false: int


class ForecastScores(msgspec.Struct, frozen=True, kw_only=True):
    """Outcomes of the forecasts and pages of a store in the last 30 days, or in `days` since the first outcome."""

    days: int
    horizons: tuple[HorizonScore, ...]
    intervals: IntervalScore
    pages: PageScore


class PutDemand(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that applications asked to put per second in the last 15 minutes, refused ones included."""

    puts_per_s: float

    @property
    def units_per_s(self) -> dict[str, float]:
        """Storage that these messages take per second, by unit: elements, pages or blocks."""
        names = (name for name in self.__struct_fields__ if name != "puts_per_s")
        return {name.removesuffix("_per_s"): getattr(self, name) for name in names}


class ElementDemand(PutDemand, frozen=True, kw_only=True):
    """The same, with the elements that these take as the offload rules in force place them."""

    elements_per_s: float


class PageDemand(PutDemand, frozen=True, kw_only=True):
    """The same, with the pages that these take."""

    pages_per_s: float


class BlockDemand(PutDemand, frozen=True, kw_only=True):
    """The same, with the blocks that these take."""

    blocks_per_s: float


class StateRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that the state record of every kind has; a record of a kind that is not known here has only these."""

    store: str
    kind: str
    time: str | None
    messages: int | None
    messages_estimated: int = 0
    bytes: int | None
    uncommitted: int | None
    in_doubt: int | None
    expired_held: int | None
    queues: tuple[DeepQueue, ...]
    events: int
    duplicates: int
    gaps: int
    unmatched_gets: int
    full_puts: int
    queue_full_puts: int
    overfull_puts: int
    refused_alters: int
    baseline: Baseline | None
    measured: tuple[str, ...] = ()
    drift_pct: float | None
    fidelity: float | None = None
    sizes_measured: dict[str, dict[str, SizePair]] = {}
    limits_unknown: tuple[str, ...] = ()
    levels: MeasuredLevels | None = None
    forecast: StateForecast | None
    forecast_scores: ForecastScores | None = None

    @property
    def lacks_levels(self) -> str:
        """Why no forecast can be made, in words; "" if one can be."""
        return "" if self.levels is None else self.levels.lacking

    @property
    def first(self) -> ResourceForecast | None:
        """The forecast for the resource that is full first; None without a forecast."""
        return self.forecast.resources[0] if self.forecast is not None and self.forecast.resources else None


class DataSetState(msgspec.Struct, frozen=True, kw_only=True):
    """A shared message data set, named as in DISPLAY USAGE TYPE(SMDS) and SMF 115 QESD."""

    blocks_total: int
    blocks_max: int
    blocks_used: int | None
    pages_used: int | None
    messages: int | None
    status: ExpandStatus


class ScmState(msgspec.Struct, frozen=True, kw_only=True):
    """The storage class memory of a structure, named as in RMF and SMF 74.4."""

    max: int
    used: int | None
    ents: int | None
    elems: int | None
    messages: int | None
    aug_fixed: int
    aug_dynamic: int | None
    prestaged: int
    prefetched: int
    faults: int
    fault_wait_s: float


class StructureState(StateRecord, frozen=True, kw_only=True):
    """The state record of a structure."""

    kind: Literal["structure"] = "structure"
    size: int
    ents_max: int | None
    ents_used: int | None
    elems_max: int | None
    elems_used: int | None
    elems_low: int | None
    elems_high: int | None
    usage_pct: float | None
    alterable: bool
    policy_pending: dict[str, int | str | None] | None
    auto_alters: int | None
    offloaded_messages: int | None
    offloaded_bytes: int | None
    offload_rule: int
    demand: ElementDemand | None = None
    smds: dict[str, DataSetState]
    scm: ScmState | None


class PageSetState(StateRecord, frozen=True, kw_only=True):
    """The state record of a page set."""

    kind: Literal["page_set"] = "page_set"
    pages_total: int
    pages_used: int | None
    pages_persistent: int | None
    pages_nonpersistent: int | None
    pages_unused: int | None
    pages_max: int
    usage_pct: float | None
    expansions: int
    status: ExpandStatus
    demand: PageDemand | None = None
    buffer_pool: int
    buffer_pool_pct: float | None
    buffer_pool_writes: Literal["none", "asynchronous", "synchronous"] | None


class QueueFileState(StateRecord, frozen=True, kw_only=True):
    """The state record of a queue file."""

    kind: Literal["queue_file"] = "queue_file"
    blocks: int | None
    blocks_free: int | None
    blocks_allocated: int | None
    blocks_nonpersistent: int | None
    blocks_persistent: int | None
    file_bytes: int | None
    file_max_bytes: int
    usage_pct: float | None
    demand: BlockDemand | None = None
    log_records: int
    checkpoints: int
    truncations: int


class ScmShare(msgspec.Struct, frozen=True, kw_only=True):
    """SCM that a structure uses of its coupling facility, and what it may still take."""

    scm_used: int | None
    scm_left: int | None


class StorageShare(msgspec.Struct, frozen=True, kw_only=True):
    """Storage that a structure has of its coupling facility, what its SIZE promises, and what it may still have."""

    size: int
    size_max: int
    growth_left: int | None


class CouplingFacilityState(StateRecord, frozen=True, kw_only=True):
    """The state record of a coupling facility."""

    kind: Literal["coupling_facility"] = "coupling_facility"
    scm_total: int
    scm_committed: int
    scm_used: int | None
    storage_total: int | None = None
    storage_promised: int | None = None
    storage_free: int | None
    storage_measured: int | None = None
    augmented: int
    structures: dict[str, ScmShare]
    storage: dict[str, StorageShare] = {}
    late_reports: int


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """A host of a uniform cluster: its active members, what they can deliver, and its estimated CPU."""

    members: int
    capacity: float
    cpu_pct: float


class UniformClusterState(StateRecord, frozen=True, kw_only=True):
    """The state record of a uniform cluster."""

    kind: Literal["uniform_cluster"] = "uniform_cluster"
    members: int | None
    rate: float | None
    load: float | None = None
    capacity: float | None
    usage_pct: float | None = None
    members_needed: int | None
    hosts: dict[str, HostState]
    depth: int | None
    late_reports: int


class FileSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the file of a queue."""

    name: str
    bytes: int


class QueueManagerState(StateRecord, frozen=True, kw_only=True):
    """The state record of a distributed queue manager: its log and checkpoints."""

    kind: Literal["queue_manager"] = "queue_manager"
    log_records: int
    checkpoints: int
    records_to_replay: int | None
    truncations: int
    file_bytes: int | None
    files: tuple[FileSize, ...]
    late_reports: int


MessageStoreState = StructureState | PageSetState | QueueFileState
STATES: dict[str, type[StateRecord]] = {
    "structure": StructureState,
    "page_set": PageSetState,
    "queue_file": QueueFileState,
    "coupling_facility": CouplingFacilityState,
    "uniform_cluster": UniformClusterState,
    "queue_manager": QueueManagerState,
}


class _Kind(msgspec.Struct, frozen=True):
    """The field that says which fields a record has."""

    kind: str


_HUGE = re.compile(rb"[:,\[]\s*-?[0-9]{20,}")  # beyond 64 bits: it could be read, and neither computed with nor written
_kind_decoder = msgspec.json.Decoder(_Kind)
_decoders = {kind: msgspec.json.Decoder(state) for kind, state in STATES.items()}
_other_decoder = msgspec.json.Decoder(StateRecord)


def read_state_record(value: bytes) -> StateRecord:
    """Return the state record of the kind that it names, those of version 0.1.0 too; fields unknown here are ignored.

    Raises:
        Exception: it is none, or has a time that is none; of a foreign record it may be any.
    """
    if _HUGE.search(value):
        raise ValueError("a number has more digits than any that is counted")
    state = _decoders.get(_kind_decoder.decode(value).kind, _other_decoder).decode(value)
    for time in (state.time, state.forecast.time if state.forecast is not None else None):
        if time is not None:
            check_time(time)
    return state
