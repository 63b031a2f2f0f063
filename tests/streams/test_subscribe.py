"""A subscriber reads each alert once, also after restarts of the broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.java.broker import Broker
from streams.kafka import clients, topic_reader
from streams.kafka.topic_reader import AlertReader, read_alerts
from streams.kafka.topics import Topics
from tests.streams.kafka_help import PATIENCE, create, send
from tests.support.java import quick_java
from twin.alerts.episodes import Alert
from twin.base.conditions import OPENED, UPDATED, WARNING
from twin.base.errors import MqtwinError
from twin.records import Action, AlertRecord, Filler, Step


def alert(number: int, change: str = OPENED) -> Alert:
    return Alert(
        change=change,
        number=number,
        alert_id="QSG1/APP1/threshold/entries/1",
        severity=WARNING,
        store="QSG1/APP1",
        resource="entries",
        condition="threshold",
        time=1_795_176_000_000_000 + number,
        usage_pct=81.5,
        time_to_full_s=None,
        full_probability=None,
        fillers=(Filler("ORDERS", 0.75),),
        cause="81.5 % of the entries are in use.",
        runbook=(Action(id="a", summary="b", steps=(Step("c", "ALTER CFSTRUCT(APP1)"),)),),
    )


def values(*numbers: int) -> list[bytes | None]:
    return [alert(number).record() for number in numbers]


@contextmanager
def reading(kafka: str, prefix: str, **options: Any) -> Iterator[AlertReader]:
    with AlertReader({"bootstrap.servers": kafka}, Topics(prefix), **options) as reader:
        yield reader


def read_next(reader: AlertReader, count: int, seconds: float = 20.0) -> list[AlertRecord]:
    """Return the next `count` alerts, or fewer after a timeout."""
    alerts: list[AlertRecord] = []
    deadline = time.monotonic() + seconds
    while len(alerts) < count and time.monotonic() < deadline:
        alerts += reader.read(0.2)
    return alerts


def numbers(alerts: list[AlertRecord]) -> list[int]:
    return [int(alert.id.rpartition("/")[2]) for alert in alerts]


def test_an_alert_is_read_as_it_was_written(kafka: str, topic_prefix: str) -> None:
    create(kafka, f"{topic_prefix}.alerts")
    written = alert(1, UPDATED)
    send(kafka, f"{topic_prefix}.alerts", [written.record()])
    with reading(kafka, topic_prefix, from_beginning=True) as reader:
        (read,) = read_alerts(reader, until_idle=2)
    assert (read.change, read.subject, read.value) == (UPDATED, "QSG1/APP1", written.record())
    assert (read.data.severity, read.data.usage_pct, read.data.fillers[0].queue) == (WARNING, 81.5, "ORDERS")
    assert (read.data.actions, read.data.runbook) == (written.actions, written.runbook)
    assert read.data.cause == written.cause


def test_an_alert_delivered_twice_is_seen_once(kafka: str, topic_prefix: str) -> None:
    create(kafka, f"{topic_prefix}.alerts")
    send(kafka, f"{topic_prefix}.alerts", values(0, 1, 0, 1, 2))
    with reading(kafka, topic_prefix, from_beginning=True) as reader:
        assert numbers(read_next(reader, 3)) == [0, 1, 2]
        assert reader.duplicates == 2


def test_old_ids_are_discarded_so_that_memory_stays_small(
    kafka: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_reader, "_MAX_SEEN", 2)
    create(kafka, f"{topic_prefix}.alerts")
    send(kafka, f"{topic_prefix}.alerts", values(0, 1, 2, 2, 0))
    with reading(kafka, topic_prefix, from_beginning=True) as reader:
        assert numbers(read_next(reader, 4)) == [0, 1, 2, 0]


def test_only_new_alerts_are_read_by_default(kafka: str, topic_prefix: str) -> None:
    create(kafka, f"{topic_prefix}.alerts", partitions=2)
    send(kafka, f"{topic_prefix}.alerts", values(0), partition=1)
    with reading(kafka, topic_prefix) as reader:
        send(kafka, f"{topic_prefix}.alerts", values(1), partition=1)
        assert numbers(read_next(reader, 1)) == [1]


def test_unreadable_records_are_counted_and_skipped(kafka: str, topic_prefix: str) -> None:
    create(kafka, f"{topic_prefix}.alerts")
    send(kafka, f"{topic_prefix}.alerts", [b"\xff", b"{}", None, *values(0)])
    with reading(kafka, topic_prefix, from_beginning=True) as reader:
        assert numbers(read_next(reader, 1)) == [0]
        assert reader.unreadable == 2


def test_the_topic_may_be_created_later(kafka: str, topic_prefix: str) -> None:
    with reading(kafka, topic_prefix) as reader:
        assert reader.is_waiting
        assert reader.read(0.1) == []
        create(kafka, f"{topic_prefix}.alerts")
        send(kafka, f"{topic_prefix}.alerts", values(0))
        assert numbers(read_next(reader, 1)) == [0]


def test_it_stops_when_it_is_idle(kafka: str, topic_prefix: str) -> None:
    create(kafka, f"{topic_prefix}.alerts")
    with reading(kafka, topic_prefix) as reader:
        began = time.monotonic()
        assert list(read_alerts(reader, until_idle=0.5)) == []
        assert 0.5 <= time.monotonic() - began < PATIENCE


def test_it_is_not_idle_before_it_has_read_what_the_topic_holds(kafka: str, topic_prefix: str) -> None:
    create(kafka, f"{topic_prefix}.alerts")
    send(kafka, f"{topic_prefix}.alerts", values(0))
    with reading(kafka, topic_prefix, from_beginning=True) as reader:
        assert not reader.is_caught_up
        assert numbers(list(read_alerts(reader, until_idle=0.001))) == [0]
        assert reader.is_caught_up


@pytest.mark.system
@pytest.mark.nightly
def test_it_survives_restarts_of_the_broker_and_misses_nothing(tmp_path: Path) -> None:
    with quick_java(), Broker(data=tmp_path / "broker") as broker:
        kafka = broker.bootstrap_servers
        create(kafka, "t.alerts")
        send(kafka, "t.alerts", values(0))
        with reading(kafka, "t") as reader:
            broker.stop()
            assert reader.read(1) == []
            broker.start()
            assert broker.bootstrap_servers == kafka
            send(kafka, "t.alerts", values(1, 2))
            assert numbers(read_next(reader, 2)) == [1, 2]


def test_no_kafka_at_the_start_is_an_error_that_names_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CONNECT_SECONDS", 1)
    with pytest.raises(MqtwinError, match=r"no Kafka answers at 127\.0\.0\.1:9: .*refused"):
        AlertReader({"bootstrap.servers": "127.0.0.1:9"}, Topics("t"))
