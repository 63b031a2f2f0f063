"""The pictures of the page: value, calibration, and leads beside the oracle. They need matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from tests.tools.score.measures import Measures
from tests.tools.score.oracle import ORACLE, ORACLE_WATCH
from tests.tools.score.score import TWIN, TWIN_WATCH
from tests.tools.score.skill import Value
from tests.tools.score.targets import VALUED_S, sets_of_targets
from tests.tools.score.work import CaseScore, Loads, classes, leads_beside_oracle, measured, values
from twin.forecast.outcomes import HORIZONS
from twin.playback.pictures import GREY, INK, OLIVE, PLUM, STYLE, save
from twin.reporting.tuning import Bounds

_SHORTEST, _LONGEST = 0.5, 300.0  # minutes that are drawn of a lead
_TICKS = (0.5, 2, 5, 15, 30, 60, 120, 240)


class Line(NamedTuple):
    """Look of a line of `draw_shares`, and its text in the legend."""

    label: str
    colour: str
    dashes: Any = "-"
    width: float = 1.2


def draw_shares(leads: Mapping[str, Sequence[float | None]], lines: Mapping[str, Line]) -> Figure:
    """Draw the share of fillings that had a lead or more, a line a name. leads: seconds, None: without a warning."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.4), layout="constrained")
        axes = figure.subplots()
        for name, own in leads.items():
            minutes = np.sort([lead / 60 for lead in own if lead is not None])
            remaining = 100 * (1 - np.arange(minutes.size + 1) / max(1, len(own)))
            remaining += 100 * (minutes.size - len(own)) / max(1, len(own))  # those not recalled never count
            label, colour, dashes, width = lines[name]
            places = np.concatenate([[0.0], minutes])
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


def draw_values(sets: Mapping[str, Sequence[Value]]) -> Figure:
    """Draw the value of the twin, with its interval, and that of the best rule, by C/L; a panel a set."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 2.8), layout="constrained")
        panels = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
        for axes, (name, own) in zip(panels, sets.items(), strict=True):
            costs, twin = [each.cost for each in own], np.array([each.value.value for each in own], float)
            rule = np.array([each.of_rule.value for each in own], float)
            lows, highs = np.array([each.value.bounds or (np.nan, np.nan) for each in own]).T
            axes.axhline(0, color=GREY, linewidth=0.8)
            axes.fill_between(costs, lows, highs, color=INK, alpha=0.15, linewidth=0)
            axes.plot(costs, twin, "o-", color=INK, markersize=3, linewidth=2.2, label="twin")
            axes.plot(costs, rule, "o-", color=PLUM, markersize=3, linewidth=1.2, label="best rule at each C/L")
            axes.set_title(name, fontsize=8, loc="left")
            axes.set_xlabel("C/L")
            axes.set_ylim(-1, 1)
        panels[0].set_ylabel("value: 1 perfect, 0 nothing")
        panels[0].legend(fontsize=7, loc="lower left")
    return figure


# --- all of a run ---------------------------------------------------------------------------------------------------


def draw(scores: Sequence[CaseScore], loads: Loads, folder: Path) -> None:
    """Draw `foresight-*.svg` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("foresight-*.svg"):
        old.unlink()
    save(calibration(measured(scores)[TWIN]), folder / "foresight-calibration.svg")
    sets = sets_of_targets(scores, loads)
    save(
        draw_values({name: values(some, HORIZONS.index(VALUED_S)) for name, some in sets.items()}),
        folder / "foresight-value.svg",
    )
    if any(ORACLE in score.judged for score in scores):
        save(_beside_oracle(scores), folder / "foresight-oracle.svg")


def _beside_oracle(scores: Sequence[CaseScore]) -> Figure:
    """Draw the lead of every filling that the oracle foresaw, of the twin and of the oracle."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.8), layout="constrained")
        panels = figure.subplots(1, 2)
        for axes, what, twin, oracle in zip(
            panels, ("first of watch and page", "page"), (TWIN_WATCH, TWIN), (ORACLE_WATCH, ORACLE), strict=True
        ):
            axes.axline((1, 1), (60, 60), color=GREY, linewidth=0.8, label="as early as the oracle")
            axes.axline((1, 0.8), (60, 48), color=GREY, linewidth=0.8, linestyle=":", label="80 % of it")
            for name, colour in (("steady", OLIVE), ("hard", INK)):
                some = classes(scores)[name]
                pairs = [pair for own in leads_beside_oracle(some, twin, oracle) for pair in own]
                ours, theirs = np.array(pairs).reshape(-1, 2).T / 60
                axes.plot(np.maximum(theirs, _SHORTEST), np.maximum(ours, _SHORTEST), ".", color=colour, label=name)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlim(_SHORTEST * 0.8, _LONGEST)
            axes.set_ylim(_SHORTEST * 0.8, _LONGEST)
            for set_ticks in (axes.set_xticks, axes.set_yticks):
                set_ticks(_TICKS, [f"{minutes:g}" for minutes in _TICKS])
            axes.set_title(what, fontsize=9, loc="left")
            axes.set_xlabel("lead of the oracle, minutes")
        panels[0].set_ylabel(f"lead of the twin, minutes ({_SHORTEST:g}: none)")
        panels[0].legend(fontsize=8, loc="upper left")
    return figure
