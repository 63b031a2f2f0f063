"""Clocks of files, compared by what they show: a log that was read in the wrong zone has the right levels too early.

Two sources that show the same level of a store (the log of one member and that of another, a log and SMF) must agree.
Where they do not, but would with one of them moved by half hours, its zone is wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations

from twin.events import Event
from twin.feeds.protocol import FORMATS

_HALF_HOUR = 1_800_000_000  # microseconds
_MAX_SHIFT = 28  # half hours: zones are 14 h ahead of UTC at most
_NEAR = 10 * 60_000_000  # microseconds within which a level is compared with the next one
_MIN_POINTS = 12
_MAX_POINTS = 2_000
_FITS = 0.02  # of the range of the levels: the mean difference of series that agree
_BETTER = 5.0  # times that a moved clock must fit better
_LEVELS = ("ents_used", "pages_used", "messages", "depth")

Series = list[tuple[int, float]]  # (microseconds, level)
Source = tuple[str, str]  # format, queue manager


def clock_lines(events: Mapping[str, Callable[[], Iterable[Event]]]) -> list[str]:
    """Return a line for each queue manager whose log was read in the wrong zone, by its levels."""
    lines: dict[Source, str] = {}
    for (store, what), sources in sorted(_series(events).items()):
        for source, other in combinations(sorted(sources), 2):
            if not FORMATS[source[0]].has_true_clock and FORMATS[other[0]].has_true_clock:
                source, other = other, source
            shift = _shift(sources[source], sources[other])
            if shift:
                by = source[0].upper() if FORMATS[source[0]].has_true_clock else source[1]
                lines.setdefault(other, _line(other[1], shift, f"{what} of {store}", by))
    return list(lines.values())


def _line(qmgr: str, shift: int, what: str, by: str) -> str:
    """Return the line about a queue manager. shift: half hours; by: whose levels its levels were compared with."""
    hours = "one hour" if abs(shift) == 2 else f"{abs(shift) / 2:g} hours"
    when = "later" if shift > 0 else "earlier"
    return f"{qmgr}: {hours} off: its levels ({what}) are those of {by} {hours} {when}; expected: --zone FILE=ZONE"


def _series(events: Mapping[str, Callable[[], Iterable[Event]]]) -> dict[tuple[str, str], dict[Source, Series]]:
    """Return the measured levels by store and name, and source."""
    series: dict[tuple[str, str], dict[Source, Series]] = defaultdict(lambda: defaultdict(list))
    for name, read in events.items():
        for event in read():
            if event["op"] != "MEASURE":
                continue
            for what, level in _levels(event):
                own = series[event["store"], what][name, event["qmgr"]]
                if len(own) < _MAX_POINTS:
                    own.append((event["time"], level))
    return series


def _levels(event: Event) -> Iterator[tuple[str, float]]:
    measured = event["measured"]
    for name in _LEVELS:
        value = measured.get(name)
        if isinstance(value, int | float):
            yield name, float(value)
    for queue in measured.get("queues") or ():
        if "depth" in queue:
            yield f"depth of {queue['name']}", float(queue["depth"])


def _shift(right: Series, other: Series) -> int:
    """Return the half hours by which the other series is to be moved to agree; 0: it does, or nothing says so."""
    if min(len(right), len(other)) < _MIN_POINTS:
        return 0
    right, other = sorted(right), sorted(other)
    levels = [level for _, level in right]
    spread = max(levels) - min(levels)
    if not spread:
        return 0
    errors = {
        shift: error
        for shift in range(-_MAX_SHIFT, _MAX_SHIFT + 1)
        if (error := _difference(right, other, shift * _HALF_HOUR)) is not None
    }
    if not errors:
        return 0
    best = min(errors, key=lambda shift: (errors[shift], abs(shift)))
    if not best or errors[best] > _FITS * spread:
        return 0
    return best if errors.get(0, spread) > max(_BETTER * errors[best], _FITS * spread) else 0


def _difference(right: Series, other: Series, moved: int) -> float | None:
    """Return the mean difference of levels near in time, with the other series moved; None: too few are near."""
    times, total, number = [time for time, _ in right], 0.0, 0
    for time, level in other:
        place = bisect_left(times, time + moved)
        near = min(
            (right[own] for own in (place - 1, place) if 0 <= own < len(right)),
            key=lambda point: abs(point[0] - time - moved),
        )
        if abs(near[0] - time - moved) <= _NEAR:
            total, number = total + abs(near[1] - level), number + 1
    return total / number if number >= _MIN_POINTS else None
