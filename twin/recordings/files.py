"""Recordings: files of events, read and written in chunks. Described in docs/recordings.md.

`.ndjson` and `.ndjson.zst` (Zstandard) hold one event per line, `.arrow` is an Arrow IPC file of `ARROW_SCHEMA` (an IPC
stream is read too).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedIOBase
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc

from twin.base.decoding import UNREADABLE
from twin.base.errors import CutRecordingWarning, UsageError
from twin.base.outputs import Draft, unwritable
from twin.base.units import as_count
from twin.events import ARROW_SCHEMA, Decoded, Decoder, EventError
from twin.events.convert import RowTexts, Words, conform, json_lines, lines_table, to_table
from twin.events.refusals import RECORDING
from twin.events.values import scan_buffer

SUFFIXES = (".ndjson", ".ndjson.zst", ".arrow")

_CHUNK_BYTES = 8 << 20  # of lines in one chunk
_CHUNK_ROWS = 1 << 18  # of a table in one chunk: of 1,000 stores some 260 events each are applied in one call
_BATCH_ROWS = 1 << 16  # of a table in one record batch, as it is written
_CHUNK_LINES = 1 << 18  # in one chunk: a line of two bytes takes a hundred while it is decoded
_MAX_LINE_BYTES = 64 << 20  # far more than an event may have
_FREE_ROWS, _ROWS_PER_BYTE = 10_000, 100  # of an Arrow recording, as in `twin.events.refusals`
_FREE_BYTES, _BYTES_PER_BYTE = 128 << 20, 1_000
_FILE_HEAD = 8  # bytes: magic and padding
_UNLIMITED = 1 << 62  # bytes
_FILE_MAGIC = b"ARROW1"


class Chunk(Protocol):
    """Piece of a recording."""

    first: int  # line or row of its first event in the recording, from 0

    def __len__(self) -> int:
        """Return the number of lines or rows, empty lines included."""

    def decode(self, decoder: Decoder) -> Decoded:
        """Decode the events; record is 0, index the line or row in the recording, also of rejects."""

    def lines(self) -> list[bytes]:
        """Return the lines, or rows as JSON, without line ends; line k has index `first + k`."""

    def table(self, rows: npt.NDArray[np.int64]) -> pa.Table:
        """Return accepted events as a table of ARROW_SCHEMA. rows: their indexes in the chunk."""


@dataclass(slots=True)
class LinesChunk:
    """Whole lines of an NDJSON recording."""

    first: int
    data: bytes  # the lines with their ends

    def __len__(self) -> int:
        return self.data.count(b"\n") + (not self.data.endswith(b"\n"))

    def decode(self, decoder: Decoder) -> Decoded:
        """Decode the events; indexes count from the beginning of the recording."""
        return _shifted(decoder.ndjson([self.data], RECORDING), self.first)

    def lines(self) -> list[bytes]:
        """Return the lines without line ends."""
        lines = self.data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        return [line.removesuffix(b"\r") for line in lines]

    def table(self, rows: npt.NDArray[np.int64]) -> pa.Table:
        """Return accepted events as a table."""
        lines = self.lines()
        return lines_table(lines[row] for row in rows)


@dataclass(slots=True)
class TableChunk:
    """Rows of an Arrow recording."""

    first: int
    rows: pa.Table

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def decode(self, decoder: Decoder) -> Decoded:
        """Decode the events; indexes count from the beginning of the recording."""
        return _shifted(decoder.arrow_table(self.rows), self.first)

    def lines(self) -> list[bytes]:
        """Return the lines without line ends."""
        try:
            return [text.encode() for text in json_lines(conform(self.rows)).to_pylist()]
        except EventError:  # a column of another type takes its nearest form in JSON
            texts = RowTexts(self.rows)
            return [texts.text(row, _UNLIMITED)[0] for row in range(self.rows.num_rows)]

    def table(self, rows: npt.NDArray[np.int64]) -> pa.Table:
        """Return accepted events as a table."""
        return conform(self.rows.take(pa.array(rows)))


def _shifted(decoded: Decoded, first: int) -> Decoded:
    if first:
        decoded.index = decoded.index + first
        decoded.rejects = [reject.moved_to(reject.record, reject.index + first) for reject in decoded.rejects]
    return decoded


# --- reading ---------------------------------------------------------------------------------------------------------


def open_recording(path: str | Path) -> Iterator[Chunk]:
    """Open a recording and return its chunks in order; only a few are in memory.

    A recording whose end is missing is read up to there, followed by a CutRecordingWarning. UsageError: the file is
    missing, has an unknown suffix, or, while it is read, cannot be read to its end.
    """
    path = Path(path)
    suffix = suffix_of(path)
    if not path.is_file():
        raise UsageError(f"{path} is not a file; expected: a recording, {_suffixes()}")
    try:
        compression = "zstd" if suffix == ".ndjson.zst" else None
        source = pa.input_stream(str(path), compression=compression)
    except OSError as error:
        raise _unreadable(path, error) from None
    if suffix != ".arrow":
        cut = CutCheck(path)
        return _line_chunks(path, CompressedReader(source, compression, cut), cut)
    source.close()
    return _table_chunks(path)


class _Arriving:
    """Standard input, or another pipe, that is read as its bytes come."""

    def __init__(self, source: BufferedIOBase) -> None:
        self._source = source

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, as soon as there are any; none at the end."""
        return self._source.read1(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave it open: it is not ours."""


def open_lines(source: BufferedIOBase, name: str = "standard input") -> Iterator[Chunk]:
    """Return chunks of lines that come from a pipe, each as soon as its last line is whole; `name`: for warnings."""
    return _line_chunks(Path(name), _Arriving(source), CutCheck(Path(name)))


def suffix_of(path: str | Path) -> str:
    """Return the suffix of a recording, one of SUFFIXES. Raise UsageError if it has another one."""
    name = Path(path).name
    for suffix in SUFFIXES:
        if name.endswith(suffix) and name != suffix:
            return suffix
    raise UsageError(f"{path} is no recording by its name; expected: a name that ends with {_suffixes()}")


def _line_chunks(path: Path, source: CompressedReader | _Arriving, cut: CutCheck) -> Iterator[Chunk]:
    first = 0
    parts: list[bytes] = []  # of an incomplete line
    with source:
        while True:
            try:
                data = source.read(_CHUNK_BYTES)
            except (OSError, pa.ArrowException) as error:
                raise _unreadable(path, error, f" after line {first - 1}" if first else "") from None
            end = data.rfind(b"\n") + 1
            if data and not end:
                parts.append(data)
                if sum(map(len, parts)) > _MAX_LINE_BYTES:
                    raise _unreadable(path, ValueError(f"line {first} has more than {_MAX_LINE_BYTES} bytes"))
                continue
            whole = b"".join((*parts, data[:end]))
            if whole and not data and is_cut_line(whole):
                cut.is_cut, whole = True, b""
            if not whole.strip():  # blank lines only: they have no event, and a small file may expand to many
                first += len(LinesChunk(first, whole)) if whole else 0
                whole = b""
            for lines in _split_lines(whole):
                chunk = LinesChunk(first, lines)
                yield chunk
                first += len(chunk)
            if not data:
                cut.warn(first)
                return
            parts = [data[end:]] if end < len(data) else []


def _split_lines(data: bytes) -> Iterator[bytes]:
    """Split whole lines into pieces of at most _CHUNK_LINES."""
    if data.count(b"\n") > _CHUNK_LINES:
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))[_CHUNK_LINES - 1 :: _CHUNK_LINES] + 1
        for start, end in pairwise([0, *ends.tolist(), len(data)]):
            yield from (data[start:end],) if end > start else ()
    elif data:
        yield data


def _table_chunks(path: Path) -> Iterator[Chunk]:
    first = 0
    cut = CutCheck(path)
    try:
        for table in _tables(path, cut):
            table.validate(full=True)
            for start in range(0, table.num_rows, _CHUNK_ROWS):
                chunk = TableChunk(first, table.slice(start, _CHUNK_ROWS))
                yield chunk
                first += len(chunk)
        cut.warn(first)
    except (OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError, pa.ArrowException) as error:
        raise _unreadable(path, error, f" after row {first - 1}" if first else "") from None


def _tables(path: Path, cut: CutCheck) -> Iterator[pa.Table]:
    """Yield the batches of an IPC file or stream as tables; small batches are combined."""
    if not path.stat().st_size:
        raise ValueError("it is empty")
    with pa.memory_map(str(path)) as source:
        is_file = source.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        is_whole = is_file and is_whole_file(source)
        source.seek(0)
        _check_bounds(source.read_buffer(), _FILE_HEAD if is_file else 0)
        source.seek(0)
        batches: list[pa.RecordBatch] = []
        for batch in _file_batches(source) if is_whole else stream_batches(source, cut, is_file=is_file):
            batches.append(batch)
            if sum(b.num_rows for b in batches) >= _CHUNK_ROWS:
                yield pa.Table.from_batches(batches)
                batches = []
        if batches:
            yield pa.Table.from_batches(batches)


def _check_bounds(data: pa.Buffer, start: int) -> None:
    """Raise ValueError, before any batch is read, if the batches expand to far more than their bytes."""
    scanned = scan_buffer(data.slice(min(start, data.size)))
    rows, size = int(scanned.rows[0]), int(scanned.sizes[0])
    if rows > _FREE_ROWS + _ROWS_PER_BYTE * data.size or size > _FREE_BYTES + _BYTES_PER_BYTE * data.size:
        raise ValueError(f"{rows} rows and {size} bytes once decompressed, in a file of {data.size} bytes")


def _file_batches(source: Any) -> Iterator[pa.RecordBatch]:
    reader = pa.ipc.open_file(source)
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


def _suffixes() -> str:
    return ", ".join(SUFFIXES[:-1]) + " or " + SUFFIXES[-1]


def _unreadable(path: Path, error: BaseException, where: str = "") -> UsageError:
    text = " ".join(str(error).split()) or type(error).__name__
    return UsageError(f"{path} cannot be read{where}: {text}; expected: a whole recording, {_suffixes()}")


# --- writing ---------------------------------------------------------------------------------------------------------


class RecordingWriter:
    """Writer of a recording; a context manager. The file at its path is replaced when the recording is closed."""

    def __init__(self, path: str | Path, *, append: bool = False, in_place: bool = False) -> None:
        """Open the file. UsageError: unknown suffix, or the file cannot be written."""
        self.path = Path(path)
        self.events = 0  # number written
        suffix = suffix_of(path)
        if append and suffix == ".arrow":
            raise UsageError(f"{path}: an .arrow recording cannot be continued; expected: a new name")
        self._compression = "zstd" if suffix == ".ndjson.zst" else None
        self._arrow: Any = None
        self._words = Words(("",))  # no event has the empty word
        self._draft = None if append or in_place else Draft(path)
        self._file = self.path if self._draft is None else self._draft.file
        try:
            self._sink: Any = self._open("ab" if append else "wb")
        except OSError as error:
            raise unwritable(path, error) from None
        if suffix == ".arrow":
            # A file can only append to its dictionaries. zstd halves it: most of it is ids of random digits.
            options = pa.ipc.IpcWriteOptions(compression="zstd", emit_dictionary_deltas=True)
            try:
                self._arrow = pa.ipc.new_file(self._sink, ARROW_SCHEMA, options=options)
            except OSError:
                raise UsageError(
                    f"{path}: a pipe takes no .arrow recording; expected: .ndjson or .ndjson.zst"
                ) from None

    def write(self, events: pa.Table | pa.RecordBatch | Iterable[Mapping[str, Any]]) -> None:
        """Append events: a table or record batch with columns of ARROW_SCHEMA, or dictionaries. UsageError: a value
        fits no column, in a table or an `.arrow` recording.
        """
        try:
            if self._arrow is None and not isinstance(events, (pa.Table, pa.RecordBatch)):
                self._write_lines([msgspec.json.encode(_present(event)) for event in events])
                return
            if isinstance(events, pa.RecordBatch):
                events = pa.Table.from_batches([events])
            table = conform(events if isinstance(events, pa.Table) else to_table(events), self._words)
        except EventError as error:
            raise UsageError(f"{self.path}: {error.detail}") from None
        if self._arrow is None:
            self._write_lines(json_lines(table).to_pylist())
            return
        for start in range(0, table.num_rows, _BATCH_ROWS):
            self._arrow.write_table(table.slice(start, _BATCH_ROWS))
        self.events += table.num_rows

    def write_lines(self, lines: Iterable[bytes]) -> None:
        """Append JSON texts unchecked; line breaks in them become blanks. UsageError: no event, of an `.arrow`
        recording.
        """
        if self._arrow is None:
            self._write_lines([line.replace(b"\n", b" ").replace(b"\r", b" ") for line in lines])
            return
        try:
            self.write([msgspec.json.decode(line, type=dict[str, Any]) for line in lines])
        except UNREADABLE as error:
            raise UsageError(f"{self.path}: {error}; expected: one JSON object a line") from None

    def _write_lines(self, lines: list[Any]) -> None:
        if lines:
            blob = b"\n".join(lines) if isinstance(lines[0], bytes) else "\n".join(lines).encode()
            self._sink.write(blob + b"\n")
        self.events += len(lines)

    def _open(self, mode: str) -> Any:
        sink = pa.OSFile(str(self._file), mode)
        return sink if self._compression is None else pa.CompressedOutputStream(sink, self._compression)

    def end_piece(self) -> None:
        """Flush all events to the file, so that it can be read and continued there."""
        if self._compression is not None:  # closing ends a Zstandard frame; the next one begins behind it
            self._sink.close()
            self._sink = self._open("ab")

    def close(self) -> None:
        """Flush and close the file, and let it take its place."""
        self._close()
        if self._draft is not None:
            self._draft.commit()

    def discard(self) -> None:
        """Close the file and remove it: what was at its path stays. One that is written in place keeps its events."""
        with suppress(OSError, pa.ArrowException):
            self._close()
        if self._draft is not None:
            self._draft.discard()

    def _close(self) -> None:
        if self._sink.closed:
            return
        if self._arrow is not None:
            self._arrow.close()
        self._sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.discard()


def _present(event: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if value is not None}


# --- recordings without an end ---------------------------------------------------------------------------------------


_READ_BYTES = 1 << 16  # per read of a compressed file: a read that meets the cut returns nothing of the bytes before it
_CUT = re.compile(
    r"Truncated compressed stream|Expected to (be able to )?read .* (got|only read)|only \d+ bytes available"
)
_FILE_HEAD_BYTES = 8  # the magic and its padding


class CutCheck:
    """State of reading a recording. `is_cut` is True once its end is found missing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_cut = False

    def warn(self, events: int) -> None:
        """Warn if the end is missing. events: number of events read."""
        if self.is_cut:
            text = f"{self.path} is cut off: {as_count(events, 'event')} could be read, its end is missing"
            warnings.warn(CutRecordingWarning(text), stacklevel=3)


class CompressedReader:
    """Reader of a possibly compressed file, up to the last byte before a missing end. A context manager."""

    def __init__(self, source: Any, compression: str | None, cut: CutCheck) -> None:
        self._source = source
        self._compression = compression
        self._cut = cut
        self._position = 0  # in the decompressed bytes

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end. OSError: the file is damaged."""
        if self._compression is None:
            return bytes(self._source.read(size))
        pieces = []
        while size > 0:
            piece = self._read_piece(min(size, _READ_BYTES))
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
            self._position += len(piece)
        return b"".join(pieces)

    def _read_piece(self, size: int) -> bytes:
        if self._cut.is_cut:
            return b""
        try:
            return bytes(self._source.read(size))
        except OSError as error:
            if not means_cut(error):
                raise
        self._cut.is_cut = True
        return b"".join(self._last_bytes())

    def _last_bytes(self) -> Iterator[bytes]:
        """Yield the bytes behind the position one by one: a larger read would lose them."""
        with pa.input_stream(str(self._cut.path), compression=self._compression) as source:
            left = self._position
            while left:
                left -= len(source.read(min(left, _READ_BYTES)))
            try:
                while byte := source.read(1):
                    yield byte
            except OSError:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()


def means_cut(error: BaseException) -> bool:
    """True if an error of Arrow means that the end is missing."""
    return _CUT.search(str(error)) is not None


def is_cut_line(line: bytes) -> bool:
    """True if a last line without an end is the beginning of an event."""
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        msgspec.json.decode(line)
    except UNREADABLE:
        return True
    return False


def is_whole_file(source: Any) -> bool:
    """True if an Arrow IPC file has both ends."""
    size = source.size()
    source.seek(max(0, size - len(_FILE_MAGIC)))
    end = source.read(len(_FILE_MAGIC))
    source.seek(0)
    return bool(end == _FILE_MAGIC and size > 2 * _FILE_HEAD_BYTES)


def stream_batches(source: Any, cut: CutCheck, *, is_file: bool) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an IPC stream, or of an IPC file without its end: behind its head it is a stream."""
    if is_file:
        source.seek(_FILE_HEAD_BYTES)
        cut.is_cut = True
    reader = pa.ipc.open_stream(source)
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (OSError, ValueError, pa.ArrowException) as error:
            if not means_cut(error):
                raise
            cut.is_cut = True
            return
        yield batch
