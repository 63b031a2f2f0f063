"""MEASURE: the fields that the real system may be measured by, with their types, and the checks of these.

They are fields of the state record (docs/state.md) of the store, and every one may be absent. The decoder, the feeds
and the store twins take their lists from the types here. Sources: docs/events.md, "Measurements".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict, cast, get_type_hints

from twin.events.refusals import EventError, Reason, show

MEASURED_MAX = 2**53 - 1  # of a number: exact in a double; 8 PiB
MESSAGES_MAX = 2**31 - 1  # of messages: a store counts them in 31 bits

Count = Annotated[int, MEASURED_MAX]
Messages = Annotated[int, MESSAGES_MAX]
Number = Annotated[float, MEASURED_MAX]


class StoreMeasured(TypedDict, total=False):
    """Fields of every store. resync: make the twin take over the measurement."""

    messages: Messages
    bytes: Count
    uncommitted: Messages
    in_doubt: Messages
    expired_held: Messages
    events: Count
    duplicates: Count
    gaps: Count
    unmatched_gets: Count
    full_puts: Count
    queue_full_puts: Count
    overfull_puts: Count
    refused_alters: Count
    usage_pct: Number
    resync: bool


class DataSetMeasured(TypedDict, total=False):
    """Fields of a shared message data set."""

    blocks_total: Count
    blocks_max: Count
    blocks_used: Count
    pages_used: Count
    messages: Messages


class ScmMeasured(TypedDict, total=False):
    """Fields of the storage class memory of a structure."""

    max: Count
    used: Count
    ents: Count
    elems: Count
    messages: Messages
    aug_fixed: Count
    aug_dynamic: Count
    prestaged: Count
    prefetched: Count
    faults: Count


class StructureMeasured(TypedDict, total=False):
    """Fields of a structure. smds: its data sets by queue manager."""

    size: Count
    ents_max: Count
    ents_used: Count
    elems_max: Count
    elems_used: Count
    elems_low: Count
    elems_high: Count
    auto_alters: Count
    offloaded_messages: Messages
    offloaded_bytes: Count
    offload_rule: Count
    smds: dict[str, DataSetMeasured]
    scm: ScmMeasured


class PageSetMeasured(TypedDict, total=False):
    """Fields of a page set."""

    pages_total: Count
    pages_max: Count
    pages_used: Count
    pages_persistent: Count
    pages_nonpersistent: Count
    pages_unused: Count
    expansions: Count
    buffer_pool: Count
    buffer_pool_pct: Number


class QueueFileMeasured(TypedDict, total=False):
    """Fields of a queue file; some of them its queue manager has too."""

    blocks: Count
    blocks_free: Count
    blocks_allocated: Count
    blocks_nonpersistent: Count
    blocks_persistent: Count
    file_bytes: Count
    log_records: Count
    checkpoints: Count
    file_max_bytes: Count
    truncations: Count


class SharedMeasured(TypedDict, total=False):
    """Fields of stores shared by others: coupling facility, uniform cluster, queue manager."""

    scm_total: Count
    scm_committed: Count
    scm_used: Count
    storage_free: Count
    augmented: Count
    members: Count
    members_needed: Count
    depth: Messages
    records_to_replay: Count
    rate: Number
    capacity: Number


class Measured(StoreMeasured, StructureMeasured, PageSetMeasured, QueueFileMeasured, SharedMeasured, total=False):
    """Content of a MEASURE of any store, which takes the fields of its kind."""


def _bounds(kind: type, number: type) -> dict[str, int]:
    """Return the largest value by name of the fields of a type that are numbers of a kind."""
    hints = get_type_hints(kind, include_extras=True)
    annotated = {name: hint for name, hint in hints.items() if getattr(hint, "__origin__", None) is number}
    return {name: hint.__metadata__[0] for name, hint in annotated.items()}


MEASURED_COUNTS = _bounds(Measured, int)
MEASURED_NUMBERS = _bounds(Measured, float)
MEASURED_SMDS = _bounds(DataSetMeasured, int)
MEASURED_SCM = _bounds(ScmMeasured, int)
MEASURED = (*MEASURED_COUNTS, *MEASURED_NUMBERS, "smds", "scm")
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

    Unknown fields are ignored, null is absent.

    Args:
        measured: content as decoded from JSON.

    Raises:
        EventError: wrong-type or bad-value.
    """
    if all(measured.get(name) is None for name in MEASURED):
        raise EventError(
            Reason.BAD_VALUE,
            f"measured is {show(measured)}; expected: at least one number of the store's state record, "
            "such as messages, ents_used, elems_used or smds",
        )
    _check_counts("measured", measured, MEASURED_COUNTS)
    if measured.get("resync") is not None and type(measured["resync"]) is not bool:
        raise EventError(Reason.WRONG_TYPE, f"measured.resync is {show(measured['resync'])}; expected: true or false")
    for name, high in MEASURED_NUMBERS.items():
        value = measured.get(name)
        if value is not None and type(value) not in (int, float):
            raise EventError(Reason.WRONG_TYPE, f"measured.{name} is {show(value)}; expected: a number")
        if value is not None and not 0 <= value <= high:
            raise EventError(Reason.BAD_VALUE, f"measured.{name} is {show(value)}; expected: a number from 0 to {high}")
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


def contradiction(measured: Mapping[str, Any], words: str = "") -> str | None:
    """Return the contradiction between fields of a MEASURE, with the expected values; None if there is none.

    Args:
        measured: fields as in a MEASURE: a used value needs its total and is at most that.
        words: in front of the names of the fields.
    """
    for field_name, limit in _PAIRS:
        if field_name in measured and limit not in measured:
            return f"{words}{field_name} {measured[field_name]} without {limit}; expected: both"
        if field_name in measured and measured[field_name] > measured[limit]:
            return f"{words}{field_name} {measured[field_name]} of {limit} {measured[limit]}; expected: at most all"
    if {"pages_used", "pages_unused", "pages_total"} <= measured.keys():
        used, unused, total = (measured[name] for name in ("pages_used", "pages_unused", "pages_total"))
        if used + unused != total:
            return f"pages_used {used} and pages_unused {unused} of pages_total {total}; expected: their sum"
    inner = [(f"{words}{name} ", value) for name, value in measured.items() if isinstance(value, Mapping)]
    return next((text for name, value in inner if (text := contradiction(value, name)) is not None), None)


def without_nulls(measured: Mapping[str, Any]) -> Measured:
    """Return the content of a checked MEASURE without fields that are null, those of `smds` and `scm` too."""
    fields = _not_null(measured)
    if "scm" in fields:
        fields["scm"] = _not_null(fields["scm"])
    if "smds" in fields:
        fields["smds"] = {qmgr: _not_null(dataset) for qmgr, dataset in fields["smds"].items()}
    return cast("Measured", fields)


def _not_null(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
