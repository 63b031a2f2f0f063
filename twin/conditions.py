"""Names of alert conditions, resources, severities, levels and changes, as they stand in records: docs/alerts.md."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple, Self


class Condition(StrEnum):
    """Conditions that raise an alert."""

    FULL_FORECAST = "full-forecast"
    THRESHOLD = "threshold"
    CANNOT_EXPAND = "cannot-expand"
    FULL = "full"
    QUEUE_FULL = "queue-full"
    QUEUE_FULL_FORECAST = "queue-full-forecast"
    QUEUE_UNREAD = "queue-unread"
    SCM_OVERCOMMITTED = "scm-overcommitted"
    SCM_EXHAUSTED = "scm-exhausted"
    AUGMENTED_EXHAUSTED = "augmented-exhausted"
    NOT_ALTERABLE = "not-alterable"
    CAPACITY = "capacity"
    DRIFT = "drift"
    SOURCE_SILENT = "source-silent"
    IN_DOUBT = "in-doubt"
    SCM_OVERRUN = "scm-overrun"
    FAULT_WAIT = "fault-wait"


class Pool(StrEnum):
    """Kinds of resource."""

    ENTRIES = "entries"
    ELEMENTS = "elements"
    SMDS = "smds"  # blocks of a queue manager's data set
    SCM = "scm"
    AUGMENTED = "augmented"
    PAGES = "pages"
    BLOCKS = "blocks"
    FILE = "file"
    CAPACITY = "capacity"
    UNITS = "units"  # of work in doubt
    QUEUE = "queue"  # messages on one
    SOURCE = "source"  # of events


STORAGE_MEDIUM_FULL: Final = 2192  # MQRC_STORAGE_MEDIUM_FULL, of z/OS [IBM: MQRC 2192]
Q_SPACE_NOT_AVAILABLE: Final = 2056  # MQRC_Q_SPACE_NOT_AVAILABLE, of all other platforms [IBM: MQRC 2056]
Q_FULL: Final = 2053  # MQRC_Q_FULL: MAXDEPTH


def full_reason(kind: str) -> int:
    """Return the MQRC of a put for which a store of a kind has no room."""
    return Q_SPACE_NOT_AVAILABLE if kind == "queue_file" else STORAGE_MEDIUM_FULL


def full_reasons(kinds: Iterable[str]) -> str:
    """Return the MQRCs of puts for which stores of some kinds have no room, as text: `2192`, `2056`, `2192 or 2056`."""
    reasons = sorted({full_reason(kind) for kind in kinds}, reverse=True) or [STORAGE_MEDIUM_FULL]
    return " or ".join(map(str, reasons))


OWNED_POOLS: Final = (Pool.SMDS, Pool.QUEUE, Pool.SOURCE)  # whose resources name an owner
_OWNED: dict[str, str] = {Pool.SMDS: "SMDS", Pool.SOURCE: "source"}
_LABELS: dict[str, str] = {Pool.SCM: "SCM", Pool.AUGMENTED: "augmented space", Pool.FILE: "queue file"}


class Resource(NamedTuple):
    """A resource of a store: what an alert is about. Its text is "entries" or "smds/QM01".

    Attributes:
        pool: a `Pool`; in records of other programs any text.
        owner: the queue manager of a data set or source, or the queue of a depth; "" for a resource of the store.
    """

    pool: str
    owner: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the resource of a text."""
        pool, _, owner = text.partition("/")
        return cls(pool, owner)

    @property
    def label(self) -> str:
        """The resource in words."""
        if self.pool in _OWNED:
            return f"{_OWNED[self.pool]} {self.owner}"
        return _LABELS.get(self.pool, str(self))

    @property
    def reason(self) -> int:
        """The MQRC of a put for which the resource has no room."""
        if self.pool == Pool.QUEUE:
            return Q_FULL
        return full_reason("queue_file" if self.pool in (Pool.FILE, Pool.BLOCKS) else "")

    def __str__(self) -> str:
        """Return the resource as it stands in records."""
        return f"{self.pool}/{self.owner}" if self.owner else str(self.pool)


ENTRIES: Final = Resource(Pool.ENTRIES)
ELEMENTS: Final = Resource(Pool.ELEMENTS)
SCM: Final = Resource(Pool.SCM)
AUGMENTED: Final = Resource(Pool.AUGMENTED)
PAGES: Final = Resource(Pool.PAGES)
BLOCKS: Final = Resource(Pool.BLOCKS)
FILE: Final = Resource(Pool.FILE)
CAPACITY: Final = Resource(Pool.CAPACITY)
UNITS: Final = Resource(Pool.UNITS)


OPENED: Final = "opened"
UPDATED: Final = "updated"
CLEARED: Final = "cleared"

INFO: Final = "info"
WARNING: Final = "warning"
CRITICAL: Final = "critical"
FULL: Final = "full"  # the severity of Condition.FULL

WATCH: Final = "watch"  # level of an alert that wakes nobody
PAGE: Final = "page"  # level of every other alert
