"""Figures of a run in its first and its last quarter, and if they are flat."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.tools.soak.samples import Sample, Samples

WARM_UP_SECONDS = 300.0  # of each life of the job: compilers, caches and the first batches
PART = 0.25  # of the time after warming up, at each end, that is compared
MAX_GROWTH = 1.15  # from the first part to the last
_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Figure:
    """A quantity in the first and the last part of a run. is_flat: it did not grow by more than MAX_GROWTH + slack."""

    name: str
    unit: str
    first: float
    last: float
    highest: float
    is_flat: bool


def figures(run: Samples, warm_up_s: float = WARM_UP_SECONDS) -> list[Figure]:
    """Return every quantity that has to be flat.

    Args:
        run: the run.
        warm_up_s: seconds of each life of the job, after a kill too, that are left out.
    """
    samples = [sample for sample in run.samples if _is_warm(sample.seconds, run.kills, warm_up_s)]
    batches = [batch for batch in run.batches if _is_warm(batch["seconds"], run.kills, warm_up_s)]
    figures = [
        _figure("descriptors of Spark's JVM", "", samples, lambda s: s.jvm_fds, 20),
        _figure("descriptors of a Python worker, at most", "", samples, lambda s: s.worker_fds, 10),
        _figure("memory maps of Spark's JVM", "", samples, lambda s: s.jvm_maps, 100),
        _figure("memory maps of a Python worker, at most", "", samples, lambda s: s.worker_maps, 100),
        _figure("processes", "", samples, lambda s: s.processes, 2),
    ]
    labels = {"driver": "the driver", "spark": "Spark's JVM", "workers": "all Python workers", "broker": "the broker"}
    figures += [_figure(f"memory of {label}", "MB", samples, _rss_of(part), 100) for part, label in labels.items()]
    figures += [
        _figure("checkpoint", "MB", samples, lambda s: s.checkpoint_bytes / _MB, 50),
        _figure("files in the checkpoint", "", samples, lambda s: s.checkpoint_files, 100),
        _figure("scratch files", "MB", samples, lambda s: s.local_bytes / _MB, 50),
        _figure("time of a batch, median", "ms", batches, lambda b: b["batch_ms"], 50),
    ]
    return figures


def _is_warm(seconds: float, kills: list[float], warm_up_s: float) -> bool:
    return all(not start <= seconds < start + warm_up_s for start in (0.0, *kills))


def _rss_of(part: str) -> Callable[[Sample], float]:
    return lambda sample: sample.rss[part] / _MB


def _figure(name: str, unit: str, rows: list[Any], value: Callable[[Any], float], slack: float) -> Figure:
    """slack: what it may differ by besides, in its own unit."""
    values = [float(value(row)) for row in rows]
    if not values:  # the run was over before it was warm: nothing is shown
        return Figure(name, unit, 0.0, 0.0, 0.0, is_flat=False)
    part = max(1, int(len(values) * PART))
    first, last = statistics.median(values[:part]), statistics.median(values[-part:])
    return Figure(name, unit, first, last, max(values), last <= first * MAX_GROWTH + slack)


def percentile(values: list[float], share: float) -> float:
    """Return the value below which `share` of the values lie; 0 where there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
