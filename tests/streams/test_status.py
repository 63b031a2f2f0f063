"""The status file of a job."""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
import pytest

from deploy.cli import main
from streams.log import configure_logging
from streams.query.progress import BatchLog
from streams.query.status import JobStatus, StatusFile, read_status, stopped_text
from tests.streams.test_progress import REPORT
from twin.base.errors import UsageError


class Wall:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_status_has_the_last_batch_and_sums_since_the_start(tmp_path: Path) -> None:
    wall = Wall()
    file = StatusFile(tmp_path / "status.json", "2 seconds", wall=wall)
    assert read_status(tmp_path / "status.json") == JobStatus(
        started_s=100.0, beat_s=100.0, trigger="2 seconds", sums=dict.fromkeys(file.status.sums, 0)
    )
    log = BatchLog(status=file)
    wall.now_s = 110.0
    log.on_progress(json.dumps(REPORT))
    wall.now_s = 120.0
    letters = {"mqtwin": REPORT["observedMetrics"]["mqtwin"] | {"dlq_not_json": 2}}
    log.on_progress(json.dumps(REPORT | {"observedMetrics": letters}))
    status = read_status(tmp_path / "status.json")
    assert status is not None
    assert (status.batches, status.batch_s, status.beat_s, status.behind) == (2, 120.0, 120.0, 3)
    assert status.sums == {"records": 24, "events": 120, "alerts": 0, "dead_letters": 4}
    assert status.dead_letter_reasons == {"not-json": 2}
    assert status.figures["batch_ms"] == 400


def test_an_idle_trigger_is_a_beat_and_nothing_is_behind(tmp_path: Path) -> None:
    wall = Wall()
    log = BatchLog(status=StatusFile(tmp_path / "s", wall=wall))
    log.on_progress(json.dumps(REPORT))
    wall.now_s = 130.0
    log.on_idle("2026-11-22T12:00:00.000Z")
    status = read_status(tmp_path / "s")
    assert status is not None
    assert (status.batches, status.batch_s, status.beat_s, status.behind) == (1, 100.0, 130.0, 0)


def test_the_file_is_replaced_and_never_grows(tmp_path: Path) -> None:
    file = StatusFile(tmp_path / "s", wall=Wall())
    file.on_batch({"events": 1})
    size = (tmp_path / "s").stat().st_size
    with (tmp_path / "s").open("rb") as before:
        for _ in range(8):
            file.on_batch({"events": 1})
        assert msgspec.json.decode(before.read())["batches"] == 1  # a reader that has it open sees the whole old one
    assert (tmp_path / "s").stat().st_size == size
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_a_file_that_cannot_be_written_is_logged_once_and_the_job_continues(tmp_path: Path) -> None:
    out = io.StringIO()
    configure_logging(json_lines=True, stream=out)
    folder = tmp_path / "folder"
    folder.mkdir()
    file = StatusFile(folder / "s", wall=Wall())
    (folder / "s").unlink()
    folder.rmdir()
    file.on_batch({"events": 1})
    file.on_batch({"events": 1})
    (line,) = out.getvalue().splitlines()
    assert json.loads(line)["path"] == str(folder / "s")
    assert file.status.batches == 2


def test_a_folder_that_does_not_exist_is_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "no" / "s"
    with pytest.raises(UsageError, match="--status-file"):
        StatusFile(path)
    job = ["stream", "--estate", "e", "--checkpoint", "c", "--bootstrap-servers", "h:1", "--status-file", str(path)]
    assert main(job) == 2
    assert "--status-file" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"{}", b'{"started_s": 1', b"\xff"])
def test_what_is_no_status_file_is_no_status(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(content)
    assert read_status(tmp_path / "s") is None
    assert read_status(tmp_path / "missing") is None


def test_a_job_without_a_sign_for_its_limit_has_stopped(tmp_path: Path) -> None:
    wall = Wall()
    path = tmp_path / "s"
    began = StatusFile(path, "30 seconds", wall=wall).status.beat_s
    assert stopped_text(path, began + 300) == ""  # ten triggers
    assert stopped_text(path, began + 301) == "The job has stopped: its last sign was 5 min ago"
    assert stopped_text(tmp_path / "none", 0.0).startswith(f"The job has no status file {tmp_path / 'none'}: ")
