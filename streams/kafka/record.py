"""Recording of the events topic in a file.

The order is that of each partition, hence that of each store; partitions are interleaved as they are read. An event
that the stream would dead-letter is recorded if the file can hold it as text, so that a replay dead-letters it too.
Other values are counted as lost.

Records and content types: docs/events.md, Records.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from confluent_kafka import Message

from streams.kafka.admin import admin_client, topic_id
from streams.kafka.clients import content_type_of
from streams.kafka.event_range import merged_until
from streams.kafka.recording_files import GrowingRecording, WholeRecording
from streams.kafka.topic_reader import EventReader
from streams.kafka.topics import Topics
from streams.kafka.transactions import partition_ends
from twin.errors import UsageError
from twin.events import ARROW, JSON, NDJSON, Decoder, Reason, content_type
from twin.events.values import read_streams
from twin.recordings.files import TableChunk, suffix_of

NOT_FOR_COLUMNS = "not-for-columns"  # reason: an `.arrow` recording has no columns for the text


@dataclass(slots=True)
class RecordResult:
    """Counts of a recording.

    Attributes:
        events: in the file.
        records: read from the topic.
        path: the file.
        is_untouched: True if no record was read and an earlier recording at the path is kept.
        lost: events that the file cannot hold, by reason.
        first_lost: partition and offset of the first of them.
        held: records before the end of the topic that open transactions hold back; none of them is read.
    """

    events: int = 0
    records: int = 0
    path: Path | None = None
    is_untouched: bool = False
    lost: dict[str, int] = field(default_factory=dict)
    first_lost: str = ""
    held: int = 0

    def lose(self, reason: str, message: Message | None, count: int = 1) -> None:
        """Count events that the file cannot hold. message: the record they are from."""
        self.lost[reason] = self.lost.get(reason, 0) + count
        if not self.first_lost and message is not None:
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

    Args:
        path: `.ndjson`, `.ndjson.zst` or `.arrow`. An existing file is replaced once the new one is complete; with
            `follow` it is continued, which is not possible for `.arrow`.
        kafka: client settings, `bootstrap.servers` among them.
        topics: names of the topics.
        follow: read on beyond the present end of the topic, until `stop`.
        skipped: partition and offset of the records that `--skip` named, `Manifest.skipped_of`.
        stop: polled several times per second.
        on_progress: called after each batch of records.

    Raises:
        UsageError: the path cannot be written, the recording cannot be continued, a setting is wrong, or the user may
            not read the topic.
        MqtwinError: no Kafka answers, there is no such topic, or no room; the records before it are kept.
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
    """Record the events that are needed for a time, by time: see `streams.kafka.event_range`.

    Args:
        path: `.ndjson`, `.ndjson.zst` or `.arrow`.
        time_us: the time, microseconds since 1970; some later events are in the recording, too.
        reader: reader of the events topic, which has been started.
        decoder: decoder of the estate.

    Raises:
        UsageError: the path cannot be written.
        MqtwinError: Kafka does not answer.
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
    """A converter of Kafka records to lines and tables of a recording."""

    def __init__(self, target: WholeRecording | GrowingRecording, result: RecordResult) -> None:
        self._target = target
        self._result = result
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
