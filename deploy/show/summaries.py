"""The last line that a command prints about the events it read or wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from twin.units import as_text

if TYPE_CHECKING:  # `mqtwin replay` and `mqtwin simulate` must not import Kafka
    from streams.kafka.publish import PublishResult
    from streams.kafka.record import RecordResult
    from twin.playback.replays import Replayed
    from twin.simulation import Outcome


def simulated_summary(outcome: Outcome) -> str:
    """Return the summary of `mqtwin simulate`.

    Example: `972,206 events, first 2192 at 2026-11-20T02:01:51Z on QSG1/APP1 (45,522 puts refused), peak usage ...`.
    """
    refused = sum(store.refused for store in outcome.stores.values())
    first_2192 = "no 2192"
    if outcome.first_full is not None:
        time, name = outcome.first_full
        first_2192 = f"first 2192 at {as_text(time)[:19]}Z on {name} ({count_text(refused, 'put')} refused)"
    text = f"{count_text(outcome.events, 'event')}, {first_2192}"
    if outcome.fullest is not None:
        store = outcome.stores[outcome.fullest]
        text += f", peak usage {store.peak_pct:.1f} % of {outcome.fullest}"
        for qmgr, pct in store.peak_smds_pct.items():
            text += f", {pct:.1f} % of smds/{qmgr}" if pct >= 0.05 else ""
    return text


def published_summary(published: PublishResult) -> str:
    """Return the summary of `mqtwin publish`."""
    text = f"{count_text(published.events, 'event')} in {count_text(published.records, 'record')}"
    if published.rejects:
        text += f", {count_text(published.rejects, 'record')} of no store (key ?, dead letters of the stream)"
    return f"{text}, {rate_text(published.events, published.seconds)}"


def recorded_summary(out: Path, recorded: RecordResult, seconds: float) -> str:
    """Return the summary of `mqtwin record`.

    Args:
        out: Path of the recording.
        recorded: Counts of events and records.
        seconds: Run time.
    """
    text = f"{count_text(recorded.events, 'event')} of {count_text(recorded.records, 'record')}"
    if recorded.lost:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(recorded.lost.items()))
        text += f", not recorded because {out.name} cannot hold them: {reasons} (the first: {recorded.first_lost})"
    if recorded.held:
        text += f"; not read: {count_text(recorded.held, 'record')} behind an open transaction"
    if recorded.is_untouched:
        text += f"; {out} is unchanged"
    elif recorded.path != out:
        text += f"; stopped before the end: {out} is unchanged, the events so far are in {recorded.path}"
    return f"{text}, {rate_text(recorded.events, seconds)}"


def replayed_summary(recording: Path, replayed: Replayed) -> str:
    """Return the summary of `mqtwin replay`."""
    return (
        f"{count_text(replayed.events, 'event')}, {count_text(replayed.dead_letters, 'dead letter')}, "
        f"{count_text(len(replayed.alerts), 'alert')}, {rate_text(replayed.events, replayed.seconds)}"
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


def count_text(count: int, noun: str) -> str:
    """Return a number with its noun: `1 event`, `2,000 events`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
