"""Journals of changed rows: pages and journals together always give the table, in bounded space."""

import numpy as np
import pytest

from kernels import index, layout
from twin.state import arrays
from twin.state.arrays import Array, MemoryArrays
from twin.state.tables import StateError, Tables

PAGE_ROWS = 512
JOURNAL = 21  # the number of the journals of messages


class Saved:
    """Tables whose pages are kept as a state store keeps them."""

    def __init__(self, rows: int) -> None:
        self.tables = Tables(MemoryArrays())
        self.tables.reserve("messages", rows)
        self.pages: dict[int, bytes] = {}
        self.written: list[dict[int, bytes]] = []

    @property
    def messages(self) -> Array:
        return self.tables.store.messages

    def change(self, rows: Array, value: int) -> None:
        """Set some rows, and mark them as `touch_row` does."""
        self.messages["age"][rows] = value
        self.messages["length"][rows] = value % 1_000 + rows % 7
        marks = np.left_shift(1, rows & 7).astype(np.uint8)
        np.bitwise_or.at(self.tables.store.messages_dirty, rows >> 3, marks)

    def save(self) -> dict[int, bytes]:
        """Write what changed, as at the end of a batch, and return it."""
        written = dict(self.tables.dirty_pages())
        self.pages |= written
        self.written.append(written)
        return written

    def reload(self) -> Tables:
        """Return tables from what was saved."""
        tables = self.tables
        again = Tables(MemoryArrays(), tables.rows(), tables.names_size, tables.journals())
        again.load(self.pages.items())
        index.clear(again.store.message_buckets)  # no message is available
        return again

    def assert_complete(self) -> None:
        assert self.reload().store.messages.tobytes() == self.messages.tobytes()


def test_a_row_that_a_kernel_marks_is_saved() -> None:
    saved = Saved(2 * PAGE_ROWS)
    saved.messages["age"][777] = 7
    layout.touch_row(saved.tables.store.messages_dirty, 777)
    assert list(saved.save()) == [(JOURNAL << 32) | (1 << 16)]
    saved.assert_complete()


def journal_bytes(pages: dict[int, bytes]) -> int:
    return sum(len(content) for number, content in pages.items() if number >> 32 == JOURNAL)


def test_few_rows_of_many_pages_are_one_journal_and_many_rows_of_a_page_are_the_page() -> None:
    saved = Saved(100 * PAGE_ROWS)
    saved.change(np.arange(100 * PAGE_ROWS), 1)
    assert all(number >> 32 == 1 for number in saved.save() if number >> 32 in (1, JOURNAL))
    saved.change(np.arange(0, 100 * PAGE_ROWS, PAGE_ROWS), 2)
    [(number, content)] = saved.save().items()
    assert number >> 32 == JOURNAL
    assert len(content) < 100 * (4 + layout.MESSAGE.itemsize) / 2
    saved.change(np.arange(3 * PAGE_ROWS, 4 * PAGE_ROWS - 10), 3)
    assert list(saved.save()) == [(1 << 32) | 3]
    saved.assert_complete()


@pytest.mark.parametrize("seed", range(6))
def test_pages_and_journals_give_the_table_whatever_was_changed(seed: int) -> None:
    """Batches of any size and spread, growth, and reloads between them."""
    rng = np.random.default_rng(seed)
    saved = Saved(int(rng.integers(16, 3_000)))
    for batch in range(4 * arrays.SLOTS):
        size = saved.messages.size
        count = int(rng.choice([0, 1, 5, size // 20, size // 3, size]))
        start = int(rng.integers(0, size))
        spread = int(rng.choice([count, 4 * count, size]))
        rows = np.unique((start + rng.integers(0, max(1, spread), count)) % size)
        saved.change(rows, batch)
        if rng.random() < 0.05:
            saved.tables.reserve("messages", size + int(rng.integers(1, 2_000)))
        saved.save()
        if rng.random() < 0.2:
            saved.assert_complete()
        if rng.random() < 0.1:
            saved.tables = saved.reload()
    saved.assert_complete()


def test_journals_of_changes_in_any_order_take_bounded_space_and_few_pages_a_batch() -> None:
    pages = 200
    saved = Saved(pages * PAGE_ROWS)
    pages = saved.messages.size // PAGE_ROWS
    saved.change(np.arange(saved.messages.size), 1)
    saved.save()
    rng = np.random.default_rng(7)
    for batch in range(5 * arrays.SLOTS):
        saved.change(np.unique(rng.integers(0, saved.messages.size, 4 * pages)), batch + 2)
        saved.save()
    keys = {number for number in saved.pages if number >> 32 == JOURNAL}
    assert len(keys) == arrays.SLOTS
    assert journal_bytes(saved.pages) <= 2 * saved.messages.nbytes
    whole = [sum(number >> 32 == 1 for number in written) for written in saved.written[1:]]
    assert max(whole) <= pages // 8
    assert min(whole[arrays.SLOTS :]) > 0
    saved.assert_complete()


def test_a_page_that_waits_is_written_before_its_journal_is_lost() -> None:
    """A single row of a page changes once, then others for as many batches as there are journals."""
    saved = Saved(50 * PAGE_ROWS)
    saved.change(np.array([7]), 1)
    saved.save()
    for batch in range(3 * arrays.SLOTS):
        saved.change(np.array([20 * PAGE_ROWS + batch]), batch + 2)
        saved.save()
        saved.assert_complete()
    assert 1 << 32 in saved.pages


@pytest.mark.nightly
def test_a_large_journal_leaves_nothing_that_a_small_one_takes_up() -> None:
    """The parts of a large journal stay in its slot until there is another as large."""
    saved = Saved(700 * PAGE_ROWS)
    rng = np.random.default_rng(3)
    saved.change(rng.choice(saved.messages.size, 12_000, replace=False), 1)
    assert len(saved.save()) > 2
    for batch in range(2 * arrays.SLOTS):
        saved.change(rng.choice(saved.messages.size, 5, replace=False), batch + 2)
        saved.save()
        saved.assert_complete()


def test_a_journal_with_a_row_that_the_table_lacks_is_an_error() -> None:
    saved, small = Saved(8 * PAGE_ROWS), Saved(2 * PAGE_ROWS)
    saved.change(np.array([5, 5 * PAGE_ROWS]), 1)
    small.pages = saved.save()
    with pytest.raises(StateError, match=f"does not fit the header: row {5 * PAGE_ROWS}, expected: less than 1024"):
        small.reload()


@pytest.mark.parametrize("rows", [[5, 600], list(range(PAGE_ROWS))], ids=["a journal", "a page"])
def test_a_damaged_journal_or_page_is_an_error(rows: list[int]) -> None:
    saved = Saved(4 * PAGE_ROWS)
    saved.change(np.array(rows), 1)
    [(number, content)] = saved.save().items()
    too_many = content[:4] + (1 << 30).to_bytes(4, "little") + content[8:]
    for bad in (content[:3], content[:-3], content[:8] + b"\xff" * 8, too_many, b""):
        saved.pages = {number: bad}
        with pytest.raises(StateError, match=r"is damaged|does not fit the header"):
            saved.reload()
