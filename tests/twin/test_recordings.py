"""Recordings: three formats, the same events; read and written piece by piece."""

from __future__ import annotations

import random
import resource
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest

from tests.twin.events.poison import nulls, texts
from tests.twin.events.samples import ESTATE, GET, MQSC, PUT, text
from twin.base.errors import CutRecordingWarning, UsageError
from twin.estate import load_estate
from twin.events import Decoder, Reason, Reject, to_table
from twin.recordings import files as recordings
from twin.recordings.files import SUFFIXES, Chunk, RecordingWriter, open_recording

EVENTS = [PUT | {"seq": n} if n % 2 else GET | {"seq": n} for n in range(1000)]


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    folder = tmp_path_factory.mktemp("estate")
    (folder / "qsg1.mqsc").write_text(MQSC)
    (folder / "estate.toml").write_text(ESTATE)
    return Decoder(load_estate(folder / "estate.toml"))


def rows(path: Path, decoder: Decoder) -> list[tuple[int, int]]:
    """Return (index, seq) of every event, in order."""
    return [
        (int(index), int(seq))
        for chunk in open_recording(path)
        for decoded in [chunk.decode(decoder)]
        for index, seq in zip(decoded.index, decoded.events["seq"], strict=True)
    ]


def rejects(path: Path, decoder: Decoder) -> list[Reject]:
    return [reject for chunk in open_recording(path) for reject in chunk.decode(decoder).rejects]


def lines(path: Path) -> list[Any]:
    return [msgspec.json.decode(line) for chunk in open_recording(path) for line in chunk.lines()]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "_CHUNK_BYTES", 1000)
    monkeypatch.setattr(recordings, "_CHUNK_ROWS", 7)
    monkeypatch.setattr(recordings, "_BATCH_ROWS", 7)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("as_tables", [False, True])
@pytest.mark.usefixtures("small_chunks")
def test_what_is_written_is_read(tmp_path: Path, decoder: Decoder, suffix: str, as_tables: bool) -> None:
    path = tmp_path / f"r{suffix}"
    with RecordingWriter(path) as writer:
        for start in range(0, 1000, 100):
            piece = EVENTS[start : start + 100]
            writer.write(to_table(piece) if as_tables else piece)
        writer.write([])
        assert writer.events == 1000
    assert rows(path, decoder) == [(n, n) for n in range(1000)]
    chunks = list(open_recording(path))
    assert len(chunks) > 20
    assert [chunk.first for chunk in chunks] == np.cumsum([0, *map(len, chunks[:-1])]).tolist()
    expected = [
        event if isinstance(event["time"], str) else event | {"time": "2026-11-20T12:00:00.000000Z"} for event in EVENTS
    ]
    values = lines(path)
    assert values == (EVENTS if suffix != ".arrow" and not as_tables else expected)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.usefixtures("small_chunks")
def test_events_of_a_chunk_as_a_table(tmp_path: Path, decoder: Decoder, suffix: str) -> None:
    path = tmp_path / f"r{suffix}"
    with RecordingWriter(path) as writer:
        writer.write(EVENTS[:100])
    for chunk in open_recording(path):
        decoded = chunk.decode(decoder)
        chosen = (decoded.index - chunk.first)[::2]
        assert decoder.arrow_table(chunk.table(chosen)).events.tolist() == decoded.events[::2].tolist()


@pytest.mark.usefixtures("small_chunks")
def test_bad_lines_have_their_place_in_the_whole_recording(tmp_path: Path, decoder: Decoder) -> None:
    path = tmp_path / "r.ndjson"
    path.write_bytes(b"\n\n".join([text(PUT)] * 20 + [b"junk"] + [text(PUT) + b"\r"] * 20 + [b"{}"]))
    assert [index for index, _ in rows(path, decoder)] == [*range(0, 40, 2), *range(42, 82, 2)]
    assert [(r.record, r.index, r.reason, r.value) for r in rejects(path, decoder)] == [
        (0, 40, Reason.NOT_JSON, b"junk"),
        (0, 82, Reason.MISSING_FIELD, b"{}"),
    ]
    (first, *_, last) = open_recording(path)
    assert first.lines()[:3] == [text(PUT), b"", text(PUT)]
    assert last.lines()[-1] == b"{}"
    assert len(last.lines()) == len(last)


@pytest.mark.usefixtures("small_chunks")
def test_bad_rows_have_their_place_in_the_whole_recording(tmp_path: Path, decoder: Decoder) -> None:
    path = tmp_path / "r.arrow"
    with RecordingWriter(path) as writer:
        writer.write(EVENTS[:30])
        table = to_table(EVENTS[30:60])
        writer.write(table.set_column(8, "priority", pa.array([0] * 29 + [10], pa.int8())))
    assert [(r.record, r.index, r.reason) for r in rejects(path, decoder)] == [(0, 59, Reason.BAD_VALUE)]
    assert len(lines(path)) == 60


