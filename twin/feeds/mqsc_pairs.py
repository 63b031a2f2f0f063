"""KEY(VALUE) pairs of DISPLAY output, whether one a line or side by side.

Values stand without quotes, so that a description may hold any brackets. A value ends at its own bracket; where they do
not match, at the first one that another pair follows. A value cut by the end of a line is put together.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator

MAX_TEXT = 1 << 20  # characters of the details of one object

_KEY = re.compile(r"(?<![A-Z0-9])([A-Z][A-Z0-9]{1,19})\(")
_LEADING_KEY = re.compile(r"[\s_]*[A-Z][A-Z0-9]{1,19}\(")
_BRACKET = re.compile(r"[()]")
_END = re.compile(r"\)(?=\s*$|\s+[A-Z][A-Z0-9]{1,19}\()")


def pairs(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield keyword and value of each pair of an answer, the value without blanks and quotes around it."""
    for text in _whole_lines(lines):
        yield from _pairs_of(text)


def _whole_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines, with each that a value was cut in put together with the next one."""
    parts: list[str] = []
    depth = length = 0
    for line in lines:
        is_cut = depth > 0 and not (parts[-1].endswith(")") and _LEADING_KEY.match(line))
        if parts and not is_cut:
            yield "".join(parts)
            parts, depth = [], 0
        parts.append(line)
        depth = max(0, depth + line.count("(") - line.count(")"))
        length += len(line)
        if length > MAX_TEXT:
            break
    if parts:
        yield "".join(parts)


def _pairs_of(text: str) -> Iterator[tuple[str, str]]:
    ends = _matching(text)
    others = [match.start() for match in _END.finditer(text)]
    start = 0
    while (match := _KEY.search(text, start)) is not None:
        end = ends.get(match.end() - 1)
        if end is None:
            place = bisect.bisect_left(others, match.end())
            end = others[place] if place < len(others) else None
        start = match.end() if end is None else end + 1
        if end is not None:
            yield match[1], text[match.end() : end].strip().strip("'").strip()


def _matching(text: str) -> dict[int, int]:
    """Return the place of the closing bracket by that of its opening one."""
    opened: list[int] = []
    closed = {}
    for match in _BRACKET.finditer(text):
        if match[0] == "(":
            opened.append(match.start())
        elif opened:
            closed[opened.pop()] = match.start()
    return closed
