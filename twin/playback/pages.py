"""Pages: how often people are called, by the twin and by common rules, and whether a call was right.

- A **page** is an incident of the alerts topic, whatever its conditions, from when it called somebody until nothing of
  it is a page any more (`twin.records.Incidents`). A rule calls in the same way: once, and again only after ten minutes
  of calm. The rules read the same samples as the twin, twice as often as usual.
- Fillings of a store that ended in 2192 are found from the refused puts of the recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

import numpy as np

from kernels.clock import SECOND
from twin.playback.samples import STEP
from twin.playback.timeline import Series
from twin.records import AlertRecord, Change, Incidents
from twin.state.arrays import Array

# --- fillings ---------------------------------------------------------------------------------------------------------
# Two refused puts belong to one filling unless 15 minutes without one lie between them and the resource that was full
# fell below 90 % in that time. The onset is determined for that resource and for the bytes of the messages held, and
# the earlier one counts: a data set begins to rise only when the offload rules apply, but messages piled up before.

MINUTE = 60 * SECOND
PAUSE = 15 * MINUTE  # time without a 2192 after which a filling may be over
WELL_BELOW = 90.0  # percent: it is over if usage fell below this in the pause
FALL = 5.0  # points: minimum fall that ends the search for the onset
MIN_RISE = 10.0  # points: minimum rise after a level stretch
STRETCH = 30 * MINUTE  # minimum length of a level stretch
LEVEL, MIN_LEVEL = 0.15, 2.0  # range of a level stretch: share of the rise, points
NEAR, MIN_NEAR = 0.05, 1.0  # distance from the base level below which usage is not rising: share of the rise, points


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """Filling of a store. Times in microseconds since 1970."""

    store: str
    resource: str
    onset: int
    first: int  # 2192
    last: int  # 2192
    refused: int  # number of puts with 2192

    @property
    def seconds(self) -> float:
        """Seconds from the onset to the first 2192."""
        return (self.first - self.onset) / SECOND


def fillings(series: Series) -> list[Filling]:
    """Return the fillings of a store in order of time."""
    result = []
    for start, end in _runs(series):
        first, last = int(series.refused[start]), int(series.refused[end - 1])
        sample = _sample(series, first)
        column = _full_resource(series, first)
        began = min(onset(series.usage[: sample + 1, column]), onset(_of_the_end(series.size[: sample + 1])))
        result.append(
            Filling(
                store=series.store,
                resource=series.resources[column],
                onset=min(int(series.times[began]), first),
                first=first,
                last=last,
                refused=end - start,
            )
        )
    return result


def onset(usage: Array) -> int:
    """Return the index in `usage`, f8[n], percent, STEP apart, at which the rise to the last value began: the last one
    near the base level before it.

    The base level is, going back, the first of: the lowest point after a fall of more than half of the rise since then,
    and more than FALL; the level of a stretch of at least STRETCH, and as long as the rise since then, in which usage
    stayed within LEVEL of that rise; the minimum.
    """
    end = len(usage) - 1
    top = level = float(usage[end])
    start = lowest = end
    for i in range(end, -1, -1):
        value = float(usage[i])
        if value <= level:
            lowest, level = i, value
        start = i
        if value - level > max(FALL, (top - level) / 2):
            start = lowest
            break
        length = max(STRETCH // STEP, end - i)
        if i >= length and top - value >= MIN_RISE and _is_level(usage[i - length : i + 1], top - value):
            start = i - length // 2
            level = min(level, float(np.median(usage[i - length : start])))
            break
    near = level + max(MIN_NEAR, NEAR * (top - level))
    still = np.flatnonzero(usage[start:] <= near)
    return start + (int(still[-1]) if still.size else 0)


def _is_level(stretch: Array, rise: float) -> bool:
    low, high = np.quantile(stretch, [0.05, 0.95])
    return bool(high - low <= max(MIN_LEVEL, LEVEL * rise))


def _runs(series: Series) -> list[tuple[int, int]]:
    """Return the runs of refused puts of one filling: (first, index behind the last)."""
    refused = series.refused
    if not refused.size:
        return []
    edges = [0]
    for i in (np.flatnonzero(np.diff(refused) >= PAUSE) + 1).tolist():
        before, after = _sample(series, int(refused[i - 1])), _sample(series, int(refused[i]))
        column = _full_resource(series, int(refused[edges[-1]]))
        if series.usage[before : after + 1, column].min() < WELL_BELOW:
            edges.append(i)
    return list(zip(edges, [*edges[1:], refused.size], strict=True))


def _sample(series: Series, time: int) -> int:
    """Return the index of the last sample before a time, at least 0."""
    return max(0, int(np.searchsorted(series.times, time, side="right")) - 1)


def _full_resource(series: Series, time: int) -> int:
    """Return the column of the resource with the highest usage in the samples around a refused put."""
    sample = _sample(series, time)
    return int(np.argmax(series.usage[sample : sample + 2].max(axis=0)))


def _of_the_end(size: Array) -> Array:
    """Return sizes as percent of the last one."""
    return 100.0 * size / max(1, int(size[-1]))


# --- pages ------------------------------------------------------------------------------------------------------------

TWIN = "twin"  # as one who calls
EARLY = 5 * MINUTE  # time before the onset from which a page is right
HORIZON = 120 * MINUTE  # at the end of a recording, in which what follows a page is not known
CALM_FOR = 10 * MINUTE  # time without an alarm after which a rule calls again
HYSTERESIS = 2.0  # points below a fixed line at which its page is over
FULL = 100.0  # percent


class Verdict(StrEnum):
    """Verdicts on a page. Right ones are IN_TIME or LATE."""

    IN_TIME = "in time"
    LATE = "late"  # it opened after the first 2192 of its filling
    FALSE = "false"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Alarm:
    """Page of a store, or any other alarm. Times in microseconds since 1970."""

    opened: int
    cleared: int | None  # None: open at the end
    named: str | None = None  # first queue named
    notices: int = 1  # messages that people get: the call and its escalations
    incident: str = field(default="", compare=False)  # id of that of a page; "": of another alarm

    def is_open(self, time: int) -> bool:
        """Return True if the alarm was open just before and at `time`."""
        return self.opened < time and (self.cleared is None or self.cleared >= time)


# --- verdicts --------------------------------------------------------------------------------------------------------


def page_verdicts(
    series: Series, fillings: Sequence[Filling], pages: Sequence[Alarm], *, withdrawing_counts: bool = True
) -> list[Verdict]:
    """Return the verdict on each page about a store.

    A page is right if it opens between EARLY before the onset of a filling and its last 2192, or if a put was refused
    with 2053 while it was open; else it is false, even if it is still open at the 2192. One that opens in the last
    HORIZON of the recording and is open at its end is undecided: a filling had no time to follow. With
    `withdrawing_counts` one that is over before the first 2192 is false.
    """
    verdicts = []
    for page in pages:
        owner = owner_of(page, fillings)
        if is_undecided(series, page, owner):
            verdicts.append(Verdict.UNDECIDED)
        elif owner is not None and not (withdrawing_counts and is_withdrawn(page, owner)):
            verdicts.append(Verdict.IN_TIME if page.opened < owner.first else Verdict.LATE)
        else:
            verdicts.append(Verdict.IN_TIME if _had_full_queue(series, page) else Verdict.FALSE)
    return verdicts


def owner_of(alarm: Alarm, fillings: Sequence[Filling]) -> Filling | None:
    """Return the filling in which an alarm opened."""
    return next((filling for filling in fillings if filling.onset - EARLY <= alarm.opened <= filling.last), None)


def is_undecided(series: Series, alarm: Alarm, owner: Filling | None) -> bool:
    """Return True if a filling had no time to follow an alarm. owner: the filling in which it opened."""
    return owner is None and alarm.cleared is None and alarm.opened > int(series.times[-1]) - HORIZON


def is_withdrawn(alarm: Alarm, owner: Filling | None) -> bool:
    """Return True if an alarm opened in a filling, `owner`, and was over before the first 2192."""
    return owner is not None and alarm.cleared is not None and alarm.cleared < owner.first


def lead_of(filling: Filling, alarms: Sequence[Alarm]) -> float | None:
    """Return the lead of the alarm that was open just before the first 2192, seconds; None without one.

    It counts from EARLY before the onset at the earliest: before that nothing could be detected.
    """
    opened = next((alarm.opened for alarm in alarms if alarm.is_open(filling.first)), None)
    return None if opened is None else (filling.first - max(opened, filling.onset - EARLY)) / SECOND


def is_heard(filling: Filling, pages: Sequence[Alarm]) -> bool:
    """Return True if any page was open at a 2192 of a filling."""
    return any(
        page.opened <= filling.last and (page.cleared is None or page.cleared >= filling.first) for page in pages
    )


def _had_full_queue(series: Series, page: Alarm) -> bool:
    """Return True if a put was refused with 2053 while a page was open."""
    end = series.times[-1] if page.cleared is None else page.cleared
    return bool(np.any((series.queue_full >= page.opened) & (series.queue_full <= end)))


# --- who calls -------------------------------------------------------------------------------------------------------


def from_incidents(records: Iterable[AlertRecord], store: str, *, watches: bool = False) -> list[Alarm]:
    """Return the pages of one store, in order of time; with `watches` an incident counts from its opening."""
    incidents = Incidents()
    pages: dict[str, Alarm] = {}
    for record in records:
        if record.data.store != store:
            continue
        time = _microseconds(record.data.time)
        for incident, change, _ in incidents.take(record):
            page = pages.get(incident.id)
            if page is None and (change is Change.PAGED or (watches and incident.is_open)):
                named = record.data.fillers[0].queue if record.data.fillers else None
                pages[incident.id] = Alarm(time, None, named, incident=incident.id)
            elif page is not None:
                is_open = incident.is_open if watches else incident.is_calling
                cleared = None if is_open else page.cleared or time
                is_notice = change in (Change.PAGED, Change.ESCALATED)
                pages[incident.id] = replace(page, cleared=cleared, notices=page.notices + is_notice)
    return sorted(pages.values(), key=lambda page: page.opened)


def _microseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * SECOND)


def static_pages(series: Series, percent: float, *, structure_only: bool = False) -> list[Alarm]:
    """Return the pages of a fixed line. Arguments: those of `static`."""
    return merge(static(series, percent, structure_only=structure_only, hysteresis=HYSTERESIS), CALM_FOR)


def static(series: Series, percent: float, *, structure_only: bool = False, hysteresis: float = 0.0) -> list[Alarm]:
    """Return the alarms of a fixed line: open at or above it, cleared below, as IXC585E and IXC586I. `structure_only`:
    of entries and elements only, as structure full monitoring of z/OS.
    """
    columns = [
        column for column, name in enumerate(series.resources) if not structure_only or name in {"entries", "elements"}
    ]
    usage = series.usage[:, columns].max(axis=1, initial=0.0)
    above: Array = usage >= percent
    decided = np.where(above | (usage < percent - hysteresis), np.arange(usage.size), 0)
    return from_condition(series.times, above[np.maximum.accumulate(decided)])


@dataclass(frozen=True, slots=True)
class LineRule:
    """Rule of a straight line, as NodeFilesystemSpaceFillingUp of node-exporter's mixin. Times in seconds."""

    free: float  # percent: free space below which it applies
    window: float  # of history
    ahead: float  # to full below which it applies
    hold: float  # for which both must hold


