"""The fast ways and the exact rules make the same of every event."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings

from kernels.json_scan import rfc3339_column
from tests.support.profile import examples
from tests.twin.events.samples import GET, PUT, assert_same, exactly, text
from twin.events import Decoder
from twin.events.fields import OPS, microseconds
from twin.events.rules import Rules

pytestmark = pytest.mark.uncompiled

times = st.one_of(
    st.integers(1_795_000_000_000_000, 1_796_000_000_000_000),
    st.datetimes().map(lambda time: time.isoformat() + "Z"),
    st.from_regex(
        r"20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,9})?", fullmatch=True
    ).flatmap(lambda time: st.sampled_from(["Z", "z", "+00:00", "-05:30", "+24:00", ""]).map(lambda zone: time + zone)),
)
right = {
    "time": times,
    "qmgr": st.sampled_from(["QM01", "QM02", "QMD1", "QM03"]),
    "seq": st.integers(-1, 2**63),
    "op": st.sampled_from([*OPS, "PUT", "GET", "PUT", "GET", "put"]),
    "queue": st.sampled_from(["ORDERS", "ORDERS.IN", "AUDIT", "LOCAL.REPLIES", "INVOICES", "NONE"]),
    "msgid": st.text(max_size=50),
    "count": st.integers(0, 3),
    "length": st.integers(-1, 104_857_601),
    "priority": st.integers(-1, 10),
    "persistent": st.booleans(),
    "expiry": st.one_of(st.integers(-1, 100_000_000), st.floats(-1, 10, allow_nan=False), st.just(99_999_999.5)),
    "uow": st.text(max_size=8),
    "direct": st.booleans(),
    "reason": st.integers(-1, 2**31),
    "store": st.sampled_from(["QSG1/APP1", "QM01/PS04", "NONE"]),
    "attributes": st.fixed_dictionaries({}, optional={"offld1_th": st.integers(-1, 101), "size": st.just("512M")}),
    "plan": st.fixed_dictionaries(
        {"id": st.sampled_from(["A", ""])},
        optional={"cancelled": st.booleans(), "rrule": st.just("FREQ=DAILY"), "duration_s": st.integers(-1, 60)},
    ),
    "measured": st.fixed_dictionaries({}, optional={"messages": st.integers(-1, 5), "usage_pct": st.floats(-1, 1)}),
}
anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([{"a": 1}]),
)
base = st.sampled_from([PUT, GET, {}])


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an event with some fields changed, some of them to anything."""
    event = dict(draw(base))
    for name in draw(st.lists(st.sampled_from(list(right)), max_size=4)):
        event[name] = draw(right[name])
    if draw(st.integers(0, 3)) == 0:
        event[draw(st.sampled_from([*right, "other"]))] = draw(anything)
    if draw(st.integers(0, 5)) == 0:
        event.pop(draw(st.sampled_from(list(right))), None)
    names = draw(st.permutations(list(event)))
    return {name: event[name] for name in names}


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """Draw an event as JSON in any format, sometimes damaged."""
    event = draw(events())
    value = json.dumps(
        event,
        ensure_ascii=draw(st.booleans()),
        separators=draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,", "\t:\r")])),
    ).encode("utf-8", "surrogatepass")
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        start = draw(st.integers(0, len(value)))
        other = draw(
            st.sampled_from([b"", b" ", b"\\", b'"', b"0", b".", b"e", b"{", b"}", b",", b"null,", b"\xff", b"-"])
        )
        value = value[:start] + other + value[start + draw(st.integers(0, 2)) :]
    return value


@given(st.lists(texts(), max_size=8))
@settings(max_examples=examples(1200))
@example([b'{"time":1795176000000000,"qmgr":"QM01","op":"GET","queue":"ORDERS","x":[{"a":[]}]}'])
@example([b'{"time":1795176000000000,"qmgr":"QM01","op":"GET","queue":"ORDERS","x":[}]}'])
@example([b'{"time":1795176000000000,"qmgr":"QM01","op":"GET","queue":"ORDERS","x":{"a":1]}'])
@example([b'{"time":1795176000000000,"qmgr":"QM01","op":"GET","queue":"ORDERS","x":1.}'])
@example([b'{"time":1795176000000000,"qmgr":"QM01","op":"GET","queue":"ORDERS","x":-01e+5}'])
@example([b'{"time":1795176000000000,"qmgr":"QM01","op":"GET","queue":"ORDERS","seq":123456789012345678901}'])
def test_json(decoder: Decoder, rules: Rules, values: list[bytes]) -> None:
    assert_same(decoder.json(values), exactly(rules, values))


@given(st.lists(texts().filter(lambda value: b"\n" not in value and value.strip(b" \t\r")), max_size=8))
@settings(max_examples=examples(300))
def test_lines(decoder: Decoder, rules: Rules, values: list[bytes]) -> None:
    values = [value.rstrip(b"\r") for value in values]
    want = exactly(rules, values)
    decoded = decoder.ndjson([b"\n".join(values)])
    assert decoded.events.tolist() == want.events.tolist()
    assert decoded.index.tolist() == want.record.tolist()
    assert [(r.index, r.reason, r.value) for r in decoded.rejects] == [
        (r.record, r.reason, r.value) for r in want.rejects
    ]


