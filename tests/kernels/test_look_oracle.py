"""Fill models, regimes, futures and laws of rises by kernels are those of the oracles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import forecast, futures, regime
from kernels.layout import NEVER, OFFLOAD_NONE, OFFLOAD_SMDS, RULE_OFF, Array, Store
from kernels.meter_rows import DATA_SETS, ENTRIES, SPACE
from kernels.scm import bound
from tests.naive import fill as naive_fill
from tests.naive import futures as naive_futures
from tests.naive import regime as naive_regime
from tests.naive.estates import structure
from tests.naive.private_estates import page_set, queue_file
from tests.support.profile import examples
from tests.support.twin_driver import TwinDriver
from twin.forecast.fill_model import read_fill

CLASSES = 12
seeds = st.integers(0, 2**32)
TICK = 100_000


def close(expected: object) -> object:
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


# --- the fill model --------------------------------------------------------------------------------------------------


def random_store(kind: str, rng: np.random.Generator) -> Store:
    """Return the arrays of a store, with random numbers where a fill model reads."""
    driver = TwinDriver()
    driver.open({"structure": structure, "page set": page_set, "queue file": queue_file}[kind]())
    store = driver.twin.tables.store
    owners = max(1, store.datasets.size)
    stocks = store.stocks[: (owners + 1) * CLASSES]
    some = rng.integers(0, 2, stocks.size)
    stocks["held"] = some * rng.integers(0, 500, stocks.size)
    stocks["held_space"] = stocks["held"] * rng.integers(1, 40, stocks.size)
    stocks["puts"] = rng.choice([0.0, 0.3, 900.0], stocks.size) * rng.uniform(0, 1, stocks.size)
    stocks["puts_space"], stocks["puts_pages"] = rng.uniform(1, 20, (2, stocks.size)) * stocks["puts"]
    store.queues["depth"] = rng.integers(0, 100, store.queues.size)
    store.queues["got_at"] = rng.choice([NEVER, TICK - 60, TICK - 59, TICK], store.queues.size)
    params, data = store.params[0], store.datasets
    params["cf_level"], params["offload"] = rng.choice([3, 4, 5]), rng.choice([OFFLOAD_NONE, OFFLOAD_SMDS])
    params["offld_th"], params["offld_sz"] = rng.integers(0, 100, 3), rng.choice([0, 4096, RULE_OFF], 3)
    data["blocks_data"], data["pages"] = rng.integers(0, 60, data.size), rng.choice([0, 300], data.size)
    data["messages"] = rng.integers(0, 2, data.size)
    return store


@pytest.mark.parametrize("kind", ["structure", "page set", "queue file"])
@settings(max_examples=examples(60), deadline=None)
@given(seed=seeds)
def test_the_fill_model_is_that_of_the_oracle(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    store = random_store(kind, rng)
    owners, sets = max(1, store.datasets.size), store.datasets.size if kind == "structure" else 0
    alone, offload = rng.uniform(1, 50, CLASSES), rng.uniform(0, 1, (8, CLASSES))
    read, used = read_fill(store, TICK, owners, alone, np.zeros(1, forecast.MODEL), offload)
    scalars = read.scalars[0]
    room = float(scalars["space_max"] - scalars["space"])
    naive = naive_fill.read(store, TICK, owners, alone, offload, room, store.usage[DATA_SETS:])
    assert read.weights == close(naive.weights)
    columns = (naive.put_space, naive.held_space, naive.in_store, naive.in_sets)
    assert read.classes == close(np.stack(columns[: 4 if sets else 3] + (np.zeros(CLASSES),) * (not sets), axis=1))
    assert scalars["served"] == naive.served
    assert used == (len(naive.rows) if sets else 0)
    assert read.doubts[: 1 + used] == close(naive.doubts[: 1 + used])
    if kind != "structure":
        assert (scalars["th"] == np.inf).all() and not scalars["counts_ents"]
        return
    assert scalars["th"].tolist() == naive.thresholds
    assert read.rows[:used].tolist() == naive.rows
    assert read.sets[:used] == close(naive.sets)
    assert read.set_put[:used] == close(naive.set_put)
    assert read.set_held[:used] == close(naive.set_held)
    assert scalars["ents"] == store.usage[ENTRIES]["used"] and scalars["space"] == store.usage[SPACE]["used"]
    assert (scalars["scm_max"] > 0) == (bound(store) > 0)
    for level in (0.0, 0.5, 0.95):
        in_force = sum(1 << rule for rule in range(3) if level > naive.thresholds[rule])
        assert futures.rules_in_force(store.params, level) == in_force


# --- the regime ------------------------------------------------------------------------------------------------------


def random_flows(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return flows and totals as `regime.read_flows` writes them, some with a change of the mean or a trend."""
    rates = rng.uniform(0, 30, 3 * CLASSES) * rng.integers(0, 2, 3 * CLASSES)
    course = np.ones(n)
    if rng.integers(0, 2):
        course[: rng.integers(0, n)] *= rng.choice([0.2, 3.0])
    if rng.integers(0, 2):
        course *= np.linspace(1, rng.uniform(1, 3), n)
    flows = rng.poisson(course[:, None] * rates) * 1.0
    totals = np.zeros((n, regime.TOTALS))
    totals[:, regime.STAYED], totals[:, regime.LEFT] = flows[:, :CLASSES].sum(axis=1), flows[:, CLASSES:].sum(axis=1)
    totals[:, regime.REFUSED_PUTS] = rng.integers(0, 3, n)
    totals[:, regime.PUT] = totals[:, regime.STAYED] + rng.integers(0, 9, n)
    totals[:, regime.LAG] = totals[:, regime.LEFT] * rng.integers(0, 500, n)
    return flows, totals


