"""Metrics of mq_prometheus (scraped, or by a range query of Prometheus) and mq_json.

mq_prometheus has gauges up to version 5, whose counts are those since the last collection, and counters from version 6:
`# TYPE` shows which. So do the metadata that Prometheus keeps [Prometheus: HTTP API, Querying metric metadata]. mq_json
writes the same metrics as JSON, an object per collection [IBM: mq-metric-samples].
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from prometheus_client.parser import text_string_to_metric_families
from typing_extensions import override

from twin.errors import UNREADABLE
from twin.feeds.intake import Complaint, Intake, Item, Passed
from twin.feeds.json_pages import json_documents
from twin.feeds.metrics import (
    COUNTS,
    MAX_COLLECTIONS,
    MAX_KIND,
    NAMES,
    OTHER_METRICS,
    Collected,
    Collections,
    MetricEvents,
    kind_of,
)
from twin.feeds.protocol import Feed, FeedOptions, Page

_PREFIX = "ibmmq_queue_"
_PREFIXES = {_PREFIX: ("queue", "queue"), "ibmmq_pageset_": ("pageset", "pageset")}  # kind, label of the name
_MAX_TYPES = 10_000
_JSON_KINDS = ("queue", "pageset")  # objectType of mq_json, and the tag with its name
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class PrometheusFeed(Feed):
    """Reader of mq_prometheus: its own page, or answers of Prometheus to a range query and to a query of metadata."""

    reads = "ibmmq_queue_ or ibmmq_pageset_ of mq_prometheus"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._events = MetricEvents(self, "mq_prometheus")
        self._types: dict[str, str] = {}
        self._names: dict[str, str] = {}  # of counts in answers, by metric
        self._collections = Collections()

    @override
    def take(self, page: Page) -> Iterator[Item]:
        """Yield the events of a page. Answers in files wait for others with the same times, such as one a metric."""
        text = bytes(page.data)
        if text.lstrip()[:1] == b"{":
            yield from self._answer(text, page)
            if page.headers:  # of a server: nothing more about these times will come
                yield from self._rest()
        else:
            yield from self._exposition(text, page)

    @override
    def finish(self) -> Iterator[Item]:
        yield from self._rest()
        self.intake.notes += self._events.notes()

    def _rest(self) -> Iterator[Item]:
        for collected in self._collections.rest():
            yield from self._complete(collected)

    def _complete(self, collected: Collected) -> Iterator[Item]:
        """Yield the events of a collection of answers. Which metrics are counters may stand in a later answer."""
        for metric, name in self._names.items():
            kind = self._types.get(name, self._types.get(name.removesuffix("_total"), ""))
            if kind == "counter" or name.endswith("_total"):
                collected.cumulative.add(metric)
        yield from self._events.events(collected)

    def _exposition(self, data: bytes, page: Page) -> Iterator[Item]:
        collected = Collected(page.time or 0, page.name)
        has_metrics = False
        try:
            for family in text_string_to_metric_families(data.decode()):
                for sample in family.samples:
                    # OpenMetrics: TYPE has the name of a counter without _total, which the parser does not put together
                    is_total = family.type == "unknown" and sample.name.endswith("_total")
                    is_counter = family.type == "counter" or is_total
                    passed = self._add(collected, sample.name, sample.labels, sample.value, is_counter=is_counter)
                    if passed is None:
                        has_metrics = True
                    else:
                        yield passed
        except Exception as error:  # noqa: BLE001 -- the parser raises many kinds
            text = f"no text of Prometheus: {type(error).__name__} {error}; expected: its exposition format"
            yield Complaint("unreadable", page.name, text)
        if not has_metrics:
            yield Complaint("no-metrics", page.name, "no ibmmq_queue_ or ibmmq_pageset_; expected: mq_prometheus")
        yield from self._events.events(collected)

    def _answer(self, data: bytes, page: Page) -> Iterator[Item]:
        passed: list[Passed] = []
        try:
            answer = msgspec.json.decode(data, type=dict[str, Any])
            content = answer["data"]
            if "resultType" not in content:
                self._note_types(content)
                return
            points = self._points(content["result"], page.name, passed)
        except (*UNREADABLE, LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            text = f"no answer of Prometheus: {type(error).__name__} {error}; expected: a matrix of query_range"
            yield from passed
            yield Complaint("unreadable", page.name, text)
            return
        yield from passed
        for collected in self._collections.add(points):
            yield from self._complete(collected)

    def _note_types(self, metadata: Mapping[str, Any]) -> None:
        for name, entries in metadata.items():
            if name.startswith(tuple(_PREFIXES)) and len(self._types) < _MAX_TYPES:
                self.object_count += 1
                self._types[name] = str(entries[0]["type"])

    def _points(self, result: list[dict[str, Any]], place: str, passed: list[Passed]) -> dict[int, Collected]:
        """Return the values by time. passed: takes what is not one of MQ."""
        points: dict[int, Collected] = {}
        for series in result:
            labels = {str(name): str(value) for name, value in series["metric"].items()}
            name = labels.get("__name__", "")
            metric = _known_name(name.removeprefix(_PREFIX))
            if metric in COUNTS:
                self._names[metric] = name
            for seconds, text in series["values"]:
                time = round(float(seconds) * 1e6)
                if time not in points and len(points) >= MAX_COLLECTIONS:
                    raise ValueError(f"more than {MAX_COLLECTIONS} times")
                collected = points.setdefault(time, Collected(time, place))
                other = self._add(collected, name, labels, float(text), is_counter=False)
                passed += [] if other is None else [other]
        return points

    def _add(
        self, collected: Collected, name: str, labels: Mapping[str, str], value: float, *, is_counter: bool
    ) -> Passed | None:
        """Add a sample to a collection, or return it as passed over."""
        prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), None)
        if prefix is None:
            return Passed(OTHER_METRICS, kind_of(name))
        kind, label = _PREFIXES[prefix]
        qmgr, own = labels.get("qmgr", "").strip() or self.options.qmgr, labels.get(label, "").strip()
        if not qmgr or not own or not math.isfinite(value):
            return Passed(OTHER_METRICS, "no number" if qmgr and own else f"no label qmgr or {label}")
        self.object_count += 1
        platform = collected.note_platform(qmgr, labels.get("platform", ""))
        if platform and self.intake.facts.value("queue_manager", qmgr, "platform") is None:
            self.intake.facts.add("queue_manager", qmgr, "mq_prometheus", platform=platform)
        metric = _known_name(name.removeprefix(prefix))
        if is_counter and metric in COUNTS:
            collected.cumulative.add(metric)
        collected.add(kind, qmgr, own, metric, value)
        return None


def _known_name(metric: str) -> str:
    """Return the name of a metric without the suffix that OpenMetrics and the parser give counters."""
    without = metric.removesuffix("_total")
    return without if metric not in NAMES and without in NAMES else metric


# --- mq_json ----------------------------------------------------------------------------------------------------------


class _Point(msgspec.Struct, rename="camel"):
    object_type: str = ""
    tags: dict[str, str] = {}
    metrics: dict[str, float] = {}


class _Collection(msgspec.Struct, rename="camel"):
    collection_time: dict[str, Any]
    points: list[_Point]


_decoder = msgspec.json.Decoder(_Collection, strict=False)


class MqJsonFeed(Feed):
    """Reader of mq_json: an object per line or Kafka record. Its counts are those since the last collection.

    A collection may be in several objects with its time, so it waits for a younger one.
    """

    reads = "records of mq_json"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._events = MetricEvents(self, "mq_json")
        self._collections = Collections()

    @override
    def take(self, page: Page) -> Iterator[Item]:
        for line, place in json_documents(page):
            try:
                collection = _decoder.decode(line)
                time = round(float(collection.collection_time["epoch"]) * 1e6)
            except (*UNREADABLE, LookupError, TypeError, ValueError, ArithmeticError) as error:
                text = f"no record of mq_json: {error}; expected: collectionTime with epoch, and points"
                yield Complaint("unreadable", place, text)
                continue
            self.object_count += 1
            collected = Collected(time, place)
            yield from self._fill(collected, collection.points)
            for complete in self._collections.add({time: collected}):
                yield from self._complete(complete)
        self.page_latest = self._collections.latest

    @override
    def finish(self) -> Iterator[Item]:
        for complete in self._collections.rest():
            yield from self._complete(complete)
        self.intake.notes += self._events.notes()

    def _complete(self, collected: Collected) -> Iterator[Item]:
        self.passed = max(self.passed, collected.time)
        yield from self._events.events(collected)

    def _fill(self, collected: Collected, points: Iterable[_Point]) -> Iterator[Passed]:
        for point in points:
            kind = point.object_type.lower()
            name, qmgr = point.tags.get(kind, "").strip(), point.tags.get("qmgr", "").strip() or self.options.qmgr
            if kind not in _JSON_KINDS:
                yield Passed("point of other objects", kind[:MAX_KIND] or "?")
            elif not name or not qmgr:
                yield Passed("point of other objects", f"{kind} without a name or qmgr")
            else:
                collected.note_platform(qmgr, point.tags.get("platform", ""))
                for metric, value in point.metrics.items():
                    collected.add(kind, qmgr, name, _CAPITAL.sub("_", metric).lower(), value)
