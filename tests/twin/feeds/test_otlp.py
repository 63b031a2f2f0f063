"""OpenTelemetry spans to events: `twin.feeds.otlp`."""

from __future__ import annotations

import json

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from twin.estate import load_estate
from twin.feeds.coverage import SpanCoverage
from twin.feeds.intake import Intake
from twin.feeds.ordering import DEFAULT_LENGTH
from twin.feeds.otlp import OtlpFeed
from twin.feeds.protocol import FeedOptions, Page
from twin.feeds.spans import OTLP_JSON, OTLP_PROTO, UnreadableSpansError, read_spans

NOON = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z, microseconds
PUT, GET = 4, 5  # SPAN_KIND_PRODUCER, SPAN_KIND_CONSUMER
MSGID = "c3e2d840d8d4f0f140404040404040404040a1b2c3d4e5f6"


def span(number=1, *, kind=PUT, second=0.0, queue="ORDERS", lpar="MV4C", status=None, **attributes):
    texts = {"messaging.destination.name": queue, **({"mainframe.lpar.name": lpar} if lpar else {})}
    values = [{"key": name, "value": {"stringValue": text}} for name, text in texts.items()]
    for name, value in attributes.items():
        key = name.replace("__", ".")
        values.append(
            {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        )
    time = (NOON + round(second * 1e6)) * 1000
    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "kind": kind,
        "name": "send",
        "startTimeUnixNano": str(time - 5000),
        "endTimeUnixNano": str(time),
        "attributes": values,
        **({"status": {"code": status}} if status is not None else {}),
    }


def as_json(*spans):
    request = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}
    return json.dumps(request).encode()


def as_proto(*spans):
    request = ExportTraceServiceRequest()
    for entry in spans:
        new = request.resource_spans.add().scope_spans.add().spans.add()
        new.trace_id, new.span_id = bytes.fromhex(entry["traceId"]), bytes.fromhex(entry["spanId"])
        new.kind, new.name = entry["kind"], entry["name"]
        new.start_time_unix_nano, new.end_time_unix_nano = (
            int(entry["startTimeUnixNano"]),
            int(entry["endTimeUnixNano"]),
        )
        new.status.code = entry.get("status", {}).get("code", 0)
        for pair in entry["attributes"]:
            attribute = new.attributes.add(key=pair["key"])
            if "intValue" in pair["value"]:
                attribute.value.int_value = int(pair["value"]["intValue"])
            else:
                attribute.value.string_value = pair["value"]["stringValue"]
    return request.SerializeToString()


@pytest.fixture(scope="module")
def estate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("estate")
    (folder / "qsg1.mqsc").write_text("DEFINE QALIAS(ORDERS.IN) TARGET(ORDERS)\n")
    path = folder / "estate.toml"
    path.write_text("""schema = 1
[[import]]
mqsc = "qsg1.mqsc"
queue_manager = "QM02"
[coupling_facility.CF01]
size = "64G"
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[queue_manager.QM01]
[queue_manager.QM02]
[structure."QSG1/APP1"]
size = "1G"
cf_level = 5
[queue."QSG1/ORDERS"]
structure = "APP1"
[page_set."QM01/4"]
pages = 20000
[page_set."QM02/4"]
pages = 20000
[storage_class."QM01/D"]
page_set = 4
[storage_class."QM02/D"]
page_set = 4
[queue."QM01/LOCAL"]
storage_class = "D"
[queue."QM02/LOCAL"]
storage_class = "D"
[queue."QM02/ONLY"]
storage_class = "D"
""")
    return load_estate(path)


def read(estate, *values, **options):
    intake = Intake(estate)
    feed = OtlpFeed(intake, FeedOptions(**options))
    events = [event for value in values for event in feed.take(Page(value, "spans"))]
    return [*events, *feed.finish()], intake


