"""Futures of a store's flows, and its fill model, as `kernels.forecast` rolls over them.

- Futures: `twin.forecast.flows` explains them. tests/naive/futures.py is the same, slowly.
- The fill model is read from the arrays of a store in one pass. Its rules are those of pools.py, smds.py and scm.py,
  for a class of messages instead of one. tests/naive/fill.py is the same, slowly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels import forecast, meters, regime, scm
from kernels._compile import kernel, routine
from kernels.clock import HALF_HOUR_TICKS
from kernels.forecast import IN_DATA_SETS, IN_STORE
from kernels.index import GOLDEN_RATIO
from kernels.layout import OFFLOAD_NONE, RULE_OFF, RULES, STRUCTURE, Array, Row, Store
from kernels.meter_rows import CLASSES, DATA_SETS, ENTRIES, SCM, SPACE
from kernels.pools import ELEMENT_BYTES, OFFLOADED_ELEMENTS
from kernels.smds import PAGE_BYTES

DOUBTS = 4  # columns of `Drawn.doubts` before those of the sizes: of mean, trend and wandering, and of the pace
_WANDER = 0.2  # standard deviation by which a rate has wandered after an hour, as a share of it [fitted]
_TREND_LASTS = 2.0  # a trend lasts this many times as long as it was seen [assumed]
_MIN_TREND_BINS = 18  # three minutes
_MIN_TREND_ERRORS = 2.5  # standard errors from which a trend is believed in part; far beyond them wholly
_STRIDE = 37  # of the paths; it has no divisor in common with their number
_LEAST_FACTOR, _MOST_FACTOR = 0.2, 5.0  # on the space of a message

# Rows of `hours`, of what earlier days predict
FACTOR = 0  # of the puts at present
NOW = 1  # weight of the expert that predicts as many as now
PERSISTENT = 2  # share of a change of the present puts that lasts
WANDERED = 3  # standard deviation of the puts, as a share of the puts at present
HOURS = 4
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_SUMMANDS = 12  # uniform numbers of variance 1/12 per normal number


# --- random numbers: a function of a seed and an index, the same on every machine and in every version ----------------

# The generator is splitmix64 with a counter as its state.
# Source: [published: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014].


@kernel
def uniform(seed: np.uint64, index: int) -> float:
    """Return the number of a seed at an index, uniform in [0, 1)."""
    mixed = seed + np.uint64(index + 1) * GOLDEN_RATIO
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX1
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX2
    return float((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)) * (1.0 / (1 << 53))


@routine
def below(seed: np.uint64, limit: int, out: Array) -> None:
    """Fill `out`, i8[n, m], with uniform integers from 0 to limit - 1."""
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            out[row, column] = int(uniform(seed, row * out.shape[1] + column) * limit)


@routine
def normal(seed: np.uint64, out: Array) -> None:
    """Fill `out`, f8[n, m], with numbers of mean 0 and variance 1, between -6 and 6.

    Each is a sum of 12 uniform numbers, which needs no logarithm.
    """
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            total = -_SUMMANDS / 2
            for i in range(_SUMMANDS):
                total += uniform(seed, (row * out.shape[1] + column) * _SUMMANDS + i)
            out[row, column] = total


# --- futures ----------------------------------------------------------------------------------------------------------


class Present(NamedTuple):
    """The regime that futures are drawn from, with c length classes (any).

    Attributes:
        bins: f8[n, 3 * c], messages by class: that stayed or were refused for lack of storage, that left the store
            itself, that left data sets.
        net: elements, pages or blocks that a bin adds on average, unoffloaded.
        spread: variance of what bins add.
        service: share of the messages held that is got in a bin, where gets follow the backlog; 0: they do not.
        held: messages held at its end.
        whole: f8[m, 3 * c], the bins of the rise, of this regime and of those before it; f8[0, 3 * c]: flows have not
            changed.
        lasts: bins that flows stay as they are, on average.
    """

    bins: Array
    net: float
    spread: float
    service: float
    held: float
    whole: Array
    lasts: float


class Drawn(NamedTuple):
    """Futures that are drawn, and working space.

    Attributes:
        cumulated, trend, starts, extra, larger, mix: written, as `forecast.Flows`.
        pace: f8[paths], written: factor on the time that a path takes to be full.
        doubts: f8[paths, DOUBTS + 1 + d], working space.
        lanes: f8[3, 3 * c], working space.
        errors: f8[3, steps], working space.
    """

    cumulated: Array
    trend: Array
    starts: Array
    extra: Array
    larger: Array
    mix: Array
    pace: Array
    doubts: Array
    lanes: Array
    errors: Array


@routine
def find_classes(bins: Array, classes: Array, some: Array) -> int:
    """Find the classes of which messages come, leave, or are held, all of them where none come; return their number.

    Args:
        bins: f8[n, 3 * c], as of `Present`.
        classes: f8[c, COLUMNS], as `forecast.Model`.
        some: i8[c], their numbers, written.
    """
    count, number, puts = classes.shape[0], 0, 0.0
    for size in range(count):
        total = 0.0
        for row in range(bins.shape[0]):
            total += bins[row, size]
        puts += max(0.0, total)
    for size in range(count):
        is_moving = puts <= 0.0 or classes[size, IN_STORE] != 0.0 or classes[size, IN_DATA_SETS] != 0.0
        for row in range(bins.shape[0]):
            if is_moving:
                break
            is_moving = bins[row, size] != 0.0 or bins[row, count + size] != 0.0 or bins[row, 2 * count + size] != 0.0
        if is_moving:
            some[number] = size
            number += 1
    return number


@routine
def draw(
    now: Present,
    weights: Array,
    sizes: Array,
    lengths: Array,
    hours: Array,
    paces: Array,
    seed: np.uint64,
    second: int,
    drawn: Drawn,
) -> None:
    """Draw futures of a regime: everything random of their paths.

    Where flows have changed, a path leaves the regime after a time that is exponentially distributed around how long
    they stay as they are, and continues with bins of the whole rise.

    Args:
        now: the regime.
        weights: f8[c], elements, pages or blocks that a message put takes.
        sizes: f8[1 + d], standard deviation of what messages will take of the store and of each data set, as a share
            of it.
        lengths: i8[steps], bins of each step.
        hours: f8[HOURS, steps], what earlier days predict for each step; f8[HOURS, 0]: nothing.
        paces: f8[paths], factors on the time that a path takes to be full, rising.
        seed: of the random numbers.
        second: row of `drawn.cumulated` from which on the bins of the whole rise stand; 0: flows have not changed.
        drawn: written.
    """
    n, slope = now.bins.shape[0], drawn.lanes[0]
    trend_error = _read_trend(now, weights, slope)
    if now.service > 0.0:
        slope[:] = 0.0
    if second > 0:
        drawn.lanes[2] = 0.0
        regime.cumulate(now.bins, slope, drawn.cumulated[:second])
        regime.cumulate(now.whole, drawn.lanes[2], drawn.cumulated[second:])
    else:
        regime.cumulate(now.bins, slope, drawn.cumulated)
    space = _read_lanes(now.bins, weights, drawn.lanes[1], drawn.mix)
    _foresee(now, lengths, hours, np.sqrt(now.spread / n), trend_error, space, drawn)
    if now.service > 0.0:
        _settle(now, lengths, hours, drawn)
    _draw_doubts(seed, drawn.doubts)
    below(seed, n, drawn.starts)
    if second > 0:
        _leave(now, lengths, seed ^ np.uint64(2), second, drawn.starts)
    each = 0.0
    for size in range(weights.size):
        each += drawn.mix[size] * weights[size]
    each = max(each, 1e-9)
    for path in range(drawn.extra.shape[0]):
        doubts = drawn.doubts[path]
        mean, trend, wandering = doubts[0] / each, doubts[1] / each, doubts[2] / each
        for step in range(lengths.size):
            drawn.extra[path, step] = (
                mean * drawn.errors[0, step] + trend * drawn.errors[1, step] + wandering * drawn.errors[2, step]
            )
        for size in range(sizes.size):
            factor = 1.0 + doubts[DOUBTS + size] * sizes[size]
            drawn.larger[path, size] = min(max(factor, _LEAST_FACTOR), _MOST_FACTOR)
    _draw_paces(paces, drawn)


@kernel
def _leave(now: Present, lengths: Array, seed: np.uint64, second: int, starts: Array) -> None:
    """Let each path continue with the bins of the whole rise once it has left the regime.

    The times at which paths leave are spread evenly over their distribution, in an order that has nothing to do with
    other numbers drawn.
    """
    paths = starts.shape[0]
    for path in range(paths):
        stays = (path * _STRIDE % paths + 0.5) / paths
        leaves, elapsed = -now.lasts * np.log(stays), 0.0
        for step in range(lengths.size):
            if elapsed + lengths[step] / 2 > leaves:
                place = uniform(seed, path * lengths.size + step) * now.whole.shape[0]
                starts[path, step] = second + int(place)
            elapsed += lengths[step]


@kernel
def _read_trend(now: Present, weights: Array, slope: Array) -> float:
    """Write f8[3 * c], the change of each flow from bin to bin; return its standard error, in space."""
    n, count = now.bins.shape[0], weights.size
    slope[:] = 0.0
    if n < _MIN_TREND_BINS:
        return 0.0
    squares, along = 0.0, 0.0
    for row in range(n):
        centred = row - (n - 1) / 2
        squares += centred * centred
        for lane in range(slope.size):
            slope[lane] += now.bins[row, lane] * centred
    for lane in range(slope.size):
        slope[lane] /= squares
        along += slope[lane] * (weights[lane] if lane < count else -weights[lane % count])
    error = np.sqrt(now.spread / squares)
    errors = abs(along) / error if error > 0.0 else 0.0
    believed = max(0.0, 1.0 - (_MIN_TREND_ERRORS / errors) ** 2) if errors > 0.0 else 0.0
    for lane in range(slope.size):
        slope[lane] *= believed
    return float(error * believed)


@kernel
def _read_lanes(bins: Array, weights: Array, mean: Array, mix: Array) -> float:
    """Write f8[3 * c], the mean of each flow, and f8[c], the mix of the puts; return the space put in a bin."""
    n, count = bins.shape[0], weights.size
    mean[:] = 0.0
    for row in range(n):
        for lane in range(mean.size):
            mean[lane] += bins[row, lane]
    puts, space = 0.0, 0.0
    for size in range(count):
        puts += max(mean[size], 0.0)
    for size in range(count):
        mix[size] = max(mean[size], 0.0) / puts if puts > 0.0 else 1.0 / count
    for lane in range(mean.size):
        mean[lane] /= n
    for size in range(count):
        space += mean[size] * weights[size]
    return space


@kernel
def _foresee(
    now: Present, lengths: Array, hours: Array, mean_error: float, trend_error: float, space: float, drawn: Drawn
) -> None:
    """Write the trend of each step, and the standard deviation of what the puts of a bin will be then, in space."""
    slope, mean, errors = drawn.lanes[0], drawn.lanes[1], drawn.errors
    lasts = _TREND_LASTS * now.bins.shape[0]
    is_known = hours.shape[1] > 0
    elapsed = 0.0
    for step in range(lengths.size):
        middle = elapsed + lengths[step] / 2
        elapsed += lengths[step]
        ahead = lasts * (1.0 - np.exp(-middle / lasts))
        for lane in range(slope.size):
            drawn.trend[step, lane] = ahead * slope[lane]
        errors[0, step], errors[1, step] = mean_error, trend_error * ahead
        errors[2, step] = _WANDER * abs(now.net) * np.sqrt(middle / (2 * HALF_HOUR_TICKS))
        if is_known:
            for size in range(drawn.mix.size):
                changed = (hours[FACTOR, step] - 1.0) * mean[size]
                drawn.trend[step, size] = drawn.trend[step, size] * hours[NOW, step] + changed
            errors[0, step] *= hours[PERSISTENT, step]
            errors[1, step] *= hours[NOW, step]
            errors[2, step] = hours[WANDERED, step] * max(0.0, space)
        if now.service > 0.0:
            for number in range(3):
                errors[number, step] *= np.exp(-now.service * middle)


@kernel
def _settle(now: Present, lengths: Array, hours: Array, drawn: Drawn) -> None:
    """Write the trend of each step where gets follow the backlog: it comes to rest."""
    mean, count, is_known = drawn.lanes[1], drawn.mix.size, hours.shape[1] > 0
    puts, usual = 0.0, 0.0
    for size in range(count):
        puts += mean[size]
        usual += mean[count + size] + mean[2 * count + size]
    held, elapsed = now.held, 0.0
    for step in range(lengths.size):
        factor = hours[FACTOR, step] if is_known else 1.0
        rest = puts * factor / now.service
        if is_known:
            after = rest + (held - rest) * np.exp(-now.service * lengths[step])
            level, held = (held + after) / 2, after
        else:
            level = rest + (held - rest) * np.exp(-now.service * (elapsed + lengths[step] / 2))
        elapsed += lengths[step]
        for size in range(count):
            drawn.trend[step, size] = (factor - 1.0) * mean[size]
        for lane in range(count, 3 * count):
            share = mean[lane] / usual if usual > 0.0 else 0.5 / count
            drawn.trend[step, lane] = (now.service * level - usual) * share


@kernel
def _draw_doubts(seed: np.uint64, doubts: Array) -> None:
    """Write normal numbers, those of the second half of the paths against the first: half as many are as good."""
    half = doubts.shape[0] // 2
    normal(seed ^ np.uint64(1), doubts[:half])
    for path in range(half):
        for column in range(doubts.shape[1]):
            doubts[half + path, column] = -doubts[path, column]


@kernel
def _draw_paces(paces: Array, drawn: Drawn) -> None:
    """Write the pace of each path, in the order of its doubt."""
    pace = DOUBTS - 1
    for path in range(paces.size):
        own, rank = drawn.doubts[path, pace], 0
        for other in range(paces.size):
            if drawn.doubts[other, pace] < own or (drawn.doubts[other, pace] == own and other < path):
                rank += 1
        drawn.pace[path] = paces[rank]


# --- fill model -------------------------------------------------------------------------------------------------------

MAX_ERROR = 0.6  # of what messages will take, as a share
_SERVED_TICKS = 60  # ten minutes: a queue is served while a message left it in this time
_MIN_BLOCKS = 20  # in use, from which on they show how loosely blocks are filled
_MAX_LOOSENESS = 1.5  # times the blocks that messages packed one after the other take; looser are old holes
_LEAST = 1e-9  # messages, by which something is divided


class Fill(NamedTuple):
    """A fill model being read, with d data sets of which n are used.

    Attributes:
        weights: f8[CLASSES], elements, pages or blocks that a message put takes when not offloaded.
        scalars: forecast.MODEL[1], of a structure with what its attributes say of automatic alter.
        classes: f8[CLASSES, forecast.COLUMNS].
        offload: f8[2**RULES, CLASSES], not written: as `forecast.Model`.
        doubts: f8[1 + d], the first 1 + n written: standard deviation of what messages will take of the store and of
            each data set, as a share of it.
        sets, set_put, set_held: as `forecast.Model`, with d rows of which the first n are written.
        rows: i8[d], the first n written: rows of the data sets that are used.
    """

    weights: Array
    scalars: Array
    classes: Array
    offload: Array
    doubts: Array
    sets: Array
    set_put: Array
    set_held: Array
    rows: Array


@kernel
def _threshold(params: Row, rule: int) -> float:
    """Return the share in use above which an offload rule is in force, inf: never."""
    if params.cf_level < 5 or params.offload == OFFLOAD_NONE or params.offld_sz[rule] >= RULE_OFF:
        return np.inf
    return -1.0 if params.offld_th[rule] == 0 else params.offld_th[rule] / 100


@routine
def rules_in_force(params: Array, used: float) -> int:
    """Return the bits of the offload rules in force. params: PARAMS[1]; used: share in use of the fuller pool."""
    mask = 0
    for rule in range(RULES):
        if used > _threshold(params[0], rule):
            mask |= 1 << rule
    return mask


@kernel
def _weigh_stocks(stocks: Array, owners: int, alone: Array, weights: Array) -> None:
    """Write f8[CLASSES], what a message put takes, as `weigh`."""
    for size in range(CLASSES):
        puts, space = 0.0, 0.0
        for owner in range(1, owners + 1):
            stock = stocks[owner * CLASSES + size]
            puts += stock.puts
            space += stock.puts_space
        weights[size] = space / max(puts, _LEAST) if puts > 0.5 else alone[size]


@routine
def weigh_stocks(stocks: Array, owners: int, alone: Array, weights: Array) -> None:
    """Write what a message put takes of a store itself on average, not offloaded.

    Args:
        stocks: STOCK, of the store.
        owners: data sets, or queue managers that put.
        alone: f8[CLASSES], the same where none were put.
        weights: f8[CLASSES], written.
    """
    _weigh_stocks(stocks, owners, alone, weights)


@routine
def read_fill(store: Store, tick: int, owners: int, alone: Array, fill: Fill) -> int:
    """Read the fill model of a store; return the number of data sets used.

    Args:
        store: the arrays.
        tick: the tick of the forecast.
        owners: data sets, or queue managers that put: 1 of a store with one resource.
        alone: f8[CLASSES], elements, pages or blocks of a message in a class in which none were put.
        fill: written.
    """
    scalars, stocks, weights = fill.scalars[0], store.stocks, fill.weights
    meters.read_usage(store)
    _weigh_stocks(stocks, owners, alone, weights)
    scalars.served = 0.0
    for row in range(store.queues.size):
        if store.queues[row].got_at > tick - _SERVED_TICKS:
            scalars.served += store.queues[row].depth
    for size in range(CLASSES):
        stock = stocks[size]
        fill.classes[size, forecast.PUT_SPACE] = weights[size]
        fill.classes[size, forecast.HELD_SPACE] = stock.held_space / stock.held if stock.held > 0 else weights[size]
        fill.classes[size, forecast.IN_STORE] = stock.held
        fill.classes[size, forecast.IN_DATA_SETS] = 0.0
    if store.params[0].kind == STRUCTURE:
        return _read_structure(store, owners, fill)
    scalars.ents, scalars.ents_max, scalars.counts_ents = 0.0, 1.0, 0
    space = store.usage[SPACE]
    scalars.space, scalars.space_max = space.used, max(1.0, float(space.maximum))
    scalars.away_space, scalars.alter_from = 0.0, np.inf
    for rule in range(RULES):
        scalars.th[rule] = np.inf
    fill.doubts[0] = _doubt_of_mean(stocks, owners, weights, space.maximum - scalars.space)
    return 0


@kernel
def _read_structure(store: Store, owners: int, fill: Fill) -> int:
    """Read what a structure has besides; return the number of data sets used."""
    scalars, params, stocks = fill.scalars[0], store.params[0], store.stocks
    entries, elements, in_scm = store.usage[ENTRIES], store.usage[SPACE], store.usage[SCM]
    scalars.ents, scalars.ents_max = entries.used, max(1, entries.total)
    scalars.space, scalars.space_max = elements.used, max(1, elements.total - 1)
    scalars.away_space, scalars.counts_ents = OFFLOADED_ELEMENTS, 1
    scalars.size = params.size_now
    for rule in range(RULES):
        scalars.th[rule] = _threshold(params, rule)
    if in_scm.total != 0:  # SCM can take what the structure's own bound leaves
        scalars.scm_ents, scalars.scm_space = scm.messages_in_use(store), scm.elements_in_use(store)
        scalars.scm_max = max(in_scm.maximum, in_scm.used) / ELEMENT_BYTES  # an entry takes as much as an element
    for size in range(CLASSES):
        for owner in range(1, owners + 1):
            fill.classes[size, forecast.IN_DATA_SETS] += stocks[owner * CLASSES + size].held
    fill.doubts[0] = _doubt_of_mean(stocks, owners, fill.weights, scalars.space_max - scalars.space)
    used = 0
    for row in range(owners):
        if _is_used(store, row):
            fill.rows[used] = row
            _read_data_set(store, owners, row, used, fill)
            used += 1
    return used


@kernel
def _is_used(store: Store, row: int) -> bool:
    """Return True if a data set holds messages, or may be put to."""
    puts = 0.0
    for size in range(CLASSES):
        puts += store.stocks[(row + 1) * CLASSES + size].puts
    return puts > 0.5 or store.datasets[row].messages > 0 or store.datasets[row].base_blocks > 0


@kernel
def _read_data_set(store: Store, owners: int, row: int, place: int, fill: Fill) -> None:
    """Read a data set into a place among those that are used.

    What comes and goes soon leaves holes in the block being filled, which are not filled again
    (docs/storage-model.md, "Shared message data sets"): how loosely the blocks in use are filled shows how many more
    there will be.
    """
    stocks, dataset = store.stocks, store.datasets[row]
    per_block = store.params[0].ds_block // PAGE_BYTES
    packed = dataset.blocks_data * per_block / max(1, dataset.pages)
    puts, blocks = 0.0, 0.0  # counted that may be offloaded, and what those of all owners would take here
    for size in range(CLASSES):
        own, all_puts = stocks[(row + 1) * CLASSES + size], 0.0
        for owner in range(1, owners + 1):
            all_puts += stocks[owner * CLASSES + size].puts
        waste = _waste(own.puts_pages, own.puts, per_block)
        if dataset.blocks_data >= _MIN_BLOCKS:
            waste = max(waste, min(packed, _MAX_LOOSENESS * waste))
        fill.set_put[place, size] = own.puts_pages / per_block * waste / max(all_puts, _LEAST)
        held = max(1.0, fill.classes[size, forecast.IN_DATA_SETS])
        fill.set_held[place, size] = own.held_space / per_block / held * (packed if dataset.pages != 0 else 1.0)
        offloaded = fill.offload[(1 << RULES) - 1, size]
        puts += own.puts * offloaded
        blocks += fill.set_put[place, size] * all_puts * offloaded
    used = store.usage[DATA_SETS + row]
    fill.sets[place, 0], fill.sets[place, 1] = used.used, used.maximum
    fill.doubts[1 + place] = _doubt_of_data_set(puts, blocks, fill.sets[place, 1] - fill.sets[place, 0])


@kernel
def _waste(pages: float, messages: float, per_block: int) -> float:
    """Return by what factor messages take more than their pages: some do not fit in what is left of a block."""
    each = max(1.0, pages / max(messages, _LEAST))
    together = np.floor(per_block / each)
    if together >= 1:
        return float(per_block / (each * together))
    return float((np.floor(each / per_block) + 1) * per_block / each)


@kernel
def _doubt_of_data_set(puts: float, blocks: float, room: float) -> float:
    """Return the error of how fast a data set will fill, as a share: which queue manager puts next is chance.

    `puts` messages were counted that may be offloaded; they take `blocks`, of which there is `room` for more.
    """
    if puts < 1:
        return MAX_ERROR
    each = blocks / puts
    return min(MAX_ERROR, np.sqrt(1 / puts + each / max(each, room)))


@kernel
def _doubt_of_mean(stocks: Array, owners: int, weights: Array, room: float) -> float:
    """Return the error of the mean of what messages will take, as a share: few were put, or few still fit."""
    count, space = 0.0, 0.0
    for row in range(CLASSES, (owners + 1) * CLASSES):
        count += stocks[row].puts
        space += stocks[row].puts * weights[row % CLASSES]
    if count < 1:
        return MAX_ERROR
    mean = max(_LEAST, space / count)
    squares = 0.0
    for row in range(CLASSES, (owners + 1) * CLASSES):
        squares += stocks[row].puts * (weights[row % CLASSES] - mean) ** 2
    variance = squares / count / mean**2
    return min(MAX_ERROR, np.sqrt(variance * (1 / count + mean / max(room, mean))))
