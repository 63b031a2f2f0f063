"""MEASURE: the real system's own figures. The first sets the baseline, later ones show the drift.

The model is never overwritten: the excess of the first measurement over it becomes a baseline that unmatched gets draw
down; differences found later are `drift_pct`, and an alert if they last. Each of them also tests the twin: the share of
those that found it within its tolerance is its fidelity [Munoz, Wimmer, Troya, Vallecillo: IEEE TSE 2024, matched
snapshots]. Sources: docs/events.md, "Measurements"; docs/state.md, "Fidelity".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from kernels.clock import SECOND
from twin.alerts import texts
from twin.alerts.episodes import Alert, Episodes, Finding
from twin.base.conditions import Condition, Resource
from twin.records import Action, Baseline, SizePair

_ALERT_STREAK = 3  # measurements in a row beyond the tolerance before the alert opens
MIN_TESTS = 10  # measurements, before which a share of them says little [assumed]
# Three of four: below it the twin is wrong too often to act on, though never three times in a row [assumed].
LOW_FIDELITY = 0.75
_HOUR = 3600 * SECOND
_SHARE_LASTS = 2 * _HOUR  # after which a measured share says nothing about now [assumed]
_ROUNDED_PCT = 1.0  # by which SIZEUSED, a whole number, may differ from the share that it comes from
_FIDELITY_HOURS = 24
# More than any structure or data set holds: a wrong measurement must not leave 64 bits in `kernels.pools.base_left`.
_MAX_EXCESS = 1 << 48
MAX_MESSAGES = 1 << 31

Compared = Mapping[Resource, tuple[float, float, float]]  # (model, measured, total) by resource


class SizeMeasured(msgspec.Struct, frozen=True):
    """A size that was measured: measured size, not usage."""

    resource_text: str = msgspec.field(name="resource")  # the resource, as in alerts
    field: str  # field of the state record, such as blocks_total
    model: int  # as the twin has it, from the estate and what it has seen since
    measured: int  # as the real system has it

    @property
    def resource(self) -> Resource:
        """The resource."""
        return Resource.parse(self.resource_text)

    @property
    def pct(self) -> float:
        """By how much the twin's size is above the measured one, percent of the larger; below 0: smaller."""
        return 100.0 * (self.model - self.measured) / max(1, self.model, self.measured)


class MeasuredShare(msgspec.Struct, array_like=True):
    """A resource in use as last measured."""

    pct: float  # of its present size
    beyond_pct: float  # points by which that was above the twin's, 0 where it was not
    time: int  # microseconds
    is_rising: bool = False  # True if it had risen since it last changed


class TestedHour(msgspec.Struct, array_like=True):
    """Measurements of an hour (hours since 1970) that tested the twin, and how many of them matched."""

    hour: int
    tests: int = 0
    matched: int = 0


class Drift(msgspec.Struct, kw_only=True):
    """The baseline as it was set, the drift of the last measurement, and how many of the last day matched."""

    baseline: Baseline | None = None
    measured: list[str] = []  # fields of the state record that the baseline has taken from measurements, sorted
    pct: float | None = None
    resource: str | None = None
    sizes: list[SizeMeasured] = []  # those measured last that are not the model's
    streak: int = 0  # measurements in a row beyond the tolerance
    agreed: int = 0  # in a row within it
    cleared_at: int | None = None  # the store's clock when the last alert was cleared
    hours: list[TestedHour] = []  # the last 24 until the last test, ascending
    shares: dict[str, MeasuredShare] = {}  # by name of a resource, how full it was measured last

    @property
    def tests(self) -> int:
        """Measurements of the last 24 hours that tested the twin."""
        return sum(hour.tests for hour in self.hours)

    @property
    def fidelity(self) -> float | None:
        """Share of these measurements that matched, 0 to 1; None while they are fewer than `MIN_TESTS`."""
        return round(sum(hour.matched for hour in self.hours) / self.tests, 4) if self.tests >= MIN_TESTS else None

    @property
    def is_low(self) -> bool:
        """True if too few of these measurements matched."""
        return self.fidelity is not None and self.fidelity < LOW_FIDELITY

    def note_test(self, tested: Compared, tolerance_pct: float, now: int) -> None:
        """Count a measurement that tested the twin. Arguments as of `judge`."""
        pcts = _percentages(tested)
        if not pcts:
            return
        hour = now // _HOUR  # where the clock has gone back, later hours are forgotten
        self.hours = [own for own in self.hours if hour - _FIDELITY_HOURS < own.hour <= hour]
        if not self.hours or self.hours[-1].hour != hour:
            self.hours.append(TestedHour(hour))
        self.hours[-1].tests += 1
        self.hours[-1].matched += all(abs(pct) <= tolerance_pct for pct in pcts.values())

    def note(self, compared: Compared) -> None:
        """Keep the largest difference of (model, measured, total) by resource."""
        if pcts := _percentages(compared):
            resource, pct = max(pcts.items(), key=lambda entry: abs(entry[1]))
            self.pct, self.resource = round(pct, 4), str(resource)

    def note_share(self, resource: Resource, pct: float, twin_pct: float, now: int) -> None:
        """Keep how full a resource was measured, percent of its present size."""
        before = self.shares.get(str(resource))
        is_rising = before is not None and (pct > before.pct or (pct == before.pct and before.is_rising))
        beyond_pct = pct - twin_pct if pct - twin_pct > _ROUNDED_PCT else 0.0
        self.shares[str(resource)] = MeasuredShare(round(pct, 4), round(beyond_pct, 4), now, is_rising)

    def share_of(self, resource: Resource, now: int) -> MeasuredShare | None:
        """Return how full a resource was measured last; None: never, or long ago. now: the store's clock."""
        share = self.shares.get(str(resource))
        return share if share is not None and 0 <= now - share.time <= _SHARE_LASTS else None

    def describe_fidelity(self) -> str:
        """Return the sentence with the share of measurements that matched; "" while they are too few."""
        if self.fidelity is None:
            return ""
        return f" Of the {self.tests:,} measurements of the last 24 hours {100 * self.fidelity:.0f} % matched."

    def take(self, fields: set[str], baseline: Baseline) -> None:
        """Add measured fields to a baseline: what it has for them, and what it had for others."""
        before = {name: value for name, value in (self.baseline or {}).items() if value is not None}
        self.baseline = {**baseline, **before, **{name: value for name, value in baseline.items() if value is not None}}
        self.measured = sorted({*self.measured, *fields})

    def note_sizes(self, sizes: Sequence[SizeMeasured]) -> None:
        """Keep the sizes measured now that are not the model's, and earlier ones of other fields."""
        now = {(size.resource, size.field) for size in sizes}
        earlier = [size for size in self.sizes if (size.resource, size.field) not in now]
        self.sizes = [*earlier, *(size for size in sizes if size.model != size.measured)]

    def describe_sizes(self, resource: Resource) -> str:
        """Return sentences with both values of the sizes of a resource that are not the model's, each with its end."""
        own = [size for size in self.sizes if size.resource == resource]
        return "".join(f" {size.field} is {size.model:,} in the twin, {size.measured:,} measured." for size in own)

    def sizes_by_resource(self) -> dict[str, dict[str, SizePair]]:
        """Return the sizes that are not the model's by resource and field."""
        by_resource: dict[str, dict[str, SizePair]] = {}
        for size in self.sizes:
            own = by_resource.setdefault(size.resource_text, {})
            own[size.field] = SizePair(twin=size.model, measured=size.measured)
        return by_resource


