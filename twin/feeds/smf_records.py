"""SMF records from the bytes of a data set or of a stream: with or without RDW, whole or in segments.

Sources: [IBM: z/OS MVS System Management Facilities, record descriptor word and standard header], [IBM: mq-smf-csv, C
structures]. The times were checked on real records: the header's time and QWHSTIME are local, the STORE CLOCK value of
QWHS is UTC and the end of the interval, QWHSDURN is in microseconds.
"""

from __future__ import annotations

import mmap
import re
import struct
from base64 import b64decode
from binascii import unhexlify
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from twin.base.listings import end_of_lines
from twin.feeds import smf_layout
from twin.feeds.intake import Complaint, PassedOver
from twin.feeds.protocol import Page
from twin.feeds.smf_layout import clock_us, ebcdic

MQ_TYPES = (115, 116)
SMF_TYPES = (2, 3)  # header and trailer of a dump

_RDW = 4  # bytes
_MIN_RECORD = 36  # bytes: standard header and one triplet
_TRIPLETS = 28  # offset of the first
_MAX_TRIPLETS = 32
_MAX_BYTES = 16 << 20  # of a record in segments
_WHOLE, _FIRST, _LAST, _MIDDLE = 0, 1, 2, 3
_QWHS_WITH_TIMES = 52  # bytes
_QWHX = 16  # bytes
_NO_LAST = "the last segment of a record is missing; expected: all segments"

# The beginning of a standard header behind its RDW: flags with a valid subtype, type 115 or 116, a time, a packed date.
_SIGN = b"[" + b"".join(b"\\x%02x" % (high << 4 | 0x0F) for high in range(10)) + b"]"
_BARE_HEADER = re.compile(rb"[\x40-\x7f\xc0-\xff][\x73\x74].{4}[\x00\x01].." + _SIGN, re.DOTALL)
_HEADER = re.compile(rb"..[\x00\x01]\x00" + _BARE_HEADER.pattern, re.DOTALL)
_MAX_DUMP_HEADER = 32  # bytes

_OTHERS = "record of other types"


@dataclass(frozen=True, slots=True)
class Framing:
    """Bytes that a transfer puts around each record, in place of its RDW."""

    words: str  # what the data are
    descriptor: bytes  # bytes in front of the length
    length_bytes: int  # bytes of the length, big-endian; 0: the length is not in front of the record

    def content(self, data: bytes | mmap.mmap, position: int) -> tuple[int, int]:
        """Return where the record of a frame begins and ends; (0, position) if none begins there."""
        start = position + len(self.descriptor)
        content = start + self.length_bytes
        if bytes(data[position:start]) != self.descriptor or len(data) < content:
            return 0, position
        length = int.from_bytes(data[start:content], "big")
        return (content, content + length) if 0 < length <= _MAX_RECORD else (0, position)

    def is_of(self, head: bytes) -> bool:
        """Return True if data begin with a record of SMF in such a frame, and the next one is where it should be."""
        content, end = self.content(head, 0)
        if not (is_header(head[content:]) if content else False) and not _rdw_at(head, content, end):
            return False
        following, next_end = self.content(head, end)
        has_rdw = head[following : following + 2] == (next_end - following).to_bytes(4, "big")[2:]
        is_next = bool(following) and (has_rdw or is_header(head[following:]))
        return end >= len(head) or self.is_end(head, end) or is_next

    def is_end(self, data: bytes | mmap.mmap, position: int) -> bool:
        """Return True for FTP's mark of the end of a file."""
        return bool(self.descriptor) and bytes(data[position : position + 1]) == _END_OF_FILE


