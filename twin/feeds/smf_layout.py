"""Layouts of MQ's SMF sections: the fields that feeds use, each by its offset and kind.

Sources: [IBM: mq-smf-csv, C structures of the sections] for offsets and widths; those marked "fixture" below were
checked on real records, those marked "document" were seen in no record. A field that lies beyond the end of a section
is absent, None or 0: sections grew with the versions of MQ. Numbers are big-endian, texts EBCDIC.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, get_args, get_type_hints

import msgspec

EBCDIC = "cp037"

_Values_co = TypeVar("_Values_co", bound=msgspec.Struct, covariant=True)

_STCK_1970 = 0x7D91048BCA000000  # a STORE CLOCK value: 1970-01-01 [IBM: Principles of Operation, TOD clock]


@dataclass(frozen=True, slots=True)
class SectionField:
    """A field of a section. kind: a letter of `struct`, `tN` (text of N bytes) or `clock` (STORE CLOCK)."""

    name: str
    offset: int
    kind: str
    absent: int | None  # value in a section that ends before it

    @property
    def width(self) -> int:
        """Number of bytes."""
        if self.kind.startswith("t"):
            return int(self.kind[1:])
        return 8 if self.kind == "clock" else struct.calcsize(f">{self.kind}")

    def read(self, data: bytes) -> Any:
        """Return the value of the field in a section."""
        end = self.offset + self.width
        if len(data) < end:
            return self.absent
        if self.kind.startswith("t"):
            return ebcdic(data[self.offset : end])
        if self.kind == "clock":
            return clock_us(data[self.offset : end])
        return struct.unpack_from(f">{self.kind}", data, self.offset)[0]


class Section(Generic[_Values_co]):
    """A kind of section, found by the eyecatcher in its bytes 4 to 8."""

    def __init__(self, eyecatcher: str, values: type[_Values_co], min_bytes: int) -> None:
        """Take the places of the fields from their annotations: offset and kind."""
        self.eyecatcher = eyecatcher  # four characters
        self.min_bytes = min_bytes  # shorter sections are damaged
        hints = get_type_hints(values, include_extras=True)
        self.fields = tuple(_field(name, *get_args(hint)) for name, hint in hints.items())  # their places
        self._values = values

    def read(self, data: bytes) -> _Values_co:
        """Return the fields of a section; those beyond its end are None where their type has it, else 0."""
        return self._values(*(field.read(data) for field in self.fields))


def _field(name: str, value: object, offset: int, kind: str) -> SectionField:
    return SectionField(name, offset, kind, None if type(None) in get_args(value) else 0)


def ebcdic(data: bytes) -> str:
    """Return a name from EBCDIC, without blanks and zeros at its end."""
    return data.decode(EBCDIC).rstrip(" \0").strip()


def clock_us(data: bytes) -> int:
    """Return a STORE CLOCK value (8 bytes, its bit 51 is a microsecond) as microseconds since 1970; 0 if it is 0."""
    value = int.from_bytes(data, "big")
    return 0 if value == 0 else (value - _STCK_1970) >> 12


# fixture: SMF_MQ1000.dat
class PageSetUsage(msgspec.Struct, frozen=True):
    """A page set."""

    page_set: Annotated[int, 8, "I"]
    buffer_pool: Annotated[int, 12, "I"]
    total: Annotated[int, 16, "I"]
    unused: Annotated[int, 20, "I"]
    persistent: Annotated[int, 24, "I"]
    nonpersistent: Annotated[int, 28, "I"]
    expansions: Annotated[int | None, 92, "H"]
    method: Annotated[int, 95, "B"]
    status: Annotated[int | None, 96, "B"]


QIS1 = Section("QIS1", PageSetUsage, min_bytes=32)


# fixture: SMF_MQ1000.dat, where all counts are zero
class DataSetUsage(msgspec.Struct, frozen=True):
    """A shared message data set."""

    structure: Annotated[str, 8, "t12"]
    blocks_total: Annotated[int, 24, "I"]
    blocks_map: Annotated[int, 28, "I"]
    blocks_used: Annotated[int, 36, "I"]
    blocks_free: Annotated[int, 40, "I"]
    messages: Annotated[int, 44, "I"]
    ci_size: Annotated[int, 224, "I"]


QESD = Section("QESD", DataSetUsage, min_bytes=48)

# fixture: TEST115.dat, SMF_MQ1000.dat. 64 slots of 64 bytes behind its header
QEST = "QEST"
QEST_HEADER = 8


class StructurePeaks(msgspec.Struct, frozen=True):
    """Peaks of a structure: a slot of QEST."""

    structure: Annotated[str, 0, "t12"]
    full_count: Annotated[int, 48, "I"]
    max_entries: Annotated[int, 52, "I"]
    max_elements: Annotated[int, 56, "I"]


QEST_SLOT = Section(QEST, StructurePeaks, min_bytes=64)


# fixture: SMF_MQ1000.dat, TEST115.dat
class Calls(msgspec.Struct, frozen=True):
    """Calls of the queue manager."""

    gets: Annotated[int, 16, "I"]
    puts: Annotated[int, 20, "I"]
    put1s: Annotated[int, 24, "I"]


QMST = Section("QMST", Calls, min_bytes=28)


# fixture: SMF_MQ1000.dat, TEST115.dat
class BufferPool(msgspec.Struct, frozen=True):
    """A buffer pool."""

    pool: Annotated[int, 8, "I"]
    buffers: Annotated[int, 12, "I"]
    stealable: Annotated[int, 20, "I"]


QPST = Section("QPST", BufferPool, min_bytes=24)


# document: no record of it was seen
class QueueStatistics(msgspec.Struct, frozen=True):
    """Statistics of a queue."""

    queue: Annotated[str, 8, "t48"]
    flags: Annotated[int, 56, "I"]
    page_set: Annotated[int, 60, "h"]
    group: Annotated[str, 64, "t4"]
    structure: Annotated[str, 68, "t12"]
    depth: Annotated[int, 80, "i"]
    output_handles: Annotated[int, 84, "I"]
    input_handles: Annotated[int | None, 88, "I"]
    oldest_age: Annotated[int, 92, "I"]
    last_put: Annotated[int, 104, "clock"]
    last_get: Annotated[int, 112, "clock"]
    puts: Annotated[int | None, 128, "Q"]
    puts_np: Annotated[int, 144, "Q"]
    puts_p: Annotated[int, 152, "Q"]
    put1s_np: Annotated[int, 160, "Q"]
    put1s_p: Annotated[int, 168, "Q"]
    put_bytes_np: Annotated[int, 192, "Q"]
    put_bytes_p: Annotated[int, 200, "Q"]
    put1_bytes_np: Annotated[int, 208, "Q"]
    put1_bytes_p: Annotated[int, 216, "Q"]
    fast_puts: Annotated[int, 240, "Q"]
    fast_bytes: Annotated[int, 248, "Q"]
    min_length: Annotated[int | None, 264, "Q"]
    max_length: Annotated[int | None, 272, "Q"]
    gets: Annotated[int, 288, "Q"]
    expired: Annotated[int, 528, "Q"]
    puts_backed_out: Annotated[int, 536, "Q"]
    gets_backed_out: Annotated[int, 544, "Q"]


QQST = Section("QQST", QueueStatistics, min_bytes=84)
QQST_SHARED, QQST_PARTIAL, QQST_UNCOMMITTED = 0x80000000, 0x40000000, 0x20000000


# fixture: TEST116.dat
class TaskTimes(msgspec.Struct, frozen=True):
    """A task, to which the queues behind it belong."""

    start: Annotated[int, 664, "clock"]
    end: Annotated[int, 672, "clock"]


WTAS = Section("WTAS", TaskTimes, min_bytes=48)


# fixture: TEST116.dat. Its eyecatcher is WQST
class QueueUse(msgspec.Struct, frozen=True):
    """The use of a queue by a task."""

    open_name: Annotated[str, 32, "t48"]
    base_name: Annotated[str, 80, "t48"]
    opened: Annotated[int, 128, "clock"]
    closed: Annotated[int, 136, "clock"]
    expired: Annotated[int, 292, "I"]
    page_set: Annotated[int, 476, "i"]
    structure: Annotated[str, 480, "t12"]
    put_bytes: Annotated[int, 496, "Q"]
    valid_puts: Annotated[int, 512, "I"]
    valid_gets: Annotated[int, 516, "I"]
    max_length: Annotated[int | None, 532, "I"]
    min_length: Annotated[int | None, 536, "I"]
    puts_p: Annotated[int, 580, "I"]
    put1s_p: Annotated[int, 584, "I"]
    destructive_gets: Annotated[int | None, 596, "I"]


WQ = Section("WQST", QueueUse, min_bytes=520)
WQ_NO_MINIMUM = 0x0FFFFFFF

SectionValues = PageSetUsage | DataSetUsage | Calls | BufferPool | QueueStatistics | TaskTimes | QueueUse
SECTIONS: Mapping[str, Section[SectionValues]] = {
    section.eyecatcher: section for section in (QIS1, QESD, QMST, QPST, QQST, WTAS, WQ)
}
