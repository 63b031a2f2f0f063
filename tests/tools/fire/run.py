"""A run of a plan: actions in their order, and at each validation the oracle."""

from __future__ import annotations

import contextlib
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil

from deploy.java.broker import Broker
from streams import seams
from streams.checkpoint.local_files import CheckpointFiles
from tests.support.processes import send_signal
from tests.tools.fire import oracle
from tests.tools.fire.instants import instant_of, stop_at
from tests.tools.fire.oracle import Outputs, Segment
from tests.tools.fire.plan import JAVA_INSTANTS, Action, Plan
from tests.tools.fire.traffic import EVENTS_A_STORE, Traffic, write_estate
from tests.tools.fire.world import Bounds, World
from twin.base.errors import MqtwinError
from twin.estate import load_estate

INSTANT_SECONDS = 45.0  # until a batch comes to an instant; a batch takes a second or two
SINK_SECONDS = 0.5  # from the release of a worker until its records are with the producer
FULL_SECONDS = 25.0  # until the job has noticed a full disk


class Recovery(msgspec.Struct, frozen=True):
    """seconds: from a kill to the next batch in the log."""

    label: str
    instant: str
    seconds: float


class Outcome(msgspec.Struct):
    """The results of a run.

    Attributes:
        seed: seed of the plan.
        commit: commit of the program.
        seconds: length of the whole run.
        actions: done, by label.
        validated: number of actions, validations apart, behind which a validation passed.
        validations: number of them that passed.
        prefixes: number of killed jobs whose output was compared with both the committed and the planned prefix.
        hits: kills by the instant of the batch at which they struck.
        missed: faults whose instant did not come.
        records: Kafka records published.
        events: events published.
        alerts, letters: numbers at the end.
        recoveries: times from kills to the next batch.
        drained: the longest time from the last action to the end of the backlog, seconds.
        difference: the first one; empty: none.
    """

    seed: int
    commit: str = ""
    seconds: float = 0.0
    actions: dict[str, int] = msgspec.field(default_factory=Counter)
    validated: int = 0
    validations: int = 0
    prefixes: int = 0
    hits: dict[str, int] = msgspec.field(default_factory=Counter)
    missed: int = 0
    records: int = 0
    events: int = 0
    alerts: int = 0
    letters: int = 0
    recoveries: list[Recovery] = []
    drained: float = 0.0
    difference: str = ""


class DifferenceError(MqtwinError):
    """The job has written something else than it must have."""


class CanaryError(Exception):
    """The oracle did not see a difference that was put there: nothing that it says counts."""


