"""Metrics of mq_prometheus (scraped, or by a range query of Prometheus) and mq_json.

mq_prometheus has gauges up to version 5, whose counts are those since the last collection, and counters from version 6:
`# TYPE` shows which. So do the metadata that Prometheus keeps [Prometheus: HTTP API, Querying metric metadata]. mq_json
writes the same metrics as JSON, an object per collection [IBM: mq-metric-samples].
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import msgspec
from prometheus_client.parser import text_string_to_metric_families
from typing_extensions import override

from twin.base.decoding import UNREADABLE
from twin.base.units import as_count
from twin.feeds.intake import Complaint, Intake, Item, PassedOver
from twin.feeds.json_pages import json_documents
from twin.feeds.metrics import (
    COUNTS,
    MAX_COLLECTIONS,
    MAX_KIND,
    MAX_NAME,
    NAMES,
    OTHER_METRICS,
    UNUSED_METRICS,
    Collected,
    Collections,
    MetricEvents,
    kind_of,
)
from twin.feeds.protocol import Asked, Feed, FeedOptions, Page, Requests

_NAMESPACE = "ibmmq"  # unless the collector's configuration has another
_NAME = re.compile(r"(?P<namespace>[a-zA-Z_:][a-zA-Z0-9_:]*?)_(?P<kind>queue|pageset)_(?P<metric>[a-z0-9_]+)")
_LABELS = "a label qmgr and names that are read; expected: mq_prometheus"
_MAX_LENGTH = 300  # characters of a name
_FEWEST_VALUES = 3  # of a series that show whether it is a counter
_MAX_TYPES = 10_000
_JSON_KINDS = ("queue", "pageset")  # objectType of mq_json, and the tag with its name
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_QUERY = '{__name__=~".+_(queue|pageset)_.+",qmgr!=""}'  # the namespace is the collector's
_MAX_BACK_S = 3600.0  # to ask for at most


class PrometheusFeed(Feed):
    """Reader of mq_prometheus: its own page, or answers of Prometheus to a range query and to a query of metadata."""

    reads = "ibmmq_queue_ or ibmmq_pageset_ of mq_prometheus"
    is_json = True

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._events = MetricEvents(self, "mq_prometheus")
        self._types: dict[str, str] = {}
        self._names: dict[str, str] = {}  # of counts in answers, by metric
        self._is_rising: dict[str, bool] = {}  # by metric of counts: False if a series of it in answers has fallen
        self._collections = Collections()

    @override
    def take(self, page: Page) -> Iterator[Item]:
        """Yield the events of a page. Answers in files wait for others with the same times, such as one a metric."""
        text = bytes(page.data)
        if text.lstrip()[:1] == b"{":
            yield from self._answer(page)
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
            is_counter = self._is_rising.get(metric, False)
            if not kind and is_counter and not name.endswith("_total"):
                text = (
                    f"nothing says that {name} is a counter; it is taken for one, as it never falls. Expected: also the"
                )
                text += " answer of /api/v1/metadata, which has the types"
                yield from self.once(Complaint("no-type", collected.place, text))
            if kind == "counter" or name.endswith("_total") or (is_counter and not kind):
                collected.cumulative.add(metric)
        yield from self._events.events(collected)

    def _exposition(self, data: bytes, page: Page) -> Iterator[Item]:
        collected = Collected(page.time or 0, page.name)
        passed: Counter[tuple[str, str]] = Counter()
        before = self.object_count
        try:
            for family in text_string_to_metric_families(data.decode()):
                for sample in family.samples:
                    # OpenMetrics: TYPE has the name of a counter without _total, which the parser does not put together
                    is_total = family.type == "unknown" and sample.name.endswith("_total")
                    is_counter = family.type == "counter" or is_total
                    self._add(collected, sample.name, sample.labels, sample.value, passed, is_counter=is_counter)
        except Exception as error:  # noqa: BLE001 -- the parser raises many kinds
            text = f"no text of Prometheus: {type(error).__name__} {error}; expected: its exposition format"
            yield Complaint("unreadable", page.name, text)
        yield from _passed(passed)
        if self.object_count == before:
            yield Complaint("no-metrics", page.name, f"no {_NAMESPACE}_queue_ or {_NAMESPACE}_pageset_ with {_LABELS}")
        yield from self._events.events(collected)

    def _answer(self, page: Page) -> Iterator[Item]:
        passed: Counter[tuple[str, str]] = Counter()
        before = self.object_count
        try:
            series = list(self._series(page))
            points = self._points(series, page.name, passed)
        except (*UNREADABLE, LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            text = f"no answer of Prometheus: {type(error).__name__} {error}; expected: a matrix of query_range"
            yield from _passed(passed)
            yield Complaint("unreadable", page.name, text)
            return
        yield from _passed(passed)
        if series and self.object_count == before:
            yield Complaint("no-metrics", page.name, f"no {_NAMESPACE}_queue_ or {_NAMESPACE}_pageset_ with {_LABELS}")
        for collected in self._collections.add(points):
            yield from self._complete(collected)

    def _series(self, page: Page) -> Iterator[dict[str, Any]]:
        """Yield the series of answers to queries, or of an export of VictoriaMetrics; keep types that others have.

        An export has an object a line with metric, values and timestamps, milliseconds [VictoriaMetrics: docs, How to
        export data in JSON line format].
        """
        for document, _ in json_documents(page):
            answer = msgspec.json.decode(document, type=dict[str, Any])
            if "timestamps" in answer:
                times = [milliseconds / 1000 for milliseconds in answer["timestamps"]]
                yield {"metric": answer["metric"], "values": list(zip(times, answer["values"], strict=True))}
                continue
            content = answer["data"]
            if "resultType" not in content:
                self._note_types(content)
                continue
            for series in content["result"]:
                yield {"metric": series["metric"], "values": series.get("values") or [series["value"]]}

    def _note_types(self, metadata: Mapping[str, Any]) -> None:
        for name, entries in metadata.items():
            match = _parts_of(name)
            if match is not None and _known_name(match["metric"]) in NAMES and len(self._types) < _MAX_TYPES:
                self.object_count += 1
                self._types[name] = str(entries[0]["type"])

    def _points(
        self, result: list[dict[str, Any]], place: str, passed: Counter[tuple[str, str]]
    ) -> dict[int, Collected]:
        """Return the values by time. passed: takes what is not one of MQ."""
        points: dict[int, Collected] = {}
        for series in result:
            labels = {str(name): str(value) for name, value in series["metric"].items()}
            name = labels.get("__name__", "")
            values = [(round(float(seconds) * 1e6), float(text)) for seconds, text in series["values"]]
            match = _parts_of(name)
            metric = _known_name(match["metric"]) if match is not None else ""
            if metric in COUNTS:
                self._names[metric] = name
                self._note_course(metric, [value for _, value in values])
            for time, value in values:
                if time not in points and len(points) >= MAX_COLLECTIONS:
                    raise ValueError(f"more than {MAX_COLLECTIONS} times")
                collected = points.setdefault(time, Collected(time, place))
                self._add(collected, name, labels, value, passed, is_counter=False)
        return points

    def _note_course(self, metric: str, values: list[float]) -> None:
        """Keep whether the series of a metric only rise, as those of a counter do; a short one shows nothing."""
        falls = any(after < before for before, after in pairwise(values))
        if falls or (len(values) >= _FEWEST_VALUES and values[-1] > values[0]):
            self._is_rising[metric] = not falls and self._is_rising.get(metric, True)

    def _add(
        self,
        collected: Collected,
        name: str,
        labels: Mapping[str, str],
        value: float,
        passed: Counter[tuple[str, str]],
        *,
        is_counter: bool,
    ) -> None:
        """Add a sample to a collection, or to what is passed over: its name and kind."""
        match = _parts_of(name)
        metric = _known_name(match["metric"]) if match is not None else ""
        if match is None or (match["namespace"] != _NAMESPACE and metric not in NAMES):
            passed[OTHER_METRICS, kind_of(name)] += 1
            return
        if metric not in NAMES:
            passed[UNUSED_METRICS, name[:MAX_NAME]] += 1
            return
        kind = match["kind"]
        qmgr, own = labels.get("qmgr", "").strip() or self.options.qmgr, labels.get(kind, "").strip()
        if not qmgr or not own or not math.isfinite(value):
            passed[OTHER_METRICS, "no number" if qmgr and own else f"no label qmgr or {kind}"] += 1
            return
        self.object_count += 1
        platform = collected.note_platform(qmgr, labels.get("platform", ""))
        if platform and self.intake.facts.value("queue_manager", qmgr, "platform") is None:
            self.intake.facts.add("queue_manager", qmgr, "mq_prometheus", platform=platform)
        if is_counter and metric in COUNTS:
            collected.cumulative.add(metric)
        collected.add(kind, qmgr, own, metric, value)


def _passed(counts: Counter[tuple[str, str]]) -> Iterator[PassedOver]:
    for (name, kind), number in sorted(counts.items()):
        yield PassedOver(name, kind, number)


def _parts_of(name: str) -> re.Match[str] | None:
    """Return namespace, kind and metric of a name; None if it has not these."""
    return _NAME.fullmatch(name) if len(name) <= _MAX_LENGTH else None


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
    is_json = True

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._events = MetricEvents(self, "mq_json")
        self._collections = Collections()
        self._values = 0

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
        if self.object_count and not self._values:
            text = f"{as_count(self.object_count, 'record')} without a value of a queue or page set that is read"
            yield Complaint("no-metrics", "mq_json", f"{text}; expected: points with objectType, tags and metrics")
        self.intake.notes += self._events.notes()

    def _complete(self, collected: Collected) -> Iterator[Item]:
        self.passed = max(self.passed, collected.time)
        yield from self._events.events(collected)

    def _fill(self, collected: Collected, points: Iterable[_Point]) -> Iterator[PassedOver]:
        passed: Counter[tuple[str, str]] = Counter()
        for point in points:
            kind = point.object_type.lower()
            name, qmgr = point.tags.get(kind, "").strip(), point.tags.get("qmgr", "").strip() or self.options.qmgr
            if kind not in _JSON_KINDS:
                passed["point of other objects", kind[:MAX_KIND] or "?"] += 1
            elif not name or not qmgr:
                passed["point of other objects", f"{kind} without a name or qmgr"] += 1
            else:
                collected.note_platform(qmgr, point.tags.get("platform", ""))
                for written, value in point.metrics.items():
                    metric = _CAPITAL.sub("_", written).lower()
                    if metric in NAMES:
                        self._values += 1
                        collected.add(kind, qmgr, name, metric, value)
                    else:
                        passed[UNUSED_METRICS, written[:MAX_NAME]] += 1
        yield from _passed(passed)


# --- what is asked of servers ----------------------------------------------------------------------------------------


def metric_requests(asked: Asked) -> Requests:
    """Return the request for a page of metrics, or those of Prometheus' range query."""
    if asked.is_range:
        return range_requests(asked.url, _QUERY, asked.interval_s, _MAX_BACK_S)
    return lambda _start, _end: [(asked.url, "text/plain;version=0.0.4")]


def range_requests(url: str, query: str, step_s: float, max_back_s: float) -> Requests:
    """Return the requests of Prometheus' range query [Prometheus: HTTP API, Range queries], from the last end on.

    step_s: seconds between two values; max_back_s: to ask for at most, at the first request or after a pause.
    """

    def requests(start: int, end: int) -> Sequence[tuple[str, str]]:
        step = round(step_s * 1e6)
        last = end // step * step
        first = max(start // step * step + step, last - round(max_back_s * 1e6) // step * step)
        if first > last:
            return []
        values = {"query": query, "start": _seconds(first), "end": _seconds(last), "step": f"{step_s:g}"}
        address = url.rstrip("/")
        return [
            (f"{address}/api/v1/metadata", "application/json"),  # which metrics are counters
            (f"{address}/api/v1/query_range?{urlencode(values)}", "application/json"),
        ]

    return requests


def _seconds(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1e6, UTC).isoformat().replace("+00:00", "Z")
