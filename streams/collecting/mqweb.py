"""Rounds of DISPLAY commands to queue managers through the REST interface of MQ (mqweb), as pages of the feed `rest`.

The command server of a queue manager runs one command after another, for other users, too. So one request is made at a
time; what failed waits longer each time; and after a request without an answer, which may still be running, nothing is
asked there for as long as the server may take. A round asks what it can and never waits, but for its ceiling of
commands a minute: what is missing comes with a later round. On z/OS a server reaches the queue managers of its own LPAR
[assumed]: one that it does not reach is asked at the next server, or with CMDSCOPE through another of its group. Limits
of single requests are those of `streams.collecting.mqweb_session`.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import NamedTuple

from typing_extensions import override

from streams.collecting.http import HttpClient, Requester
from streams.collecting.mqweb_session import (
    CFSTATUS,
    CFSTATUS_SMDS,
    CFSTRUCT,
    DEADLINE_S,
    MAX_ANSWER_BYTES,
    NAME_CHARACTERS,
    QLOCAL,
    QLOCAL_ZOS,
    QMGR,
    QMSTATUS,
    QSTATUS,
    QSTATUS_MEMBER,
    QSTATUS_PRIVATE,
    STGCLASS,
    USAGE,
    AnswerBody,
    Command,
    FailedRequestError,
    MqwebSession,
    TooLargeError,
    check_name,
    check_pattern,
    decode_answer,
    parts,
    reason_of,
    smds,
    smds_connections,
)
from streams.collecting.sources import Position, Source
from streams.host.signals import StopRequestedError
from twin.base.errors import UsageError
from twin.base.units import as_count
from twin.estate import Estate, PageSet
from twin.estate.model import structures_of
from twin.events import Event
from twin.feeds import Feed, Page

MAX_ROUND_BYTES = 128 << 20  # of the answers of a round; the rest of it is not asked
MAX_PATTERNS = 2_000  # into which the names of one command are cut
FIRST_WAIT_S = 10.0  # after a first failure; doubled with each further one
MAX_WAIT_S = 300.0
DEFINITIONS_S = 3600.0  # between two rounds of definitions
NEW_QUEUES_S = 300.0  # the same where a queue has come up that the estate lacks
USUAL_S = 30.0  # between two rounds of levels, of a site of usual size
MAX_USUAL_S = 300.0
_USUAL_COMMANDS, _USUAL_QUEUES = 60, 10_000  # of a round each 30 s: of twice as many a round each 60 s [assumed]
_CONNECTION_ROUNDS = 10  # in which the connections to data sets are asked for once: DISPLAY CFSTATUS shows their state
_MAX_TEXT = 300  # characters of the messages of a command
_READ_SECONDS = 0.2
_MAX_LATE = 2  # requests in a row without an answer, before a command is cut
_MINUTE_US = 60_000_000
_SAY_US = 3_600_000_000  # between two lines about rounds of a kind
_HOURLY = "DISPLAY QLOCAL"  # what is learnt of it is of use an hour later
_OF_QUEUES = frozenset(("QSTATUS", "QLOCAL"))

ZOS, DISTRIBUTED = "zos", "distributed"

_Key = tuple[str, ...]  # () the login, (server,), (queue manager,), (queue manager, command)
_Way = tuple[str, str]  # server, and queue manager there that is asked


class _Keys(NamedTuple):
    """Keys of what a request needs: the failure of each keeps others from being made."""

    login: _Key
    server: _Key
    asked: _Key  # the queue manager asked
    way: _Key  # that at the server
    member: _Key  # the one that is shown
    command: _Key  # the command there


def microseconds() -> int:
    """Return the time, microseconds since 1970."""
    return time.time_ns() // 1000


@dataclass
class _Pause:
    """A time without requests after failures: their number, its start and end, microseconds; the last complaint.

    `is_elsewhere`: another way may lead there meanwhile; `failure`: code and text of the last one.
    """

    count: int = 0
    start: int = 0
    end: int = 0
    is_elsewhere: bool = False
    failure: tuple[str, str] = ("", "")
    complaint: tuple[str, str] = ("", "")

    def extend(self, now: int, wait_s: float) -> None:
        """Wait from now on."""
        self.start, self.end = now, now + round(wait_s * 1e6)

    def is_on(self, now: int) -> bool:
        return self.start <= now < self.end  # a clock that is set back ends it


class _Request(NamedTuple):
    """A command to a queue manager, in a way."""

    command: Command
    pattern: str
    way: _Way
    member: str  # queue manager whose state is shown, by CMDSCOPE if it is another one than is asked
    keys: _Keys
    cut: set[str]  # patterns whose answers are too large


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
    """Rounds of commands to queue managers. UsageError: a name is none of MQ, or the login has no user.

    Args:
        qmgrs: names of the queue managers to ask. Other members of their groups, by the estate, are asked through them.
        estate: platforms and groups before the queue managers say so; None: nothing is known.
        gateway: gateway queue manager through which the server reaches the others; None: its own.
        clock: time, microseconds since 1970.
        say: called with what is worth a line and is no failure.
    """

    def __init__(
        self,
        urls: Sequence[str],
        qmgrs: Sequence[str],
        client: HttpClient,
        estate: Estate | None,
        *,
        complain: Callable[[str, str, str], None],
        queues: str = "*",
        gateway: str | None = None,
        has_token: bool = False,
        max_per_minute: int | None = None,
        clock: Callable[[], int] = microseconds,
        sleep: Callable[[float], None] = time.sleep,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        servers = dict.fromkeys(url.partition("/ibmmq")[0].rstrip("/") for url in urls)
        self.name = ",".join(servers)
        self.clock, self.sleep = clock, sleep
        if not qmgrs:
            raise UsageError("no queue manager to ask; expected: --qmgr QM01,QM02")
        self._qmgrs = [check_name("--qmgr", qmgr) for qmgr in dict.fromkeys(qmgrs)]
        self._sessions = {
            url: MqwebSession(url, client, gateway=gateway, has_token=has_token, clock=clock, pace=self._pace)
            for url in servers
        }
        self._home: dict[str, str] = {}  # by queue manager: the server that has reached it last
        self._max_per_minute = max_per_minute
        self._asked_at: deque[int] = deque()  # times of the requests of the last minute, if there is a ceiling
        self._complain, self.say = complain, say
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
        self._connection = 0  # place of the next one to ask for
        self.cost = (0, 0)  # requests, and bytes of answers, of the last round
        self._line = ""  # about the last round, until its events are known; "": it is not worth a line
        known = self._qmgrs if estate is None else estate.queue_managers
        self._unknown = dict.fromkeys((qmgr for qmgr in self._qmgrs if qmgr not in known), True)  # True: not said yet
        for name, config in estate.queue_managers.items() if estate is not None else ():
            self._about[name] = _About(config.platform, config.queue_sharing_group or "")
            if config.queue_sharing_group:
                self._members.setdefault(config.queue_sharing_group, []).append(name)
        stores = [] if estate is None else list(estate.stores.values())
        for store in structures_of(stores):
            if store.offload == "SMDS":
                group, _, structure = store.name.partition("/")
                self._offloading.setdefault(group, []).append(structure)
        self._queue_count = Counter(name for own in stores for name in own.queue_managers for _ in own.queues)
        private = {name for own in stores if own.kind == PageSet.kind and own.queues for name in own.queue_managers}
        self._only_shared = {name for name in self._about if name not in private}

    @property
    def usual_interval_s(self) -> float:
        """Seconds between two rounds of levels that suit the number of commands and queues, and the ceiling."""
        members = self._all_members()
        commands = 2 * len(self._groups()) + 2 * len(members) + self._connections_a_round(members)
        queues = sum(self._queue_count[name] for name in members)
        times = max(1, math.ceil(commands / _USUAL_COMMANDS), math.ceil(queues / _USUAL_QUEUES))
        usual_s = min(MAX_USUAL_S, USUAL_S * times)
        if self._max_per_minute is None:
            return usual_s
        return max(usual_s, USUAL_S * math.ceil(60.0 * commands / self._max_per_minute / USUAL_S))

    def definitions(self) -> list[Page]:
        """Return the answers about definitions, in the order asked."""
        return _result(self.steps(has_definitions=True))

    def levels(self) -> list[Page]:
        """Return the answers about levels, in the order asked."""
        return _result(self.steps(has_definitions=False))

    def steps(self, *, has_definitions: bool) -> Generator[None, None, list[Page]]:
        """Ask, with a step in front of each request; return the answers of the round, in the order asked."""
        if sum(own.has_new_login() for own in self._sessions.values()) and () in self._pauses:
            self._pauses[()].extend(self.clock(), 0.0)
        start_s, requests, self._line = time.monotonic(), self._request_count, ""
        with next(iter(self._sessions.values())).open() as requester:
            own = _Round(requester, self.clock())
            yield from self._definitions(own) if has_definitions else self._levels(own)
        if own.byte_count <= MAX_ROUND_BYTES:
            self._is_cut_off = False
        self.cost = self._request_count - requests, own.byte_count
        pages = own.pages
        if pages:
            pages[-1] = replace(pages[-1], headers={**pages[-1].headers, "mqweb.last": "1"})
        if not 0 <= own.start - self._reported.get(has_definitions, -_SAY_US) < _SAY_US:
            self._reported[has_definitions] = own.start
            what = "definitions" if has_definitions else "levels"
            count = as_count(self.cost[0], "request")
            self._line = f"{what} in {time.monotonic() - start_s:.1f} s: {count}, {own.byte_count:,} bytes of answers"
            if not pages:
                self.say_round(())
        return pages

    def say_round(self, events: Iterable[Event]) -> None:
        """Say how long the last round took and how much it was, at most once an hour. events: those of its pages."""
        if self._line:
            numbers = Counter(event["op"] for event in events)
            gave = [as_count(number, op) for op, number in sorted(numbers.items())]
            self.say(f"{self._line}, {', '.join(gave) or 'no event'}")
            self._line = ""

    def close(self) -> None:
        """Log out."""
        for session in self._sessions.values():
            session.close()

    @property
    def _request_count(self) -> int:
        return sum(session.request_count for session in self._sessions.values())

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
                pause = self._pauses.setdefault((qmgr,), _Pause())
                pause.extend(now, (end - now) / 1e6)
                pause.is_elsewhere = False

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
                yield from self._cover(own, STGCLASS, member)
        for member in self._all_members():
            command = QLOCAL_ZOS if self._about[member].platform == ZOS else QLOCAL
            yield from self._cover(own, command, member)

    def _levels(self, own: _Round) -> Iterator[None]:
        for qmgr in self._qmgrs:
            if qmgr not in self._about:
                yield from self._learn(own, qmgr)
        for command in (CFSTATUS, CFSTATUS_SMDS):
            for group in self._groups():
                yield from self._ask_group(own, command, group)
        covered_groups: set[str] = set()  # those of which a member has shown all of their queues
        for is_asked in (True, False):  # one that is asked through another may cost that one's time: it comes last
            members = [name for name in self._all_members() if (name in self._qmgrs) == is_asked]
            for name in members:
                group = self._about[name].group
                command = QSTATUS_MEMBER if name in self._only_shared else QSTATUS_PRIVATE
                is_whole = yield from self._cover(own, command if group in covered_groups else QSTATUS, name)
                covered_groups |= {group} if group and is_whole else set()
            for name in members:
                yield from self._cover(own, USAGE if self._about[name].platform == ZOS else QMSTATUS, name)
        connections = self._connections(self._all_members())
        for number in range(self._connection, self._connection + self._connections_a_round(self._all_members())):
            name, structure = connections[number % len(connections)]
            self._connection = (number + 1) % len(connections)
            yield from self._cover(own, smds_connections(structure), name)

    def _connections(self, members: Sequence[str]) -> list[tuple[str, str]]:
        """Return members and the structures with data sets that they may have open."""
        return [
            (name, structure) for name in members for structure in self._offloading.get(self._about[name].group, ())
        ]

    def _connections_a_round(self, members: Sequence[str]) -> int:
        return -(-len(self._connections(members)) // _CONNECTION_ROUNDS)

    def _learn(self, own: _Round, qmgr: str) -> Iterator[None]:
        number = len(own.pages)
        yield from self._cover(own, QMGR, qmgr)
        fields = {word: value for page in own.pages[number:] for each in _objects(page) for word, value in each.items()}
        if "PLATFORM" in fields:
            platform = ZOS if fields["PLATFORM"] in {"MVS", "ZOS"} else DISTRIBUTED
            self._about[qmgr] = _About(platform, fields.get("QSGNAME", ""))
            if self._unknown.get(qmgr):
                self._unknown[qmgr] = False
                self._complain("unknown-name", self.name, _unknown_text(qmgr, self._about[qmgr]))

    def _known(self) -> list[str]:
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
            if (yield from self._cover(own, command, member, is_direct=True)):
                self._answering[group] = member
                return True
        return False

    def _ways(self, member: str, *, is_direct: bool) -> list[_Way]:
        """Return the ways to ask a queue manager, best first: itself; if no server reaches it, others with CMDSCOPE."""
        if member in self._qmgrs:
            direct = self._ways_to(member)
            ways = [way for way in direct if self._closed(way) is None]
            if ways or is_direct or any(own is not None and not own.is_elsewhere for own in map(self._closed, direct)):
                return ways
        return [
            way
            for qmgr in self._others(member)
            if qmgr in self._qmgrs
            for way in self._ways_to(qmgr)
            if self._closed(way) is None
        ]

    def _ways_to(self, qmgr: str) -> list[_Way]:
        """Return the servers to ask a queue manager at, that which has reached it last in front."""
        return [(url, qmgr) for url in sorted(self._sessions, key=lambda url: url != self._home.get(qmgr))]

    def _others(self, member: str) -> list[str]:
        own = self._about.get(member)
        if own is None:
            return [
                name for name in self._qmgrs if name != member and (name not in self._about or self._about[name].group)
            ]
        return [name for name in self._known() if name != member and own.group and self._about[name].group == own.group]

    def _closed(self, way: _Way) -> _Pause | None:
        """Return why a way is not taken; None if it is."""
        keys = self._keys(*way, way[1], "")
        pauses = [self._pauses[key] for key in keys[: _Keys._fields.index("way") + 1] if self._is_paused(key)]
        return min(pauses, key=lambda pause: pause.is_elsewhere, default=None)

    def _keys(self, url: str, qmgr: str, member: str, words: str) -> _Keys:
        way = qmgr if len(self._sessions) == 1 else f"{qmgr} at {url}"
        name = qmgr if member == qmgr else f"{member} by CMDSCOPE"
        return _Keys((), (url,), (qmgr,), (way,), (name,), (name, words))

    def _cover(
        self, own: _Round, command: Command, member: str, *, is_direct: bool = False
    ) -> Generator[None, None, bool]:
        """Ask for all names of a command, in parts if need be; return False without a whole answer."""
        patterns = deque([self._queues if command.qualifier in _OF_QUEUES else "*"])
        is_whole = True
        while patterns:
            pattern = patterns.popleft()
            request = self._request(command, pattern, member, is_direct=is_direct)
            if request is not None and pattern in request.cut:
                patterns.extendleft(reversed(parts(pattern)))
                continue
            if request is None or self._is_over(own) or any(map(self._is_paused, request.keys)):
                is_whole = False
                continue
            yield from self._wait()
            try:
                with self._busy_at_stop(request.way[1]):
                    self._take(own, request)
            except TooLargeError:
                is_again = self._note_too_large(request, len(patterns))
            except FailedRequestError as failure:
                is_again = self._note_failure(failure, request, is_direct=is_direct)
            else:
                self._note_success(request)
                continue
            if is_again:
                patterns.appendleft(pattern)
            is_whole = is_whole and is_again
        return is_whole

    def _request(self, command: Command, pattern: str, member: str, *, is_direct: bool) -> _Request | None:
        """Return the request for a pattern in the best way; None if there is no way. Arguments as of `_cover`."""
        way = next(iter(self._ways(member, is_direct=is_direct)), None)
        if way is None:
            return None
        cut = self._cut.setdefault((way[1], member, command.words("*")), set())
        return _Request(command, pattern, way, member, self._keys(*way, member, command.words(pattern)), cut)

    def _wait(self) -> Iterator[None]:
        """Wait in steps until a request may be made under the ceiling; the last step is the request's."""
        while (wait_s := self._wait_s()) > 0:
            yield
            self.sleep(min(wait_s, _READ_SECONDS))
        yield

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
            self.say(f"{self._label(key)}: {_MAX_LATE} requests in a row without an answer; it is asked in parts")

    def _take(self, own: _Round, request: _Request) -> None:
        """Add the answer to a command to the round. Raise FailedRequestError or TooLargeError."""
        command, pattern, (url, qmgr), member, *_ = request
        session = self._sessions[url]
        scope = "" if member == qmgr else member
        form = (qmgr, command.qualifier)
        is_text = command.is_text or form in self._refused_forms
        address, answer = session.post(own.requester, qmgr, command.body(pattern, scope, is_text=is_text))
        if answer.status == HTTPStatus.BAD_REQUEST and not is_text:
            refusal = reason_of(answer)
            address, answer = session.post(own.requester, qmgr, command.body(pattern, scope, is_text=True))
            if answer.status == HTTPStatus.OK:
                self._refused_forms.add(form)
                self.say(f"{qmgr}: DISPLAY {command.qualifier} as text, because its JSON form is refused: {refusal}")
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
        own.pages.append(Page(answer.body, address, self.clock(), headers))

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

    def _note_too_large(self, request: _Request, patterns: int) -> bool:
        """Cut a pattern whose answer is too large and return True; complain if it cannot be cut."""
        is_cut = request.command.is_generic and request.pattern.endswith("*")
        if is_cut and len(request.cut) + patterns < MAX_PATTERNS:
            request.cut.add(request.pattern)
            return True
        text = f"an answer of more than {MAX_ANSWER_BYTES:,} bytes; expected: --queues with fewer names"
        return self._note_failure(FailedRequestError("too-large", text), request, is_direct=True)

    def _note_failure(self, failure: FailedRequestError, request: _Request, *, is_direct: bool) -> bool:
        """Wait after a failure and return True if there is another way; else complain of what is new. If all ways are
        direct and the server does not reach it, another member is asked.
        """
        if failure.may_run and request.command.qualifier in _OF_QUEUES and request.pattern.endswith("*"):
            self._note_late(request.keys.command, request.cut, request.pattern)
        texts = [self._pauses[own].complaint for own in self._unreached(request.member)]
        has_worked = any(text and not code for code, text in texts)
        is_vain = request.way[1] != request.member and bool(texts) and not has_worked
        key = self._pause(failure, request.keys, is_vain=is_vain)
        is_of_way = key == request.keys.way and failure.is_elsewhere
        if not is_of_way and not is_vain:
            self._say_once(key, failure.code, str(failure))
        if failure.is_elsewhere and self._ways(request.member, is_direct=is_direct):
            return True
        if not is_direct:
            further = "" if failure.is_elsewhere else f"; {self._label(key)}: {failure}"
            for own in self._unreached(request.member):
                code, text = self._pauses[own].failure
                self._say_once(own, code, f"{text}{further if is_vain else ''}")
        return False

    def _note_success(self, request: _Request) -> None:
        """End the waits of a request that was answered; say that it went by CMDSCOPE because no server reaches it."""
        url, qmgr = request.way
        self._home[qmgr] = url
        self._late.pop(request.keys.command, None)
        for key in request.keys:
            self._succeed(key)
        for key in self._unreached(request.member) if qmgr != request.member else ():
            how = f"{self._label(request.keys.member)}, through {self._label(request.keys.way)}"
            self._say_once(key, "", f"{self._pauses[key].failure[1]}. It is asked otherwise: {how}")

    def _unreached(self, member: str) -> list[_Key]:
        """Return the keys of the ways to a queue manager itself at servers that do not reach it."""
        keys = [self._keys(*way, member, "").way for way in self._ways_to(member)] if member in self._qmgrs else []
        return [key for key in keys if key in self._pauses and self._pauses[key].is_elsewhere]

    def _pause(self, failure: FailedRequestError, keys: _Keys, *, is_vain: bool) -> _Key:
        """Wait after a failure; return the key of what waits. It is in vain if no server reaches the member and it has
        not answered by CMDSCOPE yet: probably it does not run.
        """
        now = self.clock()
        if failure.may_run:  # it is the queue manager asked that runs the command, or waits for the member
            self.set_busy({keys.asked[0]: now + round(failure.wait_s * 1e6)})
        own = keys.way if failure.is_elsewhere else keys.member
        command = keys.member if is_vain else keys.command
        key = {"login": keys.login, "server": keys.server, "queue manager": own, "command": command}[failure.reach]
        pause = self._pauses.setdefault(key, _Pause())
        pause.count += 1
        pause.is_elsewhere, pause.failure = failure.is_elsewhere, (failure.code, str(failure))
        pause.extend(now, max(failure.wait_s, min(FIRST_WAIT_S * 2 ** min(pause.count - 1, 20), MAX_WAIT_S)))
        return key

    def _say_once(self, key: _Key, code: str, text: str) -> None:
        """Complain of a failure, or say with code "" how it is helped, if that is another text than before."""
        line = f"{self._label(key)}: {text}"
        pause = self._pauses.setdefault(key, _Pause())
        if (code, line) == pause.complaint:
            return
        pause.complaint = (code, line)
        if code:
            self._complain(code, self.name, line)
        else:
            self.say(line)

    def _wait_s(self) -> float:
        if self._max_per_minute is None:
            return 0.0
        now = self.clock()
        while self._asked_at and not 0 <= now - self._asked_at[0] < _MINUTE_US:
            self._asked_at.popleft()
        if len(self._asked_at) < self._max_per_minute:
            return 0.0
        return (self._asked_at[0] + _MINUTE_US - now) / 1e6

    def _pace(self) -> None:
        while (wait_s := self._wait_s()) > 0:
            self.sleep(min(wait_s, _READ_SECONDS))
        if self._max_per_minute is not None:
            self._asked_at.append(self.clock())

    def _label(self, key: _Key) -> str:
        if not key or key[0] in self._sessions:
            return "the server" if not key or len(self._sessions) == 1 else f"the server {key[0]}"
        return ", ".join(key)

    def _succeed(self, key: _Key) -> None:
        pause = self._pauses.pop(key, None)
        if pause is not None and pause.count:
            self.say(f"{self._label(key)}: answers again")


