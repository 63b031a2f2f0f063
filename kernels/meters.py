"""Meters: flows in and out of a store in bins of one tick, and how full its resources are.

- Flows: messages are counted where storage is really taken and given back. All tables have a fixed size per store: a
  ring of bins (about an hour), stocks by class, the last rises of each resource. A store without a put so far has no
  counts.
- Usage: how full each resource of a store is, worked out here for all who ask, and the rises that it shows. Alerts,
  state records, samples, forecasts and the meters read USAGE. Only what is checked at every put reads the counters
  themselves (watch.py, pools.py).
"""

from __future__ import annotations

import numpy as np

from kernels import page_set, pools, queue_file, scm, smds
from kernels._compile import kernel, routine
from kernels.layout import MAX_MESSAGE_BYTES, NEVER, NONE, PAGE_SET, QUEUE_FILE, STRUCTURE, Array, Store, touch
from kernels.meter_rows import (
    AT_MAX_DEPTH,
    AUGMENTED,
    BIN_SHIFT,
    BINS,
    BLOCKS,
    CLASSES,
    COUNT_SHIFT,
    COUNTS,
    DATA_SET_GETS,
    DATA_SETS,
    ENTRIES,
    PUTS,
    REFUSED,
    RISE_SHIFT,
    RISES,
    SCM,
    SPACE,
    SPACE_AT_MAX_DEPTH,
    SPACE_PARTS,
    STOCK_SHIFT,
    STORE_GETS,
    TIDE_SHIFT,
    TOTAL_TIDE,
    YOUNG_GETS,
)

# --- flows ------------------------------------------------------------------------------------------------------------
# A message is young if it leaves within five minutes of its put: such a message is no growth, and its get does not
# reduce a backlog. Length classes have their edges at powers of two, which OFFLDnSZ usually has, and at the two lengths
# at which the offload rules themselves change (140 bytes and 63 KB, see pools.py).

YOUNG_FOR = 30  # ticks: five minutes
QUARTER_TICKS = 90  # a quarter of an hour
TURN = 0.03  # share of a resource by which utilisation falls or climbs when a rise ends or begins

DEMAND = CLASSES + 2  # columns of `read_demand`

_MAX_COUNT = 2**31 - 1

EDGES = (
    *(0, 140, 1024, 2048, 4096, 8192, 16_384, 32_768),
    *(pools.ALWAYS_OFFLOADED, 131_072, 262_144, 1_048_576, MAX_MESSAGE_BYTES),
)
"""Edges of the length classes: class c has the lengths over EDGES[c] up to EDGES[c + 1]."""

_BY_KB = np.zeros(1026, np.uint8)  # class by length in KB, rounded up
for _kb in range(1026):
    _BY_KB[_kb] = next(c for c in range(CLASSES) if c > 0 and (_kb * 1024 <= EDGES[c + 1] or c == CLASSES - 1))


@kernel
def class_of(length: int) -> int:
    """Return the class, 0..CLASSES-1, of a length in bytes."""
    if length <= EDGES[1]:
        return 0
    return int(_BY_KB[min((length + 1023) >> 10, 1025)])


@kernel
def _space_in_store(store: Store, length: int, space: int) -> int:
    """Return the space of a message in the store itself if it is not offloaded. `space` is the space that it took."""
    return pools.elements_of(length) if store.params[0].kind == STRUCTURE else space


@kernel
def _mark_counts(store: Store) -> None:
    """Mark the counts of the present bin as written, and as no longer all 0."""
    row = store.scalars[0].bin
    store.params[0].bins_counted[row] = 1
    touch(store.counts_dirty, row * COUNTS, COUNT_SHIFT)


@kernel
def _count(store: Store, lane: int) -> None:
    """Count a message, up to what 32 bits hold: a tick may have any number of events."""
    if store.counts[lane] < _MAX_COUNT:
        store.counts[lane] += 1


@kernel
def _add(store: Store, lane: int, number: float) -> None:
    """Add to a count, up to what 32 bits hold."""
    store.counts[lane] = int(min(_MAX_COUNT, store.counts[lane] + number))


