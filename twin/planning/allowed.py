"""The site's own list of the changes that may be requested: actions.toml, described in docs/acts.md.

Nothing is allowed by default. The file says who may not be doubted later, so it belongs to who runs the process, and
nobody else may read or write it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from kernels.clock import SECOND
from twin.decoding import UNREADABLE
from twin.errors import UsageError
from twin.estate.errors import show
from twin.records import ActKind, Requested
from twin.records.acts import MAX_APPROVERS, Value
from twin.units import as_datetime, as_microseconds, parse_size, zone_of

HOUR_US = 3600 * SECOND
_MAX_BYTES = 1 << 18
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = "|".join(_DAYS)
_CLOCK = "([01][0-9]|2[0-3]):([0-5][0-9])"
_WINDOW = re.compile(f"({_DAY})(?:-({_DAY}))? {_CLOCK}-(?:{_CLOCK}|24:00)")
_Bound = int | str


class Allow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row: changes of a kind, of some stores, within bounds."""

    kind: ActKind  # the template
    stores: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # patterns of stores, such as QSG1/APP*
    # least and greatest value by pattern of attributes; all numbers need one
    bounds: dict[str, tuple[_Bound, _Bound]] = {}
    # people who must approve, beside the one who requests
    approvers: Annotated[int, msgspec.Meta(ge=1, le=MAX_APPROVERS)] = 1
    per_hour: Annotated[int, msgspec.Meta(ge=1, le=60)] = 1  # changes by this row that are handed over in an hour
    windows: tuple[str, ...] = ()  # when; none: at any time

    def covers(self, kind: str, store: str) -> bool:
        """Return True if the row is about a kind of change of a store."""
        return kind == self.kind and any(fnmatchcase(store, pattern) for pattern in self.stores)

    def count(self, times: Iterable[tuple[Requested, str]], now: int) -> int:
        """Return the number of requests of the row in the last hour. times: requests, each with its time."""
        since = now - HOUR_US
        own = [time for request, time in times if self.covers(request.kind, request.store)]
        return sum(as_microseconds(time) > since for time in own)

    def problem_of(self, settings: Mapping[str, Value]) -> str:
        """Return which value is not allowed, and what is expected; "": all are."""
        for name, value in settings.items():
            if isinstance(value, bool | str):
                continue
            ranges = [own for pattern, own in self.bounds.items() if fnmatchcase(name, pattern)]
            if not ranges:
                return f"{name} = {value}; expected: bounds of {name} in the row of {self.kind}"
            for low, high in ranges:
                if not parse_size(low) <= value <= parse_size(high):
                    return f"{name} = {value}; expected: {low} to {high}, its bounds in the row of {self.kind}"
        return ""

    def is_open(self, now: int, zone: tzinfo) -> bool:
        """Return True if a time is within the windows. now: microseconds since 1970."""
        return not self.windows or any(
            _read_window(text).holds(as_datetime(now).astimezone(zone)) for text in self.windows
        )


class _Window(NamedTuple):
    """Days of the week on which it begins, 0: Monday; minutes of the day, the end may be on the next day."""

    days: frozenset[int]
    begin: int
    end: int

    def holds(self, now: datetime) -> bool:
        minute = 60 * now.hour + now.minute
        if self.begin < self.end:
            return now.weekday() in self.days and self.begin <= minute < self.end
        yesterday = (now - timedelta(days=1)).weekday()
        return (now.weekday() in self.days and minute >= self.begin) or (yesterday in self.days and minute < self.end)


def _read_window(text: str) -> _Window:
    """Return a window, such as `Mon-Fri 06:00-20:00`. ValueError: it is none."""
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise ValueError(f"windows: {show(text)}; expected: such as Mon-Fri 06:00-20:00")
    first = _DAYS.index(match[1])
    last = first if match[2] is None else _DAYS.index(match[2])
    days = frozenset((first + more) % 7 for more in range((last - first) % 7 + 1))
    end = 24 * 60 if match[5] is None else 60 * int(match[5]) + int(match[6])
    return _Window(days, 60 * int(match[3]) + int(match[4]), end)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    allow: tuple[Allow, ...] = ()
    zone: str = ""


class Allowed(NamedTuple):
    """The changes that a site allows."""

    rows: tuple[Allow, ...] = ()  # its rows; of several that are about a change the first counts
    zone: tzinfo = UTC  # zone of its windows

    def row_of(self, kind: str, store: str, settings: Mapping[str, Value]) -> Allow:
        """Return the row that allows a change. UsageError: none does; says why."""
        row = next((own for own in self.rows if own.covers(kind, store)), None)
        if row is None:
            raise UsageError(f"{kind} of {store} is not allowed; expected: an [[allow]] of it in the file of --actions")
        if problem := row.problem_of(settings):
            raise UsageError(problem)
        return row


def read_allowed(path: Path) -> Allowed:
    """Return what a file allows. UsageError: unreadable or wrong, of somebody else, or others may read or write it."""
    where = f"--actions {path}"
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{where} cannot be read: {error.strerror}; expected: a file of [[allow]] rows") from None
    if state.st_uid not in {0, os.geteuid()}:
        raise UsageError(f"{where} belongs to user {state.st_uid}; expected: to the one of this process")
    if stat.S_IMODE(state.st_mode) & 0o077:
        mode = stat.S_IMODE(state.st_mode)
        raise UsageError(f"{where} can be used by others (mode {mode:o}); expected: chmod 600 {path}")
    if len(data) > _MAX_BYTES:
        raise UsageError(f"{where} is larger than {_MAX_BYTES:,} bytes; expected: a file of [[allow]] rows")
    try:
        own = msgspec.toml.decode(data, type=_File)
        for row in own.allow:
            _check(row)
        return Allowed(own.allow, zone_of(own.zone) if own.zone else UTC)
    except (ValueError, *UNREADABLE) as error:
        raise UsageError(f"{where}: {' '.join(str(error).split())}; expected: [[allow]] rows") from None


def _check(row: Allow) -> None:
    """Check the windows and bounds of a row. ValueError: one is wrong."""
    for text in row.windows:
        _read_window(text)
    for name, (low, high) in row.bounds.items():
        if not 0 <= parse_size(low) <= parse_size(high):
            raise ValueError(f"bounds of {name}: {low} to {high}; the first must be at most the second")
