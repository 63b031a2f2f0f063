"""Texts of commands and consoles: DISPLAY output of MQSC, DISPLAY USAGE, D XCF,STR, messages about structures.

The wrappings are those of `twin.feeds.console`. Real samples were seen of the frame of DISPLAY output, of page set
usage (CSQI010I), of the connect messages and of D XCF for a structure that is not allocated [published: IBM Washington
Systems Center, slides "MQ JES logs"]. The rows of the SMDS usage report (CSQE280I) and D XCF for an allocated structure
rest on documents only. IXC585E has two layouts: "ENTRIES: IN USE: 4874 TOTAL: 4874, 100% FULL" [IBM: IMS, CQS structure
full monitoring], and columns under SPACE USAGE, IN-USE, TOTAL and % [IBM: APAR PH39578]; D XCF has these columns, too
[assumed]. IXC586I says only that a structure is below its threshold again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime

from typing_extensions import override

from twin.capacity.page_sets import allocated_pages
from twin.estate import Structure
from twin.events import Event, Measured
from twin.events.measured import DataSetMeasured
from twin.feeds.console import RUNMQSC, Message, has_lines, messages
from twin.feeds.intake import Intake
from twin.feeds.mqsc_objects import MqscObjects
from twin.feeds.protocol import Feed, FeedOptions, Page
from twin.feeds.stores import groups_of, reporter_of, store_of_policy_name, structures_by_policy_name
from twin.units import as_datetime, parse_size

_PAIR = re.compile(r"([A-Z][A-Z0-9]{1,19})\(((?:'[^']*'|[^()'])*)\)")
_CONNECTOR = re.compile(r"CSQE(\S{4})(\S{4})[0-9]{2}\b")
_STRUCTURE = re.compile(r"Structure (\S+) connected as", re.IGNORECASE)
_COUNTS = re.compile(r"\b(ENTRIES|ELEMENTS): +(?:IN[ -]USE: *)?([0-9]+),? +(?:TOTAL: *)?([0-9]+),? +([0-9]+)")
_MONITORED = re.compile(r"STRUCTURE (\S+) IN COUPLING FACILITY")
_THRESHOLD = re.compile(r"THRESHOLD OF ([0-9]{1,3})%")
_BACK_BELOW_POINTS = 3  # percentage points below its threshold, of a structure of which IXC586I has no counts [assumed]
_SIZES = {"size": "POLICY SIZE", "init_size": "POLICY INITSIZE", "scm_max_size": "SCMMAXSIZE"}
_MAX_TEXT = 1 << 20  # characters of the details of one object


class DisplayFeed(Feed):
    """Reader of texts. State between pages: the complaints about times, and the stores above their threshold."""

    reads = "output of DISPLAY commands, or a log with messages of MQ, as text"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        """Start without input."""
        super().__init__(intake, options)
        self._complained: set[str] = set()
        self._objects = MqscObjects(intake)
        self._qmgr: str | None = options.qmgr
        self._above: dict[str, tuple[int, Measured]] = {}  # threshold and counts of IXC585E, by store without queues
        self._readers: dict[str, Callable[[Message, str, int, str], None]] = {
            "CSQI010I": self._page_sets,
            "CSQE280I": self._data_sets,
            "CSQE005I": self._connected,
            "IXL014I": self._connected,
            "IXC359I": self._structures,
            "IXC360I": self._policies,
            "IXC585E": self._above_threshold,
            "IXC586I": self._below_threshold,
            "AMQ8450I": self._details,
            "AMQ8409I": self._details,
            "AMQ8450": self._details,
            "AMQ8409": self._details,
            "AMQ8408I": self._details,
        }

    @override
    def take(self, page: Page) -> Iterator[Event]:
        """Yield the measurements of a text."""
        collected = page.time
        if not has_lines(page.data):
            text = "EBCDIC text without ends of lines or records of one length; expected: a transfer as text"
            self.intake.complain("no-lines", page.name, text)
        first_day = self._first_day(collected)
        for message in messages(page.data, first_day, self.options.zone or UTC):
            if message.id == RUNMQSC:
                self.object_count += 1
                self._qmgr = message.head
                continue
            reader = self._details if message.id.startswith("CSQM2") else self._readers.get(message.id)
            if reader is None:
                continue
            self.object_count += 1
            place = f"{page.name}, line {message.line}"
            time = message.time
            if time is None:
                self._complain_once("no-time", place, "the text has no times; that of its last change is taken")
                time = collected
            elif self.options.zone is None:
                self._complain_once("no-zone", place, "its times are local; they are taken as UTC. Expected: --zone")
            qmgr = self._qmgr_of(message)
            if qmgr is None or time is None:
                self._complain_once("no-qmgr", place, f"{message.id} names no queue manager; expected: --qmgr")
                continue
            try:
                reader(message, qmgr, time, place)
            except ValueError as error:
                self.intake.complain("bad-value", place, f"{message.id}: {error}; expected: the text of MQ or z/OS")
        yield from self._objects.measurements.events()

    def _first_day(self, collected: int | None) -> date:
        if self.options.date is not None:
            return date.fromisoformat(self.options.date)
        return datetime.now(UTC).date() if collected is None else as_datetime(collected).date()

    def _complain_once(self, code: str, place: str, text: str) -> None:
        if code not in self._complained:
            self._complained.add(code)
            self.intake.complain(code, place, text)

    def _qmgr_of(self, message: Message) -> str | None:
        """Return the queue manager of a message, by the command prefix that follows its id."""
        if not message.id.startswith("CSQ"):
            return self._qmgr or ("" if message.id.startswith("IX") else None)
        words = message.words
        if not words:
            return self._qmgr
        if words[0] in self.options.prefixes:
            return self.options.prefixes[words[0]]
        name = words[0].lstrip("+-/!?#$%&@*<>=:;_")
        estate = self.intake.estate
        if estate is not None and name not in estate.queue_managers and self._qmgr:
            return self._qmgr
        return name or self._qmgr

    # --- MQSC --------------------------------------------------------------------------------------------------------

    def _details(self, message: Message, qmgr: str, time: int, place: str) -> None:
        """Take the KEY(VALUE) pairs of a message; one that begins with the first keyword again is a further object."""
        lines = []
        for line in message.body:
            if line.startswith("END ") or line.endswith("COMMAND COMPLETION"):
                break
            lines.append(line)
        fields: dict[str, str] = {}
        for word, value in _PAIR.findall(_joined(lines)[:_MAX_TEXT]):
            if fields and word == next(iter(fields)):
                self._objects.take(qmgr, time, fields, place)
                fields = {}
            fields[word] = value.strip().strip("'").strip()
        if fields:
            self._objects.take(qmgr, time, fields, place)

    # --- usage -------------------------------------------------------------------------------------------------------

    def _page_sets(self, message: Message, qmgr: str, time: int, place: str) -> None:
        """Take page set usage: page set, pool, total, unused, persistent, nonpersistent, method, count, encrypted."""
        self.intake.facts.add("queue_manager", qmgr, place, platform="zos")
        for line in message.body:
            if line.startswith("End of page set report"):
                return
            words = line.removeprefix("_").split()
            if len(words) not in {8, 9} or not all(word.isdigit() for word in (*words[:6], words[7])):
                continue  # a heading, or a page set that is not online
            number, pool, total, unused, persistent, nonpersistent = map(int, words[:6])
            if number > 99 or unused + persistent + nonpersistent != total:
                text = f"page set {number} of {total} pages: {' '.join(words[3:6])}; expected: numbers of that sum"
                self.intake.complain("inconsistent", place, text)
                continue
            pages = allocated_pages(total)
            expand = words[6] if words[6] in {"USER", "SYSTEM", "NONE"} else None
            key = f"{qmgr}/{number}"
            self.intake.facts.add("page_set", key, place, pages=pages, buffer_pool=pool, expand=expand)
            measured: Measured = {
                "pages_total": total,
                "pages_unused": unused,
                "pages_persistent": persistent,
                "pages_nonpersistent": nonpersistent,
                "pages_used": persistent + nonpersistent,
                "expansions": int(words[7]),
            }
            self._objects.measurements.add(qmgr, time, f"{qmgr}/PS{number:02d}", measured)

    def _data_sets(self, message: Message, qmgr: str, time: int, place: str) -> None:
        """Take SMDS usage: structure, messages, total blocks, total data blocks, used data blocks, used part [assumed].

        The blocks of the space map, total less data blocks, count as used.
        """
        for line in message.body:
            words = line.removeprefix("_").split()
            if len(words) != 6 or not all(word.isdigit() for word in words[1:5]) or not words[5].endswith("%"):
                continue
            held, total, data, used = map(int, words[1:5])
            if not used <= data <= total:
                text = f"SMDS of {words[0]}: {total} blocks, {data} for data, {used} used; expected: none above another"
                self.intake.complain("inconsistent", place, text)
                continue
            store = self._objects.store_of(qmgr, words[0], place)
            if store is not None:
                dataset: DataSetMeasured = {"blocks_total": total, "blocks_used": used + total - data, "messages": held}
                self.intake.facts.add("structure", store, place, offload="SMDS")
                self.intake.facts.add("smds", f"{store}/{qmgr}", place)
                self._objects.measurements.add(qmgr, time, store, {"smds": {qmgr: dataset}})

    # --- names and sizes of structures -------------------------------------------------------------------------------

    def _connected(self, message: Message, _qmgr: str, _time: int, place: str) -> None:
        """Take the names of a connection: the connector is CSQE, the group, the queue manager and 02."""
        text = " ".join((message.head, *message.body[:4]))
        connector = _CONNECTOR.search(text)
        if connector is None:
            return
        group, qmgr = connector[1].rstrip("@"), connector[2].rstrip("@")
        self.intake.facts.add_member(group, qmgr, place)
        structure = _STRUCTURE.search(text)
        if structure is not None:
            self.intake.facts.add("structure", f"{group}/{structure[1]}", place)

    def _structures(self, message: Message, _qmgr: str, _time: int, place: str) -> None:
        """Take the rows of D XCF,STR: name, allocation date and time, state. One that is not allocated is reported."""
        for line in message.body:
            words = line.split()
            store = self._store_of_structure(words[0]) if words else None
            if store is None or words[-1] != "ALLOCATED":
                continue
            if words[-2] != "NOT":
                self.intake.facts.add("structure", store, place)
            elif self.intake.estate is not None and store in self.intake.estate.stores:
                self.intake.complain("not-allocated", place, f"{store} is in the estate and not allocated")

    def _policies(self, message: Message, qmgr: str, time: int, place: str) -> None:
        """Take the structures of D XCF,STR,STRNAME=: policy in force, first coupling facility, size and usage of each.

        [IBM: z/OS MVS System Messages, IXC360I]
        """
        structures: list[dict[str, str]] = []
        for line in message.body:
            word, colon, value = (part.strip() for part in line.partition(":"))
            if colon and word == "STRNAME":
                structures.append({})
            if colon and structures:
                structures[-1].setdefault(word, value)  # a pending policy repeats the names of the one in force
        for fields in structures:
            store = self._store_of_structure(fields["STRNAME"])
            if store is None:
                continue
            if "POLICY SIZE" in fields:
                self.intake.facts.add("structure", store, place, **_policy(fields))
            measured = _counts(f"{word}: {value}" for word, value in fields.items())
            if fields.get("ACTUAL SIZE", "N/A") != "N/A":
                measured["size"] = parse_size(fields["ACTUAL SIZE"].replace(" ", ""))
            self._take_counts(qmgr, time, store, measured, place)

    def _above_threshold(self, message: Message, qmgr: str, time: int, place: str) -> None:
        """Take the counts of IXC585E, in either layout."""
        text = " ".join((message.head, *message.body))
        monitored, threshold = _MONITORED.match(text), _THRESHOLD.search(text)
        store = None if monitored is None else self._store_of_structure(monitored[1])
        measured = _counts([text])
        if store is None or not measured:
            self._pass_over(message, monitored, has_counts=bool(measured))
        elif self._take_counts(qmgr, time, store, measured, place) and threshold and self._has_no_queues(store):
            self._above[store] = int(threshold[1]), measured

    def _below_threshold(self, message: Message, qmgr: str, time: int, place: str) -> None:
        """Take IXC586I of a structure that holds no queues, of which nothing else may say so: just below is the most.

        Of one with queues the twin counts what is in it.
        """
        monitored = _MONITORED.match(" ".join((message.head, *message.body)))
        store = None if monitored is None else self._store_of_structure(monitored[1])
        threshold, before = self._above.pop(store or "", (0, None))
        if store is None or before is None:
            self._pass_over(message, monitored, has_counts=False)
            return
        bound_pct = max(0, threshold - _BACK_BELOW_POINTS)
        measured = before.copy()
        if "ents_used" in before:
            measured["ents_used"] = min(before["ents_used"], before["ents_max"] * bound_pct // 100)
        if "elems_used" in before:
            measured["elems_used"] = min(before["elems_used"], before["elems_max"] * bound_pct // 100)
        self._take_counts(qmgr, time, store, measured, place)

    def _pass_over(self, message: Message, monitored: re.Match[str] | None, *, has_counts: bool) -> None:
        name = "structure of no group of the estate" if has_counts else "message without counts"
        self.intake.pass_over(name, message.id if monitored is None or not has_counts else monitored[1])

    def _has_no_queues(self, store: str) -> bool:
        config = None if self.intake.estate is None else self.intake.estate.stores.get(store)
        return isinstance(config, Structure) and not config.holds_queues

    def _take_counts(self, qmgr: str, time: int, store: str, measured: Measured, place: str) -> bool:
        """Add a measurement of a structure, if there is any; return False where it contradicts itself or is empty."""
        if not measured or not self.intake.is_consistent(measured, store, place):
            return False
        reporter = reporter_of(self.intake.estate, store, qmgr)
        self._objects.measurements.add(reporter, time, store, measured)
        return True

    def _store_of_structure(self, name: str) -> str | None:
        """Return the store of a z/OS structure name: group, padded with @ to 4 characters [assumed], and structure."""
        known = structures_by_policy_name(self.intake.estate).get(name)
        if known is not None:
            return known
        seen = {key for key, _ in self.intake.facts.section("queue_sharing_group")}
        return store_of_policy_name(name, seen | groups_of(self.intake.estate))


def _counts(lines: Iterable[str]) -> Measured:
    """Return the first counts of entries and elements of a text. ValueError: the percentage is of other counts."""
    measured: Measured = {}
    for kind, *numbers in _COUNTS.findall("\n".join(lines)):
        used, total, pct = map(int, numbers)
        if not total and not used:
            continue
        if abs(100 * used / max(1, total) - pct) > 1:
            raise ValueError(f"{kind}: {used} of {total}, {pct} %; expected: the percentage of these counts")
        if kind == "ENTRIES":
            measured.setdefault("ents_used", used)
            measured.setdefault("ents_max", total)
        else:
            measured.setdefault("elems_used", used)
            measured.setdefault("elems_max", total)
    return measured


def _policy(fields: Mapping[str, str]) -> dict[str, object]:
    """Return the attributes of a structure in IXC360I by name. ValueError: a size that is none."""
    sizes = {name: fields.get(word, "N/A") for name, word in _SIZES.items()}
    threshold, alter = fields.get("FULLTHRESHOLD", ""), fields.get("ALLOWAUTOALT")
    return {
        **{name: parse_size(size.replace(" ", "")) for name, size in sizes.items() if size != "N/A"},
        "full_threshold": int(threshold) if threshold.isdigit() else None,
        "allow_auto_alter": None if alter is None else alter == "YES",
        "coupling_facility": fields.get("CFNAME", "").partition(" ")[0] or None,
    }


def _joined(lines: list[str]) -> str:
    """Return lines as one text; a value that a line break has cut is put together."""
    depth = 0
    parts: list[str] = []
    for line in lines:
        parts.append(("" if depth > 0 else " ") + line)
        depth = max(0, depth + line.count("(") - line.count(")"))
    return "".join(parts)
