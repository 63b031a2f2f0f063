"""Measurements of stores with the facts of their queues, names as sources write them, and levels as RMF has them.

- Measurements are made from answers and records of queue managers. Each queue manager knows its own handles of a shared
  queue only: those of the members of its group are summed.
- Names are those of stores and their queue managers, command prefixes and message ids.
- Levels of structures and coupling facilities are in SMF 74 or printed: one measurement an interval.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, TypedDict, cast

from twin.base.units import as_text
from twin.estate import Estate, group_prefix
from twin.estate.model import ADMINISTRATION, structures_of
from twin.events import Event, Measured
from twin.events.fields import MAX_ASKED, MAX_QUEUES, MEASURED_QUEUE, QueueMeasured
from twin.feeds.intake import Complaint, Intake, Item, PassedOver, find_contradiction, is_passed_over
from twin.feeds.protocol import FeedOptions
from twin.feeds.smf_layout import (
    BLOCK,
    FacilityRecord,
    FacilityStorage,
    StructureRequests,
    StructureScm,
    is_list,
    type_of,
)

AHEAD_US = 60_000_000  # by which a clock may be ahead of that of the collector [assumed]
_SUMMED = ("getters", "putters", "uncommitted")  # over the members of a group
_LATEST = ("oldest_s", "last_get", "last_put")  # the largest of those of the members
_MEMBER_US = 15 * 60_000_000  # for which the handles of another member count as of its last answer [assumed]
_MAX_MEASURES = 100_000  # stores and times that wait for the end of a page or a round
_MAX_STATUSES = 500_000  # states of queues, likewise

_Key = tuple[int, str, str]  # time, queue manager, store


class QueueStatus(TypedDict, total=False):
    """State of a queue as one queue manager shows it; absent: not known. Times are microseconds since 1970."""

    depth: int
    getters: int
    putters: int
    oldest_s: int
    uncommitted: int
    last_get: int
    last_put: int
    has_facts: bool  # True if it shows more than the depth, even if that is not known


class Measurements:
    """Measurements and states of queues of one page, or of the pages of a round, by the estate of the intake."""

    def __init__(self, intake: Intake) -> None:
        # True while answers have the time of their text, for lack of their own: then two that differ are two
        # measurements, in their order
        self.is_timeless = False
        self.twice: set[str] = set()  # stores that were measured again at such a time
        self._intake = intake
        self._latest: dict[tuple[str, str], dict[str, tuple[int, QueueStatus]]] = {}  # by store and queue, and member
        self.free_bytes: dict[str, int] = {}  # free space of the file system with the queue files, by queue manager
        self._measured: dict[_Key, Measured] = {}
        self._statuses: dict[_Key, dict[str, QueueStatus]] = {}  # by queue
        self._status_count = 0

    @property
    def is_full(self) -> bool:
        """True if no more are kept."""
        return len(self._measured) >= _MAX_MEASURES or self._status_count >= _MAX_STATUSES

    @property
    def answering(self) -> set[str]:
        """Queue managers that have shown the state of a queue."""
        return {qmgr for _, qmgr, _ in self._statuses}

    def add(self, qmgr: str, time: int, store: str, measured: Measured) -> None:
        """Add fields to the measurement of a store."""
        key = (time, qmgr, store)
        while self.is_timeless and _differ(self._measured.get(key, {}), measured):
            self.twice.add(store)
            key = (key[0] + 1, qmgr, store)
        if key in self._measured or len(self._measured) < _MAX_MEASURES:
            _merge(self._measured.setdefault(key, {}), measured)

    def add_status(self, qmgr: str, time: int, queue: str, status: QueueStatus, *, is_own: bool = False) -> None:
        """Add the state of a queue, or count it as unknown. `is_own`: it is a store, its depth is measured by `add`."""
        estate = self._intake.estate
        if estate is None or (is_own and "has_facts" not in status):
            return
        route = estate.queue_routes.get((qmgr, queue))
        store: str | None
        if route is not None:
            store, queue = estate.routes[route].store, str(estate.routes[route].queue)
        elif is_own:
            return
        else:
            note_unknown_queue(self._intake, qmgr, time, queue)
            store = self._place_of(qmgr, queue)
        if store is not None and self._status_count < _MAX_STATUSES:
            self._status_count += 1
            while self.is_timeless and _differ(self._statuses.get((time, qmgr, store), {}).get(queue, {}), status):
                self.twice.add(store)
                time += 1
            self._statuses.setdefault((time, qmgr, store), {}).setdefault(queue, {}).update(status)

    def _place_of(self, qmgr: str, queue: str) -> str | None:
        """Return the store of a queue that the estate lacks, by its definition; None: there is none to take it.

        A definition that was not seen is noted in the intake, for a source that can ask for it.
        """
        estate, facts, group = self._intake.estate, self._intake.facts, self._intake.group_of(qmgr)
        if estate is None or is_passed_over(queue):
            return None
        for owner in filter(None, (group, qmgr)):
            structure = facts.value("queue", f"{owner}/{queue}", "structure")
            storage_class = facts.value("queue", f"{owner}/{queue}", "storage_class")
            page_set = facts.value("storage_class", f"{owner}/{storage_class}", "page_set")
            if structure is not None or page_set is not None:
                store = f"{owner}/{structure}" if structure is not None else f"{owner}/PS{page_set:02d}"
                return store if store in estate.stores else None
        self._intake.note_unplaced(qmgr, queue)
        return None

    def events(self, *, is_round: bool = False, is_end: bool = True) -> Iterator[Event]:
        """Yield the measurements added so far, by time, and forget them.

        The depths of queues are the messages of a store if each of its queues was shown. In a round all answers about a
        store are one measurement, of the time of the latest; otherwise those of one time are, and the handles of other
        members are as of their last answers. Before the end what is shown of queues waits until all queues of the store
        were shown.
        """
        waiting = {} if is_end else self._waiting()
        for key in waiting:
            del self._statuses[key]
        answers: dict[tuple[int, str], list[_Key]] = {}
        for key in sorted(self._measured.keys() | self._statuses.keys()):
            answers.setdefault((0 if is_round else key[0], key[2]), []).append(key)
        events = [event for keys in answers.values() for event in self._events_of(keys, is_round=is_round)]
        self._measured, self._statuses, self._status_count = {}, waiting, sum(map(len, waiting.values()))
        yield from sorted(events, key=lambda event: event["time"])

    def _waiting(self) -> dict[_Key, dict[str, QueueStatus]]:
        """Return the states of queues of the latest answers, of which the store has more queues."""
        estate, latest = self._intake.estate, max((key[0] for key in self._statuses), default=0)
        return {
            key: own
            for key, own in self._statuses.items()
            if key[0] == latest and estate is not None and not set(estate.stores[key[2]].queues) <= own.keys()
        }

    def _events_of(self, keys: list[_Key], *, is_round: bool) -> Iterator[Event]:
        """Yield the measurement that answers about one store are, and further ones of its other queues."""
        estate, store = self._intake.estate, keys[0][2]
        config = None if estate is None else estate.stores.get(store)
        measured: Measured = {}
        queues: dict[str, dict[str, QueueStatus]] = {}  # by queue and queue manager, the latest answer last
        for key in keys:
            _merge(measured, self._measured.get(key, {}))
            for queue, status in self._statuses.get(key, {}).items():
                by_qmgr = queues.setdefault(queue, {})
                by_qmgr[key[1]] = by_qmgr.pop(key[1], {}) | status
        depths = {queue: depth for queue, own in queues.items() if (depth := _depth(own)) is not None}
        is_sum = config is not None and bool(depths) and set(config.queues) <= depths.keys()
        if config is not None and is_sum:
            measured["messages"] = sum(depths.values())
        facts = {queue: own for queue, own in queues.items() if any("has_facts" in status for status in own.values())}
        if not is_round:
            facts = {queue: self._with_members(store, queue, keys[-1][0], own) for queue, own in facts.items()}
        used = [
            key
            for key in keys
            if key in self._measured or (is_sum and key in self._statuses) or facts.keys() & self._statuses[key].keys()
        ]
        if not used:
            return
        time, qmgr, _ = used[-1]
        if "file_bytes" in measured and qmgr in self.free_bytes:  # a file grows to its maximum if there is room
            room = measured["file_bytes"] + self.free_bytes[qmgr]
            measured["file_max_bytes"] = min(room, measured.get("file_max_bytes", room))
        members = () if config is None else config.queue_managers
        yield from measures_of({"time": time, "qmgr": qmgr, "op": "MEASURE", "store": store}, facts, members, measured)

    def _with_members(
        self, store: str, queue: str, time: int, statuses: dict[str, QueueStatus]
    ) -> dict[str, QueueStatus]:
        """Return the state of a queue with what other members have shown of it last, and keep it for these."""
        latest = self._latest.setdefault((store, queue), {})
        others = {
            qmgr: status
            for qmgr, (before, status) in latest.items()
            if qmgr not in statuses and 0 <= time - before <= _MEMBER_US
        }
        for qmgr, status in statuses.items():
            own = status.copy()
            own.pop("depth", None)  # that of the queue, of its latest answer
            latest[qmgr] = time, own
        return {**others, **statuses}


def measures_of(
    base: Event, facts: Mapping[str, Mapping[str, QueueStatus]], members: Iterable[str], measured: Measured
) -> Iterator[Event]:
    """Yield the measurement of a store with the facts of its queues, and further ones of more than `MAX_QUEUES`."""
    ordered = sorted(facts)
    for start in range(0, max(1, len(ordered)), MAX_QUEUES):
        names = ordered[start : start + MAX_QUEUES]
        asked = {name for queue in names for name, own in facts[queue].items() if {"getters", "putters"} & own.keys()}
        if names:
            measured["queues"] = [_queue_measured(queue, facts[queue], members) for queue in names]
        if asked:
            measured["asked"] = sorted(asked)[:MAX_ASKED]
        yield {**base, "measured": measured}
        measured = {}


def note_unknown_queue(intake: Intake, qmgr: str, time: int, queue: str) -> None:
    """Count a queue that the estate lacks; a shared one once, for the first member. Without estate none is unknown."""
    group = intake.group_of(qmgr)
    if intake.estate is None:
        return
    if group is not None and intake.facts.value("queue", f"{group}/{queue}", "structure"):
        qmgr = min(members_of(intake.estate, group), default=qmgr)
    intake.note_unknown(qmgr, time, queue=queue)


def members_of(estate: Estate, group: str) -> list[str]:
    """Return the queue managers of a queue-sharing group in an estate, sorted."""
    return [name for name, config in estate.queue_managers.items() if config.queue_sharing_group == group]


def _merge(into: Measured, measured: Measured) -> None:
    datasets = {**into.get("smds", {}), **measured.get("smds", {})}
    into.update(measured)
    if datasets:
        into["smds"] = datasets


def _differ(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return True if a field of both has two values; those of `smds` are by queue manager."""
    common = before.keys() & after.keys()
    return any(
        _differ(before[name], after[name]) if isinstance(after[name], Mapping) else before[name] != after[name]
        for name in common
    )


