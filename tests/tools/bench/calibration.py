"""How fast the machine was when a part was measured: two pieces of work that never change, by wall clock.

Other work on the machine, or on the one below it, slows them down as it slows down what is measured.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kernels.index import xxh64_column

QUIET = 0.85  # of the fastest of a run: below it, figures of that part are marked
_REPEATS = 7
_COPIED = 1 << 27  # bytes, beyond any cache
_TEXTS, _TEXT_BYTES = 200_000, 40


@dataclass(frozen=True, slots=True)
class Calibration:
    """Before a part. copied: GB a second of memory; hashed: million ids a second, in caches."""

    part: str
    copied: float
    hashed: float


def calibrate(part: str) -> Calibration:
    """Measure the machine before a part of the bench."""
    source, target = np.ones(_COPIED, np.uint8), np.empty(_COPIED, np.uint8)
    offsets = np.arange(_TEXTS + 1, dtype=np.int64) * _TEXT_BYTES
    letters, keys = np.ones(_TEXTS * _TEXT_BYTES, np.uint8), np.zeros(_TEXTS, np.uint64)
    for array in (offsets, letters):
        array.flags.writeable = False  # as the decoder has them: kernels are compiled for that
    copied = _COPIED / _median_seconds(lambda: np.copyto(target, source)) / 1e9
    hashed = _TEXTS / _median_seconds(lambda: xxh64_column(offsets, letters, keys)) / 1e6
    return Calibration(part, copied, hashed)


def share_of_best(calibrations: Sequence[Calibration], calibration: Calibration) -> float:
    """Return the speed of the machine at one part as a share of its best in the run, the lower of both kinds."""
    return min(
        calibration.copied / max(other.copied for other in calibrations),
        calibration.hashed / max(other.hashed for other in calibrations),
    )


def _median_seconds(work: Callable[[], object]) -> float:
    work()
    seconds = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)
