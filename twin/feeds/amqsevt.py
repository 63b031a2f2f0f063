"""Event messages of distributed queue managers as JSON, written by amqsevt: statistics, accounting, activity trace.

Sources: [published: IBM, amqsevta.c] for the envelope and the names of fields, [IBM: MQ 9.4, Queue statistics data] and
[IBM: MQ 9.4, Application activity trace]. Of a pair the first number is of nonpersistent messages. `msgsNotQueued` are
in the puts and gets: they were handed to a waiting getter. The start and end of an interval are local times.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from typing_extensions import override

from twin.conditions import Q_FULL, Q_SPACE_NOT_AVAILABLE, STORAGE_MEDIUM_FULL
from twin.events import Event
from twin.events.fields import Op
from twin.feeds.intake import Complaint, Intake, Item, Passed
from twin.feeds.intervals import Flows, Puts
from twin.feeds.json_pages import JsonText, integer
from twin.feeds.names import message_id
from twin.feeds.protocol import NOT_BY_TIME, Feed, FeedOptions, Page
from twin.feeds.streams import Streams

PERFORMANCE, STATISTICS, ACCOUNTING, ACTIVITY = 45, 165, 168, 209  # event types
_REFUSED = frozenset((Q_FULL, Q_SPACE_NOT_AVAILABLE, STORAGE_MEDIUM_FULL))
_BACKED_OUT = 2003
_OK, _WARNING = 0, 1  # completion codes
_PUT_SYNCPOINT = _GET_SYNCPOINT = 0x2
_BROWSE = 0x10 | 0x20 | 0x800
_PUTS = frozenset(("Put", "Put1"))
_GETS = frozenset(("Get", "Callback", "Cb"))
_ENDS: Mapping[str, Op] = {  # of units of work
    "Cmit": "COMMIT",
    "Disc": "COMMIT",  # of an application that ends normally [IBM: MQDISC]
    "XACommit": "COMMIT",
    "Back": "BACKOUT",
    "XARollback": "BACKOUT",
}
_MAX_UNITS = 100_000  # open units of work that are remembered
_OTHERS = "event message of other kinds"
_MAX_KIND = 60  # characters
_MAX_QUEUES = 1000  # of one unit of work
_MAX_INTERVAL_US = 366 * 86_400 * 1_000_000


class AmqsevtFeed(Feed):
    """Reader of event messages.

    It remembers which queues each open unit of work has touched, and of each stream the object that has not ended.
    """

    reads = "JSON of amqsevt"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self.passed = NOT_BY_TIME
        self._units: OrderedDict[tuple[str, str], dict[str, None]] = OrderedDict()
        self._streams = Streams(self, JsonText)

    @override
    def take(self, page: Page) -> Iterator[Item]:
        """Yield the events of the messages that end in a page."""
        for item in self._streams.take(page, lambda text: text.take(page)):
            if isinstance(item, Complaint):
                yield item
                continue
            message, place = item
            try:
                yield from self._message(message, place)
            except (ValueError, KeyError, TypeError, OverflowError, AttributeError) as error:
                text = f"{type(error).__name__} {str(error)[:100]}; expected: fields as amqsevt writes them"
                yield Complaint("bad-value", place, text)

    @override
    def finish(self) -> Iterator[Item]:
        return self._streams.finish()

    def _message(self, message: Mapping[str, Any], place: str) -> Iterator[Item]:
        data, kind = message.get("eventData"), message.get("eventType")
        if not isinstance(data, dict) or not isinstance(kind, dict):
            yield Complaint("foreign", place, "no eventType and eventData; expected: JSON of amqsevt")
            return
        self.object_count += 1
        number = integer(kind.get("value", -1))
        qmgr = _queue_manager(message, data)
        if qmgr:
            self.intake.facts.add("queue_manager", qmgr, place, platform="distributed")
        if not _is_used(number, message, data):
            yield Passed(_OTHERS, str(kind.get("name") or number)[:_MAX_KIND], is_counted=True)
            return
        if not qmgr:
            yield Complaint("no-qmgr", place, "no queueMgrName; expected: the name of the queue manager")
            return
        if "activityTrace" in data:
            yield from self._activity(qmgr, data, place)
        elif number == STATISTICS:
            yield from self._counts("statistics", qmgr, data, _list(data, "queueStatisticsData"), place)
        elif number == ACCOUNTING:
            yield from self._counts("accounting", qmgr, data, _list(data, "queueAccountingData"), place)
        else:
            time = integer(message["eventCreation"]["epoch"]) * 1_000_000
            queue = str(data["baseObjectName"]).strip()
            yield {"time": time, "qmgr": qmgr, "op": "PUT", "queue": queue, "length": 0, "reason": Q_FULL}

    # --- statistics and accounting -----------------------------------------------------------------------------------

    def _counts(self, source: str, qmgr: str, data: Mapping[str, Any], items: list[Any], place: str) -> Iterator[Item]:
        self.object_count += max(0, len(items) - 1)
        start = self._time(data, "start")
        if self.options.zone is None:
            text = "its times are local; they are taken as UTC. Expected: --zone"
            yield from self.once(Complaint("no-zone", place, text))
        end = self._time(data, "end")
        if not 0 <= end - start <= _MAX_INTERVAL_US:
            text = f"an interval of {end - start} microseconds; expected: its end after its start. Its end is taken"
            yield Complaint("interval", place, text)
            start = end
        for item in items:
            queue = str(item["queueName"]).strip()
            if not queue:
                continue
            self.intake.facts.add("queue_file", f"{qmgr}/{queue}", place)
            flows = _flows(qmgr, queue, (start, end), item)
            yield from self.flow_events(source, flows, place, is_common=source == "statistics")

    def _time(self, data: Mapping[str, Any], name: str) -> int:
        """Return the start or end of an interval, microseconds since 1970."""
        text = f"{data[f'{name}Date']} {str(data[f'{name}Time']).replace(':', '.')}"
        moment = datetime.strptime(text, "%Y-%m-%d %H.%M.%S").replace(tzinfo=self.options.zone or UTC)
        return round(moment.timestamp()) * 1_000_000

    # --- activity trace ----------------------------------------------------------------------------------------------

    def _activity(self, qmgr: str, data: Mapping[str, Any], place: str) -> Iterator[Item]:
        connection = str(data.get("connectionId") or data.get("connectionName") or data.get("applName") or "")
        operations = _list(data, "activityTrace")
        self.object_count += max(0, len(operations) - 1)
        for number, operation in enumerate(operations):
            try:
                yield from self._operation(qmgr, connection, operation)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                text = f"{type(error).__name__} {str(error)[:100]}; expected: fields of level MEDIUM or HIGH"
                yield Complaint("bad-value", f"{place}, operation {number}", text)

    def _operation(self, qmgr: str, connection: str, operation: Mapping[str, Any]) -> Iterator[Item]:
        name = str(operation["operationId"])
        unit = f"{connection}/{operation.get('threadId', '')}"
        if name in _ENDS:
            yield from self._end_unit(qmgr, unit, _ENDS[name], operation)
        elif name in _PUTS or (name in _GETS and "msgLength" in operation):
            event = _call(qmgr, name in _PUTS, operation)
            if event is None:
                return
            if other := self.intake.claim(qmgr, event["queue"], "activity trace"):
                yield other
                return
            self.intake.facts.add("queue_file", f"{qmgr}/{event['queue']}", "activity trace")
            options = _hex(operation.get("putOptions" if name in _PUTS else "getOptions"))
            if options & (_PUT_SYNCPOINT if name in _PUTS else _GET_SYNCPOINT) and "reason" not in event:
                event["uow"] = unit
                yield from self._touch(qmgr, unit, event["queue"])
            yield event

    def _touch(self, qmgr: str, unit: str, queue: str) -> Iterator[Complaint]:
        queues = self._units.setdefault((qmgr, unit), {})
        if len(queues) < _MAX_QUEUES:
            queues[queue] = None
        if len(self._units) > _MAX_UNITS:
            self._units.popitem(last=False)
            yield Complaint("units", qmgr, f"more than {_MAX_UNITS} open units of work; the oldest is forgotten")

    def _end_unit(self, qmgr: str, unit: str, op: Op, operation: Mapping[str, Any]) -> Iterator[Item]:
        completion, reason = _code(operation, "compCode"), _code(operation, "reasonCode")
        if completion not in {_OK, _WARNING} and reason != _BACKED_OUT:
            return
        op = "BACKOUT" if reason == _BACKED_OUT else op
        for queue in self._units.pop((qmgr, unit), {}):
            yield {"time": integer(operation["highresTime"]), "qmgr": qmgr, "op": op, "queue": queue, "uow": unit}


def _queue_manager(message: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Return the queue manager of an event message: that of its data, else that whose queue it was read from; or ""."""
    source = message.get("eventSource")
    names = [data.get(name) for name in ("queueMgrName", "qMgrName", "eventQueueMgr")]
    names.append(source.get("queueMgr") if isinstance(source, dict) else None)
    return next((str(name).strip() for name in names if name and str(name).strip()), "")


