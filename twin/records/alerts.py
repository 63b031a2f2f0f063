"""The record of an alert, that of a note on one, and dead letters as others read them.

- The first two are as in the alerts topic and in the notes topic. `make schemas` writes the texts below the fields into
  docs/alerts.md, docs/incidents.md and the schemas.
- Dead letters: the headers of a record of their topic, and a line of `mqtwin replay --dlq`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from twin.base.conditions import (
    CLEARED,
    CRITICAL,
    FULL,
    INFO,
    OPENED,
    OWNED_POOLS,
    PAGE,
    UPDATED,
    WARNING,
    WATCH,
    Condition,
    Level,
    Pool,
)
from twin.base.errors import UsageError
from twin.base.units import event_time
from twin.records.bounds import Count, Number, Share, Text, Time, one_of
from twin.records.states import TimeToFull

MAX_DONE = 4  # actions that an incident keeps, the latest
ROOT = "root"  # role of the alert of an incident that says what is wrong and what to do
PART = "part"  # role of its other alerts
ACKNOWLEDGED, ACTED, COMMENT = "acknowledged", "acted", "comment"  # kinds of notes
USEFUL, USELESS, NONE = "useful", "useless", "none"  # the same: what a page was worth; NONE takes a word back
WORDS = (USEFUL, USELESS, NONE)
GETTERS = "getters"  # action: start them
_OPENED = re.compile("/([0-9]{15,16})(/[0-9]{1,9})?$")  # of an alert's id; behind it how often the clock went back
_CONTROL = re.compile("[\r\n\x7f-\x9f]")  # of JSON: line ends between texts, the others within texts


class Filler(msgspec.Struct, frozen=True):
    """A queue that fills a resource."""

    queue: str
    """Name of the queue."""
    share: Share
    """Its share of the growth."""


class Step(msgspec.Struct, frozen=True):
    """A step of an action."""

    text: Text
    """The step."""
    statement: str | None = None
    """An MQSC, SETXCF, CFRM or control command to type, with real names and no placeholder; null: `text` says what to
    look up."""

    @property
    def line(self) -> str:
        """The step as one line."""
        return self.text if self.statement is None else f"{self.text}: {self.statement}"


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """Something that helps, as a runbook: docs/alerts.md, "Runbook"."""

    id: Text
    """A word that stays: getters, offload, alter-size, cfrm-size, scm, scm-lower, scm-install, augmented, ds-expand,
    ds-copy, volumes, ps-expand, move-queue, max-file-size, file-system, max-depth, start-members and others; new ones
    may be added."""
    summary: Text
    """The action."""
    effect: str | None = None
    """Its effect by the forecast: "then full in 54 min instead of 11 min", "needs 2.5 gets/s more; at the present
    rate it stays full"; null where none is known."""
    precondition: str | None = None
    """Precondition of the steps; null: none."""
    steps: tuple[Step, ...] = ()
    """The steps, in order."""
    risk: str | None = None
    """Possible cost; null: none is known."""
    undo: str | None = None
    """The way back, a statement or a sentence; null: none is needed, or there is none."""

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
    """An action taken on a store in an incident, as its events show it: docs/incidents.md, "What was done"."""

    id: str
    """Id of the [runbook](alerts.md#runbook)'s action that it matches: alter-size, cfrm-size, scm, offload, ds-expand,
    ps-expand, max-file-size, file-system, getters; empty: none."""
    time: Time
    """Event time of the change."""
    text: Text
    """The change in words."""
    is_refused: bool = False
    """True if the model says that the system refused it."""
    before_s: Number | None = None
    """Seconds until full just before it if the traffic continues, the median of [what-if](what-if.md); null: not within
    eight hours, or `effect` is null."""
    after_s: Number | None = None
    """The same just after it."""
    effect: str | None = None
    """The difference in words; null: it is not known, or the change was refused."""

    def describe(self, clock: str) -> str:
        """Return it in words: `SIZE raised from 1G to 2G at 02:14: full in 3.0 h instead of in 11 min`."""
        when = f"{self.text} {'since' if self.id == GETTERS else 'at'} {clock}"
        return when if self.effect is None else f"{when}: {self.effect}"


