"""A loop in C that only counts messages, on the events of `tests.tools.bench.mechanisms`."""

from __future__ import annotations

import ctypes
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np

from tests.tools.bench.rig import Say
from twin.base.errors import MqtwinError

LEVELS = (10_000, 10_000_000)
_SOURCE = Path(__file__).with_name("plain_loop.c")
_BLOCK = 20_000  # events: puts and gets in turn
_EVENT = np.dtype([("msgid", "i8"), ("queue", "i4"), ("length", "i4"), ("is_put", "i1")], align=True)
_ROW = np.dtype([("msgid", "i8"), ("queue", "i4"), ("length", "i4")], align=True)


def measure(folder: Path, say: Say, *, quick: bool) -> dict[int, float]:
    """Return million events a CPU second by messages held, medians; empty where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        say("no C compiler: no yardstick")
        return {}
    say("the same puts and gets by a loop in C")
    library = folder / "plain_loop.so"
    command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", "-o", str(library), str(_SOURCE)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise MqtwinError(f"{_SOURCE.name} is not compiled: {answer.stderr.strip().splitlines()[0]}")
    apply = ctypes.CDLL(str(library)).apply
    apply.restype = ctypes.c_int64
    return {held: _rate(apply, held, 10 if quick else 30) for held in LEVELS[: 1 if quick else 2]}


def _rate(apply: ctypes._NamedFuncPointer, held: int, repeats: int) -> float:
    bits = (4 * held).bit_length()  # at most half full, removed rows among them
    rows = np.zeros(1 << bits, _ROW)
    rows["msgid"] = -1
    depths, sizes = np.zeros(1, np.int64), np.zeros(1, np.int64)

    def applied(events: np.ndarray[tuple[int], np.dtype[np.void]]) -> float:
        arrays = [array.ctypes.data_as(ctypes.c_void_p) for array in (events, rows, depths, sizes)]
        count = ctypes.c_int64(events.size)
        began = time.process_time()
        unmatched = apply(arrays[0], count, arrays[1], ctypes.c_int(bits), arrays[2], arrays[3])
        seconds = time.process_time() - began
        if unmatched or depths[0] != held:
            raise MqtwinError(f"the loop in C holds {depths[0]:,} messages of {held:,}, {unmatched:,} gets found none")
        return float(events.size / seconds / 1e6)

    fill = np.zeros(held, _EVENT)
    fill["msgid"], fill["length"], fill["is_put"] = np.arange(held), 2048, 1
    applied(fill)
    rates = []
    for block in range(repeats):
        events = np.zeros(_BLOCK, _EVENT)
        first = block * _BLOCK // 2
        events["length"], events["is_put"][::2] = 2048, 1
        events["msgid"][::2] = np.arange(held + first, held + first + _BLOCK // 2)
        events["msgid"][1::2] = np.arange(first, first + _BLOCK // 2)
        rates.append(applied(events))
    return statistics.median(rates)