_END_OF_FILE = b"\x40"  # [RFC 959: 3.4.2]
_FRAMINGS = (
    Framing("SMF in the record mode of z/OSMF or Zowe, each record behind its length in 4 bytes", b"", 4),
    Framing("SMF in the block mode of FTP, each record behind 3 bytes", b"\x80", 2),
    Framing("SMF in which each record is behind its length in 2 bytes, without the rest of its RDW", b"", 2),
)
# These change the data, or cut them anywhere, so that they cannot be taken out.
_CUT_BLOCKS = Framing("SMF in the block mode of FTP, whose blocks end anywhere", b"", 0)
_STRUCTURE_RECORD = Framing("SMF in the record structure of FTP, with marks behind each record", b"", 0)
_LINES = Framing("SMF with an end of line behind each record", b"", 0)
_MARKED = {b"\xff\x01": _STRUCTURE_RECORD, b"\xff\x01\xff\x02": _STRUCTURE_RECORD, b"\r\n": _LINES, b"\n": _LINES}
_BLOCK_HEADER = 3  # bytes
_HEADER_BYTES = 10  # that `is_header` looks at
_TEXT_HEAD = 256  # bytes by which text is recognised
_MAX_TEXT = 64 << 20
_STANDARD = bytes.maketrans(b"-_", b"+/")  # alphabet of base64, from that for URLs
_QUOTES = b"\"',"
_ENCODING = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_ \r\n\t" + _QUOTES
_MAX_RECORD = 0xFFFF  # bytes
_EXPECTED_TRANSFER = "binary, with record descriptor words (FTP: binary, mode s, stru f, quote site rdw)"
_FRAME_HEAD = 1 << 17  # bytes: two records


_Piece = tuple[int, int, bytes]  # position, kind of segment, bytes with RDW


@dataclass(frozen=True, slots=True)
class SmfRecord:
    """A record of MQ. `data` begins with the RDW; offsets of triplets count it."""

    data: bytes
    place: str
    type: int
    subtype: int
    lpar: str
    qmgr: str
    header_us: int  # local time of the header, as if it were UTC
    end: int  # UTC, microseconds since 1970
    duration_us: int | None
    group: str  # queue-sharing group, "" if the record has none
    version: str
    sections: tuple[tuple[str, bytes], ...]  # eyecatcher and bytes


class Segments:
    """Segments of the record that is being put together; they follow each other, only the first one has a header."""

    def __init__(self) -> None:
        self.begun_in = ""  # name of the page of the first one; "": there is none
        self.size = 0  # bytes of them
        self._place = ""
        self._parts: list[bytes] = []

    def join(self, page: Page, pieces: Iterable[_Piece | Complaint]) -> Iterator[tuple[str, bytes] | Complaint]:
        """Yield the records, with an RDW, that are whole in a page, each with its place."""
        for piece in pieces:
            if isinstance(piece, Complaint):
                yield piece
                continue
            position, segment, data = piece
            place = f"{page.name}, byte {position}"
            if segment in (_WHOLE, _FIRST):
                yield from self.give_up()
            if segment == _WHOLE:
                yield place, data
            elif segment == _FIRST:
                self._place, self.begun_in = place, page.name
                self._add(data)
            elif not self._parts:
                yield Complaint("segments", place, "the first segment is missing; expected: all segments")
            else:
                self._add(data[_RDW:])
                if self.size > _MAX_BYTES:
                    yield from self.give_up(f"more than {_MAX_BYTES} bytes in one record")
                elif segment == _LAST:
                    yield self._place, b"".join(self._parts)
                    self._clear()

    def give_up(self, text: str = _NO_LAST) -> Iterator[Complaint]:
        """Forget the segments, with a complaint if there are any."""
        if self._parts:
            yield Complaint("segments", self._place, text)
            self._clear()

    def _add(self, data: bytes) -> None:
        self._parts.append(data)
        self.size += len(data)

    def _clear(self) -> None:
        self.begun_in, self.size, self._parts = "", 0, []


AnyRecord = SmfRecord | smf_layout.FacilityRecord


def records(page: Page, segments: Segments) -> Iterator[AnyRecord | Complaint | PassedOver]:
    """Yield the records of MQ and of coupling facilities that are whole with a page, in their order.

    What is damaged is a complaint. `segments`: of pages before.
    """
    for binary in _binary_pages(page):
        yield from _records(binary, segments)


