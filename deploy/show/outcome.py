"""What the commands that make recordings share: times in options, and the line that says what came out."""

from __future__ import annotations

from deploy.show.progress import counted
from twin.errors import UsageError
from twin.events import EventError
from twin.events.fields import FIELD
from twin.simulation import Outcome
from twin.units import as_text


def start_time(text: str) -> int:
    """Microseconds since 1970 of --start. UsageError where it is no time of an event."""
    try:
        return int(FIELD["time"].checked(text))
    except EventError as error:
        raise UsageError(f"--start: {error.detail}") from None


def summary(outcome: Outcome) -> str:
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
