"""Automatic alter, ALLOWAUTOALT(YES).

Source: docs/storage-model.md (sampled every 60 s of event time; to the in-use ratio, then by 10 % up to SIZE).
"""

from typing import Any

import pytest

from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.support.store_driver import GIB, KIB, NO_RULES, Open, StoreDriver
from tests.support.workloads import MINUTE_US, SECOND_US


def open_structure(structure: Open, entries: int = 100, max_entries: int = 200, **fields: Any) -> StoreDriver:
    """Open a structure allocated with `entries`, which may grow to `max_entries`, at a whole minute of event time."""
    sizes = {"init_size": entries * ENTRY_AND_6_ELEMENTS, "size": max_entries * ENTRY_AND_6_ELEMENTS}
    driver = structure(**(NO_RULES | sizes | {"allow_auto_alter": True} | fields))
    driver.time += -driver.time % MINUTE_US
    return driver


def with_scm(structure: Open, **fields: Any) -> StoreDriver:
    """Open a structure with SCM: 100 entries of 104."""
    return open_structure(structure, 104, 208, **({"scm_max_size": GIB} | fields))


def pools(state: dict[str, Any]) -> tuple[int, int]:
    return state["ents_max"], state["elems_max"]


def test_at_fullthreshold_the_ratio_becomes_that_of_what_is_in_use(structure: Open) -> None:
    driver = open_structure(structure)
    driver.put(100, count=80)  # 80 entries of 100, 160 elements of 600
    assert pools(driver.state()) == (100, 600)
    state = driver.wait(60)
    entries = 100 * ENTRY_AND_6_ELEMENTS // (695 + 2 * 256)
    assert (pools(state), state["size"]) == ((entries, 2 * entries), 100 * ENTRY_AND_6_ELEMENTS)
    assert state["usage_pct"] < 80


def test_automatic_alter_takes_the_ratio_in_use_every_60_seconds(structure: Open) -> None:
    driver = open_structure(structure, 40, 80)
    next_minute = driver.time + MINUTE_US
    driver.put(100, count=32)  # 32 of 40 entries, 64 of 240 elements
    state = driver.send("HEARTBEAT", None, time=next_minute - 1)
    assert (state["ents_max"], state["elems_max"]) == (40, 240)
    state = driver.send("HEARTBEAT", None, time=next_minute)
    assert state["ents_max"] == 40 * ENTRY_AND_6_ELEMENTS // (695 + 512)
    assert (state["elems_max"], state["size"]) == (2 * state["ents_max"], 40 * ENTRY_AND_6_ELEMENTS)


