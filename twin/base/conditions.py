"""Alert conditions with their rules, and resources, severities, levels and changes, as in records: docs/alerts.md."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum, unique
from typing import Any, Final, Literal, NamedTuple, Self

OPENED: Final = "opened"
UPDATED: Final = "updated"
CLEARED: Final = "cleared"

INFO: Final = "info"
WARNING: Final = "warning"
CRITICAL: Final = "critical"
FULL: Final = "full"  # the severity of a store, or a queue, that takes no more

WATCH: Final = "watch"  # level of an alert that wakes nobody
PAGE: Final = "page"  # level of every other alert

# As the library has them. Records take other words too, which a later version may write.
ChangeName = Literal["opened", "updated", "cleared"]
Severity = Literal["info", "warning", "critical", "full"]
Level = Literal["watch", "page"]


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


DATA, QUEUES, FILLING = range(3)  # what a condition is about: an incident pages again by these classes
PUT, MEASURE, ALTER, HEARTBEAT, TICK = "put", "measure", "alter", "heartbeat", "tick"  # what raises one
VARIES: Final = "varies"  # a severity that is not the same in all alerts of a condition
REVIEWED, OWN_RULES = "reviewed", "own rules"  # what updates and clears an open alert
_MISSING: Any = None  # of a row


class Rule(NamedTuple):
    """The rule of a condition."""

    # DATA: what is known, how it is set up, who holds or reads it, so that puts do not fail for it; else QUEUES, or the
    # FILLING of the store
    about: int = _MISSING
    rank: int = _MISSING  # how much it says about a store: of the alerts of an incident the highest is its root
    raised_by: str = _MISSING  # what raises it. One that puts raise has a bit in `twin.stores.resources`.
    severity: str = _MISSING  # of alerts of a message store, unless the forecast or who reads lowers it; or VARIES
    review: str = _MISSING  # REVIEWED by each tick, in a message store; OWN_RULES
    pools: tuple[Pool, ...] = _MISSING  # kinds of resource that it may be about
    order: int | None = None  # place among the alerts of one event, of a condition that puts raise; else None
    informs: bool = False  # True if it is about the way to full, of which the forecast knows more


_NO_RULE = Rule()
_FULL = FULL  # inside the class FULL is the condition
_FILLED = (Pool.ENTRIES, Pool.ELEMENTS, Pool.SMDS, Pool.PAGES, Pool.FILE)  # puts fail where one is full
_MEASURED = (*_FILLED, Pool.SCM)
_FORESEEN = (*_MEASURED, Pool.AUGMENTED)
_DRIFTING = (*_FORESEEN, Pool.BLOCKS, Pool.CAPACITY)


@unique
class Condition(StrEnum):
    """Conditions that raise an alert, a row each: see `Rule`."""

    about: int
    rank: int
    raised_by: str
    severity: str
    review: str
    pools: tuple[Pool, ...]
    order: int | None
    informs: bool

    def __new__(cls, name: str, rule: Rule = _NO_RULE) -> Self:
        """Return the condition of a row. TypeError: a part is missing, or its rank is taken."""
        lacks = [part for part, value in rule._asdict().items() if value is None]
        if rule.raised_by not in (PUT, None):
            lacks.remove("order")
        if lacks:
            raise TypeError(f"condition {name} lacks {', '.join(lacks)}; expected: a row of Condition with every part")
        if same := [other for other in cls.__members__.values() if other.rank == rule.rank]:
            raise TypeError(f"condition {name} has the rank of {same[0]}; expected: one of its own")
        condition = str.__new__(cls, name)
        condition._value_ = name
        vars(condition).update(rule._asdict())
        return condition

    FULL_FORECAST = "full-forecast", Rule(FILLING, 15, TICK, VARIES, OWN_RULES, _FORESEEN)
    THRESHOLD = "threshold", Rule(FILLING, 10, PUT, VARIES, REVIEWED, _MEASURED, 1, informs=True)
    CANNOT_EXPAND = (
        "cannot-expand",
        Rule(FILLING, 14, PUT, CRITICAL, REVIEWED, (Pool.SMDS, Pool.PAGES), 2, informs=True),
    )
    FULL = "full", Rule(FILLING, 16, PUT, _FULL, REVIEWED, _FILLED, 3)
    QUEUE_FULL = "queue-full", Rule(QUEUES, 7, PUT, _FULL, REVIEWED, (Pool.QUEUE,), 6)
    QUEUE_FULL_FORECAST = "queue-full-forecast", Rule(QUEUES, 6, TICK, INFO, OWN_RULES, (Pool.QUEUE,))
    QUEUE_UNREAD = "queue-unread", Rule(DATA, 5, MEASURE, INFO, OWN_RULES, (Pool.QUEUE,))
    SCM_OVERCOMMITTED = "scm-overcommitted", Rule(DATA, 3, TICK, INFO, OWN_RULES, (Pool.SCM,))
    SCM_EXHAUSTED = "scm-exhausted", Rule(FILLING, 13, PUT, CRITICAL, REVIEWED, (Pool.SCM,), 4, informs=True)
    AUGMENTED_EXHAUSTED = (
        "augmented-exhausted",
        Rule(FILLING, 12, PUT, CRITICAL, REVIEWED, (Pool.AUGMENTED,), 5, informs=True),
    )
    NOT_ALTERABLE = "not-alterable", Rule(DATA, 4, ALTER, INFO, REVIEWED, (Pool.SCM,))
    CAPACITY = "capacity", Rule(FILLING, 8, TICK, VARIES, OWN_RULES, (Pool.CAPACITY,))
    DRIFT = "drift", Rule(DATA, 0, MEASURE, INFO, OWN_RULES, _DRIFTING)
    SOURCE_SILENT = "source-silent", Rule(DATA, 1, HEARTBEAT, INFO, OWN_RULES, (Pool.SOURCE,))
    IN_DOUBT = "in-doubt", Rule(DATA, 2, TICK, WARNING, OWN_RULES, (Pool.UNITS,))
    SCM_OVERRUN = "scm-overrun", Rule(FILLING, 11, TICK, VARIES, OWN_RULES, (Pool.SCM,))
    PLAN_DOES_NOT_FIT = "plan-does-not-fit", Rule(FILLING, -1, TICK, INFO, OWN_RULES, _FORESEEN)
    WEEKEND_DOES_NOT_LAST = (
        "weekend-does-not-last",
        Rule(FILLING, -2, TICK, INFO, OWN_RULES, (*_FILLED, Pool.AUGMENTED)),
    )
    FAULT_WAIT = "fault-wait", Rule(FILLING, 9, TICK, INFO, OWN_RULES, (Pool.SCM,))


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
    """A resource of a store: what an alert is about. Its text is "entries" or "smds/QM01"."""

    pool: str  # a `Pool`; in records of other programs any text
    owner: str = ""  # queue manager of a data set or source, queue of a depth; "": the store itself

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