def judge(
    drift: Drift,
    tested: Compared,
    compared: Compared,
    sizes: Sequence[SizeMeasured],
    tolerance_pct: float,
    episodes: Episodes,
    now: int,
    make_finding: Callable[[Resource], Finding],
) -> list[Alert]:
    """Record the result of a measurement; return the alerts it opens or clears. `tested`: (model, measured, total) by
    resource, the model as it was just before, without a total of 0; empty if the measurement tests nothing.
    """
    drift.note_test(tested, tolerance_pct, now)
    pcts = _percentages(compared)
    if not pcts and not sizes:
        return []
    drift.note(compared)
    drift.note_sizes(sizes)
    gaps = [*pcts.items(), *((size.resource, size.pct) for size in (*drift.sizes, *sizes))]
    resource, pct = max(gaps, key=lambda entry: abs(entry[1]))
    is_beyond = abs(pct) > tolerance_pct
    drift.streak, drift.agreed = (drift.streak + 1, 0) if is_beyond else (0, drift.agreed + 1)
    # A low fidelity is the same trouble, seen over a day: it opens the alert, and keeps it open while some differ.
    opens = drift.streak >= _ALERT_STREAK or (is_beyond and drift.is_low)
    is_over = not is_beyond and (not drift.is_low or drift.agreed >= _ALERT_STREAK)
    episode = next((episode for episode in episodes if episode.condition == Condition.DRIFT), None)
    # An alert's id holds the time it opened: two of one resource must not open at the same time.
    if episode is None and opens and drift.cleared_at != now:
        return episodes.open(make_finding(resource), now)
    if episode is not None and is_over:
        drift.cleared_at = now
        return episodes.clear(episode, make_finding(episode.resource), now)
    return []


def _percentages(compared: Compared) -> dict[Resource, float]:
    """Return model minus measured, percent of the total, of each resource that has any."""
    return {name: 100.0 * (model - real) / total for name, (model, real, total) in compared.items() if total > 0}


def excess(measured: int | None, model: int, max_excess: int = _MAX_EXCESS) -> int:
    """Return the excess of a measured value over the model; 0 where it is None, not measured."""
    return 0 if measured is None else min(max_excess, max(0, measured - model))


def drift_finding(
    store: str,
    resource: Resource,
    drift: Drift,
    tolerance_pct: float,
    usage_pct: float | None = None,
    actions: tuple[Action, ...] = (),
) -> Finding:
    """Return the finding about a resource that drifts, in usage or in size. `usage_pct`: None where it has none."""
    cause = texts.drifted(store, resource, drift.pct or 0.0, tolerance_pct)
    cause += drift.describe_sizes(resource) + drift.describe_fidelity()
    return Finding(
        condition=Condition.DRIFT,
        resource=resource,
        severity=Condition.DRIFT.severity,
        usage_pct=usage_pct,
        cause=cause,
        runbook=actions,
    )
