"""Files of a recording, written so that a failure loses neither an earlier recording nor the records read so far.

A recording up to the end of the topic is written beside its path and moved there when it is complete. A recording that
follows the topic grows at its path. `OUT.position` beside it holds its length and the offsets up to there, so that it
can be continued however it ended.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from confluent_kafka import Message

from streams.files import replace_file
from twin.errors import MqtwinError, UsageError
from twin.recordings.files import RecordingWriter, suffix_of

_POSITION_SECONDS = 1.0  # between two positions; a killed process reads that much again


class Position(msgspec.Struct, frozen=True):
    """The state of a growing recording. bytes: its length; next: the next offset of each partition."""

    topic: str
    topic_id: str
    bytes: int
    next: dict[int, int]


class _RecordingFile:
    """A file that a recording is written to. A context manager: an error is raised again with the file's path.

    Args:
        path: path of the recording.

    Attributes:
        path: where the recording is.
        is_untouched: True if nothing was written and an earlier recording at the path is kept.
    """

    def __init__(self, path: Path) -> None:
        _check_writable(path)
        self.path = path
        self.is_untouched = False
        self._file = path
        self._writer: RecordingWriter | None = None

    @property
    def events(self) -> int:
        """The number of events written by this process."""
        return 0 if self._writer is None else self._writer.events

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or self._writer is None:
            return
        with contextlib.suppress(OSError):
            self._writer.close()
        _raise_with_path(error, self.path, self._file, self.events)


class WholeRecording(_RecordingFile):
    """A recording that replaces the file at its path when it is complete.

    Args:
        path: path of the recording.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._target = path
        self._file = _free_name(path)

    @property
    def writer(self) -> RecordingWriter:
        """The writer; the first access creates the file."""
        if self._writer is None:
            self._writer = RecordingWriter(self._file, in_place=True)
        return self._writer

    def note_written(self, messages: Iterable[Message]) -> None:
        """Do nothing: only a growing recording has positions."""

    def finish(self, *, is_complete: bool) -> None:
        """Move the recording to its path, unless it would replace a file and is empty or not complete.

        One that is not complete then stays beside the file, as `path`.
        """
        if self._writer is None and self._target.exists():
            self.is_untouched = True
            return
        self.writer.close()
        _sync(self._file)
        if is_complete or not self._target.exists():
            self._file.replace(self._target)
        else:
            self.path = self._file


class GrowingRecording(_RecordingFile):
    """A recording that can be read while it grows, and continued after it ended.

    Args:
        path: path of the recording.
        topic: name of the recorded topic.
        topic_id: Kafka's id of it.

    Raises:
        UsageError: there is a recording that cannot be continued; it is not changed.
    """

    def __init__(self, path: Path, topic: str, topic_id: str) -> None:
        super().__init__(path)
        self._position_file = path.with_name(f"{path.name}.position")
        self._can_continue = suffix_of(path) != ".arrow"
        self._position = self._read_position(topic, topic_id) if path.exists() else None
        self._topic, self._topic_id = topic, topic_id
        self._next = dict(self.start)
        self._position_written_s = time.monotonic()
        self._is_position_current = True

    @property
    def start(self) -> Mapping[int, int]:
        """The first offsets to read, by partition; empty for a new recording."""
        return {} if self._position is None else self._position.next

    @property
    def writer(self) -> RecordingWriter:
        """The writer; the first access creates the file, or truncates it to its last position."""
        if self._writer is None:
            if self._position is not None:
                os.truncate(self.path, self._position.bytes)
            self._writer = RecordingWriter(self.path, append=self._position is not None, in_place=True)
        return self._writer

    def note_written(self, messages: Iterable[Message]) -> None:
        """Note that messages are written, and write the position if the last one is old."""
        for message in messages:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self._next[partition] = offset + 1
            self._is_position_current = False
        if (
            self._writer is not None
            and not self._is_position_current
            and time.monotonic() - self._position_written_s >= _POSITION_SECONDS
        ):
            self._writer.end_piece()
            self._write_position()

    def finish(self, *, is_complete: bool) -> None:
        """Close the recording. It can be continued, complete or not."""
        del is_complete
        if self._writer is not None:
            self._writer.close()
            self._write_position()

    def _write_position(self) -> None:
        if self._can_continue:
            _sync(self.path)
            position = Position(self._topic, self._topic_id, self.path.stat().st_size, self._next)
            replace_file(self._position_file, msgspec.json.encode(position))
        self._position_written_s = time.monotonic()
        self._is_position_current = True

    def _read_position(self, topic: str, topic_id: str) -> Position:
        if not self._can_continue:
            raise UsageError(f"{self.path} exists, and an .arrow recording cannot be continued; expected: a new name")
        try:
            position = msgspec.json.decode(self._position_file.read_bytes(), type=Position)
        except (OSError, msgspec.DecodeError):
            raise UsageError(
                f"{self.path} exists, and no {self._position_file.name} beside it says where it ended; "
                "expected: a new name"
            ) from None
        if (position.topic, position.topic_id) != (topic, topic_id):
            raise UsageError(f"{self.path} is a recording of another topic ({position.topic}); expected: a new name")
        if self.path.stat().st_size < position.bytes:
            raise UsageError(
                f"{self.path} has {self.path.stat().st_size} bytes of {position.bytes} recorded; expected: a new name"
            )
        return position


def _check_writable(path: Path) -> None:
    suffix_of(path)
    if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError(f"{path} cannot be written; expected: a file in a folder that exists and may be written")


def _free_name(path: Path) -> Path:
    """Return an unused name beside the recording: OUT.part.ndjson for OUT.ndjson."""
    suffix = suffix_of(path)
    stem = path.name.removesuffix(suffix)
    number = 1
    while True:
        name = path.with_name(f"{stem}.part{number if number > 1 else ''}{suffix}")
        if not name.exists():
            return name
        number += 1


def _raise_with_path(error: BaseException, path: Path, file: Path, events: int) -> None:
    """Raise an error again, with the file that holds the events recorded before it."""
    rest = f"the {events:,} events before it are in {file}"
    if isinstance(error, OSError):
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise MqtwinError(f"{path} cannot be written: {reason}; {rest}") from error
    if isinstance(error, MqtwinError):
        raise type(error)(f"{error}; {rest}") from error


def _sync(path: Path) -> None:
    """Flush a file's bytes to the disk."""
    descriptor: Any = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
