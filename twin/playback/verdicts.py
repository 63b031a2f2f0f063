"""Verdicts of commissioning: every threshold in one place, and the sentence about each figure.

Commissioning asks whether a twin is fit for its purpose where it stands [ISO 23247-7, in work]. A twin is as fit as the
least fit of its checks. What cannot be known because data are missing limits it: it is neither right nor wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from twin.base.units import as_count, as_span
from twin.feeds.protocol import FeedFact, formats_with
from twin.playback.fidelity import ResourceFidelity
from twin.records import ForecastScores
from twin.stores.drift import LOW_FIDELITY, MIN_TESTS
from twin.stores.open import MESSAGE_KINDS

# Shares of lost or unreported events: a thousandth moves a store's usage by less than a tenth of a point, a hundredth
# by about one point, a fifth of the tolerance of drift, and more where losses add up [assumed].
MANY_PUTS = 20  # without a get, before gets are missed
FIT_LOSS, LIMITED_LOSS = 0.001, 0.01
FIT_FIDELITY = 0.95  # share of measurements matched: 19 of 20, as is usual of a confidence [assumed]
LIMITED_FIDELITY = LOW_FIDELITY  # below it the job's `drift` alert opens (twin.stores.drift)
MIN_LOOKS = 20  # settled, before a Brier score says anything: `twin.forecast.outcomes` wants as many intervals
MIN_INTERVALS = 20
LOW_COVERAGE = 0.7  # of the 0.8 that p10..p90 has to contain, less the tolerance of `twin.forecast.outcomes`
FIT_LATENCY_S, LIMITED_LATENCY_S = 10.0, 60.0  # p99: a tick of the twin; the slowest sampling of other monitors
HISTORY_S = 86_400.0  # a median latency above it is that of history, such as a recording that was published
FIT_USE, LIMITED_USE = 0.8, 0.9  # of a limit: where the job warns, and where a failure is put down to it
FIT_BEHIND_S, LIMITED_BEHIND_S = 60.0, 600.0  # seconds without a beat of the job
FIT_BEHIND = 100_000  # records of a partition, a second of the largest throughput measured (docs/performance.md)


class Fitness(StrEnum):
    """How fit a twin is, in order."""

    FIT = "fit"
    LIMITED = "fit with limits"
    UNFIT = "not fit"

    @property
    def rank(self) -> int:
        """The place in the order: 0 is fit."""
        return list(Fitness).index(self)


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one subject."""

    subject: str  # coverage, numbering, units, fidelity, forecasts, latency, job or a limit of it
    store: str | None = None  # name of the store; None: of all that no other check of the subject names
    verdict: Fitness
    reason: str  # what it rests on, a sentence without its end
    remedy: str = ""  # what to do; "" where there is nothing to do


class StoreCommission(msgspec.Struct, frozen=True, kw_only=True):
    """Observations of a store."""

    store: str
    kind: str
    has_model: bool = True  # False for a structure that holds no queues, which only repeats what is measured
    has_readers: bool = False  # measurements show who has queues open
    events: int  # events of it, duplicates included
    calls: int  # operations on its queues; `numbered` of them have `seq`, `counted` stand for several messages
    numbered: int
    counted: int
    gaps: int  # numbers of `seq` that are missing
    unmatched: int  # gets beyond the baseline whose message never came; gets, puts: messages got and put
    gets: int
    puts: int = 0
    measurements: int = 0  # its MEASURE events
    levels: str = ""  # why a store known by measurements has no forecast yet; "": it has, or it is not such
    sizes: tuple[str, ...] = ()  # sentences with the sizes that were measured other than the model had them
    seen: tuple[str, ...] = ()  # sentences: shares of the puts and gets of queues that events report, if not all
    silent_queues: tuple[str, ...]  # queues without an event, sorted
    queues: int  # number of its queues
    tolerance_pct: float | None  # distance within which a measurement matches; None without one
    fidelity: tuple[ResourceFidelity, ...]  # by resource, sorted; empty where nothing tested the twin
    causes: tuple[str, ...]  # likely causes of differences
    scores: ForecastScores | None  # what became of the forecasts in the whole recording; None where nothing was settled

    @property
    def has_levels_only(self) -> bool:
        """True of a store with queues of which only measurements are known."""
        return self.has_model and self.measurements > 0 and not self.calls


