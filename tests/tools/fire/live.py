"""`make live-life`: `mqtwin collect rest` for an hour, asking a server that is slow, gone or started again at times.

The server of the tests (`tests/mqweb.py`) answers for three queue managers whose levels move; the collector is a
process of its own, onto the embedded broker. What it uses is sampled; at the end memory, descriptors, threads and the
CPU of a round must be flat, rounds must have come after every fault, and no queue manager may ever have been asked
twice at once.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil
from confluent_kafka import Consumer, TopicPartition

from deploy.java.broker import Broker
from tests.mqweb import FaultKind, MqwebServer, User
from tests.support.queue_managers import System
from tests.tools.fire.growth import figure_of, table
from tests.tools.fire.page import ROOT
from twin.estate import load_estate

QMGRS = ("QM01", "QM02", "QMD1")
SAMPLE_S = 5.0
WARM_UP_S = 60.0  # of the collector
AFTER_S = 20.0  # after each fault that are left out
TOKEN_S = 600.0
TIMEOUT_S = 3.0  # of the server, in place of 30
QUIET_S = 60.0  # at the end without faults
_MB = 1 << 20
_SHARES = {"shared": 0.6, "private": 0.3}  # of the queues; the others have a file each
_STRUCTURES = 4


class Sample(msgspec.Struct, frozen=True):
    """Resources of the collector. seconds: since the run began; cpu_s, rounds, bytes: since the collector began."""

    seconds: float
    rss: int
    fds: int
    threads: int
    cpu_s: float
    rounds: int
    bytes: int
    is_steady: bool  # no fault, nor one a moment ago


class Round(msgspec.Struct, frozen=True):
    """The mean of the rounds between two samples."""

    cpu_ms: float
    bytes: float


class Result(msgspec.Struct):
    """A run. faults: by kind; unanswered: faults after which no round came; stderr_lines: lines of the collector."""

    seconds: float
    queues: int
    interval_s: float
    rounds: int = 0
    rounds_expected: int = 0
    cpu_ms_of_a_round: float = 0.0
    bytes_of_a_round: float = 0.0
    events: int = 0
    letters: int = 0
    faults: dict[str, int] = {}
    unanswered: list[str] = []
    most_at_once: int = 0
    most_connections: int = 0
    logins: int = 0
    stderr_lines: int = 0
    exit_code: int | None = None
    growth: dict[str, tuple[float, float]] = {}  # first and last quarter
    is_flat: bool = False

    @property
    def is_good(self) -> bool:
        """True if nothing grew and nothing went wrong."""
        return self.is_flat and not self.unanswered and self.most_at_once == 1 and self.exit_code == 0


def main() -> int:
    """Return the exit status: 0 all is well, 1 something grew or went wrong."""
    options = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that collector and broker do not stay behind
    with (
        tempfile.TemporaryDirectory(prefix="mqtwin-live-", dir="/tmp") as name,
        Broker(data=Path(name) / "k") as broker,
    ):
        return _Life(options, Path(name), broker.bootstrap_servers).run()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.fire.live", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="length of the run")
    parser.add_argument("--queues", type=int, default=2000, help="in all")
    parser.add_argument("--interval", type=float, default=5.0, help="seconds between two rounds")
    parser.add_argument("--fault-every", type=float, default=180.0, help="seconds from a fault to the next one")
    parser.add_argument("--seed", type=int, default=1, help="of the faults and levels")
    parser.add_argument("--kept", type=Path, default=ROOT / "build" / "live", help="folder for its data")
    return parser.parse_args()


class _Life:
    def __init__(self, options: argparse.Namespace, folder: Path, kafka: str) -> None:
        self._options = options
        self._folder = folder
        self._kafka = kafka
        self._random = random.Random(options.seed)
        self._kinds: list[str] = []
        estate_file = folder / "estate.toml"
        estate_file.write_text(estate_text(options.queues), encoding="utf-8")
        self._system = System(load_estate(estate_file), round(time.time() * 1e6))
        self._server = MqwebServer(self._system, users={"mona": User("s3cret")}, token_s=TOKEN_S, timeout_s=TIMEOUT_S)
        for store in self._system.estate.stores.values():
            for queue in store.queues:
                self._system.queue(self._system.owner(store), queue)
        (folder / "password").write_text("s3cret\n", encoding="utf-8")
        self._result = Result(options.seconds, options.queues, options.interval)
        self._samples: list[Sample] = []
        self._began = time.monotonic()
        self._steady_at = WARM_UP_S
        self._fault: tuple[str, float, int] | None = None  # kind, end, rounds until its end

    def run(self) -> int:
        """Run; print what came of it, and keep it."""
        with self._server, self._collector() as process:
            self._began = time.monotonic()
            every_s = self._options.fault_every
            next_fault_s = WARM_UP_S + every_s / 2
            while (now := time.monotonic() - self._began) < self._options.seconds:
                if process.poll() is not None:
                    break
                self._move()
                if self._fault is None and next_fault_s <= now < self._options.seconds - QUIET_S - every_s / 2:
                    self._begin_fault(now)
                    next_fault_s = now + every_s
                self._look_at_fault(now)
                self._sample(psutil.Process(process.pid), now)
                time.sleep(max(0.0, SAMPLE_S - (time.monotonic() - self._began - now)))
            self._note_fault_before()
            self._result.rounds = self._server.rounds
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._result.exit_code = process.wait(60.0)
        return self._finish()

    @contextmanager
    def _collector(self) -> Iterator[subprocess.Popen[bytes]]:
        with (self._folder / "stderr").open("wb") as errors:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "deploy", "collect", "rest", "--url", self._server.url),
                    *("--qmgr", ",".join(QMGRS), "--interval-s", f"{self._options.interval:g}", "--resync"),
                    *("--user", "mona", "--password-file", str(self._folder / "password"), "--token-login"),
                    *("--estate", str(self._folder / "estate.toml"), "--position", str(self._folder / "position")),
                    *("--bootstrap-servers", self._kafka, "--topic-prefix", "live", "--create-topics"),
                ],
                cwd=ROOT,
                stderr=errors,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
            try:
                yield process
            finally:
                process.kill()
                process.wait()

    # --- what moves --------------------------------------------------------------------------------------------------

    def _move(self) -> None:
        """Let the levels of all stores and the facts of all queues move."""
        chance = self._random
        with self._server.lock:
            self._system.time = round(time.time() * 1e6)
            for levels in self._system.levels.values():
                if "ents_max" in levels:
                    levels["ents_used"] = chance.randrange(levels["ents_max"] // 2)
                    for data_set in levels.get("smds", {}).values():
                        data_set["blocks_used"] = 1 + chance.randrange(data_set["blocks_total"] // 2)
                elif "pages_total" in levels:
                    used = chance.randrange(levels["pages_total"] // 2)
                    levels |= {"pages_unused": levels["pages_total"] - used, "pages_persistent": used}
                elif "file_max_bytes" in levels:
                    levels["file_bytes"] = chance.randrange(64) * _MB
            for queue in self._system.queues.values():
                queue.depth = chance.randrange(1000)
                queue.last_put = self._system.time
                queue.oldest = self._system.time - chance.randrange(60) * 1_000_000

    # --- faults ------------------------------------------------------------------------------------------------------

    def _begin_fault(self, now: float) -> None:
        server, chance = self._server, self._random
        simple: dict[str, tuple[FaultKind, dict[str, object]]] = {
            "slow": ("slow", {"seconds": 0.5}),
            "busy": ("status", {"status": 503, "retry_after": "5"}),
            "timeouts": ("timeout", {"qmgr": "QM02"}),
            "cut": ("cut", {}),
            "truncated": ("truncated", {"command": "QSTATUS"}),
            "partial": ("partial", {"command": "QSTATUS"}),
            "proxy": ("html", {}),
        }
        if not self._kinds:
            self._kinds = [*simple, "gone", "restarted", "tokens", "silent"]
            chance.shuffle(self._kinds)
        kind = self._kinds.pop()
        length_s = chance.uniform(10.0, 30.0)
        if kind in simple:
            what, details = simple[kind]
            server.fail(what, **details)
        elif kind == "silent":
            server.fail("silent", qmgr="QM01")
            length_s = 45.0  # longer than the client waits
        elif kind == "tokens":
            server.end_tokens()
        else:
            server.stop()
            if kind == "restarted":
                server.start()
        self._result.faults = Counter(self._result.faults) + Counter({kind: 1})
        self._fault = kind, now + length_s, 0
        print(f"{now:6.0f} s: {kind}", flush=True)

    def _look_at_fault(self, now: float) -> None:
        if self._fault is None:
            return
        kind, end, rounds = self._fault
        self._steady_at = now + AFTER_S
        if now >= end and not rounds:
            if kind == "gone":
                self._server.start()
            self._server.heal()
            self._fault = kind, end, self._server.rounds + 1
        elif rounds and self._server.rounds > rounds:
            self._fault = None
        elif now >= end + 400.0:  # the longest wait of the client is 300 s
            self._note_fault_before()

    def _note_fault_before(self) -> None:
        """Keep a fault after which no round has come."""
        if self._fault is not None:
            self._result.unanswered.append(self._fault[0])
            self._fault = None

    # --- samples -----------------------------------------------------------------------------------------------------

    def _sample(self, process: psutil.Process, now: float) -> None:
        with contextlib.suppress(psutil.Error):  # it has ended: the loop sees that
            times = process.cpu_times()
            self._samples.append(
                Sample(
                    seconds=round(now, 1),
                    rss=process.memory_info().rss,
                    fds=process.num_fds(),
                    threads=process.num_threads(),
                    cpu_s=times.user + times.system,
                    rounds=self._server.rounds,
                    bytes=self._server.bytes_sent,
                    is_steady=now >= self._steady_at,
                )
            )
            self._result.most_connections = max(self._result.most_connections, self._server.open_connections)

    def _finish(self) -> int:
        result = self._result
        rows = [sample for sample in self._samples if sample.seconds >= WARM_UP_S]
        rounds = list(_rounds(self._samples))
        slack: dict[str, tuple[str, list[Sample] | list[Round], Callable[..., float], float]] = {
            "memory of the collector": ("MB", rows, lambda row: row.rss / _MB, 15),
            "descriptors": ("", rows, lambda row: row.fds, 2),
            "threads": ("", rows, lambda row: row.threads, 1),
            "CPU of a round": ("ms", rounds, lambda row: row.cpu_ms, 20),
            "bytes of a round": ("", rounds, lambda row: row.bytes, 10_000),
        }
        figures = [figure_of(name, unit, part, value, limit) for name, (unit, part, value, limit) in slack.items()]
        for figure in figures:
            result.growth[figure.name] = round(figure.first, 1), round(figure.last, 1)
        result.is_flat = all(figure.is_flat for figure in figures)
        if rounds:
            result.cpu_ms_of_a_round = round(sum(row.cpu_ms for row in rounds) / len(rounds), 1)
            result.bytes_of_a_round = round(sum(row.bytes for row in rounds) / len(rounds))
        result.rounds_expected = int(result.seconds / result.interval_s)
        result.most_at_once = max(self._server.most_at_once.values(), default=0)
        result.logins = self._server.logins
        lines = (self._folder / "stderr").read_text(encoding="utf-8").splitlines()
        result.stderr_lines = len(lines)
        result.events, result.letters = (_count(self._kafka, f"live.{name}") for name in ("events", "dlq"))
        self._options.kept.mkdir(parents=True, exist_ok=True)
        (self._options.kept / "live.json").write_bytes(
            msgspec.json.encode({"result": result, "samples": self._samples})
        )
        (self._options.kept / "stderr").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print("\n".join(table(figures)))
        print(msgspec.json.encode(result).decode())
        print("flat, and every fault was over" if result.is_good else "NOT flat, or something went wrong")
        return 0 if result.is_good else 1


def _rounds(samples: list[Sample]) -> Iterator[Round]:
    """Yield the mean round of each minute without faults."""
    first: Sample | None = None
    for sample in samples:
        if not sample.is_steady:
            first = None
        elif first is None:
            first = sample
        elif sample.seconds - first.seconds >= 60.0 and sample.rounds > first.rounds:
            count = sample.rounds - first.rounds
            yield Round((sample.cpu_s - first.cpu_s) * 1000 / count, (sample.bytes - first.bytes) / count)
            first = sample


def _count(kafka: str, topic: str) -> int:
    """Return the number of records of a topic; 0 if there is none."""
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "live"})
    try:
        known = consumer.list_topics(topic, timeout=30.0).topics[topic]
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, number), 30.0) for number in known.partitions]
        return sum(high - low for low, high in ends)
    finally:
        consumer.close()


def estate_text(queues: int) -> str:
    """Return an estate with a number of queues: shared ones in four structures, private ones, others in files."""
    shared, private = (int(queues * share) for share in _SHARES.values())
    lines = [
        "schema = 1",
        '[queue_sharing_group.QSG1]\nqueue_managers = ["QM01", "QM02"]',
        '[queue_manager.QMD1]\nplatform = "distributed"',
    ]
    for number in range(_STRUCTURES):
        lines.append(f'[structure."QSG1/APP{number}"]\nsize = "1G"\ncf_level = 5')
        lines += [f'[smds."QSG1/APP{number}/{qmgr}"]\nsize = "1G"' for qmgr in ("QM01", "QM02")]
    for qmgr in ("QM01", "QM02"):
        lines.append(f'[page_set."{qmgr}/4"]\npages = 100_000\n[storage_class."{qmgr}/PS04"]\npage_set = 4')
    for number in range(shared):
        lines.append(f'[queue."QSG1/SHARED.{number:05d}"]\nstructure = "APP{number % _STRUCTURES}"')
    for number in range(private):
        qmgr = ("QM01", "QM02")[number % 2]
        lines.append(f'[queue."{qmgr}/PRIVATE.{number:05d}"]\nstorage_class = "PS04"')
    for number in range(queues - shared - private):
        lines.append(f'[queue_file."QMD1/FILE.{number:05d}"]\nmax_size = "1G"')
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
