"""Marks in the reports topic: whether the job has read all events that existed, or reads a backlog.

A shared store waits for a source that says nothing by minutes of event time. While a backlog is read in several batches
the events of a source may only come later, hours behind those of another partition; then it waits for all of them (see
`twin.stores.reports.Frontier`). Only the driver knows which it is. It tells each shared store when that changes, by a
record among its reports, so that the result is a function of records.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from streams.kafka.clients import LastError, new_producer
from streams.kafka.topics import Topics
from streams.query.observed import BatchReport
from streams.query.report_records import CONTENT_TYPE, SHARED_KINDS, read_mark
from twin.errors import MqtwinError
from twin.estate import Estate

_FLUSH_SECONDS = 10.0
_SETTINGS = {"enable.idempotence": True, "partitioner": "murmur2_random"}  # the partition that the job's reports take

_log = structlog.get_logger("mqtwin.stream")


class ReadMarks:
    """Writer of marks to the shared stores of an estate.

    Args:
        estate: the estate.
        kafka: client settings, ``bootstrap.servers`` among them.
        topics: names of the topics.

    Attributes:
        stores: the shared stores, sorted.
    """

    def __init__(self, estate: Estate, kafka: Mapping[str, str], topics: Topics) -> None:
        self.stores = [name for name, store in estate.stores.items() if store.kind in SHARED_KINDS]
        self._kafka = kafka
        self._topics = topics
        self._last_mark: bool | None = None

    def tell(self, *, caught_up: bool) -> None:
        """Write whether all events that existed have been read, unless it was told last.

        Raises:
            MqtwinError: Kafka does not take the records.
        """
        if not self.stores or caught_up == self._last_mark:
            return
        failures: list[str] = []
        last_error = LastError()
        producer = new_producer(self._kafka, _SETTINGS, last_error)
        headers: list[tuple[str, str | bytes | None]] = [("content-type", CONTENT_TYPE.encode())]
        for store in self.stores:
            producer.produce(
                self._topics.reports,
                read_mark(store, caught_up=caught_up),
                store.encode(),
                headers=headers,
                on_delivery=lambda error, _: failures.append(error.str()) if error is not None else None,
            )
            producer.poll(0)
        if producer.flush(_FLUSH_SECONDS) or failures:
            why = failures[0] if failures else last_error.text or "no answer"
            raise MqtwinError(f"topic {self._topics.reports}: a record was not delivered: {why}")
        self._last_mark = caught_up

    def on_batch(self, report: BatchReport) -> None:
        """Tell after a batch where that has changed.

        A failure is logged, and tried again after the next batch: until then shared stores wait for longer.
        """
        caught_up = has_read_all(report, self._topics)
        if caught_up is None:
            return
        try:
            self.tell(caught_up=caught_up)
        except MqtwinError as error:
            _log.warning("shared stores are not told that the job has caught up", why=str(error))


def has_read_all(report: BatchReport, topics: Topics) -> bool | None:
    """Return True if a batch has read all events that existed at its start; None where Spark did not ask for their end.

    Args:
        report: report of the batch.
        topics: names of the topics; that of reports does not count.
    """
    ends, latest = report.end_offsets, report.latest_offsets
    names = [name for name in topics.read if name != topics.reports]
    if not all(name in latest for name in names):
        return None
    return all(
        ends.get(name, {}).get(number, -1) >= offset for name in names for number, offset in latest[name].items()
    )
