"""The first stage: records in, one event batch per store out, unusable events as dead letters."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from streams.query import decode_stage
from streams.query.decode_stage import decode_task, open_buckets, whole_records
from streams.query.rows import BLOCK_ROWS, ITEMS_PIECE_BYTES, VALUE_PIECE_BYTES, spark_hash, unpack_items
from tests.streams.stage_help import ARROW, NDJSON, SOURCE, as_json, decoded, new_tester, of_topic, plan, put, rows
from tests.streams.stage_help import shuffled as after_shuffle
from tests.twin.events.poison import nulls
from twin.events import to_table


def as_arrow(events: list[dict]) -> bytes:
    sink = pa.BufferOutputStream()
    table = to_table(events)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_single_events_of_a_task_become_one_batch_per_store(tmp_path: Path) -> None:
    events = [put(n, "ORDERS" if n % 3 else "AUDIT") for n in range(300)]
    values = [as_json(event) for event in events]
    blocks, letters = decoded(plan(tmp_path), rows(values[:100]), rows(values[100:], offsets=list(range(100, 300))))
    assert not letters
    assert {block.store: (offset, len(block)) for _, offset, _, block in blocks} == {
        "QSG1/APP1": (1, 200),
        "QSG1/APP2": (0, 100),
    }
    for _, _, _, block in blocks:
        assert list(block.events["time"]) == sorted(block.events["time"])


def test_the_three_content_types_give_the_same_event_batch(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    events = [put(n) for n in range(50)]
    lines = [as_json(event) for event in events]
    single = decoded(packed, rows(lines))[0]
    many = decoded(packed, rows([b"\n".join(lines)], NDJSON))[0]
    arrow = decoded(packed, rows([as_arrow(events)], ARROW))[0]
    assert single[0][3].pack() == many[0][3].pack() == arrow[0][3].pack()


def test_mixed_content_types_keep_the_order_of_the_topic(tmp_path: Path) -> None:
    values = [
        as_json(put(0)),
        as_arrow([put(1), put(2)]),
        as_json(put(3)),
        b"\n".join([as_json(put(4)), as_json(put(5))]),
    ]
    blocks, letters = decoded(plan(tmp_path), rows(values, [None, ARROW, b"Application/JSON; charset=utf-8", NDJSON]))
    assert not letters
    assert list(blocks[0][3].events["seq"]) == [0, 1, 2, 3, 4, 5]


def test_an_event_batch_has_the_position_of_its_first_event(tmp_path: Path) -> None:
    values = [b"{}", b"\n".join([b"nonsense", as_json(put(0)), as_json(put(1))])]
    blocks, letters = decoded(plan(tmp_path), rows(values, [None, NDJSON], offsets=[70, 71]))
    assert [(partition, offset, index) for partition, offset, index, _ in blocks] == [(0, 71, 1)]
    assert [(letter.offset, letter.index) for letter in letters] == [(70, 0), (71, 0)]


def test_records_of_several_partitions_are_not_mixed(tmp_path: Path) -> None:
    batch = rows([as_json(put(n)) for n in range(6)], partitions=[0, 1, 0, 1, 0, 1], offsets=[5, 9, 6, 10, 7, 11])
    blocks, _ = decoded(plan(tmp_path), batch)
    assert [(partition, offset, list(block.events["seq"])) for partition, offset, _, block in blocks] == [
        (0, 5, [0, 2, 4]),
        (1, 9, [1, 3, 5]),
    ]


def test_a_dead_letter_has_the_reason_and_the_position(tmp_path: Path) -> None:
    bad = as_json(put(1, "ORDERZ"))
    blocks, letters = decoded(plan(tmp_path), rows([as_json(put(0)), bad, as_json(put(2))], offsets=[10, 11, 12]))
    assert len(blocks[0][3]) == 2
    (letter,) = letters
    assert (letter.reason, letter.topic, letter.partition, letter.offset, letter.index) == (
        "unknown-queue",
        SOURCE,
        0,
        11,
        0,
    )
    assert letter.value == bad
    assert "ORDERZ" in letter.detail
    assert {header["key"] for header in letter.headers()} == {
        "reason",
        "detail",
        "topic",
        "partition",
        "offset",
        "index",
    }


def test_a_record_without_a_value_and_an_unknown_content_type_are_dead_letters(tmp_path: Path) -> None:
    blocks, letters = decoded(plan(tmp_path), rows([None, b"<xml/>", as_json(put(0))], [None, b"text/xml", None]))
    assert [(letter.reason, letter.value) for letter in letters] == [
        ("not-json", b""),
        ("unknown-content-type", b"<xml/>"),
    ]
    assert len(blocks[0][3]) == 1


def test_a_dead_letter_beyond_the_limit_of_its_topic_is_cut_and_has_its_original_length(tmp_path: Path) -> None:
    _, (letter,) = decoded(plan(tmp_path, dlq=1000), rows([b"x" * 5000]))
    assert letter.value == b"x" * 1000
    assert {"key": "original-length", "value": b"5000"} in letter.headers()


def test_dead_letters_of_different_tasks_go_to_different_partitions(tmp_path: Path) -> None:
    packed = plan(tmp_path, partitions=3)
    keys = [next(decode_task(packed, SOURCE, task, [rows([b"x"])])).column("store")[0].as_py() for task in range(4)]
    assert [open_buckets(packed).partition_of(key) for key in keys] == [0, 1, 2, 0]


def test_rows_of_a_bucket_come_together_in_the_partition_of_its_stores(tmp_path: Path) -> None:
    packed = plan(tmp_path, partitions=2)
    queues = ("ORDERS", "AUDIT", "BULK.IN")
    values = [as_json(put(n, queue, seq=n // 3)) for n in range(30) for queue in (queues[n % 3],)]
    sent = after_shuffle(decode_task(packed, SOURCE, 0, [rows(values)]))
    of_keys = {row["store"]: {item.store for item in unpack_items([row])} for row in sent}
    assert len(of_keys) == len(sent), "a row for each bucket"
    for key, stores in of_keys.items():
        assert {spark_hash(name) % 2 for name in stores} == {spark_hash(key) % 2}


def test_extras_stay_with_their_events_when_batches_are_joined(tmp_path: Path) -> None:
    alter = {"time": put(0)["time"], "qmgr": "QM01", "op": "ALTER", "store": "QSG1/APP1"}
    first = rows([as_json(put(0)), as_json(alter | {"attributes": {"offld1_th": 60}})])
    second = rows(
        [as_json(put(1)), as_json(put(2)), as_json(alter | {"attributes": {"offld1_th": 50}})], offsets=[2, 3, 4]
    )
    blocks, _ = decoded(plan(tmp_path), first, second)
    assert {row: b"60" in text or b"50" in text for row, text in blocks[0][3].extras.items()} == {1: True, 4: True}


def test_a_full_buffer_is_flushed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(decode_stage, "FLUSH_EVENTS", 100)
    batches = [
        rows([as_json(put(n)) for n in range(start, start + 60)], offsets=list(range(start, start + 60)))
        for start in (0, 60, 120)
    ]
    blocks, _ = decoded(plan(tmp_path), *batches)
    assert [(offset, len(block)) for _, offset, _, block in blocks] == [(0, 120), (120, 60)]


def test_a_task_without_records_gives_no_rows(tmp_path: Path) -> None:
    assert decoded(plan(tmp_path)) == ([], [])
    assert decoded(plan(tmp_path), rows([])) == ([], [])


def test_a_full_buffer_is_flushed_within_a_record_batch_that_decodes_to_much(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("twin.events.decoder._PIECE_BYTES", 1)
    monkeypatch.setattr(decode_stage, "FLUSH_EVENTS", 2)
    monkeypatch.setattr(decode_stage, "FLUSH_BYTES", 2_000)
    values = [as_json(put(n)) for n in range(5)] + [b"x" * 1_500] * 4
    packed = plan(tmp_path)
    assert len([*decode_task(packed, SOURCE, 0, [rows(values)])]) >= 4
    blocks, letters = decoded(packed, rows(values))
    assert [seq for _, _, _, block in blocks for seq in block.events["seq"]] == [0, 1, 2, 3, 4]
    assert [letter.offset for letter in letters] == [5, 6, 7, 8]


def test_a_small_record_that_expands_enormously_is_one_dead_letter(tmp_path: Path) -> None:
    values = [as_arrow([put(0)]), nulls(600_000_000), as_arrow([put(1)])]
    blocks, (letter,) = decoded(plan(tmp_path, dlq=100), rows(values, ARROW))
    assert [seq for _, _, _, block in blocks for seq in block.events["seq"]] == [0, 1]
    assert (letter.reason, letter.offset, letter.value, letter.length) == ("oversized", 1, values[1][:100], 224)


def in_pieces(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return records of `KAFKA_COLUMNS` as `streams.query.definition.in_pieces` does."""
    pieces = []
    for row in records.to_pylist():
        value = row["value"]
        starts = range(0, max(len(value or b""), 1), VALUE_PIECE_BYTES)
        pieces += [row | {"value": value and value[start : start + VALUE_PIECE_BYTES]} for start in starts]
    return pa.RecordBatch.from_pylist(pieces, records.schema)


