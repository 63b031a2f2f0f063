"""The record of an alert, as in the alerts topic: docs/alerts.md."""

from __future__ import annotations

import re

import msgspec

from twin.conditions import CLEARED, INFO, PAGE, WATCH
from twin.records.states import TimeToFull

ROOT = "root"  # role of the alert of an incident that says what is wrong and what to do
PART = "part"  # role of its other alerts
_CONTROL = re.compile("[\r\n\x7f-\x9f]")  # of JSON: line ends between texts, the others within texts


class Filler(msgspec.Struct, frozen=True):
    """A queue that fills a resource. share: share of the growth, 0 to 1."""

    queue: str
    share: float


class IncidentRole(msgspec.Struct, frozen=True, kw_only=True):
    """The incident to which an alert belongs. opened: event time of its first alert; role: ROOT or PART."""

    id: str
    role: str
    opened: str


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
    actions: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    status: str
    level: str = ""
    resources: tuple[str, ...] = ()
    incident: IncidentRole = NO_INCIDENT

    def __post_init__(self) -> None:
        """Add what early records do not have; each of their alerts is an incident of its own."""
        if not self.level:
            msgspec.structs.force_setattr(self, "level", level_of(self.severity))
        if not self.resources:
            msgspec.structs.force_setattr(self, "resources", (self.resource,))
        if not self.incident.id:
            own = IncidentRole(id=self.alert_id, role=ROOT, opened=self.time)
            msgspec.structs.force_setattr(self, "incident", own)


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


_alert_decoder = msgspec.json.Decoder(AlertRecord)


def read_alert_record(value: bytes) -> AlertRecord:
    """Return the alert in the value of a record.

    Raises:
        Exception: it is none; of a foreign record it may be any.
    """
    return msgspec.structs.replace(_alert_decoder.decode(value), value=value)


def level_of(severity: str) -> str:
    """Return the level of an alert: watch (for information) or page (wakes someone)."""
    return WATCH if severity == INFO else PAGE
