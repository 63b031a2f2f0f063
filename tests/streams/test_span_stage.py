"""Spans in both stages: what a store gets from the OpenTelemetry topic is what the collector would send it."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from streams.kafka.dead_letters import DeadLetter
from streams.kafka.topics import Limits, Topics
from streams.plan import PackedPlan, Plan
from streams.query.decode_stage import decode_task, open_decoder
from streams.query.rows import DEAD, FIRST_OTLP_PARTITION, SPANS, StoreSpans, unpack_letters, unpack_spans
from streams.query.span_stage import order_spans
from tests.streams.stage_help import MEGABYTE, SOURCE, START_US, items_of, rows
from tests.support.estates import small_estate
from tests.support.spans import add_span, request_of, requests_of_events
from twin.estate import load_estate
from twin.events import Decoder
from twin.feeds import FeedOptions, Intake, Page, make_feed

TOPIC = "otlp_spans"
SECOND = 1_000_000


def plan(folder: Path, **options: Any) -> PackedPlan:
    estate = load_estate(small_estate(folder))
    limits = Limits(state=MEGABYTE, alerts=MEGABYTE, dlq=MEGABYTE)
    return PackedPlan.pack(Plan(estate, Topics(otlp=TOPIC), limits, spans=FeedOptions(**options)))


def decoded(packed: PackedPlan, values: list[bytes]) -> tuple[dict[str, list[StoreSpans]], list[DeadLetter]]:
    """Return the spans of each store by record, and the dead letters, after the decode stage."""
    stores: dict[str, list[StoreSpans]] = {}
    letters: list[DeadLetter] = []
    records = rows(values, partitions=[FIRST_OTLP_PARTITION] * len(values))
    for item in items_of(decode_task(packed, SOURCE, 0, [records])):
        if item.kind == DEAD:
            letters += unpack_letters(item.payload)
        else:
            assert (item.kind, item.partition) == (SPANS, FIRST_OTLP_PARTITION)
            stores.setdefault(item.store, []).extend(unpack_spans(item.payload))
    return stores, letters


def traffic(count: int, seed: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        {
            "time": START_US + number * SECOND // 4,
            "op": chance.choice(("PUT", "PUT", "GET")),
            "queue": chance.choice(("ORDERS", "AUDIT")),
            "qmgr": chance.choice(("QM01", "QM02")),
            **({"length": chance.randrange(9000)} if chance.random() < 0.7 else {}),
        }
        for number in range(count)
    ]


def collected(packed: PackedPlan, values: list[bytes]) -> dict[str, np.ndarray]:
    """Return the events of each store that the collector would write, as rows."""
    estate = packed.unpack().estate
    intake = Intake(estate)
    feed = make_feed("otlp", intake, packed.unpack().spans)
    events = [event for value in values for event in feed.take(Page(value, "spans"))]
    lines = [msgspec.json.encode(event) for event in [*events, *feed.finish()]]
    return {block.store: block.events for block in Decoder(estate).json(lines).blocks(estate)}


@pytest.mark.parametrize("seed", range(3))
def test_each_store_gets_the_events_of_the_collector_in_batches_of_any_size(tmp_path: Path, seed: int) -> None:
    packed = plan(tmp_path, late_s=20.0)
    events = traffic(600, seed)
    values = requests_of_events(events, 7, seed, late_us=15 * SECOND)
    last = [
        {**events[-1], "op": "GET", "time": events[-1]["time"] + 3600 * SECOND, "queue": name}
        for name in ("ORDERS", "AUDIT")
    ]
    chance = random.Random(seed)
    memories: dict[str, bytes] = {}
    ordered: dict[str, list[np.ndarray]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    left = [*values, request_of(last, 10_000)]
    while left:
        size = chance.randrange(1, 40)
        stores, letters = decoded(packed, left[:size])
        left = left[size:]
        assert not letters
        for store, records in stores.items():
            output = order_spans(packed.unpack(), open_decoder(packed), store, memories.get(store), records)
            memories[store] = output.memory
            counts["duplicate"] += output.counts["duplicate"]
            counts["late"] += output.counts["late"]
            if output.block is not None:
                ordered[store].append(output.block.events)
    expected = collected(packed, values)
    assert ordered.keys() == expected.keys() == {"QSG1/APP1", "QSG1/APP2"}
    for store, blocks in ordered.items():
        np.testing.assert_array_equal(np.concatenate(blocks), expected[store])
    assert sum(map(len, expected.values())) == 600
    assert counts["duplicate"] > 50
    assert counts["late"] == 0


def test_what_is_no_request_or_has_no_place_is_a_dead_letter(tmp_path: Path) -> None:
    good = {"time": START_US, "op": "PUT", "queue": "ORDERS", "length": 5}
    values = [b"\xff noise", request_of([good, {**good, "queue": "ORDERZ", "qmgr": "QM01"}, {**good, "queue": "NONE"}])]
    stores, letters = decoded(plan(tmp_path), values)
    assert {store: len(records) for store, records in stores.items()} == {"QSG1/APP1": 1}
    assert [(letter.reason, letter.topic, letter.partition, letter.offset) for letter in letters] == [
        ("unreadable-spans", TOPIC, 0, 0),
        ("unknown-queue-manager", TOPIC, 0, 1),
        ("unknown-queue", TOPIC, 0, 1),
    ]
    assert letters[0].value == values[0]
    assert "--qmgr" in letters[1].detail
    assert "ORDERZ" in letters[2].detail


def test_other_signals_and_temporary_queues_are_no_dead_letters(tmp_path: Path) -> None:
    good = {"time": START_US, "op": "PUT", "queue": "ORDERS", "length": 5}
    request = ExportTraceServiceRequest()
    add_span(request, 1, good)
    add_span(request, 2, {**good, "queue": "CSQ.E2FB1B9510533200", "qmgr": "QM01"})
    span = request.resource_spans[1].scope_spans[0].spans[0]
    span.attributes.add(key="messaging.destination.temporary").value.bool_value = True
    stores, letters = decoded(plan(tmp_path), [b"{}", b'{"resourceMetrics":[]}', request.SerializeToString()])
    assert {store: len(records) for store, records in stores.items()} == {"QSG1/APP1": 1}
    assert not letters


def test_spans_of_zos_go_to_the_stores_of_their_service(tmp_path: Path) -> None:
    request = ExportTraceServiceRequest()
    for number, qmgr in enumerate(("QM01", "QM02"), 1):
        add_span(request, number, {"time": START_US, "op": "PUT", "queue": "ORDERS", "length": 5})
        request.resource_spans[-1].resource.attributes.add(key="service.name").value.string_value = qmgr
    stores, letters = decoded(plan(tmp_path), [request.SerializeToString()])
    assert [event["qmgr"] for record in stores["QSG1/APP1"] for _, event in record] == ["QM01", "QM02"]
    assert not letters


def test_a_held_span_whose_queue_has_moved_is_a_dead_letter(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    span = {"time": START_US, "op": "PUT", "queue": "ORDERS", "length": 5}
    stores, _ = decoded(packed, [request_of([span, {**span, "time": START_US + 60 * SECOND}])])
    output = order_spans(packed.unpack(), open_decoder(packed), "QSG1/APP2", None, stores["QSG1/APP1"])
    assert output.block is None
    assert [(letter.reason, letter.partition, letter.offset) for letter in output.letters] == [
        ("unknown-queue", -1, -1)
    ]
