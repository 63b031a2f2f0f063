"""Reading of recordings whose end is missing, because their writer was killed or the disk was full."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import msgspec
import pyarrow as pa
import pyarrow.ipc

from twin.errors import CutRecordingWarning

_READ_BYTES = 1 << 16  # per read of a compressed file: a read that meets the cut returns nothing of the bytes before it
_CUT = re.compile(
    r"Truncated compressed stream|Expected to (be able to )?read .* (got|only read)|only \d+ bytes available"
)
_FILE_MAGIC = b"ARROW1"
_FILE_HEAD_BYTES = 8  # the magic and its padding


class CutCheck:
    """State of reading a recording. `is_cut` is True once its end is found missing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_cut = False

    def warn(self, events: int) -> None:
        """Warn if the end is missing. events: number of events read."""
        if self.is_cut:
            text = f"{self.path} is cut off: {events:,} events were read, its end is missing"
            warnings.warn(CutRecordingWarning(text), stacklevel=3)


class CompressedReader:
    """Reader of a possibly compressed file, up to the last byte before a missing end. A context manager."""

    def __init__(self, source: Any, compression: str | None, cut: CutCheck) -> None:
        self._source = source
        self._compression = compression
        self._cut = cut
        self._position = 0  # in the decompressed bytes

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end.

        Raises:
            OSError: the file is damaged.
        """
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
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
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
