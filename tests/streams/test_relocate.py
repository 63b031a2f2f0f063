"""`mqtwin checkpoint relocate`: the copy names another place, and the original is as it was."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from deploy.cli import main
from streams.checkpoint.files import LOCK, MANIFEST
from streams.checkpoint.local_files import CheckpointFiles
from streams.checkpoint.manifest import LocalGuard, Manifest, ReadRecord, read_manifest
from streams.checkpoint.snapshots import list_snapshots
from streams.kafka.topics import Topics
from tests.checkpoints.archives import newest_archive
from tests.streams.checkpoints import begin_repartition, write_checkpoint
from tests.support.estates import small_estate
from twin.estate import load_estate

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command; return its status, and what it wrote to standard output and error."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        status = main(["checkpoint", "relocate", *map(str, arguments)])
        return (status, *capsys.readouterr())

    return run


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A checkpoint with a manifest, as a job leaves it."""
    directory = write_checkpoint(tmp_path / "checkpoint")
    guard = LocalGuard(directory)
    ids = {"mqtwin.events": "id-1", "mqtwin.reports": "id-2"}
    manifest = Manifest.of_this_start(load_estate(small_estate(tmp_path)), Topics(), ids, "cluster-1", 2)
    read = {"mqtwin.events": {0: ReadRecord(59, 1_795_176_000_000, "d")}}
    guard.write(msgspec.structs.replace(manifest, read=read, skipped=("mqtwin.events/0/3",)))
    guard.release()
    return directory


def digests(directory: Path) -> dict[str, str]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def homes(directory: Path) -> set[Path]:
    """Return the folders of the schema files that the metadata name."""
    return {path.parents[4] for path in CheckpointFiles(directory).read_operator().schema_files}


def test_a_copy_beside_the_original_is_sound_and_names_itself(run: Run, directory: Path, tmp_path: Path) -> None:
    before, target = digests(directory), tmp_path / "copies" / "a copy"
    status, out, error = run(directory, "--output", target)
    assert (status, error) == (0, "")
    assert out.splitlines() == [
        (
            f"{target}: folder {directory.as_uri()} -> file:{tmp_path}/copies/a%20copy; "
            f"1 file rewritten, {directory} is as it was"
        )
    ]
    assert digests(directory) == before
    assert homes(target) == {target}
    assert CheckpointFiles(target).check(thorough=True) == []
    after = digests(target)
    assert after.keys() == before.keys() - {LOCK, "state/0/_metadata/v2/.0.crc"}
    assert [name for name in after if after[name] != before[name]] == ["state/0/_metadata/v2/0"]
    assert read_manifest(CheckpointFiles(target).folder) == read_manifest(CheckpointFiles(directory).folder)


def test_other_topics_are_named_everywhere_and_their_ids_are_forgotten(
    run: Run, directory: Path, tmp_path: Path
) -> None:
    target = tmp_path / "copy"
    status, out, _ = run(directory, "--output", target, "--topic-prefix", "other")
    assert status == 0
    assert "; topic mqtwin.events -> other.events; topic mqtwin.reports -> other.reports; the next start" in out
    files = CheckpointFiles(target)
    assert files.check(thorough=True) == []
    for batch in files.batches:
        expected = CheckpointFiles(directory).read_offsets(batch)
        own = files.read_offsets(batch)
        assert own.settings == expected.settings
        assert own.offsets == {name.replace("mqtwin", "other"): each for name, each in expected.offsets.items()}
    assert "other.events" in (target / "sources/0/0").read_text()
    manifest = read_manifest(files.folder)
    assert manifest is not None
    assert (manifest.prefix, manifest.cluster) == ("other", "cluster-1")
    assert manifest.topics == {"other.events": "", "other.reports": ""}
    assert manifest.read.keys() == {"other.events"}
    assert manifest.skipped == ("other.events/0/3",)


def test_another_cluster_is_not_known_and_the_last_record_is_kept_to_compare(
    run: Run, directory: Path, tmp_path: Path
) -> None:
    status, out, _ = run(directory, "--output", tmp_path / "copy", "--other-cluster")
    manifest = read_manifest(CheckpointFiles(tmp_path / "copy").folder)
    assert manifest is not None and status == 0
    assert (manifest.cluster, set(manifest.topics.values())) == ("", {""})
    assert manifest.read["mqtwin.events"][0].offset == 59
    assert "; its cluster is not known; the next start compares the last record that was read; " in out
    (directory / MANIFEST).unlink()
    assert "make sure yourself" in run(directory, "--output", tmp_path / "second", "--other-cluster")[1]


