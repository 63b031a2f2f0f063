"""One message id in each form that a source gives it: `twin.feeds.measurements`."""

from __future__ import annotations

import base64
import json

import pytest

from tests.twin.feeds.read import read
from tests.twin.feeds.samples import activity, json_text, put
from tests.twin.feeds.test_otlp import as_json, span
from twin.feeds import Page
from twin.feeds.measurements import message_id


def as_text(raw: bytes) -> str:
    """Return the value of a header as the collector passes it on."""
    return raw.decode("utf-8", "surrogateescape")


RAW = b"AMQ QM01        \xe2\xfb\x1b\x95\x97\xb6\x33\xc0"
HEX = RAW.hex()
BASE64 = base64.b64encode(RAW).decode()
FORMS = [
    RAW,
    as_text(RAW),
    HEX,
    HEX.upper(),
    f"ID:{HEX.upper()}",
    f'"ID:{HEX}"',
    BASE64,
    f'"{BASE64}"',
]
NOON = 1_795_176_000_000_000


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_one_id(form):
    assert message_id(form) == HEX


@pytest.mark.parametrize("raw", [b"ABCDEFGHIJKLMNOPQRSTUVWX", b"\xff" * 24, "ä".encode() * 12, b"\x00" * 23 + b"\n"])
def test_24_bytes_are_an_id_whatever_they_are(raw):
    assert message_id(raw) == message_id(as_text(raw)) == raw.hex()


@pytest.mark.parametrize(
    "text", ["", "[B@1f2e3d4c", "0" * 48, bytes(24), "ID:" + "0" * 48, "x" * 48, "!" * 32, HEX[:-1], BASE64[:-1] + "="]
)
def test_anything_else_is_none(text):
    assert message_id(text) is None


@pytest.mark.parametrize("name", ["jms_ibm_mqmd_msgid", "jmsmessageid"])
def test_a_record_of_kafka_connect_that_is_delivered_again_counts_once_whatever_its_form(estate, name):
    schema = json.dumps({"schema": {"type": "bytes"}, "payload": BASE64})
    texts = [*(form for form in FORMS if isinstance(form, str)), schema]
    pages = [Page(b"body", f"t/0@{i}", NOON + i, {name: text}) for i, text in enumerate(texts)]
    pages.append(Page(b"body", "t/0@99", NOON, {"kafka.key": f'"ID:{HEX}"'}))
    events, intake = read("connect", *pages, estate=estate, qmgr="QM01", queue="LOCAL")
    assert [event["msgid"] for event in events] == [HEX]
    assert dict(intake.counts) == {"duplicate": len(texts)}


def test_the_name_of_a_java_array_is_a_complaint_once(estate):
    pages = [Page(b"body", f"t/0@{i}", NOON, {"jms_ibm_mqmd_msgid": f"[B@1f2e3d4{i}"}) for i in range(3)]
    events, intake = read("connect", *pages, estate=estate, qmgr="QM01", queue="LOCAL")
    assert len(events) == 3
    assert dict(intake.counts) == {"no-msgid": 1}
    assert "'[B@1f2e3d40'" in intake.complaints[0].text
    assert "32 characters of Base64" in intake.complaints[0].text


@pytest.mark.parametrize("form", [form for form in FORMS if isinstance(form, str) and form.isascii()])
def test_spans_and_activity_traces_have_the_same_ids(estate, form):
    events, _ = read("otlp", as_json(span(messaging__message__id=form)), estate=estate, length=1, qmgr="QM01")
    assert [event["msgid"] for event in events] == [HEX]
    events, _ = read("amqsevt", json_text(activity(put(1, msgId=form, objectName="INVOICES"))), estate=estate)
    assert [event["msgid"] for event in events] == [HEX]
