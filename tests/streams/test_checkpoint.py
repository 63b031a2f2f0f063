"""The guard of a checkpoint: its owner, its damage, its lock, its offsets in Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from streams.checkpoint.files import LOCK, MANIFEST
from streams.checkpoint.guard import (
    CheckpointGuard,
    ClusterState,
    OffsetRange,
    Skip,
    TopicState,
    check_offsets,
    format_skips,
)
from streams.checkpoint.local_files import CheckpointFiles, LocalFolder
from streams.checkpoint.manifest import (
    EstateSince,
    LocalGuard,
    Manifest,
    check_belongs,
    check_kinds,
    check_sound,
    local_directory,
    log_changed_estate,
    note_estate,
    read_manifest,
    running_job,
    stretches_from,
)
from streams.checkpoint.remote import check_scheme
from streams.kafka.topics import Topics
from tests.streams.checkpoints import begin_repartition, with_crc, write_checkpoint
from tests.support.estates import small_estate
from twin.base.errors import UsageError
from twin.estate import Estate, Structure, load_estate

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def described(tmp_path: Path) -> Estate:
    return load_estate(small_estate(tmp_path))


def manifest_of(estate: Estate, **changes: object) -> Manifest:
    manifest = Manifest.of_this_start(estate, Topics(), {"mqtwin.events": "id-1"}, "cluster-1", 2)
    return msgspec.structs.replace(manifest, **changes)


# --- location --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("location", "directory"),
    [
        ("/var/lib/x", Path("/var/lib/x")),
        ("relative/x", Path("relative/x")),
        ("file:///var/lib/a%20b", Path("/var/lib/a b")),
        ("hdfs://nn/x", None),
        ("s3a://bucket/x", None),
    ],
)
def test_local_checkpoints_are_recognised(location: str, directory: Path | None) -> None:
    assert local_directory(location) == directory


def test_a_scheme_that_hadoop_has_not_is_refused_before_spark_starts() -> None:
    with pytest.raises(UsageError, match="expected: s3a://"):
        check_scheme("s3://bucket/cp", {})
    check_scheme("s3://bucket/cp", {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"})
    check_scheme("s3a://bucket/cp", {})
    check_scheme("hdfs://nn/cp", {})


# --- kinds of stores -------------------------------------------------------------------------------------------------


def test_a_store_of_another_kind_is_refused_with_both_kinds(described: Estate) -> None:
    kinds = {"QSG1/APP1": "structure", "QM01/PS04": "page_set"}
    check_kinds("/cp", manifest_of(described, kinds=kinds), described)  # one that is no longer described is no matter
    check_kinds("/cp", manifest_of(described, kinds={}), described)  # an early manifest
    check_kinds("/cp", None, described)
    refused = r"^checkpoint /cp has state of QSG1/APP1 as a page set; the estate describes a structure: [^\n]+$"
    with pytest.raises(UsageError, match=refused):
        check_kinds("/cp", manifest_of(described, kinds={"QSG1/APP1": "page_set"}), described)


def test_a_manifest_keeps_the_kinds_of_stores_that_are_no_longer_described(described: Estate) -> None:
    before = manifest_of(described, kinds={"QM01/PS04": "page_set"})
    manifest = Manifest.of_this_start(described, Topics(), {}, "", 2, before)
    assert manifest.kinds["QM01/PS04"] == "page_set"
    assert manifest.kinds["QSG1/APP1"] == "structure"
    assert "QM01/PS04" not in manifest.stores


@pytest.mark.parametrize("content", [b'{"id":"\xff"}', b'{"more":' + b"[" * 3_000, b"{"])
def test_a_damaged_manifest_is_one_line(tmp_path: Path, content: bytes) -> None:
    folder = LocalFolder(tmp_path)
    folder.write(MANIFEST, content)
    with pytest.raises(UsageError, match=r"mqtwin\.json: .*remove it if the checkpoint is yours"):
        read_manifest(folder)


def test_a_manifest_without_kinds_is_read(tmp_path: Path, described: Estate) -> None:
    early = msgspec.to_builtins(manifest_of(described))
    del early["kinds"]
    folder = LocalFolder(tmp_path)
    folder.write(MANIFEST, msgspec.json.encode(early))
    manifest = read_manifest(folder)
    assert manifest is not None
    assert manifest.kinds == {}


# --- is it writable --------------------------------------------------------------------------------------------------


def test_a_missing_directory_is_created_and_locked(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    guard = LocalGuard(directory)
    owner = running_job(directory)
    assert owner is not None and owner.pid == os.getpid()
    guard.release()
    assert running_job(directory) is None
    LocalGuard(directory).release()


def test_a_file_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "afile"
    path.write_text("x")
    with pytest.raises(UsageError, match="afile is a file; expected: a directory"):
        LocalGuard(path)
    assert path.read_text() == "x"


@pytest.mark.parametrize("path", ["/proc/nope/cp", "/dev/null/cp"])
def test_a_directory_that_cannot_be_created_is_one_line(path: str) -> None:
    with pytest.raises(UsageError, match=rf"checkpoint {path} cannot be written: .*; expected: a directory"):
        LocalGuard(Path(path))


# --- is it in use ----------------------------------------------------------------------------------------------------

_HOLDER = """
import sys, time
from pathlib import Path
from streams.checkpoint.manifest import LocalGuard
guard = LocalGuard(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_second_job_is_refused_with_the_first_ones_process_until_that_has_ended(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", _HOLDER, str(tmp_path)]
    with subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        try:
            assert first.stdout is not None
            assert first.stdout.readline() == "locked\n"
            with pytest.raises(
                UsageError, match=rf"another mqtwin stream runs on it \(pid {first.pid} on .* since .*\)"
            ):
                LocalGuard(tmp_path)
            owner = running_job(tmp_path)  # the attempt has not changed the owner's name
            assert owner is not None and owner.pid == first.pid
        finally:
            first.kill()  # any end of the process releases the lock
            first.wait(20)
    LocalGuard(tmp_path).release()


def test_a_lock_is_not_inherited_by_processes_of_the_job(tmp_path: Path) -> None:
    guard = LocalGuard(tmp_path)
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
        guard.release()
        assert running_job(tmp_path) is None
        child.kill()


# --- manifest --------------------------------------------------------------------------------------------------------


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path, described: Estate) -> None:
    guard = LocalGuard(tmp_path)
    assert guard.manifest is None
    guard.write(manifest_of(described))
    guard.release()
    manifest = read_manifest(LocalFolder(tmp_path))
    assert manifest is not None
    assert manifest == manifest_of(described, written=manifest.written)
    files = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert {MANIFEST, LOCK} == {name for name in files if "mqtwin" in name}


def test_a_damaged_manifest_is_named(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text('{"mqtwin":')
    with pytest.raises(UsageError, match=r"mqtwin\.json: .*; remove it if the checkpoint is yours"):
        LocalGuard(tmp_path)
    assert running_job(tmp_path) is None


def belongs(
    directory: Path, manifest: Manifest | None, prefix: str = "mqtwin", conf: Mapping[str, str] | None = None
) -> None:
    check_belongs(str(directory), manifest, CheckpointFiles(directory), Topics(prefix), conf or {})


def test_another_prefix_is_refused_by_the_last_offsets_even_without_a_manifest(tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path / "cp")
    belongs(directory, None)
    with pytest.raises(UsageError) as refused:
        belongs(directory, None, prefix="nope")
    assert str(refused.value) == (
        f"checkpoint {directory} belongs to topic mqtwin.events, not nope.events: give --topic-prefix mqtwin, or name "
        "another --checkpoint"
    )


def test_another_format_of_state_is_refused(tmp_path: Path, described: Estate) -> None:
    directory = write_checkpoint(tmp_path / "cp")
    belongs(directory, manifest_of(described))
    with pytest.raises(UsageError, match=r"state of format 0\.9, written by mqtwin 0\.0\.7; .*install mqtwin 0\.0\.7"):
        belongs(directory, manifest_of(described, state_format="0.9", mqtwin="0.0.7"))


def test_the_format_before_is_read(tmp_path: Path, described: Estate) -> None:
    belongs(write_checkpoint(tmp_path / "cp"), manifest_of(described, state_format="10.3", mqtwin="0.1.0"))


def test_a_repartition_that_has_not_ended_is_refused(tmp_path: Path, described: Estate) -> None:
    directory = write_checkpoint(tmp_path / "cp")
    batch = begin_repartition(directory, 8)
    with pytest.raises(UsageError, match=rf"`mqtwin checkpoint repartition {directory} --partitions 8` ends it"):
        belongs(directory, manifest_of(described))
    files = CheckpointFiles(directory)
    assert (files.unfinished_partitions, files.check(thorough=True)) == (8, [])
    with_crc(directory / f"commits/{batch}", b'v1\n{"nextBatchWatermarkMs":0}')
    assert CheckpointFiles(directory).unfinished_partitions is None


@pytest.mark.parametrize("partitions", ["1", "8"])
def test_other_partitions_are_refused(tmp_path: Path, partitions: str) -> None:
    directory = write_checkpoint(tmp_path / "cp")
    belongs(directory, None, conf={"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "true"})
    with pytest.raises(UsageError, match=rf"partitions={partitions}: .* begun with 2.* --partitions {partitions}`"):
        belongs(directory, None, conf={"spark.sql.shuffle.partitions": partitions})


def test_the_estates_of_a_job_and_what_it_left_out_are_remembered(tmp_path: Path, described: Estate) -> None:
    other = replace(described, max_depths={"QSG1/APP1": {"ORDERS": 5}})
    folder = LocalFolder(tmp_path)
    known: tuple[EstateSince, ...] = ()
    for estate, begin in (
        (described, {}),
        (described, {0: 10}),  # a restart
        (other, {0: 20}),  # its job has processed nothing
        (described, {0: 20}),
        (other, {0: 20, 1: 5}),
        (replace(described, source="elsewhere", warnings=("x",)), {0: 30, 1: 5}),
    ):
        known = note_estate(folder, estate, begin, known)
    assert [own.begin for own in known] == [{}, {0: 20, 1: 5}, {0: 30, 1: 5}]
    stretches = stretches_from(folder, known, {0: 25, 1: 5})
    assert [(own.begin, own.end) for own in stretches] == [({0: 25, 1: 5}, {0: 30, 1: 5}), ({0: 30, 1: 5}, None)]
    assert [own.estate and own.estate.max_depths for own in stretches] == [other.max_depths, described.max_depths]
    assert [own.begin for own in stretches_from(folder, known, {0: 30, 1: 5})] == [{0: 30, 1: 5}] * 2  # an empty one
    assert [own.estate for own in stretches_from(folder, (), {0: 3})] == [None]
    manifest = manifest_of(described, estates=known).with_skipped("a.events/0/7").with_skipped("b.events/1/8")
    again = msgspec.json.decode(msgspec.json.encode(manifest), type=Manifest)
    assert again == manifest and again.skipped_of("a.events") == {(0, 7)} and not again.skipped_of("events")
    after = Manifest.of_this_start(described, Topics(), {}, "", 2, again, known)
    assert after.skipped == again.skipped and after.estate == manifest.estate == known[-1].digest


def test_stores_that_are_no_longer_described_are_logged(described: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    log_changed_estate(manifest_of(described), described)
    log_changed_estate(None, described)
    assert capsys.readouterr().err == ""
    log_changed_estate(manifest_of(described, stores=[*described.stores, "QSG1/GONE"]), described)
    err = capsys.readouterr().err
    assert "stores are no longer described" in err and "QSG1/GONE" in err and "QSG1/APP1" not in err
    structure = described.stores["QSG1/APP1"]
    assert isinstance(structure, Structure) and len(structure.queue_managers) > 1
    less = replace(structure, queue_managers=structure.queue_managers[1:])
    log_changed_estate(None, replace(described, stores={**described.stores, structure.name: less}), described)
    err = capsys.readouterr().err
    assert "queue managers are no longer described" in err and structure.queue_managers[0] in err


def test_damage_is_one_line_with_file_and_remedy(tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path / "cp")
    check_sound(str(directory), CheckpointFiles(directory))
    for partition in (0, 1):
        for version in (4, 5):
            (directory / f"state/0/{partition}/{version}.changelog").unlink()
    with pytest.raises(UsageError) as refused:
        check_sound(str(directory), CheckpointFiles(directory))
    text = str(refused.value)
    assert text.startswith(f"checkpoint {directory} is damaged: state/0/0/4.changelog: is missing; restore it")
    assert text.endswith("and 1 more: `mqtwin checkpoint check` lists them") and "\n" not in text


def test_a_failure_of_the_query_is_explained_by_the_damage_or_the_loss_behind_it(
    tmp_path: Path, described: Estate
) -> None:
    directory = write_checkpoint(tmp_path / "cp")
    guard = CheckpointGuard(str(directory), estate=described, topics=Topics(), conf={}, client={}, tolerate=False)
    vague = "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state."
    assert guard.explain(vague) == vague
    (directory / "state/0/1/5.changelog").write_bytes(b"")
    text = guard.explain(vague)
    assert text.startswith(f"{vague}; checkpoint {directory} is damaged: state/0/1/5.changelog: is empty; restore it")
    lost = guard.explain("Some data may have been lost because they are not available in Kafka any more;")
    assert lost.startswith("Kafka deleted records before they were read")


# --- offsets in Kafka ------------------------------------------------------------------------------------------------

EVENTS, REPORTS = "mqtwin.events", "mqtwin.reports"
OFFSETS = {EVENTS: {0: 100, 1: 50}, REPORTS: {0: 0}}
IDS = {EVENTS: "id-1", REPORTS: "id-2"}


def kafka_with(
    events: dict[int, OffsetRange] | None, events_id: str = "id-1", cluster: str = "cluster-1"
) -> ClusterState:
    topics = {REPORTS: TopicState("id-2", {0: OffsetRange(0, 0)})}
    if events is not None:
        topics[EVENTS] = TopicState(events_id, events)
    return ClusterState(cluster, topics)


def compare(kafka: ClusterState, ids: Mapping[str, str] = IDS, *, tolerate: bool = False) -> list[Skip]:
    return check_offsets("/cp", OFFSETS, ids, "cluster-1", kafka, "localhost:9092", tolerate=tolerate)


@pytest.mark.parametrize("ids", [IDS, {}], ids=["known ids", "no ids"])
@pytest.mark.parametrize(
    "events",
    [
        {0: OffsetRange(0, 100), 1: OffsetRange(0, 50)},
        {0: OffsetRange(100, 120), 1: OffsetRange(10, 70)},
        {0: OffsetRange(0, 100), 1: OffsetRange(0, 50), 2: OffsetRange(0, 7)},  # a partition was added
    ],
    ids=["all read", "more", "one more partition"],
)
def test_a_topic_that_has_the_next_records_is_in_order(ids: Mapping[str, str], events: dict[int, OffsetRange]) -> None:
    assert compare(kafka_with(events), ids) == []


def test_deleted_records_are_reported_and_skipped_only_if_tolerated() -> None:
    kafka = kafka_with({0: OffsetRange(130, 200), 1: OffsetRange(0, 60)})
    with pytest.raises(UsageError) as refused:
        compare(kafka)
    assert str(refused.value) == (
        "checkpoint /cp: mqtwin.events/0: 30 records were deleted before they were read, the next one there is 130; "
        "--tolerate-data-loss continues there"
    )
    assert compare(kafka, tolerate=True) == [Skip(EVENTS, 0, 30, 130)]


@pytest.mark.parametrize("tolerate", [False, True])
@pytest.mark.parametrize(
    ("events", "events_id", "ids"),
    [
        ({0: OffsetRange(0, 30), 1: OffsetRange(0, 50)}, "id-9", IDS),
        ({0: OffsetRange(0, 500), 1: OffsetRange(0, 500)}, "id-9", IDS),  # grown beyond the checkpoint meanwhile
        ({0: OffsetRange(0, 30), 1: OffsetRange(0, 50)}, "id-1", {}),
        ({0: OffsetRange(0, 500)}, "id-1", IDS),
    ],
    ids=["shorter", "longer", "shorter, no known id", "fewer partitions"],
)
def test_a_topic_created_again_that_has_records_is_never_read(
    events: dict[int, OffsetRange], events_id: str, ids: Mapping[str, str], tolerate: bool
) -> None:
    with pytest.raises(
        UsageError, match=r"was deleted and made anew since, and has records, .*name another --checkpoint"
    ):
        compare(kafka_with(events, events_id), ids, tolerate=tolerate)


@pytest.mark.parametrize("events", [None, {0: OffsetRange(0, 0), 1: OffsetRange(0, 0)}], ids=["gone", "empty"])
def test_a_topic_created_again_that_is_empty_is_read_from_its_beginning_if_tolerated(
    events: dict[int, OffsetRange] | None,
) -> None:
    kafka = kafka_with(events, "id-9")
    with pytest.raises(UsageError, match=r"correct --bootstrap-servers, .*--tolerate-data-loss"):
        compare(kafka)
    assert compare(kafka, tolerate=True) == [Skip(EVENTS, 0, 0, 0), Skip(EVENTS, 1, 0, 0)]


def test_a_topic_of_which_nothing_was_read_may_be_missing() -> None:
    kafka = kafka_with({0: OffsetRange(0, 100), 1: OffsetRange(0, 50)})
    without_reports = ClusterState("cluster-1", {EVENTS: kafka.topics[EVENTS]})
    assert compare(without_reports) == []


def test_a_topic_truncated_by_its_broker_continues_at_its_end_if_tolerated() -> None:
    kafka = kafka_with({0: OffsetRange(0, 90), 1: OffsetRange(0, 50)})
    with pytest.raises(UsageError, match="read records are gone, the next one there is 90"):
        compare(kafka)
    assert compare(kafka, tolerate=True) == [Skip(EVENTS, 0, 0, 90)]


@pytest.mark.parametrize("tolerate", [False, True])
def test_another_cluster_is_refused(tolerate: bool) -> None:
    kafka = kafka_with({0: OffsetRange(0, 100), 1: OffsetRange(0, 50)}, cluster="cluster-2")
    with pytest.raises(UsageError, match="belongs to the Kafka cluster cluster-1; localhost:9092 is cluster cluster-2"):
        compare(kafka, tolerate=tolerate)


def test_skipped_records_are_reported_per_partition() -> None:
    skips = [Skip(EVENTS, 0, 1234, 130), Skip(EVENTS, 1, 0, 7)]
    assert format_skips(skips) == (
        "mqtwin.events/0: 1,234 records were deleted before they were read, the next one there is 130, "
        "mqtwin.events/1: read records are gone, the next one there is 7"
    )