class IncidentRole(msgspec.Struct, frozen=True, kw_only=True):
    """The incident to which an alert belongs: what one person has to do about one store.

    A store has one at a time, with at most one open root. An alert may pass to the next incident of its store.
    """

    id: Text
    """Id of the incident."""
    role: Annotated[str, one_of(ROOT, PART)]
    """root: the alert that says what is wrong and what to do; part: evidence of it."""
    opened: Time
    """Event time of its first alert."""
    recovered: Time | None = None
    """Event time from which [puts succeed again](#on-the-way-out): ten minutes after the last 2192 or 2056, ten points
    below the maximum. Once an incident; null: not yet, or none was refused."""


NO_INCIDENT = IncidentRole(id="", role=ROOT, opened="")  # the alert is an incident of its own


_RESOURCE = "|".join(f"{pool}/.+" if pool in OWNED_POOLS else pool for pool in Pool)


class AlertData(msgspec.Struct, frozen=True, kw_only=True):
    """`data` of an alert record."""

    alert_id: Text
    """Id of the episode, from opening to clearing, the key of the record: store, condition, resource, event time of the
    opening in microseconds; after the store's [clock has gone back](events.md#time), also the number of times."""
    severity: Annotated[str, one_of(INFO, WARNING, CRITICAL, FULL)]
    """How bad it is; info: the severity of a watch."""
    store: str
    """The store, for example `QSG1/APP1`."""
    site: Text | UnsetType = UNSET
    """[Site](estate.md#site) of the job's estate; absent: it has no name."""
    resource: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": f"^({_RESOURCE})$"})]
    """Entries, elements, or `smds/QM01` (the data set of that queue manager); pages; file (blocks, if it drifts); scm,
    augmented; capacity; units (of work in doubt); `queue/ORDERS` (the depth of that queue); `source/QM01` (the silent
    queue manager)."""
    condition: Annotated[str, one_of(*Condition)]
    """The [condition](#conditions)."""
    time: Time
    """Event time."""
    usage_pct: Number | None
    """Usage of the resource in percent; above 100 when the real system accepted more than the model has room for; null
    for `source-silent`."""
    time_to_full_s: TimeToFull | None = None
    """Of `full-forecast`: seconds until full, given that it becomes full within the horizon; null otherwise, and
    [on the way out](#on-the-way-out)."""
    full_probability: Share | None = None
    """Probability that it is full within the horizon (default: 8 hours): of `full-forecast` as predicted, of `full` 1
    while puts fail; otherwise null."""
    fillers: tuple[Filler, ...] = ()
    """Up to five queues that fill the resource, the largest share first; empty for shared stores, whose `cause` names
    the structures."""
    cause: Text = ""
    """Sentences that state resource, number and time."""
    actions: tuple[str, ...] = ()
    """The [runbook](#runbook) as sentences."""
    runbook: tuple[Action, ...] = ()
    """Actions that help, the best first; empty when cleared, and of a forecast while the resource empties."""
    evidence: tuple[str, ...] = ()
    """Of `full-forecast`: the reasons, as sentences with numbers; otherwise empty."""
    status: Annotated[str, one_of("open", CLEARED)]
    """State of the episode: open, or cleared once it is over."""
    level: Annotated[str, one_of(WATCH, PAGE)] = ""
    """watch: for information, no reason to wake anybody; page: wake someone. See
    [two levels](forecast.md#when-it-alerts)."""
    resources: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ()
    """The resources that passed the line in the same ten seconds, `resource` first; mostly one."""
    incident: IncidentRole = NO_INCIDENT
    """The [incident](incidents.md) to which the alert belongs."""
    done: Annotated[tuple[DoneAction, ...], msgspec.Meta(max_length=MAX_DONE)] = ()
    """[What was done](incidents.md#what-was-done) in the incident, at most the latest four actions in order of time; of
    alerts about filling only."""
    brief: Annotated[tuple[str, ...], msgspec.Meta(max_length=3)] = ()
    """First lines of a page: what, when and where; why; the first command, where something is to do. Lines of at most
    100 characters, but for a command."""

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
    def is_foreseen(self) -> bool:
        """True of a page of the forecast: people may say what it was worth."""
        return self.condition == Condition.FULL_FORECAST and self.level == PAGE

    @property
    def question(self) -> str:
        """How to say whether a page of the forecast was useful, as a line; "" of other alerts."""
        return f"useful? mqtwin judge {self.alert_id} useful|useless" if self.is_foreseen else ""

    @property
    def instructions(self) -> list[str]:
        """Lines for a person: each action with its steps, of early records its sentence."""
        if not self.runbook:
            return list(self.actions)
        blocks = (action.lines for action in self.runbook)
        return [line for heading, *rest in blocks for line in (heading, *(f"  {step}" for step in rest))]


class AlertRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the alerts topic, a CloudEvent in structured mode."""

    id: Text
    """Id of this record: the alert's id and the record's number within it. The same events give the same ids and
    content."""
    type: Annotated[str, one_of(*(f"mqtwin.alert.{change}" for change in (OPENED, UPDATED, CLEARED)))]
    """The change."""
    subject: Text
    """The store."""
    time: Time
    """Event time."""
    data: AlertData
    """The alert."""
    value: bytes = b""  # the bytes from which it was read

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
_MAX_NAMED = 5  # open alerts, in an error
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=NOTE_CHARACTERS["text"])]
_Who = Annotated[str, msgspec.Meta(min_length=1, max_length=NOTE_CHARACTERS["who"])]
_DAY = "(20[0-9]{2}|2100)-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
_Time = Annotated[Time, msgspec.Meta(pattern=f"^{_DAY}T{_CLOCK}Z$")]


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A note on an alert: what somebody did about it, or has to say. `new_note` makes one."""

    alert_id: _Id
    """The alert."""
    kind: Literal["acknowledged", "acted", "comment", "useful", "useless", "none"]
    """acknowledged: somebody looks after it; acted: an action of its runbook was taken; comment; useful, useless: what
    the page [was worth](#one-word-back); none: that word is taken back."""
    action: _Action | None
    """Of acted: id of the action in the alert's runbook; null of others."""
    text: _Text | None
    """A comment; null: none."""
    who: _Who
    """Author of the note: who was signed in at the console, otherwise as given."""
    time: _Time
    """When it was written, UTC; wall clock, not event time."""

    def __post_init__(self) -> None:
        """Check the time, and what belongs to a kind. ValueError: no such time; it is missing, or too much."""
        event_time(self.time)
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
        words = {ACTED: f"{self.action} done", NONE: "word taken back"}
        what = words.get(self.kind, self.kind)
        return f"{what} by {self.who}" + ("" if self.text is None else f": {self.text}")


