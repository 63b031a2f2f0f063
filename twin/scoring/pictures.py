"""Pictures of the scorecard: story of a store, lead times, calibration. Only this module needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, DateFormatter, date2num
from matplotlib.figure import Figure

from kernels.clock import SECOND
from twin.scoring.measures import Measures
from twin.scoring.score import TWIN, MethodOutput
from twin.scoring.series import Series
from twin.scoring.truth import Filling
from twin.state.arrays import Array
from twin.units import as_datetime

BLUE, AMBER, GREEN, GREY, RED, INK = "#3b6ea5", "#d08a2e", "#5c9a66", "#9aa5b1", "#b5484a", "#2b3440"
_RESOURCES = (BLUE, GREEN, AMBER, "#7a68a6", "#4b8f8c", "#a0785a")
_METHODS = (INK, GREY, "#c9b458", AMBER, RED, "#7a68a6", BLUE, GREEN)
_MAX_POINTS = 600  # of a curve
_MAX_WHISKERS = 14  # predictions shown per filling
_DAY = 86_400.0 * SECOND
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mqtwin",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}


def save(figure: Figure, path: Path) -> None:
    """Save a figure as SVG without a date, so that the same figure gives the same file."""
    with mpl.rc_context(STYLE):
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "mqtwin"})
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


def story(series: Series, fillings: Sequence[Filling], outputs: Mapping[str, MethodOutput], title: str) -> Figure:
    """Draw usage over time, predictions of the twin, 2192s, and the alarms of every method.

    A whisker on the 100 % line is a prediction: from p10 to p90, a dot at p50, a thin line from the usage at its time.

    Args:
        series: the store over time.
        fillings: its fillings.
        outputs: by method.
        title: of the picture.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 4.2), layout="constrained")
        levels, bars = figure.subplots(2, 1, sharex=True, height_ratios=(3, 0.28 * len(outputs)))
        _levels(levels, series, fillings)
        predictions = outputs[TWIN].predictions
        if predictions is not None:
            for filling in fillings:
                _whiskers(levels, series, filling, predictions.ahead, predictions.times)
        levels.set_title(title, fontsize=9, loc="left")
        _bars(bars, series, fillings, outputs)
    return figure


def _levels(axes: Axes, series: Series, fillings: Sequence[Filling]) -> None:
    keep = np.unique(np.linspace(0, len(series.times) - 1, _MAX_POINTS).astype(int))
    for column, resource in enumerate(series.resources):
        usage = series.usage[keep, column]
        if column == 0 or usage.max(initial=0.0) > 1.0:
            colour = _RESOURCES[column % len(_RESOURCES)]
            axes.plot(_dates(series.times[keep]), usage, color=colour, linewidth=1.4, label=resource)
    for filling in fillings:
        begin, first, last = (_date(time) for time in (filling.onset, filling.first, filling.last))
        axes.axvspan(begin, first, color=GREY, alpha=0.15, linewidth=0)
        axes.axvspan(first, last, color=RED, alpha=0.25, linewidth=0)
        axes.axvline(first, color=RED, linewidth=0.8)
    axes.axhline(100.0, color=GREY, linewidth=0.8)
    axes.set_ylim(0, 112)
    axes.set_ylabel("percent in use")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.06), ncols=6, fontsize=8)


def _whiskers(axes: Axes, series: Series, filling: Filling, ahead: Array, times: Array) -> None:
    """Draw some predictions of a filling above the 100 % line, one above the other."""
    rows = np.flatnonzero((times >= filling.onset) & (times < filling.first) & np.isfinite(ahead[:, 1]))
    chosen = (
        rows[np.unique(np.linspace(0, rows.size - 1, min(rows.size, _MAX_WHISKERS)).astype(int))] if rows.size else rows
    )
    column = series.resources.index(filling.resource)
    for number, row in enumerate(chosen.tolist()):
        time = int(times[row])
        p10, p50, p90 = (_date(time + int(min(seconds, 86_400.0) * SECOND)) for seconds in ahead[row].tolist())
        height = 101.5 + 0.7 * number
        usage = float(np.interp(time, series.times, series.usage[:, column]))
        axes.plot([_date(time), p50], [usage, height], color=GREY, linewidth=0.4)
        axes.plot([p10, p90], [height, height], color=INK, linewidth=0.9)
        axes.plot([p50], [height], ".", color=INK, markersize=3.5)


