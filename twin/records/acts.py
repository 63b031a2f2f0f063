"""Records of the acts topic: a change that somebody requests, that others approve, and what became of it.

mqtwin executes nothing: a runner of the site does. `Acts` folds the records in the order of the topic, which decides
whatever was written at the same time. Described in docs/acts.md.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

import msgspec

from twin.base.units import as_microseconds, event_time
from twin.records.alerts import NOTE_CHARACTERS
from twin.records.bounds import Count, Number, Share, Text, Time

ActKind = Literal["alter-cfstruct", "alter-psid", "alter-qlocal", "setxcf-alter"]
Language = Literal["MQSC", "SETXCF"]
ResultStatus = Literal["ok", "failed", "unknown"]
ActStatus = Literal["requested", "approved", "withdrawn", "expired", "handed", "ok", "failed", "unknown"]
AFTER_S = (300, 1800)  # after a result, when its effect is measured
AHEAD_US = 60_000_000  # by which clocks of machines may differ
MAX_APPROVERS = 3
MAX_ACTS = 10_000  # that are kept; beyond it the first are forgotten
MAX_TEXT = 500  # characters of a statement, and of a text of people or runners

Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Id = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
_Who = Annotated[str, msgspec.Meta(min_length=1, max_length=NOTE_CHARACTERS["who"])]
Remark = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
_Statement = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TEXT)]
Value = int | bool | str  # of an attribute


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """The expectation for a store: when it is full."""

    resource: str | None
    """The resource that is full first; null: none within eight hours."""
    p10: Number | None
    """Seconds until full, quantile 0.1; null: not within eight hours."""
    p50: Number | None
    """The same, the median."""
    p90: Number | None
    """The same, quantile 0.9."""
    probability: Share
    """Probability that it is full within eight hours."""


class ActChange(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that every record of the acts topic has."""

    id: _Id
    """Id of the request, the key of the record."""
    sha256: Hash
    """SHA-256 of language, target and statement: what is approved and handed over is exactly what was requested."""
    time: Time
    """When it was written, UTC; wall clock, not event time."""

    def __post_init__(self) -> None:
        """Check the time. ValueError: there is no such time."""
        event_time(self.time)


class Requested(ActChange, frozen=True, kw_only=True, tag_field="change", tag="requested"):
    """Somebody requests a change."""

    alert_id: Annotated[str, msgspec.Meta(min_length=1, max_length=NOTE_CHARACTERS["alert_id"])]
    """The alert that proposes it."""
    action: Annotated[str, msgspec.Meta(min_length=1, max_length=NOTE_CHARACTERS["action"])]
    """Id of the action in its runbook."""
    step: Annotated[int, msgspec.Meta(ge=1, le=100)]
    """Number of the step in the action, from 1."""
    store: Text
    """The store."""
    kind: ActKind
    """Template of the statement."""
    settings: dict[str, Value]
    """Attributes of the store that it sets, in the order of the statement; sizes in bytes."""
    present: dict[str, Value | None]
    """The same as they are in the state of which the effect was predicted."""
    language: Language
    """MQSC, or SETXCF of z/OS."""
    target: Text
    """Where to run it: of MQSC the queue-sharing group (any member) or queue manager, of SETXCF the group whose sysplex
    it is."""
    statement: _Statement
    """The command, one line."""
    undo: _Statement | None
    """The way back, one line; null: it changes no attribute."""
    look: _Statement
    """The command that shows whether it has run."""
    who: _Who
    """Who requests it, by the name that the console has verified."""
    state_time: Time
    """Event time of the state of which the effect was predicted."""
    size: Count | None
    """Size of the store in that state: bytes of a structure or of the maximum of a file, pages of a page set."""
    forecast: Expectation | None
    """The forecast of that state; null: it has none."""
    before: Expectation
    """The expectation without it if the traffic continues, as of [what-if](what-if.md)."""
    after: Expectation
    """The expectation with it, likewise."""
    expires: Time
    """Time from which it is no longer handed over, UTC."""

    def __post_init__(self) -> None:
        """Check the times. ValueError: there is no such time."""
        for time in (self.time, self.state_time, self.expires):
            event_time(time)


class Approved(ActChange, frozen=True, kw_only=True, tag_field="change", tag="approved"):
    """Somebody else approves it."""

    who: _Who
    """Who approves it, verified; never who requested it."""


class Withdrawn(ActChange, frozen=True, kw_only=True, tag_field="change", tag="withdrawn"):
    """Somebody withdraws it."""

    who: _Who
    """Who withdraws it, verified."""


class Expired(ActChange, frozen=True, kw_only=True, tag_field="change", tag="expired"):
    """It is not handed over any more."""

    text: Remark
    """The reason."""


class Handed(ActChange, frozen=True, kw_only=True, tag_field="change", tag="handed"):
    """It is about to be handed to the site's runner: from here on it may have run."""

    runner: _Who
    """Name of the process that hands it over."""
    token: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    """Of this attempt: of two at the same time the first in the topic counts."""


class Resulted(ActChange, frozen=True, kw_only=True, tag_field="change", tag="result"):
    """The runner, or a person, says what became of it."""

    status: ResultStatus
    """ok: it has run; failed: it has not, or was refused; unknown: it may have run, and is never repeated."""
    who: _Who
    """Who says so: the runner, or a person, verified."""
    text: Remark
    """Output of the runner, or a remark of the person."""


