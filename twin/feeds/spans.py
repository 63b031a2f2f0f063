"""OpenTelemetry spans as calls: what a record of a collector's Kafka exporter, or a line of its file, says of MQ.

The exporter writes protobuf by default (`otlp_proto`), JSON on request (`otlp_json`); both are an
ExportTraceServiceRequest [OpenTelemetry: Collector, Kafka exporter]. In JSON the ids are hexadecimal, unlike the Base64
that protobuf's own JSON has [OpenTelemetry: OTLP specification, JSON Protobuf Encoding]: their lengths differ. Tempo
hands out a trace in the latter, its resource spans under `batches` [Grafana: Tempo data source, Trace JSON example]; so
these are known by what they hold. A queue manager on z/OS emits
a span for each put and each destructive get of a traced message, once its unit of work has ended [IBM: MQ 9.4.3, Span
emission; IBM: MQ 10.0, Span attributes]. Its spans are those of the scope "z/OS OTel" with messaging.system ibmmq;
`service.name` of the resource is the queue manager that made the call [seen: spans of MQ 9.4.4 on z/OS 3.2]. LPAR and
`os.type` do not show the emitter: applications on z/OS have them too. The envelope size counts the MQMD, which an
event's length does not [seen, likewise]. A put to a remote queue stores the message on a transmission queue, behind a
header MQXQH [IBM: MQ, MQXQH].
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from kernels.json_scan import LENGTH_MAX
from twin.base.decoding import UNREADABLE
from twin.events.fields import Op
from twin.feeds.measurements import ID_DIGITS, is_no_message_id, message_id

OTLP_PROTO, OTLP_JSON = "otlp_proto", "otlp_json"

_MAX_DEPTH = 40  # of JSON: a span has 8
_IDS = {"traceId": 16, "trace_id": 16, "spanId": 8, "span_id": 8}  # bytes
_SYSTEMS = {"ibmmq", "ibm_mq", "wmq", "jms"}
_ZOS_SCOPE = "z/os otel"
_OF_MQ = "messaging.ibmmq."
_LPAR = "mainframe.lpar.name"
_SERVICE = "service.name"
_DESTINATION, _DESTINATION_TYPE = "messaging.destination.name", "messaging.destination.type"
_QMGR = ("messaging.ibmmq.queue_manager", "messaging.ibmmq.queue_manager.name", "messaging.ibmmq.qmgr")
_TRANSMISSION_QUEUE = "messaging.ibmmq.destination.transmission_queue"
_RESOLVED = "messaging.ibmmq.destination.resolved_name"
_RESOLVED_QMGR = "messaging.ibmmq.destination.resolved_qmgr_name"
_ENVELOPE, _BODY = "messaging.message.envelope.size", "messaging.message.body.size"  # with MQMD and properties, without
_MSGID = "messaging.message.id"
_MQMD_BYTES = 364  # MQMD version 2 [IBM: MQ, MQMD]
_MAX_EXPIRY = 999_999_999  # tenths of a second [IBM: MQ, MQMD Expiry]; MQEI_UNLIMITED is -1
_MAX_PRIORITY = 9
_MAX_DIGITS = 19
_PERSISTENCE = ("messaging.ibmmq.message.persistent", "messaging.ibmmq.message.persistence")
_PERSISTENT = {"1", "true", "mqper_persistent"}
_QMGR_NAME = re.compile(r"[A-Za-z0-9./_%@#$]{1,48}")
_OPERATION = ("messaging.operation.type", "messaging.operation")
_NO_CALL = {"create", "settle", "process"}  # no put and no get of its own
_COMPLETION = "messaging.ibmmq.application.completion_code"
_FAILED = {"MQCC_FAILED", 2}
_REASON = "messaging.ibmmq.application.reason_code"
_STAYS = {"MQRC_TRUNCATED_MSG_FAILED", 2080}  # a get of a message that stays on its queue [IBM: MQ, MQRC 2080]
_OPS: Mapping[int, Op] = {Span.SPAN_KIND_PRODUCER: "PUT", Span.SPAN_KIND_CONSUMER: "GET"}
_SCOPE_SPANS = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans")
_SCOPES = ("scope", "instrumentationLibrary", "instrumentation_library")
_MAX_AROUND = 4  # objects and lists around resource spans
_SIGNALS = {  # [OpenTelemetry: OTLP specification]
    "resourceMetrics": "metrics",
    "resource_metrics": "metrics",
    "resourceLogs": "logs",
    "resource_logs": "logs",
    "resourceProfiles": "profiles",
    "resource_profiles": "profiles",
}
_EMPTY = "nothing"  # a request without a field, {} in JSON
TRACE_BYTES = 16
_DIGITS = 14  # of a threshold, hexadecimal, trailing zeros left out
_THRESHOLD = re.compile(rf"(?:^|,)\s*ot=(?:[^,]*;)?th:((?!f{{{_DIGITS}}})[0-9a-f]{{1,{_DIGITS}}})(?:[;,\s]|$)")
_RANDOM = 1 << 4 * _DIGITS
_RESOURCE_SPANS = ("resourceSpans", "resource_spans", "batches")
_LEFT_OUT = ("links", "events", "parentSpanId", "parent_span_id")  # of a span, with ids of others
NO_DESTINATION, NO_TIME = "no destination", "no time"
LACKING = frozenset((NO_DESTINATION, NO_TIME))  # in `Spans.others`: of a call that lacks it
_MAX_SYSTEM = 40  # characters of the name of another system


class Emitter(StrEnum):
    """Who wrote a span: the queue manager, or the instrumentation of an application for the same call."""

    QUEUE_MANAGER = "queue-manager"
    APPLICATION = "application"


class Call(NamedTuple):
    """A put or get. Fields that the span lacks are None."""

    time: int  # microseconds since 1970, when the call returned
    key: bytes  # trace id and span id, 24 bytes
    op: Op  # PUT or GET
    queue: str  # destination, before an alias or a remote definition is resolved
    emitter: Emitter  # who wrote the span
    qmgr: str | None = None  # queue manager that made the call
    lpar: str | None = None
    service: str | None = None  # name of the service; of an application's span that of the application
    msgid: str | None = None
    length: int | None = None  # bytes without the MQMD
    transmission_queue: str | None = None  # queue that stores a message to another queue manager
    resolved: str | None = None  # name behind an alias or a remote definition
    resolved_qmgr: str | None = None  # queue manager of `resolved`
    is_temporary: bool = False  # a temporary dynamic queue
    priority: int | None = None
    persistent: bool | None = None
    expiry_s: float | None = None  # seconds until the message expires; None also: unlimited
    stands_for: float = 1.0  # calls, of which spans were sampled by its trace state


class UnreadableSpansError(ValueError):
    """A value that is not an ExportTraceServiceRequest; the message says why."""


class Spans(NamedTuple):
    """Content of a request."""

    calls: list[Call]  # in its order
    others: Counter[str]  # number of spans that are no call on MQ, by what they are of
    signal: str | None = None  # what a request without spans is of, such as "metrics"; None: it has spans


class _OtherSignal(Exception):  # noqa: N818 -- not an error
    """A request of another signal than traces; its text names the signal."""


def encoding_of(value: bytes) -> str:
    """Return the encoding of a value: JSON begins with a bracket, a protobuf message with the tag of field 1, 0x0A."""
    return OTLP_JSON if value.lstrip()[:1] in (b"{", b"[") else OTLP_PROTO


def read_spans(value: bytes, encoding: str | None = None) -> Spans:
    """Return the calls of a value, none of metrics or logs; without an encoding its first byte decides."""
    try:
        request = _parse_json(value) if (encoding or encoding_of(value)) == OTLP_JSON else _parse_proto(value)
    except _OtherSignal as signal:
        return Spans([], Counter(), str(signal))
    calls: list[Call] = []
    others: Counter[str] = Counter()
    for resource in request.resource_spans:
        common = _attributes(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                call = _call(span, scope.scope.name, common)
                if isinstance(call, Call):
                    calls.append(call)
                else:
                    others[call] += 1
    return Spans(calls, others)


def _parse_proto(value: bytes) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(value)
    except DecodeError as error:
        _check_signal(value)
        raise UnreadableSpansError(f"no OTLP protobuf: {error}; expected: an ExportTraceServiceRequest") from None
    if not value:
        raise _OtherSignal(_EMPTY)
    if not request.resource_spans:
        raise UnreadableSpansError("OTLP protobuf without resource spans; expected: an ExportTraceServiceRequest")
    if not all(len(span.trace_id) == TRACE_BYTES for span in _proto_spans(request)):
        _check_signal(value)
        raise UnreadableSpansError("OTLP protobuf without trace ids; expected: an ExportTraceServiceRequest")
    return request


def _proto_spans(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            yield from scope.spans


def _check_signal(value: bytes) -> None:
    """Raise _OtherSignal for a protobuf request of metrics or logs. The three kinds differ in what is innermost."""
    metrics, logs = ExportMetricsServiceRequest(), ExportLogsServiceRequest()
    with suppress(DecodeError):
        metrics.ParseFromString(value)
        scopes = [scope for resource in metrics.resource_metrics for scope in resource.scope_metrics]
        if any(metric.name and metric.WhichOneof("data") for scope in scopes for metric in scope.metrics):
            raise _OtherSignal("metrics")
    with suppress(DecodeError):
        logs.ParseFromString(value)
        records = [scope.log_records for resource in logs.resource_logs for scope in resource.scope_logs]
        if any(record.time_unix_nano or record.observed_time_unix_nano for scope in records for record in scope):
            raise _OtherSignal("logs")


def _parse_json(value: bytes) -> ExportTraceServiceRequest:
    try:
        content = msgspec.json.decode(value)
        resources = [_plain_resource(resource) for resource in _resource_spans(content)]
        if not resources:
            _check_json_signal(content)
        request = ExportTraceServiceRequest()
        json_format.ParseDict(
            {"resourceSpans": resources}, request, ignore_unknown_fields=True, max_recursion_depth=_MAX_DEPTH
        )
    except (UnreadableSpansError, _OtherSignal):
        raise
    except (*UNREADABLE, json_format.ParseError, ValueError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UnreadableSpansError(f"no OTLP JSON: {reason}; expected: an ExportTraceServiceRequest") from None
    return request


def _resource_spans(content: Any, depth: int = _MAX_AROUND) -> Iterator[dict[str, Any]]:
    """Yield the objects with spans of a scope, wherever they stand."""
    if isinstance(content, dict) and any(name in content for name in _SCOPE_SPANS):
        yield content
    elif depth:
        for own in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
            yield from _resource_spans(own, depth - 1)


def _check_json_signal(content: Any) -> None:
    """Raise _OtherSignal for a request of another signal, or an empty one; UnreadableSpansError for anything else."""
    if isinstance(content, dict):
        signal = next((signal for name, signal in _SIGNALS.items() if name in content), None)
        if signal is not None or not content:
            raise _OtherSignal(signal or _EMPTY)
        if any(own == [] for name, own in content.items() if name in _RESOURCE_SPANS):
            return
    raise UnreadableSpansError('OTLP JSON without "resourceSpans"; expected: an ExportTraceServiceRequest')


def _plain_resource(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spans of a resource with the names of OTLP, ids in Base64 and enumerations by their names."""
    scopes = _objects("scopeSpans", next(resource[name] for name in _SCOPE_SPANS if name in resource))
    return {"resource": resource.get("resource") or {}, "scopeSpans": [_plain_scope(scope) for scope in scopes]}


