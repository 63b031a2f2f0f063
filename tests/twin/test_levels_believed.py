"""Measurements with resync are believed, totals too, and no store that is nearly full is without an open alert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.private_estates import page_set, queue_file
from tests.support.profile import examples
from tests.support.twin_driver import QueueFileDriver, ScmDriver, TwinDriver

MINUTE = 60.0


# --- totals ----------------------------------------------------------------------------------------------------------


def altering(**fields: Any) -> TwinDriver:
    return TwinDriver(size=1 << 22, init_size=1 << 20, allow_auto_alter=True, **fields)


def test_all_totals_of_a_structure_are_taken_over_with_a_resync() -> None:
    driver = altering()
    state = driver.measure(resync=True, size=1 << 21, ents_max=700, elems_max=5_000, ents_used=10, elems_used=20)
    assert (state["size"], state["ents_max"], state["elems_max"]) == (1 << 21, 700, 5_000)
    assert state["sizes_measured"] == {}
    assert driver.reopen().state() == state


def test_a_measured_total_stays_while_puts_fill_the_structure() -> None:
    driver = altering()
    driver.measure(resync=True, ents_max=400, elems_max=4_000, ents_used=10, elems_used=20)
    for _ in range(38):
        driver.put(100, count=10)
        driver.wait(MINUTE)
    state = driver.state()
    assert (state["ents_max"], state["elems_max"], state["auto_alters"]) == (400, 4_000, 0)
    assert ("opened", "threshold", "entries") in driver.alert_changes()


def test_a_total_that_is_not_measured_is_not_played_either() -> None:
    driver = altering(queues=("A.QUEUE",))
    before = driver.state()["elems_max"]
    for used in range(0, before, before // 20):
        driver.measure(resync=True, elems_used=used, ents_used=1)
        driver.wait(5 * MINUTE)
    assert driver.state()["elems_max"] == before


def test_sizes_of_data_sets_are_taken_over() -> None:
    driver = TwinDriver()
    measured = {"QM01": {"blocks_total": 80, "blocks_used": 76}}
    state = driver.measure(resync=True, smds=measured)
    assert (state["smds"]["QM01"]["blocks_total"], state["smds"]["QM01"]["blocks_used"]) == (80, 76)
    assert ("opened", "threshold", "smds/QM01") in driver.alert_changes()
    assert driver.reopen().state() == state


def test_the_bound_of_storage_class_memory_is_taken_over() -> None:
    driver = ScmDriver()
    state = driver.measure(resync=True, ents_used=1, scm={"max": 40_960})
    assert state["scm"]["max"] == 40_960
    assert driver.reopen().state() == state


def test_pages_are_taken_over() -> None:
    driver = TwinDriver()
    driver.open(page_set(expand="USER", secondary_pages=10))
    state = driver.measure(resync=True, pages_total=1_076, pages_used=1_000, expansions=3)
    assert (state["pages_total"], state["pages_used"], state["expansions"]) == (1_076, 1_000, 3)
    assert state["usage_pct"] == pytest.approx(92.937)
    assert ("opened", "threshold", "pages") in driver.alert_changes()
    assert driver.reopen().state() == state


def test_the_maximum_of_a_queue_file_is_taken_over() -> None:
    driver = QueueFileDriver()
    state = driver.measure(resync=True, file_max_bytes=1 << 20, blocks_persistent=2_000, blocks_nonpersistent=0)
    assert state["file_max_bytes"] == 1 << 20
    assert ("opened", "threshold", "file") in driver.alert_changes()
    assert driver.reopen().state() == state


# --- never silent ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """A measurement: percent in use, the total, minutes since the one before."""

    pct: float
    total: int
    minutes: float


def sequences(totals: Sequence[int]) -> st.SearchStrategy[list[Reading]]:
    """Return rises, falls and rests, in steps of any length; the total changes now and then."""
    steps = st.tuples(st.floats(-25, 25), st.sampled_from((0, 0, 0, 0, 1, 2)), st.sampled_from((1, 5, 5, 15, 60)))

    def walked(start: float, walk: list[tuple[float, int, int]]) -> list[Reading]:
        pct, readings, place = start, [], 0
        for step, move, minutes in walk:
            pct, place = min(100.0, max(0.0, pct + step)), (place + move) % len(totals)
            readings.append(Reading(pct, totals[place], minutes))
        return readings

    return st.builds(walked, st.floats(0, 100), st.lists(steps, min_size=1, max_size=25))


def check(driver: TwinDriver, measured: Sequence[tuple[Reading, dict[str, Any]]], line_pct: float) -> None:
    """Hold the open alerts after each measurement against its percentage. line_pct: the threshold."""
    before = 100.0
    for reading, fields in measured:
        driver.wait(reading.minutes * MINUTE)
        driver.measure(resync=True, **fields)
        pct = reading.pct
        if pct > 95 or (pct > line_pct and pct > before):
            assert any(episode.condition in ("threshold", "full", "full-forecast") for episode in driver.twin.episodes)
        before = pct


ATTRIBUTES = st.fixed_dictionaries(
    {
        "full_threshold": st.sampled_from((0, 1, 50, 80, 95, 99, 100)),
        "allow_auto_alter": st.booleans(),
        "init_size": st.sampled_from((None, 1 << 20, 1 << 19)),
    }
)


@pytest.mark.parametrize("field", ["ents", "elems"])
@settings(max_examples=examples(200), deadline=None)
@given(ATTRIBUTES, sequences((10_000, 12_000, 20_000)), st.booleans(), st.booleans())
def test_no_structure_that_is_nearly_full_is_without_an_alert(
    field: str, attributes: dict[str, Any], walk: list[Reading], totals: bool, counted: bool
) -> None:
    driver = TwinDriver(size=1 << 21, **attributes)
    if counted:
        driver.put(100)
    own = driver.state()[f"{field}_max"]
    measured = []
    for reading in walk:
        total = reading.total if totals or counted else own
        fields = {f"{field}_used": round(reading.pct * total / 100)} | (
            {f"{field}_max": total} if totals or counted else {}
        )
        measured.append((Reading(100 * fields[f"{field}_used"] / total, total, reading.minutes), fields))
    check(driver, measured, float(attributes["full_threshold"] or 95))


@settings(max_examples=examples(200), deadline=None)
@given(
    st.fixed_dictionaries(
        {"expand": st.sampled_from(("NONE", "USER", "SYSTEM")), "max_pages": st.sampled_from((None, 20_000))}
    ),
    sequences((1_000, 1_100, 5_000)),
)
def test_no_page_set_that_is_nearly_full_is_without_an_alert(attributes: dict[str, Any], walk: list[Reading]) -> None:
    driver = TwinDriver()
    driver.open(page_set(**attributes))
    measured = []
    for reading in walk:
        fields = {"pages_total": reading.total, "pages_used": round(reading.pct * reading.total / 100)}
        measured.append((Reading(100 * fields["pages_used"] / reading.total, reading.total, reading.minutes), fields))
    check(driver, measured, 90.0)


@settings(max_examples=examples(200), deadline=None)
@given(st.booleans(), sequences((100, 120, 500)))
def test_no_data_set_that_is_nearly_full_is_without_an_alert(expands: bool, walk: list[Reading]) -> None:
    driver = TwinDriver(ds_expand=expands)
    measured = []
    for reading in walk:
        dataset = {"blocks_total": reading.total, "blocks_used": max(1, round(reading.pct * reading.total / 100))}
        pct = 100 * dataset["blocks_used"] / reading.total
        measured.append((Reading(pct, reading.total, reading.minutes), {"smds": {"QM01": dataset}}))
    check(driver, measured, 90.0)


@settings(max_examples=examples(100), deadline=None)
@given(sequences((2_000, 2_400, 10_000)))
def test_no_queue_file_that_is_nearly_full_is_without_an_alert(walk: list[Reading]) -> None:
    driver = TwinDriver()
    driver.open(queue_file(default_q_buffer_size=0, default_pq_buffer_size=0))
    measured = []
    for reading in walk:
        blocks = round(reading.pct * reading.total / 100)
        fields = {"file_max_bytes": 512 * reading.total, "blocks_persistent": blocks, "blocks_nonpersistent": 0}
        measured.append((Reading(100 * blocks / reading.total, reading.total, reading.minutes), fields))
    check(driver, measured, 90.0)


@settings(max_examples=examples(100), deadline=None)
@given(sequences((200, 240, 1_000)))
def test_no_queue_file_of_which_a_display_shows_the_size_is_without_an_alert(walk: list[Reading]) -> None:
    driver = TwinDriver()
    driver.open(queue_file())
    measured = []
    for reading in walk:
        used = round(reading.pct * reading.total / 100)
        fields = {"file_max_bytes": reading.total << 20, "file_bytes": used << 20, "messages": 1_000}
        measured.append((Reading(100 * used / reading.total, reading.total, reading.minutes), fields))
    check(driver, measured, 90.0)


def test_a_queue_file_is_forecast_from_what_display_qstatus_shows() -> None:
    driver = QueueFileDriver()
    for used in range(100, 180, 5):
        driver.wait(5 * MINUTE)
        state = driver.measure(resync=True, file_max_bytes=200 << 20, file_bytes=used << 20, messages=used)
    assert (state["file_bytes"], state["usage_pct"]) == (175 << 20, 87.5)
    assert state["forecast"]["resources"][0]["time_to_full_s"]["p50"] == pytest.approx(25 * MINUTE, rel=0.1)
    assert ("opened", "full-forecast", "file") in driver.alert_changes()
    assert driver.reopen().state() == state