def test_the_ratio_is_a_fraction_exactly(structure: Open) -> None:
    driver = open_structure(structure)
    driver.put(100, count=60)
    driver.put(600, count=21)  # 4 elements: 81 entries, 204 elements
    state = driver.wait(60)
    entries = 100 * ENTRY_AND_6_ELEMENTS * 81 // (695 * 81 + 256 * 204)
    assert pools(state) == (entries, entries * 204 // 81)
    bigger = driver.alter(size=110 * ENTRY_AND_6_ELEMENTS)
    assert bigger["ents_max"] == 110 * ENTRY_AND_6_ELEMENTS * 81 // (695 * 81 + 256 * 204)


@pytest.mark.parametrize(("long", "short", "ratio"), [(74, 6, 6), (73, 7, 452 / 80)])
def test_a_ratio_in_line_with_the_one_in_use_stays(structure: Open, long: int, short: int, ratio: float) -> None:
    """Automatic alter "is not very sensitive": it leaves 5 % of one pool, no more."""
    driver = open_structure(structure, max_entries=100)
    driver.put(1164, count=long)
    driver.put(100, count=short)  # of 80 entries in use 6 or 7 have 2 elements: 5 % or 5.8 % of 480 would be left
    ents_max, elems_max = pools(driver.wait(60))
    assert ents_max == int(100 * ENTRY_AND_6_ELEMENTS / (695 + 256 * ratio))
    assert elems_max == int(ents_max * ratio)


DEFAULT_RULES = {"offld1_sz": 32 * KIB, "offld2_sz": 4 * KIB, "offld3_sz": 0}


def minutes_until_full(structure: Open, length: int, **fields: Any) -> float:
    """Return the time until a put does not fit any more, with a put every five seconds into 2.3 MB."""
    driver = open_structure(structure, 1048, 1048, **({"full_threshold": 60} | DEFAULT_RULES | fields))
    start = driver.time
    while driver.put(length, time=driver.time + 5 * SECOND_US)["overfull_puts"] == 0:
        pass
    return (driver.time - start) / MINUTE_US


@pytest.mark.parametrize("length", [6_000, 12_000])
def test_the_second_rule_gives_automatic_alter_more_time(structure: Open, length: int) -> None:
    """The remaining space "is used up more slowly", and so "gives [...] automatic alter [...] more time"."""
    without = minutes_until_full(structure, length, offld2_sz=64 * KIB)
    assert minutes_until_full(structure, length) > without + 10, "as many more samples"


def test_a_changing_mix_is_not_altered_at_every_sample(structure: Open) -> None:
    """The rules change the ratio in use all the time: of some hundred samples above FULLTHRESHOLD few alter."""
    driver = open_structure(structure, 1048, 1048, full_threshold=60, **DEFAULT_RULES)
    for _ in range(117):
        driver.put(12_000, count=12)
        driver.wait(59)
    assert 10 <= driver.state()["auto_alters"] <= 40


def test_where_that_is_not_enough_it_grows_by_a_tenth_a_minute_up_to_size(structure: Open) -> None:
    driver = open_structure(structure, max_entries=125)
    driver.put(1164, count=98)  # 6 elements: the ratio is right already
    for entries in (110, 121, 125, 125):
        assert driver.wait(60)["size"] == entries * ENTRY_AND_6_ELEMENTS
    assert driver.state()["refused_alters"] == 0


def test_growth_ends_below_fullthreshold_and_at_size(structure: Open) -> None:
    driver = open_structure(structure, 40, 80)
    driver.put(1164, count=40)  # 6 elements each: both pools are full
    sizes = [driver.wait(60)["size"] for _ in range(9)]
    assert sizes[0] == 40 * ENTRY_AND_6_ELEMENTS * 11 // 10
    assert sizes == sorted(sizes)
    assert driver.state()["usage_pct"] < 80
    driver.put(1164, count=40)
    for _ in range(9):
        driver.wait(60)
    assert driver.state()["size"] == 80 * ENTRY_AND_6_ELEMENTS


def test_it_is_looked_at_every_minute_of_event_time_not_at_every_event(structure: Open) -> None:
    driver = open_structure(structure)
    driver.put(1164, count=98)
    for _ in range(5):
        assert driver.wait(9)["size"] == 100 * ENTRY_AND_6_ELEMENTS
    assert driver.wait(20)["size"] == 110 * ENTRY_AND_6_ELEMENTS


def test_a_silent_hour_is_sixty_looks(structure: Open) -> None:
    driver = open_structure(structure)
    driver.put(1164, count=100)
    assert driver.wait(3600)["size"] == 296_946  # a tenth three times, in whole bytes: 75 % are in use then


@pytest.mark.parametrize(("full_threshold", "entries"), [(80, 79), (96, 95)])
def test_below_fullthreshold_nothing_is_altered(structure: Open, full_threshold: int, entries: int) -> None:
    driver = open_structure(structure, full_threshold=full_threshold)
    driver.put(100, count=entries)
    assert pools(driver.wait(600)) == (100, 600)


@pytest.mark.parametrize("fields", [{"allow_auto_alter": False}, {"full_threshold": 0}])
def test_nor_without_allowautoalt_or_fullthreshold(structure: Open, fields: dict[str, Any]) -> None:
    driver = open_structure(structure, **fields)
    driver.put(100, count=100)
    assert pools(driver.wait(600)) == (100, 600)


def test_automatic_alter_is_refused_each_time_while_data_is_in_scm(scm_structure: Open) -> None:
    driver = scm_structure(allow_auto_alter=True)
    driver.time -= driver.time % MINUTE_US
    driver.put(100, count=35)
    state = driver.wait(180)
    assert (state["refused_alters"], state["ents_max"]) == (3, 38)


def test_a_rebuild_is_no_alter(structure: Open) -> None:
    driver = with_scm(structure, allow_auto_alter=False)
    driver.put(100, count=91)
    state = driver.rebuild(init_size=208 * ENTRY_AND_6_ELEMENTS)
    assert (state["ents_max"], state["refused_alters"]) == (201, 0)
    assert driver.wait(1)["scm"]["messages"] == 0


def test_what_a_new_ratio_makes_full_moves_to_scm_at_once_and_stops_further_alters(structure: Open) -> None:
    """Of a long and an empty message the long one goes; entries stay at FULLTHRESHOLD, so later samples are refused."""
    driver = with_scm(structure, init_size=None, size=46 * ENTRY_AND_6_ELEMENTS, full_threshold=50)
    driver.put(0)
    driver.put(60_000)
    state = driver.wait(180)
    assert (state["auto_alters"], state["refused_alters"]) == (1, 2)
    assert (state["ents_used"], state["ents_max"], state["scm"]["messages"]) == (1, 2, 1)