def _depth(statuses: Mapping[str, QueueStatus]) -> int | None:
    """Return the depth of a queue in the latest answer that shows it: it is the same in all members of a group."""
    return next((status["depth"] for status in reversed([*statuses.values()]) if "depth" in status), None)


def _queue_measured(queue: str, statuses: Mapping[str, QueueStatus], members: Iterable[str]) -> QueueMeasured:
    """Return the facts of a queue over all that have answered; with a member missing, a sum of 0 is not known."""
    facts: dict[str, Any] = {"name": queue}
    depth = _depth(statuses)
    if depth is not None:
        facts["depth"] = depth
    for name in _SUMMED:
        values = _values(name, statuses)
        total = sum(values)
        is_known = bool(values) and all(name in statuses.get(member, {}) for member in members)
        if (total or is_known) and total <= MEASURED_QUEUE[name]:
            facts[name] = total
    for name in _LATEST:
        values = _values(name, statuses)
        if values:
            facts[name] = max(values) if name in MEASURED_QUEUE else as_text(max(values))
    return cast("QueueMeasured", facts)


def _values(name: str, statuses: Mapping[str, QueueStatus]) -> list[int]:
    return [cast("Mapping[str, int]", status)[name] for status in statuses.values() if name in status]


# --- names ------------------------------------------------------------------------------------------------------------
# A command prefix is the word behind the id of a message of MQ for z/OS. It has one to eight characters, of which the
# first may be any of . ( * & + - | ! ; $ ) % _ ? ' " = @ # and those that code pages make of them, such as ] and [
# [IBM: MQ 9.4, Defining command prefix strings]. It often ends with the name of its queue manager, of one to four
# capitals and digits, but need not. Names of modules have eight letters.
#
# A message id has 24 bytes; an event has 48 lower-case hexadecimal digits. Kafka Connect writes the header
# JMS_IBM_MQMD_MsgId as text of hexadecimal digits with or without `ID:`, since 2026 as bytes: raw (ByteArrayConverter)
# or in Base64 (SimpleHeaderConverter) [IBM: kafka-connect-mq-source, pull request 183].