def _records(page: Page, segments: Segments) -> Iterator[AnyRecord | Complaint | PassedOver]:
    framing = framing_of(page.data)
    if framing is not None:
        yield Complaint("transfer", page.name, f"{framing.words}; expected: {_EXPECTED_TRANSFER}")
    if framing is not None and framing.length_bytes:
        pieces: Iterator[tuple[str, bytes] | Complaint | PassedOver] = segments.join(page, _framed(page, framing))
    elif _has_rdw(page):
        pieces = segments.join(page, _segments(page))
    else:
        pieces = _without_rdw(page)
    for piece in pieces:
        if isinstance(piece, Complaint | PassedOver):
            yield piece
            continue
        place, data = piece
        is_facility = len(data) >= 24 and (data[5], *data[22:24]) == (smf_layout.TYPE, 0, smf_layout.SUBTYPE)
        if len(data) <= _RDW + 1 or not (is_facility or data[5] in MQ_TYPES):
            kind = f"SMF {data[5]}" if is_header(data[_RDW:]) else "no SMF header"
            yield PassedOver(_OTHERS, kind, size=len(data))
            continue
        try:
            yield smf_layout.read_facility(data, ebcdic(data[14:18]), place) if is_facility else _parse(data, place)
        except (ValueError, OverflowError, struct.error) as error:
            expected = "SMF 74 subtype 4" if is_facility else f"a record of MQ, SMF type {MQ_TYPES[0]} or {MQ_TYPES[1]}"
            text = f"{error}; expected: {expected}"
            yield Complaint("damaged", place, text)


def smf_types(head: bytes) -> tuple[list[int], bool]:
    """Return the types of the SMF records in the beginning of a data set, none if it is not SMF, and whether it has
    RDWs.
    """
    framing = framing_of(head)
    if framing is not None and framing.length_bytes:
        content, end = framing.content(head, 0)
        return [head[content + 1 + _RDW * _rdw_at(head, content, end)]], False
    page, types = Page(head, ""), set()
    for piece in _segments(page):
        if isinstance(piece, Complaint):
            continue
        _, segment, data = piece
        if segment in (_WHOLE, _FIRST):
            if not is_header(data[_RDW:]):
                break
            types.add(data[_RDW + 1])
    if not types and is_header(head[_RDW:]) and head[3] == 0:
        types.add(head[_RDW + 1])  # a single record that is cut
    if not types and is_header(head):
        return [head[1]], False
    return sorted(types), True


def is_header(data: bytes) -> bool:
    """Return True if bytes begin with a standard header of any type: flags, type, time and date that can be."""
    if len(data) < 10:
        return False
    try:
        _header_us(*struct.unpack_from(">I4s", data, 2))
    except (ValueError, OverflowError):
        return False
    return data[9] & 0x0F == 0x0F


def whole_records(data: bytes) -> int:
    """Return where the last whole record or block ends; the last record of a dump without RDW may have more bytes."""
    if _is_text(data):
        return end_of_lines(data)
    if len(data) < _RDW + _HEADER_BYTES:
        return 0
    if is_header(data) and not is_header(data[_RDW:]):
        return max((match.start() for match in _BARE_HEADER.finditer(data, 1)), default=0)
    framing = framing_of(data)
    position = 0
    while True:
        if framing is not None and framing.length_bytes:
            end = framing.content(data, position)[1]
        else:
            end = _block_end(data, position) or _record_end(data, position)
        if end > len(data) or end == position:
            return position
        position = end


def _record_end(data: bytes, position: int) -> int:
    """Return the end of the record that begins here; of bytes that are none, where the next one begins, or here."""
    if position + _RDW > len(data):
        return position
    length, segment, zero = struct.unpack_from(">HBB", data, position)
    if length >= _RDW and segment <= _MIDDLE and not zero:
        return position + int(length)
    match = _HEADER.search(data, position + 1)
    return position if match is None else match.start()


# --- text that encodes records ---------------------------------------------------------------------------------------


def _is_text(data: bytes | mmap.mmap) -> bool:
    """Return True for what looks like base64 or hexadecimal text: no record begins so."""
    head = bytes(data[:_TEXT_HEAD])
    return len(head) >= _HEADER_BYTES and not head.translate(None, _ENCODING) and len(data) <= _MAX_TEXT


def _binary_pages(page: Page) -> Iterator[Page]:
    """Yield a page; of base64 or hexadecimal text what it encodes, a page for each line that encodes records."""
    if not _is_text(page.data):
        yield page
        return
    lines = [own for line in bytes(page.data).split() if (own := line.strip(_QUOTES))]
    decoded = [_decoded(line) for line in lines]
    if not all(decoded):
        decoded = [_decoded(b"".join(lines))]  # broken into lines
    yield from (replace(page, data=data) for data in decoded) if all(decoded) else (page,)


def _decoded(text: bytes) -> bytes:
    """Return the bytes that a text encodes, if they begin like SMF; else none."""
    for decode in (unhexlify, _of_base64):
        with suppress(ValueError):
            data = decode(text)
            rdw = len(data) >= _RDW and _RDW < int.from_bytes(data[:2], "big") <= len(data) and not data[3]
            if is_header(data) or (rdw and data[2] <= _MIDDLE):
                return data
    return b""


