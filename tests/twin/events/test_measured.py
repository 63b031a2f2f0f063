"""Measurements that no system can show: more than there can be, or more than they say there is.

Each case was taken before: some ended the job, others showed a usage of millions of percent.
"""

from __future__ import annotations

from typing import Any

import pytest

from twin.events import EventError, Reason
from twin.events.fields import check_measured

_BLOCKS = 2**31  # of 8 KB: 16 TB, the largest data set

IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"smds": {"QM01": {"blocks_total": 2**47, "blocks_used": 5}}}, f"integer from 0 to {_BLOCKS}"),
    ({"smds": {"QM01": {"blocks_total": 3, "blocks_used": 2**52}}}, f"integer from 0 to {_BLOCKS}"),
    ({"smds": {"QM01": {"blocks_total": 3, "blocks_used": 4}}}, "blocks_used 4 of blocks_total 3"),
    ({"smds": {"QM01": {"pages_used": 2**40}}}, f"integer from 0 to {2**32}"),
    ({"ents_used": 10**12, "ents_max": 5, "resync": True}, "ents_used 1000000000000 of ents_max 5"),
    ({"elems_used": 10, "elems_max": 5}, "elems_used 10 of elems_max 5"),
    ({"pages_used": 2**53 - 1}, f"integer from 0 to {2**24}"),
    ({"pages_used": 5, "pages_unused": 5, "pages_total": 9}, "of pages_total 9"),
    ({"scm": {"used": 6, "max": 5}}, "used 6 of max 5"),
    ({"scm_used": 6, "scm_total": 5}, "scm_used 6 of scm_total 5"),
    ({"usage_pct": 250}, "number from 0 to 100"),
    ({"buffer_pool_pct": 100.1}, "number from 0 to 100"),
]


@pytest.mark.parametrize(("measured", "text"), IMPOSSIBLE, ids=str)
def test_what_no_system_can_show_is_a_bad_value(measured: dict[str, Any], text: str) -> None:
    with pytest.raises(EventError, match=text) as caught:
        check_measured(measured)
    assert caught.value.reason == Reason.BAD_VALUE
    assert "expected: " in caught.value.detail


@pytest.mark.parametrize(
    "measured",
    [
        {"ents_used": 5},
        {"ents_used": 5, "ents_max": None},
        {"ents_used": 5, "ents_max": 5},
        {"smds": {"QM01": {"blocks_used": 5}}},
        {"smds": {"QM01": {"blocks_total": _BLOCKS, "blocks_used": _BLOCKS}}},
        {"usage_pct": 100},
        {"queues": [{"name": "A", "depth": 5}]},
    ],
    ids=str,
)
def test_a_part_of_what_there_is_is_taken(measured: dict[str, Any]) -> None:
    check_measured(measured)