class NotShown(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of fact that the feeds of stores do not show."""

    what: str  # it, as `twin.feeds.protocol.FeedFact`
    stores: tuple[str, ...]  # names of the stores, sorted
    effect: str  # what the twin cannot say therefore
    formats: tuple[str, ...]  # those that show it, as on the command line


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds from event time to the record that first holds the event. records: their number."""

    records: int
    p50_s: float
    p99_s: float


class LimitUse(msgspec.Struct, frozen=True, kw_only=True):
    """Use of a limit of the job, such as descriptors. noun: as after two numbers."""

    noun: str
    used: int
    limit: int
    remedy: str


class JobFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures that only a running job has."""

    latency: Latency | None  # up to the state record; None where the topic has none of the time
    lateness: Latency | None = None  # up to the record of the events topic, by the interval of a feed; None: not known
    limits: tuple[LimitUse, ...] | None = None  # None where the job's status file was not given
    behind: int | None = None  # records per partition not yet read; None if not known
    beat_age_s: float | None = None  # seconds since the job's last sign of life; None without the status file


_EFFECTS = {
    FeedFact.CALLS: "which queue fills a store but by depths, puts that are refused, what-if, advice",
    FeedFact.LENGTHS: "elements and blocks but as an interval",
    FeedFact.PRIORITIES: "which messages storage class memory takes",
    FeedFact.UNITS: "what a backout gives back, messages that cannot be got yet",
    FeedFact.READERS: "before a rise, that nobody reads the queue",
}


def not_shown(stores: Iterable[StoreCommission]) -> list[NotShown]:
    """Return what the feeds of the stores with queues and events do not show."""
    own_stores = [store for store in stores if store.kind in MESSAGE_KINDS and store.has_model and store.events]
    result = []
    for what in FeedFact:
        lacking = tuple(sorted(store.store for store in own_stores if not _is_shown(store, what)))
        if lacking:
            result.append(NotShown(what=str(what), stores=lacking, effect=_EFFECTS[what], formats=formats_with(what)))
    return result


def _is_shown(store: StoreCommission, what: FeedFact) -> bool:
    if what == FeedFact.READERS:
        return store.has_readers
    return store.calls > (0 if what == FeedFact.CALLS else store.counted)


def worst(checks: Iterable[Check]) -> Fitness:
    """Return the verdict on all checks together: the least fit."""
    return max((check.verdict for check in checks), key=lambda verdict: verdict.rank, default=Fitness.FIT)


def check_stores(stores: Sequence[StoreCommission]) -> list[Check]:
    """Return the checks of the stores that hold messages: of each subject what is not fit, then what is, in common.

    Stores that others report to have none of their own: they are as right as these.
    """
    checks: list[Check] = []
    own_stores = [store for store in stores if store.kind in MESSAGE_KINDS]
    for subject, check, summary in (
        ("coverage", _check_coverage, _all_covered),
        ("numbering", _check_numbering, lambda own: f"{as_count(len(own), 'store')}: no number of `seq` is missing"),
        ("units", _check_units, lambda own: f"{as_count(len(own), 'store')}: every message has its own length"),
        ("sizes", _check_sizes, None),
        ("fidelity", _check_fidelity, _all_faithful),
        ("forecasts", _check_forecasts, _all_forecast),
    ):
        concerned = [store for store in own_stores if _is_concerned(store, subject)]
        by_store = [(store, check(store)) for store in concerned if store.events or subject == "coverage"]
        own = [msgspec.structs.replace(limit, subject=subject, store=store.store) for store, limit in by_store if limit]
        checks += sorted(own, key=lambda limit: (-limit.verdict.rank, limit.store or ""))
        fit = [store for store, limit in by_store if limit is None]
        if fit and summary is not None:
            checks.append(Check(subject=subject, verdict=Fitness.FIT, reason=summary(fit)))
    return checks


def _is_concerned(store: StoreCommission, subject: str) -> bool:
    if subject in ("numbering", "units"):
        return store.calls > 0
    if subject == "sizes":
        return store.measurements > 0
    return store.has_model or subject != "fidelity"


def check_names(silent_qmgrs: Sequence[str], qmgrs: int, unknown: int, events: int) -> list[Check]:
    """Return the checks of what is heard at all; the silent queue managers are those of the estate without an event."""
    checks = []
    if not silent_qmgrs:
        reason = f"{qmgrs} of {as_count(qmgrs, 'queue manager')} of the estate heard"
        checks.append(Check(subject="coverage", verdict=Fitness.FIT, reason=reason))
    else:
        verdict = Fitness.UNFIT if len(silent_qmgrs) == qmgrs else Fitness.LIMITED
        reason = f"no event of {', '.join(silent_qmgrs)}, {len(silent_qmgrs)} of {as_count(qmgrs, 'queue manager')}"
        remedy = "look at their feed; one that is idle sends HEARTBEAT events"
        checks.append(Check(subject="coverage", verdict=verdict, reason=reason, remedy=remedy))
    if unknown:
        verdict = _of_loss(unknown / (unknown + events), at_least=Fitness.LIMITED)
        reason = f"{as_count(unknown, 'event')} of {unknown + events:,} with names that the estate lacks"
        remedy = "add them to the estate: `mqtwin estate import` writes it from the site's definitions"
        checks.append(Check(subject="coverage", verdict=verdict, reason=reason, remedy=remedy))
    return checks


def check_job(job: JobFigures) -> list[Check]:
    """Return the checks of a running job."""
    checks = [_check_latency(job.latency)]
    checks += [] if job.lateness is None or job.lateness.p50_s > HISTORY_S else [_check_lateness(job.lateness)]
    if job.limits is None:
        reason = "descriptors, memory and lag of the job are not known"
        checks.append(_limited("job", reason, "start the job with --status-file, and give the file here, too"))
        return checks
    if job.beat_age_s is not None:
        verdict = _graded(job.beat_age_s, FIT_BEHIND_S, LIMITED_BEHIND_S)
        reason = f"its last sign of life is {as_span(job.beat_age_s)} old"
        checks.append(_check("job", verdict, reason, "look at the log of the job: it may have ended"))
    if job.behind is not None:
        verdict = Fitness.FIT if job.behind <= FIT_BEHIND else Fitness.LIMITED
        reason = f"{as_count(job.behind, 'record')} of a partition not yet read"
        checks.append(_check("job", verdict, reason, "wait until it has caught up, or give it more cores"))
    for use in job.limits:
        verdict = _graded(use.used, FIT_USE * use.limit, LIMITED_USE * use.limit)
        checks.append(_check("job", verdict, f"{use.used:,} of {use.limit:,} {use.noun} in use", use.remedy))
    return checks


# --- of a store; None: fit -------------------------------------------------------------------------------------------


def _check_coverage(store: StoreCommission) -> Check | None:
    if not store.events:
        return _limited("coverage", "no event of it", "look at the feed of its queue managers, or it was idle")
    if store.has_levels_only:
        reason = (
            f"known by {as_count(store.measurements, 'measurement')} alone, no put or get of {_its_queues(store)} is"
            " reported"
        )
        return _limited("coverage", reason, "report its puts and gets: statistics, accounting or an activity trace")
    if store.seen:
        reason = f"events are a sample: {'; '.join(store.seen)}"
        return _limited("coverage", reason, "keep measuring it: each measurement corrects what the events lack")
    if store.puts >= MANY_PUTS and not store.gets:
        reason = f"{as_count(store.puts, 'put')} and no get at all: its gets may not be reported"
        return _limited("coverage", reason, "report its gets too, unless nobody has read in this time")
    if not store.gets or not store.unmatched:
        return None
    share = store.unmatched / store.gets
    verdict, remedy = _of_loss(share), "look for puts that are not reported"
    reason = f"{store.unmatched:,} of {store.gets:,} gets ({_pct(share)}) found no message: their puts are missing"
    return None if verdict == Fitness.FIT else _check("coverage", verdict, reason, remedy)


def _check_numbering(store: StoreCommission) -> Check | None:
    if store.calls and store.numbered < store.calls * (1 - LIMITED_LOSS):
        reason = f"{store.calls - store.numbered:,} of {as_count(store.calls, 'event')} have no `seq`"
        remedy = "a feed of single calls numbers them; a feed of statistics cannot: watch fidelity instead"
        return _limited("numbering", f"{reason}: events that are missing cannot be seen", remedy)
    if not store.gaps:
        return None
    share = store.gaps / (store.gaps + store.numbered)
    reason = f"{as_count(store.gaps, 'event')} missing by `seq` ({_pct(share)})"
    remedy = "look for errors of the producers, then resync the store"
    return _check("numbering", _of_loss(share, at_least=Fitness.LIMITED), reason, remedy)


def _check_units(store: StoreCommission) -> Check | None:
    if not store.counted:
        return None
    share = store.counted / store.calls
    reason = f"{_pct(share)} of its events stand for several messages: their lengths are means, their times spread"
    return _limited("units", reason, "read elements as the interval elems_low to elems_high; peaks may be higher")


def _its_queues(store: StoreCommission) -> str:
    return f"its {as_count(store.queues, 'queue')}" if store.queues else "it"


def _check_sizes(store: StoreCommission) -> Check | None:
    if not store.sizes:
        return None
    remedy = "correct the estate: `mqtwin estate import --against` compares it; the twin has taken them over"
    return _limited("sizes", "; ".join(store.sizes), remedy)


def _check_fidelity(store: StoreCommission) -> Check | None:
    if store.has_levels_only:
        reason = f"the twin repeats {as_count(store.measurements, 'measurement')}: no puts and gets predict them"
        return _limited("fidelity", reason, "report its puts and gets, which measurements can then test")
    tests = max((resource.measurements for resource in store.fidelity), default=0)
    if tests < MIN_TESTS:
        had = "no measurement has" if not tests else f"only {as_count(tests, 'measurement')} tested it: too few have"
        remedy = "measure it: RMF, DISPLAY CFSTATUS or USAGE, as `mqtwin collect` and `mqtwin import` take them"
        return _limited("fidelity", f"{had} shown whether it holds what the store holds", remedy)
    low = min(store.fidelity, key=lambda resource: resource.share)
    verdict = _graded(-low.share, -FIT_FIDELITY, -LIMITED_FIDELITY)
    if verdict == Fitness.FIT:
        return None
    reason = f"{low.resource} matched in {_pct(low.share)} of {low.measurements:,} measurements, {_apart_text(low)}"
    if low.alignment.lag and low.alignment.matched > low.matched and low.lag_s is not None:
        when = "late" if low.alignment.lag > 0 else "early"
        aligned = _pct(low.alignment.matched / low.measurements)
        reason += f"; {aligned} if it may be {as_span(abs(low.lag_s))} {when}"
    return _check("fidelity", verdict, reason, "; ".join(store.causes) or "compare the estate with the system's sizes")


def _check_forecasts(store: StoreCommission) -> Check | None:
    if store.levels:
        return _limited("forecasts", f"time to full {store.levels}", "measure it further, every five minutes or sooner")
    if store.scores is None:
        return None
    poor = [
        f"within {as_span(own.horizon_s)} a Brier score of {own.brier:.3f}, {own.climatology:.3f} by the mere frequency"
        for own in store.scores.horizons
        if own.looks >= MIN_LOOKS and own.skill is not None and own.skill < 0
    ]
    intervals = store.scores.intervals
    if intervals.count >= MIN_INTERVALS and intervals.coverage is not None and intervals.coverage < LOW_COVERAGE:
        poor.append(f"{intervals.inside} of {intervals.count} intervals p10..p90 held the time of full")
    remedy = "teach it the site's past rises: `mqtwin warm`"
    return _limited("forecasts", "; ".join(poor), remedy) if poor else None


def _apart_text(resource: ResourceFidelity) -> str:
    """Return the hours (UTC) in which it parts: the first and the last of them, and the worst."""
    first, last = resource.apart[0].hour, resource.apart[-1].hour
    worst_hour = max(resource.apart, key=lambda own: abs(own.worst_pct))
    span = f"in the hour from {first[:16]}" if first == last else f"in hours from {first[:16]} to {last[:16]}"
    side = "above" if worst_hour.worst_pct > 0 else "below"
    text = f"apart {span}, most from {worst_hour.hour[:16]} with {abs(worst_hour.worst_pct):.1f} points {side}"
    return text.replace("T", " ")


def _check_latency(latency: Latency | None) -> Check:
    if latency is None:
        return _limited("latency", "no state record was written in this time", "look whether the job runs")
    if latency.p50_s > HISTORY_S:
        reason = f"the events are history, {as_span(latency.p50_s)} old when their state was written"
        return _limited("latency", f"{reason}: latency cannot be known", "ask again on live events")
    verdict = _graded(latency.p99_s, FIT_LATENCY_S, LIMITED_LATENCY_S)
    reason = f"event to state p50 {latency.p50_s:.2f} s, p99 {latency.p99_s:.2f} s in {latency.records:,} state records"
    return _check("latency", verdict, reason, "look at the pace of the feed, then at `batch_ms` in the log of the job")


def _check_lateness(lateness: Latency) -> Check:
    """Return the check of a feed. One of long intervals is late by them, however fast the job is."""
    verdict = Fitness.FIT if lateness.p99_s <= LIMITED_LATENCY_S else Fitness.LIMITED
    times = f"p50 {as_span(lateness.p50_s)}, p99 {as_span(lateness.p99_s)}"
    remedy = "shorten the interval of the feed, such as STATIME, ACCTIME or STATINT: alerts come that much later"
    return _check("latency", verdict, f"events are known {times} after they happened", remedy)


# --- words -----------------------------------------------------------------------------------------------------------


def _all_covered(stores: Sequence[StoreCommission]) -> str:
    queues = sum(store.queues for store in stores)
    heard = queues - sum(len(store.silent_queues) for store in stores)
    return f"{as_count(len(stores), 'store')}, {heard} of {as_count(queues, 'queue')} heard"


def _all_faithful(stores: Sequence[StoreCommission]) -> str:
    tested = [resource for store in stores for resource in store.fidelity]
    matched, tests = sum(own.matched for own in tested), sum(own.measurements for own in tested)
    return f"{as_count(len(stores), 'store')} matched {_pct(matched / tests)} of {tests:,} measurements of resources"


def _all_forecast(stores: Sequence[StoreCommission]) -> str:
    settled = [store.scores for store in stores if store.scores is not None]
    looks = sum(max((own.looks for own in scores.horizons), default=0) for scores in settled)
    if not looks:
        return f"{as_count(len(stores), 'store')}: nothing rose, so no forecast is settled"
    intervals = sum(scores.intervals.count for scores in settled)
    inside = sum(scores.intervals.inside for scores in settled)
    held = f", {inside} of {as_count(intervals, 'interval')} held the time of full" if intervals else ""
    return f"{as_count(looks, 'look')} ahead settled, better than the mere frequency or too few to say{held}"


def _check(subject: str, verdict: Fitness, reason: str, remedy: str) -> Check:
    return Check(subject=subject, verdict=verdict, reason=reason, remedy="" if verdict == Fitness.FIT else remedy)


def _limited(subject: str, reason: str, remedy: str) -> Check:
    return _check(subject, Fitness.LIMITED, reason, remedy)


def _graded(value: float, fit: float, limited: float) -> Fitness:
    return Fitness.FIT if value <= fit else Fitness.LIMITED if value <= limited else Fitness.UNFIT


def _of_loss(share: float, *, at_least: Fitness = Fitness.FIT) -> Fitness:
    return max(at_least, _graded(share, FIT_LOSS, LIMITED_LOSS), key=lambda verdict: verdict.rank)


def _pct(share: float) -> str:
    return f"{100 * share:.1f} %"
