"""A job that is killed at ten million messages held and started again; what a message costs to keep."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil

from streams.kafka.admin import prepare_topics
from streams.kafka.publish import Record
from streams.kafka.topics import Topics
from tests.tools.bench import site
from tests.tools.bench.rig import Rig, Say
from tests.tools.bench.traffic import Traffic
from twin.base.errors import MqtwinError
from twin.events import ARROW

HELD = 10_000_000
_PIECE = 1_000_000  # messages of a table
_PREFIX = "bench-restart"
_AFTER = 10_000  # events that come while the job is down
_PATIENCE = 180.0
_POLL = 0.05


@dataclass(frozen=True, slots=True)
class Restart:
    """held: messages; seconds: from starting the process until its first batch is committed; batch_s: that batch.

    open_s: reading the state, added up over the stores; loaded: stores read from the state store.
    page_bytes: written to the state store, a message; disk_bytes: bytes of the checkpoint per message.
    """

    held: int
    seconds: float
    open_s: float
    batch_s: float
    loaded: int
    page_bytes: float
    disk_bytes: float


def measure(rig: Rig, say: Say, *, quick: bool) -> Restart:
    """Fill, kill -9, forget the mirror as another host would, start again."""
    held = HELD // 50 if quick else HELD
    traffic = Traffic(site.STORES)
    say(f"publishing {held:,} puts")
    pieces = max(1, held // _PIECE)
    rig.publish(_PREFIX, (traffic.fill(held // pieces) for _ in range(pieces)), ARROW)
    checkpoint, local = rig.folder / "restart-checkpoint", rig.folder / "restart-spark"
    start = partial(running_job, rig, _PREFIX, site.bench_estate(rig.folder), local, checkpoint)
    say("a job in a process of its own, until it holds them")
    pages = 0
    with start() as (lines, process):
        events = 0
        while events < held:
            figures = next_batch(lines, process)
            events += figures["events"]
            pages += figures["page_bytes"]
    disk = sum(path.stat().st_size for path in checkpoint.rglob("*") if path.is_file())
    shutil.rmtree(local)  # the mirror with it: only the checkpoint is left
    prepare_topics(Topics(_PREFIX), rig.kafka)
    _send_more(rig, traffic)
    say("killed; started again from its checkpoint")
    began = time.monotonic()
    with start() as (lines, process):
        figures = next_batch(lines, process)
        seconds = time.monotonic() - began
    return Restart(
        held=held,
        seconds=seconds,
        open_s=figures["open_us"] / 1e6,
        batch_s=figures["batch_ms"] / 1e3,
        loaded=figures["loaded"],
        page_bytes=pages / held,
        disk_bytes=disk / held,
    )


def _send_more(rig: Rig, traffic: Traffic) -> None:
    from twin.events.convert import arrow_value

    table = traffic.steady(_AFTER)
    queues = table.column("queue").cast("string").to_numpy(zero_copy_only=False)
    for store in site.STORES:
        rows = table.filter([queue in site.queues_of(store) for queue in queues])
        rig.send(_PREFIX, [Record(store.encode(), arrow_value(rows), ARROW, rows.num_rows)])


@contextlib.contextmanager
def running_job(
    rig: Rig, prefix: str, estate: Path, folder: Path, checkpoint: Path, *options: str
) -> Iterator[tuple[Iterator[bytes], subprocess.Popen[bytes]]]:
    """Run `mqtwin stream` as a process, and yield its log line by line; it is killed with all it has started.

    Args:
        rig: has the broker.
        prefix: prefix of the topics.
        estate: the estate's file.
        folder: for Spark's files and the log.
        checkpoint: the checkpoint.
        options: more options of the command.
    """
    folder.mkdir()
    command = [sys.executable, "-m", "deploy", "stream", "--estate", str(estate)]
    command += ["--bootstrap-servers", rig.broker.bootstrap_servers, "--checkpoint", str(checkpoint)]
    command += ["--topic-prefix", prefix, "--log", "json", "--conf", f"spark.local.dir={folder}", *options]
    log = folder.with_suffix(".log")
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=out, env=dict(os.environ))
    try:
        with log.open("rb") as lines:
            yield _lines(lines), process
    finally:
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """kill -9 of a process and of all it has started, by their ids."""
    family = [process.pid]
    with contextlib.suppress(psutil.NoSuchProcess):
        family += [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    for pid in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).kill()
    process.wait()
    psutil.wait_procs([psutil.Process(pid) for pid in family if psutil.pid_exists(pid)], timeout=10)


def _lines(file: Any) -> Iterator[bytes]:
    """The lines of a file that grows; an empty one where there is none yet."""
    rest = b""
    while True:
        rest += file.readline()
        if rest.endswith(b"\n"):
            yield rest
            rest = b""
        else:
            yield b""


def next_batch(lines: Iterator[bytes], process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Return the figures of the next batch with events in the log."""
    until = time.monotonic() + _PATIENCE
    last = b""
    for line in lines:
        if line.startswith(b"{"):
            entry: dict[str, Any] = msgspec.json.decode(line)
            if entry.get("event") == "batch" and entry["events"]:
                return entry
        last = line or last
        if not line:
            if process.poll() is not None:
                raise MqtwinError(f"the job ended: {last.decode(errors='replace').strip()}")
            if time.monotonic() > until:
                raise MqtwinError(f"no batch within {_PATIENCE:.0f} seconds")
            time.sleep(_POLL)
    raise MqtwinError("the log has ended")
