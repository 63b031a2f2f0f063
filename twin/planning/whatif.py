"""What-if: a store rolled forward from one moment, as it is and with other settings or other traffic.

    >>> moment = twin.at_moment("friday.arrow", twin.load_estate("estate.toml"), "QSG1/APP1", "2026-11-20T01:30:00Z")
    >>> answer = twin.what_if(moment, settings={"smds.QM01.size": "1G", "smds.QM02.size": "1G"})
    >>> answer.before.p50 < answer.after.p50
    True

Nothing is changed: settings are tried on a copy of the twin, traffic on its meters. A store that refuses puts counts as
full now, even if the model has room left in the resource. Described in docs/what-if.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path

import msgspec
import numpy as np

from kernels import forecast, meter_rows, meters, regime
from kernels.clock import MINUTE_TICKS, TICK
from kernels.layout import Store
from kernels.meter_rows import BINS, CLASSES, COUNTS, DATA_SET_GETS, PUTS, REFUSED, STORE_GETS, YOUNG_GETS
from twin.base.conditions import Resource
from twin.base.errors import UsageError
from twin.base.units import EventTime, as_text, event_us
from twin.estate import Estate, as_estate
from twin.estate.attributes import parse_attributes
from twin.estate.errors import known_hint
from twin.estate.planned import Plan, Window
from twin.estate.settings import Setting, Settings, changed_config, check_scm
from twin.forecast import evidence, flows
from twin.forecast.fill_model import FillModel
from twin.forecast.outlook import SECONDS, Outlook, look_ahead, look_closely
from twin.forecast.plans import planned_record
from twin.forecast.rule import is_same, refusing, without_rest
from twin.playback.replays import play
from twin.records import PlannedWork
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore
from twin.stores.open import MESSAGE_KINDS, Twin, open_message_store
from twin.stores.structure import StructureTwin

DEFAULT_HORIZON_S = 8 * 3600.0
MAX_HORIZON_S = 86_400.0
MAX_FACTOR = 100.0  # of traffic
MIN_FACTOR = 1e-6  # but 0: below it numbers per second are beyond what floats divide by
_YEAR = 366 * 86_400_000_000  # microseconds
_ASKED_TICKS = 15 * MINUTE_TICKS  # of traffic, where no regime is known
_FIT_TICKS = 720  # in which a store would fill without offloading when messages that fit are counted
# (times as fast, ticks) of the count, until one ends with a full store: data sets and SCM may take far more than it.
_FIT_PACES = ((1, 8 * _FIT_TICKS), (1, 64 * _FIT_TICKS), (8, 64 * _FIT_TICKS))


class NoRoomError(UsageError):
    """A content that does not fit into its structure under other settings."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The twin of a store at one moment, of which copies can be opened.

    Attributes:
        estate: the estate.
        twin: the twin; it is read only.
    """

    estate: Estate
    twin: MessageStore

    @property
    def tick(self) -> int:
        """The tick of the moment."""
        return int(self.twin.tables.store.scalars[0]["tick"])

    @property
    def is_whole(self) -> bool:
        """True if events report all puts and gets: a replay with other settings needs them."""
        return not self.twin.estimate.is_partial and (self.twin.is_counted or self.twin.drift.baseline is None)

    def check_traffic(self, traffic: Traffic) -> None:
        """Raise UsageError if neither events nor measurements show the traffic, or not what `traffic` multiplies."""
        if self.twin.is_counted or self.twin.drift.baseline is None:
            return
        name = self.twin.name
        if self.twin.monitor.memory.estimated_at is None:
            missing = f"no puts of {name} are reported, and its measurements do not show them"
            raise UsageError(f"{missing}; expected: puts, or what it holds: entries and elements, blocks, pages")
        if traffic.gets != 1:
            raise UsageError(f"gets x {traffic.gets:g}: no gets of {name} are reported; expected: puts or lengths")

    def altered(self, settings: Mapping[str, Setting]) -> MessageStore:
        """Return a copy of the twin after an ALTER, which takes effect at once. UsageError: it would be refused."""
        twin = self._copied(self.estate)
        if not twin.alter(parse_attributes(twin.config, "ALTER", settings)):
            listed_values = ", ".join(f"{key} = {value}" for key, value in settings.items())
            raise UsageError(f"{twin.name} would refuse {listed_values} as it is; expected: another step, or later")
        return twin

    def with_settings(self, settings: Mapping[str, Setting]) -> MessageStore:
        """Return a copy of the twin under other settings; the twin itself without any. UsageError: as `what_if`."""
        if not settings:
            return self.twin
        name = self.twin.name
        changed = changed_config(self.twin.config, settings)
        check_scm(self.estate, self.twin.config, changed)
        estate = replace(self.estate, stores={**self.estate.stores, name: changed})
        twin = self._copied(estate)
        if isinstance(twin, StructureTwin) and twin.policy_pending and not twin.rebuild():
            listed_values = ", ".join(f"{key} = {value}" for key, value in twin.policy_pending.items())
            raise NoRoomError(f"{name}: what it holds does not fit with {listed_values}; expected: room for it")
        return twin

    def _copied(self, estate: Estate) -> MessageStore:
        arrays, header = self.twin.tables.copied_arrays(), self.twin.header()
        return open_message_store(estate, self.twin.name, arrays, header, None)


class Traffic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Factors on the traffic of the last minutes.

    Attributes:
        puts: on messages put per second; those that were got soon after their put still are.
        gets: on gets; 0: no getter. Beyond 1 they also drain what is held.
        lengths: on the lengths of messages put from now on; what is held keeps its size.
    """

    puts: float = 1.0
    gets: float = 1.0
    lengths: float = 1.0

    def __post_init__(self) -> None:
        for name, low in (("puts", 0.0), ("gets", 0.0), ("lengths", 0.01)):
            value = getattr(self, name)
            if 0 < value < MIN_FACTOR:
                raise UsageError(f"{name} = {value:g}; expected: 0, or a factor from {MIN_FACTOR:g}")
            if not low <= value <= MAX_FACTOR:
                raise UsageError(f"{name} = {value:g}; expected: a factor from {low:g} to {MAX_FACTOR:g}")


