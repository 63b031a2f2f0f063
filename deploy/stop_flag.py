"""Stopping on request where a loop looks for it, so that what was begun is written whole."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType

from deploy.signals import STOP_SIGNALS


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
