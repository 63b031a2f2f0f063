"""Calls of kernels from Python with arrays whose types are compared once, when they are put together."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import pytest

from kernels._compile import Uniform, routine
from kernels.layout import Array


class _Columns(NamedTuple):
    first: Array
    second: Array


class Columns(Uniform, _Columns):
    """Two arrays."""

    __slots__ = ()


@routine
def scaled(columns: Any, factor: Any, more: Any) -> Any:
    """Return the sum of the first column, times a factor, and of some more numbers."""
    total = 0 * factor
    for i in range(columns.first.size):
        total += columns.first[i] * factor
    for i in range(more.size):
        total += more[i]
    return total


def columns(*first: int) -> Columns:
    return Columns(np.array(first, np.int64), np.zeros(2, np.uint8))


def test_each_kind_of_arguments_has_its_own_machine_code() -> None:
    none = np.zeros(0, np.int64)
    with_gaps, read_only = np.arange(6)[::2], np.ones(3, np.int64)
    read_only.flags.writeable = False
    for _ in range(2):
        assert scaled(columns(1, 2), 3, none) == 9
        assert scaled(columns(1, 2), 0.5, none) == 1.5
        assert scaled(columns(5), 2, with_gaps) == 16
        assert scaled(columns(5), 2, read_only) == 13
    assert len(cast(Any, scaled)._entries) == 4


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("first", np.zeros(2, np.int32)),
        ("first", np.zeros((2, 2), np.int64)),
        ("second", np.zeros(4, np.uint8)[::2]),
        ("second", np.frombuffer(b"ab", np.uint8)),
    ],
)
def test_other_types_than_those_of_the_first_instance_are_refused(name: str, wrong: Array) -> None:
    right = columns(1, 2)
    with pytest.raises(TypeError, match=f"^Columns.{name} is an array of .*; expected: .*contiguous, writable"):
        right._replace(**{name: wrong})
    with pytest.raises(TypeError, match=f"^Columns.{name} is an array of"):
        Columns(**{**right._asdict(), name: wrong})
    assert right._replace(first=np.array([7])).first.tolist() == [7]
