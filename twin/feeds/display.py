"""Texts of commands and consoles.

The texts are DISPLAY output of MQSC, DISPLAY USAGE, D XCF,STR and messages about structures, in the wrappings of
`twin.feeds.console`. Real samples were seen of the frame of DISPLAY output, of page set usage (CSQI010I), of the
connect messages and of D XCF for a structure that is not allocated [published: IBM Washington Systems Center, slides
"MQ JES logs"]. The rows of the SMDS usage report (CSQE280I) and D XCF for an allocated structure rest on documents
only. IXC585E has two layouts: "ENTRIES: IN USE: 4874 TOTAL: 4874, 100% FULL" [IBM: IMS, CQS structure full monitoring],
and columns under SPACE USAGE, IN-USE, TOTAL and % [IBM: APAR PH39578]; D XCF has these columns, too [assumed]. IXC586I
says only that a structure is below its threshold again.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from itertools import chain, islice

from typing_extensions import override

from kernels.page_set import allocated_pages
from twin.base.listings import file_lines, has_lines, log_lines
from twin.base.units import as_count, as_datetime, as_text, parse_size
from twin.estate import Structure
from twin.events import Measured
from twin.events.fields import DataSetMeasured
from twin.feeds.console import RUNMQSC, ConsoleReader, Message
from twin.feeds.intake import Complaint, Intake, Item, PassedOver, find_contradiction
from twin.feeds.log_texts import BEGUN, STARTED, STARTING, STOPPING, Restarts, texts_of
from twin.feeds.measurements import (
    CommandPrefixes,
    groups_of,
    reporter_of,
    store_of_policy_name,
    structures_by_policy_name,
    without_prefix,
)
from twin.feeds.mqsc_objects import MqscObjects, has_pair, pairs
from twin.feeds.protocol import NOT_BY_TIME, Feed, FeedOptions, Page, partition_of

# answers to DISPLAY, one or several lines an object
# of CSQUTIL, and of the command server in front of the answer of a member
_TARGET = re.compile(r"(?:Target queue manager is|Connected to queue manager|responses from) (\S{1,48})")
_LAST_NAME = re.compile(r"\b([A-Z][A-Z0-9]{0,3})\W*$")  # of a sentence in another language
_ANSWERS = ("CSQM2", "CSQM4", "CSQI010I", "CSQE280I")  # messages with what a member answers
_ENDS_OF_ANSWERS = frozenset(("CSQ9022I", "CSQ9023E", "CSQN122I", "CSQN123E"))
_FAILED = re.compile(r"CSQ9[0-9]{3}[DES]|CSQ[MN][0-9]{3}[DES]|AMQ8[0-9]{3}[ES]|AMQ8405I?|AMQ81(?:18|46|47|49)")
_MAX_FAILURE = 300  # characters
_CONNECTOR = re.compile(r"CSQE(\S{4})(\S{4})[0-9]{2}\b")
_STRUCTURE = re.compile(r"Structure (\S+) connected as", re.IGNORECASE)
_COUNTS = re.compile(r"\b(ENTRIES|ELEMENTS): +(?:IN[ -]USE: *)?([0-9]+),? +(?:TOTAL: *)?([0-9]+),? +([0-9]+)")
_MAX_DIGITS = 15
_MONITORED = re.compile(r"STRUCTURE (\S+) (?=IN COUPLING FACILITY|COMPLETED|CURRENT)")
_PERCENT = re.compile(r"([0-9]{1,3}) ?%")
_BY_PLACE = re.compile(r"[^:]+:[^0-9]*([0-9]+)[^0-9]+([0-9]+)[^0-9]+([0-9]+)[^0-9]*")
_THRESHOLD = re.compile(r"THRESHOLD OF ([0-9]{1,3})%")
_BACK_BELOW_POINTS = 3  # percentage points below its threshold, of a structure of which IXC586I has no counts [assumed]
_SIZE_NOW = re.compile(r"CURRENT SIZE *: *([0-9]+) ?([KMGT])B?\b")
_SIZE_CHANGES = ("IXC533I", "IXC534I", "IXC590I")  # ends of SETXCF START,ALTER, and of an automatic alter [assumed]
_RESTARTS = (*STOPPING, *STARTING, BEGUN, STARTED)
_SAME_US = 60_000_000  # within which several systems and logs may have one change
_WORDS = re.compile(r"[A-Z@#$][A-Z0-9@#$_]{4,15}")
_MAX_WORDS = 50  # of a sentence, among which a structure is looked for
_LINES = "line of other messages"
_SIZES = {name: own.xcf for name, own in Structure.rows.items() if own.xcf}
_LOOK_US = 1_000_000  # between two looks for messages of which no line came for a while
_MAX_CONSOLES, _MAX_SIZE = 1000, 64 << 20  # systems whose logs are read as they are written, and characters that wait
_MAX_SHORT = 20  # lines of a message that is not a report


class DisplayFeed(Feed):
    """Reader of texts, and of logs as they are written.

    It keeps the queue managers of command prefixes, the stores above their threshold, and of logs as they are written
    the messages of which further lines may come.
    """

    reads = "output of DISPLAY commands, or a log with messages of MQ, as text"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self.objects = MqscObjects(self)
        self._prefixes = CommandPrefixes(intake.estate, options)
        self._qmgr: str | None = options.qmgr
        self.passed = NOT_BY_TIME
        self._consoles: OrderedDict[tuple[str, str], ConsoleReader] = OrderedDict()  # by stream and system
        self._size = 0  # characters of the messages that wait in these
        self._silent_at: dict[str, int] = {}  # by partition: the time at which a message that waits may be whole
        self._answering: dict[str, str] = {}  # member whose answer follows, by command prefix
        self._restarts = Restarts()
        self._altered: dict[str, tuple[int, int]] = {}  # time and size of the last ALTER by store
        self._above: dict[str, tuple[int, Measured]] = {}  # threshold and counts of IXC585E, by store without queues
        self._readers: dict[str, Callable[[Message, str, int, str], Iterator[Item]]] = {
            "CSQI010I": self._page_sets,
            "CSQE280I": self._data_sets,
            "CSQE005I": self._connected,
            "IXL014I": self._connected,
            "IXC359I": self._structures,
            "IXC360I": self._policies,
            "IXC585E": self._above_threshold,
            "IXC586I": self._below_threshold,
            "IXC364I": self._active_policy,
            **dict.fromkeys(_SIZE_CHANGES, self._size_changed),
            **dict.fromkeys(_RESTARTS, self._restart),
        }

    @override
    def take(self, page: Page) -> Iterator[Item]:
        """Yield the measurements of a text, or of what is whole with a page of a log as it is written."""
        if page.stream:
            yield from self._take_part(page)
            return
        if not has_lines(page.data):
            text = "EBCDIC text without ends of lines or records of one length; expected: a transfer as text"
            yield Complaint("no-lines", page.name, text)
        consoles: dict[str, ConsoleReader] = {}  # by system
        for own in texts_of(page):
            if own.system not in consoles:
                consoles[own.system] = self._new_console(page)
            console = consoles[own.system]
            yield from self._messages(console, console.read(file_lines(own.data), page, own.place, own.time))
        for console in consoles.values():
            yield from self._messages(console, console.finish())
            yield from self._left(console)
        if not self.has_files:
            yield from self.objects.measurements.events()

    def take_answer(self, lines: Iterable[str], qmgr: str, time: int, place: str) -> Iterator[Item]:
        """Take the lines of an answer whose queue manager and time are known; measurements are kept."""
        console = ConsoleReader(as_datetime(time).date(), UTC)
        self._qmgr = qmgr
        for message in console.messages(Page("\n".join(lines).encode(errors="replace"), place, time)):
            if isinstance(message, Complaint):
                yield message
                continue
            message.time, message.is_local = time, False
            yield from self._message(message, is_asked=True)

    @override
    def finish(self) -> Iterator[Item]:
        """Yield the measurements of the messages that waited for further lines."""
        for console in self._consoles.values():
            yield from self._whole(console, console.finish())
        yield from self.objects.measurements.events()

    # --- a log as it is written --------------------------------------------------------------------------------------

    def _take_part(self, page: Page) -> Iterator[Item]:
        """Take a page of a stream. A message that is whole is measured at once."""
        yield from self._silent(page)
        for own in texts_of(page):
            key = page.stream, own.system
            console = self._consoles.pop(key, None) or self._new_console(page)
            self._consoles[key] = console
            self._size -= console.size
            before = console.begun_in
            messages = console.read(log_lines(own.data), page, own.place, own.time)
            yield from self._messages(console, chain(messages, console.whole()) if own.is_whole else messages)
            yield from self._left(console)
            self.note_begun(before, console.begun_in)
            self._size += console.size
            if (silent_at := console.silent_at) is not None:
                self._silent_at.setdefault(partition_of(page.stream), silent_at)
        while self._consoles and (len(self._consoles) > _MAX_CONSOLES or self._size > _MAX_SIZE):
            _, console = self._consoles.popitem(last=False)
            yield from self._whole(console, console.whole())

    def _silent(self, page: Page) -> Iterator[Item]:
        """Take the messages of the partition of which no line came for a while."""
        partition, time = partition_of(page.stream), page.time or 0
        if time < self._silent_at.get(partition, time + 1):
            return
        del self._silent_at[partition]
        silent_at = []
        for (stream, _), console in self._consoles.items():
            if partition_of(stream) == partition:
                yield from self._whole(console, console.silent(time))
                silent_at += [] if console.silent_at is None else [console.silent_at]
        if silent_at:
            self._silent_at[partition] = max(min(silent_at), time + _LOOK_US)
        yield from self.objects.measurements.events()

    def _whole(self, console: ConsoleReader, messages: Iterable[Message | Complaint]) -> Iterator[Item]:
        """Take messages of which nothing more is expected."""
        before, size = console.begun_in, console.size
        yield from self._messages(console, messages)
        self.note_begun(before, console.begun_in)
        self._size += console.size - size

    def _is_whole(self, message: Message) -> bool:
        """Return True for a message that its text shows to be whole, and for one that is not read."""
        if message.id in self._readers:
            return _has_end(message)
        if message.id.startswith("CSQM2"):
            return bool(message.body) and message.body[-1].startswith("END ")
        return not message.id.startswith(("CSQM4", "AMQ8"))

    # --- messages ----------------------------------------------------------------------------------------------------

    def _new_console(self, page: Page) -> ConsoleReader:
        zone = self.options.zone or UTC
        if not page.stream:
            return ConsoleReader(self._first_day(page.time), zone, qmgr=self._qmgr)
        day = None if self.options.date is None else date.fromisoformat(self.options.date)
        return ConsoleReader(day, zone, self._is_whole, qmgr=self.options.qmgr)

    def _messages(self, console: ConsoleReader, messages: Iterable[Message | Complaint]) -> Iterator[Item]:
        """Take messages of a text; what those of a log as it is written measure is not held back."""
        for message in messages:
            if isinstance(message, Complaint):
                yield message
                continue
            self._qmgr = console.qmgr
            yield from self._message(message)
            console.qmgr = self._qmgr
            is_full = self.objects.measurements.is_full
            if is_full or console.is_whole is not None:
                yield from self.objects.measurements.events(is_end=is_full)

    def _left(self, console: ConsoleReader) -> Iterator[Item]:
        """Yield the lines of a page that are of no message, and forget them."""
        if console.first_unjoined is not None:
            place, first = console.first_unjoined
            text = f"{as_count(console.unjoined, 'line')} of a message whose first line is missing, such as: "
            yield Complaint("unjoined", place, text + first.strip()[:80], console.unjoined)
        if self.object_count and console.outside:
            yield PassedOver(_LINES, "no message", console.outside)
        console.unjoined, console.first_unjoined, console.outside = 0, None, 0

    def _message(self, message: Message, *, is_asked: bool = False) -> Iterator[Item]:
        """Take a message. is_asked: it is of an answer, and whoever asked says what failed."""
        place = message.place
        if message.id == RUNMQSC:
            self.object_count += 1
            self._qmgr = message.head
            return
        if self._note_answer(message):
            self.object_count += 1
            return
        reader = self._details if _has_objects(message) else self._readers.get(message.id)
        if _FAILED.fullmatch(message.id) and not is_asked:
            self.object_count += 1
            text = f"{message.id} {' '.join((message.head, *message.body))}"[:_MAX_FAILURE]
            yield Complaint("command-failed", place, f"the command failed: {text}; expected: an answer")
            return
        if reader is None:
            yield PassedOver(_LINES, message.id or "a log without an id", 1 + len(message.body))
            return
        self.object_count += 1
        time = message.time
        if time is None:
            text = "the text has no times; that of its last change, or of its record, is taken"
            yield from self.once(Complaint("no-time", place, text))
            time = message.collected
        elif self.options.zone is None and message.is_local:
            text = "its times are local; they are taken as UTC. Expected: --zone"
            yield from self.once(Complaint("no-zone", place, text))
        qmgr = yield from self._qmgr_of(message, place)
        if qmgr is None or time is None:
            text = f"{message.id} names no queue manager; expected: --qmgr"
            yield from self.once(Complaint("no-qmgr", place, text))
            return
        measurements = self.objects.measurements
        measurements.is_timeless = message.time is None
        try:
            yield from reader(message, qmgr, time, place)
        except ValueError as error:
            text = f"{message.id}: {error}; expected: the text of MQ or z/OS"
            yield Complaint("bad-value", place, text)
        for store in sorted(measurements.twice):
            text = (
                f"{store} is measured again, and both have the time of the text, {as_text(time)}; the later one counts."
            )
            yield Complaint("same-time", place, f"{text} Expected: times in the text, or a file for each")
        measurements.twice.clear()

    def _note_answer(self, message: Message) -> bool:
        """Note which queue manager the messages that follow are of; return True if a message says no more than that.

        With CMDSCOPE the answers of all members have the prefix of the one that was asked.
        """
        prefix, text = without_prefix(message.head)
        if message.id in _ENDS_OF_ANSWERS:
            self._answering.pop(prefix, None)
            return False
        is_member = message.id == "CSQN121I"
        target = _TARGET.search(text) if is_member or message.id.startswith("CSQU") else None
        target = _LAST_NAME.search(text) if is_member and target is None else target
        if target is None:
            return False
        self._qmgr = target[1]  # of messages without a prefix, or with one that is not known
        if is_member and prefix:
            self._answering[prefix] = target[1]
        return is_member

    def _first_day(self, collected: int | None) -> date:
        if self.options.date is not None:
            return date.fromisoformat(self.options.date)
        return datetime.now(UTC).date() if collected is None else as_datetime(collected).date()

    def _qmgr_of(self, message: Message, place: str) -> Generator[Complaint, None, str | None]:
        """Return the queue manager of a message, by the command prefix that follows its id."""
        if not message.id.startswith("CSQ"):
            return self._qmgr or ("" if message.id.startswith("IX") else None)
        prefix, _ = without_prefix(message.head)
        if prefix in self._answering and message.id.startswith(_ANSWERS):
            return self._answering[prefix]
        return (yield from self._prefixes.qmgr_of(prefix, self._qmgr, place))

    # --- MQSC --------------------------------------------------------------------------------------------------------

    def _details(self, message: Message, qmgr: str, time: int, place: str) -> Iterator[Item]:
        """Take the KEY(VALUE) pairs of a message; one that begins with the first keyword again is a further object."""
        prefix, head = without_prefix(message.head)
        lines = [head]
        for line in message.body:
            if line.startswith("END ") or line.endswith("COMMAND COMPLETION"):
                break
            lines.append(line)
        objects: list[dict[str, str]] = []
        for word, value in pairs(lines):
            if not objects or word == next(iter(objects[-1])):
                objects.append({})
            objects[-1].setdefault(word, value)
        if not objects:
            text = f"{message.id} shows no KEYWORD(value): {head[:80]}; expected: the answer to DISPLAY"
            yield Complaint("not-understood", place, text)
            self.object_count -= 1
        for fields in objects:
            if message.id.startswith("CSQ") and "QMNAME" in fields and next(iter(fields)) in {"QMNAME", "QSGNAME"}:
                yield from self._prefixes.learn(prefix, fields["QMNAME"], place)
            yield from self.objects.take(qmgr, time, fields, place)

    # --- usage -------------------------------------------------------------------------------------------------------

    def _page_sets(self, message: Message, qmgr: str, time: int, place: str) -> Iterator[Item]:
        """Take page set usage: page set, pool, total, unused, persistent, nonpersistent, method, count, encrypted."""
        self.intake.facts.add("queue_manager", qmgr, place, platform="zos")
        for line in message.body:
            if line.startswith("End of page set report"):
                return
            words = line.removeprefix("_").split()
            if len(words) not in {8, 9} or not all(word.isdigit() for word in (*words[:6], words[7])):
                if words and words[0].isdigit() and not any(word[0].isdigit() for word in words[2:]):
                    yield PassedOver("row of page sets without numbers", " ".join(words[2:4]) or "no state")
                else:
                    yield from _garbled(message, line, "page set, pool, four numbers of pages, method, count", place)
                continue
            number, pool, total, unused, persistent, nonpersistent = map(int, words[:6])
            if number > 99 or unused + persistent + nonpersistent != total:
                text = f"page set {number} of {total} pages: {' '.join(words[3:6])}; expected: numbers of that sum"
                yield Complaint("inconsistent", place, text)
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
            self.objects.measurements.add(qmgr, time, f"{qmgr}/PS{number:02d}", measured)

    def _data_sets(self, message: Message, qmgr: str, time: int, place: str) -> Iterator[Item]:
        """Take SMDS usage: structure, messages, total blocks, total data blocks, used data blocks, used part [assumed].

        The blocks of the space map, total less data blocks, count as used.
        """
        for line in message.body:
            words = line.removeprefix("_").split()
            if len(words) not in {6, 7} or not all(word.isdigit() for word in words[1:5]) or not words[5].endswith("%"):
                yield from _garbled(message, line, "structure, five numbers, and whether it is encrypted", place)
                continue
            held, total, data, used = map(int, words[1:5])
            if not used <= data <= total:
                text = f"SMDS of {words[0]}: {total} blocks, {data} for data, {used} used; expected: none above another"
                yield Complaint("inconsistent", place, text)
                continue
            store = yield from self.objects.store_of(qmgr, words[0], place)
            if store is not None:
                dataset: DataSetMeasured = {"blocks_total": total, "blocks_used": used + total - data, "messages": held}
                if self.intake.facts.value("structure", store, "offload") is None:  # its definition counts more
                    self.intake.facts.add("structure", store, place, offload="SMDS")
                self.intake.facts.add("smds", f"{store}/{qmgr}", f"{message.id}, {place}", blocks_total=total)
                self.objects.measurements.add(qmgr, time, store, {"smds": {qmgr: dataset}})

    # --- names and sizes of structures -------------------------------------------------------------------------------

    def _connected(self, message: Message, _qmgr: str, _time: int, place: str) -> Iterator[Item]:
        """Take the names of a connection: the connector is CSQE, the group, the queue manager and 02."""
        text = " ".join((message.head, *message.body[:4]))
        connector = _CONNECTOR.search(text)
        if connector is None:
            return
        group, qmgr = connector[1].rstrip("@"), connector[2].rstrip("@")
        self.intake.facts.add_member(group, qmgr, place)
        if message.id.startswith("CSQ"):
            yield from self._prefixes.learn(without_prefix(message.head)[0], qmgr, place)
        structure = _STRUCTURE.search(text)
        if structure is not None:
            self.intake.facts.add("structure", f"{group}/{structure[1]}", place)

    def _structures(self, message: Message, _qmgr: str, _time: int, place: str) -> Iterator[Item]:
        """Take the rows of D XCF,STR: name, allocation date and time, state. One that is not allocated is reported."""
        for line in message.body:
            words = line.split()
            store = self._store_of_structure(words[0]) if words else None
            if store is None or words[-1] != "ALLOCATED":
                continue
            if words[-2] != "NOT":
                self.intake.facts.add("structure", store, place)
            elif self.intake.estate is not None and store in self.intake.estate.stores:
                yield Complaint("not-allocated", place, f"{store} is in the estate and not allocated")

    def _policies(self, message: Message, qmgr: str, time: int, place: str) -> Iterator[Item]:
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
        if not structures:
            text = f"{message.id} shows no STRNAME; expected: the answer to D XCF,STR,STRNAME="
            yield Complaint("not-understood", place, text)
            self.object_count -= 1
        for fields in structures:
            store = self._store_of_structure(fields["STRNAME"])
            if store is None:
                continue
            if "POLICY SIZE" in fields:
                self.intake.facts.add("structure", store, place, **_policy(fields))
            measured = _counts(f"{word}: {value}" for word, value in fields.items())
            if fields.get("ACTUAL SIZE", "N/A") != "N/A":
                measured["size"] = parse_size(fields["ACTUAL SIZE"].replace(" ", ""))
            yield from self._take_counts(qmgr, time, store, measured, place)

    def _active_policy(self, message: Message, _qmgr: str, _time: int, _place: str) -> Iterator[Item]:
        """Take the active CFRM policy of D XCF,POLICY [IBM: z/OS MVS System Messages, IXC364I]."""
        kind = ""
        for line in message.body:
            word, _, value = (part.strip() for part in line.partition(":"))
            if word == "TYPE":
                kind = value
            elif word == "POLNAME" and kind == "CFRM" and value:
                self.intake.facts.active_policy = value
        if kind != "CFRM":
            yield PassedOver(_LINES, f"{message.id} {kind}".strip(), 1 + len(message.body))

    def _above_threshold(self, message: Message, qmgr: str, time: int, place: str) -> Iterator[Item]:
        """Take the counts of IXC585E, in either layout; without any its threshold, above which the structure is."""
        text = " ".join((message.head, *message.body))
        monitored, threshold = self._monitored(text), _THRESHOLD.search(text) or _PERCENT.search(text)
        store = None if monitored is None else self._store_of_structure(monitored)
        measured = _counts([text]) or _counts_by_place(message.body)
        if store is None or not (measured or threshold):
            yield _passed(message, monitored, has_counts=bool(measured or threshold))
            return
        if threshold and "elems_used" not in measured:
            measured["usage_pct"] = int(threshold[1])
        is_taken = yield from self._take_counts(qmgr, time, store, measured, place)
        if is_taken and threshold and self._has_no_queues(store):
            self._above[store] = int(threshold[1]), measured

    def _monitored(self, text: str) -> str | None:
        """Return the structure that a message is about; in other languages, the first known name in the text."""
        named = _MONITORED.search(text)
        if named is not None:
            return named[1]
        words = (word[0] for word in islice(_WORDS.finditer(text), _MAX_WORDS))
        return next((word for word in words if self._store_of_structure(word) is not None), None)

    def _size_changed(self, message: Message, qmgr: str, time: int, _place: str) -> Iterator[Item]:
        """Take the end of an alter of a structure's size, which several systems and messages may have."""
        text = " ".join((message.head, *message.body))
        named, size = self._monitored(text), _SIZE_NOW.search(text)
        store = None if named is None else self._store_of_structure(named)
        if store is None or size is None:
            yield _passed(message, named, has_counts=size is not None)
            return
        after = parse_size(size[1] + size[2])
        before, known = self._altered.get(store, (0, 0))
        self._altered[store] = time, after
        if after != known or abs(time - before) > _SAME_US:
            reporter = reporter_of(self.intake.estate, store, qmgr)
            yield {"time": time, "qmgr": reporter, "op": "ALTER", "store": store, "attributes": {"size": after}}

    def _restart(self, message: Message, qmgr: str, time: int, place: str) -> Iterator[Item]:
        """Take a message of a queue manager that stops or starts: one restart is one event."""
        self.intake.facts.add("queue_manager", qmgr, place, platform="zos")
        if self._restarts.is_new(qmgr, message.id, time):
            yield {"time": time, "qmgr": qmgr, "op": "RESTART"}

    def _below_threshold(self, message: Message, qmgr: str, time: int, place: str) -> Iterator[Item]:
        """Take IXC586I of a structure that holds no queues, of which nothing else may say so: just below is the most.

        Of one with queues the twin counts what is in it.
        """
        monitored = self._monitored(" ".join((message.head, *message.body)))
        store = None if monitored is None else self._store_of_structure(monitored)
        threshold, before = self._above.pop(store or "", (0, None))
        if store is None or before is None:
            yield _passed(message, monitored, has_counts=False)
            return
        bound_pct = max(0, threshold - _BACK_BELOW_POINTS)
        measured = before.copy()
        if "ents_used" in before:
            measured["ents_used"] = min(before["ents_used"], before["ents_max"] * bound_pct // 100)
        if "elems_used" in before:
            measured["elems_used"] = min(before["elems_used"], before["elems_max"] * bound_pct // 100)
        if "usage_pct" in before:
            measured["usage_pct"] = min(before["usage_pct"], bound_pct)
        yield from self._take_counts(qmgr, time, store, measured, place)

    def _has_no_queues(self, store: str) -> bool:
        config = None if self.intake.estate is None else self.intake.estate.stores.get(store)
        return config is not None and config.known_by_levels

    def _take_counts(
        self, qmgr: str, time: int, store: str, measured: Measured, place: str
    ) -> Generator[Complaint, None, bool]:
        """Add a measurement of a structure, if there is any; return False where it contradicts itself or is empty."""
        if wrong := find_contradiction(measured, store, place):
            yield wrong
        if wrong or not measured:
            return False
        reporter = reporter_of(self.intake.estate, store, qmgr)
        self.objects.measurements.add(reporter, time, store, measured)
        return True

    def _store_of_structure(self, name: str) -> str | None:
        """Return the store of a z/OS structure name: group, padded with @ to 4 characters [assumed], and structure."""
        known = structures_by_policy_name(self.intake.estate).get(name)
        if known is not None:
            return known
        seen = {key for key, _ in self.intake.facts.section("queue_sharing_group")}
        return store_of_policy_name(name, seen | groups_of(self.intake.estate))


def _garbled(message: Message, line: str, right: str, place: str) -> Iterator[Complaint]:
    """Complain about a row of a report that is not read; headings, and the line at its end, have no digits."""
    if line.startswith("_") or any(character.isdigit() for character in line):
        yield Complaint("not-understood", place, f"{message.id}: row {line[:80]!r}; expected: {right}")


def _has_objects(message: Message) -> bool:
    """Return True for an answer to DISPLAY: one line an object (CSQM4nnI), or several lines."""
    if message.id.startswith("CSQM4"):
        return True
    if message.id.startswith("CSQM2"):
        return bool(message.body) or message.head.endswith("DETAILS")
    is_answer = message.id.startswith("AMQ8") and not _FAILED.fullmatch(message.id)
    return is_answer and (message.head.startswith("Display") or has_pair(message.body[0] if message.body else ""))


def _has_end(message: Message) -> bool:
    """Return True for a message that is complete with its last line."""
    last = message.body[-1] if message.body else message.head
    text = " ".join((message.head, *message.body[:_MAX_SHORT]))
    if message.id in _RESTARTS or message.id in _SIZE_CHANGES:
        return message.id in _RESTARTS or _SIZE_NOW.search(text) is not None
    match message.id:
        case "CSQI010I" | "CSQE280I":
            return last.startswith("End of ")
        case "CSQE005I" | "IXL014I":
            return _CONNECTOR.search(text) is not None
        case "IXC585E":
            return len({kind for kind, *_ in _COUNTS.findall(text)}) > 1
        case "IXC586I":
            return _MONITORED.search(text) is not None
    return False


def _passed(message: Message, monitored: str | None, *, has_counts: bool) -> PassedOver:
    name = "structure of no group of the estate" if has_counts else "message without counts"
    kind = message.id if monitored is None or not has_counts else monitored
    return PassedOver(name, kind, is_counted=True)


def _counts(lines: Iterable[str]) -> Measured:
    """Return the first counts of entries and elements of a text. ValueError: the percentage is of other counts."""
    measured: Measured = {}
    for kind, *numbers in _COUNTS.findall("\n".join(lines)):
        if max(map(len, numbers)) > _MAX_DIGITS:
            raise ValueError(f"{kind}: a number of {max(map(len, numbers))} digits; expected: at most {_MAX_DIGITS}")
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


def _counts_by_place(rows: Iterable[str]) -> Measured:
    """Return the counts of a text whose words are of another language: rows of entries, elements and others."""
    counts = [match for row in rows if (match := _BY_PLACE.fullmatch(row)) is not None]
    names = ("ENTRIES", "ELEMENTS")
    return _counts(f"{name}: {' '.join(match.groups())}" for name, match in zip(names, counts, strict=False))


def _policy(fields: Mapping[str, str]) -> dict[str, object]:
    """Return the attributes of a structure in IXC360I by name. ValueError: a size is invalid."""
    sizes = {name: fields.get(word, "N/A") for name, word in _SIZES.items()}
    threshold, alter = fields.get("FULLTHRESHOLD", ""), fields.get("ALLOWAUTOALT")
    return {
        **{name: parse_size(size.replace(" ", "")) for name, size in sizes.items() if size != "N/A"},
        "full_threshold": int(threshold) if threshold.isdigit() else None,
        "allow_auto_alter": None if alter is None else alter == "YES",
        "coupling_facility": fields.get("CFNAME", "").partition(" ")[0] or None,
    }
