"""The numbers of README.md, the quick start, gallery and alerts, written by the runs that these pages describe.

`make numbers` writes them and draws the pictures again (`docs.make_pictures`; `docs.make_screenshots` where there is a
Chromium, `docs.make_dashboards` where there is a Prometheus). tests/test_docs.py compares the pages and the pictures of
terminals with the output.
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest import mock

from deploy.cli import main as mqtwin
from deploy.show.alerts import incident_block
from deploy.show.demo import compare, comparison_lines
from docs import make_dashboards, make_gallery, make_pictures, make_screenshots
from docs.passages import Passage
from twin.base.conditions import PAGE
from twin.base.units import as_span
from twin.estate import load_estate
from twin.records import AlertData, AlertRecord, IncidentChange, Incidents, read_alert_record
from twin.simulation import SideBySide, demo_estate_text, side_by_side_estate_text, simulate
from twin.sizing import ClusterLoad, plan_cluster

ROOT = Path(__file__).parents[1]
README, QUICK_START = ROOT / "README.md", ROOT / "docs" / "quick-start.md"
ALERTS, INCIDENTS = ROOT / "docs" / "alerts.md", ROOT / "docs" / "incidents.md"
CAPACITY = ROOT / "docs" / "capacity.md"
STORE = "QSG1/APP1"  # of the quick start
SEED = 1  # of the quick start, and the default of `mqtwin demo`
_COLUMNS = 110
_TERMINAL = {"COLUMNS": str(_COLUMNS), "TERM": "xterm", "FORCE_COLOR": "1", "TTY_INTERACTIVE": "0"}  # no live progress


def passages() -> list[Passage]:
    """Return the passages of all pages but the gallery, after the runs that write them."""
    with tempfile.TemporaryDirectory() as folder:
        return [*_of_the_quick_start(Path(folder)), *_of_the_demo(Path(folder)), _cores()]


def _of_the_quick_start(folder: Path) -> list[Passage]:
    """Return what the commands of the quick start print, and the alerts of its recording."""
    estate, recording, alerts = folder / "estate.toml", folder / "friday.arrow", folder / "alerts.ndjson"
    larger, later = folder / "larger.toml", folder / "later.ndjson"
    estate.write_text(demo_estate_text(), encoding="utf-8")
    larger.write_text(_with_size(demo_estate_text(), "768M"), encoding="utf-8")
    simulated = _printed("simulate", "getter-outage", "--estate", estate, "-o", recording, "--seed", SEED)
    replayed = _printed("replay", recording, "--estate", estate, "--alerts", alerts)
    _printed("replay", recording, "--estate", larger, "--alerts", later)
    demanded = _printed("replay", recording, "--estate", larger, "--demands")
    records = _records(alerts)
    by_call = _changes(records)
    first = re.findall(rf"^{STORE} +(?:recorded|this estate) +[\d,]+ +(\S+ \S+) UTC", demanded, re.MULTILINE)
    first_2192 = [f"{time}Z" for time in first]
    refused = re.search(r"\(([\d,]+) puts refused\)", simulated)
    assert refused is not None
    lead = _between(by_call[1].record.data.time, first_2192[0])
    thresholds = [next(record for record in _records(path) if _is_threshold(record)) for path in (alerts, later)]
    return [
        Passage(README, r"then `(\d+) puts refused with 2192`", refused[1].replace(",", "")),
        Passage(README, r"^```text\n(full ~.*?)\n```$", _page(by_call[1].record.data)),
        Passage(README, r"A page, (\S+ \S+) before", as_span(lead)),
        Passage(
            ALERTS,
            r"^```text\n( (?:warning|critical|full)  .*?)\n```$",
            _to_first_action(incident_block(by_call[1], _COLUMNS).plain),
        ),
        Passage(ALERTS, r"stopped: this page comes (\S+ \S+) before", as_span(lead)),
        Passage(QUICK_START, r"^\$ mqtwin simulate [^\n]*\n(.*?), peak usage", simulated.partition(", peak usage")[0]),
        Passage(QUICK_START, r"--state state\.ndjson\n(.*?)\n```$", replayed),
        Passage(QUICK_START, r"--demands\n(.*?)\n```$", demanded),
        Passage(QUICK_START, r"reached (\S+ \S+) later", _later(*(record.data.time for record in thresholds))),
        Passage(QUICK_START, r"is full (\S+ \S+) later", _later(*first_2192)),
        Passage(ALERTS, r'^```json title="alert"\n(.*?)\n```$', _as_json(_first_forecast(alerts))),
        Passage(INCIDENTS, r"the topic has (\d+) records", str(len(records))),
    ]


def _page(alert: AlertData) -> str:
    """Return what the person who is called reads: the brief, and the best action."""
    best = alert.runbook[0]
    return "\n".join([*alert.brief, f"-> {best.summary}: {best.effect}"])


def _of_the_demo(folder: Path) -> list[Passage]:
    """Return the table that `mqtwin demo` prints at its end."""
    path, recording, alerts = folder / "demo.toml", folder / "demo.arrow", folder / "demo.ndjson"
    path.write_text(side_by_side_estate_text(), encoding="utf-8")
    estate = load_estate(path)
    simulate(SideBySide(), estate, recording, SEED)
    _printed("replay", recording, "--estate", path, "--alerts", alerts)
    headings, lines = comparison_lines(compare(recording, estate, _records(alerts), SideBySide().planned(estate)))
    rows = [headings, *lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows]
    return [Passage(README, r"^```text\n(in this run.*?)\n```$", "\n".join("  ".join(row).rstrip() for row in table))]


def _cores() -> Passage:
    """Return the table of cores, by the plans of `mqtwin size cluster`."""
    stores, formats = (10, 100, 1_000, 10_000), ("json", "arrow")
    lines = [
        f"| events/s | {' | '.join(f'{number:,} stores' for number in stores)} |",
        f"| ---: |{' ---: |' * len(stores)}",
    ]
    for rate in (1_000, 10_000, 100_000, 1_000_000):
        plans = [[plan_cluster(ClusterLoad(rate, number, name)).cores for name in formats] for number in stores]
        cells = (f"{json:,}" if json == arrow else f"{json:,}; Arrow {arrow:,}" for json, arrow in plans)
        lines.append(f"| {rate:,} | {' | '.join(cells)} |")
    return Passage(CAPACITY, r"<!-- make numbers: cores -->\n\n(.*?)\n\n<!-- end -->", "\n".join(lines))


def _printed(*arguments: object) -> str:
    """Return what a command prints on a terminal of 110 columns, without colours and without its speed."""
    output = io.StringIO()
    with mock.patch.dict(os.environ, _TERMINAL), redirect_stdout(output), redirect_stderr(output):
        status = mqtwin([str(argument) for argument in arguments])
    assert status == 0, output.getvalue()
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", output.getvalue())
    lines = [line.rstrip() for line in plain.splitlines()]
    return re.sub(r"[\d,]+ events/s", "...", "\n".join(line for line in lines if line))


def _with_size(toml: str, size: str) -> str:
    """Return an estate with another size of the structure."""
    table = re.escape(f'[structure."{STORE}"]')
    text, count = re.subn(rf'({table}[^\[]*?\nsize = )"\w+"', rf'\g<1>"{size}"', toml)
    assert count == 1
    return text


def _records(path: Path) -> list[AlertRecord]:
    return [read_alert_record(line) for line in path.read_bytes().splitlines()]


def _changes(records: Iterable[AlertRecord]) -> list[IncidentChange]:
    """Return the first change of an incident by a forecast, and the first that is a page."""
    incidents = Incidents()
    changes = [change for record in records for change in incidents.take(record)]
    foreseen = [change for change in changes if change.record.data.condition == "full-forecast"]
    return [foreseen[0], next(change for change in foreseen if change.record.data.level == PAGE)]


def _to_first_action(block: str) -> str:
    """Return the lines of an alert down to the name of its first action."""
    head, arrow, actions = block.partition("\n    -> ")
    return head + arrow + actions.partition("\n")[0]


def _first_forecast(path: Path) -> dict[str, Any]:
    records: Iterable[dict[str, Any]] = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return next(record for record in records if record["data"]["condition"] == "full-forecast")


def _is_threshold(record: AlertRecord) -> bool:
    return record.data.condition == "threshold" and record.data.store == STORE


def _between(first: str, last: str) -> float:
    """Return the seconds between two times, RFC 3339."""
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def _later(first: str, last: str) -> str:
    return as_span(_between(first, last))


def _as_json(record: dict[str, Any]) -> str:
    """Return the JSON of an alert, an entry of `data` to a line."""
    lines = [f'  "{name}": {_inline(value)},' for name, value in record.items() if name != "data"]
    of_data = [f'    "{name}": {_entry(value)}' for name, value in record["data"].items()]
    return "\n".join(["{", *lines, '  "data": {', ",\n".join(of_data), "  }", "}"])


def _inline(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _entry(value: object) -> str:
    """Return a value on one line, elements of a list of sentences or of actions on one each."""
    if isinstance(value, list) and value and (isinstance(value[0], str) or "steps" in value[0]):
        return "[\n" + ",\n".join(f"      {_inline(element)}" for element in value) + "\n    ]"
    return _inline(value)


def main() -> int:
    """Write the passages, and draw the pictures."""
    for passage in (*passages(), *map(make_gallery.passage, make_gallery.incidents())):
        passage.write()
        print(f"{passage.page.relative_to(ROOT)}: {passage.text.splitlines()[0]}")
    make_pictures.main()
    return make_screenshots.main() or make_dashboards.main()


if __name__ == "__main__":
    raise SystemExit(main())
