"""Objects and states that MQSC DISPLAY shows, as text or as JSON: measurements, and facts about the estate.

SIZEMAX of CFSTATUS is in KB, SIZEUSED a percentage of bytes; elements are not fields. CURFSIZE and CURMAXFS of QSTATUS
are in MB, rounded up. KEY(VALUE) pairs of text are one a line or side by side. Values are not quoted, so a description
may contain any brackets. A value ends at its own bracket; where they do not match, at the first one that another pair
follows. A value cut by the end of a line is joined.

Sources:
    [IBM: MQ 9.4, DISPLAY CFSTATUS, DISPLAY QSTATUS, DISPLAY QUEUE, DISPLAY CFSTRUCT, DISPLAY STGCLASS].
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any

from twin.events import Event, Measured
from twin.feeds.intake import Complaint, Intake, Item, Passed, contradicts
from twin.units import MIB, parse_size

NAME_GROUP = "DISPLAY QMGR QSGNAME in front of it, --group QSG1=QM01,QM02, or an estate that names it"
_CF_ATTRIBUTES = {
    "CFLEVEL": "cf_level",
    "OFFLD1TH": "offld1_th",
    "OFFLD2TH": "offld2_th",
    "OFFLD3TH": "offld3_th",
}
_CF_SIZES = {"OFFLD1SZ": "offld1_sz", "OFFLD2SZ": "offld2_sz", "OFFLD3SZ": "offld3_sz", "DSBLOCK": "ds_block"}
_WITH_QMNAME = frozenset(("CHANNEL", "CHSTATUS", "CLUSQMGR", "CONN", "SMDSCONN", "SUB"))  # other objects that have it
_LOCAL = frozenset(("QLOCAL", "QUEUE", "LOCAL"))  # types of a queue that holds messages
_MAX_MEASURES = 100_000  # stores and times that wait for the end of a page
_MAX_WAITING = 100  # stores and times of which the depths of some queues are known
_MAX_TEXT = 1 << 20  # characters of the details of one object

_KEY = re.compile(r"(?<![A-Z0-9])([A-Z][A-Z0-9]{1,19})\(")
_LEADING_KEY = re.compile(r"[\s_]*[A-Z][A-Z0-9]{1,19}\(")
_BRACKET = re.compile(r"[()]")
_END = re.compile(r"\)(?=\s*$|\s+[A-Z][A-Z0-9]{1,19}\()")

_Key = tuple[int, str, str]  # time, queue manager, store


class MqscObjects:
    """Objects of one page.

    Attributes:
        measurements: those that the objects show.
    """

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self.measurements = Measurements(intake)

    def take(self, qmgr: str, time: int, fields: Mapping[str, str], place: str) -> Iterator[Item]:
        """Take an object; yield what is wrong or passed over.

        Args:
            qmgr: queue manager that answered.
            time: time of the answer, microseconds since 1970.
            fields: values by keyword, in upper case.
            place: for complaints.
        """
        try:
            if fields.get("QSGDISP") == "GROUP":
                yield _passed(f"{next(iter(fields))} of QSGDISP(GROUP)")  # a master, of which members have copies
            elif "CFSTATUS" in fields:
                yield from self._structure_status(qmgr, time, fields, place)
            elif {"QUEUE", "QSTATUS", "QLOCAL"} & fields.keys():
                yield from self._queue(qmgr, time, fields, place)
            elif "CFSTRUCT" in fields and "SMDS" not in fields and "SMDSCONN" not in fields:
                yield from self._structure(qmgr, fields, place)
            elif "SMDS" in fields and "CFSTRUCT" in fields:
                yield from self._data_set(qmgr, fields, place)
            elif "STGCLASS" in fields and "PSID" in fields:
                key = f"{qmgr}/{fields['STGCLASS']}"
                self._intake.facts.add("storage_class", key, place, page_set=int(fields["PSID"]))
            elif "QMNAME" in fields and not _WITH_QMNAME & fields.keys():
                self._queue_manager(fields, place)
            elif fields:
                yield _passed(next(iter(fields)))
        except ValueError as error:
            yield Complaint("bad-value", place, f"{error}; expected: values as DISPLAY shows them")

    def store_of(self, qmgr: str, structure: str, place: str) -> Generator[Complaint, None, str | None]:
        """Return the store name of a structure, or None, with a complaint, if the group is not known."""
        group = self._intake.group_of(qmgr)
        if group is None:
            text = f"{structure} of {qmgr}, whose queue-sharing group is not known; expected: {NAME_GROUP}"
            yield Complaint("no-group", place, text)
            self._intake.facts.ungrouped.add(qmgr)
            return None
        return f"{group}/{structure}"

    def _structure_status(self, qmgr: str, time: int, fields: Mapping[str, str], place: str) -> Iterator[Item]:
        if fields.get("TYPE") == "CONNECT" or "QMNAME" in fields:
            group = self._intake.group_of(qmgr)
            if group and fields.get("QMNAME"):
                self._intake.facts.add_member(group, fields["QMNAME"], place)
            return
        if not {"ENTSMAX", "ENTSUSED"} & fields.keys():
            yield _passed(f"CFSTATUS {fields.get('CFTYPE') or fields.get('TYPE', 'without ENTSMAX')}")
            return
        store = yield from self.store_of(qmgr, fields["CFSTATUS"], place)
        if store is None:
            return
        measured: Measured = {}
        if fields.get("ENTSMAX", "").strip():
            measured["ents_max"] = _number(fields["ENTSMAX"])
        if fields.get("ENTSUSED", "").strip():
            measured["ents_used"] = _number(fields["ENTSUSED"])
        if wrong := contradicts(measured, store, place):
            yield wrong
            return
        if fields.get("SIZEMAX"):
            measured["size"] = parse_size(fields["SIZEMAX"], unit="K")
            self._intake.facts.add("structure", store, f"CFSTATUS, {place}", size=measured["size"])
        self.measurements.add(qmgr, time, store, measured)

    def _queue(self, qmgr: str, time: int, fields: Mapping[str, str], place: str) -> Iterator[Item]:
        """Take a queue: of DISPLAY QSTATUS its depth, of DISPLAY QUEUE where it is, of one with ALL both."""
        queue = fields.get("QUEUE") or fields.get("QLOCAL") or fields.get("QSTATUS")
        if not queue:
            raise ValueError("a queue without a name")
        is_status = bool(fields.get("CURDEPTH"))
        kind = fields.get("TYPE", "QLOCAL")
        if kind not in _LOCAL:
            yield _passed(f"QUEUE of TYPE({kind})")
            return
        if is_status:
            self._queue_status(qmgr, time, queue, fields, place)
        is_placed = yield from self._queue_definition(qmgr, queue, fields, place)
        if not is_placed and not is_status:
            yield _passed("QUEUE without CFSTRUCT, STGCLASS or CURDEPTH")

    def _queue_status(self, qmgr: str, time: int, queue: str, fields: Mapping[str, str], place: str) -> None:
        depth = _number(fields["CURDEPTH"])
        if fields.get("CURFSIZE"):
            measured: Measured = {"messages": depth, "file_bytes": _number(fields["CURFSIZE"]) * MIB}
            if fields.get("CURMAXFS"):
                measured["file_max_bytes"] = _number(fields["CURMAXFS"]) * MIB
                maximum = measured["file_max_bytes"]
                self._intake.facts.add("queue_file", f"{qmgr}/{queue}", place, max_size=maximum)
            self._intake.facts.add("queue_manager", qmgr, place, platform="distributed")
            self.measurements.add(qmgr, time, f"{qmgr}/{queue}", measured)
        else:
            self.measurements.add_depth(qmgr, time, queue, depth)

    def _queue_definition(
        self, qmgr: str, queue: str, fields: Mapping[str, str], place: str
    ) -> Generator[Complaint, None, bool]:
        """Take where a queue is; return False if the object does not show it."""
        max_depth = _number(fields["MAXDEPTH"]) if fields.get("MAXDEPTH") else None
        if fields.get("CFSTRUCT"):
            store = yield from self.store_of(qmgr, fields["CFSTRUCT"], place)
            if store is not None:
                key = f"{store.partition('/')[0]}/{queue}"
                self._intake.facts.add("structure", store, place)
                self._intake.facts.add("queue", key, place, structure=fields["CFSTRUCT"], max_depth=max_depth)
        elif fields.get("STGCLASS"):
            key = f"{qmgr}/{queue}"
            self._intake.facts.add("queue", key, place, storage_class=fields["STGCLASS"], max_depth=max_depth)
        else:
            return False
        return True

    def _structure(self, qmgr: str, fields: Mapping[str, str], place: str) -> Iterator[Complaint]:
        store = yield from self.store_of(qmgr, fields["CFSTRUCT"], place)
        if store is None:
            return
        values: dict[str, Any] = {
            name: _number(fields[word]) for word, name in _CF_ATTRIBUTES.items() if fields.get(word)
        }
        values |= {name: parse_size(fields[word]) for word, name in _CF_SIZES.items() if fields.get(word)}
        if fields.get("OFFLOAD") in {"SMDS", "DB2", "NONE"}:
            values["offload"] = fields["OFFLOAD"]
        if fields.get("DSEXPAND") in {"YES", "NO"}:
            values["ds_expand"] = fields["DSEXPAND"] == "YES"
        self._intake.facts.add("structure", store, place, **values)

    def _data_set(self, qmgr: str, fields: Mapping[str, str], place: str) -> Iterator[Complaint]:
        store = yield from self.store_of(qmgr, fields["CFSTRUCT"], place)
        if store is not None:
            self._intake.facts.add("smds", f"{store}/{fields['SMDS']}", place)

    def _queue_manager(self, fields: Mapping[str, str], place: str) -> None:
        name, platform = fields["QMNAME"], fields.get("PLATFORM")
        level = fields.get("CMDLEVEL", "")
        version = f"{int(level[:-2])}.{int(level[-2])}" if level.isdigit() and len(level) in {3, 4} else None
        kind = None if platform is None else "zos" if platform in {"MVS", "ZOS"} else "distributed"
        self._intake.facts.add("queue_manager", name, place, platform=kind, version=version)
        if fields.get("QSGNAME"):
            self._intake.facts.add_member(fields["QSGNAME"], name, place)


def _passed(kind: str) -> Passed:
    return Passed("object of DISPLAY that is not read", kind, is_counted=True)


def _number(text: str) -> int:
    """Return a count. Raise ValueError if it is not a number."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise ValueError(f"{text!r} is not a count")
    return int(text)


