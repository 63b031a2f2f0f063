"""Act: a step of an alert's runbook as a change that can be handed over, and the site's list of allowed changes.

- A change comes with its predicted effect: docs/acts.md. The statement of an alert is a text of others. It is read as
  one of four templates with typed parameters, written anew from these by the code of the runbook, and refused where the
  two differ: no text of a record is handed over.
- The site's own list, actions.toml, is described in docs/acts.md. Nothing is allowed by default. The file says who may
  not be doubted later, so it belongs to who runs the process, and nobody else may read or write it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from kernels.clock import SECOND
from twin import capacity
from twin.base.conditions import Condition
from twin.base.decoding import UNREADABLE
from twin.base.errors import UsageError
from twin.base.units import as_datetime, as_microseconds, as_span, parse_size, zone_of
from twin.estate import MessageStoreConfig, PageSet, QueueFile, Structure, policy_name_of
from twin.estate.attributes import mqsc_reading
from twin.estate.errors import EstateError, known_hint, show
from twin.estate.mqsc_text import parameters
from twin.estate.mqsc_text import statements as commands_of
from twin.estate.rows import WRONG
from twin.planning.whatif import FillOutcome, Moment, what_if
from twin.records import (
    Action,
    ActKind,
    AlertRecord,
    Expectation,
    PageSetState,
    QueueFileState,
    Requested,
    StateRecord,
    StructureState,
    hash_of,
    is_full_now,
)
from twin.records.acts import AHEAD_US, MAX_APPROVERS, MAX_TEXT, Language, Value

MAX_AGE_US = 60_000_000  # of a state that still says what there is
AROUND_US = 300_000_000  # by which a forecast may move beyond its own interval
_Alert = TypeVar("_Alert")
_KINDS: Mapping[type[MessageStoreConfig], ActKind] = {
    Structure: "alter-cfstruct",
    PageSet: "alter-psid",
    QueueFile: "alter-qlocal",
}
_SETXCF = re.compile("SETXCF START,ALTER,STRNAME=[A-Z0-9@#$_]{1,16},SIZE=([1-9][0-9]{0,14}[KMGT])")
_FORBIDS = frozenset((Condition.DRIFT, Condition.SOURCE_SILENT))  # while one is open, a prediction is of something else


class Change(NamedTuple):
    """A change of a store, by one of the templates."""

    kind: ActKind  # the template
    config: MessageStoreConfig
    settings: dict[str, Value]  # attributes of the store, in the order of the statement; sizes in bytes

    @property
    def language(self) -> Language:
        """The language of its statement."""
        return "SETXCF" if self.kind == "setxcf-alter" else "MQSC"

    @property
    def target(self) -> str:
        """Where to run it: a queue-sharing group, or a queue manager."""
        return self.config.table_key[0]

    @property
    def statement(self) -> str:
        """The command, one line."""
        if self.kind == "setxcf-alter":
            return capacity.alter_size(policy_name_of(self.config.name), int(self.settings["size"]))
        return capacity.mqsc(self.config, self.settings).strip()

    @property
    def look(self) -> str:
        """The command that shows whether it has run."""
        match self.config:
            case Structure() if self.kind == "setxcf-alter":
                return capacity.display_structure(self.config.policy_name)
            case PageSet():
                return f"DISPLAY USAGE PSID({self.config.psid})"
            case QueueFile():
                return capacity.display_queue_status(self.config.queue, "CURFSIZE CURMAXFS")
        return f"DISPLAY {self.config.mqsc_object} ALL"

    @property
    def sha256(self) -> str:
        """The hash that an approval names."""
        return hash_of(self.language, self.target, self.statement)


def read_change(text: str, config: MessageStoreConfig) -> Change:
    """Return the change that a statement of an alert is, which anybody may have written. UsageError: it is none of the
    templates, or not as this store's would be written.
    """
    change = None
    if len(text) <= MAX_TEXT and text.isprintable():
        change = _read_size(text, config) or _read_mqsc(text, config)
    if change is None or change.statement != text:
        raise UsageError(
            f"statement {show(text)} is not handed over; expected: ALTER {config.mqsc_object} as mqtwin writes it, or "
            "of a structure SETXCF START,ALTER with its SIZE"
        )
    return change


def rebuilt(request: Requested, config: MessageStoreConfig) -> Change:
    """Return the change of a request, made again. UsageError: its statement, target or hash is not what that gives."""
    change = read_change(request.statement, config)
    own = (request.kind, request.language, request.target, request.settings, request.sha256, request.look)
    if own != (change.kind, change.language, change.target, change.settings, change.sha256, change.look):
        raise UsageError(f"request {request.id} is not what its parameters give; expected: {change.statement}")
    return change


def _read_size(text: str, config: MessageStoreConfig) -> Change | None:
    match = _SETXCF.fullmatch(text)
    if match is None or "size" not in config.rows:
        return None
    return Change("setxcf-alter", config, {"size": parse_size(match[1])})


def _read_mqsc(text: str, config: MessageStoreConfig) -> Change | None:
    reading, settings = mqsc_reading(config.rows), dict[str, Value]()
    try:
        (command,) = commands_of(text, "statement")
        verb, thing, *words = parameters(command)
        if (verb.keyword, verb.values, thing.keyword) != ("ALTER", None, config.mqsc_type) or not words:
            return None
        for word in words:
            attribute, check = reading[word.keyword]
            (value,) = tuple(word.values or ())
            if not config.rows[attribute].action:
                return None
            settings[attribute] = check(value.text)
    except (EstateError, KeyError, *WRONG):
        return None
    return Change(_KINDS[type(config)], config, settings)


# --- proposals --------------------------------------------------------------------------------------------------------


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A change with its predicted effect: the dry run of an action. Other fields are as of `twin.records.Requested`."""

    alert_id: str
    action: str
    step: int
    summary: str  # summary, precondition, risk: texts of the action
    precondition: str | None
    risk: str | None
    store: str
    kind: ActKind
    settings: dict[str, Value]
    present: dict[str, Value | None]
    language: Language
    target: str
    statement: str
    sha256: str
    undo: str | None
    look: str
    state_time: str
    size: int | None
    forecast: Expectation | None
    before: Expectation
    after: Expectation


