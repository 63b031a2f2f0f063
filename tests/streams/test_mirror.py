"""The mirror of a store's arrays is either current or invalid."""

from __future__ import annotations

import errno
import multiprocessing
import os
import resource
import time
from pathlib import Path

import numpy as np
import pytest

from streams.state import mirror as mirrors
from streams.state.mirror import (
    NO_ROOM,
    AttachError,
    Mirror,
    boot_id,
    map_shared,
    mirror_directory,
    mirror_root,
    remove_abandoned,
    remove_mirrors,
)
from twin.state.arrays import Array, MemoryArrays, Size

ROW = np.dtype([("key", "u8"), ("next", "i4")], align=True)


def claimed(path: Path) -> Mirror:
    mirror = Mirror.claim(path)
    assert mirror is not None
    return mirror


def table(mirror: Mirror, rows: int) -> Array:
    return mirror.tables({"messages": (ROW, rows)})["messages"]


def grow(mirror: Mirror, rows: int) -> Array:
    return mirror.grow({"messages": rows})["messages"]


def test_new_arrays_are_zero_and_keep_what_is_written(tmp_path: Path) -> None:
    first = claimed(tmp_path / "store")
    rows = table(first, 10)
    assert not rows["key"].any()
    rows["key"] = np.arange(10)
    first.validate(b"batch 1")
    first.release()

    second = claimed(tmp_path / "store")
    assert second.token() == b"batch 1"
    assert list(table(second, 10)["key"]) == list(range(10))
    second.release()


def test_grown_array_keeps_its_rows_and_is_zero_beyond(tmp_path: Path) -> None:
    mirror = claimed(tmp_path / "store")
    table(mirror, 3)["key"] = 7
    grown = grow(mirror, 100_000)
    assert list(grown["key"][:3]) == [7, 7, 7]
    assert not grown["key"][3:].any()
    mirror.release()


def test_an_array_of_no_rows_can_be_grown(tmp_path: Path) -> None:
    mirror = claimed(tmp_path / "store")
    assert table(mirror, 0).size == 0
    assert grow(mirror, 4).size == 4
    mirror.release()


def test_reset_makes_every_array_new(tmp_path: Path) -> None:
    mirror = claimed(tmp_path / "store")
    table(mirror, 10)["key"] = 1
    mirror.validate(b"batch 1")
    mirror.reset()
    assert mirror.token() is None
    assert not table(mirror, 10)["key"].any()
    mirror.release()


def test_an_invalidated_mirror_has_no_token(tmp_path: Path) -> None:
    mirror = claimed(tmp_path / "store")
    mirror.validate(b"batch 1")
    mirror.invalidate()
    assert mirror.token() is None
    mirror.release()


def _claim_and_hold(
    path: Path, is_claimed: multiprocessing.synchronize.Event, may_exit: multiprocessing.synchronize.Event
) -> None:
    mirror = claimed(path)
    table(mirror, 10)["key"] = 5
    is_claimed.set()
    may_exit.wait(30)
    os._exit(0)  # like a killed worker, it releases nothing


