"""Stopping on request: SIGTERM, SIGHUP and Ctrl-C as one exception."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequestedError(BaseException):
    """Somebody asked this process to end. Not an ``Exception``, as KeyboardInterrupt is not."""


@contextmanager
def stop_on_request() -> Iterator[None]:
    """Within it the first stop signal raises :class:`StopRequestedError`, in the main thread.

    Further ones are ignored, so that the clean end is not itself cut short. On leaving the earlier handlers
    are back. For the main thread only.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise StopRequestedError

    before = {number: signal.signal(number, stop) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Within it the function says whether a stop signal came; a second one has its usual effect. Main thread only."""
    asked = Event()

    def remember(number: int, _frame: FrameType | None) -> None:
        asked.set()
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.signal(number, remember) for number in STOP_SIGNALS}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
