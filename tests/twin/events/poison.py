"""Arrow streams of few bytes that stand for very much: what a record may do to a job, and must not."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

from tests.twin.events.samples import ESTATE, GET, MQSC, PUT
from twin.estate import load_estate
from twin.events import ARROW, Decoder, to_table
from twin.events.convert import arrow_value


def stream(*batches: pa.RecordBatch, **options: object) -> bytes:
    """Return the batches as an IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def nulls(rows: int) -> bytes:
    """One column of type null: no body at all."""
    return stream(pa.record_batch([pa.nulls(rows)], ["nothing"]))


def run_end(rows: int) -> bytes:
    """One run."""
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int64()), pa.array(["ORDERS"]))
    return stream(pa.record_batch([runs], ["queue"]))


def texts(rows: int, size: int, compression: str) -> bytes:
    """Return a refused event per row, with a text that compresses to almost nothing."""
    columns = {name: [value] * rows for name, value in GET.items()} | {
        "op": ["PEEK"] * rows,
        "uow": ["u" * size] * rows,
    }
    return stream(pa.record_batch(columns), compression=compression)


def words(rows: int, size: int, name: str = "uow", kind: pa.DataType | None = None) -> bytes:
    """Return a refused event per row, with a long word of a dictionary."""
    columns = {key: pa.array([value] * rows) for key, value in (GET | {"op": "PEEK"}).items()}
    word = pa.array(["w" * size]).cast(kind or pa.string())
    columns[name] = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int8()), word)
    return stream(pa.record_batch(columns), compression="zstd")


def nested_words(rows: int, size: int, each: int) -> bytes:
    """Return `words` with a list of the long word in each row."""
    word = pa.DictionaryArray.from_arrays(pa.array([0] * (rows * each), pa.int8()), pa.array(["w" * size]))
    lists = pa.ListArray.from_arrays(pa.array(range(0, rows * each + 1, each), pa.int32()), word)
    columns = {key: pa.array([value] * rows) for key, value in (GET | {"op": "PEEK"}).items()}
    return stream(pa.record_batch(columns | {"other": lists}), compression="zstd")


def views(rows: int, size: int, name: str = "msgid") -> bytes:
    """Views of one long text in each row."""
    item = pa.array(["v" * size], pa.string_view()).buffers()
    column = pa.Array.from_buffers(pa.string_view(), rows, [None, pa.py_buffer(item[1].to_pybytes() * rows), item[2]])
    columns = {key: pa.array([value] * rows) for key, value in GET.items()}
    return stream(pa.record_batch(columns | {name: column}), compression="zstd")


def growing_words(batches: int, size: int) -> bytes:
    """Return a dictionary that grows by a word with each batch of one row: Arrow copies it each time."""
    sink = pa.BufferOutputStream()
    schema = pa.schema([("queue", pa.dictionary(pa.int32(), pa.string()))])
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True, compression="zstd")
    known = ["q" * size]
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for number in range(batches):
            known.append(str(number))
            column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array(known))
            writer.write_batch(pa.record_batch([column], schema=schema))
    return bytes(sink.getvalue().to_pybytes())


def small_batches(batches: int) -> bytes:
    """Batches of one row of many columns."""
    batch = pa.record_batch([pa.nulls(1)] * 50, [f"c{n}" for n in range(50)])
    return stream(*[batch] * batches)


def measurements(rows: int, size: int) -> bytes:
    """Accepted MEASUREs, each with the same long text."""
    event = {"time": PUT["time"], "qmgr": "QM01", "op": "MEASURE", "store": "QSG1/APP1"}
    columns = {key: pa.array([value] * rows) for key, value in event.items()}
    text = '{"messages":1,"x":"' + "x" * size + '"}'
    columns["measured"] = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int8()), pa.array([text]))
    return stream(pa.record_batch(columns), compression="zstd")


OVERSIZED = {
    "600 million nulls": lambda: nulls(600_000_000),
    "300,000 nulls": lambda: nulls(300_000),
    "2 million nulls": lambda: nulls(2_000_000),
    "a run of a billion": lambda: run_end(1_000_000_000),
    "533 MB of zstd": lambda: texts(10_000, 53_300, "zstd"),
    "533 MB of lz4": lambda: texts(10_000, 53_300, "lz4"),
    "views of one text": lambda: views(100_000, 10_000),
    "a growing dictionary": lambda: growing_words(2_000, 1_000_000),
    "batches of one row": lambda: small_batches(12_000),
}
"""Streams that are refused as a whole."""

REFUSED = {
    "10,000 nulls": lambda: nulls(10_000),
    "a word of 10 KB in 40,000 rows": lambda: words(40_000, 10_000),
    "a word of 10 MB in 5,000 rows": lambda: words(5_000, 10_000_000),
    "a queue of 10 MB in 5,000 rows": lambda: words(5_000, 10_000_000, "queue"),
    "a binary word of 10 MB": lambda: words(5_000, 10_000_000, "length", pa.binary()),
    "attributes of 10 MB": lambda: words(5_000, 10_000_000, "attributes"),
    "lists of a word of 1 MB": lambda: nested_words(10_000, 1_000_000, 100),
}
"""Streams of which every row is a dead letter."""

MANY = {
    "300,000 small events": lambda: stream(to_table([PUT]).take([0] * 300_000).to_batches()[0], compression="zstd"),
    "measurements of 60 KB": lambda: measurements(20_000, 60_000),
}
"""Streams within the bounds that stand for much."""


def poisons() -> Iterator[tuple[str, bytes]]:
    """Return every stream by name."""
    for name, make in {**OVERSIZED, **REFUSED, **MANY}.items():
        yield name, make()


def _peak() -> int:
    """Return the peak memory of this process since the last call, bytes."""
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5")
    return peak * 1024


def main(folder: Path) -> None:
    """Decode each stream between good ones; print what came of it, and by how many MB memory grew, as JSON lines."""
    (folder / "qsg1.mqsc").write_text(MQSC)
    (folder / "estate.toml").write_text(ESTATE)
    decoder = Decoder(load_estate(folder / "estate.toml"))
    decoder.warm()
    good = arrow_value(to_table([PUT] * 100))
    for name, value in poisons():
        values = pa.array([good, value, good], pa.binary())
        _peak()
        before = resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[1])
        pieces = [*decoder.pieces(values, pa.array([ARROW] * 3))]
        ours = [reject for piece in pieces for reject in piece.rejects]
        came = {
            "name": name,
            "grown_mb": (_peak() - before) >> 20,
            "good": sum(int((piece.record != 1).sum()) for piece in pieces),
            "events": sum(map(len, pieces)),
            "reasons": dict(Counter(str(reject.reason) for reject in ours)),
            "letter_bytes": sum(len(reject.value) for reject in ours),
        }
        print(json.dumps(came), flush=True)


if __name__ == "__main__":
    limit = int(sys.argv[1])  # bytes of address space
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
