"""``mqtwin demo``."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.console.server import DEFAULT_PORT
from deploy.demo import DemoRun, run_demo
from deploy.options.common import MAX_SECONDS, Flag
from deploy.options.files import OutputFolder
from deploy.show.demo import comparison_lines, next_commands
from deploy.show.document import Table, Text
from deploy.show.terminal import command_line, show
from streams.host.signals import StopRequestedError, raise_on_stop


def demo(
    *,
    keep: Flag = False,
    no_console: Flag = False,
    seconds: Annotated[float, Parameter(validator=Number(gte=1, lte=MAX_SECONDS))] = 60.0,
    seed: int = 1,
    output: Annotated[OutputFolder, Parameter(name=("--output", "-o"))] = Path("mqtwin-demo"),
) -> int:
    """Show three structures in fast motion: one levels off, one fills its data set, one is emptied until it fills.

    Runs a broker and the streaming job. At the end it prints when the forecast's alert opened, how fixed lines at
    80 and 85 % would have done in the same run, and commands to try next. Where standard input is a terminal, the page
    stays until Enter is pressed. The exit status is 0 if the alert opened before the first 2192.

    Args:
        keep: Keep broker and job running at the end, until Ctrl-C.
        no_console: Do not serve the page for a browser.
        seconds: Wall time for the six hours of the recording; longer where the job cannot follow.
        seed: Seed of the scenario's random numbers.
        output: Folder to write the estate and the recording to, which the commands at the end read.
    """
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
    passed, line = run.judge()
    headings, rows = comparison_lines(run.compared)
    show(Text(line), Table(headings, rows, set(headings[1:])))
    print(f"\nEstate and recording are in {run.recording.parent}. To try next:")
    for text, command in next_commands(_program(), run.outcome, run.estate, run.recording):
        print(f"\n  # {text}\n  {command}")
    sys.stdout.flush()
    return passed


def _program() -> str:
    """Return how this program was called."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return command_line((sys.executable, "-m", "deploy"))
    return command_line([called.name if shutil.which(called.name) == str(called.absolute()) else str(called)])


def _wait(run: DemoRun, *, keep: bool) -> None:
    """Wait until Ctrl-C, or for a key where somebody looks at the page and can press it."""
    if keep:
        import threading

        print("Broker and job keep running until Ctrl-C.", file=sys.stderr, flush=True)
        threading.Event().wait()
    elif run.address is not None and sys.stdin and sys.stdin.isatty() and sys.stdout.isatty():
        print(f"\nThe page stays at {run.address} until you press Enter.", file=sys.stderr, flush=True)
        sys.stdin.readline()
