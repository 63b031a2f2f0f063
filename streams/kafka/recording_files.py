"""Where a recording is written, so that no failure costs one: neither the one that is there nor what has come.

A recording up to the end of the topic is written beside its place and put there when it is whole. One that follows the
topic grows in its place; `OUT.position` beside it says how many bytes belong to which offsets, so that it can be
continued after any end.
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

from twin.errors import MqtwinError, UsageError
from twin.recordings import RecordingWriter, suffix_of

_MARK_SECONDS = 1.0  # between two positions: what a killed process has to read again


class Position(msgspec.Struct, frozen=True):
    """How far a growing recording is. bytes: of the recording; next: the next offset of each partition."""

    topic: str
    topic_id: str
    bytes: int
    next: dict[int, int]


class WholeRecording:
    """A recording that takes its place when it is whole. A context manager.

    Args:
        path: its place. What is there stays until `finish`, and for good where there is none.
    """

    def __init__(self, path: Path) -> None:
        _check_place(path)
        self.path = path
        self.is_untouched = False  # nothing came, and what was there stays
        self._place = path
        self._part = _free_name(path)
        self._writer: RecordingWriter | None = None

    @property
    def writer(self) -> RecordingWriter:
        """The writer; the file is made when it is first asked for."""
        if self._writer is None:
            self._writer = RecordingWriter(self._part)
        return self._writer

    @property
    def events(self) -> int:
        """The number of events written."""
        return 0 if self._writer is None else self._writer.events

    def mark(self, messages: Iterable[Message]) -> None:
        """Do nothing: only a recording that grows has positions."""

    def finish(self, *, whole: bool) -> None:
        """Put the recording in its place.

        It stays beside it, and `path` says where, if it is not whole and there is another in its place. An empty one
        replaces none.
        """
        if self._writer is None and self._place.exists():
            self.is_untouched = True
            return
        self.writer.close()
        _sync(self._part)
        if whole or not self._place.exists():
            self._part.replace(self._place)
        else:
            self.path = self._part

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or self._writer is None:
            return
        with contextlib.suppress(OSError):
            self._writer.close()
        _raise_with_place(error, self.path, self._part, self.events)


class GrowingRecording:
    """A recording that grows while it can be read, and is continued where it ended. A context manager.

    Args:
        path: its place.
        topic, topic_id: what is recorded.

    Raises:
        UsageError: there is a recording that cannot be continued; it is left as it is.
    """

    def __init__(self, path: Path, topic: str, topic_id: str) -> None:
        _check_place(path)
        self.path = path
        self.is_untouched = False
        self._mark_file = path.with_name(f"{path.name}.position")
        self._can_continue = suffix_of(path) != ".arrow"
        self._position = self._read_position(topic, topic_id) if path.exists() else None
        self._topic, self._topic_id = topic, topic_id
        self._next = dict(self.start)
        self._writer: RecordingWriter | None = None
        self._marked = time.monotonic()
        self._is_marked = True

    @property
    def start(self) -> Mapping[int, int]:
        """The offsets where it goes on, by partition; empty for a new one."""
        return {} if self._position is None else self._position.next

    @property
    def writer(self) -> RecordingWriter:
        """The writer; the file is made, or cut back to its last position, when it is first asked for."""
        if self._writer is None:
            if self._position is not None:
                os.truncate(self.path, self._position.bytes)
            self._writer = RecordingWriter(self.path, append=self._position is not None)
        return self._writer

    @property
    def events(self) -> int:
        """The number of events written since this was made."""
        return 0 if self._writer is None else self._writer.events

    def mark(self, messages: Iterable[Message]) -> None:
        """Note that these messages were written."""
        for message in messages:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self._next[partition] = offset + 1
            self._is_marked = False
        if self._writer is not None and not self._is_marked and time.monotonic() - self._marked >= _MARK_SECONDS:
            self._writer.end_piece()
            self._write_position()

    def finish(self, *, whole: bool) -> None:
        """Close the recording; it may be continued, whole or not."""
        del whole
        if self._writer is not None:
            self._writer.close()
            self._write_position()

    def _write_position(self) -> None:
        if self._can_continue:
            _sync(self.path)
            position = Position(self._topic, self._topic_id, self.path.stat().st_size, self._next)
            draft = self._mark_file.with_name(f"{self._mark_file.name}.draft")
            draft.write_bytes(msgspec.json.encode(position))
            _sync(draft)
            draft.replace(self._mark_file)
        self._marked = time.monotonic()
        self._is_marked = True

    def _read_position(self, topic: str, topic_id: str) -> Position:
        if not self._can_continue:
            raise UsageError(f"{self.path} exists, and an .arrow recording cannot be continued; expected: a new name")
        try:
            position = msgspec.json.decode(self._mark_file.read_bytes(), type=Position)
        except (OSError, msgspec.DecodeError):
            raise UsageError(
                f"{self.path} exists, and no {self._mark_file.name} beside it says where it ended; expected: a new name"
            ) from None
        if (position.topic, position.topic_id) != (topic, topic_id):
            raise UsageError(f"{self.path} is a recording of another topic ({position.topic}); expected: a new name")
        if self.path.stat().st_size < position.bytes:
            raise UsageError(
                f"{self.path} has {self.path.stat().st_size} bytes of {position.bytes} recorded; expected: a new name"
            )
        return position

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or self._writer is None:
            return
        with contextlib.suppress(OSError):
            self._writer.close()
        _raise_with_place(error, self.path, self.path, self.events)


def _check_place(path: Path) -> None:
    suffix_of(path)
    if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError(f"{path} cannot be written; expected: a file in a folder that exists and may be written")


def _free_name(path: Path) -> Path:
    """Return a name beside the recording that is not taken: OUT.part.ndjson for OUT.ndjson."""
    suffix = suffix_of(path)
    stem = path.name.removesuffix(suffix)
    number = 1
    while True:
        name = path.with_name(f"{stem}.part{number if number > 1 else ''}{suffix}")
        if not name.exists():
            return name
        number += 1


def _raise_with_place(error: BaseException, path: Path, written: Path, events: int) -> None:
    """Raise an error again, saying where the events are that came before it."""
    rest = f"the {events:,} events before it are in {written}"
    if isinstance(error, OSError):
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise MqtwinError(f"{path} cannot be written: {reason}; {rest}") from error
    if isinstance(error, MqtwinError):
        raise type(error)(f"{error}; {rest}") from error


def _sync(path: Path) -> None:
    """Write a file's bytes to the disk."""
    descriptor: Any = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
