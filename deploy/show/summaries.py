"""The last lines of a command about the events that it read or wrote, and the report of a feed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from twin.conditions import Pool, Resource, full_reasons
from twin.units import as_count, as_text

if TYPE_CHECKING:  # `mqtwin replay` and `mqtwin simulate` must not import Kafka
    from streams.kafka.publish import PublishResult
    from streams.kafka.record import RecordResult
    from twin.playback.replays import Replayed
    from twin.simulation import Outcome
import sys
from collections.abc import Iterable, Iterator

from deploy.show.terminal import print_table
from twin.feeds import Complaint, Intake
from twin.units import as_span

_MAX_LINES = 20  # of each kind
_HEADINGS = ("source", "qmgr", "name", "from", "to", "intervals", "longest", "missing", "puts", "gets", "peak ±")
_RIGHT = {"intervals", "longest", "missing", "puts", "gets", "peak ±"}


def simulated_summary(outcome: Outcome, kinds: Iterable[str]) -> str:
    """Return the summary of `mqtwin simulate`. kinds: kinds of the estate's stores.

    Example: `972,206 events, first 2192 at 2026-11-20T02:01:51Z on QSG1/APP1 (45,522 puts refused), peak usage ...`.
    """
    refused = sum(store.refused for store in outcome.stores.values())
    reason = full_reasons(kinds)
    first_full = f"no {reason}"
    if outcome.first_full is not None:
        time, name = outcome.first_full
        first_full = f"first {reason} at {as_text(time)[:19]}Z on {name} ({as_count(refused, 'put')} refused)"
    text = f"{as_count(outcome.events, 'event')}, {first_full}"
    if outcome.fullest is not None:
        store = outcome.stores[outcome.fullest]
        text += f", peak usage {store.peak_pct:.1f} % of {outcome.fullest}"
        for qmgr, pct in store.peak_smds_pct.items():
            text += f", {pct:.1f} % of {Resource(Pool.SMDS, qmgr)}" if pct >= 0.05 else ""
    return text


def published_summary(published: PublishResult) -> str:
    """Return the summary of `mqtwin publish`."""
    text = f"{as_count(published.events, 'event')} in {as_count(published.records, 'record')}"
    if published.rejects:
        text += f", {as_count(published.rejects, 'record')} of no store (key ?, dead letters of the stream)"
    return f"{text}, {rate_text(published.events, published.seconds)}"


def recorded_summary(out: Path, recorded: RecordResult, seconds: float) -> str:
    """Return the summary of `mqtwin record`.

    Args:
        out: Path of the recording.
        recorded: Counts of events and records.
        seconds: Run time.
    """
    text = f"{as_count(recorded.events, 'event')} of {as_count(recorded.records, 'record')}"
    if recorded.lost:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(recorded.lost.items()))
        text += f", not recorded: {reasons} (the first: {recorded.first_lost})"
    if recorded.held:
        text += f"; not read: {as_count(recorded.held, 'record')} behind an open transaction"
    if recorded.is_untouched:
        text += f"; {out} is unchanged"
    elif recorded.path != out:
        text += f"; stopped before the end: {out} is unchanged, the events so far are in {recorded.path}"
    return f"{text}, {rate_text(recorded.events, seconds)}"


def replayed_summary(recording: Path, replayed: Replayed) -> str:
    """Return the summary of `mqtwin replay`."""
    return (
        f"{as_count(replayed.events, 'event')}, {as_count(replayed.dead_letters, 'dead letter')}, "
        f"{as_count(len(replayed.alerts), 'alert')}, {rate_text(replayed.events, replayed.seconds)}"
        f"{reject_text(recording, replayed)}"
    )


def reject_text(recording: Path, replayed: Replayed) -> str:
    """Return the end of the summary: dead letters by reason, and the position of the first; "" if there are none."""
    first = replayed.first_reject
    if first is None:
        return ""
    by_reason = ", ".join(f"{reason} {count:,}" for reason, count in replayed.reasons.items())
    unit = "row" if recording.suffix == ".arrow" else "line"
    return f"; dead letters: {by_reason}; first: {unit} {first.index + 1:,}: {first.reason}: {first.detail}"


def rate_text(count: int, seconds: float) -> str:
    """Return a rate: `1,234,567 events/s`."""
    return f"{count / max(seconds, 1e-3):,.0f} events/s"


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
    print_inputs(intake)
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


def print_inputs(intake: Intake) -> None:
    """Print how much of each input was read, passed over and not understood."""
    for line in intake.lines_for_inputs():
        print(f"mqtwin: {line}", file=sys.stderr)


def print_not_understood(*intakes: Intake) -> None:
    """Print the last lines of a command: inputs of which more than a tenth was not understood."""
    for intake in intakes:
        for line in intake.lines_for_not_understood():
            print(f"mqtwin: warning: {line}", file=sys.stderr)


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
