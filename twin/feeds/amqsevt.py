"""Event messages of distributed queue managers as JSON, written by amqsevt: statistics, accounting, activity trace.

Sources: [published: IBM, amqsevta.c] for the envelope and the names of fields, [IBM: MQ 9.4, Queue statistics data] and
[IBM: MQ 9.4, Application activity trace]. Programs spell the constants of MQ in their own ways: MQCA_Q_NAME is
queueName of amqsevt, qName of amqsevtg, which also writes options as objects and enumerations as words [IBM:
mq-metric-samples, amqsevtg], and QName elsewhere. So names and words are folded before they are read. Of a pair the
first number is of nonpersistent messages. `msgsNotQueued` are in the puts and gets: they were handed to a waiting
getter. The start and end of an interval are local times.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from typing_extensions import override

from twin.base.conditions import Q_FULL, Q_SPACE_NOT_AVAILABLE, STORAGE_MEDIUM_FULL
from twin.events import Event
from twin.events.fields import Op
from twin.feeds.intake import DYNAMIC, Complaint, Intake, Item, PassedOver
from twin.feeds.intervals import Flows, Puts
from twin.feeds.json_pages import JsonText, integer
from twin.feeds.measurements import message_id
from twin.feeds.protocol import NOT_BY_TIME, Feed, FeedOptions, Page, Streams

PERFORMANCE, STATISTICS, ACCOUNTING, ACTIVITY = 45, 165, 168, 209  # event types
_REFUSED = frozenset((Q_FULL, Q_SPACE_NOT_AVAILABLE, STORAGE_MEDIUM_FULL))
_BACKED_OUT = 2003
_OK, _WARNING = 0, 1  # completion codes
_PUT_SYNCPOINT = _GET_SYNCPOINT = 0x2
_BROWSE = 0x10 | 0x20 | 0x800
_PUTS = frozenset(("put", "put1"))
_GET = "get"
_CALLBACKS = frozenset(("callback", "cb"))  # gets, if they have the length of a message
_ENDS: Mapping[str, Op] = {  # of units of work
    "cmit": "COMMIT",
    "disc": "COMMIT",  # of an application that ends normally [IBM: MQDISC]
    "xacommit": "COMMIT",
    "back": "BACKOUT",
    "xarollback": "BACKOUT",
}
_OPERATIONS = {  # [IBM: MQXF_*]
    5: "disc",
    8: "put1",
    9: "put",
    10: "get",
    15: "cmit",
    16: "back",
    21: "callback",
    25: "xacommit",
    32: "xarollback",
}
_WORDS = {  # completion codes, reasons, persistence and types of definition that are used, by their folded words
    "ok": 0,
    "none": 0,
    "warning": 1,
    "failed": 2,
    "backedout": _BACKED_OUT,
    "qfull": Q_FULL,
    "qspacenotavailable": Q_SPACE_NOT_AVAILABLE,
    "storagemediumfull": STORAGE_MEDIUM_FULL,
    "notpersistent": 0,
    "persistent": 1,
    "predefined": 1,
    "permanentdynamic": 2,
    "temporarydynamic": 3,
    "shareddynamic": 4,
}
_UNKNOWN_WORD = -1
_TEMPORARY = 3  # MQQDT_TEMPORARY_DYNAMIC
_ALIASES = {  # folded names, and those of the constants of MQ
    "qmgr": "qmgrname",
    "qmanager": "qmgrname",
    "qmanagername": "qmgrname",
    "putcount": "puts",
    "put1count": "put1s",
    "getcount": "gets",
    "nonqueuedmsgcount": "msgsnotqueued",
    "expiredmsgcount": "msgsexpired",
    "purgecount": "msgspurged",
    "intervalstartdate": "startdate",
    "intervalstarttime": "starttime",
    "intervalenddate": "enddate",
    "intervalendtime": "endtime",
    "qdefinitiontype": "definitiontype",
}
_CONSTANT = re.compile(r"MQ[A-Z0-9]{1,8}_")
_QUEUE = re.compile(r"queue(?!d)")  # Q in constants, but in msgsNotQueued
_LISTS = {STATISTICS: "qstatisticsdata", ACCOUNTING: "qaccountingdata", ACTIVITY: "activitytrace"}
_SOURCES = {STATISTICS: "statistics", ACCOUNTING: "accounting"}
_MAX_DEPTH = 8  # of objects in a message
_MAX_UNITS = 100_000  # open units of work that are remembered
_OTHERS = "event message of other kinds"
_MAX_KIND = 60  # characters
_MAX_QUEUES = 1000  # of one unit of work
_MAX_INTERVAL_US = 366 * 86_400 * 1_000_000


class AmqsevtFeed(Feed):
    """Reader of event messages, with the queues of open units of work, and by stream the object that has not ended."""

    reads = "JSON of amqsevt"
    is_json = True

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
                yield from self._message(_folded(message), place)
            except (ValueError, KeyError, TypeError, OverflowError, AttributeError) as error:
                text = f"{type(error).__name__} {str(error)[:100]}; expected: fields as amqsevt writes them"
                yield Complaint("bad-value", place, text)

    @override
    def finish(self) -> Iterator[Item]:
        return self._streams.finish()

    def _message(self, message: Mapping[str, Any], place: str) -> Iterator[Item]:
        data, kind = message.get("eventdata"), message.get("eventtype")
        if not isinstance(data, dict) or kind is None:
            yield Complaint("foreign", place, "no eventType and eventData; expected: JSON of amqsevt")
            return
        self.object_count += 1
        number = _kind(kind, data)
        qmgr = _queue_manager(message, data)
        if qmgr:
            self.intake.facts.add("queue_manager", qmgr, place, platform="distributed")
        is_full = number == PERFORMANCE and _code(message, "eventreason") == Q_FULL
        if number not in _LISTS and not is_full:
            name = kind.get("name") if isinstance(kind, dict) else kind
            yield PassedOver(_OTHERS, str(name or number)[:_MAX_KIND], is_counted=True)
        elif not qmgr:
            yield Complaint("no-qmgr", place, "no queueMgrName; expected: the name of the queue manager")
        elif is_full:
            time = integer(message["eventcreation"]["epoch"]) * 1_000_000
            queue = str(data["baseobjectname"]).strip()
            yield {"time": time, "qmgr": qmgr, "op": "PUT", "queue": queue, "length": 0, "reason": Q_FULL}
        elif _LISTS[number] not in data and integer(data.get("objectcount", 1)):
            text = f"a message of type {number} without its list ({_LISTS[number]}); expected: JSON of amqsevt"
            yield Complaint("no-list", place, text)
        elif number == ACTIVITY:
            yield from self._activity(qmgr, data, place)
        else:
            yield from self._counts(_SOURCES[number], qmgr, data, _list(data, _LISTS[number]), place)

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
            queue = str(item["qname"]).strip()
            if not queue:
                continue
            is_known = self.intake.estate is not None and (qmgr, queue) in self.intake.estate.queue_routes
            if _code(item, "definitiontype") == _TEMPORARY and not is_known:
                yield PassedOver(DYNAMIC, qmgr, is_counted=True)
                continue
            self.expect(f"{source} queue", item, place)
            self.intake.facts.add("queue_file", f"{qmgr}/{queue}", place)
            flows = _flows(qmgr, queue, (start, end), item)
            yield from self.flow_events(source, flows, place, is_common=source == "statistics")

    def _time(self, data: Mapping[str, Any], name: str) -> int:
        """Return the start or end of an interval, microseconds since 1970."""
        text = f"{data[f'{name}date']} {str(data[f'{name}time']).replace(':', '.')}"
        moment = datetime.strptime(text, "%Y-%m-%d %H.%M.%S").replace(tzinfo=self.options.zone or UTC)
        return round(moment.timestamp()) * 1_000_000

    # --- activity trace ----------------------------------------------------------------------------------------------

    def _activity(self, qmgr: str, data: Mapping[str, Any], place: str) -> Iterator[Item]:
        connection = str(data.get("connectionid") or data.get("connectionname") or data.get("applname") or "")
        operations = _list(data, _LISTS[ACTIVITY])
        self.expect("activity trace", data, place)
        self.object_count += max(0, len(operations) - 1)
        for number, operation in enumerate(operations):
            try:
                yield from self._operation(qmgr, connection, operation)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                text = f"{type(error).__name__} {str(error)[:100]}; expected: fields of level MEDIUM or HIGH"
                yield Complaint("bad-value", f"{place}, operation {number}", text)

    def _operation(self, qmgr: str, connection: str, operation: Mapping[str, Any]) -> Iterator[Item]:
        name = _operation_name(operation["operationid"])
        unit = f"{connection}/{operation.get('threadid', '')}"
        if name in _ENDS:
            yield from self._end_unit(qmgr, unit, _ENDS[name], operation)
        elif name in _PUTS or name == _GET or (name in _CALLBACKS and "msglength" in operation):
            is_put = name in _PUTS
            event = _call(qmgr, is_put, operation)
            if event is None:
                return
            self.expect("put" if is_put else "get", operation, f"{qmgr}/{event['queue']}")
            if other := self.intake.claim(qmgr, event["queue"], "activity trace"):
                yield other
                return
            if "reason" not in event:
                self.intake.soundness.calls[event["op"]] += 1
            self.intake.facts.add("queue_file", f"{qmgr}/{event['queue']}", "activity trace")
            options = _options(operation, is_put=is_put)
            if options & (_PUT_SYNCPOINT if is_put else _GET_SYNCPOINT) and "reason" not in event:
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
        completion, reason = _code(operation, "compcode"), _code(operation, "reasoncode")
        if completion not in {_OK, _WARNING} and reason != _BACKED_OUT:
            return
        op = "BACKOUT" if reason == _BACKED_OUT else op
        for queue in self._units.pop((qmgr, unit), {}):
            yield {"time": integer(operation["highrestime"]), "qmgr": qmgr, "op": op, "queue": queue, "uow": unit}


@lru_cache(10_000)
def _folded_name(name: str) -> str:
    """Return the name of a field: qname of MQCA_Q_NAME, queueName, qName and QName."""
    folded = _QUEUE.sub("q", _CONSTANT.sub("", name, count=1).replace("_", "").replace(" ", "").lower())
    return _ALIASES.get(folded, folded)


def _folded(value: Any, depth: int = _MAX_DEPTH) -> Any:
    """Return a value with the names of fields folded."""
    if isinstance(value, dict) and depth:
        return {_folded_name(name): _folded(own, depth - 1) for name, own in value.items()}
    return [_folded(own, depth - 1) for own in value] if isinstance(value, list) and depth else value


def _kind(kind: Any, data: Mapping[str, Any]) -> int:
    """Return the type of a message, by its list or else by its number; -1 if it has neither."""
    by_list = next((number for number, name in _LISTS.items() if name in data), None)
    if by_list is not None:
        return by_list
    value = kind.get("value", -1) if isinstance(kind, dict) else kind
    return integer(value) if not isinstance(value, str) or value.lstrip("-").isdigit() else -1


def _queue_manager(message: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Return the queue manager of an event message: that of its data, else that whose queue it was read from; or ""."""
    source = message.get("eventsource")
    names = [data.get(name) for name in ("qmgrname", "eventqmgr")]
    names.append(source.get("qmgrname") if isinstance(source, dict) else None)
    return next((str(name).strip() for name in names if name and str(name).strip()), "")


