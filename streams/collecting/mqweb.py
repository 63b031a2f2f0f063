"""Rounds of DISPLAY commands to queue managers through the REST interface of MQ (mqweb), as pages of the feed `rest`.

The command server of a queue manager runs one command after another, for other users, too. So one request is made at a
time; what failed waits longer each time; and after a request without an answer, which may still be running, nothing is
asked there for as long as the server may take. A round asks what it can and never waits: what is missing comes with a
later round. Limits of single requests are those of `streams.collecting.mqweb_session`.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import NamedTuple

from typing_extensions import override

from streams.collecting.display_commands import (
    CFSTATUS,
    CFSTATUS_SMDS,
    CFSTRUCT,
    NAME_CHARACTERS,
    QLOCAL,
    QLOCAL_ZOS,
    QMGR,
    QMSTATUS,
    QSTATUS,
    STGCLASS,
    USAGE,
    AnswerBody,
    Command,
    check_pattern,
    decode_answer,
    parts,
    smds,
    smds_connections,
)
from streams.collecting.http import HttpClient, Requester
from streams.collecting.mqweb_session import (
    DEADLINE_S,
    MAX_ANSWER_BYTES,
    FailedRequestError,
    MqwebSession,
    TooLargeError,
    check_name,
    reason_of,
)
from streams.collecting.sources import Position, Source
from streams.host.signals import StopRequestedError
from twin.errors import UsageError
from twin.estate import Estate, Structure
from twin.events import Event
from twin.feeds import Feed, Page
from twin.units import as_count

MAX_ROUND_BYTES = 128 << 20  # of the answers of a round; the rest of it is not asked
MAX_PATTERNS = 2_000  # into which the names of one command are cut
FIRST_WAIT_S = 10.0  # after a first failure; doubled with each further one
MAX_WAIT_S = 300.0
DEFINITIONS_S = 3600.0  # between two rounds of definitions
NEW_QUEUES_S = 300.0  # the same where a queue has come up that the estate lacks
_MAX_TEXT = 300  # characters of the messages of a command
_READ_SECONDS = 0.2
_MAX_LATE = 2  # requests in a row without an answer, before a command is cut
_SAY_US = 3_600_000_000  # between two lines about rounds of a kind
_HOURLY = "DISPLAY QLOCAL"  # what is learnt of it is of use an hour later
_OF_QUEUES = frozenset(("QSTATUS", "QLOCAL"))

ZOS, DISTRIBUTED = "zos", "distributed"

_Key = tuple[str, ...]  # () the server, (queue manager,), (queue manager, command)


def microseconds() -> int:
    """Return the time, microseconds since 1970."""
    return time.time_ns() // 1000


@dataclass
class _Pause:
    """A time without requests after failures: their number, its start and end, microseconds; the last complaint."""

    count: int = 0
    start: int = 0
    end: int = 0
    complaint: tuple[str, str] = ("", "")

    def extend(self, now: int, wait_s: float) -> None:
        """Wait from now on."""
        self.start, self.end = now, now + round(wait_s * 1e6)

    def is_on(self, now: int) -> bool:
        return self.start <= now < self.end  # a clock that is set back ends it


@dataclass
class _Round:
    """A round: its client, its start in microseconds, and the answers so far."""

    requester: Requester
    start: int
    pages: list[Page] = field(default_factory=list)
    byte_count: int = 0


class _About(NamedTuple):
    """Platform and queue-sharing group of a queue manager; "" without a group."""

    platform: str
    group: str


class Mqweb:
    """Rounds of commands to queue managers of one server.

    Args:
        url: address of the server, http or https, host and port.
        qmgrs: names of the queue managers to ask. Other members of their groups, by the estate, are asked through them.
        client: certificates and login.
        estate: platforms and groups before the queue managers say so; None: nothing is known.
        complain: called with the code, place and text of a failure, once until it changes.
        queues: names of queues to ask for, such as `APP*`.
        gateway: gateway queue manager through which the server reaches the others; None: its own.
        has_token: log in for a token instead of sending the password with each request.
        clock: time, microseconds since 1970.
        say: called with what is worth a line and is no failure.

    Raises:
        UsageError: a name is none of MQ, or the login has no user.
    """

    def __init__(
        self,
        url: str,
        qmgrs: Sequence[str],
        client: HttpClient,
        estate: Estate | None,
        *,
        complain: Callable[[str, str, str], None],
        queues: str = "*",
        gateway: str | None = None,
        has_token: bool = False,
        clock: Callable[[], int] = microseconds,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name = url.partition("/ibmmq")[0].rstrip("/")
        self.clock = clock
        if not qmgrs:
            raise UsageError("no queue manager to ask; expected: --qmgr QM01,QM02")
        self._qmgrs = [check_name("--qmgr", qmgr) for qmgr in dict.fromkeys(qmgrs)]
        self._session = MqwebSession(self.name, client, gateway=gateway, has_token=has_token, clock=clock)
        self._complain = complain
        self._say = say
        self._queues = check_pattern(queues)
        self._pauses: dict[_Key, _Pause] = {}
        self._busy: dict[str, int] = {}  # by queue manager: until when it may run a command that was not answered
        self._late: Counter[_Key] = Counter()  # requests in a row without an answer, of commands that can be cut
        self._is_cut_off = False  # True if the last round had too many bytes
        self._refused_forms: set[tuple[str, str]] = set()  # (queue manager, command) whose JSON form is refused
        self._cut: dict[_Key, set[str]] = {}  # patterns whose answers are too large
        self._answering: dict[str, str] = {}  # by group: the member that answered for it last
        self._about: dict[str, _About] = {}
        self._members: dict[str, list[str]] = {}  # by group, of the estate
        self._offloading: dict[str, list[str]] = {}  # by group: structures with SMDS
        self._reported: dict[bool, int] = {}  # by kind of round: when it was worth a line
        self._line = ""  # about the last round, until its events are known; "": it is not worth a line
        known = self._qmgrs if estate is None else estate.queue_managers
        self._unknown = dict.fromkeys((qmgr for qmgr in self._qmgrs if qmgr not in known), True)  # True: not said yet
        for name, config in estate.queue_managers.items() if estate is not None else ():
            self._about[name] = _About(config.platform, config.queue_sharing_group or "")
            if config.queue_sharing_group:
                self._members.setdefault(config.queue_sharing_group, []).append(name)
        for store in estate.stores.values() if estate is not None else ():
            if isinstance(store, Structure) and store.offload == "SMDS":
                group, _, structure = store.name.partition("/")
                self._offloading.setdefault(group, []).append(structure)

    def definitions(self) -> list[Page]:
        """Return the answers about definitions, in the order asked."""
        return _result(self.steps(has_definitions=True))

    def levels(self) -> list[Page]:
        """Return the answers about levels, in the order asked."""
        return _result(self.steps(has_definitions=False))

    def steps(self, *, has_definitions: bool) -> Generator[None, None, list[Page]]:
        """Ask, with a step in front of each request; return the answers of the round, in the order asked."""
        if self._session.has_new_login() and () in self._pauses:
            self._pauses[()].extend(self.clock(), 0.0)
        start_s, requests, self._line = time.monotonic(), self._session.request_count, ""
        with self._session.open() as requester:
            own = _Round(requester, self.clock())
            yield from self._definitions(own) if has_definitions else self._levels(own)
        if own.byte_count <= MAX_ROUND_BYTES:
            self._is_cut_off = False
        pages = own.pages
        if pages:
            pages[-1] = replace(pages[-1], headers={**pages[-1].headers, "mqweb.last": "1"})
        if not 0 <= own.start - self._reported.get(has_definitions, -_SAY_US) < _SAY_US:
            self._reported[has_definitions] = own.start
            what = "definitions" if has_definitions else "levels"
            count = as_count(self._session.request_count - requests, "request")
            self._line = f"{what} in {time.monotonic() - start_s:.1f} s: {count}, {own.byte_count:,} bytes of answers"
            if not pages:
                self.say_round(())
        return pages

    def say_round(self, events: Iterable[Event]) -> None:
        """Say how long the last round took and how much it was, at most once an hour. events: those of its pages."""
        if self._line:
            numbers = Counter(event["op"] for event in events)
            gave = [as_count(number, op) for op, number in sorted(numbers.items())]
            self._say(f"{self._line}, {', '.join(gave) or 'no event'}")
            self._line = ""

    def close(self) -> None:
        """Log out."""
        self._session.close()

    @property
    def busy(self) -> dict[str, int]:
        """Queue managers that may run a command that was not answered, and until when; microseconds since 1970."""
        now = self.clock()
        return {qmgr: end for qmgr, end in self._busy.items() if end > now}

    def set_busy(self, busy: Mapping[str, int]) -> None:
        """Ask nothing of queue managers until then, at most for as long as a server may take, as `busy` returns it."""
        now = self.clock()
        for qmgr, end in busy.items():
            if qmgr in self._qmgrs and end > now:
                self._busy[qmgr] = end
                self._pauses.setdefault((qmgr,), _Pause()).extend(now, (end - now) / 1e6)

    # --- what is asked -----------------------------------------------------------------------------------------------

    def _definitions(self, own: _Round) -> Iterator[None]:
        self._cut = {key: own for key, own in self._cut.items() if key[-1].startswith(_HOURLY)}
        self._late = Counter({key: number for key, number in self._late.items() if key[-1].startswith(_HOURLY)})
        for qmgr in self._qmgrs:
            yield from self._learn(own, qmgr)
        for group in self._groups():
            number = len(own.pages)
            if (yield from self._ask_group(own, CFSTRUCT, group)):
                structures = [fields for page in own.pages[number:] for fields in _objects(page)]
                names = {fields.get("CFSTRUCT", "") for fields in structures if fields.get("OFFLOAD") == "SMDS"}
                self._offloading[group] = sorted(filter(None, names))
            for structure in self._offloading.get(group, ()):
                yield from self._ask_group(own, smds(structure), group)
        for member in self._all_members():
            if self._about[member].platform == ZOS:
                yield from self._ask_member(own, STGCLASS, member)
        for member in self._all_members():
            command = QLOCAL_ZOS if self._about[member].platform == ZOS else QLOCAL
            yield from self._ask_member(own, command, member)

    def _levels(self, own: _Round) -> Iterator[None]:
        for qmgr in self._qmgrs:
            if qmgr not in self._about:
                yield from self._learn(own, qmgr)
        for command in (CFSTATUS, CFSTATUS_SMDS):
            for group in self._groups():
                yield from self._ask_group(own, command, group)
        for is_asked in (True, False):  # one that is asked through another may cost that one's time: it comes last
            members = [name for name in self._all_members() if (name in self._qmgrs) == is_asked]
            for name in members:
                yield from self._ask_member(own, QSTATUS, name)
            for name in members:
                yield from self._ask_member(own, USAGE if self._about[name].platform == ZOS else QMSTATUS, name)
            for name in members:
                for structure in self._offloading.get(self._about[name].group, ()):
                    yield from self._ask_member(own, smds_connections(structure), name)

    def _learn(self, own: _Round, qmgr: str) -> Iterator[None]:
        """Ask a queue manager for its platform and group."""
        number = len(own.pages)
        yield from self._cover(own, QMGR, qmgr, qmgr)
        fields = {word: value for page in own.pages[number:] for each in _objects(page) for word, value in each.items()}
        if "PLATFORM" in fields:
            platform = ZOS if fields["PLATFORM"] in {"MVS", "ZOS"} else DISTRIBUTED
            self._about[qmgr] = _About(platform, fields.get("QSGNAME", ""))
            if self._unknown.get(qmgr):
                self._unknown[qmgr] = False
                self._complain("unknown-name", self.name, _unknown_text(qmgr, self._about[qmgr]))

    def _known(self) -> list[str]:
        """Return the queue managers to ask whose platform is known, but for those that the estate lacks."""
        return [qmgr for qmgr in self._qmgrs if qmgr in self._about and qmgr not in self._unknown]

    def _groups(self) -> list[str]:
        return list(dict.fromkeys(self._about[qmgr].group for qmgr in self._known() if self._about[qmgr].group))

    def _all_members(self) -> list[str]:
        """Return the queue managers whose state is asked for: those to ask, and other members of their groups."""
        others = [member for group in self._groups() for member in self._members.get(group, ())]
        return list(dict.fromkeys([*self._known(), *(name for name in others if name not in self._qmgrs)]))

    def _ask_group(self, own: _Round, command: Command, group: str) -> Generator[None, None, bool]:
        """Ask one member of a group, beginning with the one that answered last; return False if none answered."""
        members = [qmgr for qmgr in self._known() if self._about[qmgr].group == group]
        for member in sorted(members, key=lambda name: name != self._answering.get(group)):
            if (yield from self._cover(own, command, member, member)):
                self._answering[group] = member
                return True
        return False

    def _ask_member(self, own: _Round, command: Command, member: str) -> Iterator[None]:
        """Ask a queue manager, or with CMDSCOPE the first member of its group that can be asked."""
        group = self._about[member].group
        others = [qmgr for qmgr in self._known() if self._about[qmgr].group == group and not self._is_paused((qmgr,))]
        qmgr = member if member in self._qmgrs else next(iter(others), None)
        if qmgr is not None:
            yield from self._cover(own, command, qmgr, member)

    def _cover(self, own: _Round, command: Command, qmgr: str, member: str) -> Generator[None, None, bool]:
        """Ask a queue manager for all names of a command, in parts if need be; return False without a whole answer.

        Args:
            own: the round.
            command: the command.
            qmgr: queue manager to ask.
            member: queue manager whose state is shown, by CMDSCOPE if it is another one.
        """
        cut = self._cut.setdefault((qmgr, member, command.words("*")), set())
        patterns = deque([self._queues if command.qualifier in _OF_QUEUES else "*"])
        is_whole = True
        while patterns:
            pattern = patterns.popleft()
            if pattern in cut:
                patterns.extendleft(reversed(parts(pattern)))
                continue
            keys = _keys(qmgr, member, command.words(pattern))
            if self._is_over(own) or any(map(self._is_paused, keys)):
                is_whole = False
                continue
            yield
            try:
                with self._busy_at_stop(qmgr):
                    self._take(own, command, pattern, qmgr, member)
            except TooLargeError:
                if command.is_generic and pattern.endswith("*") and len(cut) + len(patterns) < MAX_PATTERNS:
                    cut.add(pattern)
                    patterns.appendleft(pattern)
                    continue
                text = f"an answer of more than {MAX_ANSWER_BYTES:,} bytes; expected: --queues with fewer names"
                self._fail(FailedRequestError("too-large", text), keys)
                is_whole = False
            except FailedRequestError as failure:
                if failure.may_run and command.qualifier in _OF_QUEUES and pattern.endswith("*"):
                    self._note_late(keys[-1], cut, pattern)
                self._fail(failure, keys)
                is_whole = False
            else:
                self._late.pop(keys[-1], None)
                for key in keys:
                    self._succeed(key)
        return is_whole

    @contextmanager
    def _busy_at_stop(self, qmgr: str) -> Iterator[None]:
        """Keep that a queue manager may still run the command of the block, which a stop leaves."""
        try:
            yield
        except StopRequestedError:
            self.set_busy({qmgr: self.clock() + round(DEADLINE_S * 1e6)})
            raise

    def _note_late(self, key: _Key, cut: set[str], pattern: str) -> None:
        """Cut a pattern that was not answered twice in a row: it may have more queues than the server has time for."""
        self._late[key] += 1
        if self._late[key] >= _MAX_LATE and len(cut) < MAX_PATTERNS // len(NAME_CHARACTERS):
            del self._late[key]
            cut.add(pattern)
            self._say(f"{_label(key)}: {_MAX_LATE} requests in a row without an answer; it is asked in parts")

    def _take(self, own: _Round, command: Command, pattern: str, qmgr: str, member: str) -> None:
        """Add the answer to a command to the round. Raise FailedRequestError or TooLargeError."""
        scope = "" if member == qmgr else member
        form = (qmgr, command.qualifier)
        is_text = command.is_text or form in self._refused_forms
        url, answer = self._session.post(own.requester, qmgr, command.body(pattern, scope, is_text=is_text))
        if answer.status == HTTPStatus.BAD_REQUEST and not is_text:
            refusal = reason_of(answer)
            url, answer = self._session.post(own.requester, qmgr, command.body(pattern, scope, is_text=True))
            if answer.status == HTTPStatus.OK:
                self._refused_forms.add(form)
                self._say(f"{qmgr}: DISPLAY {command.qualifier} as text, because its JSON form is refused: {refusal}")
        if answer.status != HTTPStatus.OK:
            raise FailedRequestError("command-failed", f"{reason_of(answer)}; expected: status 200")
        own.byte_count += len(answer.body)
        body = decode_answer(answer.body)
        if body is None:
            kind = answer.header("content-type") or "no content type"
            is_json = "json" in kind
            text = f"an answer of {len(answer.body):,} bytes, {kind}, without whole JSON; expected: commandResponse"
            raise FailedRequestError("no-answer", text, "command" if is_json else "queue manager")
        if not body.has_objects():
            if body.has_found_nothing():
                return
            raise FailedRequestError("command-failed", f"{body.failure()[:_MAX_TEXT]}; expected: reason 0")
        headers = {
            "content-type": answer.header("content-type"),
            "mqweb.round": str(own.start),
            "mqweb.command": command.words(pattern),
            "mqweb.qmgr": member,
        }
        own.pages.append(Page(answer.body, url, self.clock(), headers))

    # --- failures ----------------------------------------------------------------------------------------------------

    def _is_over(self, own: _Round) -> bool:
        """Return True if the answers of a round are too large together, with a complaint the first time."""
        if own.byte_count <= MAX_ROUND_BYTES:
            return False
        if not self._is_cut_off:
            self._is_cut_off = True
            text = f"a round of more than {MAX_ROUND_BYTES:,} bytes; expected: --queues with fewer names"
            self._complain("too-large", self.name, f"{text}. The rest of it is not asked")
        return True

    def _is_paused(self, key: _Key) -> bool:
        pause = self._pauses.get(key)
        return pause is not None and pause.is_on(self.clock())

    def _fail(self, failure: FailedRequestError, keys: Sequence[_Key]) -> None:
        """Wait after a failure, and complain if it is another one than before. keys: see `_keys`."""
        server, asked, member, command = keys
        now = self.clock()
        if failure.may_run:  # it is the queue manager asked that runs the command, or waits for the member
            self.set_busy({asked[0]: now + round(failure.wait_s * 1e6)})
        key = {"server": server, "queue manager": member, "command": command}[failure.reach]
        pause = self._pauses.setdefault(key, _Pause())
        pause.count += 1
        pause.extend(now, max(failure.wait_s, min(FIRST_WAIT_S * 2 ** min(pause.count - 1, 20), MAX_WAIT_S)))
        complaint = (failure.code, f"{_label(key)}: {failure}")
        if complaint != pause.complaint:
            pause.complaint = complaint
            self._complain(failure.code, self.name, complaint[1])

    def _succeed(self, key: _Key) -> None:
        pause = self._pauses.pop(key, None)
        if pause is not None and pause.count:
            self._say(f"{_label(key)}: answers again")


class MqwebSource(Source):
    """Rounds each `interval_s` seconds, after definitions at the start and once an hour. A missed round is skipped.

    Args:
        mqweb: the client.
        interval_s: seconds between the starts of two rounds.
        position: that of an earlier process, of which it takes who may be busy; what was missed is not asked for.
    """

    is_asked = True

    def __init__(self, mqweb: Mqweb, interval_s: float, position: Position | None = None) -> None:
        self.name = mqweb.name
        self._mqweb = mqweb
        mqweb.set_busy({} if position is None else position.busy)
        self._interval = round(interval_s * 1e6)
        self._steps: Generator[None, None, list[Page]] | None = None
        self._started: int | None = None  # the last round of levels
        self._defined: int | None = None  # the last round of definitions
        self._unplaced = 0  # queues without a definition, as of that round
        self._wants_definitions = False

    @override
    def read(self) -> list[Page]:
        """Make the next request of a round; return its pages behind the last one."""
        if self._steps is None:
            self._steps = self._next_round()
            if self._steps is None:
                return []
        try:
            next(self._steps)
        except StopIteration as end:
            self._steps = None
            pages: list[Page] = end.value
            return pages
        return []

    def _next_round(self) -> Generator[None, None, list[Page]] | None:
        """Return the round that is due; None after a wait."""
        now = self._mqweb.clock()
        wait_s = NEW_QUEUES_S if self._wants_definitions else DEFINITIONS_S
        if self._defined is None or not 0 <= now - self._defined < wait_s * 1e6:
            self._defined, self._wants_definitions = now, False
            return self._mqweb.steps(has_definitions=True)
        if self._started is None or not 0 <= now - self._started < self._interval:
            late = 0 if self._started is None else (now - self._started) % self._interval
            self._started = now - late
            return self._mqweb.steps(has_definitions=False)
        time.sleep(min((self._started + self._interval - now) / 1e6, _READ_SECONDS))
        return None

    @override
    def note_taken(self, page: Page, feed: Feed) -> None:
        """Ask for definitions sooner where queues have come up that the estate lacks: their stores are not known."""
        if len(feed.intake.unplaced) > self._unplaced:
            self._unplaced, self._wants_definitions = len(feed.intake.unplaced), True

    @override
    def note_events(self, events: Iterable[Event]) -> None:
        self._mqweb.say_round(events)

    @override
    def position(self, feed: Feed) -> Position:
        return Position(source=self.name, time=self._started or 0, busy=self._mqweb.busy)

    @override
    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()
        self._mqweb.close()


def _result(steps: Generator[None, None, list[Page]]) -> list[Page]:
    """Return what a generator returns at its end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            pages: list[Page] = end.value
            return pages


def _objects(page: Page) -> Iterator[dict[str, str]]:
    """Yield the objects of an answer, values by keyword."""
    body = decode_answer(bytes(page.data))
    yield from (AnswerBody() if body is None else body).objects()


def _keys(qmgr: str, member: str, words: str) -> tuple[_Key, _Key, _Key, _Key]:
    """Return what a request needs: the server, the queue manager asked, the one that is shown, the command there."""
    name = qmgr if member == qmgr else f"{member} by CMDSCOPE"
    return (), (qmgr,), (name,), (name, words)


def _unknown_text(qmgr: str, about: _About) -> str:
    """Return the complaint about a queue manager that the estate lacks, with its line there."""
    line = f"{qmgr} in the queue_managers of [queue_sharing_group.{about.group}]"
    if not about.group:
        line = f'[queue_manager."{qmgr}"]' + (f' platform = "{DISTRIBUTED}"' if about.platform == DISTRIBUTED else "")
    expected = f"expected: {line} there, as mqtwin start --live writes it, and a restart of job and collector"
    return f"{qmgr} is not in the estate, so only its definition is asked for; {expected}"


def _label(key: _Key) -> str:
    return ", ".join(key) or "the server"
