"""Arrow columns of every type that holds an event, and of types that do not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest

from tests.twin.events.samples import GET, PUT, text
from twin.events import ARROW_SCHEMA, Decoder, Reason, to_table

pytestmark = pytest.mark.uncompiled

HANDED_OVER = PUT | {"seq": 1285, "direct": True, "uow": None, "persistent": False, "queue": "AUDIT"}
EVENTS = [PUT | {"expiry": 2.5}, GET, HANDED_OVER, GET | {"uow": "u", "seq": 0}]


def stream(*tables: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, tables[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for table in tables:
            writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def plain(table: pa.Table) -> pa.Table:
    """Return the table with strings instead of dictionaries."""
    types = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in table.schema]
    return table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))


def with_column(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


@pytest.fixture(scope="module")
def expected(decoder: Decoder) -> list[tuple[Any, ...]]:
    return decoder.json([text(event) for event in EVENTS]).events.tolist()


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return plain(to_table(EVENTS))


def test_the_contracts_columns(decoder: Decoder, expected: list[Any]) -> None:
    table = to_table(EVENTS)
    assert table.schema == ARROW_SCHEMA
    assert decoder.arrow_table(table).events.tolist() == expected
    assert decoder.arrow_table(table.to_batches()[0]).events.tolist() == expected
    decoded = decoder.arrow([stream(table)])
    assert decoded.events.tolist() == expected
    assert decoded.index.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())),
        *(pa.dictionary(pa.uint16(), pa.large_string()), pa.dictionary(pa.int64(), pa.string(), ordered=True)),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["qmgr", "op", "queue", "msgid", "uow"])
def test_strings_of_any_layout(
    decoder: Decoder, table: pa.Table, expected: list[Any], name: str, kind: pa.DataType
) -> None:
    column = table[name].combine_chunks()
    column = (column.dictionary_encode() if pa.types.is_dictionary(kind) else column).cast(kind)
    assert decoder.arrow_table(with_column(table, name, column)).events.tolist() == expected


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.uint64()])
def test_integers_of_any_width(decoder: Decoder, table: pa.Table, expected: list[Any], kind: pa.DataType) -> None:
    for name in ("priority", "reason"):
        assert decoder.arrow_table(with_column(table, name, table[name].cast(kind))).events.tolist() == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+02:00"])
def test_timestamps_of_any_unit_and_zone(decoder: Decoder, unit: str, zone: str) -> None:
    whole = to_table([PUT | {"time": "2026-11-20T12:00:00Z"}, GET])
    times = whole["time"].cast(pa.timestamp(unit, zone), safe=False)
    decoded = decoder.arrow_table(with_column(whole, "time", times))
    assert decoded.events["time"].tolist() == [1_795_176_000_000_000] * 2


def test_nanoseconds_are_cut_off(decoder: Decoder, table: pa.Table) -> None:
    times = pa.array([1_795_176_000_000_000_999] * 4, pa.int64()).cast(pa.timestamp("ns", "UTC"))
    assert decoder.arrow_table(with_column(table, "time", times)).events["time"].tolist() == [1_795_176_000_000_000] * 4


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.string(), pa.large_string()], ids=str)
def test_times_as_in_json(decoder: Decoder, table: pa.Table, expected: list[Any], kind: pa.DataType) -> None:
    if pa.types.is_integer(kind):
        times = table["time"].cast(pa.int64()).cast(kind)
    else:
        times = pa.array([PUT["time"], "2026-11-20T13:00:00+01:00", PUT["time"], "2026-11-20T12:00:00Z"], kind)
    assert decoder.arrow_table(with_column(table, "time", times)).events.tolist() == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, -(2**63), 946_684_799])
def test_timestamps_out_of_range(decoder: Decoder, unit: str, number: int) -> None:
    times = pa.array([number], pa.int64()).cast(pa.timestamp(unit, "UTC"))
    decoded = decoder.arrow_table(with_column(to_table([PUT]), "time", times))
    assert [r.reason for r in decoded.rejects] == [Reason.BAD_TIME]
    msgspec.json.decode(decoded.rejects[0].value)


def test_a_missing_column_is_absent_in_every_row(decoder: Decoder) -> None:
    whole = to_table([GET])
    assert len(decoder.arrow_table(whole.select(["time", "qmgr", "op", "queue"]))) == 1
    for name in ("time", "qmgr", "op", "queue"):
        decoded = decoder.arrow_table(whole.drop_columns([name]))
        assert [r.reason for r in decoded.rejects] == [Reason.MISSING_FIELD]
    nulls = with_column(whole, "seq", pa.nulls(1))
    assert decoder.arrow_table(nulls).events["seq"].tolist() == [-1]


def test_of_two_columns_of_a_name_the_last_counts(decoder: Decoder) -> None:
    whole = to_table([PUT])
    decoded = decoder.arrow_table(whole.append_column("length", pa.array([7], pa.int32())))
    assert decoded.events["length"].tolist() == [7]


@pytest.mark.parametrize(
    ("name", "column", "reason"),
    [
        ("time", pa.array([0], pa.int64()).cast(pa.timestamp("us")), Reason.WRONG_TYPE),
        ("time", pa.array([1.5]), Reason.WRONG_TYPE),
        ("time", pa.array([20_000], pa.int32()).cast(pa.date32()), Reason.WRONG_TYPE),
        ("time", pa.array([True]), Reason.WRONG_TYPE),
        ("time", pa.array(["yesterday"]), Reason.BAD_TIME),
        ("qmgr", pa.array([1]), Reason.WRONG_TYPE),
        ("op", pa.array([b"PUT"]), Reason.WRONG_TYPE),
        ("queue", pa.array([["ORDERS"]]), Reason.WRONG_TYPE),
        ("msgid", pa.array([b"A"]), Reason.WRONG_TYPE),
        ("msgid", pa.array([""]), Reason.BAD_VALUE),
        ("uow", pa.array([7]), Reason.WRONG_TYPE),
        ("seq", pa.array([2**64 - 1], pa.uint64()), Reason.BAD_VALUE),
        ("seq", pa.array(["1"]), Reason.WRONG_TYPE),
        ("length", pa.array([5.0]), Reason.WRONG_TYPE),
        ("length", pa.array([True]), Reason.WRONG_TYPE),
        ("length", pa.array([Decimal(5)]), Reason.WRONG_TYPE),
        ("count", pa.array([2], pa.int8()), Reason.BAD_VALUE),
        ("persistent", pa.array([1]), Reason.WRONG_TYPE),
        ("direct", pa.array(["true"]), Reason.WRONG_TYPE),
        ("store", pa.array([5]), Reason.WRONG_TYPE),
        ("attributes", pa.array(["[]"]), Reason.WRONG_TYPE),
        ("attributes", pa.array(["{"]), Reason.WRONG_TYPE),
        ("attributes", pa.array([5]), Reason.WRONG_TYPE),
    ],
    ids=lambda value: f"{value.type} {value[0]}" if isinstance(value, pa.Array) else str(value),
)
def test_a_column_of_another_type_refuses_each_row_that_has_a_value(
    decoder: Decoder, name: str, column: pa.Array, reason: Reason
) -> None:
    whole = plain(to_table([PUT, PUT]))
    item = pa.chunked_array([column, pa.nulls(1, column.type)])
    decoded = decoder.arrow_table(with_column(whole, name, item))
    first = decoded.rejects[0]
    assert (first.index, first.reason) == (0, reason)
    assert first.detail.startswith(f"{name} is ")
    assert set(msgspec.json.decode(first.value)) == {*PUT, name}
    required = name in ("time", "qmgr", "op", "queue", "length")
    assert [r.reason for r in decoded.rejects[1:]] == ([Reason.MISSING_FIELD] if required else [])
    assert len(decoded) == (0 if required else 1)


def test_objects_are_json_text_or_structs(decoder: Decoder) -> None:
    event = {"time": PUT["time"], "qmgr": "QM01", "op": "ALTER", "store": "QSG1/APP1", "attributes": {"offld1_th": 60}}
    measure = event | {"op": "MEASURE", "attributes": None, "measured": {"messages": 5}}
    as_text = to_table([event, measure])
    structs = with_column(as_text, "attributes", pa.array([{"offld1_th": 60, "size": None}, None]))
    structs = with_column(structs, "measured", pa.array([None, {"messages": 5, "smds": None}]))
    for inputs in (as_text, structs):
        decoded = decoder.arrow_table(inputs)
        assert decoded.extras == {0: b'{"offld1_th":60}', 1: b'{"messages":5}'}


def test_a_refused_row_is_its_value_as_json_with_every_column(decoder: Decoder) -> None:
    whole = to_table([PUT, PUT | {"length": 5}])
    lengths = pa.array([2048, -5])
    more = (
        with_column(whole, "length", lengths)
        .append_column("app", pa.array(["A", "B"]))
        .append_column("when", pa.array([1, 2], pa.int64()).cast(pa.timestamp("ns")))
    )
    (reject,) = decoder.arrow_table(more).rejects
    assert (reject.index, reject.reason) == (1, Reason.BAD_VALUE)
    want = PUT | {"length": -5, "app": "B", "when": "1970-01-01 00:00:00.000000002"}
    assert msgspec.json.decode(reject.value) == want


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2], pa.int64()).cast(pa.duration("us")),
        pa.array([Decimal("1.5"), None]),
        pa.array([b"\xff", None]),
        pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int8())),
        pa.array([2**62, None], pa.int64()).cast(pa.timestamp("s")),
        pa.array([[2**62], None], pa.list_(pa.int64())).cast(pa.list_(pa.timestamp("s"))),
        pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
        pa.array([float("nan"), 1.0]),
        pa.array(["x", "x"]).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int16()), pa.array(["x"])),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_that_no_event_has_do_no_harm(decoder: Decoder, column: pa.Array) -> None:
    whole = to_table([PUT, PUT | {"length": 5}])
    whole = with_column(whole, "length", pa.array([2048, -5])).append_column("other", column)
    decoded = decoder.arrow_table(whole)
    assert decoded.index.tolist() == [0]
    assert [r.index for r in decoded.rejects] == [1]
    assert msgspec.json.decode(decoded.rejects[0].value)["length"] == -5


def test_columns_of_strange_types_under_known_names(decoder: Decoder) -> None:
    column = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int16()), pa.array(["PUT"]))
    decoded = decoder.arrow_table(with_column(to_table([PUT, PUT]), "op", column))
    assert [r.reason for r in decoded.rejects] == [Reason.WRONG_TYPE] * 2


# --- streams ---------------------------------------------------------------------------------------------------------


def test_rows_are_numbered_through_the_batches_of_a_record(decoder: Decoder) -> None:
    good, bad = to_table([PUT, GET]), to_table([GET, PUT, GET])
    bad = with_column(bad, "priority", pa.array([0, 11, 0], pa.int8()))
    decoded = decoder.arrow([stream(good, bad), stream(good), stream(bad, good, bad)])
    places = list(zip(decoded.record.tolist(), decoded.index.tolist(), strict=True))
    assert places == [(0, 0), (0, 1), (0, 2), (0, 4), (1, 0), (1, 1), *((2, n) for n in (0, 2, 3, 4, 5, 7))]
    assert [(r.record, r.index) for r in decoded.rejects] == [(0, 3), (2, 1), (2, 6)]


def test_records_of_different_schemas_keep_their_order(decoder: Decoder) -> None:
    whole = to_table([PUT, GET])
    values = [stream(whole), stream(plain(whole)), stream(whole), stream(plain(whole), compression="lz4")]
    values.append(stream(whole.select(["queue", "op", "qmgr", "time", "length"]), compression="zstd"))
    values.append(stream(whole.replace_schema_metadata({"a": "b"})))
    decoded = decoder.arrow(values)
    assert decoded.record.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert decoded.index.tolist() == [0, 1] * 6
    assert decoded.events["op"].tolist() == [0, 1] * 6


def test_dictionaries_that_do_not_fit_together(decoder: Decoder) -> None:
    def record(first: int) -> bytes:
        ids = pa.array([f"m{n}" for n in range(first, first + 100)])
        indices = pa.array(range(100), pa.int8())
        queues = pa.array([f"Q{n}" for n in range(first, first + 99)] + ["ORDERS"])
        whole = plain(to_table([GET] * 100))
        whole = with_column(whole, "msgid", pa.DictionaryArray.from_arrays(indices, ids))
        return stream(with_column(whole, "queue", pa.DictionaryArray.from_arrays(indices, queues)))

    decoded = decoder.arrow([record(0), record(100), record(200)])
    assert decoded.record.tolist() == [0, 1, 2]
    assert decoded.index.tolist() == [99, 99, 99]
    assert len(set(decoded.events["msgid"].tolist())) == 3
    assert {r.reason for r in decoded.rejects} == {Reason.UNKNOWN_QUEUE}


def test_a_dictionary_may_hold_null(decoder: Decoder) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["ORDERS", None]))
    decoded = decoder.arrow_table(with_column(to_table([GET] * 3), "queue", words))
    assert decoded.index.tolist() == [0]
    assert [(r.index, r.reason) for r in decoded.rejects] == [(1, Reason.MISSING_FIELD), (2, Reason.MISSING_FIELD)]


def test_very_many_names(decoder: Decoder) -> None:
    count = 2000
    whole = plain(to_table([GET] * count))
    whole = with_column(whole, "qmgr", pa.array([f"Q{n}" for n in range(count - 1)] + ["QM01"]))
    whole = with_column(whole, "queue", pa.array([f"Q{n}" for n in range(count - 1)] + ["ORDERS"]))
    decoded = decoder.arrow_table(whole)
    assert decoded.index.tolist() == [count - 1]
    assert len(decoded.rejects) == count - 1


def test_empty_tables_and_streams(decoder: Decoder) -> None:
    for inputs in (to_table([]), to_table([PUT]).slice(1), pa.table({})):
        assert len(decoder.arrow_table(inputs)) == 0
    assert not decoder.arrow([stream(to_table([]))]).rejects


def test_slices_of_a_table(decoder: Decoder) -> None:
    whole = to_table([PUT | {"seq": n} for n in range(10)] + [GET])
    decoded = decoder.arrow_table(whole.slice(3, 5))
    assert decoded.events["seq"].tolist() == [3, 4, 5, 6, 7]
    assert np.unique(decoded.events["msgid"]).size == 1
