"""The HTTP server of the exporter: /metrics, /healthz and /readyz. It reads nothing but the request's head.

A connection has one deadline for request and answer, and their number is bounded, so slow clients cannot occupy it.
Health is that of the exporter and, with a status file, of the job.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer
from typing import Any

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from typing_extensions import override

from streams.query.status import MAX_BEAT_S, JobStatus, beat_limit_s
from twin.errors import UsageError

_MAX_READ_SILENCE_S = 60.0  # of the loop that reads Kafka; a look-up of a topic may take ten seconds

_TEXT = "text/plain; charset=utf-8"
_MAX_REQUESTS = 16  # at a time; more are refused with 503
_MAX_CONNECTIONS = 64  # at a time; more are closed
_TIMEOUT_S = 10.0  # for a request to arrive and its answer to leave
_log = structlog.get_logger("mqtwin.export")


class Health:
    """Liveness and readiness. Without a beat for `max_beat_s`, at least ten triggers, the job counts as dead."""

    def __init__(
        self,
        status: Callable[[], JobStatus | None],
        *,
        has_status: bool,
        is_caught_up: Callable[[], bool],
        missing: Callable[[], Sequence[str]] = tuple,
        unreadable: Callable[[], int] = lambda: 0,
        max_beat_s: float = MAX_BEAT_S,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._status, self._has_status, self._is_caught_up, self._missing = status, has_status, is_caught_up, missing
        self._unreadable, self._max_beat_s, self._wall, self._monotonic = unreadable, max_beat_s, wall, monotonic
        self._read_s = monotonic()

    def on_read(self) -> None:
        """Record that the exporter has just read its topics."""
        self._read_s = self._monotonic()

    def not_live(self) -> list[str]:
        """Return the reasons why exporter or job count as dead; none if both are alive."""
        reasons = []
        silent_s = self._monotonic() - self._read_s
        if silent_s > _MAX_READ_SILENCE_S:
            reasons.append(f"the exporter has not read Kafka for {silent_s:.0f} s")
        if self._has_status:
            status = self._status()
            if status is None:
                reasons.append("the job has no status file")
            else:
                age_s = self._wall() - status.beat_s
                limit_s = beat_limit_s(status, self._max_beat_s)
                if age_s > limit_s:
                    reasons.append(f"the job's last beat was {age_s:.0f} s ago, limit {limit_s:.0f} s")
        return reasons

    def not_ready(self) -> list[str]:
        """Return the reasons why the metrics are not current; none if they are."""
        reasons = self.not_live()
        if not self._is_caught_up():
            reasons.append("the exporter has not read its topics to their ends")
        reasons += [f"{topic} does not exist yet" for topic in self._missing()]
        status = self._status() if self._has_status else None
        if status is not None and status.behind is None:
            reasons.append("the job has not finished a batch")
        if status is not None and status.behind:
            reasons.append(f"the job is {status.behind} records per partition behind")
        return reasons

    def notes(self) -> list[str]:
        """Return the notes of every readiness report: the number of records that could not be read, if any."""
        count = self._unreadable()
        return [f"{count} records of the topics are neither states nor alerts"] if count else []


@contextmanager
def metrics_server(
    host: str,
    port: int,
    registry: CollectorRegistry,
    health: Health,
    on_failure: Callable[[Exception], None] = lambda _: None,
) -> Iterator[int]:
    """Serve in the background within the block; yield the port. UsageError: the address cannot be bound."""
    slots = threading.BoundedSemaphore(_MAX_REQUESTS)

    class Handler(_Handler):
        def __init__(self, request: Any, client_address: Any, server: BaseServer) -> None:
            self.registry, self.health, self.slots = registry, health, slots
            super().__init__(request, client_address, server)

    try:
        server = _Server((host, port), Handler)
    except OSError as error:
        raise UsageError(f"--listen {host}:{port}: {error.strerror}; expected: a free address of this host") from error

    def serve() -> None:
        try:
            server.serve_forever()
        except Exception as error:  # noqa: BLE001 -- the main thread reports it
            on_failure(error)

    thread = threading.Thread(target=serve, name="metrics", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    """A server with a bound on connections and a deadline for each; an error of one connection is one line."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._places = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        super().__init__(*arguments)

    @override
    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    @override
    def process_request_thread(self, request: Any, client_address: Any) -> None:
        deadline = threading.Timer(_TIMEOUT_S, _end, [request])
        deadline.daemon = True
        deadline.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            deadline.cancel()
            self._places.release()

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("a connection broke", exc_info=True)


def _end(connection: socket.socket) -> None:
    """End a connection, also one that another thread reads."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    timeout = _TIMEOUT_S
    server_version = "mqtwin"
    sys_version = ""
    registry: CollectorRegistry
    health: Health
    slots: threading.BoundedSemaphore

    def do_GET(self) -> None:
        """Answer a request."""
        if not self.slots.acquire(blocking=False):
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, b"too many requests at a time\n")
            return
        try:
            self._route(self.path.partition("?")[0])
        finally:
            self.slots.release()

    def _route(self, path: str) -> None:
        match path:
            case "/metrics":
                self._answer_metrics()
            case "/healthz":
                self._answer_health(self.health.not_live())
            case "/readyz":
                self._answer_health(self.health.not_ready(), self.health.notes())
            case _:
                self._answer(HTTPStatus.NOT_FOUND, _TEXT, b"/metrics, /healthz, /readyz\n")

    def _answer_metrics(self) -> None:
        encode, content_type = choose_encoder(self.headers.get("Accept", ""))
        try:
            page = encode(self.registry)
        except Exception as error:  # noqa: BLE001 -- a defect costs this scrape, and whoever asks hears of it
            _log.error("no metrics", why=f"{type(error).__name__}: {error}")
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, _TEXT, b"a defect of mqtwin export; its log says which\n")
            return
        self._answer(HTTPStatus.OK, content_type, page)

    def _answer_health(self, reasons: list[str], notes: list[str] | None = None) -> None:
        status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        lines = [*(reasons or ["ok"]), *(notes or ())]
        self._answer(status, _TEXT, "".join(f"{line}\n" for line in lines).encode())

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: scrapes are routine."""
