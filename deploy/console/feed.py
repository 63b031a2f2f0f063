"""The thread that reads the topics for the console."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Self

from deploy.console.model import MAX_LETTERS, ConsoleModel
from streams.kafka.topic_reader import TopicReader
from streams.kafka.topics import Topics
from twin.errors import MqtwinError

_READ_SECONDS = 0.25
_CHECK_READS = 20  # idle reads after which the broker is asked if it still answers: 5 s
_RETRY_SECONDS = 5.0  # after an error of the broker


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
                records = self._reader.read(_READ_SECONDS)
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
