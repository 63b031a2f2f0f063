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
from deploy.stopping import StopRequestedError, raise_on_stop


def demo(
    *,
    keep: Annotated[bool, Parameter(negative="")] = False,
    no_console: Annotated[bool, Parameter(negative="")] = False,
    seconds: Annotated[float, Parameter(validator=Number(gte=1))] = 60.0,
    seed: int = 1,
) -> int:
    """Show a structure filling in fast motion after its getter stopped, with alerts before the first 2192.

    Runs a broker and the streaming job. At the end it prints when the forecast's alert opened, and when a static
    threshold of 80 % would have alerted. The exit status is 0 if the alert opened before the first 2192.

    Args:
        keep: Keep broker and job running at the end, until Ctrl-C.
        no_console: Do not serve the page for a browser.
        seconds: Wall time for the four hours of the recording.
        seed: Seed of the scenario's random numbers.
    """
    passed = False
    try:
        with raise_on_stop(), tempfile.TemporaryDirectory(prefix="mqtwin-demo-") as folder:
            for run in run_demo(
                Path(folder), seconds=seconds, seed=seed, console_port=None if no_console else DEFAULT_PORT
            ):
                passed, lines = run.judge()
                print(*lines, sep="\n", flush=True)
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
