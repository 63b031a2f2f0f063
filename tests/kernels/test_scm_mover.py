"""The mover of storage class memory: its result does not depend on when it is called; and a published case."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from kernels import EVENT, clock, scm
from kernels.layout import MARK_IN_ORDER, MARK_IN_SCM, PRIORITIES, PUT
from tests.kernels.beside import Decoding, cut
from tests.support.mixes import MIXES
from tests.support.profile import IS_LARGE
from tests.support.store_driver import GIB, NO_RULES
from tests.support.twin_driver import TwinDriver
from tests.support.workloads import random_workload
from twin.estate import Structure
from twin.stores.structure import StructureTwin

pytestmark = pytest.mark.uncompiled

PROFILES = sorted(MIXES["scm"].weights)
EVENTS = 800 if IS_LARGE else 400
BY_DAY = {(0, "moving"), (1, "mixed"), (2, "filling")}  # (seed, profile)


def chain(twin: StructureTwin, number: int) -> list[int]:
    """Return the rows of a chain of ORDER, from its head."""
    store = twin.tables.store
    rows, before = [], -1
    row = int(store.scm_ends["head"][number])
    while row != -1:
        assert store.order["prev"][row] == before
        rows.append(row)
        row, before = int(store.order["next"][row]), row
    assert store.scm_ends["tail"][number] == before
    return rows


def check_chains(twin: StructureTwin) -> None:
    """Assert that each message with storage, unless taken by an uncommitted get, is counted and in its chain."""
    store = twin.tables.store
    messages = store.messages
    if not store.scm[0]["enrolled"]:
        assert not (messages["marks"] & (MARK_IN_ORDER | MARK_IN_SCM)).any()
        return
    seen: list[int] = []
    for number in range(2 * PRIORITIES):
        rows = chain(twin, number)
        assert (np.diff(messages["age"][rows]) > 0).all()
        assert (messages["priority"][rows] == number % PRIORITIES).all()
        assert (messages["marks"][rows] & MARK_IN_SCM != 0).all() == (number >= PRIORITIES) or not rows
        seen += rows
    high = int(store.scalars[0]["message_high"])
    assert sorted(seen) == np.flatnonzero(np.isin(messages["state"][:high], (1, 2))).tolist()
    inside = messages[:high][messages["marks"][:high] & MARK_IN_SCM != 0]
    use = store.scm[0]
    assert (use["messages"], use["elems"]) == (inside.size, inside["elems"].sum())
    held = messages[:high][messages["state"][:high] != 0]
    assert store.scalars[0]["ents_used"] == held.size - inside.size
    assert store.scalars[0]["elems_used"] == held["elems"].sum() - inside["elems"].sum()


@pytest.mark.parametrize(
    ("seed", "profile"),
    [
        pytest.param(seed, profile, marks=() if (seed, profile) in BY_DAY else pytest.mark.nightly)
        for seed, profile in product(range(4), PROFILES)
    ],
)
def test_every_message_is_in_its_chain_and_advancing_the_mover_more_often_changes_nothing(
    seed: int, profile: str
) -> None:
    workload = random_workload(seed, EVENTS, profile, "scm")
    decoding = Decoding(workload.config, foresees=False)
    twin, other = decoding.twin(), decoding.twin()
    block, _ = decoding.block(workload.events)
    rng = np.random.default_rng(seed)
    for number, event in enumerate(cut(block, *range(len(block)))):
        twin.apply(event)
        _advance_often(other, int(twin.tables.store.scalars[0]["clock"]), rng)
        other.apply(event)
        assert twin.state() == other.state(), number
        if number % 20 == 0:
            check_chains(twin)
    assert twin.header() == other.header()


def _advance_often(twin: StructureTwin, until: int, rng: Any) -> None:
    """Advance the mover to random moments before the next event, at `until`, and before the next tick."""
    store = twin.tables.store
    if not store.scm[0]["enrolled"] or store.scalars[0]["clock"] < 0:
        return
    now = int(store.scalars[0]["clock"])
    end = min(until, (now // clock.TICK + 1) * clock.TICK)
    for moment in sorted(rng.integers(now, end + 1, 3).tolist()):
        scm.advance(store, moment * scm.NANOSECONDS)


# -- [IBM: Q Replication report, pp. 7-13]


def loaded(driver: TwinDriver, messages: int) -> int:
    """Put messages of 2 KB, one per 20 us; return the number of them refused."""
    refused, piece, route = 0, 1 << 18, driver.decoding.estate.route_of_queue("QM01", "A.QUEUE")
    for start in range(0, messages, piece):
        events = np.zeros(min(piece, messages - start), EVENT)
        events["op"], events["route"], events["count"], events["seq"], events["length"] = PUT, route, 1, -1, 2048
        events["time"] = 1_795_176_000_000_000 + (start + np.arange(events.size)) * 20
        driver.twin.demand(events)
        refused += int((events["reason"] == 2192).sum())
    return refused


@pytest.mark.parametrize(("scm_max_size", "is_refused"), [(None, True), (4 * GIB, False)])
@pytest.mark.nightly
def test_5_gb_of_2_kb_messages_need_4_gb_of_scm_beside_a_structure_of_4_gb(
    scm_max_size: int | None, is_refused: bool
) -> None:
    driver = TwinDriver(**(NO_RULES | {"size": 4 * GIB, "scm_max_size": scm_max_size}))
    twin = driver.twin
    assert isinstance(twin.config, Structure)
    messages = 5 * GIB // 2048
    assert (loaded(driver, messages) > 0) == is_refused
    state = twin.state()
    if not is_refused:
        assert state.messages == messages