def new_note(alert_id: str, kind: str, who: str, time: str, *, action: str | None = None, text: str = "") -> Note:
    """Return a note at an RFC 3339 time, UTC; each run of white space in texts becomes a blank. `action`: None of other
    kinds than ACTED. UsageError: a field is missing or too long, or does not belong to the kind.
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
    """Return the note in the value of a record. Exception: it is not a note; a foreign record may raise any."""
    return _note_decoder.decode(value)


class NotedAlert(NamedTuple):
    """An alert, as far as notes on it are checked."""

    is_open: bool  # True until it has cleared
    actions: tuple[str, ...]  # ids of all actions that its records have had
    store: str = ""
    is_foreseen: bool = False  # True if it is a page of the forecast, which a word may be about

    @classmethod
    def after(cls, before: NotedAlert | None, record: AlertRecord) -> NotedAlert:
        """Return the alert after a record; a cleared one keeps the actions that it had. before: None: the first one."""
        actions, data = () if before is None else before.actions, record.data
        return cls(
            record.is_open,
            tuple(dict.fromkeys((*actions, *(action.id for action in data.runbook)))),
            data.store,
            data.is_foreseen,
        )


def check_note(note: Note, alerts: Mapping[str, NotedAlert]) -> None:
    """Check that there is what a note is about. alerts: all that are known, by id. UsageError: there is not."""
    alert = alerts.get(note.alert_id)
    if alert is None:
        open_ids = [alert_id for alert_id, own in alerts.items() if own.is_open]
        unknown = f"alert {note.alert_id[:100]}: there is no such alert"
        if not open_ids:
            raise UsageError(f"{unknown}, and none is open; expected: one that mqtwin alerts shows")
        named = ", ".join(open_ids[-_MAX_NAMED:])
        more = f" and {len(open_ids) - _MAX_NAMED} more" if len(open_ids) > _MAX_NAMED else ""
        raise UsageError(f"{unknown}; expected: {named}{more}")
    if note.kind == ACTED and note.action not in alert.actions:
        expected = f"one of {', '.join(alert.actions)}" if alert.actions else "a comment, as it proposes none"
        raise UsageError(f"action {note.action}: alert {note.alert_id[:100]} has none of this id; expected: {expected}")
    if note.kind in WORDS and not alert.is_foreseen:
        what = f"{note.kind}: alert {note.alert_id[:100]} is no page of the forecast"
        raise UsageError(f"{what}; expected: one of condition full-forecast that calls or has called")


def event_of(note: Note, alert: NotedAlert) -> bytes | None:
    """Return the NOTE event by which the store learns what a page was worth, as JSON; None: it learns nothing.

    Whoever took an action says that the page was useful. The note is checked.
    """
    opened = opened_of(note.alert_id)
    if note.kind not in (*WORDS, ACTED) or not alert.is_foreseen or opened is None:
        return None
    word = {"opened": opened, "word": USEFUL if note.kind == ACTED else note.kind}
    event = {"time": note.time, "qmgr": "mqtwin", "op": "NOTE", "store": alert.store, "attributes": word}
    return msgspec.json.encode(event)


def opened_of(alert_id: str) -> int | None:
    """Return the event time at which an alert opened, microseconds, from its id; None: a foreign id has none."""
    match = _OPENED.search(alert_id)
    return None if match is None else int(match[1])


def sentences_of(runbook: Iterable[Action]) -> tuple[str, ...]:
    """Return the actions of a runbook as sentences."""
    return tuple(action.sentence for action in runbook)


_alert_decoder = msgspec.json.Decoder(AlertRecord)


def read_alert_record(value: bytes) -> AlertRecord:
    """Return the alert in the value of a record.

    Raises:
        Exception: it is not an alert, or its time is invalid; a foreign record may raise any.
    """
    record = _alert_decoder.decode(value)
    data = record.data
    for time in {record.time, data.time, data.incident.opened, *(done.time for done in data.done)}:
        event_time(time)
    return msgspec.structs.replace(record, value=value)


def level_of(severity: str) -> Level:
    """Return the level of an alert: watch (for information) or page (wakes someone)."""
    return WATCH if severity == INFO else PAGE


# --- dead letters -----------------------------------------------------------------------------------------------------

_Digits = Annotated[str, msgspec.Meta(pattern="^[0-9]+$")]
_Place = Annotated[str, msgspec.Meta(pattern="^(-1|[0-9]+)$")]


class LetterHeaders(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="kebab"):
    """Headers of a dead letter, whose value is the original event.

    The value is the JSON text, the line, the Arrow row as JSON, or the whole value if that is damaged or oversized. It
    is empty for many-rejected.
    """

    reason: str
    """A stable code."""
    detail: Text
    """The error, and what is expected."""
    topic: str
    """Topic of the record; for too-large the topic it was meant for."""
    partition: _Place
    """Partition of the record; -1 for too-large."""
    offset: _Place
    """Offset of the record; -1 for too-large."""
    index: _Digits
    """Line or row within the record, from 0."""
    original_length: _Digits | None = None
    """Bytes of the value before it was cut (an estimate for an Arrow row); absent if it is complete."""


class ReplayedLetter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the file that `mqtwin replay --dlq` writes."""

    reason: str
    """A stable code."""
    detail: Text
    """The error, and what is expected."""
    index: Count
    """Line or row of the recording, from 0."""
    original_length: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Bytes of the value before it was cut; absent if it is complete."""
    value: str | None = None
    """The original event."""
    value_base64: bytes | None = None
    """The value if it is not UTF-8."""
