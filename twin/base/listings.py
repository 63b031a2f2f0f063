"""Lines of texts that z/OS prints: their code page, ends of lines, carriage control, and headings of pages.

Ends of lines are LF, CR LF, CR alone (answers of z/OSMF) and NEL, X'15' or U+0085 (z/OS UNIX files). EBCDIC text may
also be records of one length, as a data set is in binary. All Latin code pages agree about letters, digits and the
marks of MQSC, and z/OS takes $ # @ for code points, whatever a national page shows for them: 037 reads every one. The
first column of a printed text is carriage control: 1 for a new page; blank, 0 and - for a line behind one, two and
three ends; + for one over the line before [IBM: z/OS DFSMS Using Data Sets, ANSI control characters].
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

MAX_LINE_BYTES = 1 << 16
_LOOKED_AT = 500  # lines that show whether there is carriage control
_HEAD_BYTES = 4096
_CODE_PAGE = "cp037"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # what PowerShell makes of the output of a command
_EBCDIC = bytes([0x40, *range(0x81, 0x100), *b"\x4b\x4d\x5d\x60\x61\x6b\x6d\x7a\x7d\x7e\x15\x25\x0d"])
_ASCII_ONLY = bytes([*range(0x20, 0x25), *range(0x26, 0x40)])  # controls in EBCDIC; blanks, digits and marks in ASCII
_BLANK = b"\x40"
_RECORD_LENGTHS = (133, 121, 132, 137, 80)  # of print and card files
_MAX_RECORDS = 1000  # that are looked at
_BLOCK_BYTES = 1 << 20
_ENDS = (b"\r\n", b"\r", b"\xc2\x85")  # besides LF
_ENDS_LATIN = (b"\x85",)
_ENDS_EBCDIC = (b"\x0d\x15", b"\x0d\x25", b"\x0d", b"\x15", b"\x25")
_ENDS_OF_TEXT = re.compile("\r\n|[\n\r\x85]")
_TRAILING = "\r\n \0\x85\t"

_CONTROLS = frozenset(" 01-+")
_TIME = re.compile(r"[0-9]{2}[:./-]?[0-9]")  # a line without carriage control that begins with digits
_PAGE = re.compile(r"\bPAGE +[0-9]{1,6}$")
_RULER = re.compile(r"\+?[_=]{8,}")


class Line(NamedTuple):
    """A line."""

    number: int  # its number in the file, from 1
    text: str  # it, without carriage control
    is_heading: bool  # True for a heading of a page, and for a line printed over another
    has_control: bool  # True if it had carriage control


def file_lines(data: bytes | mmap.mmap) -> Iterator[Line]:
    """Yield the lines of a file, UTF-8 or EBCDIC (other bytes are replaced); one that is far too long is cut."""
    return _printed(_decoded(data))


def log_lines(data: bytes | mmap.mmap) -> Iterator[Line]:
    """Yield the lines of a piece of a log, which has no carriage control; otherwise as `file_lines`."""
    for number, line in enumerate(_decoded(data), 1):
        text = line.rstrip(_TRAILING)
        yield Line(number, text, _is_heading(text), has_control=False)


def text_lines(text: str) -> Iterator[Line]:
    """Yield the lines of a text."""
    return _printed(_ENDS_OF_TEXT.split(text))


def decode(data: bytes) -> str:
    """Return a file as text: EBCDIC, UTF-8, UTF-16, else ISO 8859-1."""
    if is_ebcdic(data) or data[:2] in _UTF_16:
        return "\n".join(_decoded(data))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("iso-8859-1")


def _printed(lines: Iterable[str]) -> Iterator[Line]:
    """Yield lines with carriage control taken off, where there is any."""
    lines = iter(lines)
    head = list(islice(lines, _LOOKED_AT))
    has_control = _has_control(head)
    for number, line in enumerate(chain(head, lines), 1):
        text = line.lstrip("\f\ufeff")
        control = text[:1] if has_control and text[:1] in _CONTROLS else ""
        text = text[len(control) :].rstrip(_TRAILING)
        yield Line(number, text, control == "+" or _is_heading(text), bool(control))


def _is_heading(text: str) -> bool:
    """Return True for the heading of a page, or a line below one."""
    return bool(_RULER.fullmatch(text.strip())) or (text.endswith(tuple("0123456789")) and bool(_PAGE.search(text)))


def _has_control(lines: Iterable[str]) -> bool:
    """Return True if the first column of every line is carriage control, and of one more than a blank."""
    printed = [line for line in lines if line.strip(_TRAILING)]
    others = [line for line in printed if line[0] != " "]
    return (
        bool(others)
        and all(line[0] in _CONTROLS and not _TIME.match(line) for line in others)
        and any(line[0] in "1+" or line[:2] in {"0 ", "- "} for line in others)
    )


# --- bytes -----------------------------------------------------------------------------------------------------------


def is_ebcdic(data: bytes | mmap.mmap) -> bool:
    """Return True if most of the first bytes of a file are EBCDIC letters, digits and blanks."""
    head = bytes(data[:_HEAD_BYTES])
    others = len(head.translate(None, delete=_EBCDIC))
    ascii_only = len(head) - len(head.translate(None, delete=_ASCII_ONLY))
    return others < 0.2 * len(head) and ascii_only <= 0.05 * len(head)


def has_lines(data: bytes | mmap.mmap) -> bool:
    """Return False for EBCDIC text that has neither ends of lines nor records of one length."""
    return not is_ebcdic(data) or _has_ends(data) or record_length(data) > 0


def end_of_lines(data: bytes) -> int:
    """Return where the last line of a text stops that has its end; 0: none has."""
    ends = _ENDS_EBCDIC if is_ebcdic(data) else (b"\n",)
    return max((data.rfind(end) + len(end) for end in ends if end in data), default=0)


def record_length(data: bytes | mmap.mmap) -> int:
    """Return the length of the records of EBCDIC text without ends of lines, as a data set is in binary; 0: unknown.

    The last column of nearly all records is blank.
    """
    size = len(data)
    if not is_ebcdic(data) or _has_ends(data):
        return 0
    for length in (length for length in _RECORD_LENGTHS if size % length == 0):
        ends = bytes(data[length - 1 : length * _MAX_RECORDS : length])
        if ends.count(_BLANK) >= 0.9 * len(ends):
            return length
    return 0


def _has_ends(data: bytes | mmap.mmap) -> bool:
    head = bytes(data[:MAX_LINE_BYTES])
    return any(end in head for end in (*_ENDS_EBCDIC, b"\n"))


def _decoded(data: bytes | mmap.mmap) -> Iterator[str]:
    """Yield the lines of a file as text."""
    if bytes(data[:2]) in _UTF_16:
        yield from _ENDS_OF_TEXT.split(bytes(data).decode("utf-16", "replace"))
        return
    length = record_length(data)
    if length:
        for start in range(0, len(data), length):
            yield bytes(data[start : start + length]).decode(_CODE_PAGE)
        return
    ends: tuple[bytes, ...]
    encoding, ends = (_CODE_PAGE, _ENDS_EBCDIC) if is_ebcdic(data) else ("utf-8", _ENDS)
    head = bytes(data[:MAX_LINE_BYTES])
    if ends is _ENDS and b"\x85" in head and not any(end in head for end in (*ends, b"\n")):
        encoding, ends = "latin-1", _ENDS_LATIN
    for line in _split(data, ends):
        yield line[:MAX_LINE_BYTES].decode(encoding, "replace")


def _split(data: bytes | mmap.mmap, ends: tuple[bytes, ...]) -> Iterator[bytes]:
    """Yield lines without their ends, LF and others, in bounded memory."""
    halves = {end[:1] for end in ends if len(end) > 1}
    rest = b""
    for start in range(0, len(data), _BLOCK_BYTES):
        block = rest + data[start : start + _BLOCK_BYTES]
        half = block[-1:] if block[-1:] in halves and start + _BLOCK_BYTES < len(data) else b""
        block = block[: len(block) - len(half)]
        for end in ends:
            block = block.replace(end, b"\n")
        *lines, rest = block.split(b"\n")
        yield from lines
        rest = rest[:MAX_LINE_BYTES] + half
    if rest:
        yield rest
