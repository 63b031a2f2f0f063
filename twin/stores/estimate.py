"""One estimate of what a store holds, from its events and its measurements.

Events move the estimate, measurements correct it. Where both agree nothing happens: the model stays exact to the
message. Where they do not, events are a sample: what was measured is there, and the messages beyond those that events
reported are unseen. Unseen messages are the baseline of the store, and they take their share of the stocks by length
class; unseen flows are added to the bins of the meters, evenly over the time since the measurement before. So
everything that looks ahead, or says which rule applies, works on the sum of both. Sources: docs/feeds-joined.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple, Self

import msgspec
import numpy as np

from kernels import layout, meters, pools
from kernels.clock import MINUTE_TICKS
from kernels.meter_rows import (
    BIN_SHIFT,
    BINS,
    CLASSES,
    COUNT_SHIFT,
    COUNTS,
    DATA_SET_GETS,
    PUTS,
    STOCK_SHIFT,
    STORE_GETS,
)
from kernels.smds import PAGE_BYTES
from twin.base.units import as_text
from twin.records import QueueCoverage, SeenShare
from twin.state.arrays import Array
from twin.state.tables import Tables
from twin.stores.drift import Compared

_LEAST_GAP = 10  # messages by which a measurement may differ from complete events: calls under way [assumed]
_GAP_TICKS = 0.5  # of the flow: DISPLAY and events are not of the same moment [assumed]
_AGREED = 20  # measurements in a row, after which events are complete again [assumed]
MANY = 20  # messages, from which their mean is that of all
_SPREAD = 0.6  # of the logarithm of lengths of which the mean is known [assumed]
# Times the pages of their messages that blocks of data sets have: what leaves soon leaves holes [assumed].
_LOOSE = 1.25
_BLOCKS = 4.0  # by which data sets have grown, that say as much of who puts as a sample of the puts [assumed]
_LONGER = 2.0  # times as long as in a sample, or as short, that messages are at most [assumed]
_QUANTILES = np.array([-1.6, -1.0, -0.6, -0.3, 0.0, 0.3, 0.6, 1.0, 1.6])  # of a normal distribution, evenly weighted
# Of a message in a structure or data set, beside its data: pools.MESSAGE_OVERHEAD and half an element.
_CONTROL_BYTES = 500
_MAX_QUEUES = 256  # of a store, of which it is known how much is reported [assumed]
_FADING = 0.9  # of what earlier measurements showed, at each one [assumed]
_DEAD = 3  # measurements without an event of what they show, after which a feed is dead [assumed]
_COMPLETE = 0.9  # share reported, below which events are a sample [assumed]
_Z90 = 1.645  # standard deviations that hold nine in ten
USUAL_LENGTH = 1024  # bytes, where nothing shows how long messages are [assumed]
_OLD_TICKS = 60 * MINUTE_TICKS  # between two measurements, from which the second says nothing about flows


class Holding(NamedTuple):
    """The content of a store by a measurement."""

    messages: float  # number of messages, those in SCM included
    length: float = 0.0  # mean length, bytes; 0: not known
    each: float = 0.0  # elements, pages or blocks of a message in the store itself; 0: as its length says
    blocks: tuple[int, ...] = ()  # data blocks in use by data set, in the order of their rows
    in_scm: float = 0.0  # number of messages in SCM
    has_rules: bool = True  # True if it shows all that rules move messages to, where there are: data sets, SCM
    known: float | None = None  # messages by events and baseline, reckoned alike; None: it counts messages


class Share(msgspec.Struct, array_like=True):
    """Unseen messages in a row of `stocks`: puts with their space and pages, and those held with their space."""

    row: int
    puts: float = 0.0
    space: float = 0.0
    pages: float = 0.0
    held: int = 0
    held_space: int = 0


class Seen(msgspec.Struct, array_like=True):
    """How much of what a queue, or a store, grew and shrank by was reported, over the measurements so far."""

    since: int  # time of the first of these measurements, microseconds
    known: int = 0
    measured: int = 0
    grown: float = 0.0  # grown, grown_known: growth between two measurements, in all and by events
    grown_known: float = 0.0
    shrunk: float = 0.0  # shrunk, shrunk_known: by how much it shrank, likewise
    shrunk_known: float = 0.0
    dead: int = 0  # measurements in a row in which it changed and no event said so

    def note(self, known: int, measured: int, time: int) -> None:
        """Add a measurement of that time, microseconds. known: messages by events; measured: messages."""
        by_events, real = known - self.known, measured - self.measured
        self.known, self.measured = known, measured
        if abs(real) < _LEAST_GAP:
            return
        was_dead, self.dead = self.dead >= _DEAD, 0 if by_events else self.dead + 1
        if was_dead != (self.dead >= _DEAD):  # what was seen until now says nothing about later
            self.since, self.grown, self.grown_known, self.shrunk, self.shrunk_known = time, 0.0, 0.0, 0.0, 0.0
        if real > 0:
            self.grown, self.grown_known = _FADING * self.grown + real, _FADING * self.grown_known + by_events
        else:
            self.shrunk, self.shrunk_known = _FADING * self.shrunk - real, _FADING * self.shrunk_known - by_events

    def shares(self) -> tuple[SeenShare | None, SeenShare | None]:
        """Return which shares of the puts and of the gets are reported; None: not known."""
        least = _DEAD * _LEAST_GAP if self.dead >= _DEAD else 0  # of a dead feed neither are, however many there were
        return _share(self.grown_known, max(self.grown, least)), _share(self.shrunk_known, max(self.shrunk, least))


def _share(known: float, real: float) -> SeenShare | None:
    """Return the share of the known among what was real, by a binomial distribution [published: Wilson, 1927]."""
    if real < MANY:
        return None
    share = min(1.0, max(0.0, known / real))
    z2 = _Z90**2
    middle = (share + z2 / (2 * real)) / (1 + z2 / real)
    half = _Z90 / (1 + z2 / real) * math.sqrt(share * (1 - share) / real + z2 / (4 * real**2))
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return SeenShare(share=round(share, 4), low=round(low, 4), high=round(high, 4))


class Estimate(msgspec.Struct, kw_only=True):
    """The part of measurements in the state of a store, kept in its header."""

    measured_at: int | None = None  # tick of the last measurement; None: there was none
    messages: float = 0.0  # number measured then
    known: int = 0  # number that events had put and not removed by then
    calls: int = 0  # puts and gets known by then
    is_partial: bool = False  # True if events are a sample of what happens
    odd: float = 0.0  # messages by which the last measurement differed, where the one before it did not; 0: it did not
    agreed: int = 0  # measurements in a row with which events agreed
    length: float = 0.0  # mean length of messages by the last measurement that shows it, bytes; 0: none did
    shares: list[Share] = []  # what `stocks` has of unseen messages
    faded_at: int = 0  # tick as of which the puts of `shares` are faded
    owners: list[float] = []  # growth of the data sets by owner, of which the older counts less
    blocks: tuple[int, ...] = ()  # data blocks in use at the last measurement, by data set
    in_scm: tuple[int, int] = (0, 0)  # messages and their elements in SCM, measured less those of events
    moved: dict[str, float] = {}  # by how much measurements moved what is in use, while events seem complete
    seen: Seen | None = None  # what was reported, of the store
    queues: dict[str, Seen] = {}  # the same by queue

    def note_agreement(self, tick: int, gap: float, calls: int, *, is_reported: bool) -> bool:
        """Note by how much a measurement differs from events and baseline; return True if events are a sample.

        They are where two measurements in a row have as many messages more, or fewer (`gap`), and where no call is
        reported.
        """
        if self.measured_at is None:
            return self.is_partial
        pace = (calls - self.calls) / max(1, tick - self.measured_at)
        agrees = abs(gap) <= _LEAST_GAP + _GAP_TICKS * pace
        if not self.is_partial:
            was_odd, self.odd = self.odd, 0.0 if agrees else gap
            self.is_partial, self.agreed = self.odd != 0.0 and (was_odd * gap > 0 or not is_reported), 0
        elif calls > self.calls:
            self.agreed = self.agreed + 1 if agrees else 0
            self.is_partial = self.agreed < _AGREED
        return self.is_partial

    def correct(self, tables: Tables, holding: Holding, calls: int, owners: int, block_bytes: int, tick: int) -> None:
        """Move flows and stocks by what a measurement has beyond events. `owners`: data sets, or who puts."""
        tables.reserve("counts", BINS * COUNTS)
        store = tables.store
        self._fade(store, tick)
        self._take_out(store)
        known = int(store.scalars[0]["messages"])
        self.length = holding.length or self.length
        mix = _Mix.make(store, owners, holding, self.length, self._growth(owners, holding.blocks, tick))
        grown = 0.0
        if self.measured_at is not None and 0 < tick - self.measured_at <= _OLD_TICKS:
            grown = holding.messages - self.messages - (known - self.known)
        away = min(1.0, sum(holding.blocks) * block_bytes / max(1.0, holding.messages * self.length))
        if grown > 0:
            _spread(store, self.measured_at or tick, tick, mix.sizes * grown, PUTS)
        elif grown < 0:
            _spread(store, self.measured_at or tick, tick, mix.sizes * -grown * (1 - away), STORE_GETS)
            _spread(store, self.measured_at or tick, tick, mix.sizes * -grown * away, DATA_SET_GETS)
        puts = sum(share.puts for share in self.shares) + max(0.0, grown)
        self.shares = [
            *mix.puts(puts),
            *mix.held(
                store,
                max(0.0, holding.messages - holding.in_scm - (known - int(store.scm[0]["messages"]))),
                holding.blocks,
                block_bytes,
            ),
        ]
        self._put_in(store)
        self.note(known, holding, calls, tick)

    def note(self, known: int, holding: Holding, calls: int, tick: int) -> None:
        """Note a measurement. known: messages that events have put and not removed; the others as of `correct`."""
        self.measured_at, self.messages, self.known, self.calls = tick, holding.messages, known, calls
        self.length, self.blocks = holding.length or self.length, holding.blocks

    def note_seen(self, known: int, measured: int, time: int) -> None:
        """Note what events and a measurement say of the store. Arguments as of `Seen.note`."""
        if self.seen is None:
            self.seen = Seen(time, known, measured)
        else:
            self.seen.note(known, measured, time)

    def note_depths(self, depths: Mapping[str, tuple[int, int]], time: int) -> None:
        """Note depths of queues at the time of a measurement: (messages by events, measured) by name."""
        for name, (known, measured) in depths.items():
            if name in self.queues:
                self.queues[name].note(known, measured, time)
            elif len(self.queues) < _MAX_QUEUES and (known or measured):
                self.queues[name] = Seen(time, known, measured)

    def note_dropped(self, dropped: int, depths: Mapping[str, int]) -> None:
        """Note that known messages that are no longer there were removed. depths: messages left, by queue."""
        self.known -= dropped
        if self.seen is not None:
            self.seen.known -= dropped
        for name, own in self.queues.items():
            own.known = depths.get(name, own.known)

    def coverage(self) -> dict[str, QueueCoverage] | None:
        """Return how much of each queue events report; None where they are complete, or nothing is known.

        A feed that has died is among them although measurements may agree again and again, as where a queue empties.
        """
        coverage = dict[str, QueueCoverage]()
        for name, own in sorted(self.queues.items()):
            if self.is_partial or own.dead >= _DEAD:
                puts, gets = own.shares()
                if puts or gets:
                    coverage[name] = QueueCoverage(puts_seen=puts, gets_seen=gets, since=as_text(own.since))
        return coverage or None

    def usual_space(self, store: layout.Store) -> float | None:
        """Return the pages or blocks of the messages put that events have reported; None: they are too few."""
        rows = store.stocks[CLASSES:]
        puts = float(rows["puts"].sum()) - sum(share.puts for share in self.shares)
        space = float(rows["puts_space"].sum()) - sum(share.space for share in self.shares)
        return round(space / puts, 6) if puts >= MANY else None

    @property
    def is_sample(self) -> bool:
        """True if it is known that fewer than nine in ten puts, or gets, are reported."""
        shares = () if self.seen is None else self.seen.shares()
        return any(share is not None and share.high < _COMPLETE for share in shares)

    def note_moved(self, compared: Compared, *, is_believed: bool) -> None:
        """Note by how much a measurement, no drift if believed, moves what is in use, the model as it was found."""
        if is_believed or self.is_sample:
            self.moved = {}
            return
        for resource, (model, measured, _) in compared.items():
            self.moved[str(resource)] = self.moved.get(str(resource), 0.0) + measured - model

    def unmoved(self, compared: Compared) -> Compared:
        """Return (model, measured, total) by resource, the model as it would be without these moves."""
        return {
            resource: (model - self.moved.get(str(resource), 0.0), measured, total)
            for resource, (model, measured, total) in compared.items()
        }

    def turn_back(self) -> None:
        """Forget when the last measurement was, as the clock of the store has gone back."""
        self.measured_at, self.faded_at = None, 0

    def _growth(self, owners: int, blocks: tuple[int, ...], tick: int) -> Array:
        """Return f8[owners], blocks by which data sets have grown, half of those of a quarter of an hour ago."""
        growth = np.array(self.owners if len(self.owners) == owners else [0.0] * owners)
        if self.measured_at is not None and len(blocks) == owners == len(self.blocks):
            growth *= 0.5 ** (max(0, tick - self.measured_at) / meters.QUARTER_TICKS)
            growth += np.maximum(0, np.subtract(blocks, self.blocks))
            self.owners = growth.tolist()
        return growth

    def _fade(self, store: layout.Store, tick: int) -> None:
        """Fade the unseen puts as `kernels.meters.fade_puts` has faded all: those of structures."""
        passed = tick // meters.QUARTER_TICKS - self.faded_at // meters.QUARTER_TICKS
        if passed > 0 and store.datasets.size:
            fade = 0.5 ** min(passed, 40)
            for share in self.shares:
                share.puts, share.space, share.pages = fade * share.puts, fade * share.space, fade * share.pages
        self.faded_at = tick

    def _take_out(self, store: layout.Store) -> None:
        """Leave in `stocks` what events have reported."""
        for share in self.shares:
            row = store.stocks[share.row]
            row["puts"], row["puts_space"] = (
                max(0.0, row["puts"] - share.puts),
                max(0.0, row["puts_space"] - share.space),
            )
            row["puts_pages"] = max(0.0, row["puts_pages"] - share.pages)
            row["held"], row["held_space"] = row["held"] - share.held, row["held_space"] - share.held_space
            layout.touch(store.stocks_dirty, share.row, STOCK_SHIFT)

    def _put_in(self, store: layout.Store) -> None:
        """Add the unseen messages to `stocks`."""
        for share in self.shares:
            row = store.stocks[share.row]
            row["puts"], row["puts_space"] = row["puts"] + share.puts, row["puts_space"] + share.space
            row["puts_pages"] += share.pages
            row["held"], row["held_space"] = row["held"] + share.held, row["held_space"] + share.held_space
            layout.touch(store.stocks_dirty, share.row, STOCK_SHIFT)


class _Mix(NamedTuple):
    """Of which lengths unseen messages are, and who puts them."""

    sizes: Array  # f8[CLASSES], shares by length class
    owners: Array  # f8[owners], shares by owner
    space: Array  # f8[CLASSES], elements, pages or blocks of a message of a class in the store itself
    pages: Array  # f8[CLASSES], pages of a message of a class in a data set

    @classmethod
    def make(cls, store: layout.Store, owners: int, holding: Holding, length: float, growth: Array) -> Self:
        """Return the mix of the puts that are known; without a sample of them that of the measured mean length, 0: not
        known. The store has nothing unseen in `stocks`; `growth`: f8[owners], blocks by which data sets have grown of
        late.
        """
        known = store.stocks[CLASSES : (owners + 1) * CLASSES].reshape(owners, CLASSES)
        sizes = known["puts"].sum(0)
        if sizes.sum() >= MANY:
            by_owner, least = known["puts"].sum(1), np.maximum(sizes, 1e-9)
            space, pages = known["puts_space"].sum(0) / least, known["puts_pages"].sum(0) / least
            held = store.stocks["held"][: (owners + 1) * CLASSES].reshape(-1, CLASSES).sum(0).astype(np.float64)
            if held.sum() >= MANY:  # what stays may be longer than what only passes
                sizes = held
                usual = float(sizes @ space) / sizes.sum()
            else:
                usual = known["puts_space"].sum() / sizes.sum()
            sizes = sizes / sizes.sum()
            if holding.each and usual > 0:  # the mean of all says more than that of a sample
                space *= holding.each / usual
            elif holding.length:
                longer = min(_LONGER, max(1 / _LONGER, holding.length / mean_length(1.0, usual, 0.0)))
                space, pages = longer * space, longer * pages
            by_owner = growth + _BLOCKS * by_owner / by_owner.sum()  # what is put may not be what stays
            return cls(sizes, by_owner / by_owner.sum(), space, pages)
        sizes, space, pages = np.zeros((3, CLASSES))
        by_owner = growth if growth.sum() > 0 else np.ones(owners)
        spread = np.exp(_SPREAD * _QUANTILES)
        for own in ((length or USUAL_LENGTH) * spread / spread.mean()).tolist():
            size = int(meters.class_of(int(own)))
            sizes[size] += 1
            space[size] += holding.each or float(pools.elements_of(int(own)))
            pages[size] += _LOOSE * max(1.0, np.ceil(own / PAGE_BYTES))
        return cls(
            sizes / sizes.sum(), by_owner / by_owner.sum(), space / np.maximum(sizes, 1), pages / np.maximum(sizes, 1)
        )

    def puts(self, number: float) -> list[Share]:
        return [
            Share((owner + 1) * CLASSES + size, puts, puts * float(self.space[size]), puts * float(self.pages[size]))
            for owner, of_owner in enumerate(self.owners.tolist())
            for size in np.flatnonzero(self.sizes).tolist()
            if (puts := number * of_owner * float(self.sizes[size])) > 0
        ]

    def held(self, store: layout.Store, number: float, blocks: tuple[int, ...], block_bytes: int) -> list[Share]:
        """Return what unseen messages add to the stocks of the store and of its data sets, by their measured blocks."""
        each = max(1.0, float(self.sizes @ self.pages))
        shares, left = list[Share](), number
        for row, used in enumerate(blocks):
            unseen = used * block_bytes / PAGE_BYTES - int(store.datasets[row]["pages"])
            away = min(left, max(0.0, unseen / each))
            left -= away
            shares += self._held((row + 1) * CLASSES, away, self.pages)
        return [*self._held(0, left, self.space), *shares]

    def _held(self, first: int, number: float, space: Array) -> list[Share]:
        counts = (number * self.sizes).astype(np.int64)
        return [
            Share(first + size, held=int(counts[size]), held_space=int(counts[size] * space[size]))
            for size in np.flatnonzero(counts).tolist()
        ]


def mean_length(entries: float, elements: float, data_bytes: float) -> float:
    """Return the mean length of messages from what they take of a structure and its data sets, bytes.

    A message takes nearly as many bytes for control wherever its data is.
    """
    return max(1.0, (elements * pools.ELEMENT_BYTES + data_bytes / _LOOSE) / max(1.0, entries) - _CONTROL_BYTES)


def _spread(store: layout.Store, since: int, until: int, sizes: Array, lane: int) -> None:
    """Add messages to a lane of the bins of ticks since..until-1, evenly. sizes: f8[CLASSES], numbers by class."""
    first = max(since, until - BINS + 1)
    ticks = np.arange(first, until)
    rows = ticks % BINS
    rows = rows[store.bins["tick"][rows] == ticks]
    if not rows.size:
        return
    upto = np.rint(np.outer(np.arange(rows.size + 1) / rows.size, sizes)).astype(np.int64)
    lanes = rows[:, None] * COUNTS + lane + np.arange(CLASSES)
    store.counts[lanes] += np.diff(upto, axis=0).astype(store.counts.dtype)
    store.params[0]["bins_counted"][rows] = 1
    store.counts_dirty[np.unique(lanes[:, [0, -1]] >> COUNT_SHIFT)] = 1
    store.bins_dirty[np.unique(rows >> BIN_SHIFT)] = 1
