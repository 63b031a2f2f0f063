"""`mqtwin checkpoint`, `mqtwin state`, and the checkpoints that `mqtwin stream` refuses at its start."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.cli import main
from streams.checkpoint.manifest import LocalGuard, Manifest
from streams.kafka.topics import Topics
from tests.streams.checkpoints import begin_repartition, write_checkpoint
from tests.support.estates import small_estate
from twin.estate import load_estate
from twin.stores.headers import STATE_FORMAT

NOBODY = "127.0.0.1:9"  # the discard port: no Kafka
Run = Callable[..., tuple[int, list[str], list[str]]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command; return its status, the lines of standard output, and those of standard error."""

    def run(*arguments: str | Path) -> tuple[int, list[str], list[str]]:
        status = main([str(argument) for argument in arguments])
        out, error = capsys.readouterr()
        return status, out.splitlines(), error.splitlines()

    return run


@pytest.fixture
def estate(tmp_path: Path) -> Path:
    return small_estate(tmp_path)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "checkpoint")


def note(directory: Path, estate: Path) -> None:
    guard = LocalGuard(directory)
    described = load_estate(estate)
    guard.write(Manifest.of_this_start(described, Topics(), {"mqtwin.events": "id-1"}, "cluster-1", 2))
    guard.release()


# --- checkpoint ------------------------------------------------------------------------------------------------------


def test_check_of_a_sound_checkpoint(run: Run, directory: Path) -> None:
    status, (line,), error = run("checkpoint", "check", directory)
    assert (status, error) == (0, [])
    assert line.startswith("sound: last batch 5, ")


def test_check_lists_every_damage_and_ends_with_1(run: Run, directory: Path) -> None:
    for path in ("offsets/1", "commits/5", "state/0/1/2.changelog"):
        (directory / path).write_bytes(b"")
    status, lines, error = run("checkpoint", "check", directory)
    assert (status, error) == (1, [])
    assert lines == [
        "offsets/1: is empty; nothing: the job does not need it any more",
        "commits/5: is empty; remove commits/5 and commits/.5.crc: the batch is run again, nothing is lost",
    ]
    (directory / "commits/5").unlink()
    assert run("checkpoint", "check", directory)[1] == [
        "offsets/1: is empty; nothing: the job does not need it any more",
        "state/0/1/2.changelog: is empty; nothing: the job does not need it any more",
    ]


@pytest.mark.parametrize("command", ["check", "describe"])
def test_what_is_no_checkpoint_is_wrong_use(run: Run, tmp_path: Path, command: str) -> None:
    for path, message in ((tmp_path, "is no checkpoint"), (tmp_path / "none", "there is no such directory")):
        status, out, (line,) = run("checkpoint", command, path)
        assert (status, out) == (2, [])
        assert message in line and "expected: " in line


def test_describe_says_what_it_belongs_to(run: Run, directory: Path, estate: Path) -> None:
    note(directory, estate)
    status, lines, error = run("checkpoint", "describe", directory)
    assert (status, error) == (0, [])
    rows = [tuple(line.split("\t")) for line in lines]
    for line in (
        ("topic prefix", "mqtwin"),
        ("topic", "mqtwin.events (id id-1)"),
        ("topic", "mqtwin.reports"),
        ("last batch", "5"),
        ("next offset of mqtwin.events/0", "60"),
        ("next offset of mqtwin.reports/0", "30"),
        ("state partitions", "2"),
        ("running job", "none"),
    ):
        assert line in rows
    assert "QSG1/APP1" in dict(rows)["stores"]


def test_describe_as_json_of_a_checkpoint_without_a_manifest(run: Run, directory: Path) -> None:
    status, (line,), _ = run("checkpoint", "describe", directory, "--json")
    description = json.loads(line)
    assert status == 0
    assert description["offsets"] == {"mqtwin.events": {"0": 60}, "mqtwin.reports": {"0": 30}}
    assert (description["last_batch"], description["last_committed_batch"], description["stores"]) == (5, 5, None)


