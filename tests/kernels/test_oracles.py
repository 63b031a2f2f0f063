"""The twin of every kind of store against its oracle in random workloads, with any cuts of blocks and restarts.

By day each kind has one profile and four examples; at night every profile has its turn.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.beside import Decoding
from tests.kernels.proof import check_equal_states, check_marks, check_same_results
from tests.support.mixes import MIXES
from tests.support.profile import IS_LARGE, examples
from tests.support.workloads import SEEDS, Workload, long_workload, random_workload, workloads

pytestmark = pytest.mark.uncompiled

EVERY_KIND = pytest.mark.parametrize("kind", MIXES)
EVERY_PROFILE = pytest.mark.parametrize(
    ("kind", "profile"), [(kind, profile) for kind, mix in MIXES.items() for profile in sorted(mix.weights)]
)
FORECAST_EVENTS = 300 if IS_LARGE else 100  # in 7.5 hours or 2.5, with a forecast every ten seconds
LONG_RUN = 1000 if IS_LARGE else 400  # events
MARKED_EVENTS = 500 if IS_LARGE else 200
places = st.lists(st.integers(0, 160), max_size=8)


def check_cuts(workload: Workload, cuts: list[int], *, foresees: bool = False) -> None:
    """Assert that a workload has the same results whichever way its block is cut."""
    decoding = Decoding(workload.config, foresees=foresees)
    block, _ = decoding.block(workload.events)
    check_same_results(decoding, block, cuts)


@EVERY_KIND
@settings(max_examples=examples(20))
@given(data=st.data())
def test_twin_and_oracle_have_equal_states(kind: str, data: st.DataObject) -> None:
    check_equal_states(data.draw(workloads("mixed", kind=kind)), every=1)


@EVERY_PROFILE
@pytest.mark.nightly
@settings(max_examples=examples(60))
@given(data=st.data())
def test_twin_and_oracle_have_equal_states_in_every_profile(kind: str, profile: str, data: st.DataObject) -> None:
    check_equal_states(data.draw(workloads(profile, kind=kind)), every=1)


@pytest.mark.parametrize("seed", SEEDS)
@EVERY_PROFILE
@pytest.mark.nightly
def test_twin_and_oracle_have_equal_states_for_hundreds_of_events(kind: str, profile: str, seed: int) -> None:
    check_equal_states(long_workload(seed, profile, kind), every=20)


@EVERY_KIND
@settings(max_examples=examples(20))
@given(data=st.data())
def test_cuts_of_blocks_and_restarts_do_not_change_results(kind: str, data: st.DataObject) -> None:
    check_cuts(data.draw(workloads("filling", 20, kind)), data.draw(places))


@EVERY_PROFILE
@pytest.mark.nightly
@settings(max_examples=examples(30))
@given(data=st.data())
def test_cuts_of_blocks_and_restarts_do_not_change_results_in_every_profile(
    kind: str, profile: str, data: st.DataObject
) -> None:
    check_cuts(data.draw(workloads(profile, 60, kind)), data.draw(places))


@EVERY_PROFILE
@pytest.mark.nightly
def test_cuts_of_blocks_and_restarts_do_not_change_results_of_long_runs(kind: str, profile: str) -> None:
    cuts = np.random.default_rng(5).integers(0, LONG_RUN, 20).tolist()
    check_cuts(random_workload(7, LONG_RUN, profile, kind), cuts)


@pytest.mark.parametrize("profile", ["mixed", "filling"])
@EVERY_KIND
@pytest.mark.nightly
def test_cuts_of_blocks_and_restarts_do_not_change_forecasts(kind: str, profile: str) -> None:
    cuts = np.random.default_rng(5).integers(0, FORECAST_EVENTS, 20).tolist()
    check_cuts(random_workload(7, FORECAST_EVENTS, profile, kind), cuts, foresees=True)


@EVERY_KIND
def test_every_page_that_an_event_changes_is_marked(kind: str) -> None:
    check_marks(random_workload(8, MARKED_EVENTS, "mixed", kind))


@EVERY_PROFILE
@pytest.mark.nightly
def test_every_page_that_an_event_changes_is_marked_in_every_profile(kind: str, profile: str) -> None:
    check_marks(random_workload(8, MARKED_EVENTS, profile, kind))
