"""The way past a record that ends the job at every start: the offsets of its checkpoint are moved over it.

Spark reads ranges of offsets. A planned batch with the record in its range is cut to end before it, and once the record
is the first of the next batch, that batch begins behind it. So no other record is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog
from confluent_kafka import TopicPartition

from streams.checkpoint.files import DamagedFileError, Folder, parse_initial_offsets, parse_offsets
from streams.checkpoint.local_files import CheckpointFiles
from streams.kafka.clients import CONNECT_SECONDS, LastError, check, new_consumer
from streams.kafka.dead_letters import DeadLetter, LetterSender
from streams.kafka.topics import Topics
from twin.errors import MqtwinError, UsageError
from twin.events import Reason

_PLACE = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})/(?P<partition>\d+)/(?P<offset>\d+)")
_DETAIL = "the record has a time that Spark cannot read, or ends the job otherwise; left out by --skip"
_log = structlog.get_logger("mqtwin.stream")


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a record."""

    topic: str
    partition: int
    offset: int

    @classmethod
    def parse(cls, text: str) -> Place:
        """Parse ``TOPIC/PARTITION/OFFSET``. UsageError."""
        match = _PLACE.fullmatch(text)
        if match is None:
            raise UsageError(f"--skip {text}; expected: TOPIC/PARTITION/OFFSET, such as mqtwin.events/0/35")
        return cls(match["topic"], int(match["partition"]), int(match["offset"]))

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


def skip_record(
    directory: Path, place: Place, kafka: Mapping[str, str], topics: Topics, remember: Callable[[str], None]
) -> None:
    """Take the next step past a record; nothing is changed if the job has passed it, or has not come to it yet.
    UsageError: the file of offsets is damaged. MqtwinError: Kafka does not answer, or no longer has the record.
    """
    files = CheckpointFiles(directory)
    last = files.last_batch
    if last is None:
        return
    is_planned = not (files.commits and files.commits[-1] >= last)
    previous = last - 1 if is_planned else last
    folder = files.folder
    start_file = f"offsets/{previous}" if previous >= 0 else "sources/0/0"
    end_file = f"offsets/{last}"
    try:
        start = _read(folder, start_file).get(place.topic, {}).get(place.partition)
        end = _read(folder, end_file).get(place.topic, {}).get(place.partition) if is_planned else None
        if start == place.offset:
            _write_letter(place, kafka, topics)
            remember(str(place))
            _write(folder, start_file, place, place.offset + 1)
            if end is not None and end <= place.offset:
                _write(folder, end_file, place, place.offset + 1)
            _log.warning("record skipped", record=str(place), effect="it is a dead letter; the job goes on behind it")
        elif start is not None and end is not None and start < place.offset < end:
            _write(folder, end_file, place, place.offset)
            _log.warning(
                "batch cut",
                record=str(place),
                effect="the batch ends before the record; the job fails there once more, and the next start skips it",
            )
    except (DamagedFileError, OSError) as error:
        raise UsageError(f"checkpoint {directory}: its offsets cannot be changed: {error}") from error


def _read(folder: Folder, name: str) -> dict[str, dict[int, int]]:
    data = folder.read(name)
    offsets = parse_offsets(data).offsets if name.startswith("offsets/") else parse_initial_offsets(data)
    return {topic: dict(partitions) for topic, partitions in offsets.items()}


def _write(folder: Folder, name: str, place: Place, offset: int) -> None:
    """Replace an offset in a file of offsets; a crash leaves either the old file or the new one."""
    offsets = _read(folder, name)
    offsets[place.topic][place.partition] = offset
    head = folder.read(name).rstrip(b"\n").rpartition(b"\n")[0]
    folder.write(name, head + b"\n" + msgspec.json.encode(offsets))


def _write_letter(place: Place, kafka: Mapping[str, str], topics: Topics) -> None:
    """Write the dead letter of a record. MqtwinError: Kafka does not have the record, or does not answer."""
    consumer = new_consumer(kafka, {}, LastError())
    try:
        consumer.assign([TopicPartition(place.topic, place.partition, place.offset)])
        message = consumer.poll(CONNECT_SECONDS)
        if message is None or not check(message.error(), place.topic) or message.offset() != place.offset:
            raise MqtwinError(f"--skip {place}: Kafka does not give this record")
        value = message.value() or b""
    finally:
        consumer.close()
    letter = DeadLetter(str(Reason.BAD_TIME), _DETAIL, place.topic, place.partition, place.offset, 0, value, len(value))
    sender = LetterSender(kafka, topics, create_topics=True)
    sender.send(letter)
    sender.flush()
