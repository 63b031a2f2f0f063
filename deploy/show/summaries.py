"""Last lines of a command, and the live line that shows its progress.

- The last lines are the usage of stores, events read or written, and what a feed made of its inputs.
- The live line is for what takes long: events that are read or written, kernels that compile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text as RichText
from typing_extensions import override

from deploy.show.document import ZONE, Table, Text, site_time
from deploy.show.terminal import print_line, printable, show
from twin.base.conditions import Pool, Resource, full_reasons
from twin.base.units import as_count, as_estimate, as_span
from twin.events import Event, Reject
from twin.feeds import Complaint, Intake
from twin.recordings.files import Chunk, LinesChunk
from twin.recordings.share import Shared
from twin.records import (
    NOT_MEASURED,
    QueueManagerState,
    ResourceForecast,
    ResourceUsage,
    StateRecord,
    TimeToFull,
    fullest_of,
    resources_of,
    rise_text,
)

if TYPE_CHECKING:  # `mqtwin replay` and `mqtwin simulate` must not import Kafka
    from streams.kafka.publish import PublishResult
    from streams.kafka.record import RecordResult
    from twin.playback.replays import Refusals, Replayed, StoreRefusals
    from twin.simulation import Outcome


HEADINGS = ("store", "kind", "messages", "used", "total", "unit", "usage", "forecast")
_MAX_LINES = 20  # of each kind
_COVERAGE = ("source", "qmgr", "name", "from", "to", "intervals", "longest", "missing", "puts", "gets", "peak ±")


# --- usage of stores -------------------------------------------------------------------------------------------------


def print_usage(states: Iterable[StateRecord], *, has_forecast: bool = True, stderr: bool = False) -> None:
    """Print a row for each store, its resource nearest to full, and notes on stores."""
    records = list(states)
    columns = slice(None if has_forecast else -1)
    rows = [row[columns] for row in usage_lines(records)]
    notes = usage_notes(records, has_forecast=has_forecast)
    show(Table(HEADINGS[columns], rows, {"messages", "used", "total"}), *map(Text, notes), stderr=stderr)


def usage_lines(states: Iterable[StateRecord]) -> list[Sequence[str]]:
    """Return a row of `HEADINGS` for each state record of a store that can be full: its resource nearest to full."""
    return [
        _line(state, fullest_of(resources_of(state))) for state in states if not isinstance(state, QueueManagerState)
    ]


def _line(state: StateRecord, fullest: ResourceUsage | None) -> Sequence[str]:
    messages = NOT_MEASURED if state.messages is None else f"{state.messages:,}"
    row = (state.store, state.kind.replace("_", " "), messages)
    if fullest is None:
        return (*row, "", "", "", "", _forecast_of(state))
    used = "" if fullest.used is None else f"{fullest.used:,.0f}"
    total = f"{fullest.total:,.0f}" if fullest.total else ""
    usage = fullest.text.replace(" in use", "", 1)  # `unit` says what it can grow to
    return (*row, used, total, _unit(fullest), usage, _forecast_of(state))


def _forecast_of(state: StateRecord) -> str:
    return forecast_text(state.first, state.lacks_levels_in(ZONE.get()), state.lacks_limits)


def _unit(resource: ResourceUsage) -> str:
    """Return the unit with what it is of and what it can become, such as `blocks of SMDS QM01, up to 2,048`."""
    unit = resource.bare_unit
    owner = f" of {resource.label}" if unit in ("blocks", "bytes") else ""
    return f"{unit}{owner}" + (f", up to {resource.maximum:,.0f}" if resource.can_grow else "")


def unread_lines(events: Iterable[Event]) -> list[str]:
    """Return a line for each queue that holds messages and that nobody has open for input, by measurements of it."""
    lines = {}
    for event in events:
        measured = event.get("measured", {})
        for queue in measured.get("queues") or ():
            if queue.get("depth") and queue.get("getters") == 0:
                asked = ", ".join(measured.get("asked") or ()) or event["qmgr"]
                oldest = f", the oldest {as_span(queue['oldest_s'])} old" if queue.get("oldest_s") else ""
                text = (
                    f"{as_count(queue['depth'], 'message')}{oldest}, and nobody has it open for input ({asked} asked)"
                )
                lines[event["store"], queue["name"]] = f"{event['store']}, queue {queue['name']}: {text}"
    return [lines[key] for key in sorted(lines)]


def usage_notes(states: Iterable[StateRecord], *, has_forecast: bool = True) -> list[str]:
    """Return lines about what the table cannot show: messages estimated, sizes measured, logs of queue managers.

    has_forecast: as of `print_usage`.
    """
    notes = []
    for state in states:
        name = state.store
        if isinstance(state, QueueManagerState) and state.records_to_replay is not None:
            notes.append(f"{name}: {state.records_to_replay:,} log records since its last checkpoint")
        if has_forecast and state.lacks_levels and state.first is None:
            notes.append(f"{name}: time to full {state.lacks_levels_in(ZONE.get())}")
        if state.messages_estimated:
            more = f"{state.messages_estimated:,} more messages, one a page or block"
            notes.append(f"{name}: an estimated {more}, as only these were measured")
        for resource, sizes in state.sizes_measured.items():
            for field, size in sizes.items():
                values = f"{size.twin:,} in the twin, {size.measured:,} measured"
                notes.append(f"{name}, {resource}: {field} is {values}")
    return notes


def forecast_text(first: ResourceForecast | None, lacking: str = "", assumed: str = "") -> str:
    """Return the forecast for the resource that is full first, "" where nothing rises.

    Examples: `smds/QM01 full in 27 min (24 to 31 min, probability 71 %)`, and of what is less likely than not
    `smds/QM01: rises, 18 min at this rate, not sure (31 %)`. docs/state.md describes the fields. `lacking` is
    `StateRecord.lacks_levels`, `assumed` is `StateRecord.lacks_limits`, so that nothing says that such limits do not
    fill.
    """
    if first is None:
        return lacking
    times, probability = first.time_to_full_s, first.full_probability
    if times is None:
        return assumed or "nothing full within the horizon"
    if first.is_full_now:
        return f"{first.resource} full now"
    if rises := rise_text(first):
        return "; ".join(filter(None, (assumed, f"{first.resource}: {rises}")))
    return f"{first.resource} full in {full_in(times, probability)}"


def full_in(times: TimeToFull, probability: float) -> str:
    """Return the time until full with its 10 % to 90 % range: `27 min (24 to 31 min, probability 71 %)`."""
    middle, interval = as_estimate(times.p10, times.p50, times.p90)
    return f"{middle} ({interval}, probability {100 * probability:.0f} %)"


def print_refusals(refusals: Mapping[str, StoreRefusals], kinds: Iterable[str], *, stderr: bool = False) -> None:
    """Print the refusals of each store as recorded, and those by the given estate. kinds: kinds of the stores."""
    full = full_reasons(kinds)
    headings = ("store", "", full, f"first {full}", "2053", "gets without message")
    rows = []
    for store, outcome in refusals.items():
        rows.append((store, "recorded", *_refusals(outcome.recorded), ""))
        rows.append((store, "this estate", *_refusals(outcome.replayed), f"{outcome.unserved_gets:,}"))
    show(Table(headings, rows, {full, "2053", "gets without message"}), stderr=stderr)


def _refusals(refusals: Refusals) -> tuple[str, str, str]:
    first = "none" if refusals.first_full is None else site_time(refusals.first_full, seconds=True)
    return f"{refusals.full:,}", first, f"{refusals.queue_full:,}"


# --- events ----------------------------------------------------------------------------------------------------------


def simulated_summary(outcome: Outcome, kinds: Iterable[str]) -> str:
    """Return the summary of `mqtwin simulate`. kinds: kinds of the estate's stores.

    Example: `972,206 events, first 2192 at 2026-11-20T02:01:51Z on QSG1/APP1 (45,522 puts refused), peak usage ...`.
    """
    refused = sum(store.refused for store in outcome.stores.values())
    reason = full_reasons(kinds)
    first_full = f"no {reason}"
    if outcome.first_full is not None:
        time, name = outcome.first_full
        first_full = f"first {reason} at {site_time(time, seconds=True)} on {name} ({as_count(refused, 'put')} refused)"
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
    return f"{text}, {_rate_text(published.events, published.seconds)}"


def shared_summary(folder: Path, shared: Shared) -> str:
    """Return the summary of `mqtwin share`, and the way to ask for help with what it wrote."""
    size = f"{shared.size / 1e6:.1f} MB" if shared.size >= 1e6 else f"{shared.size / 1e3:.0f} KB"
    read_it = f"Read {folder / 'estate.toml'} before you give it away"
    ask = "to ask for help, send the folder with the command that you ran, what it printed and what you expected"
    return f"{folder}: {size}, {shared.contents}\n{read_it}; {ask}."


def recorded_summary(out: Path, recorded: RecordResult, seconds: float) -> str:
    """Return the summary of `mqtwin record`."""
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
    return f"{text}, {_rate_text(recorded.events, seconds)}"


def replayed_summary(recording: Path, replayed: Replayed) -> str:
    """Return the summary of `mqtwin replay`."""
    return (
        f"{as_count(replayed.events, 'event')}, {as_count(replayed.dead_letters, 'dead letter')}, "
        f"{as_count(len(replayed.alerts), 'alert')}, {_rate_text(replayed.events, replayed.seconds)}"
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


def _rate_text(count: int, seconds: float) -> str:
    return f"{count / max(seconds, 1e-3):,.0f} events/s"


# --- feeds -----------------------------------------------------------------------------------------------------------


class ComplaintPrinter:
    """Prints complaints as they come. printed: their number."""

    def __init__(self) -> None:
        self.printed = 0

    def __call__(self, complaint: Complaint) -> None:
        """Print a complaint."""
        self.printed += 1
        _say(f"warning: {complaint}")


def print_intake(intake: Intake, printed: int = 0) -> None:
    """Print complaints, what was passed over, unknown names, peaks, and the table of coverage."""
    print_complaints(intake, printed)
    print_inputs(intake)
    for store, peak in sorted(intake.peaks.items()):
        text = f"{store}: at least {peak.entries:,} entries and {peak.elements:,} elements were in use"
        full = f", full {peak.full:,} times" if peak.full else ""
        _say(f"{text}, at the latest {site_time(peak.time, seconds=True)}{full}")
    if intake.coverage:
        show(Table(_COVERAGE, list(_coverage_rows(intake)), set(_COVERAGE[5:])), stderr=True)


def print_complaints(intake: Intake, printed: int = 0) -> None:
    """Print complaints, what was passed over, unknown names with their lines for the estate.

    printed: as of `print_intake`.
    """
    for line in _lines(intake, printed):
        _say(line)


def print_inputs(intake: Intake) -> None:
    """Print how much of each input was read, passed over and not understood."""
    for line in intake.lines_for_inputs():
        _say(line)


def print_not_understood(*intakes: Intake) -> None:
    """Print the last lines of a command: inputs of which more than a tenth was not understood."""
    for intake in intakes:
        for line in intake.lines_for_not_understood():
            _say(f"warning: {line}")


def _say(line: str) -> None:
    print(printable(f"mqtwin: {line}"), file=sys.stderr)


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


def _coverage_rows(intake: Intake) -> Iterator[list[str]]:
    for _, cover in sorted(intake.coverage.items()):
        yield [
            cover.source,
            cover.qmgr,
            cover.name,
            site_time(cover.start, seconds=True),
            site_time(cover.end, seconds=True),
            f"{cover.intervals:,}",
            as_span(cover.longest_us / 1e6),
            as_span(cover.gaps_us / 1e6),
            f"{cover.puts:,}",
            f"{cover.gets:,}",
            f"{cover.peak_error:,}",
        ]


# --- progress ---------------------------------------------------------------------------------------------------------

_MANY_REJECTS = 1_000


class _RateColumn(ProgressColumn):
    @override
    def render(self, task: Task) -> RichText:
        events = task.fields["events"]
        return RichText(f"{events:,} events  {events / max(task.elapsed or 0.0, 1e-3):,.0f}/s")


class WrongEstate:
    """Says early that an estate takes none of the events of a recording: the end may be minutes away."""

    def __init__(self, recording: Path) -> None:
        self._recording = recording
        self._rejects = 0
        self._first: Reject | None = None
        self._is_over = False

    def note(self, reject: Reject) -> None:
        """Count a dead letter."""
        self._rejects += 1
        self._first = self._first or reject

    def check(self, events: int) -> None:
        """Print a warning, once, if there are a thousand dead letters and no event. events: accepted so far."""
        self._is_over = self._is_over or events > 0
        if self._is_over or self._rejects < _MANY_REJECTS or self._first is None:
            return
        self._is_over = True
        first = f"the first: {self._first.reason}: {self._first.detail}"
        text = f"{self._recording}: not one of {self._rejects:,} events was accepted so far, {first}"
        print_line(f"mqtwin: warning: {text}; is it the estate of this recording?")


class _KernelsColumn(ProgressColumn):
    """A column with the number of kernels that are compiled, by this process or by the one that it waits for."""

    @override
    def render(self, task: Task) -> RichText:
        from twin.stores.warm_up import count_compiled

        return RichText(f"({count_compiled()} done)")


def warm_kernels(console: Console) -> None:
    """Load the kernels, and show that they are compiled first: it takes minutes, once for each version."""
    from twin.stores.warm_up import COMPILING, compiles, warm

    columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
    text = "loading kernels"
    if compiles():
        text = COMPILING
        columns.insert(2, _KernelsColumn())
        if not console.is_terminal:
            console.print(COMPILING, soft_wrap=True, highlight=False)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task(text, total=None)
        warm()


@contextmanager
def show_progress(activity: str, recording: Path | None = None) -> Iterator[Callable[[Chunk | None, int], None]]:
    """Show the progress of an activity. Yield a function that takes the current chunk and the events so far. For a
    plain `.ndjson` file the progress includes the share of the file.
    """
    console = Console(stderr=True)
    has_size = recording is not None and recording.suffix == ".ndjson" and recording.is_file()
    size_bytes = recording.stat().st_size if has_size and recording is not None else None
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), _RateColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(activity, total=size_bytes, events=0)
        last_line = -1

        def advance(chunk: Chunk | None, events: int) -> None:
            nonlocal last_line
            new_bytes = 0
            if isinstance(chunk, LinesChunk) and chunk.first != last_line:
                last_line, new_bytes = chunk.first, len(chunk.data)
            progress.update(task, advance=new_bytes, events=events)

        yield advance