def _of_base64(text: bytes) -> bytes:
    """Return the bytes of base64, in either alphabet, with its padding or without. Raise ValueError."""
    return b64decode(text.translate(_STANDARD).rstrip(b"=") + b"=" * (-len(text.rstrip(b"=")) % 4), validate=True)


# --- records of a data set -------------------------------------------------------------------------------------------


def _has_rdw(page: Page) -> bool:
    """Return True unless the data begin with a standard header instead of a record descriptor word."""
    head = bytes(page.data[:6])
    if _block_end(page.data, 0):
        return True
    if len(head) < 6 or head[1] not in (*MQ_TYPES, *SMF_TYPES):
        return True
    length, segment, zero = struct.unpack_from(">HBB", head)
    return bool(segment <= _MIDDLE and zero == 0 and _RDW <= length <= len(page.data) and _may_end(page, length))


def framing_of(data: bytes | mmap.mmap) -> Framing | None:
    """Return what a transfer has put around the records of a data set; None: nothing, or it is not SMF."""
    head = bytes(data[:_FRAME_HEAD])
    if not is_header(head):
        if head[:1] == b"\0" and _rdw_at(head, _BLOCK_HEADER, 0):
            return _CUT_BLOCKS
        return next((framing for framing in _FRAMINGS if framing.is_of(head)), None)
    match = _BARE_HEADER.search(head, 1)
    before = head[: len(head) if match is None else match.start()]
    end = _length_of(head) - _RDW
    for mark, framing in _MARKED.items():
        if before.endswith(mark) and (framing is _STRUCTURE_RECORD or len(before) == end + len(mark)):
            return framing
    return None


def _rdw_at(data: bytes, start: int, end: int) -> bool:
    """Return True for an RDW in front of a standard header. end: where its record ends; 0: not known."""
    if not start or len(data) < start + _RDW + 10 or data[start + 3] or data[start + 2] > _MIDDLE:
        return False
    length = int.from_bytes(data[start : start + 2], "big")
    return (not end or start + length == end) and is_header(data[start + _RDW :])


def _framed(page: Page, framing: Framing) -> Iterator[_Piece | Complaint]:
    """Yield the records that a transfer has put their lengths in front of."""
    data, size = page.data, len(page.data)
    position = 0
    while position < size and not framing.is_end(data, position):
        content, end = framing.content(data, position)
        if not content or end > size:
            text = _cut("record", end - position, size - position)
            yield Complaint("truncated", f"{page.name}, byte {position}", text)
            return
        record = bytes(data[content:end])
        has_rdw = len(record) > _RDW and not record[3] and record[2] <= _MIDDLE
        if has_rdw and int.from_bytes(record[:2], "big") == len(record):
            yield position, record[2], record
        else:
            yield position, _WHOLE, _rdw(len(record)) + record
        position = end


def _rdw(length: int) -> bytes:
    """Return the RDW of a whole record of a length."""
    return struct.pack(">HBB", min(length + _RDW, 0xFFFF), _WHOLE, 0)


def _segments(page: Page) -> Iterator[_Piece | Complaint]:
    """Yield the segments; behind wrong bytes it continues at the next record of MQ.

    A block descriptor word, in front of records of variable length as they are on disk, is read over.
    """
    data, size = page.data, len(page.data)
    position = 0
    follows = False  # a record ends here
    while position < size:
        block_end = _block_end(data, position)
        if block_end and block_end <= size:
            position += _RDW
        elif block_end:
            text = _cut("block", block_end - position, size - position)
            yield Complaint("truncated", f"{page.name}, byte {position}", text)
            position, size = position + _RDW, size - _cut_record(data, position + _RDW)
            continue
        if size - position >= _RDW:
            length, segment, zero = struct.unpack_from(">HBB", data, position)
            end = position + length
            is_plausible = length >= _RDW and zero == 0 and segment <= _MIDDLE and end <= size
            if is_plausible and (_may_end(page, end) or _is_alone(bytes(data[position:end]))):
                yield position, segment, bytes(data[position:end])
                position, follows = end, True
                continue
            if _is_cut(data, position, follows):
                text = _cut("record", length, size - position)
                yield Complaint("truncated", f"{page.name}, byte {position}", text)
                return
        follows = False
        match = _HEADER.search(data, position + 1)
        following = size if match is None else match.start()
        text = f"{following - position} bytes are no record of SMF; expected: a record descriptor word"
        yield Complaint("foreign", f"{page.name}, byte {position}", text)
        position = following


