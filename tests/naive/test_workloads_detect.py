"""Random workloads detect every wrong rule: an oracle with one constant changed gives different states."""

from functools import cache
from typing import Any

import pytest

from tests.naive import NaivePageSet, NaiveQueueFile, NaiveStore, NaiveStructure, page_set, queue_file, scm, structure
from tests.naive.estates import OnFacility
from tests.naive.private_estates import Private
from tests.naive.structure import Facility
from tests.support.workloads import SEEDS, Workload, long_workload


def nothing_seen(_: scm.NaiveScm, elements: int) -> bool:  # noqa: ARG001 -- as of the method
    """Return False, as if no accepted put showed anything."""
    return False


RULES = [  # kind of store, profile, module, constant, wrong value
    ("scm", "filling", scm, "PRESTAGE_ABOVE_PCT", 91),
    ("scm", "filling", scm, "PREFETCH_UP_TO_PCT", 71),
    ("scm", "moving", scm, "ENTRY_BYTES", 240),
    ("scm", "moving", scm, "SECOND_NS", 1_100_000_000),
    ("scm", "filling", scm, "DYNAMIC_AUGMENTED_PCT", 3),
    ("scm", "filling", scm.NaiveScm, "see_accepted", nothing_seen),
    ("scm", "attributes", structure, "SAMPLE_TICKS", 7),
    ("page_set", "packing", page_set, "PAGE_ROOM", 4056),
    ("page_set", "packing", page_set, "SHORT_LENGTH", 3684),
    ("page_set", "packing", page_set, "ONE_A_PAGE_SINCE", (7, 0, 0)),
    ("page_set", "filling", page_set, "EXPANDS_ABOVE_PCT", 91),
    ("page_set", "filling", page_set, "MAX_EXPANSIONS", 118),
    ("page_set", "filling", page_set, "SEGMENT", 4048),
    ("page_set", "filling", page_set, "VERY_LONG_PAGES", 1036),
    ("queue_file", "filling", queue_file, "DESCRIPTOR", 363),
    ("queue_file", "log", queue_file, "CHECKPOINT_RECORDS", 9_000),
    ("queue_file", "checkpoints", queue_file, "CHECKPOINT_US", 29 * 60 * 1_000_000),
    ("queue_file", "checkpoints", queue_file, "CHECKPOINT_US", 31 * 60 * 1_000_000),
    ("queue_file", "filling", queue_file, "MIN_CHECKPOINT_RECORDS", 99),
    ("queue_file", "checkpoints", queue_file, "OVERSIZED_BYTES", 16 * 1024 - 512),
    ("queue_file", "checkpoints", queue_file, "OVERSIZED_BYTES", 16 * 1024 + 512),
]


def oracle_of(workload: Workload) -> NaiveStore:
    config = workload.config
    if isinstance(config, Private):
        kinds: dict[str, Any] = {"page_set": NaivePageSet, "queue_file": NaiveQueueFile}
        oracle: NaiveStore = kinds[config.kind](config.attributes | {"version": config.version}, workload.aliases)
        if config.expiry_interval_s is not None:
            oracle.scan_interval_us = int(config.expiry_interval_s * 1_000_000)
        return oracle
    assert isinstance(config, OnFacility)
    return NaiveStructure(
        config, workload.aliases, Facility(config.facility_size, config.facility_scm or 0, config.others_scm)
    )


workload_of = cache(long_workload)


@cache
def right_states(kind: str, profile: str, seed: int) -> list[dict[str, Any]]:
    return states(workload_of(seed, profile, kind))


def states(workload: Workload) -> list[dict[str, Any]]:
    """Return the states of a workload after every fifth event."""
    oracle, result = oracle_of(workload), []
    for number, event in enumerate(workload.events):
        if event["op"] == "REBUILD" and isinstance(workload.config, Private):
            continue  # it would be a dead letter
        oracle.apply(event)
        if number % 5 == 4:
            result.append(oracle.state())
    return result


@pytest.mark.parametrize(
    ("kind", "profile", "module", "name", "wrong"), RULES, ids=lambda value: getattr(value, "__name__", str(value)[:30])
)
@pytest.mark.nightly
def test_random_workloads_detect_a_wrong_rule(
    kind: str, profile: str, module: Any, name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in SEEDS:
        right = right_states(kind, profile, seed)
        with monkeypatch.context() as patched:
            patched.setattr(module, name, wrong)
            if states(workload_of(seed, profile, kind)) != right:
                return
    pytest.fail(f"{name} = {wrong} makes no difference")
