"""Sizes: bytes, or K, M, G and T as powers of 1024."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.twin.estate.conftest import Load
from twin.estate import PageSet, Structure, format_size, parse_size

Refused = Callable[..., str]


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (4096, 4096),
        (0, 0),
        ("8192", 8192),
        ("0K", 0),
        ("64K", 65536),
        ("1.5G", 1610612736),
        ("10g", 10737418240),
        ("16 T", 17592186044416),
        ("0.5K", 512),
    ],
)
def test_a_size_is_bytes_or_a_number_with_a_power_of_1024(written: object, size: int) -> None:
    assert parse_size(written) == size


def test_a_cfrm_number_without_a_unit_is_kilobytes() -> None:
    assert parse_size("65536", unit="K") == 64 * 1024**2
    assert parse_size("2G", unit="K") == 2 * 1024**3


@pytest.mark.parametrize(
    "wrong", ["4GB", "G", "", "-2", "-1K", -1, 1.5, True, None, "0.3K", "1e3", "4 294", "9" * 5000, 2**63]
)
def test_anything_else_is_no_size(wrong: object) -> None:
    with pytest.raises((ValueError, TypeError), match=r"not a"):
        parse_size(wrong)


@given(st.integers(0, 2**63 - 1))
def test_a_formatted_size_reads_back_as_the_same_bytes(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.integers(1, 1023), st.sampled_from("KMGT"))
def test_whole_units_are_written_with_their_unit(number: int, unit: str) -> None:
    assert format_size(parse_size(f"{number}{unit}")) == f"{number}{unit}"


# -- cylinders and tracks of a 3390

DISK = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[structure."QSG1/APP1"]
size = "1G"
[smds."QSG1/APP1/QM01"]
size = "{size}"
[page_set."QM01/4"]
pages = "{size}"
"""


@pytest.mark.parametrize(("text", "pages"), [("3000 CYL", 540_000), ("1cyl", 180), ("45 TRK", 540), ("24 trk", 288)])
def test_data_sets_may_be_in_cylinders_and_tracks(load: Load, text: str, pages: int) -> None:
    estate = load(DISK.format(size=text))
    structure, page_set = estate.stores["QSG1/APP1"], estate.stores["QM01/PS04"]
    assert isinstance(structure, Structure) and structure.smds["QM01"].size == pages * 4096
    assert isinstance(page_set, PageSet) and page_set.pages == pages


@pytest.mark.parametrize("text", ["3000 CYLS", "1.5 CYL", "CYL", "-1 CYL"])
def test_other_words_are_no_space(refused: Refused, text: str) -> None:
    assert f'.size = "{text}": must be a whole number of bytes' in refused(DISK.format(size=text))
