"""Records of mq_json: the metrics of mq_prometheus as JSON, an object per collection [IBM: mq-metric-samples]."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from typing_extensions import override

from twin.feeds.intake import Event, Intake
from twin.feeds.metrics import Collected, MetricEvents
from twin.feeds.protocol import Feed, FeedOptions, Page

_NAMES = {"queue": "queue", "pageset": "pageset"}  # objectType -> tag with its name
_MAX_KIND = 40  # characters
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class _Point(msgspec.Struct, rename="camel"):
    object_type: str = ""
    tags: dict[str, str] = {}
    metrics: dict[str, float] = {}


class _Collection(msgspec.Struct, rename="camel"):
    collection_time: dict[str, Any]
    points: list[_Point]


_decoder = msgspec.json.Decoder(_Collection, strict=False)


class MqJsonFeed(Feed):
    """Reader of mq_json: an object per line or Kafka record. Its counts are those since the last collection."""

    reads = "records of mq_json"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._events = MetricEvents("mq_json", intake, options)

    @override
    def take(self, page: Page) -> Iterable[Event]:
        for line, place in json_documents(page):
            try:
                collection = _decoder.decode(line)
                time = round(float(collection.collection_time["epoch"]) * 1e6)
            except (msgspec.DecodeError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
                text = f"no record of mq_json: {error}; expected: collectionTime with epoch, and points"
                self.intake.complain("unreadable", place, text)
                continue
            self.object_count += 1
            collected = Collected(time)
            for point in collection.points:
                kind = point.object_type.lower()
                if kind not in _NAMES:
                    self.intake.pass_over("point of other objects", kind[:_MAX_KIND] or "?")
                    continue
                name = point.tags.get(_NAMES[kind], "").strip()
                qmgr = point.tags.get("qmgr", "").strip() or self.options.qmgr
                if name and qmgr:
                    for metric, value in point.metrics.items():
                        collected.add(kind, qmgr, name, _CAPITAL.sub("_", metric).lower(), value)
            yield from self._events.events(collected, place)


def json_documents(page: Page) -> Iterator[tuple[bytes, str]]:
    """Yield the JSON documents of a page, each with its place: one a line, or one in all."""
    data = bytes(page.data).strip()
    lines = data.split(b"\n")
    if len(lines) > 1 and lines[0].rstrip().endswith(b"}"):
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield line, f"{page.name} line {number}"
    elif data:
        yield data, page.name
