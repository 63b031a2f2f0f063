"""``mqtwin demo``."""

from __future__ import annotations

import os
import select
import shutil
import sys
import tempfile
import termios
import threading
import time
import tty
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.console import DEFAULT_PORT
from deploy.options.common import MAX_SECONDS, Flag, OutputFolder
from deploy.show.document import Items, Table, Text
from deploy.show.terminal import command_line, show
from streams.host.signals import StopRequestedError, raise_on_stop, until_stopped

if TYPE_CHECKING:  # they need Kafka and Spark, which a recorded night does not
    from deploy.console.recorded import Story
    from deploy.demo import DemoRun

_SPEED = 300  # of the recorded night: the speed at which its page begins to play
_KEYS = "h: what would have helped   f: your own files   Ctrl-C: the end"
_YOUR_OWN = (
    ("your own files", "mqtwin start monday.smf qm01.joblog policy.txt"),
    (
        "your queue managers, asked once",
        "mqtwin start --live https://mqweb.site:9443 --qmgr QM01,QM02 --user mona --once",
    ),
)


def demo(
    *,
    keep: Flag = False,
    no_console: Flag = False,
    seconds: Annotated[float, Parameter(validator=Number(gte=1, lte=MAX_SECONDS))] = 60.0,
    seed: int = 1,
    output: Annotated[OutputFolder, Parameter(name=("--output", "-o"))] = Path("mqtwin-demo"),
    recorded: Flag = False,
    open_: Flag = False,
) -> int:
    """Show three structures in fast motion: one levels off, one fills its data set, one is emptied until it fills.

    Runs a broker and the streaming job. At the end it prints when the forecast's alert opened, how fixed lines at
    80 and 85 % would have done in the same run, and commands to try next. On a terminal the page stays until Enter is
    pressed. The exit status is 0 if the alert opened before the first 2192. With --recorded, and without Kafka and
    Spark, the page plays a recorded night of these structures; on a terminal one key shows what would have helped,
    another how to begin with files of your own.

    Args:
        keep: Keep broker and job running at the end, until Ctrl-C.
        no_console: Do not serve the page for a browser.
        seconds: Wall time for the six hours of the recording; longer where the job cannot follow.
        seed: Seed of the scenario's random numbers.
        output: Folder to write the estate and the recording to, which the commands at the end read.
        recorded: Show the recorded night at once, without Kafka, Spark and compiling.
        open_: Open the page in the browser of this machine.
    """
    if recorded or find_spec("pyspark") is None or find_spec("confluent_kafka") is None:
        return _show_recorded(None if no_console else DEFAULT_PORT, opens=open_)
    return _run_live(output, keep=keep, no_console=no_console, seconds=seconds, seed=seed)


def _show_recorded(port: int | None, *, opens: bool) -> int:
    """Serve the page of the recorded night, and say what happens in it at the time of the page."""
    from deploy.console.recorded import read_story, serve_page

    story = read_story()
    with until_stopped(), nullcontext("") if port is None else serve_page(port) as address:
        if not address:
            _tell(story, pause=lambda _: None)
            _show_all(story)
            return 0
        print(f"console {address}", flush=True)
        print("A recorded night, which the page plays. It runs until Ctrl-C.", file=sys.stderr, flush=True)
        if opens:
            webbrowser.open(address)
        terminal = _terminal()
        if terminal is None:
            _tell(story, pause=lambda seconds: time.sleep(max(0.0, seconds)))
            _show_all(story)
            threading.Event().wait()
        else:
            _tell_with_keys(story, terminal)
    return 0


def _tell(story: Story, pause: Callable[[float], None]) -> None:
    """Print the lines, each when the page shows its moment. pause: waits for seconds, of which none may be left."""
    began = time.monotonic()
    for line in story.lines:
        pause(began + (line.time - story.moments.first) / _SPEED - time.monotonic())
        show(Text(line.text))
        sys.stdout.flush()


