"""Events between dictionaries, JSON lines and Arrow tables."""

from __future__ import annotations

import re
from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from hypothesis import given, settings

from tests.support.profile import examples
from tests.twin.events.samples import GET, PUT, text
from twin.events import ARROW_SCHEMA, Decoder, EventError, from_table, to_table
from twin.events.convert import Words, arrow_value, conform, json_lines, lines_table
from twin.events.fields import FIELDS

pytestmark = pytest.mark.uncompiled

MEASURE = {
    "time": PUT["time"],
    "qmgr": "QM01",
    "op": "MEASURE",
    "store": "QSG1/APP1",
    "measured": {"messages": 5, "smds": {"QM01": {"blocks_used": 1}}},
}
ALTER = {**MEASURE, "op": "ALTER", "measured": None, "attributes": {"size": "8G", "text": 'with "quotes"\n'}}

strings = st.text(min_size=1, max_size=12)
events = st.fixed_dictionaries(
    {
        "time": st.integers(946_684_800_000_000, 4_133_980_799_999_999),
        "qmgr": strings,
        "op": st.sampled_from(["PUT", "GET", "MEASURE"]),
    },
    optional={
        "seq": st.integers(0, 2**63 - 1),
        "queue": strings,
        "msgid": strings,
        "count": st.integers(1, 1_000_000),
        "length": st.integers(0, 104_857_600),
        "priority": st.integers(0, 9),
        "persistent": st.booleans(),
        "uow": st.text(max_size=5),
        "direct": st.booleans(),
        "reason": st.integers(0, 2**31 - 1),
        "store": strings,
        "attributes": st.dictionaries(strings, st.integers(0, 9) | strings, max_size=2),
        "measured": st.dictionaries(strings, st.integers(0, 9), max_size=2),
    },
)


