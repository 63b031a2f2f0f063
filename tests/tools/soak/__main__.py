"""`make soak`: the job runs for an hour, is killed twice, and everything it uses is watched.

`load`: four structures at half of the rate that the same run measured as its highest. `stores`: many structures with a
heartbeat every ten seconds, under a limit of open files. Writes samples, figures, a picture and a
table into build/soak/; docs/soak.md has those of an hour (docs/images/soak.svg).
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import psutil
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from deploy.java.broker import Broker
from streams.checkpoint.local_files import CheckpointFiles
from streams.kafka.admin import admin_client, end_offsets, prepare_topics
from streams.kafka.topics import Topics
from tests.system.harness import read_topic
from tests.tools.bench import site
from tests.tools.soak import estates, findings, page, picture, senders
from tests.tools.soak.job import ROOT, JobProcess
from tests.tools.soak.samples import Sampler, Samples
from twin.errors import MqtwinError

PREFIX = "soak"
CALIBRATION_EVENTS = 15_000_000
CALIBRATION_SKIPPED = 4  # first batches: workers start, code compiles
DRAIN_SECONDS = 600.0
HEARTBEAT_SECONDS = 10.0
LISTENER_SECONDS = 3.0  # until the log has the last batch
_COUNTS = ("events", "messages", "duplicates", "gaps", "unmatched_gets", "overfull_puts", "full_puts")
_RETAINED = {"retention.bytes": str(2 << 30), "segment.bytes": str(128 << 20)}  # of a partition of the events


def main() -> int:
    """Return the exit status: 0 everything is flat and counted once, 1 not."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="mqtwin-soak-") as folder:
        try:
            return _Run(arguments, Path(folder)).run()
        except MqtwinError as error:
            print(f"mqtwin soak: {error}", file=sys.stderr)
            return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.soak", description=__doc__)
    parser.add_argument("what", choices=("load", "stores"))
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, help="events per second of a load; half of the measured peak by default")
    parser.add_argument("--stores", type=int, default=1000)
    parser.add_argument("--open-files", type=int, help="limit of open files of the job and all it starts")
    parser.add_argument("--kills", type=int, default=2)
    return parser.parse_args()


