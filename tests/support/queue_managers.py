"""Queue managers that answer DISPLAY from a state that a test or a simulation sets: `System`, for `tests.mqweb`.

The definitions are those of an estate, and answers have the keywords of [IBM: MQ 9.4, DISPLAY QMGR, QLOCAL, QSTATUS,
CFSTATUS, CFSTRUCT, STGCLASS, SMDS, SMDSCONN, USAGE, QMSTATUS]: of z/OS a line of text for an object, between CSQN205I
and CSQ9022I [IBM: MQ 9.3, Examples of commands and their replies], else a text as of runmqsc. Not seen anywhere, so
assumed: messages CSQM4nnI but 401 and 409, error texts but AMQ8147E, AMQ8405E and CSQM297I, CSQN137I, CSQN121I and
CSQN132E for CMDSCOPE, the columns of CSQE280I, and in JSON the key `queue` of QSTATUS, and no name of the member.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kernels.page_set import usable_pages
from twin.estate import Estate, PageSet, QueueFile, Structure
from twin.estate.model import QueueManager, StoreConfig
from twin.events import Measured
from twin.events.fields import DataSetMeasured

Row = dict[str, str | int]
NOON = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z
SECOND = 1_000_000
MIB = 1 << 20
KIB = 1 << 10
SYSTEM_QUEUES = ("SYSTEM.ADMIN.COMMAND.QUEUE", "SYSTEM.DEFAULT.LOCAL.QUEUE")  # of every queue manager, in no estate
_BYTES_OF_AN_ENTRY = 2231  # of a structure, with its six elements [published]
_FAILED = 3008  # MQRCCF_COMMAND_FAILED
_UNKNOWN_OBJECT = 2085
_NAMES = {"Q": "QUEUE", "QS": "QSTATUS", "QL": "QLOCAL"}
_MESSAGES = {  # one line an object: z/OS, runmqsc
    "QUEUE": ("CSQM401I", "AMQ8409I: Display Queue details."),
    "QLOCAL": ("CSQM401I", "AMQ8409I: Display Queue details."),
    "QMGR": ("CSQM409I", "AMQ8408I: Display Queue Manager details."),
    "STGCLASS": ("CSQM410I", ""),
    "CFSTRUCT": ("CSQM425I", ""),
    "CFSTATUS": ("CSQM430I", ""),
    "QSTATUS": ("CSQM437I", "AMQ8450I: Display queue status details."),
    "SMDS": ("CSQM450I", ""),
    "SMDSCONN": ("CSQM451I", ""),
    "QMSTATUS": ("", "AMQ8705I: Display Queue Manager Status Details."),
}
_OF_GROUPS = ("CFSTATUS", "CFSTRUCT", "SMDS", "SMDSCONN")  # of members of queue-sharing groups only


class CommandError(Exception):
    """A command that fails: reason of the response, and its message."""

    def __init__(self, reason: int, message: str, *, is_attribute: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.is_attribute = is_attribute  # an attribute that the object does not have


@dataclass(frozen=True)
class Command:
    """A command: `DISPLAY QSTATUS(*) TYPE(QUEUE) ALL` has the words TYPE and ALL, the latter without a value."""

    verb: str
    kind: str
    name: str = "*"
    words: dict[str, str] = field(default_factory=dict)

    @property
    def member(self) -> str:
        """CMDSCOPE, or "" for the queue manager that was asked."""
        return self.words.get("CMDSCOPE", "").strip()

    @property
    def type(self) -> str:
        """TYPE, or "" without one."""
        return self.words.get("TYPE", "").upper()


def parse(text: str) -> Command:
    """Return the command of a text. ValueError: it is none."""
    words: list[tuple[str, str]] = []
    rest = text.strip()
    while rest:
        word, bracket, tail = rest.partition("(")
        if not bracket or " " in word.strip():
            head, _, rest = rest.partition(" ")
            words.append((head.upper(), ""))
        else:
            value, closed, rest = tail.partition(")")
            if not closed:
                raise ValueError(text)
            words.append((word.strip().upper(), value.strip().strip("'")))
        rest = rest.strip()
    if len(words) < 2:
        raise ValueError(text)
    (verb, _), (kind, name), *others = words
    verb = {"DIS": "DISPLAY", "D": "DISPLAY"}.get(verb, verb)
    return Command(verb, _NAMES.get(kind, kind), name or "*", dict(others))


@dataclass
class Queue:
    """State of a queue. Handles and uncommitted messages are by queue manager, times in microseconds."""

    depth: int = 0
    getters: dict[str, int] = field(default_factory=dict)
    putters: dict[str, int] = field(default_factory=dict)
    uncommitted: dict[str, int] = field(default_factory=dict)
    last_get: int | None = None
    last_put: int | None = None
    oldest: int | None = None  # when the oldest message was put


class System:
    """Queue managers of an estate. Everything may be changed between two requests.

    Args:
        estate: their definitions.

    Attributes:
        time: now, microseconds since 1970.
        levels: what a store holds, by its name, as a MEASURE names it; the initial ones are of empty stores.
        queues: what is known of queues, by owner (queue-sharing group or queue manager) and name.
        inactive: members of groups that are not running.
        is_monitored: MONQ; without it there are neither times nor ages of messages.
        system_queues: queues that every queue manager has beside those of the estate.
        full_pct: file system in use, percent, by distributed queue manager.
    """

    def __init__(self, estate: Estate, time: int = NOON) -> None:
        self.estate = estate
        self.time = time
        self.levels: dict[str, Measured] = {name: _empty(store) for name, store in estate.stores.items()}
        self.queues: dict[tuple[str, str], Queue] = {}
        self.inactive: set[str] = set()
        self.is_monitored = True
        self.system_queues = SYSTEM_QUEUES
        self.full_pct: dict[str, int] = {}

    # --- state -------------------------------------------------------------------------------------------------------

    def queue(self, owner: str, name: str) -> Queue:
        """Return what is known of a queue, to be changed. owner: queue-sharing group or queue manager."""
        return self.queues.setdefault((owner, name), Queue())

    def qmgr(self, name: str) -> QueueManager | None:
        """Return a queue manager, or None if there is none of that name."""
        return self.estate.queue_managers.get(name)

    def is_zos(self, name: str) -> bool:
        """Return True for a queue manager on z/OS."""
        return self.estate.queue_managers[name].platform == "zos"

    def members_of(self, qmgr: str) -> list[str]:
        """Return the members of the queue manager's group, itself included."""
        group = self.estate.queue_managers[qmgr].queue_sharing_group
        others = [name for name, member in self.estate.queue_managers.items() if member.queue_sharing_group == group]
        return others if group else [qmgr]

    def owner(self, store: StoreConfig) -> str:
        """Return the owner of a store's queues: the queue-sharing group of a structure, else the queue manager."""
        return store.queue_sharing_group if isinstance(store, Structure) else store.name.partition("/")[0]

    # --- answers -----------------------------------------------------------------------------------------------------

    def asked(self, qmgr: str, command: Command) -> list[str]:
        """Return the queue managers that run a command, by its CMDSCOPE.

        Raises:
            CommandError: a member that is not in the group, or not active.
        """
        members = self.members_of(qmgr)
        if command.member in {"", qmgr}:
            return [qmgr]
        if command.member == "*":
            return [name for name in members if name not in self.inactive]
        if command.member not in members:
            raise CommandError(_FAILED, f"CSQN132E {qmgr} CMDSCOPE({command.member}) is not in the group")
        if command.member in self.inactive:
            raise CommandError(_FAILED, f"CSQN132E {qmgr} CMDSCOPE({command.member}) is not active")
        return [command.member]

    def rows(self, qmgr: str, command: Command) -> list[Row]:
        """Return the objects that DISPLAY shows.

        Raises:
            CommandError: it fails.
        """
        return [row for name in self.asked(qmgr, command) for row in self._rows_of(name, command)]

    def texts(self, qmgr: str, command: Command) -> list[list[str]]:
        """Return the texts of the responses to DISPLAY.

        Raises:
            CommandError: it fails.
        """
        asked = self.asked(qmgr, command)
        if not self.is_zos(qmgr):
            head = _MESSAGES[command.kind][1] if command.kind in _MESSAGES else ""
            return [[f"{head}   {_pairs(row, '   ')}"] for row in self._rows_of(qmgr, command)]
        verb = f"' DISPLAY {command.kind}'"
        return [_reply(qmgr, verb, self._lines_of(name, command), member=name) for name in asked]

    def sent(self, qmgr: str, command: Command) -> list[list[str]]:
        """Return the first reply set of a command with CMDSCOPE, which says that it was sent; none of others."""
        asked, verb = self.asked(qmgr, command), f"' DISPLAY {command.kind}'"
        if asked == [qmgr]:
            return []
        sent = f"CSQN137I {qmgr} {verb} accepted for CMDSCOPE('{command.member}'), {len(asked)} sent to"
        return [_reply(qmgr, verb, [sent], reason=4)]

    def _lines_of(self, qmgr: str, command: Command) -> list[str]:
        """Return the lines that a queue manager on z/OS replies, one an object."""
        if command.kind == "USAGE":
            return list(self._usage(qmgr, command.type or "PAGESET"))
        message = _MESSAGES.get(command.kind, ("", ""))[0]
        rows = self._rows_of(qmgr, command)
        lines = [f"{message} {qmgr} {_pairs(row, ' ')}" for row in rows]
        return lines or [f"CSQM297I {qmgr} CSQMDRTS NO {command.kind} FOUND MATCHING REQUEST CRITERIA"]

    def _rows_of(self, qmgr: str, command: Command) -> list[Row]:
        display = {
            "QMGR": self._qmgr,
            "QLOCAL": self._definitions,
            "QUEUE": self._definitions,
            "QSTATUS": self._statuses,
            "STGCLASS": self._storage_classes,
            "CFSTRUCT": self._structures,
            "CFSTATUS": self._structure_statuses,
            "SMDS": self._data_sets,
            "SMDSCONN": self._connections,
            "QMSTATUS": self._qmgr_status,
        }.get(command.kind)
        zos = self.is_zos(qmgr)
        if "WHERE" in command.words:
            raise CommandError(_FAILED, "WHERE is not simulated")
        wrong = command.verb != "DISPLAY" or display is None
        if wrong or (command.kind in {*_OF_GROUPS, "STGCLASS"} and not zos) or (command.kind == "QMSTATUS" and zos):
            text = f"CSQ9005E {qmgr} INVALID COMMAND" if zos else "AMQ8405E: Syntax error detected at or near end."
            raise CommandError(_FAILED, text)
        if command.kind in _OF_GROUPS and not self.estate.queue_managers[qmgr].queue_sharing_group:
            raise CommandError(_FAILED, f"CSQM070E {qmgr} not in queue-sharing group")
        assert display is not None
        rows = [row for row in display(qmgr, command) if _matches(command.name, str(next(iter(row.values()))))]
        if not rows and not zos:
            raise CommandError(_UNKNOWN_OBJECT, f"AMQ8147E: IBM MQ object {command.name} not found.")
        return [_chosen(row, command) for row in rows]

    # --- objects -----------------------------------------------------------------------------------------------------

    def _qmgr(self, qmgr: str, _command: Command) -> Iterator[Row]:
        config = self.estate.queue_managers[qmgr]
        level = int((config.version or "9.4").replace(".", "")) * 10
        row: Row = {"QMNAME": qmgr, "PLATFORM": "MVS" if config.platform == "zos" else "UNIX", "CMDLEVEL": level}
        row |= {"MONQ": "MEDIUM" if self.is_monitored else "OFF", "MAXUMSGS": 10000, "DESCR": "(an example)"}
        if config.platform == "zos":
            row["QSGNAME"] = config.queue_sharing_group or ""
            row["EXPRYINT"] = "OFF"
        yield row

    def _placed(self, qmgr: str) -> Iterator[tuple[str, str, Structure | PageSet | QueueFile | None]]:
        """Yield owner, name and store of the queues that a queue manager has."""
        for store in self.estate.stores.values():
            if isinstance(store, Structure | PageSet | QueueFile) and qmgr in store.queue_managers:
                yield from ((self.owner(store), queue, store) for queue in store.queues)
        yield from ((qmgr, queue, None) for queue in self.system_queues)

    def _definitions(self, qmgr: str, command: Command) -> Iterator[Row]:
        for owner, queue, store in self._placed(qmgr):
            row: Row = {"QUEUE": queue, "TYPE": "QLOCAL"}
            depths = self.estate.max_depths.get("" if store is None else store.name, {})
            row["MAXDEPTH"] = depths.get(queue, 999_999_999)
            if self.is_zos(qmgr):
                row["QSGDISP"] = "SHARED" if isinstance(store, Structure) else "QMGR"
                row["CFSTRUCT"] = store.short_name if isinstance(store, Structure) else ""
                storage_class = f"PS{store.psid:02d}" if isinstance(store, PageSet) else "DEFAULT"
                row["STGCLASS"] = "" if isinstance(store, Structure) else storage_class
            else:
                row["MAXFSIZE"] = store.max_size // MIB if isinstance(store, QueueFile) else "DEFAULT"
            known = self.queues.get((owner, queue), Queue())
            row |= {"CURDEPTH": known.depth, "IPPROCS": known.getters.get(qmgr, 0)}
            row |= {"OPPROCS": known.putters.get(qmgr, 0), "GET": "ENABLED", "PUT": "ENABLED", "DESCR": "a queue (1)"}
            if _matches(command.words.get("CFSTRUCT", "*"), str(row.get("CFSTRUCT", ""))):
                yield row

    def _statuses(self, qmgr: str, command: Command) -> Iterator[Row]:
        if command.type not in {"", "QUEUE"}:
            return
        for owner, queue, store in self._placed(qmgr):
            known = self.queues.get((owner, queue), Queue())
            row: Row = {"QUEUE": queue, "TYPE": "QUEUE"}
            if self.is_zos(qmgr):
                row["QSGDISP"] = "SHARED" if isinstance(store, Structure) else "QMGR"
            row |= {"CURDEPTH": known.depth}
            row |= {"IPPROCS": known.getters.get(qmgr, 0), "OPPROCS": known.putters.get(qmgr, 0)}
            count = known.uncommitted.get(qmgr, 0)
            row["UNCOM"] = ("YES" if self.is_zos(qmgr) else count) if count else "NO"
            row |= self._times(known)
            if isinstance(store, QueueFile):
                levels = self.levels[store.name]
                row["CURFSIZE"] = -(-levels.get("file_bytes", 0) // MIB)
                row["CURMAXFS"] = levels.get("file_max_bytes", store.limit) // MIB
            yield row

    def _times(self, known: Queue) -> Row:
        """Return when a queue was read and written, and the age of its oldest message; blank without MONQ."""
        if not self.is_monitored:
            blank: Row = dict.fromkeys(("LGETDATE", "LGETTIME", "LPUTDATE", "LPUTTIME", "MSGAGE"), "")
            return blank | {"MONQ": "OFF", "QTIME": ","}
        row: Row = {"MONQ": "MEDIUM", "QTIME": ","}
        for word, time in (("LGET", known.last_get), ("LPUT", known.last_put)):
            row[f"{word}DATE"], row[f"{word}TIME"] = _date_and_time(time)
        oldest = known.oldest if known.depth else None
        row["MSGAGE"] = 0 if oldest is None else max(0, self.time - oldest) // SECOND
        return row

    def _storage_classes(self, qmgr: str, _command: Command) -> Iterator[Row]:
        for store in self.estate.stores.values():
            if isinstance(store, PageSet) and store.queue_manager == qmgr:
                yield {"STGCLASS": f"PS{store.psid:02d}", "PSID": store.psid, "QSGDISP": "QMGR", "DESCR": ""}
        yield {"STGCLASS": "DEFAULT", "PSID": 0, "QSGDISP": "QMGR", "DESCR": ""}

    def _of_group(self, qmgr: str) -> list[Structure]:
        group = self.estate.queue_managers[qmgr].queue_sharing_group
        stores = self.estate.stores.values()
        return [
            structure
            for structure in stores
            if isinstance(structure, Structure) and structure.queue_sharing_group == group
        ]

    def _structures(self, qmgr: str, _command: Command) -> Iterator[Row]:
        for structure in self._of_group(qmgr):
            if structure.is_administration:
                continue
            row: Row = {"CFSTRUCT": structure.short_name, "DESCR": "", "CFLEVEL": structure.cf_level, "RECOVER": "YES"}
            row |= {
                "OFFLOAD": structure.offload,
                "DSBLOCK": f"{structure.ds_block // KIB}K",
                "DSBUFS": 100,
                "DSGROUP": "",
            }
            row["DSEXPAND"] = "YES" if structure.ds_expand else "NO"
            for rule in structure.rules:
                size = f"{rule.sz // KIB}K" if rule.sz else "0K"
                row |= {f"OFFLD{rule.number}TH": rule.th, f"OFFLD{rule.number}SZ": size}
            yield row

    def _structure_statuses(self, qmgr: str, command: Command) -> Iterator[Row]:
        for structure in self._of_group(qmgr):
            levels = self.levels[structure.name]
            head: Row = {"CFSTATUS": structure.short_name, "TYPE": command.type or "SUMMARY"}
            if command.type in {"", "SUMMARY"}:
                used, maximum = levels.get("ents_used", 0), levels.get("ents_max", 0)
                row = {**head, "CFTYPE": "ADMIN" if structure.is_administration else "APPL", "STATUS": "ACTIVE"}
                row["SIZEMAX"] = levels.get("size", structure.size) // KIB
                elements, elements_max = levels.get("elems_used", 0), levels.get("elems_max", 0)
                row["SIZEUSED"] = max(100 * used // max(maximum, 1), 100 * elements // max(elements_max, 1))  # assumed
                row |= {"ENTSMAX": maximum, "ENTSUSED": used, "FAILDATE": "", "FAILTIME": ""}
                yield row | {"OFFLDUSE": structure.offload if structure.offload in {"SMDS", "DB2"} else "NONE"}
            elif command.type == "SMDS" and structure.offload == "SMDS":
                for member in structure.queue_managers:
                    yield head | {"SMDS": member, "ACCESS": "ENABLED", "STATUS": "ACTIVE", "RCVDATE": "", "RCVTIME": ""}
            elif command.type == "CONNECT":
                for member in structure.queue_managers:
                    yield head | {"QMNAME": member, "SYSNAME": "MVS1", "STATUS": "ACTIVE", "FAILDATE": ""}

    def _offloading(self, qmgr: str, command: Command) -> list[Structure]:
        """Return the structures with data sets that the CFSTRUCT of a command names."""
        pattern = command.words.get("CFSTRUCT", "*")
        stores = [
            structure for structure in self._of_group(qmgr) if structure.offload == "SMDS" and structure.holds_queues
        ]
        return [structure for structure in stores if _matches(pattern, structure.short_name)]

    def _data_sets(self, qmgr: str, command: Command) -> Iterator[Row]:
        for structure in self._offloading(qmgr, command):
            for member in structure.queue_managers:
                yield {"SMDS": member, "CFSTRUCT": structure.short_name, "DSBUFS": "DEFAULT", "DSEXPAND": "DEFAULT"}

    def _connections(self, qmgr: str, command: Command) -> Iterator[Row]:
        for structure in self._offloading(qmgr, command):
            for member in structure.queue_managers:
                row: Row = {"SMDSCONN": member, "CFSTRUCT": structure.short_name, "STATUS": "OPEN", "AVAIL": "NORMAL"}
                yield row | {"OPENMODE": "UPDATE" if member == qmgr else "READONLY", "EXPANDST": "NORMAL"}

    def _qmgr_status(self, qmgr: str, _command: Command) -> Iterator[Row]:
        levels = self.levels.get(qmgr, {})
        row: Row = {"QMNAME": qmgr, "STATUS": "RUNNING", "CONNS": 23, "CMDSERV": "RUNNING", "CHINIT": "RUNNING"}
        row |= {"CHECKPOINTS": levels.get("checkpoints", 0)}
        row |= {"DATFSSZ": "SHARED", "DATFSUSE": "SHARED", "QMFSSZ": 4_000_000, "QMFSUSE": self.full_pct.get(qmgr, 11)}
        yield row | {"LOGINUSE": 18, "LOGUTIL": 12, "LOGSTRDA": _date_and_time(NOON)[0]}

    # --- usage -------------------------------------------------------------------------------------------------------

    def _usage(self, qmgr: str, kind: str) -> Iterator[str]:
        if kind in {"PAGESET", "ALL"}:
            yield from self._page_set_usage(qmgr)
        if kind in {"SMDS", "ALL"}:
            yield from self._data_set_usage(qmgr)

    def _page_set_usage(self, qmgr: str) -> Iterator[str]:
        yield f"CSQI010I {qmgr} Page set usage ..."
        yield "Page Buffer   Total   Unused  Persistent NonPersist Expansion    Encr-"
        yield " set  pool    pages    pages  data pages data pages        count   ypt"
        yield "_  0     0     1078     1045          33          0 USER       0    NO"
        for store in self.estate.stores.values():
            if isinstance(store, PageSet) and store.queue_manager == qmgr:
                levels = self.levels[store.name]
                counts = [levels.get(f"pages_{word}", 0) for word in ("total", "unused", "persistent", "nonpersistent")]
                total, unused, persistent, other = counts
                yield (
                    f"_{store.psid:3}{store.buffer_pool:6}{total:9}{unused:9}{persistent:12}{other:11} "
                    f"{store.expand:6}{levels.get('expansions', 0):6}    NO"
                )
        yield " End of page set report"
        yield f"CSQI065I {qmgr} Buffer pool attributes ..."
        yield "Buffer Available Stealable Stealable Page  Location"
        yield "  pool   buffers   buffers percentage class"
        yield "_    0     50000     49998         99  4KB   BELOW"
        yield " End of buffer pool attributes"

    def _data_set_usage(self, qmgr: str) -> Iterator[str]:
        """Yield the data sets that the queue manager owns: the report has no others."""
        stores = [
            structure for structure in self._of_group(qmgr) if qmgr in self.levels[structure.name].get("smds", {})
        ]
        yield f"CSQE280I {qmgr} SMDS usage ..."
        yield "Application  Offloaded     Total Total data  Used data Used"
        yield "structure     messages    blocks     blocks     blocks part"
        for structure in stores:
            levels = self.levels[structure.name]["smds"][qmgr]
            total = levels.get("blocks_total", 0)
            maps = -(-total // (structure.ds_block - 4096 + 1))  # a byte of the map a data block
            used = max(0, levels.get("blocks_used", 0) - maps)
            numbers = f"{levels.get('messages', 0):10}{total:10}{total - maps:11}{used:11}"
            yield f"_{structure.short_name:12}{numbers}{100 * used // max(1, total - maps):4}%"
        yield " End of SMDS usage report"
        yield f"CSQE285I {qmgr} SMDS buffer usage ..."
        yield "Application  Block  --------- Buffers ---------  Reads Lowest  Wait"
        yield "structure     size  Total In use  Saved   Empty  saved   free  rate"
        for structure in stores:
            size = f"{structure.ds_block // KIB}K"
            yield f"_{structure.short_name:12}{size:>5}    100      0      2      98     0%     98    0%"
        yield " End of SMDS buffer usage report"


def _empty(store: object) -> Measured:
    """Return the levels of an empty store, roughly: a test that needs others sets them."""
    if isinstance(store, Structure):
        entries = (store.init_size or store.size) // _BYTES_OF_AN_ENTRY
        measured: Measured = {"size": store.init_size or store.size, "ents_max": entries, "ents_used": 0}
        blocks: dict[str, DataSetMeasured] = {
            qmgr: {"blocks_total": max(2, data_set.size // store.ds_block), "blocks_used": 1, "messages": 0}
            for qmgr, data_set in store.smds.items()
        }
        return {**measured, "smds": blocks} if store.offload == "SMDS" and blocks else measured
    if isinstance(store, PageSet):
        pages = int(usable_pages(store.pages))
        levels: Measured = {"pages_total": pages, "pages_unused": pages, "pages_persistent": 0}
        return {**levels, "pages_nonpersistent": 0, "expansions": 0}
    if isinstance(store, QueueFile):
        return {"file_bytes": 0, "file_max_bytes": store.limit}
    return {}


def _chosen(row: Row, command: Command) -> Row:
    """Return the attributes of an object that a command asks for. CommandError: the object has no such attribute."""
    words = [word for word, value in command.words.items() if not value and word != "ALL"]
    unknown = [word for word in words if word not in row]
    if unknown:
        raise CommandError(_FAILED, f"{unknown[0]} is not an attribute of {command.kind}", is_attribute=True)
    if "ALL" in command.words or not words:
        return row
    always = {*list(row)[:2], "QSGDISP", "CFSTRUCT" if command.kind.startswith("SMDS") else ""}
    return {word: value for word, value in row.items() if word in always or word in words}


def _reply(qmgr: str, verb: str, lines: list[str], *, member: str = "", reason: int = 0) -> list[str]:
    """Return the messages of the command server around the lines of a reply."""
    if member not in {"", qmgr}:
        lines = [f"CSQN121I {qmgr} {verb} command responses from {member}", *lines]
    end = f"CSQ9022I {member or qmgr} CSQMDRTS {verb} NORMAL COMPLETION"
    return [f"CSQN205I   COUNT={len(lines) + 2:8}, RETURN=00000000, REASON={reason:08X}", *lines, end]


def _pairs(row: Row, between: str) -> str:
    return between.join(f"{word}({' ' if value == '' else value})" for word, value in row.items())


def _matches(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else pattern in {name, ""}


def _date_and_time(time: int | None) -> tuple[str, str]:
    """Return a time as in DISPLAY, 2026-11-20 and 12.00.00; blank where there is none."""
    if time is None:
        return "", ""
    moment = datetime.fromtimestamp(time // SECOND, UTC)
    return moment.strftime("%Y-%m-%d"), moment.strftime("%H.%M.%S")
