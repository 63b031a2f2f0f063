"""Reports in records of the reports topic, in the decode stage and in the processor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import Row

from streams.kafka.topics import Limits, Topics
from streams.plan import PackedPlan, Plan
from streams.query.decode_stage import decode_task
from streams.query.processor import open_twins
from streams.query.report_records import (
    REPORTS_PER_RECORD,
    ReadMark,
    ReadMarks,
    ReportError,
    has_read_all,
    read_mark,
    read_record,
    read_reports,
    report_records,
)
from streams.query.rows import DEAD, REPORT, BatchReport, ReadItem, unpack_letters
from tests.streams.stage_help import MEGABYTE, SOURCE, figure, items_of, new_tester, of_topic, shuffled
from tests.support.shared import START_US, STRUCTURES, Shared, leave_report, shared_estate, structure_report
from twin.estate import Estate
from twin.records import read_state_record

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return shared_estate(tmp_path)


@pytest.fixture
def packed(estate: Estate) -> PackedPlan:
    open_twins.cache_clear()
    return PackedPlan.pack(Plan(estate, Topics(), Limits(state=MEGABYTE, alerts=MEGABYTE, dlq=MEGABYTE)))


def reports(count: int, source: str = STRUCTURES[0]) -> list[Any]:
    return [structure_report(source, tick, scm_used=tick << 20) for tick in range(1, count + 1)]


def values(report_list: list[Any], limit: int = MEGABYTE) -> list[bytes]:
    return [value for _, value in report_records(report_list, limit)]


def reports_batch(records: list[bytes | None], partition: int = 0, offset: int = 0) -> pa.RecordBatch:
    """Return records of the reports topic as the Kafka source gives them."""
    columns = {
        "value": pa.array(records, pa.binary()),
        "content_type": pa.array([b"application/json"] * len(records), pa.binary()),
        "partition": pa.array([-1 - partition] * len(records), pa.int32()),
        "offset": pa.array(range(offset, offset + len(records)), pa.int64()),
    }
    return pa.record_batch(columns)


def decode(packed: PackedPlan, batch: pa.RecordBatch) -> list[Row]:
    return shuffled(decode_task(packed, SOURCE, 0, [batch]))


def items(packed: PackedPlan, batch: pa.RecordBatch) -> list[ReadItem]:
    return items_of(decode_task(packed, SOURCE, 0, [batch]))


# --- records ---------------------------------------------------------------------------------------------------------


def test_the_reports_of_a_source_are_one_record_keyed_by_the_shared_store(estate: Estate) -> None:
    written = [*reports(3), leave_report(STRUCTURES[0], 4)]
    ((key, value),) = report_records(written, MEGABYTE)
    assert key == b"CF01"
    assert read_reports(value, estate) == written
    schema = json.loads((ROOT / "schemas" / "report.schema.json").read_bytes())
    jsonschema.Draft202012Validator(schema).validate(json.loads(value))


def test_many_reports_are_several_records_within_the_limit_of_the_topic(estate: Estate) -> None:
    written = reports(2 * REPORTS_PER_RECORD + 1)
    assert len(values(written)) == 3
    small = values(written, 2000)
    assert max(map(len, small)) <= 2000
    assert [report for value in small for report in read_reports(value, estate)] == written


def test_no_reports_are_no_record() -> None:
    assert values([]) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"store": "CF09"}, "CF09"),
        ({"store": "QSG1/APP1"}, "QSG1/APP1"),
        ({"source": "QSG9/NONE"}, "QSG9/NONE"),
        ({"source": "UC01"}, "UC01"),
        ({"reports": []}, "length"),
        ({"reports": [{"tick": 1, "passed": 1, "values": None}]}, "tick"),
        ({"reports": [{"tick": 179_517_602, "passed": 179_517_601, "values": None}]}, "ticks that increase"),
        ({"reports": [{"tick": 179_517_602, "passed": 179_517_602, "values": {"type": "structure"}}]}, "size"),
    ],
)
def test_an_invalid_record_is_refused_with_the_problem(estate: Estate, change: dict[str, Any], message: str) -> None:
    (value,) = values(reports(1))
    with pytest.raises(ReportError, match=message):
        read_reports(json.dumps(json.loads(value) | change).encode(), estate)


@pytest.mark.parametrize("value", [None, b"", b"nonsense", b"[1]", b"[" * 100_000])
def test_a_value_that_is_no_json_object_is_refused(estate: Estate, value: bytes | None) -> None:
    with pytest.raises(ReportError):
        read_reports(value, estate)


# --- marks -----------------------------------------------------------------------------------------------------------


def test_a_mark_is_a_record_of_its_own(estate: Estate) -> None:
    for caught_up in (True, False):
        value = read_mark("CF01", caught_up=caught_up)
        assert read_record(value, estate) == ReadMark("CF01", caught_up)
        schema = json.loads((ROOT / "schemas" / "report.schema.json").read_bytes())
        jsonschema.Draft202012Validator(schema).validate(json.loads(value))
    (value,) = values(reports(1))
    assert read_record(value, estate) == reports(1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b'{"store": "CF09", "caught_up": true}', "CF09"),
        (b'{"store": "QSG1/APP1", "caught_up": true}', "QSG1/APP1"),
        (b'{"store": "CF01", "caught_up": 1}', "caught_up"),
        (b'{"caught_up": true}', "store"),
    ],
)
def test_an_invalid_mark_is_refused_with_the_problem(estate: Estate, value: bytes, message: str) -> None:
    with pytest.raises(ReportError, match=message):
        read_record(value, estate)


def progress(end: int, latest: int | None, reports_end: int = 0) -> BatchReport:
    """Return Spark's report of a batch that read the events up to `end` when there were `latest`."""
    ends = {"mqtwin.events": {"0": 7, "1": end}, "mqtwin.reports": {"0": reports_end}}
    known = {"mqtwin.events": {"0": 7, "1": latest}, "mqtwin.reports": {"0": 9}}
    source = {"endOffset": ends, "latestOffset": None if latest is None else known}
    return msgspec.json.decode(json.dumps({"batchId": 0, "sources": [source]}), type=BatchReport)