_CONNECTOR = "CSQE"  # CSQE, group, queue manager, 02; both names padded to 4 characters [IBM: MQ, message CSQE005I]
_PAD = "@"
_NAME = re.compile(r"[A-Z][A-Z0-9]{0,3}")
_MARKS = re.compile(r"^[^A-Za-z0-9]+|[^A-Za-z0-9]+$")
_PAIR = re.compile(r"[A-Z][A-Z0-9]{1,19}\(")  # KEY(VALUE), where a message has no prefix
_NO_PREFIX = re.compile(r"[A-Z]+=|CSQ[A-Z0-9]{5}$|.*[a-z]")  # COUNT=, a module, a word of the text
ID_BYTES = 24  # MQMD MsgId [IBM: MQ, MQMD]
ID_DIGITS = 2 * ID_BYTES
_BASE64_LENGTH = 4 * ID_BYTES // 3
_NO_ID = "0" * ID_DIGITS  # MQMI_NONE


def structures_by_policy_name(estate: Estate | None) -> dict[str, str]:
    """Return the store names of structures by their z/OS names: the group, padded to 4 with @, and the name in MQ."""
    names = {}
    for store in structures_of(estate.stores.values()) if estate is not None else ():
        names[store.name.replace("/", "")] = store.name
        names[store.policy_name] = store.name
    return names