def _flows(qmgr: str, queue: str, interval: tuple[int, int], item: Mapping[str, Any]) -> Flows:
    """Return the counts of a queue. When purged messages went is not known: they go like expired ones, the oldest
    first.
    """
    puts, put1s, sizes = _pair(item, "puts"), _pair(item, "put1s"), _pair(item, "putbytes")
    counts = [puts[0] + put1s[0], puts[1] + put1s[1]]
    handed = min(_count(item, "msgsnotqueued"), sum(counts))
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
        expired=_count(item, "msgsexpired") + _count(item, "msgspurged"),
    )


def _call(qmgr: str, is_put: bool, operation: Mapping[str, Any]) -> Event | None:
    """Return the event of a put or get, or None for one that stored and removed nothing."""
    options = _options(operation, is_put=is_put)
    completion, reason = _code(operation, "compcode"), _code(operation, "reasoncode")
    failed = completion not in {_OK, _WARNING}
    if (failed and not (is_put and reason in _REFUSED)) or (not is_put and options & _BROWSE):
        return None
    names = ("resolvedlocalqname", "resolvedqname", "objectname")
    queue = next((str(operation[name]).strip() for name in names if str(operation.get(name) or "").strip()), "")
    if not queue:
        raise ValueError("no objectName")
    event: Event = {
        "time": integer(operation["highrestime"]),
        "qmgr": qmgr,
        "op": "PUT" if is_put else "GET",
        "queue": queue,
    }
    msgid = message_id(str(operation.get("msgid") or ""))
    if msgid is not None:
        event["msgid"] = msgid
    if is_put:
        event["length"] = integer(operation["msglength"])
        event["priority"] = min(9, max(0, integer(operation.get("priority", 0))))
        event["persistent"] = _code(operation, "persistence") == 1
    if failed:
        event["reason"] = reason
    return event


