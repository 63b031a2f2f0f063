"""MEASURE: the fields that the real system may be measured by, and their checks.

They are the measurable fields of the state record (docs/state.md) of the store, and every one may be absent. Sources:
docs/events.md, "Measurements".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Required, TypedDict, cast

from twin.events.refusals import EventError, Reason, show
from twin.records import STATES, DataSetState, DeepQueue, ScmState
from twin.records.bounds import measured_bounds
from twin.units import event_time

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
