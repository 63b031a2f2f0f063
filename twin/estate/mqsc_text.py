"""MQSC text: its lines, commands, keywords and values, and the words that an estate uses.

Synonyms are not minimum strings: DEFI is no synonym of DEFINE, and DELETE has none. Sources of the words: [IBM: MQ 9.3,
MQSC command and object synonyms, q085130_], [IBM: MQ 9.2 and 9.4, DEFINE and ALTER CFSTRUCT (q085510_, q085160_),
QLOCAL (q085710_, q085350_), QALIAS (q085700_), STGCLASS (q085750_), PSID (q085680_, q085310_)]. Rules of the syntax
[IBM: MQ 9.0, Building command scripts, q085110_; MQ 9.3, MQSC input file syntax; MQ 9.0, Rules for using MQSC commands
and Characters with special meanings, q085080_ and following]:

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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from twin.base.listings import text_lines
from twin.estate.attributes import (
    QUEUE,
    QUEUE_NAME,
    STORAGE_CLASS,
    STORAGE_CLASS_NAME,
    STRUCTURE_NAME,
    Reading,
    mqsc_reading,
)
from twin.estate.errors import EstateError, show
from twin.estate.model import PageSet, QueueFile, Structure
from twin.estate.rows import Check, blank_or, digits, mapped, word_set

_BLANK = " \t"
_SEQUENCE_FROM, _RECORD = 72, 80  # columns, from 0
_TOKEN = re.compile(r"[\s,]*(?:(?P<quote>')|(?P<mark>[();])|(?P<word>[^\s,();']+))")
VERBS = word_set(
    "ALTER ARCHIVE BACKUP CLEAR DEFINE DELETE DISPLAY END EXIT MOVE PING PURGE QUIT RECOVER REFRESH RESET RESOLVE"
    " RESUME RVERIFY SET START STOP SUSPEND"
)
VERB_SYNONYMS = {
    "ALT": "ALTER",
    "ARC": "ARCHIVE",
    "DEF": "DEFINE",
    "DIS": "DISPLAY",
    "REC": "RECOVER",
    "REF": "REFRESH",
    "RES": "RESOLVE",
    "STA": "START",
}
OBJECT_SYNONYMS = {"QL": "QLOCAL", "QA": "QALIAS", "QR": "QREMOTE", "STC": "STGCLASS"}

SKIPPED_OBJECTS = word_set(
    "APPL AUTHINFO AUTHREC BP BUFFPOOL CHANNEL CHL CHLAUTH CLUSTER COMMINFO ENTAUTH LISTENER LSTR MAXSMSGS"
    " LOG NAMELIST NL POLICY PRO PROC PROCESS PUBSUB QM QMGR QMODEL SEC SECURITY SERVICE SMDS SUB SYSTEM TOPIC TPC"
    " TRACE"
)
ZOS_ONLY = frozenset(("CFSTRUCT", "STGCLASS", "PSID"))


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


@dataclass(frozen=True, slots=True)
class ObjectWords:
    """Words of a kind of object."""

    space: str  # "queue", "structure", "storage_class" or "page_set"
    name: Check  # of the object's name
    read: Reading
    valid: frozenset[str]  # other keywords, without effect on storage
    like: str = ""  # name of the default LIKE object


def _page_set_number(value: str) -> str:
    """Convert the number of a page set: 04 is page set 4."""
    return str(digits(0, 99)(value))


_QUEUE_WORDS = word_set(
    "ACCTQ BOQNAME BOTHRESH CAPEXPRY CLCHNAME CLUSNL CLUSTER CLWLPRTY CLWLRANK CLWLUSEQ CMDSCOPE CUSTOM DEFBIND"
    " DEFPRESP DEFPRTY DEFPSIST DEFREADA DEFSOPT DEFTYPE DESCR DISTL FORCE GET HARDENBO IMGRCOVQ INDXTYPE INITQ LIKE"
    " MONQ MSGDLVSQ NOHARDENBO NOPURGE NOREPLACE NOSHARE NOTRIGGER NPMCLASS OTELPCTL OTELTRAC PROCESS"
    " PROPCTL PURGE PUT QDEPTHHI QDEPTHLO QDPHIEV QDPLOEV QDPMAXEV QSGDISP QSVCIEV QSVCINT REPLACE RETINTVL RNAME"
    " RQMNAME SCOPE SHARE STATQ STREAMQ STRMQOS TRIGDATA TRIGDPTH TRIGGER TRIGMPRI TRIGTYPE USAGE XMITQ"
)

OBJECTS: Mapping[str, ObjectWords] = {
    "QLOCAL": ObjectWords(
        "queue",
        QUEUE_NAME,
        {
            **mqsc_reading(QUEUE),
            **mqsc_reading(QueueFile.rows),
            "DEFPSIST": ("default_persistent", mapped({"YES": True, "NO": False})),
            "MAXMSGL": ("max_length", digits(0, 104_857_600)),
        },
        _QUEUE_WORDS,
        like="SYSTEM.DEFAULT.LOCAL.QUEUE",
    ),
    "QALIAS": ObjectWords(
        "queue",
        QUEUE_NAME,
        {
            "TARGET": ("target", blank_or(QUEUE_NAME)),
            "TARGQ": ("target", blank_or(QUEUE_NAME)),  # older synonym of TARGET
            "TARGTYPE": ("target_type", mapped({"QUEUE": "QUEUE", "TOPIC": "TOPIC"})),
        },
        _QUEUE_WORDS,
        like="SYSTEM.DEFAULT.ALIAS.QUEUE",
    ),
    "QREMOTE": ObjectWords(
        "queue",
        QUEUE_NAME,
        {
            "RQMNAME": ("remote_queue_manager", blank_or(QUEUE_NAME)),
            "XMITQ": ("transmission_queue", blank_or(QUEUE_NAME)),
        },
        _QUEUE_WORDS,
        like="SYSTEM.DEFAULT.REMOTE.QUEUE",
    ),
    "CFSTRUCT": ObjectWords(
        "structure",
        STRUCTURE_NAME,
        {**mqsc_reading(Structure.rows), "DSGROUP": ("ds_group", str)},
        word_set("DESCR LIKE REPLACE NOREPLACE CFCONLOS RECOVER RECAUTO DSBUFS"),
    ),
    "STGCLASS": ObjectWords(
        "storage_class",
        STORAGE_CLASS_NAME,
        mqsc_reading(STORAGE_CLASS),
        word_set("CMDSCOPE QSGDISP DESCR LIKE REPLACE NOREPLACE PASSTKTA XCFGNAME XCFMNAME"),
        like="SYSTEMST",
    ),
    "PSID": ObjectWords("page_set", _page_set_number, mqsc_reading(PageSet.rows), word_set("DSN ENCRYPT")),
}
