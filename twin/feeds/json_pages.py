"""JSON of a page: objects one after the other, one per line, or in an array, in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec

from twin.feeds.intake import Complaint
from twin.feeds.protocol import Page

MAX_OBJECT_BYTES = 64 << 20
_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*+"?|[{}]')  # possessive: what has no end is looked at once
_BEGIN = re.compile(rb'\{\s{0,20}"(?:eventSource|commandResponse)"')  # of an object that is no part of another


def json_objects(page: Page) -> Iterator[tuple[dict[str, Any], str] | Complaint]:
    """Yield the outermost objects of a page with their places; anything else is a complaint.

    Args:
        page: JSON text. Brackets and commas of an array around the objects are skipped.
    """
    decoder = msgspec.json.Decoder(dict[str, Any])
    for span in _spans(page):
        if isinstance(span, Complaint):
            yield span
            continue
        start, end = span
        place = f"{page.name}, byte {start}"
        try:
            yield decoder.decode(bytes(page.data[start:end])), place
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            yield Complaint("bad-json", place, f"{error}; expected: a JSON object")


def _spans(page: Page) -> Iterator[tuple[int, int] | Complaint]:
    """Yield start and end of the outermost objects; an object that begins within another one ends that."""
    depth = start = 0
    seen = False
    for token in _TOKEN.finditer(page.data):
        text = token.group()
        if text == b"{":
            if depth and _BEGIN.match(page.data, token.start()):
                yield Complaint("truncated", f"{page.name}, byte {start}", "another object begins before its end")
                depth = 0
            if not depth:
                start, seen = token.start(), True
            depth += 1
        elif text == b"}" and depth:
            depth -= 1
            if not depth:
                yield start, token.end()
        if depth and token.end() - start > MAX_OBJECT_BYTES:
            place = f"{page.name}, byte {start}"
            yield Complaint("truncated", place, f"no end within {MAX_OBJECT_BYTES} bytes; expected: a JSON object")
            depth = 0
    if depth:
        yield Complaint("truncated", f"{page.name}, byte {start}", "the end is missing; expected: a whole JSON object")
    elif not seen and page.data[:1]:
        yield Complaint("foreign", page.name, "no JSON object in it; expected: JSON")


def json_documents(page: Page) -> Iterator[tuple[bytes, str]]:
    """Yield the JSON documents of a page, each with its place: one a line, one in all, or objects over several lines.

    The last brace of such an object is the first character of its line.
    """
    data = bytes(page.data).strip()
    lines = data.split(b"\n")
    if len(lines) > 1 and lines[0].rstrip().endswith(b"}"):
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield line, f"{page.name} line {number}"
    elif data.startswith(b"{"):
        ends = [number for number, line in enumerate(lines, 1) if line.startswith(b"}")]
        for first, end in pairwise([0, *ends, *([len(lines)] if ends[-1:] != [len(lines)] else [])]):
            yield b"\n".join(lines[first:end]), f"{page.name} line {first + 1}" if len(ends) > 1 else page.name
    elif data:
        yield data, page.name


def integer(value: Any) -> int:
    """Return a number that may be a text, as amqsevt writes large and negative ones. Raise ValueError."""
    if type(value) is int:
        return value
    if isinstance(value, str) and len(value) <= 25:
        return int(value)
    raise ValueError(f"{str(value)[:40]!r} is not an integer")
