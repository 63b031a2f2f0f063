"""Proof of advice: a recording replayed with each plan; and regular rises of recordings, proposed as planned work.

- A plan, or a smaller size, is replayed as if it had been in effect from the beginning of the recording to its end, its
  puts as requests, as `mqtwin replay --demands` does with the changed estate. A plan holds if no put is refused, a
  smaller size if it refuses no more puts than the present one, each with a margin if one is requested. A plan that does
  not hold is enlarged until it does, or left out. Described in docs/what-if.md.
- Regular rises are those at the same hour on most days (docs/planned-work.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta, tzinfo
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from kernels.clock import SECOND
from twin.base.conditions import Condition
from twin.base.errors import UsageError
from twin.base.units import EventTime, as_text, event_us, in_zone
from twin.estate import Estate, as_estate
from twin.estate.planned import planned_text
from twin.estate.settings import Settings, changed_config
from twin.events import Decoded
from twin.planning.advise import (
    ALONE,
    LARGER,
    STEPS,
    Advice,
    Plan,
    asking,
    new_warnings,
    plan_of,
    size_in,
    sizes,
    with_doubled,
    with_size,
)
from twin.planning.whatif import FillOutcome, Moment, moment_of
from twin.playback.replays import Player, StoreRefusals, chunks_of, decoded_chunks, play
from twin.playback.samples import STEP, Alerts, Samples, Usage, usage_of
from twin.playback.timeline import Timeline
from twin.recordings.files import Chunk
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore
from twin.stores.open import open_message_store

AS_IT_IS = "as it is"  # title of a proof without any plan

_MAX_DOUBLINGS = 6  # of what is full in the recording, until a plan is left out
_HALVINGS = 2  # of the way between sizes that do not hold and sizes that do
_HALVINGS_REQUIRED = 5  # likewise where settings are required: their plans are for good


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """A recording replayed with a plan, its puts as requests."""

    title: str  # title of the plan; "as it is" without one; of a smaller size its name
    recorded: int  # messages refused in the recording because a store was full
    puts: int  # messages that were asked to be put
    refused: int  # messages refused here because a store was full
    first_full: str | None  # time of the first of them; None: none is refused
    full: tuple[str, ...]  # the resources that were full then
    unserved_gets: int  # gets of the recording whose message was refused here
    peak_pct: float  # the highest of `usage_pct`
    fullest: str | None = None  # the resource that has it
    times: tuple[float, ...]  # f8 seconds since 1970, samples
    usage_pct: tuple[float, ...]  # the fullest resource of the store at each sample, percent


class Hindsight(msgspec.Struct, frozen=True, kw_only=True):
    """Events after a moment, replayed as it is and with other settings from then on.

    Attributes:
        store: the store.
        time: the moment, event time as text.
        before: the events since, replayed as it is; its `recorded` is what was refused.
        after: the same with the settings.
    """

    store: str
    time: str
    before: Proof
    after: Proof


class Proven(NamedTuple):
    """Advice that holds in a recording.

    Attributes:
        advice: what holds of the advice that was asked about.
        proofs: as it is, with required settings alone if there are some, then with each plan and each smaller size.
    """

    advice: Advice
    proofs: tuple[Proof, ...]


def prove(recording: str | Path, moment: Moment, advice: Advice, margin_pct: float = 0.0) -> Proven:
    """Return advice with the plans and smaller sizes that hold in a recording, larger where they have to be.

    Args:
        recording: the recording, from its beginning to its end.
        moment: that of the advice.
        advice: about the store of the moment.
        margin_pct: percent of its resources that plans leave free in the recording, 0 to 50.

    Raises:
        UsageError: the recording cannot be read, or has no event of the store; the margin is out of bounds.
    """
    if not 0 <= margin_pct <= 50:
        raise UsageError(f"margin of {margin_pct:g} percent; expected: 0 to 50")
    return _Prover(Path(recording), moment, advice, margin_pct).prove()


@dataclass(slots=True)
class _Prover:
    recording: Path
    moment: Moment
    advice: Advice
    margin_pct: float

    def prove(self) -> Proven:
        as_it_is = self._replay(AS_IT_IS, {})
        proofs, left_out = [as_it_is], list(self.advice.left_out)
        if self.advice.required:
            proofs.append(self._replay(ALONE, self.advice.required))
        plans: list[Plan] = []
        smaller: dict[str, Settings] = {}
        for plan in self.advice.plans:
            held, proof = self._hold(plan)
            reasons = [self._refuted(proof, as_it_is)] if held is None else self._warnings(held)
            left_out += [f"{proof.title}: {reason}" for reason in reasons]
            if held is not None and not reasons and all(held.settings != other.settings for other in plans):
                plans.append(held)
                if held.title == ALONE:
                    break
                proofs.append(proof)
        for name, settings in self.advice.smaller.items():
            held_settings, proof = self._hold_smaller(name, settings, as_it_is)
            if held_settings is None:
                left_out.append(f"{name} smaller: {self._refuted(proof, as_it_is)}")
            else:
                smaller[name] = held_settings
                proofs.append(proof)
        advice = msgspec.structs.replace(self.advice, plans=tuple(plans), left_out=tuple(left_out), smaller=smaller)
        return Proven(advice, tuple(proofs))

    def _refuted(self, proof: Proof, as_it_is: Proof) -> str:
        """Return the reason for leaving a plan or size out."""
        if not proof.refused:
            return f"at most {proof.peak_pct:.1f} % in use in {self.recording.name}, of {proof.fullest}"
        return f"{proof.refused:,} of {proof.puts:,} refused in {self.recording.name}, {as_it_is.refused:,} as it is"

    def _warnings(self, plan: Plan) -> list[str]:
        changed = changed_config(self.moment.twin.config, plan.settings)
        return new_warnings(self.moment.estate, changed)

    # --- plans ---------------------------------------------------------------------------------------------------

    def _hold(self, plan: Plan) -> tuple[Plan | None, Proof]:
        """Return a plan, enlarged as the recording requires, and its proof; None and the last proof: none holds."""
        twin, proof = self.moment.twin, self._replay(plan.title, plan.settings)
        if self._has_room(proof):
            return plan, proof
        title = plan.title if plan.title.endswith(LARGER) else f"{plan.title}, and {LARGER}"
        if plan.title == ALONE:
            title = LARGER
        settings, required = plan.settings, self.advice.required
        full: tuple[str | None, ...] = proof.full if proof.refused else (proof.fullest,)
        for _ in range(_MAX_DOUBLINGS):
            doubled = with_doubled(twin, settings, full, required)
            larger = None if doubled is None else self._try(title, doubled)
            if doubled is None or larger is None:
                return None, proof
            held, proof = larger
            if self._holds(held, proof):
                return self._narrow(settings, held, proof)
            settings = doubled
            if proof.refused or self._has_room(proof):
                full = proof.full or (held.outcome.resource,)
            else:
                full = (proof.fullest,)
        return None, proof

    def _holds(self, plan: Plan, proof: Proof) -> bool:
        return self._has_room(proof) and self.advice.promise.is_kept(plan.outcome)

    def _has_room(self, proof: Proof) -> bool:
        """Return True if nothing was refused and the margin stayed free."""
        return not proof.refused and proof.peak_pct <= 100.0 - self.margin_pct

    def _try(self, title: str, settings: Settings) -> tuple[Plan, Proof] | None:
        """Return a plan and its proof; None: a size is larger than it may be."""
        try:
            outcome = self._ask(settings)
        except UsageError:
            return None
        return plan_of(self.moment.twin, title, settings, outcome), self._replay(title, settings)

    def _narrow(self, failing: Settings, plan: Plan, proof: Proof) -> tuple[Plan, Proof]:
        """Return a plan that holds and is nearer to settings that do not, and its proof."""
        for _ in range(_HALVINGS_REQUIRED if self.advice.required else _HALVINGS):
            middle = self._between(failing, plan.settings)
            tried = None if middle in (failing, plan.settings) else self._try(plan.title, middle)
            if tried is None:
                break
            if self._holds(*tried):
                plan, proof = tried
            else:
                failing = middle
        return plan, proof

    def _between(self, low: Settings, high: Settings) -> Settings:
        """Return settings whose sizes are half-way between those of others, in steps."""
        twin, middle = self.moment.twin, dict(high)
        known = sizes(twin)
        for name in [name for name in high if name in known or name == "scm_max_size"]:
            small, large = size_in(low, name) or known.get(name, 0), size_in(high, name)
            step = max(1, (known.get(name) or large) // STEPS)
            if large - small > step:
                middle = with_size(twin.config, middle, name, small + (large - small) // 2 // step * step)
        return middle

    # --- smaller sizes -------------------------------------------------------------------------------------------

    def _hold_smaller(self, name: str, settings: Settings, as_it_is: Proof) -> tuple[Settings | None, Proof]:
        """Return the smallest sufficient size and its proof; None and the first proof if no smaller size suffices."""
        twin, proof = self.moment.twin, self._replay(name, settings)
        if proof.refused <= as_it_is.refused:
            return settings, proof
        held: Settings | None = None
        now = sizes(twin)[name]
        step = max(1, now // STEPS)
        low, high = size_in(settings, name) // step, now // step
        for _ in range(_HALVINGS):
            middle = (low + high) // 2
            if middle == low:
                break
            larger = with_size(twin.config, {}, name, middle * step)
            tried = self._replay(name, larger)
            if tried.refused <= as_it_is.refused and self.advice.promise.is_kept(self._ask(larger)):
                held, proof, high = larger, tried, middle
            else:
                low = middle
        return held, proof

    # --- replays -------------------------------------------------------------------------------------------------

    def _ask(self, settings: Settings) -> FillOutcome:
        return asking(self.moment, self.advice.promise, self.advice.traffic)(settings)

    def _replay(self, title: str, settings: Settings) -> Proof:
        estate, store = self.moment.estate, self.advice.store
        return replay_with(pieces_of(self.recording, estate, store), estate, store, title, settings)


def hindsight(timeline: Timeline, store: str, time: EventTime, settings: Settings) -> Hindsight:
    """Return the effect that other settings, from a moment on, would have had on the events since.

    Puts since then are requests, refused ones too; gets happen as recorded.

    Args:
        timeline: the recording, played; it ends some time after the moment.
        store: name of the store, which holds messages.
        time: the moment.
        settings: attributes as for `what_if`.

    Raises:
        UsageError: as `what_if`; the store has no event by then, or not all of its puts are reported.

    Examples:
        >>> timeline = twin.Timeline("friday.arrow", "estate.toml")
        >>> moment = timeline.times[len(timeline.times) // 2]
        >>> twin.hindsight(timeline, "QSG1/APP1", moment, {"size": "2G"}).after.refused
        0
    """

    def proof(title: str, changes: Settings) -> Proof:
        twin = timeline.twin_at(store, time)
        if twin is None:
            raise UsageError(f"{store}: no event of it until then; expected: a later time")
        since, events = moment_of(timeline.estate, twin), timeline.events_since(store, time)
        if not since.is_whole:
            raise UsageError(f"{store}: not all puts are reported; hindsight needs them; expected: another store")
        return replay_with(events, timeline.estate, store, title, changes, since=since)

    title = ", ".join(f"{name}={value}" for name, value in settings.items())
    return Hindsight(
        store=store, time=as_text(event_us(time)), before=proof(AS_IT_IS, {}), after=proof(title, settings)
    )


# --- replays --------------------------------------------------------------------------------------------------------


def pieces_of(recording: str | Path, estate: Estate, store: str) -> Iterator[Decoded]:
    """Yield the events of a store in a recording. UsageError: it cannot be read, or has none."""
    count = 0
    for own in chunks_of(decoded_chunks(recording, estate), estate, store):
        count += len(own)
        yield own
    if not count:
        raise UsageError(f"{recording} has no event of {store}; expected: a recording of it")


def replay_with(
    pieces: Iterable[Decoded], estate: Estate, store: str, title: str, settings: Settings, since: Moment | None = None
) -> Proof:
    """Return the proof of settings: a store's own events are replayed, its puts as requests; others do not change it.
    They are of the store, as of `pieces_of`; since a moment its twin continues with them, else it is empty.
    """
    config = changed_config(estate.stores[store] if since is None else since.twin.config, settings)
    estate = replace(estate, stores={**estate.stores, store: config})
    twin = open_message_store(estate, store, forecasts=False) if since is None else since.with_settings(settings)
    samples, alerts = Samples(estate, usage_of), Alerts()
    player = play(pieces, estate, samples, alerts, player=Player(estate, {store: twin}, demands=True))
    full = [alert for alert in alerts.alerts if alert.condition == Condition.FULL]
    refusals, sampled = player.refusals.get(store, StoreRefusals()), samples.by_store[store]
    first_full = refusals.replayed.first_full
    fullest = [round(max(usage.values(), default=0.0), 3) for usage in sampled.values()]
    peak: Usage = max(sampled.values(), key=lambda usage: max(usage.values(), default=0.0), default={})
    return Proof(
        title=title,
        recorded=refusals.recorded.full,
        puts=refusals.replayed.puts,
        refused=refusals.replayed.full,
        first_full=None if first_full is None else as_text(first_full),
        full=tuple(dict.fromkeys(name for alert in full for name in (alert.resource, *alert.resources))),
        unserved_gets=refusals.unserved_gets,
        peak_pct=max(fullest, default=0.0),
        fullest=max(peak, key=lambda resource: peak[resource], default=None),
        times=tuple((step + 1) * STEP / SECOND for step in sampled),
        usage_pct=tuple(fullest),
    )


# --- rises proposed as planned work -----------------------------------------------------------------------------------

_LEAST_PCT = 5.0  # of the store, that a rise takes [assumed]
_ENDS_AT = 0.3  # of a rise, that is taken back where it has ended
_SAME_MIN = 30  # minutes by which the beginnings of the same work differ at most
_LEAST_DAYS = 3
_MOST_DAYS = 0.6  # of the days, on which it rises
_ROUND_MIN = 5  # minutes, of windows
_DAY_MIN = 1_440
_MINUTE = 60 * SECOND
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """Planned work that is proposed.

    Attributes:
        store: name of the store.
        content: the plan, as in a PLAN event.
        days: days of the recordings on which the store rose so, of those on which the rule has it.
        of_days: number of the latter.
        took_pct: least and highest percentage of the store that a rise took.
    """

    store: str
    content: dict[str, Any]
    days: int
    of_days: int
    took_pct: tuple[float, float]

    @property
    def text(self) -> str:
        """The table [[planned]] of the estate, with what it is from."""
        low, high = self.took_pct
        return (
            f"# {self.days} of {self.of_days} days, {low:.0f} to {high:.0f} %\n{planned_text(self.store, self.content)}"
        )


class _Sample(NamedTuple):
    """A store at the end of a STEP. puts, depths: by queue."""

    usage_pct: float
    puts: Mapping[str, int]
    depths: Mapping[str, int]


class _Rise(NamedTuple):
    """A rise of a store. begin, end: microseconds; day, minute: those of its beginning, local time."""

    begin: int
    end: int
    queue: str
    took_pct: float
    day: date
    minute: int


def find_plans(
    recordings: Sequence[str | Path], estate: Estate | str | Path, on_chunk: Callable[[Chunk, int], None] | None = None
) -> list[Proposal]:
    """Return the work that recurs in recordings, by store and hour of the day.

    Args:
        recordings: files (`.ndjson`, `.ndjson.zst`, `.arrow`), each played from empty stores.
        estate: their estate, or the file of it.
        on_chunk: as for `replay`.

    Raises:
        UsageError: a file is missing, has an unknown suffix, or cannot be read to its end.
    """
    described = as_estate(estate)
    zone, rises, days = described.site.clock, dict[str, list[_Rise]](), dict[str, set[date]]()
    puts: dict[str, list[tuple[int, Mapping[str, int]]]] = {}
    for path in recordings:
        samples = Samples(described, _sample)
        play(path, described, samples, on_chunk=on_chunk)
        for store, by_step in sorted(samples.by_store.items()):
            times = [(step + 1) * STEP for step in by_step]
            own = list(by_step.values())
            rises.setdefault(store, []).extend(_rises(times, own, zone))
            days.setdefault(store, set()).update(in_zone(time, zone).date() for time in times)
            puts.setdefault(store, []).extend((time, sample.puts) for time, sample in zip(times, own, strict=True))
    return [
        proposal
        for store in sorted(rises)
        for proposal in _recurring(store, rises[store], sorted(days[store]), puts[store])
    ]


def _sample(twin: MessageStore) -> _Sample:
    rows = twin.tables.store.queues[: len(twin.queues)]
    return _Sample(
        max(twin.usage_of_maximum().values(), default=0.0),
        dict(zip(twin.queues, rows["puts"].tolist(), strict=True)),
        dict(zip(twin.queues, rows["depth"].tolist(), strict=True)),
    )


def _rises(times: Sequence[int], samples: Sequence[_Sample], zone: tzinfo) -> Iterator[_Rise]:
    """Yield the rises of a store: from where it is lowest to where it is highest before it falls again."""
    usage = [sample.usage_pct for sample in samples]
    low = high = 0
    for place, value in enumerate(usage):
        if value > usage[high]:
            high = place
        risen = usage[high] - usage[low]
        has_ended = risen >= _LEAST_PCT and usage[high] - value >= _ENDS_AT * risen
        if has_ended or (place == len(usage) - 1 and risen >= _LEAST_PCT):
            yield _rise(times, samples, (_first_above(usage, low, high), high), zone)
        if has_ended or value <= usage[low]:
            low = high = place


def _first_above(usage: Sequence[float], low: int, high: int) -> int:
    """Return the last place before a rise has begun: a store may be as low for hours, give or take a 50th of it."""
    limit = usage[low] + 0.02 * (usage[high] - usage[low])
    return next(place for place in range(high, low - 1, -1) if place == low or usage[place] <= limit)


def _rise(times: Sequence[int], samples: Sequence[_Sample], places: tuple[int, int], zone: tzinfo) -> _Rise:
    first, last = samples[places[0]], samples[places[1]]
    grown = {queue: depth - first.depths.get(queue, 0) for queue, depth in last.depths.items()}
    queue = max(sorted(grown), key=grown.__getitem__, default="")
    begin = in_zone(times[places[0]], zone)
    took = last.usage_pct - first.usage_pct
    return _Rise(times[places[0]], times[places[1]], queue, took, begin.date(), begin.hour * 60 + begin.minute)


def _recurring(
    store: str, rises: Sequence[_Rise], days: Sequence[date], puts: Sequence[tuple[int, Mapping[str, int]]]
) -> Iterator[Proposal]:
    """Yield what recurs in the rises of a store, what recurs most first."""
    left = list(rises)
    while left:
        groups = [_alike(rise, left) for rise in left]
        alike = max(groups, key=lambda group: len({rise.day for rise in group}))
        known = {_day(rise, alike[0]) for rise in alike}
        of_days = _days_of(known, days)
        if len(known) < _LEAST_DAYS:
            return
        if len(known) >= _MOST_DAYS * len(of_days):
            yield _proposed(store, alike, known, of_days, puts)
        left = [rise for rise in left if rise not in alike]


def _alike(rise: _Rise, rises: Sequence[_Rise]) -> list[_Rise]:
    """Return the rises of the same queue that begin at about the same time of day."""
    return [other for other in rises if other.queue == rise.queue and abs(_later(other, rise)) <= _SAME_MIN]


def _later(rise: _Rise, than: _Rise) -> int:
    """Return by how many minutes a rise begins later in the day than another, -720 to 719."""
    return (rise.minute - than.minute + _DAY_MIN // 2) % _DAY_MIN - _DAY_MIN // 2


def _day(rise: _Rise, first: _Rise) -> date:
    """Return the day that a rise counts to: where the first begins before midnight, those behind it do, too."""
    return rise.day - timedelta(days=(first.minute + _later(rise, first)) // _DAY_MIN)


def _days_of(known: set[date], days: Sequence[date]) -> list[date]:
    """Return the days of recordings that are weekdays on which it rose at all."""
    weekdays = {day.weekday() for day in known}
    return [day for day in days if day.weekday() in weekdays]


def _proposed(
    store: str,
    alike: Sequence[_Rise],
    known: set[date],
    of_days: Sequence[date],
    puts: Sequence[tuple[int, Mapping[str, int]]],
) -> Proposal:
    """Return a plan whose windows have all rises in them."""
    first = alike[0]
    begins = min(_later(rise, first) for rise in alike) + first.minute
    minute = begins // _ROUND_MIN * _ROUND_MIN
    lasts = max((rise.end - rise.begin) / _MINUTE + _later(rise, first) for rise in alike) + first.minute - minute
    duration = math.ceil(lasts / _ROUND_MIN) * _ROUND_MIN
    times = np.array([time for time, _ in puts])
    of_queue = np.array([counts.get(first.queue, 0) for _, counts in puts])
    messages = max(_put(times, of_queue, rise, minute, duration) for rise in alike)
    hour, minutes = divmod(minute % _DAY_MIN, 60)
    weekdays = sorted({(day.weekday() + minute // _DAY_MIN) % 7 for day in known})
    days = "FREQ=DAILY" if len(weekdays) == 7 else f"FREQ=WEEKLY;BYDAY={','.join(_WEEKDAYS[day] for day in weekdays)}"
    content = {
        "id": f"{first.queue} {hour:02}:{minutes:02}",
        "queue": first.queue,
        "rrule": f"{days};BYHOUR={hour};BYMINUTE={minutes};BYSECOND=0",
        "duration_s": duration * 60,
        "messages": _rounded_up(messages),
    }
    took = [rise.took_pct for rise in alike]
    return Proposal(
        store=store, content=content, days=len(known), of_days=len(of_days), took_pct=(min(took), max(took))
    )


def _put(times: Array, counts: Array, rise: _Rise, minute: int, duration: int) -> int:
    begin = rise.begin - ((rise.minute - minute) % _DAY_MIN) * _MINUTE
    low, high = np.searchsorted(times, (begin, begin + duration * _MINUTE), side="right")
    return max(1, int(counts[max(low, high - 1)] - counts[max(0, low - 1)]))


def _rounded_up(number: int) -> int:
    """Return a number of two digits and zeros that is at least as large."""
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step
