"""Whether a structure can be altered, and what ALLOWAUTOALT(YES) does to one that fills.

Sources: domain.md section 1 (automatic alter: sampled every 60 s of event time, to the in-use ratio, then by 10 % up to
SIZE: assumptions); seed "How storage class memory works with IBM MQ for z/OS" ("the structure cannot be altered either
manually or automatically").
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from kernels import clock, pools, watch
from twin.alerts.episodes import Alert
from twin.allocation import pool_sizes
from twin.conditions import Condition
from twin.stores import alteration

if TYPE_CHECKING:
    from twin.stores.structure import StructureTwin

_EVERY = 60 * clock.SECOND // clock.TICK  # ticks from one sample to the next
_GROWTH = 10  # percent of the size


def refuse(twin: StructureTwin, now: int, count: int = 1) -> list[Alert]:
    """Count alters that the data in SCM forbids; the alert, where it is not open. now: microseconds."""
    twin.tables.store.scalars["refused_alters"] += count
    if twin.episodes.get(Condition.NOT_ALTERABLE, "scm") is not None:
        return []
    return [twin.episodes.open(twin.viewer().finding(Condition.NOT_ALTERABLE, "scm", None), now)]


def samples(before: int, tick: int) -> int:
    """How many times the structure is looked at after the tick `before`, up to `tick`."""
    return tick // _EVERY - before // _EVERY


def is_due(twin: StructureTwin) -> bool:
    """Whether the next sample would change or tell something."""
    if not _at_threshold(twin):
        return False
    if not twin.alterable:
        return twin.episodes.get(Condition.NOT_ALTERABLE, "scm") is None
    return _wanted(twin) != (twin.size_now, twin.ratio)


def sample(twin: StructureTwin, count: int, now: int) -> list[Alert]:
    """Alter the structure where it is at its FULLTHRESHOLD; the alert where it cannot be.

    count: samples since the last call, of which all but the last found nothing to change (`is_due`); now: microseconds.
    """
    if not _at_threshold(twin):
        return []
    if not twin.alterable:
        return refuse(twin, now, count)
    twin.size_now, twin.ratio = _wanted(twin)
    alteration.set_params(twin)
    for row in range(len(twin.qmgrs)):
        watch.look(twin.tables.store, row)
    return []


def _at_threshold(twin: StructureTwin) -> bool:
    params = twin.tables.store.params[0]
    return twin.config.allow_auto_alter and _reaches(twin, int(params["ents_max"]), int(params["elems_max"]))


def _reaches(twin: StructureTwin, ents_max: int, elems_max: int) -> bool:
    """Whether entries or elements in use reach FULLTHRESHOLD of so many (0: never)."""
    threshold = twin.config.full_threshold
    entries, elements = _in_use(twin)
    return threshold > 0 and (entries * 100 >= threshold * ents_max or elements * 100 >= threshold * elems_max)


def _in_use(twin: StructureTwin) -> tuple[int, int]:
    store = twin.tables.store
    return int(pools.entries_in_use(store)), int(pools.elements_in_use(store))


def _wanted(twin: StructureTwin) -> tuple[int, int | Fraction]:
    """(bytes, elements an entry) that automatic alter gives the structure now."""
    entries, elements = _in_use(twin)
    ratio = Fraction(elements, entries) if entries and elements else twin.ratio
    size = twin.size_now
    if _reaches(twin, *pool_sizes(twin.config, size, ratio)):
        size = max(size, min(twin.config.size, size + size * _GROWTH // 100))
    return size, ratio
