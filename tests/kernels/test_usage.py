"""USAGE of every resource is what the oracle holds, after any events."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import meter_rows
from kernels.queue_file import BLOCK_BYTES
from tests.kernels.beside import Decoding
from tests.naive import NaiveStore
from tests.support.mixes import MIXES
from tests.support.profile import examples
from tests.support.workloads import Workload, long_workload, workloads
from twin.base.conditions import ENTRIES
from twin.records.usage import resources_of
from twin.stores.message_store import MessageStore
from twin.stores.resources import StoreResource, read_usage

Usage = tuple[int, int, int]  # used, total, maximum
PROFILES = {kind: min(mix.weights) for kind, mix in MIXES.items()}


def oracle_usage(oracle: Any, twin: MessageStore) -> dict[int, Usage]:
    """Return usage by row, of the resources that the oracle has."""
    state: dict[str, Any] = oracle.counted_state()
    if "ents_used" in state:
        rows = {
            meter_rows.ENTRIES: (state["ents_used"], state["ents_max"], state["ents_max"]),
            meter_rows.SPACE: (state["elems_used"], state["elems_max"], state["elems_max"]),
        }
        if oracle.scm is not None:
            used, bound = oracle.scm.used(), oracle.scm.limit()
            maximum = int(read_usage(twin.tables.store)["maximum"][meter_rows.SCM])
            assert maximum <= max(1, bound)  # less where augmented space is scarce
            rows[meter_rows.SCM] = (used, bound, maximum)
        for qmgr, data_set in state["smds"].items():
            numbers = data_set["blocks_used"], data_set["blocks_total"], data_set["blocks_max"]
            rows[meter_rows.DATA_SETS + twin.qmgrs.index(qmgr)] = numbers
        return rows
    if "pages_used" in state:
        return {meter_rows.SPACE: (state["pages_used"], state["pages_total"], state["pages_max"])}
    in_file = state["file_bytes"] // BLOCK_BYTES - state["blocks_allocated"]
    largest = state["file_max_bytes"] // BLOCK_BYTES
    blocks = state["blocks_nonpersistent"] + state["blocks_persistent"]
    buffers = state["blocks"] - state["file_bytes"] // BLOCK_BYTES
    return {
        meter_rows.SPACE: (in_file, largest, largest),
        meter_rows.BLOCKS: (blocks, largest + buffers, largest + buffers),
    }


def assert_usage(twin: MessageStore, oracle: NaiveStore) -> None:
    usage = read_usage(twin.tables.store)
    expected = oracle_usage(oracle, twin)
    actual = {row: tuple(usage[["used", "total", "maximum"]][row].tolist()) for row in expected}
    assert actual == expected
    state = oracle.counted_state()
    assert int(usage["held"][meter_rows.SPACE]) == state["messages"] + state["messages_estimated"]
    for qmgr, data_set in state.get("smds", {}).items():
        row = usage[meter_rows.DATA_SETS + twin.qmgrs.index(qmgr)]
        assert (int(row["held"]), int(row["pages"])) == (data_set["messages"], data_set["pages_used"])


def assert_surfaces(twin: MessageStore) -> None:
    """Assert that state record, alerts and samples have the usage of USAGE."""
    record = twin.state()
    by_resource = {resource.resource: resource for resource in resources_of(record)}
    for resource, pct in twin.usage_of_maximum().items():
        if resource in by_resource and by_resource[resource].pct is not None:
            view = twin.view(resource)
            assert isinstance(view, StoreResource)
            # A view adds by how much more was measured than the twin has.
            assert view.usage_pct - view.beyond_pct == pytest.approx(by_resource[resource].pct)
            if resource.pool in ("smds", "pages") and view.is_limit_known and not view.beyond_pct:
                assert view.maximum_pct == by_resource[resource].maximum_pct == pct
    if ENTRIES in by_resource and record.usage_pct is not None:
        pools = [by_resource[pool].pct for pool in by_resource if pool.pool in ("entries", "elements")]
        assert record.usage_pct == max(pct for pct in pools if pct is not None)


def check(workload: Workload, every: int) -> None:
    decoding = Decoding(workload.config, foresees=False)
    twin, oracle = decoding.twin(), decoding.oracle(workload)
    for start in range(0, len(workload.events), every):
        block, accepted = decoding.block(workload.events[start : start + every])
        twin.apply(block)
        for event in accepted:
            oracle.apply(event)
        assert_usage(twin, oracle)
        assert_surfaces(twin)


@pytest.mark.parametrize(("kind", "profile"), PROFILES.items())
@settings(max_examples=examples(8), deadline=None)
@given(data=st.data())
def test_usage_is_that_of_the_oracle(kind: str, profile: str, data: st.DataObject) -> None:
    check(data.draw(workloads(profile, 40, kind)), every=5)


@pytest.mark.parametrize(("kind", "profile"), PROFILES.items())
@pytest.mark.nightly
def test_usage_is_that_of_the_oracle_after_hundreds_of_events(kind: str, profile: str) -> None:
    check(long_workload(11, profile, kind), every=60)