def alert_of(alerts: Mapping[str, _Alert], alert_id: str, place: str) -> _Alert:
    """Return an alert by its id, which anybody may have written, of those from `place`."""
    if not alerts:
        raise UsageError(f"alert {show(alert_id)}: {place} has no such alert; expected: one that is open, a later time")
    if alert_id not in alerts:
        raise UsageError(f"alert {show(alert_id)}: {place} has no such alert{known_hint(alert_id, alerts)}")
    return alerts[alert_id]


def propose(
    alert: AlertRecord, action: str, step: int | None, moment: Moment, state: StateRecord | None = None
) -> Proposal:
    """Return a step of an alert's runbook as a change, with its effect if the traffic continues. Nothing is changed.
    `step`: number from 1, None: the only one that is a change; `state`: None: that of the moment. UsageError: the alert
    is over, has no such action or step, the step is no change that is handed over, the store would refuse it, or its
    effect cannot be predicted.
    """
    data, twin = alert.data, moment.twin
    if data.store != twin.name:
        raise UsageError(f"alert {data.alert_id} is of {data.store}; expected: one of {twin.name}")
    if not alert.is_open:
        raise UsageError(f"alert {data.alert_id} has cleared; expected: one that is open")
    own = _action(data.alert_id, data.runbook, action)
    number, change = _step(own, step, twin.config)
    answer = what_if(moment, dict(change.settings), altered=True)
    state = twin.state() if state is None else state
    present: dict[str, Any] = {name: twin.value_of(name) for name in change.settings}
    back = change._replace(settings=present)
    return Proposal(
        alert_id=data.alert_id,
        action=own.id,
        step=number,
        summary=own.summary,
        precondition=own.precondition,
        risk=own.risk,
        store=twin.name,
        kind=change.kind,
        settings=change.settings,
        present=present,
        language=change.language,
        target=change.target,
        statement=change.statement,
        sha256=change.sha256,
        undo=None if present == change.settings else back.statement,
        look=change.look,
        state_time=answer.time if state.time is None else state.time,
        size=size_of(state),
        forecast=forecast_of(state),
        before=_expectation(answer.before),
        after=_expectation(answer.after),
    )


def _action(alert_id: str, runbook: Iterable[Action], action: str) -> Action:
    actions = {own.id: own for own in reversed(tuple(runbook))}  # of two with an id the first
    if action not in actions:
        known = ", ".join(own for own in reversed(actions))
        raise UsageError(f"action {show(action)}: alert {alert_id} has none of this id; expected: {known or 'none'}")
    return actions[action]


def _step(action: Action, step: int | None, config: MessageStoreConfig) -> tuple[int, Change]:
    """Return the number of a step and its change. step: as of `propose`."""
    numbered = dict(enumerate(action.steps, 1))
    if step is not None:
        if step not in numbered:
            raise UsageError(f"--step {step}: {action.id} has {len(numbered)} steps; expected: one of them")
        statement = numbered[step].statement
        if statement is None:
            raise UsageError(f"--step {step} of {action.id} has no command; expected: one with a command")
        return step, read_change(statement, config)
    changes: dict[int, Change] = {}
    problem = ""
    for number, own in numbered.items():
        try:
            if own.statement is not None:
                changes[number] = read_change(own.statement, config)
        except UsageError as error:
            problem = problem or f": {error}"
    if len(changes) > 1:
        raise UsageError(f"action {action.id} has several changes; expected: --step {' or '.join(map(str, changes))}")
    if not changes:
        raise UsageError(problem.removeprefix(": ") or f"action {action.id} has no command; expected: one that has")
    return next(iter(changes.items()))


