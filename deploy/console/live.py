"""The threads of the console that read Kafka: the topics of the job for its model, and the events for what-if.

The twins for what-if begin with the events that the topic still holds. The job is not touched and its checkpoint is not
read.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Self

import msgspec
import numpy as np
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from deploy.console.model import MAX_LETTERS, ConsoleModel
from streams.kafka.clients import LastError, check, content_type_of, new_consumer, partitions_of
from streams.kafka.topic_reader import TopicReader
from streams.kafka.topics import Topics
from twin.capacity.offload_rules import has_rules
from twin.conditions import Pool, Resource
from twin.errors import MqtwinError, UsageError
from twin.estate import MAX_PAGES, Estate, Structure
from twin.estate.settings import DataSetSetting, Settings
from twin.events import Decoder
from twin.planning.levers import sizes
from twin.planning.moment import moment_of
from twin.planning.whatif import DEFAULT_HORIZON_S, FillOutcome, Traffic, what_if
from twin.playback.replays import Player
from twin.stores.message_store import MessageStore
from twin.stores.warm_up import warm

_TOPICS_READ_SECONDS = 0.25
_CHECK_READS = 20  # idle reads after which the broker is asked if it still answers: 5 s
_RETRY_SECONDS = 5.0  # after an error of the broker

_BATCH = 2_000
_EVENTS_READ_SECONDS = 0.5
_MIB = 1024 * 1024
_PAGES = ("pages", "max_pages")
_LABELS = {
    "size": "SIZE",
    "scm_max_size": "SCMMAXSIZE",
    "pages": "pages",
    "max_pages": "pages at most",
    "max_size": "maximum size",
}


class TopicFeed:
    """One reader of the topics that folds them into a model. A context manager.

    Args:
        kafka: client settings, `bootstrap.servers` among them.
        topics: names of the topics.
        model: receives the records.

    Raises:
        UsageError: the user may not read a topic.
        MqtwinError: no Kafka answers at the start.
    """

    def __init__(self, kafka: Mapping[str, str], topics: Topics, model: ConsoleModel) -> None:
        self._kafka, self._topics, self._model = kafka, topics, model
        self._stopping = threading.Event()
        self._reader = TopicReader(kafka, {topics.state: None, topics.alerts: None, topics.dlq: MAX_LETTERS})
        self._thread = threading.Thread(target=self._run, name="mqtwin-console-feed", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        idle = 0
        while not self._stopping.is_set():
            try:
                records = self._reader.read(_TOPICS_READ_SECONDS)
                if records:
                    self._model.fold(records)
                idle = 0 if records else idle + 1
                if idle == 0 or idle % _CHECK_READS == 1:
                    self._report(connected=bool(records) or self._reader.is_answering())
            except Exception as error:  # noqa: BLE001 -- this thread never ends in silence: /readyz says why, and it goes on
                text = str(error) if isinstance(error, MqtwinError) else f"{type(error).__name__}: {error}"
                self._model.set_source(connected=False, caught_up=False, missing=[], problem=text)
                self._stopping.wait(_RETRY_SECONDS)
        self._reader.close()

    def _report(self, *, connected: bool) -> None:
        reader = self._reader
        problem = "" if connected else f"no Kafka answers at {self._kafka.get('bootstrap.servers', '')}"
        caught_up = reader.is_caught_up and self._topics.state not in reader.missing
        missing = list(reader.missing)
        self._model.set_source(connected=connected, caught_up=caught_up, missing=missing, problem=problem)

    def close(self) -> None:
        """Stop reading."""
        self._stopping.set()
        self._thread.join(timeout=10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class WhatIfRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /whatif. set: attributes as in the estate; traffic: factors."""

    store: str
    traffic: Traffic = Traffic()
    set: Settings = {}
    horizon_s: float = DEFAULT_HORIZON_S


class Slider(msgspec.Struct, frozen=True):
    """An attribute that the page offers. value, low and high: in `unit`, of which one is `scale` of the attribute."""

    name: str
    label: str
    value: int
    low: int = msgspec.field(name="min")
    high: int = msgspec.field(name="max")
    step: int
    unit: str
    scale: int = 1


class PageOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """When a store is full. label: the resource that is full first, in words."""

    resource: str | None
    label: str
    time_to_full_s: dict[str, float | None] | None
    probability: float
    horizon_s: float
    messages_that_fit: int | None


class WhatIfAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to POST /whatif: the store as it is and as it would be."""

    time: str
    attributes: list[Slider]
    before: PageOutcome
    after: PageOutcome
    note: str


class LiveTwins:
    """The twins of an estate, and answers about them. A context manager; `follow` starts the thread.

    Args:
        estate: the estate.
    """

    def __init__(self, estate: Estate) -> None:
        self._estate = estate
        self._player = Player(estate)
        self._decoder = Decoder(estate)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._problem = ""

    def follow(self, kafka: Mapping[str, str], topics: Topics) -> Self:
        """Follow the events topic from its beginning. Arguments: client settings, names of the topics."""
        arguments = (dict(kafka), topics.events)
        self._thread = threading.Thread(target=self._run, args=arguments, name="mqtwin-console-twins", daemon=True)
        self._thread.start()
        return self

    def feed(self, values: list[bytes | None], content_types: list[bytes | None]) -> None:
        """Apply records of the events topic, in their order; those that the job would refuse are skipped."""
        decoded = self._decoder.records(values, content_types)
        with self._lock:
            self._player.feed(decoded)

    def answer(self, content: Any) -> WhatIfAnswer:
        """Answer the decoded body of POST /whatif. UsageError: it cannot be answered; says why."""
        try:
            request = msgspec.convert(content, WhatIfRequest)
        except msgspec.ValidationError as error:
            raise UsageError(f"the body: {error}; expected: an object with store, set, traffic, horizon_s") from None
        with self._lock:
            twin = self._player.twins.get(request.store)
            if twin is None:
                known = request.store in self._estate.stores
                reason = self._problem or (
                    "no event of it was read yet; expected: one that has events"
                    if known
                    else "the console's estate has no such store; expected: one of them"
                )
                raise UsageError(f"{request.store}: {reason}")
            moment = moment_of(self._estate, twin)
            try:
                with np.errstate(divide="raise", over="raise", invalid="raise"):
                    answer = what_if(moment, request.set, request.traffic, request.horizon_s)
            except ArithmeticError as error:
                raise UsageError(f"the numbers lead to: {error}; expected: numbers nearer to today's") from None
            sliders = _sliders(moment.twin)
        return WhatIfAnswer(
            time=answer.time,
            attributes=sliders,
            before=_outcome(answer.before, answer.horizon_s),
            after=_outcome(answer.after, answer.horizon_s),
            note=f"As of {answer.time[:19].replace('T', ' ')}, if the traffic of the last minutes goes on as set here.",
        )

    def problem(self) -> str:
        """Return why the events are not read; empty if they are."""
        return self._problem

    def _run(self, kafka: dict[str, str], topic: str) -> None:
        while not self._stopping.is_set():
            try:
                warm()
                self._follow_once(kafka, topic)
            except Exception as error:  # noqa: BLE001 -- this thread never ends in silence: /readyz and answers say why
                self._problem = str(error) if isinstance(error, MqtwinError) else f"{type(error).__name__}: {error}"
                self._stopping.wait(_RETRY_SECONDS)

    def _follow_once(self, kafka: dict[str, str], topic: str) -> None:
        last_error = LastError()
        consumer = new_consumer(kafka, {"auto.offset.reset": "earliest"}, last_error)
        try:
            numbers = partitions_of(consumer, topic, kafka, last_error)
            if not numbers:
                raise MqtwinError(f"topic {topic} does not exist yet")
            with self._lock:
                self._player = Player(self._estate)
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
            self._problem = ""
            while not self._stopping.is_set():
                messages = [
                    item for item in consumer.consume(_BATCH, _EVENTS_READ_SECONDS) if check(item.error(), topic)
                ]
                if messages:
                    self.feed([item.value() for item in messages], [content_type_of(item) for item in messages])
                if len(messages) < _BATCH:
                    with self._lock:
                        self._player.catch_up()
        finally:
            consumer.close()

    def close(self) -> None:
        """Stop following."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _outcome(outcome: FillOutcome, horizon_s: float) -> PageOutcome:
    times = {"p10": outcome.p10, "p50": outcome.p50, "p90": outcome.p90}
    return PageOutcome(
        resource=outcome.resource,
        label=Resource.parse(outcome.resource or "").label,
        time_to_full_s=None if outcome.p50 is None else times,
        probability=outcome.probability,
        horizon_s=horizon_s,
        messages_that_fit=outcome.messages_that_fit,
    )


def _sliders(twin: MessageStore) -> list[Slider]:
    """Return the attributes that the page offers: offload thresholds, and the sizes that advice may change too."""
    config = twin.config
    sliders = []
    if isinstance(config, Structure) and has_rules(config):
        names = [(f"offld{number}_th", f"OFFLD{number}TH") for number in (1, 2, 3)]
        sliders = [_slider(name, label, getattr(config, name), 0, 100, "%") for name, label in names]
    for name, value in sizes(twin).items():
        if name in _PAGES:
            sliders.append(_slider(name, _label(name), value, 2, min(MAX_PAGES, 4 * value), ""))
        else:
            sliders.append(_size(name, _label(name), value))
    return sliders


def _label(name: str) -> str:
    """Return what the page calls a size."""
    if (dataset := DataSetSetting.parse(name)) is not None:
        label = Resource(Pool.SMDS, dataset.qmgr).label
        return f"{label} at most" if dataset.attribute == "max_size" else label
    return _LABELS[name]


def _slider(name: str, label: str, value: int, low: int, high: int, unit: str) -> Slider:
    return Slider(name, label, value, low, high, max(1, (high - low) // 200), unit)


def _size(name: str, label: str, value_bytes: int) -> Slider:
    value = max(1, value_bytes // _MIB)
    return Slider(name, label, value, max(1, value // 4), 4 * value, max(1, value // 32), "MB", _MIB)