UNCHANGED = Traffic()


class FillOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The future of a store if its traffic continues: quantiles over all futures that were drawn."""

    resource: str | None  # that is most often full first; None: none on any path
    p10: float | None  # p10, p50, p90: seconds until any resource is full; None: not within the horizon
    p50: float | None
    p90: float | None
    probability: float  # that any resource is full within the horizon
    shares: dict[str, float]  # probability to be full first, by resource
    messages_that_fit: int | None  # of this mix, without any get, until puts fail; None: no message was put
    puts_per_s: float  # messages that applications ask to put, those included that a full store refuses


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a what-if.

    Attributes:
        store: name of the store.
        time: the moment, event time as text.
        horizon_s: how far it looks, seconds.
        settings, traffic: the question.
        before, after: the store as it is, and as it would be, if the traffic continues.
        alert_probability: that of the store's forecast, which alerts show: a rise may also end; None: it has none.
        planned: the windows that were asked about, which are then all that is rolled: they fit with a probability of 0.
    """

    store: str
    time: str
    horizon_s: float
    settings: Settings
    traffic: Traffic
    before: FillOutcome
    after: FillOutcome
    alert_probability: float | None = None
    planned: tuple[PlannedWork, ...] = ()


def what_if(
    moment: Moment,
    settings: Mapping[str, Setting] | None = None,
    traffic: Traffic = UNCHANGED,
    horizon_s: float = DEFAULT_HORIZON_S,
    *,
    plan: Plan | Sequence[Plan] = (),
    altered: bool = False,
) -> Answer:
    """Roll a store forward as it is, and with other settings and traffic.

    Args:
        moment: the store at a moment.
        settings: attributes as in the estate, such as offld1_th=60 or size="8G"; smds.QM01.size for a data set.
        traffic: factors on the traffic.
        horizon_s: how far to look, seconds.
        plan: planned work, of `read_plan`, whose next windows come together on top of what the store holds; without
            traffic, and to their end instead of `horizon_s`.
        altered: the settings come as an ALTER, which takes effect at once and may be refused; otherwise as in the
            estate, by which a structure is rebuilt.

    Raises:
        UsageError: an attribute or its value is wrong, the ALTER would be refused, the store's traffic is not known, or
            not yet, or a window of a plan is not ahead.
    """
    if plan:
        return _planned_answer(moment, dict(settings or {}), traffic, [plan] if isinstance(plan, Plan) else plan)
    if not 60 <= horizon_s <= MAX_HORIZON_S:
        raise UsageError(f"horizon of {horizon_s:g} s; expected: 60 to {MAX_HORIZON_S:g}")
    moment.check_traffic(traffic)
    settings = dict(settings or {})
    changed = moment.altered(settings) if altered else moment.with_settings(settings)
    return Answer(
        store=moment.twin.name,
        time=as_text(int(moment.twin.tables.store.scalars[0]["clock"])),
        horizon_s=horizon_s,
        settings=settings,
        traffic=traffic,
        before=_outcome(moment, moment.twin, UNCHANGED, horizon_s),
        after=_outcome(moment, changed, traffic, horizon_s),
        alert_probability=_alert_probability(moment.twin),
    )


