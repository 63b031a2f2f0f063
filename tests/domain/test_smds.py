"""Shared message data sets beyond `tests/cases/stores/data-sets.events`: what is not described, and the largest."""

from tests.naive.estates import data_set
from tests.support.store_driver import KIB, Open


def test_a_data_set_that_is_not_described_is_as_large_as_they_get(structure: Open) -> None:
    state = structure(smds={}).state()["smds"]["QM01"]
    assert state["blocks_total"] == 16 * KIB**4 // (256 * KIB)


def test_the_space_map_counts_as_used_and_a_map_block_covers_63_gib(structure: Open) -> None:
    def of_map(gib: int) -> int:
        blocks = {"QM01": data_set(size=gib * KIB**3 + 256 * KIB)}
        return int(structure(smds=blocks, queue_managers=("QM01",)).send("CLEAR")["smds"]["QM01"]["blocks_used"])

    assert (of_map(62), of_map(63), of_map(64)) == (1, 1, 2)
