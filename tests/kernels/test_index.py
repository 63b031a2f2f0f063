"""The index of messages and held gets by id, compared with a dict from an id to its rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels import ids, index
from kernels.layout import AVAILABLE, BUCKET, FREE, MARK_KEYED, NONE, Array
from twin.state.arrays import MemoryArrays
from twin.state.tables import Tables

pytestmark = pytest.mark.uncompiled

ROWS = 48
IDS = [(queue, key) for queue in range(2) for key in range(3)]


class Indexed:
    """A table with an index of two buckets at first, so that ids share them."""

    def __init__(self, name: str) -> None:
        self.tables = Tables(MemoryArrays())
        self.name = name
        self.of_messages = name == "messages"
        self.tables.reserve(name, ROWS)
        buckets = {f"{'message' if self.of_messages else 'held'}_buckets": np.full(2, NONE, BUCKET)}
        self.tables.store = self.store = self.tables.store._replace(**buckets)
        self.rows: dict[tuple[int, int], list[int]] = {}

    @property
    def table(self) -> Array:
        table: Array = getattr(self.store, self.name)
        return table

    def enter(self, row: int, number: tuple[int, int], age: int, priority: int) -> None:
        entry = self.table[row]
        entry["queue"], entry["key"], entry["age"] = *number, age
        if self.of_messages:
            entry["priority"], entry["state"], entry["marks"] = priority, AVAILABLE, MARK_KEYED
            ids.enter(self.store, row)
        else:
            entry["used"], entry["keyed"] = 1, 1
            ids.enter_get(self.store, row)
        self.rows.setdefault(number, []).append(row)

    def leave(self, row: int) -> None:
        if self.of_messages:
            ids.leave(self.store, row)
            self.table[row]["state"] = FREE
        else:
            ids.leave_get(self.store, row)
            self.table[row]["used"] = 0
        self.rows[tuple(int(self.table[row][field]) for field in ("queue", "key"))].remove(row)  # type: ignore[index]

    def grow(self) -> None:
        high = "message_high" if self.of_messages else "held_high"
        self.store.scalars[high] = ROWS
        self.tables.reserve(self.name, 2 * self.table.size)
        self.store = self.tables.store

    def check(self) -> None:
        find = ids.find if self.of_messages else ids.find_get
        for queue, key in IDS:
            rows = self.rows.get((queue, key))
            expected = min(rows, key=self._order) if rows else NONE
            assert find(self.store, queue, np.uint64(key)) == expected

    def _order(self, row: int) -> tuple[int, int]:
        return -int(self.table[row]["priority"]) if self.of_messages else 0, int(self.table[row]["age"])


@given(
    st.sampled_from(["messages", "held"]),
    st.permutations(range(ROWS)),
    st.lists(
        st.tuples(st.integers(0, ROWS - 1), st.sampled_from(IDS), st.integers(0, 2), st.sampled_from([0] * 15 + [1])),
        max_size=120,
    ),
)
def test_the_first_row_of_an_id_is_found_whatever_came_and_left_and_however_the_index_grew(
    name: str, ages: list[int], steps: list[tuple[int, tuple[int, int], int, int]]
) -> None:
    indexed = Indexed(name)
    inside: set[int] = set()
    for row, number, priority, grows in steps:
        if row in inside:
            indexed.leave(row)
        else:
            indexed.enter(row, number, ages[row], priority)
        inside ^= {row}
        if grows and indexed.table.size < 1024:
            indexed.grow()
        indexed.check()


@pytest.mark.parametrize("name", ["messages", "held"])
@pytest.mark.parametrize("backwards", [False, True])
def test_rows_that_share_an_id_leave_in_their_order_however_they_came(name: str, backwards: bool) -> None:
    indexed = Indexed(name)
    ages = range(ROWS)
    for row in reversed(ages) if backwards else ages:
        indexed.enter(row, IDS[0], row, 0)
    for row in ages:
        indexed.check()
        indexed.leave(row)
    indexed.check()


def test_a_key_belongs_to_its_queue() -> None:
    mixed = {int(index.mix(np.uint64(key), queue)) for key in range(100) for queue in range(100)}
    assert len(mixed) > 9_990  # 31 bits: a few of 10,000 may fall together
