"""Automatic alter, ALLOWAUTOALT(YES).

Source: docs/storage-model.md (sampled every 60 s of event time; to the in-use ratio, then by 10 % up to SIZE).
"""

from typing import Any

from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.support.store_driver import KIB, NO_RULES, Open, StoreDriver
from tests.support.workloads import MINUTE_US


def open_structure(structure: Open, entries: int = 100, max_entries: int = 200, **fields: Any) -> StoreDriver:
    """Open a structure allocated with `entries`, which may grow to `max_entries`, at a whole minute of event time."""
    sizes = {"init_size": entries * ENTRY_AND_6_ELEMENTS, "size": max_entries * ENTRY_AND_6_ELEMENTS}
    driver = structure(**(NO_RULES | sizes | {"allow_auto_alter": True} | fields))
    driver.time += -driver.time % MINUTE_US
    return driver


DEFAULT_RULES = {"offld1_sz": 32 * KIB, "offld2_sz": 4 * KIB, "offld3_sz": 0}


def test_a_changing_mix_is_not_altered_at_every_sample(structure: Open) -> None:
    """The rules change the ratio in use all the time: of some hundred samples above FULLTHRESHOLD few alter."""
    driver = open_structure(structure, 1048, 1048, full_threshold=60, **DEFAULT_RULES)
    for _ in range(117):
        driver.put(12_000, count=12)
        driver.wait(59)
    assert 10 <= driver.state()["auto_alters"] <= 40
