"""The pure-Python producer: numbers, keys, order, and errors that are raised."""

from __future__ import annotations

import ast
import json
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.streams.kafka_help import create, everything, header
from tests.support.traffic import START_US, STORE_OF, traffic, write_estate, write_recording
from twin.estate import load_estate
from twin.events import Decoder
from twin.playback.replays import Player, replay

with warnings.catch_warnings():  # kafka-python reads its files in a way that Python 3.11 and 3.12 call deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    from streams import pure_producer
    from streams.pure_producer import JSON, NDJSON, DeliveryError, EventProducer

pytestmark = pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning")

PUT = {"time": START_US, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 1}


def events_of(kafka: str, prefix: str) -> list[dict[str, Any]]:
    return [
        json.loads(line) for message in everything(kafka, f"{prefix}.events") for line in message.value().split(b"\n")
    ]


@pytest.fixture
def topic(kafka: str, topic_prefix: str) -> str:
    create(kafka, f"{topic_prefix}.events", partitions=2)
    return f"{topic_prefix}.events"


def test_it_imports_only_kafka_python_and_the_standard_library() -> None:
    tree = ast.parse(Path(pure_producer.__file__).read_text(encoding="utf-8"))
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {str(name).partition(".")[0] for name in names} - sys.stdlib_module_names == {"kafka"}


@pytest.mark.parametrize("content_type", [JSON, NDJSON])
def test_published_events_give_the_same_states_and_alerts_as_a_replay(
    content_type: str, kafka: str, topic_prefix: str, topic: str, tmp_path: Path
) -> None:
    estate = load_estate(write_estate(tmp_path))
    with EventProducer(kafka, topic_prefix, store_of=STORE_OF, content_type=content_type) as producer:
        for event in traffic(1500):
            event.pop("seq", None)
            producer.put(event)
    messages = everything(kafka, topic)
    decoded = Decoder(estate).records([m.value() for m in messages], [header(m) for m in messages])
    player = Player(estate)
    alerts = sorted(player.feed(decoded), key=lambda alert: (alert.time, alert.store))
    replayed = replay(write_recording(tmp_path / "traffic.ndjson", traffic(1500)), estate)
    known = {name: state for name, state in replayed.states.items() if name in STORE_OF.values()}
    assert (alerts, player.states()) == (replayed.alerts, known)  # the recording's heartbeats reach other stores too
    assert {m.key() for m in messages} == {b"QSG1/APP1", b"QSG1/APP2"}
    assert {header(m) for m in messages} == {NDJSON if content_type == NDJSON else None}


@pytest.mark.usefixtures("topic")
def test_events_of_each_queue_of_each_queue_manager_are_numbered_without_gaps(kafka: str, topic_prefix: str) -> None:
    with EventProducer(kafka, topic_prefix, store_of=STORE_OF, next_seq={("QM02", "ORDERS"): 7}) as producer:
        for qmgr in ("QM01", "QM02", "QM01", "QM02"):
            producer.put(PUT | {"qmgr": qmgr})
        producer.put({"time": START_US, "qmgr": "QM01", "op": "HEARTBEAT", "store": "QSG1/APP1"})
        assert producer.next_seq == {("QM01", "ORDERS"): 2, ("QM02", "ORDERS"): 9}
    numbers = [(event["qmgr"], event.get("seq")) for event in events_of(kafka, topic_prefix)]
    assert numbers == [("QM01", 0), ("QM02", 7), ("QM01", 1), ("QM02", 8), ("QM01", None)]


@pytest.mark.usefixtures("topic")
def test_an_existing_number_is_kept_and_the_event_is_not_changed(kafka: str, topic_prefix: str) -> None:
    event = PUT | {"seq": 41}
    with EventProducer(kafka, topic_prefix, store_of=STORE_OF) as producer:
        producer.put(event)
        producer.put(PUT)
    assert event == PUT | {"seq": 41} and "seq" not in PUT
    assert [event["seq"] for event in events_of(kafka, topic_prefix)] == [41, 0]


def test_an_event_of_a_queue_manager_goes_to_each_of_its_stores(kafka: str, topic_prefix: str, topic: str) -> None:
    with EventProducer(kafka, topic_prefix, store_of=STORE_OF, content_type=JSON) as producer:
        producer.put({"time": START_US, "qmgr": "QM01", "op": "RESTART"})
    sent = {message.key().decode(): json.loads(message.value())["store"] for message in everything(kafka, topic)}
    assert sent == {"QSG1/APP1": "QSG1/APP1", "QSG1/APP2": "QSG1/APP2"}