@given(st.lists(times, max_size=20))
def test_times(written: list[str | int]) -> None:
    strings = pa.array([time for time in written if isinstance(time, str)], pa.large_string())
    offsets = np.frombuffer(strings.buffers()[1], np.int64, len(strings) + 1) if len(strings) else np.zeros(1, np.int64)
    data = np.frombuffer("".join(strings.to_pylist()).encode() + b"\0", np.uint8)
    out = np.zeros(len(strings), np.int64)
    rfc3339_column(offsets, data, out)
    for text_, time in zip(strings.to_pylist(), out.tolist(), strict=True):
        # What it is unsure of, the exact rules look at.
        assert time in (microseconds(text_), -1)
        assert time != -1 or microseconds(text_) is None or ":60" in text_ or text_ < "1970"


# --- Arrow -----------------------------------------------------------------------------------------------------------

STRINGS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
INTEGERS = [pa.int64(), pa.int64(), pa.int32(), pa.uint64(), pa.int16(), pa.float64(), pa.string()]


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Events as a table with columns of any type that holds them, and the fields that each row then has."""
    count = draw(st.integers(0, 12))
    rows: list[dict[str, Any]] = [{} for _ in range(count)]
    columns = {}
    for name, value in right.items():
        kind = draw(st.sampled_from(["as sent", "as sent", "as sent", "other", "absent"]))
        if kind == "absent":
            continue
        sent = [draw(st.one_of(st.none(), value, st.just(PUT.get(name)), st.just(GET.get(name)))) for _ in range(count)]
        if name == "time":
            sent = [microseconds(time) if isinstance(time, str) else time for time in sent]
        decimals = any(isinstance(item, float) for item in sent)
        column = draw((float_column if decimals else arrow_column)(sent, kind == "other"))
        columns[name] = column
        for row, plain in zip(rows, column.to_pylist(), strict=True):
            if plain is not None:
                row[name] = plain
    if not columns:
        columns["other"] = pa.array([1] * count)
    return pa.table(columns), rows


@st.composite
def float_column(draw: st.DrawFn, values: list[Any], other: bool) -> pa.Array:
    column = pa.array(values, pa.float64())
    return column.cast(draw(st.sampled_from([pa.float32(), pa.string()]))) if other else column


@st.composite
def arrow_column(draw: st.DrawFn, values: list[Any], other: bool) -> pa.Array:
    first = next((value for value in values if value is not None), None)
    if isinstance(first, bool):
        column = pa.array(values, pa.bool_())
        return column.cast(pa.int8()) if other else column
    if isinstance(first, int):
        fitting = [value if value is None or -(2**63) <= value < 2**63 else 2**63 - 1 for value in values]
        column = pa.array(fitting, pa.int64())
        if not other:
            return column
        try:
            return column.cast(draw(st.sampled_from(INTEGERS)))
        except pa.ArrowInvalid:
            return column
    if isinstance(first, dict):
        return pa.array(
            [value if value is None else msgspec.json.encode(value).decode() for value in values], pa.string()
        )
    column = pa.array(values, pa.string())
    return column.cast(pa.binary()) if other else column.cast(draw(st.sampled_from(STRINGS)))


@given(tables())
@settings(max_examples=examples(600))
def test_arrow(decoder: Decoder, rules: Rules, drawn: tuple[pa.Table, list[dict[str, Any]]]) -> None:
    table, rows = drawn
    for row in rows:
        for name in ("attributes", "measured"):
            if name in row:
                row[name] = msgspec.json.decode(row[name])
    want = exactly(rules, rows)
    decoded = decoder.arrow_table(table)
    assert decoded.events.tolist() == want.events.tolist()
    assert decoded.index.tolist() == want.record.tolist()
    assert decoded.extras == want.extras
    assert [(r.index, r.reason) for r in decoded.rejects] == [(r.record, r.reason) for r in want.rejects]


def test_a_batch_of_every_kind_of_event(decoder: Decoder, rules: Rules) -> None:
    heartbeat = {"time": PUT["time"], "qmgr": "QM02", "op": "HEARTBEAT"}
    measure = {"time": PUT["time"], "qmgr": "QM02", "op": "MEASURE", "store": "QSG1/APP2", "measured": {"messages": 1}}
    values = [text(event) for event in (PUT, heartbeat, GET, measure, {}, heartbeat, PUT, measure)]
    decoded = decoder.json(values)
    assert_same(decoded, exactly(rules, values))
    assert decoded.record.tolist() == [0, 1, 1, 1, 2, 3, 5, 5, 5, 6, 7]
    assert decoded.extras == {5: b'{"messages":1}', 10: b'{"messages":1}'}