def test_a_batch_has_read_all_events_if_it_ends_where_they_ended() -> None:
    assert has_read_all(progress(5, 5), Topics()) is True, "reports do not count"
    assert has_read_all(progress(4, 5), Topics()) is False
    assert has_read_all(progress(5, None), Topics()) is None, "Spark did not ask: a batch that is run again"
    assert has_read_all(BatchReport(0), Topics()) is None


def test_shared_stores_get_a_mark_only_when_it_changes(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    class Producer:
        def produce(self, topic: str, value: bytes, key: bytes, **_: Any) -> None:
            assert (topic, key) == ("mqtwin.reports", json.loads(value)["store"].encode())
            written.append(value)

        def poll(self, _: float) -> None: ...

        def flush(self, _: float) -> int:
            return 0

    monkeypatch.setattr("streams.kafka.clients.new_producer", lambda *_: Producer())
    marks = ReadMarks(estate, {"bootstrap.servers": "here"}, Topics())
    for end in (5, 5, 4, 4, 5):
        marks.on_batch(progress(end, 5))
    shared = ["CF01", "UC01", "UC01QM01", "UC01QM02", "UC01QM03"]
    assert [(mark["store"], mark["caught_up"]) for mark in map(json.loads, written)] == [
        (store, caught_up) for caught_up in (True, False, True) for store in shared
    ]


# --- the decode stage ------------------------------------------------------------------------------------------------


def test_reports_pass_the_decode_stage_as_one_row_per_shared_store(packed: PackedPlan) -> None:
    first, second = values(reports(3)), values(reports(3, STRUCTURES[1]))
    (item,) = items(packed, reports_batch(first + second, offset=40))
    assert (item.store, item.kind, item.partition, item.offset) == ("CF01", REPORT, 0, 40)


def test_a_malformed_report_is_a_dead_letter_of_the_reports_topic(packed: PackedPlan) -> None:
    good = values(reports(1))
    decoded = items(packed, reports_batch([b"nonsense", *good], partition=2, offset=7))
    payloads = {item.kind: item.payload for item in decoded}
    assert sorted(payloads) == [DEAD, REPORT]
    (letter,) = unpack_letters(payloads[DEAD])
    assert (letter.topic, letter.partition, letter.offset, letter.reason) == ("mqtwin.reports", 2, 7, "bad-report")
    assert letter.value == b"nonsense"


# --- the processor ---------------------------------------------------------------------------------------------------


def test_a_mark_ends_the_waiting_for_what_has_not_reported(packed: PackedPlan, estate: Estate) -> None:
    job = new_tester(packed)
    behind, caught_up = (read_mark("CF01", caught_up=value) for value in (False, True))
    output = job.test("CF01", decode(packed, reports_batch([behind])))
    assert of_topic(output, "mqtwin.state") == [], "a store without an event and a report has no state record"
    output = job.test("CF01", decode(packed, reports_batch(values(reports(3)), offset=1)))
    (record,) = of_topic(output, "mqtwin.state")
    assert json.loads(record.value)["time"] is None, "the other structure may be behind"
    open_twins.cache_clear()
    output = job.test("CF01", decode(packed, reports_batch([caught_up], offset=2)))
    (record,) = of_topic(output, "mqtwin.state")
    by_hand = Shared(estate, "CF01")
    by_hand.reports(*reports(3))
    assert record.value == msgspec.json.encode(by_hand.state())
    assert by_hand.state().scm_used == 3 << 20


def test_a_shared_store_applies_reports_and_has_its_state_in_the_header(packed: PackedPlan, estate: Estate) -> None:
    job = new_tester(packed)
    by_hand = Shared(estate, "CF01")
    for start in range(0, 6, 2):
        open_twins.cache_clear()
        step = [report for source in STRUCTURES for report in reports(6, source)[start : start + 2]]
        pieces = [value for source in (0, 2) for value in values(step[source : source + 2])]
        output = job.test("CF01", decode(packed, reports_batch(pieces, offset=start)))
        by_hand.reports(*step)
    (state,) = (read_state_record(row.value) for row in of_topic(output, "mqtwin.state"))
    assert state == by_hand.state()
    assert state.scm_used == 2 * (6 << 20)


def test_a_structure_with_scm_writes_its_reports(packed: PackedPlan, estate: Estate) -> None:
    events = [
        {"time": START_US + n * 5_000_000, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 10}
        for n in range(9)
    ]
    columns = {
        "value": pa.array([json.dumps(event).encode() for event in events], pa.binary()),
        "content_type": pa.array([None] * 9, pa.binary()),
        "partition": pa.array([0] * 9, pa.int32()),
        "offset": pa.array(range(9), pa.int64()),
    }
    output = new_tester(packed).test(STRUCTURES[0], decode(packed, pa.record_batch(columns)))
    (row,) = of_topic(output, "mqtwin.reports")
    assert row["key"] == b"CF01"
    assert row["headers"] == [{"key": "content-type", "value": b"application/json"}]
    written = read_reports(row["value"], estate)
    assert [report.tick for report in written] == [START_US // 10_000_000 + n for n in range(1, 5)]
    assert figure(output, "reports") == 4