def _is_used(number: int, message: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
    """Return True for statistics, accounting, activity traces and Queue Full."""
    if "activityTrace" in data or number in {STATISTICS, ACCOUNTING}:
        return True
    reason = message.get("eventReason")
    return number == PERFORMANCE and isinstance(reason, dict) and integer(reason.get("value", 0)) == Q_FULL


def _flows(qmgr: str, queue: str, interval: tuple[int, int], item: Mapping[str, Any]) -> Flows:
    """Return the counts of a queue.

    Messages that were purged go like expired ones, the oldest first: when in the interval they went is not known.
    """
    puts, put1s, sizes = _pair(item, "puts"), _pair(item, "put1s"), _pair(item, "putBytes")
    counts = [puts[0] + put1s[0], puts[1] + put1s[1]]
    handed = min(_count(item, "msgsNotQueued"), sum(counts))
    groups = []
    left = handed
    for count, size, persistent in zip(counts, sizes, (False, True), strict=True):
        direct = min(left, count)
        left -= direct
        direct_bytes = size * direct // count if count else 0
        groups.append(Puts(count=count - direct, bytes=size - direct_bytes, persistent=persistent))
        groups.append(Puts(count=direct, bytes=direct_bytes, persistent=persistent, direct=True))
    return Flows(
        qmgr=qmgr,
        queue=queue,
        start=interval[0],
        end=interval[1],
        puts=tuple(groups),
        gets=max(0, sum(_pair(item, "gets")) - handed),
        expired=_count(item, "msgsExpired") + _count(item, "msgsPurged"),
    )


def _call(qmgr: str, is_put: bool, operation: Mapping[str, Any]) -> Event | None:
    """Return the event of a put or get, or None for one that stored and removed nothing."""
    options = _hex(operation.get("putOptions" if is_put else "getOptions"))
    completion, reason = _code(operation, "compCode"), _code(operation, "reasonCode")
    failed = completion not in {_OK, _WARNING}
    if (failed and not (is_put and reason in _REFUSED)) or (not is_put and options & _BROWSE):
        return None
    names = ("resolvedLocalQueueName", "resolvedQueueName", "objectName")
    queue = next((str(operation[name]).strip() for name in names if str(operation.get(name) or "").strip()), "")
    if not queue:
        raise ValueError("no objectName")
    event: Event = {
        "time": integer(operation["highresTime"]),
        "qmgr": qmgr,
        "op": "PUT" if is_put else "GET",
        "queue": queue,
    }
    msgid = message_id(str(operation.get("msgId") or ""))
    if msgid is not None:
        event["msgid"] = msgid
    if is_put:
        event["length"] = integer(operation["msgLength"])
        event["priority"] = min(9, max(0, integer(operation.get("priority", 0))))
        event["persistent"] = integer(operation.get("persistence", 0)) == 1
    if failed:
        event["reason"] = reason
    return event


def _code(operation: Mapping[str, Any], name: str) -> int:
    """Return a completion or reason code: a number, or an object with `value`."""
    code = operation.get(name, 0)
    return integer(code["value"] if isinstance(code, dict) else code)


def _hex(text: Any) -> int:
    """Return options, a hexadecimal text with blanks, or a number."""
    if text is None:
        return 0
    return text if isinstance(text, int) else int(str(text).strip() or "0", 16)


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    items = data.get(name, [])
    if not isinstance(items, list):
        raise TypeError(f"{name} is no list")
    return items


def _pair(item: Mapping[str, Any], name: str) -> tuple[int, int]:
    """Return a pair of counts, of nonpersistent and persistent messages; (0, 0) if it is absent."""
    pair = item.get(name, (0, 0))
    if len(pair) != 2:
        raise ValueError(f"{name} has {len(pair)} numbers")
    return max(0, integer(pair[0])), max(0, integer(pair[1]))


def _count(item: Mapping[str, Any], name: str) -> int:
    return max(0, integer(item.get(name, 0)))
