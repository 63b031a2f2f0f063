"""Objects and states that MQSC DISPLAY shows, as text or as JSON: measurements, and facts about the estate.

SIZEMAX of CFSTATUS is in KB, SIZEUSED the percentage of the structure in use; elements are not fields. CURFSIZE and
CURMAXFS of QSTATUS are in MB, rounded up; of QMSTATUS DATFSSZ is in MB and DATFSUSE a percentage, or both are SHARED
with QMFSSZ and QMFSUSE [seen: DISPLAY QMSTATUS ALL of 9.4.2]. IPPROCS, OPPROCS, UNCOM and the times of the last get and
put are those of the queue manager that answers, of a shared queue too. UNCOM is YES or NO on z/OS, NO or a number
elsewhere; a blank or -1 is not known. KEY(VALUE) pairs of text are one a line or side by side. Values are not quoted,
so a description may contain any brackets. A value ends at its own bracket; where they do not match, at the first one
that another pair follows. A value cut by the end of a line is joined.

Sources:
    [IBM: MQ 9.4, DISPLAY CFSTATUS, DISPLAY QSTATUS, DISPLAY QUEUE, DISPLAY CFSTRUCT, DISPLAY STGCLASS, DISPLAY
    SMDSCONN, DISPLAY QMSTATUS].
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple, cast

from twin.base.units import FIRST_SECOND, LAST_SECOND, MIB, as_text, parse_size
from twin.estate import Structure
from twin.estate.attributes import mqsc_reading
from twin.events import Measured
from twin.events.fields import MEASURED_QUEUE
from twin.feeds.intake import Complaint, Item, PassedOver, find_contradiction
from twin.feeds.measurements import AHEAD_US, Measurements, QueueStatus
from twin.feeds.protocol import Feed
from twin.records.bounds import PCT_MAX

NAME_GROUP = "DISPLAY QMGR QSGNAME in front of it, --group QSG1=QM01,QM02, or an estate that names it"
_STRUCTURE = mqsc_reading(Structure.rows)
_COUNTS = {"IPPROCS": "getters", "OPPROCS": "putters", "MSGAGE": "oldest_s"}  # facts of a queue, by keyword
_TIMES = {"last_get": ("LGETDATE", "LGETTIME"), "last_put": ("LPUTDATE", "LPUTTIME")}
_STATUS = ("CURDEPTH", *_COUNTS, *(words[0] for words in _TIMES.values()), "UNCOM")  # keywords of the state of a queue
_NOT_KNOWN = frozenset(("", "-1"))
_FAILED = {  # values that keep messages from being stored or read [IBM: MQ 9.4, DISPLAY CFSTATUS, DISPLAY SMDSCONN]
    "STATUS": {"FAILED", "INRECOVER", "NOTENABLED", "ALLOCFAIL", "OPENFAIL", "STGFAIL", "DATAFAIL"},
    "ACCESS": {"SUSPENDED", "DISABLED"},
    "AVAIL": {"ERROR", "STOPPED"},
    "EXPANDST": {"FAILED", "MAXIMUM"},
}
_WITH_QMNAME = frozenset(("CHANNEL", "CHSTATUS", "CLUSQMGR", "CONN", "SMDSCONN", "SUB"))  # other objects that have it
_OBJECTS = frozenset(  # that are not read [IBM: MQ 9.4, MQSC DISPLAY commands]
    (
        *("APSTATUS", "ARCHIVE", "AUTHINFO", "AUTHREC", "AUTHSERV", "CFSTRUCT", "CHANNEL", "CHINIT", "CHLAUTH"),
        *("CHSTATUS", "CLUSQMGR", "CMDSERV", "COMMINFO", "CONN", "ENTAUTH", "GROUP", "LISTENER", "LOG", "LSSTATUS"),
        *("MAXSMSGS", "NAMELIST", "POLICY", "PROCESS", "PUBSUB", "QALIAS", "QCLUSTER", "QMGR", "QMNAME", "QMODEL"),
        *("QMSTATUS", "QREMOTE", "SBSTATUS", "SECURITY", "SERVICE", "SMDS", "SMDSCONN", "STGCLASS", "SUB", "SVSTATUS"),
        *("SYSTEM", "TCLUSTER", "THREAD", "TOPIC", "TPSTATUS", "TRACE", "USAGE"),
    )
)
_MAX_NAMES = 200  # characters
_LOCAL = frozenset(("QLOCAL", "QUEUE", "LOCAL"))  # types of a queue that holds messages
_FILE_SYSTEMS = (("DATFSSZ", "DATFSUSE"), ("QMFSSZ", "QMFSUSE"))  # with queue files: MB and percent; may be SHARED
_MAX_DEFINITIONS = 100_000  # that wait for the end of a round
_MAX_TEXT = 1 << 20  # characters of the details of one object

_KEY = re.compile(r"(?<![A-Z0-9])([A-Z][A-Z0-9]{1,19})\(")
_LEADING_KEY = re.compile(r"[\s_]*[A-Z][A-Z0-9]{1,19}\(")
_BRACKET = re.compile(r"[()]")
_DATE = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")
_CLOCK = re.compile(r"[0-9]{2}[.:][0-9]{2}[.:][0-9]{2}")
_END = re.compile(r"\)(?=\s*$|\s+[A-Z][A-Z0-9]{1,19}\()")


class Definition(NamedTuple):
    """Definition of a structure or a queue, as a queue manager shows it."""

    section: str  # of the estate file: "structure" or "queue"
    key: str  # in it, such as "QSG1/APP1"
    qmgr: str  # that has answered
    time: int  # of the answer, microseconds since 1970
    place: str
    values: Mapping[str, Any]  # by attribute of the estate


class MqscObjects:
    """Objects of one page, or of the pages of a round."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._intake = feed.intake
        self.measurements = Measurements(feed.intake)  # those that the objects show
        self.definitions: list[Definition] | None = None  # of a round; None: nothing compares them with the estate

    def take(self, qmgr: str, time: int, fields: Mapping[str, str], place: str) -> Iterator[Item]:
        """Take an object; yield what is wrong or passed over."""
        try:
            if fields.get("QSGDISP") == "GROUP":
                yield _passed(f"{next(iter(fields))} of QSGDISP(GROUP)")  # a master, of which members have copies
            elif "CFSTATUS" in fields:
                yield from self._structure_status(qmgr, time, fields, place)
            elif {"QUEUE", "QSTATUS", "QLOCAL"} & fields.keys():
                yield from self._queue(qmgr, time, fields, place)
            elif "CFSTRUCT" in fields and {"SMDS", "SMDSCONN"} & fields.keys():
                yield from self._data_set(qmgr, fields["CFSTRUCT"], fields, place)
            elif "CFSTRUCT" in fields:
                yield from self._structure(qmgr, time, fields, place)
            elif "STGCLASS" in fields and "PSID" in fields:
                key = f"{qmgr}/{fields['STGCLASS']}"
                self._intake.facts.add("storage_class", key, place, page_set=int(fields["PSID"]))
            elif "QMNAME" in fields and not _WITH_QMNAME & fields.keys():
                self._queue_manager(fields, place)
                self._file_systems(qmgr, fields)
            elif fields:
                yield _other(fields, place)
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
        if fields.get("TYPE") == "SMDS" and "SMDS" in fields:
            yield from self._data_set(qmgr, fields["CFSTATUS"], fields, place)
            return
        if not {"ENTSMAX", "ENTSUSED"} & fields.keys():
            yield _passed(f"CFSTATUS {fields.get('CFTYPE') or fields.get('TYPE', 'without ENTSMAX')}")
            return
        store = yield from self.store_of(qmgr, fields["CFSTATUS"], place)
        if store is not None:
            yield from self._state_of(store, fields, place)
            yield from self._entries(qmgr, time, store, fields, place)

    def _entries(self, qmgr: str, time: int, store: str, fields: Mapping[str, str], place: str) -> Iterator[Complaint]:
        measured: Measured = {}
        if fields.get("ENTSMAX", "").strip():
            measured["ents_max"] = _number(fields["ENTSMAX"])
        if fields.get("ENTSUSED", "").strip():
            measured["ents_used"] = _number(fields["ENTSUSED"])
        if wrong := find_contradiction(measured, store, place):
            yield wrong
            return
        if fields.get("SIZEMAX"):
            measured["size"] = parse_size(fields["SIZEMAX"], unit="K")
            self._intake.facts.add("structure", store, f"CFSTATUS, {place}", size=measured["size"])
        if fields.get("SIZEUSED", "").strip():
            measured["usage_pct"] = _number(fields["SIZEUSED"])
            if measured["usage_pct"] > PCT_MAX:
                raise ValueError(f"SIZEUSED({fields['SIZEUSED']}) is more than {PCT_MAX} percent")
        self.measurements.add(qmgr, time, store, measured)

    def _state_of(self, name: str, fields: Mapping[str, str], place: str) -> Iterator[Complaint]:
        """Complain about a structure, a data set or a connection to one that has failed, once until it changes."""
        failed = [f"{word}({fields[word]})" for word, values in _FAILED.items() if fields.get(word) in values]
        text = f"{name}: {', '.join(failed)}; expected: a state in which messages are stored and read"
        yield from self._feed.lasting(name, Complaint("not-available", place, text) if failed else None)

    def _queue(self, qmgr: str, time: int, fields: Mapping[str, str], place: str) -> Iterator[Item]:
        """Take a queue: of DISPLAY QSTATUS its state, of DISPLAY QUEUE where it is, of one with ALL both."""
        queue = fields.get("QUEUE") or fields.get("QLOCAL") or fields.get("QSTATUS")
        if not queue:
            raise ValueError("a queue without a name")
        is_status = any(fields.get(word) for word in _STATUS)
        kind = fields.get("TYPE", "QLOCAL")
        if kind not in _LOCAL:
            yield _passed(f"QUEUE of TYPE({kind})")
            return
        if is_status:
            yield from self._queue_status(qmgr, time, queue, fields, place)
        is_placed = yield from self._queue_definition(qmgr, time, queue, fields, place)
        if not is_placed and not is_status:
            yield _passed("QUEUE without CFSTRUCT, STGCLASS or CURDEPTH")

    def _queue_status(
        self, qmgr: str, time: int, queue: str, fields: Mapping[str, str], place: str
    ) -> Iterator[Complaint]:
        status = yield from self._facts_of(queue, time, fields, place)
        if fields.get("CURDEPTH"):
            status["depth"] = _number(fields["CURDEPTH"])
        if fields.get("CURFSIZE"):
            measured: Measured = {"file_bytes": _number(fields["CURFSIZE"]) * MIB}
            if "depth" in status:
                measured = {"messages": status["depth"], **measured}
            if fields.get("CURMAXFS"):
                measured["file_max_bytes"] = _number(fields["CURMAXFS"]) * MIB
                maximum = measured["file_max_bytes"]
                self._intake.facts.add("queue_file", f"{qmgr}/{queue}", place, max_size=maximum)
            self._intake.facts.add("queue_manager", qmgr, place, platform="distributed")
            self.measurements.add(qmgr, time, f"{qmgr}/{queue}", measured)
        self.measurements.add_status(qmgr, time, queue, status, is_own=bool(fields.get("CURFSIZE")))

    def _facts_of(
        self, queue: str, time: int, fields: Mapping[str, str], place: str
    ) -> Generator[Complaint, None, QueueStatus]:
        """Return what an answer says about a queue apart from its depth, without the values that are wrong."""
        status: QueueStatus = {}
        facts: dict[str, int] = {}
        try:
            for word, name in _COUNTS.items():
                if fields.get(word, "") not in _NOT_KNOWN:
                    facts[name] = _count_of(name, fields[word])
            if fields.get("UNCOM", "") not in _NOT_KNOWN | {"YES"}:
                facts["uncommitted"] = 0 if fields["UNCOM"] == "NO" else _count_of("uncommitted", fields["UNCOM"])
            for name, words in _TIMES.items():
                day, clock = (fields.get(word, "") for word in words)
                if day and clock:
                    moment = yield from self._moment(queue, time, (day, clock), place)
                    facts |= {} if moment is None else {name: moment}
        except ValueError as error:
            yield Complaint("bad-value", place, f"{queue}: {error}; expected: values as DISPLAY QSTATUS shows them")
        status |= cast("QueueStatus", facts)
        if any(fields.get(word) for word in _STATUS[1:]):
            status["has_facts"] = True
        return status

    def _moment(
        self, queue: str, time: int, local: tuple[str, str], place: str
    ) -> Generator[Complaint, None, int | None]:
        """Return a local time of day as microseconds since 1970; None, with a complaint, if the answer is earlier."""
        zone = self._feed.options.zone
        if zone is None:
            text = (
                "its times are local, and no answer shows their zone; they are taken as UTC. Expected: --zone, that of"
            )
            text += " its system, such as --zone Europe/Berlin"
            yield from self._feed.once(Complaint("no-zone", place, text))
        moments = _moments(*local, zone or UTC)
        past = [moment for moment in moments if moment <= time + AHEAD_US]
        if not past:
            text = (
                f"{queue}: {' '.join(local)} is after the answer, {as_text(time)}; expected: --zone, that of its system"
            )
            yield from self._feed.once(Complaint("no-zone", place, text), "ahead")
        return max(past, default=None)

    def _queue_definition(
        self, qmgr: str, time: int, queue: str, fields: Mapping[str, str], place: str
    ) -> Generator[Complaint, None, bool]:
        """Take where a queue is; return False if the object does not show it."""
        values: dict[str, Any] = {"max_depth": _number(fields["MAXDEPTH"]) if fields.get("MAXDEPTH") else None}
        if fields.get("CFSTRUCT") and fields.get("QSGDISP", "SHARED") == "SHARED":
            store = yield from self.store_of(qmgr, fields["CFSTRUCT"], place)
            if store is None:
                return True
            key = f"{store.partition('/')[0]}/{queue}"
            values["structure"] = fields["CFSTRUCT"]
            self._intake.facts.add("structure", store, place)
        elif fields.get("STGCLASS"):
            key = f"{qmgr}/{queue}"
            values["storage_class"] = fields["STGCLASS"]
            if fields.get("PSID", "").isdigit():  # of the storage class: a queue that is empty may have none
                name = f"{qmgr}/{fields['STGCLASS']}"
                self._intake.facts.add("storage_class", name, place, page_set=int(fields["PSID"]))
        else:
            return False
        self._intake.facts.add("queue", key, place, **values)
        self._define(Definition("queue", key, qmgr, time, place, values))
        return True

    def _define(self, definition: Definition) -> None:
        if self.definitions is not None and len(self.definitions) < _MAX_DEFINITIONS:
            self.definitions.append(definition)

    def _structure(self, qmgr: str, time: int, fields: Mapping[str, str], place: str) -> Iterator[Complaint]:
        store = yield from self.store_of(qmgr, fields["CFSTRUCT"], place)
        if store is None:
            return
        seen = {word: fields[word] for word in _STRUCTURE if fields.get(word)}
        values = {  # a number out of range is a complaint of what takes it
            _STRUCTURE[word][0]: _number(text) if text.isdigit() else _STRUCTURE[word][1](text)
            for word, text in seen.items()
        }
        self._intake.facts.add("structure", store, place, **values)
        self._define(Definition("structure", store, qmgr, time, place, values))

    def _data_set(self, qmgr: str, structure: str, fields: Mapping[str, str], place: str) -> Iterator[Complaint]:
        """Take a data set, or the connection of the queue manager to one: SMDS, SMDSCONN, CFSTATUS TYPE(SMDS)."""
        if "SMDSCONN" in fields:
            name = f"connection of {qmgr} to the data set of {fields['SMDSCONN']} for {structure}"
            yield from self._state_of(name, fields, place)
            return
        store = yield from self.store_of(qmgr, structure, place)
        if store is not None:
            self._intake.facts.add("smds", f"{store}/{fields['SMDS']}", place)
            if fields.keys() & _FAILED.keys():  # DISPLAY SMDS shows none of them
                yield from self._state_of(f"data set of {fields['SMDS']} for {store}", fields, place)

    def _queue_manager(self, fields: Mapping[str, str], place: str) -> None:
        name, platform = fields["QMNAME"], fields.get("PLATFORM")
        level = fields.get("CMDLEVEL", "")
        version = f"{int(level[:-2])}.{int(level[-2])}" if level.isdigit() and len(level) in {3, 4} else None
        kind = None if platform is None else "zos" if platform in {"MVS", "ZOS"} else "distributed"
        self._intake.facts.add("queue_manager", name, place, platform=kind, version=version)
        if fields.get("QSGNAME"):
            self._intake.facts.add_member(fields["QSGNAME"], name, place)

    def _file_systems(self, qmgr: str, fields: Mapping[str, str]) -> None:
        """Take the free space of the file system with the queue files, which has its own numbers or is shared."""
        for size, used in _FILE_SYSTEMS:
            if fields.get(size, "").isdecimal() and fields.get(used, "").isdecimal():
                percent = min(100, _number(fields[used]))
                self.measurements.free_bytes[qmgr] = _number(fields[size]) * (100 - percent) // 100 * MIB
                return


