"""SMF 74 subtype 4 of RMF: the activity of a coupling facility. Entries, elements and SCM of its structures are read.

Sources: [IBM: z/OS MVS System Management Facilities, record type 74: Header/Self-defining Section, RMF Product
Section, Storage Data Section, Request Data Section, Storage Class Memory Data Section] for the fields whose comment
says nothing. Those marked [assumed] stand on pages that were not read to their end: their order is that of IBM's list
of fields, their widths follow from its formats. They are used only where what they say of each other is true, or else
left out with a complaint. No record with a structure of MQ was seen.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple, TypeVar

import msgspec

from twin.feeds.smf_layout import Section

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
SECTIONS = (PRODUCT, FACILITY, STORAGE, REQUESTS, STRUCTURE_SCM)
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