def _expectation(outcome: FillOutcome) -> Expectation:
    return Expectation(
        resource=outcome.resource, p10=outcome.p10, p50=outcome.p50, p90=outcome.p90, probability=outcome.probability
    )


# --- what a prediction is of ------------------------------------------------------------------------------------------


def size_of(state: StateRecord) -> int | None:
    """Return the size of a store: bytes of a structure or of the maximum of a file, pages of a page set."""
    match state:
        case StructureState():
            return state.size
        case PageSetState():
            return state.pages_max
        case QueueFileState():
            return state.file_max_bytes
    return None


def forecast_of(state: StateRecord) -> Expectation | None:
    """Return the forecast of a state for the resource that is full first; None: it has none."""
    first = state.first
    if first is None:
        return None
    times = first.time_to_full_s
    return Expectation(
        resource=first.resource,
        p10=None if times is None else times.p10,
        p50=None if times is None else times.p50,
        p90=None if times is None else times.p90,
        probability=first.full_probability,
    )


def problem_of(store: str, state: StateRecord | None, alerts: Iterable[AlertRecord], now: int) -> str:
    """Return why nothing can be predicted of a store at a time of the wall clock, microseconds, and what is expected,
    or "".
    """
    if state is None or state.time is None:
        return f"{store} has no state; expected: a job that has processed its events"
    age = now - as_microseconds(state.time)
    if age > MAX_AGE_US:
        return f"the state of {store} is {as_span(age / 1e6)} old; expected: at most {MAX_AGE_US // 1_000_000} s"
    if age < -AHEAD_US:
        return f"the state of {store} is {as_span(-age / 1e6)} ahead of this clock; expected: clocks that agree"
    for alert in alerts:
        if alert.is_open and alert.data.store == store and alert.data.condition in _FORBIDS:
            return f"{alert.data.condition} of {store} is open since {alert.data.time}; expected: a twin that is right"
    return ""


def changed_since(request: Requested, state: StateRecord, *, is_open: bool) -> str:
    """Return what has changed since the request, or "". `state`: the last of its store; `is_open`: its alert is."""
    if not is_open:
        return "its alert is over"
    if size_of(state) != request.size:
        return f"the size of {request.store} is {size_of(state)}, it was {request.size}"
    former, present = request.forecast, forecast_of(state)
    expected = None if former is None else former.p50
    expects = None if present is None else present.p50
    if expected is None or expects is None:
        return "" if expected == expects else f"{request.store} is full {_when(expects)}, it was {_when(expected)}"
    if is_full_now(expected) and is_full_now(expects):
        return ""
    assert former is not None
    assert state.time is not None
    begin, full_at = as_microseconds(request.state_time), as_microseconds(state.time) + round(expects * 1e6)
    low, high = (begin + round((seconds or 0.0) * 1e6) for seconds in (former.p10, former.p90))
    if low - AROUND_US <= full_at <= high + AROUND_US:
        return ""
    moved = full_at - begin - round(expected * 1e6)
    return (
        f"{request.store} is full {as_span(abs(moved) / 1e6)} {'later' if moved > 0 else 'earlier'} than was expected"
    )


def _when(seconds: float | None) -> str:
    return "not within the horizon" if seconds is None else f"in {as_span(seconds)}"


# --- changes that the site allows -------------------------------------------------------------------------------------

HOUR_US = 3600 * SECOND
_MAX_BYTES = 1 << 18
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = "|".join(_DAYS)
_CLOCK = "([01][0-9]|2[0-3]):([0-5][0-9])"
_WINDOW = re.compile(f"({_DAY})(?:-({_DAY}))? {_CLOCK}-(?:{_CLOCK}|24:00)")
_Bound = int | str