@kernel
def count_put(store: Store, row: int, qmgr: int) -> None:
    """Count message `row`, put by queue manager `qmgr`, after it has taken its storage."""
    message = store.messages[row]
    size = class_of(message.length)
    first = store.scalars[0].bin * COUNTS
    _count(store, first + PUTS + size)
    _mark_counts(store)
    in_store = message.owner == NONE
    space = message.pages if not in_store or store.params[0].kind != STRUCTURE else message.elems
    put = (qmgr + 1) * CLASSES + size
    stock = store.stocks[put]
    stock.puts += 1.0
    stock.puts_space += _space_in_store(store, message.length, space)
    stock.puts_pages += smds.pages_of(store, message.length)
    touch(store.stocks_dirty, put, STOCK_SHIFT)
    stock_row = size if in_store else put
    store.stocks[stock_row].held += 1
    store.stocks[stock_row].held_space += space
    touch(store.stocks_dirty, stock_row, STOCK_SHIFT)
    store.queues[message.queue].puts += 1


@kernel
def count_refused(store: Store, qmgr: int, length: int, space: float, count: int) -> None:
    """Count messages that queue manager `qmgr` could not put for lack of storage; they count as demand.

    Args:
        store: arrays of the store.
        qmgr: row of the queue manager.
        length: bytes of each message.
        space: elements, pages or blocks that each would take of the store itself, not offloaded.
        count: number of messages.
    """
    size = class_of(length)
    first = store.scalars[0].bin * COUNTS
    _add(store, first + REFUSED[size], count)
    _mark_counts(store)
    put = (qmgr + 1) * CLASSES + size
    stock = store.stocks[put]
    stock.puts += count
    stock.puts_space += count * space
    stock.puts_pages += count * smds.pages_of(store, length)
    touch(store.stocks_dirty, put, STOCK_SHIFT)


@kernel
def count_at_max_depth(store: Store, space: float, count: int) -> None:
    """Count messages that MAXDEPTH kept out, each of which would take `space` elements, pages or blocks."""
    first = store.scalars[0].bin * COUNTS
    _add(store, first + AT_MAX_DEPTH, count)
    _add(store, first + SPACE_AT_MAX_DEPTH, np.ceil(count * space * SPACE_PARTS))
    _mark_counts(store)


@routine
def read_demand(bins: Array, counts: Array, current: int, since: int, demand: Array) -> int:
    """Read the messages put, accepted or refused, of the ticks from `since` on.

    Args:
        bins: BIN[BINS] of the store.
        counts: i4[BINS * COUNTS] of the store, or empty: no put so far.
        current: row of the present bin.
        since: first tick.
        demand: f8[DEMAND], overwritten: by class those put or refused for lack of storage, those refused at MAXDEPTH,
            and the space of these.

    Returns:
        The first tick that is known, or NEVER: nothing is known before the present tick, which is read all the same.
    """
    demand[:] = 0.0
    first, last = int(NEVER), bins[current].tick
    if last == NEVER:
        _read_demand(counts, current, demand)
        return first
    for tick in range(max(since, last - BINS + 1), last + 1):
        row = int(tick % BINS)
        if bins[row].tick == tick:
            first = tick if first == NEVER else first
            _read_demand(counts, row, demand)
    return first


@kernel
def _read_demand(counts: Array, row: int, demand: Array) -> None:
    """Add one bin to a demand, as `read_demand` has it."""
    if counts.size == 0:
        return
    first = row * COUNTS
    for size in range(CLASSES):
        demand[size] += counts[first + PUTS + size] + counts[first + REFUSED[size]]
    demand[CLASSES] += counts[first + AT_MAX_DEPTH]
    demand[CLASSES + 1] += counts[first + SPACE_AT_MAX_DEPTH] / SPACE_PARTS


@kernel
def count_removal(store: Store, row: int) -> None:
    """Count message `row` before it gives back its storage."""
    message = store.messages[row]
    scalars = store.scalars[0]
    size = class_of(message.length)
    first = scalars.bin * COUNTS
    in_store = message.owner == NONE
    if message.age >= scalars.young_from:
        _count(store, first + YOUNG_GETS + size)
    else:
        _count(store, first + (STORE_GETS if in_store else DATA_SET_GETS) + size)
        store.bins[scalars.bin].lag += scalars.ages - message.age
        touch(store.bins_dirty, scalars.bin, BIN_SHIFT)
    _mark_counts(store)
    space = message.pages if not in_store or store.params[0].kind != STRUCTURE else message.elems
    stock_row = (message.owner + 1) * CLASSES + size
    store.stocks[stock_row].held -= 1
    store.stocks[stock_row].held_space -= space
    touch(store.stocks_dirty, stock_row, STOCK_SHIFT)


