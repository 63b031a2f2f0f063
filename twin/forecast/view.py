"""The part of a store twin that its forecast reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from twin.alerts.episodes import Episodes
    from twin.alerts.findings import Viewer
    from twin.alerts.readers import Readers
    from twin.conditions import Resource
    from twin.estate import MessageStoreConfig
    from twin.forecast.fill_model import FillModel
    from twin.state.tables import Tables


class LastDrift(Protocol):
    """How far a store's model was from its last measurement."""

    @property
    def pct(self) -> float | None:
        """Model minus measurement, in percent of the resource; None: nothing was measured."""

    @property
    def resource(self) -> str | None:
        """The resource that differed most; None: nothing was measured."""


class ForecastView(Protocol):
    """A store as its forecast sees it."""

    @property
    def name(self) -> str:
        """The store's name."""

    @property
    def config(self) -> MessageStoreConfig:
        """The estate entry, with the attributes that ALTER left."""

    @property
    def tables(self) -> Tables:
        """The arrays."""

    @property
    def queues(self) -> list[str]:
        """Names of the queues by row."""

    @property
    def readers(self) -> Readers:
        """Facts about who reads the queues."""

    @property
    def episodes(self) -> Episodes:
        """The open alerts."""

    @property
    def drift(self) -> LastDrift:
        """The drift of the last measurement."""

    def beyond_pct(self, resource: Resource) -> float:
        """Return the points by which a resource was measured to be fuller than in the twin; 0: it was not."""

    def nearly_full(self) -> Resource | None:
        """Return a resource that was measured to be nearly full and rising, and still is; None: there is none."""

    def fill_model(self, tick: int) -> FillModel:
        """Return the fill model as of a tick."""

    def viewer(self) -> Viewer:
        """Return findings about the store as it is."""