@pytest.mark.parametrize("encode", [as_json, as_proto])
def test_a_producer_span_is_a_put_and_a_consumer_span_a_get(estate, encode):
    value = encode(
        span(1, messaging__message__id="ID:" + MSGID.upper(), messaging__message__body__size=2048),
        span(2, kind=GET, second=1, messaging__message__id=MSGID),
    )
    events, intake = read(estate, value)
    assert events == [
        {"time": NOON, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "msgid": MSGID, "length": 2048},
        {"time": NOON + 1_000_000, "qmgr": "QM01", "op": "GET", "queue": "ORDERS", "msgid": MSGID},
    ]
    assert not intake.counts


def test_both_encodings_give_the_same_calls():
    spans = [span(7), span(8, kind=GET, queue="LOCAL"), span(9, kind=1), span(10, status=2)]
    assert read_spans(as_json(*spans), OTLP_JSON) == read_spans(as_proto(*spans), OTLP_PROTO)
    assert read_spans(as_json(*spans)).others.total() == 2


def test_a_span_delivered_twice_counts_once(estate):
    events, intake = read(estate, as_proto(span(1), span(1)), as_json(span(1)))
    assert len(events) == 1
    assert intake.counts["duplicate"] == 2


def test_spans_out_of_order_within_the_bound_come_in_order(estate):
    events, intake = read(estate, as_json(span(1, second=20)), as_json(span(2, second=1)), late_s=30)
    assert [event["time"] - NOON for event in events] == [1_000_000, 20_000_000]
    assert "late" not in intake.counts


def test_a_span_later_than_the_bound_is_passed_on_with_a_complaint(estate):
    events, intake = read(estate, as_json(span(1)), as_json(span(2, second=60)), as_json(span(3, second=-1)), late_s=5)
    assert [event["time"] - NOON for event in events] == [0, -1_000_000, 60_000_000]
    assert intake.counts["late"] == 1


def test_a_span_days_ahead_makes_no_other_late(estate):
    spans = [span(1), span(2, second=200_000), span(3, second=1)]
    events, intake = read(estate, *map(as_json, spans))
    assert len(events) == 3
    assert intake.counts == {"ahead": 1, "no-size": 3}


def test_a_put_without_size_has_the_mean_length_of_its_queue(estate):
    value = as_json(
        span(1, messaging__message__body__size=100),
        span(2, messaging__message__body__size=300),
        span(3),
        span(4, queue="ONLY"),
    )
    events, intake = read(estate, value)
    assert [event["length"] for event in events] == [100, 300, 200, DEFAULT_LENGTH]
    assert intake.counts["no-size"] == 2
    events, _ = read(estate, value, length=77)
    assert [event["length"] for event in events] == [100, 300, 77, 77]


def test_the_queue_manager_comes_from_span_lpar_option_or_the_only_one_with_the_queue(estate):
    named = span(1, messaging__ibmmq__queue_manager="QM02")
    events, _ = read(estate, as_json(named))
    assert events[0]["qmgr"] == "QM02"
    assert read(estate, as_json(span(1, queue="LOCAL")), lpars={"MV4C": "QM02"})[0][0]["qmgr"] == "QM02"
    assert read(estate, as_json(span(1, queue="LOCAL")), qmgr="QM01")[0][0]["qmgr"] == "QM01"
    assert read(estate, as_json(span(1, queue="ONLY")))[0][0]["qmgr"] == "QM02"
    events, intake = read(estate, as_json(span(1, queue="LOCAL")))
    assert not events
    assert intake.counts == {"no-queue-manager": 1}


def test_an_alias_is_resolved_by_the_estate(estate):
    events, intake = read(estate, as_json(span(1, queue="ORDERS.IN", messaging__message__body__size=5)))
    assert [event["qmgr"] for event in intake.sift(events)] == ["QM02"]
    assert estate.routes[estate.route_of_queue("QM02", "ORDERS.IN")].queue == "ORDERS"


