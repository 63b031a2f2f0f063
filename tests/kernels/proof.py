"""What is proven of the twin of every kind of store: it says what the oracle says, and what must not matter does not.

Cuts, restarts, where arrays live; that every page an event changes is marked.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.kernels.beside import Decoding, Pages, all_of, assert_same, cut, records
from tests.support.workloads import Workload
from twin.state.arrays import Array, MemoryArrays, Size
from twin.stores.message_store import MessageStore


def compare(workload: Workload, every: int) -> None:
    """Both take the workload; their states are the same after every so many events and at the end."""
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
    """A twin and what it has told: alerts as published, and every page it has ever written."""

    def __init__(self, twin: MessageStore) -> None:
        self.twin = twin
        self.alerts: list[bytes] = []
        self.pages: Pages = {}

    def apply(self, block: Any) -> None:
        self.alerts += records(self.twin.apply(block))

    def keep(self) -> bytes:
        """What a state store keeps: pages on top of those kept before; the header."""
        self.pages |= dict(self.twin.dirty_pages())
        return self.twin.header()

    def end(self) -> dict[str, Any]:
        header = self.keep()
        everything = all_of(self.twin)
        written = {number: page for number, page in everything.items() if any(page)}
        kept = {number: page for number, page in self.pages.items() if any(page)}
        assert sorted(kept) == sorted(written)
        assert not [number for number, page in kept.items() if page != written[number]]
        return {"alerts": self.alerts, "header": header, "pages": everything, "state": self.twin.state()}


def check_that_nothing_matters(decoding: Decoding, block: Any, where: list[int]) -> None:
    whole = Run(decoding.twin())
    whole.apply(block)
    expected = whole.end()
    for way in (in_blocks, with_restarts, attached):
        run = Run(decoding.twin())
        way(decoding, run, cut(block, *where))
        found = run.end()
        different = [name for name in expected if found[name] != expected[name]]
        assert not different, way.__name__  # not the values: pages are long


def in_blocks(_: Decoding, run: Run, blocks: list[Any]) -> None:
    for block in blocks:
        run.apply(block)


def with_restarts(decoding: Decoding, run: Run, blocks: list[Any]) -> None:
    """After each block a new twin, of the header and of all pages ever written."""
    for block in blocks:
        run.apply(block)
        run.twin = decoding.twin(None, run.keep(), run.pages.items())


class LastingArrays(MemoryArrays):
    """Arrays that are found again by the next twin, as those in files are."""

    def tables(self, sizes: Mapping[str, Size]) -> dict[str, Array]:
        if not self._arrays:
            return super().tables(sizes)
        assert {name: (array.dtype, array.size) for name, array in self._arrays.items()} == sizes
        return dict(self._arrays)


def attached(decoding: Decoding, run: Run, blocks: list[Any]) -> None:
    """After each block a new twin, of the header and of the arrays as they are."""
    arrays = LastingArrays()
    run.twin = decoding.twin(arrays)
    for block in blocks:
        run.apply(block)
        run.twin = decoding.twin(arrays, run.keep(), None)


def rows_of(twin: MessageStore) -> dict[str, Array]:
    """A copy of every table that is cut into pages: u1[pages, bytes a page]."""
    store = twin.tables.store
    names = [name.removesuffix("_dirty") for name in store._fields if name.endswith("_dirty")]
    pages = {name: getattr(store, f"{name}_dirty").size for name in names}
    return {name: getattr(store, name).view(np.uint8).reshape(pages[name], -1).copy() for name in names}


def check_marks(workload: Workload) -> None:
    """Event by event: a page that has changed is marked."""
    decoding = Decoding(workload.config, foresees=False)
    twin = decoding.twin()
    block, _ = decoding.block(workload.events)
    before = rows_of(twin)
    list(twin.dirty_pages())
    for number, one in enumerate(cut(block, *range(len(block)))):
        twin.apply(one)
        after = rows_of(twin)
        for name, pages in after.items():
            marked = getattr(twin.tables.store, f"{name}_dirty").astype(bool)
            kept = before[name].shape[0]
            changed = pages.any(axis=1)
            changed[:kept] = (pages[:kept] != before[name]).any(axis=1)
            assert not (changed & ~marked).any(), f"{name}, after event {number}"
        before = after
        list(twin.dirty_pages())