def _code(operation: Mapping[str, Any], name: str) -> int:
    """Return a code: a number, its word, or an object with `value`; 0 if it is absent, -1 for another word."""
    code = operation.get(name, 0)
    code = code.get("value", code.get("name", 0)) if isinstance(code, dict) else code
    if isinstance(code, str) and not code.strip().lstrip("-").isdigit():
        return _WORDS.get(_folded_name(code), _UNKNOWN_WORD)
    return integer(code)


def _operation_name(operation: Any) -> str:
    """Return the name of an operation, folded: put of "Put", "MQXF_PUT" and 9; "" of another number."""
    value = operation.get("name", operation.get("value")) if isinstance(operation, dict) else operation
    if str(value).isdigit():
        return _OPERATIONS.get(int(str(value)), "")
    name = _folded_name(str(value))
    return name.removeprefix("mq") if name not in _ENDS else name


def _options(operation: Mapping[str, Any], *, is_put: bool) -> int:
    """Return options: a hexadecimal text with blanks, a number, or an object with `value`."""
    options = operation.get("putoptions" if is_put else "getoptions")
    if isinstance(options, dict):
        options = options["value"]
    if options is None:
        return 0
    return options if isinstance(options, int) else int(str(options).strip() or "0", 16)


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    items = data.get(name, [])
    items = [items] if isinstance(items, dict) else items  # one item, by a program that makes no list of one
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
