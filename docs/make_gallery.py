"""The tables of docs/gallery.md: what a line at 80 % and the twin said in each of its incidents, and when.

Each comes from the command that the page shows above it, and `make numbers` writes it. The line is on every resource
of a store; pages and verdicts are those of `twin.playback.pages`, as in the report that the command prints.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docs.passages import Passage
from kernels.clock import SECOND
from twin.base.units import as_count, as_microseconds, as_span, as_text
from twin.estate import load_estate
from twin.playback.pages import Alarm, Filling, Verdict, fillings, from_incidents, owner_of, page_verdicts, static_pages
from twin.playback.timeline import Series, play_series
from twin.records import AlertRecord, Change, Incidents, read_alert_record
from twin.simulation import make_scenario, simulate

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "gallery.md"
LINE_PCT = 80.0
_COMMAND = re.compile(r"^\$ mqtwin simulate (\S+) --estate (\S+) -o \S+ --seed (\d+)$", re.MULTILINE)
_MARK = "<!-- make numbers: {} -->\n"


class _Row(NamedTuple):
    """A row of a table. time: microseconds since 1970."""

    time: int
    who: str
    text: str
    verdict: str = ""


def incidents() -> dict[str, tuple[Path, int]]:
    """Return the scenarios of the page in its order, each with the estate and the seed of its command."""
    commands = _COMMAND.findall(PAGE.read_text(encoding="utf-8"))
    return {scenario: (ROOT / estate, int(seed)) for scenario, estate, seed in commands}


def passage(scenario: str) -> Passage:
    """Return the table of one incident, after its run."""
    path, seed = incidents()[scenario]
    estate = load_estate(path)
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / f"{scenario}.arrow"
        simulate(make_scenario(scenario), estate, recording, seed=seed)
        played = play_series(recording, estate)
    records = [read_alert_record(alert.record()) for alert in played.alerts]
    rows = sorted(row for series in played.series.values() for row in _rows(series, records))
    lines = ["| time | who | what | verdict |", "| --- | --- | --- | --- |"]
    lines += [f"| {as_text(row.time)[11:16]} | {row.who} | {row.text} | {row.verdict} |" for row in rows]
    if not any(series.refused.size for series in played.series.values()):
        lines.append("| | | no put was refused | |")
    return Passage(PAGE, re.escape(_MARK.format(scenario)) + r"\n(.*?)\n\n<!-- end -->", "\n".join(lines))


def _rows(series: Series, records: list[AlertRecord]) -> Iterator[_Row]:
    """Yield what happened in a store, and who said what about it."""
    full = fillings(series)
    for filling in full:
        refused = f"{as_count(filling.refused, 'put')} refused until {as_text(filling.last)[11:16]}"
        yield _Row(filling.first, "**2192**", f"{filling.resource} is full: {refused}")
    lines = static_pages(series, LINE_PCT)
    for line, verdict in zip(lines, page_verdicts(series, full, lines), strict=True):
        yield _Row(line.opened, "line", _passed(series, line.opened), _judged(line, verdict, full))
    pages = from_incidents(records, series.store)
    verdicts = page_verdicts(series, full, pages)
    judged = {page.incident: _judged(page, verdict, full) for page, verdict in zip(pages, verdicts, strict=True)}
    for time, incident, change, text in _notices(records, series.store):
        is_page = change is Change.PAGED
        yield _Row(time, "**mqtwin, page**" if is_page else "mqtwin, watch", text, judged[incident] if is_page else "")


def _passed(series: Series, time: int) -> str:
    """Return what passed the line at a time."""
    usage = dict(zip(series.resources, series.usage[series.times.tolist().index(time)].tolist(), strict=True))
    resource = max(usage, key=usage.__getitem__)
    return f"{resource} {usage[resource]:.0f} %"


def _judged(page: Alarm, verdict: Verdict, full: list[Filling]) -> str:
    """Return a verdict in words, with the time to the first 2192 of a page that was in time."""
    owner = owner_of(page, full)
    if verdict is Verdict.IN_TIME and owner is not None:
        return f"{as_span((owner.first - page.opened) / SECOND)} before"
    return str(verdict)


def _notices(records: list[AlertRecord], store: str) -> Iterator[tuple[int, str, Change, str]]:
    """Yield (time, incident, change, brief) where an incident of a store opened or became a page."""
    incidents_of_store = Incidents()
    for record in records:
        if record.data.store == store:
            for incident, change, own in incidents_of_store.take(record):
                if change in (Change.WATCHED, Change.PAGED):
                    yield as_microseconds(own.data.time), incident.id, change, "; ".join(own.data.brief[:2])
