"""The queues of a store: who reads them, and which of them fill it, ranked by their growth.

- Readers: a fact counts for three times the usual distance of its measurements, and "no handle open for input" only
  until a message is got: a get proves a getter. A store keeps facts of the queues that it knows, `MAX_QUEUES` at most.
- Fillers: the queue whose puts fail with 2192 is not necessarily the one that filled the store. So queues are ranked by
  growth, not by failed puts. Samples are taken every 15 minutes of event time. Growth is counted from the last sample
  but one, so over 15 to 30 minutes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from kernels import layout
from kernels.clock import SECOND, TICK
from kernels.watch import QUEUE_SAMPLE_US
from twin.base.units import as_microseconds
from twin.events import Measured
from twin.events.fields import QueueMeasured
from twin.records import Filler
from twin.state.arrays import Array

MAX_QUEUES = 4096  # of a store, of which facts are kept [assumed]
_COUNTS_GAPS = 3  # usual distances of the measurements of a queue, for which a fact counts [assumed]
_COUNTS_AT_LEAST, _COUNTS_AT_MOST = 300 * SECOND, 7200 * SECOND  # [assumed]
_SAMPLES = 6  # earlier depths that are kept of a queue, the older the further apart
_SAMPLE_AFTER = 120 * SECOND  # between two of them, at least
_ABSENCES = 8  # that are kept of a queue's getters: the longest
_LEAST_ABSENCE = 60 * SECOND  # that is kept
_ABSENCE_FOR = 15 * 86_400 * SECOND  # for which it is kept: two weeks, so that weekends are among them
_RESTARTED_FOR = 300 * SECOND  # for which an application that is restarted is away [assumed]
_STEADY_FOR = 1800 * SECOND  # for which a queue that has a steady reader was read, at least [assumed]
_READ_FOR = 600 * SECOND  # for which a reader must have read before its absence counts as a stop [assumed]
_STEADY_SHARE = 0.75  # of the time, likewise [assumed]
_HALVED_AFTER = 7 * 86_400 * SECOND  # what was long ago counts less
_TIMETABLE = 3  # absences that ended by themselves, from which a timetable is known [assumed]
_DAY = 86_400 * SECOND  # for which a queue that has one not known yet is unread, at most [assumed]
_SILENT_FOR = 180 * SECOND  # without a get, while handles are open: as long as for getters that stopped
LONGER_ABSENCE = 1.5  # times the usual absence, from which one is longer than usual [assumed]


class QueueFact(msgspec.Struct, array_like=True):
    """Facts of one queue; times in microseconds. None: not known."""

    measured_at: int  # time of the last measurement
    gap: int = 0  # usual distance of its measurements; 0: there was one
    depth: int | None = None
    getters: int | None = None  # getters, putters: handles open for input, for output
    getters_at: int = 0  # time of the measurement that had `getters`
    asked: list[str] = []  # queue managers that answered about its handles then
    putters: int | None = None
    oldest_s: int | None = None
    last_get: int | None = None
    last_put: int | None = None
    uncommitted: int | None = None
    gets: int = 0  # messages that events had got by then
    watched_since: int = 0  # first of the measurements of `getters` of which each was recent at the next
    watched: int = 0  # time between these, in all; halved after a week
    read: int = 0  # the part of it in which it was read
    unread_since: int | None = None  # first of those in a row without a getter or get; None: the last had one
    puts: int = 0  # puts, unread_depth: messages put by events, and depth, as of `unread_since`
    unread_depth: int = 0
    absences: list[tuple[int, int]] = []  # (beginning, end) of the longest of getters that ended before full
    samples: list[tuple[int, int]] = []  # (time, depth) of earlier measurements, the oldest first

    def counts(self, now: int, time: int | None = None) -> bool:
        """Return True if what was measured then, or last, is recent enough at `now`."""
        usual = min(max(_COUNTS_GAPS * self.gap, _COUNTS_AT_LEAST), _COUNTS_AT_MOST)
        return now - (self.measured_at if time is None else time) <= usual

    def known_getters(self, now: int, gets: int) -> int | None:
        """Return the handles open for input; None where that is not known, or no longer."""
        if self.getters is None or not self.counts(now, self.getters_at) or (not self.getters and gets != self.gets):
            return None
        return self.getters

    def last_got(self, by_events: int) -> int:
        """Return when a message was last got, microseconds, 0: not known. by_events: the same as events have it."""
        return max(by_events, self.last_get or 0)

    def is_read_in_vain(self, last_got: int) -> bool:
        """Return True if applications had it open for input and got nothing. last_got: as of `last_got`, or 0."""
        return bool(self.getters) and last_got > 0 and self.getters_at - last_got >= _SILENT_FOR

    @property
    def is_steady(self) -> bool:
        """True if its reader is steady: before it went away, it had the queue open most of the time."""
        return self._was_read_for(_STEADY_FOR)

    @property
    def has_lost_its_reader(self) -> bool:
        """True if nobody has it open, and somebody had for most of the time before; see `is_steady`."""
        return self.unread_since is not None and self._was_read_for(_READ_FOR)

    def _was_read_for(self, least: int) -> bool:
        absent = 0 if self.unread_since is None else self.getters_at - self.unread_since
        return self.read >= max(least, _STEADY_SHARE * (self.watched - absent))

    @property
    def usual_absence(self) -> int | None:
        """Length of the absence of getters that is the longest usual one; None: it is not known.

        Of a steady reader it is the second longest, as one may have been a failure; of a job on a timetable it is
        the longest.
        """
        lengths = sorted(end - begin for begin, end in self.absences)
        if self.is_steady:
            return lengths[-2] if len(lengths) > 1 else 0
        return lengths[-1] if len(lengths) >= _TIMETABLE else None

    def may_return(self, now: int) -> bool:
        """Return True if the getters of an unread queue may be away no longer than usual.

        An application that is restarted is away for a short while. A queue that has no steady reader may be read on a
        timetable that is not known yet, for a day.
        """
        usual = self.usual_absence
        if self.unread_since is None:
            return True
        if usual is None:
            return now - self.unread_since < _DAY
        return now - self.unread_since <= max(_RESTARTED_FOR, LONGER_ABSENCE * usual)

    def grown_since(self, time: int) -> int:
        """Return by how much it has become deeper since a time, as far back as its depths are known."""
        if self.depth is None or not self.samples:
            return 0
        before = [depth for sampled, depth in self.samples if sampled <= time]
        return self.depth - (before[-1] if before else self.samples[0][1])

    def take(
        self, measured: QueueMeasured, time: int, asked: Sequence[str], got: int, put: int, refused_at: int | None
    ) -> None:
        """Take the facts of a measurement, not before the last one. `refused_at`: of the last refusal, or None."""
        if time > self.measured_at:
            self.gap = time - self.measured_at if not self.gap else min(time - self.measured_at, 2 * self.gap)
        before, was_recent = self.measured_at, self.getters_at > 0 and self.counts(time, self.getters_at)
        self.measured_at = time
        self.depth, self.putters = measured.get("depth"), measured.get("putters")
        self.oldest_s, self.uncommitted = measured.get("oldest_s"), measured.get("uncommitted")
        got_before, self.last_get = self.last_get, _time(measured.get("last_get"))
        self.last_put = _time(measured.get("last_put"))
        self._sample()
        getters = measured.get("getters")
        if getters is None:
            return
        was_got = got != self.gets or (self.last_get is not None and self.last_get > (got_before or before))
        if self.unread_since is not None and was_recent and (getters or was_got):
            self._end_absence(time if getters else max(self.unread_since, self.last_get or time), refused_at)
        if not was_recent:
            self.watched_since, self.watched, self.read = time, 0, 0
        else:
            self._note_watched(time)
        if getters:
            self.unread_since = None
        elif self.unread_since is None or was_got or not was_recent:
            self.unread_since, self.puts, self.unread_depth = time, put, self.depth or 0
        self.getters, self.getters_at, self.gets, self.asked = getters, time, got, list(asked)

    def _note_watched(self, time: int) -> None:
        """Count the time since the last measurement of the handles. time: the present one, microseconds."""
        self.watched += time - self.getters_at
        if self.getters:
            self.read += time - self.getters_at
            if self.watched > _HALVED_AFTER:
                self.watched, self.read = self.watched // 2, self.read // 2

    def _end_absence(self, end: int, refused_at: int | None) -> None:
        """Keep the absence of getters that ends, unless puts were refused in it."""
        assert self.unread_since is not None
        is_harmless = refused_at is None or refused_at < self.unread_since
        if is_harmless and end - self.unread_since >= _LEAST_ABSENCE:
            absences = [absence for absence in self.absences if absence[1] > end - _ABSENCE_FOR]
            absences.append((self.unread_since, end))
            self.absences = sorted(sorted(absences, key=lambda absence: absence[0] - absence[1])[:_ABSENCES])

    def _sample(self) -> None:
        """Keep the depth, and drop the sample that is nearest to its neighbours for its age."""
        if self.depth is None or (self.samples and self.measured_at - self.samples[-1][0] < _SAMPLE_AFTER):
            return
        samples = [*self.samples, (self.measured_at, self.depth)]
        if len(samples) > _SAMPLES:
            times = [sampled for sampled, _ in samples]
            inner = range(1, len(samples) - 1)
            del samples[min(inner, key=lambda i: (times[i + 1] - times[i - 1]) / (self.measured_at - times[i - 1] + 1))]
        self.samples = samples


class Readers(msgspec.Struct):
    """Facts of the queues of a store, by name, kept in its header."""

    facts: dict[str, QueueFact] = {}

    def note(
        self, measured: Measured, time: int, queues: Sequence[str], rows: Array, refused_at: int | None = None
    ) -> bool:
        """Take the facts of a MEASURE, without nulls; return True if it changes which queues have getters."""
        numbers = {name: row for row, name in enumerate(queues)}
        changed = False
        for own in measured.get("queues", ()):
            row, fact = numbers.get(own["name"]), self.facts.get(own["name"])
            if row is None or (fact is not None and time < fact.measured_at):
                continue
            if fact is None:
                if len(self.facts) >= MAX_QUEUES:
                    self._forget(time)
                if len(self.facts) >= MAX_QUEUES:
                    continue
                fact = self.facts[own["name"]] = QueueFact(time)
            got = int(rows["gets"][row])
            before = fact.known_getters(time, got)
            fact.take(own, time, measured.get("asked", ()), got, int(rows["puts"][row]), refused_at)
            changed = changed or (before == 0) != (fact.known_getters(time, got) == 0)
        return changed

    def _forget(self, now: int) -> None:
        """Forget the facts that no longer count."""
        self.facts = {name: fact for name, fact in self.facts.items() if fact.counts(now)}

    def recent(self, queue: str, now: int) -> QueueFact | None:
        """Return the facts of a queue that count at `now`; None: there are none."""
        fact = self.facts.get(queue)
        return fact if fact is not None and fact.counts(now) else None

    def unread(self, queues: Sequence[str], rows: Array, now: int) -> Mapping[int, QueueFact]:
        """Return the facts of the queues that no application has open for input, by row."""
        if not any(fact.unread_since is not None for fact in self.facts.values()):
            return {}
        return {
            row: self.facts[name]
            for row, name in enumerate(queues)
            if name in self.facts and self.facts[name].known_getters(now, int(rows["gets"][row])) == 0
        }

    def depths(self, queues: Sequence[str], since: int, now: int) -> tuple[Array, Array]:
        """Return (growth since a time, depth), messages by queue as measured, i8[queues] each; 0 where not known."""
        grown, held = np.zeros(len(queues), np.int64), np.zeros(len(queues), np.int64)
        for row, name in enumerate(queues):
            fact = self.recent(name, now)
            if fact is not None and fact.depth is not None:
                grown[row], held[row] = fact.grown_since(since), fact.depth
        return grown, held


def _time(text: str | None) -> int | None:
    return None if text is None else as_microseconds(text)


# --- queues that fill the store ---------------------------------------------------------------------------------------

_MAX_NAMED = 5


def growth(queues: Array, counted: str) -> Array:
    """Return the growth of each queue since the last sample but one, i8[n]: entries, elements or pages."""
    grown: Array = queues[counted] - queues[f"{counted}_before"]
    return grown


def growth_span(now: int, began: int | None) -> int:
    """Return the span that `growth` covers, microseconds, at least a tick. `began`: the store's first event."""
    span = now % QUEUE_SAMPLE_US + QUEUE_SAMPLE_US
    return span if began is None else max(TICK, min(span, now - began))