def _planned_answer(moment: Moment, settings: Settings, traffic: Traffic, plans: Sequence[Plan]) -> Answer:
    """Return whether planned work fits, as `what_if`."""
    if traffic != UNCHANGED:
        raise UsageError(f"{len(plans)} plans beside a change of traffic; expected: one of the two")
    now, zone = int(moment.twin.tables.store.scalars[0]["clock"]), moment.estate.site.clock
    planned = [(plan, _next_window(plan, zone, now)) for plan in plans]
    end = max(window.end for _, window in planned)
    return Answer(
        store=moment.twin.name,
        time=as_text(now),
        horizon_s=(end - now) / 1e6,
        settings=settings,
        traffic=traffic,
        before=_planned_outcome(moment, moment.twin, planned, now),
        after=_planned_outcome(moment, moment.with_settings(settings), planned, now),
        planned=tuple(planned_record(window, plan, None, now) for plan, window in planned),
    )


def _next_window(plan: Plan, zone: tzinfo, now: int) -> Window:
    """Return the next window of a plan that begins after a time. UsageError: there is none within a year."""
    ahead = [window for window in plan.windows(zone, now, now + _YEAR) if window.start >= now]
    if not ahead:
        raise UsageError(f"plan {plan.id} has no window that begins after {as_text(now)}; expected: one ahead")
    return ahead[0]


def _planned_outcome(
    moment: Moment, twin: MessageStore, planned: Sequence[tuple[Plan, Window]], now: int
) -> FillOutcome:
    plans = twin.monitor.plans
    if len(planned) == 1:
        problem = evidence.fit(plans, twin, *planned[0], moment.tick)
    else:
        problem = evidence.fit_together(plans, twin, planned, moment.tick)
    announced = [(plan.announced(window), window) for plan, window in planned]
    number = sum(count for count, _ in announced if count is not None)
    rate = sum(count / (window.end - window.start) * 1e6 for count, window in announced if count is not None)
    full_s = None if problem is None else round((problem.full_at - now) / 1e6, 1)
    resource = None if problem is None else str(problem.resource)
    room = number if problem is None else problem.room
    return FillOutcome(
        resource=resource,
        p10=full_s,
        p50=full_s,
        p90=full_s,
        probability=0.0 if problem is None else 1.0,
        shares={} if resource is None else {resource: 1.0},
        messages_that_fit=room if number and room >= 0 else None,
        puts_per_s=round(rate, 3),
    )


def missing_gets_per_s(moment: Moment, traffic: Traffic = UNCHANGED) -> float:
    """Return the further gets, messages/s, that stop a store's growth; 0: it is not known to grow."""
    store = moment.twin.tables.store
    fill = moment.twin.fill_model(moment.tick)
    now = flows.present(store, moment.tick, fill.weights)
    return 0.0 if now is None else max(0.0, _regime(store, fill, now, traffic)[0].net_messages) / SECONDS


# --- moments ---------------------------------------------------------------------------------------------------------


def moment_of(estate: Estate, twin: Twin) -> Moment:
    """Return the present of a twin. UsageError: the store holds no messages, so it has no forecast to recompute."""
    if not isinstance(twin, MessageStore):
        raise UsageError(f"{twin.name} holds no messages; expected: {', '.join(MESSAGE_KINDS)}")
    if twin.config.known_by_levels:
        raise UsageError(
            f"{twin.name} holds no queues, what fills it is not known; expected: a structure with queues, or"
            " mqtwin size structure --admin"
        )
    return Moment(estate, twin)


def at_moment(recording: str | Path, estate: Estate | str | Path, store: str, time: EventTime | None = None) -> Moment:
    """Return a store that holds messages at a moment of a recording. Arguments and errors as of `twin_at`.

    Args:
        recording: the recording.
        estate: its estate, or the file of it.
        store: name of the store.
        time: as for `twin_at`.
    """
    described = as_estate(estate)
    return moment_of(described, twin_at(recording, described, store, time))


