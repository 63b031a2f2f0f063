"""Stop requests: SIGTERM, SIGHUP and Ctrl-C, for code that waits and for code that loops.

Both ways install the same handlers and restore the earlier ones. They differ in what the code needs: a call that
blocks (Java's end, Kafka, Spark's start) can only be left by an exception; a loop that writes a file must finish the
record in hand, so it asks between two of them.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_Handler = Callable[[int, FrameType | None], None]


class StopRequestedError(BaseException):
    """A request to end this process. Not an ``Exception``, for the same reason as KeyboardInterrupt."""


@contextmanager
def raise_on_stop() -> Iterator[None]:
    """Raise :class:`StopRequestedError` in the block at the first stop signal. For the main thread only.

    Further signals are ignored, so that they do not interrupt the clean-up. The earlier handlers are restored at the
    end of the block.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise StopRequestedError

    with _handlers(stop):
        yield


@contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """Yield a function that is True once a stop signal has arrived. For the main thread only.

    A second signal of the same kind has its usual effect. The earlier handlers are restored at the end of the block.
    """
    is_requested = False
    earlier = {number: signal.getsignal(number) for number in STOP_SIGNALS}

    def remember(number: int, _frame: FrameType | None) -> None:
        nonlocal is_requested
        is_requested = True
        signal.signal(number, earlier[signal.Signals(number)])

    with _handlers(remember):
        yield lambda: is_requested


@contextmanager
def _handlers(handler: _Handler) -> Iterator[None]:
    """Handle the stop signals with `handler` within the block."""
    earlier = {number: signal.signal(number, handler) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, previous in earlier.items():
            signal.signal(number, previous)
