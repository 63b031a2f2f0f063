"""Growth in a long run: figures of its first and its last quarter, whether they are flat, and their picture."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.figure

from tests.tools.fire.samples import PARTS, Sample, Samples
from twin.playback.pictures import INK, SHADES, STYLE, save

PART = 0.25  # of the time after warming up, at each end, that is compared
MAX_GROWTH = 1.15  # from the first part to the last
_MB = 1 << 20
_COLOURS = dict(zip(("spark", "workers", "broker", "driver"), SHADES, strict=True))
_LABELS = {"driver": "driver", "spark": "Spark's JVM", "workers": "Python workers", "broker": "broker"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A quantity in the first and the last part of a run. is_flat: it did not grow by more than MAX_GROWTH + slack."""

    name: str
    unit: str
    first: float
    last: float
    highest: float
    is_flat: bool


def figures(run: Samples, warm_up_s: float) -> list[Figure]:
    """Return every quantity that has to be flat.

    Args:
        run: the run.
        warm_up_s: seconds after the start and after each fault that are left out.
    """
    samples = [sample for sample in run.samples if _is_warm(sample.seconds, run.kills, warm_up_s)]
    batches = [batch for batch in run.batches if _is_warm(batch["seconds"], run.kills, warm_up_s)]
    figures = [
        figure_of("descriptors of Spark's JVM", "", samples, lambda s: s.jvm_fds, 20),
        figure_of("descriptors of a Python worker, at most", "", samples, lambda s: s.worker_fds, 10),
        figure_of("memory maps of Spark's JVM", "", samples, lambda s: s.jvm_maps, 100),
        figure_of("memory maps of a Python worker, at most", "", samples, lambda s: s.worker_maps, 100),
        figure_of("processes", "", samples, lambda s: s.processes, 2),
    ]
    labels = {"driver": "the driver", "spark": "Spark's JVM", "workers": "all Python workers", "broker": "the broker"}
    figures += [figure_of(f"memory of {label}", "MB", samples, _rss_of(part), 100) for part, label in labels.items()]
    figures += [
        figure_of("checkpoint", "MB", samples, lambda s: s.checkpoint_bytes / _MB, 50),
        figure_of("files in the checkpoint", "", samples, lambda s: s.checkpoint_files, 100),
        figure_of("scratch files", "MB", samples, lambda s: s.local_bytes / _MB, 50),
        figure_of("time of a batch, median", "ms", batches, lambda b: b["batch_ms"], 50),
    ]
    return figures


def _is_warm(seconds: float, kills: list[float], warm_up_s: float) -> bool:
    return all(not start <= seconds < start + warm_up_s for start in (0.0, *kills))


def _rss_of(part: str) -> Callable[[Sample], float]:
    return lambda sample: sample.rss[part] / _MB


def figure_of(name: str, unit: str, rows: list[Any], value: Callable[[Any], float], slack: float) -> Figure:
    """Return a quantity of rows in their order. slack: what it may differ by besides, in its own unit."""
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


def table(figures: list[Figure]) -> list[str]:
    """Return the lines of a table of figures."""
    lines = ["| quantity | first quarter | last quarter | highest | flat |", "| --- | ---: | ---: | ---: | --- |"]
    for figure in figures:
        unit = f" {figure.unit}" if figure.unit else ""
        numbers = " | ".join(f"{value:,.0f}{unit}" for value in (figure.first, figure.last, figure.highest))
        lines.append(f"| {figure.name} | {numbers} | {'yes' if figure.is_flat else '**no**'} |")
    return lines


def draw(run: Samples, path: Path, title: str) -> None:
    """Draw descriptors, memory, batch time and checkpoint over time, with the faults, as SVG."""
    with mpl.rc_context(STYLE):
        figure = matplotlib.figure.Figure(figsize=(8.4, 8.0), layout="constrained")
        fds, memory, batches, behind, disk = figure.subplots(5, 1, sharex=True)
        minutes = [sample.seconds / 60 for sample in run.samples]
        fds.plot(minutes, [s.jvm_fds for s in run.samples], color=_COLOURS["spark"], label="Spark's JVM")
        fds.plot(minutes, [s.worker_fds for s in run.samples], color=_COLOURS["workers"], label="largest Python worker")
        fds.set_ylabel("open descriptors")
        for part in PARTS[:-1]:
            values = [s.rss[part] / _MB for s in run.samples]
            memory.plot(minutes, values, color=_COLOURS[part], label=_LABELS[part])
        memory.set_ylabel("memory, MB")
        batch_minutes = [batch["seconds"] / 60 for batch in run.batches]
        batches.plot(batch_minutes, [b["batch_ms"] / 1000 for b in run.batches], ",", color=INK, label="each batch")
        batches.set_yscale("log")
        batches.set_ylabel("batch, seconds")
        waiting = [batch.get("behind", 0) / 1000 for batch in run.batches]
        behind.plot(batch_minutes, waiting, color=INK, label="not yet read, per partition")
        behind.set_ylabel("thousand records")
        disk.plot(minutes, [s.checkpoint_bytes / _MB for s in run.samples], color=INK, label="checkpoint")
        local = [s.local_bytes / _MB for s in run.samples]
        disk.plot(minutes, local, color=INK, linestyle="--", linewidth=1, label="scratch files")
        disk.set_ylabel("disk, MB")
        disk.set_xlabel("minutes")
        for axes in (fds, memory, batches, behind, disk):
            for i, kill in enumerate(run.kills):
                label = "a fault" if i == 0 and axes is fds else None
                axes.axvline(kill / 60, color=INK, linewidth=0.8, linestyle=":", label=label)
            axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        for axes in (fds, memory, disk):
            axes.set_ylim(bottom=0)
        figure.suptitle(title, fontsize=9, x=0.01, ha="left")
        path.parent.mkdir(parents=True, exist_ok=True)
        save(figure, path)
