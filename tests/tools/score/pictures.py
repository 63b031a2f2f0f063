"""Pictures of the scorecard: story of a store, lead times, calibration. They need matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kernels.clock import SECOND
from tests.tools.score.bootstrap import Bounds
from tests.tools.score.bootstrap import Figure as Skill
from tests.tools.score.measures import Measures
from tests.tools.score.score import METHODS, TWIN, TWIN_WATCH, MethodOutput
from tests.tools.score.truth import Filling
from twin.forecast.outcomes import HORIZONS
from twin.playback.pictures import GREY, INK, OLIVE, PLUM, RED, SHADES, STYLE, date, draw_usage, mark_hours
from twin.playback.series import Series
from twin.state.arrays import Array

_MAX_PREDICTIONS = 14  # shown per filling
_DAY = 86_400.0 * SECOND
_SET_COLOURS = (INK, PLUM, OLIVE, RED, GREY)  # of sets of recordings
_DASHES = ("-", (0, (4, 2)), (0, (1, 1.5)))
_TWINS = (TWIN, TWIN_WATCH)
_FIXED = tuple(name for name in METHODS if name.startswith("static"))
_EXTRAPOLATED = tuple(name for name in METHODS if name not in _TWINS + _FIXED)
_LINES = {
    name: (colour, _DASHES[place % len(_DASHES)])
    for colour, names in ((INK, _TWINS), (PLUM, _FIXED), (OLIVE, _EXTRAPOLATED))
    for place, name in enumerate(names)
}
"""Colour and dashes of each method."""


def story(series: Series, fillings: Sequence[Filling], outputs: Mapping[str, MethodOutput], title: str) -> Figure:
    """Draw usage over time, predictions of the twin, 2192s, and the alarms of every method.

    Args:
        series: the store over time.
        fillings: its fillings.
        outputs: by method.
        title: title of the picture.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 5.2), layout="constrained")
        heights = (3, 1.3, 0.28 * len(outputs))
        levels, predicted, bars = figure.subplots(3, 1, sharex=True, height_ratios=heights)
        usage = {name: series.usage[:, column].tolist() for column, name in enumerate(series.resources)}
        draw_usage(levels, series.times.tolist(), usage)
        levels.set_title(title, fontsize=9, loc="left")
        for axes in (levels, predicted, bars):
            _mark_fillings(axes, fillings)
        predictions = outputs[TWIN].predictions
        if predictions is not None:
            _draw_predictions(predicted, fillings, predictions.ahead, predictions.times)
        _draw_bars(bars, series, outputs)
    return figure


def _mark_fillings(axes: Axes, fillings: Sequence[Filling]) -> None:
    for filling in fillings:
        begin, first, last = (date(time) for time in (filling.onset, filling.first, filling.last))
        axes.axvspan(begin, first, color=GREY, alpha=0.15, linewidth=0)
        axes.axvspan(first, last, color=RED, alpha=0.25, linewidth=0)
        axes.axvline(first, color=RED, linewidth=0.8)


def _draw_predictions(axes: Axes, fillings: Sequence[Filling], ahead: Array, times: Array) -> None:
    """Draw some predictions of each filling, in the order in which they were made from top to bottom.

    Args:
        axes: the panel.
        fillings: fillings of the store.
        ahead: f8[n, 3], seconds until full (p10, p50, p90).
        times: i8[n], of the predictions.
    """
    for filling in fillings:
        rows = np.flatnonzero((times >= filling.onset) & (times < filling.first) & np.isfinite(ahead[:, 1]))
        chosen = np.linspace(0, rows.size - 1, min(rows.size, _MAX_PREDICTIONS)).astype(int)
        for row in rows[np.unique(chosen)].tolist():
            time = int(times[row])
            before = (filling.first - time) / (60 * SECOND)
            p10, p50, p90 = (date(time + min(seconds, 86_400.0) * SECOND) for seconds in ahead[row].tolist())
            axes.plot([p10, p90], [before, before], color=INK, linewidth=0.9)
            axes.plot([p50], [before], ".", color=INK, markersize=3.5)
    axes.invert_yaxis()
    axes.set_ylabel("predicted,\nmin before")


def _draw_bars(axes: Axes, series: Series, outputs: Mapping[str, MethodOutput]) -> None:
    end = int(series.times[-1])
    for row, (method, output) in enumerate(outputs.items()):
        spans = [
            (date(alarm.opened), max(date(alarm.cleared or end) - date(alarm.opened), 20 * SECOND / _DAY))
            for alarm in output.alarms
        ]
        colour = SHADES[1] if method == TWIN_WATCH else _LINES[method][0]
        axes.broken_barh(spans, (row - 0.32, 0.64), color=colour, linewidth=0)
    axes.set_yticks(range(len(outputs)), list(outputs), fontsize=8)
    axes.set_ylim(len(outputs) - 0.5, -0.5)
    axes.set_xlim(date(int(series.times[0])), date(end))
    mark_hours(axes)
    axes.set_xlabel(
        "UTC. Grey: a filling; red: puts fail with 2192, from the line on; bars: an alarm is open. Middle: when the "
        "twin said it\nis full, p10 to p90, dot at p50, by the minutes before the first 2192 at which it said so",
        fontsize=8,
    )


