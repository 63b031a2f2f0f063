"""The tables of a store: they grow, they are cut into pages, and pages put them together again."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from kernels import layout, meter_rows
from kernels.meter_rows import TOTAL_TIDE
from twin.state.arrays import MemoryArrays
from twin.state.tables import TABLES, StateError, Tables

NAMES_PAGE = 8192
BY_ROW = {"messages", "order"}  # tables with a bit per row


def loaded(tables: Tables, pages: dict[int, bytes]) -> Tables:
    """Tables of the same sizes, filled from pages."""
    again = Tables(MemoryArrays(), tables.rows(), tables.names_size, tables.journals())
    again.load(pages.items())
    return again


def test_new_tables_are_empty_and_have_nothing_to_save() -> None:
    tables = Tables(MemoryArrays())
    assert not any(tables.store.messages.tobytes())
    assert list(tables.dirty_pages()) == []
    assert tables.names == b""


@pytest.mark.parametrize(("name", "shift"), [("queues", layout.QUEUE_SHIFT), ("seen", layout.SEEN_SHIFT)])
def test_a_touched_row_saves_its_page_once(name: str, shift: int) -> None:
    tables = Tables(MemoryArrays())
    tables.reserve(name, 5 << shift)
    list(tables.dirty_pages())
    rows, dirty = getattr(tables.store, name), getattr(tables.store, f"{name}_dirty")
    row = (3 << shift) + 1
    rows[row : row + 1] = np.ones(1, rows.dtype) if rows.dtype == np.uint64 else _ones(rows.dtype)
    layout.touch(dirty, row, shift)
    [(number, page)] = list(tables.dirty_pages())
    assert page == rows[3 << shift : 4 << shift].tobytes()
    assert list(tables.dirty_pages()) == []
    again = loaded(tables, {number: page})
    assert getattr(again.store, name).tobytes() == rows.tobytes()


def _ones(dtype: np.dtype[Any]) -> Any:
    return np.frombuffer(b"\1" * dtype.itemsize, dtype)


def test_pages_of_all_tables_have_numbers_of_their_own() -> None:
    tables = Tables(MemoryArrays())
    tables.set_names(b"x" * 3 * NAMES_PAGE)
    tables.reserve("counts", 1)
    marks = [getattr(tables.store, name) for name in tables.store._fields if name.endswith("_dirty")]
    for dirty in marks:
        assert dirty.size
        dirty[:] = 1
    numbers = [number for number, _ in tables.dirty_pages()]
    large = sum(dirty.size for dirty in marks if dirty.size > 1 and dirty.size % 8)  # without bit maps
    assert len(numbers) == len(set(numbers)) == large + 1 + 3


def written(tables: Tables, *names: str) -> dict[int, bytes]:
    """Pages after every row of some tables was set to its number; all tables named are small."""
    for name in names:
        rows = getattr(tables.store, name)
        rows[:] = np.repeat(np.arange(1, rows.size + 1, dtype=np.uint8), rows.dtype.itemsize).view(rows.dtype)
        getattr(tables.store, f"{name}_dirty")[:] = 0xFF if name in BY_ROW else 1
    return dict(tables.dirty_pages())


def test_tables_of_one_page_share_a_page() -> None:
    tables = Tables(MemoryArrays())
    pages = written(tables, "messages", "queues", "flows")
    assert len(pages) == 1
    again = loaded(tables, pages)
    for name in ("messages", "queues", "flows"):
        assert getattr(again.store, name).tobytes() == getattr(tables.store, name).tobytes()
    assert not again.store.units.tobytes().strip(b"\0")


@pytest.mark.parametrize("others", [(), ("queues",)])
def test_a_table_that_outgrows_its_page_leaves_the_shared_page(others: tuple[str, ...]) -> None:
    tables = Tables(MemoryArrays())
    pages = written(tables, "messages", "queues")
    tables.reserve("messages", 1_000)
    tables.store.messages["length"][0] = 77
    pages |= written(tables, *others)
    again = loaded(tables, pages)
    for name in ("messages", "queues"):
        assert getattr(again.store, name).tobytes() == getattr(tables.store, name).tobytes()


def test_a_damaged_shared_page_is_an_error() -> None:
    tables = Tables(MemoryArrays())
    [(number, page)] = written(tables, "messages", "queues").items()
    for damaged in (page[:2], page[:-5], page[:4] + b"\xff" * 8):
        with pytest.raises(StateError, match=f"state page {number:#x}"):
            loaded(tables, {number: damaged})


def test_a_small_table_at_least_doubles_and_keeps_rows_and_marks() -> None:
    tables = Tables(MemoryArrays())
    first = tables.store.messages.size
    tables.store.messages["length"] = np.arange(first)
    layout.touch_row(tables.store.messages_dirty, 0)
    tables.reserve("messages", first)
    assert tables.rows()["messages"] == first
    tables.reserve("messages", first + 1)
    assert tables.rows()["messages"] == 2 * first
    tables.reserve("messages", 20 * first)
    assert tables.rows()["messages"] == 32 * first
    assert tables.store.messages["length"][:first].tolist() == list(range(first))
    assert not tables.store.messages[first:].tobytes().strip(b"\0")
    assert len(list(tables.dirty_pages())) == 1
    assert tables.store.message_buckets.size == tables.store.message_links.size == 32 * first


def test_a_page_written_before_its_table_grew_fills_the_beginning_of_the_page() -> None:
    tables = Tables(MemoryArrays())
    first = tables.store.messages.size
    tables.store.messages["length"] = np.arange(1, first + 1)
    layout.touch_row(tables.store.messages_dirty, 0)
    pages = dict(tables.dirty_pages())
    tables.reserve("messages", 2 * first)
    assert list(tables.dirty_pages()) == []
    again = loaded(tables, pages)
    assert again.store.messages.tobytes() == tables.store.messages.tobytes()


def test_an_empty_store_takes_little_memory() -> None:
    tables = Tables(MemoryArrays())
    assert sum(array.nbytes for array in tables.store) + NAMES_PAGE <= 32 * 1024


@pytest.mark.parametrize("size", [1, NAMES_PAGE - 1, NAMES_PAGE, NAMES_PAGE + 1, 2 * NAMES_PAGE, 100_000])
def test_names_of_any_size_are_kept_with_the_pages(size: int) -> None:
    tables = Tables(MemoryArrays())
    names = bytes(np.random.default_rng(1).integers(0, 256, size, np.uint8))
    tables.set_names(names)
    pages = dict(tables.dirty_pages())
    assert {len(page) for page in pages.values()} == {min(NAMES_PAGE, tables.rows()["names"])}
    assert loaded(tables, pages).names == names


@pytest.mark.parametrize("number", [0, 99 << 32, (8 << 32) | 1, (9 << 32) | 1])
def test_a_page_without_a_place_is_an_error(number: int) -> None:
    with pytest.raises(StateError, match=f"state page {number:#x} has no place"):
        Tables(MemoryArrays()).load([(number, bytes(8192))])


def test_a_page_of_messages_without_a_place_is_an_error() -> None:
    larger = Tables(MemoryArrays())
    larger.reserve("messages", 2_000)
    larger.store.messages_dirty[-64:] = 0xFF
    number, page = next(entry for entry in larger.dirty_pages() if entry[0] == (1 << 32) | 3)
    with pytest.raises(StateError, match=f"state page {number:#x} has no place"):
        Tables(MemoryArrays()).load([(number, page)])


def test_a_large_table_grows_by_a_sixteenth_and_has_a_bucket_for_each_row() -> None:
    tables = Tables(MemoryArrays())
    sizes = []
    for rows in range(1_000, 1_000_000, 3_989):
        tables.reserve("messages", rows)
        store = tables.store
        assert rows <= store.messages.size == store.message_links.size
        assert store.messages.size == 8 * store.messages_dirty.size
        buckets = store.message_buckets.size
        assert buckets & (buckets - 1) == 0
        assert store.messages.size <= buckets < 2 * store.messages.size
        sizes.append(store.messages.size)
    large = sorted({size for size in sizes if size >= 1 << 16})
    assert all(after <= before * 1.07 for before, after in pairwise(large))


def test_rows_of_an_earlier_format_are_read_and_written_again() -> None:
    """In format 10 a rise named no tide: it was that of the total."""
    tables = Tables(MemoryArrays())
    rises = tables.store.rises
    rises[3] = _ones(meter_rows.RISE)
    fields = [field for field in meter_rows.RISE.names or () if field != "tide"]
    written = np.zeros(rises.size, np.dtype([(field, meter_rows.RISE[field]) for field in fields], align=True))
    for field in fields:
        written[field] = rises[field]
    number = TABLES["rises"].number << 32
    again = Tables(MemoryArrays(), tables.rows())
    again.load([(number, written.tobytes())], 10)
    assert again.store.rises["tide"].tolist() == [TOTAL_TIDE] * rises.size
    assert again.store.rises[fields].tolist() == rises[fields].tolist()
    assert loaded(again, dict(again.dirty_pages())).store.rises.tobytes() == again.store.rises.tobytes()
    with pytest.raises(StateError, match="is damaged"):
        Tables(MemoryArrays(), tables.rows()).load([(number, written.tobytes()[:-1])], 10)
