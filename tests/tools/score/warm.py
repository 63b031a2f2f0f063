"""The day before a case, from which its stores learn: the same story, with no number of an event and other chance."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import kernels
import twin
from kernels.clock import SECOND
from tests.tools.score.cases import Case
from tests.tools.score.oracle import event_numbers, rated
from tests.tools.score.recordings import hash_of
from twin.estate import Estate
from twin.estate.planned import history_text, read_history
from twin.playback.replays import learn
from twin.simulation import simulate

_DAY_H = 24
_OTHER_SEED = 0x5EED


def warmed(case: Case, stem: str) -> Estate:
    """Return the estate of a case with the rises of the day before as its history.

    Args:
        case: the case.
        stem: stem of its files, a path without suffix; recording and history of the day are kept beside them.
    """
    file = Path(f"{stem}.history-{_learner()}.json")
    if not file.is_file():
        recording = Path(f"{stem}.before.arrow")
        if not recording.is_file():
            _, scenario = rated(case)
            harmless: dict[str, Any] = dict.fromkeys(event_numbers(scenario), 0)
            start = scenario.start - _DAY_H * 3600 * SECOND
            before = replace(scenario, hours=float(_DAY_H), start=start, **harmless)
            partial = recording.with_suffix(".partial.arrow")
            simulate(before, case.estate, partial, case.seed + _OTHER_SEED)
            partial.rename(recording)
        file.write_bytes(history_text(learn([recording], case.estate)))
    return replace(case.estate, history=read_history(file))


@functools.cache
def _learner() -> str:
    """Return the hash of the code that may change what is learned."""
    folders = (Path(str(package.__file__)).parent for package in (kernels, twin))
    return hash_of(path for folder in folders for path in sorted(folder.rglob("*.py")))
