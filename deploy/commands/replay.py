"""``mqtwin replay``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
from cyclopts import Parameter

from deploy.show.progress import WrongEstate, show_progress
from deploy.show.summaries import reject_text, replayed_summary
from deploy.show.terminal import print_warnings
from deploy.show.usage import print_refusals, print_usage
from twin.errors import MqtwinError, UsageError
from twin.estate import load_estate
from twin.events import Reject
from twin.playback.replays import dead_letter
from twin.playback.replays import replay as replay_recording
from twin.recordings.files import Chunk
from twin.units import as_count


def _file_or_hyphen(_: Any, value: str | None) -> None:
    if value is not None and value.startswith("-") and value != "-":
        raise ValueError(f"{value} is an option; expected: a file, or - for standard output")


_Output = Annotated[str | None, Parameter(allow_leading_hyphen=True, validator=_file_or_hyphen)]


def replay(
    recording: Path,
    /,
    *,
    estate: Path,
    alerts: _Output = None,
    state: _Output = None,
    dlq: _Output = None,
    demands: Annotated[bool, Parameter(negative="")] = False,
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
    """
    loaded_estate = load_estate(estate)
    print_warnings(loaded_estate.warnings)
    _check_different(alerts, state, dlq)
    with ExitStack() as files:
        alert_file, state_file, dlq_file = (files.enter_context(_output(name)) for name in (alerts, state, dlq))
        advance = files.enter_context(show_progress("replay", recording))

        wrong_estate = WrongEstate(recording)

        def write_letter(reject: Reject) -> None:
            wrong_estate.note(reject)
            if dlq_file is not None:
                _write(dlq_file, [msgspec.json.encode(dead_letter(reject))])

        def note_chunk(chunk: Chunk, events: int) -> None:
            wrong_estate.check(events)
            advance(chunk, events)

        replayed = replay_recording(
            recording, loaded_estate, course=False, demands=demands, on_reject=write_letter, on_chunk=note_chunk
        )
        if alert_file is not None:
            _write(alert_file, (alert.record() for alert in replayed.alerts))
        if state_file is not None:
            _write(state_file, map(msgspec.json.encode, replayed.states.values()))
    print_usage(replayed.states.values(), stderr=True)
    if replayed.refusals:
        kinds = [loaded_estate.stores[store].kind for store in replayed.refusals]
        print_refusals(replayed.refusals, kinds, stderr=True)
    if replayed.dead_letters and not replayed.events:
        letters = as_count(replayed.dead_letters, "dead letter")
        raise MqtwinError(f"{recording}: not one event was accepted, {letters}{reject_text(recording, replayed)}")
    print(replayed_summary(recording, replayed), file=sys.stderr)


def _check_different(*names: str | None) -> None:
    """Raise UsageError if two outputs would overwrite each other in one file."""
    files = [Path(name).absolute() for name in names if name is not None and name != "-"]
    for file in files:
        if files.count(file) > 1:
            raise UsageError(f"{file}: two outputs in one file; expected: a file for each")


@contextmanager
def _output(name: str | None) -> Iterator[BinaryIO | None]:
    """Yield the file of that name, standard output for -, None for None."""
    if name is None:
        yield None
        return
    if name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        file = Path(name).open("wb")  # noqa: SIM115 - closed below; only a failure to open it is wrong use
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}; expected: a file in a folder that exists, or -") from None
    with file:
        yield file


def _write(file: BinaryIO, lines: Iterable[bytes]) -> None:
    file.writelines(line + b"\n" for line in lines)
