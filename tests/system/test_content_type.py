"""The content type of a record, from its headers."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from streams.query.definition import CONTENT_TYPE

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