@kernel
def count_get(store: Store, queue: int) -> None:
    """Count a message that a get removed, unlike a backout, expiry, CLEAR or restart."""
    store.queues[queue].gets += 1
    store.queues[queue].got_at = store.scalars[0].tick


@kernel
def begin_first_bin(store: Store, tick: int) -> None:
    """Begin the bin of the tick of the first event, of which only a part is seen: no regime has it."""
    scalars = store.scalars[0]
    scalars.bin = int(tick % BINS)
    store.bins[scalars.bin].tick = tick
    touch(store.bins_dirty, scalars.bin, BIN_SHIFT)


@kernel
def begin_bin(store: Store, tick: int) -> None:
    """Begin the bin of `tick`, and empty ones since the last bin."""
    scalars, counted = store.scalars[0], store.params[0].bins_counted
    last = store.bins[scalars.bin].tick
    if scalars.steady_from == NEVER:
        scalars.steady_from = tick
    if last == NEVER:
        last = tick - 1
    elif tick - last > BINS:
        last = tick - BINS
    for passed in range(last + 1, tick + 1):
        row = int(passed % BINS)
        if counted[row] != 0 and store.counts.size > 0:
            for lane in range(row * COUNTS, row * COUNTS + COUNTS):
                store.counts[lane] = 0
            counted[row] = 0
            touch(store.counts_dirty, row * COUNTS, COUNT_SHIFT)
        fresh = store.bins[row]
        fresh.tick = passed
        fresh.ages = scalars.ages
        fresh.lag = 0
        touch(store.bins_dirty, row, BIN_SHIFT)
    scalars.bin = int(tick % BINS)
    young = store.bins[int((tick - YOUNG_FOR) % BINS)]
    scalars.young_from = young.ages if young.tick == tick - YOUNG_FOR else 0


@kernel
def fade_puts(store: Store, before: int, tick: int, sets: int) -> None:
    """Halve the weight of older puts for every quarter of an hour that has ended.

    Args:
        store: arrays of the store.
        before: the tick acted on last.
        tick: the present tick.
        sets: number of data sets.
    """
    passed = tick // QUARTER_TICKS - before // QUARTER_TICKS
    if passed == 0:
        return
    fade = 0.5 ** min(passed, 40)
    for row in range(CLASSES, (sets + 1) * CLASSES):
        stock = store.stocks[row]
        stock.puts *= fade
        stock.puts_space *= fade
        stock.puts_pages *= fade
        touch(store.stocks_dirty, row, STOCK_SHIFT)


@kernel
def watch_tide(store: Store, resource: int, tick: int, share: float, usage: float) -> None:
    """Follow the rises and falls of a resource.

    A rise begins where utilisation was last near its lowest and ends where it was last near its highest, once it has
    turned by TURN.

    Args:
        store: arrays of the store.
        resource: row of `tides`. Of TOTAL_TIDE and of data sets apart the rises that have ended are kept.
        tick: the present tick.
        share: of the resource in use.
        usage: largest share of a resource of the store in use.
    """
    tide, scalars = store.tides[resource], store.scalars[0]
    touch(store.tides_dirty, resource, TIDE_SHIFT)
    if tide.rising == 1:
        if share > tide.top + TURN / 4:
            tide.top, tide.topped, tide.usage = share, tick, usage
            tide.puts_at_top, tide.messages_at_top = scalars.ages, scalars.messages
        if share < tide.top - max(TURN, 0.15 * (tide.top - tide.low)):
            if resource == TOTAL_TIDE or tide.apart == 1:
                _keep_rise(store, resource)
            tide.rising = 0
            tide.low = share
            _begin_rise(store, resource, tick)
    else:
        if tide.began == 0:  # never watched before
            tide.low = share
        tide.low = min(tide.low, share)
        if share <= tide.low + TURN / 4:
            _begin_rise(store, resource, tick)
        if share > tide.low + TURN:
            tide.rising = 1
            tide.top, tide.topped, tide.usage = share, tick, usage
            tide.puts_at_top, tide.messages_at_top = scalars.ages, scalars.messages