def _may_end(page: Page, end: int) -> bool:
    """Return True if a record may end there: at the end of the data or where another begins."""
    if end == len(page.data):
        return True
    following = bytes(page.data[end : end + _RDW])
    if len(following) < _RDW:
        return True  # the rest is reported where it begins
    length, segment, zero = struct.unpack(">HBB", following)
    return bool(length >= _RDW and zero == 0 and segment <= _MIDDLE) or bool(_block_end(page.data, end))


def _block_end(data: bytes | mmap.mmap, position: int) -> int:
    """Return the end of the block of which a block descriptor word begins here; 0 if none does.

    Its length is the sum of its records, RDWs included, and itself [IBM: z/OS DFSMS Using Data Sets, Block descriptor
    word]; the end of the file may cut the last block. The first bit of the word is that of a large block.
    """
    word = int.from_bytes(data[position : position + _RDW], "big")
    length = word & 0x7FFFFFFF if word >> 31 else 0 if word & 0xFFFF else word >> 16
    end, size = position + length, len(data)
    inner = position + _RDW
    if length <= 2 * _RDW or (end > size and not is_header(bytes(data[inner + _RDW : inner + _RDW + 10]))):
        return 0
    while inner < end and inner + _RDW <= size:
        record, segment, zero = struct.unpack_from(">HBB", data, inner)
        if record <= _RDW or segment > _MIDDLE or zero:
            return 0
        inner += record
    return end if inner == end or end > size else 0


def _cut_record(data: bytes | mmap.mmap, position: int) -> int:
    """Return the bytes of the last record of a data set, if its end is missing, from the first record of its block."""
    while position + _RDW <= len(data):
        following = position + int.from_bytes(data[position : position + 2], "big")
        if following > len(data):
            return len(data) - position
        position = following
    return len(data) - position


def _is_cut(data: bytes | mmap.mmap, position: int, follows: bool) -> bool:
    """Return True if a record that does not end begins here. follows: the bytes before it are a record."""
    length, segment, zero = struct.unpack_from(">HBB", data, position)
    is_plausible = length > len(data) - position and segment <= _MIDDLE and zero == 0
    begins = is_header(bytes(data[position + _RDW : position + _RDW + 10])) or follows
    return is_plausible and begins and _HEADER.search(data, position + 1) is None


def _cut(what: str, length: int, rest: int) -> str:
    return f"the file ends {rest} bytes into a {what} of {length}; expected: a file that was transferred to its end"


def _is_alone(record: bytes) -> bool:
    """Return True if bytes begin like a record of MQ and no other one begins in them: foreign bytes follow it."""
    return _HEADER.match(record) is not None and _HEADER.search(record, 1) is None


def _without_rdw(page: Page) -> Iterator[tuple[str, bytes] | Complaint | PassedOver]:
    """Yield (place, record with an RDW in front) of a dump without RDW; its other records are passed over.

    The length of a record is the end of its last section: offsets count the missing RDW.
    """
    data, size = page.data, len(page.data)
    position = 0
    while position < size:
        head = bytes(data[position : position + 2])
        length = 0
        if len(head) == 2 and head[0] & 0x40 and head[1] in MQ_TYPES:
            length = _length_of(bytes(data[position : position + _MIN_RECORD + 8 * _MAX_TRIPLETS])) - _RDW
        if length > 0 and position + length <= size:
            place = f"{page.name}, byte {position}"
            yield place, _rdw(length) + bytes(data[position : position + length])
            position += length
            continue
        match = _BARE_HEADER.search(data, position + 1)
        following = size if match is None else match.start()
        is_dump_header = len(head) == 2 and head[1] in SMF_TYPES and following - position <= _MAX_DUMP_HEADER
        is_other = is_header(bytes(data[position : position + 10])) and head[1] not in MQ_TYPES
        if not (is_dump_header or is_other):
            text = f"{following - position} bytes are no record of SMF; expected: SMF 115 or 116"
            yield Complaint("foreign", f"{page.name}, byte {position}", text)
        else:
            yield PassedOver(_OTHERS, f"SMF {head[1]}", size=following - position)
        position = following


