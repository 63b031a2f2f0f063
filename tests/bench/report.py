"""All figures of a run, and the machine they are of."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass, field

from tests.bench.backlog import Backlog
from tests.bench.calibration import Calibration
from tests.bench.console import Console
from tests.bench.forecasts import Forecasts
from tests.bench.growth import Growth
from tests.bench.kernel import Kernel
from tests.bench.latency import Latency
from tests.bench.machine import describe_machine, describe_versions
from tests.bench.peers import Peers
from tests.bench.restart import Restart
from tests.bench.rig import Span
from tests.bench.sparse import Sparse
from tests.bench.throughput import Way
from tests.bench.timeline import Timeline


@dataclass(slots=True)
class Report:
    """A run. What was not asked for is None. load: processes that wanted a core before it began."""

    command: str
    quick: bool
    date: str = field(default_factory=lambda: dt.datetime.now(dt.UTC).date().isoformat())
    machine: str = field(default_factory=describe_machine)
    versions: str = field(default_factory=describe_versions)
    load: float = field(default_factory=lambda: os.getloadavg()[0])
    seconds: float = 0.0
    calibrations: list[Calibration] = field(default_factory=list)
    kernel: Kernel | None = None
    mechanisms: dict[str, dict[int, float]] | None = None
    plain_loop: dict[int, float] | None = None
    sparse: Sparse | None = None
    console: Console | None = None
    throughput: list[Way] | None = None
    forecasts: Forecasts | None = None
    backlog: Backlog | None = None
    latency: list[Latency] | None = None
    many: dict[str, Span] | None = None
    restart: Restart | None = None
    growth: Growth | None = None
    peers: Peers | None = None

    def way(self, name: str) -> Way | None:
        """The figures of a content type."""
        return next((way for way in self.throughput or () if way.name == name), None)

    @property
    def timelines(self) -> list[Timeline]:
        """Of a batch of each content type and each latency."""
        parts = [*(self.throughput or ()), *(self.latency or ())]
        return [part.timeline for part in parts if part.timeline is not None]
