"""Records of the Kafka Connect source for MQ behind a streaming queue: each is a put to the original queue.

STREAMQ copies every put with its message id [IBM: MQ, Streaming queues]; the connector writes the body as the value
and, with `mq.jms.properties.copy.to.kafka.headers`, the properties as headers [IBM: kafka-connect-mq-source, README].
It delivers at least once, so an id that comes again is a duplicate. Gets are not seen: the depth must come from
somewhere else. JsonConverter wraps a value in an object with schema and payload; Confluent's connector writes an object
with the fields of JMS, the body under text or bytes [Confluent: IBM MQ Source, JMS message schema]. An envelope is
never a body. The time is that of the put, where a header or field has it, else that of the record.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from typing_extensions import override

from kernels.json_scan import TIME_LOW
from twin.base.decoding import UNREADABLE
from twin.events import Event
from twin.feeds.intake import Complaint, Intake, Item
from twin.feeds.measurements import ID_DIGITS, message_id
from twin.feeds.protocol import Feed, FeedOptions, Page

APPEND_TIME = "kafka.append-time"  # header of a page: its time is that at which the broker took the record
_REGISTRY_BYTES = 5  # a zero and the number of a schema, in front of a value [Confluent: Wire format]
_MAX_SCHEMA = 10_000_000
_ID_FIELDS = ("messageid", "msgid", "ibmmqmdmsgid")  # of envelopes, in lower case, without JMS in front
_JMS_FIELDS = {"messageid", "messagetype", "deliverymode", "correlationid", "redelivered", "replyto", "destination"}
_FEWEST_FIELDS = 3  # of these, for an envelope without the id of a message
_BODIES = ("bytes", "text", "body", "payload", "content", "value", "data", "message")
_PERSISTENT = {"2", "PERSISTENT"}  # JMS DeliveryMode
_MAX_NAMES = 200  # characters
_AHEAD_US = 60_000_000  # by which a clock may be ahead of that of the broker [assumed]
_MAX_DIGITS = 15
MAX_IDS = 200_000  # message ids that are remembered
_MAX_NAME = 60  # characters
_ID_HEADERS = ("jms_ibm_mqmd_msgid", "jmsmessageid")


class _Body(NamedTuple):
    """A message as a value has it."""

    length: int  # bytes of its body
    msgid: str | None = None
    priority: str = ""
    is_persistent: bool = False
    put_ms: str = ""  # milliseconds since 1970
    registry_id: int | None = None  # of the schema in front of it, if it looks so


class ConnectFeed(Feed):
    """Reader of records of the connector. Options: the original queue and its queue manager."""

    reads = "records of a streaming queue"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._ids: OrderedDict[str, None] = OrderedDict()

    @override
    def take(self, page: Page) -> Iterator[Item]:
        if self.options.qmgr is None or self.options.queue is None:
            text = "records of a streaming queue do not name the original; expected: --qmgr and --queue"
            yield Complaint("no-queue", page.name, text)
            return
        self.object_count += 1
        body = _unwrapped(bytes(page.data))
        if isinstance(body, str):
            yield Complaint("foreign", page.name, body)
            return
        msgid = body.msgid or _message_id(page.headers)
        if msgid is None:
            yield from self._odd_ids(page)
        else:
            if msgid in self._ids:
                yield Complaint("duplicate", page.name, f"message {msgid} again")
                return
            self._ids[msgid] = None
            if len(self._ids) > MAX_IDS:
                self._ids.popitem(last=False)
        put_time = _put_time(body.put_ms or _header(page.headers, "jmstimestamp"), page.time or 0)
        yield from self._assumed(body, put_time, page)
        event: Event = {
            "time": put_time or page.time or 0,
            "qmgr": self.options.qmgr,
            "op": "PUT",
            "queue": self.options.queue,
            "length": body.length,
        }
        if msgid is not None:
            event["msgid"] = msgid
        priority = body.priority or _header(page.headers, "jms_ibm_mqmd_priority")
        priority = priority or _header(page.headers, "jmspriority")
        if priority.isascii() and priority.isdigit() and int(priority) <= 9:
            event["priority"] = int(priority)
        if body.is_persistent or _header(page.headers, "jms_ibm_mqmd_persistence") == "1":
            event["persistent"] = True
        yield event

    def _assumed(self, body: _Body, put_time: int | None, page: Page) -> Iterator[Complaint]:
        """Complain, once each, about a length and a time that are only assumed."""
        if body.registry_id is not None:
            text = f"values begin as those of a schema registry (schema {body.registry_id}); they are taken for bodies"
            expected = "a converter that writes the body alone, such as ByteArrayConverter"
            yield from self.once(Complaint("no-size", page.name, f"{text}. Expected: {expected}"))
        if put_time is None and page.headers.get(APPEND_TIME):
            text = (
                "records have the time at which the broker took them, and no JMSTimestamp; it is taken for that of puts"
            )
            yield from self.once(Complaint("append-time", page.name, f"{text}. Expected: headers, or CreateTime"))

    def _odd_ids(self, page: Page) -> Iterator[Complaint]:
        """Complain, once for each header, about invalid ids, such as the Java name of an array, [B@1f2e3d4c."""
        for name in _ID_HEADERS:
            if page.headers.get(name):
                text = f"{name} is {page.headers[name][:_MAX_NAME]!r}, so a message delivered again counts twice"
                expected = "24 bytes, 32 characters of Base64 or 48 hexadecimal digits"
                yield from self.once(Complaint("no-msgid", page.name, f"{text}; expected: {expected}"), name)


def _header(headers: Mapping[str, str], name: str) -> str:
    """Return the value of a header, also of one that JsonConverter wrote with its schema; "" if it is absent."""
    text = headers.get(name, "").strip()
    if text.startswith("{"):
        try:
            return str(msgspec.json.decode(text, type=dict[str, Any]).get("payload", ""))
        except UNREADABLE:
            return ""
    return text.strip('"')


def _message_id(headers: Mapping[str, str]) -> str | None:
    """Return the message id of a record as events have it, from its headers or its key; None if it has none.

    The key is one in hexadecimal digits only: bytes there are a correlation id (JMSCorrelationIDAsBytes).
    """
    for name in _ID_HEADERS:
        msgid = message_id(headers.get(name, "")) or message_id(_header(headers, name))
        if msgid is not None:
            return msgid
    key = _header(headers, "kafka.key")
    return message_id(key) if len(key.removeprefix("ID:")) == ID_DIGITS else None


# --- envelopes --------------------------------------------------------------------------------------------------------


def _unwrapped(value: bytes) -> _Body | str:
    """Return the message of a value, or the text of a complaint about an envelope of unknown form."""
    if value[:1] == b"\0" and len(value) > _REGISTRY_BYTES:
        number = int.from_bytes(value[1:_REGISTRY_BYTES], "big")
        return _Body(len(value), registry_id=number if 0 < number <= _MAX_SCHEMA else None)
    if value.lstrip()[:1] != b"{":
        return _Body(len(value))
    try:
        fields = msgspec.json.decode(value, type=dict[str, Any])
    except (*UNREADABLE, UnicodeError):
        return _Body(len(value))
    if fields.keys() == {"schema", "payload"}:
        schema, payload = fields["schema"], fields["payload"]
        kind = schema.get("type") if isinstance(schema, dict) else None
        if not isinstance(payload, dict):
            length = _length_of(payload, is_bytes=kind == "bytes")
            return f"a payload of type {kind}; expected: a text or bytes" if length is None else _Body(length)
        return _of_fields(payload) or _Body(len(msgspec.json.encode(payload)))
    return _of_fields(fields) or _Body(len(value))


def _of_fields(fields: Mapping[str, Any]) -> _Body | str | None:
    """Return the message of an envelope with fields of JMS, the text of a complaint; None: it is no envelope."""
    folded = {name.lower().replace("_", "").removeprefix("jms"): value for name, value in fields.items()}
    ids = [text for name in _ID_FIELDS if isinstance(text := folded.get(name), str)]
    msgid = next((own for text in ids if (own := message_id(text)) is not None), None)
    if msgid is None and len(_JMS_FIELDS & folded.keys()) < _FEWEST_FIELDS:
        return None
    bodies = ((name, folded[name]) for name in _BODIES if folded.get(name) is not None)
    lengths = (_length_of(body, is_bytes=name == "bytes") for name, body in bodies)
    length = next((known for known in lengths if known is not None), None)
    if length is None:
        names = ", ".join(fields)[:_MAX_NAMES]
        return f"an envelope of another connector with {names}, and no body is known in it; expected: text or bytes"
    mode = str(folded.get("deliverymode", ""))
    put_ms, priority = (str(folded.get(name) or "") for name in ("timestamp", "priority"))
    return _Body(length, msgid, priority, mode.upper() in _PERSISTENT, put_ms)


def _length_of(body: Any, *, is_bytes: bool) -> int | None:
    """Return the bytes of a body that JSON has as text, or in Base64; None: it is neither."""
    if body is None:
        return 0
    if not isinstance(body, str):
        return None
    if is_bytes:
        try:
            return len(base64.b64decode(body, validate=True))
        except ValueError:
            return None
    return len(body.encode("utf-8", "surrogatepass"))


def _put_time(milliseconds: str, latest: int) -> int | None:
    """Return the time of a put, microseconds; None if there is none before that of its record."""
    if not (milliseconds.isascii() and milliseconds.isdigit() and len(milliseconds) < _MAX_DIGITS):
        return None
    time = int(milliseconds) * 1000
    return time if TIME_LOW <= time <= latest + _AHEAD_US else None
