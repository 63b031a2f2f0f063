"""The pictures of the page, as SVG."""

from __future__ import annotations

import itertools
from pathlib import Path
from textwrap import fill

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tests.tools.bench.backlog import Backlog
from tests.tools.bench.latency import Latency
from tests.tools.bench.machine import cores
from tests.tools.bench.report import Report
from tests.tools.bench.rig import PROCESSES
from tests.tools.bench.throughput import Way
from tests.tools.bench.timeline import PHASES, STAGES, Timeline
from tests.tools.bench.wording import rate
from twin.playback.pictures import GREY, INK, SHADES, STYLE, save

_LABELLED = 0.15  # of a batch: a shorter phase has no room for its name
_PERCENTILES = (50, 99)
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
        if report.latency:
            save(_latency(report.latency), folder / "performance-latency.svg")
        if report.timelines:
            save(_timelines(report.timelines), folder / "performance-timeline.svg")


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
    pages.set_ylim(bottom=0)
    pages.set_ylabel("pages written")
    pages.set_xticks([place for place, _ in ticks], [name for _, name in ticks], fontsize=7)
    pages.set_xlabel("a dot is a batch, hollow: low backlog of messages, filled: high; line: median", fontsize=8)
    return figure


def _latency(measured: list[Latency]) -> Figure:
    """The curves and their percentiles; the numbers stand in the legend, where no curve can cross them."""
    figure = Figure(figsize=(8.4, 2.6), layout="constrained")
    axes = figure.subplots()
    for latency, line in zip(measured, ("-", "--"), strict=False):
        ordered = sorted(1000 * second for second in latency.seconds)
        percents = [100 * (rank + 1) / len(ordered) for rank in range(len(ordered))]
        values = {percent: 1000 * latency.percentile(percent) for percent in _PERCENTILES}
        label = ", ".join(f"p{percent} {value:,.0f} ms" for percent, value in values.items())
        axes.step(ordered, percents, line, where="post", color=INK, label=f"{latency.rate:,} events/s: {label}")
        for percent, value in values.items():
            axes.plot([0, value, value], [percent, percent, 0], ":", color=GREY)
    for percent in _PERCENTILES:
        axes.annotate(f"p{percent}", (0, percent), (4, -3), textcoords="offset points", va="top", fontsize=8)
    axes.set_xlim(left=0)
    axes.set_ylim(0, 101)
    axes.set_xlabel("ms from an event to its alert")
    axes.set_ylabel("percent of the alerts")
    axes.legend(fontsize=8, loc="lower right", facecolor="white", framealpha=1.0, frameon=True, edgecolor="none")
    return figure


def _timelines(timelines: list[Timeline]) -> Figure:
    figure = Figure(figsize=(8.4, 1.1 + 1.1 * len(timelines)), layout="constrained")
    phases = zip(filter(None, PHASES.values()), itertools.cycle((INK, SHADES[1])))
    colours = {**dict(phases), STAGES[0]: SHADES[2], STAGES[1]: SHADES[3]}
    lanes = ["driver", *(f"core {core + 1}" for core in range(cores()))]
    for axes, timeline in zip(figure.subplots(len(timelines), squeeze=False)[:, 0], timelines, strict=True):
        for bar in timeline.bars:
            axes.barh(bar.lane + 1, bar.end - bar.start, 0.8, bar.start, color=colours[bar.label], edgecolor="white")
        for bar in timeline.bars:
            if bar.lane < 0 and bar.end - bar.start > timeline.milliseconds * _LABELLED:
                middle = (bar.start + bar.end) / 2
                axes.annotate(bar.label, (middle, 0), ha="center", va="center", fontsize=7, color="white")
        axes.set_yticks(range(len(lanes)), lanes)
        axes.invert_yaxis()
        axes.set_xlim(0, timeline.milliseconds)
        axes.set_title(f"{timeline.name}: {timeline.events:,} events", loc="left", fontsize=9)
    axes.set_xlabel("ms since the batch began")
    handles = [Patch(color=colours[stage], label=f"tasks: {stage}") for stage in STAGES]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
    return figure
