"""``mqtwin demo``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.console.server import DEFAULT_PORT
from deploy.demo import run_demo
from deploy.show.table import print_table
from deploy.show.verdict import comparison_lines
from deploy.show.wrapping import wrapped
from deploy.stopping import StopRequestedError, raise_on_stop


def demo(
    *,
    keep: Annotated[bool, Parameter(negative="")] = False,
    no_console: Annotated[bool, Parameter(negative="")] = False,
    seconds: Annotated[float, Parameter(validator=Number(gte=1))] = 60.0,
    seed: int = 1,
) -> int:
    """Show three structures in fast motion: one levels off, one fills its data set, one has teeth until one goes on.

    Runs a broker and the streaming job. At the end it prints when the forecast's alert opened, and how fixed lines at
    80 and 85 % would have done in the same run. The exit status is 0 if the alert opened before the first 2192.

    Args:
        keep: Keep broker and job running at the end, until Ctrl-C.
        no_console: Do not serve the page for a browser.
        seconds: Wall time for the six hours of the recording.
        seed: Seed of the scenario's random numbers.
    """
    passed = False
    try:
        with raise_on_stop(), tempfile.TemporaryDirectory(prefix="mqtwin-demo-") as folder:
            port = None if no_console else DEFAULT_PORT
            for run in run_demo(Path(folder), seconds=seconds, seed=seed, console_port=port):
                passed, line = run.judge()
                print(wrapped(line, is_terminal=sys.stdout.isatty()))
                headings, lines = comparison_lines(run.compared)
                print_table(headings, lines, right=set(headings[1:]))
                sys.stdout.flush()
                if keep:
                    _wait_for_stop()
    except StopRequestedError:
        if not keep:
            return 130
    return 0 if passed else 1


def _wait_for_stop() -> None:
    import threading

    print("Broker and job keep running until Ctrl-C.", file=sys.stderr, flush=True)
    threading.Event().wait()
