"""Scratch directories: private to a job, removed by it or by the next job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streams.host import resources
from streams.host.resources import MAX_SOCKET_DIRECTORY_BYTES, ScratchDirectory, base_of, temporary_base
from streams.state.mirror import mirror_root

CLAIM = """
import sys
from pathlib import Path
from streams.host.resources import ScratchDirectory
claimed = ScratchDirectory.claim(Path(sys.argv[1]))
(claimed.path / "blockmgr-1").mkdir()
print(claimed.path, flush=True)
sys.stdin.read()
"""


def job(base: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start another job with a directory in `base`; return its process and the directory."""
    command = [sys.executable, "-c", CLAIM, str(base)]
    process = subprocess.Popen(
        command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_the_next_job_removes_the_directory_of_a_killed_job_but_not_of_a_living_one(tmp_path: Path) -> None:
    (living, living_path), (killed, killed_path) = job(tmp_path), job(tmp_path)
    killed.kill()
    killed.communicate()
    assert killed_path.is_dir() and killed_path != living_path
    mine = ScratchDirectory.claim(tmp_path)
    assert sorted(mine.path.parent.iterdir()) == sorted([living_path, mine.path])
    assert mine.path.stat().st_mode & 0o777 == 0o700
    mine.remove()
    living.communicate("")
    assert list(mine.path.parent.iterdir()) == [living_path]  # it ended without removing its directory
    ScratchDirectory.claim(tmp_path).remove()
    assert list(mine.path.parent.iterdir()) == []


def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / f"mqtwin-{os.getuid()}").symlink_to(tmp_path / "other")
    with pytest.raises(PermissionError, match="belongs to another user"):
        ScratchDirectory.claim(tmp_path)


def test_mirrors_outlive_the_job(tmp_path: Path) -> None:
    claimed = ScratchDirectory.claim(tmp_path)
    assert base_of(claimed.path) == tmp_path
    assert base_of(tmp_path) == tmp_path
    assert mirror_root(claimed.path / "blockmgr-1").parent == tmp_path
    claimed.remove()


def test_a_long_temporary_directory_is_not_used_for_sockets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resources.tempfile, "tempdir", str(tmp_path / ("x" * MAX_SOCKET_DIRECTORY_BYTES)))
    assert temporary_base() == Path("/tmp")
    monkeypatch.setattr(resources.tempfile, "tempdir", "/var/tmp")
    assert temporary_base() == Path("/var/tmp")
