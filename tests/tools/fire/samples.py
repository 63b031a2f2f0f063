"""Resources used by the processes and folders of a run, sampled while it lasts."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

PROCESS_SECONDS = 5.0  # between two samples
FOLDER_EVERY = 6  # samples: walking through folders and maps costs more
PARTS = ("driver", "spark", "workers", "broker", "sender")


@dataclass(frozen=True, slots=True)
class Sample:
    """seconds: since the run began. rss: bytes by PARTS. fds, maps: of Spark's JVM and of the largest Python worker."""

    seconds: float
    rss: dict[str, int]
    processes: int
    jvm_fds: int
    worker_fds: int
    jvm_maps: int
    worker_maps: int
    checkpoint_bytes: int
    checkpoint_files: int
    local_bytes: int


@dataclass(slots=True)
class Samples:
    """Samples and batches of a run, and its kills (seconds). A batch is the job's log entry, with `seconds`."""

    began: float = field(default_factory=time.monotonic)
    samples: list[Sample] = field(default_factory=list)
    batches: list[dict[str, Any]] = field(default_factory=list)
    kills: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began

    def add_entry(self, entry: dict[str, Any]) -> None:
        """Keep the log entry of a batch."""
        if entry["event"] == "batch":
            self.batches.append(entry | {"seconds": self.seconds})

    def plain(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "samples": [asdict(sample) for sample in self.samples],
            "batches": self.batches,
            "kills": self.kills,
        }


class Sampler:
    """Samples in a thread while the context lasts.

    Args:
        samples: where samples go.
        family: returns the driver and all it has started, the driver first; empty while there is none.
        broker: returns the broker's process id; None: it is being started again.
        checkpoint, local: the folders of the checkpoint and of Spark's scratch files.
    """

    def __init__(
        self,
        samples: Samples,
        family: Callable[[], list[psutil.Process]],
        broker: Callable[[], int | None],
        checkpoint: Path,
        local: Path,
    ) -> None:
        self._samples = samples
        self._family = family
        self._broker = broker
        self._folders = (checkpoint, local)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="samples", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        slow = (0, 0, 0, 0, 0)
        while not self._over.wait(PROCESS_SECONDS):
            with contextlib.suppress(psutil.Error):  # a process ended while it was sampled: the next sample shows that
                family = self._family()
                if number % FOLDER_EVERY == 0:
                    slow = self._slow(family)
                number += 1
                self._samples.samples.append(self._sample(family, slow))

    def _sample(self, family: list[psutil.Process], slow: tuple[int, int, int, int, int]) -> Sample:
        driver, jvm, workers = sorted_out(family)
        jvm_maps, worker_maps, checkpoint_bytes, checkpoint_files, local_bytes = slow
        broker = self._broker()
        return Sample(
            seconds=round(self._samples.seconds, 1),
            rss={
                "driver": sum(process.memory_info().rss for process in driver),
                "spark": sum(process.memory_info().rss for process in jvm),
                "workers": sum(process.memory_info().rss for process in workers),
                "broker": psutil.Process(broker).memory_info().rss if broker is not None else 0,
                "sender": psutil.Process().memory_info().rss,
            },
            processes=len(family),
            jvm_fds=max((process.num_fds() for process in jvm), default=0),
            worker_fds=max((process.num_fds() for process in workers), default=0),
            jvm_maps=jvm_maps,
            worker_maps=worker_maps,
            checkpoint_bytes=checkpoint_bytes,
            checkpoint_files=checkpoint_files,
            local_bytes=local_bytes,
        )

    def _slow(self, family: list[psutil.Process]) -> tuple[int, int, int, int, int]:
        _, jvm, workers = sorted_out(family)
        checkpoint, local = (usage(folder) for folder in self._folders)
        return max(map(_maps, jvm), default=0), max(map(_maps, workers), default=0), *checkpoint, local[0]


def sorted_out(family: list[psutil.Process]) -> tuple[list[psutil.Process], list[psutil.Process], list[psutil.Process]]:
    """Return drivers (and a supervisor), JVMs, Python workers with their daemon."""
    jvm = [process for process in family if "java" in process.name()]
    under = {child.pid for process in jvm for child in process.children(recursive=True)}
    workers = [process for process in family if process.pid in under]
    driver = [process for process in family if process not in jvm and process.pid not in under]
    return driver, jvm, workers


def _maps(process: psutil.Process) -> int:
    try:
        return Path(f"/proc/{process.pid}/maps").read_bytes().count(b"\n")
    except OSError:
        return 0


def usage(folder: Path) -> tuple[int, int]:
    """Return bytes and files below a folder. What vanishes meanwhile, folders too, is left out."""
    size = files = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(parent, name)).st_blocks * 512  # noqa: PTH118 -- a path of its own is slow
                files += 1
    return size, files