def as_written(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event with its time as written in recordings."""
    seconds, rest = divmod(event["time"], 1_000_000)
    whole = np.datetime64(seconds, "s").item().isoformat()
    return {**event, "time": f"{whole}.{rest:06d}Z"}


@given(st.lists(events, max_size=6))
@settings(max_examples=examples(400))
def test_a_table_and_back(sent: list[dict[str, Any]]) -> None:
    table = to_table(sent)
    assert table.schema == ARROW_SCHEMA
    table.validate(full=True)
    assert from_table(table) == [as_written(event) for event in sent]
    assert [msgspec.json.decode(line) for line in json_lines(table).to_pylist()] == [
        as_written(event) for event in sent
    ]


def test_the_columns_are_the_fields() -> None:
    assert ARROW_SCHEMA.names == [field.name for field in FIELDS]


def test_null_is_absent_and_unknown_fields_are_left_out() -> None:
    assert from_table(to_table([GET | {"seq": None, "app": "A"}])) == [as_written(GET)]


@pytest.mark.parametrize(("name", "value"), [("length", "5"), ("length", -1), ("time", "today"), ("persistent", 1)])
def test_a_wrong_value_names_its_event(name: str, value: object) -> None:
    with pytest.raises(EventError, match=f"^event 1: {name} is "):
        to_table([PUT, PUT | {name: value}])


def test_lines_become_a_table_without_checks() -> None:
    sent = [PUT, GET, MEASURE, ALTER, GET | {"time": "2026-11-20T13:00:00+01:00", "app": "A"}]
    assert lines_table(map(text, sent)) == to_table(sent)
    assert lines_table([]).schema == ARROW_SCHEMA


def test_json_lines_have_the_contracts_order_and_no_line_breaks() -> None:
    put, alter = json_lines(to_table([PUT, ALTER])).to_pylist()
    assert put == (
        '{"time":"2026-11-20T12:00:00.000123Z","qmgr":"QM01","seq":1284,"op":"PUT","queue":"ORDERS",'
        '"msgid":"414d5120514d303120202020a1b2c3d4e5f60708","length":2048,"priority":4,"persistent":true,'
        '"uow":"c5a1","reason":0}'
    )
    assert alter == (
        '{"time":"2026-11-20T12:00:00.000123Z","qmgr":"QM01","op":"ALTER","store":"QSG1/APP1",'
        '"attributes":{"size":"8G","text":"with \\"quotes\\"\\n"}}'
    )
    pretty = conform(pa.table({"time": [1_795_176_000_000_000], "attributes": ['{\n "a": 1\n}']}))
    assert json_lines(pretty).to_pylist() == ['{"time":"2026-11-20T12:00:00.000000Z","attributes":{"a":1}}']


@pytest.mark.parametrize("odd", ['a"b', "a\\b", "a\nb", "a\u0001b", "\u00e9\U0001f600", ""])
@pytest.mark.parametrize("name", ["qmgr", "queue", "store", "uow"])
def test_strings_are_escaped(name: str, odd: str) -> None:
    (line,) = json_lines(to_table([PUT | {name: odd}])).to_pylist()
    assert msgspec.json.decode(line) == PUT | {name: odd}


def test_a_table_of_any_columns_is_conformed(decoder: Decoder) -> None:
    inputs = pa.table(
        {
            "queue": pa.array(["ORDERS", "AUDIT", None], pa.large_string()),
            "time": pa.array(["2026-11-20T12:00:00Z", "2026-11-20T14:00:00+02:00", "2026-11-20T12:00:00.5Z"]),
            "qmgr": pa.array(["QM01"] * 3).dictionary_encode(),
            "op": pa.array(["PUT", "GET", "MEASURE"], pa.string_view()),
            "length": pa.array([5, None, None], pa.uint64()),
            "store": pa.array([None, None, "QSG1/APP1"]),
            "measured": pa.array([None, None, {"messages": 1, "ents_used": None}]),
            "app": [1, 2, 3],
        }
    )
    table = conform(inputs)
    assert table.schema == ARROW_SCHEMA
    assert decoder.arrow_table(table).events.tolist() == decoder.arrow_table(inputs).events.tolist()
    assert len(decoder.arrow_table(table)) == 3


@pytest.mark.parametrize(
    "column",
    [
        *({"length": [2**40]}, {"length": ["5"]}, {"length": [5.0]}, {"persistent": [1]}, {"priority": [True]}),
        *(
            {"time": ["today"]},
            {"time": pa.array([1], pa.timestamp("us"))},
            {"time": [1.5]},
            {"msgid": [5]},
            {"op": [5]},
        ),
    ],
    ids=lambda column: str(pa.table(column).schema.field(0)),  # str of an Arrow array has its address
)
def test_a_column_that_does_not_fit_is_named(column: dict[str, Any]) -> None:
    with pytest.raises(EventError, match=f"^column {next(iter(column))} is .*; expected: "):
        conform(pa.table(column))


def test_dictionaries_grow() -> None:
    words = Words()
    first = conform(to_table([PUT, GET]), words)
    second = conform(to_table([PUT | {"queue": "AUDIT"}, GET]), words)
    assert first["queue"].chunk(0).dictionary.to_pylist() == ["ORDERS", "PAYMENTS"]
    assert second["queue"].chunk(0).dictionary.to_pylist() == ["ORDERS", "PAYMENTS", "AUDIT"]
    with pytest.raises(EventError, match=r"column op .* expected: dictionary"):
        conform(pa.table({"op": [f"OP{n}" for n in range(200)]}), words)


def test_a_record_of_rows_is_no_larger_than_its_rows(decoder: Decoder) -> None:
    whole = to_table([PUT | {"queue": f"Q{n}", "seq": n} for n in range(1000)] + [PUT, GET])
    value = arrow_value(whole.slice(1000))
    table = pa.ipc.open_stream(value).read_all()
    assert table["queue"].chunk(0).dictionary.to_pylist() == ["ORDERS", "PAYMENTS"]
    assert "measured" not in table.column_names
    assert decoder.arrow([value]).events.tolist() == decoder.json([text(PUT), text(GET)]).events.tolist()


def test_usual_events_take_about_48_bytes_in_arrow() -> None:
    sent = [{**(PUT if n % 2 else GET), "seq": n, "msgid": f"{n * 7919:016x}", "uow": None} for n in range(5000)]
    assert len(arrow_value(to_table(sent))) < 60 * 5000


def test_times_are_written_as_in_the_contract() -> None:
    assert all(
        re.fullmatch(r"....-..-..T..:..:..\.\d{6}Z", event["time"]) for event in from_table(to_table([PUT, GET]))
    )
