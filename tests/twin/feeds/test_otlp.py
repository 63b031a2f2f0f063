"""OpenTelemetry spans to events: `twin.feeds.otlp`."""

from __future__ import annotations

import base64
import json

import pyarrow as pa
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.cases import FEEDS, estate_of
from tests.twin.feeds.read import read as read_pages
from tests.twin.feeds.read import take
from twin.estate import load_estate
from twin.feeds.importing import import_files
from twin.feeds.intake import Intake
from twin.feeds.intervals import SpanCoverage
from twin.feeds.otlp import OtlpFeed
from twin.feeds.protocol import FeedOptions, Page
from twin.feeds.spans import OTLP_JSON, OTLP_PROTO, UnreadableSpansError, read_spans
from twin.recordings.files import RecordingWriter, open_recording

NOON = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z, microseconds
PUT, GET = 4, 5  # SPAN_KIND_PRODUCER, SPAN_KIND_CONSUMER
MSGID = "c3e2d840d8d4f0f140404040404040404040a1b2c3d4e5f6"


ZOS = "z/OS OTel"  # scope of the spans of queue managers


def span(
    number=1,
    *,
    kind=PUT,
    second=0.0,
    queue="ORDERS",
    lpar="MV4C",
    status=None,
    scope=ZOS,
    trace_state=None,
    **attributes,
):
    texts = {"messaging.destination.name": queue, **({"mainframe.lpar.name": lpar} if lpar else {})}
    if scope == ZOS:
        texts["messaging.system"] = "ibmmq"
    values = [{"key": name, "value": {"stringValue": text}} for name, text in texts.items()]
    for name, value in attributes.items():
        key = name.replace("__", ".")
        kind_of = "boolValue" if isinstance(value, bool) else "intValue" if isinstance(value, int) else "stringValue"
        values.append({"key": key, "value": {kind_of: str(value) if kind_of == "intValue" else value}})
    time = (NOON + round(second * 1e6)) * 1000
    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "kind": kind,
        "name": "send",
        "startTimeUnixNano": str(time - 5000),
        "endTimeUnixNano": str(time),
        "attributes": values,
        "scope": scope,
        **({"status": {"code": status}} if status is not None else {}),
        **({"traceState": trace_state} if trace_state is not None else {}),
    }


def as_json(*spans, **resource):
    """Return a request. resource: attributes of the resource, `.` as `__`."""
    pairs = [{"key": name.replace("__", "."), "value": {"stringValue": text}} for name, text in resource.items()]
    scopes = [
        {"scope": {"name": entry["scope"]}, "spans": [{key: entry[key] for key in entry if key != "scope"}]}
        for entry in spans
    ]
    return json.dumps({"resourceSpans": [{"resource": {"attributes": pairs}, "scopeSpans": scopes}]}).encode()


def as_proto(*spans):
    request = ExportTraceServiceRequest()
    for entry in spans:
        scope = request.resource_spans.add().scope_spans.add()
        scope.scope.name = entry["scope"]
        new = scope.spans.add()
        new.trace_id, new.span_id = bytes.fromhex(entry["traceId"]), bytes.fromhex(entry["spanId"])
        new.kind, new.name = entry["kind"], entry["name"]
        new.start_time_unix_nano, new.end_time_unix_nano = (
            int(entry["startTimeUnixNano"]),
            int(entry["endTimeUnixNano"]),
        )
        new.status.code = entry.get("status", {}).get("code", 0)
        new.trace_state = entry.get("traceState", "")
        for pair in entry["attributes"]:
            attribute = new.attributes.add(key=pair["key"])
            if "boolValue" in pair["value"]:
                attribute.value.bool_value = pair["value"]["boolValue"]
            elif "intValue" in pair["value"]:
                attribute.value.int_value = int(pair["value"]["intValue"])
            else:
                attribute.value.string_value = pair["value"]["stringValue"]
    return request.SerializeToString()


@pytest.fixture(scope="module")
def estate():
    return estate_of(FEEDS / "otlp")


def read(estate, *values, **options):
    intake = Intake(estate)
    feed = OtlpFeed(intake, FeedOptions(**options))
    return take(feed, *(Page(value, "spans") for value in values)), intake


def test_both_encodings_give_the_same_calls():
    spans = [span(7), span(8, kind=GET, queue="LOCAL"), span(9, kind=1), span(10, status=2)]
    assert read_spans(as_json(*spans), OTLP_JSON) == read_spans(as_proto(*spans), OTLP_PROTO)
    assert read_spans(as_json(*spans)).others.total() == 2


