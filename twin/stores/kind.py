"""A store that holds messages, as its kind, its measurements and its alerts see it: its state and what it shows.

`twin.stores.message_store.MessageStore` applies events to it, `twin.stores.measurement` measurements.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET

from kernels import clock, layout, messages, meter_rows, pools
from twin.alerts.episodes import Alert, Episodes
from twin.alerts.findings import CRITICAL_FROM_PCT, HYSTERESIS_PCT, Owned, ResourceView, Viewer
from twin.alerts.readers import Readers
from twin.base.conditions import ENTRIES, Pool, Resource
from twin.base.units import as_text
from twin.estate import Estate, MessageStoreConfig, StoreConfig
from twin.events import Measured
from twin.forecast.fill_model import FillModel, single_resource_model
from twin.forecast.monitor import ForecastMonitor
from twin.forecast.weeks import LEAST_BYTES
from twin.records import Baseline, MessageStoreState, StateRecord, Step
from twin.records.usage import usage_pct
from twin.state.tables import Names, Tables
from twin.stores.drift import Compared, Drift, SizeMeasured
from twin.stores.estimate import Estimate, Holding
from twin.stores.reports import Values
from twin.stores.resources import COUNTERS, SCALARS, KnownBy, QueueDepth, Spec, deepest, known_part, read_usage


def copied_params(config: StoreConfig) -> dict[str, Any]:
    """Return the fields of PARAMS that are attributes of a store with the same name and a number as value."""
    names = _params_of(type(config))  # type: ignore[arg-type]  # mypy: the class of a dataclass cannot be hashed
    values = {name: getattr(config, name) for name in names}
    return {name: value for name, value in values.items() if isinstance(value, int)}


@lru_cache
def _params_of(config_type: type) -> tuple[str, ...]:
    """Return the fields of PARAMS that are attributes of a kind of store."""
    return tuple(name for name in layout.PARAMS.names or () if hasattr(config_type, name))


class StoreKind(ABC):
    """State of a store, what others read of it, and hooks of its kind; those that are not abstract suit most kinds."""

    kind: ClassVar[str]  # kind of store, as in the estate
    identity: ClassVar[frozenset[str]]  # attributes in the estate that identify the store: no event changes them
    resources: ClassVar[Mapping[Pool, Spec]]  # as kernels know them, without those of data sets
    conditions: ClassVar[Mapping[int, tuple[str, Resource]]]  # by bit of scalars.fired, in the order of alerts
    measurable: ClassVar[tuple[str, ...]]  # fields that a baseline takes over, without those of data sets
    known_by: ClassVar[KnownBy]  # measured fields that determine each field of a usage when nothing was counted
    takes_in_queues: ClassVar[bool] = True  # True if queues that the estate lacks may be in it
    name: str
    estate: Estate
    config: MessageStoreConfig  # estate entry with the current attributes, after ALTER and REBUILD
    tables: Tables  # the arrays
    episodes: Episodes  # open alerts
    drift: Drift  # baseline, and the drift of the last measurement
    tested: Compared  # (model, measured, total) by resource, as the last MEASURE found it; empty: nothing tested
    found_sizes: Sequence[SizeMeasured]  # the sizes that the last MEASURE had, beside those of the model just before it
    estimate: Estimate  # what measurements show beyond events
    monitor: ForecastMonitor  # the forecasts, and the alerts about them
    began: int | None  # time of the first event, microseconds; None: no event yet, or the clock has gone back since
    counted: set[str]  # queues of which a PUT had a `count` above 1: their messages have a mean length
    readers: Readers  # facts about who reads its queues
    is_counted: bool  # True once a queue operation was applied; before, only what was measured is known
    _names: Names
    _own_queues: frozenset[str]

    # --- what others read --------------------------------------------------------------------------------------------

    @property
    def qmgrs(self) -> list[str]:
        """Names of queue managers by row, including those no longer in the estate."""
        return self._names.qmgrs

    @property
    def queues(self) -> list[str]:
        """Names of queues by row, including those no longer in the estate."""
        return self._names.queues

    @property
    def clock(self) -> int:
        """Latest event time, microseconds since 1970; `kernels.layout.NEVER` before the first event."""
        return int(self.tables.store.scalars[0]["clock"])

    @property
    def duplicates(self) -> int:
        """Number of events that were duplicates."""
        return int(self.tables.store.scalars[0]["duplicates"])

    @property
    def is_believed(self) -> bool:
        """True once a measurement was taken over."""
        return "resynced_at" in (self.drift.baseline or {})

    @property
    def has_levels_only(self) -> bool:
        """True if measurements were taken over and no put was ever reported."""
        return self.is_believed and int(self.tables.store.scalars[0]["ages"]) == 0

    def value_of(self, attribute: str) -> object:
        """Return the present value of an attribute; None where the kind has none of that name."""
        return getattr(self.config, attribute, None)

    def viewer(self) -> Viewer:
        """Return what makes findings about the store as it is."""
        memory, tick = self.monitor.memory, self.clock // clock.TICK
        rise_began = memory.levels.rise_began
        if memory.estimated_at is not None and not rise_began:
            rise_began = int(self.tables.store.tides[meter_rows.TOTAL_TIDE]["began"])
        by_levels = memory.estimated_at is not None or self.monitor.is_by_levels(self, tick)
        return Viewer(
            self.tables.store,
            self.queues,
            self.view,
            self.began,
            self.readers,
            rise_began * clock.TICK,
            self.estate.site.clock,
            Owned(self._own_queues, self._entries_held),
            self.episodes.runbook,
            by_levels=by_levels,
        )

    def _entries_held(self) -> int | None:
        """Return the entries that the store holds, each a message; None of a store without entries."""
        row = next((row for resource, row in self.usage_rows().items() if resource == ENTRIES), None)
        return None if row is None else int(read_usage(self.tables.store)["used"][row])

    def view(self, resource: Resource) -> ResourceView:
        """Return the view of a resource of the store, or of the depth of one of its queues."""
        if resource.pool != Pool.QUEUE:
            view = self.own_view(resource)
            if self.drift.shares:
                view.is_measured = self.drift.share_of(resource, self.clock) is not None
                view.beyond_pct = self.beyond_pct(resource)
            return view
        rows = self.tables.store.queues[: len(self.queues)]
        row, usage = self.queues.index(resource.owner), self.usage_of_maximum()
        return QueueDepth(self.tables.store, rows, row, resource, self.name, usage)

    def fill_model(self, tick: int) -> FillModel:
        """Return the fill model as of a tick: here of a store in which one resource fills."""
        (resource,) = self.usage_rows()
        return single_resource_model(resource, self.tables.store, tick)

    def usage_of_maximum(self) -> dict[Resource, float]:
        """Return the usage by resource, in percent of the largest size that the resource may have."""
        usage = read_usage(self.tables.store)
        used, maxima = usage["used"].tolist(), usage["maximum"].tolist()
        return {resource: usage_pct(used[row], maxima[row]) for resource, row in self.usage_rows().items()}

    def sizes(self) -> dict[int, int]:
        """Return how much each resource that fills holds at most, by row of USAGE; 0: it is not known."""
        maxima = read_usage(self.tables.store)["maximum"].tolist()
        return {row: maxima[row] for row in self.usage_rows().values()}

    def note_sizes(self, before: Mapping[int, int]) -> None:
        """Count the hours known in shares of the present sizes. before: those of the hours, as of `sizes`.

        It is the size of what was fullest in its last rise: the store may be empty now.
        """
        after = self.sizes()
        if after == before:
            return
        tides = self.tables.store.tides
        fullest = max(before, key=lambda row: max(float(tides[row]["share"]), float(tides[row]["top"])))
        self.monitor.resize(self.tables.store.params[0], before[fullest], after[fullest])

    def beyond_pct(self, resource: Resource) -> float:
        """Return the points by which a resource was measured to be fuller than in the twin; 0: it was not."""
        share = self.drift.share_of(resource, self.clock)
        return 0.0 if share is None else share.beyond_pct

    def nearly_full(self) -> Resource | None:
        """Return the fullest resource that was measured at `CRITICAL_FROM_PCT` and rising, and still is; or None."""
        now, pressed = self.clock, dict[Resource, float]()
        for name, share in self.drift.shares.items():
            resource = Resource.parse(name)
            if share.is_rising and share.pct >= CRITICAL_FROM_PCT and self.drift.share_of(resource, now) is not None:
                pct = self.view(resource).usage_pct
                pressed |= {resource: pct} if pct >= CRITICAL_FROM_PCT - HYSTERESIS_PCT else {}
        return max(pressed, key=pressed.__getitem__, default=None)

    def state(self) -> MessageStoreState:
        """Return the state record (docs/state.md)."""
        record = self.whole_record()
        return record if self.is_counted else known_part(record, self.known_by, self.drift.measured)

    def whole_record(self) -> MessageStoreState:
        """Return the state record with what the arrays have and nobody has counted, such as elements by SIZEUSED."""
        arrays, baseline, queues = self.tables.store, self.drift.baseline, self.queues
        clock_us, held, base, expiring, *counts = SCALARS(arrays.scalars[0].item())
        left = int(pools.base_left(arrays, base)) if base else 0
        # The messages of a baseline that were not measured are an estimate: one for each of its pages or blocks.
        is_estimate = baseline is not None and baseline["messages"] is None
        counters: dict[str, Any] = dict(zip(COUNTERS, counts, strict=True))
        common = StateRecord(
            **counters,
            store=self.name,
            kind=self.kind,
            site=self.estate.site.name or UNSET,
            time=None if clock_us == layout.NEVER else as_text(clock_us),
            messages=held + (0 if is_estimate else left),
            messages_estimated=left if is_estimate else 0,
            expired_held=int(messages.count_expired(arrays)) if expiring else 0,
            queues=deepest(arrays.queues[: len(queues)], queues, self.readers, clock_us, self.began),
            baseline=baseline,
            measured=tuple(self.drift.measured),
            drift_pct=self.drift.pct,
            fidelity=self.drift.fidelity,
            coverage=self.estimate.coverage(),
            sizes_measured=self.drift.sizes_by_resource(),
            levels=self.monitor.levels(self),
            forecast=self.monitor.record(self),
            forecast_scores=self.monitor.scores(self),
            plans=(self.monitor.plans.record(clock_us) or UNSET) if self.monitor.plans.are_due else UNSET,
            long_forecast=(self.monitor.long_record(self) or UNSET)
            if len(self.monitor.memory.weeks.lows) >= LEAST_BYTES
            else UNSET,
            words=(self.monitor.words(self) or UNSET) if self.monitor.memory.outcomes.calls else UNSET,
        )
        return self._record(common)

    # --- hooks -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def _begin(self) -> None:
        """Initialise the arrays of a new store."""

    def _kind_state(self) -> msgspec.Struct:
        """Return the state of the kind that is in neither records nor attributes; of most kinds there is none."""
        return msgspec.Struct()

    @abstractmethod
    def _take_over(self, header_described: dict[str, Any], attributes: dict[str, Any], kind_state: msgspec.Raw) -> None:
        """Restore attributes and state (encoded, of `_kind_state`) from a header, except where the estate has changed
        since.
        """

    @abstractmethod
    def set_params(self) -> None:
        """Write the current attributes to PARAMS, which kernels read."""

    @abstractmethod
    def _change(self, op: int, content: dict[str, Any]) -> list[Alert]:
        """Apply an ALTER or REBUILD; return the alerts it opens or clears."""

    @abstractmethod
    def take_in(self, measured: Measured) -> None:
        """Give rows to queues that the estate lacks, where a measurement finds messages in them: their depths count."""

    @abstractmethod
    def forget(self, surplus: int, depths: Mapping[int, int]) -> list[Alert]:
        """Remove the oldest messages, at first those beyond measured depths, unmetered; return the alerts that this
        causes.
        """

    def levels_of(self, measured: Measured) -> Measured:
        """Return what a measurement says about levels; the kind keeps what else it says."""
        return measured

    @abstractmethod
    def take_sizes(self, measured: Measured) -> None:
        """Take over the sizes of a measurement, without nulls, in place of the model's."""

    def with_usage(self, measured: Measured) -> Measured:
        """Return a measurement in which `usage_pct` stands for the amount that it lacks."""
        return measured

    @abstractmethod
    def holding(self, measured: Measured) -> Holding | None:
        """Return what the store holds by a measurement; None: it does not say how many messages."""

    def to_take(self, measured: Measured, holding: Holding | None) -> Measured:  # noqa: ARG002 -- of most kinds
        """Return a measurement that is taken over with what follows from it. holding: what the store holds by it."""
        return measured

    @abstractmethod
    def known_pools(self, measured: Measured) -> list[tuple[float, float]]:
        """Return (by events alone, measured) of the pools that a measurement has."""

    @abstractmethod
    def set_baseline(self, measured: Measured, holding: Holding | None = None) -> Baseline:
        """Set the baseline to what the real system holds beyond the model; return the state record's `baseline`, with
        null for what was not measured. `holding`: by a measurement that is taken over, None: it does not say, or tests.
        """

    @abstractmethod
    def compare(self, measured: Measured) -> dict[Resource, tuple[int, int, int]]:
        """Return (model, measured, total) by resource measured."""

    @abstractmethod
    def compare_sizes(self, measured: Measured) -> list[SizeMeasured]:
        """Return the sizes measured, such as the blocks of a data set, beside those of the model."""

    @abstractmethod
    def in_use(self, measured: Measured) -> dict[Resource, tuple[float, float]]:
        """Return (measured, total) by resource of which a measurement says how much is in use, the total above 0."""

    @property
    def block_bytes(self) -> int:
        """Bytes of a block of a data set."""
        return 1

    @property
    def data_sets(self) -> Sequence[str]:
        """Queue managers with a data set of the store."""
        return self.qmgrs[: self.tables.store.datasets.size]

    @property
    def _awaits_mix(self) -> bool:
        """True while the messages held are to say what a baseline takes: each tick asks the kind."""
        return False

    @abstractmethod
    def displays(self) -> tuple[Step, ...]:
        """Return the steps that show what the estate can be compared with, for the drift alert."""

    @abstractmethod
    def own_view(self, resource: Resource) -> ResourceView:
        """Return the view of a resource of the store itself."""

    @staticmethod
    @abstractmethod
    def example(qmgr: str, queue: str) -> tuple[StoreConfig, tuple[Resource, ...]]:
        """Return a small store of the kind and the resources of its alerts, with which its kernels are compiled."""

    def usage_rows(self) -> dict[Resource, int]:
        """Return the rows of USAGE of the resources that fill."""
        return {Resource(pool): spec.row for pool, spec in self.resources.items() if spec.fills}

    @abstractmethod
    def _record(self, common: StateRecord) -> MessageStoreState:
        """Return the state record of the kind. common: its fields that every kind has."""

    def _report_values(self, target: str) -> Values | None:  # noqa: ARG002 -- most kinds report to none
        """Return the values of a report to a shared store; None where the kind reports to none."""
        return None

    def _on_tick(self, before: int, tick: int) -> list[Alert]:  # noqa: ARG002 -- most kinds have nothing to do
        """Apply the effects of time to the store; return the alerts they open."""
        return []

    def _is_busy(self) -> bool:
        """Return True if the next tick may change more than alerts, even without events."""
        return False

    def _reserve_for_put(self, length: int, max_kept: int) -> None:  # noqa: B027 -- some kinds have no such tables
        """Reserve rows of the kind's own tables for a put of `length` bytes."""

    def _on_new_qmgrs(self) -> None:  # noqa: B027 -- most kinds keep nothing by queue manager
        """Add rows for queue managers not seen before."""

    def is_relieved(self, condition: str, resource: Resource) -> bool:  # noqa: ARG002 -- of most kinds, nothing
        """Return True if a condition that fired ends by itself: no alert opens, and the kind arms it again."""
        return False