# That of the mixin with minutes instead of hours: a warning 24 minutes ahead, critical 4 minutes ahead.
IN_MINUTES = (LineRule(40, 360, 1440, 60), LineRule(20, 360, 240, 60))


def straight_line_pages(series: Series) -> list[Alarm]:
    """Return the pages of a straight line through the last six minutes."""
    return merge(straight_line(series, IN_MINUTES), CALM_FOR)


def straight_line(series: Series, rules: Sequence[LineRule]) -> list[Alarm]:
    """Return alarms that are open while any rule holds for any resource."""
    fires = np.zeros(series.times.size, np.bool_)
    for usage in series.usage.T:
        for rule in rules:
            level, slope = predict_linear(usage, rule.window)
            predicted = level + slope * rule.ahead
            fires |= hold_for((FULL - usage < rule.free) & (predicted > FULL), rule.hold)
    return from_condition(series.times, fires)


def predict_linear(usage: Array, window: float, least: int = 2) -> tuple[Array, Array]:
    """Return level and slope of the least-squares line through the last `window` seconds, as in Prometheus, of f8[n]
    percent, STEP apart: f8[n], percent, and f8[n], percent/s, 0 with fewer than `least` samples.
    """
    count = usage.size
    reach = round(window * SECOND / STEP)
    last = np.arange(count)
    first = np.maximum(last - reach, 0)
    size = (last - first + 1).astype(float)
    offset = usage - usage.mean() if count else usage  # keeps the sums small
    sums = np.concatenate([[0.0], np.cumsum(offset)])
    weighted = np.concatenate([[0.0], np.cumsum(offset * last)])
    y = sums[last + 1] - sums[first]
    xy = weighted[last + 1] - weighted[first] - last * y  # x: samples from now, 0 and below
    x = -(size - 1) * size / 2
    xx = (size - 1) * size * (2 * size - 1) / 6
    below = size * xx - x * x
    has_slope = size >= max(2, least)
    slope = np.where(has_slope, (size * xy - x * y) / np.where(has_slope, below, 1.0), 0.0)
    level = (y - slope * x) / size + (usage.mean() if count else 0.0)
    return level, slope / (STEP / SECOND)


