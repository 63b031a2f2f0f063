"""The report of a feed on standard error: complaints, unknown names, coverage."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from deploy.show.table import print_table
from twin.feeds import Complaint, Intake
from twin.units import as_span, as_text

_MAX_LINES = 20  # of each kind

_HEADINGS = ("source", "qmgr", "name", "from", "to", "intervals", "longest", "missing", "puts", "gets", "peak ±")
_RIGHT = {"intervals", "longest", "missing", "puts", "gets", "peak ±"}


class ComplaintPrinter:
    """Prints complaints as they come. printed: their number."""

    def __init__(self) -> None:
        self.printed = 0

    def __call__(self, complaint: Complaint) -> None:
        """Print a complaint."""
        self.printed += 1
        print(f"mqtwin: warning: {complaint}", file=sys.stderr)


def print_intake(intake: Intake, printed: int = 0) -> None:
    """Print complaints, what was passed over, unknown names, peaks, and the table of coverage.

    Args:
        intake: the intake.
        printed: number of its complaints that were printed as they came.
    """
    print_complaints(intake, printed)
    for store, peak in sorted(intake.peaks.items()):
        text = f"{store}: at least {peak.entries:,} entries and {peak.elements:,} elements were in use"
        full = f", full {peak.full:,} times" if peak.full else ""
        print(f"mqtwin: {text}, at the latest {as_text(peak.time)[:19]}Z{full}", file=sys.stderr)
    if intake.coverage:
        print_table(_HEADINGS, list(_rows(intake)), _RIGHT, stderr=True)


def print_complaints(intake: Intake, printed: int = 0) -> None:
    """Print complaints, what was passed over, unknown names with their lines for the estate.

    printed: as of `print_intake`.
    """
    for line in _lines(intake, printed):
        print(f"mqtwin: {line}", file=sys.stderr)


def _lines(intake: Intake, printed: int) -> Iterator[str]:
    examples = intake.complaints[printed : printed + _MAX_LINES]
    yield from (f"warning: {complaint}" for complaint in examples)
    if sum(intake.counts.values()) > printed + len(examples):
        yield "warning: more like these: " + ", ".join(f"{code} {n:,}" for code, n in sorted(intake.counts.items()))
    yield from (f"passed over: {line}" for line in intake.lines_for_passed_over())
    unknown = intake.lines_for_unknown()
    yield from (f"unknown: {line}" for line in unknown[:_MAX_LINES])
    if len(unknown) > _MAX_LINES:
        yield f"unknown: {len(unknown) - _MAX_LINES:,} more names"


def _rows(intake: Intake) -> Iterator[list[str]]:
    for _, cover in sorted(intake.coverage.items()):
        yield [
            cover.source,
            cover.qmgr,
            cover.name,
            as_text(cover.start)[:19].replace("T", " "),
            as_text(cover.end)[:19].replace("T", " "),
            f"{cover.intervals:,}",
            as_span(cover.longest_us / 1e6),
            as_span(cover.gaps_us / 1e6),
            f"{cover.puts:,}",
            f"{cover.gets:,}",
            f"{cover.peak_error:,}",
        ]
