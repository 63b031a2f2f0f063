"""Levels of structures and coupling facilities as RMF has them, in SMF 74 or printed: one measurement an interval.

Each system of a sysplex reports the same structures, with the same levels; structures of duplexing are in two coupling
facilities. What was reported first of an interval counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from twin.estate.model import ADMINISTRATION
from twin.events import Measured
from twin.feeds.intake import Complaint, Intake, Item, PassedOver, find_contradiction
from twin.feeds.names import groups_of, member_of, store_of_policy_name, structures_by_policy_name, without_measurement
from twin.feeds.smf74 import BLOCK, FacilityRecord, FacilityStorage, StructureRequests, StructureScm, is_list, type_of

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