def test_another_process_gets_it_only_when_its_holder_is_gone(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    is_claimed, may_exit = context.Event(), context.Event()
    process = context.Process(target=_claim_and_hold, args=(tmp_path / "store", is_claimed, may_exit))
    process.start()
    try:
        assert is_claimed.wait(30)
        assert Mirror.claim(tmp_path / "store") is None
    finally:
        may_exit.set()
        process.join(30)
    mirror = claimed(tmp_path / "store")
    assert mirror.token() is None
    mirror.release()


def test_what_is_written_to_a_removed_mirror_is_never_seen_in_the_new_one(tmp_path: Path) -> None:
    old = claimed(tmp_path / "store")
    table(old, 10)
    (tmp_path / "store").unlink()

    new = claimed(tmp_path / "store")
    table(new, 10)
    new.validate(b"new")
    table(old, 10)["key"] = 9
    old.validate(b"old")
    old.release()

    assert not old.is_shared
    assert new.token() == b"new"
    assert not table(new, 10)["key"].any()
    new.release()


def test_a_full_disk_costs_the_mirror_not_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = claimed(tmp_path / "store")
    mirror.tables({"messages": (ROW, 10), "held": (ROW, 10)})["messages"]["key"] = 3

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(mirrors, "_allocate", full)
    grown = grow(mirror, 1000)
    assert list(grown["key"][:10]) == [3] * 10
    assert grown.size == 1000
    assert mirror.grow({"held": 20})["held"].size == 20
    mirror.validate(b"batch 1")
    assert mirror.token() is None
    mirror.release()


def count_uses(path: Path) -> tuple[int, int]:
    """Return the descriptors and mappings of a file in this process, including removed files of that name."""
    links = (str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return sum(link.startswith(str(path)) for link in links), sum(str(path) in line for line in maps)


linux = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads /proc")


@linux
def test_a_store_costs_one_mapping_and_no_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "store"
    mirror = claimed(path)
    arrays = mirror.tables({f"table {number}": (ROW, 100) for number in range(23)})
    mirror.validate(b"batch 1")
    assert count_uses(path) == (1, 1)
    mirror.release()
    assert count_uses(path) == (0, 1)
    for rows in (200, 5_000, 100_000):
        mirror.reclaim(claimed(path))
        arrays = mirror.grow({"table 3": rows, "table 7": 2 * rows})
        mirror.release()
        assert count_uses(path) == (0, 1)
    del arrays, mirror
    assert count_uses(path) == (0, 0)


@linux
def test_a_thousand_mirrors_need_no_thousand_descriptors(tmp_path: Path) -> None:
    mirrors_and_arrays = []
    for number in range(1000):
        mirror = claimed(tmp_path / f"store{number}")
        mirrors_and_arrays.append((mirror, mirror.tables({"messages": (ROW, 10)})))
        mirror.release()
    assert count_uses(tmp_path) == (0, 1000)
    del mirrors_and_arrays, mirror
    assert count_uses(tmp_path) == (0, 0)


def test_a_file_is_hardly_larger_than_its_arrays(tmp_path: Path) -> None:
    mirror = claimed(tmp_path / "store")
    arrays = mirror.tables({"messages": (ROW, 1000), "held": (ROW, 1), "names": (np.dtype("u1"), 7)})
    assert (tmp_path / "store").stat().st_size <= sum(array.nbytes for array in arrays.values()) + 4096 + 3 * 64
    mirror.release()


def test_an_array_of_no_rows_takes_no_place_of_another_one(tmp_path: Path) -> None:
    mirror = claimed(tmp_path / "store")
    mirror.tables({"first": (ROW, 4), "none": (ROW, 0), "second": (ROW, 4), "last": (ROW, 4)})
    mirror.grow({"second": 100})
    first = mirror.grow({"first": 6})["first"]  # where `none` and `second` began
    first["key"] = 7
    arrays = mirror.grow({"none": 1})
    assert not arrays["none"]["key"].any()
    assert list(arrays["first"]["key"]) == [7] * 6
    mirror.release()


def test_a_large_array_grows_where_it_is_and_leaves_no_blocks_behind(tmp_path: Path) -> None:
    """File systems without holes keep the blocks; those of Linux have them."""
    mirror = claimed(tmp_path / "store")
    mirror.tables({"messages": (ROW, 100), "held": (ROW, 100)})
    moves, rows, before = 0, 100, -1
    while rows * ROW.itemsize < 24 << 20:
        rows += rows // 4
        arrays = mirror.grow({"messages": rows, "held": rows})
        arrays["messages"]["key"] = arrays["held"]["key"] = rows
        if rows * ROW.itemsize > 1 << 20:
            moves += mirror._extents["messages"].offset != before
            before = mirror._extents["messages"].offset
            used = (tmp_path / "store").stat().st_blocks * 512
            assert used <= sum(array.nbytes for array in arrays.values()) + (4 << 20)  # of when they were small
    assert moves <= 6  # once for each doubling
    mirror.release()


@pytest.mark.parametrize("seed", range(5))
def test_arrays_that_grow_in_any_order_hold_what_memory_holds(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtypes = [np.dtype([("key", "u8"), ("next", "u4", 2)]), np.dtype("u1"), np.dtype("i8")]
    sizes = {f"t{number}": (dtypes[number % 3], int(rng.integers(0, 200))) for number in range(8)}
    mirror, memory = claimed(tmp_path / "store"), MemoryArrays()
    actual, expected = mirror.tables(sizes), memory.tables(sizes)
    for _ in range(40):
        for name, array in expected.items():
            content = rng.integers(0, 256, array.nbytes, np.uint8)
            actual[name].view(np.uint8)[:] = array.view(np.uint8)[:] = content
        chosen = rng.choice(list(expected), rng.integers(1, 4), replace=False)
        rows = {str(name): int(expected[name].size * rng.choice([1, 2, 4]) + 1) % 50_000 for name in chosen}
        rows = {name: max(count, expected[name].size) for name, count in rows.items()}
        actual, expected = mirror.grow(rows), memory.grow(rows)
        assert {name: array.tobytes() for name, array in actual.items()} == {
            name: array.tobytes() for name, array in expected.items()
        }
    mirror.release()
    sizes = {name: (array.dtype, array.size) for name, array in expected.items()}
    again = claimed(tmp_path / "store")
    assert {name: array.tobytes() for name, array in again.tables(sizes).items()} == {
        name: array.tobytes() for name, array in expected.items()
    }
    again.release()


@pytest.mark.parametrize(
    "sizes",
    [{"messages": (ROW, 11)}, {"messages": (np.dtype("u1"), 10)}, {"held": (ROW, 10)}, {}],
    ids=["rows", "dtype", "name", "nothing"],
)
def test_a_file_of_other_arrays_is_refused(tmp_path: Path, sizes: dict[str, Size]) -> None:
    mirror = claimed(tmp_path / "store")
    table(mirror, 10)
    mirror.validate(b"batch 1")
    mirror.release()
    again = claimed(tmp_path / "store")
    with pytest.raises(AttachError, match="holds other arrays"):
        again.tables(sizes)
    again.reset()
    assert again.tables(sizes).keys() == sizes.keys()
    again.release()


@pytest.mark.parametrize("content", [b"x", b"x" * 100, b"mqtwin 2" + bytes(100), b"\xff" * 10_000])
def test_a_file_of_anything_else_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "store").write_bytes(content)
    mirror = claimed(tmp_path / "store")
    assert mirror.token() is None
    with pytest.raises(AttachError):
        table(mirror, 10)
    mirror.reset()
    assert not table(mirror, 10)["key"].any()
    mirror.release()


def test_a_file_that_ends_before_its_arrays_is_refused(tmp_path: Path) -> None:
    mirror = claimed(tmp_path / "store")
    table(mirror, 10_000)
    mirror.release()
    os.truncate(tmp_path / "store", 8192)
    again = claimed(tmp_path / "store")
    with pytest.raises(AttachError, match="ends before its arrays"):
        table(again, 10_000)
    again.release()


def test_an_array_from_before_a_reset_writes_nothing_into_the_new_file(tmp_path: Path) -> None:
    mirror = claimed(tmp_path / "store")
    old = table(mirror, 10)
    mirror.reset()
    assert Mirror.claim(tmp_path / "store") is None  # the new file is locked, too
    new = table(mirror, 10)
    old["key"] = 9
    assert not new["key"].any()
    mirror.release()


@pytest.mark.parametrize("number", sorted(NO_ROOM))
def test_without_a_mapping_arrays_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    mirror = claimed(tmp_path / "store")
    table(mirror, 10)["key"] = 3
    monkeypatch.setattr(mirrors, "map_shared", refuse)
    grown = grow(mirror, 1000)
    assert (list(grown["key"][:10]), grown["key"][10:].any()) == ([3] * 10, False)
    assert (mirror.is_shared, mirror.memory_bytes) == (False, grown.nbytes)
    mirror.release()
    other = claimed(tmp_path / "store")
    assert other.token() is None
    assert not table(other, 10)["key"].any()
    assert not other.is_shared
    other.release()


def test_a_file_that_may_not_grow_costs_the_mirror_not_the_batch(tmp_path: Path) -> None:
    mirror = claimed(tmp_path / "store")
    table(mirror, 10)["key"] = 3
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        grown = grow(mirror, 1_000_000)
        other = claimed(tmp_path / "other")
        assert table(other, 1_000_000).size == 1_000_000
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (grown.size, list(grown["key"][:11])) == (1_000_000, [3] * 10 + [0])
    assert (mirror.is_shared, other.is_shared) == (False, False)
    assert not (tmp_path / "store").exists()  # its room is free again
    mirror.release()
    other.release()


def test_a_mapping_that_the_system_refuses_says_why(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b") as file, pytest.raises(OSError, match="mapping of") as refused:
        map_shared(file.fileno(), 1 << 60)
    assert refused.value.errno == errno.ENOMEM


def test_mirrors_of_a_query_that_ended_are_removed(tmp_path: Path) -> None:
    root = mirror_root(tmp_path / "blocks")
    mine, other = mirror_directory(root, "query-1", "estate"), mirror_directory(root, "query-2", "estate")
    for directory in (mine, other):
        claimed(directory / "store").release()
    remove_mirrors(tmp_path / "blocks", "query-1")
    assert not mine.exists()
    assert other.exists()


def test_abandoned_mirrors_are_removed_but_not_those_in_use(tmp_path: Path) -> None:
    root = mirror_root(tmp_path / "blocks")
    keep, recent, old, busy, earlier_boot = (
        root / name
        for name in (f"q0-{boot_id()}-e", f"q1-{boot_id()}-e", f"q2-{boot_id()}-e", f"q3-{boot_id()}-e", "q4-boot-e")
    )
    for directory in (keep, recent, old, earlier_boot):
        claimed(directory / "store").release()
    in_use = claimed(busy / "store")
    long_ago = time.time() - 2 * mirrors.ABANDONED_SECONDS
    for directory in (keep, old, busy):
        for path in (directory / "store", directory):
            os.utime(path, (long_ago, long_ago))
    remove_abandoned(root, keep)
    assert [path.exists() for path in (keep, recent, old, busy, earlier_boot)] == [True, True, False, True, False]
    in_use.release()


def test_a_root_that_belongs_to_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"mqtwin-mirror-{os.getuid()}").symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="somebody else"):
        mirror_root(tmp_path / "blocks")
