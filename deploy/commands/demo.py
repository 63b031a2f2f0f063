"""``mqtwin demo``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.demo import play
from deploy.stopping import StopRequestedError, raise_on_stop


def demo(
    *,
    keep: Annotated[bool, Parameter(negative="")] = False,
    seconds: Annotated[float, Parameter(validator=Number(gte=1))] = 60.0,
    seed: int = 1,
) -> int:
    """Broker, job and a scenario in fast motion: a getter stops, a structure fills, alerts come before the first 2192.

    Shows when the stores will be full, and at the end how early the forecast's alert came, a static line at 80 % beside
    it. Ends by itself; exit status 0 where that alert came before the first 2192.

    Args:
        keep: Leave broker and job running at the end, until Ctrl-C.
        seconds: Wall time in which the four hours of the recording are played.
        seed: Of the scenario's random numbers.
    """
    passed = False
    try:
        with raise_on_stop(), tempfile.TemporaryDirectory(prefix="mqtwin-demo-") as folder:
            for played in play(Path(folder), seconds=seconds, seed=seed):
                passed, lines = played.verdict()
                print(*lines, sep="\n", flush=True)
                if keep:
                    _wait()
    except StopRequestedError:
        if not keep:
            return 130
    return 0 if passed else 1


def _wait() -> None:
    """Until somebody asks to stop."""
    import threading

    print("broker and job go on; Ctrl-C ends them", file=sys.stderr, flush=True)
    threading.Event().wait()
