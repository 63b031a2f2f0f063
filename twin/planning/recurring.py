"""Rises at the same hour on most days of recordings, proposed as planned work (docs/planned-work.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta, tzinfo
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from kernels.clock import SECOND
from twin.estate import Estate, as_estate
from twin.estate.planned import planned_text
from twin.playback.replays import play
from twin.playback.samples import STEP, Samples
from twin.recordings.files import Chunk
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore
from twin.units import in_zone

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
