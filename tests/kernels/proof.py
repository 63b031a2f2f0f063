"""Properties of the twin of every kind of store.

Its states equal those of the oracle. Cuts of blocks, restarts and the location of arrays do not change its results.
Every page that an event changes is marked as dirty.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.kernels.beside import Decoding, assert_same, contents, cut, header_of, records
from tests.support.workloads import Workload
from twin.state.arrays import Array, MemoryArrays, Size
from twin.state.tables import TABLES, Tables
from twin.stores.message_store import MessageStore


def check_equal_states(workload: Workload, every: int) -> None:
    """Apply a workload to twin and oracle; assert equal states after every `every` events and at the end."""
    decoding = Decoding(workload.config, foresees=False)
    twin, oracle = decoding.twin(), decoding.oracle(workload)
    assert_same(twin, oracle)
    for start in range(0, len(workload.events), every):
        block, accepted = decoding.block(workload.events[start : start + every])
        twin.apply(block)
        for event in accepted:
            oracle.apply(event)
        assert_same(twin, oracle)


class Run:
    """A twin, its alerts as published, and the last content of every page it has written."""

    def __init__(self, twin: MessageStore) -> None:
        self.twin = twin
        self.alerts: list[bytes] = []
        self.pages: dict[int, bytes] = {}

    def apply(self, block: Any) -> None:
        self.alerts += records(self.twin.apply(block))

    def save(self) -> bytes:
        """Save the dirty pages on top of those saved before, as a state store does; return the header."""
        self.pages |= dict(self.twin.dirty_pages())
        return self.twin.header()

    def end(self) -> dict[str, Any]:
        """Return all results, after checking that what was saved gives the arrays."""
        self.save()
        tables = self.twin.tables
        loaded = Tables(MemoryArrays(), tables.rows(), tables.names_size, tables.journals())
        loaded.load(self.pages.items())
        saved, expected = contents(loaded), contents(tables)
        assert not [name for name in expected if saved[name] != expected[name]]
        return {"alerts": self.alerts, "header": header_of(self.twin), "rows": expected, "state": self.twin.state()}


def check_same_results(decoding: Decoding, block: Any, places: list[int]) -> None:
    """Assert that a block cut at `places` has the same results in one run, with restarts, and with attached arrays."""
    whole = Run(decoding.twin())
    whole.apply(block)
    expected = whole.end()
    for way in (in_blocks, with_restarts, attached):
        run = Run(decoding.twin())
        way(decoding, run, cut(block, *places))
        actual = run.end()
        different = [name for name in expected if actual[name] != expected[name]]
        assert not different, way.__name__  # without the values, since pages are long


def in_blocks(_: Decoding, run: Run, blocks: list[Any]) -> None:
    """Apply the blocks one after the other."""
    for block in blocks:
        run.apply(block)


def with_restarts(decoding: Decoding, run: Run, blocks: list[Any]) -> None:
    """Open a new twin after each block, from the header and all pages ever written."""
    for block in blocks:
        run.apply(block)
        run.twin = decoding.twin(None, run.save(), run.pages.items())


class LastingArrays(MemoryArrays):
    """Arrays that the next twin attaches, as it does those in files."""

    def tables(self, sizes: Mapping[str, Size]) -> dict[str, Array]:
        if not self._arrays:
            return super().tables(sizes)
        assert {name: (array.dtype, array.size) for name, array in self._arrays.items()} == sizes
        return dict(self._arrays)


def attached(decoding: Decoding, run: Run, blocks: list[Any]) -> None:
    """Open a new twin after each block, from the header and the arrays as they are."""
    arrays = LastingArrays()
    run.twin = decoding.twin(arrays)
    for block in blocks:
        run.apply(block)
        run.twin = decoding.twin(arrays, run.save(), None)


def marked_units(twin: MessageStore) -> dict[str, Array]:
    """Return a copy of every table by what kernels mark of it, rows or pages: u1[units, bytes], zero behind the end."""
    tables = {}
    for name, table in TABLES.items():
        content = getattr(twin.tables.store, name).view(np.uint8)
        unit_bytes = table.dtype.itemsize << (table.shift if table.journal is None else 0)
        tables[name] = np.zeros((-(-content.size // unit_bytes), unit_bytes), np.uint8)
        tables[name].reshape(-1)[: content.size] = content
    return tables


def marks_of(twin: MessageStore, name: str) -> Array:
    """Return True for each row or page of a table that is marked: bool[at least units]."""
    dirty: Array = getattr(twin.tables.store, f"{name}_dirty")
    return (dirty if TABLES[name].journal is None else np.unpackbits(dirty, bitorder="little")).astype(bool)


def check_marks(workload: Workload) -> None:
    """Assert after each event that every page, and every row of tables with journals, that has changed is marked."""
    decoding = Decoding(workload.config, foresees=False)
    twin = decoding.twin()
    block, _ = decoding.block(workload.events)
    before = marked_units(twin)
    list(twin.dirty_pages())
    for number, event in enumerate(cut(block, *range(len(block)))):
        twin.apply(event)
        after = marked_units(twin)
        for name, units in after.items():
            old = before[name].shape[0]
            changed = units.any(axis=1)
            changed[:old] = (units[:old] != before[name]).any(axis=1)
            assert not (changed & ~marks_of(twin, name)[: changed.size]).any(), f"{name}, after event {number}"
        before = after
        list(twin.dirty_pages())
