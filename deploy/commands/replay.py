"""``mqtwin replay`` and ``mqtwin simulate``: a recording played through the twin, and one made by a scenario."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Annotated, BinaryIO

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deploy.options.common import (
    EstateFile,
    Flag,
    InputFile,
    OutputFile,
    OutputOrHyphen,
    Repeated,
    open_estate,
    open_sink,
    parse_settings,
    parse_time,
)
from deploy.show.summaries import (
    WrongEstate,
    print_refusals,
    print_usage,
    reject_text,
    replayed_summary,
    show_progress,
    simulated_summary,
)
from twin.base.errors import MqtwinError, UsageError
from twin.base.outputs import Draft
from twin.base.units import as_count
from twin.events import Reject
from twin.playback.replays import dead_letter
from twin.playback.replays import replay as replay_recording
from twin.recordings.files import Chunk
from twin.records import read_alert_record
from twin.simulation import SCENARIOS, START, make_scenario, parameters
from twin.simulation import simulate as run_simulation


def replay(
    recording: InputFile,
    /,
    *,
    estate: EstateFile,
    alerts: OutputOrHyphen | None = None,
    state: OutputOrHyphen | None = None,
    dlq: OutputOrHyphen | None = None,
    demands: Flag = False,
    sink: str | None = None,
) -> None:
    """Replay a recording through the twin, without Kafka or Spark. Writes alerts, states, dead letters as NDJSON.

    The usage of each store at the end, and a summary, go to standard error.

    Args:
        recording: Recording to read: .ndjson, .ndjson.zst or .arrow.
        estate: Estate file (TOML).
        alerts: File for the alerts; - is standard output.
        state: File for the last state record of each store, sorted by store; - is standard output.
        dlq: File for the dead letters; - is standard output.
        demands: Ask the puts of the recording again, so that this estate decides which get 2192 or 2053.
        sink: Where each alert record goes besides, NAME or NAME:TEXT, of an installed distribution: docs/hooks.md.
    """
    loaded_estate = open_estate(estate)
    with ExitStack() as files:
        alert_out, state_out, letter_out = (files.enter_context(_output(name)) for name in (alerts, state, dlq))
        deliver = files.enter_context(open_sink(sink))
        advance = files.enter_context(show_progress("replay", recording))

        wrong_estate = WrongEstate(recording)

        def write_letter(reject: Reject) -> None:
            wrong_estate.note(reject)
            letter_out.write([msgspec.json.encode(dead_letter(reject))])

        def note_chunk(chunk: Chunk, events: int) -> None:
            wrong_estate.check(events)
            advance(chunk, events)

        replayed = replay_recording(
            recording, loaded_estate, course=False, demands=demands, on_reject=write_letter, on_chunk=note_chunk
        )
        alert_out.write(alert.record() for alert in replayed.alerts)
        if sink is not None:
            for alert in replayed.alerts:
                deliver(read_alert_record(alert.record()))
        state_out.write(map(msgspec.json.encode, replayed.states.values()))
        if not replayed.events:
            alert_out.keep_earlier()
            state_out.keep_earlier()
    print_usage(replayed.states.values(), stderr=True)
    if replayed.refusals:
        kinds = [loaded_estate.stores[store].kind for store in replayed.refusals]
        print_refusals(replayed.refusals, kinds, stderr=True)
    if replayed.dead_letters and not replayed.events:
        letters = as_count(replayed.dead_letters, "dead letter")
        raise MqtwinError(f"{recording}: not one event was accepted, {letters}{reject_text(recording, replayed)}")
    print(replayed_summary(recording, replayed), file=sys.stderr)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Output of lines. file: where they go, None for nowhere; draft: that of a file which they replace at the end."""

    file: BinaryIO | None
    draft: Draft | None = None

    def write(self, lines: Iterable[bytes]) -> None:
        """Write lines."""
        if self.file is not None:
            self.file.writelines(line + b"\n" for line in lines)

    def keep_earlier(self) -> None:
        """Let a file that is there stay."""
        if self.draft is not None and self.draft.path.exists():
            self.draft.discard()


@contextmanager
def _output(name: str | None) -> Iterator[_Lines]:
    """Yield the output of that name: - is standard output, None is nowhere."""
    if name is None:
        yield _Lines(None)
    elif name == "-":
        yield _Lines(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        with Draft(name) as draft, draft.file.open("wb") as file:
            yield _Lines(file, draft)


# --- mqtwin simulate --------------------------------------------------------------------------------------------------


def print_scenarios() -> None:
    """Print the scenarios with their parameters and defaults.

    On a terminal this is a table per scenario, elsewhere a line per scenario: name, sentence, parameters, separated by
    tabs.
    """
    console = Console()
    if not console.is_terminal:
        for name, kind in SCENARIOS.items():
            settings = " ".join(f"{key}={default:g}" for key, (default, _) in parameters(kind).items())
            print(name, kind.sentence, settings, sep="\t")
        return
    for name, kind in SCENARIOS.items():
        table = Table(box=None, show_header=False, padding=(0, 2))
        for key, (default, text) in parameters(kind).items():
            table.add_row(Text(f"  {key}"), Text(f"{default:g}"), Text(text))
        console.print(Text(name, style="bold"), Text(kind.sentence), table, sep="\n")


def simulate(
    scenario: str | None = None,
    /,
    *,
    estate: EstateFile | None = None,
    output: Annotated[OutputFile | None, Parameter(name=("--output", "-o"))] = None,
    seed: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    store: str | None = None,
    queue: str | None = None,
    rate: float | None = None,
    start: str | None = None,
    set_: Repeated = (),
    list_: Flag = False,
) -> None:
    """Simulate a scenario on an estate: a recording with its true 2192s. The same seed gives the same recording.

    Args:
        scenario: Scenario; --list shows them.
        estate: Estate file (TOML).
        output: Recording to write: .ndjson, .ndjson.zst or .arrow.
        seed: Seed of the random numbers.
        store: Store that fills. Default: the first structure, page set or queue file with queues.
        queue: Queue that grows. Default: the first of the store.
        rate: Puts per second to that queue. Default: enough for the scenario on that store.
        start: Time of the first event. Default: 2026-11-20T00:00:00Z.
        set_: Scenario parameter, NAME=NUMBER, such as hours=3; may be repeated. --list shows them.
        list_: Show the scenarios and their parameters, then stop.
    """
    if list_:
        print_scenarios()
        return
    if scenario is None or estate is None or output is None:
        raise UsageError("simulate: missing arguments; expected: SCENARIO --estate FILE -o RECORDING, or --list")
    settings = dict(parse_settings("--set", set_))
    start_us = START if start is None else parse_time("--start", start)
    chosen_scenario = make_scenario(scenario, store=store, queue=queue, rate=rate, start=start_us, settings=settings)
    loaded_estate = open_estate(estate)
    with show_progress(f"simulate {scenario}") as advance:
        outcome = run_simulation(chosen_scenario, loaded_estate, output, seed, lambda events, _: advance(None, events))
    print(simulated_summary(outcome, (loaded_estate.stores[name].kind for name in outcome.stores)))