@pytest.mark.parametrize("seed", range(20))
def test_pieces_of_values_become_whole_records_wherever_the_batches_end(seed: int) -> None:
    draw = random.Random(seed)
    sizes = [0, 1, 200, VALUE_PIECE_BYTES - 1, VALUE_PIECE_BYTES, VALUE_PIECE_BYTES + 1, 3 * VALUE_PIECE_BYTES, 50_000]
    values = [draw.choice([None, *(draw.randbytes(size) for size in sizes)]) for _ in range(12)]
    partitions = sorted(draw.choices([-1, 0, 7], k=12))
    offsets = [9] * 12 if len(set(partitions)) == 12 else list(range(12))
    records = rows(values, [draw.choice([None, NDJSON]) for _ in values], partitions, offsets)
    pieces = in_pieces(records)
    ends = sorted({0, pieces.num_rows, *draw.choices(range(pieces.num_rows + 1), k=draw.randrange(9))})
    batches = [pieces.slice(start, end - start) for start, end in pairwise(ends)]
    assert [row for batch in whole_records(batches) for row in batch.to_pylist()] == records.to_pylist()


def test_long_items_reach_the_processor_whole(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    values = [as_json(put(n)) for n in range(3_000)] + [bytes([n]) * 60_000 for n in range(1, 4)]
    batches = list(decode_task(packed, SOURCE, 0, [in_pieces(rows(values))]))
    assert all(batch.schema == BLOCK_ROWS for batch in batches)
    sent = after_shuffle(batches)
    assert len(sent) > 6
    assert max(len(row["items"]) for row in sent) == ITEMS_PIECE_BYTES
    random.Random(1).shuffle(sent)
    output = new_tester(packed).test("0", sent)
    assert [row.value for row in of_topic(output, "mqtwin.dlq")] == values[3_000:]
    (state,) = of_topic(output, "mqtwin.state")
    assert b'"messages":3000' in state.value
