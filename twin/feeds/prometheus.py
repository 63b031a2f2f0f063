"""Metrics of mq_prometheus (scraped, or by a range query of Prometheus) and mq_json, and RMF's /metrics/m3.

mq_prometheus has gauges up to version 5, whose counts are those since the last collection, and counters from version 6:
`# TYPE` tells. So do the metadata that Prometheus keeps [Prometheus: HTTP API, Querying metric metadata]. mq_json
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

from twin.events import Event, Measured
from twin.feeds.intake import Intake
from twin.feeds.json_pages import json_documents
from twin.feeds.metrics import COUNTS, MAX_COLLECTIONS, NAMES, Collected, Collections, MetricEvents
from twin.feeds.protocol import Feed, FeedOptions, Page
from twin.feeds.stores import member_of, note_facility

_PREFIX = "ibmmq_queue_"
_PREFIXES = {_PREFIX: ("queue", "queue"), "ibmmq_pageset_": ("pageset", "pageset")}  # kind, label of the name
_M3 = _M3_SIZE, _M3_FREE = "mvs_cf_storage_size_bytes", "mvs_cf_storage_available_bytes"
_MAX_TYPES = 10_000
_SMALLEST_S = 1e8  # seconds; a smaller time is one in seconds that was read as milliseconds
_JSON_NAMES = {"queue": "queue", "pageset": "pageset"}  # objectType of mq_json -> tag with its name
_MAX_KIND = 40  # characters
_OTHERS = "sample of other metrics"
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class PrometheusFeed(Feed):
    """Reader of mq_prometheus: its own page, or answers of Prometheus to a range query and to a query of metadata."""

    reads = "ibmmq_queue_ or ibmmq_pageset_ of mq_prometheus"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._events = MetricEvents("mq_prometheus", intake, options)
        self._types: dict[str, str] = {}
        self._names: dict[str, str] = {}  # of counts in answers, by metric
        self._collections = Collections()
        self._platforms: dict[str, str] = {}  # by queue manager

    @override
    def take(self, page: Page) -> Iterable[Event]:
        """Yield the events of a page. Answers in files wait for others with the same times, such as one a metric."""
        text = bytes(page.data)
        if text.lstrip()[:1] == b"{":
            yield from self._answer(text, page)
            if page.headers:  # of a server: nothing more about these times will come
                yield from self._rest()
        else:
            yield from self._exposition(text, page)

    @override
    def finish(self) -> Iterable[Event]:
        yield from self._rest()
        self.intake.notes += self._events.notes()

    def _rest(self) -> Iterator[Event]:
        for collected in self._collections.rest():
            yield from self._complete(collected)

    def _complete(self, collected: Collected) -> Iterator[Event]:
        """Yield the events of a collection of answers. Which metrics are counters may stand in a later answer."""
        for metric, name in self._names.items():
            kind = self._types.get(name, self._types.get(name.removesuffix("_total"), ""))
            if kind == "counter" or name.endswith("_total"):
                collected.cumulative.add(metric)
        yield from self._events.events(collected)

    def _exposition(self, data: bytes, page: Page) -> Iterator[Event]:
        collected = Collected(page.time or 0, page.name)
        has_metrics = False
        try:
            for family in text_string_to_metric_families(data.decode()):
                for sample in family.samples:
                    # OpenMetrics: TYPE has the name of a counter without _total, which the parser does not put together
                    is_total = family.type == "unknown" and sample.name.endswith("_total")
                    is_counter = family.type == "counter" or is_total
                    if self._add(collected, sample.name, sample.labels, sample.value, is_counter=is_counter):
                        has_metrics = True
        except Exception as error:  # noqa: BLE001 -- the parser raises many kinds
            text = f"no text of Prometheus: {type(error).__name__} {error}; expected: its exposition format"
            self.intake.complain("unreadable", page.name, text)
        if not has_metrics:
            self.intake.complain("no-metrics", page.name, "no ibmmq_queue_ or ibmmq_pageset_; expected: mq_prometheus")
        yield from self._events.events(collected)

    def _answer(self, data: bytes, page: Page) -> Iterator[Event]:
        try:
            answer = msgspec.json.decode(data, type=dict[str, Any])
            content = answer["data"]
            if "resultType" not in content:
                self._note_types(content)
                return
            points = self._points(content["result"], page.name)
        except (
            msgspec.DecodeError,
            LookupError,
            TypeError,
            ValueError,
            ArithmeticError,
            AttributeError,
            RecursionError,
        ) as error:
            text = f"no answer of Prometheus: {type(error).__name__} {error}; expected: a matrix of query_range"
            self.intake.complain("unreadable", page.name, text)
            return
        for collected in self._collections.add(points):
            yield from self._complete(collected)

    def _note_types(self, metadata: Mapping[str, Any]) -> None:
        for name, entries in metadata.items():
            if name.startswith(tuple(_PREFIXES)) and len(self._types) < _MAX_TYPES:
                self.object_count += 1
                self._types[name] = str(entries[0]["type"])

    def _points(self, result: list[dict[str, Any]], place: str) -> dict[int, Collected]:
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
                self._add(collected, name, labels, float(text), is_counter=False)
        return points

    def _add(
        self, collected: Collected, name: str, labels: Mapping[str, str], value: float, *, is_counter: bool
    ) -> bool:
        prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), None)
        if prefix is None:
            self.intake.pass_over(_OTHERS, _kind_of(name))
            return False
        kind, label = _PREFIXES[prefix]
        qmgr, own = labels.get("qmgr", "").strip() or self.options.qmgr, labels.get(label, "").strip()
        if not qmgr or not own or not math.isfinite(value):
            self.intake.pass_over(_OTHERS, "no number" if qmgr and own else f"no label qmgr or {label}")
            return False
        self.object_count += 1
        collected.note_platform(qmgr, labels.get("platform", ""))
        self._note_platform(qmgr, labels.get("platform", ""))
        metric = _known_name(name.removeprefix(prefix))
        if is_counter and metric in COUNTS:
            collected.cumulative.add(metric)
        collected.add(kind, qmgr, own, metric, value)
        return True

    def _note_platform(self, qmgr: str, platform: str) -> None:
        if platform and qmgr not in self._platforms and len(self._platforms) < _MAX_TYPES:
            self._platforms[qmgr] = "zos" if platform.upper() in {"ZOS", "MVS"} else "distributed"
            self.intake.facts.add("queue_manager", qmgr, "mq_prometheus", platform=self._platforms[qmgr])


class M3Feed(Feed):
    """Reader of RMF's OpenMetrics page: storage of coupling facilities [IBM: z/OS 3.2, OpenMetrics Endpoint].

    The name of its label was not seen: a label that has the name of a coupling facility of the estate counts, or else
    one that has "cf" in its own.
    """

    reads = "mvs_cf_storage_ of RMF's page /metrics/m3"

    @override
    def take(self, page: Page) -> Iterable[Event]:
        values: dict[str, dict[str, int]] = {}  # by coupling facility and metric
        times: dict[str, int] = {}
        try:
            for family in text_string_to_metric_families(bytes(page.data).decode()):
                for sample in family.samples:
                    self.object_count += sample.name in _M3
                    if sample.name not in _M3:
                        self.intake.pass_over(_OTHERS, _kind_of(sample.name))
                    name = self._facility_of(sample.labels)
                    if sample.name in _M3 and name is not None and 0 <= sample.value < 2**53:
                        times[name] = _sample_time(sample.timestamp) or page.time or 0
                        values.setdefault(name, {})[sample.name] = int(sample.value)
        except Exception as error:  # noqa: BLE001 -- the parser raises many kinds
            text = f"no OpenMetrics: {type(error).__name__} {error}; expected: the page /metrics/m3"
            self.intake.complain("unreadable", page.name, text)
        if not values:
            text = "no mvs_cf_storage_ of a coupling facility; expected: /metrics/m3 with its names"
            self.intake.complain("no-metrics", page.name, text)
        for name, metrics in sorted(values.items()):
            size, free = metrics.get(_M3_SIZE), metrics.get(_M3_FREE)
            self.intake.facts.add("coupling_facility", name, "m3", size=size)
            qmgr = member_of(self.intake.estate, name)
            if qmgr is None:
                note_facility(self.intake, name, times[name])
            elif free is not None and self._is_sound(size, free, name, page):
                measured: Measured = {"storage_free": free}
                yield {"time": times[name], "qmgr": qmgr, "op": "MEASURE", "store": name, "measured": measured}

    def _is_sound(self, size: int | None, free: int, name: str, page: Page) -> bool:
        share = {"free storage": {"used": free, "max": size}}
        return size is None or self.intake.is_consistent(share, name, page.name)

    def _facility_of(self, labels: Mapping[str, str]) -> str | None:
        """Return the coupling facility of a sample: one of the estate, else the label that is named for one."""
        estate = self.intake.estate
        for value in labels.values():
            if estate is not None and value in estate.stores and estate.stores[value].kind == "coupling_facility":
                return value
        return next((value for label, value in labels.items() if "cf" in label.lower() and value), None)


def _kind_of(name: str) -> str:
    """Return the first two words of the name of a metric: what it is about."""
    return "_".join(name.split("_")[:2])[:_MAX_KIND] or "?"


def _known_name(metric: str) -> str:
    """Return the name of a metric without the suffix that OpenMetrics and the parser give counters."""
    without = metric.removesuffix("_total")
    return without if metric not in NAMES and without in NAMES else metric


def _sample_time(timestamp: Any) -> int | None:
    """Return the time of a sample, microseconds. The parser takes the seconds of OpenMetrics for milliseconds."""
    if timestamp is None:
        return None
    seconds = float(timestamp)
    return round((seconds if seconds > _SMALLEST_S else seconds * 1000) * 1e6)


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
        self._events = MetricEvents("mq_json", intake, options)
        self._collections = Collections()

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
            for complete in self._collections.add({time: self._collected(collection, time, place)}):
                yield from self._complete(complete)
        self.page_latest = self._collections.latest

    @override
    def finish(self) -> Iterable[Event]:
        for complete in self._collections.rest():
            yield from self._complete(complete)
        self.intake.notes += self._events.notes()

    def _complete(self, collected: Collected) -> Iterator[Event]:
        self.passed = max(self.passed, collected.time)
        yield from self._events.events(collected)

    def _collected(self, collection: _Collection, time: int, place: str) -> Collected:
        collected = Collected(time, place)
        for point in collection.points:
            kind = point.object_type.lower()
            if kind not in _JSON_NAMES:
                self.intake.pass_over("point of other objects", kind[:_MAX_KIND] or "?")
                continue
            name = point.tags.get(_JSON_NAMES[kind], "").strip()
            qmgr = point.tags.get("qmgr", "").strip() or self.options.qmgr
            if not name or not qmgr:
                self.intake.pass_over("point of other objects", f"{kind} without a name or qmgr")
                continue
            collected.note_platform(qmgr, point.tags.get("platform", ""))
            for metric, value in point.metrics.items():
                collected.add(kind, qmgr, name, _CAPITAL.sub("_", metric).lower(), value)
        return collected
