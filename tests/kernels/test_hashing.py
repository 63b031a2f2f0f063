"""Keys of message ids and units of work are xxHash64, seed 0, equal to those of the reference implementation."""

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from kernels.index import xxh64_bytes, xxh64_column

pytestmark = pytest.mark.uncompiled


def as_array(data: bytes) -> np.ndarray:
    return np.frombuffer(data + b"\0", np.uint8)[:-1]


@given(st.binary(max_size=200))
def test_a_key_is_the_xxhash64_of_the_bytes(data: bytes) -> None:
    assert int(xxh64_bytes(as_array(data))) == xxhash.xxh64_intdigest(data)


def test_every_length_up_to_three_rounds_of_the_algorithm() -> None:
    text = bytes(range(3, 3 + 120))
    assert [int(xxh64_bytes(as_array(text[:n]))) for n in range(121)] == [
        xxhash.xxh64_intdigest(text[:n]) for n in range(121)
    ]


@pytest.mark.parametrize("width", [np.int32, np.int64])
@given(st.lists(st.binary(max_size=48), min_size=1, max_size=20))
def test_a_column_of_strings_gives_the_key_of_each(width: type, strings: list[bytes]) -> None:
    offsets = np.cumsum([0, *map(len, strings)]).astype(width)
    out = np.zeros(len(strings), np.uint64)
    xxh64_column(offsets, as_array(b"".join(strings)), out)
    assert out.tolist() == [xxhash.xxh64_intdigest(string) for string in strings]