def _tell_with_keys(story: Story, terminal: int) -> None:
    """Print the lines, and at a key more, until a stop signal. terminal: descriptor of the terminal of the keys."""
    answers = {"h": lambda: _show_advice(story), "f": _show_your_own}

    def answer_keys(seconds: float | None) -> None:
        deadline = None if seconds is None else time.monotonic() + seconds
        while (left := None if deadline is None else deadline - time.monotonic()) is None or left > 0:
            if select.select([terminal], [], [], left)[0]:
                key = os.read(terminal, 1).decode("ascii", "replace").lower()
                if key in answers:
                    answers[key]()
                    print(f"\n{_KEYS}", file=sys.stderr, flush=True)

    with _keys_one_by_one(terminal):
        print(_KEYS, file=sys.stderr, flush=True)
        _tell(story, answer_keys)
        print(f"\n{_KEYS}", file=sys.stderr, flush=True)
        answer_keys(None)


def _terminal() -> int | None:
    """Return the terminal that somebody looks at and whose keys this program gets; None: there is none."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    terminal = sys.stdin.fileno()
    try:
        return terminal if os.tcgetpgrp(terminal) == os.getpgrp() else None  # not in the background
    except OSError:  # the terminal of another session
        return None


@contextmanager
def _keys_one_by_one(terminal: int) -> Iterator[None]:
    """Have a terminal hand on each key at once and show none, and Ctrl-C as ever; afterwards as before."""
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _show_all(story: Story) -> None:
    _show_advice(story)
    _show_your_own()


def _show_advice(story: Story) -> None:
    name, advice = next(iter(story.advice.items()))
    show(Text(""), Text(f"What would have helped {name.partition('|')[0]}. {advice.note}"))
    plans = [f"{plan.title}: {'; '.join(step.text for step in plan.steps)}" for plan in advice.plans]
    show(Items(plans, indent=2))
    sys.stdout.flush()


def _show_your_own() -> None:
    print("\nTo try next:")
    for text, command in _YOUR_OWN:
        print(f"\n  # {text}\n  {command}")
    sys.stdout.flush()


def _run_live(output: Path, *, keep: bool, no_console: bool, seconds: float, seed: int) -> int:
    from deploy.demo import run_demo

    passed = None
    try:
        with raise_on_stop(), tempfile.TemporaryDirectory(prefix="mqtwin-demo-") as folder:
            port = None if no_console else DEFAULT_PORT
            for run in run_demo(Path(folder), output, seconds=seconds, seed=seed, console_port=port):
                passed = _report(run)
                _wait(run, keep=keep)
    except StopRequestedError:
        if passed is None:
            return 130
    return 0 if passed else 1


def _report(run: DemoRun) -> bool:
    """Print the results of a run; return True if the alert opened in time."""
    from deploy.show.demo import comparison_lines, next_commands

    passed, line = run.judge()
    headings, rows = comparison_lines(run.compared)
    show(Text(line), Table(headings, rows, set(headings[1:])))
    print(f"\nEstate and recording are in {run.recording.parent}. To try next:")
    for text, command in next_commands(_program(), run.outcome, run.estate, run.recording):
        print(f"\n  # {text}\n  {command}")
    sys.stdout.flush()
    return passed


def _program() -> str:
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return command_line((sys.executable, "-m", "deploy"))
    return command_line([called.name if shutil.which(called.name) == str(called.absolute()) else str(called)])


def _wait(run: DemoRun, *, keep: bool) -> None:
    """Wait until Ctrl-C, or for a key where somebody looks at the page and can press it."""
    if keep:
        print("Broker and job keep running until Ctrl-C.", file=sys.stderr, flush=True)
        threading.Event().wait()
    elif run.address is not None and sys.stdin and sys.stdin.isatty() and sys.stdout.isatty():
        print(f"\nThe page stays at {run.address} until you press Enter.", file=sys.stderr, flush=True)
        sys.stdin.readline()
