"""The pictures of the page, as SVG."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

import matplotlib as mpl
from matplotlib.figure import Figure

from tests.bench.backlog import Backlog
from tests.bench.latency import Latency
from tests.bench.report import Report
from tests.bench.rig import PROCESSES
from tests.bench.throughput import Way
from tests.bench.wording import rate
from twin.pictures import GREY, INK, SHADES, STYLE, save

_COLOURS = dict(zip(("spark", "python", "broker", "driver"), SHADES, strict=True))
_LABELS = {"spark": "Spark's JVM", "python": "Python workers", "broker": "broker", "driver": "driver"}


def draw(report: Report, folder: Path) -> None:
    """`performance-*.svg` of what was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        if report.throughput:
            save(_throughput(report.throughput), folder / "performance-throughput.svg")
        if report.backlog is not None:
            save(_backlog(report.backlog), folder / "performance-backlog.svg")
        if report.latency is not None:
            save(_latency(report.latency), folder / "performance-latency.svg")


def _throughput(ways: list[Way]) -> Figure:
    figure = Figure(figsize=(8.4, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = [way.name for way in ways]
    for place, (label, marker, filled) in enumerate(
        (("connector alone", "o", "none"), ("and decoding", "s", "none"), ("the job", "o", INK))
    ):
        rates = [(way.ceiling, way.decoding, way.job)[place].rate for way in ways]
        left.plot(range(len(ways)), rates, marker, color=INK, markerfacecolor=filled, label=label)
        for column, value in enumerate(rates):
            left.annotate(rate(value), (column, value), (7, 0), textcoords="offset points", va="center", fontsize=7)
    left.set_yscale("log")
    left.set_xticks(range(len(ways)), names)
    left.set_xlim(-0.4, len(ways) - 0.3)
    left.set_ylabel("events/s")
    left.margins(y=0.2)
    left.legend(fontsize=8, loc="upper left")
    bottom = [0.0] * len(ways)
    for process in PROCESSES:
        parts = [way.job.us(process) for way in ways]
        right.bar(names, parts, 0.5, bottom=bottom, label=_LABELS[process], color=_COLOURS[process])
        bottom = [below + part for below, part in zip(bottom, parts, strict=True)]
    for column, total in enumerate(bottom):
        right.annotate(f"{total:.2f}", (column, total), (0, 2), textcoords="offset points", ha="center", fontsize=8)
    right.set_ylabel("CPU µs per event")
    right.legend(fontsize=8)
    return figure


def _backlog(backlog: Backlog) -> Figure:
    figure = Figure(figsize=(8.4, 3.2), layout="constrained")
    times, pages = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    start = 0
    ticks: list[tuple[float, str]] = []
    for name, phase in backlog.phases.items():
        places = range(start, start + len(phase.batches))
        filled = INK if name.startswith("high") else "none"
        dots = {"marker": "o", "markersize": 4, "linestyle": "none", "color": INK, "markerfacecolor": filled}
        times.plot(places, [batch["batch_ms"] for batch in phase.batches], **dots)
        times.hlines(phase["batch_ms"], places[0], places[-1], color=GREY)
        pages.plot(places, [batch["pages"] for batch in phase.batches], **dots)
        ticks.append(((places[0] + places[-1]) / 2, fill(name, 22)))
        start = places[-1] + 4
    times.set_ylim(bottom=0)
    times.set_ylabel("ms per batch")
    pages.set_yscale("log")
    pages.set_ylabel("pages written")
    pages.set_xticks([place for place, _ in ticks], [name for _, name in ticks], fontsize=7)
    pages.set_xlabel("a dot is a batch, hollow: low backlog of messages, filled: high; line: median", fontsize=8)
    return figure


def _latency(latency: Latency) -> Figure:
    figure = Figure(figsize=(8.4, 2.6), layout="constrained")
    axes = figure.subplots()
    ordered = sorted(1000 * second for second in latency.seconds)
    axes.step(ordered, [100 * (rank + 1) / len(ordered) for rank in range(len(ordered))], where="post", color=INK)
    for percent in (50, 99):
        value = 1000 * latency.percentile(percent)
        axes.plot([0, value, value], [percent, percent, 0], ":", color=GREY)
        axes.annotate(
            f"p{percent}: {value:,.0f} ms", (value, percent), (4, -10), textcoords="offset points", fontsize=8
        )
    axes.set_xlim(left=0)
    axes.set_ylim(0, 101)
    axes.set_xlabel("ms from an event to its alert")
    axes.set_ylabel("percent of the alerts")
    return figure
