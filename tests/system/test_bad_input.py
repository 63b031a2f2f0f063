"""Bad input: each bad event is one dead letter with its reason, good events count, and the query continues."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from structlog.testing import capture_logs

from streams.query.definition import JobSettings
from streams.query.job import start_job
from tests.streams.kafka_help import create, delete
from tests.support.estates import small_estate
from tests.system.harness import Stream
from twin.base.errors import UsageError
from twin.estate import Estate, load_estate
from twin.events import ARROW, JSON, NDJSON, to_table

pytestmark = pytest.mark.system

NewStream = Callable[[Estate], Stream]
STORE = b"QSG1/APP1"
TIME = "2026-11-20T12:00:00Z"
GOOD: dict[str, Any] = {"time": TIME, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 1000}
PATIENCE = 120.0

BAD: dict[str, Any] = {
    "not-json": b'{"time":',
    "not-an-object": b"[1,2]",
    "missing-field": {key: value for key, value in GOOD.items() if key != "length"},
    "wrong-type": GOOD | {"length": "1000"},
    "bad-value": GOOD | {"length": -1},
    "bad-time": GOOD | {"time": "1999-12-31T23:59:59Z"},
    "unknown-op": GOOD | {"op": "PEEK"},
    "unknown-queue-manager": GOOD | {"qmgr": "QM99"},
    "unknown-queue": GOOD | {"queue": "ORDERZ"},
    "unknown-store": {"time": TIME, "qmgr": "QM01", "op": "HEARTBEAT", "store": "QSG1/APP9"},
    "bad-attributes": {
        "time": TIME,
        "qmgr": "QM01",
        "op": "ALTER",
        "store": "QSG1/APP1",
        "attributes": {"offld1_th": 101},
    },
}


def as_bytes(event: Any) -> bytes:
    return event if isinstance(event, bytes) else json.dumps(event).encode()


def good(number: int) -> bytes:
    return as_bytes(GOOD | {"msgid": f"m{number}", "seq": number})


def arrow(events: list[dict[str, Any]]) -> bytes:
    sink = pa.BufferOutputStream()
    table = to_table(events)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return load_estate(small_estate(tmp_path))


def test_every_bad_event_is_one_dead_letter_with_its_reason(new_stream: NewStream, estate: Estate) -> None:
    stream = new_stream(estate)
    records: list[tuple[bytes, bytes, str | None]] = []
    for number, event in enumerate(BAD.values()):
        records += [(STORE, good(number), JSON), (STORE, as_bytes(event), None)]
    damaged = arrow([GOOD | {"msgid": "a", "seq": len(BAD)}])[:-300]
    records += [(STORE, b"<xml/>", "text/xml"), (STORE, damaged, ARROW)]
    places = stream.send(records)
    stream.run()

    letters = {(letter.headers["partition"], letter.headers["offset"]): letter for letter in stream.letters()}
    assert len(letters) == len(stream.letters()) == len(BAD) + 2
    reasons = [*BAD, "unknown-content-type", "bad-arrow"]
    bad_places = [*places[1 : 2 * len(BAD) : 2], *places[2 * len(BAD) :]]
    bad_values = [*map(as_bytes, BAD.values()), b"<xml/>", damaged]
    for reason, (partition, offset), value in zip(reasons, bad_places, bad_values, strict=True):
        letter = letters[str(partition), str(offset)]
        assert letter.headers["reason"] == reason
        assert letter.headers["topic"] == stream.topics.events
        assert letter.headers["index"] == "0"
        assert letter.headers["detail"]
        assert letter.value == value
    state = stream.states()["QSG1/APP1"]
    assert (state.messages, state.events, state.gaps) == (len(BAD), len(BAD), 0)


@pytest.mark.nightly
def test_one_bad_line_costs_only_itself(new_stream: NewStream, estate: Estate) -> None:
    stream = new_stream(estate)
    lines = [good(0), as_bytes(BAD["bad-value"]), b"", good(1), b"caf\xe9", good(2)]
    stream.send([(STORE, b"\n".join(lines), NDJSON)])
    stream.run()
    assert [(letter.headers["index"], letter.headers["reason"], letter.value) for letter in stream.letters()] == [
        ("1", "bad-value", lines[1]),
        ("4", "not-json", lines[4]),
    ]
    assert stream.states()["QSG1/APP1"].messages == 3


@pytest.mark.nightly
def test_a_bad_row_of_arrow_is_a_dead_letter_as_json(new_stream: NewStream, estate: Estate) -> None:
    stream = new_stream(estate)
    table = to_table([GOOD | {"msgid": f"m{n}", "seq": n} for n in range(4)])
    queues = pa.array(["ORDERS", "ORDERZ", "ORDERS", "ORDERS"]).dictionary_encode()
    table = table.set_column(table.schema.get_field_index("queue"), "queue", queues)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    stream.send([(STORE, bytes(sink.getvalue()), ARROW)])
    stream.run()
    (letter,) = stream.letters()
    assert (letter.headers["index"], letter.headers["reason"]) == ("1", "unknown-queue")
    assert json.loads(letter.value)["queue"] == "ORDERZ"
    state = stream.states()["QSG1/APP1"]
    assert (state.messages, state.gaps) == (3, 1)


@pytest.mark.nightly
def test_a_value_beyond_the_limit_of_the_dead_letters_is_cut(new_stream: NewStream, kafka: str, estate: Estate) -> None:
    stream = new_stream(estate)
    admin = AdminClient({"bootstrap.servers": kafka})
    for future in admin.create_topics(
        [
            NewTopic(stream.topics.events, 1, config={"max.message.bytes": "16000000"}),
            NewTopic(stream.topics.dlq, 1, config={"max.message.bytes": "100000"}),
        ]
    ).values():
        future.result()
    huge = b"[" + b"1," * 7_000_000 + b"1]"
    stream.send([(STORE, huge, JSON), (STORE, good(0), JSON)])
    stream.run()
    (letter,) = stream.letters()
    assert letter.headers["original-length"] == str(len(huge))
    assert 80_000 < len(letter.value) < 100_000
    assert huge.startswith(letter.value)
    assert stream.states()["QSG1/APP1"].messages == 1


def test_the_query_continues_after_bad_input_and_stops_on_request(new_stream: NewStream, estate: Estate) -> None:
    stream = new_stream(estate)
    stream.send([(STORE, good(0), JSON)])
    settings = JobSettings(
        estate=estate, bootstrap_servers=stream.servers, checkpoint=str(stream.checkpoint), prefix=stream.prefix
    )
    job = start_job(settings, session=stream.session)
    try:
        stream.send([(STORE, b"nonsense", None), (STORE, good(1), None)])
        deadline = time.monotonic() + PATIENCE
        while getattr(stream.states().get("QSG1/APP1"), "messages", 0) != 2:
            assert time.monotonic() < deadline
            assert job.query.isActive
            time.sleep(0.2)
        stop = threading.Event()
        stop.set()
        job.wait(stop)
        assert job.query.isActive
    finally:
        job.stop()
    assert not job.query.isActive
    assert [letter.value for letter in stream.letters()] == [b"nonsense"]


@pytest.mark.nightly
def test_a_deleted_topic_is_named_before_the_query_starts(new_stream: NewStream, kafka: str, estate: Estate) -> None:
    stream = new_stream(estate)
    stream.send([(STORE, good(0), JSON)])
    stream.run()
    delete(kafka, stream.topics.events)
    with pytest.raises(UsageError, match=rf"^checkpoint \S+: topic {stream.topics.events} is not at [^\n]+$"):
        stream.run()


@pytest.mark.nightly
def test_topics_that_take_small_records_only_do_not_hold_up_the_job(
    new_stream: Callable[[Estate], Stream], tmp_path: Path
) -> None:
    """A batch of the producer's default size would be refused, and split again and again for minutes."""
    stream = new_stream(load_estate(small_estate(tmp_path)))
    for name in stream.topics.out:
        create(stream.servers, name, max_message_bytes="1000")
    random = Random(1)  # names that no compression makes small
    events = [
        {"time": 1_795_176_000_000_000 + n, "qmgr": "QM01", "op": "PUT", "queue": f"Q{random.getrandbits(180):X}"}
        for n in range(300)
    ]
    stream.send([(b"?", json.dumps(event | {"length": 1}).encode(), None) for event in events])
    began = time.monotonic()
    stream.run()
    assert time.monotonic() - began < 100  # Kafka's producer would try for delivery.timeout.ms, 120 s
    assert len(stream.letters()) == 300


@pytest.mark.nightly
def test_a_producer_whose_numbers_begin_again_is_named_in_the_log(
    new_stream: Callable[[Estate], Stream], tmp_path: Path
) -> None:
    stream = new_stream(load_estate(small_estate(tmp_path)))
    for hour, count in ((12, 100), (13, 60)):
        events = [GOOD | {"time": f"2026-11-20T{hour}:00:00.{n:06}Z", "seq": n} for n in range(count)]
        stream.send([(STORE, as_bytes(event), None) for event in events])
        with capture_logs() as logs:
            stream.run()
    assert sum(batch["duplicates"] for batch in stream.batches) == 60
    (warning,) = (entry for entry in logs if entry["event"] == "a producer's seq has started again")
    assert (warning["store"], warning["qmgr"]) == (STORE.decode(), "QM01")
    assert stream.states()[STORE.decode()].messages == 100
