"""The cause of a failed stream on one line, because Spark's own text often leaves it out.

Causes are checked in this order: Java has ended, a disk is full, a record has a time that Spark cannot read, a topic of
the job was deleted, a Python worker was killed. Otherwise the innermost message of Spark's text is the cause
(`streams.errors`).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlparse

from streams.errors import one_line
from streams.host.java_process import DEATH_SECONDS, explain_java_exit
from streams.kafka.admin import missing_topics
from twin.errors import MqtwinError

FULL_BYTES = 16 << 20  # a disk with less free space is full for a state store
FULL_FILES = 100  # of a file system with a fixed number of them (inodes); a batch makes some dozen
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded|not enough space", re.IGNORECASE)
_FILES = re.compile(r"STATE_STORE|java\.io\.|RocksDB|checkpoint", re.IGNORECASE)
_NO_TOPIC = re.compile(r"UnknownTopicOrPartition|does not host this topic|not present in metadata")
_TIME = re.compile(r"Record at topic (\S+) partition (\d+) offset (\d+) has timestamp value (-?\d+) that overflows")
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
        error: the exception.
        checkpoint: location of the checkpoint, a path or a URI.
        directories: local directories that Spark and its workers write to.
        kafka: client settings, ``bootstrap.servers`` among them.
        topics: operations that the job needs, by topic.
    """
    java_exit = explain_java_exit(DEATH_SECONDS)
    if java_exit:
        return java_exit
    text = str(error)
    local = [Path(unquote(urlparse(checkpoint).path))] if urlparse(checkpoint).scheme in ("", "file") else []
    full = _find_full_disks([*local, *directories]) if _FILES.search(text) or _NO_SPACE.search(text) else []
    if full:
        return f"disk full: {'; '.join(full)}; make room: started again, the job goes on where it was"
    if _NO_SPACE.search(text):
        return f"disk full: {one_line(text)}"
    of_kafka = _explain_time(text) or _explain_missing_topics(text, topics, kafka)
    if of_kafka:
        return of_kafka
    if _KILLED.search(text) and not _has_python_traceback(text):
        return f"a Python worker was killed (out of memory?): {one_line(text)}"
    return one_line(text)


def _explain_time(text: str) -> str:
    time = _TIME.search(text)
    if time is None:
        return ""
    place = "/".join(time.groups()[:3])
    return (
        f"record {place} has the time {time[4]} ms, which Spark cannot read: start again with --skip {place}, "
        "which makes it a dead letter; where records before it are not yet read, a second start passes it"
    )


def _explain_missing_topics(text: str, topics: Mapping[str, Sequence[str]], kafka: Mapping[str, str]) -> str:
    missing = _find_missing_topics(topics, kafka) if _NO_TOPIC.search(text) else []
    if not missing:
        return ""
    return f"deleted in Kafka while the job ran: topic {', '.join(missing)}; starting again creates it anew"


def _find_full_disks(places: Iterable[Path]) -> list[str]:
    """Return one sentence per disk with less than `FULL_BYTES` free space, or no room for another file."""
    sentences = {}
    for place in places:
        existing = next((path for path in (place, *place.parents) if path.exists()), None)
        if existing is not None:
            disk = shutil.disk_usage(existing)
            if disk.free < FULL_BYTES:
                sentences[existing] = f"{place}: {disk.free / 1e6:.1f} of {disk.total / 1e6:,.0f} MB free"
            elif (files := os.statvfs(existing)).f_files and files.f_favail < FULL_FILES:
                sentences[existing] = f"{place}: {files.f_favail:,} of {files.f_files:,} files (inodes) free"
    return list(sentences.values())


def _find_missing_topics(topics: Mapping[str, Sequence[str]], kafka: Mapping[str, str]) -> list[str]:
    try:
        return missing_topics(kafka, topics)
    except MqtwinError:  # no broker answers, and Spark's own text has to do
        return []


def _has_python_traceback(text: str) -> bool:
    """Return True if a Python worker raised an exception and hence was not killed."""
    return "Traceback (most recent call last)" in text
