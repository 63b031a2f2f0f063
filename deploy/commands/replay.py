"""``mqtwin replay``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
from cyclopts import Parameter

from deploy.show import usage
from deploy.show.progress import shown
from deploy.show.summaries import counted, replayed_summary, why_rejected
from deploy.show.table import show
from deploy.show.warnings import warned
from twin.errors import MqtwinError, UsageError
from twin.estate import load_estate
from twin.events import Reject
from twin.replays import dead_letter
from twin.replays import replay as play


def _file_or_hyphen(_: Any, value: str | None) -> None:
    if value is not None and value.startswith("-") and value != "-":
        raise ValueError(f"{value} is an option: a file, or - for standard output, is right")


_Output = Annotated[str | None, Parameter(allow_leading_hyphen=True, validator=_file_or_hyphen)]


def replay(
    recording: Path,
    /,
    *,
    estate: Path,
    alerts: _Output = None,
    state: _Output = None,
    dlq: _Output = None,
) -> None:
    """The same twin without Kafka or Spark: a recording's alerts, states and dead letters as NDJSON.

    How full each store is at the end, and a summary, go to standard error.

    Args:
        recording: The events, .ndjson, .ndjson.zst or .arrow.
        estate: What exists, a TOML file.
        alerts: Where the alerts go, a file or - for standard output.
        state: Where the last state record of each store goes, sorted by store.
        dlq: Where the dead letters go.
    """
    described = warned(load_estate(estate))
    _check_different(alerts, state, dlq)
    with ExitStack() as files:
        alert_file, state_file, dlq_file = (files.enter_context(_output(name)) for name in (alerts, state, dlq))
        advance = files.enter_context(shown("replay", recording))

        def write_letter(reject: Reject) -> None:
            if dlq_file is not None:
                _write(dlq_file, [msgspec.json.encode(dead_letter(reject))])

        replayed = play(recording, described, on_reject=write_letter, on_chunk=advance)
        if alert_file is not None:
            _write(alert_file, (alert.record() for alert in replayed.alerts))
        if state_file is not None:
            _write(state_file, map(msgspec.json.encode, replayed.states.values()))
    show(usage.HEADINGS, usage.lines(replayed.states.values()), usage.RIGHT, stderr=True)
    if replayed.dead_letters and not replayed.events:
        letters = counted(replayed.dead_letters, "dead letter")
        raise MqtwinError(f"{recording}: not one event was accepted, {letters}{why_rejected(recording, replayed)}")
    print(replayed_summary(recording, replayed), file=sys.stderr)


def _check_different(*names: str | None) -> None:
    """UsageError where two kinds of records would overwrite each other in one file."""
    files = [Path(name).absolute() for name in names if name is not None and name != "-"]
    for file in files:
        if files.count(file) > 1:
            raise UsageError(f"{file}: two outputs in one file: name a file for each")


@contextmanager
def _output(name: str | None) -> Iterator[BinaryIO | None]:
    """The file of that name, standard output for -, None for none."""
    if name is None:
        yield None
        return
    if name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        file = Path(name).open("wb")  # noqa: SIM115 - closed below; only its opening is wrong use
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}: a file in a folder that exists, or -, is right") from None
    with file:
        yield file


def _write(file: BinaryIO, lines: Iterable[bytes]) -> None:
    file.writelines(line + b"\n" for line in lines)