def store_of_policy_name(name: str, groups: Iterable[str]) -> str | None:
    """Return the store name of a structure of one of the groups by its z/OS name; None if it is of no such group."""
    structure = name[len(_PAD * 4) :]
    if not structure:
        return None
    return next((f"{group}/{structure}" for group in groups if name.startswith(group_prefix(group))), None)


def groups_of(estate: Estate | None) -> set[str]:
    """Return the queue-sharing groups of an estate."""
    configs = estate.queue_managers.values() if estate is not None else ()
    return {config.queue_sharing_group for config in configs if config.queue_sharing_group}


def parse_connector(text: str) -> tuple[str, str] | None:
    """Return (group, queue manager) of a connector's name; None if it is not a connector of MQ."""
    if len(text) < 12 or not text.startswith(_CONNECTOR):
        return None
    group, qmgr = text[4:8].rstrip(_PAD + " "), text[8:12].rstrip(_PAD + " ")
    return (group, qmgr) if group and qmgr else None


def member_of(estate: Estate | None, store: str) -> str | None:
    """Return the first queue manager of a store; None if the estate lacks it."""
    config = estate.stores.get(store) if estate is not None else None
    return min(config.queue_managers, default=None) if config is not None else None


def reporter_of(estate: Estate | None, store: str, qmgr: str) -> str:
    """Return a queue manager that may report a store, for data of z/OS that name none (`qmgr` "") or another one."""
    config = estate.stores.get(store) if estate is not None else None
    return qmgr if config is None or qmgr in config.queue_managers else min(config.queue_managers, default=qmgr)


def without_measurement(intake: Intake, name: str, time: int) -> Iterator[PassedOver]:
    """Count a coupling facility that is not measured: one that the estate lacks, or has no structure on."""
    if intake.estate is not None and name in intake.estate.stores:
        yield PassedOver("coupling facility without a structure of the estate", name)
    elif intake.estate is not None:
        intake.note_unknown("", time, store=name)


def without_prefix(head: str) -> tuple[str, str]:
    """Return the command prefix of a message, "" if it has none, and the rest of its first line."""
    prefix, _, rest = head.partition(" ")
    if _PAIR.match(prefix) or _NO_PREFIX.match(prefix):
        return "", head
    return prefix, rest