def test_a_copy_for_another_machine_names_the_folder_there(run: Run, directory: Path, tmp_path: Path) -> None:
    for home, uri in (("/state/checkpoint", "file:/state/checkpoint"), ("hdfs://name/cp/", "hdfs://name/cp")):
        target = tmp_path / uri.replace("/", "-")
        status, out, _ = run(directory, "--output", target, "--home", home)
        assert status == 0
        assert f" -> {uri}; " in out
        assert f'"{uri}/state/0/_stateSchema/' in (target / "state/0/_metadata/v2/0").read_text()


def test_the_checkpoint_of_a_release_is_relocated_with_its_snapshots(run: Run, tmp_path: Path) -> None:
    with tarfile.open(newest_archive()) as archive:
        archive.extractall(tmp_path, filter="data")
    contents = json.loads((tmp_path / "kept.json").read_text())
    directory, target, otlp = tmp_path / "checkpoint", tmp_path / "copy", "else.spans"
    status, out, error = run(directory, "--output", target, "--topic-prefix", "else", "--otlp-topic", otlp)
    assert (status, error) == (0, "")
    assert out.startswith(f"{target}: folder file:/home/of/the/checkpoint -> file:{target}; topic ")
    assert CheckpointFiles(target).check(thorough=True) == []
    assert homes(target) == {target}
    names = {
        f"{contents['prefix']}.events": "else.events",
        f"{contents['prefix']}.reports": "else.reports",
        contents["otlp"]: otlp,
    }
    assert CheckpointFiles(target).next_offsets().keys() == set(names.values())
    [snapshot] = list_snapshots(target)
    assert snapshot.offsets().keys() == set(names.values())
    assert b"/home/of" not in b"".join(path.read_bytes() for path in target.glob("**/_metadata/v2/*"))
    left = [name for name, old in ((p, p.read_bytes()) for p in target.rglob("*") if p.is_file()) if b"kept-" in old]
    assert left == []


def test_files_that_are_one_stay_one(run: Run, directory: Path, tmp_path: Path) -> None:
    link = directory / "snapshots" / "1-0" / "metadata"
    link.parent.mkdir(parents=True)
    os.link(directory / "metadata", link)
    assert run(directory, "--output", tmp_path / "copy")[0] == 0
    assert (tmp_path / "copy" / "snapshots" / "1-0" / "metadata").samefile(tmp_path / "copy" / "metadata")
    assert not (tmp_path / "copy" / "metadata").samefile(directory / "metadata")


def test_what_cannot_be_relocated_is_one_line_and_leaves_nothing(
    run: Run, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "copy"
    damaged, unfinished = tmp_path / "damaged", tmp_path / "unfinished"
    for other in (damaged, unfinished):
        shutil.copytree(directory, other)
    (damaged / "state/0/1/5.changelog").write_bytes(b"")
    begin_repartition(unfinished, 8)
    folders = set(tmp_path.iterdir())
    for arguments, message in (
        ([damaged, "--output", target], "is damaged: state/0/1/5.changelog: is empty"),
        ([unfinished, "--output", target], "its repartition to 8 state partitions has not ended"),
        ([directory, "--output", tmp_path / "unfinished"], "is there already; expected: a name that is free"),
        ([directory, "--output", directory / "copy"], "is in the checkpoint itself; expected: a folder beside it"),
        ([directory, "--output", target, "--otlp-topic", "a"], "the checkpoint has no topic of spans"),
        ([tmp_path, "--output", target], "is no checkpoint"),
        ([directory, "--output", "/proc/nope/cp"], "--output /proc/nope/cp: "),
    ):
        status, out, error = run(*arguments)
        assert (status, out, error.count("\n")) == (2, "", 1)
        assert message in error
        assert "expected: " in error or "repartition" in error or "restore" in error
    guard = LocalGuard(directory)
    assert "a job runs on it (pid " in run(directory, "--output", target)[2]
    guard.release()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copy2", fail)
    assert "No space left on device; expected: a folder that may be written" in run(directory, "--output", target)[2]
    assert set(tmp_path.iterdir()) == folders
