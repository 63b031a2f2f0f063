"""Why the stream failed, in one line that names what to look at: Spark's own text often leaves out the cause.

Looked for, in this order: Java is gone, a disk is full, a topic of the job is gone, a Python worker was killed. Else
the innermost message of Spark's text is the cause, see `streams.errors`.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlparse

from streams.errors import one_line
from streams.host.java_process import GONE_SECONDS, gone_java
from streams.kafka.topics import missing_topics
from twin.errors import MqtwinError

FULL_BYTES = 16 << 20  # a disk with less free than that is full for a state store
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded|not enough space", re.IGNORECASE)
_FILES = re.compile(r"STATE_STORE|java\.io\.|RocksDB|checkpoint", re.IGNORECASE)
_NO_TOPIC = re.compile(r"UnknownTopicOrPartition|does not host this topic|not present in metadata")
_KILLED = re.compile(
    r"Python worker exited unexpectedly|java\.io\.EOFException|IOException: Stream closed|Connection reset"
    r"|ClosedChannelException",
)


def explain(
    error: BaseException,
    *,
    checkpoint: str = "",
    directories: Iterable[Path] = (),
    kafka: Mapping[str, str],
    topics: Mapping[str, Sequence[str]],
) -> str:
    """Return the cause of a failed query or a failed call of Spark on one line.

    Args:
        error: what was raised.
        checkpoint: where the checkpoint is, a path or a URI.
        directories: local directories that Spark and its workers write.
        kafka: client settings, ``bootstrap.servers`` among them.
        topics: what the job reads and writes -> the operations that it needs there.
    """
    gone = gone_java(GONE_SECONDS)
    if gone:
        return gone
    text = str(error)
    local = [Path(unquote(urlparse(checkpoint).path))] if urlparse(checkpoint).scheme in ("", "file") else []
    full = _full_disks([*local, *directories]) if _FILES.search(text) or _NO_SPACE.search(text) else []
    if full:
        return f"disk full: {'; '.join(full)}; make room: started again, the job goes on where it was"
    if _NO_SPACE.search(text):
        return f"disk full: {one_line(text)}"
    if _NO_TOPIC.search(text):
        missing = _missing(topics, kafka)
        if missing:
            return f"deleted in Kafka while the job ran: topic {', '.join(missing)}; starting again creates it anew"
    if _KILLED.search(text) and not _python_message(text):
        return f"a Python worker was killed (out of memory?): {one_line(text)}"
    return one_line(text)


def _full_disks(places: Iterable[Path]) -> list[str]:
    """Return a text for each place whose disk has less than `FULL_BYTES` free."""
    found = {}
    for place in places:
        existing = next((path for path in (place, *place.parents) if path.exists()), None)
        if existing is not None:
            disk = shutil.disk_usage(existing)
            if disk.free < FULL_BYTES:
                found[existing] = f"{place}: {disk.free / 1e6:.1f} of {disk.total / 1e6:,.0f} MB free"
    return list(found.values())


def _missing(topics: Mapping[str, Sequence[str]], kafka: Mapping[str, str]) -> list[str]:
    try:
        return missing_topics(kafka, topics)
    except MqtwinError:  # nobody answers: then Spark's own text is all there is
        return []


def _python_message(text: str) -> bool:
    """Return True if a Python worker raised something: then it was not killed."""
    return "Traceback (most recent call last)" in text
