"""``mqtwin tune`` and ``mqtwin compare``: the price of a needless call, and two estates, tried on recordings."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.options.common import EstateFile, Flag, InputFile, KafkaOptions, OutputFile, open_estate, record_events
from deploy.show.document import PAGE, TERMINAL, Code, Document, Heading, Part, Table, Text, site_period, site_time
from deploy.show.summaries import show_progress
from deploy.show.terminal import emit
from twin.base.errors import UsageError
from twin.base.units import as_count, as_span
from twin.estate import Estate
from twin.estate.model import POLICIES
from twin.reporting.records import ComparedNight, StoreNight
from twin.reporting.records import compare as compare_estates
from twin.reporting.tuning import THRESHOLD, VALUES, TunedCaller, TunedNight, Tuning
from twin.reporting.tuning import tune as tune_recordings

_MAX_NEEDLESS, _MAX_LEAD_S = 1000, 86_400
_Needless = Annotated[float, Parameter(validator=Number(gt=0, lte=_MAX_NEEDLESS))]


def tune(
    *,
    estate: EstateFile,
    recording: Annotated[tuple[InputFile, ...], Parameter(negative="", consume_multiple=True)] = (),
    kafka: KafkaOptions | None = None,
    needless_per_saved: Annotated[tuple[_Needless, ...], Parameter(negative="", consume_multiple=True)] = VALUES,
    page_lead_s: Annotated[float | None, Parameter(validator=Number(gt=0, lte=_MAX_LEAD_S))] = None,
    html: OutputFile | None = None,
    json_: Flag = False,
) -> None:
    """Try on recordings how many needless calls a saved filling is worth: pages, needless, late and missed, leads.

    Each recording, or what the events topic has, is played with every setting; the looks ahead are made once.

    Args:
        estate: Estate file (TOML).
        recording: Recordings to play: .ndjson, .ndjson.zst or .arrow.
        kafka: Kafka connection, instead of recordings.
        needless_per_saved: Settings to try.
        page_lead_s: Seconds that a person needs, to try with them. Default: as in the estate.
        html: File for a page, to hand on.
        json_: Print JSON instead of text.
    """
    if bool(recording) == (kafka is not None):
        raise UsageError("tune: --recording or --bootstrap-servers; expected: one of them")
    loaded = open_estate(estate)
    with tempfile.TemporaryDirectory() as folder:
        paths = recording if kafka is None else (record_events(kafka, Path(folder)),)
        tuning = _tune(paths, loaded, needless_per_saved, page_lead_s)
    emit(tuning_document(tuning), as_json=json_, html=html)


def _tune(paths: Sequence[Path], estate: Estate, values: Sequence[float], page_lead_s: float | None) -> Tuning:
    events = 0
    with show_progress("tune") as advance:

        def on_played(more: int) -> None:
            nonlocal events
            events += more
            advance(None, events)

        processes = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return tune_recordings(
            paths, estate, values=values, page_lead_s=page_lead_s, processes=processes, on_played=on_played
        )


_CELLS = 24  # of a picture
_MAX_NIGHTS = 20  # that are listed
_MAX_NAMED = 2  # stores, in a cell
_HEADINGS = (
    "a filling is worth",
    "pages",
    "in time",
    "late",
    "needless",
    "missed",
    "lead, p50",
    "calls a store and month",
)
_PICTURE = "in time ■ late ▪ needless □"
_LINES = {THRESHOLD: "FULLTHRESHOLD, else 80 %"}
_METHOD = (
    "Each setting was played as if the estate had it; pages are judged as in a report. In brackets: the interval that"
    " contains the figure with 95 % confidence, if nights like these come again. A night is from noon to noon. In the"
    " table of nights a cell has the pages of a setting, and behind a slash those that were needless."
)


def tuning_document(tuning: Tuning) -> Document:
    """Return the settings with what they bring, the nights that these counts come from, and the line to paste."""
    title = f"Needless calls that a filling heard in time is worth, {site_period(tuning.since, tuning.until)}"
    scope = (
        f"{as_count(tuning.events, 'event')}, {tuning.store_days:,.1f} store-days,"
        f" {as_count(tuning.nights_played, 'night')}, {as_count(tuning.choices[0].fillings, 'filling')}."
    )
    callers = (*tuning.choices, *tuning.lines)
    highest = max(1, *(own.pages for own in callers))
    rows = [(*_cells(own, tuning), _bar(own, highest)) for own in callers]
    parts: list[Part] = [
        Text(title, only=TERMINAL),
        Text(scope),
        Text("", only=TERMINAL),
        Table((*_HEADINGS, _PICTURE), rows, set(_HEADINGS[1:]), {_PICTURE}),
        Heading("Nights"),
        *_nights(tuning),
        Heading("In the estate"),
        Text(_advice(tuning)),
        Code(
            "TOML",
            f"alerts.needless_per_saved = {tuning.quietest:g}",
            f"[alerts]\nneedless_per_saved = {tuning.quietest:g}",
        ),
        Text(_METHOD, is_note=True, only=PAGE),
    ]
    return Document(title, parts, tuning)


def _cells(own: TunedCaller, tuning: Tuning) -> tuple[str, ...]:
    interval = "" if own.interval is None else f" ({own.interval[0]:g} to {own.interval[1]:g})"
    return (
        _name(own, tuning),
        f"{own.pages:,}",
        f"{own.in_time:,}",
        f"{own.late:,}",
        f"{own.needless:,}",
        f"{own.missed:,} of {own.fillings:,}",
        "-" if own.lead_p50_s is None else as_span(own.lead_p50_s),
        f"{own.pages_a_month:g}{interval}",
    )


def _name(own: TunedCaller, tuning: Tuning) -> str:
    """Return a setting as a row names it: `1.5 (balanced, as now)`."""
    if own.needless_per_saved is None:
        return _LINES.get(own.name, own.name)
    value = own.needless_per_saved
    words = [word for word, of_word in POLICIES.items() if of_word == value]
    words += ["as now"] if value == tuning.present else []
    return f"{value:g}" + (f" ({', '.join(words)})" if words else "")


def _bar(own: TunedCaller, highest: int) -> str:
    """Return the pages of a caller as a bar, one cell each if they fit."""
    scale = min(1.0, _CELLS / highest)
    counts = (own.in_time, own.late, own.needless)
    return "".join(sign * round(scale * count) for sign, count in zip("■▪□", counts, strict=True))


def _nights(tuning: Tuning) -> list[Part]:
    """Return the nights in which anything happened, the first of them if they are many."""
    if not tuning.nights:
        return [Text("Nothing filled, and no setting called.")]
    values = [f"{own.needless_per_saved:g}" for own in tuning.choices]
    listed = tuning.nights[:_MAX_NIGHTS]
    rows = [(night.date, _stores(night.stores), f"{night.fillings:,}", *_pages(night)) for night in listed]
    more = len(tuning.nights) - len(listed)
    headings = ("night", "stores", "fillings", *values)
    return [Table(headings, rows, set(headings[2:])), *([Text(f"{as_count(more, 'more night')}.")] if more else [])]


def _stores(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _pages(night: TunedNight) -> list[str]:
    return [
        f"{pages}" + (f"/{needless}" if needless else "")
        for pages, needless in zip(night.pages, night.needless, strict=True)
    ]


def _advice(tuning: Tuning) -> str:
    heard = max(own.fillings - own.missed for own in tuning.choices)
    if not heard:
        return "No filling was heard in time with any setting: these recordings do not choose; the quietest is"
    return f"The quietest setting that warns of the same {as_count(heard, 'filling')} as any other:"


# --- mqtwin compare ---------------------------------------------------------------------------------------------------


def compare(
    old: EstateFile,
    new: EstateFile,
    /,
    *,
    recording: Annotated[tuple[InputFile, ...], Parameter(negative="", consume_multiple=True)],
    json_: Flag = False,
) -> None:
    """Print a Markdown table of what recorded nights would have been under two estates, for a pull request.

    Puts of a recording count as requests: each estate decides which are refused. Gets and measurements happen as
    recorded.

    Args:
        old: Estate file (TOML) as it is.
        new: Estate file (TOML) with the change.
        recording: Recordings: .ndjson, .ndjson.zst or .arrow.
        json_: Print JSON instead of Markdown.
    """
    before, after = open_estate(old), open_estate(new)
    with show_progress("compare") as advance:
        nights = compare_estates(before, after, recording, advance)
    if json_:
        print(msgspec.json.encode(nights).decode())
    else:
        names = (old.name, new.name) if old.name != new.name else ("before", "after")
        print("\n".join(_night(night, *names) for night in nights), end="")


_ABSENT = "not of this estate"


def _night(night: ComparedNight, old: str, new: str) -> str:
    lines = [f"### {night.recording}", ""]
    if night.changed:
        lines += [f"| store | | {old} | {new} |", "| --- | --- | ---: | ---: |"]
        for store, sides in night.changed.items():
            for place, (fact, text) in enumerate(_FACTS.items()):
                before, after = (_ABSENT if side is None else text(side) for side in sides)
                marked = after if before == after else f"**{after}**"
                lines.append(f"| {store if place == 0 else ''} | {fact} | {before} | {marked} |")
        lines.append("")
    same = [store for store in night.stores if store not in night.changed]
    if same:
        lines += [f"The same under both: {', '.join(same)}.", ""]
    if any(night.dead_letters):
        first, second = (as_count(number, "event") for number in night.dead_letters)
        lines += [f"Refused: {first} by {old}, {second} by {new}.", ""]
    return "\n".join(lines)


def _moment(time: int | None) -> str:
    return "none" if time is None else site_time(time)


_FACTS: dict[str, Callable[[StoreNight], str]] = {
    "alerts opened": lambda side: f"{side.alerts:,}",
    "first page": lambda side: _moment(side.first_page),
    "puts refused": lambda side: f"{side.refused:,}",
    "first put refused": lambda side: _moment(side.first_full),
    "lowest head room": lambda side: (
        "not known" if side.head_room_pct is None else f"{side.head_room_pct:.1f} % of {side.fullest}"
    ),
}
