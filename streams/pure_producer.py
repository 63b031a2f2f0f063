"""A small producer of events in pure Python, for collectors where librdkafka has no build: z/OS UNIX System Services.

It needs Python 3.11 and the package kafka-python, nothing else of mqtwin: copy this one file next to the collector.

    >>> store_of = {("QM01", "ORDERS"): "QSG1/APP1", ("QM01", "INVOICES"): "QSG1/APP1"}
    >>> with EventProducer("broker:9092", store_of=store_of) as events:
    ...     events.put({"time": 1795176000000123, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 2048})

What it sees to, so that a collector need not (contract, sections 2 and 7):

* the record key is the store, and a store's partition is the one Kafka's own client chooses, so a store's events stay
  in order;
* `seq` counts the events of each (queue manager, queue) without holes, so that what was sent twice or lost shows;
* a HEARTBEAT or RESTART without a store goes to every store of its queue manager;
* text is UTF-8 whatever the code page of the system;
* what cannot be delivered is an error of the next call, and a broker that is away makes `put` wait rather than fill
  the memory.

A collector that starts again while its queue managers went on must go on with its numbers: keep `next_seq` when it
stops and hand it in when it starts. Numbers that begin again from 0 would be taken for duplicates.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from kafka import KafkaProducer
from kafka.errors import KafkaError

JSON = "application/json"  # one event a record
NDJSON = "application/x-ndjson"  # events, one a line: two to three times as many a second
QUEUE_OPS = frozenset({"PUT", "GET", "COMMIT", "BACKOUT", "EXPIRE", "CLEAR"})
QMGR_OPS = frozenset({"HEARTBEAT", "RESTART"})
STORE_OPS = frozenset({"ALTER", "REBUILD", "MEASURE"})

RECORD_BYTES = 500_000  # of NDJSON, at most: half of what a broker takes by default
WAITING_RECORDS = 10_000  # handed over and not yet delivered; then `put` waits

# One request at a time keeps the order when one is sent again, and `seq` tells what arrived twice. The idempotent
# producer of kafka-python 3.0.12 is of no more use after the first record that a broker refuses: every later one fails.
_SETTINGS = {
    "acks": "all",
    "enable_idempotence": False,
    "max_in_flight_requests_per_connection": 1,
    "batch_size": 262_144,
    "max_block_ms": 15_000,  # for the partitions of the topic
}
_as_json = json.JSONEncoder(separators=(",", ":")).encode


class DeliveryError(Exception):
    """Records that no broker took; the events in them are lost unless they are put again."""


class EventProducer:
    """Sends events to the topic `<prefix>.events`. A context manager; may be used by several threads.

    Args:
        bootstrap_servers: HOST:PORT, several with commas.
        prefix: beginning of the topic's name.
        store_of: the store of each (queue manager, queue as events name it), as in the estate: "QSG1/APP1",
        "QM01/PS04".
        content_type: JSON or NDJSON.
        batch_events: events in an NDJSON record, at most.
        linger_seconds: how long an event waits for others, at most.
        next_seq: the number of the next event of each (queue manager, queue); 0 where there is none.
        kafka: further settings of kafka-python's KafkaProducer, such as security_protocol="SSL".

    Raises:
        ValueError: a content type that is neither of the two.
        kafka.errors.KafkaError: no broker answers.
        DeliveryError: there is no such topic.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        prefix: str = "mqtwin",
        *,
        store_of: Mapping[tuple[str, str], str],
        content_type: str = NDJSON,
        batch_events: int = 500,
        linger_seconds: float = 0.2,
        next_seq: Mapping[tuple[str, str], int] | None = None,
        **kafka: Any,
    ) -> None:
        if content_type not in (JSON, NDJSON):
            raise ValueError(f"content_type is {content_type!r}; right: {JSON!r} or {NDJSON!r}")
        self.next_seq = dict(next_seq or {})
        self._topic = f"{prefix}.events"
        self._store_of = store_of
        self._stores_of_qmgr = _by_qmgr(store_of)
        self._content_type = content_type
        self._batch_events = max(1, batch_events)
        self._linger = linger_seconds
        self._lock = threading.RLock()  # numbers, lines
        self._lines: dict[str, list[bytes]] = {}
        self._size: dict[str, int] = {}
        self._due: dict[str, float] = {}
        self._settled = threading.Condition()  # what follows changes in kafka-python's thread
        self._waiting = 0
        self._failed = 0
        self._failure = ""
        self._closed = threading.Event()
        linger_ms = int(linger_seconds * 1000) if content_type == JSON else 0
        settings = {**_SETTINGS, "linger_ms": linger_ms, **kafka}
        self._producer = KafkaProducer(bootstrap_servers=bootstrap_servers.split(","), **settings)
        self._check_topic()
        self._ticker = threading.Thread(target=self._send_when_due, name="mqtwin-events", daemon=True)
        if content_type == NDJSON:
            self._ticker.start()

    def put(self, event: Mapping[str, Any]) -> None:
        """Send one event, a mapping of the contract's fields; `seq` is added where it is missing. The event itself
        stays as it is.

        Raises:
            ValueError: it has no time, qmgr or op, or belongs to no store; nothing was sent.
            DeliveryError: earlier records were not delivered; this event was not sent.
        """
        event = dict(event)
        stores = self._stores(event)
        self._raise_failure()
        with self._lock:
            if event["op"] in QUEUE_OPS and event.get("seq") is None:
                flow = event["qmgr"], event["queue"]
                event["seq"] = self.next_seq.get(flow, 0)
                self.next_seq[flow] = event["seq"] + 1
            for store in stores:
                if event["op"] in QMGR_OPS:
                    event["store"] = store
                self._put(store, _as_json(event).encode("utf-8"))

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything is delivered.

        DeliveryError: it was not. kafka.errors.KafkaTimeoutError: not in so many seconds.
        """
        with self._lock:
            for store in list(self._lines):
                self._send_lines(store)
        self._producer.flush(timeout)
        with self._settled:
            self._settled.wait_for(lambda: self._waiting == 0, 5)  # kafka-python tells us a moment later
        self._raise_failure()

    def close(self) -> None:
        """Flush, and leave Kafka. DeliveryError as in `flush`."""
        self._closed.set()
        try:
            self.flush()
        finally:
            self._producer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_topic(self) -> None:
        try:
            self._producer.partitions_for(self._topic)
        except KafkaError as error:
            self._producer.close(0)
            raise DeliveryError(
                f"there is no topic {self._topic}, or this user may not see it ({type(error).__name__}): "
                "`mqtwin stream` creates it"
            ) from error

    # --- routing ---------------------------------------------------------------------------------------------------

    def _stores(self, event: Mapping[str, Any]) -> Iterable[str]:
        """Where an event goes. ValueError where it goes nowhere."""
        for name in ("time", "qmgr", "op"):
            if event.get(name) is None:
                raise ValueError(f"the event has no {name}: {event!r}")
        qmgr, op = event["qmgr"], event["op"]
        if op in QUEUE_OPS:
            store = self._store_of.get((qmgr, event.get("queue")))  # type: ignore[arg-type]
            if store is None:
                raise ValueError(
                    f"queue {event.get('queue')!r} of {qmgr} has no store; right: one of {self._queues(qmgr)}"
                )
            return (store,)
        if op not in QMGR_OPS and op not in STORE_OPS:
            raise ValueError(f"op is {op!r}; right: one of {', '.join(sorted(QUEUE_OPS | QMGR_OPS | STORE_OPS))}")
        if event.get("store") is not None:
            return (str(event["store"]),)
        if op in STORE_OPS:
            raise ValueError(f"{op} needs a store: {event!r}")
        if qmgr not in self._stores_of_qmgr:
            raise ValueError(f"{qmgr} has no stores; right: one of {', '.join(self._stores_of_qmgr)}")
        return self._stores_of_qmgr[qmgr]

    def _queues(self, qmgr: str) -> str:
        return ", ".join(sorted(queue for owner, queue in self._store_of if owner == qmgr)) or "none is known"

    # --- sending ---------------------------------------------------------------------------------------------------

    def _put(self, store: str, text: bytes) -> None:
        if self._content_type == JSON:
            self._send(store, text, [])  # the default content type needs no header
            return
        if self._size.get(store, 0) + len(text) > RECORD_BYTES:
            self._send_lines(store)
        lines = self._lines.setdefault(store, [])
        if not lines:
            self._due[store] = time.monotonic() + self._linger
        lines.append(text)
        self._size[store] = self._size.get(store, 0) + len(text) + 1
        if len(lines) >= self._batch_events:
            self._send_lines(store)

    def _send_lines(self, store: str) -> None:
        lines = self._lines.pop(store, [])
        self._size[store] = 0
        if lines:
            self._send(store, b"\n".join(lines), [("content-type", NDJSON.encode("ascii"))])

    def _send(self, store: str, value: bytes, headers: list[tuple[str, bytes]]) -> None:
        with self._settled:
            self._settled.wait_for(lambda: self._waiting < WAITING_RECORDS)
            self._waiting += 1
        try:
            future = self._producer.send(self._topic, value, store.encode("utf-8"), headers)
        except KafkaError as error:
            self._fail(error)
        else:
            future.add_callback(self._settle)
            future.add_errback(self._fail)

    def _settle(self, _: Any) -> None:
        with self._settled:
            self._waiting -= 1
            self._settled.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._settled:
            self._failed += 1
            self._failure = self._failure or f"{type(error).__name__}: {error}"
            self._waiting -= 1
            self._settled.notify_all()

    def _raise_failure(self) -> None:
        with self._settled:
            failed, failure = self._failed, self._failure
            self._failed, self._failure = 0, ""
        if failed:
            raise DeliveryError(f"topic {self._topic}: {failed} records were not delivered; the first: {failure}")

    def _send_when_due(self) -> None:
        """In a thread of its own: lines that waited long enough go out."""
        while not self._closed.wait(self._linger / 2):
            with self._lock:
                now = time.monotonic()
                for store in [store for store in self._lines if self._due[store] <= now]:
                    self._send_lines(store)


def _by_qmgr(store_of: Mapping[tuple[str, str], str]) -> dict[str, list[str]]:
    stores: dict[str, set[str]] = {}
    for (qmgr, _), store in store_of.items():
        stores.setdefault(qmgr, set()).add(store)
    return {qmgr: sorted(found) for qmgr, found in sorted(stores.items())}
