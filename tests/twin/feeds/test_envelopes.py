"""Envelopes of connectors: their body is unwrapped, or they are a complaint, never a body themselves."""

from __future__ import annotations

import base64
import json

import pytest

from tests.twin.feeds.read import read
from twin.feeds import Page
from twin.feeds.connect import APPEND_TIME

NOON = 1_795_176_000_000_000
RAW = b"AMQ QM01        \xe2\xfb\x1b\x95\x97\xb6\x33\xc0"
BODY = "Bestellung für 3 Stück"
JMS = {
    "messageID": f"ID:{RAW.hex()}",
    "messageType": "text",
    "timestamp": NOON // 1000 - 5000,
    "deliveryMode": 2,
    "correlationID": None,
    "destination": {"destinationType": "queue", "name": "COPY"},
    "redelivered": False,
    "priority": 4,
    "properties": {},
    "bytes": None,
    "map": None,
    "text": BODY,
}


def put_of(value, estate, **headers):
    data = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    events, intake = read("connect", Page(data, "t/0@0", NOON, headers), estate=estate, qmgr="QM01", queue="ORDERS")
    return (events[0] if events else None), intake


def based(text):
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "value",
    [
        BODY.encode(),
        {"schema": {"type": "string", "optional": False}, "payload": BODY},
        {"schema": {"type": "bytes"}, "payload": based(BODY)},
        JMS,
        {"schema": {"type": "struct", "name": "io.confluent.connect.jms.Value"}, "payload": JMS},
        JMS | {"messageType": "bytes", "bytes": based(BODY), "text": None},
        JMS | {"messageID": None},
    ],
    ids=["body", "text", "bytes", "fields of JMS", "with schema", "bytes of JMS", "without id"],
)
def test_the_length_is_that_of_the_body_in_each_envelope(estate, value):
    event, intake = put_of(value, estate)
    assert event["length"] == len(BODY.encode())
    assert not intake.counts


def test_a_value_of_a_schema_registry_is_said_once(estate):
    pages = [Page(b"\0\0\0\0\x07body", f"t/0@{i}", NOON) for i in range(3)]
    _, intake = read("connect", *pages, estate=estate, qmgr="QM01", queue="ORDERS")
    assert "schema 7" in next(own.text for own in intake.complaints if own.code == "no-size")


def test_the_time_of_the_put_is_that_of_the_message_else_that_of_the_broker_is_said(estate):
    event, intake = put_of(b"body", estate, jmstimestamp=str(NOON // 1000 - 60_000), **{APPEND_TIME: "1"})
    assert (event["time"], dict(intake.counts)) == (NOON - 60_000_000, {})
    event, intake = put_of(b"body", estate, **{APPEND_TIME: "1"})
    assert (event["time"], dict(intake.counts)) == (NOON, {"append-time": 1})
