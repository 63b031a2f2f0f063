"""Pages of messages on a page set: [IBM: Page sets 01 to 99]; docs/storage-model.md, docs/state.md."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

import kernels.page_set
from tests.naive.page_set import usable_pages, whole_pages_and_record
from tests.support.store_driver import MIB

MIB4 = 4 * MIB
ALLOCATED = {  # usable pages of SMF records -> whole tracks, 12 records of 4 KB each
    10: 12,
    70: 72,
    538: 540,
    1078: 1080,
    1618: 1620,
    3058: 3060,
    10_078: 10_080,
    22_857: 22_860,
    50_035: 50_040,
    600_441: 600_480,
    963_659: 963_720,
}

PagesOf = Callable[[int], tuple[int, int]]
UsablePages = Callable[[int], int]


@pytest.fixture
def pages_of(side: str) -> PagesOf:
    """Return the function that gives (pages of a message's own, bytes of its record on another page)."""
    return {"oracle": whole_pages_and_record, "twin": kernels.page_set.pages_of}[side]


@pytest.fixture
def usable(side: str) -> UsablePages:
    """Return the function that gives the pages for messages of the pages allocated."""
    return {"oracle": usable_pages, "twin": kernels.page_set.usable_pages}[side]


# -- what the document says of the size of messages


def test_the_usable_space_beside_the_header_of_a_short_message_is_3685_bytes(pages_of: PagesOf) -> None:
    """Short messages: "the usable space remaining on the page is 3685 bytes"."""
    assert pages_of(0) == (0, 372)
    assert pages_of(3685) == (0, 4057)
    assert pages_of(3686) == (1, 20 + 3)


@pytest.mark.parametrize(
    ("length", "n"),
    [(3686, 1), (3697, 1), (3698, 2), (3697 + 4049, 2), (3697 + 4049 + 1, 3), (100_000, 25), (MIB4, 1036)],
)
def test_a_long_message_takes_n_pages_and_c_bytes(pages_of: PagesOf, length: int, n: int) -> None:
    """Long messages: n = (message data length + 352) / 4049 rounded up, c = 20 + (3n) bytes.

    "the first page contains 3697 bytes of the message data", each further one 4049.
    """
    assert pages_of(length) == (n, 20 + 3 * n)


def test_each_4_mb_of_a_very_long_message_takes_1037_pages(pages_of: PagesOf) -> None:
    """Very long messages: "each 4 MB uses 1037 pages. Any remainder is stored in the same way as a long message"."""
    assert pages_of(MIB4) == (1036, 20 + 3 * 1036)  # long still: "not greater than 4 MB"
    assert pages_of(MIB4 + 1) == (1037 + 1, 20 + 3)
    assert pages_of(MIB4 + 3685) == (1037 + 1, 20 + 3)  # "as a long message", however short
    assert pages_of(2 * MIB4) == (2 * 1037, 0)
    assert pages_of(2 * MIB4 + 3686) == (2 * 1037 + 1, 23)
    assert pages_of(25 * MIB4) == (25 * 1037, 0)  # 100 MB, the longest there is


def test_at_least_two_pages_are_control_information(usable: UsablePages) -> None:
    """Calculating the storage requirement: "A minimum of two pages are required for page set control information"."""
    assert [usable(allocated) for allocated in (2, 3, 100, 16_184, 16_185)] == [0, 1, 98, 16_182, 16_182]


def test_the_largest_page_set_has_16776178_pages_for_messages(usable: UsablePages) -> None:
    assert usable(16_777_216) == 16_776_178  # the published maximum


def test_usable_pages_are_those_of_real_smf_records(shared: Path, usable: UsablePages) -> None:
    """The eleven sizes of SMF 115, QIS1."""
    with (shared / "fixtures/smf/expected/SMF_MQ1000-QIS1.csv").open() as file:
        rows = list(csv.DictReader(file))
    totals = {int(row["Total_Pages"]) for row in rows} - {0}
    assert totals == set(ALLOCATED)
    assert {usable(allocated) for allocated in ALLOCATED.values()} == totals
    for row in rows:
        parts = [int(row[f"{name}_Pages"]) for name in ("Unused", "Persistent", "Nonpersistent")]
        assert int(row["Total_Pages"]) == sum(parts)
