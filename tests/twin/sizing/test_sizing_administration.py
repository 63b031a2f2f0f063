"""Administration structures by IBM's documents: docs/sizing.md#an-administration-structure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.base.errors import UsageError
from twin.base.units import KIB, MIB
from twin.estate.advice import MAX_QMGRS, PUBLISHED, published_for
from twin.sizing import plan_administration

# CFLEVEL, queue managers, KB: of the documents, those of the chart read off to half a megabyte.
DOCUMENTED = [
    *((9, qmgrs, kb) for qmgrs, kb in ((1, 2560), (2, 3328), (4, 4608), (8, 7680), (16, 13568), (31, 24832))),
    *((24, qmgrs, kb) for qmgrs, kb in ((1, 14300), (8, 20500), (16, 28700), (32, 43000))),
    *((25, qmgrs, kb) for qmgrs, kb in ((1, 22500), (8, 28700), (16, 35800), (32, 51200))),
]


@pytest.mark.parametrize(("cflevel", "qmgrs", "kb"), DOCUMENTED)
def test_the_plan_has_the_size_of_the_document(cflevel: int, qmgrs: int, kb: int) -> None:
    plan = plan_administration(qmgrs, cflevel)
    by_level = {size.from_cflevel: size for size in plan.published}
    size = by_level[published_for(cflevel).from_cflevel]
    assert (size.bytes, size.listed, plan.warnings) == (kb * KIB, True, ())
    assert kb * KIB <= plan.init_size < kb * KIB + MIB + MIB // 2
    assert plan.size == 2 * plan.init_size


def test_a_queue_manager_needs_a_thousand_entries() -> None:
    assert [plan_administration(qmgrs, 25).entries for qmgrs in (1, 12)] == [1000, 12_000]


def test_level_25_takes_eight_megabytes_more() -> None:
    """IBM: "+8 MB per structure" with CFCC 25; the chart is read off to half a megabyte."""
    for qmgrs in (1, 8, 16, 32):
        more = plan_administration(qmgrs, 25).init_size - plan_administration(qmgrs, 24).init_size
        assert abs(more - 8 * MIB) <= 1.5 * MIB


@given(qmgrs=st.integers(1, MAX_QMGRS - 1), cflevel=st.one_of(st.none(), st.integers(1, 40)))
def test_more_queue_managers_never_need_less(qmgrs: int, cflevel: int | None) -> None:
    fewer, more = plan_administration(qmgrs, cflevel), plan_administration(qmgrs + 1, cflevel)
    assert fewer.init_size <= more.init_size
    assert fewer.init_size >= published_for(cflevel).least(qmgrs)


@given(qmgrs=st.integers(1, MAX_QMGRS), cflevel=st.integers(1, 39))
def test_a_later_level_never_needs_less(qmgrs: int, cflevel: int) -> None:
    assert plan_administration(qmgrs, cflevel).init_size <= plan_administration(qmgrs, cflevel + 1).init_size


@pytest.mark.parametrize(
    ("qmgrs", "cflevel", "warning"),
    [
        (8, None, "CFLEVEL is not known: the figures of CFLEVEL 25 are taken"),
        (8, 26, "nothing is published for CFLEVEL 26: the figures of CFLEVEL 25 are taken; ask CFSizer"),
        (8, 17, "nothing is published for CFLEVEL 17: the figures of CFLEVEL 21 are taken"),
        (5, 25, "Performance on IBM z16, chart has 1, 8, 16, 32 queue managers: 5 are on the line between two"),
    ],
)
def test_what_no_document_has_is_said(qmgrs: int, cflevel: int | None, warning: str) -> None:
    [text] = plan_administration(qmgrs, cflevel).warnings
    assert text.startswith(warning)


def test_between_two_documented_numbers_the_size_is_on_their_line() -> None:
    assert PUBLISHED[0].least(6) == (4608 + 7680) // 2 * KIB


@pytest.mark.parametrize("qmgrs", [0, MAX_QMGRS + 1])
def test_another_number_of_queue_managers_is_refused(qmgrs: int) -> None:
    with pytest.raises(UsageError, match="expected: 1 to 32"):
        plan_administration(qmgrs)
