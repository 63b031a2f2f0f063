"""Long life: a steady load for hours, a fault each four minutes, everything sampled, and at the end the oracle."""

from __future__ import annotations

import contextlib
import random
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil
from confluent_kafka import Consumer, KafkaException

from deploy.java.broker import Broker
from tests.system.harness import Record
from tests.tools.bench import site
from tests.tools.fire import oracle, senders
from tests.tools.fire.oracle import Segment
from tests.tools.fire.plan import Action, Plan, make_life, make_publish
from tests.tools.fire.run import Outcome, Run
from tests.tools.fire.samples import Sampler, Samples
from tests.tools.fire.traffic import write_estate
from tests.tools.fire.world import Bounds, World, read_from
from twin.base.errors import MqtwinError
from twin.estate import Estate, load_estate

FAULT_SECONDS = 240.0
PUBLISH_SECONDS = 10.0  # from one piece of the random traffic to the next, beside the load
EVENTS_A_STORE = 80_000  # of that traffic: four hours
STORES = site.STORES[1:]  # of the load; the first one is a structure of the random traffic too
MAX_RECORDS = 100_000
CALIBRATION_EVENTS = 5_000_000
CALIBRATION_SKIPPED = 4  # first batches: workers start, code compiles
DRAIN_SECONDS = 900.0
REPLAY_SECONDS = 600.0  # at a time
PIECE = 20_000  # records for the oracle at a time
DATA = "life.json"
ENTRY = ("event", "events", "batch_ms", "behind", "alerts", "loaded")  # fields of a batch that are kept


class Fault(msgspec.Struct, frozen=True):
    """A fault of the run. seconds: since the run began. trouble: what the runner could not do; empty: all was done."""

    seconds: float
    action: str
    trouble: str = ""


class Facts(msgspec.Struct):
    """A long life, beside its samples.

    Attributes:
        seed: seed of the faults.
        cores: cores of the machine.
        minutes: length of the load.
        peak: the highest rate measured just before, events/s; 0: not measured.
        rate: rate of the load, events/s.
        load_events: events of the load that were sent.
        peak_load: the highest load average of the machine in a minute; above `cores` others wait.
        faults: in their order.
        replay_seconds: time of the replay, which follows the topic beside the job.
        outcome: the outcome.
    """

    seed: int
    cores: int
    minutes: float
    peak: float = 0.0
    rate: float = 0.0
    load_events: int = 0
    peak_load: float = 0.0
    faults: list[Fault] = []
    replay_seconds: float = 0.0
    outcome: Outcome = msgspec.field(default_factory=lambda: Outcome(0))


class Replay:
    """The oracle of the events topic of a world, which takes it in pieces.

    Args:
        world: the world.
        estate: its estate.
    """

    def __init__(self, world: World, estate: Estate) -> None:
        self._topic, self._kafka = world.topics.events, world.kafka
        self._oracle = oracle.Oracle(self._topic, world.limits.dlq)
        self._oracle.use(estate)
        self._consumer = Consumer({**world.kafka, "group.id": "fire-all", "enable.auto.commit": False, "log_level": 0})
        self._positions: dict[tuple[str, int], int] = {}
        self._waiting: dict[int, list[Record]] = defaultdict(list)

    @property
    def ends(self) -> dict[int, int]:
        """Ends of what it has taken, by partition."""
        return with_records({partition: end for (_, partition), end in self._positions.items()})

    def follow(self) -> None:
        """Take all records up to the present end of the topic."""
        for record in read_from(self._consumer, self._kafka, self._topic, self._positions, REPLAY_SECONDS):
            waiting = self._waiting[record.partition]
            waiting.append(record)
            if len(waiting) == PIECE:
                self._take(record.partition)

    def finish(self) -> oracle.Expected:
        """Return the outputs."""
        for partition in list(self._waiting):
            self._take(partition)
        self._consumer.close()
        return self._oracle.finish()

    def _take(self, partition: int) -> None:
        self._oracle.take(partition, self._waiting.pop(partition))


def with_records(ends: Mapping[int, int]) -> dict[int, int]:
    """Return the ends of partitions that have had a record: a partition may be new and empty."""
    return {partition: end for partition, end in ends.items() if end}


