"""The RMF Postprocessor's report Coupling Facility Activity (REPORTS(CF)) as measurements of structures.

The STRUCTURE SUMMARY has a row for each structure: name, status, allocated size, requests, and at its end the totals of
the columns LST/DIR ENTRIES, DATA ELEMENTS, LOCK ENTRIES and DIR REC; below them is what is in use [IBM: z/OS RMF Report
Analysis, Coupling Facility Activity - Usage Summary]. No print of a site was seen: the words of the headings and the
number of columns are by that book and memory [assumed]. Columns are taken by the order of their headings. A row or a
heading that is otherwise is a complaint, and is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import NamedTuple

from typing_extensions import override

from twin.base.listings import file_lines
from twin.base.units import GIB, KIB, MIB, TIB
from twin.events import Measured
from twin.feeds.intake import Complaint, Intake, Item, PassedOver
from twin.feeds.measurements import FacilityLevels
from twin.feeds.protocol import Feed, FeedOptions, Page

_TITLE = re.compile(r"^[ 01-]?\s*C O U P L I N G {2,4}F A C I L I T Y {2,4}A C T I V I T Y")
_OTHER_TITLE = re.compile(r"^1?\s+(?:[A-Z/&] ){3,}")
_DATE = re.compile(r"\bDATE (\d\d)/(\d\d)/(\d{4})\b")
_TIME = re.compile(r"\bTIME (\d\d)\.(\d\d)\.(\d\d)\b")
_INTERVAL = re.compile(r"\bINTERVAL (\d{2,3})\.(\d\d)\.\d{1,3}\b")
_FACILITY = re.compile(r"COUPLING FACILITY NAME = (\S+)")
_SUMMARY = re.compile(r"^\s*STRUCTURE SUMMARY\b")
_CHANGED = ("X", "*", "C")  # flag below CHG [assumed]
_NOT_APPLICABLE = "N/A"
_RULE = re.compile(r"^[ 0]?-{20,}\s*$")
_TYPES = ("LIST", "LOCK", "CACHE")
_STATUS = ("ACTIVE", "INACTV", "INACTIVE", "UNALLOC", "UNKNWN", "REBLD")
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)")
_UNITS = {"": 1, "K": 1000, "M": 1_000_000, "G": 1_000_000_000, "T": 1_000_000_000_000}
_SIZES = {"": 1, "K": KIB, "M": MIB, "G": GIB, "T": TIB}
_NAME = re.compile(r"[A-Z@#$][A-Z0-9@#$_]{3,15}")


_HEADINGS = ("LST/DIR", "DATA", "LOCK", "DIR")  # first words of the last columns, in their order
_CONTROLS = tuple("01-+ ")  # of a print [IBM: z/OS DFSMS, ISO/ANSI control characters]
_MAX_TITLE = 4  # words
_BEFORE = 6  # columns between status and them: size, % of storage, requests, their share, utilization, rate


class _Structure(NamedTuple):
    """A row of the summary, with its place."""

    name: str
    place: str
    cells: list[str]  # behind its status
    current: list[str]  # of the line below


class RmfFeed(Feed):
    """Reader of printed reports; those of other resources are passed over."""

    reads = "the RMF Postprocessor report Coupling Facility Activity, REPORTS(CF)"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._levels = FacilityLevels(intake, "RMF")

    @override
    def take(self, page: Page) -> Iterator[Item]:
        lines = [line.text for line in file_lines(page.data)]
        titles = [number for number, text in enumerate(lines) if _TITLE.match(text)]
        for text in lines:
            if _OTHER_TITLE.match(text) and not _TITLE.match(text):
                yield PassedOver("report of other resources", _title(text))
        interval: tuple[int, int] | None = None
        facility = ""
        for number, end in pairwise((*titles, len(lines))):
            sheet = lines[number:end]
            interval = self._interval(sheet) or interval
            named = next((match[1] for text in sheet if (match := _FACILITY.search(text))), "")
            facility = named or facility
            start = next((own for own, text in enumerate(sheet) if _SUMMARY.match(text)), None)
            if start is None:
                continue
            place = f"{page.name}, line {number + start + 1}"
            self.object_count += 1
            if interval is None:
                text = "a report without DATE, TIME and INTERVAL; expected: these in its heading"
                yield Complaint("bad-report", place, text)
                continue
            if self.options.zone is None:
                text = "RMF prints local times: they are taken for UTC; expected: --zone"
                yield from self.once(Complaint("no-zone", place, text))
            yield from self._summary(sheet[start + 1 :], number + start + 2, page.name, facility, interval)

    def _interval(self, sheet: list[str]) -> tuple[int, int] | None:
        """Return begin and end of a page in microseconds since 1970; TIME is the begin [IBM: RMF report headings]."""
        text = "\n".join(sheet[:6])
        day, clock, length = _DATE.search(text), _TIME.search(text), _INTERVAL.search(text)
        if day is None or clock is None or length is None:
            return None
        try:
            year, month, of_month, hour, minute, second = map(int, (day[3], day[1], day[2], *clock.groups()))
            local = datetime(year, month, of_month, hour, minute, second, tzinfo=self._zone)
        except ValueError:
            return None
        begin = round(local.timestamp()) * 1_000_000
        return begin, begin + timedelta(minutes=int(length[1]), seconds=int(length[2])) // timedelta(microseconds=1)

    @property
    def _zone(self) -> tzinfo:
        return self.options.zone or UTC

    def _summary(
        self, lines: list[str], first: int, name: str, facility: str, interval: tuple[int, int]
    ) -> Iterator[Item]:
        """Yield the measurements of the structures of a page."""
        headings = _headings(lines[: _begin(lines)])
        if headings != _HEADINGS:
            text = f"the last columns are {', '.join(headings) or 'without headings'}; expected: {', '.join(_HEADINGS)}"
            yield Complaint("bad-report", f"{name}, line {first}", text)
            return
        rows = list(_rows(lines, first, name))
        self._levels.note_names(row.name for kind, row in rows if kind == "LIST")
        for kind, row in rows:
            self.object_count += 1
            if kind != "LIST":
                yield PassedOver("structure of other types", kind, is_counted=True)
                continue
            measured = _measured(row)
            if measured is None:
                text = f"{row.name}: {len(row.cells)} and {len(row.current)} columns, or no numbers in them; expected:"
                text += f" {_BEFORE + len(_HEADINGS)} with totals, and below them {len(_HEADINGS)} in use"
                yield Complaint("bad-row", row.place, text)
            if measured:
                facts = {"coupling_facility": facility or None, "size": measured.get("size")}
                yield from self._levels.structure(row.name, measured, interval, row.place, facts)


def _title(text: str) -> str:
    """Return a title that is printed with blanks between its letters."""
    return " ".join(word.replace(" ", "") for word in re.split(r" {2,}", text[1:].strip())[:_MAX_TITLE])


def _words(text: str) -> list[str]:
    """Return the words of a line, without its carriage control."""
    return (text[1:] if text[:1] in _CONTROLS else text).split()


def _begin(lines: list[str]) -> int:
    return next((number for number, text in enumerate(lines) if _kind(text)), len(lines))


def _kind(text: str) -> str:
    """Return the type that a row begins with; "": none."""
    words = _words(text)
    return words[0] if len(words) > 2 and words[0] in _TYPES and _NAME.fullmatch(words[1]) else ""


def _rows(lines: list[str], first: int, name: str) -> Iterator[tuple[str, _Structure]]:
    kind = ""
    for number, text in enumerate(lines):
        words = _words(text)
        if not words or _RULE.match(text):
            continue
        if words[0] in _TYPES:
            kind, words = words[0], words[1:]
        if len(words) < 3 or not _NAME.fullmatch(words[0]) or words[1] not in _STATUS or not kind:
            continue
        cells = words[3:] if len(words) > 3 and words[2] in _CHANGED else words[2:]
        below = lines[number + 1].split() if number + 1 < len(lines) else []
        yield kind, _Structure(words[0], f"{name}, line {first + number}", cells, below)


def _headings(lines: list[str]) -> tuple[str, ...]:
    """Return the first words of the last columns, from left to right, from a line of the heading that has all."""
    for text in lines:
        words = text.split()
        if _HEADINGS[0] in words:
            return tuple(word for word in words[words.index(_HEADINGS[0]) :] if word in _HEADINGS)
    return ()


def _number(text: str, units: dict[str, int]) -> int | None:
    match = _NUMBER.fullmatch(text.replace(",", ""))
    return None if match is None else round(float(match[1]) * units[match[2]])


def _measured(row: _Structure) -> Measured | None:
    """Return the levels of a row; None: it is not as expected."""
    if len(row.cells) != _BEFORE + len(_HEADINGS) or len(row.current) != len(_HEADINGS):
        return None
    size = _number(row.cells[0], _SIZES)
    entries, used = _number(row.cells[_BEFORE], _UNITS), _number(row.current[0], _UNITS)
    if size is None or entries is None or used is None:
        return None
    measured: Measured = {"size": size, "ents_max": entries, "ents_used": used}
    if row.cells[_BEFORE + 1] != _NOT_APPLICABLE:
        elements, elements_used = _number(row.cells[_BEFORE + 1], _UNITS), _number(row.current[1], _UNITS)
        if elements is None or elements_used is None:
            return None
        measured |= {"elems_max": elements, "elems_used": elements_used}
    return measured