class Allow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row: changes of a kind, of some stores, within bounds."""

    kind: ActKind  # the template
    stores: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # patterns of stores, such as QSG1/APP*
    # least and greatest value by pattern of attributes; all numbers need one
    bounds: dict[str, tuple[_Bound, _Bound]] = {}
    # people who must approve, beside the one who requests
    approvers: Annotated[int, msgspec.Meta(ge=1, le=MAX_APPROVERS)] = 1
    per_hour: Annotated[int, msgspec.Meta(ge=1, le=60)] = 1  # changes by this row that are handed over in an hour
    windows: tuple[str, ...] = ()  # when; none: at any time

    def covers(self, kind: str, store: str) -> bool:
        """Return True if the row is about a kind of change of a store."""
        return kind == self.kind and any(fnmatchcase(store, pattern) for pattern in self.stores)

    def count(self, times: Iterable[tuple[Requested, str]], now: int) -> int:
        """Return the number of requests of the row in the last hour. times: requests, each with its time."""
        since = now - HOUR_US
        own = [time for request, time in times if self.covers(request.kind, request.store)]
        return sum(as_microseconds(time) > since for time in own)

    def problem_of(self, settings: Mapping[str, Value]) -> str:
        """Return which value is not allowed, and what is expected; "": all are."""
        for name, value in settings.items():
            if isinstance(value, bool | str):
                continue
            ranges = [own for pattern, own in self.bounds.items() if fnmatchcase(name, pattern)]
            if not ranges:
                return f"{name} = {value}; expected: bounds of {name} in the row of {self.kind}"
            for low, high in ranges:
                if not parse_size(low) <= value <= parse_size(high):
                    return f"{name} = {value}; expected: {low} to {high}, its bounds in the row of {self.kind}"
        return ""

    def is_open(self, now: int, zone: tzinfo) -> bool:
        """Return True if a time is within the windows. now: microseconds since 1970."""
        return not self.windows or any(
            _read_window(text).holds(as_datetime(now).astimezone(zone)) for text in self.windows
        )


class _Window(NamedTuple):
    """Days of the week on which it begins, 0: Monday; minutes of the day, the end may be on the next day."""

    days: frozenset[int]
    begin: int
    end: int

    def holds(self, now: datetime) -> bool:
        minute = 60 * now.hour + now.minute
        if self.begin < self.end:
            return now.weekday() in self.days and self.begin <= minute < self.end
        yesterday = (now - timedelta(days=1)).weekday()
        return (now.weekday() in self.days and minute >= self.begin) or (yesterday in self.days and minute < self.end)


def _read_window(text: str) -> _Window:
    """Return a window, such as `Mon-Fri 06:00-20:00`. ValueError: it is none."""
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise ValueError(f"windows: {show(text)}; expected: such as Mon-Fri 06:00-20:00")
    first = _DAYS.index(match[1])
    last = first if match[2] is None else _DAYS.index(match[2])
    days = frozenset((first + more) % 7 for more in range((last - first) % 7 + 1))
    end = 24 * 60 if match[5] is None else 60 * int(match[5]) + int(match[6])
    return _Window(days, 60 * int(match[3]) + int(match[4]), end)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    allow: tuple[Allow, ...] = ()
    zone: str = ""


class Allowed(NamedTuple):
    """The changes that a site allows."""

    rows: tuple[Allow, ...] = ()  # its rows; of several that are about a change the first counts
    zone: tzinfo = UTC  # zone of its windows

    def row_of(self, kind: str, store: str, settings: Mapping[str, Value]) -> Allow:
        """Return the row that allows a change. UsageError: none does; says why."""
        row = next((own for own in self.rows if own.covers(kind, store)), None)
        if row is None:
            raise UsageError(f"{kind} of {store} is not allowed; expected: an [[allow]] of it in the file of --actions")
        if problem := row.problem_of(settings):
            raise UsageError(problem)
        return row


def read_allowed(path: Path) -> Allowed:
    """Return what a file allows. UsageError: unreadable or wrong, of somebody else, or others may read or write it."""
    where = f"--actions {path}"
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{where} cannot be read: {error.strerror}; expected: a file of [[allow]] rows") from None
    if state.st_uid not in {0, os.geteuid()}:
        raise UsageError(f"{where} belongs to user {state.st_uid}; expected: to the one of this process")
    if stat.S_IMODE(state.st_mode) & 0o077:
        mode = stat.S_IMODE(state.st_mode)
        raise UsageError(f"{where} can be used by others (mode {mode:o}); expected: chmod 600 {path}")
    if len(data) > _MAX_BYTES:
        raise UsageError(f"{where} is larger than {_MAX_BYTES:,} bytes; expected: a file of [[allow]] rows")
    try:
        own = msgspec.toml.decode(data, type=_File)
        for row in own.allow:
            _check(row)
        return Allowed(own.allow, zone_of(own.zone) if own.zone else UTC)
    except (ValueError, *UNREADABLE) as error:
        raise UsageError(f"{where}: {' '.join(str(error).split())}; expected: [[allow]] rows") from None


def _check(row: Allow) -> None:
    """Check the windows and bounds of a row. ValueError: one is wrong."""
    for text in row.windows:
        _read_window(text)
    for name, (low, high) in row.bounds.items():
        if not 0 <= parse_size(low) <= parse_size(high):
            raise ValueError(f"bounds of {name}: {low} to {high}; the first must be at most the second")