def test_a_running_job_is_reported(run: Run, directory: Path) -> None:
    guard = LocalGuard(directory)
    _, lines, error = run("checkpoint", "describe", directory)
    assert any(line.startswith("running job\tpid ") for line in lines)
    _, _, (warning,) = run("checkpoint", "check", directory)
    assert warning.startswith("mqtwin: warning: a job runs on ") and not error
    guard.release()


def test_a_migration_to_an_earlier_format_is_refused_with_the_way_back(
    run: Run, directory: Path, estate: Path, tmp_path: Path
) -> None:
    note(directory, estate)
    status, out, (line,) = run("checkpoint", "migrate", directory, "--to", "10.3")
    assert (status, out) == (2, [])
    assert f"expected: {STATE_FORMAT}; to go back, restore the copy of the checkpoint from before the upgrade" in line
    new = write_checkpoint(tmp_path / "new", batches=1, committed=0)
    assert "has no committed batch" in run("checkpoint", "migrate", new)[2][0]


def test_a_repartition_is_refused_while_a_job_runs_or_another_has_not_ended(
    run: Run, directory: Path, tmp_path: Path
) -> None:
    new = write_checkpoint(tmp_path / "new", batches=1, committed=0)
    assert "has no committed batch" in run("checkpoint", "repartition", new, "--partitions", "8")[2][0]
    guard = LocalGuard(directory)
    assert "another mqtwin stream runs on it" in run("checkpoint", "repartition", directory, "--partitions", "8")[2][0]
    guard.release()
    begin_repartition(directory, 8)
    status, out, (line,) = run("checkpoint", "repartition", directory, "--partitions", "4")
    assert (status, out) == (2, [])
    assert line.endswith("to 8 has not ended: give --partitions 8 first")
    assert run("checkpoint", "repartition", directory, "--partitions", "0")[0] == 2


def test_a_repartition_to_the_same_number_changes_nothing(run: Run, directory: Path) -> None:
    assert run("checkpoint", "repartition", directory, "--partitions", "2") == (
        0,
        ["the state has 2 partitions already"],
        [],
    )


# --- state -----------------------------------------------------------------------------------------------------------


def test_state_asks_for_a_checkpoint_with_state_and_a_store_of_the_estate(
    run: Run, directory: Path, estate: Path, tmp_path: Path
) -> None:
    new = write_checkpoint(tmp_path / "new", batches=1, committed=0)
    for arguments, message in (
        (["--checkpoint", tmp_path / "none"], "there is no such directory"),
        (["--checkpoint", new], "has no committed batch"),
        (["--checkpoint", directory, "--store", "QSG1/NONE"], "expected: QSG1/APP1"),
    ):
        status, out, lines = run("state", "--estate", estate, *arguments)
        assert (status, out) == (2, [])
        assert message in lines[-1]


# --- stream ----------------------------------------------------------------------------------------------------------


def stream(run: Run, estate: Path, checkpoint: object, *options: str) -> str:
    """Return the line with which `mqtwin stream` refuses a checkpoint, before it connects to Kafka."""
    where = ["--estate", estate, "--bootstrap-servers", NOBODY, "--checkpoint", str(checkpoint)]
    status, out, lines = run("stream", *where, *options)
    assert (status, out) == (2, [])
    assert "no Kafka answers" not in lines[-1]
    return lines[-1]


def test_stream_refuses_a_checkpoint_that_it_cannot_use(
    run: Run, directory: Path, estate: Path, tmp_path: Path
) -> None:
    (tmp_path / "afile").write_text("x")
    assert "afile is a file" in stream(run, estate, tmp_path / "afile")
    assert "/proc/nope/cp cannot be written" in stream(run, estate, "/proc/nope/cp")
    assert "expected: s3a://" in stream(run, estate, "s3://bucket/cp")
    assert "belongs to topic mqtwin.events, not nope.events" in stream(run, estate, directory, "--topic-prefix", "nope")
    assert "was begun with 2" in stream(run, estate, directory, "--conf", "spark.sql.shuffle.partitions=3")
    guard = LocalGuard(directory)
    assert "another mqtwin stream runs on it" in stream(run, estate, directory)
    guard.release()
    (directory / "state/0/1/5.changelog").write_bytes(b"")
    assert "is damaged: state/0/1/5.changelog: is empty; " in stream(run, estate, directory)
