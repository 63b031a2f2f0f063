"""Loading the compiled kernels once a process, compiling them once a machine.

numba's cache on disk has crashed where several processes wrote it at once (numba issue 4807), and Spark runs many
Python workers. So every process loads, and the first one compiles, under one lock; after that nobody writes.
"""

from __future__ import annotations

from functools import cache

import msgspec
import numpy as np
import pyarrow as pa

from kernels import EVENT, FLAG_HAS_MSGID, FLAG_HAS_UOW, layout
from kernels._compile import compile_lock, compiled_here
from twin.arrays import MemoryArrays
from twin.estate import Estate, QueueManager, Route, Smds, Structure
from twin.events import Decoder, EventBlock
from twin.findings import Viewer
from twin.structure import StructureTwin

_STORE, _QMGR, _QUEUE = "WARM/UP", "QM", "Q"


@cache
def warm() -> int:
    """Have every kernel ready in this process; how many signatures it had to compile (0: all were on disk)."""
    with compile_lock():
        _decode(Decoder(_estate()))
        _look(StructureTwin(_estate(), _STORE, MemoryArrays()).viewer())
        _run(StructureTwin(_estate(), _STORE, MemoryArrays()))
    return compiled_here()


def _decode(decoder: Decoder) -> None:
    """Pass through every kernel of the decoder."""
    event = {"time": "2026-11-20T12:00:00Z", "qmgr": _QMGR, "op": "GET", "queue": _QUEUE, "msgid": "m", "uow": "u"}
    decoder.ndjson([msgspec.json.encode(event)])
    decoder.arrow_table(pa.Table.from_pylist([event]))


def _look(viewer: Viewer) -> None:
    """Look at every resource as an open alert does."""
    for resource in ("entries", "elements", f"smds/{_QMGR}"):
        viewer.is_over("full", resource, 0)


def _estate() -> Estate:
    structure = Structure(
        name=_STORE,
        queue_sharing_group="WARM",
        queue_managers=(_QMGR,),
        size=1 << 20,
        cf_level=5,
        queues=(_QUEUE,),
        smds={_QMGR: Smds(size=1 << 24)},
    )
    return Estate(
        source="warm",
        stores={_STORE: structure},
        queue_managers={_QMGR: QueueManager(name=_QMGR)},
        routes=(Route(_STORE, _QMGR), Route(_STORE, _QMGR, _QUEUE, _QUEUE)),
    )


def _run(twin: StructureTwin) -> None:
    """Pass through every kernel that Python calls."""
    events = np.zeros(2000, EVENT)
    events["time"] = 1_700_000_000_000_000 + np.arange(events.size) * 2_000_000
    events["op"] = [layout.GET if i % 3 == 2 else layout.PUT for i in range(events.size)]
    events["seq"] = np.arange(events.size)
    events["route"], events["count"], events["length"] = 1, 1, 100_000
    events["msgid"], events["flags"] = np.arange(events.size), FLAG_HAS_MSGID
    events["flags"][::5] |= FLAG_HAS_UOW
    events["op"][-3:] = [layout.ALTER, layout.REBUILD, layout.MEASURE]
    extras = {1997: b'{"size": "1M"}', 1998: b"{}", 1999: b'{"ents_used": 1, "elems_used": 1}'}
    twin.apply(EventBlock(_STORE, events, extras))
    twin.demand(events[:10].copy())
    twin.state()
    pages = list(twin.dirty_pages())
    again = StructureTwin(_estate(), _STORE, MemoryArrays(), twin.header(), pages)
    again.tables.reserve("messages", 10_000)