def test_lines_linger_for_a_limited_time(kafka: str, topic_prefix: str, topic: str) -> None:
    with EventProducer(kafka, topic_prefix, store_of=STORE_OF, batch_events=3, linger_seconds=0.3) as producer:
        for _ in range(4):
            producer.put(PUT)
        deadline = time.monotonic() + 10
        while len(events_of(kafka, topic_prefix)) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert [message.value().count(b"\n") + 1 for message in everything(kafka, topic)] == [3, 1]


@pytest.mark.usefixtures("topic")
def test_lines_that_cannot_be_sent_later_are_an_error_of_the_next_call(
    kafka: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EventProducer(kafka, topic_prefix, store_of=STORE_OF, batch_events=3, linger_seconds=0.05) as producer:
        with monkeypatch.context() as broken:
            broken.setattr(producer._producer, "send", lambda *_: 1 / 0)
            producer.put(PUT)
            deadline = time.monotonic() + 10
            while not producer._failures and time.monotonic() < deadline:
                time.sleep(0.01)
        with pytest.raises(DeliveryError, match="ZeroDivisionError"):
            producer.put(PUT)
        producer.put(PUT)
        deadline = time.monotonic() + 10
        while not events_of(kafka, topic_prefix) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(events_of(kafka, topic_prefix)) == 1


def test_a_record_of_lines_has_a_maximum_size(
    kafka: str, topic_prefix: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pure_producer, "MAX_RECORD_BYTES", 300)
    with EventProducer(kafka, topic_prefix, store_of=STORE_OF) as producer:
        for _ in range(10):
            producer.put(PUT)
    messages = everything(kafka, topic)
    assert len(messages) > 1 and all(len(message.value()) <= 300 for message in messages)


@pytest.mark.usefixtures("topic")
def test_threads_may_share_it(kafka: str, topic_prefix: str) -> None:
    with EventProducer(kafka, topic_prefix, store_of=STORE_OF, batch_events=7) as producer:
        threads = [threading.Thread(target=lambda: [producer.put(PUT) for _ in range(200)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [event["seq"] for event in events_of(kafka, topic_prefix)] == list(range(800))


@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": None}, "no time"),
        ({"op": "PEEK"}, "expected: one of ALTER"),
        ({"queue": "ORDERZ"}, "expected: one of BILLS, ORDERS"),
        ({"qmgr": "QM09"}, "none is known"),
        ({"qmgr": "QM09", "op": "RESTART"}, "expected: one of QM01, QM02"),
        ({"op": "ALTER"}, "needs a store"),
    ],
)
def test_an_event_without_a_store_is_refused_at_once(
    change: dict[str, Any], message: str, kafka: str, topic_prefix: str
) -> None:
    with EventProducer(kafka, topic_prefix, store_of=STORE_OF) as producer:
        with pytest.raises(ValueError, match=message):
            producer.put(PUT | change)
        producer.put(PUT)
    assert [event["seq"] for event in events_of(kafka, topic_prefix)] == [0]


def test_another_content_type_is_refused(kafka: str) -> None:
    with pytest.raises(ValueError, match="application/json"):
        EventProducer(kafka, store_of=STORE_OF, content_type="text/plain")


def test_a_missing_topic_is_an_error_at_once(kafka: str, topic_prefix: str) -> None:
    with pytest.raises(DeliveryError, match=f"no topic {topic_prefix}.events"):
        EventProducer(kafka, topic_prefix, store_of=STORE_OF, max_block_ms=1000)


def test_a_record_that_no_broker_takes_is_an_error_of_the_next_call(kafka: str, topic_prefix: str) -> None:
    create(kafka, f"{topic_prefix}.events", max_message_bytes="1000")
    producer = EventProducer(kafka, topic_prefix, store_of=STORE_OF, content_type=JSON, linger_seconds=0)
    producer.put(PUT | {"note": "x" * 5000})
    with pytest.raises(DeliveryError, match=r"\.events: 1 records were not delivered; the first: MessageSizeTooLarge"):
        producer.flush(10)
    producer.put(PUT)
    producer.close()
    assert [event["seq"] for event in events_of(kafka, topic_prefix)] == [1]


@pytest.mark.usefixtures("topic")
def test_one_event_larger_than_the_client_sends_is_an_error_too(kafka: str, topic_prefix: str) -> None:
    with (
        pytest.raises(DeliveryError, match="MessageSizeTooLarge"),
        EventProducer(kafka, topic_prefix, store_of=STORE_OF) as producer,
    ):
        producer.put(PUT | {"note": "x" * 2_000_000})


@pytest.mark.usefixtures("topic")
def test_put_blocks_at_too_many_pending_records(kafka: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pure_producer, "MAX_PENDING_RECORDS", 2)
    with EventProducer(kafka, topic_prefix, store_of=STORE_OF, content_type=JSON, linger_seconds=0.01) as producer:
        for _ in range(50):
            producer.put(PUT)
            assert producer._pending <= 2
    assert len(events_of(kafka, topic_prefix)) == 50
