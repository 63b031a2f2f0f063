"""Colours and style of all pictures, and the picture of a replay. Needs matplotlib, the extra `pictures`.

A colour has one meaning: a resource has its own everywhere, ink is the twin, red is a put that fails with 2192. Fixed
lines are plum and extrapolations olive, told apart by how their lines are dashed; parts of the job are shades of ink.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.colors import hsv_to_rgb, to_hex
from matplotlib.dates import AutoDateLocator, DateFormatter, date2num
from matplotlib.figure import Figure
from msgspec.structs import astuple

from twin.alerts.episodes import Alert
from twin.base.conditions import CLEARED, INFO, OPENED, Condition
from twin.base.errors import UsageError
from twin.base.outputs import write_output
from twin.base.units import as_datetime

INK, GREY, LIGHT, RED, PLUM, OLIVE = "#2b3440", "#9aa5b1", "#d3d8de", "#b5484a", "#a8577e", "#8a8d3c"
SHADES = (INK, "#66717e", GREY, LIGHT)
_RESOURCES = {"entries": "#3b6ea5", "elements": "#5c9a66"}
_OTHER_RESOURCES = ("#d08a2e", "#9a5fc0", "#25a9c4", "#6f4a2f", "#e078b5", "#c9c239")  # data sets, SCM, pages, blocks
_GOLDEN_TURN = 0.618034  # of the circle of hues: no two of many are alike
_DAY_S = 86_400.0
_MOST_STORES = 6
_MOST_POINTS = 600  # of a curve
_SHORTEST_S = 20  # length of a bar, so that it is seen
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
    svg = StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": "mqtwin"})
    write_output(path, "".join(f"{line.rstrip()}\n" for line in svg.getvalue().splitlines()))


def resource_colours(resources: Sequence[str]) -> dict[str, str]:
    """Return the colour of each resource of a store, by its name in alerts; no two have the same."""
    others = [name for name in resources if name not in _RESOURCES]
    return _RESOURCES | {name: _other_colour(place) for place, name in enumerate(others)}


def _other_colour(place: int) -> str:
    """Return the colour of the resource of that place among those beside entries and elements."""
    if place < len(_OTHER_RESOURCES):
        return _OTHER_RESOURCES[place]
    return to_hex(hsv_to_rgb((place * _GOLDEN_TURN % 1.0, 0.55, 0.5 + 0.1 * (place % 4))))


def date(time: float) -> float:
    """Return the place of a time, microseconds since 1970, on a time axis."""
    return float(date2num(as_datetime(int(time))))


def dates(times: Iterable[int]) -> list[float]:
    """Return the places of times, microseconds since 1970, on a time axis."""
    return [date(time) for time in times]


def mark_hours(axes: Axes) -> None:
    """Mark a time axis at whole hours or minutes."""
    axes.xaxis.set_major_locator(AutoDateLocator(minticks=4, maxticks=9))
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M"))


def draw_usage(axes: Axes, times: Sequence[int], usage: Mapping[str, Sequence[float]]) -> None:
    """Draw a curve per resource that ever used more than 1 %, or the first one, and the 100 % line; n values each."""
    keep = np.unique(np.linspace(0, len(times) - 1, _MOST_POINTS).astype(int))
    places = dates(np.asarray(times)[keep].tolist())
    colours = resource_colours(list(usage))
    for number, (resource, values) in enumerate(usage.items()):
        curve = np.asarray(values)
        if number == 0 or curve.max(initial=0.0) > 1.0:
            axes.plot(places, curve[keep], color=colours[resource], linewidth=1.4, label=resource)
    axes.axhline(100.0, color=GREY, linewidth=0.8)
    axes.set_ylim(0, 112)
    axes.set_ylabel("percent in use")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.06), ncols=6, fontsize=8)


def draw_replay(usage: pa.Table, alerts: Sequence[Alert], stores: Sequence[str]) -> Figure:
    """Draw usage (as `twin.Replayed.usage`) and alerts of stores over time: a panel and the bars of its alerts for each
    store. None named: the six that were fullest. UsageError: the replay has no store of that name, or none at all.
    """
    chosen = _chosen(usage, stores)
    end = int(pc.max(usage["time"].cast(pa.int64())).as_py())
    bars = {store: _open_spans(alerts, store, end) for store in chosen}
    heights = [height for store in chosen for height in (3.0, 0.3 * max(1, len(bars[store])))]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 0.5 + 0.75 * sum(heights)), layout="constrained")
        panels = figure.subplots(2 * len(chosen), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
        for number, store in enumerate(chosen):
            upper, lower = panels[2 * number], panels[2 * number + 1]
            times, levels = _levels(usage, store)
            draw_usage(upper, times, levels)
            upper.set_title(store, fontsize=9, loc="left")
            _draw_predictions(upper, alerts, store)
            _draw_bars(lower, bars[store])
        mark_hours(panels[-1])
        panels[-1].set_xlabel(
            "UTC. Bars: an alert is open, light: a watch, dark: a page, red: puts fail with 2192.\nOn the 100 % line: "
            "when a forecast that opens says full, p10 to p90, dot at p50",
            fontsize=8,
        )
    return figure


def _chosen(usage: pa.Table, stores: Sequence[str]) -> list[str]:
    peaks = usage.group_by("store").aggregate([("usage_pct", "max")]).to_pylist()
    ranked = sorted(peaks, key=lambda row: (-row["usage_pct_max"], row["store"]))
    known = [row["store"] for row in ranked]
    if not known:
        raise UsageError("no store of the replay has usage to plot; expected: events of the estate")
    for store in stores:
        if store not in known:
            raise UsageError(f"the replay has no usage of a store {store}; expected: {', '.join(sorted(known))}")
    return list(stores) or sorted(known[:_MOST_STORES])


def _levels(usage: pa.Table, store: str) -> tuple[list[int], dict[str, list[float]]]:
    """Return the times of a store's samples and its usage by resource, the resources in order of their names."""
    own = usage.filter(pc.equal(usage["store"], store))
    times = sorted(set(own["time"].cast(pa.int64()).to_pylist()))
    place = {time: number for number, time in enumerate(times)}
    levels = {name: [0.0] * len(times) for name in sorted(set(own["resource"].to_pylist()), key=_order)}
    for time, resource, pct in zip(
        own["time"].cast(pa.int64()).to_pylist(), own["resource"].to_pylist(), own["usage_pct"].to_pylist(), strict=True
    ):
        levels[resource][place[time]] = pct
    return times, levels


