"""Placement of data beyond `tests/cases/stores/offload.events`: what rules do to the space that is left."""

from itertools import pairwise

from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.support.store_driver import Open

OFFLOADED = 2  # elements


def test_from_the_second_rule_on_the_remaining_space_is_used_up_more_slowly(structure: Open) -> None:
    """Messages of 5,000 bytes, 21 elements each, until 80 % are exceeded; then 2 elements each."""
    driver = structure(size=100 * ENTRY_AND_6_ELEMENTS, offld3_th=95)
    used = [driver.put(5_000)["elems_used"] for _ in range(30)]
    growth = [after - before for before, after in pairwise(used)]
    crossed = next(place for place, elements in enumerate(used) if elements > 480)
    assert set(growth[:crossed]) == {21}
    assert set(growth[crossed:]) == {OFFLOADED}


def test_lower_thresholds_of_the_other_rules_leave_more_space_for_small_messages(structure: Open) -> None:
    """Ten messages of 10,000 bytes, then small ones of 500 bytes, 4 elements each, up to 90 %."""
    small = {}
    for threshold in (80, 20):
        driver = structure(size=100 * ENTRY_AND_6_ELEMENTS, offld1_th=70, offld2_th=threshold)
        driver.put(10_000, count=10)
        before = driver.state()["messages"]
        while driver.state()["usage_pct"] <= 90:
            driver.put(500)
        small[threshold] = driver.state()["messages"] - before
    assert small[20] > 1.5 * small[80]