# --- measurements ----------------------------------------------------------------------------------------------------


class Measurements:
    """Measurements and depths of one page.

    Args:
        intake: intake of the feed; its estate assigns queues to stores.
    """

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._measured: dict[_Key, Measured] = {}
        self._depths: dict[_Key, dict[str, int]] = {}  # by queue

    def add(self, qmgr: str, time: int, store: str, measured: Measured) -> None:
        """Add fields to the measurement of a store.

        Args:
            qmgr: queue manager that answered.
            time: time of the answer, microseconds since 1970.
            store: its name.
            measured: fields; those of data sets are added to others of the store.
        """
        key = (time, qmgr, store)
        if key not in self._measured and len(self._measured) >= _MAX_MEASURES:
            return
        merged = self._measured.setdefault(key, {})
        datasets = {**merged.get("smds", {}), **measured.get("smds", {})}
        merged.update(measured)
        if datasets:
            merged["smds"] = datasets

    def add_depth(self, qmgr: str, time: int, queue: str, depth: int) -> None:
        """Add the depth of a queue; one that the estate lacks is counted as unknown. Arguments as of `add`."""
        estate = self._intake.estate
        route = None if estate is None else estate.queue_routes.get((qmgr, queue))
        if estate is not None and route is not None:
            store = estate.routes[route].store
            self._depths.setdefault((time, qmgr, store), {})[str(estate.routes[route].queue)] = depth
        self._intake.is_known(qmgr, time, queue=queue)

    def events(self, *, is_end: bool = True) -> Iterator[Event]:
        """Yield the measurements added so far, by time, and forget them.

        The depths of queues are the messages of a store if each of its queues was shown.

        Args:
            is_end: no depths of the same answers will be added; otherwise those of some queues of a store are kept.
        """
        waiting = {}
        for (time, qmgr, store), depths in self._depths.items():
            estate = self._intake.estate
            config = None if estate is None else estate.stores.get(store)
            if config is not None and set(config.queues) <= depths.keys():
                self.add(qmgr, time, store, {"messages": sum(depths[queue] for queue in config.queues)})
            else:
                waiting[time, qmgr, store] = depths
        for (time, qmgr, store), measured in sorted(self._measured.items(), key=lambda entry: entry[0]):
            yield {"time": time, "qmgr": qmgr, "op": "MEASURE", "store": store, "measured": measured}
        self._measured, self._depths = {}, {} if is_end else dict(list(waiting.items())[-_MAX_WAITING:])