def test_spans_of_other_systems_are_no_calls():
    kafka = span(1, scope="io.opentelemetry.kafka", messaging__system="kafka")
    assert read_spans(as_json(kafka)) == ([], {"kafka": 1}, None)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
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
    spans, counts, out = tmp_path / "spans.json", tmp_path / "counts.ndjson", tmp_path / "out.ndjson"
    spans.write_bytes(as_json(*(span(i, second=i, messaging__message__body__size=100) for i in range(1, 11))))
    with RecordingWriter(counts) as writer:
        writer.write([{"time": NOON, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 100, "count": 40}])
    intake = import_files("otlp", [spans], out, estate, counts=counts)
    events = [json.loads(line) for chunk in open_recording(out) for line in chunk.lines()]
    assert sum(event.get("count", 1) for event in events) == 40
    assert intake.notes == ["ORDERS on QSG1/APP1: 10 spans of PUT, 40 counted by statistics, coverage 25.0 %"]


# --- queue managers on z/OS -------------------------------------------------------------------------------------------


def zos(*spans, qmgr="QM02"):
    """Return a request as the z/OS OpenTelemetry Emitter writes it: the queue manager is the service."""
    return as_json(*spans, os__type="z_os", service__name=qmgr, telemetry__sdk__language="java")


def test_a_remote_definition_of_the_estate_needs_no_transmission_queue_in_the_span(tmp_path):
    (tmp_path / "qm01.mqsc").write_text(
        "DEFINE QLOCAL(X) USAGE(XMITQ) STGCLASS(D)\nDEFINE QREMOTE(FAR) RNAME(ORDERS) RQMNAME(QM09) XMITQ(X)\n"
        "DEFINE QLOCAL(HERE) STGCLASS(D)\nDEFINE QALIAS(NEAR) TARGET(HERE)\n"
    )
    (tmp_path / "estate.toml").write_text(
        'schema = 1\n[[import]]\nmqsc = "qm01.mqsc"\nqueue_manager = "QM01"\n[queue_manager.QM01]\n'
        '[page_set."QM01/4"]\npages = 200\n[storage_class."QM01/D"]\npage_set = 4\n'
    )
    estate = load_estate(tmp_path / "estate.toml")
    far = {
        "messaging__ibmmq__destination__resolved_name": "ORDERS",
        "messaging__ibmmq__destination__resolved_qmgr_name": "QM09",
    }
    near = {
        "messaging__ibmmq__destination__resolved_name": "HERE",
        "messaging__ibmmq__destination__resolved_qmgr_name": "QM01",
    }
    spans = [span(1, queue="FAR", messaging__message__body__size=7, **far)]
    spans += [span(2, second=1, queue=name, messaging__message__body__size=7, **near) for name in ("NEAR",)]
    spans += [span(3, second=2, queue="NEW.ALIAS", messaging__message__body__size=7, **near)]
    events, _ = read(estate, zos(*spans, qmgr="QM01"))
    assert [(event["queue"], event["length"]) for event in events] == [("FAR", 7 + 428), ("NEAR", 7), ("HERE", 7)]


# --- other signals, compressed files ---------------------------------------------------------------------------------


def test_spans_that_are_damaged_are_no_logs():
    value = as_proto(span(1)).replace((1).to_bytes(16, "big"), b"\0" * 16).replace(b"\x0a\x10", b"\x0a\x00", 1)
    with pytest.raises(UnreadableSpansError):
        read_spans(value)


@pytest.mark.parametrize("encode", [as_json, as_proto])
def test_a_file_of_the_collector_may_be_compressed_request_by_request(estate, encode):
    requests = [encode(span(i, second=i, messaging__message__body__size=i)) for i in range(1, 4)]
    codec = pa.Codec("zstd")
    pieces = [codec.compress(value, asbytes=True) for value in requests]
    data = b"".join(len(piece).to_bytes(4, "big") + piece for piece in pieces)
    assert read(estate, data)[0] == read(estate, *requests)[0]
    events, intake = read(estate, b"\0\0\0\x09" + pieces[0][:9])
    assert (events, intake.counts["unreadable"]) == ([], 1)


# --- encodings --------------------------------------------------------------------------------------------------------

SPANS = [
    span(
        number,
        kind=PUT + number % 2,
        second=number,
        messaging__message__body__size=number,
        messaging__message__id=MSGID,
    )
    for number in range(1, 6)
]


def renamed(value, names):
    """Return JSON with other names of fields."""
    if isinstance(value, dict):
        return {names.get(name, name): renamed(own, names) for name, own in value.items()}
    return [renamed(own, names) for own in value] if isinstance(value, list) else value


def with_spans(change):
    """Return the request with a change of each span."""
    content = json.loads(as_json(*SPANS))
    for scope in content["resourceSpans"][0]["scopeSpans"]:
        scope["spans"] = [change(dict(entry)) for entry in scope["spans"]]
    return content


def based(entry, pad="="):
    ids = {name: base64.b64encode(bytes.fromhex(entry[name])).decode().rstrip("=") for name in ("traceId", "spanId")}
    return entry | {name: own + (pad * (-len(own) % 4)) for name, own in ids.items()}


