"""The guard of a real checkpoint: refusals without side effects, reports of damage, reading without Kafka."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from streams.checkpoint.files import MANIFEST
from streams.checkpoint.guard import open_stopped
from streams.checkpoint.local_files import CheckpointFiles
from streams.checkpoint.manifest import running_job
from streams.query.definition import JobSettings
from streams.query.job import start_job
from streams.query.stored_state import read_states
from tests.streams.kafka_help import delete
from tests.support.estates import small_estate
from tests.system.harness import Stream, read_topic
from twin.base.errors import MqtwinError, UsageError
from twin.estate import Estate, load_estate

pytestmark = [pytest.mark.system, pytest.mark.nightly]

NewStream = Callable[[Estate], Stream]
STORE = "QSG1/APP1"
BATCHES, PUTS = 3, 40


def puts(first: int, count: int) -> list[tuple[bytes, bytes, str | None]]:
    """Return anonymous puts without `seq`, so that a put that is read twice counts twice."""
    event = {"qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 100}
    times = range(1_795_176_000_000_000 + first, 1_795_176_000_000_000 + first + count)
    return [(STORE.encode(), json.dumps(event | {"time": time}).encode(), None) for time in times]


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return load_estate(small_estate(tmp_path))


@pytest.fixture
def stream(new_stream: NewStream, estate: Estate) -> Stream:
    """A stream that has processed some batches and is at the end of its topic."""
    stream = new_stream(estate)
    stream.send(puts(0, BATCHES * PUTS))
    stream.run(max_records=PUTS)
    assert len(stream.batches) >= BATCHES
    assert stream.states()[STORE].messages == BATCHES * PUTS
    return stream


def settings_of(stream: Stream, checkpoint: Path, *, prefix: str | None = None, tolerate: bool = False) -> JobSettings:
    return JobSettings(
        estate=stream.estate,
        bootstrap_servers=stream.servers,
        checkpoint=str(checkpoint),
        prefix=prefix or stream.prefix,
        available_now=True,
        fail_on_data_loss=not tolerate,
    )


def process(settings: JobSettings, session: SparkSession) -> None:
    job = start_job(settings, session=session)
    try:
        job.wait()
    finally:
        job.stop()


def refusal(settings: JobSettings, session: SparkSession) -> str:
    with pytest.raises(UsageError) as refused:
        start_job(settings, session=session)
    text = str(refused.value)
    assert "\n" not in text
    return text


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name != "mqtwin.lock"
    }


def topics_of(servers: str, prefix: str) -> set[str]:
    return {
        name for name in AdminClient({"bootstrap.servers": servers}).list_topics().topics if name.startswith(prefix)
    }


def test_a_checkpoint_describes_itself_and_its_damages_and_a_refusal_has_no_side_effects(
    stream: Stream, spark: SparkSession, tmp_path: Path
) -> None:
    directory, last = stream.checkpoint, CheckpointFiles(stream.checkpoint).last_batch
    assert last is not None and last >= BATCHES - 1
    files, manifest = open_stopped(directory)
    assert files.check(thorough=True) == []
    assert manifest is not None and manifest.prefix == stream.prefix and manifest.cluster
    assert set(manifest.topics) == {stream.topics.events, stream.topics.reports} and all(manifest.topics.values())
    assert running_job(directory) is None

    # Its state, without Kafka.
    assert list(read_states(directory, stream.estate, session=spark)) == [stream.states()[STORE]]

    # Another prefix is refused, leaves the checkpoint as it is, and makes no topics.
    before, other = contents(directory), f"nope-{stream.prefix}"
    text = refusal(settings_of(stream, directory, prefix=other), spark)
    assert f"belongs to topic {stream.topics.events}, not {other}.events: give --topic-prefix {stream.prefix}" in text
    assert contents(directory) == before and not topics_of(stream.servers, other)

    # Every damage is named before the query starts.
    for path, damage in {
        f"offsets/{last}": cut,
        f"commits/{last}": cut,
        "metadata": Path.unlink,
        "state/0": shutil.rmtree,
    }.items():
        copy = tmp_path / f"copy-{path.replace('/', '-')}"
        shutil.copytree(directory, copy)
        damage(copy / path)
        assert f"{path}: " in refusal(settings_of(stream, copy), spark)

    # State that has lost its checksum fails when Spark reads it, before anything is written.
    stream.send(puts(BATCHES * PUTS, PUTS))
    copy = tmp_path / "copy-without-checksum"
    shutil.copytree(directory, copy)
    for changelog in copy.glob(f"state/0/*/{last + 1}.changelog"):
        flip_without_crc(changelog)
    with pytest.raises(MqtwinError):
        process(settings_of(stream, copy), spark)

    # The right job continues, and counts no event twice.
    process(settings_of(stream, directory), spark)
    state = stream.states()[STORE]
    assert (state.messages, state.events, state.duplicates) == (4 * PUTS, 4 * PUTS, 0)
    check_remedies(stream, spark)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_without_crc(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    path.with_name(f".{path.name}.crc").unlink()


def check_remedies(stream: Stream, spark: SparkSession) -> None:
    """Assert that the remedies of the findings lead to the right state."""
    directory = stream.checkpoint
    expected = stream.states()[STORE]
    last = CheckpointFiles(directory).last_batch
    assert last is not None
    # The last commit is damaged: without it the batch runs again.
    cut(directory / f"commits/{last}")
    (finding,) = CheckpointFiles(directory).check(thorough=True)
    assert finding.remedy.startswith(f"remove commits/{last} and commits/.{last}.crc")
    for name in (str(last), f".{last}.crc"):
        (directory / "commits" / name).unlink()
    stream.run()
    assert stream.states()[STORE] == expected
    # The state of the last batch is damaged: run again, the batch writes sound state.
    for path in (directory / "state" / "0").glob(f"[0-9]*/{last + 1}.changelog"):
        cut(path)
    findings = CheckpointFiles(directory).check(thorough=True)
    assert findings
    assert all(finding.remedy.startswith(f"remove commits/{last} and commits/.{last}.crc") for finding in findings)
    for name in (str(last), f".{last}.crc"):
        (directory / "commits" / name).unlink()
    stream.run()
    assert stream.states()[STORE] == expected
    assert CheckpointFiles(directory).check(thorough=True) == []
    # Offsets and commit of the last batch are missing: its state must be removed, too.
    last = CheckpointFiles(directory).last_batch
    assert last is not None
    for log in ("offsets", "commits"):
        for name in (str(last), f".{last}.crc"):
            (directory / log / name).unlink()
    assert f"offsets/{last}: is missing" in refusal(settings_of(stream, directory), spark)
    for path in (directory / "state" / "0").glob("[0-9]*/*"):
        number = path.name.strip(".").split(".")[0]
        if path.is_file() and number.isdecimal() and int(number) > last:
            path.unlink()
    stream.send(puts(4 * PUTS, PUTS))  # now the batch has other bounds
    stream.run()
    state = stream.states()[STORE]
    assert (state.messages, state.events, state.duplicates) == (5 * PUTS, 5 * PUTS, 0)


def test_lost_records_are_skipped_only_if_tolerated_and_no_event_is_counted_twice(
    stream: Stream, spark: SparkSession
) -> None:
    stream.send(puts(BATCHES * PUTS, PUTS))
    ends = {record.partition: record.offset for record in read_topic(stream.servers, stream.topics.events)}
    ((partition, end),) = ends.items()  # one store: one partition
    admin = AdminClient({"bootstrap.servers": stream.servers})
    place = TopicPartition(stream.topics.events, partition, end - 9)
    for future in admin.delete_records([place]).values():
        future.result()
    assert "30 records were deleted before they were read" in refusal(settings_of(stream, stream.checkpoint), spark)
    process(settings_of(stream, stream.checkpoint, tolerate=True), spark)
    state = stream.states()[STORE]
    assert (state.messages, state.events) == (BATCHES * PUTS + 10, BATCHES * PUTS + 10)

    # The topic was deleted, and the job creates it again.
    messages = BATCHES * PUTS + 10
    delete(stream.servers, stream.topics.events)
    assert "--tolerate-data-loss" in refusal(settings_of(stream, stream.checkpoint), spark)
    process(settings_of(stream, stream.checkpoint, tolerate=True), spark)  # creates it, and continues at its beginning
    stream.send(puts(5 * PUTS, PUTS))
    process(settings_of(stream, stream.checkpoint, tolerate=True), spark)
    state = stream.states()[STORE]
    assert (state.messages, state.events) == (messages + PUTS, messages + PUTS)

    # Created again with the same records in it: nothing shows that they were counted already.
    delete(stream.servers, stream.topics.events)
    stream.send(puts(0, PUTS))
    for tolerate in (False, True):
        text = refusal(settings_of(stream, stream.checkpoint, tolerate=tolerate), spark)
        assert "was deleted and made anew since, and has records" in text


def test_a_second_job_is_refused_and_the_first_continues(
    new_stream: NewStream, estate: Estate, spark: SparkSession
) -> None:
    stream = new_stream(estate)
    stream.send(puts(0, PUTS))
    first = start_job(replace(settings_of(stream, stream.checkpoint), available_now=False), session=spark)
    try:
        text = refusal(settings_of(stream, stream.checkpoint), spark)
        assert "another mqtwin stream runs on it (pid " in text and "stop it, or name another --checkpoint" in text
        assert first.query.isActive
    finally:
        first.stop()
    stream.run()
    assert stream.states()[STORE].messages == PUTS


def test_a_checkpoint_whose_manifest_was_removed_gets_one(stream: Stream, spark: SparkSession) -> None:
    (stream.checkpoint / MANIFEST).unlink()
    process(settings_of(stream, stream.checkpoint), spark)
    assert (stream.checkpoint / MANIFEST).exists()


def test_other_records_where_some_were_read_are_refused(stream: Stream, spark: SparkSession) -> None:
    """Kafka restored from a backup, and grown past the place: the checkpoint has another last record than Kafka."""
    directory = stream.checkpoint
    _, manifest = open_stopped(directory)
    assert manifest is not None
    ((number, last),) = manifest.read[stream.topics.events].items()
    assert last.offset == BATCHES * PUTS - 1
    stream.send(puts(1_000, PUTS))
    path = directory / MANIFEST
    before = path.read_bytes()
    path.write_bytes(before.replace(last.digest.encode(), b"0" * len(last.digest)))
    text = refusal(settings_of(stream, directory), spark)
    place = f"{stream.topics.events}/{number}"
    assert f"{place}: another record than the one that was read is at offset {last.offset}" in text
    assert "--tolerate-data-loss" in text
    path.write_bytes(before)
    process(settings_of(stream, directory), spark)
    assert stream.states()[STORE].messages == (BATCHES + 1) * PUTS
    _, manifest = open_stopped(directory)
    assert manifest is not None
    (last,) = manifest.read[stream.topics.events].values()
    assert last.offset == (BATCHES + 1) * PUTS - 1
