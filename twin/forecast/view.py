"""The part of a store twin that its forecast reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from twin.alerts.episodes import Episodes
    from twin.alerts.findings import Viewer
    from twin.forecast.fill_model import FillModel
    from twin.state.tables import Tables


class ForecastView(Protocol):
    """A store as its forecast sees it. config: its estate entry, with the attributes that ALTER left."""

    @property
    def name(self) -> str:
        """The store's name."""

    @property
    def config(self) -> Any:
        """The estate entry; read are the attributes that begin with forecast_."""

    @property
    def tables(self) -> Tables:
        """The arrays."""

    @property
    def queues(self) -> list[str]:
        """Names of the queues by row."""

    @property
    def episodes(self) -> Episodes:
        """The open alerts."""

    @property
    def drift(self) -> Any:
        """`pct` and `resource` of the last measurement, None without one."""

    def fill_model(self, tick: int) -> FillModel:
        """Return the fill model as of a tick."""

    def viewer(self) -> Viewer:
        """Return findings about the store as it is."""
