"""The twin of queue files against its oracle in random workloads, and what must not matter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.beside import Decoding
from tests.kernels.proof import check_marks, check_that_nothing_matters, compare
from tests.mixes import MIXES
from tests.naive.private_estates import queue_file
from tests.workloads import START_US, Workload, random_workload, workloads

KIND = "queue_file"
PROFILES = sorted(MIXES[KIND].weights)
SEEDS = (1, 2, 3, 4, 5, 6)
places = st.lists(st.integers(0, 160), max_size=8)


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_twin_says_what_the_oracle_says(profile: str, data: st.DataObject) -> None:
    compare(data.draw(workloads(profile, kind=KIND)), every=1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("profile", PROFILES)
def test_the_twin_says_what_the_oracle_says_for_a_thousand_events(profile: str, seed: int) -> None:
    compare(random_workload(seed, 1000, profile, KIND), every=20)


def test_what_comes_back_to_the_baseline_is_in_the_file() -> None:
    """A put that meets a get held aside gives the baseline its message back; the file had been truncated."""
    of_queue = {"qmgr": "QM01", "queue": "A.QUEUE"}
    measured = {"blocks_nonpersistent": 30, "messages": 10}
    events = [
        {"time": START_US, "qmgr": "QM01", "op": "MEASURE", "store": "QM01/A.QUEUE", "measured": measured},
        {"time": START_US, "op": "GET", **of_queue},
        {"time": START_US, "op": "CLEAR", **of_queue},
        {"time": START_US, "op": "PUT", "length": 148, **of_queue},
    ]
    compare(Workload(queue_file(default_q_buffer_size=0), {}, events), every=1)


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_where_blocks_are_cut_and_the_twin_restarts_does_not_matter(profile: str, data: st.DataObject) -> None:
    workload = data.draw(workloads(profile, 60, KIND))
    decoding = Decoding(workload.config)
    block, _ = decoding.block(workload.events)
    check_that_nothing_matters(decoding, block, data.draw(places))


@pytest.mark.parametrize("profile", PROFILES)
def test_nor_does_it_matter_in_long_runs(profile: str) -> None:
    workload = random_workload(7, 1500, profile, KIND)
    decoding = Decoding(workload.config)
    block, _ = decoding.block(workload.events)
    check_that_nothing_matters(decoding, block, np.random.default_rng(5).integers(0, 1500, 20).tolist())


@pytest.mark.parametrize("profile", PROFILES)
def test_every_page_that_an_event_changes_is_marked(profile: str) -> None:
    check_marks(random_workload(8, 500, profile, KIND))