class MqwebSource(Source):
    """Rounds each `interval_s` seconds, after definitions at the start and once an hour. A missed round is skipped.
    Without `interval_s` it follows from the size of the site. Of an earlier position it takes who may be busy; what was
    missed is not asked for.
    """

    is_asked = True

    def __init__(self, mqweb: Mqweb, interval_s: float | None, position: Position | None = None) -> None:
        self.name = mqweb.name
        self._mqweb = mqweb
        mqweb.set_busy({} if position is None else position.busy)
        self._interval = round((mqweb.usual_interval_s if interval_s is None else interval_s) * 1e6)
        self._steps: Generator[None, None, list[Page]] | None = None
        self._started: int | None = None  # the last round of levels
        self._defined: int | None = None  # the last round of definitions
        self._unplaced = 0  # queues without a definition, as of that round
        self._wants_definitions = False
        self._began: int | None = None  # the round of levels that runs
        self._said_long = -_SAY_US  # the last line about a round that took longer than its interval
        if interval_s is None and self._interval > USUAL_S * 1e6:
            text = "by the number of commands and queues, and the ceiling"
            mqweb.say(f"a round each {self._interval / 1e6:.0f} s, {text}; --interval-s sets another")

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
            self._say_long()
            pages: list[Page] = end.value
            return pages
        return []

    def _say_long(self) -> None:
        """Say that a round took longer than its interval, at most once an hour: the next ones begin late."""
        now = self._mqweb.clock()
        took, self._began = 0 if self._began is None else now - self._began, None
        if took > self._interval and not 0 <= now - self._said_long < _SAY_US:
            self._said_long = now
            requests, size = self._mqweb.cost
            what = f"a round took {took / 1e6:.0f} s, longer than its interval of {self._interval / 1e6:.0f} s"
            expected = f"expected: --interval-s {-(-took // 10_000_000) * 10} or more, or --queues with fewer names"
            self._mqweb.say(f"{what}: {as_count(requests, 'request')}, {size:,} bytes of answers; {expected}")

    def _next_round(self) -> Generator[None, None, list[Page]] | None:
        now = self._mqweb.clock()
        wait_s = NEW_QUEUES_S if self._wants_definitions else DEFINITIONS_S
        if self._defined is None or not 0 <= now - self._defined < wait_s * 1e6:
            self._defined, self._wants_definitions = now, False
            return self._mqweb.steps(has_definitions=True)
        if self._started is None or not 0 <= now - self._started < self._interval:
            late = 0 if self._started is None else (now - self._started) % self._interval
            self._began, self._started = now, now - late
            return self._mqweb.steps(has_definitions=False)
        self._mqweb.sleep(min((self._started + self._interval - now) / 1e6, _READ_SECONDS))
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
    while True:
        try:
            next(steps)
        except StopIteration as end:
            pages: list[Page] = end.value
            return pages


def _objects(page: Page) -> Iterator[dict[str, str]]:
    body = decode_answer(bytes(page.data))
    yield from (AnswerBody() if body is None else body).objects()


def _unknown_text(qmgr: str, about: _About) -> str:
    line = f"{qmgr} in the queue_managers of [queue_sharing_group.{about.group}]"
    if not about.group:
        line = f'[queue_manager."{qmgr}"]' + (f' platform = "{DISTRIBUTED}"' if about.platform == DISTRIBUTED else "")
    expected = f"expected: {line} there, as mqtwin start --live writes it, and a restart of job and collector"
    return f"{qmgr} is not in the estate, so only its definition is asked for; {expected}"
