"""Requests to stop, by signal."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType

from typing_extensions import override

_SAME_REQUEST_SECONDS = 0.5


class StopRequest(threading.Event):
    """An event that a signal handler may set, by `request`.

    `set` takes a lock that its thread may hold already: in a handler that interrupts `wait`, or another handler, it
    waits for ever. So a thread of this object sets the event. `SimpleQueue.put` may interrupt itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_requested = False
        self._requests: SimpleQueue[bool] = SimpleQueue()
        threading.Thread(target=self._forward, name="stop requests", daemon=True).start()

    def request(self) -> None:
        """Set the event, from any thread or signal handler."""
        self._is_requested = True
        self._requests.put(True)

    def close(self) -> None:
        """End the thread that waits for a request."""
        self._requests.put(False)

    @override
    def is_set(self) -> bool:
        return self._is_requested or super().is_set()

    def _forward(self) -> None:
        if self._requests.get():
            self.set()


@contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Turn SIGTERM and SIGINT into an event; a second signal ends the process.

    A signal within `_SAME_REQUEST_SECONDS` counts as the same request: `timeout` signals its command and then the whole
    process group, and so the command again.
    """
    stop = StopRequest()
    requested_s: float | None = None

    def request(number: int, _: FrameType | None) -> None:
        nonlocal requested_s
        if requested_s is None:
            requested_s = time.monotonic()
            stop.request()
        elif time.monotonic() - requested_s > _SAME_REQUEST_SECONDS:
            raise SystemExit(128 + number)

    handlers = {number: signal.signal(number, request) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        stop.close()