def _plain_scope(scope: Mapping[str, Any]) -> dict[str, Any]:
    spans = _objects("spans", scope.get("spans", []))
    emitter: Any = next((scope[own] for own in _SCOPES if scope.get(own)), {})
    return {"scope": emitter, "spans": [_plain_span(span) for span in spans]}


def _objects(name: str, value: Any) -> list[dict[str, Any]]:
    """Return a list of objects. UnreadableSpansError: it is none."""
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise UnreadableSpansError(f"OTLP JSON: {name} is no list of objects; expected: an ExportTraceServiceRequest")
    return value


def _plain_span(span: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: own for name, own in span.items() if name not in _LEFT_OUT}
    for name, size in _IDS.items():
        if plain.get(name):
            plain[name] = _base64_id(str(plain[name]), size)
    if isinstance(plain.get("kind"), str):
        plain["kind"] = _enumerated(plain["kind"], "SPAN_KIND_")
    status = plain.get("status")
    if isinstance(status, dict) and isinstance(status.get("code"), str):
        plain["status"] = {**status, "code": _enumerated(status["code"], "STATUS_CODE_")}
    return plain


def _base64_id(text: str, size: int) -> str:
    """Return an id of some bytes in Base64: it has twice as many hexadecimal digits, or a third more in Base64."""
    digits = text.rstrip("=")
    if len(digits) == 2 * size:
        own = bytes.fromhex(digits)
    else:
        own = base64.urlsafe_b64decode(digits.replace("+", "-").replace("/", "_") + "=" * (-len(digits) % 4))
    if len(own) != size:
        raise ValueError(f"an id of {len(own)} bytes")
    return base64.b64encode(own).decode()


