"""The columns of a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from twin.recordings.files import open_recording
from twin.simulation import START


class Recorded:
    """The events of a recording. hours: from the start, f8[n]; the others as they are named, absent: None or -1."""

    def __init__(self, path: Path) -> None:
        table = pa.concat_tables(chunk.table(np.arange(len(chunk))) for chunk in open_recording(path))
        self.hours = (table.column("time").cast(pa.int64()).to_numpy() - START) / 3.6e9
        self.op, self.qmgr, self.queue, self.uow = (
            np.array(table.column(name).to_pylist(), object) for name in ("op", "qmgr", "queue", "uow")
        )
        self.persistent, self.direct = (
            table.column(name).fill_null(False).to_numpy() for name in ("persistent", "direct")
        )
        self.length = table.column("length").fill_null(-1).to_numpy()
        self.reason = table.column("reason").fill_null(0).to_numpy()

    def depth(self, queue: str, *hours: float) -> list[int]:
        """Messages in the queue at those hours; for recordings without BACKOUT that matters."""
        here = (self.queue == queue) & (self.reason == 0)
        change = here * ((self.op == "PUT").astype(int) - (self.op == "GET").astype(int))
        return [int(change[self.hours < i].sum()) for i in hours]

    def puts(self, queue: str, begin: float, end: float) -> Any:
        """Return bool[n], True for puts that were stored in a queue between two hours."""
        return (
            (self.queue == queue) & (self.op == "PUT") & (self.reason == 0) & (self.hours >= begin) & (self.hours < end)
        )
