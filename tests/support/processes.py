"""Processes that tests signal and wait for, and ports for them."""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import time
from collections.abc import Iterable

import psutil


def is_alive(process: psutil.Process) -> bool:
    """Return False for a process that has ended, even if nobody has waited for it: in containers often nobody does."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def still_alive(processes: Iterable[psutil.Process], seconds: float = 20.0) -> list[psutil.Process]:
    """Wait until all processes have ended, and return those that have not."""
    deadline = time.monotonic() + seconds
    alive = [process for process in processes if is_alive(process)]
    while alive and time.monotonic() < deadline:
        time.sleep(0.05)
        alive = [process for process in alive if is_alive(process)]
    return alive


def send_signal(processes: Iterable[psutil.Process], number: int = signal.SIGKILL) -> None:
    """Signal processes, of which some may have ended since they were listed."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def free_port() -> int:
    """Return a free port that no outgoing connection gets until it is bound: systems give those higher ones."""
    while True:
        port = random.randrange(10_000, 20_000)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
