"""Texts of commands and logs as programs wrap them in JSON: answers to commands, and records of log forwarders.

z/OSMF has the answer under `cmd-response`, zos_operator under `content`. Forwarders (Filebeat, Fluentd, Fluent Bit,
Vector, rsyslog) write an object a record, the line or message under `message`, `log`, `MESSAGE`, `msg` or `event`, and
what stores of logs export has it under `_raw`, `_msg` or `line`, each beside a time: that of lines without their own.
Such exports put records into others; `twin.feeds.json_pages` has the names of all formats.
The Common Data Provider writes SYSLOG to Kafka as an object whose `message` is a row of CSV: record type, address
space, time, system, job number, job, routing codes, flags, console, and the text; the system is also in `metadata`
[seen: IBM, ibm_eda_zos, samples of events of zOS-SYSLOG-Console]. That a row of record type N, or whose text has
several lines, is a whole message is our reading.
"""

from __future__ import annotations

import csv
import json
import mmap
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from twin.feeds.json_pages import MESSAGE_KEYS, RECORD_KEYS, json_documents, record_time, time_of
from twin.feeds.protocol import Page

_JSON = re.compile(rb"\s{0,100}[\[{]")
_ANSWER_KEYS = ("cmd-response", "content")
_MAX_DEPTH = 8  # of records in records
_SYSTEM_KEYS = ("systemName", "SystemName", "hostname", "host")
_MAX_BYTES = 64 << 20
_ROW = 10  # place of the text in a row of the Common Data Provider
_ROW_TIME = re.compile(r"([0-9]{5}|[0-9]{7}) ([0-9]{2}[.:][0-9]{2}[.:][0-9]{2}(?:[.,][0-9]{1,6})?) ?([+-][0-9]{4}|Z)?")
_ROUTES = re.compile(r"(?:[0-9A-F]{7}|[0-9A-F]{16}|[0-9A-F]{32})")
_FLAGS = re.compile(r"[0-9A-F]{8}")
_NO_ROUTES, _NO_FLAGS = "0" * 7, "0" * 8
_SYSTEM_OF_METADATA = 7


class Text(NamedTuple):
    """A text without its wrapping."""

    place: str  # for complaints
    data: bytes | mmap.mmap
    system: str = ""  # that it is from; "": it is not said
    is_whole: bool = False  # True if its last message is known to end with it
    time: int | None = None  # of its record, microseconds since 1970; None: it is not said


def texts_of(page: Page) -> Iterator[Text]:
    """Yield the texts of a page: those that JSON wraps, or the page itself."""
    if not _JSON.match(page.data) or len(page.data) > _MAX_BYTES:
        yield Text(page.name, page.data)
        return
    texts = [(document, place, list(_texts(document, place))) for document, place in json_documents(page)]
    if not any(own for _, _, own in texts):
        yield Text(page.name, page.data)
        return
    for document, place, own in texts:
        yield from own or [Text(place, document)]


def _texts(document: bytes, place: str) -> Iterator[Text]:
    try:
        value = json.loads(document)
    except (ValueError, RecursionError):
        return
    answers = list(_answers(value))
    if answers:
        yield Text(place, "\n".join(answers).encode(errors="replace"))
        return
    yield from _records(value, place)