def test_spans_of_the_application_for_the_same_call_are_left_out(estate):
    own = span(1)
    application = span(2, lpar=None, messaging__system="ibmmq")
    events, intake = read(estate, as_json(own, application))
    assert len(events) == 1
    assert intake.counts["spans-of-application"] == 1
    assert len(read(estate, as_json(own, application), emitter="application")[0]) == 1


def test_spans_of_other_systems_are_no_calls():
    kafka = span(1, lpar=None, messaging__system="kafka")
    assert read_spans(as_json(kafka)) == ([], {"kafka": 1})


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"{}",
        b'{"resourceSpans": 5}',
        b'{"resourceSpans": [5]}',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": 5}]}]}]}',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "xy"}]}]}]}',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": "x"}]}]}]}',
        b'{"resourceSpans": [{"resource": ' + b"[" * 5000,
        b"\x0a\xff",
        b"\x08\x01",
        b"hello",
        "Grüße".encode("cp1047" if False else "latin-1"),
    ],
)
def test_a_value_that_is_no_request_is_one_complaint(estate, value):
    events, intake = read(estate, value, as_json(span(1, messaging__message__body__size=1)))
    assert len(events) == 1
    assert sum(intake.counts.values()) == (0 if value == b"" else 1)
    if value:
        with pytest.raises(UnreadableSpansError, match="expected: an ExportTraceServiceRequest"):
            read_spans(value)


def test_a_file_has_a_request_a_line_or_requests_after_their_lengths(estate):
    first, second = span(1, messaging__message__body__size=1), span(2, second=1, messaging__message__body__size=2)
    lines = as_json(first) + b"\n" + as_json(second) + b"\n"
    pieces = b"".join(len(value).to_bytes(4, "big") + value for value in (as_proto(first), as_proto(second)))
    pretty = json.dumps(json.loads(as_json(first, second)), indent=1).encode()
    assert [read(estate, value)[0] for value in (lines, pieces, pretty)] == [
        read(estate, as_json(first, second))[0]
    ] * 3


def test_statistics_fill_what_sampled_spans_do_not_show(estate):
    coverage = SpanCoverage(estate)
    spans = [{"time": NOON + i, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 9} for i in range(25)]
    counts = [
        {"time": NOON + i, "qmgr": "QM02", "op": "PUT", "queue": "ORDERS", "length": 10, "count": 10} for i in range(10)
    ]
    other = {"time": NOON, "qmgr": "QM01", "op": "MEASURE", "store": "QM01/PS04", "measured": {"pages_used": 3}}
    for event in spans:
        coverage.note_span(event)
    for event in [*counts, other]:
        coverage.note_count(event)
    left = [event for event in map(coverage.thin, [*counts, other]) if event is not None]
    assert left[-1] == other
    assert sum(event["count"] for event in left[:-1]) == 75
    assert {event["count"] for event in left[:-1]} == {7, 8}
    assert coverage.lines() == ["ORDERS on QSG1/APP1: 25 spans of PUT, 100 counted by statistics, coverage 25.0 %"]


def test_an_import_with_statistics_has_their_sums_and_says_the_coverage(estate, tmp_path):
    from twin.feeds.importing import import_files
    from twin.recordings.files import RecordingWriter, open_recording

    spans, counts, out = tmp_path / "spans.json", tmp_path / "counts.ndjson", tmp_path / "out.ndjson"
    spans.write_bytes(as_json(*(span(i, second=i, messaging__message__body__size=100) for i in range(1, 11))))
    with RecordingWriter(counts) as writer:
        writer.write([{"time": NOON, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 100, "count": 40}])
    intake = import_files("otlp", [spans], out, estate, counts=counts)
    events = [json.loads(line) for chunk in open_recording(out) for line in chunk.lines()]
    assert sum(event.get("count", 1) for event in events) == 40
    assert intake.notes == ["ORDERS on QSG1/APP1: 10 spans of PUT, 40 counted by statistics, coverage 25.0 %"]