def twin_at(recording: str | Path, estate: Estate, store: str, time: EventTime | None = None) -> Twin:
    """Return the twin of a store at a moment of a recording; None: its end. UsageError: no such store, no such time, or
    the recording cannot be read or has no event of the store by then.
    """
    if store not in estate.stores:
        raise UsageError(f"{store}: the estate has no such store{known_hint(store, estate.stores)}")
    try:
        limit = None if time is None else event_us(time)
    except ValueError as error:
        raise UsageError(f"--at {error}") from None
    twins = play(recording, estate, until=limit).twins
    if store not in twins:
        by_then = "" if time is None else f" until {time}"
        raise UsageError(f"{recording} has no event of {store}{by_then}; expected: a later --at, or another store")
    return twins[store]


# --- rolling forward -------------------------------------------------------------------------------------------------


def _outcome(moment: Moment, twin: MessageStore, traffic: Traffic, horizon_s: float) -> FillOutcome:
    tick, store = moment.tick, twin.tables.store
    fill = twin.fill_model(tick)
    now = flows.present(store, tick, fill.weights)
    if refused := refusing(moment.twin, int(store.scalars[0]["clock"])):
        is_relieved = traffic.puts < 1 or traffic.lengths < 1 or traffic.gets > 1
        before = moment.twin.fill_model(tick)
        if not is_relieved and (twin is moment.twin or is_same(fill, before)):
            return _full_now(refused[0], store, tick - _ASKED_TICKS if now is None else now.since, tick, traffic)
        fill = without_rest(fill, before, refused)
    if now is None:
        raise UsageError(
            f"{twin.name}: its traffic is not known at {as_text(tick * TICK)}; expected: some minutes of events"
        )
    fill = _lengthened(fill, traffic.lengths)
    regime, puts = _regime(store, fill, now, traffic)
    outlook = look_closely(store, twin.name, fill, regime, tick, int(horizon_s / SECONDS))
    return _summary(outlook, _messages_that_fit(twin, fill, regime, puts, tick), puts)


def _alert_probability(twin: MessageStore) -> float | None:
    """Return the highest probability of the store's forecast."""
    known = twin.state().forecast
    return None if known is None else max((item.full_probability for item in known.resources), default=None)


def _full_now(resource: Resource, store: Store, since: int, until: int, traffic: Traffic) -> FillOutcome:
    """Return the outcome for a store that already refuses puts and will continue to."""
    asked = _asked(store, since, until).sum() * traffic.puts / max(1, until - since)
    return FillOutcome(
        resource=str(resource),
        p10=0.0,
        p50=0.0,
        p90=0.0,
        probability=1.0,
        shares={str(resource): 1.0},
        messages_that_fit=0,
        puts_per_s=round(float(asked) / SECONDS, 3),
    )


def _summary(outlook: Outlook, messages_that_fit: int | None, puts: Array) -> FillOutcome:
    """Return an outlook as quantiles over all its paths: that the traffic continues is given, not estimated."""
    shares = {str(name): float((outlook.full_of == i).mean()) for i, name in enumerate(outlook.fill.resources)}
    shares = {name: share for name, share in sorted(shares.items(), key=lambda item: -item[1]) if share > 0}
    p10, p50, p90 = (_finite(value) for value in np.quantile(outlook.full_at, (0.1, 0.5, 0.9), method="nearest"))
    return FillOutcome(
        resource=next(iter(shares), None),
        p10=p10,
        p50=p50,
        p90=p90,
        probability=round(sum(shares.values()), 4),
        shares={name: round(share, 4) for name, share in shares.items()},
        messages_that_fit=messages_that_fit,
        puts_per_s=round(float(puts.sum()) / SECONDS, 3),
    )


def _finite(seconds: float) -> float | None:
    return round(float(seconds), 1) if np.isfinite(seconds) else None


def _asked(store: Store, since: int, until: int) -> Array:
    """Return f8[n, CLASSES], the messages put or refused by a full store, as `_counts`."""
    return _counts(store, since, until, PUTS) + _counts(store, since, until, REFUSED)


def _counts(store: Store, since: int, until: int, offset: int | Array) -> Array:
    ticks = np.arange(max(since, until - BINS + 1), until)
    rows = (ticks % BINS)[store.bins["tick"][ticks % BINS] == ticks]
    if not store.counts.size:  # no put so far
        return np.zeros((rows.size, CLASSES))
    lanes = rows[:, None] * COUNTS + (offset + np.arange(CLASSES) if isinstance(offset, int) else offset)
    return np.asarray(store.counts[lanes], dtype=np.float64)


