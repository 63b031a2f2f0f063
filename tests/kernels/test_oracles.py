"""The twin of every kind of store against its oracle in random workloads, with any cuts of blocks and restarts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.beside import Decoding
from tests.kernels.proof import check_equal_states, check_marks, check_same_results
from tests.support.mixes import MIXES
from tests.support.profile import IS_LARGE, examples
from tests.support.workloads import SEEDS, long_workload, random_workload, workloads

EVERY_KIND = pytest.mark.parametrize(
    ("kind", "profile"), [(kind, profile) for kind, mix in MIXES.items() for profile in sorted(mix.weights)]
)
FORECAST_EVENTS = 300 if IS_LARGE else 100  # in 7.5 hours or 2.5, with a forecast every ten seconds
LONG_RUN = 1000 if IS_LARGE else 400  # events
MARKED_EVENTS = 500 if IS_LARGE else 200
places = st.lists(st.integers(0, 160), max_size=8)


@EVERY_KIND
@settings(max_examples=examples(60))
@given(data=st.data())
def test_twin_and_oracle_have_equal_states(kind: str, profile: str, data: st.DataObject) -> None:
    check_equal_states(data.draw(workloads(profile, kind=kind)), every=1)


@pytest.mark.parametrize("seed", SEEDS)
@EVERY_KIND
@pytest.mark.nightly
def test_twin_and_oracle_have_equal_states_for_hundreds_of_events(kind: str, profile: str, seed: int) -> None:
    check_equal_states(long_workload(seed, profile, kind), every=20)


@EVERY_KIND
@settings(max_examples=examples(30))
@given(data=st.data())
def test_cuts_of_blocks_and_restarts_do_not_change_results(kind: str, profile: str, data: st.DataObject) -> None:
    workload = data.draw(workloads(profile, 60, kind))
    decoding = Decoding(workload.config, foresees=False)
    block, _ = decoding.block(workload.events)
    check_same_results(decoding, block, data.draw(places))


@EVERY_KIND
@pytest.mark.nightly
def test_cuts_of_blocks_and_restarts_do_not_change_results_of_long_runs(kind: str, profile: str) -> None:
    workload = random_workload(7, LONG_RUN, profile, kind)
    decoding = Decoding(workload.config, foresees=False)
    block, _ = decoding.block(workload.events)
    check_same_results(decoding, block, np.random.default_rng(5).integers(0, LONG_RUN, 20).tolist())


@pytest.mark.parametrize("profile", ["mixed", "filling"])
@pytest.mark.parametrize("kind", MIXES)
@pytest.mark.nightly
def test_cuts_of_blocks_and_restarts_do_not_change_forecasts(kind: str, profile: str) -> None:
    workload = random_workload(7, FORECAST_EVENTS, profile, kind)
    decoding = Decoding(workload.config)
    block, _ = decoding.block(workload.events)
    check_same_results(decoding, block, np.random.default_rng(5).integers(0, FORECAST_EVENTS, 20).tolist())


@EVERY_KIND
def test_every_page_that_an_event_changes_is_marked(kind: str, profile: str) -> None:
    check_marks(random_workload(8, MARKED_EVENTS, profile, kind))
