"""Which functions Spark's Python workers spend their time in: samples by py-spy, where the system lets it look."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SAMPLES_A_SECOND = 100
_END_SECONDS = 30.0
_OURS = ("streams/", "twin/", "kernels/")
_FRAME = re.compile(r"^(?P<function>.+) \((?P<file>[^():]+)(:\d+)?\)$")
_RECEIVING = "receives from, sends to Spark"
_WAITING = ("manager (daemon.py", "read_int (serializers.py")  # between two tasks


@dataclass(slots=True)
class Profile:
    """samples: by the innermost function of ours, as `name (module)`. why_not: where there are none, the reason."""

    samples: Counter[str] = field(default_factory=Counter)
    why_not: str = ""

    def shares(self, max_functions: int) -> list[tuple[str, float]]:
        """The functions that take most, each with its share, the rest as one."""
        total = self.samples.total()
        top = self.samples.most_common(max_functions)
        rest = total - sum(count for _, count in top)
        return [(name, count / total) for name, count in top] + ([("all others", rest / total)] if rest else [])


class Sampler:
    """py-spy on some processes and their children, from `start` until the context ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[tuple[subprocess.Popen[bytes], Path]] = []
        self.profile = Profile()

    def start(self, pids: Sequence[int]) -> None:
        """Begin to look at these processes."""
        program = shutil.which(
            "py-spy", path=str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "")
        )
        if program is None:
            self.profile.why_not = "py-spy is not installed"
            return
        for pid in pids:
            out = self._folder / f"py-spy-{pid}.txt"
            command = [
                program,
                "record",
                "--pid",
                str(pid),
                "--subprocesses",
                "--format",
                "raw",
                "--duration",
                "unlimited",
            ]
            command += ["--rate", str(SAMPLES_A_SECOND), "--output", str(out)]
            log = out.with_suffix(".log").open("wb")
            self._running.append((subprocess.Popen(command, stdout=log, stderr=log), out))
            log.close()

    def finish(self) -> None:
        """Stop looking, and count."""
        for process, _ in self._running:
            process.send_signal(signal.SIGINT)
        for process, out in self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
            process.kill()
            process.wait()
            if out.is_file():
                self.profile.samples.update(_innermost(out.read_text(encoding="utf-8").splitlines()))
                out.unlink()
            elif not self.profile.why_not:
                log_lines = out.with_suffix(".log").read_text(encoding="utf-8", errors="replace").split("\n")
                self.profile.why_not = next((line for line in log_lines if "rror" in line), "py-spy gave no samples")
        self._running.clear()


@contextlib.contextmanager
def sampler(folder: Path) -> Iterator[Sampler]:
    """A sampler that is finished at the end, whatever happens."""
    sampler = Sampler(folder)
    try:
        yield sampler
    finally:
        sampler.finish()


def _innermost(lines: Sequence[str]) -> Counter[str]:
    """Samples by function, from py-spy's raw format: frames from the outermost, `;` between them, and a count."""
    samples: Counter[str] = Counter()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        frames = [frame for frame in stack.split(";") if _FRAME.match(frame)]
        if not frames or frames[-1].startswith(_WAITING) or "worker (daemon.py" not in stack:
            continue
        own = next((frame for frame in reversed(frames) if _file(frame).startswith(_OURS)), None)
        samples[_name(own) if own is not None and "streams/query/worker.py" not in own else _RECEIVING] += int(count)
    return samples


def _file(frame: str) -> str:
    match = _FRAME.match(frame)
    return match["file"] if match else ""


def _name(frame: str) -> str:
    match = _FRAME.match(frame)
    return f"{match['function']} ({match['file']})" if match else frame
