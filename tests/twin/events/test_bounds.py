"""A record of few bytes that stands for very much is one dead letter; memory and dead letters are bounded."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from tests.twin.events import poison
from tests.twin.events.samples import GET, PUT, text
from tests.twin.events.test_arrow import with_column
from twin.estate import Estate
from twin.events import ARROW, NDJSON, Decoded, Decoder, Reason, Reject, to_table
from twin.events.refusals import MAX_EVENT_BYTES, MAX_LETTERS, MAX_ROWS, RECORDING, Limits
from twin.events.rules import Rules

ADDRESS_SPACE = 6_000_000_000  # bytes: what the streams stand for is far more
GROWTH_MB = 150  # of one record, whatever it holds


@pytest.fixture(scope="module")
def came() -> dict[str, dict[str, Any]]:
    """Return the result of each stream of `poison` in a separate process, by name."""
    command = [sys.executable, "-m", "tests.twin.events.poison", str(ADDRESS_SPACE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    return {result["name"]: result for result in map(json.loads, done.stdout.splitlines())}


@pytest.mark.nightly
def test_a_record_takes_bounded_memory_whatever_it_stands_for(came: dict[str, dict[str, Any]]) -> None:
    assert list(came) == [*poison.OVERSIZED, *poison.REFUSED, *poison.MANY]
    assert {name: result["grown_mb"] for name, result in came.items() if result["grown_mb"] > GROWTH_MB} == {}
    assert {name: result["letter_bytes"] for name, result in came.items() if result["letter_bytes"] > 16_000_000} == {}


def test_the_records_beside_it_are_decoded(came: dict[str, dict[str, Any]]) -> None:
    assert {result["good"] for result in came.values()} == {200}


def test_a_record_beyond_the_bounds_is_one_dead_letter(came: dict[str, dict[str, Any]]) -> None:
    assert [came[name]["reasons"] for name in poison.OVERSIZED] == [{"oversized": 1}] * len(poison.OVERSIZED)
    assert {came[name]["events"] for name in poison.OVERSIZED} == {200}


def test_a_record_of_many_refused_rows_is_a_thousand_dead_letters_and_one(came: dict[str, dict[str, Any]]) -> None:
    for name in poison.REFUSED:
        reasons = came[name]["reasons"]
        assert (len(reasons), sum(reasons.values()), reasons["many-rejected"]) == (2, MAX_LETTERS + 1, 1), name


def test_a_record_of_300_000_events_is_taken(came: dict[str, dict[str, Any]]) -> None:
    assert (came["300,000 small events"]["events"], came["300,000 small events"]["reasons"]) == (300_200, {})


def test_the_letter_of_an_oversized_record_says_by_how_much(decoder: Decoder) -> None:
    value = poison.nulls(600_000_000)
    (reject,) = decoder.arrow([value]).rejects
    assert reject == Reject(0, 0, Reason.OVERSIZED, reject.detail, value)
    assert reject.detail == "600000000 rows in 224 bytes; expected: at most 32400 rows"


# --- lines -----------------------------------------------------------------------------------------------------------


def test_more_lines_than_a_record_may_have(decoder: Decoder) -> None:
    good = text(PUT)
    for line in (b"\n", b"x\n", b"{}\n"):
        values = [good, line * (MAX_ROWS + 1), good]
        decoded = decoder.records(values, [NDJSON] * 3)
        assert decoded.record.tolist() == [0, 2]
        (reject,) = decoded.rejects
        assert (reject.record, reject.index, reject.reason) == (1, 0, Reason.OVERSIZED)
        assert reject.detail == f"{MAX_ROWS + 1} lines; expected: at most {MAX_ROWS} lines"


def test_as_many_lines_as_a_record_may_have(decoder: Decoder) -> None:
    decoded = decoder.ndjson([b"\n" * (MAX_ROWS - 1) + text(PUT)])
    assert (decoded.index.tolist(), decoded.rejects) == ([MAX_ROWS - 1], [])


def test_an_event_longer_than_an_event_may_be(decoder: Decoder) -> None:
    long = text(PUT)[:-1] + b',"other":"' + b"o" * MAX_EVENT_BYTES + b'"}'
    for decoded in (decoder.json([text(PUT), long]), decoder.ndjson([text(PUT) + b"\n" + long])):
        assert len(decoded) == 1
        (reject,) = decoded.rejects
        assert (reject.reason, reject.length, reject.value) == (Reason.OVERSIZED, len(long), long[:MAX_EVENT_BYTES])


# --- many rejects ----------------------------------------------------------------------------------------------------


def many(decoded: Decoded) -> Reject:
    """Return the letter about the rest, after a thousand others."""
    assert len(decoded.rejects) == MAX_LETTERS + 1
    assert [reject.index for reject in decoded.rejects] == sorted(reject.index for reject in decoded.rejects)
    last = decoded.rejects[-1]
    assert (last.reason, last.value) == (Reason.MANY_REJECTED, b"")
    return last


LINES = [b"x", b"{}", text(GET), text(GET | {"queue": "NOWHERE"}), b'{"a":%d}'] * 600


def test_lines_beyond_a_thousand_dead_letters_are_counted(decoder: Decoder) -> None:
    lines = [line.replace(b"%d", b"%d" % number) for number, line in enumerate(LINES)]
    decoded = decoder.ndjson([b"\n".join(lines)])
    assert len(decoded) == 600
    last = many(decoded)
    assert last.index == 1250
    assert last.detail == (
        "1400 further events of this record were refused, index 1250 to 2999: 700 missing-field, 350 not-json, "
        "350 unknown-queue; the record itself is still in its topic"
    )


def test_a_recording_keeps_a_dead_letter_for_each_event(decoder: Decoder) -> None:
    decoded = decoder.ndjson([b"\n".join(LINES)], RECORDING)
    assert len(decoded.rejects) == 2400
    assert Reason.MANY_REJECTED not in {reject.reason for reject in decoded.rejects}


def test_rows_beyond_a_thousand_dead_letters_are_counted(decoder: Decoder) -> None:
    rows: list[dict[str, Any]] = [PUT, PUT | {"op": "PEEK"}, PUT | {"op": None}, PUT | {"qmgr": None}] * 5_000
    table = pa.Table.from_pylist(rows)
    for batches in ([table], [table.slice(0, 7_001), table.slice(7_001)]):
        decoded = decoder.arrow([poison.stream(*(result.to_batches()[0] for result in batches))])
        assert len(decoded) == 5_000
        last = many(decoded)
        assert last.index == 1334
        assert last.detail.startswith(
            "14000 further events of this record were refused, index 1334 to 19999: "
            "9334 missing-field, 4666 unknown-op; "
        )


def test_each_record_has_a_thousand_dead_letters_of_its_own(decoder: Decoder) -> None:
    value = b"x\n" * 1_500
    decoded = decoder.records([value, value], [NDJSON] * 2)
    assert Counter(reject.record for reject in decoded.rejects) == {0: 1001, 1: 1001}


def test_damage_beyond_a_thousand_dead_letters_is_counted_with_them(decoder: Decoder) -> None:
    bad = to_table([PUT]).set_column(3, "op", pa.array(["PEEK"]))
    whole = poison.stream(pa.concat_tables([bad] * 1_000).combine_chunks().to_batches()[0])
    decoded = decoder.arrow([whole + b"more"])
    assert "refused, index 1000 to 1000: 1 bad-arrow;" in many(decoded).detail


# --- dead letters are cut when they are made -------------------------------------------------------------------------


def test_a_value_is_cut_to_what_its_topic_takes(estate: Estate) -> None:
    decoder = Decoder(estate, Limits(value_bytes=1000))
    damaged = poison.stream(to_table([PUT]).to_batches()[0]) + b"m" * 5_000
    values = [b"x" * 5_000, text(PUT | {"op": "y" * 5_000}), b"y" * 5_000, damaged]
    rejects = decoder.records(values, [None, None, "text/plain", ARROW]).rejects
    assert [(r.value, r.length) for r in rejects] == [(value[:1000], len(value)) for value in values]


def test_a_row_is_cut_while_its_text_is_built(estate: Estate) -> None:
    decoder = Decoder(estate, Limits(value_bytes=1000))
    rows = pa.Table.from_pylist([PUT | {"op": "PEEK", "other": {"list": ["o" * 300] * 50, "number": 1}}])
    (reject,) = decoder.arrow([poison.stream(rows.to_batches()[0])]).rejects
    assert len(reject.value) == 1000
    whole = msgspec.json.encode({name: column[0] for name, column in rows.to_pydict().items()})
    assert reject.value.startswith(whole[:900])
    assert 15_000 < reject.length < 17_000


def test_a_row_that_fits_is_whole(decoder: Decoder) -> None:
    row = PUT | {"op": "PEEK", "other": {"list": ["o" * 300] * 5, "map": None, "word": "w"}}
    (reject,) = decoder.arrow([poison.stream(pa.Table.from_pylist([row]).to_batches()[0])]).rejects
    assert msgspec.json.decode(reject.value) == row
    assert reject.length == len(reject.value)


# --- whatever goes wrong costs one value -----------------------------------------------------------------------------


def month_intervals(rows: pa.Table) -> bytes:
    """Return a stream with one more column of type month_interval, which pyarrow can read but not write."""
    other = pa.array([(1, 2, 3)] * rows.num_rows, pa.month_day_nano_interval())
    value = poison.stream(rows.append_column("other", other).combine_chunks().to_batches()[0])
    for place in (place for place, byte in enumerate(value[:2_000]) if byte == 2):
        changed = value[:place] + b"\0" + value[place + 1 :]
        try:
            if str(pa.ipc.open_stream(changed).schema[-1].type) == "month_interval":
                return changed
        except (pa.ArrowException, ValueError, OSError):
            continue
    raise AssertionError("no byte makes it a month_interval")


def test_a_column_without_a_python_class_harms_nothing(decoder: Decoder) -> None:
    rows = to_table([PUT, GET])
    rows = with_column(rows, "length", pa.array([-1, None]))
    value = month_intervals(rows)
    decoded = decoder.arrow([value, value])
    assert decoded.record.tolist() == [0, 1]
    assert [(r.record, r.index, r.reason) for r in decoded.rejects] == [
        (0, 0, Reason.BAD_VALUE),
        (1, 0, Reason.BAD_VALUE),
    ]
    assert msgspec.json.decode(decoded.rejects[0].value)["other"] == "a value of type month_interval"


@pytest.mark.parametrize("error", [MemoryError(), KeyError(21), RuntimeError("two\nlines")])
def test_a_value_whose_decoding_fails_is_one_dead_letter(
    estate: Estate, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    decoder = Decoder(estate)
    good, bad = to_table([PUT] * 3), to_table([PUT] * 3 + [GET])
    decode = decoder._table

    def fail(table: pa.Table, *rest: Any) -> Decoded:
        if GET["queue"] in table.column("queue").to_pylist():
            raise error
        return decode(table, *rest)

    monkeypatch.setattr(decoder, "_table", fail)
    values = [poison.stream(table.to_batches()[0]) for table in (good, bad, good)]
    decoded = decoder.arrow(values)
    assert decoded.record.tolist() == [0, 0, 0, 2, 2, 2]
    (reject,) = decoded.rejects
    assert (reject.record, reject.reason, reject.value) == (1, Reason.BAD_ARROW, values[1])
    assert reject.detail.startswith(type(error).__name__)
    assert "\n" not in reject.detail


def test_an_event_whose_rules_fail_is_one_dead_letter(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = Decoder(estate)
    nothing: list[int] = []
    monkeypatch.setattr(Rules, "apply", lambda *_: nothing[0])
    measure = {"time": PUT["time"], "qmgr": "QM01", "op": "MEASURE", "store": "QSG1/APP1", "measured": {"messages": 1}}
    arrow = poison.stream(to_table([PUT, measure]).to_batches()[0])
    decoded = decoder.records([text(PUT), text(measure), arrow], [None, None, ARROW])
    assert decoded.record.tolist() == [0, 2]
    assert [(r.record, r.index, r.reason) for r in decoded.rejects] == [
        (1, 0, Reason.UNDECODABLE),
        (2, 1, Reason.UNDECODABLE),
    ]
    assert decoded.rejects[0].detail.startswith("IndexError: list index out of range")


def test_pieces_of_a_batch_are_what_the_whole_is(decoder: Decoder, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b"\n".join([text(PUT), b"x", text(GET)])
    values = [text(PUT), lines, poison.stream(to_table([PUT, GET]).to_batches()[0]), poison.nulls(50), b"x"] * 20
    kinds = [None, NDJSON, ARROW, ARROW, "text/plain"] * 20
    whole = decoder.records(values, kinds)
    for size in (1, 5_000, 100_000):
        monkeypatch.setattr("twin.events.decoder._PIECE_BYTES", size)
        assert len([*decoder.pieces(values, kinds)]) > 1
        cut = decoder.records(values, kinds)
        assert (cut.events.tolist(), cut.record.tolist(), cut.index.tolist()) == (
            whole.events.tolist(),
            whole.record.tolist(),
            whole.index.tolist(),
        )
        assert cut.rejects == whole.rejects
