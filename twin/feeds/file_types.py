"""Words for bytes that are not of the format they were given as: the reason why nothing was read."""

from __future__ import annotations

import mmap
import re

from twin.feeds.smf_layout import EBCDIC
from twin.feeds.smf_records import smf_types
from twin.listings import has_lines, is_ebcdic, record_length

_HEAD_BYTES = 1 << 16
_MAX_SHOWN = 40  # characters or bytes of the beginning
_MAX_TYPES = 8
_MAGIC = (
    (b"\x1f\x8b", "a gzip file: unpack it first"),
    (b"PK\x03\x04", "a zip file: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd file: unpack it first, unless it is a recording"),
    (b"BZh", "a bzip2 file: unpack it first"),
    (b"\xfd7zXZ\0", "an xz file: unpack it first"),
    (b"ARROW1", "an Arrow file, such as a recording"),
    (b"%PDF", "a PDF"),
    (b"\xff\xfe", "text in UTF-16: convert it to UTF-8"),
    (b"\xfe\xff", "text in UTF-16: convert it to UTF-8"),
)
_XMIT = "INMR01".encode(EBCDIC)  # behind length and flags, in a file of TSO TRANSMIT
_TRANSLATED = re.compile(rb"Q(?:MST|IS1|EST|ESD|PST|QST|JST|SST|TST|CST)|WTAS|WQST")  # eyecatchers of MQ, in ASCII
_JSON_NAME = re.compile(rb'"([\w.-]{1,40})"\s*:')
_TEXT_CONTROLS = frozenset("\t\n\r\f\x1a\x85\ufeff")


def describe_file(data: bytes | mmap.mmap) -> str:
    """Return what a file looks like, and what to do with it where that is known.

    Args:
        data: the whole file; its beginning decides.
    """
    head = bytes(data[:_HEAD_BYTES])
    if not head:
        return "an empty file"
    for magic, words in _MAGIC:
        if head.startswith(magic):
            return words
    if head[2:8] == _XMIT:
        return "a file of TSO TRANSMIT: RECEIVE it first"
    return _smf(head) or _text(head, data) or _translated(head) or f"binary data that begins with {_hex(head)}"


def _smf(head: bytes) -> str | None:
    types, has_rdw = smf_types(head)
    if not types:
        return None
    words = ", ".join(map(str, types[:_MAX_TYPES])) + (", ..." if len(types) > _MAX_TYPES else "")
    text = f"SMF records of type{'s' if len(types) > 1 else ''} {words}"
    return text if has_rdw else f"{text}, without record descriptor words"


def _translated(head: bytes) -> str | None:
    """Return what SMF looks like behind a transfer as text, byte by byte or into UTF-8."""
    back = head.decode("latin-1").encode(EBCDIC)  # the usual table, which has an ASCII character for each byte
    if not _TRANSLATED.search(head) and not smf_types(back)[0]:
        return None
    return "SMF translated to ASCII: transfer it again, in binary, with quote site rdw"


def _text(head: bytes, data: bytes | mmap.mmap) -> str | None:
    if is_ebcdic(head):
        length = record_length(data)
        words = f" in records of {length} bytes" if length else "" if has_lines(data) else " without ends of lines"
        return f"EBCDIC text{words}: convert it to UTF-8"
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4 or len(head) < _HEAD_BYTES:
            return None
        text = head[: error.start].decode()  # the last character is cut
    if any(not character.isprintable() and character not in _TEXT_CONTROLS for character in text):
        return None
    stripped = text.strip(" \t\r\n\ufeff")
    if stripped[:1] in {"{", "["}:
        names = [f'"{name.decode()}"' for name in dict.fromkeys(_JSON_NAME.findall(head))][:3]
        return f"JSON with {', '.join(names)}" if names else "JSON without names"
    if stripped.startswith("<"):
        return "HTML or XML"
    return f'text that begins with "{stripped.splitlines()[0][:_MAX_SHOWN]}"' if stripped else "blanks"


def _hex(head: bytes) -> str:
    return head[:8].hex(" ")
