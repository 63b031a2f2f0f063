"""Exact rules for single events, with which the fast ways must agree. Described in docs/events.md.

The order of the checks gives an event with several faults one reason: JSON, an object; presence of time, qmgr and op;
types and ranges in the order of the fields; presence of the fields that the operation needs; count against msgid;
direct against uow and persistent; queue manager, queue, store; attributes or measurement.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import msgspec
import numpy as np

from kernels import FLAG_DIRECT, FLAG_HAS_MSGID, FLAG_HAS_UOW, FLAG_PERSISTENT
from kernels.index import xxh64_bytes
from kernels.json_scan import QUEUE_OPS
from twin.base.decoding import UNREADABLE
from twin.estate import (
    Estate,
    EstateError,
    StoreConfig,
    UnknownQueue,
    UnknownQueueManager,
    UnknownStore,
    parse_attributes,
)
from twin.estate.errors import known_hint
from twin.estate.planned import Cancelled, read_plan
from twin.events.fields import FIELD, FIELDS, OPS, SILENT, check_measured, check_silent
from twin.events.refusals import EventError, Reason, check_object_bytes, show
from twin.records import WORDS

_ALWAYS_NEEDED = tuple(field for field in FIELDS if field.needed_by == OPS)
_NEEDED = {op: tuple(field for field in FIELDS if op in field.needed_by) for op in OPS}

Row = tuple[int, ...]  # the fields of kernels.EVENT, in its order


Fields = msgspec.defstruct("Fields", [(field.name, Any, None) for field in FIELDS], module=__name__)
"""The known fields of an event, unchecked: values of any type, None if absent or null. Unknown fields are dropped."""


class Accepted(NamedTuple):
    """Rows of an accepted event, one per store that it concerns, and the JSON of its attributes or measurement."""

    rows: list[Row]
    extra: bytes | None = None


_decoder = msgspec.json.Decoder(Fields)


def parse(text: bytes) -> msgspec.Struct:
    """Return the known fields of a JSON text. EventError: not-json, not-an-object, or bad-value (beyond 64 bits)."""
    try:
        return _decoder.decode(text)
    except msgspec.ValidationError as error:
        raise _unreadable(text, str(error)) from None
    except RecursionError:
        raise EventError(Reason.NOT_JSON, "nested too deep to read; expected: one JSON object in UTF-8") from None
    except UNREADABLE as error:
        raise EventError(Reason.NOT_JSON, f"{error}; expected: one JSON object in UTF-8") from None


def _unreadable(text: bytes, problem: str) -> EventError:
    try:
        value = msgspec.json.decode(text)
    except msgspec.ValidationError:
        return EventError(Reason.BAD_VALUE, f"{problem}; expected: numbers of 64 bits")
    except RecursionError:
        return EventError(Reason.NOT_JSON, "nested too deep to read; expected: one JSON object in UTF-8")
    except UNREADABLE as error:
        return EventError(Reason.NOT_JSON, f"{error}; expected: one JSON object in UTF-8")
    if isinstance(value, dict):
        return EventError(Reason.BAD_VALUE, f"{problem}; expected: numbers of 64 bits")
    kinds = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return EventError(Reason.NOT_AN_OBJECT, f"the event is {kinds.get(type(value), 'a number')}; expected: an object")


def key_of(text: str | None) -> int:
    """Return the 64-bit key of an id: xxHash64 of its UTF-8 bytes; 0 for None."""
    if text is None:
        return 0
    # numpy makes no array of an empty text, so a byte is appended and cut off again.
    return int(xxh64_bytes(np.frombuffer(text.encode() + b"\0", np.uint8)[:-1]))


class Rules:
    """Rules for one estate."""

    def __init__(self, estate: Estate) -> None:
        self._estate = estate

    def apply(self, fields: msgspec.Struct) -> Accepted:
        """Return the rows of an event. Raise EventError if it is refused."""
        values = _checked(fields)
        op = str(values["op"])
        extra = _silent_s(values) if op == "HEARTBEAT" else None
        if op == "PUT" and values["direct"]:
            self._check_direct(values)
        if op in QUEUE_OPS:
            routes: tuple[int, ...] = (self._route_of_queue(values["qmgr"], values["queue"], values["store"]),)
        elif values["store"] is not None:
            routes = (self._route_of_store(self._source(op, values), values["store"]),)
            extra = extra or self._extra(op, values)
        else:
            routes = self._routes_of_qmgr(values["qmgr"])
        return Accepted([_row(values, route) for route in routes], extra)

    def _check_direct(self, values: dict[str, Any]) -> None:
        """Raise EventError (impossible-direct) for a put to a waiting getter that MQ does not make.

        Put and get are outside syncpoint, on z/OS the message is nonpersistent too [IBM: WebSphere MQ internals, "Put
        to a waiting getter"].
        """
        if values["uow"] is not None:
            detail = f"direct with uow {show(values['uow'])}; expected: a put outside syncpoint, or no direct"
            raise EventError(Reason.IMPOSSIBLE_DIRECT, detail)
        described = self._estate.queue_managers.get(values["qmgr"])
        if values["persistent"] and described is not None and described.platform == "zos":
            detail = f"direct with persistent, and {described.name} is on z/OS; expected: a nonpersistent message"
            raise EventError(Reason.IMPOSSIBLE_DIRECT, detail)

    def _route_of_queue(self, qmgr: str, queue: str, store: str | None) -> int:
        """Return the route of a queue. store: named in the event, which does not count; it may explain a refusal."""
        try:
            return self._estate.route_of_queue(qmgr, queue)
        except UnknownQueueManager as error:
            raise EventError(Reason.UNKNOWN_QUEUE_MANAGER, str(error)) from None
        except UnknownQueue as error:
            config = self._estate.stores.get(store or queue)
            if config is not None and config.known_by_levels:
                what = f"{config.name} holds no queues: no put or get concerns it; expected: MEASURE, ALTER or REBUILD"
                raise EventError(Reason.UNKNOWN_QUEUE, what) from None
            raise EventError(Reason.UNKNOWN_QUEUE, str(error)) from None

    def _source(self, op: str, values: dict[str, Any]) -> str:
        """Return the queue manager of an event about a store: of a NOTE, whoever writes it, the store's first."""
        if op != "NOTE":
            return str(values["qmgr"])
        store = values["store"]
        config = self._estate.stores.get(store)
        if config is None:
            hint = known_hint(store, self._estate.stores)
            raise EventError(Reason.UNKNOWN_STORE, f"there is no store {show(store)}{hint}")
        return str(next(iter(config.queue_managers), values["qmgr"]))

    def _route_of_store(self, qmgr: str, store: str) -> int:
        try:
            return self._estate.route_of_store(qmgr, store)
        except UnknownQueueManager as error:
            raise EventError(Reason.UNKNOWN_QUEUE_MANAGER, str(error)) from None
        except UnknownStore as error:
            raise EventError(Reason.UNKNOWN_STORE, str(error)) from None

    def _routes_of_qmgr(self, qmgr: str) -> tuple[int, ...]:
        """Return the routes of all stores of a queue manager."""
        try:
            routes = self._estate.routes_of_qmgr(qmgr)
        except UnknownQueueManager as error:
            raise EventError(Reason.UNKNOWN_QUEUE_MANAGER, str(error)) from None
        if not routes:
            raise EventError(
                Reason.UNKNOWN_STORE, f"{qmgr} has no store; expected: a queue manager with a store in the estate"
            )
        return routes

    def _extra(self, op: Any, values: dict[str, Any]) -> bytes | None:
        """Return the checked attributes (sizes as integers), measurement or plan as JSON; None for other operations."""
        config = self._estate.stores[values["store"]]
        if op == "MEASURE":
            measured = values["measured"]
            check_measured(measured)
            known = getattr(config, "queue_managers", ())
            for qmgr in measured.get("smds") or ():
                if qmgr not in known:
                    raise EventError(
                        Reason.BAD_VALUE, f"measured.smds names {qmgr}; expected: {', '.join(known)} of {config.name}"
                    )
            return _encoded("measured", measured)
        if op == "PLAN":
            try:
                plan = read_plan(values["plan"], config)
            except EstateError as error:
                raise EventError(Reason.BAD_PLAN, f"PLAN of {config.name}: {error}") from None
            ended = {"id": plan.id, "cancelled": True} if isinstance(plan, Cancelled) else None
            return _encoded("plan", ended or msgspec.to_builtins(plan))
        if op == "NOTE":
            return _encoded("attributes", _word(config, values["attributes"]))
        if op not in {"ALTER", "REBUILD"}:
            return None
        try:
            attributes = parse_attributes(config, op, values["attributes"] or {})
        except EstateError as error:
            raise EventError(Reason.BAD_ATTRIBUTES, str(error)) from None
        return _encoded("attributes", attributes)


def _word(config: StoreConfig, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a NOTE, `opened` in microseconds. Raise EventError (bad-attributes)."""
    if not config.holds_messages:
        raise EventError(Reason.BAD_ATTRIBUTES, f"NOTE of {config.name}: nothing pages; expected: a store of messages")
    content = {"opened": None, "word": None} | attributes
    if content["word"] not in WORDS:
        raise EventError(Reason.BAD_ATTRIBUTES, f"word is {show(content['word'])}; expected: {', '.join(WORDS)}")
    if len(content) > 2:
        raise EventError(Reason.BAD_ATTRIBUTES, f"NOTE has {', '.join(content)[:100]}; expected: opened, word")
    try:
        return content | {"opened": FIELD["time"].checked(content["opened"])}
    except EventError as error:
        raise EventError(Reason.BAD_ATTRIBUTES, f"opened: {error}") from None


def _encoded(name: str, value: dict[str, Any]) -> bytes:
    """Return an object as JSON. Raise EventError (bad-value) if it is too long."""
    text = msgspec.json.encode(value, order="deterministic")
    check_object_bytes(name, len(text))
    return text


def _checked(fields: msgspec.Struct) -> dict[str, Any]:
    """Return all fields by name, checked, the time in microseconds, None if absent. Raise EventError."""
    for field in _ALWAYS_NEEDED:
        if getattr(fields, field.name) is None:
            raise EventError(Reason.MISSING_FIELD, f"{field.name} is missing; expected: {field.right}")
    values: dict[str, Any] = {}
    for field in FIELDS:
        value = getattr(fields, field.name)
        is_unknown = field.name == "plan" and values["op"] != "PLAN"  # to the fast ways it is in every other event
        values[field.name] = None if value is None or is_unknown else field.checked(value)
    op = str(values["op"])
    for field in _NEEDED[op]:
        if values[field.name] is None:
            raise EventError(
                Reason.MISSING_FIELD, f"{field.name} is missing, which {op} needs; expected: {field.right}"
            )
    if values["msgid"] is not None and values["count"] not in (None, 1):
        raise EventError(Reason.BAD_VALUE, f"count is {values['count']} beside a msgid; expected: 1, or no count")
    return values


def _silent_s(values: dict[str, Any]) -> bytes | None:
    """Return the silence that a HEARTBEAT reports as JSON; None if it reports none. Raise EventError."""
    measured = values["measured"] or {}
    if measured.get(SILENT.name) is None:
        return None
    check_silent(measured)
    if values["store"] is None:
        raise EventError(Reason.MISSING_FIELD, "store is missing, which measured.silent_s needs; expected: a string")
    return msgspec.json.encode({SILENT.name: measured[SILENT.name]})


def _row(values: dict[str, Any], route: int) -> Row:
    flags = (
        (FLAG_PERSISTENT if values["persistent"] else 0)
        | (FLAG_DIRECT if values["direct"] else 0)
        | (FLAG_HAS_MSGID if values["msgid"] is not None else 0)
        | (FLAG_HAS_UOW if values["uow"] is not None else 0)
    )
    return (
        values["time"],
        key_of(values["msgid"]),
        key_of(values["uow"]),
        -1 if values["seq"] is None else values["seq"],
        route,
        values["length"] or 0,
        values["count"] or 1,
        values["reason"] or 0,
        OPS.index(values["op"]),
        values["priority"] or 0,
        flags,
        0,
        ceil(round(values["expiry"] * 10, 6)) if values["expiry"] is not None else 0,
    )
