"""Layouts of MQ's SMF sections: the fields that feeds use, by offset. The tables are all there is to a section.

Sources: [IBM: mq-smf-csv, C structures of the sections] for offsets and widths; those marked "fixture" below were
checked on real records, those marked "document" were seen in no record. A field that lies beyond the end of a section
is absent: sections grew with the versions of MQ. Numbers are big-endian, texts EBCDIC.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

EBCDIC = "cp037"

_STCK_1970 = 0x7D91048BCA000000  # a STORE CLOCK value: 1970-01-01 [IBM: Principles of Operation, TOD clock]


@dataclass(frozen=True, slots=True)
class SectionField:
    """A field of a section. kind: a letter of `struct`, `tN` (text of N bytes) or `clock` (STORE CLOCK)."""

    name: str
    offset: int
    kind: str

    @property
    def width(self) -> int:
        """Number of bytes."""
        if self.kind.startswith("t"):
            return int(self.kind[1:])
        return 8 if self.kind == "clock" else struct.calcsize(f">{self.kind}")

    def read(self, data: bytes) -> Any:
        """Return the value of the field in a section, or None if the section ends before it."""
        end = self.offset + self.width
        if len(data) < end:
            return None
        if self.kind.startswith("t"):
            return ebcdic(data[self.offset : end])
        if self.kind == "clock":
            return clock_us(data[self.offset : end])
        return struct.unpack_from(f">{self.kind}", data, self.offset)[0]


@dataclass(frozen=True, slots=True)
class Section:
    """A kind of section, found by the eyecatcher in its bytes 4 to 8."""

    eyecatcher: str
    fields: tuple[SectionField, ...]
    min_bytes: int  # shorter ones are damaged

    def read(self, data: bytes) -> dict[str, Any]:
        """Return the fields of a section; those beyond its end are None."""
        return {field.name: field.read(data) for field in self.fields}


def ebcdic(data: bytes) -> str:
    """Return a name from EBCDIC, without blanks and zeros at its end."""
    return data.decode(EBCDIC).rstrip(" \0").strip()


def clock_us(data: bytes) -> int:
    """Return a STORE CLOCK value (8 bytes, its bit 51 is a microsecond) as microseconds since 1970; 0 if it is 0."""
    value = int.from_bytes(data, "big")
    return 0 if value == 0 else (value - _STCK_1970) >> 12


def _fields(text: str) -> tuple[SectionField, ...]:
    fields = []
    for line in text.split("\n"):
        words = line.split()
        if words:
            fields.append(SectionField(words[1], int(words[0]), words[2]))
    return tuple(fields)


# fixture: SMF_MQ1000.dat
QIS1 = Section(
    "QIS1",
    _fields("""
        8   page_set         I
        12  buffer_pool      I
        16  total            I
        20  unused           I
        24  persistent       I
        28  nonpersistent    I
        32  full_count       I
        92  expansions       H
        95  method           B
        96  status           B
        100 flags            I
    """),
    min_bytes=32,
)

# fixture: SMF_MQ1000.dat, where all counts are zero
QESD = Section(
    "QESD",
    _fields("""
        8   structure        t12
        20  number           I
        24  blocks_total     I
        28  blocks_map       I
        32  blocks_data      I
        36  blocks_used      I
        40  blocks_free      I
        44  messages         I
        80  failed           I
        84  max_messages     I
        88  max_used_blocks  I
        224 ci_size          I
    """),
    min_bytes=48,
)

# fixture: TEST115.dat, SMF_MQ1000.dat. 64 slots of 64 bytes behind its header
QEST = "QEST"
QEST_HEADER = 8
QEST_SLOT = Section(
    QEST,
    _fields("""
        0   structure        t12
        12  number           I
        16  single_calls     I
        20  multiple_calls   I
        48  full_count       I
        52  max_entries      I
        56  max_elements     I
    """),
    min_bytes=64,
)

# fixture: SMF_MQ1000.dat, TEST115.dat
QMST = Section(
    "QMST",
    _fields("""
        16  gets             I
        20  puts             I
        24  put1s            I
        72  persistent       Q
        80  nonpersistent    Q
        88  persistent_bytes Q
        96  nonpersistent_bytes Q
    """),
    min_bytes=28,
)

# fixture: SMF_MQ1000.dat, TEST115.dat
QPST = Section(
    "QPST",
    _fields("""
        8   pool             I
        12  buffers          I
        16  lowest_stealable I
        20  stealable        I
        28  pages_new        I
        68  short_of_storage I
    """),
    min_bytes=24,
)

# document: no record of it was seen
QQST = Section(
    "QQST",
    _fields("""
        8   queue            t48
        56  flags            I
        60  page_set         h
        62  buffer_pool      h
        64  group            t4
        68  structure        t12
        80  depth            I
        120 depth_high       I
        124 depth_low        I
        128 puts             Q
        136 put1s            Q
        144 puts_np          Q
        152 puts_p           Q
        160 put1s_np         Q
        168 put1s_p          Q
        176 put_bytes        Q
        184 put1_bytes       Q
        192 put_bytes_np     Q
        200 put_bytes_p      Q
        208 put1_bytes_np    Q
        216 put1_bytes_p     Q
        240 fast_puts        Q
        248 fast_bytes       Q
        264 min_length       Q
        272 max_length       Q
        288 gets             Q
        528 expired          Q
        536 puts_backed_out  Q
        544 gets_backed_out  Q
    """),
    min_bytes=84,
)
QQST_SHARED, QQST_PARTIAL = 0x80000000, 0x40000000

# fixture: TEST116.dat
WTAS = Section(
    "WTAS",
    _fields("""
        44  queues           I
        488 commits          I
        508 backouts         I
        664 start            clock
        672 end              clock
    """),
    min_bytes=48,
)

# fixture: TEST116.dat. Its eyecatcher is WQST
WQ = Section(
    "WQST",
    _fields("""
        8   version          I
        32  open_name        t48
        80  base_name        t48
        128 opened           clock
        136 closed           clock
        292 expired          I
        316 puts             I
        376 put1s            I
        476 page_set         i
        480 structure        t12
        496 put_bytes        Q
        504 get_bytes        Q
        512 valid_puts       I
        516 valid_gets       I
        532 max_length       I
        536 min_length       I
        576 gets_p           I
        580 puts_p           I
        584 put1s_p          I
        588 max_depth        I
        596 destructive_gets I
    """),
    min_bytes=520,
)
WQ_NO_MINIMUM = 0x0FFFFFFF

SECTIONS: Mapping[str, Section] = {section.eyecatcher: section for section in (QIS1, QESD, QMST, QPST, QQST, WTAS, WQ)}
