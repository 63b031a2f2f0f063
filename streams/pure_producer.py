"""A producer of events in pure Python, for collectors on systems without librdkafka, such as z/OS UNIX System Services.

It needs Python 3.11 and the package kafka-python, and nothing else of mqtwin: copy this one file to the collector. The
producer follows the rules of mqtwin's docs/events.md on the collector's behalf. A collector that restarts while its
queue managers run must continue their numbers: save `next_seq` when it stops, and pass it when it starts. Numbers that
start again from 0 would count as duplicates.

* The record key is the store, and a store has the partition that Kafka's own client chooses, so its events stay in
  order.
* `seq` numbers the events of each (queue manager, queue) without gaps, so that duplicates and losses are detected.
* A HEARTBEAT or RESTART without a store is sent to every store of its queue manager.
* Text is UTF-8, whatever the code page of the system.
* A failed delivery raises an error from the next call. While no broker answers, `put` blocks before the memory is full.

Example:
    store_of = {("QM01", "ORDERS"): "QSG1/APP1", ("QM01", "INVOICES"): "QSG1/APP1"}
    with EventProducer("broker:9092", store_of=store_of) as events:
        events.put({"time": 1795176000000123, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 2048})
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

JSON = "application/json"  # one event per record
NDJSON = "application/x-ndjson"  # one event per line: two to three times as many events per second
QUEUE_OPS = frozenset({"PUT", "GET", "COMMIT", "BACKOUT", "PREPARE", "EXPIRE", "CLEAR"})
QMGR_OPS = frozenset({"HEARTBEAT", "RESTART"})
STORE_OPS = frozenset({"ALTER", "REBUILD", "MEASURE", "PLAN", "NOTE"})

MAX_RECORD_BYTES = 500_000  # of NDJSON: half of a broker's default limit
MAX_PENDING_RECORDS = 10_000  # sent and not yet delivered; then `put` blocks

# A single request in flight keeps the order of retries, and `seq` identifies duplicates. The idempotent producer of
# kafka-python 3.0.12 fails for good after the first record that a broker refuses.
_SETTINGS = {
    "acks": "all",
    "enable_idempotence": False,
    "max_in_flight_requests_per_connection": 1,
    "batch_size": 262_144,
    "max_block_ms": 15_000,  # to look up the topic
}
_encode_json = json.JSONEncoder(separators=(",", ":")).encode


class DeliveryError(Exception):
    """Records were not delivered; their events are lost unless they are put again."""


class EventProducer:
    """A producer to the topic `<prefix>.events`. A context manager; thread-safe.

    Args:
        bootstrap_servers: HOST:PORT, separated by commas.
        prefix: prefix of the topic's name.
        store_of: (queue manager, queue as in events) -> store as in the estate, such as "QSG1/APP1" or "QM01/PS04".
        content_type: JSON or NDJSON.
        batch_events: maximum number of events per NDJSON record.
        linger_seconds: maximum time for which an event waits for others.
        next_seq: (queue manager, queue) -> number of its next event; 0 by default.
        kafka: further settings of kafka-python's KafkaProducer, such as security_protocol="SSL".

    Raises:
        ValueError: another content type.
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
            raise ValueError(f"content_type is {content_type!r}; expected: {JSON!r} or {NDJSON!r}")
        self.next_seq = dict(next_seq or {})
        self._topic = f"{prefix}.events"
        self._store_of = store_of
        self._stores_of_qmgr = _group_by_qmgr(store_of)
        self._content_type = content_type
        self._batch_events = max(1, batch_events)
        self._linger_s = linger_seconds
        self._lock = threading.RLock()  # guards the numbers and lines
        self._lines: dict[str, list[bytes]] = {}
        self._size_bytes: dict[str, int] = {}
        self._due_s: dict[str, float] = {}  # monotonic time at which the lines of a store are sent
        self._delivery = threading.Condition()  # guards the next three, which kafka-python's thread changes
        self._pending = 0
        self._failures = 0
        self._first_failure = ""
        self._closed = threading.Event()
        linger_ms = int(linger_seconds * 1000) if content_type == JSON else 0
        settings = {**_SETTINGS, "linger_ms": linger_ms, **kafka}
        self._producer = KafkaProducer(bootstrap_servers=bootstrap_servers.split(","), **settings)
        self._check_topic()
        self._ticker = threading.Thread(target=self._send_when_due, name="mqtwin-events", daemon=True)
        if content_type == NDJSON:
            self._ticker.start()

    def put(self, event: Mapping[str, Any]) -> None:
        """Send an event.

        Args:
            event: fields as in mqtwin's docs/events.md; it is not changed. A missing `seq` is added to the record.

        Raises:
            ValueError: it has no time, qmgr or op, or belongs to no store. Nothing is sent.
            DeliveryError: earlier records were not delivered. This event is not sent.
        """
        event = dict(event)
        stores = self._find_stores(event)
        self._raise_failure()
        with self._lock:
            if event["op"] in QUEUE_OPS and event.get("seq") is None:
                source = event["qmgr"], event["queue"]
                event["seq"] = self.next_seq.get(source, 0)
                self.next_seq[source] = event["seq"] + 1
            for store in stores:
                if event["op"] in QMGR_OPS:
                    event["store"] = store
                self._send_event(store, _encode_json(event).encode("utf-8"))

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything is delivered.

        Args:
            timeout: seconds; None: without limit.

        Raises:
            DeliveryError: a record was not delivered.
            kafka.errors.KafkaTimeoutError: the timeout has passed.
        """
        with self._lock:
            for store in list(self._lines):
                self._send_lines(store)
        self._producer.flush(timeout)
        with self._delivery:
            self._delivery.wait_for(lambda: self._pending == 0, 5)  # kafka-python runs callbacks after the flush
        self._raise_failure()

    def close(self) -> None:
        """Flush and close the connection. DeliveryError as in `flush`."""
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

    def _find_stores(self, event: Mapping[str, Any]) -> Iterable[str]:
        """Return the stores that an event is sent to. ValueError: it belongs to none."""
        for name in ("time", "qmgr", "op"):
            if event.get(name) is None:
                raise ValueError(f"the event has no {name}: {event!r}")
        qmgr, op = event["qmgr"], event["op"]
        if op in QUEUE_OPS:
            store = self._store_of.get((qmgr, event.get("queue")))  # type: ignore[arg-type]
            if store is None:
                raise ValueError(
                    f"queue {event.get('queue')!r} of {qmgr} has no store; expected: one of {self._list_queues(qmgr)}"
                )
            return (store,)
        if op not in QMGR_OPS and op not in STORE_OPS:
            raise ValueError(f"op is {op!r}; expected: one of {', '.join(sorted(QUEUE_OPS | QMGR_OPS | STORE_OPS))}")
        if event.get("store") is not None:
            return (str(event["store"]),)
        if op in STORE_OPS:
            raise ValueError(f"{op} needs a store: {event!r}")
        if qmgr not in self._stores_of_qmgr:
            raise ValueError(f"{qmgr} has no stores; expected: one of {', '.join(self._stores_of_qmgr)}")
        return self._stores_of_qmgr[qmgr]

    def _list_queues(self, qmgr: str) -> str:
        return ", ".join(sorted(queue for owner, queue in self._store_of if owner == qmgr)) or "none is known"

    # --- sending ---------------------------------------------------------------------------------------------------

    def _send_event(self, store: str, text: bytes) -> None:
        if self._content_type == JSON:
            self._send(store, text, [])  # the default content type needs no header
            return
        if self._size_bytes.get(store, 0) + len(text) > MAX_RECORD_BYTES:
            self._send_lines(store)
        lines = self._lines.setdefault(store, [])
        if not lines:
            self._due_s[store] = time.monotonic() + self._linger_s
        lines.append(text)
        self._size_bytes[store] = self._size_bytes.get(store, 0) + len(text) + 1
        if len(lines) >= self._batch_events:
            self._send_lines(store)

    def _send_lines(self, store: str) -> None:
        lines = self._lines.pop(store, [])
        self._size_bytes[store] = 0
        if lines:
            self._send(store, b"\n".join(lines), [("content-type", NDJSON.encode("ascii"))])

    def _send(self, store: str, value: bytes, headers: list[tuple[str, bytes]]) -> None:
        with self._delivery:
            self._delivery.wait_for(lambda: self._pending < MAX_PENDING_RECORDS)
            self._pending += 1
        try:
            future = self._producer.send(self._topic, value, store.encode("utf-8"), headers)
        except KafkaError as error:
            self._on_failure(error)
        else:
            future.add_callback(self._on_delivery)
            future.add_errback(self._on_failure)

    def _on_delivery(self, _: Any) -> None:
        with self._delivery:
            self._pending -= 1
            self._delivery.notify_all()

    def _on_failure(self, error: BaseException) -> None:
        with self._delivery:
            self._failures += 1
            self._first_failure = self._first_failure or f"{type(error).__name__}: {error}"
            self._pending -= 1
            self._delivery.notify_all()

    def _raise_failure(self) -> None:
        with self._delivery:
            failures, first_failure = self._failures, self._first_failure
            self._failures, self._first_failure = 0, ""
        if failures:
            raise DeliveryError(
                f"topic {self._topic}: {failures} records were not delivered; the first: {first_failure}"
            )

    def _send_when_due(self) -> None:
        """Send lines that have waited long enough; runs in a thread of its own."""
        while not self._closed.wait(self._linger_s / 2):
            with self._lock:
                now_s = time.monotonic()
                for store in [store for store in self._lines if self._due_s[store] <= now_s]:
                    try:
                        self._send_lines(store)
                    except Exception as error:  # noqa: BLE001 -- the next `put` or `flush` raises it; this thread continues
                        self._on_failure(error)


def _group_by_qmgr(store_of: Mapping[tuple[str, str], str]) -> dict[str, list[str]]:
    stores: dict[str, set[str]] = {}
    for (qmgr, _), store in store_of.items():
        stores.setdefault(qmgr, set()).add(store)
    return {qmgr: sorted(names) for qmgr, names in sorted(stores.items())}