class _Run:
    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self._options = arguments
        self._folder = folder
        self._samples = Samples()
        self._job: JobProcess | None = None
        self._name = arguments.what if arguments.what == "load" else f"stores-{arguments.stores}"
        self._out = ROOT / "build" / "soak"
        self._out.mkdir(parents=True, exist_ok=True)
        self._log = self._out / f"{self._name}.log"
        self._log.unlink(missing_ok=True)

    def run(self) -> int:
        """Run it; return the exit status."""
        with Broker(data=self._folder / "kafka") as broker:
            self._broker = broker
            self._kafka = {"bootstrap.servers": broker.bootstrap_servers}
            prepare_topics(Topics(PREFIX), self._kafka)
            self._retain()
            self._local = self._folder / "spark"
            self._local.mkdir()
            sender = senders.Sender(self._kafka, Topics(PREFIX))
            load = self._options.what == "load"
            with Sampler(self._samples, self._family, lambda: broker.pid, self._folder / "checkpoint", self._local):
                try:
                    status = self._load(sender) if load else self._stores(sender)
                finally:
                    if self._job is not None and self._job.is_running:
                        self._job.kill()
        return status

    def _family(self) -> list[psutil.Process]:
        return self._job.family() if self._job is not None else []

    def _load(self, sender: senders.Sender) -> int:
        self._estate = site.bench_estate(self._folder)
        slices = senders.LoadSlices(site.STORES)
        sender.send(slices.first())
        peak = 0.0
        if self._options.rate is None:
            self._say(f"sending {CALIBRATION_EVENTS:,} events ahead, to see how fast the job works them off")
            for records in slices.backlog(CALIBRATION_EVENTS):
                sender.send(records)
            sender.flush()
            self._start().wait_until_ready()
            self._drain()
            measured = [b for b in self._samples.batches if b["events"] > 10_000][CALIBRATION_SKIPPED:-1]
            if not measured:
                raise MqtwinError(f"{CALIBRATION_EVENTS:,} events are too few to measure the highest rate")
            peak = sum(b["events"] for b in measured) / sum(b["batch_ms"] / 1000 for b in measured)
        else:
            self._start().wait_until_ready()
        slices.rate = self._options.rate or peak / 2
        self._say(f"peak {peak:,.0f} events/s; {slices.rate:,.0f} events/s for {self._options.minutes:.0f} min")
        self._send(sender, iter(slices))
        states = self._stop()
        counts = {name: sum(state[name] for state in states.values()) for name in _COUNTS}
        expected = {"events": sender.events, "messages": slices.traffic.held}
        wrong = [f"{name}: {counts[name]:,}" for name in _COUNTS if counts[name] != expected.get(name, 0)]
        return self._report({"peak": peak, "rate": slices.rate, "sent": sender.events, "wrong": wrong, **counts})

    def _stores(self, sender: senders.Sender) -> int:
        self._estate, names, queues = estates.many_stores(self._folder, self._options.stores)
        self._start().wait_until_ready()
        self._send(sender, senders.heartbeat_slices(names, queues, HEARTBEAT_SECONDS))
        states = self._stop()
        events = sum(state["events"] for state in states.values())
        letters = len(read_topic(self._broker.bootstrap_servers, Topics(PREFIX).dlq))
        wrong = [] if events == sender.events else [f"events: {events:,} of {sender.events:,}"]
        wrong += [f"dead letters: {letters:,}"] if letters else []
        return self._report({"stores": len(states), "sent": sender.events, "wrong": wrong, "events": events})

    # --- the job -----------------------------------------------------------------------------------------------------

    def _start(self) -> JobProcess:
        options = ["--estate", str(self._estate), "--bootstrap-servers", self._broker.bootstrap_servers]
        options += ["--checkpoint", str(self._folder / "checkpoint"), "--topic-prefix", PREFIX]
        options += ["--conf", f"spark.local.dir={self._local}"]
        self._job = JobProcess(options, self._log, self._options.open_files, self._samples.add_entry)
        return self._job

    def _send(self, sender: senders.Sender, slices: Iterator[list[senders.Record]]) -> None:
        """Send for the given minutes, kill the job meanwhile, and let it process the rest."""
        seconds = self._options.minutes * 60
        began = time.monotonic()
        kills = [seconds * (i + 1) / (self._options.kills + 1) for i in range(self._options.kills)]
        minute = 0

        def look() -> None:
            nonlocal minute
            assert self._job is not None
            if not self._job.is_running:
                raise MqtwinError(f"the job ended: {self._job.last_line[:500]}")
            now = time.monotonic() - began
            if kills and now >= kills[0]:
                kills.pop(0)
                self._job.kill()
                self._samples.kills.append(self._samples.seconds)
                self._say(f"{now / 60:.1f} min: killed and started again")
                self._start()
            if now >= 60 * minute:
                minute += 1
                self._say(self._progress(now / 60))

        senders.run(sender, slices, seconds, look)
        sender.flush()
        self._drain()

    def _drain(self) -> None:
        """Wait until the last batch that the job has committed ends where the topics do."""
        until = time.monotonic() + DRAIN_SECONDS
        while time.monotonic() < until:
            if self._job is None or not self._job.is_running:
                raise MqtwinError(f"the job ended: {self._job.last_line[:500] if self._job else ''}")
            if self._is_read():
                time.sleep(LISTENER_SECONDS)
                return
            time.sleep(1.0)
        raise MqtwinError(f"the job did not catch up within {DRAIN_SECONDS:.0f} s")

    def _is_read(self) -> bool:
        files = CheckpointFiles(self._folder / "checkpoint")
        newest = files.newest
        if newest is None or files.last_batch not in files.commits:
            return False
        events = Topics(PREFIX).events
        return newest[0].get(events) == end_offsets(self._kafka, events)

    def _stop(self) -> dict[str, Any]:
        """End the job; return the last state record of each store."""
        assert self._job is not None
        status = self._job.stop()
        if status != 0:
            raise MqtwinError(f"the job ended with status {status}: {self._job.last_line[:500]}")
        records = read_topic(self._broker.bootstrap_servers, Topics(PREFIX).state)
        return {record.key.decode(): msgspec.json.decode(record.value) for record in records if record.key}

    def _retain(self) -> None:
        """Let the broker delete old events: an hour of them does not fit on a small disk."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in _RETAINED.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, Topics(PREFIX).events, incremental_configs=entries)
        admin = admin_client(self._kafka)  # its requests end with it
        for future in admin.incremental_alter_configs([resource]).values():
            future.result()

    # --- what it says ------------------------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)

    def _progress(self, minutes: float) -> str:
        sample = self._samples.samples[-1] if self._samples.samples else None
        batches = self._samples.batches[-100:]
        if sample is None or not batches:
            return f"{minutes:.1f} min"
        milliseconds = statistics.median(batch["batch_ms"] for batch in batches)
        rss = ", ".join(f"{part} {size >> 20}" for part, size in sample.rss.items())
        return (
            f"{minutes:.1f} min: {milliseconds:.0f} ms per batch, behind {batches[-1].get('behind')}; "
            f"descriptors {sample.jvm_fds} and {sample.worker_fds}, maps {sample.jvm_maps} and {sample.worker_maps}; "
            f"MB: {rss}; checkpoint {sample.checkpoint_bytes >> 20} MB in {sample.checkpoint_files} files"
        )

    def _report(self, facts: dict[str, Any]) -> int:
        facts |= {"minutes": self._options.minutes, "open_files": self._options.open_files or _own_limit()}
        measured = findings.figures(self._samples)
        plain = {"facts": facts, "figures": [asdict(figure) for figure in measured], **self._samples.plain()}
        (self._out / f"{self._name}.json").write_text(json.dumps(plain), encoding="utf-8")
        picture.draw(self._samples, self._out / f"{self._name}.svg", page.title(facts))
        text = page.text(facts, measured, self._samples)
        (self._out / f"{self._name}.md").write_text(text, encoding="utf-8")
        print(text)
        return 1 if facts["wrong"] or not all(figure.is_flat for figure in measured) else 0


def _own_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


sys.exit(main())
