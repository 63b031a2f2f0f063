"""Page sets and queue files against their oracles in random workloads, and what must not matter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.beside import Decoding
from tests.kernels.proof import check_marks, check_that_nothing_matters, compare
from tests.mixes import MIXES
from tests.workloads import random_workload, workloads

PROFILES = [(kind, profile) for kind in ("page_set", "queue_file") for profile in sorted(MIXES[kind].weights)]
each = pytest.mark.parametrize(("kind", "profile"), PROFILES)


@each
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_twin_says_what_the_oracle_says(kind: str, profile: str, data: st.DataObject) -> None:
    compare(data.draw(workloads(profile, kind=kind)), every=7)


@each
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_twin_says_what_the_oracle_says_for_thousands_of_events(kind: str, profile: str, seed: int) -> None:
    compare(random_workload(seed, 1500, profile, kind), every=100)


places = st.lists(st.integers(0, 160), max_size=8)


@each
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_where_blocks_are_cut_and_the_twin_restarts_does_not_matter(
    kind: str, profile: str, data: st.DataObject
) -> None:
    workload = data.draw(workloads(profile, 60, kind))
    decoding = Decoding(workload.config)
    block, _ = decoding.block(workload.events)
    check_that_nothing_matters(decoding, block, data.draw(places))


@each
def test_nor_does_it_matter_in_long_runs(kind: str, profile: str) -> None:
    workload = random_workload(3, 1500, profile, kind)
    decoding = Decoding(workload.config)
    block, _ = decoding.block(workload.events)
    check_that_nothing_matters(decoding, block, np.random.default_rng(5).integers(0, 1500, 20).tolist())


@each
def test_every_page_that_an_event_changes_is_marked(kind: str, profile: str) -> None:
    check_marks(random_workload(6, 1000, profile, kind))
