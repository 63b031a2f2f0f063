"""Records that other programs read: alerts, dead letters of a replay, resources of a state record with one usage each.

Console, exporter and tables show what is here, so that they agree. A usage is in percent of the present size, as
`usage_pct` of alerts; what the resource can grow to stands beside it. docs/state.md describes the fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from twin.conditions import (
    AUGMENTED,
    CAPACITY,
    CLEARED,
    ELEMENTS,
    ENTRIES,
    FILE,
    INFO,
    PAGE,
    PAGES,
    SCM,
    WATCH,
    Pool,
    Resource,
)
from twin.units import percent

State = Mapping[str, Any]  # a state record

NOT_MEASURED = "not measured"  # the words for a usage that was neither counted nor measured
_FILE_BLOCK_BYTES = 512  # of a queue file
_CONTROL = re.compile("[\r\n\x7f-\x9f]")  # of JSON: line ends between texts, the others within texts


class Filler(msgspec.Struct, frozen=True):
    """A queue that fills a resource. share: share of the growth, 0 to 1."""

    queue: str
    share: float


class AlertData(msgspec.Struct, frozen=True, kw_only=True):
    """`data` of an alert record: docs/alerts.md, Fields."""

    alert_id: str
    severity: str
    store: str
    resource: str
    condition: str
    time: str
    usage_pct: float | None
    time_to_full_s: dict[str, float] | None = None
    full_probability: float | None = None
    fillers: tuple[Filler, ...] = ()
    cause: str = ""
    actions: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    status: str
    level: str = ""

    def __post_init__(self) -> None:
        """Add the level, which early records do not have."""
        if not self.level:
            msgspec.structs.force_setattr(self, "level", level_of(self.severity))


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


class ReplayedLetter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A dead letter of `mqtwin replay`: docs/commands.md. The bytes are in `value_base64` where they are no text."""

    reason: str
    detail: str
    index: int
    original_length: int | None = None  # bytes, where `value` was cut
    value: str | None = None
    value_base64: bytes | None = None


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


class ResourceUsage(msgspec.Struct, frozen=True):
    """The usage of one resource of a store.

    Attributes:
        name: as in alerts: entries, elements, smds/QM01, scm, augmented, pages, file, capacity.
        label: the resource in words.
        used: in `unit`; None if it was neither counted nor measured.
        total: the present size, in `unit`.
        maximum: what it can become by expansion, in `unit`; otherwise total.
        unit: entries, blocks, bytes and the like; with IBM MQ's own word where it has one.
        pct: percent of the present size in use, as `usage_pct` of alerts; None as `used`.
        maximum_pct: percent of `maximum` in use, as forecasts have it; None as `used`.
        note: a status that is not the usual one, such as EXPANDST(FAILED), or that nothing was measured; else empty.
    """

    name: str
    label: str
    used: float | None
    total: float
    maximum: float
    unit: str
    pct: float | None
    maximum_pct: float | None
    note: str = ""

    @property
    def resource(self) -> Resource:
        """The resource."""
        return Resource.parse(self.name)


def resources_of(state: State) -> list[ResourceUsage]:
    """Return the resources of a state record; none for a kind that has none, or that is not known here."""
    by_kind = _BY_KIND.get(state.get("kind", ""))
    return [] if by_kind is None else by_kind(state)


def fullest_of(resources: list[ResourceUsage]) -> ResourceUsage | None:
    """Return the resource nearest to the most it can become; one of unknown usage, or None, where none is known."""
    known = [resource for resource in resources if resource.maximum_pct is not None]
    return max(known or resources[:1], key=lambda resource: resource.maximum_pct or 0.0, default=None)


def _usage(
    resource: Resource,
    used: float | None,
    total: float | None,
    unit: str,
    note: str = "",
    maximum: float | None = None,
) -> ResourceUsage:
    """Return the usage of a resource. maximum: None where it does not expand."""
    name, label = str(resource), resource.label
    if used is None or total is None:
        return ResourceUsage(name, label, None, total or 0, maximum or total or 0, unit, None, None, NOT_MEASURED)
    limit = total if maximum is None else maximum
    return ResourceUsage(name, label, used, total, limit, unit, percent(used, total), percent(used, limit), note)


def _structure(state: State) -> list[ResourceUsage]:
    resources = [
        _usage(ENTRIES, state["ents_used"], state["ents_max"], "entries (ENTSUSED)"),
        _usage(ELEMENTS, state["elems_used"], state["elems_max"], "elements (ELEMUSED)"),
    ]
    for qmgr, dataset in sorted(state["smds"].items()):
        note = "" if dataset["status"] == "NORMAL" else f"EXPANDST({dataset['status']})"
        used, total = dataset["blocks_used"], dataset["blocks_total"]
        resources.append(_usage(Resource(Pool.SMDS, qmgr), used, total, "blocks (USED)", note, dataset["blocks_max"]))
    scm = state["scm"]
    if scm is not None and scm["max"]:
        resources.append(_usage(SCM, scm["used"], scm["max"], "bytes"))
    return resources


def _page_set(state: State) -> list[ResourceUsage]:
    note = "" if state["status"] == "NORMAL" else str(state["status"])
    return [_usage(PAGES, state["pages_used"], state["pages_total"], "pages", note, state["pages_max"])]


def _queue_file(state: State) -> list[ResourceUsage]:
    file_bytes, allocated = state["file_bytes"], state["blocks_allocated"]
    used = None if file_bytes is None or allocated is None else file_bytes // _FILE_BLOCK_BYTES - allocated
    return [_usage(FILE, used, state["file_max_bytes"] // _FILE_BLOCK_BYTES, "file blocks")]


def _coupling_facility(state: State) -> list[ResourceUsage]:
    resources = []
    if state["scm_total"]:
        resources.append(_usage(SCM, state["scm_used"], state["scm_total"], "bytes"))
    augmented, free = state["augmented"], state["storage_free"]
    if augmented and free is not None:
        resources.append(_usage(AUGMENTED, augmented, augmented + free, "bytes"))
    return resources


def _uniform_cluster(state: State) -> list[ResourceUsage]:
    load, pct = state.get("load"), state.get("usage_pct")  # records of version 0.1.0 have neither
    capacity = _usage(CAPACITY, load, state["capacity"], "messages/s")
    return [msgspec.structs.replace(capacity, pct=pct, maximum_pct=pct)]


_BY_KIND: Mapping[str, Callable[[State], list[ResourceUsage]]] = {
    "structure": _structure,
    "page_set": _page_set,
    "queue_file": _queue_file,
    "coupling_facility": _coupling_facility,
    "uniform_cluster": _uniform_cluster,
}