def _records(value: Any, place: str, time: int | None = None, depth: int = 0) -> Iterator[Text]:
    """Yield the texts of the records of forwarders in a value; `time`: of the record around, microseconds, or None."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _records(item, place, time, depth + 1)
    elif isinstance(value, dict):
        time = time_of(value, time)
        text = _forwarded(value, place)
        if text is not None:
            yield text._replace(time=time)
            return
        for key in RECORD_KEYS:
            yield from _records(value.get(key), place, time, depth + 1)
        for pair in value["values"] if isinstance(value.get("values"), list) else ():
            if isinstance(pair, list) and len(pair) > 1 and isinstance(pair[1], str):
                yield Text(place, pair[1].encode(errors="replace"), time=record_time(pair[0]))


def _answers(value: Any) -> Iterator[str]:
    """Yield the texts under the keys of answers, wherever they stand."""
    if isinstance(value, list):
        for item in value:
            yield from _answers(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in _ANSWER_KEYS:
                yield from [item] if isinstance(item, str) else filter(_is_text, item if isinstance(item, list) else ())
            else:
                yield from _answers(item)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _forwarded(record: dict[str, Any], place: str) -> Text | None:
    message = next((record[key] for key in MESSAGE_KEYS if isinstance(record.get(key), str)), None)
    if message is None:
        return None
    if isinstance(metadata := record.get("metadata"), str):
        names = metadata.split(",")
        system = names[_SYSTEM_OF_METADATA] if len(names) > _SYSTEM_OF_METADATA else ""
        row = _row(message, place)
        if row is not None:
            return row._replace(system=system or row.system)
    named = next((record[key] for key in _SYSTEM_KEYS if record.get(key)), "")
    system = named.get("name", "") if isinstance(named, dict) else named
    return Text(place, message.encode(errors="replace"), str(system))


def _row(message: str, place: str) -> Text | None:
    """Return a row of the Common Data Provider as lines of SYSLOG; None: it is none."""
    with suppress(csv.Error, StopIteration):
        fields = next(csv.reader([message]))
        time = _ROW_TIME.fullmatch(fields[2].strip()) if len(fields) > _ROW else None
        if time is None:
            return None
        kind, _, _, system, job, _, routes, flags = (field.strip() for field in fields[:8])
        lines = [line.rstrip() for line in ",".join(fields[_ROW:]).splitlines()]
        routes = routes if _ROUTES.fullmatch(routes) else _NO_ROUTES
        flags = flags if _FLAGS.fullmatch(flags) else _NO_FLAGS
        begin = f"{kind:<2} {routes} {system} {time[1]} {time[2]}{time[3] or ''} {job} {flags}"
        first = f"{begin}  {lines[0].lstrip() if lines else ''}"
        text = "\n".join([first, *lines[1:]])
        return Text(place, text.encode(errors="replace"), system, kind.startswith("N") or len(lines) > 1)
    return None


STOPPING, STARTING = ("CSQY009I", "CSQ3104I"), ("CSQY000I", "CSQY001I")
BEGUN, STARTED = "CSQR001I", "CSQY022I"
_SAME_US = 60_000_000  # within which two logs may have one message [assumed]
_LONGEST_US = 4 * 3_600_000_000  # from CSQR001I to CSQY022I: much of the log may have to be read [assumed]
_MAX_KEPT = 100  # restarts of a queue manager


class Restarts:
    """Restarts so far: when each began and ended, by queue manager; one of which only one message came ends then.

    One restart is one event, however many messages and logs have it. A queue manager that stops says CSQY009I and
    CSQ3104I; one that starts CSQY000I, CSQR001I when its restart begins, and CSQY022I when it is ready [IBM: MQ for
    z/OS messages]. Units of work are backed out, and nonpersistent messages go, with CSQR001I; a log that begins behind
    it has CSQY022I only. Job log and SYSLOG have the same messages, in any order of files.
    """

    def __init__(self) -> None:
        self._known: dict[str, list[list[int]]] = {}

    def is_new(self, qmgr: str, message_id: str, time: int) -> bool:
        """Return True if a message is about a restart that no other one was about."""
        if message_id not in (BEGUN, STARTED):
            return False
        known = self._known.setdefault(qmgr, [])
        for span in known:
            if span[0] - _SAME_US <= time <= span[1] + _SAME_US:
                span[0], span[1] = min(span[0], time), max(span[1], time)
                return False
        alone = [span for span in known if span[0] == span[1]]
        if message_id == STARTED:
            begun = [span for span in alone if 0 < time - span[0] <= _LONGEST_US]
            if begun:
                max(begun)[1] = time
                return False
        else:
            ended = [span for span in alone if 0 < span[0] - time <= _LONGEST_US]
            if ended:
                min(ended)[0] = time
                return False
        known.append([time, time])
        del known[:-_MAX_KEPT]
        return True