def _length_of(head: bytes) -> int:
    """Return the length of a record whose beginning, without RDW, is given; 0 if it cannot be."""
    ends = [
        offset + length * count for offset, length, count in _triplets(bytes(_RDW) + head) if count and offset >= 28
    ]
    return max(ends, default=0)


# --- one record ------------------------------------------------------------------------------------------------------


def _triplets(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield (offset, length, count); the number of triplets is in QWHS, or else where the first section begins."""
    first = len(data)
    position = _TRIPLETS
    while position + 8 <= min(first, len(data)) and position < _TRIPLETS + 8 * _MAX_TRIPLETS:
        offset, length, count = struct.unpack_from(">IHH", data, position)
        yield offset, length, count
        if count and offset > position:
            first = min(first, offset)
        position += 8


def _parse(data: bytes, place: str) -> SmfRecord:
    hundredths, date = struct.unpack_from(">I4s", data, 6)
    subtype = struct.unpack_from(">H", data, 22)[0]
    offset, length, count = struct.unpack_from(">IHH", data, _TRIPLETS)
    if not (count and offset >= _TRIPLETS and offset + length <= len(data) and length >= 4):
        raise ValueError(f"its QWHS is at {offset} with {length} bytes, the record has {len(data)}")
    qwhs = data[offset : offset + length]
    header_us = end = _header_us(hundredths, date)
    duration, sections = None, tuple[tuple[str, bytes], ...]()
    own = struct.unpack_from(">H", qwhs)[0]
    if own < 4:  # subtypes 5, 6 and 7 have a stub
        own = 4
    elif len(qwhs) < 36 or own < 36:
        raise ValueError(f"its QWHS has {len(qwhs)} bytes")
    else:
        end = clock_us(qwhs[16:24])
        duration = struct.unpack_from(">Q", qwhs, 44)[0] if own >= _QWHS_WITH_TIMES <= len(qwhs) else None
        sections = tuple(_sections(data, qwhs[6]))
    group, version = _qwhx(qwhs[own:])
    return SmfRecord(
        data=data,
        place=place,
        type=data[5],
        subtype=subtype,
        lpar=ebcdic(data[14:18]),
        qmgr=ebcdic(data[18:22]),
        header_us=header_us,
        end=end,
        duration_us=duration or None,
        group=group,
        version=version or ebcdic(data[24:27]),
        sections=sections,
    )


def _sections(data: bytes, triplets: int) -> Iterator[tuple[str, bytes]]:
    """Yield (eyecatcher, bytes) of the sections. Raise ValueError for one that lies outside of the record."""
    for number in range(1, min(triplets, _MAX_TRIPLETS)):
        position = _TRIPLETS + 8 * number
        if position + 8 > len(data):
            raise ValueError(f"triplet {number} lies behind its end")
        offset, length, count = struct.unpack_from(">IHH", data, position)
        if not count or length < 8:
            continue
        if offset < _TRIPLETS or offset + length * count > len(data):
            raise ValueError(
                f"section {number}, {count} times {length} bytes at {offset}, is not within its {len(data)}"
            )
        for i in range(count):
            section = data[offset + i * length : offset + (i + 1) * length]
            yield ebcdic(section[4:8]), section


def _qwhx(data: bytes) -> tuple[str, str]:
    """Return queue-sharing group and version from what follows QWHS; "" for both if QWHX is not there."""
    while len(data) >= _QWHX:
        length = struct.unpack_from(">H", data)[0]
        if length == _QWHX:
            return ebcdic(data[4:8]), ebcdic(data[8:14])
        if length < 4:
            break
        data = data[length:]
    return "", ""


def _header_us(hundredths: int, date: bytes) -> int:
    """Return the time of a header, 1/100 s since midnight and packed 0cyydddF. Raise ValueError."""
    digits = date.hex()
    if not digits[:7].isdigit() or not 1 <= int(digits[4:7]) <= 366 or hundredths > 8_640_000:
        raise ValueError(f"its time is {hundredths} of date {digits}")
    year = 1900 + 100 * int(digits[:2]) + int(digits[2:4])
    day = datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=int(digits[4:7]) - 1)
    return int(day.timestamp()) * 1_000_000 + hundredths * 10_000
