"""Records of the Kafka Connect source for MQ behind a streaming queue: each is a put to the original queue.

STREAMQ copies every put with its message id [IBM: MQ, Streaming queues]; the connector writes the body as the value
and, with `mq.jms.properties.copy.to.kafka.headers`, the properties as headers [IBM: kafka-connect-mq-source, README].
It delivers at least once, so an id that comes again is a duplicate. Gets are not seen: the depth must come from
somewhere else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from typing_extensions import override

from twin.errors import UNREADABLE
from twin.events import Event
from twin.feeds.intake import Complaint, Intake, Item
from twin.feeds.names import ID_DIGITS, message_id
from twin.feeds.protocol import Feed, FeedOptions, Page

MAX_IDS = 200_000  # message ids that are remembered
_MAX_NAME = 60  # characters
_ID_HEADERS = ("jms_ibm_mqmd_msgid", "jmsmessageid")


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
        msgid = _message_id(page.headers)
        if msgid is None:
            yield from self._odd_ids(page)
        else:
            if msgid in self._ids:
                yield Complaint("duplicate", page.name, f"message {msgid} again")
                return
            self._ids[msgid] = None
            if len(self._ids) > MAX_IDS:
                self._ids.popitem(last=False)
        event: Event = {
            "time": page.time or 0,
            "qmgr": self.options.qmgr,
            "op": "PUT",
            "queue": self.options.queue,
            "length": len(page.data),
        }
        if msgid is not None:
            event["msgid"] = msgid
        priority = _header(page.headers, "jms_ibm_mqmd_priority") or _header(page.headers, "jmspriority")
        if priority.isascii() and priority.isdigit() and int(priority) <= 9:
            event["priority"] = int(priority)
        if _header(page.headers, "jms_ibm_mqmd_persistence") == "1":
            event["persistent"] = True
        yield event

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
