"""A run as a picture: descriptors, memory, batch time and checkpoint over time, with the kills."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from tests.tools.soak.samples import PARTS, Samples
from twin.playback.pictures import INK, SHADES, STYLE, save

_COLOURS = dict(zip(("spark", "workers", "broker", "driver"), SHADES, strict=True))
_LABELS = {"driver": "driver", "spark": "Spark's JVM", "workers": "Python workers", "broker": "broker"}
_MB = 1 << 20


def draw(run: Samples, path: Path, title: str, fault: str = "kill -9 of all processes") -> None:
    """Write the picture as SVG. fault: what each of the run's kills is."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 8.0), layout="constrained")
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
                label = fault if i == 0 and axes is fds else None
                axes.axvline(kill / 60, color=INK, linewidth=0.8, linestyle=":", label=label)
            axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        for axes in (fds, memory, disk):
            axes.set_ylim(bottom=0)
        figure.suptitle(title, fontsize=9, x=0.01, ha="left")
        path.parent.mkdir(parents=True, exist_ok=True)
        save(figure, path)
