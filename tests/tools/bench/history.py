"""Performance by release: a line of `docs/performance-history.jsonl` each, a section of the page, a picture.

`make bench ARGS=--release` appends the line of the version that it measured, or replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import msgspec
from matplotlib.figure import Figure

from tests.tools.bench.calibration import QUIET, share_of_best
from tests.tools.bench.report import Report
from tests.tools.bench.wording import markdown, ms, rate
from twin.base.errors import UsageError
from twin.base.outputs import write_output
from twin.playback.pictures import INK, SHADES, STYLE, save

LINES, PICTURE = "performance-history.jsonl", "images/performance-history.svg"
_RATE = 1_000  # events/s of the latency that is followed


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a release.

    Args:
        version: mqtwin.
        date: day of the run.
        machine: cores, memory, system.
        is_quiet: whether nothing else slowed the machine down.
        arrow: Arrow events/s, Kafka to Kafka.
        ndjson: NDJSON events/s.
        json: JSON events/s.
        alert_p50_ms: milliseconds from an event to its alert at 1,000 events/s, median.
        alert_p99_ms: the same, 99 % of the alerts.
        restart_s: seconds until the first batch after a kill with 10,000,000 messages held.
        message_bytes: memory of a message held.
    """

    version: str
    date: str
    machine: str
    is_quiet: bool
    arrow: float
    ndjson: float
    json: float
    alert_p50_ms: float
    alert_p99_ms: float
    restart_s: float
    message_bytes: float


def of_report(report: Report, version: str) -> Release:
    """Return the line of a whole run. Raises UsageError if a part was not measured."""
    ways = {name: report.way(name) for name in ("Arrow", "NDJSON", "JSON")}
    latency = next((each for each in report.latency or () if each.rate == _RATE), None)
    if None in ways.values() or latency is None or report.restart is None or report.kernel is None:
        raise UsageError("a line of the history needs a whole run; expected: make bench ARGS=--release")
    rates = {name: way.job.rate for name, way in ways.items() if way is not None}
    return Release(
        version=version,
        date=report.date,
        machine=report.machine,
        is_quiet=all(share_of_best(report.calibrations, each) >= QUIET for each in report.calibrations),
        arrow=round(rates["Arrow"], -3),
        ndjson=round(rates["NDJSON"], -3),
        json=round(rates["JSON"], -3),
        alert_p50_ms=round(1000 * latency.percentile(50)),
        alert_p99_ms=round(1000 * latency.percentile(99)),
        restart_s=round(report.restart.seconds, 1),
        message_bytes=round(report.kernel.array_bytes),
    )


def read(docs: Path) -> list[Release]:
    """Return the releases so far, in the order of the file; none where there is no file."""
    path = docs / LINES
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=Release) for line in lines]


def append(release: Release, docs: Path) -> None:
    """Write the line of a release behind the others; one that its version has already is replaced."""
    others = [other for other in read(docs) if other.version != release.version]
    write_output(docs / LINES, b"".join(msgspec.json.encode(each) + b"\n" for each in [*others, release]).decode())


def section(releases: Sequence[Release]) -> str:
    """Return the section of the page."""
    rows = [
        [
            each.version,
            each.date,
            rate(each.arrow),
            rate(each.ndjson),
            rate(each.json),
            f"{ms(each.alert_p50_ms)}, {ms(each.alert_p99_ms)}",
            f"{each.restart_s:.0f} s",
            f"{each.message_bytes:.0f}",
            "yes" if each.is_quiet else "no",
        ]
        for each in releases
    ]
    head = ["", "measured", "Arrow events/s", "NDJSON", "JSON", "to the alert, p50, p99", "restart", "bytes a message"]
    return f"""## By release

One line of `docs/{LINES}` each, on machines of the same kind; compare with care where one was not quiet.

{markdown([*head, "quiet"], rows)}

![Throughput, latency and restart by release]({PICTURE})"""


def draw(releases: Sequence[Release], docs: Path) -> None:
    """Draw the picture; a hollow dot is of a machine that was not quiet."""
    with mpl.rc_context(STYLE):
        save(_figure(releases), docs / PICTURE)


def _figure(releases: Sequence[Release]) -> Figure:
    figure = Figure(figsize=(8.4, 2.4), layout="constrained")
    panels = figure.subplots(1, 3)
    curves = (
        ("events/s", {"Arrow": "arrow", "NDJSON": "ndjson", "JSON": "json"}),
        ("ms to the alert", {"p99": "alert_p99_ms", "p50": "alert_p50_ms"}),
        ("s to restart", {"": "restart_s"}),
    )
    places = range(len(releases))
    for axes, (label, names) in zip(panels, curves, strict=True):
        for (name, attribute), colour in zip(names.items(), SHADES, strict=False):
            values = [getattr(release, attribute) for release in releases]
            axes.plot(places, values, color=colour, label=name)
            for place, value, release in zip(places, values, releases, strict=True):
                axes.plot(place, value, "o", color=colour, markerfacecolor=colour if release.is_quiet else "white")
        axes.set_ylim(bottom=0)
        axes.set_ylabel(label, color=INK)
        axes.set_xticks(places, [release.version for release in releases])
        axes.margins(x=0.2)
        if len(names) > 1:
            axes.legend(fontsize=7)
    return figure