@kernel
def _begin_rise(store: Store, resource: int, tick: int) -> None:
    """Let the next rise of a resource begin at a tick."""
    tide, scalars = store.tides[resource], store.scalars[0]
    tide.began = tick
    tide.refused, tide.puts, tide.messages = scalars.full_puts, scalars.ages, scalars.messages


@kernel
def _keep_rise(store: Store, resource: int) -> None:
    """Keep the rise of a resource that has ended. Of the older half of those kept, the lowest makes room for it."""
    tide = store.tides[resource]
    row = int(store.tides[TOTAL_TIDE].rises)
    if row >= RISES:
        row = _row_to_forget(store)
    store.tides[TOTAL_TIDE].rises += 1
    touch(store.tides_dirty, TOTAL_TIDE, TIDE_SHIFT)
    rise = store.rises[row]
    rise.tide = resource
    rise.began, rise.ended, rise.low, rise.top = tide.began, tide.topped, tide.low, tide.top
    rise.usage = tide.usage
    rise.refused = store.scalars[0].full_puts - tide.refused
    rise.puts = tide.puts_at_top - tide.puts
    rise.stayed = tide.messages_at_top - tide.messages
    touch(store.rises_dirty, row, RISE_SHIFT)


@kernel
def _row_to_forget(store: Store) -> int:
    """Return the row of the lowest rise among the older half."""
    best, lowest = 0, np.inf
    for row in range(RISES):
        later = 0
        for other in range(RISES):
            if store.rises[other].ended > store.rises[row].ended:
                later += 1
        height = store.rises[row].top - store.rises[row].low
        if later >= RISES // 2 and height < lowest:
            best, lowest = row, height
    return best


@kernel
def turn_back(store: Store, tick: int) -> None:
    """Continue from an earlier tick: invalidate the bins so far, and take times in the future as of now."""
    scalars = store.scalars[0]
    store.bins[scalars.bin].tick = tick - BINS - 1
    begin_bin(store, tick)
    scalars.steady_from = tick + 1
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


# --- usage ------------------------------------------------------------------------------------------------------------
# The total of all messages is metered too: it rises and falls with the flows, wherever the rules place messages, so the
# length of a burst that never reached a data set predicts that of the next one, which does.

APART = 10  # times: a structure that much larger than a data set does not show its rises [assumed]


@kernel
def _note(store: Store, resource: int, used: int, total: int, maximum: int, held: int) -> None:
    row = store.usage[resource]
    row.used, row.total, row.maximum, row.held = used, total, maximum, held


@kernel
def read_usage(store: Store) -> None:
    """Write USAGE of every resource of a store, as it is now."""
    params, scalars = store.params[0], store.scalars[0]
    held = scalars.messages + pools.base_left(store, scalars.base_messages)
    if params.kind == PAGE_SET:
        total, maximum = store.page_use[0].usable, page_set.max_usable_pages(store)
        _note(store, SPACE, page_set.pages_in_use(store), total, maximum, held)
    elif params.kind == QUEUE_FILE:
        blocks, in_use = params.file_max + params.np_buffer + params.p_buffer, queue_file.blocks_in_use(store)
        _note(store, SPACE, queue_file.overflow(store), params.file_max, params.file_max, held)
        _note(store, BLOCKS, in_use, blocks, blocks, held)
    else:
        _note(store, ENTRIES, pools.entries_in_use(store), params.ents_max, params.ents_max, held)
        _note(store, SPACE, pools.elements_in_use(store), params.elems_max, params.elems_max, held)
        in_scm, used = scm.messages_in_use(store), scm.bytes_in_use(store)
        _note(store, SCM, used, scm.bound(store), scm.max_bytes(store), in_scm)
        _note(store, AUGMENTED, scm.augmented_bytes(store, used), params.aug_max, params.aug_max, in_scm)
        for row in range(store.datasets.size):
            _read_data_set(store, row)