@pytest.mark.usefixtures("small_chunks")
def test_a_line_longer_than_a_chunk(tmp_path: Path, decoder: Decoder) -> None:
    path = tmp_path / "r.ndjson.zst"
    long = text(PUT | {"app": "x" * 10_000})
    with RecordingWriter(path) as writer:
        writer.write_lines([text(PUT), long, text(GET), long])
    assert [index for index, _ in rows(path, decoder)] == [0, 1, 2, 3]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_empty_recording(tmp_path: Path, decoder: Decoder, suffix: str) -> None:
    path = tmp_path / f"r{suffix}"
    RecordingWriter(path).close()
    assert rows(path, decoder) == []


def test_json_texts_are_kept_as_they_came(tmp_path: Path, decoder: Decoder) -> None:
    path = tmp_path / "r.ndjson"
    with RecordingWriter(path) as writer:
        writer.write_lines([text(PUT)[:-1] + b',\n "app": 1}', b"junk\r\n", text(GET)])
    assert path.read_bytes() == text(PUT)[:-1] + b',  "app": 1}\njunk  \n' + text(GET) + b"\n"
    assert [index for index, _ in rows(path, decoder)] == [0, 2]
    with RecordingWriter(tmp_path / "r.arrow") as writer:
        writer.write_lines([text(PUT), text(GET)])
        for bad in (b"junk", b"[]", b"{}}", b'{"length":"5"}', b"\xff"):
            with pytest.raises(UsageError, match=r"r\.arrow: .*; expected: "):
                writer.write_lines([bad])
    assert len(rows(tmp_path / "r.arrow", decoder)) == 2


def test_a_null_is_not_written(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "r.ndjson") as writer:
        writer.write([GET | {"seq": None}])
    assert lines(tmp_path / "r.ndjson") == [GET]


def test_dictionaries_that_grow_from_batch_to_batch(tmp_path: Path) -> None:
    path = tmp_path / "r.arrow"
    with RecordingWriter(path) as writer:
        for queue in ("ORDERS", "AUDIT", "PAYMENTS", "ORDERS"):
            writer.write([GET | {"queue": queue}])
            writer.write(to_table([GET | {"queue": queue}]))
    assert [event["queue"] for event in lines(path)] == [
        queue for queue in ("ORDERS", "AUDIT", "PAYMENTS", "ORDERS") for _ in range(2)
    ]
    assert pa.ipc.open_file(path).read_all().num_rows == 8


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_arrow_files_and_streams_of_others(tmp_path: Path, decoder: Decoder, compression: str | None) -> None:
    table = pa.Table.from_pylist(
        [
            {key: event[key] for key in ("time", "qmgr", "op", "queue", "seq")}
            for event in EVENTS
            if "length" not in event
        ]
    )
    options = pa.ipc.IpcWriteOptions(compression=compression)
    for new in (pa.ipc.new_file, pa.ipc.new_stream):
        path = tmp_path / f"{new.__name__}.arrow"
        with new(str(path), table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=60)
        assert [seq for _, seq in rows(path, decoder)] == [*range(0, 1000, 2)]
        assert [event["seq"] for event in lines(path)] == [*range(0, 1000, 2)]


def test_rows_that_no_column_of_ours_takes_are_lines_all_the_same(tmp_path: Path, decoder: Decoder) -> None:
    path = tmp_path / "r.arrow"
    table = to_table([PUT]).set_column(7, "length", pa.array(["5"]))
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    (line,) = lines(path)
    assert line == PUT | {"length": "5"}
    (reject,) = rejects(path, decoder)
    assert reject.reason == Reason.WRONG_TYPE
    assert msgspec.json.decode(reject.value) == line


