"""The table of README.md that `mqtwin demo` prints at its end.

`.venv/bin/python -m docs.make_demo_table` writes it again; tests/deploy/test_demo.py compares it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import twin
from deploy.show.verdict import compare, comparison_lines
from twin.estate import Estate
from twin.records import read_alert_record
from twin.simulation import SideBySide, side_by_side_estate, simulate

PAGE = Path(__file__).parents[1] / "README.md"
BEGIN, END = "```text\nin this run", "\n```\n"
SEED = 1  # default of `mqtwin demo`


def demo_table(recording: Path, estate: Estate) -> str:
    """Return the table about the demo's recording, with the alerts of a replay."""
    alerts = [read_alert_record(alert.record()) for alert in twin.replay(recording, estate, course=False).alerts]
    headings, lines = comparison_lines(compare(recording, estate, alerts))
    rows = [headings, *lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    )


def table_of(page: str) -> str:
    """Return the table that a page has."""
    return BEGIN.partition("\n")[2] + page.partition(BEGIN)[2].partition(END)[0]


def main() -> None:
    """Write the table into the page."""
    estate = side_by_side_estate()
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / "demo.arrow"
        simulate(SideBySide(), estate, recording, SEED)
        text = demo_table(recording, estate)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.replace(table_of(page), text), encoding="utf-8")


if __name__ == "__main__":
    main()