def _enumerated(text: str, prefix: str) -> str | int:
    """Return an enumeration as protobuf's JSON has it: SPAN_KIND_PRODUCER of "producer", 4 of "4"."""
    return int(text) if text.isdigit() else prefix + text.upper().removeprefix(prefix)


def _attributes(pairs: Any) -> dict[str, Any]:
    """Return the scalar attributes by name; the last one of a name counts."""
    return {pair.key: value for pair in pairs if (value := _scalar(pair)) is not None}


def _scalar(pair: KeyValue) -> str | int | float | bool | None:
    kind = pair.value.WhichOneof("value")
    if kind in ("string_value", "int_value", "double_value", "bool_value"):
        value: str | int | float | bool = getattr(pair.value, kind)
        return value
    return None


def _call(span: Span, scope: str, common: Mapping[str, Any]) -> Call | str:
    """Return the call of a span, or what it is of: another system, a call that failed, one that only browsed."""
    attributes = {**common, **_attributes(span.attributes)}
    is_zos = scope.strip().lower() == _ZOS_SCOPE
    other = _other_system(attributes, is_zos)
    if other is not None:
        return other
    no_call = _no_call(span, attributes, is_zos=is_zos)
    if no_call is not None:
        return no_call
    queue = _text(attributes, _DESTINATION)
    time = span.end_time_unix_nano // 1000
    if queue is None or not time:
        return NO_DESTINATION if queue is None else NO_TIME
    service = _text(attributes, _SERVICE)
    qmgr = next((name for key in _QMGR if (name := _text(attributes, key)) is not None), None)
    expiry = _number(attributes, "messaging.ibmmq.message.expiry", 1, _MAX_EXPIRY)
    return Call(
        time=time,
        key=span.trace_id + span.span_id,
        op=_OPS[span.kind],
        queue=queue,
        emitter=Emitter.QUEUE_MANAGER if is_zos else Emitter.APPLICATION,
        qmgr=qmgr or (service if is_zos and service is not None and _QMGR_NAME.fullmatch(service) else None),
        lpar=_text(attributes, _LPAR),
        service=service,
        msgid=_message_id(_text(attributes, _MSGID)),
        length=_length(attributes),
        transmission_queue=_text(attributes, _TRANSMISSION_QUEUE),
        resolved=_text(attributes, _RESOLVED),
        resolved_qmgr=_text(attributes, _RESOLVED_QMGR),
        is_temporary=attributes.get("messaging.destination.temporary") is True,
        priority=_number(attributes, "messaging.ibmmq.message.priority", 0, _MAX_PRIORITY),
        persistent=_is_persistent(attributes),
        expiry_s=None if expiry is None else expiry / 10,
        stands_for=_stands_for(span.trace_state),
    )