@kernel
def _read_data_set(store: Store, row: int) -> None:
    dataset = store.datasets[row]
    used, held = smds.blocks_in_use(store, row), dataset.messages + pools.base_left(store, dataset.base_messages)
    _note(store, DATA_SETS + row, used, dataset.blocks_total, smds.max_blocks(store, row), held)
    store.usage[DATA_SETS + row].pages = smds.pages_in_use(store, row)


@kernel
def _sample(store: Store) -> None:
    """Sample the share in use of every resource, of its size after all expansions.

    A data set that is APART times smaller than its structure has rises of its own, which that of all messages hardly
    shows. The share of TOTAL_TIDE, which cannot fill, stays 0; its rise is followed.
    """
    params, tides, usage = store.params[0], store.tides, store.usage
    read_usage(store)
    tides[SPACE].share = usage[SPACE].used / max(1, usage[SPACE].maximum)
    if params.kind != STRUCTURE:
        return
    tides[ENTRIES].share = usage[ENTRIES].used / max(1, usage[ENTRIES].maximum)
    tides[SCM].share = usage[SCM].used / usage[SCM].maximum if usage[SCM].total > 0 else 0.0
    for row in range(DATA_SETS, DATA_SETS + store.datasets.size):
        blocks, tide = usage[row].maximum, tides[row]
        tide.share = usage[row].used / max(1, blocks)
        tide.apart = 1 if 1.0 * APART * blocks * params.ds_block < params.size_now else 0


@kernel
def meter_usage(store: Store, before: int, tick: int) -> None:
    """Move the meters to a tick: begin its bin, fade older puts, sample the resources and follow their rises.

    Args:
        store: arrays of the store.
        before: the tick acted on last.
        tick: the present tick.
    """
    begin_bin(store, tick)
    fade_puts(store, before, tick, store.datasets.size)
    _sample(store)
    params, tides, count = store.params[0], store.tides, _resources(store)
    fullest = params.share = 0.0
    for resource in range(count):
        fullest = max(fullest, tides[resource].share)
        if resource != SCM:
            params.share = max(params.share, tides[resource].share)
    params.low, params.high = min(params.low, params.share), max(params.high, params.share)
    for resource in range(count):
        share = tides[resource].share
        if resource == TOTAL_TIDE:
            share = _total(store) if params.kind == STRUCTURE else tides[SPACE].share
        watch_tide(store, resource, tick, share, fullest)


@kernel
def _resources(store: Store) -> int:
    """Return the number of rows of `tides` in use."""
    return store.datasets.size + DATA_SETS


@kernel
def _total(store: Store) -> float:
    """Return the share of a structure that all messages would take, each leaving half an element empty.

    It is the sum of their entries and of their elements, wherever they are, as shares of those of the structure. Those
    of the baseline take what was measured.
    """
    params, scalars = store.params[0], store.scalars[0]
    each = pools.MESSAGE_OVERHEAD + pools.ELEMENT_BYTES // 2
    elements = (scalars.bytes + scalars.messages * each) / pools.ELEMENT_BYTES
    entries = scalars.messages + pools.base_left(store, scalars.base_ents) + params.scm_base_messages
    elements += pools.base_left(store, scalars.base_elems) + params.scm_base_elems
    for row in range(store.datasets.size):
        blocks = pools.base_left(store, store.datasets[row].base_blocks)
        elements += blocks * (params.ds_block / pools.ELEMENT_BYTES)
    return entries / max(1, params.ents_max) + elements / max(1, params.elems_max)


@kernel
def leads_to_full(store: Store, tick: int) -> bool:
    """Return True if a rise is high enough for a forecast, and one could fill its resource within the horizon.

    Args:
        store: arrays of the store; PARAMS say how high, how much faster a rise may become, and the horizon.
        tick: that was metered last.
    """
    params = store.params[0]
    climb, may_fill = 0.0, False
    for resource in range(_resources(store)):
        tide = store.tides[resource]
        height = max(tide.share - tide.low, 0.0)
        climb = max(climb, height)
        pace = height / max(1, tick - tide.began) * params.look_pace
        if tide.share + pace * params.look_ticks >= 1.0:
            may_fill = True
    return may_fill and climb >= params.look_rise