def _bars(axes: Axes, series: Series, fillings: Sequence[Filling], outputs: Mapping[str, MethodOutput]) -> None:
    end = int(series.times[-1])
    for row, output in enumerate(outputs.values()):
        spans = [
            (_date(alarm.opened), max(_date(alarm.cleared or end) - _date(alarm.opened), 20 * SECOND / _DAY))
            for alarm in output.alarms
        ]
        axes.broken_barh(spans, (row - 0.32, 0.64), color=_METHODS[row % len(_METHODS)], linewidth=0)
    for filling in fillings:
        axes.axvline(_date(filling.first), color=RED, linewidth=0.8)
    axes.set_yticks(range(len(outputs)), list(outputs), fontsize=8)
    axes.set_ylim(len(outputs) - 0.5, -0.5)
    axes.set_xlim(_date(int(series.times[0])), _date(end))
    axes.xaxis.set_major_locator(AutoDateLocator(minticks=4, maxticks=9))  # whole hours or minutes
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M"))
    axes.set_xlabel(
        "UTC; bars: an alarm is open; grey: a filling, and the line to its prediction; red: puts get 2192", fontsize=8
    )


def leads(by_method: Mapping[str, Sequence[float | None]], measured: Mapping[str, Measures]) -> Figure:
    """Draw the share of fillings by lead. by_method: leads in seconds, None: not recalled."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.4), layout="constrained")
        axes = figure.subplots()
        for row, (method, method_leads) in enumerate(by_method.items()):
            minutes = np.sort([lead / 60 for lead in method_leads if lead is not None])
            remaining = 100 * (1 - np.arange(minutes.size + 1) / max(1, len(method_leads)))
            remaining += (
                100 * (minutes.size - len(method_leads)) / max(1, len(method_leads))
            )  # those not recalled never count
            precision = measured[method].precision
            words = "no alarm" if precision is None else f"precision {100 * precision:.0f} %"
            colour = _METHODS[row % len(_METHODS)]
            width = 2.4 if method == TWIN else 1.2
            places = np.concatenate([[0.0], minutes])
            axes.step(places, remaining, where="post", color=colour, linewidth=width, label=f"{method} ({words})")
        axes.axvline(15, color=GREY, linewidth=0.8, linestyle=":")
        axes.set_xlim(0, 120)
        axes.set_ylim(0, 102)
        axes.set_xlabel("minutes before the first 2192")
        axes.set_ylabel("percent of fillings warned of")
        axes.legend(fontsize=8, loc="upper right")
    return figure


def calibration(measures: Measures) -> Figure:
    """Draw the coverage of intervals (left) and the reliability of probabilities (right)."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        for axes in (left, right):
            axes.plot([0, 100], [0, 100], color=GREY, linewidth=0.8)
            axes.set_xlim(-3, 103)
            axes.set_ylim(-3, 103)
        interval = measures.interval
        if interval.below is not None and interval.up_to_p50 is not None and interval.above is not None:
            came = [100 * interval.below, 100 * interval.up_to_p50, 100 * (1 - interval.above)]
            left.plot([10, 50, 90], came, "o-", color=BLUE)
            for percent, share in zip((10, 50, 90), came, strict=True):
                left.annotate(f"{share:.0f} %", (percent, share), (6, -10), textcoords="offset points", fontsize=8)
        left.set_xlabel(f"should have come by then, % ({interval.points:,} predictions in the last hour)")
        left.set_ylabel("came by then, %")
        bins = measures.reliability
        right.plot([100 * bin_.predicted for bin_ in bins], [100 * bin_.observed for bin_ in bins], "o-", color=BLUE)
        for bin_ in bins:
            place = (100 * bin_.predicted, 100 * bin_.observed)
            right.annotate(f"{bin_.count:,}", place, (6, -10), textcoords="offset points", fontsize=7)
        right.set_xlabel("probability given of 2192 within two hours, %")
        right.set_ylabel("a 2192 came, %")
    return figure


def _dates(times: Array) -> Array:
    return np.array([_date(time) for time in times.tolist()])


def _date(time: int) -> float:
    return float(date2num(as_datetime(time)))
