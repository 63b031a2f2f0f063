"""Tables of a store: allocation, growth, their state pages, the owners of their rows, and earlier formats.

- The number of a page is `table << 32 | index`; changed rows of the tables of messages may be in journals instead
  (`twin.state.arrays`).
- Tables of at most one page share the *small page*, because the state store has a cost per page: it holds all their
  rows, compressed, and is written when one of them changes. When a table outgrows its page, it leaves the small page,
  and its rows are written; what the small page still holds of it is ignored.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from kernels import index, layout, meter_rows
from kernels.ids import GETS, MESSAGES, UNITS, reindex
from kernels.meter_rows import TOTAL_TIDE
from twin.base.errors import MqtwinError
from twin.estate import Route
from twin.state.arrays import (
    Array,
    Arrays,
    MemoryArrays,
    Size,
    apply_journals,
    read_page,
    select_pages,
    write_journal,
    write_page,
)

# --- earlier formats --------------------------------------------------------------------------------------------------
# Rows of tables and records in earlier formats of state, which a twin reads and writes again in the present one. A
# field that such rows lack is 0, but for those of `_INITIAL`. What is added to a row here needs the dtype as it was: a
# field taken out of the present dtype, or the whole dtype once other fields have changed, too.

OLDEST = 10  # format of a store that holds messages, from which on it is read


def _without(dtype: np.dtype[Any], *names: str) -> np.dtype[Any]:
    """Return an aligned dtype without some of its fields."""
    fields = [(name, dtype[name]) for name in dtype.names or () if name not in names]
    return np.dtype(fields, align=True)


# format -> table or record -> dtype of its rows; those of any other one are as they are now.
_DTYPES: dict[int | None, dict[str, np.dtype[Any]]] = {
    10: {
        "scm": _without(layout.SCM_USE, "bound"),
        "rises": _without(meter_rows.RISE, "tide"),
        "tides": _without(meter_rows.TIDE, "apart"),
    }
}
_INITIAL = {("rises", "tide"): TOTAL_TIDE}  # only the rises of what a store holds in all were kept


def changed_tables(version: int | None) -> frozenset[str]:
    """Return the tables and records whose rows were others in an earlier format."""
    return frozenset(_DTYPES.get(version, ()))


def read_rows(content: bytes, name: str, dtype: np.dtype[Any], version: int | None) -> Array:
    """Return rows from their bytes, with zero padding, so that the same state gives the same bytes. `version`: format
    of the bytes; None: the present one. ValueError: the bytes are no whole number of rows.
    """
    written = np.frombuffer(content, _DTYPES.get(version, {}).get(name, dtype))
    rows = np.zeros(written.size, dtype)
    if written.dtype == dtype:
        rows[:] = written
        return rows
    for field in written.dtype.names or ():
        rows[field] = written[field]
    for (table, field), value in _INITIAL.items():
        if table == name:
            rows[field] = value
    return rows


# --- tables -----------------------------------------------------------------------------------------------------------

_PAGE_BITS = 32
_NAMES_SHIFT = 13
_MESSAGE_SHIFT = 9  # pages of 28 KB: a store with many messages is loaded twice as fast as from pages of 8 KB
_ORDER_SHIFT = 11
_LARGE_ROWS = 1 << 16  # from here on a table grows by a sixteenth: twice the size is up to 80 bytes a message held


@dataclass(frozen=True, slots=True)
class _Table:
    """A table."""

    number: int  # number of its pages
    dtype: np.dtype[Any]  # dtype of its rows
    rows: int  # rows of a new store
    shift: int  # log2 of the rows per page
    indexed_by: str | None = None  # prefix of its index
    journal: int | None = None  # number of its journals; None: kernels mark pages, not rows
    small: int | None = None  # maximum of rows in the small page, at most a page; None: a page

    def is_small(self, rows: int) -> bool:
        return rows <= (self.small or 1 << self.shift)

    def dirty_size(self, rows: int) -> int:
        """Return the bytes of `*_dirty`: one per page, or a bit per row of whole pages."""
        return _pages(rows, self.shift) * (1 if self.journal is None else (1 << self.shift) // 8)


# A new store has room for one queue of two queue managers, and for little else: most stores of a large estate hold
# little. The last page of a table ends with its rows.
TABLES = {
    "messages": _Table(1, layout.MESSAGE, 16, _MESSAGE_SHIFT, "message", journal=21, small=128),
    "held": _Table(2, layout.HELD, 8, layout.HELD_SHIFT, "held"),
    "units": _Table(3, layout.UNIT, 8, layout.UNIT_SHIFT, "unit"),
    "queues": _Table(4, layout.QUEUE, 1, layout.QUEUE_SHIFT),
    "chains": _Table(5, layout.CHAIN, 16, layout.CHAIN_SHIFT),
    "flows": _Table(6, layout.FLOW, 4, layout.FLOW_SHIFT),
    "seen": _Table(7, layout.SEEN, 2 * layout.SEEN_WORDS, layout.SEEN_SHIFT),
    "blocks": _Table(8, layout.BLOCK, 8, layout.BLOCK_SHIFT),
    "order": _Table(10, layout.ORDER, 8, _ORDER_SHIFT, journal=22, small=512),
    "packed": _Table(11, layout.PACKED, 8, layout.PACKED_SHIFT),
    "bins": _Table(12, meter_rows.BIN, meter_rows.BINS, meter_rows.BIN_SHIFT),
    "counts": _Table(13, np.dtype("i4"), 0, meter_rows.COUNT_SHIFT),  # reserved at the first put
    "stocks": _Table(14, meter_rows.STOCK, 3 * meter_rows.CLASSES, meter_rows.STOCK_SHIFT),
    "tides": _Table(16, meter_rows.TIDE, 8, meter_rows.TIDE_SHIFT),
    "places": _Table(19, layout.PLACE, 8, layout.PLACE_SHIFT),
    "ends": _Table(18, np.dtype("u8"), 8, layout.END_SHIFT),
    "rises": _Table(17, meter_rows.RISE, meter_rows.RISES, meter_rows.RISE_SHIFT),
}
_SMALL_PAGE = 20 << _PAGE_BITS
_SMALL_SIZE = struct.Struct("<I")  # bytes of the small page once decompressed
_SMALL_ROWS = struct.Struct("<II")  # number of a table, bytes of its rows, which follow
_SMALL_CODEC = pa.Codec("lz4_raw")
_NAMES = _Table(9, np.dtype("u1"), 256, _NAMES_SHIFT)

_rows_of = attrgetter(*TABLES)
_dirty_of = attrgetter(*(f"{name}_dirty" for name in TABLES))
_INDEXED = {"messages": MESSAGES, "held": GETS, "units": UNITS}
_JOURNALED = tuple(name for name, table in TABLES.items() if table.journal is not None)
_BUCKETS = tuple(f"{table.indexed_by}_buckets" for table in TABLES.values() if table.indexed_by)
_WAITING = np.dtype("u4")  # by page: see `row_journal.select_pages`

# Small arrays, kept in the header instead of pages: (dtype, rows). Data sets are too, one row per queue manager.
RECORDS = {
    "scalars": (layout.SCALARS, 1),
    "scm": (layout.SCM_USE, 1),
    "scm_ends": (layout.ORDER_ENDS, layout.ORDERS),
    "page_use": (layout.PAGE_USE, 1),
    "file_use": (layout.FILE_USE, 1),
}


def _pages(rows: int, shift: int) -> int:
    """Return the number of pages of a table. shift: log2 of the rows per page."""
    return -(-rows >> shift)


def _page(rows: Array, page: int, shift: int) -> Array:
    """Return the rows of a page; the last one ends with the table."""
    return rows[page << shift : (page + 1) << shift]


def _sizes(rows: Mapping[str, int]) -> tuple[dict[str, Size], dict[str, int]]:
    """Return the sizes of the arrays of a store, and the bytes of its `*_dirty`; rows: as of `Tables.rows`."""
    sizes: dict[str, Size] = {"names": (_NAMES.dtype, rows.get("names", _NAMES.rows))}
    for name, table in TABLES.items():
        count = rows.get(name, table.rows)
        sizes[name] = table.dtype, count
        if table.journal is not None:
            sizes[f"{name}_waiting"] = _WAITING, _pages(count, table.shift)
        if table.indexed_by:
            buckets = f"{table.indexed_by}_buckets"
            sizes[buckets] = layout.BUCKET, rows.get(buckets, table.rows)
            sizes[f"{table.indexed_by}_links"] = layout.LINK, count
    return sizes, {f"{name}_dirty": table.dirty_size(sizes[name][1]) for name, table in TABLES.items()}


_NEW = _sizes({})


class StateError(MqtwinError):
    """Inconsistent state: a page has no place, or belongs to an unknown table."""


def _small_tables(page: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (number of the table, bytes of its rows) of a small page. StateError: it is damaged."""
    try:
        (size,) = _SMALL_SIZE.unpack_from(page)
        content = _SMALL_CODEC.decompress(page[_SMALL_SIZE.size :], size, asbytes=True)
        start = 0
        while start < size:
            number, length = _SMALL_ROWS.unpack_from(content, start)
            start += _SMALL_ROWS.size + length
            yield number, content[start - length : start]
    except (struct.error, pa.ArrowException, OSError) as error:
        raise StateError(f"state page {_SMALL_PAGE:#x} is damaged: {error}") from None