def pages_in_dataset(messages: Array, dataset: int, queues: int) -> Array:
    """Return the pages that each queue holds in one data set, i8[queues]."""
    inside = messages[messages["owner"] == dataset]  # free rows have no pages
    pages: Array = np.bincount(inside["queue"], inside["pages"], queues).astype(np.int64)
    return pages


def messages_in_scm(messages: Array, queues: int) -> Array:
    """Return the messages that each queue has in storage class memory, i8[queues]. messages: MESSAGE[n]."""
    inside = messages[messages["marks"] & layout.MARK_IN_SCM != 0]  # free rows have no marks
    counts: Array = np.bincount(inside["queue"], minlength=queues).astype(np.int64)
    return counts


def rank_fillers(grown: Array, held: Array, names: Sequence[str]) -> tuple[Filler, ...]:
    """Return the queues with the largest growth, i8[n]; if nothing grew, those that hold most."""
    ranked = np.maximum(grown if grown.sum() > 0 else held, 0)
    total = int(ranked.sum())
    if total == 0:
        return ()
    order = sorted(np.flatnonzero(ranked).tolist(), key=lambda row: (-int(ranked[row]), names[row]))
    shares = [Filler(names[row], round(int(ranked[row]) / total, 4)) for row in order[:_MAX_NAMED]]
    return tuple(filler for filler in shares if filler.share > 0)
