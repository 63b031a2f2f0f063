"""The line with which a command that works through events ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from twin.units import as_text

if TYPE_CHECKING:  # each command imports what it needs, and only streams needs Kafka
    from streams.kafka.publish import Published
    from streams.kafka.record import Recorded
    from twin.replays import Replayed
    from twin.simulation import Outcome


def simulated_summary(outcome: Outcome) -> str:
    """`972,206 events, first 2192 at 2026-11-20T02:01:51Z on QSG1/APP1 (45,522 puts refused), peak usage ...`."""
    refused = sum(store.refused for store in outcome.stores.values())
    full = "no 2192"
    if outcome.first_full is not None:
        time, name = outcome.first_full
        full = f"first 2192 at {as_text(time)[:19]}Z on {name} ({counted(refused, 'put')} refused)"
    said = f"{counted(outcome.events, 'event')}, {full}"
    if outcome.fullest is not None:
        store = outcome.stores[outcome.fullest]
        said += f", peak usage {store.peak_pct:.1f} % of {outcome.fullest}"
        for qmgr, pct in store.peak_smds_pct.items():
            said += f", {pct:.1f} % of smds/{qmgr}" if pct >= 0.05 else ""
    return said


def published_summary(published: Published) -> str:
    """The line of `mqtwin publish`."""
    said = f"{counted(published.events, 'event')} in {counted(published.records, 'record')}"
    if published.rejects:
        said += f", and {counted(published.rejects, 'record')} that no store takes (key ?: dead letters of the stream)"
    return f"{said}, {per_second(published.events, published.seconds)}"


def recorded_summary(out: Path, recorded: Recorded, seconds: float) -> str:
    """The line of `mqtwin record`."""
    said = f"{counted(recorded.events, 'event')} of {counted(recorded.records, 'record')}"
    if recorded.lost:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(recorded.lost.items()))
        said += f", and what {out.name} cannot hold: {reasons} (the first: {recorded.first_lost})"
    if recorded.is_untouched:
        said += f": {out} stays as it was"
    elif recorded.path != out:
        said += f", stopped before the end: {out} stays as it was, what came is in {recorded.path}"
    return f"{said}, {per_second(recorded.events, seconds)}"


def replayed_summary(recording: Path, replayed: Replayed) -> str:
    """The line of `mqtwin replay`."""
    return (
        f"{counted(replayed.events, 'event')}, {counted(replayed.dead_letters, 'dead letter')}, "
        f"{counted(len(replayed.alerts), 'alert')}, {per_second(replayed.events, replayed.seconds)}"
        f"{why_rejected(recording, replayed)}"
    )


def why_rejected(recording: Path, replayed: Replayed) -> str:
    """Return the end of the summary: the dead letters by reason, and where the first one stands; "" without any."""
    first = replayed.first_reject
    if first is None:
        return ""
    by_reason = ", ".join(f"{reason} {count:,}" for reason, count in replayed.reasons.items())
    unit = "row" if recording.suffix == ".arrow" else "line"
    return f"; dead letters: {by_reason}; first: {unit} {first.index + 1:,}: {first.reason}: {first.detail}"


def per_second(count: int, seconds: float) -> str:
    """A rate for a summary line: `1,234,567 events/s`."""
    return f"{count / max(seconds, 1e-3):,.0f} events/s"


def counted(count: int, what: str) -> str:
    """`1 event`, `2,000 events`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
