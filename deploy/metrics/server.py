"""The HTTP server of the exporter: /metrics, /healthz and /readyz. It reads nothing but the request's first line."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from typing_extensions import override

from deploy.metrics.health import Health
from twin.errors import UsageError

_TEXT = "text/plain; charset=utf-8"
_MAX_REQUESTS = 16  # at a time; more are refused with 503
_TIMEOUT_S = 10.0  # for a request to arrive and an answer to leave


@contextmanager
def metrics_server(host: str, port: int, registry: CollectorRegistry, health: Health) -> Iterator[int]:
    """Serve in the background within the block; yield the port.

    Args:
        host: address to bind.
        port: port to bind; 0: a free one.
        registry: the metrics.
        health: liveness and readiness.

    Raises:
        UsageError: the address cannot be bound.
    """
    slots = threading.BoundedSemaphore(_MAX_REQUESTS)

    class Handler(_Handler):
        def __init__(self, request: Any, client_address: Any, server: BaseServer) -> None:
            self.registry, self.health, self.slots = registry, health, slots
            super().__init__(request, client_address, server)

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise UsageError(f"--listen {host}:{port}: {error.strerror}; expected: a free address of this host") from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


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
                encode, content_type = choose_encoder(self.headers.get("Accept", ""))
                self._answer(HTTPStatus.OK, content_type, encode(self.registry))
            case "/healthz":
                self._answer_health(self.health.not_live())
            case "/readyz":
                self._answer_health(self.health.not_ready())
            case _:
                self._answer(HTTPStatus.NOT_FOUND, _TEXT, b"/metrics, /healthz, /readyz\n")

    def _answer_health(self, reasons: list[str]) -> None:
        status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        self._answer(status, _TEXT, "".join(f"{line}\n" for line in reasons or ["ok"]).encode())

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a scrape is no news."""
