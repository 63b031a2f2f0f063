"""The answer of `mqtwin tune`: what each price of a needless call brings, and the line of the estate to paste."""

from __future__ import annotations

from collections.abc import Sequence

from deploy.show.document import PAGE, TERMINAL, Code, Document, Heading, Part, Table, Text, site_period
from twin.estate.model import POLICIES
from twin.reporting.tuning import THRESHOLD, TunedCaller, TunedNight, Tuning
from twin.units import as_count, as_span

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
