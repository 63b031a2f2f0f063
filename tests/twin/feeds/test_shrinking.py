"""Files that are cut while they are read, as logs are: what was there is read, and the process lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.twin.feeds.samples import SYSPRINT
from twin.feeds import Intake, importing
from twin.feeds.importing import read_pages


@pytest.mark.parametrize("in_memory", [1 << 20, 100], ids=["in memory", "mapped"])
def test_a_file_that_is_cut_after_it_was_read_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    """Reading a page of a mapped file that is gone ends the process by SIGBUS."""
    monkeypatch.setattr(importing, "_IN_MEMORY_BYTES", in_memory)
    path = tmp_path / "job.log"
    text = SYSPRINT.encode() * 50
    path.write_bytes(text)
    for page in read_pages([path]):
        path.write_bytes(b"")
        assert bytes(page.data) == text


@pytest.mark.parametrize("in_memory", [1 << 20, 100], ids=["in memory", "mapped"])
@pytest.mark.parametrize("left", [0, 150])
def test_a_file_that_is_cut_while_it_is_read_is_truncated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int, left: int
) -> None:
    monkeypatch.setattr(importing, "_IN_MEMORY_BYTES", in_memory)
    path, intake, begin = tmp_path / "job.log", Intake(None), importing._content
    path.write_bytes(SYSPRINT.encode())

    def cutting(file, size):
        path.write_bytes(SYSPRINT.encode()[:left])
        return begin(file, size)

    monkeypatch.setattr(importing, "_content", cutting)
    (data,) = [bytes(page.data) for page in read_pages([path], intake.complain)]
    assert data == SYSPRINT.encode()[:left]
    assert intake.counts == {"truncated": 1}


def test_an_empty_file_is_a_page(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(b"")
    assert [page.data for page in read_pages([path])] == [b""]