class Measured(ActChange, frozen=True, kw_only=True, tag_field="change", tag="measured"):
    """The state of the store some time after the result."""

    after_s: Count
    """Seconds after the result: 300 or 1800."""
    state_time: Time
    """Event time of that state."""
    usage_pct: Number | None
    """Usage of the fullest resource, percent; null: not known."""
    size: Count | None
    """Size of the store then, as in the request."""
    full_s: Number | None
    """Seconds until full by the forecast then, the median; null: not within its horizon, or there is none."""
    probability: Share | None
    """Probability of full within its horizon; null: there is no forecast."""
    alert: Literal["open", "cleared", "gone"]
    """State of the alert then; gone: the topic has it no more."""
    done: Remark | None
    """The action as the store's events show it; null: they do not show it."""


ActRecord: TypeAlias = Requested | Approved | Withdrawn | Expired | Handed | Resulted | Measured
_decoder: msgspec.json.Decoder[ActRecord] = msgspec.json.Decoder(ActRecord)


def read_act(value: bytes) -> ActRecord:
    """Return the record of the acts topic in a value. Exception: it is none; a foreign record may raise any."""
    return _decoder.decode(value)


def hash_of(language: str, target: str, statement: str) -> str:
    """Return the SHA-256 of a statement and its target, in hexadecimal digits: what an approval names."""
    return hashlib.sha256(msgspec.json.encode([language, target, statement])).hexdigest()


def is_same_person(name: str, other: str) -> bool:
    """Return True if two verified names may be of one person: they differ at most in capitals and forms of letters."""
    return _folded(name) == _folded(other)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().strip()


@dataclass(slots=True)
class Act:
    """A request and what became of it."""

    request: Requested
    approvals: tuple[Approved, ...] = ()  # those that count
    end: Withdrawn | Expired | None = None  # why it is not handed over; None: it may be, or was
    handed: Handed | None = None  # that it was handed over; None: it was not
    result: Resulted | None = None  # the last result; None: there is none
    measured: dict[int, Measured] = field(default_factory=dict)  # what was measured, by seconds after the result

    @property
    def status(self) -> ActStatus:
        """Its state in a word."""
        if self.result is not None:
            return self.result.status
        if self.handed is not None:
            return "handed"
        if self.end is not None:
            return "withdrawn" if isinstance(self.end, Withdrawn) else "expired"
        return "approved" if self.approvals else "requested"

    @property
    def is_waiting(self) -> bool:
        """True while it may still be handed over."""
        return self.end is None and self.handed is None

    @property
    def is_undecided(self) -> bool:
        """True while it was handed over and nobody knows what came of it."""
        return self.status in {"handed", "unknown"}

    @property
    def approvers(self) -> tuple[str, ...]:
        """Names of those who approved it."""
        return tuple(own.who for own in self.approvals)

    def problem_of_approval(self, who: str, sha256: str, time: str) -> str:
        """Return why an approval does not count, and what is expected; "": it does."""
        request, now = self.request, as_microseconds(time)
        if sha256 != request.sha256:
            return f"the hash {sha256[:12]} is of something else; expected: {request.sha256[:12]}..., read again"
        if not self.is_waiting or len(self.approvals) >= MAX_APPROVERS:
            return f"it is {self.status}; expected: one that waits for approval"
        if not as_microseconds(request.time) - AHEAD_US <= now < as_microseconds(request.expires):
            return f"it expires at {request.expires}; expected: an approval between request and that time"
        for other, what in ((request.who, "requested"), *((own, "approved") for own in self.approvers)):
            if is_same_person(who, other):
                return f"{who} has {what} it; expected: somebody else"
        return ""


class Acts(Mapping[str, Act]):
    """The requests by id, those first in the topic at the front. What does not belong to one changes nothing."""

    def __init__(self) -> None:
        self._acts: dict[str, Act] = {}
        self.ignored = 0  # number of records that changed nothing: delivered twice, replayed, too late, of another hash
        self.last = 0  # time of the latest record, microseconds; 0: none. A clock before it has gone back

    def __getitem__(self, act_id: str) -> Act:
        return self._acts[act_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._acts)

    def __len__(self) -> int:
        return len(self._acts)

    def has(self, record: ActRecord) -> bool:
        """Return True if a record is one of those that count."""
        act = self._acts.get(record.id)
        if act is None:
            return False
        own = (act.request, *act.approvals, act.end, act.handed, act.result, *act.measured.values())
        return record in own

    def take(self, record: ActRecord) -> bool:
        """Take the next record of the topic; return False if it changes nothing."""
        is_new = self._add(record) if isinstance(record, Requested) else self._take(record)
        if is_new:
            self.last = max(self.last, as_microseconds(record.time))
        self.ignored += not is_new
        return is_new

    def _add(self, request: Requested) -> bool:
        if request.id in self._acts or request.sha256 != hash_of(request.language, request.target, request.statement):
            return False
        self._acts[request.id] = Act(request)
        if len(self._acts) > MAX_ACTS:
            del self._acts[next(iter(self._acts))]
        return True

    def _take(self, record: ActRecord) -> bool:
        act = self._acts.get(record.id)
        if act is None or record.sha256 != act.request.sha256:
            return False
        match record:
            case Approved() if not act.problem_of_approval(record.who, record.sha256, record.time):
                act.approvals += (record,)
            case Withdrawn() | Expired() if act.is_waiting:
                act.end = record
            case Handed() if act.is_waiting and act.approvals:
                act.handed = record
            case Resulted() if act.handed is not None and _decides(act.result, record):
                act.result = record
            case Measured() if act.result is not None and record.after_s not in act.measured:
                if record.after_s not in AFTER_S:
                    return False
                act.measured[record.after_s] = record
            case _:
                return False
        return True


def _decides(before: Resulted | None, record: Resulted) -> bool:
    """Return True for the first result, and for one that says what became of an unknown one."""
    return before is None or (before.status == "unknown" and record.status != "unknown")
