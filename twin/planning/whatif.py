"""What-if: a store rolled forward from one moment, as it is and with other settings or other traffic.

    >>> moment = at_moment("friday.arrow", twin.load_estate("estate.toml"), "QSG1/APP1", "2026-11-20T01:30:00Z")
    >>> answer = what_if(moment, settings={"smds.QM01.size": "1G", "smds.QM02.size": "1G"})
    >>> answer.before.p50 < answer.after.p50
    True

Nothing is changed: settings are tried on a copy of the twin, traffic on its meters. Described in docs/what-if.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kernels import forecast, meters, resources
from kernels.clock import TICK
from kernels.layout import Store
from kernels.meter_rows import BINS, CLASSES, COUNTS, DATA_SET_GETS, PUTS, STORE_GETS, YOUNG_GETS
from twin.errors import UsageError
from twin.estate import (
    CouplingFacility,
    Estate,
    EstateError,
    Smds,
    StoreConfig,
    Structure,
    parse_attributes,
)
from twin.estate.attributes import SMDS
from twin.estate.errors import known_hint
from twin.events import Decoded, Decoder, EventError
from twin.events.fields import FIELD
from twin.forecast import flows
from twin.forecast.fill_model import FillModel
from twin.forecast.outlook import SECONDS, Outlook, look_ahead
from twin.playback.replays import Player
from twin.recordings.files import open_recording
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore
from twin.stores.open import MESSAGE_KINDS, Twin, open_message_store
from twin.stores.structure import StructureTwin
from twin.stores.warm_up import warm
from twin.units import as_text, format_size

DEFAULT_HORIZON_S = 8 * 3600.0
MAX_HORIZON_S = 86_400.0
MAX_FACTOR = 100.0  # of traffic
MIN_FACTOR = 1e-6  # but 0: below it numbers per second are beyond what floats divide by
_FINE_TICKS = 360  # in which a store that fills in them is rolled in steps of a tick
_FIT_TICKS = 720  # in which a store would fill without offloading when messages that fit are counted
# (times as fast, ticks) of the count, until one ends with a full store: data sets and SCM may take far more than it.
_FIT_PACES = ((1, 8 * _FIT_TICKS), (1, 64 * _FIT_TICKS), (8, 64 * _FIT_TICKS))


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


AS_IT_IS = Traffic()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The future of a store if its traffic goes on: quantiles over all futures that were drawn.

    Attributes:
        resource: that is most often full first; None: none on any path.
        p10, p50, p90: seconds until any resource is full; None: not within the horizon.
        probability: that any resource is full within the horizon.
        shares: probability to be full first, by resource.
        messages_that_fit: messages of this mix that fit, without any get, until puts fail; None: no message was put.
        puts_per_s: messages put.
    """

    resource: str | None
    p10: float | None
    p50: float | None
    p90: float | None
    probability: float
    shares: dict[str, float]
    messages_that_fit: int | None
    puts_per_s: float


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a what-if. time: the moment, event time as text; horizon_s: how far it looks."""

    store: str
    time: str
    horizon_s: float
    settings: dict[str, Any]
    traffic: Traffic
    before: Outcome
    after: Outcome


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

    def with_settings(self, settings: Mapping[str, Any]) -> MessageStore:
        """Return a copy of the twin under other settings; the twin itself without any. UsageError: as `what_if`."""
        if not settings:
            return self.twin
        name = self.twin.name
        changed = changed_config(self.twin.config, settings)
        _check_scm(self.estate, self.twin.config, changed)
        estate = replace(self.estate, stores={**self.estate.stores, name: changed})
        twin = open_message_store(estate, name, self.twin.tables.copied_arrays(), self.twin.header(), None)
        if isinstance(twin, StructureTwin) and twin.policy_pending and not twin.rebuild():
            listed_values = ", ".join(f"{key} = {value}" for key, value in twin.policy_pending.items())
            raise UsageError(f"{name}: what it holds does not fit with {listed_values}; expected: room for it")
        return twin


def moment_of(estate: Estate, twin: Twin) -> Moment:
    """Return the present of a twin. UsageError: the store holds no messages, so it has no forecast of its own."""
    if not isinstance(twin, MessageStore) or not twin.has_fill_model:
        raise UsageError(f"{twin.name} holds no messages; expected: {', '.join(MESSAGE_KINDS)}")
    return Moment(estate, twin)


def at_moment(recording: str | Path, estate: Estate, store: str, time: str | int | None = None) -> Moment:
    """Return a store that holds messages at a moment of a recording. Arguments and errors as of `twin_at`."""
    return moment_of(estate, twin_at(recording, estate, store, time))


def twin_at(recording: str | Path, estate: Estate, store: str, time: str | int | None = None) -> Twin:
    """Return the twin of a store at a moment of a recording.

    Args:
        recording: the recording.
        estate: its estate.
        store: name of the store.
        time: event time, RFC 3339 or microseconds since 1970, up to which events are applied; None: all of them.

    Raises:
        UsageError: no such store, no such time, or the recording cannot be read or has no event of the store by then.
    """
    if store not in estate.stores:
        raise UsageError(f"{store}: the estate has no such store{known_hint(store, estate.stores)}")
    try:
        limit = None if time is None else int(FIELD["time"].checked(time))
    except EventError as error:
        raise UsageError(f"--at: {error.detail}") from None
    warm()
    decoder, player = Decoder(estate), Player(estate)
    for chunk in open_recording(recording):
        decoded = chunk.decode(decoder)
        cut = decoded if limit is None else until(decoded, limit)
        player.feed(cut)
        if len(decoded) and not len(cut):
            break  # a chunk has thousands of events: what comes is later
    player.catch_up()
    if store not in player.twins:
        by_then = "" if time is None else f" until {time}"
        raise UsageError(f"{recording} has no event of {store}{by_then}; expected: a later --at, or another store")
    return player.twins[store]


def what_if(
    moment: Moment,
    settings: Mapping[str, Any] | None = None,
    traffic: Traffic = AS_IT_IS,
    horizon_s: float = DEFAULT_HORIZON_S,
) -> Answer:
    """Roll a store forward as it is, and with other settings and traffic.

    Args:
        moment: the store at a moment.
        settings: attributes as in the estate, such as offld1_th=60 or size="8G"; smds.QM01.size for a data set.
        traffic: factors on the traffic.
        horizon_s: how far to look, seconds.

    Raises:
        UsageError: an attribute or its value is wrong, or the store's traffic is not known yet.
    """
    if not 60 <= horizon_s <= MAX_HORIZON_S:
        raise UsageError(f"horizon of {horizon_s:g} s; expected: 60 to {MAX_HORIZON_S:g}")
    settings = dict(settings or {})
    changed = moment.with_settings(settings)
    return Answer(
        store=moment.twin.name,
        time=as_text(int(moment.twin.tables.store.scalars[0]["clock"])),
        horizon_s=horizon_s,
        settings=settings,
        traffic=traffic,
        before=_outcome(moment.twin, moment.tick, AS_IT_IS, horizon_s),
        after=_outcome(changed, moment.tick, traffic, horizon_s),
    )


# --- settings --------------------------------------------------------------------------------------------------------


def changed_config(config: StoreConfig, settings: Mapping[str, Any]) -> StoreConfig:
    """Return a store config with other attributes. UsageError: as of `what_if`."""
    own = {name: value for name, value in settings.items() if not name.startswith("smds.")}
    try:
        changes = dict(parse_attributes(config, "REBUILD" if config.kind == "structure" else "ALTER", own))
    except EstateError as error:
        raise UsageError(str(error).partition(": ")[2] or str(error)) from None
    datasets = {name: value for name, value in settings.items() if name.startswith("smds.")}
    if datasets:
        changes["smds"] = _changed_datasets(config, datasets)
    return replace(config, **changes)


def _check_scm(estate: Estate, config: StoreConfig, changed: StoreConfig) -> None:
    """Check that there is SCM where another SCMMAXSIZE is asked for. UsageError: the coupling facility has none."""
    if not isinstance(config, Structure) or not isinstance(changed, Structure):
        return
    facility = estate.stores.get(changed.coupling_facility or "")
    if not isinstance(facility, CouplingFacility) or facility.size is None or facility.scm:
        return  # without a described one, SCMMAXSIZE alone counts
    if changed.scm_max_size not in (None, config.scm_max_size):
        raise UsageError(
            f"scm_max_size = {format_size(changed.scm_max_size or 0)}: {facility.name} has no SCM; expected: scm in"
            f" [coupling_facility.{facility.name}] of the estate"
        )


def _changed_datasets(config: StoreConfig, settings: Mapping[str, Any]) -> dict[str, Smds]:
    if not isinstance(config, Structure):
        raise UsageError(f"{next(iter(settings))}: a {config.kind} has no data sets; expected: an attribute of its own")
    datasets = dict(config.smds)
    for name, value in settings.items():
        qmgr, _, key = name.removeprefix("smds.").rpartition(".")
        if qmgr not in config.queue_managers:
            raise UsageError(f"{name}: no queue manager {qmgr}{known_hint(qmgr, config.queue_managers)}")
        if key not in SMDS:
            raise UsageError(f"{name}: no attribute {key} of a data set{known_hint(key, SMDS)}")
        try:
            datasets[qmgr] = replace(datasets.get(qmgr, Smds()), **{key: SMDS[key](value)})
        except (ValueError, TypeError) as error:
            raise UsageError(f"{name} = {value}: {error}") from None
    return datasets


def until(decoded: Decoded, limit: int) -> Decoded:
    """Return the events up to a time, microseconds, in order; a clock that is ahead costs only its own events."""
    rows = np.flatnonzero(decoded.events["time"] <= limit)
    if rows.size == len(decoded):
        return decoded
    places = {int(row): place for place, row in enumerate(rows)}
    extras = {places[row]: text for row, text in decoded.extras.items() if row in places}
    return Decoded(decoded.events[rows], decoded.record[rows], decoded.index[rows], extras)


# --- rolling forward -------------------------------------------------------------------------------------------------


def _outcome(twin: MessageStore, tick: int, traffic: Traffic, horizon_s: float) -> Outcome:
    store, fill = twin.tables.store, twin.fill_model(tick)
    now = flows.present(store, tick, fill.weights)
    if now is None:
        raise UsageError(
            f"{twin.name}: its traffic is not known at {as_text(tick * TICK)}; expected: some minutes of events"
        )
    fill = _lengthened(fill, traffic.lengths)
    regime, puts = _regime(store, fill, now, traffic)
    horizon = int(horizon_s / SECONDS)
    outlook = look_ahead(store, twin.name, fill, regime, tick, horizon)
    if np.quantile(outlook.full_at, 0.1, method="nearest") < _FINE_TICKS * SECONDS:  # long steps let rules act late
        outlook = look_ahead(store, twin.name, fill, regime, tick, horizon, fine=min(horizon, _FINE_TICKS))
    return _summary(outlook, _messages_that_fit(twin, fill, regime, puts, tick), puts)


def _summary(outlook: Outlook, messages_that_fit: int | None, puts: Array) -> Outcome:
    """Return an outlook as quantiles over all its paths: that the traffic goes on is given, not estimated."""
    shares = {str(name): float((outlook.full_of == i).mean()) for i, name in enumerate(outlook.fill.resources)}
    shares = {name: share for name, share in sorted(shares.items(), key=lambda item: -item[1]) if share > 0}
    p10, p50, p90 = (_finite(value) for value in np.quantile(outlook.full_at, (0.1, 0.5, 0.9), method="nearest"))
    return Outcome(
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


def _counts(store: Store, since: int, until: int, offset: int) -> Array:
    """Return f8[n, CLASSES], the messages counted in the bins of ticks since..until-1 at an offset within a bin."""
    ticks = np.arange(max(since, until - BINS + 1), until)
    rows = (ticks % BINS)[store.bins["tick"][ticks % BINS] == ticks]
    if not store.counts.size:  # no put so far
        return np.zeros((rows.size, CLASSES))
    lanes = rows[:, None] * COUNTS + offset + np.arange(CLASSES)
    return np.asarray(store.counts[lanes], dtype=np.float64)


def _regime(store: Store, fill: FillModel, now: flows.Regime, traffic: Traffic) -> tuple[flows.Regime, Array]:
    """Return (the regime under other traffic, f8[CLASSES], messages put per bin).

    Getters that take messages soon after their put take as large a share of more puts; with more gets than puts they
    drain what is held, in the classes in which it is held.
    """
    until = int(now.since) + now.bins.shape[0]
    puts = _counts(store, now.since, until, PUTS) * traffic.puts
    young = _counts(store, now.since, until, YOUNG_GETS) * traffic.puts * traffic.gets
    late_store = _counts(store, now.since, until, STORE_GETS) * traffic.gets
    late_sets = _counts(store, now.since, until, DATA_SET_GETS) * traffic.gets
    if traffic == AS_IT_IS:
        return now, puts.mean(axis=0)
    surplus = np.maximum(young - puts, 0.0).sum(axis=1, keepdims=True)
    in_store, in_sets = fill.classes[:, forecast.IN_STORE], fill.classes[:, forecast.IN_DATA_SETS]
    held = max(1.0, float((in_store + in_sets).sum()))
    stay = puts - np.minimum(young, puts)
    late_store, late_sets = late_store + surplus * (in_store / held), late_sets + surplus * (in_sets / held)
    leave = late_store + late_sets
    net = stay @ fill.weights - leave @ fill.weights
    put, left = float(stay.sum()), float(leave.sum())
    regime = replace(
        now,
        bins=np.hstack([stay, late_store, late_sets]),
        net=float(net.mean()),
        net_messages=(put - left) / net.size,
        spread=max(float(net.var(ddof=1)), float(np.abs(net).mean()) * float(fill.weights.mean())),
        wait=now.wait if left > 0 else np.inf,
        got=min(1.0, left / put) if put > 0 else 1.0,
    )
    return regime, puts.mean(axis=0)


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
    """Return how many messages of this mix fit when nobody gets any: the median over the paths."""
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
        filled = outlook.full_of != resources.NOTHING_FULL
        ticks = np.where(filled, outlook.full_at / outlook.drawn.pace / SECONDS, np.inf)
        median = float(np.median(ticks))
        if np.isfinite(median):
            return int(median * per_tick * quick)
    return None