@pytest.mark.parametrize("name", ["r.json", "r", "r.csv", ".ndjson", "r.zst", "r.ndjson.gz", "r.arrows"])
def test_an_unknown_suffix(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    for use in (open_recording, RecordingWriter):
        with pytest.raises(UsageError, match=r"ends with \.ndjson, \.ndjson\.zst or \.arrow"):
            use(tmp_path / name)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_is_not_there(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(UsageError, match="is not a file"):
        open_recording(tmp_path / f"r{suffix}")
    with pytest.raises(UsageError, match="cannot be written"):
        RecordingWriter(tmp_path / "no" / f"r{suffix}")


def read_all(path: Path) -> list[Chunk]:
    return list(open_recording(path))


@pytest.mark.parametrize(
    "content", [b"", b"junk", b"ARROW1\0\0", b"ARROW1\0\0junk" * 10, b"\xff\xff\xff\xff\x10\0\0\0"]
)
def test_an_arrow_recording_that_is_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.arrow"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"r\.arrow cannot be read: .*; expected: a whole recording") as error:
        read_all(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.usefixtures("small_chunks")
@pytest.mark.nightly
def test_a_recording_cut_off_anywhere_is_read_up_to_there(tmp_path: Path, suffix: str) -> None:
    """Whole batches of 50 in Arrow, every whole line else; one warning says how many."""
    whole, digits = tmp_path / f"whole{suffix}", random.Random(1)
    with RecordingWriter(whole) as writer:
        for start in range(0, 1000, 50):
            writer.write([event | {"msgid": f"{digits.getrandbits(160):040x}"} for event in EVENTS[start : start + 50]])
            if start % 100 == 0:
                writer.end_piece()
    content, expected = whole.read_bytes(), lines(whole)
    path = tmp_path / f"cut{suffix}"
    least = 2000 if suffix == ".arrow" else 1  # before it there are no columns
    counts = []
    for end in [*range(least, len(content), len(content) // 29), len(content) - 1]:
        path.write_bytes(content[:end])
        if suffix == ".ndjson" and content[:end].rpartition(b"\n")[2] in (b"", content.splitlines()[-1]):
            values = lines(path)  # cut between two lines: nothing is missing that one could see
        else:
            with pytest.warns(CutRecordingWarning) as warned:
                values = lines(path)
            [warning] = warned
            assert (
                str(warning.message) == f"{path} is cut off: {len(values):,} events could be read, its end is missing"
            )
        assert values == expected[: len(values)]
        counts.append(len(values))
    assert counts == sorted(counts)
    assert counts[-1] >= {".arrow": 1000, ".ndjson": 1000, ".ndjson.zst": 850}[suffix]  # whole batch, line, block
    assert len(set(counts)) > 5


def test_a_last_line_that_is_nested_too_deep_is_cut(tmp_path: Path, decoder: Decoder) -> None:
    path = tmp_path / "deep.ndjson"
    path.write_bytes(b"{}\n" + b'{"a":' * 3_000)
    with pytest.warns(CutRecordingWarning):
        chunks = list(open_recording(path))
    assert [len(chunk.decode(decoder).rejects) for chunk in chunks] == [1]


def test_a_recording_that_is_damaged_is_not_taken_for_one_that_is_cut(tmp_path: Path) -> None:
    for suffix in (".arrow", ".ndjson.zst"):
        path = tmp_path / f"r{suffix}"
        with RecordingWriter(path) as writer:
            for start in range(0, 1000, 50):
                writer.write(EVENTS[start : start + 50])
        content = bytearray(path.read_bytes())
        content[len(content) // 2 : len(content) // 2 + 40] = b"\xff" * 40
        path.write_bytes(content)
        with pytest.raises(UsageError, match="cannot be read"):
            read_all(path)
    (tmp_path / "x.ndjson.zst").write_bytes(b"junk junk")
    with pytest.raises(UsageError, match="cannot be read"):
        read_all(tmp_path / "x.ndjson.zst")


@pytest.mark.parametrize("suffix", [".ndjson", ".ndjson.zst"])
def test_a_recording_is_continued(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"r{suffix}"
    with RecordingWriter(path, in_place=True) as writer:
        writer.write(EVENTS[:10])
        writer.end_piece()
        size = path.stat().st_size
        writer.write(EVENTS[10:20])
    with path.open("r+b") as file:
        file.truncate(size)
    with RecordingWriter(path, append=True) as writer:
        writer.write(EVENTS[10:30])
    assert lines(path) == EVENTS[:30]


def test_an_arrow_recording_is_not_continued(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be continued"):
        RecordingWriter(tmp_path / "r.arrow", append=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_room_is_the_error_that_is_seen_and_what_came_before_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"r{suffix}"
    with largest_file(20_000), pytest.raises(OSError, match="File too large"):
        write_for_ever(path)
    with pytest.warns(CutRecordingWarning):
        assert len(lines(path)) > 50


def write_for_ever(path: Path) -> None:
    digits = random.Random(1)
    with RecordingWriter(path, in_place=True) as writer:
        while True:
            writer.write([event | {"msgid": f"{digits.getrandbits(160):040x}"} for event in EVENTS[:50]])
            writer.end_piece()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_recording_stays_until_the_next_one_is_whole(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"r{suffix}"
    with RecordingWriter(path) as writer:
        writer.write(EVENTS[:10])
    first = lines(path)
    with pytest.raises(ZeroDivisionError):
        stop_half_way(path)
    assert lines(path) == first
    writer = RecordingWriter(path)
    writer.discard()
    assert lines(path) == first
    with RecordingWriter(path) as writer:
        writer.write(EVENTS[10:20])
        assert lines(path) == first
    assert len(lines(path)) == 10 and lines(path) != first
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def stop_half_way(path: Path) -> None:
    with RecordingWriter(path) as writer:
        writer.write(EVENTS[10:])
        raise ZeroDivisionError


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Limit the size of files to that number of bytes, which simulates a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_damaged_rows_of_an_arrow_recording(tmp_path: Path) -> None:
    path = tmp_path / "r.arrow"
    table = to_table(EVENTS)
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    path.write_bytes(path.read_bytes().replace(b"414d51", b"\xff\xff\xff\xff\xff\xff"))
    with pytest.raises(UsageError, match="UTF8"):
        read_all(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.nightly
def test_memory_stays_at_a_few_chunks(tmp_path: Path, decoder: Decoder, suffix: str) -> None:
    path = tmp_path / f"r{suffix}"
    table = to_table(EVENTS * 50)
    with RecordingWriter(path) as writer:
        for _ in range(16):
            writer.write(table)
    decoder.ndjson([b""])
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        count = max_bytes = 0
        for chunk in open_recording(path):
            count += len(chunk.decode(decoder))
            max_bytes = max(max_bytes, pa.total_allocated_bytes() - before)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 800_000
    assert max_bytes < 64 << 20
    assert peak < 64 << 20  # 800,000 rows are 45 MB, their lines 120 MB


def test_a_column_may_get_its_first_word_late(tmp_path: Path) -> None:
    path = tmp_path / "late.arrow"
    put = {"time": 1_795_176_000_000_000, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 1}
    alter = {"time": 1_795_176_000_000_001, "qmgr": "QM01", "op": "ALTER", "store": "QSG1/APP1", "attributes": {}}
    with RecordingWriter(path) as writer:
        writer.write([put])
        writer.write([alter])
        writer.write([put])
    assert sum(len(chunk) for chunk in open_recording(path)) == 3


def test_an_arrow_recording_that_stands_for_far_more_than_its_bytes_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "poison.arrow"
    for value, message in (
        (nulls(600_000_000), "600000000 rows"),
        (texts(10_000, 53_300, "zstd"), "bytes once decompressed"),
    ):
        with pa.ipc.open_stream(value) as reader:
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            with pa.ipc.new_file(str(path), reader.schema, options=options) as writer:
                writer.write_table(reader.read_all())
        for whole in (path.read_bytes(), value):
            path.write_bytes(whole)
            with pytest.raises(UsageError, match=f"^[^\n]*{message}[^\n]*$"):
                list(open_recording(path))


@pytest.mark.parametrize("suffix", [".ndjson", ".ndjson.zst"])
def test_a_line_without_an_end_is_one_line(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"long{suffix}"
    with pa.output_stream(str(path), compression="zstd" if suffix.endswith("zst") else None) as sink:
        sink.write(b"{}\n")
        for _ in range(80):
            sink.write(b"x" * (1 << 20))
    with pytest.raises(UsageError, match="line 1 has more than 67108864 bytes"):
        list(open_recording(path))


def test_very_many_short_lines_come_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "short.ndjson"
    path.write_bytes(b"{}\n" * 600_001 + b"x")
    chunks = list(open_recording(path))
    assert [chunk.first for chunk in chunks] == [0, 262_144, 524_288, 600_001]
    assert sum(map(len, chunks)) == 600_002


@pytest.mark.usefixtures("small_chunks")
def test_blank_lines_are_passed_over_at_once_and_counted(tmp_path: Path, decoder: Decoder, monkeypatch: Any) -> None:
    path = tmp_path / "r.ndjson"
    event = msgspec.json.encode(PUT | {"seq": 7})
    path.write_bytes(b"\n" * 5000 + event + b"\n" + b" \r\n" * 5000 + event + b"\n\n")
    assert rows(path, decoder) == [(5000, 7), (10_001, 7)]
    monkeypatch.setattr(recordings, "_split_lines", lambda data: iter([data] if data.strip() else []))
    assert len(list(open_recording(path))) <= 4


def test_the_small_batches_of_a_table_are_one_chunk(tmp_path: Path) -> None:
    """A store is applied once a chunk: many stores with few events need long ones."""
    path = tmp_path / "r.arrow"
    table = to_table([PUT])
    with RecordingWriter(path) as writer:
        writer.write(table.take(pa.array(np.zeros(300_000, np.int64))))
    with pa.ipc.open_file(str(path)) as reader:
        assert reader.num_record_batches == 5
    assert [len(chunk) for chunk in open_recording(path)] == [262_144, 37_856]
