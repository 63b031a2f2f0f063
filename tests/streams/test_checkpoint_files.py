"""Damage of a checkpoint is named, with a remedy; damage of files that are not needed does not stop the job."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from streams.checkpoint.local_files import CheckpointFiles, Finding, drop_uncommitted_state, file_problem
from tests.checkpoints.archives import newest_archive
from tests.streams.checkpoints import changelog, snapshot, with_crc, write_checkpoint

LAST, BATCHES = 5, 6
NEW = "restore it from a copy, or begin a new checkpoint (--checkpoint NEW --starting-offsets earliest)"
AGAIN = "remove commits/5 and commits/.5.crc: the batch is run again, nothing is lost"
CHANGELOG_AGAIN = "remove commits/5 and commits/.5.crc: batch 5 is run again, nothing is lost"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def with_its_crc(damage: Callable[[Path], None]) -> Callable[[Path], None]:
    """Return the damage with the checksum file removed."""

    def damage_both(path: Path) -> None:
        damage(path)
        path.with_name(f".{path.name}.crc").unlink()

    return damage_both


def blocking(directory: Path, *, thorough: bool = False) -> dict[str, Finding]:
    return {
        finding.path: finding for finding in CheckpointFiles(directory).check(thorough=thorough) if finding.is_blocking
    }


@pytest.mark.parametrize("committed", [BATCHES, BATCHES - 1], ids=["stopped", "killed"])
@pytest.mark.parametrize("thorough", [False, True])
def test_a_sound_checkpoint_has_no_findings(tmp_path: Path, committed: int, thorough: bool) -> None:
    files = CheckpointFiles(write_checkpoint(tmp_path, committed=committed))
    assert files.check(thorough=thorough) == []
    assert (files.last_batch, files.version) == (LAST, committed)
    offset = 10 * committed  # a batch that was not committed is run again from its start
    assert files.next_offsets() == {"mqtwin.events": {0: offset}, "mqtwin.reports": {0: offset // 2}}


def test_the_state_of_a_batch_that_will_be_run_again_makes_way(tmp_path: Path) -> None:
    for committed in (BATCHES, BATCHES - 1):
        directory = write_checkpoint(tmp_path / str(committed), committed=committed)
        for partition in ("0", "1"):
            with_crc(directory / "state" / "0" / partition / f"{BATCHES}.changelog", changelog(b"the last batch"))
        before = {path for path in directory.rglob("*") if path.is_file()}
        drop_uncommitted_state(CheckpointFiles(directory))
        gone = {path.name for path in before if not path.exists()}
        assert gone == (set() if committed == BATCHES else {f"{BATCHES}.changelog", f".{BATCHES}.changelog.crc"})


def test_an_empty_directory_is_a_new_checkpoint(tmp_path: Path) -> None:
    files = CheckpointFiles(tmp_path)
    assert not files.has_begun
    assert files.check(thorough=True) == [] and files.next_offsets() == {} and files.version == 0


def test_a_first_batch_that_was_not_committed_begins_where_the_source_does(tmp_path: Path) -> None:
    files = CheckpointFiles(write_checkpoint(tmp_path, batches=1, committed=0))
    assert files.check(thorough=True) == []
    assert files.next_offsets() == {"mqtwin.events": {0: 0}, "mqtwin.reports": {0: 0}}


DAMAGES = {"cut": cut, "emptied": empty, "cut, no crc": with_its_crc(cut), "emptied, no crc": with_its_crc(empty)}
WITH_CRC = {"cut": cut, "emptied": empty, "emptied, no crc": with_its_crc(empty), "a byte": flip}
GONE = {"removed": remove, "removed with crc": with_its_crc(remove)}


def cases(path: str, damages: dict[str, Callable[[Path], None]]) -> list[object]:
    return [pytest.param(path, damage, id=f"{path} {name}") for name, damage in damages.items()]


@pytest.mark.parametrize(
    ("path", "damage"),
    [
        *cases("metadata", DAMAGES | GONE),
        *cases("offsets/5", DAMAGES),
        *cases("offsets/4", DAMAGES | GONE),
        *cases("commits/5", DAMAGES),
        *cases("state/0/0/6.changelog", WITH_CRC | GONE),
        *cases("state/0/1/4.changelog", WITH_CRC | GONE),
        *cases("state/0/1/3.zip", DAMAGES),
        *cases("state/0/1/SSTs/000010-3.sst", DAMAGES | GONE),
        *cases("state/0/_metadata/v2/0", DAMAGES | GONE),
    ],
)
def test_damage_of_what_the_next_batch_needs_stops_the_job_and_names_the_file(
    tmp_path: Path, path: str, damage: Callable[[Path], None]
) -> None:
    directory = write_checkpoint(tmp_path)
    damage(directory / path)
    assert list(blocking(directory)) == [path]
    assert list(blocking(directory, thorough=True)) == [path]


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("metadata", NEW),
        ("offsets/4", NEW),
        ("commits/5", AGAIN),
        ("state/0/0/6.changelog", CHANGELOG_AGAIN),
        ("state/0/0/5.changelog", NEW),
    ],
)
def test_the_remedy_is_the_smallest_there_is(tmp_path: Path, path: str, remedy: str) -> None:
    directory = write_checkpoint(tmp_path)
    cut(directory / path)
    assert blocking(directory)[path].remedy == remedy


def go_back(directory: Path, batch: int) -> None:
    """Follow the remedy: remove offsets and commits above a batch, and state above the version it wrote."""
    for log in ("offsets", "commits"):
        for path in (directory / log).iterdir():
            if int(path.name.strip(".").split(".")[0]) > batch:
                path.unlink()
    for path in (directory / "state" / "0").glob("[0-9]*/*[0-9]*.*"):
        if path.is_file() and int(path.name.strip(".").split(".")[0]) > batch + 1:
            path.unlink()


def test_the_remedy_of_a_damaged_last_offsets_file_makes_the_checkpoint_sound(tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path)
    cut(directory / "offsets" / "5")
    remedy = blocking(directory)["offsets/5"].remedy
    assert "go back to the end of batch 4: remove the files of offsets and commits with numbers above 4" in remedy
    assert "state/0/* above 5" in remedy
    go_back(directory, 4)
    files = CheckpointFiles(directory)
    assert files.check(thorough=True) == []
    assert (files.last_batch, files.version) == (4, 5)


def test_a_commit_without_its_offsets_is_damage(tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path)
    remove(directory / "offsets" / "5")
    (finding,) = CheckpointFiles(directory).check(thorough=False)
    assert (finding.path, finding.problem) == ("offsets/5", "is missing, though commits/5 is there")
    assert "go back to the end of batch 4" in finding.remedy


def test_a_batch_without_offsets_and_commit_is_found_by_the_state_it_wrote(tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path)
    for log in ("offsets", "commits"):
        remove(directory / log / "5")
    (finding,) = CheckpointFiles(directory).check(thorough=False)
    assert finding.path == "offsets/5" and "the state has version 6" in finding.problem
    assert "remove the files of state/0/* with numbers above 5" in finding.remedy
    go_back(directory, 4)
    assert CheckpointFiles(directory).check(thorough=True) == []


def test_a_last_commit_that_is_missing_is_a_batch_that_was_killed(tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path)
    with_its_crc(remove)(directory / "commits" / "5")
    assert CheckpointFiles(directory).check(thorough=True) == []


def test_two_missing_commits_are_reported_and_do_not_stop_the_job(tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path)
    for batch in (4, 5):
        remove(directory / "commits" / str(batch))
    (finding,) = CheckpointFiles(directory).check(thorough=False)
    assert (finding.path, finding.is_blocking) == ("commits/4", False)


@pytest.mark.parametrize("path", ["offsets/1", "commits/2", "state/0/0/2.changelog"])
def test_damage_of_old_files_is_listed_and_does_not_stop_the_job(tmp_path: Path, path: str) -> None:
    directory = write_checkpoint(tmp_path)
    cut(directory / path)
    assert blocking(directory) == {}
    (finding,) = CheckpointFiles(directory).check(thorough=True)
    assert (finding.path, finding.is_blocking) == (path, False)


def test_a_snapshot_spares_the_changelogs_before_it(tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path)
    for partition in (0, 1):
        for version in (1, 2, 3):
            remove(directory / f"state/0/{partition}/{version}.changelog")
    assert CheckpointFiles(directory).check(thorough=True) == []


def test_a_damaged_changelog_of_the_last_batch_beside_its_snapshot_is_not_needed(tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path)
    for partition in (0, 1):
        snapshot(directory / f"state/0/{partition}", 6)
    cut(directory / "state/0/0/6.changelog")
    assert blocking(directory, thorough=True) == {}


@pytest.mark.parametrize(("path", "damaged"), [("state", ["state/0"]), ("state/0/1", ["state/0/1"])])
def test_removed_state_is_named(tmp_path: Path, path: str, damaged: list[str]) -> None:
    directory = write_checkpoint(tmp_path)
    shutil.rmtree(directory / path)
    assert list(blocking(directory)) == damaged


def test_removed_offsets_are_named(tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path)
    shutil.rmtree(directory / "offsets")
    assert list(blocking(directory)) == ["offsets/5"]
    shutil.rmtree(directory / "commits")
    assert list(blocking(directory)) == ["offsets"]


def test_a_moved_checkpoint_is_recognised(tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path / "before")
    directory.rename(tmp_path / "after")
    finding = blocking(tmp_path / "after")["state/0/_metadata/v2/0"]
    assert "was the checkpoint moved?" in finding.problem and finding.remedy.startswith("move it back")


def test_a_finding_is_one_line_of_file_problem_and_remedy() -> None:
    assert str(Finding("offsets/5", "is empty", "do this")) == "offsets/5: is empty; do this"


# --- checksums -------------------------------------------------------------------------------------------------------


def test_a_file_is_compared_with_its_checksums(tmp_path: Path) -> None:
    path = with_crc(tmp_path / "file", bytes(range(256)) * 10)
    assert file_problem(path) == ""
    flip(path)
    assert file_problem(path) == "does not match its checksum file .file.crc, from byte 1024 on"
    path.with_name(".file.crc").write_bytes(b"no")
    assert file_problem(path) == "has a damaged checksum file .file.crc"


def test_one_bit_of_any_file_is_found_or_the_file_is_named(tmp_path: Path) -> None:
    """All files of the checkpoint of a release: snapshots, estates, schemas, old SSTs."""
    with tarfile.open(newest_archive()) as packed:
        packed.extractall(tmp_path, filter="data")
    (directory,) = tmp_path.rglob("checkpoint")
    files = CheckpointFiles(directory)
    assert [finding for finding in files.check(thorough=True) if "moved" not in finding.problem] == []
    unverified = files.unverified()
    assert {name.partition("/")[0] for name in unverified} <= {"mqtwin.json", "state", "snapshots"}
    missed = []
    for path in sorted(path for path in directory.rglob("*") if path.is_file() and path.suffix != ".crc"):
        name = str(path.relative_to(directory))
        data = path.read_bytes()
        flip(path)
        if name not in unverified and name not in {finding.path for finding in files.check(thorough=True)}:
            missed.append(name)
        path.write_bytes(data)
    assert missed == []
    schema = next(directory.glob("state/0/_stateSchema/*/[!.]*"))
    flip(schema)
    assert str(schema.relative_to(directory)) in blocking(directory, thorough=True)
