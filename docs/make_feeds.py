"""The table of fields by format in docs/feeds-formats.md, generated from the tables of the readers.

`python -m docs.make_feeds` writes it; tests/test_docs.py compares the page with the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from twin.feeds import metrics, odp, rmf, smf_layout
from twin.feeds.smf_layout import QEST_SLOT, SECTIONS

PAGE = Path(__file__).parent / "feeds-formats.md"
BEGIN, END = "<!-- fields: begin, by python -m docs.make_feeds -->\n", "<!-- fields: end -->\n"


def main() -> None:
    """Write the table into the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}", encoding="utf-8")


def table() -> str:
    """Return the table: per format and part of its data the names that are read."""
    lines = [f"| {' | '.join(cells)} |\n" for cells in _rows()]
    return "".join(("| format | part | read |\n", "| --- | --- | --- |\n", *lines))


def _rows() -> Iterator[tuple[str, str, str]]:
    for section in (*SECTIONS.values(), QEST_SLOT):
        yield "`smf`", section.eyecatcher, ", ".join(field.name for field in section.fields)
    for part in smf_layout.FACILITY_SECTIONS:
        yield "`smf`", f"74/4 {part.eyecatcher}", ", ".join(field.name for field in part.fields)
    yield "`rmf`", "STRUCTURE SUMMARY", "ALLOC SIZE, LST/DIR ENTRIES, DATA ELEMENTS"
    counts = sorted(metrics.NAMES - {row.name for row in (*metrics.PAGES, *metrics.QUEUE_FILE)})
    yield "`prometheus`, `mq_json`", "queues: counts", _codes(counts)
    yield "`prometheus`, `mq_json`", "queue files", _fields(metrics.QUEUE_FILE)
    yield "`prometheus`, `mq_json`", "page sets", _fields(metrics.PAGES)
    yield "`dds`", "CFACT", _fields(chain(rmf.STRUCTURE, rmf.STRUCTURE_SCM))
    yield "`dds`", "CFOVER", _fields(chain(rmf.FACILITY, rmf.FACILITY_SCM))
    yield "`m3`", "coupling facilities", _fields(rmf.M3)
    for name, own in odp.METRICS.items():
        yield "`odp`", name, _fields(own)


def _codes(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _fields(rows: Iterator[metrics.Row] | tuple[metrics.Row, ...]) -> str:
    units = {1: "", 1 << 20: " MiB"}
    return ", ".join(f"`{row.name}`{units[row.unit]}: {row.field}" for row in rows)


if __name__ == "__main__":
    main()
