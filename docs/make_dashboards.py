"""Pictures of the Grafana dashboards: dashboard-overview.png and dashboard-structure.png in docs/images.

The demo is simulated and played through the twin up to 15 minutes before its first 2192; what the exporter would have
served each minute goes into a real Prometheus, which answers the queries of the panels (`tests.tools.panels`).
`python -m docs.make_dashboards` writes them; it needs the package prometheus of the distribution.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.samples import Timestamp

from deploy.metrics.collector import TwinCollector, samples_of
from streams.kafka.topic_reader import Latest
from tests.support.console_feed import TOPICS, Moment, story
from tests.support.processes import free_port
from tests.support.surfaces import fetch, running, wait_until
from tests.tools.panels import Prometheus, answered, boards, draw
from twin.simulation import SideBySide, side_by_side_estate

IMAGES = Path(__file__).parent / "images"
_UNTIL = "2026-11-20T02:46:20Z"  # 15 minutes before the first 2192
_STORE = "QSG1/APP2"  # of the picture of a structure
_ROWS = {"overview": 23, "structure": 26}  # of the grid, as a screen has
_SPAN_S = 3 * 3600.0
_STEP_S = 60.0


class Served(Collector):
    """The metrics of the exporter in the course of a story, a minute apart, each sample with its time."""

    def __init__(self, moments: Iterable[Moment]) -> None:
        self._families: dict[str, Metric] = {}
        latest = Latest(TOPICS, derive=samples_of)
        collector = TwinCollector(latest, threading.Lock(), lambda: None, lambda: True)
        now_s = next_s = 0.0
        for moment in moments:
            now_s = max(now_s, datetime.fromisoformat(moment.time).timestamp())
            if now_s >= next_s:
                self._collect(collector, now_s)
                next_s = now_s + _STEP_S
            latest.apply(moment.record)
        self._collect(collector, now_s)

    def _collect(self, collector: TwinCollector, now_s: float) -> None:
        for family in collector.collect():
            samples = [sample._replace(timestamp=Timestamp(int(now_s), 0)) for sample in family.samples]
            family.samples = []
            self._families.setdefault(family.name, family).samples += samples

    def collect(self) -> Iterable[Metric]:
        """Return every metric with the samples of all times."""
        return list(self._families.values())


@contextmanager
def served(folder: Path, moments: Iterable[Moment]) -> Iterator[str]:
    """Run a Prometheus with what the exporter would have served, and yield its address."""
    registry = CollectorRegistry()
    registry.register(Served(moments))
    (folder / "metrics").write_bytes(generate_latest(registry))
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", folder / "metrics", folder / "data"]
    subprocess.run(command, check=True, capture_output=True)
    (folder / "prometheus.yml").write_text("{}", encoding="utf-8")
    url = f"http://127.0.0.1:{free_port()}"
    command = ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    command += [
        f"--web.listen-address={url.removeprefix('http://')}",
        "--storage.tsdb.retention.time=100y",
        "--query.lookback-delta=150s",
    ]
    with running(command, folder / "log"):
        wait_until(lambda: fetch(f"{url}/api/v1/status/buildinfo"))
        yield url


def main() -> int:
    """Write the pictures."""
    if shutil.which("promtool") is None:
        print("no promtool; expected: the package prometheus", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        moments = story(Path(folder), SideBySide(), side_by_side_estate())
        with served(Path(folder), [moment for moment in moments if moment.time <= _UNTIL]) as url:
            end_s = datetime.fromisoformat(_UNTIL).timestamp()
            source = Prometheus(url, end_s - _SPAN_S, end_s)
            for name, rows in _ROWS.items():
                board = boards()[f"mqtwin-{name}"]
                page = draw(board, answered(board, source, {"store": _STORE}), source, rows)
                page.savefig(IMAGES / f"dashboard-{name}.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
