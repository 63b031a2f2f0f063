"""Shared message data sets beyond `tests/cases/stores/data-sets.events`: what is not described, and the largest."""

from tests.support.store_driver import KIB, Open


def test_a_data_set_that_is_not_described_is_as_large_as_they_get(structure: Open) -> None:
    state = structure(smds={}).state()["smds"]["QM01"]
    assert state["blocks_total"] == 16 * KIB**4 // (256 * KIB)
