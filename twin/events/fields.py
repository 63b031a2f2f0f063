"""Fields of an event: the list from which the decoder, the Arrow schema and the published schema are made.

A COMMIT without `uow` comes from an application without messages in syncpoint and has no effect. `make schemas` writes
the texts below the fields into docs/events.md and schemas/event.schema.json.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Annotated, Any, Literal, Required, TypedDict, get_args, get_origin, get_type_hints

import pyarrow as pa

import kernels
from kernels.json_scan import (
    COUNT_MAX,
    EXPIRY_MAX,
    LENGTH_MAX,
    MSGID_MAX,
    NAMES,
    PRIORITY_MAX,
    QUEUE_OPS,
    REASON_MAX,
    TIME_HIGH,
    TIME_LOW,
)
from twin.events.measured import Measured
from twin.events.refusals import EventError, Reason, show

INT64_MAX = 2**63 - 1
FIRST_YEAR, LAST_YEAR = 2000, 2100

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)


Op = Literal[
    "PUT",
    "GET",
    "COMMIT",
    "BACKOUT",
    "PREPARE",
    "EXPIRE",
    "CLEAR",
    "RESTART",
    "HEARTBEAT",
    "ALTER",
    "REBUILD",
    "MEASURE",
    "PLAN",
    "NOTE",
]
OPS: tuple[str, ...] = get_args(Op)
"""Operations by number; from ALTER on the event loop of the kernels leaves them to the twin."""
PLAN, NOTE = OPS.index("PLAN"), OPS.index("NOTE")


class Kind(Enum):
    """Type of a field; its value describes the expected value."""

    TIME = (
        "an RFC 3339 date-time such as 2026-11-20T12:00:00.000123Z, or an integer of microseconds since 1970 UTC, "
        f"in the years {FIRST_YEAR} to {LAST_YEAR}"
    )
    STRING = "a string"
    INTEGER = "an integer"
    NUMBER = "a number"
    BOOLEAN = "true or false"
    OBJECT = "an object"


@dataclass(frozen=True, slots=True)
class Field:
    """Field of an event: of a column of this Arrow type, needed by these operations."""

    kind: Kind
    arrow: pa.DataType
    low: int = 0  # of an integer, or of the size of a string in bytes of UTF-8
    high: int | None = None
    needed_by: tuple[str, ...] = ()
    name: str = ""

    @property
    def right(self) -> str:
        """Expected value, as the end of a sentence."""
        if self.kind is Kind.INTEGER:
            return f"an integer from {self.low} to {self.high}"
        if self.kind is Kind.NUMBER:
            return f"a number above 0, at most {self.high}"
        if self.kind is Kind.STRING and self.high is not None:
            return f"a string of {self.low} to {self.high} bytes"
        if self.name == "op":
            return "one of " + ", ".join(OPS)
        return str(self.kind.value)

    def wrong(self, reason: Reason, value: object) -> EventError:
        """Return the error for a wrong value of this field."""
        return EventError(reason, f"{self.name} is {show(value)}; expected: {self.right}")

    def checked(self, value: Any) -> Any:
        """Check a value and return it, a time in microseconds. EventError: wrong-type, bad-value, bad-time or
        unknown-op.
        """
        kind = self.kind
        if kind in (Kind.INTEGER, Kind.NUMBER):
            self._check_number(value)
        elif kind is Kind.STRING:
            if type(value) is not str:
                raise self.wrong(Reason.WRONG_TYPE, value)
            if self.high is not None and not self.low <= len(value[: self.high + 1].encode()) <= self.high:
                raise self.wrong(Reason.BAD_VALUE, value)
            if self.name == "op" and value not in OPS:
                raise self.wrong(Reason.UNKNOWN_OP, value)
        elif kind is Kind.TIME:
            return self._time(value)
        elif type(value) is not (bool if kind is Kind.BOOLEAN else dict):
            raise self.wrong(Reason.WRONG_TYPE, value)
        return value

    def _check_number(self, value: Any) -> None:
        """Raise EventError for a value that is no number or integer, or out of range; a NUMBER is above `low`."""
        if type(value) is not int and (self.kind is Kind.INTEGER or type(value) is not float):
            raise self.wrong(Reason.WRONG_TYPE, value)
        is_low = value < self.low if self.kind is Kind.INTEGER else not value > self.low
        if is_low or (self.high is not None and value > self.high):
            raise self.wrong(Reason.BAD_VALUE, value)

    def _time(self, value: Any) -> int:
        if type(value) is int:
            time: int | None = value
        elif type(value) is str:
            time = microseconds(value)
        else:
            raise self.wrong(Reason.WRONG_TYPE, value)
        if time is None or not TIME_LOW <= time < TIME_HIGH:
            raise self.wrong(Reason.BAD_TIME, value)
        return time


def _words(index: pa.DataType) -> pa.DataType:
    return pa.dictionary(index, pa.string())


class Event(TypedDict, total=False):
    """An event as feeds write it, its time in microseconds since 1970 UTC."""

    time: Required[Annotated[int, Field(Kind.TIME, pa.timestamp("us", "UTC"), needed_by=OPS)]]
    """Completion time of the call, in the years 2000 to 2100, UTC; always required."""
    qmgr: Required[Annotated[str, Field(Kind.STRING, _words(pa.int16()), needed_by=OPS)]]
    """The queue manager that made the call; always required."""
    seq: Annotated[int, Field(Kind.INTEGER, pa.int64(), high=INT64_MAX)]
    """Sequence number of the events of one (qmgr, queue), without gaps; absent: no check for duplicates or gaps."""
    op: Required[Annotated[Op, Field(Kind.STRING, _words(pa.int8()), needed_by=OPS)]]
    """The [operation](#operations); always required."""
    queue: Annotated[str, Field(Kind.STRING, _words(pa.int32()), needed_by=QUEUE_OPS)]
    """Required by PUT, GET, COMMIT, BACKOUT, PREPARE, EXPIRE and CLEAR: the name used by the application; aliases are
    resolved."""
    msgid: Annotated[str, Field(Kind.STRING, pa.string(), low=1, high=MSGID_MAX)]
    """Id of the message. Absent on PUT: an anonymous message; on GET: the next message of the queue, by priority, then
    age; on EXPIRE: the oldest."""
    count: Annotated[int, Field(Kind.INTEGER, pa.int32(), low=1, high=COUNT_MAX)]
    """Number of consecutive messages of that length and priority, with `msgid` only 1; absent: 1."""
    length: Annotated[int, Field(Kind.INTEGER, pa.int32(), high=LENGTH_MAX, needed_by=("PUT",))]
    """Bytes of data and every MQ header except the MQMD; required by PUT."""
    priority: Annotated[int, Field(Kind.INTEGER, pa.int8(), high=PRIORITY_MAX)]
    """Priority of the message; absent: 0."""
    persistent: Annotated[bool, Field(Kind.BOOLEAN, pa.bool_())]
    """True of a persistent message; absent: false."""
    expiry: Annotated[float, Field(Kind.NUMBER, pa.float64(), high=EXPIRY_MAX)]
    """Of PUT: seconds until the message [expires](#expiry), counted in tenths, begun ones included; absent: never."""
    uow: Annotated[str, Field(Kind.STRING, pa.string(), needed_by=("PREPARE",))]
    """Unit of work, inside syncpoint; put in doubt by PREPARE, which needs it, and ended by COMMIT or BACKOUT of the
    same qmgr, queue and uow."""
    direct: Annotated[bool, Field(Kind.BOOLEAN, pa.bool_())]
    """Put to a waiting getter: the message was never stored, and its GET is not reported. Not with `uow`, and on z/OS
    not with `persistent`."""
    reason: Annotated[int, Field(Kind.INTEGER, pa.int32(), high=REASON_MAX)]
    """MQRC of the call; absent: 0. A PUT with 2192, or 2056 of a distributed queue manager, took no storage: the real
    system was full."""
    store: Annotated[
        str, Field(Kind.STRING, _words(pa.int32()), needed_by=("ALTER", "REBUILD", "MEASURE", "PLAN", "NOTE"))
    ]
    """Required by ALTER, REBUILD, MEASURE, PLAN and NOTE. HEARTBEAT and RESTART without it apply to every store of
    `qmgr`."""
    attributes: Annotated[
        dict[str, int | float | str | bool | None], Field(Kind.OBJECT, pa.string(), needed_by=("ALTER", "NOTE"))
    ]
    """Of ALTER and REBUILD: attributes as in the [estate](estate.md), such as `{"offld1_th": 60}`. Of NOTE: `opened`
    and `word`, [what a page was worth](incidents.md#one-word-back)."""
    measured: Annotated[Measured, Field(Kind.OBJECT, pa.string(), needed_by=("MEASURE",))]
    """Of MEASURE: any fields of the [state record](state.md) of that store, with at least one number; others are
    ignored. Of a HEARTBEAT that reports a [silent source](#silent-sources): `silent_s`, whole seconds without an event
    of `qmgr`; only the job writes it."""
    plan: Annotated[dict[str, int | float | str | bool | None], Field(Kind.OBJECT, pa.string(), needed_by=("PLAN",))]
    """Of PLAN: what is expected of the store ([planned work](planned-work.md)), or `{"id": ..., "cancelled": true}`;
    in other events it is an unknown field."""


def _fields_of_an_event() -> tuple[Field, ...]:
    hints = get_type_hints(Event, include_extras=True)
    own = {name: hint.__args__[0] if get_origin(hint) is Required else hint for name, hint in hints.items()}
    return tuple(replace(hint.__metadata__[0], name=name) for name, hint in own.items())


FIELDS = _fields_of_an_event()
SILENT = Field(Kind.INTEGER, pa.int64(), low=1, high=1_000_000_000, name="silent_s")  # of `measured` of a HEARTBEAT
FIELD = {field.name: field for field in FIELDS}
OBJECTS = tuple(field.name for field in FIELDS if field.kind is Kind.OBJECT)

if tuple(FIELD) != (*NAMES, "plan") or OPS[: len(kernels.OPS)] != kernels.OPS:
    raise ImportError(f"kernels know the fields {NAMES} and {kernels.OPS}, twin.events.fields {tuple(FIELD)} and {Op}")


# --- time ------------------------------------------------------------------------------------------------------------


def microseconds(text: str) -> int | None:
    """Return the microseconds since 1970 of an RFC 3339 date-time (section 5.6), or None if it is not one.

    Decimals of the second beyond the sixth are cut off. A leap second, 23:59:60 UTC, is the next second, as in POSIX.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    fraction, sign, hours, minutes = match.group(7, 8, 9, 10)
    leap = second == 60
    try:
        whole = datetime(year, month, day, hour, minute, 59 if leap else second, tzinfo=UTC)
    except ValueError:  # no such day, hour, minute or second
        return None
    offset = timedelta()
    if sign:
        if int(hours) > 23 or int(minutes) > 59:
            return None
        offset = timedelta(hours=int(hours), minutes=int(minutes)) * (1 if sign == "+" else -1)
    time = (whole - _EPOCH - offset) // _MICROSECOND + int(((fraction or "") + "000000")[:6])
    if leap:
        if time // 60_000_000 % 1440 != 1439:
            return None
        time += 1_000_000
    return time


# --- silence ----------------------------------------------------------------------------------------------------------


def check_silent(measured: Mapping[str, Any]) -> None:
    """Raise EventError (wrong-type, bad-value) unless `silent_s` of a HEARTBEAT is a number of seconds."""
    try:
        SILENT.checked(measured[SILENT.name])
    except EventError as error:
        raise EventError(error.reason, f"measured.{error.detail}") from None
