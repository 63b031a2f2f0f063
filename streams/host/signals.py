"""Requests to stop, by signal."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SAME_REQUEST_SECONDS = 0.5


@contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Turn SIGTERM and SIGINT into an event; a second signal ends the process.

    A signal within `_SAME_REQUEST_SECONDS` counts as the same request: `timeout` signals its command and then the whole
    process group, and so the command again.
    """
    stop = threading.Event()
    requested = 0.0

    def request(number: int, _: FrameType | None) -> None:
        nonlocal requested
        if not stop.is_set():
            requested = time.monotonic()
            stop.set()
        elif time.monotonic() - requested > _SAME_REQUEST_SECONDS:
            raise SystemExit(128 + number)

    handlers = {number: signal.signal(number, request) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
