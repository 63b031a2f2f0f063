"""OpenTelemetry requests of puts and gets, as a collector's Kafka exporter writes them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

SCOPE = "z/OS OTel"  # of the spans that queue managers on z/OS emit
_KINDS = {"PUT": Span.SPAN_KIND_PRODUCER, "GET": Span.SPAN_KIND_CONSUMER}


def add_span(request: ExportTraceServiceRequest, number: int, event: Mapping[str, Any]) -> None:
    """Add the span of a PUT or GET (time in microseconds, queue; optional: qmgr, msgid, length) to a request."""
    scope = request.resource_spans.add().scope_spans.add()
    scope.scope.name = SCOPE
    span = scope.spans.add()
    span.trace_id, span.span_id = number.to_bytes(16, "big"), number.to_bytes(8, "big")
    span.kind, span.end_time_unix_nano = _KINDS[event["op"]], event["time"] * 1000
    texts = {
        "messaging.destination.name": event["queue"],
        "mainframe.lpar.name": "MV4C",
        "messaging.system": "ibmmq",
        "messaging.ibmmq.queue_manager": event.get("qmgr"),
        "messaging.message.id": event.get("msgid"),
    }
    for name, text in texts.items():
        if text is not None:
            span.attributes.add(key=name).value.string_value = text
    if "length" in event:
        span.attributes.add(key="messaging.message.body.size").value.int_value = event["length"]


def with_scope(value: bytes) -> bytes:
    """Return a request whose spans are those of queue managers on z/OS."""
    request = ExportTraceServiceRequest.FromString(value)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            scope.scope.name = SCOPE
    return request.SerializeToString()


def request_of(events: Iterable[Mapping[str, Any]], first: int = 1) -> bytes:
    """Return a request with the spans of events in protobuf, numbered from `first`."""
    request = ExportTraceServiceRequest()
    for number, event in enumerate(events, first):
        add_span(request, number, event)
    return request.SerializeToString()


def requests_of_events(events: list[dict[str, Any]], per_request: int, seed: int, late_us: int) -> list[bytes]:
    """Return requests with the spans of events, out of order by at most `late_us`, and every fifth request twice."""
    chance = random.Random(seed)
    numbers = sorted(range(len(events)), key=lambda number: events[number]["time"] + chance.randrange(late_us))
    values = []
    for start in range(0, len(numbers), per_request):
        request = ExportTraceServiceRequest()
        for number in numbers[start : start + per_request]:
            add_span(request, number + 1, events[number])
        values.append(request.SerializeToString())
    return [value for place, value in enumerate(values) for _ in range(2 if place % 5 == 0 else 1)]
