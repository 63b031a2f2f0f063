"""The same events on four stores, on a hundred, on a thousand; on one partition; beside ten thousand idle queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.tools.bench import site
from tests.tools.bench.rig import Rig, Say, Span, span
from tests.tools.bench.traffic import Traffic
from twin.estate import load_estate
from twin.events import ARROW

EVENTS = 2_900_000  # of a batch, about: what the job's own bound allows of such records
_WARM_UP, _MEASURED = 1, 2
_QUICK_EVENTS, _QUICK_MEASURED = 300_000, 1
FOUR, HUNDRED, THOUSAND, TOGETHER, UNLUCKY, QUEUES = (
    "4 stores",
    "100 stores",
    "1,000 stores",
    "1,000 stores, records of a partition",
    "4 stores, all in one partition of topic and state",
    "4 stores, 10,000 idle queues",
)
# These names share a partition of four of the topic (murmur2) and one of two of the state (murmur3).
_ONE_PARTITION = ("QSG1/APP1", "QSG1/APP4", "QSG1/APP13", "QSG1/APP14")


@dataclass(frozen=True, slots=True)
class Layout:
    """An estate for the same events. idle_queues: without traffic; by_partition: see `streams.kafka.publish`."""

    name: str
    stores: Sequence[str]
    idle_queues: int = 0
    by_partition: bool = False


_THOUSAND = [f"QSG1/S{number:04}" for number in range(1_000)]
LAYOUTS = (
    Layout(FOUR, site.STORES),
    Layout(HUNDRED, _THOUSAND[:100]),
    Layout(THOUSAND, _THOUSAND),
    Layout(TOGETHER, _THOUSAND, by_partition=True),
    Layout(UNLUCKY, _ONE_PARTITION),
    Layout(QUEUES, site.STORES, 10_000),
)


def measure(rig: Rig, say: Say, *, quick: bool) -> dict[str, Span]:
    """Return the figures of the job by the name of each of LAYOUTS, Arrow events."""
    events, measured = (_QUICK_EVENTS, _QUICK_MEASURED) if quick else (EVENTS, _MEASURED)
    return {layout.name: _measure(rig, say, layout, events, measured) for layout in LAYOUTS}


def _measure(rig: Rig, say: Say, layout: Layout, events: int, measured: int) -> Span:
    say(f"{layout.name}: Arrow events")
    folder = rig.folder / f"many-{LAYOUTS.index(layout)}"
    folder.mkdir()
    estate = load_estate(site.bench_estate(folder, layout.stores, idle_queues=layout.idle_queues))
    traffic = Traffic(tuple(layout.stores))
    batches = _WARM_UP + measured
    pieces = traffic.pieces(batches * events, events)
    published = rig.publish(folder.name, pieces, ARROW, estate=estate, by_partition=layout.by_partition)
    records = max(1, round(published.records / batches))
    return span(rig.run_job(rig.settings(folder.name, estate=estate, max_records=records)), _WARM_UP, batches)