class Run:
    """A run of a plan in a new world.

    Args:
        plan: the plan.
        world: the world.
        say: takes a line for the user.
        events_a_store: that it can publish.
    """

    def __init__(
        self, plan: Plan, world: World, say: Callable[[str], None], events_a_store: int = EVENTS_A_STORE
    ) -> None:
        self._plan = plan
        self._world = world
        self._say = say
        self._traffic = Traffic(plan.seed, events_a_store)
        self._segments: list[Segment] = []
        self._max_records, self._cores = plan.max_records, plan.cores
        self._kills: list[tuple[str, str, float]] = []  # label, instant, monotonic seconds
        self._since = 0  # actions since the last validation
        self._last: Outputs | None = None
        self.outcome = Outcome(plan.seed)

    def run(self) -> Outcome:
        """Do all actions; stop at the first difference, which the outcome then has."""
        began = time.monotonic()
        try:
            self._use_estate(0)
            self._start()
            for number, action in enumerate(self._plan.actions):
                self.do(number, action)
            self._world.stop()
            self._check_checkpoint()
        except MqtwinError as error:
            self.outcome.difference = str(error)
        self.outcome.seconds = time.monotonic() - began
        return self.outcome

    def do(self, number: int, action: Action) -> None:
        """Do an action. DifferenceError, StalledError: it went wrong."""
        start = time.monotonic()
        getattr(self, f"_{action.kind.replace('-', '_')}")(action)
        self.outcome.actions[action.label] += 1
        self._since += action.kind != "validate"
        self._say(f"  {number}: {action} ({time.monotonic() - start:.1f} s)")

    # --- actions -----------------------------------------------------------------------------------------------------

    def _publish(self, action: Action) -> None:
        records = self._traffic.records(action)
        self.outcome.records += len(records)
        self.outcome.events += sum(record.events for record in records)
        self._world.publish(records, flaw=action.flaw)

    def _fault(self, action: Action) -> None:
        world = self._world
        world.wait_until_ready()
        if not action.instant:
            self._publish(action)
            self._strike(action, "")
        elif action.instant == "sink":
            self._fault_in_sink(action)
        elif action.instant in JAVA_INSTANTS:
            java = world.processes("java")
            hit = stop_at(action.instant, world.checkpoint, java, INSTANT_SECONDS, lambda: self._publish(action))
            try:
                self._struck(action, hit)
            finally:
                send_signal(java, signal.SIGCONT)
        else:
            order = _order(action)
            world.orders.give(action.instant, order)
            self._publish(action)
            is_taken = world.orders.wait(action.instant, INSTANT_SECONDS)
            if order != "hold" and is_taken:
                self._note_kill(action, action.instant)
            else:
                self._struck(action, action.instant if is_taken else "")
            world.orders.clear()

    def _fault_in_sink(self, action: Action) -> None:
        """Strike while records wait for a broker that has stopped: their task has state to commit and cannot."""
        world = self._world
        world.orders.give(seams.SENDING, "hold")
        self._publish(action)
        world.flush()
        is_taken = world.orders.wait(seams.SENDING, INSTANT_SECONDS)
        broker = world.processes("broker")
        for process in broker:
            process.suspend()
        try:
            world.orders.clear()
            time.sleep(SINK_SECONDS)
            self._struck(action, "sink" if is_taken and instant_of(world.checkpoint) else "")
        finally:
            send_signal(broker, signal.SIGCONT)

    def _struck(self, action: Action, instant: str) -> None:
        if instant:
            self._strike(action, instant)
        else:
            self.outcome.missed += 1
            self._say(f"     missed: no batch came to {action.instant}")

    def _strike(self, action: Action, instant: str) -> None:
        """Kill, stop or starve processes. instant: that they are at."""
        world = self._world
        processes = world.processes(action.whom)
        if not processes:  # a worker outlives its daemon
            self.outcome.missed += 1
            self._say(f"     missed: there is no {action.whom}")
            return
        if action.do == "stop":
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.suspend()
            time.sleep(action.seconds)
            send_signal(processes, signal.SIGCONT)
            return
        if action.do == "starve":
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.rlimit(psutil.RLIMIT_AS, (process.memory_info().vms,) * 2)
            return
        if action.whom in ("java", "driver", "all"):
            world.is_ready.clear()
        self._note_kill(action, instant)
        if action.whom == "all":
            world.kill_all()
            send_signal(world.processes("broker"), signal.SIGCONT)  # where it was stopped, to be at the sink
            self._check_prefix()
            world.start_again()
            return
        send_signal(processes)
        if action.whom == "broker":
            world.restart_broker()

    def _note_kill(self, action: Action, instant: str) -> None:
        if action.do == "kill":
            self._kills.append((action.label, instant, time.monotonic()))
            self.outcome.hits[instant or "any"] += 1

    def _lose_mirror(self, action: Action) -> None:
        self._world.wait_until_ready()
        for path in self._world.mirrors():
            shutil.rmtree(path, ignore_errors=True)
        self._publish(action)

    def _restart(self, action: Action) -> None:
        self._world.wait_until_ready()
        self._world.stop()
        self._max_records, self._cores = action.max_records, action.cores
        self._start()
        self._publish(action)

    def _estate(self, action: Action) -> None:
        self._world.wait_until_ready()
        self._world.stop()
        self._close_segment()
        self._use_estate(action.number)
        self._start()
        self._publish(action)

    def _partitions(self, action: Action) -> None:
        self._close_segment()  # a store may get another partition: what it has in the first one is processed
        self._world.add_partitions(2)
        self._publish(action)

    def _clock(self, action: Action) -> None:
        """Set the job's system clock, and check that the job continues."""
        self._world.wait_until_ready()
        if not self._world.set_clock(action.number):
            self.outcome.missed += 1
            self._say("     missed: a clock of its own needs Linux and a C compiler")
        self._publish(action)

    def _damage(self, action: Action) -> None:
        """Damage the last files of the checkpoint, and do what its check says."""
        self._world.wait_until_ready()
        self._world.stop()
        folder = self._world.checkpoint
        last = CheckpointFiles(folder).last_batch
        assert last is not None
        commit = folder / "commits" / str(last)
        if action.number % 2 == 0:
            damaged = [commit]
        else:
            damaged = list((folder / "state" / "0").glob(f"[0-9]*/{last + 1}.changelog"))
        for path in damaged:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        findings = [finding for finding in CheckpointFiles(folder).check(thorough=True) if finding.is_blocking]
        if not findings:
            raise DifferenceError(f"checkpoint check does not see the damage of {damaged}")
        if all(f"remove commits/{last}" in finding.remedy for finding in findings):
            commit.unlink()
            commit.with_name(f".{last}.crc").unlink(missing_ok=True)
        else:
            raise DifferenceError(f"checkpoint check has no remedy: {findings[0]}")
        self._start()
        self._publish(action)

    def _full_disk(self, action: Action) -> None:
        self._world.wait_until_ready()
        restarts = len(self._world.restarts)
        filler = self._world.fill_disk()
        self._publish(action)
        self._wait_for_restart(restarts)
        filler.unlink()

    def _wait_for_restart(self, restarts: int) -> None:
        """Wait until the supervisor has started the job again, or has not for `FULL_SECONDS`."""
        deadline = time.monotonic() + FULL_SECONDS
        while time.monotonic() < deadline and len(self._world.restarts) == restarts:
            time.sleep(0.1)

    # --- the job -----------------------------------------------------------------------------------------------------

    def _use_estate(self, number: int) -> None:
        self._described = write_estate(self._world.folder, number)
        self._described_estate = load_estate(self._described)
        self._traffic.use_estate(number)

    def _start(self) -> None:
        self._world.start(self._described, self._max_records, self._cores)

    def _close_segment(self) -> None:
        bounds = self._world.bounds()
        ends = bounds.ends(self._world.topics.events)
        self._segments.append(Segment(self._described_estate, ends, bounds.committed))

    # --- the oracle --------------------------------------------------------------------------------------------------

    def _validate(self, _: Action) -> None:
        world = self._world
        world.flush()
        drained = world.drain()
        self.outcome.drained = max(self.outcome.drained, drained)
        bounds, seen = world.bounds(), world.subscriber.read()
        while world.bounds() != bounds or not world.is_drained():  # a mark for the shared stores came meanwhile
            world.drain()
            bounds, seen = world.bounds(), world.subscriber.read()
        expected = self._expect(bounds, bounds.committed)
        problems = oracle.differences(seen, expected.outputs)
        problems += oracle.ledger_problems(world.published, expected, seen)
        self._raise(problems)
        if not oracle.differences(oracle.plant(seen, self._plan.seed + self.outcome.validations), expected.outputs):
            raise CanaryError(f"seed {self._plan.seed}: the oracle did not see a planted difference")
        for label, instant, when in self._kills:
            later = [batch for batch in world.batches if batch > when]
            if later:
                self.outcome.recoveries.append(Recovery(label, instant, round(min(later) - when, 2)))
        self._kills.clear()
        self._say(f"     all read after {drained:.1f} s: {len(seen.alerts)} alerts, {expected.events.total()} events")
        self.outcome.alerts, self.outcome.letters = len(seen.alerts), len(seen.letters)
        self.outcome.validations += 1
        self.outcome.validated += self._since
        self._since = 0

    def _check_prefix(self) -> None:
        """Compare the output of a job that was killed with its committed and its planned prefix."""
        world = self._world
        bounds = world.bounds()
        least, upmost = (self._expect(bounds, batch).outputs for batch in (bounds.committed, bounds.last))
        self._raise(oracle.differences(world.subscriber.read(), least, upmost))
        self.outcome.prefixes += 1

    def _expect(self, bounds: Bounds, last: int) -> oracle.Expected:
        """Return the outputs of all batches up to the last one."""
        world, topics = self._world, self._world.topics
        segments = [*self._segments, Segment(self._described_estate, bounds.ends(topics.events, last), last)]
        expected = oracle.expect(world.read_all(topics.events), topics.events, segments, world.limits.dlq)
        batches = {batch: bounds.ends(topics.reports, batch) for batch in bounds.batches if batch <= last}
        oracle.add_shared(expected.outputs, world.read_all(topics.reports), batches, segments)
        return expected

    def _raise(self, problems: list[str]) -> None:
        if problems:
            raise DifferenceError(f"{problems[0]}{f' (and {len(problems) - 1} more)' if len(problems) > 1 else ''}")

    def _check_checkpoint(self) -> None:
        problems = [str(finding) for finding in CheckpointFiles(self._world.checkpoint).check(thorough=True)]
        self._raise([f"checkpoint: {finding}" for finding in problems if finding])


def _order(action: Action) -> str:
    """Return the order for a seam."""
    if action.do == "raise" or (action.do == "kill" and action.whom == "worker"):
        return action.do
    return f"delay {action.seconds}" if action.do == "delay" else "hold"


def run_plan(plan: Plan, broker: Broker, prefix: str, folder: Path, say: Callable[[str], None]) -> Outcome:
    """Run a plan on a broker, in a folder of its own."""
    folder.mkdir()
    with World(broker, prefix, folder, plan, say=say) as world:
        return Run(plan, world, say).run()
