"""Facts about the estate that feeds have seen: sections and attributes as in the estate file (docs/estate.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from twin.base.units import format_size

MAX_SEEN = 100_000  # objects
MAX_CONFLICTS = 100

_OF_QUEUES = frozenset(("queue", "queue_file"))
_DYNAMIC = re.compile(r"[0-9A-F]{16}\Z")  # what MQ puts in place of the * of DynamicQName, behind CSQ. or AMQ.
MEASURED = ("CFSTATUS", "CFACT", "CSQE280I", "SMF 74", "RMF")  # sources of what an allocated structure or data set has
_SEEN_TO_GROW = frozenset(("size", "blocks_total"))  # measured at several times; the largest counts in any order
_COMPARED = frozenset(("size", "init_size", "scm_max_size"))


def is_dynamic(queue: str) -> bool:
    """Return True for the name of a dynamic queue, such as CSQ.E2FB1B9510533200 [IBM: MQ, MQOD DynamicQName]."""
    return _DYNAMIC.search(queue) is not None


@dataclass(frozen=True, slots=True)
class Fact:
    """A value of an attribute, and where it was seen."""

    value: Any
    source: str


def _is_measured(fact: Fact) -> bool:
    return fact.source.startswith(MEASURED)


@dataclass(slots=True)
class EstateFacts:
    """Objects by section and key, such as `page_set`, `QM01/4`, each with its attributes. The latest value counts."""

    objects: dict[tuple[str, str], dict[str, Fact]] = field(default_factory=dict)
    active_policy: str | None = None  # name of the CFRM policy that D XCF,POLICY shows
    allocated: set[str] = field(default_factory=set)  # structures whose size was seen allocated
    ungrouped: set[str] = field(default_factory=set)  # queue managers with shared stores, whose group was not seen
    memberless: set[str] = field(default_factory=set)  # queue-sharing groups of which no queue manager was seen
    unplaced: set[str] = field(default_factory=set)  # first four letters of structures of no known group
    # Sizes of structures that two sources show differently: section, key, attribute, earlier and later fact.
    conflicts: list[tuple[str, str, str, Fact, Fact]] = field(default_factory=list)
    _keys: dict[str, list[str]] = field(default_factory=dict, repr=False)  # of the objects of a section

    def add(self, section: str, key: str, source: str, **attributes: Any) -> None:
        """Keep facts about an object of a section and key of the estate file. An attribute that is None is absent."""
        if section in _OF_QUEUES and is_dynamic(key):
            return
        if (section, key) not in self.objects:
            if len(self.objects) >= MAX_SEEN:
                return
            self.objects[section, key] = {}
            self._keys.setdefault(section, []).append(key)
        facts = self.objects[section, key]
        if section == "structure" and "size" in attributes and source.startswith(MEASURED):
            self.allocated.add(key)
        for name, value in attributes.items():
            if value is not None:
                fact = Fact(value, source)
                before = facts.get(name)
                if before is not None and name in _SEEN_TO_GROW and _is_measured(before) and _is_measured(fact):
                    facts[name] = max(before, fact, key=lambda own: own.value)
                    continue
                if before is not None and before.value != value and name in _COMPARED and section == "structure":
                    self._note_conflict(section, key, name, before, fact)
                facts[name] = fact

    def _note_conflict(self, section: str, key: str, name: str, before: Fact, after: Fact) -> None:
        if len(self.conflicts) < MAX_CONFLICTS:
            self.conflicts.append((section, key, name, before, after))

    def add_member(self, group: str, qmgr: str, source: str) -> None:
        """Keep that a queue manager is a member of a queue-sharing group."""
        members = self.value("queue_sharing_group", group, "queue_managers") or []
        self.add("queue_sharing_group", group, source, queue_managers=sorted({*members, qmgr}))

    def value(self, section: str, key: str, attribute: str) -> Any:
        """Return the latest value of an attribute, or None."""
        fact = self.objects.get((section, key), {}).get(attribute)
        return None if fact is None else fact.value

    def group_of(self, qmgr: str) -> str | None:
        """Return the queue-sharing group of which a queue manager was seen as a member, or None."""
        for key, facts in self.section("queue_sharing_group"):
            if "queue_managers" in facts and qmgr in facts["queue_managers"].value:
                return key
        return None

    def section(self, section: str) -> Iterator[tuple[str, dict[str, Fact]]]:
        """Yield (key, facts) of the objects of a section, sorted by key."""
        for key in sorted(self._keys.get(section, ())):
            yield key, self.objects[section, key]

    def line_for(
        self, qmgr: str, queue: str | None, store: str | None, platform: str | None = None, group: str | None = None
    ) -> str:
        """Return the lines of an estate file, joined by blanks, that would take events of a name. `qmgr` is "" if not
        known; without `queue` it is a store's name, or the queue manager's; `platform` and `group` None: as they were
        seen.
        """
        if queue is None:
            return self._store_line(qmgr, store)
        if not qmgr:
            return f'[queue."OWNER/{queue}"] structure = "..."'
        for owner in (group or self.group_of(qmgr), qmgr):
            facts = self.objects.get(("queue", f"{owner}/{queue}"))
            if owner and facts:
                values = " ".join(f"{name} = {json.dumps(fact.value)}" for name, fact in sorted(facts.items()))
                return f'[queue."{owner}/{queue}"] {values}'
        if (platform or self.value("queue_manager", qmgr, "platform")) == "distributed":
            return f'[queue_file."{qmgr}/{queue}"]'
        return f'[queue."{qmgr}/{queue}"] storage_class = "..."'

    def _store_line(self, qmgr: str, store: str | None) -> str:
        if store is None:
            return f"[queue_manager.{qmgr}]"
        owner, _, name = store.partition("/")
        if not name:
            return f"[coupling_facility.{owner}] {self._size('coupling_facility', owner)}"
        if name.startswith("PS") and name[2:].isdigit():
            key = f"{owner}/{int(name[2:])}"
            pages = self.value("page_set", key, "pages")
            return f'[page_set."{key}"] pages = {"..." if pages is None else pages}'
        if owner == qmgr:
            return f'[queue_file."{store}"]'
        return f'[structure."{store}"] {self._size("structure", store)}'

    def _size(self, section: str, key: str) -> str:
        size = self.value(section, key, "size")
        return f'size = "{"..." if size is None else format_size(size)}"'
