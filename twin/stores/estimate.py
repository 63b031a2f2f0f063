"""Prototype: what measurements add to the events of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from kernels import layout, meter_rows, meters, pools, smds
from kernels.layout import NEVER
from kernels.clock import TICK
from kernels.meter_rows import BINS, CLASSES, COUNTS, DATA_SET_GETS, PUTS, STORE_GETS
from twin.state.arrays import Array
from twin.state.tables import Tables


class Estimate(msgspec.Struct, kw_only=True):
    """What the last measurement said, and the messages that no event did.

    Attributes:
        at: tick of the last measurement of the usage; None: there was none.
        total: messages measured then.
        known: messages known by events then.
        length: mean length of messages, bytes; 0: not known.
        stocks: unseen messages that `stocks` has: (row, messages, space).
        corrected: number of corrections.
    """

    at: int | None = None
    total: float = 0.0
    known: int = 0
    length: float = 0.0
    stocks: list[tuple[int, int, int]] = []
    blocks: dict[str, int] = {}
    corrected: int = 0
    puts: list[tuple[int, float, float, float]] = []
    faded: int = 0
    one: float = 0.0
    share: list[float] = []


def mean_length(entries: float, elements: float, block_bytes: float) -> float:
    """Return the mean length of messages from what they take, bytes."""
    return max(1.0, (elements * pools.ELEMENT_BYTES + block_bytes) / max(1.0, entries) - 500.0)


def mix_of(tables: Tables, owners: int, length: float) -> Array:
    """Return f8[CLASSES], shares of the puts by class: those of the puts known, else one class."""
    puts = tables.store.stocks["puts"][CLASSES : (owners + 1) * CLASSES].reshape(owners, CLASSES).sum(0)
    return puts


def spread(tables: Tables, since: int, until: int, amounts: Array, lane: int) -> None:
    """Add messages by class to a lane of the bins of ticks since..until-1, evenly."""
    store = tables.store
    ticks = [t for t in range(max(since, until - BINS + 2), until) if store.bins[t % BINS]["tick"] == t]
    if not ticks:
        return
    for size in np.flatnonzero(amounts).tolist():
        n, done = float(amounts[size]), 0
        for place, tick in enumerate(ticks):
            upto = round(n * (place + 1) / len(ticks))
            row = tick % BINS
            store.counts[row * COUNTS + lane + size] = max(0, store.counts[row * COUNTS + lane + size] + upto - done)
            done = upto
    for tick in ticks:
        row = tick % BINS
        store.params[0]["bins_counted"][row] = 1
    store.counts_dirty[:] = 1
    store.bins_dirty[:] = 1


_Z = np.array([-1.6, -1.0, -0.6, -0.3, 0.0, 0.3, 0.6, 1.0, 1.6])
_SIGMA = 0.6


def _around(length: float) -> Array:
    """Return f8[n], lengths of messages of a mean length, of which nothing else is known."""
    drawn = np.exp(_SIGMA * _Z)
    return np.asarray(length * drawn / drawn.mean())


def _fade(est: Estimate, tick: int) -> None:
    """Fade the unseen puts as the kernel has faded all."""
    passed = tick // meters.QUARTER_TICKS - est.faded // meters.QUARTER_TICKS
    if passed > 0:
        f = 0.5 ** min(40, passed)
        est.puts = [(row, a * f, b * f, c * f) for row, a, b, c in est.puts]
    est.faded = tick


def correct(
    est: Estimate,
    tables: Tables,
    qmgrs: Sequence[str],
    total: float,
    unseen_space: float,
    blocks: dict[str, int],
    tick: int,
    length: float,
    ds_block: int,
    one: float = 0.0,
) -> None:
    """Move the flows by what a measurement has beyond what events said since the last one."""
    tables.reserve("counts", meter_rows.BINS * meter_rows.COUNTS)
    store = tables.store
    known = int(store.scalars[0]["messages"])
    owners = max(1, len(qmgrs))
    length = length or est.length or 1024.0
    est.length = length
    stocks = store.stocks
    _fade(est, tick)
    for row, a, b, c in est.puts:  # what is left are the puts known
        stocks[row]["puts"] = max(0.0, stocks[row]["puts"] - a)
        stocks[row]["puts_space"] = max(0.0, stocks[row]["puts_space"] - b)
        stocks[row]["puts_pages"] = max(0.0, stocks[row]["puts_pages"] - c)
    for row, held, space in est.stocks:
        stocks[row]["held"] -= held
        stocks[row]["held_space"] -= space
    mine = stocks[CLASSES : (owners + 1) * CLASSES].reshape(owners, CLASSES)
    puts = mine["puts"]
    is_sampled = puts.sum() >= 20
    if is_sampled:
        by_class = puts.sum(0)
        space_of = mine["puts_space"].sum(0) / np.maximum(by_class, 1e-9)
        pages_of = mine["puts_pages"].sum(0) / np.maximum(by_class, 1e-9)
        mix = by_class / by_class.sum()
        share = puts.sum(1)
    else:
        mix, space_of, pages_of = np.zeros(CLASSES), np.zeros(CLASSES), np.zeros(CLASSES)
        for own in _around(length).tolist():
            size = int(meters.class_of(int(own)))
            mix[size] += 1
            space_of[size] += one or float(pools.elements_of(int(own)))
            pages_of[size] += max(1.0, float(np.ceil(own / 4096)))
        space_of /= np.maximum(mix, 1)
        pages_of /= np.maximum(mix, 1)
        mix /= mix.sum()
        share = np.array([max(0, blocks.get(q, 0) - est.blocks.get(q, 0)) for q in qmgrs] or [1.0], float)
        if len(est.share) == owners:
            share = share + np.array(est.share)
        est.share = share.tolist()
        share = share if share.sum() > 0 else np.ones(owners)
    share = share / share.sum()
    change = (total - est.total) - (known - est.known) if est.at is not None and tick > est.at else 0.0
    if change > 0:
        spread(tables, est.at, tick, mix * change, PUTS)
        before = {row: (a, b, c) for row, a, b, c in est.puts}
        gross = sum(a for _, a, _, _ in est.puts) + change
        est.puts = [
            (
                (owner + 1) * CLASSES + size,
                gross * mix[size] * share[owner],
                gross * mix[size] * share[owner] * space_of[size],
                gross * mix[size] * share[owner] * pages_of[size],
            )
            for owner in range(owners)
            for size in np.flatnonzero(mix).tolist()
        ]
    away = min(1.0, sum(blocks.values()) * ds_block / max(1.0, total * length))
    if change < 0:
        spread(tables, est.at, tick, mix * -change * (1 - away), STORE_GETS)
        spread(tables, est.at, tick, mix * -change * away, DATA_SET_GETS)
    for row, a, b, c in est.puts:
        stocks[row]["puts"] += a
        stocks[row]["puts_space"] += b
        stocks[row]["puts_pages"] += c
    est.stocks = []
    unseen = max(0.0, total - known)
    if unseen > 0:
        mean_pages = max(1.0, float((mix * pages_of).sum()))
        away_msgs = {}
        for row, q in enumerate(qmgrs):
            base_pages = blocks.get(q, 0) * (ds_block // 4096)
            away_msgs[row] = min(unseen, max(0.0, (base_pages - int(store.datasets[row]["pages"])) / mean_pages)) if row < store.datasets.size else 0
        inside = max(0.0, unseen - sum(away_msgs.values()))
        for size in np.flatnonzero(mix).tolist():
            n = int(inside * mix[size])
            est.stocks.append((size, n, int(n * space_of[size])))
            for row, out in away_msgs.items():
                m = int(out * mix[size])
                if m:
                    est.stocks.append(((row + 1) * CLASSES + size, m, int(m * pages_of[size])))
    for row, held, space in est.stocks:
        stocks[row]["held"] += held
        stocks[row]["held_space"] += space
    store.stocks_dirty[:] = 1
    est.at, est.total, est.known, est.blocks = tick, total, known, dict(blocks)
    est.corrected += 1