@settings(max_examples=examples(150), deadline=None)
@given(seed=seeds, n=st.integers(regime.MIN_BINS, 383))
def test_a_regime_is_that_of_the_oracle(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    flows, totals = random_flows(rng, n)
    weights, summary = rng.uniform(1, 90, CLASSES), np.empty(1, regime.SUMMARY)
    regime.settle(flows, totals, weights, np.empty((8, n)), np.empty(6), summary)
    assert summary[0].item() == close(naive_regime.settle(flows, totals, weights))


@settings(max_examples=examples(150), deadline=None)
@given(seed=seeds, n=st.integers(regime.MIN_BINS, 383))
def test_gets_follow_the_backlog_where_the_oracle_says_so(seed: int, n: int) -> None:
    rng, held = np.random.default_rng(seed), 0.0
    totals = np.zeros((n, regime.TOTALS))
    rate, share = rng.uniform(0, 40), rng.choice([0.0, 0.01])
    for row in totals:
        row[regime.STAYED] = rng.poisson(rate)
        row[regime.LEFT] = min(held, rng.poisson(share * held + (not share) * rate / 2))
        held += row[regime.STAYED] - row[regime.LEFT]
    stay, left = totals[:, regime.STAYED], totals[:, regime.LEFT]
    share = regime.service(totals, held, np.empty((2, regime.SERVICE_BLOCKS)))
    assert share == close(naive_regime.service(stay, left, held))


# --- futures ---------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(150), deadline=None)
@given(
    seed=seeds, n=st.integers(regime.MIN_BINS, 383), known=st.booleans(), serves=st.booleans(), changed=st.booleans()
)
def test_futures_are_those_of_the_oracle(seed: int, n: int, known: bool, serves: bool, changed: bool) -> None:
    rng = np.random.default_rng(seed)
    count, paths, steps = int(rng.integers(1, CLASSES + 1)), 8, 20
    bins = rng.poisson(rng.uniform(0, 9, 3 * count) * rng.integers(0, 2, 3 * count), (n, 3 * count)) * 1.0
    bins *= np.linspace(1, rng.choice([1.0, 4.0]), n)[:, None]
    weights, sizes = rng.uniform(1, 50, count), rng.uniform(0, 0.9, 1 + int(rng.integers(0, 3)))
    lengths = np.sort(rng.integers(1, 13, steps))
    hours = rng.uniform(0, 2, (futures.HOURS, steps if known else 0))
    paces, draw_seed = np.sort(rng.uniform(0.5, 2, paths)), int(rng.integers(0, 2**63))
    second, whole = (n + 14, rng.poisson(5.0, (n + 7, 3 * count)) * 1.0) if changed else (0, bins[:0])
    fields = rng.normal(0, 50), rng.uniform(0, 90), 0.01 * serves, rng.uniform(0, 5000), whole, rng.uniform(5, 90)
    now = futures.Present(bins, *fields)
    drawn = futures.Drawn(
        cumulated=np.empty((n + 14 + (n + 7 + 14) * changed, 3 * count)),
        trend=np.empty((steps, 3 * count)),
        starts=np.empty((paths, steps), np.int64),
        extra=np.empty((paths, steps)),
        larger=np.empty((paths, sizes.size)),
        mix=np.empty(count),
        pace=np.empty(paths),
        doubts=np.empty((paths, futures.DOUBTS + sizes.size)),
        lanes=np.empty((3, 3 * count)),
        errors=np.empty((3, steps)),
    )
    futures.draw(now, weights, sizes, lengths, hours, paces, np.uint64(draw_seed), second, drawn)
    naive = naive_futures.draw(*now, weights, sizes, lengths, hours, paces, draw_seed, second)
    assert drawn.starts.tolist() == naive.starts.tolist()
    assert drawn.pace.tolist() == naive.pace.tolist()
    for name in ("trend", "extra", "larger", "mix"):
        assert getattr(drawn, name) == close(getattr(naive, name)), name
    sums = naive_regime.cumulate(bins.tolist(), naive.slope.tolist(), n + 13)
    assert drawn.cumulated[: n + 14] == pytest.approx(np.array(sums), rel=1e-9, abs=1e-6)
    if changed:
        others = naive_regime.cumulate(whole.tolist(), [0.0] * (3 * count), n + 20)
        assert drawn.cumulated[second:] == pytest.approx(np.array(others), rel=1e-9, abs=1e-6)


@settings(max_examples=examples(60), deadline=None)
@given(seed=seeds)
def test_the_classes_of_futures_are_those_with_messages(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bins = rng.poisson(0.2, (5, 3 * CLASSES)) * 1.0 * rng.integers(0, 2)
    classes, some = rng.integers(0, 2, (CLASSES, forecast.COLUMNS)) * 1.0, np.empty(CLASSES, np.int64)
    chosen = some[: futures.find_classes(bins, classes, some)].tolist()
    flowing = bins.reshape(5, 3, CLASSES).any(axis=(0, 1)) | (bins[:, :CLASSES].sum() <= 0)
    assert chosen == np.flatnonzero(flowing | classes[:, 2:].any(axis=1)).tolist()
