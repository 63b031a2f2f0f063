"""A record before Python has it: its content type from its headers, its value in pieces."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from streams.query.definition import CONTENT_TYPE, in_pieces
from streams.query.rows import VALUE_PIECE_BYTES

pytestmark = pytest.mark.system


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (None, None),
        ([], None),
        ([("content-type", b"a")], b"a"),
        ([("trace", b"t"), ("content-type", b"a"), ("content-type", b"b")], b"a"),
        ([("Content-Type", b"a")], None),
        ([("content-type", None)], None),
    ],
    ids=["no headers", "none", "first", "behind another", "other case", "without a value"],
)
def test_the_content_type_is_the_first_header_of_that_name(
    spark: SparkSession, headers: list[tuple[str, bytes | None]] | None, expected: bytes | None
) -> None:
    frame = spark.createDataFrame([(headers,)], "headers array<struct<key string, value binary>>")
    (row,) = frame.selectExpr(CONTENT_TYPE).collect()
    assert row["content_type"] == expected


def test_values_pass_in_pieces_in_their_order(spark: SparkSession) -> None:
    sizes = [0, 1, VALUE_PIECE_BYTES, VALUE_PIECE_BYTES + 1, 2 * VALUE_PIECE_BYTES, 1_000_000]
    values = [None, *(bytes(n % 251 for n in range(size)) for size in sizes)]
    records = [(value, None, 3, offset) for offset, value in enumerate(values)]
    ddl = "value binary, content_type binary, partition int, offset long"
    pieces = in_pieces(spark.createDataFrame(records, ddl)).collect()
    assert all(len(row.value or b"") <= VALUE_PIECE_BYTES for row in pieces)
    joined: list[bytes | None] = [None] * len(values)
    for row in pieces:
        if row.value is not None:
            joined[row.offset] = (joined[row.offset] or b"") + row.value
    assert joined == values
    assert [row.offset for row in pieces] == [0, 1, 2, 3, 4, 4, 5, 5, *[6] * 245]