class Tables:
    """All arrays of one store (`store`, the argument of kernels) and the encoded names of its rows (`names`)."""

    def __init__(
        self,
        arrays: Arrays,
        rows: dict[str, int] | None = None,
        names_size: int = 0,
        journals: dict[str, int] | None = None,
    ) -> None:
        self._arrays = arrays
        self._journals = dict(journals or {})  # number of the last journal of a table
        self._names_rows = (rows or {}).get("names", _NAMES.rows)
        sizes, dirty_sizes = _NEW if rows is None else _sizes(rows)
        parts = self._keep_own(arrays.tables(sizes))
        parts |= {name: np.zeros(size, np.uint8) for name, size in dirty_sizes.items()}
        if rows is None:
            for buckets in _BUCKETS:
                index.clear(parts[buckets])
        self.store = layout.Store(
            **parts,
            datasets=np.zeros(0, layout.DATASET),
            usage=np.zeros(meter_rows.DATA_SETS, layout.USAGE),
            **{name: np.zeros(rows, dtype) for name, (dtype, rows) in RECORDS.items()},
            params=np.zeros(1, layout.PARAMS),
        )
        self.store.params["bins_counted"] = 1
        self._rows: dict[str, int] = {}  # these two until a table grows
        self._small: list[tuple[bytes, Array]] = []  # head and rows of each table of the small page
        self._names_size = names_size
        self._names_dirty = False

    def _keep_own(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """Keep the arrays that kernels do not use, and return the others."""
        self._names = arrays.pop("names")
        self._waiting = {name: arrays.pop(f"{name}_waiting") for name in _JOURNALED}
        return arrays

    def rows(self) -> dict[str, int]:
        """Return the rows allocated by array, for `Tables(arrays, rows)`; it is made once, until one grows."""
        if not self._rows:
            self._rows = {name: getattr(self.store, name).size for name in (*TABLES, *_BUCKETS)}
            self._rows["names"] = self._names_rows
        return self._rows

    def journals(self) -> dict[str, int]:
        """Return the number of the last journal by table, for `Tables(arrays, rows, names_size, journals)`."""
        return self._journals

    def copied_arrays(self) -> MemoryArrays:
        """Return a copy of the arrays, for `Tables(arrays, rows, names_size, journals)`. Nothing is changed."""
        arrays = {"names": self._names} | {f"{name}_waiting": waiting for name, waiting in self._waiting.items()}
        for name, table in TABLES.items():
            names = [name, *(f"{table.indexed_by}_{part}" for part in ("buckets", "links") if table.indexed_by)]
            arrays |= {part: getattr(self.store, part) for part in names}
        return MemoryArrays(arrays)

    def records(self) -> dict[str, bytes]:
        """Return the bytes of the small arrays, for `restore_records`."""
        return {name: getattr(self.store, name).tobytes() for name in ("datasets", *RECORDS)}

    def restore_records(self, records: Mapping[str, bytes], version: int) -> None:
        """Restore the small arrays from the result of `records`, in the format of a version of state."""
        dtypes = {"datasets": (layout.DATASET, 0), **RECORDS}
        arrays = {name: read_rows(records[name], name, dtype, version) for name, (dtype, _) in dtypes.items()}
        datasets = arrays.pop("datasets")
        self.store = self.store._replace(**arrays)
        self.set_datasets(datasets)

    def set_datasets(self, datasets: Array) -> None:
        """Replace the data sets by DATASET[n], and make room for their usage."""
        usage = np.zeros(meter_rows.DATA_SETS + datasets.size, layout.USAGE)
        self.store = self.store._replace(datasets=datasets, usage=usage)

    def reserve(self, name: str, rows: int) -> None:
        """Grow a table to at least `rows` rows: a small one to twice its size at least, a large one by a sixteenth."""
        table = TABLES[name]
        old: Array = getattr(self.store, name)
        if rows <= old.size:
            return
        size = old.size or rows
        while size < rows:
            size += size if size < _LARGE_ROWS else size // 16
        if size > 1 << table.shift:
            size = _pages(size, table.shift) << table.shift
        old_dirty: Array = getattr(self.store, f"{name}_dirty")
        dirty = np.zeros(table.dirty_size(size), np.uint8)
        dirty[: old_dirty.size] = old_dirty
        sizes = {name: size}
        if table.journal is not None:
            sizes[f"{name}_waiting"] = _pages(size, table.shift)
        buckets = f"{table.indexed_by}_buckets"
        if table.indexed_by:
            sizes[f"{table.indexed_by}_links"] = size
            if getattr(self.store, buckets).size < size:
                sizes[buckets] = 1 << (size - 1).bit_length()
        self._grow(sizes)
        if old.size > 0 and table.is_small(old.size) and not table.is_small(size):  # it leaves the small page
            if table.journal is None:
                dirty[0] = 1
            else:
                dirty[: -(-old.size // 8)] = 0xFF
        self.store = self.store._replace(**{f"{name}_dirty": dirty})
        if buckets in sizes:
            reindex(self.store, _INDEXED[name])

    def _grow(self, rows: dict[str, int]) -> None:
        """Grow arrays; all of them may move."""
        self._rows, self._small = {}, []
        self.store = self.store._replace(**self._keep_own(self._arrays.grow(rows)))

    def new_meters(self) -> None:
        """Begin with empty meters."""
        self.store.bins["tick"] = layout.NEVER
        self.store.bins_dirty[:] = 1
        self.store.scalars["steady_from"] = layout.NEVER

    @property
    def names(self) -> bytes:
        """The encoded names; empty at first."""
        return bytes(self._names[: self._names_size])

    @property
    def names_size(self) -> int:
        """Bytes of `names`."""
        return self._names_size

    def set_names(self, text: bytes) -> None:
        """Set the names, which are kept in pages: they change seldom and may be many."""
        if len(text) > self._names_rows:
            while len(text) > self._names_rows:
                self._names_rows *= 2
            self._grow({"names": self._names_rows})
        self._names[: len(text)] = np.frombuffer(text, np.uint8)
        self._names_size = len(text)
        self._names_dirty = True

    def dirty_pages(self) -> Iterator[tuple[int, bytes]]:
        """Yield (page number, bytes) of what was written since the last call: pages, and parts of journals."""
        is_small_dirty = False
        for (name, table), dirty in zip(TABLES.items(), _dirty_of(self.store), strict=True):
            if not dirty.tobytes().strip(b"\0"):
                continue
            rows: Array = getattr(self.store, name)
            if table.is_small(rows.size):
                is_small_dirty = True
            elif table.journal is not None:
                yield from self._changed_rows(name, table, rows, dirty)
            else:
                for page in np.flatnonzero(dirty).tolist():
                    yield (table.number << _PAGE_BITS) | page, _page(rows, page, table.shift).tobytes()
            dirty[:] = 0
        if is_small_dirty:
            yield _SMALL_PAGE, self._small_page()
        if self._names_dirty:
            for page in range(-(-self._names_size >> _NAMES_SHIFT)):
                start = page << _NAMES_SHIFT
                yield (_NAMES.number << _PAGE_BITS) | page, self._names[start : start + (1 << _NAMES_SHIFT)].tobytes()
            self._names_dirty = False

    def _changed_rows(self, name: str, table: _Table, rows: Array, dirty: Array) -> Iterator[tuple[int, bytes]]:
        """Yield (page number, bytes) of the pages and journal with the rows marked in a bit map."""
        assert table.journal is not None
        waiting, last = self._waiting[name], self._journals.get(name, 0)
        bits = dirty.reshape(waiting.size, -1)
        changed = np.bitwise_count(bits.view(np.uint64)).sum(axis=1, dtype=np.int64)
        whole, sparse = select_pages(changed, waiting, last + 1, 1 << table.shift)
        if sparse.size:
            self._journals[name] = last = last + 1
            marked = np.unpackbits(bits[sparse], axis=1, bitorder="little")
            places, columns = np.nonzero(marked)
            numbers = (sparse[places] << table.shift) + columns
            for place, content in write_journal(rows, numbers, last):
                yield (table.journal << _PAGE_BITS) | place, content
            waiting[sparse[waiting[sparse] == 0]] = last
        for page in whole.tolist():
            content = write_page(_page(rows, page, table.shift), last)
            yield (table.number << _PAGE_BITS) | page, content
        waiting[whole] = 0

    def _small_page(self) -> bytes:
        if not self._small:
            tables = zip(TABLES.values(), _rows_of(self.store), strict=True)
            small = ((table, rows) for table, rows in tables if rows.size > 0 and table.is_small(rows.size))
            self._small = [(_SMALL_ROWS.pack(table.number, rows.nbytes), rows) for table, rows in small]
        content = b"".join([part for head, rows in self._small for part in (head, rows.tobytes())])
        return _SMALL_SIZE.pack(len(content)) + bytes(_SMALL_CODEC.compress(content, asbytes=True))

    def load(self, pages: Iterable[tuple[int, bytes]], version: int | None = None) -> None:
        """Fill the tables from (page number, bytes) and mark as changed what was written in an earlier format; None:
        the present one. StateError: a page has no place or is damaged.
        """
        by_number = {table.number: (name, table) for name, table in TABLES.items()}
        by_number[_NAMES.number] = ("names", _NAMES)
        journaled_by = {table.journal: name for name, table in TABLES.items() if table.journal is not None}
        journals: dict[str, list[bytes]] = {name: [] for name in _JOURNALED}
        page_journals = {name: np.zeros(self._waiting[name].size, np.int64) for name in _JOURNALED}
        small_tables: list[tuple[int, bytes]] = []
        for number, content in pages:
            table_number, place = number >> _PAGE_BITS, number & ((1 << _PAGE_BITS) - 1)
            if number == _SMALL_PAGE:
                small_tables = list(_small_tables(content))
            elif table_number in journaled_by:
                journals[journaled_by[table_number]].append(content)
            else:
                name, table = by_number.get(table_number, ("", _NAMES))
                journal = self._load_page(number, name, table, content, version)
                if table.journal is not None:
                    page_journals[name][place] = journal
        self._load_journals(journals, page_journals)
        self._load_small(small_tables, by_number, version)
        for name in changed_tables(version) & TABLES.keys():
            getattr(self.store, f"{name}_dirty")[:] = 1

    def _load_page(self, number: int, name: str, table: _Table, content: bytes, version: int | None) -> int:
        """Fill a page of a table; return the number of the journal up to which it is current, or 0."""
        try:
            if table.journal is None:
                page, journal = read_rows(content, name, table.dtype, version), 0
            else:
                page, journal = read_page(content, table.dtype, 1 << table.shift)
        except ValueError as error:
            raise StateError(f"state page {number:#x} is damaged: {error}") from None
        rows = self._names if name == "names" else getattr(self.store, name, np.zeros(0, np.uint8))
        start = (number & ((1 << _PAGE_BITS) - 1)) << table.shift
        end = start + page.size
        if not name or end > rows.size:
            raise StateError(f"state page {number:#x} has no place; the header and the pages do not fit together")
        rows[start:end] = page
        return journal

    def _load_small(
        self,
        small_tables: Iterable[tuple[int, bytes]],
        by_number: Mapping[int, tuple[str, _Table]],
        version: int | None,
    ) -> None:
        for number, content in small_tables:
            name, table = by_number.get(number, ("", _NAMES))
            rows = getattr(self.store, name, np.zeros(0, np.uint8))
            try:
                written = read_rows(content, name, table.dtype, version)
            except ValueError as error:
                raise StateError(f"state page {_SMALL_PAGE:#x} is damaged in table {number}: {error}") from None
            if not name or written.size > rows.size:
                raise StateError(f"state page {_SMALL_PAGE:#x} has a table {number} that does not fit the header")
            if table.is_small(rows.size):
                rows[: written.size] = written

    def _load_journals(self, journals: Mapping[str, Sequence[bytes]], page_journals: Mapping[str, Array]) -> None:
        for name, parts in journals.items():
            rows, waiting, shift = getattr(self.store, name), self._waiting[name], TABLES[name].shift
            if not parts or TABLES[name].is_small(rows.size):
                continue
            try:
                apply_journals(rows, waiting, page_journals[name], parts, shift)
            except ValueError as error:
                raise StateError(f"a journal of {name} does not fit the header: {error}") from None

    def build_indexes(self) -> None:
        """Build the indexes of the tables, after `load` and once `store.scalars` is set."""
        for table in _INDEXED.values():
            reindex(self.store, table)


# --- owners of rows ---------------------------------------------------------------------------------------------------


class Names(msgspec.Struct):
    """Owners of the rows of a store, by row; rows are only added."""

    qmgrs: list[str] = []
    queues: list[str] = []
    flows: list[tuple[str, str]] = []  # queue manager, queue as events name it


def give_rows(tables: Tables, names: Names, routes: Sequence[Route]) -> tuple[Names, Array]:
    """Assign rows (queue manager, queue, flow) to all routes of a store; return names, with new ones, and ROUTE[n]."""
    numbers: list[tuple[int, int, int]] = []  # flow, queue manager, queue
    qmgrs = {name: row for row, name in enumerate(names.qmgrs)}
    queues = {name: row for row, name in enumerate(names.queues)}
    flows = {name: row for row, name in enumerate(names.flows)}
    for route in routes:
        flow, qmgr, queue = layout.NONE, qmgrs.setdefault(route.qmgr, len(qmgrs)), layout.NONE
        if route.queue is not None and route.reported is not None:
            queue = queues.setdefault(route.queue, len(queues))
            flow = flows.setdefault((route.qmgr, route.reported), len(flows))
        numbers.append((flow, qmgr, queue))
    all_names = Names(list(qmgrs), list(queues), list(flows))
    if all_names != names:
        tables.set_names(msgspec.msgpack.encode(all_names))
        _fill_new(tables, names, all_names)
    return all_names, np.array(numbers, layout.ROUTE)


def give_queues(tables: Tables, names: Names, queues: Sequence[str]) -> Names:
    """Assign rows to queues of a store that none of its routes leads to; return the names with the new ones."""
    all_names = Names(names.qmgrs, [*names.queues, *queues], names.flows)
    tables.set_names(msgspec.msgpack.encode(all_names))
    _fill_new(tables, names, all_names)
    return all_names


def _fill_new(tables: Tables, before: Names, names: Names) -> None:
    """Initialise the rows of new queues and flows."""
    tables.reserve("queues", len(names.queues))
    tables.reserve("chains", len(names.queues) * layout.PRIORITIES)
    tables.reserve("flows", len(names.flows))
    tables.reserve("seen", len(names.flows) * layout.SEEN_WORDS)
    queues, flows = slice(len(before.queues), len(names.queues)), slice(len(before.flows), len(names.flows))
    new_queues = tables.store.queues[queues]
    for field in ("keyed_head", "keyed_tail", "any_head", "any_tail"):
        new_queues[field] = layout.NONE
    new_queues["last_full"], new_queues["armed"] = layout.NEVER, 0xFF
    tables.store.chains[queues.start * layout.PRIORITIES : queues.stop * layout.PRIORITIES] = layout.NONE
    qmgrs = {name: row for row, name in enumerate(names.qmgrs)}
    tables.store.flows["qmgr"][flows] = [qmgrs[qmgr] for qmgr, _ in names.flows[flows]]
    for dirty in ("queues_dirty", "chains_dirty", "flows_dirty"):
        getattr(tables.store, dirty)[:] = 1
