"""Loading of the compiled kernels once per process, and compiling them once per machine.

numba's cache on disk has crashed when several processes wrote it at once (numba issue 4807), and Spark runs many Python
workers. The first process therefore compiles under a lock, and leaves a mark: whoever finds it loads without a lock and
has nothing to write. Each version of the kernels has a folder; the first process of a version removes those that
nothing has used for thirty days.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from kernels import EVENT, FLAG_HAS_MSGID, FLAG_HAS_UOW, layout, messages, meters, pools, queue_file, storage, watch
from kernels._compile import CACHE_FOLDER, compile_lock, compiled_here
from kernels.meter_rows import STOCK_SHIFT
from twin.base.conditions import SCM, Condition, Pool, Resource
from twin.estate import Estate, QueueManager, Route, StoreConfig
from twin.events import Decoder, EventBlock
from twin.state.arrays import MemoryArrays
from twin.stores.message_store import MessageStore
from twin.stores.open import MESSAGE_TWINS, open_message_store
from twin.stores.structure import StructureTwin

COMPILING = "compiling kernels, once for this version: one to three minutes"
UNUSED_S = 30 * 86_400.0  # what the cache folder keeps for other versions is removed when it was last used before
_USED = (
    "used"  # a file beside machine code that is complete; its time is that of the last use, and users have it locked
)
_QMGR, _QUEUE = "QM", "Q"
_STORES = [twin.example(_QMGR, _QUEUE) for twin in MESSAGE_TWINS.values()]
_STRUCTURE = StructureTwin.example(_QMGR, _QUEUE)[0]


@cache
def warm() -> int:
    """Load every kernel, compile those not on disk, and return the number of signatures compiled."""
    if not _note_use():
        with compile_lock():
            if not _note_use():  # no other process has compiled meanwhile
                _load()
                (CACHE_FOLDER / _USED).touch()
                _note_use()
                remove_unused(CACHE_FOLDER.parent)
                return compiled_here()
    _load()
    return compiled_here()


def _load() -> None:
    """Call every kernel, which loads or compiles it."""
    _decode(Decoder(_estate(_STRUCTURE)))
    for config, resources in _STORES:
        estate = _estate(config)
        _look(open_message_store(estate, config.name), resources)
        _run(estate, config.name)
    _run_scm()


def compiles() -> bool:
    """Return True if `warm` will compile, not only read machine code; COMPILING is the message about it."""
    return not (CACHE_FOLDER / _USED).exists()


def count_compiled() -> int:
    """Return the number of kernels whose machine code is on disk; it rises while a process compiles."""
    return sum(1 for _ in CACHE_FOLDER.glob("*.nbi"))


def _note_use() -> bool:
    """Return True if the machine code is complete. Note that it is used now, and by this process until it ends."""
    mark = CACHE_FOLDER / _USED
    try:
        descriptor = os.open(mark, os.O_RDONLY)  # open until the process ends, and in its forks
    except FileNotFoundError:
        return False
    with contextlib.suppress(OSError):  # a cache that is read-only: nothing is removed there either
        fcntl.flock(descriptor, fcntl.LOCK_SH)  # waits for nobody but a process that removes the folder
        os.utime(descriptor)
    if os.fstat(descriptor).st_nlink:
        return True
    os.close(descriptor)
    return False


def remove_unused(folders: Path) -> None:
    """Remove the machine code of other versions that was last used UNUSED_S seconds ago and that no process uses."""
    for folder in folders.iterdir():
        if folder != CACHE_FOLDER:
            _remove_if_unused(folder)


def _remove_if_unused(folder: Path) -> None:
    mark = folder / _USED
    if not mark.exists():  # made by mqtwin 0.2, or not complete
        mark = folder
    with contextlib.suppress(OSError):  # locked, or removed meanwhile by the first process of another version
        if mark.stat().st_mtime > time.time() - UNUSED_S:
            return
        descriptor = os.open(mark, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if mark != folder:
                mark.unlink()  # first: whoever comes meanwhile must not take the rest as complete
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)


def _decode(decoder: Decoder) -> None:
    """Call every kernel of the decoder."""
    event = {"time": "2026-11-20T12:00:00Z", "qmgr": _QMGR, "op": "GET", "queue": _QUEUE, "msgid": "m", "uow": "u"}
    decoder.ndjson([msgspec.json.encode(event)])
    decoder.arrow_table(pa.Table.from_pylist([event]))
    EventBlock.unpack(EventBlock("", np.zeros(1, EVENT), {}).pack())


def _look(twin: MessageStore, resources: Iterable[Resource]) -> None:
    """Look at every resource as an open alert does, and at what a message of planned work takes."""
    storage.space_of(twin.tables.store, 1)
    for resource in resources:
        twin.view(resource).is_over(Condition.FULL, 0)


def _estate(config: StoreConfig) -> Estate:
    return Estate(
        source="warm",
        stores={config.name: config},
        queue_managers={_QMGR: QueueManager(name=_QMGR)},
        routes=(Route(config.name, _QMGR), Route(config.name, _QMGR, _QUEUE, _QUEUE)),
    )


def _run_scm() -> None:
    """Call the kernels of storage class memory and of data sets that only a change of attributes and an alert call."""
    estate = _estate(_STRUCTURE)
    twin = open_message_store(estate, _STRUCTURE.name)
    twin.view(SCM).is_over(Condition.SCM_EXHAUSTED, 0)
    assert twin.view(Resource(Pool.SMDS, _QMGR)).usage
    rebuild = np.zeros(1, EVENT)
    rebuild["time"], rebuild["op"], rebuild["seq"] = 1_700_000_000_000_000, layout.REBUILD, -1
    twin.apply(EventBlock(twin.name, rebuild, {0: b'{"scm_max_size": null}'}))


def _run(estate: Estate, name: str) -> None:
    """Call every kernel that Python calls."""
    events = np.zeros(2000, EVENT)
    events["time"] = 1_700_000_000_000_000 + np.arange(events.size) * 2_000_000
    events["op"] = [layout.GET if i % 3 == 2 else layout.PUT for i in range(events.size)]
    events["seq"] = np.arange(events.size)
    events["route"], events["count"], events["length"] = 1, 1, 100_000
    events["msgid"], events["flags"] = np.arange(events.size), FLAG_HAS_MSGID
    events["flags"][::5] |= FLAG_HAS_UOW
    events["op"][-3:] = [layout.ALTER, layout.REBUILD, layout.MEASURE]
    measured = b'{"messages": 1, "ents_used": 1, "elems_used": 1, "smds": {"QM": {"blocks_used": 1}}}'
    extras = {1997: b"{}", 1998: b"{}", 1999: measured}
    twin = open_message_store(estate, name)
    twin.apply(EventBlock(name, events, extras))
    twin.demand(events[:10].copy())
    twin.state()
    pages = list(twin.dirty_pages())
    again = open_message_store(estate, name, MemoryArrays(), twin.header(), pages)
    again.tables.reserve("messages", 10_000)
    messages.scan_expired(again.tables.store, int(messages.next_expiry(again.tables.store, 0)))
    messages.count_expired(again.tables.store)
    pools.base_left(again.tables.store, 0)
    pools.elements_of(1)
    meters.class_of(1)
    layout.touch(again.tables.store.stocks_dirty, 0, STOCK_SHIFT)
    queue_file.needed_at_checkpoint(again.tables.store)
    queue_file.pass_time(again.tables.store, 0, 1)
    watch.turn_back(again.tables.store, int(events["time"][0]), 1)
