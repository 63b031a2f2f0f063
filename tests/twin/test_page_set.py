"""State of a page set in another estate, or after a restart of its twin (docs/state.md)."""

import msgspec
import pytest

from tests.support.twin_driver import PageSetDriver

pytestmark = pytest.mark.uncompiled


def test_a_data_set_that_the_estate_says_anew_has_no_extents() -> None:
    driver = PageSetDriver(expand="SYSTEM", pages=100)
    driver.put(count=95)
    saved = driver.twin.header(), dict(driver.twin.dirty_pages()).items()
    for fields, total, expansions in (
        ({"pages": 100}, 108, 1),
        ({"pages": 300}, 298, 0),
        ({"version": "6"}, 108, 1),
    ):
        other = PageSetDriver(**({"expand": "SYSTEM", "pages": 100} | fields))
        other.twin = other.decoding.twin(None, *saved)
        state = other.state()
        assert (state["pages_total"], state["expansions"], state["pages_used"]) == (total, expansions, 95)
        expected = 96 if "version" in fields else 97
        assert other.put(count=2)["pages_used"] == expected


def test_the_marks_of_the_buffer_pool_outlast_a_restart_of_the_twin() -> None:
    driver = PageSetDriver(buffer_pool=3)
    driver.measure(buffer_pool_pct=95)
    assert driver.reopen().state()["buffer_pool_pct"] == 95


def test_a_measured_whole_percent_is_the_same_bytes_after_a_restart_of_the_twin() -> None:
    driver = PageSetDriver()
    driver.measure(buffer_pool_pct=48)
    before = msgspec.json.encode(driver.twin.state())
    assert msgspec.json.encode(driver.reopen().twin.state()) == before
