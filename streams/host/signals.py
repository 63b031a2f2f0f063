"""Requests to stop, by SIGTERM, SIGHUP and Ctrl-C, for code that loops and for code that blocks.

A loop that writes a file or runs batches finishes what it has in hand, so it asks between two steps. A call that blocks
(Kafka, Java's end, Spark's start, a request to a server) can only be left by an exception. For the main thread only;
the earlier handlers are restored at the end of the block.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from types import FrameType

from typing_extensions import override

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SAME_REQUEST_SECONDS = 0.5


class StopRequestedError(BaseException):
    """A request to end this process. Not an ``Exception``, for the same reason as KeyboardInterrupt."""


class StopRequest(threading.Event):
    """An event that a signal handler may set, by `request`. is_leaving: True within `leaving`.

    `set` takes a lock that its thread may hold already: in a handler that interrupts `wait`, or another handler, it
    waits for ever. So a thread of this object sets the event. `SimpleQueue.put` may interrupt itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_leaving = False
        self._is_requested = False
        self._requests: SimpleQueue[bool] = SimpleQueue()
        threading.Thread(target=self._forward, name="stop requests", daemon=True).start()

    def request(self) -> None:
        """Set the event, from any thread or signal handler."""
        self._is_requested = True
        self._requests.put(True)

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Leave the block by `StopRequestedError` at the first stop signal, also if it came before."""
        self.is_leaving = True
        try:
            if self.is_set():
                raise StopRequestedError
            yield
        finally:
            self.is_leaving = False

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
def stop_requests() -> Iterator[StopRequest]:
    """Turn stop signals into an event; a second signal ends the process.

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
            if stop.is_leaving:
                raise StopRequestedError
        elif time.monotonic() - requested_s > _SAME_REQUEST_SECONDS:
            raise SystemExit(128 + number)

    try:
        with _handlers(request):
            yield stop
    finally:
        stop.close()


@contextmanager
def raise_on_stop() -> Iterator[None]:
    """Raise `StopRequestedError` in the block at the first stop signal; further ones do not disturb the clean-up."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise StopRequestedError

    with _handlers(stop):
        yield


@contextmanager
def until_stopped() -> Iterator[None]:
    """Run the block to its end, or to the first stop signal, which is as usual an end."""
    with suppress(StopRequestedError), raise_on_stop():
        yield


@contextmanager
def _handlers(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle the stop signals within the block, but for a SIGHUP that `nohup` has this process ignore."""
    is_hang_up_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    numbers = [number for number in STOP_SIGNALS if number != signal.SIGHUP or not is_hang_up_ignored]
    earlier = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in earlier.items():
            signal.signal(number, previous)
