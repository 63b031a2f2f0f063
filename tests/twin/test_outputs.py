"""Output files take the place of earlier ones when they are whole."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest

from twin.base.errors import UsageError
from twin.base.outputs import Draft, is_same_file, is_stream, write_output


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "out.txt"
    path.write_text("old")
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_at_the_end(old: Path) -> None:
    with Draft(old) as draft:
        draft.file.write_text("new")
        assert old.read_text() == "old"
    assert (old.read_text(), names(old.parent)) == ("new", ["out.txt"])


def test_on_failure_the_old_file_stays_and_the_draft_goes(old: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        stop_half_way(old)
    assert (old.read_text(), names(old.parent)) == ("old", ["out.txt"])


def stop_half_way(path: Path) -> None:
    with Draft(path) as draft:
        draft.file.write_text("half")
        raise KeyboardInterrupt


def test_a_file_that_is_not_there_is_not_there_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Draft(tmp_path / "new.txt"):
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_a_link_stays_a_link(old: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(old)
    write_output(link, "new")
    assert link.is_symlink() and old.read_text() == "new"


def test_modes_stay(old: Path) -> None:
    old.chmod(0o640)
    write_output(old, b"new")
    assert old.stat().st_mode & 0o777 == 0o640
    mask = os.umask(0o027)
    try:
        write_output(old.with_name("second"), "new")
    finally:
        os.umask(mask)
    assert old.with_name("second").stat().st_mode & 0o777 == 0o640


def test_a_name_of_the_greatest_length(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_output(path, "new")
    assert path.read_text() == "new"


def test_what_cannot_be_written(tmp_path: Path, old: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "out.txt", old / "out.txt"):
        with pytest.raises(UsageError, match=r"cannot be written: .*; expected: a file in a folder that exists"):
            write_output(path, "new")
    assert names(tmp_path) == ["out.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_is_read_only_is_not_replaced(old: Path) -> None:
    old.chmod(0o444)
    with pytest.raises(UsageError, match="Permission denied"):
        write_output(old, "new")
    assert old.read_text() == "old"


def test_devices_and_pipes_are_written_directly(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_output(pipe, "new")
    reader.join()
    assert (read, names(tmp_path)) == (["new"], ["pipe"])
    write_output("/dev/null", "new")
    link = tmp_path / "out"
    link.symlink_to("/dev/stdout")
    assert is_stream(link) and is_stream(Path("/dev/null")) and is_stream(Path("/dev/fd/1")) and is_stream(pipe)
    assert not is_stream(tmp_path) and not is_stream(tmp_path / "no")
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        assert not is_stream(Path(file.name))


def test_one_file_under_several_names(old: Path, tmp_path: Path) -> None:
    link, hard, loop = tmp_path / "link", tmp_path / "hard", tmp_path / "loop"
    link.symlink_to(old)
    hard.hardlink_to(old)
    loop.symlink_to(loop)
    for path in (old, link, hard, tmp_path / "." / "out.txt", tmp_path / "no" / ".." / "out.txt"):
        assert is_same_file(old, path), path
    assert is_same_file(tmp_path / "new", tmp_path / "x" / ".." / "new")
    assert not is_same_file(old, tmp_path / "new") and not is_same_file(old, loop)
    assert not is_same_file(Path("/dev/null"), Path("/dev/null"))
