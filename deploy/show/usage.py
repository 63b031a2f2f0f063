"""The table of stores from state records: the resource nearest to full, and the forecast."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deploy.show.terminal import print_table
from twin.alerts.texts import is_full_now
from twin.playback.demands import Refusals, StoreRefusals
from twin.records import NOT_MEASURED, ResourceUsage, State, fullest_of, resources_of
from twin.units import as_estimate, as_text

_UNLIKELY = 0.05  # a probability below which no time is said

HEADINGS = ("store", "kind", "messages", "used", "total", "unit", "usage", "forecast")
_RIGHT = frozenset({"messages", "used", "total", "usage"})
_LOG = "queue_manager"  # the kind of store that has no resource: nothing of a log can be full


def forecast_text(forecast: Mapping[str, Any] | None) -> str:
    """Return the forecast for the resource that is full first, "" without a forecast.

    Example: `smds/QM01 full in 27 min (24 to 31 min, probability 71 %)`. docs/state.md describes the fields.
    """
    if forecast is None:
        return ""
    first = forecast["resources"][0]
    time_to_full_s = first["time_to_full_s"]
    if time_to_full_s is None:
        return "nothing full within the horizon"
    if first["full_probability"] < _UNLIKELY:
        return f"nothing likely to be full ({first['resource']}: probability {100 * first['full_probability']:.0f} %)"
    if is_full_now(time_to_full_s["p50"]):
        return f"{first['resource']} full now"
    return f"{first['resource']} full in {full_in(time_to_full_s, first['full_probability'])}"


def full_in(time_to_full_s: Mapping[str, Any], probability: float) -> str:
    """Return the time until full with its 10 % to 90 % range: `27 min (24 to 31 min, probability 71 %)`.

    Args:
        time_to_full_s: `p10`, `p50` and `p90`, seconds.
        probability: Probability that it is full within the horizon.
    """
    middle, interval = as_estimate(time_to_full_s["p10"], time_to_full_s["p50"], time_to_full_s["p90"])
    return f"{middle} ({interval}, probability {100 * probability:.0f} %)"


def print_usage(states: Iterable[State], *, stderr: bool = False) -> None:
    """Print the table and notes on the stores, to standard error if `stderr` is true."""
    records = list(states)
    print_table(HEADINGS, usage_lines(records), _RIGHT, stderr=stderr)
    for note in usage_notes(records):
        print(note, file=sys.stderr if stderr else sys.stdout)


def print_refusals(refusals: Mapping[str, StoreRefusals], *, stderr: bool = False) -> None:
    """Print the refusals of each store as recorded, and those by the given estate."""
    headings = ("store", "", "2192", "first 2192", "2053", "gets without message")
    lines = []
    for store, outcome in refusals.items():
        lines.append((store, "recorded", *_refusals(outcome.recorded), ""))
        lines.append((store, "this estate", *_refusals(outcome.replayed), f"{outcome.unserved_gets:,}"))
    print_table(headings, lines, {"2192", "2053", "gets without message"}, stderr=stderr)


def _refusals(refusals: Refusals) -> tuple[str, str, str]:
    first = "none" if refusals.first_full is None else as_text(refusals.first_full)[:19] + "Z"
    return f"{refusals.full:,}", first, f"{refusals.queue_full:,}"


def usage_lines(states: Iterable[State]) -> list[Sequence[str]]:
    """Return a row of `HEADINGS` for each state record of a store that can be full: its resource nearest to full."""
    return [_line(state, fullest_of(resources_of(state))) for state in states if state["kind"] != _LOG]


def _line(state: State, fullest: ResourceUsage | None) -> Sequence[str]:
    messages = NOT_MEASURED if state["messages"] is None else f"{state['messages']:,}"
    row = (state["store"], state["kind"].replace("_", " "), messages)
    if fullest is None:
        return (*row, "", "", "", "", forecast_text(state["forecast"]))
    used = "" if fullest.used is None else f"{fullest.used:,.0f}"
    pct = NOT_MEASURED if fullest.pct is None else f"{fullest.pct:.1f} %"
    return (*row, used, f"{fullest.total:,.0f}", _unit(fullest), pct, forecast_text(state["forecast"]))


def _unit(resource: ResourceUsage) -> str:
    """Return the unit with what it is of and what it can become, such as `blocks of SMDS QM01, up to 2,048`."""
    unit = resource.unit.partition(" (")[0]
    owner = f" of {resource.label}" if unit in ("blocks", "bytes") else ""
    return f"{unit}{owner}" + (f", up to {resource.maximum:,.0f}" if resource.maximum > resource.total else "")


def usage_notes(states: Iterable[State]) -> list[str]:
    """Return lines about what the table cannot show: messages estimated, sizes measured, logs of queue managers."""
    notes = []
    for state in states:
        name = state["store"]
        if state["kind"] == _LOG and state.get("records_to_replay") is not None:
            notes.append(f"{name}: {state['records_to_replay']:,} log records since its last checkpoint")
        if state.get("messages_estimated"):
            more = f"{state['messages_estimated']:,} more messages, one a page or block"
            notes.append(f"{name}: an estimated {more}, as only these were measured")
        for resource, sizes in state.get("sizes_measured", {}).items():
            for field, size in sizes.items():
                values = f"{size['twin']:,} in the twin, {size['measured']:,} measured"
                notes.append(f"{name}, {resource}: {field} is {values}")
    return notes
