"""The instants of a batch: orders for the workers' seams, and a watch over the files that Java writes.

Java is stopped the moment that the kernel reports a file of the checkpoint, and only then looked at: what is there and
what is not says at which instant it was, and it does not go on meanwhile.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import psutil

from streams.checkpoint.local_files import CheckpointFiles
from streams.seams import Seams
from tests.support.processes import send_signal

_IN_CREATE, _IN_MOVED_TO = 0x100, 0x80
_EVENT = struct.Struct("iIII")  # inotify(7): wd, mask, cookie, length of the name
_libc = ctypes.CDLL(None, use_errno=True)


class FileWatch:
    """A watch of folders (inotify(7)). A context manager."""

    def __init__(self, folders: list[Path]) -> None:
        self._descriptor = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1 failed")
        self._folders: dict[int, Path] = {}
        for folder in folders:
            number = _libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _IN_CREATE | _IN_MOVED_TO)
            if number < 0:
                raise OSError(ctypes.get_errno(), f"inotify_add_watch failed: {folder}")
            self._folders[number] = folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def read(self, seconds: float) -> list[tuple[Path, bool]]:
        """Return the files that appear within some seconds, and True for each that was renamed to its name."""
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return []
        data, files, place = os.read(self._descriptor, 1 << 16), [], 0
        while place < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, place)
            place += _EVENT.size
            name = data[place : place + length].rstrip(b"\0").decode()
            place += length
            if number in self._folders:
                files.append((self._folders[number] / name, bool(mask & _IN_MOVED_TO)))
        return files


def is_hit(instant: str, path: Path, *, is_renamed: bool) -> bool:
    """Return True if a file of a checkpoint shows that Java is about to be, or is, at an instant."""
    if path.name.endswith(".crc") or ".crc." in path.name:
        return False
    is_draft = path.name.startswith(".") and not is_renamed
    if instant == "planning":
        return path.parent.name == "offsets" and is_draft
    if instant == "state commit":
        return path.suffix == ".changelog" and is_renamed
    if instant == "offset commit":
        return path.parent.name == "commits" and is_draft
    return path.parent.name == "offsets" and is_renamed  # sink: see `World`


def instant_of(checkpoint: Path) -> str:
    """Return the instant at which a stopped or ended job is, by the files of its checkpoint; empty between batches."""
    files = CheckpointFiles(checkpoint)
    last = files.last_batch
    planned = {path.name.split(".")[1] for path in (checkpoint / "offsets").glob(".[0-9]*.tmp")}
    if last is None or (files.commits and files.commits[-1] >= last):
        return "planning" if str(0 if last is None else last + 1) in planned else ""
    if any((checkpoint / "commits").glob(f".{last}.*.tmp")):
        return "offset commit"
    if any((checkpoint / "state" / "0").glob(f"*/{last + 1}.changelog")):
        return "state commit"
    return "running"


def watched_folders(checkpoint: Path) -> list[Path]:
    """Return the folders of a checkpoint in which Java writes."""
    state = [path for path in (checkpoint / "state" / "0").glob("[0-9]*") if path.is_dir()]
    return [checkpoint / "offsets", checkpoint / "commits", *state]


def stop_at(instant: str, checkpoint: Path, java: list[psutil.Process], seconds: float, arm: Callable[[], None]) -> str:
    """Stop Java at an instant of its next batch; return the instant at which it is, empty if it did not come.

    Args:
        instant: planning, state commit or offset commit.
        checkpoint: the checkpoint.
        java: Spark's process; none: it is just starting again.
        seconds: for which it is waited for.
        arm: called once the watch is there: it publishes what makes a batch.
    """
    deadline = time.monotonic() + seconds
    with FileWatch(watched_folders(checkpoint)) as watch:
        arm()
        while time.monotonic() < deadline:
            for path, is_renamed in watch.read(0.5):
                if is_hit(instant, path, is_renamed=is_renamed):
                    send_signal(java, signal.SIGSTOP)
                    time.sleep(0.01)  # until the kernel has stopped all of its threads
                    return instant_of(checkpoint)
    return ""


class Orders:
    """Orders for the seams of workers. folder: an empty folder for them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def give(self, point: str, order: str) -> None:
        """Give an order for a point; see `streams.seams`."""
        self.clear()
        draft = self._folder / "draft"
        draft.write_text(order, encoding="ascii")
        draft.rename(self._folder / point)

    def wait(self, point: str, seconds: float) -> bool:
        """Wait until a worker has taken the order; return False if none did."""
        deadline = time.monotonic() + seconds
        order = Seams.renamed(self._folder, point)
        while not order.exists():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def clear(self) -> None:
        """Take back all orders and let held workers go on."""
        for path in self._folder.iterdir():
            path.unlink(missing_ok=True)