def _order(resource: str) -> tuple[bool, bool, str]:
    return resource != "entries", resource != "elements", resource


Span = tuple[float, float, str]
"""(begin, end, colour) of a bar."""


def _open_spans(alerts: Sequence[Alert], store: str, end: int) -> dict[str, list[Span]]:
    spans: dict[str, list[Span]] = {}
    for alert, until in _with_ends(alerts, store, end):
        if alert.change == CLEARED:
            continue
        row = spans.setdefault(f"{alert.condition} {alert.resource}", [])
        colour = GREY if alert.severity == INFO else RED if alert.condition == Condition.FULL else INK
        begins = row.pop()[0] if row and row[-1][1:] == (date(alert.time), colour) else date(alert.time)
        row.append((begins, max(date(until), date(alert.time) + _SHORTEST_S / _DAY_S), colour))
    return spans


def _with_ends(alerts: Sequence[Alert], store: str, end: int) -> Iterator[tuple[Alert, int]]:
    """Yield the records of a store, each with the time of the next one of its alert, or `end`."""
    following: dict[str, int] = {}
    pairs = []
    for alert in reversed([alert for alert in alerts if alert.store == store]):
        pairs.append((alert, following.get(alert.alert_id, end)))
        following[alert.alert_id] = alert.time
    yield from reversed(pairs)


def _draw_predictions(axes: Axes, alerts: Sequence[Alert], store: str) -> None:
    for alert in alerts:
        if alert.store == store and alert.change == OPENED and alert.time_to_full_s is not None:
            p10, p50, p90 = (date(alert.time) + left_s / _DAY_S for left_s in astuple(alert.time_to_full_s))
            axes.plot([p10, p90], [100, 100], color=INK, linewidth=1.6)
            axes.plot([p50], [100], ".", color=INK, markersize=6)


def _draw_bars(axes: Axes, spans: Mapping[str, Sequence[Span]]) -> None:
    for row, own in enumerate(spans.values()):
        for begin, end, colour in own:
            axes.broken_barh([(begin, end - begin)], (row - 0.32, 0.64), color=colour, linewidth=0)
    names = list(spans) or ["no alert"]
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
