"""Events a second from Kafka to Kafka, and CPU time, by content type: the job, its first stage, the connector.

A round runs the three on the same topic, one after the other. Rounds are repeated in one JVM until its compilers are
quiet: a job runs for months, and theirs are the first minutes of it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from streams.kafka.publish import PublishResult
from streams.query.definition import JobSettings
from streams.query.job import Job
from tests.tools.bench import site
from tests.tools.bench.profile import Profile, sampler
from tests.tools.bench.rig import Batch, Rig, Say, Span, span
from tests.tools.bench.timeline import Timeline, read_timeline
from tests.tools.bench.traffic import Traffic
from twin.events import ARROW, JSON, NDJSON

HELD = 10_000  # messages while it is measured
QUIET = 0.03  # of all CPU time: compilers that take less of it are quiet
STEADY_ROUNDS = 3  # the last ones, of which the steady state is the median
_MOST_ROUNDS, _QUICK_ROUNDS = 9, 1
_PROFILED_BATCHES = 5


@dataclass(frozen=True, slots=True)
class Size:
    """events: events of a batch, about; warm_up, measured: batches."""

    events: int
    warm_up: int
    measured: int


@dataclass(frozen=True, slots=True)
class Round:
    """Figures of a round: the connector alone, with the first stage, the whole job."""

    ceiling: Span
    decoding: Span
    job: Span

    @property
    def compilers(self) -> float:
        """The share of the job's CPU time that is the JVM's compilers."""
        return self.job.us("compilers") / self.job.cpu_us

    @property
    def of_ceiling(self) -> float:
        """The job's rate, of that of the connector alone."""
        return self.job.rate / self.ceiling.rate


@dataclass(frozen=True, slots=True)
class Way:
    """Figures of one content type. rounds: in their order; profile: samples of Spark's Python workers, or None."""

    name: str
    published: PublishResult
    rounds: list[Round]
    profile: Profile | None
    timeline: Timeline

    @property
    def first(self) -> Round:
        """The round in which the JVM compiles what it runs."""
        return self.rounds[0]

    @property
    def is_steady(self) -> bool:
        """True if the compilers have become quiet."""
        return self.rounds[-1].compilers < QUIET

    @property
    def ceiling(self) -> Span:
        """The connector alone in the steady state."""
        return self._steady(lambda each: each.ceiling)

    @property
    def decoding(self) -> Span:
        """The connector and the first stage in the steady state."""
        return self._steady(lambda each: each.decoding)

    @property
    def job(self) -> Span:
        """The job in the steady state."""
        return self._steady(lambda each: each.job)

    @property
    def of_ceiling(self) -> float:
        """The job's rate, of that of the connector alone in the same round: the median of the last rounds."""
        return statistics.median(each.of_ceiling for each in self.rounds[-STEADY_ROUNDS:])

    def _steady(self, span_of: Callable[[Round], Span]) -> Span:
        """Return the span whose rate is the median of the last rounds."""
        spans = sorted((span_of(each) for each in self.rounds[-STEADY_ROUNDS:]), key=lambda span: span.rate)
        return spans[(len(spans) - 1) // 2]


SIZES = {JSON: Size(300_000, 4, 6), NDJSON: Size(600_000, 3, 5), ARROW: Size(1_500_000, 3, 6)}
QUICK = {JSON: Size(100_000, 2, 2), NDJSON: Size(200_000, 2, 2), ARROW: Size(500_000, 2, 2)}
NAMES = {JSON: "JSON", NDJSON: "NDJSON", ARROW: "Arrow"}
_PROFILED = (JSON, ARROW)


def measure(rig: Rig, say: Say, *, quick: bool) -> list[Way]:
    """All content types, in one Spark, one after the other."""
    sizes, rounds = (QUICK, _QUICK_ROUNDS) if quick else (SIZES, _MOST_ROUNDS)
    return [_measure(rig, say, kind, size, rounds) for kind, size in sizes.items()]


def _measure(rig: Rig, say: Say, kind: str, size: Size, most_rounds: int) -> Way:
    name = NAMES[kind]
    prefix = f"bench-{name.lower()}"
    traffic = Traffic(site.STORES)
    batches = size.warm_up + size.measured
    say(f"{name}: publishing {batches * size.events:,} events")
    published = rig.publish(prefix, [traffic.fill(HELD), *traffic.pieces(batches * size.events)], kind)
    a_record = published.events / published.records
    settings = partial(rig.settings, prefix, max_records=max(1, round(published.records / batches)))

    timelines: list[Timeline] = []

    def look(job: Job, batches: list[Batch]) -> None:
        timelines.append(read_timeline(rig.session, job.query, f"{name}, a backlog", batches[-2].figures))

    rounds: list[Round] = []
    while len(rounds) < min(STEADY_ROUNDS, most_rounds) or (not _are_quiet(rounds) and len(rounds) < most_rounds):
        say(f"{name}, round {len(rounds) + 1}: the connector alone, with decoding, the job")
        ceiling = span(rig.run_ceiling(settings()), size.warm_up, batches, a_record)
        decoding = span(rig.run_decoding(settings()), size.warm_up, batches, a_record)
        rounds.append(Round(ceiling, decoding, span(rig.run_job(settings(), on_end=look), size.warm_up, batches)))
    profile = None
    if kind in _PROFILED:
        say(f"{name}: the job, with py-spy looking on")
        profile = _profiled(rig, settings(), batches)
    return Way(name, published, rounds, profile, timelines[-1])


def _are_quiet(rounds: list[Round]) -> bool:
    """Return True if the compilers were quiet in two rounds, one after the other."""
    return all(each.compilers < QUIET for each in rounds[-2:])


def _profiled(rig: Rig, settings: JobSettings, batches: int) -> Profile:
    with sampler(rig.folder) as samples:

        def begin(done: int) -> None:
            if done == 1:
                samples.start(rig.daemons())

        rig.run_job(settings, max_batches=min(batches, 1 + _PROFILED_BATCHES), on_batch=begin)
    return samples.profile
