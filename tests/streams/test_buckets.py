"""Buckets: many stores under one key of the shuffle, each in the partition that has its state."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.query import rows
from streams.query.rows import Buckets, spark_hash
from twin.base.errors import MqtwinError

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("text", "number"),  # by Spark's SQL function `hash`
    [
        ("", 142593372),
        ("a", 1485273170),
        ("ab", -97053317),
        ("abcd", -396302900),
        ("QSG1/APP1", -1306710638),
        ("Ünïcode/äöü", -561756230),
        ("x" * 100, 1899616407),
        ("é", 2119106806),
    ],
)
def test_the_hash_is_sparks(text: str, number: int) -> None:
    assert spark_hash(text) == number


@given(st.sets(names, min_size=1, max_size=60), st.integers(1, 9), st.integers(1, 20))
def test_a_bucket_has_stores_of_its_own_partition_only(stores: set[str], partitions: int, each: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "BUCKET_STORES", each)
        own = Buckets(stores, partitions)
    keys = {own.key_of(store) for store in stores}
    assert len(keys) <= partitions * (1 + len(stores) // (partitions * each))
    for store in stores:
        assert own.partition_of(own.key_of(store)) == own.partition_of(store) == spark_hash(store) % partitions
        own.check(own.key_of(store), own.partition_of(store))


def test_a_store_that_is_added_to_the_estate_moves_no_state() -> None:
    stores = [f"QSG1/S{number}" for number in range(5_000)]
    for known in (stores[:10], stores):
        own = Buckets(known, 4)
        assert [own.partition_of(own.key_of(store)) for store in stores] == [spark_hash(store) % 4 for store in stores]


def test_a_thousand_stores_are_spread_over_few_buckets() -> None:
    stores = [f"QSG1/S{number:04}" for number in range(1_000)]
    own = Buckets(stores, 2)
    sizes = [sum(own.key_of(store) == key for store in stores) for key in {own.key_of(store) for store in stores}]
    assert len(sizes) == 4
    assert max(sizes) < 2 * rows.BUCKET_STORES


def test_a_bucket_in_another_partition_is_an_error() -> None:
    own = Buckets(["QSG1/APP1"], 3)
    key = own.key_of("QSG1/APP1")
    with pytest.raises(MqtwinError, match=f"bucket {key} of 3 state partitions came to partition"):
        own.check(key, (own.partition_of(key) + 1) % 3)
