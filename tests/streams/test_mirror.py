"""The mirror of a store's arrays: current or not there, never in between."""

from __future__ import annotations

import errno
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest

from streams import mirror as mirrors
from streams.mirror import Mirror, boot_id, mirror_root, mirrors_of, remove_abandoned, remove_mirrors
from twin.arrays import Array

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


def test_an_invalidated_mirror_stands_at_no_batch(tmp_path: Path) -> None:
    mirror = claimed(tmp_path / "store")
    mirror.validate(b"batch 1")
    mirror.invalidate()
    assert mirror.token() is None
    mirror.release()


def _claim_and_hold(
    path: Path, held: multiprocessing.synchronize.Event, done: multiprocessing.synchronize.Event
) -> None:
    mirror = claimed(path)
    table(mirror, 10)["key"] = 5
    held.set()
    done.wait(30)
    os._exit(0)  # as a killed worker: nothing is released


def test_another_process_gets_it_only_when_its_holder_is_gone(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    held, done = context.Event(), context.Event()
    process = context.Process(target=_claim_and_hold, args=(tmp_path / "store", held, done))
    process.start()
    try:
        assert held.wait(30)
        assert Mirror.claim(tmp_path / "store") is None
    finally:
        done.set()
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

    assert not old.sound
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


def test_mirrors_of_a_query_that_ended_are_removed(tmp_path: Path) -> None:
    root = mirror_root(tmp_path / "blocks")
    mine, other = mirrors_of(root, "query-1", "estate"), mirrors_of(root, "query-2", "estate")
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
