"""Recording of the events topic in a file: docs/events.md, Records.

The order is that of each partition, hence that of each store; partitions are interleaved as they are read. An event
that the stream would dead-letter is recorded if the file can hold it as text, so that a replay dead-letters it too;
other values are counted as lost. A failure loses neither an earlier recording nor the records read so far: a recording
up to the end of the topic is written beside its path and moved there when it is complete; one that follows the topic
grows at its path, and `OUT.position` beside it holds its length and the offsets up to there, from which it continues.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import pyarrow as pa
from confluent_kafka import Message

from streams.kafka.admin import admin_client, partition_ends, topic_id
from streams.kafka.clients import content_type_of
from streams.kafka.present import merged_until
from streams.kafka.topic_reader import EventReader
from streams.kafka.topics import Topics
from twin.base.decoding import UNREADABLE
from twin.base.errors import MqtwinError, UsageError
from twin.base.outputs import replace_file
from twin.events import ARROW, JSON, NDJSON, Decoder, Reason, content_type
from twin.events.values import read_streams
from twin.recordings.files import RecordingWriter, TableChunk, suffix_of

NOT_FOR_COLUMNS = "not-for-columns"  # reason: an `.arrow` recording has no columns for the text
_POSITION_SECONDS = 1.0  # between two positions; a killed process reads that much again


class Position(msgspec.Struct, frozen=True):
    """The state of a growing recording. bytes: its length; next: the next offset of each partition."""

    topic: str
    topic_id: str
    bytes: int
    next: dict[int, int]


class _RecordingFile:
    """A file that a recording is written to. A context manager: an error is raised again with the file's path."""

    def __init__(self, path: Path) -> None:
        suffix_of(path)
        if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
            raise UsageError(f"{path} cannot be written; expected: a file in a folder that exists and may be written")
        self.path = path
        self.is_untouched = False  # nothing was written and an earlier recording at the path is kept
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
    """A recording that replaces the file at its path when it is complete."""

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
    """A recording that can be read while it grows, and continued after it ended. UsageError: there is a recording that
    cannot be continued; it is not changed.
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
        except (OSError, *UNREADABLE):
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


def _free_name(path: Path) -> Path:
    """Return an unused name beside the recording: OUT.part.ndjson for OUT.ndjson."""
    suffix = suffix_of(path)
    stem = path.name.removesuffix(suffix)
    number = 1
    while True:
        name = path.with_name(f"{stem}.part{number if number > 1 else ''}{suffix}")
        if not os.path.lexists(name):
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
    descriptor: Any = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class RecordResult:
    """Counts of a recording."""

    events: int = 0  # in the file
    records: int = 0  # read from the topic
    path: Path | None = None
    is_untouched: bool = False  # no record was read and an earlier recording at the path is kept
    lost: dict[str, int] = field(default_factory=dict)  # events that the file cannot hold, by reason
    first_lost: str = ""  # partition and offset of the first of them
    held: int = 0  # records that open transactions hold back at the end, which are not read

    def lose(self, reason: str, message: Message) -> None:
        """Count an event that the file cannot hold. message: the record it is from."""
        self.lost[reason] = self.lost.get(reason, 0) + 1
        if not self.first_lost:
            self.first_lost = f"partition {message.partition()} offset {message.offset()}"


def record(
    path: str | Path,
    kafka: Mapping[str, str],
    topics: Topics,
    *,
    follow: bool = False,
    skipped: Collection[tuple[int, int]] = (),
    stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[RecordResult], None] | None = None,
) -> RecordResult:
    """Record the events topic from its beginning, or, with `follow`, from the end of the recording.

    Only records of committed transactions are read, in each partition up to the first transaction that is still open.
    Those that the job leaves out, as Spark cannot read their own time, are left out here and counted as lost.
    UsageError: the path cannot be written, the recording cannot be continued, a setting is wrong, or the user may not
    read the topic. MqtwinError: no Kafka answers, there is no such topic, or no room; the records before it are kept.

    Args:
        path: `.ndjson`, `.ndjson.zst` or `.arrow`. An existing file is replaced once the new one is complete; with
            `follow` it is continued, which is not possible for `.arrow`.
        follow: read on beyond the present end of the topic, until `stop`.
    """
    result = RecordResult()
    path = Path(path)
    suffix_of(path)
    with EventReader(kafka, topics.events, follow=follow, skipped=skipped) as reader:
        target: WholeRecording | GrowingRecording
        if follow:
            target = GrowingRecording(path, topics.events, topic_id(kafka, topics.events))
        else:
            target = WholeRecording(path)
            result.held = sum(end.held_records for end in partition_ends(admin_client(kafka), [topics.events]))
        reader.start(target.start if isinstance(target, GrowingRecording) else {}, path)
        with target:
            _copy(reader, target, result, stop, on_progress)
            target.finish(is_complete=reader.is_at_end)
    result.path, result.is_untouched = target.path, target.is_untouched
    return result


def record_until(path: Path, time_us: int, reader: EventReader, decoder: Decoder) -> None:
    """Record the events that are needed for a time, by time: see `streams.kafka.topic_reader`. Some later events are in
    the recording, too. UsageError: the path cannot be written. MqtwinError: Kafka does not answer.
    """
    target = WholeRecording(path)
    with target:
        converter = _Converter(target, RecordResult())
        for messages in merged_until(time_us, reader, decoder):
            converter.add(messages)
        target.finish(is_complete=True)


def _copy(
    reader: EventReader,
    target: WholeRecording | GrowingRecording,
    result: RecordResult,
    stop: Callable[[], bool],
    on_progress: Callable[[RecordResult], None] | None,
) -> None:
    converter = _Converter(target, result)
    while not reader.is_at_end and not stop():
        messages = reader.read()
        if messages:
            converter.add(messages)
            result.records += len(messages)
            result.events = target.events
        for message in reader.left_out:
            result.lose(Reason.BAD_TIME, message)
        target.note_written(messages)
        if messages and on_progress is not None:
            on_progress(result)


class _Converter:
    def __init__(self, target: WholeRecording | GrowingRecording, result: RecordResult) -> None:
        self._target, self._result = target, result
        self._takes_text = target.path.suffix != ".arrow"

    def add(self, messages: Sequence[Message]) -> None:
        """Write records, in their order."""
        for kind, run in itertools.groupby(messages, key=lambda message: content_type(content_type_of(message))):
            if kind == JSON:
                self._add_texts([(message, text) for message in run for text in self._texts(message)])
            elif kind == NDJSON:
                self._add_texts([(message, line) for message in run for line in _lines(message)])
            elif kind == ARROW:
                for message in run:
                    self._add_stream(message)
            else:
                for message in run:
                    self._result.lose(Reason.UNKNOWN_CONTENT_TYPE, message)

    def _texts(self, message: Message) -> Iterator[bytes]:
        """Yield the event of a JSON record. An empty value is counted as lost: a recording has no empty lines."""
        value = message.value() or b""
        if value.strip():
            yield value
        else:
            self._result.lose(Reason.NOT_JSON, message)

    def _add_texts(self, texts: Sequence[tuple[Message, bytes]]) -> None:
        """Write JSON texts. Bisect them if columns do not take all of them, to leave out only those."""
        try:
            self._target.writer.write_lines([text for _, text in texts])
        except UsageError:
            if len(texts) == 1:
                self._result.lose(NOT_FOR_COLUMNS, texts[0][0])
                return
            middle = len(texts) // 2
            self._add_texts(texts[:middle])
            self._add_texts(texts[middle:])

    def _add_stream(self, message: Message) -> None:
        groups, damages = read_streams(pa.array([message.value()], pa.large_binary()))
        for group in groups:
            table = pa.Table.from_batches(group.batches)
            if self._takes_text:
                self._target.writer.write_lines(TableChunk(0, table).lines())
                continue
            try:
                self._target.writer.write(table)
            except UsageError:
                self._add_texts([(message, text) for text in TableChunk(0, table).lines()])
        for damage in damages:
            self._result.lose(damage.reason, message)


def _lines(message: Message) -> Iterator[bytes]:
    for line in (message.value() or b"").split(b"\n"):
        if line.strip():
            yield line
