"""The position file of a collector: one process at a time, nothing half, and an error that says whether it may pass."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from streams.collecting import sources
from streams.collecting.sources import Position, load_position, locked_position, save_position
from twin.base.errors import MqtwinError, UsageError
from twin.base.outputs import replace_file, write_draft

SOURCE = "smf.dat"

WRONG: dict[str, bytes] = {
    "no JSON": b"no JSON",
    "not UTF-8": b'{"source":"smf.dat\xff"}',
    "nested": b'{"source":' + b"[" * 20_000,
    "a negative offset": b'{"source":"smf.dat","offsets":{"1:2":-1}}',
    "a negative number read": b'{"source":"smf.dat","read":{"1:2":-1}}',
    "an offset beyond 63 bits": b'{"source":"smf.dat","offsets":{"1:2":9223372036854775808}}',
    "another source": b'{"source":"other.dat"}',
    "a list": b"[]",
    "nothing": b"",
}


@pytest.mark.parametrize("data", WRONG.values(), ids=WRONG.keys())
def test_a_position_that_cannot_be_right_is_wrong_use_in_one_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "position.json"
    path.write_bytes(data)
    with pytest.raises(UsageError, match="expected: ") as caught:
        load_position(path, SOURCE)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, MqtwinError),
        (errno.EDQUOT, MqtwinError),
        (errno.EFBIG, MqtwinError),  # a limit of the process
        (errno.EIO, MqtwinError),
        (errno.EACCES, UsageError),
        (errno.ENOENT, UsageError),
        (errno.EROFS, UsageError),
    ],
    ids=lambda value: errno.errorcode.get(value, "") if isinstance(value, int) else value.__name__,
)
def test_a_full_disk_may_pass_and_a_missing_folder_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[MqtwinError]
) -> None:
    def failing(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(sources, "replace_file", failing)
    with pytest.raises(MqtwinError, match="cannot be written") as caught:
        save_position(tmp_path / "position.json", Position(source=SOURCE))
    assert type(caught.value) is kind


def test_a_second_collector_is_refused_with_the_process_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "position.json"
    with locked_position(path):
        save_position(path, Position(source=SOURCE))  # replaced while it is locked
        refused = pytest.raises(UsageError, match=f"another mqtwin collect uses it .pid {os.getpid()}.; expected: ")
        with refused, locked_position(path):
            raise AssertionError
        with locked_position(tmp_path / "other.json"), locked_position(None):
            pass
    with locked_position(path):
        pass


def test_a_lock_leads_to_no_file_of_somebody_else(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / ".position.json.lock").symlink_to(victim)
    with pytest.raises(UsageError, match="expected: "), locked_position(tmp_path / "position.json"):
        raise AssertionError
    assert victim.read_bytes() == b"precious"


def test_no_link_that_can_be_guessed_leads_a_draft_elsewhere(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "position.json"
    victim.write_bytes(b"precious")
    for name in (".position.json.new", ".position.json.new.0", "position.json.new"):
        (tmp_path / name).symlink_to(victim)
    replace_file(path, b"new")
    assert victim.read_bytes() == b"precious"
    assert path.read_bytes() == b"new"
    assert write_draft(path, b"a") != write_draft(path, b"b")


def test_a_draft_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(tmp_path / "position.json", b"new")
    assert list(tmp_path.iterdir()) == []
