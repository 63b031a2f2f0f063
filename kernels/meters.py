"""Meters: what flows in and out of a store, by size of message, in bins of one tick.

Counted where storage is really taken and given back. A message is young when it leaves within five minutes of its put:
what comes and goes at once is no growth, and is not mistaken for the working off of a backlog. Classes of length lie
on powers of two, where OFFLDnSZ usually stands, and on the two lengths at which the rules themselves change (140
bytes, 63 KB; see offload.py).

Everything is fixed in size for a store: a ring of bins (about an hour), what is held by class, a week by quarters of an
hour, the last rises of each resource.
"""

from __future__ import annotations

import numpy as np

from kernels import pools, smds
from kernels._compile import kernel, routine
from kernels.layout import NEVER, NONE, STRUCTURE, Store, touch
from kernels.meter_rows import (
    AWAY,
    BIN_SHIFT,
    BINS,
    CLASSES,
    COUNT_SHIFT,
    COUNTS,
    KEPT,
    PUTS,
    RISE_SHIFT,
    RISES,
    SLOT_SHIFT,
    SLOTS,
    STOCK_SHIFT,
    TIDE_SHIFT,
    YOUNG,
)

YOUNG_FOR = 30  # ticks: five minutes
SLOT_TICKS = 90  # a quarter of an hour
TURN = 0.03  # of a resource: a fall or climb of so much is a turn of the tide

_COUNTED_AT_MOST = 2**31 - 1

EDGES = (0, 140, 1024, 2048, 4096, 8192, 16_384, 32_768, 64_512, 131_072, 262_144, 1_048_576, 104_857_600)
"""Class c has the lengths over EDGES[c] up to EDGES[c + 1]."""

_BY_KB = np.zeros(1026, np.uint8)  # class of a length by its KB, rounded up
for _kb in range(1026):
    _BY_KB[_kb] = next(c for c in range(CLASSES) if c > 0 and (_kb * 1024 <= EDGES[c + 1] or c == CLASSES - 1))


@kernel
def class_of(length: int) -> int:
    """0..CLASSES-1: the class of a length in bytes."""
    if length <= 140:
        return 0
    if length > 64_512 and length <= 65_536:
        return 8
    return int(_BY_KB[min((length + 1023) >> 10, 1025)])


@kernel
def _would_take(store: Store, length: int, took: int) -> int:
    """What a message takes of the store itself when it is not offloaded. took: what it did take."""
    return pools.elements_of(length) if store.params[0].kind == STRUCTURE else took


@kernel
def _count(store: Store, at: int) -> None:
    """Count one message more, up to what 32 bits hold: a tick may have any number of events."""
    if store.counts[at] < _COUNTED_AT_MOST:
        store.counts[at] += 1


@kernel
def stored(store: Store, row: int, qmgr: int) -> None:
    """Count message `row`, which has taken its storage. qmgr: who put it."""
    message = store.messages[row]
    size = class_of(message.length)
    at = store.scalars[0].bin * COUNTS
    _count(store, at + PUTS + size)
    touch(store.counts_dirty, at, COUNT_SHIFT)
    in_store = message.owner == NONE
    took = message.pages if not in_store or store.params[0].kind != STRUCTURE else message.elems
    put = (qmgr + 1) * CLASSES + size
    stock = store.stocks[put]
    stock.puts += 1.0
    stock.puts_space += _would_take(store, message.length, took)
    stock.puts_pages += smds.pages_of(store, message.length)
    touch(store.stocks_dirty, put, STOCK_SHIFT)
    place = size if in_store else put
    store.stocks[place].held += 1
    store.stocks[place].held_space += took
    touch(store.stocks_dirty, place, STOCK_SHIFT)
    store.queues[message.queue].puts += 1


@kernel
def given_back(store: Store, row: int) -> None:
    """Count message `row`, which gives back its storage."""
    message = store.messages[row]
    scalars = store.scalars[0]
    size = class_of(message.length)
    at = scalars.bin * COUNTS
    in_store = message.owner == NONE
    if message.age >= scalars.young_from:
        _count(store, at + YOUNG + size)
    else:
        _count(store, at + (KEPT if in_store else AWAY) + size)
        store.bins[scalars.bin].lag += scalars.ages - message.age
        touch(store.bins_dirty, scalars.bin, BIN_SHIFT)
    touch(store.counts_dirty, at, COUNT_SHIFT)
    took = message.pages if not in_store or store.params[0].kind != STRUCTURE else message.elems
    place = (message.owner + 1) * CLASSES + size
    store.stocks[place].held -= 1
    store.stocks[place].held_space -= took
    touch(store.stocks_dirty, place, STOCK_SHIFT)
    owner = store.queues[message.queue]
    owner.gets += 1
    owner.got_at = scalars.tick