class CommandPrefixes:
    """Queue managers by command prefix: those that the user names, that the text shows, else those of the estate."""

    def __init__(self, estate: Estate | None, options: FeedOptions) -> None:
        self._estate = estate
        self._known = dict(options.prefixes)
        self._assumed: dict[str, str] = {}  # queue manager of a prefix that nothing has shown

    def learn(self, prefix: str, qmgr: str, place: str) -> Iterator[Complaint]:
        """Keep the queue manager of a prefix that a message shows. What the user says counts more."""
        if not prefix or not qmgr or prefix in self._known:
            return
        self._known[prefix] = qmgr
        earlier = self._assumed.get(prefix, qmgr)
        if earlier != qmgr:
            text = f"the command prefix {prefix} was taken for {earlier} before; expected: --prefix '{prefix}={qmgr}'"
            yield Complaint("no-prefix", place, text)

    def qmgr_of(self, prefix: str, current: str | None, place: str) -> Generator[Complaint, None, str | None]:
        """Return the queue manager of a prefix; None, with a complaint, if it is not known."""
        if not prefix:
            return current
        if prefix in self._known:
            return self._known[prefix]
        estate = self._estate
        name = _MARKS.sub("", prefix)
        if estate is not None:
            known = next((own for own in (prefix, name) if own in estate.queue_managers), current)
            if known:
                return known
        elif not _NAME.fullmatch(name) and current:
            return current
        example = min(estate.queue_managers, default="QM01") if estate is not None else "QM01"
        is_name = _NAME.fullmatch(name) is not None
        if (estate is not None or not is_name) and prefix not in self._assumed:
            what = f"is taken for {name}, which the estate lacks" if is_name else "names no queue manager"
            text = f"the command prefix {prefix} {what}; expected: --prefix '{prefix}={example}'"
            yield Complaint("no-prefix", place, text)
        self._assumed[prefix] = name if is_name else ""
        return name if is_name else None


def is_no_message_id(text: str) -> bool:
    """Return True for MQMI_NONE as digits: the message had no id."""
    return text.removeprefix("ID:") == _NO_ID


def message_id(value: str | bytes) -> str | None:
    """Return a message id as events have it; None for MQMI_NONE and for anything else than a message id. `value`: 24
    bytes, 48 hexadecimal digits with or without `ID:`, or 32 characters of Base64; text in quotes likewise. Raw bytes
    that were decoded with `surrogateescape` are bytes again.
    """
    raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    if len(raw) != ID_BYTES:
        text = raw.decode("latin-1").strip().strip('"').removeprefix("ID:")
        try:
            if len(text) == ID_DIGITS:
                raw = binascii.unhexlify(text)
            elif len(text) == _BASE64_LENGTH:
                raw = base64.b64decode(text, validate=True)
            else:
                return None
        except ValueError:
            return None
    digits = raw.hex()
    return None if digits == _NO_ID or len(raw) != ID_BYTES else digits


# --- levels as RMF has them -------------------------------------------------------------------------------------------
# Each system of a sysplex reports the same structures, with the same levels; structures of duplexing are in two
# coupling facilities. What was reported first of an interval counts.

_PREFIX = 4  # characters of a queue-sharing group in a z/OS structure name
_MAX_STORES = 10_000
_SEND = "please send the file"