def _regime(store: Store, fill: FillModel, now: flows.Regime, traffic: Traffic) -> tuple[flows.Regime, Array]:
    """Return (the regime under other traffic, f8[CLASSES], messages put per bin).

    Getters that take messages soon after their put take as large a share of more puts; with more gets than puts they
    drain what is held, in the classes in which it is held.
    """
    until = int(now.since) + now.bins.shape[0]
    puts = _asked(store, now.since, until) * traffic.puts
    young = _counts(store, now.since, until, YOUNG_GETS) * traffic.puts * traffic.gets
    late_store = _counts(store, now.since, until, STORE_GETS) * traffic.gets
    late_sets = _counts(store, now.since, until, DATA_SET_GETS) * traffic.gets
    if traffic == UNCHANGED:
        return now, puts.mean(axis=0)
    surplus = np.maximum(young - puts, 0.0).sum(axis=1, keepdims=True)
    in_store, in_sets = fill.classes[:, forecast.IN_STORE], fill.classes[:, forecast.IN_DATA_SETS]
    held = max(1.0, float((in_store + in_sets).sum()))
    stay = puts - np.minimum(young, puts)
    late_store, late_sets = late_store + surplus * (in_store / held), late_sets + surplus * (in_sets / held)
    leave = late_store + late_sets
    net = stay @ fill.weights - leave @ fill.weights
    put, left = float(stay.sum()), float(leave.sum())
    changed = replace(
        now,
        bins=np.hstack([stay, late_store, late_sets]),
        net=float(net.mean()),
        net_messages=(put - left) / net.size,
        spread=regime.spread_of(net, float(((stay + leave) @ fill.weights).sum()) / max(1.0, put + left)),
        wait=now.wait if left > 0 else np.inf,
        got=min(1.0, left / put) if put > 0 else 1.0,
    )
    return changed, puts.mean(axis=0)


def _lengthened(fill: FillModel, factor: float) -> FillModel:
    """Return a fill model for messages that are longer by a factor; those held keep their size.

    A class keeps its number and takes space in proportion; what is offloaded of it is that of the classes that its
    longer messages would be in, lengths taken as even in their logarithm.
    """
    if factor == 1.0:
        return fill
    classes = fill.classes.copy()
    classes[:, forecast.PUT_SPACE] *= factor
    moved = np.array([_overlap(size, factor) for size in range(CLASSES)])
    return replace(
        fill,
        weights=fill.weights * factor,
        classes=classes,
        offload=fill.offload @ moved.T,
        set_put=fill.set_put * factor,
    )


def _overlap(size: int, factor: float) -> Array:
    """Return f8[CLASSES], the shares of a class that are in each class when its lengths grow by a factor."""
    edges = np.log(np.maximum(1, np.array(meters.EDGES, dtype=np.float64)))
    low, high = edges[size] + np.log(factor), edges[size + 1] + np.log(factor)
    limits = edges.copy()
    limits[0], limits[-1] = -np.inf, np.inf
    inside = np.minimum(limits[1:], high) - np.maximum(limits[:-1], low)
    return np.asarray(np.maximum(inside, 0.0) / (high - low))


def _messages_that_fit(twin: MessageStore, fill: FillModel, now: flows.Regime, puts: Array, tick: int) -> int | None:
    """Return the number of messages of this mix that fit without gets: the median over the paths."""
    per_tick = float(puts.sum())
    space = float(puts @ fill.weights)
    if per_tick <= 0 or space <= 0:
        return None
    scalars = fill.scalars[0]
    room = max(1.0, float(scalars["space_max"] - scalars["space"]))
    for faster, horizon in _FIT_PACES:
        quick = faster * room / space / _FIT_TICKS
        bins = np.zeros((max(3, now.bins.shape[0]), 3 * CLASSES))
        bins[:, :CLASSES] = puts * quick
        alone = replace(
            now, bins=bins, net=space * quick, net_messages=per_tick * quick, spread=0.0, wait=np.inf, got=0.0
        )
        outlook = look_ahead(twin.tables.store, twin.name, fill, alone, tick, horizon)
        assert outlook.drawn is not None
        filled = outlook.full_of != meter_rows.NOTHING_FULL
        ticks = np.where(filled, outlook.full_at / outlook.drawn.pace / SECONDS, np.inf)
        median = float(np.median(ticks))
        if np.isfinite(median):
            return int(median * per_tick * quick)
    return None
