"""The Grafana dashboards as pictures without Grafana, which no package registry has: real PromQL, drawn by matplotlib.

It knows the settings of a dashboard that `docs/dashboards.py` makes: time series, stat and table, units, thresholds,
value mappings, columns of tables. Another setting is an error, and a panel without data names the metrics that are
missing. ``python -m tests.tools.panels URL FOLDER --minutes 180`` draws all dashboards from a Prometheus that runs.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from docs.dashboards import OUT
from tests.support.surfaces import fetch

METRIC = re.compile(r"\b((?:mqtwin|ibmmq)_\w+)(?![\w(])")
_POINTS = 240  # of a series
_UNIT_PX, _WIDTH_PX, _DPI, _GAP_PX = 30, 1440, 100, 8  # of a row of Grafana's grid, of the page
_COLUMNS = 24
_COLOURS = {
    "green": "#2e8540",
    "orange": "#c05600",
    "red": "#c4162a",
    "text": "#24292e",
    "blue": "#1f60c4",
    "grey": "#6e7681",
}
_LINES = ("#1f60c4", "#c05600", "#37872d", "#8f3bb8", "#c4162a", "#0b7285", "#a37200", "#ad4794", "#5c6773", "#4b3d9a")
_KNOWN = {
    "panel": {
        *("type", "title", "id", "gridPos", "datasource", "fieldConfig", "targets", "options", "transparent", "panels"),
        *("repeatDirection", "transformations", "collapsed", "description"),
    },
    "defaults": {"unit", "min", "max", "decimals", "thresholds", "mappings", "custom", "noValue"},
    "custom": {"thresholdsStyle", "lineInterpolation", "axisSoftMax"},
    "transformations": {"organize"},
}


@dataclass(frozen=True, slots=True)
class Series:
    """A series: its labels, and pairs of seconds since 1970 and value."""

    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """A panel and what Prometheus answers. why_empty: what is missing; empty where there is data."""

    panel: Mapping[str, Any]
    series: list[Series] = field(default_factory=list)
    why_empty: str = ""

    @property
    def title(self) -> str:
        """Title of the panel."""
        return str(self.panel.get("title", ""))

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Settings of its fields."""
        defaults: Mapping[str, Any] = self.panel.get("fieldConfig", {}).get("defaults", {})
        return defaults


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A Prometheus, asked about a span of time.

    Args:
        url: its base URL.
        start_s: begin of the span, seconds since 1970.
        end_s: its end, at which single numbers and tables are.
    """

    url: str
    start_s: float
    end_s: float

    @property
    def step_s(self) -> int:
        """Seconds between two points of a series."""
        return max(1, math.ceil((self.end_s - self.start_s) / _POINTS))

    def range(self, query: str) -> list[Series]:
        """Return the series of a query over the span."""
        return self._ask("query_range", query=query, start=self.start_s, end=self.end_s, step=self.step_s)

    def instant(self, query: str) -> list[Series]:
        """Return the value of each series at the end of the span."""
        return self._ask("query", query=query, time=self.end_s)

    def _ask(self, path: str, **arguments: Any) -> list[Series]:
        answer = fetch(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(arguments)}")
        return [
            Series(result["metric"], [(float(seconds), float(text)) for seconds, text in _pairs(result)])
            for result in answer["data"]["result"]
        ]


def _pairs(result: Mapping[str, Any]) -> list[tuple[float, str]]:
    """Return times and values of a series of an answer, of a range or of one moment."""
    return list(result["values"]) if "values" in result else [result["value"]]


def answered(board: Mapping[str, Any], source: Prometheus, chosen: Mapping[str, str] | None = None) -> list[Answered]:
    """Return each panel of a dashboard with its data.

    Args:
        board: the dashboard.
        source: the Prometheus.
        chosen: values of variables by name; of another one its first value, or all of them.
    """
    values = {**dict(_variables(board, source)), **(chosen or {})}
    return [_answer(panel, source, values) for panel in board["panels"]]


def _variables(board: Mapping[str, Any], source: Prometheus) -> Iterator[tuple[str, str]]:
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            query, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()
            labels = sorted({series.labels.get(label, "") for series in source.instant(query)})
            yield variable["name"], "|".join(labels) if variable.get("includeAll") else next(iter(labels), "")


def _answer(panel: Mapping[str, Any], source: Prometheus, values: Mapping[str, str]) -> Answered:
    _check(panel)
    series, missing = [], []
    for target in panel.get("targets", ()):
        query = target["expr"]
        for name, value in values.items():
            query = query.replace(f"${name}", value)
        results = source.instant(query) if target.get("instant") else source.range(query)
        series += [replace(result, legend=_legend(target["legendFormat"], result.labels)) for result in results]
        missing += [] if results else [_why_empty(query, source)]
    return Answered(panel, series, "" if series else "\n".join(missing))


def _legend(pattern: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], ""), pattern)


def _why_empty(query: str, source: Prometheus) -> str:
    """Return why a query has no series: a metric that nothing serves, otherwise that none fits."""
    absent = [name for name in dict.fromkeys(METRIC.findall(query)) if not source.range(name)]
    return f"nothing serves {', '.join(absent)}" if absent else f"no series fits {query}"


def _check(panel: Mapping[str, Any]) -> None:
    """Raise ValueError for a setting that would be drawn otherwise than Grafana does."""
    defaults = panel.get("fieldConfig", {}).get("defaults", {})
    settings = {
        "panel": set(panel),
        "defaults": set(defaults),
        "custom": set(defaults.get("custom", {})),
        "transformations": {change["id"] for change in panel.get("transformations", ())},
    }
    for part, names in settings.items():
        if unknown := names - _KNOWN[part]:
            raise ValueError(f"panel {panel.get('title')}: {part} {', '.join(sorted(unknown))} is not drawn here")


# --- values as texts -------------------------------------------------------------------------------------------------


def text_of(value: float, defaults: Mapping[str, Any]) -> str:
    """Return a value as a panel shows it: by its mapping, otherwise with its unit."""
    for mapping in defaults.get("mappings", ()):
        if (mapped := mapping["options"].get(f"{value:g}")) is not None:
            return str(mapped["text"])
    if not math.isfinite(value):
        return "∞" if value > 0 else str(value)
    return _UNITS[defaults.get("unit", "short")](value, defaults.get("decimals"))


def _number(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _scaled(factor: float, names: Sequence[str]) -> Callable[[float, int | None], str]:
    def text(value: float, decimals: int | None) -> str:
        index = 0
        while abs(value) >= factor and index < len(names) - 1:
            value, index = value / factor, index + 1
        return f"{_number(value, decimals)}{names[index]}"

    return text


def _seconds(value: float, decimals: int | None) -> str:
    for size, name in ((86_400, "days"), (3_600, "hours"), (60, "mins")):
        if abs(value) >= size:
            return f"{_number(value / size, 1 if decimals is None else decimals)} {name}"
    return f"{_number(value, decimals)} s" if abs(value) >= 1 or not value else f"{_number(1000 * value, decimals)} ms"


_UNITS: dict[str, Callable[[float, int | None], str]] = {
    "short": _scaled(1000, ("", " K", " Mil", " Bil")),
    "none": _number,
    "bytes": _scaled(1024, (" B", " KiB", " MiB", " GiB", " TiB")),
    "percentunit": lambda value, decimals: f"{_number(100 * value, decimals)}%",
    "s": _seconds,
}


def _colour(value: float, defaults: Mapping[str, Any]) -> str:
    """Return the colour of its mapping, otherwise that of the highest threshold that a value reaches."""
    for mapping in defaults.get("mappings", ()):
        if (mapped := mapping["options"].get(f"{value:g}")) is not None and mapped.get("color"):
            return str(mapped["color"])
    reached = [
        step["color"]
        for step in defaults.get("thresholds", {}).get("steps", ())
        if step["value"] is None or value >= step["value"]
    ]
    return str(reached[-1]) if reached else "text"


# --- pictures --------------------------------------------------------------------------------------------------------


def draw(board: Mapping[str, Any], panels: Sequence[Answered], source: Prometheus, rows: int | None = None) -> Figure:
    """Return a dashboard as a picture.

    Args:
        board: the dashboard.
        panels: its panels, of `answered`.
        source: the Prometheus, for the span of time.
        rows: rows of the grid that are drawn, as a screen has; None: all.
    """
    bottom = max(panel.panel["gridPos"]["y"] + panel.panel["gridPos"]["h"] for panel in panels)
    height_px = (2 + min(bottom, rows or bottom)) * _UNIT_PX
    mpl.rcParams.update({"font.family": "DejaVu Sans", "font.size": 8})
    page = Figure(figsize=(_WIDTH_PX / _DPI, height_px / _DPI), dpi=_DPI, facecolor="#f4f5f5")
    page.text(12 / _WIDTH_PX, 1 - _UNIT_PX / height_px, board["title"], size=13, weight="bold", va="center")
    moments = [datetime.fromtimestamp(seconds, UTC) for seconds in (source.start_s, source.end_s)]
    span = f"{moments[0]:%Y-%m-%d %H:%M} to {moments[1]:%H:%M} UTC"
    page.text(1 - 12 / _WIDTH_PX, 1 - _UNIT_PX / height_px, span, ha="right", va="center", color=_COLOURS["grey"])
    for panel in panels:
        place = panel.panel["gridPos"]
        if rows is not None and place["y"] + place["h"] > rows:
            continue
        left, width = (place[name] * _WIDTH_PX / _COLUMNS for name in ("x", "w"))
        top = (2 + place["y"]) * _UNIT_PX
        box = (left + _GAP_PX / 2, height_px - top - place["h"] * _UNIT_PX + _GAP_PX / 2)
        size = (width - _GAP_PX, place["h"] * _UNIT_PX - _GAP_PX)
        bounds = (box[0] / _WIDTH_PX, box[1] / height_px, size[0] / _WIDTH_PX, size[1] / height_px)
        _draw_panel(page, panel, bounds, size, source)
    return page


def _draw_panel(
    page: Figure, panel: Answered, bounds: tuple[float, ...], size: tuple[float, float], source: Prometheus
) -> None:
    kind = panel.panel["type"]
    frame = page.add_axes(bounds, xticks=[], yticks=[], facecolor="white" if kind != "row" else "#f4f5f5")
    for spine in frame.spines.values():
        spine.set(color="#d8d9da", visible=kind != "row")
    frame.text(
        8 / size[0], 1 - 11 / size[1], panel.title, va="center", weight="bold", size=9, transform=frame.transAxes
    )
    if kind == "row":
        return
    if not panel.series:
        frame.text(
            0.5,
            0.45,
            "\n".join((panel.panel.get("description", "No data"), panel.why_empty)),
            ha="center",
            va="center",
            wrap=True,
            color=_COLOURS["grey"],
        )
        return
    inner = page.add_axes(
        (
            bounds[0] + bounds[2] * 64 / size[0],
            bounds[1] + bounds[3] * 62 / size[1],
            bounds[2] * (1 - 76 / size[0]),
            bounds[3] * (1 - 88 / size[1]),
        )
    )
    match kind:
        case "timeseries":
            _draw_lines(inner, panel, source, size)
        case "stat":
            inner.remove()
            _draw_numbers(frame, panel)
        case "table":
            inner.remove()
            _draw_table(frame, panel, size)
        case _:
            raise ValueError(f"panel {panel.title}: type {kind} is not drawn here")


def _draw_lines(axes: Axes, panel: Answered, source: Prometheus, size: tuple[float, float]) -> None:
    defaults = panel.defaults
    steps = defaults.get("custom", {}).get("lineInterpolation") == "stepAfter"
    for number, series in enumerate(panel.series):
        points = list(_with_gaps(series.points, source.step_s))
        moments = [datetime.fromtimestamp(seconds, UTC) for seconds, _ in points]
        # Grafana scales by what it is given: an infinite value leaves nothing of the others.
        values = [1e300 if math.isinf(value) else value for _, value in points]
        colour = _LINES[number % len(_LINES)]
        marker = "." if len(values) == 1 else None
        drawstyle = "steps-post" if steps else "default"
        axes.plot(moments, values, color=colour, linewidth=1.2, label=series.legend, drawstyle=drawstyle, marker=marker)
    low, high = axes.get_ylim()
    custom = defaults.get("custom", {})
    axes.set_ylim(defaults.get("min", low), defaults.get("max", max(high, 1.04 * custom.get("axisSoftMax", high))))
    if custom.get("thresholdsStyle", {}).get("mode") in {"line", "dashed"}:
        for step in defaults["thresholds"]["steps"]:
            if step["value"] is not None:
                axes.axhline(step["value"], color=_COLOURS[step["color"]], linewidth=1, linestyle="--")
    axes.set_xlim(*(datetime.fromtimestamp(seconds, UTC) for seconds in (source.start_s, source.end_s)))
    locator = AutoDateLocator(tz=UTC)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC, show_offset=False))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=bool(defaults.get("mappings"))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: text_of(value, defaults)))
    axes.tick_params(labelsize=7, colors=_COLOURS["grey"], length=0)
    axes.grid(color="#ececec", linewidth=0.6)
    for spine in axes.spines.values():
        spine.set_visible(False)
    names = [series.legend for series in panel.series]
    columns = max(1, int(size[0] // (40 + 5.6 * max(map(len, names)))))
    max_named = 2 * columns
    lines = axes.get_lines()[: len(names)][:max_named]
    if len(names) > max_named:
        axes.text(1, 1.01, f"{len(names)} series, {max_named} named", ha="right", size=7, transform=axes.transAxes)
    axes.legend(
        lines,
        names[:max_named],
        loc="upper left",
        bbox_to_anchor=(-0.06, -0.1),
        ncols=columns,
        fontsize=7,
        frameon=False,
        handlelength=1.2,
        columnspacing=1.2,
        labelspacing=0.25,
    )


def _with_gaps(points: Sequence[tuple[float, float]], step_s: float) -> Iterator[tuple[float, float]]:
    """Yield points, and one without a value wherever some are missing."""
    last = math.inf
    for seconds, value in points:
        if seconds - last > 1.5 * step_s:
            yield last + step_s, math.nan
        yield seconds, value
        last = seconds


def _draw_numbers(frame: Axes, panel: Answered) -> None:
    defaults = panel.defaults
    for number, series in enumerate(panel.series):
        value = series.points[-1][1]
        place = (number + 0.5) / len(panel.series)
        text, colour = text_of(value, defaults), _colour(value, defaults)
        frame.text(place, 0.42, text, ha="center", va="center", size=24, color=_COLOURS.get(colour, colour))


def table_of(panel: Answered) -> tuple[list[str], list[list[str]], list[str]]:
    """Return headings, rows of texts and the colour of each row's value of a table panel."""
    defaults = panel.defaults
    names = sorted({name for series in panel.series for name in series.labels})
    columns, titles = ["Time", *names, "Value"], {}
    for change in panel.panel.get("transformations", ()):
        options = change["options"]
        order = options.get("indexByName", {})
        columns = [name for name in columns if not options.get("excludeByName", {}).get(name)]
        columns.sort(key=lambda name, order=order: order.get(name, len(order)))
        titles |= options.get("renameByName", {})
    rows = []
    for series in panel.series:
        seconds, value = series.points[-1]
        time_text = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
        own = {**series.labels, "Time": time_text, "Value": text_of(value, defaults)}
        rows.append([own.get(name, "") for name in columns])
    colours = [_colour(series.points[-1][1], defaults) for series in panel.series]
    return [titles.get(name, name) for name in columns], rows, colours