class Life(Run):
    """A run under load, in a new world.

    Args:
        plan: the faults.
        world: the world.
        say: takes a line for the user.
        facts: seed, cores, minutes and rate; the rest is filled in. A rate of 0 is half of the peak.
        folder: for what is kept.
    """

    def __init__(self, plan: Plan, world: World, say: Callable[[str], None], facts: Facts, folder: Path) -> None:
        super().__init__(plan, world, say, EVENTS_A_STORE)
        self._facts, self._folder = facts, folder
        self._draw = random.Random(f"life traffic {plan.seed}")
        self._samples = Samples()
        self._sender = senders.Sender(world.kafka, world.topics)
        self._slices = senders.LoadSlices(STORES)
        self._failure = ""
        world.on_entry = self._take_entry
        facts.outcome = self.outcome

    def run(self) -> Outcome:
        """Run it; the outcome has what went wrong."""
        began = time.monotonic()
        world, broker = self._world, self._world.broker
        sampler = Sampler(self._samples, world.family, lambda: broker.pid, world.checkpoint, world.local)
        try:
            self._use_estate(0)
            self._replay = Replay(world, self._described_estate)
            self._sender.send(self._slices.first())
            with sampler, self._bounds_seen():
                self._calibrate()
                self._live()
                self._end()
        except MqtwinError as error:
            self.outcome.difference = str(error)
        self.outcome.seconds = time.monotonic() - began
        self._keep()
        return self.outcome

    def _take_entry(self, entry: dict[str, Any]) -> None:
        self._samples.add_entry({name: entry[name] for name in ENTRY if name in entry})

    def _use_estate(self, number: int) -> None:
        """Take the estate of random traffic with the structures of the load besides."""
        folder = self._world.folder
        self._described = write_estate(folder, number)
        load = site.bench_estate(folder, STORES).read_text(encoding="utf-8").partition("[structure.")
        with self._described.open("a", encoding="utf-8") as file:
            file.write("\n[structure." + load[2])
        self._described_estate = load_estate(self._described)

    def _calibrate(self) -> None:
        """Measure the peak: how fast a backlog is processed."""
        facts = self._facts
        self._say(f"sending {CALIBRATION_EVENTS:,} events ahead, to see how fast the job processes them")
        for records in self._slices.backlog(CALIBRATION_EVENTS):
            self._sender.send(records)
        self._sender.flush()
        self._start()
        self._world.wait_until_ready()
        self._wait_until_drained()
        batches = [batch for batch in self._samples.batches if batch["events"] > MAX_RECORDS // 10]
        measured = batches[CALIBRATION_SKIPPED:-1]
        if not measured:
            raise MqtwinError(f"{CALIBRATION_EVENTS:,} events are too few to measure the highest rate")
        facts.peak = sum(b["events"] for b in measured) / sum(b["batch_ms"] / 1000 for b in measured)
        facts.rate = facts.rate or facts.peak / 2
        self._slices.rate = facts.rate
        self._say(f"peak {facts.peak:,.0f} events/s; {facts.rate:,.0f} events/s for {facts.minutes:.0f} min")

    def _live(self) -> None:
        """Send the load, and do each fault when it is due."""
        seconds = self._facts.minutes * 60
        load = threading.Thread(target=self._send, args=(seconds,), name="life-load", daemon=True)
        load.start()
        began = time.monotonic()
        faults = list(self._plan.actions)
        published, spoken = 0.0, 0.0
        while (now := time.monotonic() - began) < seconds:
            if self._failure:
                raise MqtwinError(self._failure)
            number = len(self._facts.faults)
            if number < len(faults) and now >= FAULT_SECONDS * (number + 0.5):
                self._strike_safely(number, faults[number])
                self._keep()
            elif now >= published + PUBLISH_SECONDS:
                published = now
                self._publish(make_publish(self._draw))
                self._follow()
            elif now >= spoken + 60.0:
                spoken = now
                self._say(self._progress(now))
            time.sleep(0.2)
        load.join()
        if self._failure:
            raise MqtwinError(self._failure)

    def _send(self, seconds: float) -> None:
        try:
            senders.run(self._sender, iter(self._slices), seconds)
        except MqtwinError as error:
            self._failure = f"the load ended: {error}"

    def _strike_safely(self, number: int, action: Action) -> None:
        """Do a fault; a failure of the runner is recorded, and the run continues."""
        trouble, seconds = "", self._samples.seconds
        try:
            self._world.flush()
            self._samples.kills.append(seconds)
            self.do(number, action)
        except (MqtwinError, OSError, psutil.Error, subprocess.SubprocessError) as error:
            trouble = f"{type(error).__name__}: {str(error)[:300]}"
            self._say(f"  {number}: {action}: {trouble}")
            self._world.orders.clear()
            if not self._world.job.is_running:
                self._world.start_again()
        self._facts.faults.append(Fault(round(seconds, 1), str(action), trouble))

    def _end(self) -> None:
        """Let the job process the rest, and compare."""
        self._sender.flush()
        self._world.flush()
        self._facts.load_events = self._sender.events
        self._wait_until_drained()
        self._keep()
        self._world.published.update(self._sender.delivered)
        self._say("all is processed")
        self._validate(Action(kind="validate"))
        self._world.stop()
        self._check_checkpoint()

    def _wait_until_drained(self) -> None:
        deadline = time.monotonic() + DRAIN_SECONDS
        while not self._world.is_drained():
            if not self._world.job.is_running:
                raise MqtwinError(f"the job ended for good: {self._world.job.last_line[:500]}")
            if time.monotonic() > deadline:
                raise MqtwinError(f"not all is read after {DRAIN_SECONDS:.0f} s")
            time.sleep(0.5)

    @contextmanager
    def _bounds_seen(self) -> Iterator[None]:
        """Note the bounds of each batch while the checkpoint has them."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(2.0):
                with contextlib.suppress(OSError, ValueError, MqtwinError):  # a file is being written
                    self._world.bounds()

        thread = threading.Thread(target=look, name="life-bounds", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    # --- the oracle --------------------------------------------------------------------------------------------------

    def _check_prefix(self) -> None:
        """Compare nothing: a replay in the middle would take minutes in which nothing is done."""

    def _expect(self, bounds: Bounds, last: int) -> oracle.Expected:
        """Return the outputs of all batches up to the last one, of which the replay has taken all but the newest."""
        world, topics, estate = self._world, self._world.topics, self._described_estate
        if missing := set(range(last + 1)) - bounds.batches.keys():
            raise MqtwinError(f"the bounds of batches {sorted(missing)[:5]} were not seen")
        self._follow()
        ends, replayed = bounds.ends(topics.events, last), self._replay.ends
        if replayed != with_records(ends):
            raise MqtwinError(f"the replay ends at {replayed}; expected: {ends}, where the job does")
        expected = self._replay.finish()
        batches = {batch: bounds.ends(topics.reports, batch) for batch in bounds.batches if batch <= last}
        oracle.add_shared(expected.outputs, world.read_all(topics.reports), batches, [Segment(estate, ends, last)])
        return expected

    def _follow(self) -> None:
        """Let the replay take what came to the topic: at the end it would take an hour, and the topic all memory."""
        began = time.monotonic()
        with contextlib.suppress(MqtwinError, KafkaException):  # the broker is away
            self._replay.follow()
        self._facts.replay_seconds += time.monotonic() - began

    # --- what it says ------------------------------------------------------------------------------------------------

    def _progress(self, seconds: float) -> str:
        facts = self._facts
        facts.peak_load = max(facts.peak_load, psutil.getloadavg()[0])
        batches, samples = self._samples.batches[-1:], self._samples.samples[-1:]
        text = f"{seconds / 60:.0f} min, {self._sender.events:,} events, load {psutil.getloadavg()[0]:.1f}"
        for batch in batches:
            text += f"; {batch['batch_ms']:,.0f} ms a batch, behind {batch.get('behind')}"
        for sample in samples:
            rss = ", ".join(f"{part} {size >> 20}" for part, size in sample.rss.items())
            text += f"; MB: {rss}; checkpoint {sample.checkpoint_bytes >> 20} MB, {sample.checkpoint_files} files"
        return text

    def _keep(self) -> None:
        """Write all that is known so far."""
        draft = self._folder / "draft"
        draft.write_bytes(msgspec.json.encode({"facts": self._facts, **self._samples.plain()}))
        draft.replace(self._folder / DATA)


def run_life(facts: Facts, broker: Broker, folder: Path, data: Path, say: Callable[[str], None]) -> Outcome:
    """Run a life on a broker; facts are filled in, and kept with the samples in a folder.

    Args:
        facts: seed, cores, minutes and rate.
        broker: a running broker.
        folder: for the run; it is made.
        data: folder for samples and facts.
        say: takes a line for the user.
    """
    plan = make_life(facts.seed, int(facts.minutes * 60 / FAULT_SECONDS))
    folder.mkdir()
    data.mkdir(parents=True, exist_ok=True)
    with World(broker, "life", folder, plan, say=say, is_long=True) as world:
        return Life(plan, world, say, facts, data).run()
