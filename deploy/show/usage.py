"""The table of stores from state records: the resource nearest to full, and the forecast."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from deploy.show.terminal import print_table
from twin.alerts.texts import is_full_now
from twin.conditions import full_reasons
from twin.playback.replays import Refusals, StoreRefusals
from twin.records import (
    NOT_MEASURED,
    QueueManagerState,
    ResourceForecast,
    ResourceUsage,
    StateRecord,
    TimeToFull,
    fullest_of,
    resources_of,
)
from twin.units import as_estimate, as_text

_UNLIKELY = 0.3  # a probability below which no time is said

HEADINGS = ("store", "kind", "messages", "used", "total", "unit", "usage", "forecast")
_RIGHT = frozenset({"messages", "used", "total"})


def forecast_text(first: ResourceForecast | None, lacking: str = "") -> str:
    """Return the forecast for the resource that is full first, "" where nothing rises.

    Example: `smds/QM01 full in 27 min (24 to 31 min, probability 71 %)`. docs/state.md describes the fields.

    Args:
        first: the forecast; None without one.
        lacking: why there is none, as `StateRecord.lacks_levels`.
    """
    if first is None:
        return lacking
    times, probability = first.time_to_full_s, first.full_probability
    if times is None:
        return "nothing full within the horizon"
    if probability < _UNLIKELY:
        return f"nothing likely to be full ({first.resource}: probability {100 * probability:.0f} %)"
    if is_full_now(times.p50):
        return f"{first.resource} full now"
    return f"{first.resource} full in {full_in(times, probability)}"


def full_in(times: TimeToFull, probability: float) -> str:
    """Return the time until full with its 10 % to 90 % range: `27 min (24 to 31 min, probability 71 %)`.

    Args:
        times: the quantiles.
        probability: Probability that it is full within the horizon.
    """
    middle, interval = as_estimate(times.p10, times.p50, times.p90)
    return f"{middle} ({interval}, probability {100 * probability:.0f} %)"


def print_usage(states: Iterable[StateRecord], *, stderr: bool = False) -> None:
    """Print the table and notes on the stores, to standard error if `stderr` is true."""
    records = list(states)
    print_table(HEADINGS, usage_lines(records), _RIGHT, stderr=stderr)
    for note in usage_notes(records):
        print(note, file=sys.stderr if stderr else sys.stdout)


def print_refusals(refusals: Mapping[str, StoreRefusals], kinds: Iterable[str], *, stderr: bool = False) -> None:
    """Print the refusals of each store as recorded, and those by the given estate. kinds: kinds of the stores."""
    full = full_reasons(kinds)
    headings = ("store", "", full, f"first {full}", "2053", "gets without message")
    lines = []
    for store, outcome in refusals.items():
        lines.append((store, "recorded", *_refusals(outcome.recorded), ""))
        lines.append((store, "this estate", *_refusals(outcome.replayed), f"{outcome.unserved_gets:,}"))
    print_table(headings, lines, {full, "2053", "gets without message"}, stderr=stderr)


def _refusals(refusals: Refusals) -> tuple[str, str, str]:
    first = "none" if refusals.first_full is None else as_text(refusals.first_full)[:19] + "Z"
    return f"{refusals.full:,}", first, f"{refusals.queue_full:,}"


def usage_lines(states: Iterable[StateRecord]) -> list[Sequence[str]]:
    """Return a row of `HEADINGS` for each state record of a store that can be full: its resource nearest to full."""
    return [
        _line(state, fullest_of(resources_of(state))) for state in states if not isinstance(state, QueueManagerState)
    ]


def _line(state: StateRecord, fullest: ResourceUsage | None) -> Sequence[str]:
    messages = NOT_MEASURED if state.messages is None else f"{state.messages:,}"
    row = (state.store, state.kind.replace("_", " "), messages)
    if fullest is None:
        return (*row, "", "", "", "", forecast_text(state.first, state.lacks_levels))
    used = "" if fullest.used is None else f"{fullest.used:,.0f}"
    usage = fullest.text.replace(" in use", "", 1)  # `unit` says what it can grow to
    return (*row, used, f"{fullest.total:,.0f}", _unit(fullest), usage, forecast_text(state.first, state.lacks_levels))


def _unit(resource: ResourceUsage) -> str:
    """Return the unit with what it is of and what it can become, such as `blocks of SMDS QM01, up to 2,048`."""
    unit = resource.bare_unit
    owner = f" of {resource.label}" if unit in ("blocks", "bytes") else ""
    return f"{unit}{owner}" + (f", up to {resource.maximum:,.0f}" if resource.can_grow else "")


def usage_notes(states: Iterable[StateRecord]) -> list[str]:
    """Return lines about what the table cannot show: messages estimated, sizes measured, logs of queue managers."""
    notes = []
    for state in states:
        name = state.store
        if isinstance(state, QueueManagerState) and state.records_to_replay is not None:
            notes.append(f"{name}: {state.records_to_replay:,} log records since its last checkpoint")
        if state.lacks_levels and state.first is None:
            notes.append(f"{name}: time to full {state.lacks_levels}")
        if state.messages_estimated:
            more = f"{state.messages_estimated:,} more messages, one a page or block"
            notes.append(f"{name}: an estimated {more}, as only these were measured")
        for resource, sizes in state.sizes_measured.items():
            for field, size in sizes.items():
                values = f"{size.twin:,} in the twin, {size.measured:,} measured"
                notes.append(f"{name}, {resource}: {field} is {values}")
    return notes