def _draw_table(frame: Axes, panel: Answered, size: tuple[float, float]) -> None:
    headings, rows, colours = table_of(panel)
    fit = int((size[1] - 44) // 18)
    for column, heading in enumerate(headings):
        x = (8 + column * (size[0] - 16) / len(headings)) / size[0]
        max_characters = int((size[0] - 16) / len(headings) / 6.0)
        frame.text(x, 1 - 34 / size[1], heading[:max_characters], size=8, va="center", weight="bold", color="#1f60c4")
        for number, row in enumerate(rows[:fit]):
            colour = _COLOURS.get(colours[number], colours[number]) if heading == "Value" or column == 0 else "#24292e"
            cut = row[column] if len(row[column]) <= max_characters else row[column][: max_characters - 1] + "…"
            frame.text(x, 1 - (54 + 18 * number) / size[1], cut, size=8, va="center", color=colour)
    if len(rows) > fit:
        frame.text(0.99, 1 - 11 / size[1], f"{len(rows)} rows: scroll", ha="right", va="center", size=7)


def boards() -> dict[str, dict[str, Any]]:
    """Return the committed dashboards by the name of their file."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(OUT.glob("*.json"))}


def main() -> None:
    """Draw all dashboards from a Prometheus that runs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("url", help="base URL of Prometheus")
    parser.add_argument("folder", type=Path, help="folder of the pictures")
    parser.add_argument("--minutes", type=float, default=180.0, help="minutes shown")
    parser.add_argument("--until", type=float, default=time.time(), help="end of the span, seconds since 1970")
    arguments = parser.parse_args()
    source = Prometheus(arguments.url, arguments.until - 60 * arguments.minutes, arguments.until)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, board in boards().items():
        panels = answered(board, source)
        draw(board, panels, source).savefig(arguments.folder / f"{name}.png")
        for panel in panels:
            if panel.why_empty:
                print(f"{name}: {panel.title}: {panel.why_empty}")


if __name__ == "__main__":
    main()
