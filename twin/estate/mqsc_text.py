"""Syntax of MQSC text: lines, commands, keywords and values.

Rules [IBM: MQ 9.0, Building command scripts, q085110_; MQ 9.3, MQSC input file syntax; MQ 9.0, Rules for using MQSC
commands and Characters with special meanings, q085080_ and following]:

- A line with * in column 1 is a comment. Comments and blank lines are ignored, also within a command.
- A + as last nonblank character continues the command at the first nonblank character of the next line, a - at its
  column 1. Either may be within a keyword, a value or a quoted string, and neither is part of the command.
- A semicolon ends a command (Multiplatforms, and CSQUTIL on z/OS); each command starts on a new line.
- On z/OS only columns 1 to 72 count. Here columns 73 to 80 are skipped if they are a sequence number (eight digits).
  Other text past column 72 is kept, because it does not come from a data set of 80-byte records.
- Blanks and commas separate. Keywords are case-insensitive. A quoted value is kept as written, with '' for a quote; an
  unquoted one is folded to upper case. A blank before a parameter is not required (z/OS).
- JCL around the commands is skipped: lines that start with //, a line of only /*, the CSQUTIL function COMMAND. So are
  carriage control and headings of pages in a print.
- A parameter may not be repeated; a NO form counts as the same (REPLACE, NOREPLACE).
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass

from twin.estate.errors import EstateError, show
from twin.listings import text_lines

_BLANK = " \t"
_SEQUENCE_FROM, _RECORD = 72, 80  # columns, from 0
_TOKEN = re.compile(r"[\s,]*(?:(?P<quote>')|(?P<mark>[();])|(?P<word>[^\s,();']+))")


@dataclass(frozen=True, slots=True)
class Statement:
    """Text of one command, its lines joined, and the line number of each part."""

    file: str
    text: str
    starts: tuple[int, ...]  # offsets in `text` where lines begin
    lines: tuple[int, ...]  # their numbers in the file, from 1

    def locate(self, offset: int = 0) -> str:
        """Return file and line of an offset: "qsg1.mqsc:12"."""
        return f"{self.file}:{self.lines[max(0, bisect.bisect_right(self.starts, offset) - 1)]}"


@dataclass(frozen=True, slots=True)
class Value:
    """Value in parentheses, folded to upper case unless quoted."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """KEYWORD, or KEYWORD(value value ...); the keyword in upper case."""

    keyword: str
    values: tuple[Value, ...] | None  # None: no parentheses
    where: str  # file and line

    def __str__(self) -> str:
        """Return the parameter as MQSC text."""
        if self.values is None:
            return self.keyword
        values = [f"'{value.text}'" if value.quoted else value.text for value in self.values]
        return f"{self.keyword}({' '.join(values)})"


def statements(text: str, file: str) -> Iterator[Statement]:
    """Yield the commands of an MQSC text. Raise EstateError if the text ends within a command."""
    parts: list[str] = []
    starts: list[int] = []
    lines: list[int] = []
    length, continued = 0, ""
    for number, raw, is_heading, has_control in text_lines(text):
        line = _significant(raw)
        if (
            (is_heading and has_control)
            or line.startswith("*")
            or not line.strip(_BLANK)
            or (not continued and _is_jcl(line))
        ):
            continue
        part = line.lstrip(_BLANK) if continued == "+" else line
        end = part.rstrip(_BLANK)
        continued = end[-1] if end[-1] in "+-" else ""
        part = end[:-1] if continued else end
        parts.append(part)
        starts.append(length)
        lines.append(number)
        length += len(part)
        if not continued:
            yield Statement(file, "".join(parts), tuple(starts), tuple(lines))
            parts, starts, lines, length = [], [], [], 0
    if continued:
        raise EstateError(
            f"{file}:{lines[-1]}: the text ends after a {continued}; the command must go on, or end without it"
        )


def first_words(statement: Statement) -> tuple[str, str]:
    """Return the verb and the next word in upper case, "" if missing: enough to skip a command."""
    match = re.match(r"[\s,]*([^\s,();']*)[\s,]*([^\s,();']*)", statement.text)
    return (match[1].upper(), match[2].upper()) if match else ("", "")


def parameters(statement: Statement) -> tuple[Parameter, ...]:
    """Return the verb and the parameters of a command. Raise EstateError if the syntax is wrong."""
    result: list[Parameter] = []
    seen: set[str] = set()
    tokens = _Tokens(statement)
    while (token := tokens.next()) is not None:
        kind, word, offset = token
        where = statement.locate(offset)
        if kind == ";":
            if tokens.next() is not None:
                raise EstateError(f"{where}: text after the semicolon; each command must start on a new line")
            break
        if kind != "word":
            raise EstateError(f"{where}: {word} where a keyword must be, after {result[-1] if result else 'nothing'}")
        keyword = word.upper()
        if result and keyword == result[0].keyword:
            begun = " ".join(map(str, result[:2]))
            raise EstateError(
                f"{where}: {keyword} begins a command within {begun};"
                " does the line before have a + or - too many at its end?"
            )
        positive = keyword.removeprefix("NO")
        if positive in seen:
            raise EstateError(f"{where}: {keyword} is repeated; give it once")
        seen.add(positive)
        result.append(Parameter(keyword, tokens.values(keyword, where), where))
    return tuple(result)


class _Tokens:
    """Words, quoted strings and punctuation of one command, from left to right."""

    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self._offset = 0

    def next(self) -> tuple[str, str, int] | None:
        """Return (kind, text, offset), or None at the end; kind is "word", "string" or the punctuation itself."""
        match = _TOKEN.match(self._statement.text, self._offset)
        if match is None:
            return None
        self._offset = match.end()
        if match["quote"]:
            return self._string(match.end() - 1)
        kind = match["mark"] or "word"
        return kind, match[match.lastgroup or 0], match.end() - len(match[match.lastgroup or 0])

    def values(self, keyword: str, where: str) -> tuple[Value, ...] | None:
        """Return the values in parentheses after a keyword, or None if it has no parentheses."""
        if not re.compile(r"[\s,]*\(").match(self._statement.text, self._offset):
            return None
        self.next()
        values: list[Value] = []
        while (token := self.next()) is not None:
            kind, word, offset = token
            if kind == ")":
                return tuple(values)
            if kind in "(;":
                raise EstateError(
                    f"{self._statement.locate(offset)}: {kind} within {keyword}(...); put the value in quotes"
                )
            values.append(Value(word, True) if kind == "string" else Value(word.upper()))
        raise EstateError(f"{where}: {keyword}( has no closing parenthesis; close it, or continue the line with + or -")

    def _string(self, start: int) -> tuple[str, str, int]:
        text, end = self._statement.text, start + 1
        while True:
            end = text.find("'", end)
            if end < 0:
                quote = f"the quote before {show(text[start + 1 : start + 25])}"
                raise EstateError(
                    f"{self._statement.locate(start)}: {quote} has no end; close it (a quote inside is '')"
                )
            if text[end : end + 2] != "''":
                break
            end += 2
        self._offset = end + 1
        return "string", text[start + 1 : end].replace("''", "'"), start


def _is_jcl(line: str) -> bool:
    return line.startswith("//") or line.strip(_BLANK) == "/*"


def _significant(line: str) -> str:
    sequence = line[_SEQUENCE_FROM:_RECORD]
    if len(line) == _RECORD and sequence.isascii() and sequence.isdigit():
        return line[:_SEQUENCE_FROM]
    return line
