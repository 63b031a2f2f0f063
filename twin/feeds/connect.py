"""Records of the Kafka Connect source for MQ behind a streaming queue: each is a put to the original queue.

STREAMQ copies every put with its message id [IBM: MQ, Streaming queues]; the connector writes the body as the value
and, with `mq.jms.properties.copy.to.kafka.headers`, the properties as headers [IBM: kafka-connect-mq-source, README].
It delivers at least once, so an id that comes again is a duplicate. Gets are not seen: the depth must come from
somewhere else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from typing_extensions import override

from twin.events import Event
from twin.feeds.intake import Intake
from twin.feeds.protocol import Feed, FeedOptions, Page

MAX_IDS = 200_000  # message ids that are remembered
_ID_DIGITS = 48
_ID_HEADERS = ("jms_ibm_mqmd_msgid", "jmsmessageid")


class ConnectFeed(Feed):
    """Reader of records of the connector. Options: the original queue and its queue manager."""

    reads = "records of a streaming queue"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._ids: OrderedDict[str, None] = OrderedDict()

    @override
    def take(self, page: Page) -> Iterable[Event]:
        if self.options.qmgr is None or self.options.queue is None:
            text = "records of a streaming queue do not name the original; expected: --qmgr and --queue"
            self.intake.complain("no-queue", page.name, text)
            return
        self.object_count += 1
        msgid = _message_id(page.headers)
        if msgid is not None:
            if msgid in self._ids:
                self.intake.complain("duplicate", page.name, f"message {msgid} again")
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
        priority = page.headers.get("jms_ibm_mqmd_priority", page.headers.get("jmspriority", ""))
        if priority.isascii() and priority.isdigit() and int(priority) <= 9:
            event["priority"] = int(priority)
        if page.headers.get("jms_ibm_mqmd_persistence") == "1":
            event["persistent"] = True
        yield event


def _message_id(headers: Mapping[str, str]) -> str | None:
    """Return the message id of a record, from its headers or its key, as events have it."""
    for text in (*(headers.get(name, "") for name in _ID_HEADERS), headers.get("kafka.key", "")):
        digits = text.strip('"').removeprefix("ID:").lower()
        if len(digits) == _ID_DIGITS and all(digit in "0123456789abcdef" for digit in digits):
            return digits
    return None
