"""All figures of a run, and the machine they are of."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass, field

from tests.tools.bench.backlog import Backlog
from tests.tools.bench.calibration import Calibration
from tests.tools.bench.console import Console
from tests.tools.bench.forecasts import Forecasts
from tests.tools.bench.growth import Growth
from tests.tools.bench.kernel import Kernel
from tests.tools.bench.latency import Latency
from tests.tools.bench.machine import describe_machine, describe_versions
from tests.tools.bench.restart import Restart
from tests.tools.bench.rig import Span
from tests.tools.bench.rules import Rules
from tests.tools.bench.sparse import Sparse
from tests.tools.bench.throughput import Way
from tests.tools.bench.timeline import Timeline


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
    rules: Rules | None = None
    sparse: Sparse | None = None
    console: Console | None = None
    throughput: list[Way] | None = None
    forecasts: Forecasts | None = None
    backlog: Backlog | None = None
    latency: list[Latency] | None = None
    many: dict[str, Span] | None = None
    restart: Restart | None = None
    growth: Growth | None = None

    def way(self, name: str) -> Way | None:
        """The figures of a content type."""
        return next((way for way in self.throughput or () if way.name == name), None)

    @property
    def timelines(self) -> list[Timeline]:
        """Of a batch of each content type and each latency."""
        parts = [*(self.throughput or ()), *(self.latency or ())]
        return [part.timeline for part in parts if part.timeline is not None]