def hold_for(condition: Array, seconds: float) -> Array:
    """Return bool[n], True where a condition has held for `seconds`, as `for:` of a Prometheus rule."""
    last = np.arange(condition.size)
    since = np.maximum.accumulate(np.where(condition, -1, last))  # the last sample at which it did not hold
    return np.asarray(condition & (last - since - 1 >= seconds * SECOND / STEP))


def from_condition(times: Array, holds: Array) -> list[Alarm]:
    """Return the alarms of a condition evaluated at `times`, i8[n]. holds: bool[n]."""
    edges = np.flatnonzero(np.diff(holds, prepend=False, append=False))
    moments = [*times.tolist(), None]
    return [Alarm(moments[start], moments[end]) for start, end in edges.reshape(-1, 2).tolist()]


def merge(alarms: Iterable[Alarm], calm_for: int = 0) -> list[Alarm]:
    """Merge alarms that overlap or touch, in order of time; the first that names a queue names that of the result."""
    joined: list[Alarm] = []
    for alarm in sorted(alarms, key=lambda alarm: alarm.opened):
        last = joined[-1] if joined else None
        if last is None or (last.cleared is not None and last.cleared + calm_for < alarm.opened):
            joined.append(alarm)
            continue
        ends = last.cleared, alarm.cleared
        cleared = None if None in ends else max(end for end in ends if end is not None)
        joined[-1] = Alarm(last.opened, cleared, last.named or alarm.named)
    return joined
