"""Fields of an event: the list from which the decoder, the Arrow schema and the published schema are made.

- A COMMIT without `uow` comes from an application without messages in syncpoint and has no effect. `make schemas`
  writes the texts below the fields into docs/events.md and schemas/event.schema.json.
- MEASURE: the fields that the real system may be measured by, and their checks. They are the measurable fields of the
  state record (docs/state.md) of the store, and every one may be absent. Sources: docs/events.md, "Measurements".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Annotated, Any, Literal, Required, TypedDict, cast, get_args, get_origin, get_type_hints

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
from twin.base.units import event_time
from twin.events.refusals import EventError, Reason, show
from twin.records import STATES, DataSetState, DeepQueue, ScmState
from twin.records.bounds import measured_bounds

# --- make schemas: types ---


class DataSetMeasured(TypedDict, total=False):
    """Fields of a shared message data set."""

    blocks_total: int
    blocks_max: int
    blocks_used: int
    pages_used: int
    messages: int


class ScmMeasured(TypedDict, total=False):
    """Fields of the storage class memory of a structure."""

    max: int
    used: int
    ents: int
    elems: int
    messages: int
    aug_fixed: int
    aug_dynamic: int
    prestaged: int
    prefetched: int
    faults: int


class QueueMeasured(TypedDict, total=False):
    """Facts of a queue, as DISPLAY QSTATUS shows them."""

    name: Required[str]
    depth: int
    getters: int
    putters: int
    oldest_s: int
    uncommitted: int
    last_get: str
    last_put: str


class Measured(TypedDict, total=False):
    """Content of a MEASURE of any store, which takes the fields of its kind. resync: take the measurement over."""

    messages: int
    bytes: int
    uncommitted: int
    in_doubt: int
    expired_held: int
    events: int
    duplicates: int
    gaps: int
    unmatched_gets: int
    full_puts: int
    queue_full_puts: int
    overfull_puts: int
    refused_alters: int
    size: int
    ents_max: int
    ents_used: int
    elems_max: int
    elems_used: int
    elems_low: int
    elems_high: int
    auto_alters: int
    offloaded_messages: int
    offloaded_bytes: int
    offload_rule: int
    pages_total: int
    pages_used: int
    pages_persistent: int
    pages_nonpersistent: int
    pages_unused: int
    pages_max: int
    expansions: int
    buffer_pool: int
    blocks: int
    blocks_free: int
    blocks_allocated: int
    blocks_nonpersistent: int
    blocks_persistent: int
    file_bytes: int
    file_max_bytes: int
    log_records: int
    checkpoints: int
    truncations: int
    scm_total: int
    scm_committed: int
    scm_used: int
    storage_free: int
    augmented: int
    members: int
    members_needed: int
    depth: int
    records_to_replay: int
    usage_pct: float
    buffer_pool_pct: float
    rate: float
    capacity: float
    smds: dict[str, DataSetMeasured]
    scm: ScmMeasured
    queues: list[QueueMeasured]
    asked: list[str]
    resync: bool


# --- end ---


def _of_every_kind(number: type[int | float]) -> dict[str, int]:
    return {name: high for state in STATES.values() for name, high in measured_bounds(state, number).items()}


MEASURED_COUNTS = _of_every_kind(int)
MEASURED_NUMBERS = _of_every_kind(float)
MEASURED_SMDS = measured_bounds(DataSetState, int)
MEASURED_SCM = measured_bounds(ScmState, int)
MEASURED_QUEUE = measured_bounds(DeepQueue, int)
QUEUE_TIMES = ("last_get", "last_put")
MEASURED = (*MEASURED_COUNTS, *MEASURED_NUMBERS, "smds", "scm", "queues")
MAX_QUEUES = 200  # of one MEASURE; a store with more has further ones of the same time
MAX_ASKED = 32  # queue managers in a queue-sharing group [IBM: MQ for z/OS, queue-sharing groups]
MAX_NAME = 48  # bytes of the name of a queue [IBM: MQ, rules for naming IBM MQ objects]
_PAIRS = (  # fields of a MEASURE: what is used, and of what; a queue file may be larger than a limit lowered since
    ("ents_used", "ents_max"),
    ("elems_used", "elems_max"),
    ("pages_used", "pages_total"),
    ("blocks_used", "blocks_total"),
    ("used", "max"),
    ("scm_used", "scm_total"),
)


def check_measured(measured: Mapping[str, Any]) -> None:
    """Check that the content of a MEASURE has at least one field of a state record, with numbers within bounds.

    Unknown fields are ignored, null is absent. EventError: wrong-type, bad-value or bad-time.
    """
    if all(measured.get(name) is None for name in MEASURED):
        raise EventError(
            Reason.BAD_VALUE,
            f"measured is {show(measured)}; expected: at least one number of the store's state record, "
            "such as messages, ents_used, elems_used, smds or queues",
        )
    _check_counts("measured", measured, MEASURED_COUNTS)
    if measured.get("resync") is not None and type(measured["resync"]) is not bool:
        raise EventError(Reason.WRONG_TYPE, f"measured.resync is {show(measured['resync'])}; expected: true or false")
    _check_numbers(measured)
    if measured.get("scm") is not None:
        _check_counts("measured.scm", measured["scm"], MEASURED_SCM)
    if measured.get("smds") is not None:
        if type(measured["smds"]) is not dict:
            raise EventError(
                Reason.WRONG_TYPE,
                f"measured.smds is {show(measured['smds'])}; expected: an object of one object a queue manager",
            )
        for qmgr, values in measured["smds"].items():
            _check_counts(f"measured.smds.{qmgr}", values, MEASURED_SMDS)
    _check_queues(measured.get("queues"))
    _check_asked(measured.get("asked"))
    if wrong := contradiction(without_nulls(measured), "measured.", needs_totals=False):
        raise EventError(Reason.BAD_VALUE, wrong)


def _check_numbers(measured: Mapping[str, Any]) -> None:
    for name, high in MEASURED_NUMBERS.items():
        value = measured.get(name)
        if value is not None and type(value) not in (int, float):
            raise EventError(Reason.WRONG_TYPE, f"measured.{name} is {show(value)}; expected: a number")
        if value is not None and not 0 <= value <= high:
            raise EventError(Reason.BAD_VALUE, f"measured.{name} is {show(value)}; expected: a number from 0 to {high}")


def _check_queues(queues: Any) -> None:
    if queues is None:
        return
    if type(queues) is not list:
        raise EventError(
            Reason.WRONG_TYPE, f"measured.queues is {show(queues)}; expected: a list of one object a queue"
        )
    if len(queues) > MAX_QUEUES:
        raise EventError(
            Reason.BAD_VALUE,
            f"measured.queues has {len(queues)} queues; expected: at most {MAX_QUEUES}, others in a further MEASURE",
        )
    for number, values in enumerate(queues):
        if type(values) is not dict or type(values.get("name")) is not str:
            what = f"measured.queues[{number}] is {show(values)}; expected: an object with the name of a queue"
            raise EventError(Reason.WRONG_TYPE, what)
        name = values["name"]
        if not 0 < len(name.encode()) <= MAX_NAME:
            what = f"measured.queues[{number}].name is {show(name)}; expected: a string of 1 to {MAX_NAME} bytes"
            raise EventError(Reason.BAD_VALUE, what)
        where = f"measured.queues.{name}"
        _check_counts(where, values, MEASURED_QUEUE)
        for field_name in QUEUE_TIMES:
            if values.get(field_name) is not None:
                _check_time(f"{where}.{field_name}", values[field_name])


def _check_time(where: str, value: Any) -> None:
    right = "an RFC 3339 date-time such as 2026-11-20T12:00:00Z in the years 2000 to 2100"
    if type(value) is not str:
        raise EventError(Reason.WRONG_TYPE, f"{where} is {show(value)}; expected: {right}")
    try:
        event_time(value)
    except ValueError:
        raise EventError(Reason.BAD_TIME, f"{where} is {show(value)}; expected: {right}") from None


def _check_asked(asked: Any) -> None:
    if asked is None:
        return
    right = f"at most {MAX_ASKED} names of queue managers"
    if type(asked) is not list or any(type(name) is not str for name in asked):
        raise EventError(Reason.WRONG_TYPE, f"measured.asked is {show(asked)}; expected: a list of {right}")
    if len(asked) > MAX_ASKED or not all(asked):
        raise EventError(Reason.BAD_VALUE, f"measured.asked is {show(asked)}; expected: {right}")


def _check_counts(where: str, values: Any, bounds: Mapping[str, int]) -> None:
    if type(values) is not dict:
        raise EventError(Reason.WRONG_TYPE, f"{where} is {show(values)}; expected: an object of integers")
    for name, high in bounds.items():
        value = values.get(name)
        if value is None:
            continue
        if type(value) is not int:
            raise EventError(Reason.WRONG_TYPE, f"{where}.{name} is {show(value)}; expected: an integer")
        if not 0 <= value <= high:
            raise EventError(
                Reason.BAD_VALUE, f"{where}.{name} is {show(value)}; expected: an integer from 0 to {high}"
            )


def has_levels(measured: Mapping[str, Any]) -> bool:
    """Return True if the content of a MEASURE has more than facts of queues."""
    return any(measured.get(name) is not None for name in MEASURED if name != "queues")


def contradiction(measured: Mapping[str, Any], words: str = "", *, needs_totals: bool = True) -> str | None:
    """Return the contradiction between fields of a MEASURE, with the expected values; None if there is none.
    `needs_totals`: a used value without its total is one, as in a row of a feed, which has both.
    """
    for field_name, limit in _PAIRS:
        if field_name in measured and limit not in measured:
            if not needs_totals:
                continue
            return f"{words}{field_name} {measured[field_name]} without {limit}; expected: both"
        if field_name in measured and measured[field_name] > measured[limit]:
            return f"{words}{field_name} {measured[field_name]} of {limit} {measured[limit]}; expected: at most all"
    if {"pages_used", "pages_unused", "pages_total"} <= measured.keys():
        used, unused, total = (measured[name] for name in ("pages_used", "pages_unused", "pages_total"))
        if used + unused != total:
            return f"pages_used {used} and pages_unused {unused} of pages_total {total}; expected: their sum"
    inner = [(f"{words}{name} ", value) for name, value in measured.items() if isinstance(value, Mapping)]
    texts = (contradiction(value, name, needs_totals=needs_totals) for name, value in inner)
    return next((text for text in texts if text is not None), None)


def without_nulls(measured: Mapping[str, Any]) -> Measured:
    """Return the content of a checked MEASURE without fields that are null, those of `smds`, `scm` and `queues` too."""
    fields = _not_null(measured)
    if "scm" in fields:
        fields["scm"] = _not_null(fields["scm"])
    if "smds" in fields:
        fields["smds"] = {qmgr: _not_null(dataset) for qmgr, dataset in fields["smds"].items()}
    if "queues" in fields:
        fields["queues"] = [_not_null(queue) for queue in fields["queues"]]
    return cast("Measured", fields)


def _not_null(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


# --- fields of an event -----------------------------------------------------------------------------------------------

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
