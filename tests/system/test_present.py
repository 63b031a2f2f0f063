"""`mqtwin whatif --bootstrap-servers`: the last state in the topics of a real job, in a real Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from deploy.cli import main
from streams.kafka.present import read_present
from streams.query.stored_state import read_twin
from tests.system.harness import PATIENCE, Played, Stream, read_topic
from twin.estate import Estate
from twin.events import NDJSON
from twin.planning.advise import Promise, advise
from twin.planning.whatif import Traffic, at_moment, moment_of, what_if
from twin.recordings.files import open_recording

pytestmark = [pytest.mark.system, pytest.mark.nightly]

STORE = "QSG1/APP1"
MOMENT = "2026-11-20T01:00:00"


@pytest.fixture
def filling(outage: Played, tmp_path: Path) -> Played:
    """The outage until the moment at which the structure fills."""
    path = tmp_path / "filling.ndjson"
    with path.open("wb") as file:
        for chunk in open_recording(outage.recording):
            file.writelines(line + b"\n" for line in chunk.lines() if json.loads(line)["time"][:19] < MOMENT)
    return Played.replay(outage.described, path)


def ask(stream: Stream, played: Played, *arguments: str) -> int:
    place = ("--bootstrap-servers", stream.servers, "--topic-prefix", stream.prefix)
    return main(["whatif", STORE, "--estate", str(played.described), *place, *arguments])


def test_topics_and_checkpoint_answer_as_the_recording_does(
    filling: Played, new_stream: Callable[[Estate], Stream], capsys: pytest.CaptureFixture[str]
) -> None:
    stream = new_stream(filling.estate)
    filling.publish(stream, NDJSON)
    assert ask(stream, filling) == 2
    assert f"{stream.topics.state} has no state of {STORE}" in capsys.readouterr().err
    stream.run()
    assert ask(stream, filling, "--traffic", "gets=0", "--set", "offld1_th=60", "--json") == 0
    expected = what_if(at_moment(filling.recording, filling.estate, STORE), {"offld1_th": 60}, Traffic(gets=0))
    assert expected.before.resource is not None
    assert json.loads(capsys.readouterr().out) == msgspec.json.decode(msgspec.json.encode(expected))
    stored = moment_of(filling.estate, read_twin(stream.checkpoint, filling.estate, STORE, session=stream.session))
    assert what_if(stored, {"offld1_th": 60}, Traffic(gets=0)) == expected
    promise = Promise(hours=1)
    recorded = advise(at_moment(filling.recording, filling.estate, STORE), promise)
    assert (recorded.plans or recorded.smaller) and advise(stored, promise) == recorded


def test_where_kafka_has_deleted_events_the_state_record_says_what_is_held(
    filling: Played, new_stream: Callable[[Estate], Stream], capsys: pytest.CaptureFixture[str]
) -> None:
    stream = new_stream(filling.estate)
    filling.publish(stream, NDJSON)
    stream.run()
    (number,) = {record.partition for record in read_topic(stream.servers, stream.topics.events)}
    records = read_topic(stream.servers, stream.topics.events)
    middle = TopicPartition(stream.topics.events, number, records[len(records) // 2].offset)
    admin = AdminClient({"bootstrap.servers": stream.servers})  # its futures end with it
    for future in admin.delete_records([middle]).values():
        future.result(PATIENCE)
    record = stream.states()[STORE]
    present = read_present({"bootstrap.servers": stream.servers}, stream.topics, filling.estate, STORE)
    state = present.twin.state()
    counted = state.events - 1  # the measurement is an event, too
    assert 0 < present.lost < record.events and present.lost == record.events - counted
    assert (state.messages, state.ents_used, state.elems_used) == (record.messages, record.ents_used, record.elems_used)
    assert {q: used.blocks_used for q, used in state.smds.items()} == {
        q: used.blocks_used for q, used in record.smds.items()
    }
    assert ask(stream, filling, "--json") == 0
    output = capsys.readouterr()
    assert f"the topic has {present.lost:,} of its events no more" in output.err
    before = json.loads(output.out)["before"]
    expected = what_if(at_moment(filling.recording, filling.estate, STORE)).before
    assert before["resource"] == expected.resource
    assert before["puts_per_s"] == pytest.approx(expected.puts_per_s, rel=0.05)
    assert before["p50"] == pytest.approx(expected.p50, rel=0.25)