KINDS = {PUT: "SPAN_KIND_PRODUCER", GET: "SPAN_KIND_CONSUMER"}
SNAKE = {
    "resourceSpans": "resource_spans",
    "scopeSpans": "scope_spans",
    "traceId": "trace_id",
    "spanId": "span_id",
    "startTimeUnixNano": "start_time_unix_nano",
    "endTimeUnixNano": "end_time_unix_nano",
    "stringValue": "string_value",
    "intValue": "int_value",
}
FORMS = {
    "Base64": with_spans(based),
    "Base64 without padding": with_spans(lambda entry: based(entry, "")),
    "kinds by name": with_spans(lambda entry: entry | {"kind": KINDS[entry["kind"]]}),
    "kinds by word": with_spans(lambda entry: entry | {"kind": KINDS[entry["kind"]].rpartition("_")[2].lower()}),
    "kinds as text": with_spans(lambda entry: entry | {"kind": str(entry["kind"])}),
    "snake case": renamed(with_spans(dict), SNAKE),
    "batches": renamed(with_spans(based), {"resourceSpans": "batches"}),
    "trace": {"trace": renamed(with_spans(based), {"resourceSpans": "batches"})},
    "list": [with_spans(dict)],
    "libraries": renamed(
        with_spans(dict), {"scopeSpans": "instrumentationLibrarySpans", "scope": "instrumentationLibrary"}
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("indent", [None, 1])
def test_every_encoding_of_a_request_gives_the_same_calls(form, indent):
    data = json.dumps(FORMS[form], indent=indent).encode()
    feed = OtlpFeed(Intake(), FeedOptions(qmgr="QM01"))
    assert take(feed, Page(data, "spans")) == take(
        OtlpFeed(Intake(), FeedOptions(qmgr="QM01")), Page(as_json(*SPANS), "x")
    )
    assert not feed.intake.counts


@pytest.mark.parametrize("text", ["qqqq", "00" * 15, "zz" * 16, "=="])
def test_an_id_of_another_length_is_a_complaint(text):
    with pytest.raises(UnreadableSpansError, match="no OTLP JSON"):
        read_spans(json.dumps(with_spans(lambda entry: entry | {"traceId": text})).encode())


def test_spans_of_one_kind_only_are_a_complaint_about_the_whole_input(site):
    own = [entry for entry in SPANS if entry["kind"] == PUT]
    _, intake = read_pages("otlp", as_json(*own, service__name="QM01"), estate=site)
    assert "2 puts, and no get at all" in next(own.text for own in intake.complaints if own.code == "one-sided")


def test_a_call_without_a_destination_is_no_other_span(site):
    data = as_json(*SPANS).replace(b"messaging.destination.name", b"messaging.destination")
    _, intake = read_pages("otlp", data, estate=site)
    assert intake.counts["bad-value"] == len(SPANS)


# --- sampling --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoded", [as_json, as_proto])
@pytest.mark.parametrize(
    ("trace_state", "sampled", "count"),
    [
        (None, None, None),
        ("", None, None),
        ("ot=th:0", None, None),
        ("ot=th:8", None, 2),
        ("ot=th:c", None, 4),
        ("ot=rv:abcdefabcdefab;th:c", None, 4),
        ("vendor=1, ot=th:f0;rv:6e6d1a75832a2f,other=th:8", None, 16),
        ("ot=th:ffffffffffffff", None, None),  # nothing is sampled: there is no such span
        ("ot=th:fffffffffffff", None, 1_000_000),  # of 16 times as many, what an event may count
        ("xot=th:8", None, None),
        ("ot=th:8x", None, None),
        ("ot=th:8", 1.0, None),
        (None, 0.05, 20),
        ("ot=th:8", 0.05, 20),
    ],
)
def test_a_sampled_span_counts_for_the_calls_that_it_stands_for(estate, encoded, trace_state, sampled, count):
    spans = [span(1, trace_state=trace_state), span(2, kind=GET, second=1.0, trace_state=trace_state)]
    events, _ = read(estate, encoded(*spans), sampled=sampled)
    assert [(event["op"], event.get("count")) for event in events] == [("PUT", count), ("GET", count)]


def test_the_messages_of_a_sample_have_no_ids_and_keep_the_rest(estate):
    own = span(1, messaging__message__id=MSGID, messaging__ibmmq__message__priority=7)
    ((all_,), _), ((sampled,), _) = read(estate, as_json(own)), read(estate, as_json(own), sampled=0.05)
    assert all_["msgid"] == MSGID and "msgid" not in sampled
    assert {name: value for name, value in all_.items() if name != "msgid"} | {"count": 20} == sampled


def test_counts_that_are_not_whole_are_right_on_average_and_alike_in_a_trace(estate):
    traces = range(1, 3_001)
    spans = [own for number in traces for own in (span(number), span(number, kind=GET, second=1.0))]
    for number, own in enumerate(spans):
        own["spanId"] = f"{number + 1:016x}"
    events, _ = read(estate, as_json(*spans), sampled=0.3)
    puts, gets = ([event["count"] for event in events if event["op"] == op] for op in ("PUT", "GET"))
    assert set(puts) == {3, 4} and sum(puts) == sum(gets)
    assert sum(puts) / len(traces) == pytest.approx(1 / 0.3, rel=0.01)