def _other(fields: Mapping[str, str], place: str) -> Item:
    """Return an object that is not read as passed over, or the complaint about one that no DISPLAY shows."""
    if not _OBJECTS.isdisjoint(fields):
        return _passed(next(iter(fields)))
    text = f"an object with {', '.join(fields)[:_MAX_NAMES]}; expected: one that DISPLAY shows"
    return Complaint("not-understood", place, text)


def _passed(kind: str) -> PassedOver:
    return PassedOver("object of DISPLAY that is not read", kind, is_counted=True)


def _number(text: str) -> int:
    """Return a count. Raise ValueError if it is not a number."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise ValueError(f"{text!r} is not a count")
    return int(text)


def _count_of(name: str, text: str) -> int:
    """Return a fact of a queue. Raise ValueError if it is no count, or more than a MEASURE takes."""
    number = _number(text)
    if number > MEASURED_QUEUE[name]:
        raise ValueError(f"{number} is more than {MEASURED_QUEUE[name]}")
    return number


def _moments(day: str, clock: str, zone: tzinfo) -> list[int]:
    """Return the microseconds since 1970 of a local time, two where its hour comes twice. Raise ValueError."""
    if not (_DATE.fullmatch(day) and _CLOCK.fullmatch(clock)):
        raise ValueError(f"{day!r}, {clock!r} are no date and time")
    local = datetime.fromisoformat(f"{day}T{clock.replace('.', ':')}")
    seconds = [int(local.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1)]
    return [1_000_000 * min(max(second, FIRST_SECOND), LAST_SECOND) for second in seconds]


# --- text ------------------------------------------------------------------------------------------------------------


def has_pair(line: str) -> bool:
    """Return True if a line begins with KEY(."""
    return _LEADING_KEY.match(line) is not None


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
