"""Events a second from Kafka to Kafka, and CPU time, by content type: the job, its first stage, the connector."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from streams.kafka.publish import PublishResult
from streams.query.definition import JobSettings
from streams.query.job import Job
from tests.bench import site
from tests.bench.profile import Profile, sampler
from tests.bench.rig import Batch, Rig, Say, Span, span
from tests.bench.timeline import Timeline, read_timeline
from tests.bench.traffic import Traffic
from twin.events import ARROW, JSON, NDJSON

HELD = 10_000  # messages while it is measured
_PROFILED_BATCHES = 5


@dataclass(frozen=True, slots=True)
class Size:
    """events: events of a batch, about; warm_up, measured: batches."""

    events: int
    warm_up: int
    measured: int


@dataclass(frozen=True, slots=True)
class Way:
    """Figures of one content type. profile: samples of Spark's Python workers, or None; timeline: phases of a batch."""

    name: str
    published: PublishResult
    ceiling: Span
    decoding: Span
    job: Span
    profile: Profile | None
    timeline: Timeline


SIZES = {JSON: Size(300_000, 4, 6), NDJSON: Size(600_000, 3, 5), ARROW: Size(1_500_000, 3, 6)}
QUICK = {JSON: Size(100_000, 2, 2), NDJSON: Size(200_000, 2, 2), ARROW: Size(500_000, 2, 2)}
NAMES = {JSON: "JSON", NDJSON: "NDJSON", ARROW: "Arrow"}
_PROFILED = (JSON, ARROW)


def measure(rig: Rig, say: Say, *, quick: bool) -> list[Way]:
    """All content types, in one Spark, one after the other."""
    sizes = QUICK if quick else SIZES
    return [_measure(rig, say, kind, size) for kind, size in sizes.items()]


def _measure(rig: Rig, say: Say, kind: str, size: Size) -> Way:
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

    say(f"{name}: the connector alone")
    ceiling = span(rig.run_ceiling(settings()), size.warm_up, batches, a_record)
    say(f"{name}: the connector and decoding")
    decoding = span(rig.run_decoding(settings()), size.warm_up, batches, a_record)
    say(f"{name}: the job")
    job = span(rig.run_job(settings(), on_end=look), size.warm_up, batches)
    profile = None
    if kind in _PROFILED:
        say(f"{name}: the job, with py-spy looking on")
        profile = _profiled(rig, settings(), batches)
    return Way(name, published, ceiling, decoding, job, profile, timelines[0])


def _profiled(rig: Rig, settings: JobSettings, batches: int) -> Profile:
    with sampler(rig.folder) as samples:

        def begin(done: int) -> None:
            if done == 1:
                samples.start(rig.daemons())

        rig.run_job(settings, max_batches=min(batches, 1 + _PROFILED_BATCHES), on_batch=begin)
    return samples.profile
