"""Samples of a long run go on whatever the job does to its folders."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.tools.fire.samples import usage


def test_a_folder_that_vanishes_while_it_is_walked_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    for path in (tmp_path / "kept", tmp_path / "sub" / "lost"):
        path.write_bytes(bytes(4096))
    assert usage(tmp_path)[1] == 2
    lstat = os.lstat

    def remove(path: str) -> os.stat_result:
        monkeypatch.setattr(os, "lstat", lstat)  # which rmtree calls, too
        shutil.rmtree(tmp_path / "sub")
        return lstat(path)

    monkeypatch.setattr(os, "lstat", remove)
    assert usage(tmp_path) == (lstat(tmp_path / "kept").st_blocks * 512, 1)