def _stands_for(trace_state: str) -> float:
    """Return for how many calls a span stands, by the threshold of its sampling; 1 where it has none.

    Of all values of 56 random bits those below the threshold were not sampled [OpenTelemetry: TraceState, Probability
    Sampling].
    """
    threshold = _THRESHOLD.search(trace_state)
    return 1.0 if threshold is None else _RANDOM / (_RANDOM - int(threshold[1].ljust(_DIGITS, "0"), 16))


def _no_call(span: Span, attributes: Mapping[str, Any], *, is_zos: bool) -> str | None:
    """Return why a span of MQ is neither a put nor a destructive get of a queue; None if it is one."""
    if span.kind not in _OPS:
        return "neither producer nor consumer"
    if span.status.code == Status.STATUS_CODE_ERROR or attributes.get(_COMPLETION) in _FAILED:
        return "a call that failed"
    operation = next((attributes[name] for name in _OPERATION if name in attributes), None)
    is_none = operation in _NO_CALL and not is_zos  # a queue manager has no other spans, however it names the call
    if is_none or attributes.get("messaging.ibmmq.browse") is True or attributes.get(_REASON) in _STAYS:
        return "no put and no destructive get"
    return "a publication" if _text(attributes, _DESTINATION_TYPE) == "topic" else None


def _other_system(attributes: Mapping[str, Any], is_zos: bool) -> str | None:
    """Return the messaging system of a span that is not of MQ; None of one that is."""
    system = _text(attributes, "messaging.system")
    if system is None:
        is_mq = is_zos and any(name.startswith(_OF_MQ) for name in attributes)
        return None if is_mq else "no messaging system"
    return None if system.lower() in _SYSTEMS else system[:_MAX_SYSTEM]


def _text(attributes: Mapping[str, Any], name: str) -> str | None:
    value = attributes.get(name)
    return value.strip() or None if isinstance(value, str) else None


def _number(attributes: Mapping[str, Any], name: str, low: int, high: int) -> int | None:
    """Return an integer, or the text of one; None if there is none from `low` to `high`."""
    value = attributes.get(name)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _MAX_DIGITS:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high else None


def _length(attributes: Mapping[str, Any]) -> int | None:
    """Return the bytes of a message without its MQMD; an envelope that is smaller than body and MQMD has none."""
    body = _number(attributes, _BODY, 0, LENGTH_MAX)
    envelope = _number(attributes, _ENVELOPE, 0, LENGTH_MAX + _MQMD_BYTES)
    if envelope is None:
        return body
    length = envelope - _MQMD_BYTES if envelope >= (body or 0) + _MQMD_BYTES else envelope
    return min(length, LENGTH_MAX)


def _is_persistent(attributes: Mapping[str, Any]) -> bool | None:
    value = next((attributes[name] for name in _PERSISTENCE if name in attributes), None)
    return None if value is None else str(value).lower() in _PERSISTENT


def _message_id(text: str | None) -> str | None:
    """Return a message id as events have it, or another short text as it is."""
    if text is None:
        return None
    digits = message_id(text)
    if digits is not None or is_no_message_id(text):
        return digits
    return text if len(text.encode()) <= ID_DIGITS else None
