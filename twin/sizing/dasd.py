"""Disk space in the units in which data sets are allocated.

A 3390 has 15 tracks per cylinder [IBM: z/OS DFSMS, Direct access storage devices, table 1] and 12 control intervals of
4096 bytes per track. Real SMF 115 records agree: page sets of 540, 1,080, 50,040 or 963,720 pages are whole cylinders.
"""

from __future__ import annotations

from dataclasses import dataclass

from twin.units import GIB

PAGE_BYTES = 4096
PAGES_PER_TRACK = 12
TRACKS_PER_CYLINDER = 15
PAGES_PER_CYLINDER = PAGES_PER_TRACK * TRACKS_PER_CYLINDER


@dataclass(frozen=True, slots=True)
class Extent:
    """Space of a data set: bytes, 4 KB pages (records of its cluster), and cylinders of a 3390, rounded up."""

    bytes: int
    pages: int
    cylinders: int

    @classmethod
    def of_pages(cls, pages: int) -> Extent:
        """Return the extent of a number of 4 KB pages."""
        return cls(pages * PAGE_BYTES, pages, -(-pages // PAGES_PER_CYLINDER))


def extended_addressability(size: int) -> list[str]:
    """Return the warning about a VSAM data set of more than 4 GB, none below [IBM: z/OS DFSMS Using Data Sets]."""
    if size < 4 * GIB:
        return []
    return ["more than 4 GB: its SMS data class needs extended addressability, else it ends at 4 GB"]