# --- text ------------------------------------------------------------------------------------------------------------


def pairs(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield keyword and value of each pair of an answer, the value without blanks and quotes around it."""
    for text in _whole_lines(lines):
        yield from _pairs_of(text)


def _whole_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines, with each that a value was cut in put together with the next one."""
    parts: list[str] = []
    depth = length = 0
    for line in lines:
        is_cut = depth > 0 and not (parts[-1].endswith(")") and _LEADING_KEY.match(line))
        if parts and not is_cut:
            yield "".join(parts)
            parts, depth = [], 0
        parts.append(line)
        depth = max(0, depth + line.count("(") - line.count(")"))
        length += len(line)
        if length > _MAX_TEXT:
            break
    if parts:
        yield "".join(parts)


def _pairs_of(text: str) -> Iterator[tuple[str, str]]:
    ends = _matching(text)
    others = [match.start() for match in _END.finditer(text)]
    start = 0
    while (match := _KEY.search(text, start)) is not None:
        end = ends.get(match.end() - 1)
        if end is None:
            place = bisect.bisect_left(others, match.end())
            end = others[place] if place < len(others) else None
        start = match.end() if end is None else end + 1
        if end is not None:
            yield match[1], text[match.end() : end].strip().strip("'").strip()


def _matching(text: str) -> dict[int, int]:
    """Return the place of the closing bracket by that of its opening one."""
    opened: list[int] = []
    closed = {}
    for match in _BRACKET.finditer(text):
        if match[0] == "(":
            opened.append(match.start())
        elif opened:
            closed[opened.pop()] = match.start()
    return closed
