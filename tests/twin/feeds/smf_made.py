"""Made-up SMF records of the documented layouts: no such real record was to be had, or none with data in it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise

from twin.feeds.smf_layout import FACILITY, PRODUCT, QESD, QQST, REQUESTS, STORAGE, STRUCTURE_SCM, TRIPLETS, Section

END = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z, microseconds since 1970
MINUTE = 60_000_000
_STCK_1970 = 0x7D91048BCA000000


def clock(microseconds: int) -> bytes:
    """Return a STORE CLOCK value."""
    return ((microseconds << 12) + _STCK_1970).to_bytes(8, "big")


def section(kind: Section, length: int, **values: object) -> bytes:
    """Return a section of `length` bytes with fields of its layout; the others are zero."""
    data = bytearray(length)
    if len(kind.eyecatcher) == 4:
        data[4:8] = kind.eyecatcher.encode("cp037")
    by_name = {field.name: field for field in kind.fields}
    for name, value in values.items():
        field = by_name[name]
        assert field.offset + field.width <= length, f"{name} lies beyond {length} bytes"
        if isinstance(value, str):
            packed = value.encode("cp037").ljust(field.width, b"\x40")
        elif field.kind == "clock":
            packed = clock(int(value))
        else:
            packed = struct.pack(f">{field.kind}", value)
        data[field.offset : field.offset + field.width] = packed
    return bytes(data)


def record(
    subtype: int,
    sections: Sequence[bytes],
    *,
    smf_type: int = 115,
    qmgr: str = "QM01",
    group: str = "QSG1",
    lpar: str = "LP01",
    end: int = END,
    duration_us: int = MINUTE,
    offset_hours: int = 1,
) -> bytes:
    """Return a record with its RDW. The clock of the LPAR is `offset_hours` ahead of UTC."""
    qwhs = struct.pack(">HBBHBB4x4s8s", 52, 1, 0x1A, 2, 2, 0x10, qmgr.ljust(4).encode("cp037"), clock(end))
    local = end + offset_hours * 3_600_000_000
    qwhs += struct.pack(">8xI8sQ", 0x40000000, clock(local - duration_us), duration_us)
    qwhs += struct.pack(">HBB4s6s2x", 16, 1, 0, group.ljust(4).encode("cp037"), "100000".encode("cp037"))
    assert len(qwhs) == 68
    length = len(sections[0]) if sections else 0
    start = 28 + 16
    body = b"".join(sections)
    triplets = struct.pack(">IHHIHH", start + len(body), len(qwhs), 1, start, length, len(sections))
    seconds, hundredths = divmod(local // 10_000, 100)
    days, second = divmod(seconds, 86_400)
    date = f"01{26:02d}{days - 20_453:03d}f"  # 2026-01-01 is day 20,454
    header = struct.pack(
        ">BBI4s4s4sH4s2x",
        0x5E,
        smf_type,
        second * 100 + hundredths,
        bytes.fromhex(date),
        lpar.ljust(4).encode("cp037"),
        qmgr.ljust(4).encode("cp037"),
        subtype,
        "946".encode("cp037") + b"\0",
    )
    data = header[:24] + triplets + body + qwhs
    return struct.pack(">HBB", len(data) + 4, 0, 0) + data


def segmented(whole: bytes, *cuts: int) -> bytes:
    """Return a record in segments: cut behind those numbers of bytes of it."""
    ends = [*cuts, len(whole)]
    pieces = [whole[4 : ends[0]]] + [whole[start:end] for start, end in pairwise(ends)]
    kinds = [1] + [3] * (len(pieces) - 2) + [2]
    return b"".join(
        struct.pack(">HBB", len(piece) + 4, kind, 0) + piece for kind, piece in zip(kinds, pieces, strict=True)
    )


def queue_statistics(length: int = 672, **values: object) -> bytes:
    """Return a QQST section: 100 puts and put1s, half of them persistent, 90 gets."""
    usual: dict[str, object] = {
        "queue": "ORDERS",
        "flags": 0x80000000,
        "page_set": -1,
        "group": "QSG1",
        "structure": "APP1",
        "puts": 60,
        "puts_np": 30,
        "puts_p": 30,
        "put1s_np": 20,
        "put1s_p": 20,
        "put_bytes_np": 3_000,
        "put_bytes_p": 3_000,
        "put1_bytes_np": 2_003,
        "put1_bytes_p": 2_004,
        "gets": 90,
    }
    known = {field.name: field.offset + field.width for field in QQST.fields}
    return section(QQST, length, **{name: v for name, v in (usual | values).items() if known[name] <= length})


def data_set(**values: object) -> bytes:
    """Return a QESD section."""
    return section(QESD, 336, **({"structure": "APP1"} | values))


# --- SMF 74 subtype 4 ------------------------------------------------------------------------------------------------


def structure(name: str, *, length: int = 400, **values: object) -> bytes:
    """Return an R744SREQ section: 12 of 100 entries, 60 of 600 elements, 1 MB of at most 2 MB."""
    usual: dict[str, object] = {"type": 1, "entries_max": 100, "entries": 12, "elements_max": 600, "elements": 60}
    usual |= {"size": 256, "size_min": 256, "size_max": 512}
    known = {field.name: field.offset + field.width for field in REQUESTS.fields}
    fields = {own: value for own, value in (usual | values).items() if known[own] <= length}
    return section(REQUESTS, length, name=name, **fields)


def facility(
    structures: Sequence[bytes],
    scm: Sequence[dict[str, int]] = (),
    *,
    name: str = "CF01",
    end: int = END,
    has_clock: bool = True,
    subtype: int = 4,
    system: str = "SYSA",
    **storage: int,
) -> bytes:
    """Return a record of a coupling facility with its RDW; the local time of its interval of 15 minutes is UTC+1."""
    local = (end + 3_600_000_000 - 15 * MINUTE) // 1_000_000
    days, second = divmod(local, 86_400)
    day = bytes.fromhex(f"0126{days - 20_453:03d}f")
    product = section(
        PRODUCT,
        104,
        start=int(f"0{second // 3600:02}{second // 60 % 60:02}{second % 60:02}f", 16),
        date=int.from_bytes(day, "big"),
        interval=int("1500000f", 16),
        offset_to_local=3_600_000_000 << 12,
        **({"end": end} if has_clock else {}),
    )
    parts = {
        "SMF74PRO": [product],
        "R744FLCF": [section(FACILITY, 104, name=name)],
        "R744GSRG": [section(STORAGE, 56, **({"total": 1_000_000, "free": 400_000} | storage))],
        "R744SREQ": list(structures),
        "R744MSCM": [section(STRUCTURE_SCM, 80, **own) for own in scm],
    }
    triplets, body = bytearray(8 * 12), b""
    for kind, sections in parts.items():
        if sections:
            triplet = struct.pack(">IHH", 28 + len(triplets) + len(body), len(sections[0]), len(sections))
            triplets[TRIPLETS[kind] - 28 : TRIPLETS[kind] - 20] = triplet
            body += b"".join(sections)
    names = system.encode("cp037"), "RMF ".encode("cp037")
    header = struct.pack(">BBI4s4s4sHH2x", 0xDE, 74, second * 100, day, *names, subtype, 12)
    data = header + bytes(triplets) + body
    return struct.pack(">HBB", len(data) + 4, 0, 0) + data
