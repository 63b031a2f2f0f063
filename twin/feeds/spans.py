"""OpenTelemetry spans as calls: what a record of a collector's Kafka exporter, or a line of its file, says of MQ.

The exporter writes protobuf by default (`otlp_proto`), JSON on request (`otlp_json`); both are an
ExportTraceServiceRequest [OpenTelemetry: Collector, Kafka exporter]. In JSON the ids are hexadecimal, unlike the bytes
that protobuf's own JSON has [OpenTelemetry: OTLP specification, JSON Protobuf Encoding].

A queue manager emits a span for each put and each destructive get of a traced message, once its unit of work has ended
[IBM: MQ 9.4.3, Span emission]. Its attributes: [IBM: MQ 10.0, Span attributes]. Size, message id and queue manager are
optional here: no sample of them was seen.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from twin.events.fields import Op

OTLP_PROTO, OTLP_JSON = "otlp_proto", "otlp_json"

_MAX_DEPTH = 40  # of JSON: a span has 8
_IDS = ("traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id")
_SYSTEMS = {"ibmmq", "ibm_mq", "wmq", "jms"}
_LPAR = "mainframe.lpar.name"
_DESTINATION = "messaging.destination.name"
_QMGR = ("messaging.ibmmq.queue_manager", "messaging.ibmmq.queue_manager.name", "messaging.ibmmq.qmgr")
_SIZE = ("messaging.message.envelope.size", "messaging.message.body.size")  # with properties, without
_MSGID = "messaging.message.id"
_OPERATION = ("messaging.operation.type", "messaging.operation")
_NO_CALL = {"create", "settle", "process"}  # no put and no get of its own
_OPS: Mapping[int, Op] = {Span.SPAN_KIND_PRODUCER: "PUT", Span.SPAN_KIND_CONSUMER: "GET"}
_MAX_SYSTEM = 40  # characters of the name of another system
_MAX_MSGID = 48  # bytes, of an event


class Emitter(StrEnum):
    """Who wrote a span: the queue manager, or the instrumentation of an application for the same call."""

    QUEUE_MANAGER = "queue-manager"
    APPLICATION = "application"


class Call(NamedTuple):
    """A put or get.

    Attributes:
        time: microseconds since 1970, when the call returned.
        key: trace id and span id, 24 bytes.
        op: PUT or GET.
        queue: destination, before an alias or a remote definition is resolved.
        emitter: who wrote the span.
        qmgr: queue manager, if the span names it.
        lpar: LPAR, if the span names it.
        msgid: message id, if the span has it.
        length: bytes, if the span has them.
    """

    time: int
    key: bytes
    op: Op
    queue: str
    emitter: Emitter
    qmgr: str | None = None
    lpar: str | None = None
    msgid: str | None = None
    length: int | None = None


class UnreadableSpansError(ValueError):
    """A value that is no ExportTraceServiceRequest; the message says why."""


class Spans(NamedTuple):
    """Content of a value: calls in its order, and the number of spans that are no call on MQ, by what they are of."""

    calls: list[Call]
    others: Counter[str]


def encoding_of(value: bytes) -> str:
    """Return the encoding of a value: JSON begins with a brace, a protobuf message with the tag of field 1, 0x0A."""
    return OTLP_JSON if value.lstrip()[:1] == b"{" else OTLP_PROTO


def read_spans(value: bytes, encoding: str | None = None) -> Spans:
    """Return the calls of a value.

    Args:
        value: an ExportTraceServiceRequest.
        encoding: OTLP_PROTO or OTLP_JSON; None: by its first byte.

    Raises:
        UnreadableSpansError: it is not one.
    """
    request = _parse_json(value) if (encoding or encoding_of(value)) == OTLP_JSON else _parse_proto(value)
    calls: list[Call] = []
    others: Counter[str] = Counter()
    for resource in request.resource_spans:
        common = _attributes(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                call = _call(span, common)
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
        raise UnreadableSpansError(f"no OTLP protobuf: {error}; expected: an ExportTraceServiceRequest") from None
    if value and not request.resource_spans:
        raise UnreadableSpansError("OTLP protobuf without resource spans; expected: an ExportTraceServiceRequest")
    return request


def _parse_json(value: bytes) -> ExportTraceServiceRequest:
    try:
        content = msgspec.json.decode(value)
        for span in _json_spans(content):
            for name in _IDS:
                if name in span:
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
        request = ExportTraceServiceRequest()
        json_format.ParseDict(content, request, ignore_unknown_fields=True, max_recursion_depth=_MAX_DEPTH)
    except UnreadableSpansError:
        raise
    except (
        msgspec.DecodeError,
        json_format.ParseError,
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        reason = " ".join(str(error).split())[:200]
        raise UnreadableSpansError(f"no OTLP JSON: {reason}; expected: an ExportTraceServiceRequest") from None
    return request


def _json_spans(content: object) -> Iterator[dict[str, Any]]:
    if not isinstance(content, dict) or not {"resourceSpans", "resource_spans"} & content.keys():
        raise UnreadableSpansError('OTLP JSON without "resourceSpans"; expected: an ExportTraceServiceRequest')
    for resource in _list(content, "resourceSpans", "resource_spans"):
        for scope in _list(resource, "scopeSpans", "scope_spans"):
            yield from _list(scope, "spans", "spans")


def _list(content: Any, camel: str, snake: str) -> list[Any]:
    if not isinstance(content, dict):
        raise UnreadableSpansError(f"OTLP JSON: {camel} stands in no object; expected: an ExportTraceServiceRequest")
    value = content.get(camel, content.get(snake, []))
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise UnreadableSpansError(f"OTLP JSON: {camel} is no list of objects; expected: an ExportTraceServiceRequest")
    return value


def _attributes(pairs: Any) -> dict[str, Any]:
    """Return the scalar attributes by name; the last one of a name counts."""
    return {pair.key: value for pair in pairs if (value := _scalar(pair)) is not None}


def _scalar(pair: KeyValue) -> str | int | float | bool | None:
    kind = pair.value.WhichOneof("value")
    if kind in ("string_value", "int_value", "double_value", "bool_value"):
        value: str | int | float | bool = getattr(pair.value, kind)
        return value
    return None


def _call(span: Span, common: Mapping[str, Any]) -> Call | str:
    """Return the call of a span, or what it is of: another system, a call that failed, one that only browsed."""
    attributes = {**common, **_attributes(span.attributes)}
    lpar = _text(attributes, _LPAR)
    queue = _text(attributes, _DESTINATION)
    other = _other_system(_text(attributes, "messaging.system"), lpar)
    if other is not None:
        return other
    op = _OPS.get(span.kind)
    if op is None:
        return "neither producer nor consumer"
    if span.status.code == Status.STATUS_CODE_ERROR:
        return "a call that failed"
    operation = next((attributes[name] for name in _OPERATION if name in attributes), None)
    if operation in _NO_CALL or attributes.get("messaging.ibmmq.browse") is True:
        return "no put and no destructive get"
    time = (span.end_time_unix_nano or span.start_time_unix_nano) // 1000
    if queue is None or not time:
        return f"no {'destination' if queue is None else 'time'}"
    size = next((attributes[name] for name in _SIZE if name in attributes), None)
    return Call(
        time=time,
        key=span.trace_id + span.span_id,
        op=op,
        queue=queue.strip(),
        emitter=Emitter.APPLICATION if lpar is None else Emitter.QUEUE_MANAGER,
        qmgr=next((name for key in _QMGR if (name := _text(attributes, key)) is not None), None),
        lpar=lpar,
        msgid=_message_id(_text(attributes, _MSGID)),
        length=int(size) if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
    )


def _other_system(system: str | None, lpar: str | None) -> str | None:
    """Return the messaging system of a span that is not of MQ; None of one that is."""
    if system is None:
        return "no messaging system" if lpar is None else None
    return None if system.lower() in _SYSTEMS else system[:_MAX_SYSTEM]


def _text(attributes: Mapping[str, Any], name: str) -> str | None:
    value = attributes.get(name)
    return value.strip() or None if isinstance(value, str) else None


def _message_id(text: str | None) -> str | None:
    """Return a message id as events have it: 48 lower-case hexadecimal digits without `ID:`, or another short text."""
    if text is None:
        return None
    digits = text.removeprefix("ID:")
    if len(digits) == _MAX_MSGID:
        with suppress(ValueError):
            return binascii.unhexlify(digits).hex()
    return text if len(text.encode()) <= _MAX_MSGID else None