class FacilityLevels:
    """Measurements of structures by their z/OS names, and of their coupling facilities."""

    def __init__(self, intake: Intake, source: str) -> None:
        """Begin without any. `source`: the data, such as "SMF 74"."""
        self._intake = intake
        self._source = source
        self._stores = structures_by_policy_name(intake.estate)
        self._ends: dict[str, int] = {}  # end of the last interval, by store
        self._complained: set[str] = set()

    def record(self, record: FacilityRecord) -> Iterator[Item]:
        """Yield the measurements of a record of SMF 74 subtype 4."""
        structures = [(own, scm) for own, scm in record.structures if is_list(own)]
        for own, _ in record.structures:
            if not is_list(own):
                yield PassedOver("structure of other types", type_of(own))
        self.note_names(own.name for own, _ in structures)
        for own, scm in structures:
            measured, facts = _structure(own, scm)
            if not own.is_sound:
                text = (
                    f"{own.name}: elements and size are not where they were assumed, only its entries are read; {_SEND}"
                )
                yield from self._once(own.name, Complaint("inconsistent", record.place, text))
            facts["coupling_facility"] = record.facility or None
            yield from self.structure(own.name, measured, record.interval, record.place, facts)
        if record.is_scm_lost:
            text = f"SCM of structures is not where it was assumed, and is left out; {_SEND}"
            yield from self._once("", Complaint("inconsistent", record.place, text))
        if record.storage is not None and record.facility:
            yield from self._facility(record.facility, record.storage, record)

    def note_names(self, names: Iterable[str]) -> None:
        """Keep the groups whose administration structures are among some, where nothing else names any group."""
        facts = self._intake.facts
        if self._intake.estate is not None or any(facts.section("queue_sharing_group")) or facts.ungrouped:
            return
        if not any(facts.section("queue_manager")):
            facts.memberless |= {name[:_PREFIX].rstrip("@") for name in names if name[_PREFIX:] == ADMINISTRATION}

    def structure(
        self, name: str, measured: Measured, interval: tuple[int, int], place: str, facts: Mapping[str, Any]
    ) -> Iterator[Item]:
        """Yield the measurement of a structure."""
        store = self._stores.get(name) or store_of_policy_name(name, self._groups())
        if store is None:
            self._intake.facts.unplaced.add(name[:_PREFIX])
            yield PassedOver("structure of no group of the estate", name)
            return
        self._intake.facts.add("structure", store, f"{self._source}, {place}", **facts)
        if wrong := find_contradiction(measured, store, place):
            yield wrong
            return
        yield from self._event(store, measured, interval)

    def _facility(self, name: str, storage: FacilityStorage, record: FacilityRecord) -> Iterator[Item]:
        size, scm = storage.total * BLOCK, storage.scm_total * BLOCK
        free, scm_free = storage.free * BLOCK, storage.scm_free * BLOCK
        self._intake.facts.add("coupling_facility", name, f"{self._source}, {record.place}", size=size, scm=scm or None)
        shares = {"free storage": {"used": free, "max": size}, "free SCM": {"used": scm_free, "max": scm}}
        if wrong := find_contradiction(shares, name, record.place):
            yield wrong
            return
        measured: Measured = {"storage_free": free}
        if scm:
            measured |= {"scm_total": scm, "scm_used": scm - scm_free}
        yield from self._event(name, measured, record.interval)

    def _event(self, store: str, measured: Measured, interval: tuple[int, int]) -> Iterator[Item]:
        """Yield a measurement, the first of its store and interval."""
        if self._ends.get(store, 0) >= interval[1] or (store not in self._ends and len(self._ends) >= _MAX_STORES):
            yield PassedOver("report of an earlier interval", store)
            return
        self._ends[store] = interval[1]
        qmgr = member_of(self._intake.estate, store)
        if qmgr is None and "/" not in store:
            yield from without_measurement(self._intake, store, interval[1])
            return
        self._intake.cover(self._source, qmgr or "", store, interval)
        yield {"time": interval[1], "qmgr": qmgr or "", "op": "MEASURE", "store": store, "measured": measured}

    def _groups(self) -> set[str]:
        facts = self._intake.facts
        return (
            groups_of(self._intake.estate) | {key for key, _ in facts.section("queue_sharing_group")} | facts.memberless
        )

    def _once(self, subject: str, complaint: Complaint) -> Iterator[Complaint]:
        if subject not in self._complained and len(self._complained) < _MAX_STORES:
            self._complained.add(subject)
            yield complaint


def _structure(own: StructureRequests, scm: StructureScm | None) -> tuple[Measured, dict[str, Any]]:
    measured: Measured = {"ents_max": own.entries_max, "ents_used": own.entries}
    facts: dict[str, Any] = {}
    if own.is_sound:
        measured |= {"size": own.size * BLOCK, "elems_max": own.elements_max, "elems_used": own.elements}
        facts["size"] = own.size_max * BLOCK
    if scm is not None and scm.max:
        measured["scm"] = {"max": scm.max * BLOCK, "used": scm.used * BLOCK}
        facts["scm_max_size"] = scm.max * BLOCK
    return measured, facts
