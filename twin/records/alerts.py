"""The record of an alert, as in the alerts topic, and that of a note on one, as in the notes topic: docs/alerts.md."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from twin.conditions import CLEARED, INFO, PAGE, WATCH
from twin.errors import UsageError
from twin.records.states import TimeToFull
from twin.units import check_time

ROOT = "root"  # role of the alert of an incident that says what is wrong and what to do
PART = "part"  # role of its other alerts
ACKNOWLEDGED, ACTED, COMMENT = "acknowledged", "acted", "comment"  # kinds of notes
GETTERS = "getters"  # action: start them
_CONTROL = re.compile("[\r\n\x7f-\x9f]")  # of JSON: line ends between texts, the others within texts


class Filler(msgspec.Struct, frozen=True):
    """A queue that fills a resource. share: share of the growth, 0 to 1."""

    queue: str
    share: float


class Step(msgspec.Struct, frozen=True):
    """A step of an action. statement: what to type, without a placeholder; None: `text` says what to look up."""

    text: str
    statement: str | None = None

    @property
    def line(self) -> str:
        """The step as one line."""
        return self.text if self.statement is None else f"{self.text}: {self.statement}"


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """Something that helps, as a runbook: docs/alerts.md, "Runbook".

    Attributes:
        id: a word that stays: getters, offload, alter-size, cfrm-size and the like.
        summary: what to do.
        effect: what it changes, by the forecast.
        precondition: what must be so before.
        steps: what to do, in order.
        risk: what it may cost.
        undo: the way back.
    """

    id: str
    summary: str
    effect: str | None = None
    precondition: str | None = None
    steps: tuple[Step, ...] = ()
    risk: str | None = None
    undo: str | None = None

    @property
    def heading(self) -> str:
        """The summary, with the effect where there is one."""
        return self.summary if self.effect is None else f"{self.summary} ({self.effect})"

    @property
    def sentence(self) -> str:
        """The action in one sentence, with its steps."""
        if len(self.steps) == 1:
            return f"{self.heading}: {self.steps[0].statement or self.steps[0].text}"
        numbered = "; ".join(f"{number}. {step.line}" for number, step in enumerate(self.steps, 1))
        return f"{self.heading}: {numbered}" if numbered else self.heading

    @property
    def lines(self) -> list[str]:
        """The action as lines: its heading, its steps with numbers, what to know before."""
        lines = [self.heading]
        if self.precondition is not None:
            lines.append(f"if {self.precondition}")
        lines += [f"{number}. {step.line}" for number, step in enumerate(self.steps, 1)]
        lines += [
            f"{name}: {text}" for name, text in (("risk", self.risk), ("way back", self.undo)) if text is not None
        ]
        return lines


class DoneAction(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was done about a store in an incident, as its events show it: docs/alerts.md, "What was done".

    Attributes:
        id: id of the action in runbooks that it matches, such as alter-size; "": none.
        time: its time.
        text: the change in words.
        is_refused: True if the model says that the system refused it.
        before_s, after_s: seconds until the store would be full, just before and just after, if its traffic went on;
            None: not within eight hours, or `effect` is None.
        effect: the difference in words; None: it is not known, or there is none to be known of.
    """

    id: str
    time: str
    text: str
    is_refused: bool = False
    before_s: float | None = None
    after_s: float | None = None
    effect: str | None = None

    def describe(self, clock: str) -> str:
        """Return it in words: `SIZE raised from 1G to 2G at 02:14: full in 3.0 h instead of in 11 min`.

        Args:
            clock: its time, as short as the reader needs it.
        """
        when = f"{self.text} {'since' if self.id == GETTERS else 'at'} {clock}"
        return when if self.effect is None else f"{when}: {self.effect}"


class IncidentRole(msgspec.Struct, frozen=True, kw_only=True):
    """The incident to which an alert belongs.

    Attributes:
        id: its id.
        role: ROOT or PART.
        opened: event time of its first alert.
        recovered: event time at which puts that were refused succeeded again; None: not yet, or none was refused.
    """

    id: str
    role: str
    opened: str
    recovered: str | None = None


NO_INCIDENT = IncidentRole(id="", role=ROOT, opened="")  # the alert is an incident of its own


class AlertData(msgspec.Struct, frozen=True, kw_only=True):
    """`data` of an alert record: docs/alerts.md, Fields."""

    alert_id: str
    severity: str
    store: str
    resource: str
    condition: str
    time: str
    usage_pct: float | None
    time_to_full_s: TimeToFull | None = None
    full_probability: float | None = None
    fillers: tuple[Filler, ...] = ()
    cause: str = ""
    actions: tuple[str, ...] = ()  # sentences of `runbook`
    runbook: tuple[Action, ...] = ()
    evidence: tuple[str, ...] = ()
    status: str
    level: str = ""
    resources: tuple[str, ...] = ()
    incident: IncidentRole = NO_INCIDENT
    done: tuple[DoneAction, ...] = ()
    brief: tuple[str, ...] = ()  # what a page says first, at most three lines; early records have none

    def __post_init__(self) -> None:
        """Add what early records do not have; each of their alerts is an incident of its own."""
        if not self.level:
            msgspec.structs.force_setattr(self, "level", level_of(self.severity))
        if not self.resources:
            msgspec.structs.force_setattr(self, "resources", (self.resource,))
        if not self.incident.id:
            own = IncidentRole(id=self.alert_id, role=ROOT, opened=self.time)
            msgspec.structs.force_setattr(self, "incident", own)

    @property
    def instructions(self) -> list[str]:
        """Lines for a person: each action with its steps, of early records its sentence."""
        if not self.runbook:
            return list(self.actions)
        blocks = (action.lines for action in self.runbook)
        return [line for heading, *rest in blocks for line in (heading, *(f"  {step}" for step in rest))]


class AlertRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the alerts topic, a CloudEvent in structured mode. value: the bytes from which it was read."""

    id: str
    type: str
    subject: str
    time: str
    data: AlertData
    value: bytes = b""

    @property
    def change(self) -> str:
        """The change: opened, updated or cleared."""
        return self.type.rpartition(".")[2]

    @property
    def is_open(self) -> bool:
        """True until the alert has cleared."""
        return self.change != CLEARED

    @property
    def number(self) -> int:
        """Number of the record in its episode, from 0; 0 in a foreign record that has none."""
        number = self.id.rpartition("/")[2]
        return int(number) if number.isascii() and number.isdigit() else 0

    @property
    def line(self) -> str:
        """The value as one line, as JSON with control characters escaped: no foreign record steers a terminal."""
        text = self.value.decode(errors="replace")
        return _CONTROL.sub(lambda match: " " if match[0] in "\r\n" else f"\\u{ord(match[0]):04x}", text)


NOTE_CHARACTERS = {"alert_id": 400, "action": 64, "text": 500, "who": 64}  # at most
_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=NOTE_CHARACTERS["alert_id"])]
_Action = Annotated[str, msgspec.Meta(min_length=1, max_length=NOTE_CHARACTERS["action"])]
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=NOTE_CHARACTERS["text"])]
_Who = Annotated[str, msgspec.Meta(min_length=1, max_length=NOTE_CHARACTERS["who"])]
_DAY, _CLOCK = "[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_Time = Annotated[str, msgspec.Meta(pattern=f"^{_DAY}T{_CLOCK}Z$")]


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A note on an alert: what somebody did about it, or has to say: docs/alerts.md, "Notes". `new_note` makes one.

    Attributes:
        alert_id: the alert.
        kind: what it tells.
        action: id of the action in the alert's runbook; None of other kinds than `acted`.
        text: a comment; None: nothing was said.
        who: who says so; nobody checks that.
        time: when it was written, RFC 3339, UTC; wall clock.
    """

    alert_id: _Id
    kind: Literal["acknowledged", "acted", "comment"]
    action: _Action | None
    text: _Text | None
    who: _Who
    time: _Time

    def __post_init__(self) -> None:
        """Check the time, and what belongs to a kind. ValueError: no such time; it is missing, or too much."""
        check_time(self.time)
        if (self.action is not None) != (self.kind == ACTED):
            raise ValueError(
                f"action = {self.action} of kind {self.kind}; expected: the id of an action, of acted only"
            )
        if self.kind == COMMENT and self.text is None:
            raise ValueError("text is missing; expected: a comment")

    @property
    def sentence(self) -> str:
        """The note without its time: `acknowledged by ann: on it`."""
        if self.kind == COMMENT:
            return f"{self.who}: {self.text}"
        what = self.kind if self.action is None else f"{self.action} done"
        return f"{what} by {self.who}" + ("" if self.text is None else f": {self.text}")


def new_note(alert_id: str, kind: str, who: str, time: str, *, action: str | None = None, text: str = "") -> Note:
    """Return a note; each run of white space in texts becomes a blank.

    Args:
        alert_id: the alert.
        kind: ACKNOWLEDGED, ACTED or COMMENT.
        who: who says so.
        time: RFC 3339, UTC.
        action: id of the action; None of other kinds than ACTED.
        text: a comment; "": none.

    Raises:
        UsageError: a field is missing or too long, or does not belong to the kind.
    """
    own = {"alert_id": alert_id, "action": action, "text": " ".join(text.split()) or None, "who": " ".join(who.split())}
    for name, limit in NOTE_CHARACTERS.items():
        value = own[name]
        if value is not None and not 1 <= len(value) <= limit:
            raise UsageError(f"{name} = {value[:40]!r} has {len(value)} characters; expected: 1 to {limit}")
    try:
        return msgspec.convert({**own, "kind": kind, "time": time}, Note)
    except msgspec.ValidationError as error:
        raise UsageError(f"note on {alert_id[:100]}: {error}") from None


_note_decoder = msgspec.json.Decoder(Note)


def read_note(value: bytes) -> Note:
    """Return the note in the value of a record. Exception: it is none; of a foreign record it may be any."""
    return _note_decoder.decode(value)


def sentences_of(runbook: Iterable[Action]) -> tuple[str, ...]:
    """Return the actions of a runbook as sentences."""
    return tuple(action.sentence for action in runbook)


_alert_decoder = msgspec.json.Decoder(AlertRecord)


def read_alert_record(value: bytes) -> AlertRecord:
    """Return the alert in the value of a record.

    Raises:
        Exception: it is none, or has a time that is none; of a foreign record it may be any.
    """
    record = _alert_decoder.decode(value)
    data = record.data
    for time in {record.time, data.time, data.incident.opened, *(done.time for done in data.done)}:
        check_time(time)
    return msgspec.structs.replace(record, value=value)


def level_of(severity: str) -> str:
    """Return the level of an alert: watch (for information) or page (wakes someone)."""
    return WATCH if severity == INFO else PAGE
