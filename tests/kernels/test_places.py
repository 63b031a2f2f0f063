"""Places of blocks in a queue file, against a set of numbers: whatever is in_use and given back, in any order."""

from __future__ import annotations

from itertools import count, islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels import layout, queue_file

ROWS = 1 << layout.PLACE_SHIFT


class File:
    """The table of places of an empty file, with the calls of a queue file."""

    def __init__(self) -> None:
        self.places = np.zeros(ROWS, layout.PLACE)
        self.dirty = np.zeros(1, np.uint8)
        self.use = np.zeros(1, layout.FILE_USE)
        self.use["last"] = self.use["holes"] = self.use["free"] = layout.NONE

    def take(self, blocks: int) -> int:
        return int(queue_file.take_blocks(self.places, self.dirty, self.use, blocks))

    def give_back(self, row: int) -> int:
        return int(queue_file.give_back_blocks(self.places, self.dirty, self.use, row))

    def blocks_of(self, row: int) -> list[int]:
        """Return the numbers of the blocks of a chain of runs."""
        blocks: list[int] = []
        while row != layout.NONE:
            run = self.places[row]
            assert run["hole"] == 0
            blocks += range(run["start"], run["start"] + run["count"])
            row = int(run["next"])
        return blocks

    def in_order(self) -> list[tuple[int, int, int]]:
        """Return (start, count, hole) of every row in the order of the file, from its end."""
        rows, row = [], int(self.use["last"][0])
        while row != layout.NONE:
            place = self.places[row]
            rows.append((int(place["start"]), int(place["count"]), int(place["hole"])))
            row = int(place["before"])
        return rows[::-1]


def next_free(in_use: set[int], number: int) -> list[int]:
    return list(islice((block for block in count() if block not in in_use), number))


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3), st.integers(0, 30)), max_size=60))
def test_messages_take_the_first_free_blocks_and_holes_are_whole(steps: list[tuple[int, int, int]]) -> None:
    """A step takes blocks, and then gives back up to three messages, anywhere in the file."""
    file = File()
    held: dict[int, list[int]] = {}
    in_use: set[int] = set()
    for blocks, removed, which in steps:
        expected = next_free(in_use, blocks)
        row = file.take(blocks)
        assert file.blocks_of(row) == expected
        held[row] = expected
        in_use |= set(expected)
        for _ in range(min(removed, len(held))):
            row = sorted(held)[which % len(held)]
            gone = held.pop(row)
            assert file.give_back(row) == len(gone)
            in_use -= set(gone)
        rows = file.in_order()
        assert int(file.use["end"][0]) == max(in_use, default=-1) + 1
        assert len(rows) == int(file.use["runs"][0]) <= ROWS
        assert all(start + size == following for (start, size, _), (following, _, _) in pairwise(rows))
        assert not rows or rows[0][0] == 0
        holes = [hole for _, _, hole in rows]
        assert not any(hole and following for hole, following in pairwise([*holes, 1])), "joined, and none at the end"


@pytest.mark.parametrize("number", [100, 120])
def test_a_message_in_many_holes_is_given_back_whole(number: int) -> None:
    file = File()
    rows = [file.take(1) for _ in range(number)]
    for row in rows[::2]:
        file.give_back(row)
    spread = file.take(number)
    assert file.blocks_of(spread) == [*range(0, number, 2), *range(number, number + number // 2)]
    assert [file.give_back(row) for row in rows[1::2]] == [1] * (number // 2)
    assert file.give_back(spread) == number
    assert (int(file.use["end"][0]), int(file.use["runs"][0]), file.in_order()) == (0, 0, [])