def leads(by_method: Mapping[str, Sequence[float | None]], measured: Mapping[str, Measures]) -> Figure:
    """Draw the share of fillings by lead. by_method: leads in seconds, None: not recalled."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.4), layout="constrained")
        axes = figure.subplots()
        for method, method_leads in by_method.items():
            minutes = np.sort([lead / 60 for lead in method_leads if lead is not None])
            remaining = 100 * (1 - np.arange(minutes.size + 1) / max(1, len(method_leads)))
            remaining += (
                100 * (minutes.size - len(method_leads)) / max(1, len(method_leads))
            )  # those not recalled never count
            precision = measured[method].precision
            words = "no alarm" if precision is None else f"precision {100 * precision:.0f} %"
            colour, dashes = _LINES[method]
            width = 2.2 if method in _TWINS else 1.2
            places = np.concatenate([[0.0], minutes])
            label = f"{method} ({words})"
            axes.step(places, remaining, where="post", color=colour, linestyle=dashes, linewidth=width, label=label)
        axes.axvline(15, color=GREY, linewidth=0.8)
        axes.annotate("15 min", (15, 102), (0, 2), textcoords="offset points", ha="center", fontsize=8)
        axes.set_xlim(0, 120)
        axes.set_ylim(0, 102)
        axes.set_xlabel("minutes before the first 2192")
        axes.set_ylabel("percent of fillings warned of")
        axes.legend(fontsize=8, loc="upper right")
    return figure


def calibration(measures: Measures) -> Figure:
    """Draw the coverage of intervals (left) and the reliability of probabilities (right), with their intervals."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        for axes in (left, right):
            axes.plot([0, 100], [0, 100], color=GREY, linewidth=0.8, label="exact")
            axes.set_xlim(-3, 103)
            axes.set_ylim(-3, 103)
        interval = measures.interval
        if interval.below is not None and interval.up_to_p50 is not None and interval.above is not None:
            came = [100 * interval.below, 100 * interval.up_to_p50, 100 * (1 - interval.above)]
            ends = [measures.bounds.get(name) for name in ("below", "up_to_p50", "above")]
            if all(ends):
                below, middle, above = (np.multiply(100, end) for end in ends if end is not None)
                band = (below[0], middle[0], 100 - above[1]), (below[1], middle[1], 100 - above[0])
                left.fill_between([10, 50, 90], *band, color=INK, alpha=0.15, linewidth=0)
            left.plot([10, 50, 90], came, "o-", color=INK)
            for percent, share in zip((10, 50, 90), came, strict=True):
                left.annotate(f"{share:.0f} %", (percent, share), (6, -10), textcoords="offset points", fontsize=8)
        left.set_title(f"interval: {interval.points:,} predictions of the last hour", fontsize=9, loc="left")
        left.set_xlabel("percentile given for the first 2192, %")
        left.set_ylabel("2192s that came by then, %")
        left.legend(fontsize=8)
        bins = measures.reliability
        predicted, observed = [100 * bin_.predicted for bin_ in bins], [100 * bin_.observed for bin_ in bins]
        bounds = [bin_.bounds or Bounds(bin_.observed, bin_.observed) for bin_ in bins]
        lows, highs = [100 * own.low for own in bounds], [100 * own.high for own in bounds]
        right.fill_between(predicted, lows, highs, color=INK, alpha=0.15, linewidth=0, label="95 % confidence")
        right.plot(predicted, observed, "o-", color=INK)
        for bin_ in bins:
            place = (100 * bin_.predicted, 100 * bin_.observed)
            right.annotate(f"{bin_.count:,}", place, (6, -10), textcoords="offset points", fontsize=7)
        right.set_title("probability, with the number of predictions", fontsize=9, loc="left")
        right.set_xlabel("probability given of 2192 within two hours, %")
        right.set_ylabel("a 2192 came, %")
        right.legend(fontsize=8, loc="lower right")
    return figure


def skills(sets: Mapping[str, Sequence[Sequence[Skill]]], titles: Sequence[str]) -> Figure:
    """Draw the skill of probabilities by horizon, a curve a set of recordings, with intervals.

    Args:
        sets: by name, for each panel the skill at each of HORIZONS.
        titles: titles of the panels.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.4), layout="constrained")
        minutes = np.array(HORIZONS) / 60
        places = np.arange(minutes.size)
        panels = figure.subplots(1, len(titles), sharey=True)
        for panel, axes in enumerate(panels):
            axes.axhline(0, color=GREY, linewidth=0.8)
            for number, (name, by_panel) in enumerate(sets.items()):
                known = [
                    (place, own) for place, own in zip(places, by_panel[panel], strict=True) if own.value is not None
                ]
                values = np.array([own.value for _, own in known])
                bounds = [own.bounds or (own.value, own.value) for _, own in known]
                spreads = np.abs(np.array(bounds).reshape(-1, 2).T - values)
                shift = (number - (len(sets) - 1) / 2) * 0.08
                axes.errorbar(
                    [place + shift for place, _ in known],
                    values,
                    spreads,
                    color=_SET_COLOURS[number % len(_SET_COLOURS)],
                    linestyle=_DASHES[number // len(_SET_COLOURS)],
                    marker="o",
                    markersize=4,
                    linewidth=1.4,
                    elinewidth=0.8,
                    label=name,
                )
            axes.set_xticks(places, [f"{minute:.0f}" for minute in minutes])
            axes.set_xlabel("2192 within minutes")
            axes.set_title(titles[panel], fontsize=9, loc="left")
        panels[0].set_ylabel("skill: 1 without error, 0 as the other")
        panels[0].set_ylim(-1, 1.02)
        panels[0].legend(fontsize=8, loc="lower right")
    return figure
