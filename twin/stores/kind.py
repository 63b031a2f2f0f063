"""Hooks of the kinds of stores that hold messages, for `twin.stores.message_store.MessageStore`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

import msgspec

from kernels import layout
from twin.alerts.episodes import Alert
from twin.alerts.resource_view import ResourceView
from twin.conditions import Pool, Resource
from twin.estate import StoreConfig
from twin.events import Measured
from twin.records import Baseline, MessageStoreState, StateRecord, Step
from twin.stores.alerting import Fired
from twin.stores.drift import SizeMeasured
from twin.stores.reports import Values
from twin.stores.resources import Spec
from twin.stores.state_record import KnownBy


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
    """Hooks of a kind of store; those that are not abstract suit most kinds.

    Attributes:
        kind: kind of store, as in the estate.
        identity: attributes in the estate that identify the store: no event changes them.
        resources: its resources as kernels know them; those of data sets are not among them.
        conditions: condition and resource by bit of scalars.fired, in the order in which alerts are published.
        measurable: fields of the state record that a baseline takes over, without those of data sets.
        takes_in_queues: True if queues that the estate lacks may be in it.
        known_by: for each field of a usage, the measured fields that determine it when nothing was counted.
    """

    kind: ClassVar[str]
    identity: ClassVar[frozenset[str]]
    resources: ClassVar[Mapping[Pool, Spec]]
    conditions: ClassVar[Mapping[int, Fired]]
    measurable: ClassVar[tuple[str, ...]]
    known_by: ClassVar[KnownBy]
    takes_in_queues: ClassVar[bool] = True

    @abstractmethod
    def _begin(self) -> None:
        """Initialise the arrays of a new store."""

    def _kind_state(self) -> msgspec.Struct:
        """Return the state of the kind that is in neither records nor attributes; of most kinds there is none."""
        return msgspec.Struct()

    @abstractmethod
    def _take_over(self, header_described: dict[str, Any], attributes: dict[str, Any], kind_state: msgspec.Raw) -> None:
        """Restore attributes and state from a header, except where the estate has changed since.

        Args:
            kind_state: as `_kind_state` returned it, encoded.
        """

    @abstractmethod
    def _set_params(self) -> None:
        """Write the current attributes to PARAMS, which kernels read."""

    @abstractmethod
    def _change(self, op: int, content: dict[str, Any]) -> list[Alert]:
        """Apply an ALTER, REBUILD or MEASURE; return the alerts it opens or clears."""

    @abstractmethod
    def _set_baseline(self, measured: Measured) -> Baseline:
        """Set the baseline to what the real system holds beyond the model; return the state record's `baseline`.

        It has null for what was not measured.
        """

    @abstractmethod
    def _compare(self, measured: Measured) -> dict[Resource, tuple[int, int, int]]:
        """Return (model, measured, total) by resource measured."""

    @abstractmethod
    def _compare_sizes(self, measured: Measured) -> list[SizeMeasured]:
        """Return the sizes measured, such as the blocks of a data set, beside those of the model."""

    @abstractmethod
    def _take_sizes(self, measured: Measured) -> None:
        """Take over the sizes of a measurement, without nulls, in place of the model's."""

    @abstractmethod
    def _in_use(self, measured: Measured) -> dict[Resource, tuple[float, float]]:
        """Return (measured, total) by resource of which a measurement says how much is in use, the total above 0."""

    def _with_usage(self, measured: Measured) -> Measured:
        """Return a measurement in which `usage_pct` stands for the amount that it lacks."""
        return measured

    @abstractmethod
    def _displays(self) -> tuple[Step, ...]:
        """Return the steps that show what the estate can be compared with, for the drift alert."""

    @abstractmethod
    def _own_view(self, resource: Resource) -> ResourceView:
        """Return the view of a resource of the store itself."""

    @staticmethod
    @abstractmethod
    def example(qmgr: str, queue: str) -> tuple[StoreConfig, tuple[Resource, ...]]:
        """Return a small store of the kind and the resources of its alerts, with which its kernels are compiled."""

    def _usage_rows(self) -> dict[Resource, int]:
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
        """Reserve rows of the kind's own tables for a put.

        Args:
            length: bytes of a message.
        """

    def _on_new_qmgrs(self) -> None:  # noqa: B027 -- most kinds keep nothing by queue manager
        """Add rows for queue managers not seen before."""

    def is_relieved(self, condition: str, resource: Resource) -> bool:  # noqa: ARG002 -- of most kinds, nothing
        """Return True if a condition that fired ends by itself: no alert opens, and the kind arms it again."""
        return False