@routine
def begin_bin(store: Store, tick: int, space: int) -> None:
    """Begin the bin of `tick`; those since the last one had no events. space: bytes of the messages held."""
    scalars = store.scalars[0]
    last = store.bins[scalars.bin].tick
    if last == NEVER:
        last = tick - 1
        scalars.steady_from = tick
    elif tick - last > BINS:
        last = tick - BINS
    for passed in range(last + 1, tick + 1):
        row = int(passed % BINS)
        for at in range(row * COUNTS, row * COUNTS + COUNTS):
            store.counts[at] = 0
        touch(store.counts_dirty, row * COUNTS, COUNT_SHIFT)
        one = store.bins[row]
        one.tick = passed
        one.ages = scalars.ages
        one.ents = scalars.messages
        one.space = space
        one.lag = 0
        touch(store.bins_dirty, row, BIN_SHIFT)
    scalars.bin = int(tick % BINS)
    young = store.bins[int((tick - YOUNG_FOR) % BINS)]
    scalars.young_from = young.ages if young.tick == tick - YOUNG_FOR else 0


@routine
def end_slot(store: Store, before: int, tick: int, sets: int, space: int) -> None:
    """At the end of a quarter of an hour keep what flowed in it, and let older puts count half as much.

    before, tick: ticks acted at last and now; sets: data sets there are.
    """
    quarter = before // SLOT_TICKS
    if tick // SLOT_TICKS == quarter:
        return
    passed = tick // SLOT_TICKS - quarter
    slot = store.slots[int(quarter % SLOTS)]
    slot.tick = quarter * SLOT_TICKS
    slot.puts = 0
    slot.gets = 0
    slot.space = space
    for back in range(SLOT_TICKS):
        one = store.bins[int((quarter * SLOT_TICKS + back) % BINS)]
        if one.tick != quarter * SLOT_TICKS + back:
            continue
        row = int((quarter * SLOT_TICKS + back) % BINS) * COUNTS
        for size in range(CLASSES):
            slot.puts += store.counts[row + PUTS + size]
            slot.gets += store.counts[row + YOUNG + size] + store.counts[row + KEPT + size]
            slot.gets += store.counts[row + AWAY + size]
    touch(store.slots_dirty, int(quarter % SLOTS), SLOT_SHIFT)
    fade = 0.5 ** min(passed, 40)
    for at in range(CLASSES, (sets + 1) * CLASSES):
        stock = store.stocks[at]
        stock.puts *= fade
        stock.puts_space *= fade
        stock.puts_pages *= fade
        touch(store.stocks_dirty, at, STOCK_SHIFT)


@kernel
def watch_tide(store: Store, resource: int, tick: int, share: float) -> None:
    """Follow the rises and falls of one resource. share: of it in use.

    A rise begins where usage was last near its lowest and ends where it was last near its highest, once it has turned
    by TURN.
    """
    tide = store.tides[resource]
    touch(store.tides_dirty, resource, TIDE_SHIFT)
    if tide.rising == 1:
        if share > tide.top + TURN / 4:
            tide.top = share
            tide.topped = tick
        if share < tide.top - max(TURN, 0.15 * (tide.top - tide.low)):
            rise = store.rises[resource * RISES + int(tide.rises % RISES)]
            rise.began = tide.began
            rise.ended = tide.topped
            rise.low = tide.low
            rise.top = tide.top
            rise.refused = store.scalars[0].full_puts - tide.refused
            touch(store.rises_dirty, resource * RISES + int(tide.rises % RISES), RISE_SHIFT)
            tide.rises += 1
            tide.rising = 0
            tide.low = share
            tide.began = tick
            tide.refused = store.scalars[0].full_puts
    else:
        tide.low = min(tide.low, share)
        if share <= tide.low + TURN / 4:
            tide.began = tick
            tide.refused = store.scalars[0].full_puts
        if share > tide.low + TURN:
            tide.rising = 1
            tide.top = share
            tide.topped = tick


@kernel
def turn_back(store: Store, tick: int) -> None:
    """Go on from an earlier tick: flows before now tell nothing, and what was seen in the future was seen now."""
    scalars = store.scalars[0]
    store.bins[scalars.bin].tick = tick - BINS - 1
    begin_bin(store, tick, scalars.bytes)
    scalars.steady_from = tick + 1
    for row in range(store.slots.size):
        if store.slots[row].tick > tick:
            store.slots[row].tick = NEVER
            touch(store.slots_dirty, row, SLOT_SHIFT)
    for row in range(store.tides.size):
        tide = store.tides[row]
        if max(tide.began, tide.topped) > tick:
            tide.began = min(tide.began, tick)
            tide.topped = min(tide.topped, tick)
            touch(store.tides_dirty, row, TIDE_SHIFT)
    for row in range(store.rises.size):
        rise = store.rises[row]
        if rise.ended > tick:
            rise.began = min(rise.began, tick)
            rise.ended = tick
            touch(store.rises_dirty, row, RISE_SHIFT)


@routine
def forget(store: Store) -> None:
    """Let flows before now tell nothing: a CLEAR or a RESTART is not how messages usually leave."""
    store.scalars[0].steady_from = store.scalars[0].tick + 1
