"""Layouts of SMF: the sections of MQ's records that feeds use, and SMF 74 subtype 4 of RMF.

- MQ's sections: each field by its offset and kind. Sources: [IBM: mq-smf-csv, C structures of the sections] for offsets
  and widths; those marked "fixture" below were checked on real records, those marked "document" were seen in no record.
  A field that lies beyond the end of a section is absent, None or 0: sections grew with the versions of MQ. Numbers are
  big-endian, texts EBCDIC.
- SMF 74 subtype 4: the activity of a coupling facility. Entries, elements and SCM of its structures are read. No record
  with a structure of MQ was seen.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, get_args, get_type_hints

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


# --- SMF 74 subtype 4 -------------------------------------------------------------------------------------------------
# Sources: [IBM: z/OS MVS System Management Facilities, record type 74: Header/Self-defining Section, RMF Product
# Section, Storage Data Section, Request Data Section, Storage Class Memory Data Section] for the fields whose comment
# says nothing. Those marked [assumed] stand on pages that were not read to their end: their order is that of IBM's list
# of fields, their widths follow from its formats. They are used only where what they say of each other is true, or else
# left out with a complaint.

TYPE, SUBTYPE = 74, 4
_Values = TypeVar("_Values", bound=msgspec.Struct)
BLOCK = 4096  # bytes of the unit of sizes
_ELEMENT = 256  # bytes of a data element [IBM: MQ, Defining coupling facility resources]
_LISTS = {1, 2}  # R744STYP: unserialized and serialized list structures
_TYPES = {3: "LOCK", 4: "CACHE"}
_TRIPLET = 8  # bytes
_MAX_SECTIONS = 4096


class Product(msgspec.Struct, frozen=True):
    """SMF74PRO: when and how long. The fields from `offset_to_local` on are those of SMF 70 [IBM: SMF70PRO]."""

    start: Annotated[int, 10, "I"]  # 0hhmmssF, local
    date: Annotated[int, 14, "I"]  # 0cyydddF, local
    interval: Annotated[int, 18, "I"]  # mmsstttF
    offset_to_local: Annotated[int, 60, "q"]  # SMF74LGO, in units of STORE CLOCK
    broken: Annotated[int, 74, "H"]  # SMF74RAN: not 0 where RMF has divided a record
    end: Annotated[int, 80, "clock"]  # SMF74GIE, UTC


class Facility(msgspec.Struct, frozen=True):
    """R744FLCF: the coupling facility."""

    name: Annotated[str, 0, "t8"]  # [assumed]


class FacilityStorage(msgspec.Struct, frozen=True):
    """R744GSRG: its storage in 4 KB blocks."""

    total: Annotated[int, 8, "I"]
    free: Annotated[int, 12, "I"]
    scm_total: Annotated[int, 32, "Q"]
    scm_free: Annotated[int, 40, "Q"]


class StructureRequests(msgspec.Struct, frozen=True):
    """R744SREQ: a structure that is connected to the system. Sizes are 4 KB blocks."""

    name: Annotated[str, 0, "t16"]
    type: Annotated[int, 24, "B"]
    entries_max: Annotated[int, 28, "I"]  # without those in SCM
    entries: Annotated[int, 32, "I"]
    size: Annotated[int, 236, "I"]  # R744SSIZ [assumed]
    size_max: Annotated[int, 240, "I"]  # R744SMAS [assumed]
    size_min: Annotated[int, 244, "I"]  # R744SMIS [assumed]
    elements_max: Annotated[int, 260, "I"]  # R744SMAE [assumed]
    elements: Annotated[int, 264, "I"]  # R744SCUE [assumed]
    scm_index: Annotated[int, 368, "H"]  # R744SISC, from 1 [assumed]
    scm_count: Annotated[int, 370, "H"]  # R744SNSC [assumed]

    @property
    def is_sound(self) -> bool:
        """True if the fields that are assumed do not contradict each other."""
        has_room = 0 < self.elements_max * _ELEMENT <= self.size * BLOCK and self.elements <= self.elements_max
        return has_room and 0 < self.size_min <= self.size <= self.size_max


class StructureScm(msgspec.Struct, frozen=True):
    """R744MSCM: the storage class memory of a structure, in 4 KB blocks."""

    max: Annotated[int, 0, "Q"]
    used: Annotated[int, 24, "Q"]


PRODUCT = Section("SMF74PRO", Product, min_bytes=88)
FACILITY = Section("R744FLCF", Facility, min_bytes=8)
STORAGE = Section("R744GSRG", FacilityStorage, min_bytes=16)
REQUESTS = Section("R744SREQ", StructureRequests, min_bytes=36)
STRUCTURE_SCM = Section("R744MSCM", StructureScm, min_bytes=32)
FACILITY_SECTIONS = (PRODUCT, FACILITY, STORAGE, REQUESTS, STRUCTURE_SCM)
# Offsets of their triplets. Those of R744FLCF to R744SREQ: SMF744FO, GO and SO; of R744MSCM: SMF744MO [assumed].
TRIPLETS: Mapping[str, int] = {"SMF74PRO": 28, "R744FLCF": 36, "R744GSRG": 52, "R744SREQ": 68, "R744MSCM": 108}


class FacilityRecord(NamedTuple):
    """A record."""

    place: str  # where it stands
    system: str  # name of the system that wrote it
    facility: str  # coupling facility; "": it names none
    interval: tuple[int, int]  # its begin and end, microseconds since 1970
    storage: FacilityStorage | None  # None: the record has none
    structures: list[tuple[StructureRequests, StructureScm | None]]  # those connected to the system
    is_scm_lost: bool  # True if the record has SCM of structures, but not of which


def is_list(structure: StructureRequests) -> bool:
    """Return True for a list structure, such as those of MQ."""
    return structure.type in _LISTS


def type_of(structure: StructureRequests) -> str:
    """Return the type of another structure."""
    return _TYPES.get(structure.type, "another type")


def read_facility(data: bytes, system: str, place: str) -> FacilityRecord:
    """Return the content of a record. ValueError: a section lies outside of it, or lacks fields that are read."""
    products = list(_sections(data, PRODUCT))
    if not products:
        raise ValueError("it has no RMF Product Section")
    facilities, storage = list(_sections(data, FACILITY)), list(_sections(data, STORAGE))
    requests, scm = list(_sections(data, REQUESTS)), list(_sections(data, STRUCTURE_SCM))
    # An index is believed where each section of SCM belongs to one structure.
    owned = [own.scm_index for own in requests if own.scm_count]
    is_known = sorted(owned) == list(range(1, len(scm) + 1)) and not products[0].broken
    return FacilityRecord(
        place=place,
        system=system,
        facility=facilities[0].name if facilities else "",
        interval=_interval(products[0]),
        storage=storage[0] if storage else None,
        structures=[(own, scm[own.scm_index - 1] if is_known and own.scm_count else None) for own in requests],
        is_scm_lost=bool(scm) and not is_known,
    )


def _sections(data: bytes, section: Section[_Values]) -> Iterator[_Values]:
    """Yield the sections of a kind. ValueError: they are not within the record, or too short."""
    position = TRIPLETS[section.eyecatcher]
    if position + _TRIPLET > min(len(data), _first_section(data)):
        return
    offset, length, count = struct.unpack_from(">IHH", data, position)
    if not count:
        return
    if length < section.min_bytes or offset + length * count > len(data) or count > _MAX_SECTIONS:
        raise ValueError(f"{section.eyecatcher} is {count} times {length} bytes at {offset} of {len(data)}")
    for number in range(count):
        yield section.read(data[offset + number * length : offset + (number + 1) * length])


def _first_section(data: bytes) -> int:
    """Return where the triplets end: older records have fewer."""
    return int(struct.unpack_from(">I", data, TRIPLETS["SMF74PRO"])[0]) or len(data)


def _interval(product: Product) -> tuple[int, int]:
    """Return begin and end in microseconds since 1970. ValueError: they are no times."""
    length = _packed(product.interval)
    minutes, milliseconds = divmod(length, 100_000)
    duration = (minutes * 60_000 + milliseconds) * 1_000
    end = product.end
    if not end:
        clock, day = _packed(product.start), _packed(product.date)
        first = datetime(1900 + day // 1000, 1, 1, tzinfo=UTC) + timedelta(days=day % 1000 - 1)
        local = first + timedelta(hours=clock // 10_000, minutes=clock // 100 % 100, seconds=clock % 100)
        end = round(local.timestamp()) * 1_000_000 - (product.offset_to_local >> 12) + duration
    return end - duration, end


def _packed(word: int) -> int:
    """Return a packed decimal number of four bytes. ValueError: it is none."""
    digits = f"{word:08x}"[:7]
    if not digits.isdigit():
        raise ValueError(f"{word:08x} is no packed number")
    return int(digits)
