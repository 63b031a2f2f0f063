"""The rules of the contract, one test each: sections 2, 5 and 7."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
import pytest
import xxhash

from kernels import FLAG_DIRECT, FLAG_HAS_MSGID, FLAG_HAS_UOW, FLAG_PERSISTENT
from tests.twin.events.samples import GET, PUT, text
from twin.estate import Estate
from twin.events import Decoder, Reason, Reject
from twin.events.fields import OPS

pytestmark = pytest.mark.uncompiled

STORE_EVENT: dict[str, Any] = {"time": PUT["time"], "qmgr": "QM01", "store": "QSG1/APP1"}


def refused(decoder: Decoder, event: object) -> Reject:
    """Return the dead letter of an event; the events beside it are accepted."""
    value = event if isinstance(event, bytes) else text(event)
    decoded = decoder.json([text(PUT), value, text(GET)])
    assert decoded.record.tolist() == [0, 2]
    (reject,) = decoded.rejects
    assert (reject.record, reject.index, reject.value) == (1, 0, value)
    return reject


def accept(decoder: Decoder, event: dict[str, Any]) -> Any:
    decoded = decoder.json([text(event)])
    assert not decoded.rejects
    return decoded.events[0]


def test_an_event_becomes_a_row(decoder: Decoder, estate: Estate) -> None:
    row = accept(decoder, PUT)
    assert row["time"] == 1_795_176_000_000_123
    assert row["msgid"] == xxhash.xxh64_intdigest(PUT["msgid"].encode())
    assert row["uow"] == xxhash.xxh64_intdigest(b"c5a1")
    assert (row["seq"], row["length"], row["count"], row["reason"], row["priority"]) == (1284, 2048, 1, 0, 4)
    assert OPS[row["op"]] == "PUT"
    assert row["flags"] == FLAG_PERSISTENT | FLAG_HAS_MSGID | FLAG_HAS_UOW
    route = estate.routes[row["route"]]
    assert (route.store, route.qmgr, route.queue, route.reported) == ("QSG1/APP1", "QM01", "ORDERS", "ORDERS")


def test_what_is_absent_has_its_default(decoder: Decoder) -> None:
    row = accept(decoder, GET)
    assert [int(row[name]) for name in ("msgid", "uow", "seq", "length", "count", "reason", "priority", "flags")] == [
        *(0, 0, -1, 0, 1, 0, 0, 0)
    ]


def test_an_explicit_null_is_absent(decoder: Decoder) -> None:
    nulls = dict.fromkeys(
        ("seq", "msgid", "count", "length", "priority", "persistent", "uow", "direct", "reason", "store")
    )
    assert accept(decoder, GET | nulls) == accept(decoder, GET)


def test_direct_is_a_flag(decoder: Decoder) -> None:
    assert accept(decoder, PUT | {"direct": True, "uow": None, "persistent": False})["flags"] & FLAG_DIRECT


def test_an_alias_keeps_its_reported_name(decoder: Decoder, estate: Estate) -> None:
    route = estate.routes[accept(decoder, PUT | {"queue": "ORDERS.IN"})["route"]]
    assert (route.queue, route.reported) == ("ORDERS", "ORDERS.IN")


@pytest.mark.parametrize(
    ("written", "microseconds"),
    [
        ("2026-11-20T12:00:00Z", 1_795_176_000_000_000),
        ("2026-11-20T12:00:00.5Z", 1_795_176_000_500_000),
        ("2026-11-20T12:00:00.123456789Z", 1_795_176_000_123_456),
        ("2026-11-20t12:00:00z", 1_795_176_000_000_000),
        ("2026-11-20T14:00:00+02:00", 1_795_176_000_000_000),
        ("2026-11-20T06:30:00.25-05:30", 1_795_176_000_250_000),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000_000),
        ("2000-01-01T00:00:00Z", 946_684_800_000_000),
        ("1999-12-31T23:30:00-01:00", 946_686_600_000_000),
        ("2100-12-31T23:59:59.999999Z", 4_133_980_799_999_999),
        ("2016-12-31T23:59:60Z", 1_483_228_800_000_000),
        ("2017-01-01T00:59:60.5+01:00", 1_483_228_800_500_000),
        (1_795_176_000_000_123, 1_795_176_000_000_123),
    ],
)
def test_times(decoder: Decoder, written: str | int, microseconds: int) -> None:
    assert accept(decoder, PUT | {"time": written})["time"] == microseconds


@pytest.mark.parametrize(
    "written",
    [
        *("yesterday", "", "2026-11-20", "2026-11-20T12:00:00", "2026-11-20 12:00:00Z", "2026-11-20T12:00Z"),
        *("2026-02-30T12:00:00Z", "2026-11-20T24:00:00Z", "2026-11-20T12:60:00Z", "2026-11-20T12:00:60Z"),
        *("2026-11-20T12:00:00.Z", "2026-11-20T12:00:00+2:00", "2026-11-20T12:00:00+24:00", "1795176000000000"),
        *("1999-12-31T23:59:59Z", "2101-01-01T00:00:00Z", "2000-01-01T00:30:00+01:00", "0000-01-01T00:00:00Z"),
        *("2026-11-20T12:00:00\u0665Z", 0, 1_795_176_000, 946_684_799_999_999, 4_133_980_800_000_000, -1, 2**70),
    ],
)
def test_a_time_that_is_none_or_out_of_range(decoder: Decoder, written: str | int) -> None:
    assert refused(decoder, PUT | {"time": written}).reason == Reason.BAD_TIME


@pytest.mark.parametrize("name", ["time", "qmgr", "op"])
def test_every_event_needs_time_queue_manager_and_operation(decoder: Decoder, name: str) -> None:
    for event in ({k: v for k, v in PUT.items() if k != name}, PUT | {name: None}):
        reject = refused(decoder, event)
        assert reject.reason == Reason.MISSING_FIELD
        assert reject.detail.startswith(f"{name} is missing; expected: ")


@pytest.mark.parametrize("op", ["PUT", "GET", "COMMIT", "BACKOUT", "EXPIRE", "CLEAR"])
def test_an_operation_on_a_queue_needs_the_queue(decoder: Decoder, op: str) -> None:
    event = {k: v for k, v in PUT.items() if k != "queue"} | {"op": op, "store": "QSG1/APP1"}
    reject = refused(decoder, event)
    assert (reject.reason, reject.detail) == (
        Reason.MISSING_FIELD,
        f"queue is missing, which {op} needs; expected: a string",
    )


def test_a_put_needs_its_length(decoder: Decoder) -> None:
    reject = refused(decoder, {k: v for k, v in PUT.items() if k != "length"})
    assert reject.reason == Reason.MISSING_FIELD
    assert reject.detail == "length is missing, which PUT needs; expected: an integer from 0 to 104857600"


@pytest.mark.parametrize(
    ("field", "value"), [("uow", "u1"), ("persistent", True)], ids=["inside syncpoint", "persistent on z/OS"]
)
@pytest.mark.parametrize("queue", ["ORDERS", "LOCAL.REPLIES"])
def test_a_put_to_a_waiting_getter_that_mq_does_not_make(decoder: Decoder, queue: str, field: str, value: Any) -> None:
    """WebSphere MQ internals, "Put to a waiting getter": outside syncpoint; on z/OS nonpersistent too."""
    put = PUT | {"queue": queue, "uow": None, "persistent": False, "direct": True}
    assert accept(decoder, put)["flags"] & FLAG_DIRECT
    reject = refused(decoder, put | {field: value})
    assert reject.reason == Reason.IMPOSSIBLE_DIRECT
    assert reject.detail.startswith(f"direct with {field}")


def test_on_other_platforms_a_persistent_message_is_put_to_a_waiting_getter(decoder: Decoder) -> None:
    put = PUT | {"qmgr": "QMD1", "queue": "INVOICES", "uow": None, "persistent": True, "direct": True}
    assert accept(decoder, put)["flags"] & FLAG_DIRECT
    assert refused(decoder, put | {"uow": "u1"}).reason == Reason.IMPOSSIBLE_DIRECT


def test_direct_on_another_operation_than_a_put_is_ignored(decoder: Decoder) -> None:
    assert accept(decoder, PUT | {"op": "GET", "direct": True})["flags"] & FLAG_DIRECT


@pytest.mark.parametrize(("expiry", "tenths"), [(None, 0), (30, 300), (0.05, 1), (1.1, 11), (99_999_999, 999_999_990)])
def test_expiry_is_kept_in_tenths_of_a_second(decoder: Decoder, expiry: float | None, tenths: int) -> None:
    assert accept(decoder, PUT | {"expiry": expiry})["expiry"] == tenths


@pytest.mark.parametrize("expiry", [0, -1, 0.0, 99_999_999.5, 100_000_000])
def test_an_expiry_out_of_range(decoder: Decoder, expiry: float) -> None:
    reject = refused(decoder, PUT | {"expiry": expiry})
    assert (reject.reason, reject.detail) == (
        Reason.BAD_VALUE,
        f"expiry is {msgspec.json.encode(expiry).decode()}; expected: a number above 0, at most 99999999",
    )


def test_a_prepare_needs_its_unit_of_work(decoder: Decoder) -> None:
    assert accept(decoder, GET | {"op": "PREPARE", "uow": "u1"})["flags"] == FLAG_HAS_UOW
    reject = refused(decoder, GET | {"op": "PREPARE"})
    assert (reject.reason, reject.detail) == (
        Reason.MISSING_FIELD,
        "uow is missing, which PREPARE needs; expected: a string",
    )


@pytest.mark.parametrize("op", ["COMMIT", "BACKOUT"])
def test_the_end_of_nothing_in_syncpoint_is_a_fact(decoder: Decoder, op: str) -> None:
    assert accept(decoder, GET | {"op": op, "uow": "u1"})["flags"] == FLAG_HAS_UOW
    assert accept(decoder, GET | {"op": op})["flags"] == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("time", value) for value in (1.5, True, [], {})],
        *[(name, value) for name in ("qmgr", "op", "queue", "msgid", "uow", "store") for value in (5, True, [], {})],
        *[(name, value) for name in ("seq", "length", "priority", "reason") for value in (5.0, "5", True, [], {}, 0.5)],
        *[("count", value) for value in (1.0, "1", True)],
        *[(name, value) for name in ("persistent", "direct") for value in (0, 1, "true", [])],
        *[(name, value) for name in ("attributes", "measured") for value in ("{}", [], 1, True)],
    ],
)
def test_a_value_of_another_type(decoder: Decoder, name: str, value: object) -> None:
    reject = refused(decoder, PUT | {name: value})
    assert reject.reason == Reason.WRONG_TYPE
    assert reject.detail.startswith(f"{name} is {msgspec.json.encode(value).decode()}; expected: ")


@pytest.mark.parametrize("written", [b"5.0", b"5e0", b"50E-1"])
def test_an_integer_is_written_as_one(decoder: Decoder, written: bytes) -> None:
    event = text(PUT).replace(b'"length":2048', b'"length":' + written)
    assert refused(decoder, event).reason == Reason.WRONG_TYPE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("seq", -1), ("seq", 2**63), ("length", -1), ("length", 104_857_601), ("priority", -1), ("priority", 10)),
        *(("count", 0), ("count", -1), ("count", 1_000_001), ("reason", -1), ("reason", 2**31), ("length", 2**64)),
        *(("msgid", ""), ("msgid", "x" * 49), ("msgid", "\u00e9" * 25)),
    ],
)
def test_a_value_out_of_range(decoder: Decoder, name: str, value: object) -> None:
    event = {k: v for k, v in PUT.items() if k != "msgid"} | {name: value}
    reject = refused(decoder, event)
    assert reject.reason == Reason.BAD_VALUE
    assert reject.detail.startswith(f"{name} is ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("seq", 0), ("seq", 2**63 - 1), ("length", 0), ("length", 104_857_600), ("priority", 0), ("priority", 9)),
        *(("reason", 0), ("reason", 2**31 - 1), ("msgid", "x"), ("msgid", "x" * 48), ("msgid", "\u00e9" * 24)),
        *(("uow", ""), ("uow", "u" * 1000), ("count", 1)),
    ],
)
def test_the_edges_of_ranges(decoder: Decoder, name: str, value: Any) -> None:
    row = accept(decoder, PUT | {name: value})
    assert row[name] == (xxhash.xxh64_intdigest(value.encode()) if isinstance(value, str) else value)


def test_count_needs_a_message_without_id(decoder: Decoder) -> None:
    anonymous = {k: v for k, v in PUT.items() if k != "msgid"}
    assert accept(decoder, anonymous | {"count": 1_000_000})["count"] == 1_000_000
    reject = refused(decoder, PUT | {"count": 2})
    assert (reject.reason, reject.detail) == (Reason.BAD_VALUE, "count is 2 beside a msgid; expected: 1, or no count")


@pytest.mark.parametrize("op", ["put", "PEEK", "", "PUT "])
def test_an_unknown_operation(decoder: Decoder, op: str) -> None:
    reject = refused(decoder, PUT | {"op": op})
    assert reject.reason == Reason.UNKNOWN_OP
    assert reject.detail.endswith("expected: one of " + ", ".join(OPS))


def test_an_unknown_queue_manager(decoder: Decoder) -> None:
    reject = refused(decoder, PUT | {"qmgr": "QM09"})
    assert reject.reason == Reason.UNKNOWN_QUEUE_MANAGER
    assert "QM09" in reject.detail
    assert "QM01" in reject.detail


@pytest.mark.parametrize(("qmgr", "queue"), [("QM01", "NOWHERE"), ("QM01", "orders"), ("QM02", "LOCAL.REPLIES")])
def test_an_unknown_queue(decoder: Decoder, qmgr: str, queue: str) -> None:
    assert refused(decoder, PUT | {"qmgr": qmgr, "queue": queue}).reason == Reason.UNKNOWN_QUEUE


def test_events_of_every_kind_of_store_are_taken(decoder: Decoder, estate: Estate) -> None:
    events = (
        PUT | {"queue": "LOCAL.REPLIES"},
        PUT | {"qmgr": "QMD1", "queue": "INVOICES"},
        STORE_EVENT | {"op": "HEARTBEAT", "store": "QM01/PS04"},
        {"time": PUT["time"], "qmgr": "QMD1", "op": "RESTART"},
    )
    decoded = decoder.json([text(event) for event in events])
    assert not decoded.rejects
    stores = [estate.routes[route].store for route in decoded.events["route"]]
    assert stores == ["QM01/PS04", "QMD1/INVOICES", "QM01/PS04", "QMD1", "QMD1/INVOICES"]


@pytest.mark.parametrize("op", ["ALTER", "REBUILD", "MEASURE", "HEARTBEAT", "RESTART"])
def test_an_unknown_store(decoder: Decoder, op: str) -> None:
    event = STORE_EVENT | {"op": op, "attributes": {"offld1_th": 60}, "measured": {"messages": 1}}
    assert refused(decoder, event | {"store": "QSG1/APP9"}).reason == Reason.UNKNOWN_STORE
    assert refused(decoder, event | {"qmgr": "QMD1"}).reason == Reason.UNKNOWN_STORE
    assert refused(decoder, event | {"qmgr": "QM09"}).reason == Reason.UNKNOWN_QUEUE_MANAGER


@pytest.mark.parametrize("op", ["ALTER", "REBUILD", "MEASURE"])
def test_what_concerns_a_store_names_it(decoder: Decoder, op: str) -> None:
    event = {"time": PUT["time"], "qmgr": "QM01", "op": op, "attributes": {}, "measured": {"messages": 1}}
    assert refused(decoder, event).detail.startswith(f"store is missing, which {op} needs")


@pytest.mark.parametrize("op", ["HEARTBEAT", "RESTART"])
def test_without_store_every_simulated_store_of_the_queue_manager_is_meant(
    decoder: Decoder, estate: Estate, op: str
) -> None:
    decoded = decoder.json([text(PUT), text({"time": PUT["time"], "qmgr": "QM01", "op": op}), text(PUT)])
    assert not decoded.rejects
    assert decoded.record.tolist() == [0, 1, 1, 1, 1, 2]
    assert [estate.routes[route].store for route in decoded.events["route"]] == [
        *("QSG1/APP1", "CF01", "QM01/PS04", "QSG1/APP1", "QSG1/APP2", "QSG1/APP1")
    ]
    item = decoder.json([text(STORE_EVENT | {"op": op})])
    assert [estate.routes[route].store for route in item.events["route"]] == ["QSG1/APP1"]


def test_attributes_come_checked_with_sizes_as_integers(decoder: Decoder) -> None:
    event = STORE_EVENT | {"op": "ALTER", "attributes": {"offld1_th": 60, "size": "512M"}}
    decoded = decoder.json([text(PUT), text(event)])
    assert {row: msgspec.json.decode(extra) for row, extra in decoded.extras.items()} == {
        1: {"offld1_th": 60, "size": 512 << 20}
    }
    rebuild = decoder.json([text(STORE_EVENT | {"op": "REBUILD"})])
    assert rebuild.extras == {0: b"{}"}


@pytest.mark.parametrize(
    "attributes", [{"offld1_th": 101}, {"offld4_th": 1}, {"size": "many"}, {"offld1_th": "60"}, {"smds_prefix": 1}]
)
def test_attributes_that_do_not_fit(decoder: Decoder, attributes: dict[str, object]) -> None:
    for op in ("ALTER", "REBUILD"):
        reject = refused(decoder, STORE_EVENT | {"op": op, "attributes": attributes})
        assert reject.reason == Reason.BAD_ATTRIBUTES
        assert next(iter(attributes)) in reject.detail


def test_an_alter_alters_something(decoder: Decoder) -> None:
    assert refused(decoder, STORE_EVENT | {"op": "ALTER"}).reason == Reason.MISSING_FIELD


def test_a_measurement_comes_through(decoder: Decoder) -> None:
    measured = {
        "store": "QSG1/APP1",
        "ents_used": 5,
        "elems_used": 0,
        "usage_pct": 1.5,
        "status": "NORMAL",
        "scm": None,
        "smds": {"QM01": {"blocks_used": 3, "status": "NORMAL"}, "QM02": {"messages": None}},
    }
    decoded = decoder.json([text(STORE_EVENT | {"op": "MEASURE", "measured": measured})])
    assert msgspec.json.decode(decoded.extras[0]) == measured


@pytest.mark.parametrize(
    ("measured", "reason", "where"),
    [
        (None, Reason.MISSING_FIELD, "measured"),
        ({}, Reason.BAD_VALUE, "measured"),
        ({"entries_used": 5}, Reason.BAD_VALUE, "measured"),
        ({"messages": None}, Reason.BAD_VALUE, "measured"),
        ({"messages": "5"}, Reason.WRONG_TYPE, "measured.messages"),
        ({"messages": 5.0}, Reason.WRONG_TYPE, "measured.messages"),
        ({"messages": True}, Reason.WRONG_TYPE, "measured.messages"),
        ({"ents_used": -1}, Reason.BAD_VALUE, "measured.ents_used"),
        ({"elems_used": 2**53}, Reason.BAD_VALUE, "measured.elems_used"),
        ({"messages": 2**31}, Reason.BAD_VALUE, "measured.messages"),
        ({"messages": 2**63 - 1}, Reason.BAD_VALUE, "measured.messages"),
        ({"rate": 1e300}, Reason.BAD_VALUE, "measured.rate"),
        ({"smds": {"QM01": {"messages": 2**31}}}, Reason.BAD_VALUE, "measured.smds.QM01.messages"),
        ({"messages": 1, "x": "x" * 65_536}, Reason.BAD_VALUE, "measured has 65"),
        ({"usage_pct": "5"}, Reason.WRONG_TYPE, "measured.usage_pct"),
        ({"usage_pct": -0.5}, Reason.BAD_VALUE, "measured.usage_pct"),
        ({"smds": []}, Reason.WRONG_TYPE, "measured.smds"),
        ({"queues": {}}, Reason.WRONG_TYPE, "measured.queues"),
        ({"queues": [5]}, Reason.WRONG_TYPE, "measured.queues[0]"),
        ({"queues": [{"depth": 5}]}, Reason.WRONG_TYPE, "measured.queues[0]"),
        ({"queues": [{"name": ""}]}, Reason.BAD_VALUE, "measured.queues[0].name"),
        ({"queues": [{"name": "A"}] * 201}, Reason.BAD_VALUE, "measured.queues has 201 queues"),
        ({"queues": [{"name": "A", "getters": "1"}]}, Reason.WRONG_TYPE, "measured.queues.A.getters"),
        ({"queues": [{"name": "A", "getters": -1}]}, Reason.BAD_VALUE, "measured.queues.A.getters"),
        ({"queues": [{"name": "A", "depth": 2**31}]}, Reason.BAD_VALUE, "measured.queues.A.depth"),
        ({"queues": [{"name": "A", "last_get": 5}]}, Reason.WRONG_TYPE, "measured.queues.A.last_get"),
        ({"queues": [{"name": "A", "last_get": "00:31"}]}, Reason.BAD_TIME, "measured.queues.A.last_get"),
        ({"messages": 5, "asked": "QM01"}, Reason.WRONG_TYPE, "measured.asked"),
        ({"messages": 5, "asked": [""]}, Reason.BAD_VALUE, "measured.asked"),
        ({"smds": {"QM01": 5}}, Reason.WRONG_TYPE, "measured.smds.QM01"),
        ({"smds": {"QM01": {"pages_used": "5"}}}, Reason.WRONG_TYPE, "measured.smds.QM01.pages_used"),
        ({"smds": {"QMD1": {"pages_used": 5}}}, Reason.BAD_VALUE, "measured.smds"),
        ({"scm": {"used": 0.5}}, Reason.WRONG_TYPE, "measured.scm.used"),
    ],
)
def test_a_measurement_is_numbers(
    decoder: Decoder, measured: dict[str, object] | None, reason: Reason, where: str
) -> None:
    reject = refused(decoder, STORE_EVENT | {"op": "MEASURE", "measured": measured})
    assert reject.reason == reason
    assert reject.detail.startswith(where)


def test_unknown_fields_are_ignored(decoder: Decoder) -> None:
    more = {
        "app": "A1",
        "tags": {"a": [1, {"b": None}, [], {}], "c": -1.5e3},
        "cpu": 0.25,
        "x": True,
        "\u00e9": "\u00e9",
    }
    assert accept(decoder, PUT | more) == accept(decoder, PUT)


def test_of_a_repeated_name_the_last_counts(decoder: Decoder) -> None:
    decoded = decoder.json([text(PUT)[:-1] + b',"length":7}'])
    assert decoded.events["length"].tolist() == [7]


@pytest.mark.parametrize(
    "value",
    [
        *(b"", b" ", b"{", b"{}}", b'{"a":1,}', b"junk", b"{'a':1}", b'{"a":01}', b'{"a":NaN}', b'{"a":"\x01"}'),
        *(b'{"qmgr":"\xff"}', b'\xef\xbb\xbf{"a":1}', b'{"qmgr":"\\ud800"}', b"[1] x", text(PUT) * 2),
        b'{"a":' + b"[" * 100_000,
    ],
)
def test_bytes_that_are_not_json(decoder: Decoder, value: bytes) -> None:
    assert refused(decoder, value).reason == Reason.NOT_JSON


@pytest.mark.parametrize("value", [b"[]", b"[1,2]", b"5", b'"PUT"', b"null", b"true", b"0.5"])
def test_json_that_is_not_an_object(decoder: Decoder, value: bytes) -> None:
    assert refused(decoder, value).reason == Reason.NOT_AN_OBJECT


@pytest.mark.parametrize("number", [b"1e999", b"1" * 5000])
def test_a_number_beyond_all_bounds(decoder: Decoder, number: bytes) -> None:
    value = text(PUT).replace(b'"length":2048', b'"length":' + number)
    assert refused(decoder, value).reason == Reason.BAD_VALUE


def test_an_empty_object(decoder: Decoder) -> None:
    assert refused(decoder, b"{}").reason == Reason.MISSING_FIELD


def test_a_record_without_value(decoder: Decoder) -> None:
    decoded = decoder.json(pa.array([text(PUT), None], pa.binary()))
    assert len(decoded) == 1
    assert [(r.record, r.reason, r.value) for r in decoded.rejects] == [(1, Reason.NOT_JSON, b"")]
    assert not decoder.ndjson(pa.array([None], pa.binary())).rejects


def test_a_long_wrong_value_is_cut_in_the_detail_and_whole_in_the_value(decoder: Decoder) -> None:
    reject = refused(decoder, PUT | {"msgid": "x" * 1_000_000})
    assert len(reject.detail) < 200
    assert len(reject.value) > 1_000_000


def test_lines_are_numbered_with_empty_ones_counted(decoder: Decoder) -> None:
    item = b"\n".join([text(PUT), b"", b" \t\r", text(GET), b"junk", text(GET)])
    two = text(GET) + b"\r\n" + b"{} \r\n"
    decoded = decoder.ndjson([item, b"", b"\n", two])
    assert list(zip(decoded.record.tolist(), decoded.index.tolist(), strict=True)) == [(0, 0), (0, 3), (0, 5), (3, 0)]
    assert [(r.record, r.index, r.reason, r.value) for r in decoded.rejects] == [
        (0, 4, Reason.NOT_JSON, b"junk"),
        (3, 1, Reason.MISSING_FIELD, b"{} "),
    ]


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string()], ids=str
)
def test_values_come_in_any_binary_array(decoder: Decoder, kind: pa.DataType) -> None:
    values = pa.array([b"skipped", text(PUT), None, text(GET)], pa.binary()).cast(kind)[1:]
    for inputs in (values, pa.chunked_array([values[:1], values[1:]]), pa.chunked_array([values])):
        decoded = decoder.json(inputs)
        assert decoded.record.tolist() == [0, 2]
        assert [r.record for r in decoded.rejects] == [1]
    assert len(decoder.json(pa.chunked_array([], kind))) == 0


def test_records_of_every_content_type_keep_their_order(decoder: Decoder) -> None:
    lines = text(GET) + b"\nx\n" + text(PUT)
    values = [text(PUT), lines, text(GET), b"zip", b"junk", lines]
    headers = [
        *(None, b"application/x-ndjson", "Application/JSON; charset=utf-8", b"application/zip"),
        *(b"application/vnd.apache.arrow.stream", "application/x-ndjson;x=y"),
    ]
    decoded = decoder.records(values, headers)
    assert list(zip(decoded.record.tolist(), decoded.index.tolist(), strict=True)) == [
        *((0, 0), (1, 0), (1, 2), (2, 0), (5, 0), (5, 2))
    ]
    assert [(r.record, r.index, r.reason) for r in decoded.rejects] == [
        (1, 1, Reason.NOT_JSON),
        (3, 0, Reason.UNKNOWN_CONTENT_TYPE),
        (4, 0, Reason.BAD_ARROW),
        (5, 1, Reason.NOT_JSON),
    ]
    assert "application/zip" in decoded.rejects[1].detail
    assert decoded.events["op"].tolist() == [0, 1, 0, 1, 1, 0]


def test_no_records(decoder: Decoder, estate: Estate) -> None:
    for decoded in (decoder.json([]), decoder.ndjson([]), decoder.arrow([]), decoder.records([], [])):
        assert len(decoded) == 0
        assert decoded.rejects == []
        assert decoded.blocks(estate) == []


def test_every_reason_has_a_sentence() -> None:
    for reason in Reason:
        assert reason.sentence.endswith(".")
        assert str(reason) == reason.value


def with_other(value: str) -> bytes:
    """Return an event with a field that no event has."""
    return text(PUT)[:-1] + b',"other": ' + value.encode() + b"}"


@pytest.mark.parametrize(
    "value",
    ["1e5", "-0.5E+3", "1E-7", '[1, [2, {}], {"a": [true, null, false]}]', '{"a": {"b": "c"}, "d": []}', "[[[[]]]]"],
)
def test_an_unknown_field_of_any_shape_is_left_out(decoder: Decoder, value: str) -> None:
    decoded = decoder.json([with_other(value)])
    assert not decoded.rejects
    assert decoded.events[0] == accept(decoder, PUT)


@pytest.mark.parametrize(
    "value",
    [
        "1e",
        "1.",
        "01",
        "-",
        "tru",
        '"a',
        "[1 2]",
        "[,]",
        "[1",
        "[1,",
        '["a]',
        '{"a" 1}',
        "{1: 2}",
        '{"a": 1,}',
        '{"a"',
        '{"a":',
    ],
)
def test_an_unknown_field_that_is_no_json_refuses_the_event(decoder: Decoder, value: str) -> None:
    assert refused(decoder, with_other(value)).reason == Reason.NOT_JSON


@pytest.mark.parametrize("end", [b"", b",", b', "a', b', "a"', b', "a":', b', "a" 1}', b', "a": 1', b" 1}"])
def test_an_event_that_is_cut_off_or_continues_wrongly_is_not_json(decoder: Decoder, end: bytes) -> None:
    assert refused(decoder, text(PUT)[:-1] + end).reason == Reason.NOT_JSON


# --- what a page was worth --------------------------------------------------------------------------------------------

NOON = 1_795_176_000_000_000
NOTE = {"time": PUT["time"], "qmgr": "anybody", "op": "NOTE", "store": "QSG1/APP1"}


def word(opened: Any, answer: Any, **others: Any) -> dict[str, Any]:
    return {"attributes": {"opened": opened, "word": answer} | others}


@pytest.mark.parametrize("opened", [NOON, "2026-11-20T12:00:00Z"])
def test_an_event_has_the_word_and_the_time_of_the_alert(estate: Estate, opened: Any) -> None:
    decoded = Decoder(estate).json([msgspec.json.encode(NOTE | word(opened, "useless"))])
    assert not decoded.rejects
    assert msgspec.json.decode(decoded.extras[0]) == {"opened": NOON, "word": "useless"}


@pytest.mark.parametrize(
    ("changes", "reason", "detail"),
    [
        (word(NOON, "good"), "bad-attributes", 'word is "good"; expected: useful, useless, none'),
        (word("yesterday", "useful"), "bad-attributes", "opened: "),
        (word(None, "useful"), "bad-attributes", "opened: "),
        (word(NOON, "useful", who="ann"), "bad-attributes", "expected: opened, word"),
        ({"store": "CF01"} | word(NOON, "useful"), "bad-attributes", "expected: a store of messages"),
        ({"store": "X"} | word(NOON, "useful"), "unknown-store", 'there is no store "X"; expected: CF01'),
        ({}, "missing-field", "attributes is missing, which NOTE needs"),
    ],
)
def test_what_is_no_word_is_a_dead_letter(estate: Estate, changes: dict[str, Any], reason: str, detail: str) -> None:
    [reject] = Decoder(estate).json([msgspec.json.encode(NOTE | changes)]).rejects
    assert reject.reason == reason
    assert detail in reject.detail
