"""Advice: the least change of a store's settings that keeps a promise, such as two hours without getters.

    >>> moment = twin.at_moment("friday.arrow", twin.load_estate("estate.toml"), "QSG1/APP1", "2026-11-20T01:30:00Z")
    >>> advice = twin.advise(moment, twin.Promise(hours=2), twin.Traffic(gets=0))
    >>> sorted(advice.plans[0].settings) != []
    True

A plan is found and proven by what-if: the store is rolled forward with it, so a remedy that fills something else is no
plan. `prove` then replays a whole recording with it, puts as demands (`twin.playback.demands`): the changed estate
decides which are refused. Described in docs/what-if.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from twin.capacity.statements import cfrm, mqsc, steps
from twin.errors import UsageError
from twin.estate import Estate, StoreConfig, Structure
from twin.estate.advice import warnings
from twin.estate.settings import Settings, changed_config
from twin.planning.levers import beginnings, size_of, sizes, with_size, without_size
from twin.planning.moment import Moment
from twin.planning.whatif import MAX_HORIZON_S, UNCHANGED, FillOutcome, Traffic, what_if
from twin.playback.replays import replay
from twin.stores.message_store import MessageStore
from twin.units import as_text

Ask = Callable[[Settings], FillOutcome]
"""Returns the outcome with settings."""

AS_IT_IS = "as it is"  # title of a proof without any plan

_MAX_ROUNDS = 16  # in which the resource that is full first is doubled
_STEPS = 32  # a size is a multiple of this part of its value now, so that plans are round


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """A condition to hold: the store is not full within `hours`, in `confidence` of all futures."""

    hours: float
    confidence: float = 0.9

    def __post_init__(self) -> None:
        if not 60 <= self.hours * 3600 <= MAX_HORIZON_S:
            raise UsageError(f"hours = {self.hours:g}; expected: from a minute to {MAX_HORIZON_S / 3600:g}")
        if not 0.5 <= self.confidence <= 0.99:
            raise UsageError(f"confidence = {self.confidence:g}; expected: 0.5 to 0.99")

    def is_kept(self, outcome: FillOutcome) -> bool:
        """Return True if it holds for an outcome that was rolled as far as the promise goes."""
        return outcome.probability <= 1 - self.confidence


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that keep the promise.

    Attributes:
        title: what kind of change.
        settings: attributes as in the estate.
        steps: what people are to do, sentences with commands.
        mqsc: its MQSC commands that the estate reads too; "": none.
        cfrm: its STRUCTURE statement of the CFRM policy; "": the policy stays.
        outcome: with it.
    """

    title: str
    settings: Settings
    steps: tuple[str, ...]
    mqsc: str
    cfrm: str
    outcome: FillOutcome


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """Advice about a store.

    Attributes:
        outcome: without any change.
        is_kept: True if the promise holds without any change.
        plans: the least changes, if it does not; none where no change helps.
        left_out: plans that would bring a new warning about the estate: title and warning.
        smaller: sizes that could be smaller one at a time, if it does: by name the settings, with what goes along.
    """

    store: str
    time: str
    promise: Promise
    traffic: Traffic
    outcome: FillOutcome
    is_kept: bool
    plans: tuple[Plan, ...]
    left_out: tuple[str, ...]
    smaller: dict[str, Settings]


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """A recording replayed with a plan, its puts as demands.

    Attributes:
        title: title of the plan; "as it is" without one; of a smaller size its name.
        recorded: messages refused with 2192 in the recording.
        refused: messages refused with 2192 here.
        first_full: time of the first of them; None: none is refused.
        unserved_gets: gets of the recording whose message was refused here.
        times: f8 seconds since 1970, samples.
        usage_pct: the fullest resource of the store at each sample, percent.
    """

    title: str
    recorded: int
    refused: int
    first_full: str | None
    unserved_gets: int
    times: tuple[float, ...]
    usage_pct: tuple[float, ...]


def advise(moment: Moment, promise: Promise, traffic: Traffic = UNCHANGED) -> Advice:
    """Return the least changes that keep a promise, or what could be smaller where it is kept already.

    Args:
        moment: the store at a moment.
        promise: what must hold.
        traffic: factors on the traffic, under which it must.

    Raises:
        UsageError: the store's traffic is not known yet.
    """

    def ask(settings: Settings) -> FillOutcome:
        return what_if(moment, settings, traffic, promise.hours * 3600).after

    first = what_if(moment, None, traffic, promise.hours * 3600)
    is_kept = promise.is_kept(first.after)
    plans, left_out = ((), ()) if is_kept else _plans(moment, promise, ask)
    smaller = _smaller(moment.twin, promise, ask) if is_kept else {}
    return Advice(
        store=first.store,
        time=first.time,
        promise=promise,
        traffic=traffic,
        outcome=first.after,
        is_kept=is_kept,
        plans=plans,
        left_out=left_out,
        smaller=smaller,
    )


# --- search ----------------------------------------------------------------------------------------------------------


def _plans(moment: Moment, promise: Promise, ask: Ask) -> tuple[tuple[Plan, ...], tuple[str, ...]]:
    """Return the plans, and why others are left out."""
    twin = moment.twin
    plans: list[Plan] = []
    left_out: list[str] = []
    for title, beginning in beginnings(twin, moment.estate):
        settings = _enlarge(twin, beginning, promise, ask)
        if settings is None:
            continue
        least = _least(twin, settings, promise, ask)
        if "scm_max_size" in beginning and "scm_max_size" not in least:
            continue  # what goes with it is enough: another plan
        full_title = title if set(least) <= set(beginning) or not beginning else f"{title}, and larger"
        changed = changed_config(twin.config, least)
        news = new_warnings(moment.estate, changed)
        left_out += [f"{full_title}: {warning}" for warning in news]
        if not news and all(plan.settings != least for plan in plans):
            plans.append(
                Plan(
                    title=full_title,
                    settings=least,
                    steps=steps(twin.config, least),
                    mqsc=mqsc(twin.config, least),
                    cfrm=cfrm(changed, least),
                    outcome=ask(least),
                )
            )
    return tuple(plans), tuple(left_out)


def new_warnings(estate: Estate, changed: StoreConfig) -> list[str]:
    """Return the warnings that an estate has with a changed store and has not without."""
    before = {_without_numbers(warning) for warning in _warnings(estate, estate.stores)}
    after = _warnings(estate, {**estate.stores, changed.name: changed})
    return [warning for warning in after if _without_numbers(warning) not in before]


def _without_numbers(warning: str) -> str:
    """Return a warning without its sizes and percentages: the same one with other numbers is not new."""
    return re.sub(r"\d+[KMGT]?\b", "#", warning)


def _warnings(estate: Estate, stores: Mapping[str, StoreConfig]) -> list[str]:
    described = {(store.name, qmgr) for store in stores.values() if isinstance(store, Structure) for qmgr in store.smds}
    return list(warnings(stores, described, estate.queue_managers, {}))


def _enlarge(twin: MessageStore, beginning: Settings, promise: Promise, ask: Ask) -> Settings | None:
    """Double what is full first until the promise is kept; None where that leads nowhere."""
    settings = dict(beginning)
    for _ in range(_MAX_ROUNDS):
        try:
            outcome = ask(settings)
        except UsageError:
            return None  # larger than the attribute may be
        if promise.is_kept(outcome):
            return settings
        name = size_of(twin, outcome.resource)
        now = None if name is None else _size(settings, name) or sizes(twin).get(name)
        if name is None or now is None:
            return None
        settings = with_size(twin.config, settings, name, 2 * now)
    return None


def _least(twin: MessageStore, settings: Settings, promise: Promise, ask: Ask) -> Settings:
    """Make each size of a plan as small as the promise allows, one after the other; one not needed goes.

    The structure comes first: storage of a coupling facility is scarcer than that of a data set.
    """
    least, known = dict(settings), sizes(twin)
    names = [name for name in settings if name in known or name == "scm_max_size"]
    for name in sorted(names, key=lambda name: name != "size"):
        if name not in least:
            continue  # it went with another one
        now, planned = known.get(name, 0), _size(least, name)
        step = max(1, (now or planned) // _STEPS)
        low, high = 0, -(-(planned - now) // step)  # steps beyond the value now; `high` keeps it
        while low < high:
            middle = (low + high) // 2
            tried = with_size(twin.config, without_size(least, name), name, now + middle * step)
            if promise.is_kept(ask(tried if now + middle * step else without_size(least, name))):
                high = middle
            else:
                low = middle + 1
        least = without_size(least, name)
        if high:
            least = with_size(twin.config, least, name, now + high * step)
    return least


def _size(settings: Settings, name: str) -> int:
    """Return a size among settings, 0 where there is none."""
    value = settings.get(name, 0)
    assert isinstance(value, int)
    return value


def _smaller(twin: MessageStore, promise: Promise, ask: Ask) -> dict[str, Settings]:
    """Return how small each size could be alone, where that is at least a step smaller."""
    smaller: dict[str, Settings] = {}
    for name, value in sizes(twin).items():
        step = max(1, value // _STEPS)
        low, high = 1, value // step  # in steps; `high` keeps the promise
        while low < high:
            middle = (low + high) // 2
            try:
                is_kept = promise.is_kept(ask(with_size(twin.config, {}, name, middle * step)))
            except UsageError:
                is_kept = False
            low, high = (low, middle) if is_kept else (middle + 1, high)
        if high * step < value:
            smaller[name] = with_size(twin.config, {}, name, high * step)
    return smaller


# --- proof -----------------------------------------------------------------------------------------------------------


def prove(recording: str | Path, estate: Estate, advice: Advice) -> tuple[Proof, ...]:
    """Replay a recording, puts as demands: on the estate as it is, then with each plan and each smaller size.

    Args:
        recording: the recording, from its beginning to its end.
        estate: the estate of the advice.
        advice: about one of its stores.

    Raises:
        UsageError: the recording cannot be read, or has no event of the store.
    """
    without: tuple[str, Settings] = (AS_IT_IS, {})
    plans = [(plan.title, plan.settings) for plan in advice.plans]
    changes = (without, *plans, *advice.smaller.items())
    return tuple(_proof(recording, estate, advice.store, *change) for change in changes)


def _proof(recording: str | Path, estate: Estate, store: str, title: str, settings: Settings) -> Proof:
    config = changed_config(estate.stores[store], settings) if settings else estate.stores[store]
    replayed = replay(recording, replace(estate, stores={**estate.stores, store: config}), demands=True)
    if store not in replayed.refusals:
        raise UsageError(f"{recording} has no event of {store}; expected: a recording of it")
    refusals = replayed.refusals[store]
    first_full = refusals.replayed.first_full
    usage = replayed.usage
    rows = np.array(usage["store"].to_pylist()) == store
    times = usage["time"].cast("int64").to_numpy()[rows] / 1e6
    sampled = np.unique(times)
    fullest = np.zeros(sampled.size)
    np.maximum.at(fullest, np.searchsorted(sampled, times), usage["usage_pct"].to_numpy()[rows])
    return Proof(
        title=title,
        recorded=refusals.recorded.full,
        refused=refusals.replayed.full,
        first_full=None if first_full is None else as_text(first_full),
        unserved_gets=refusals.unserved_gets,
        times=tuple(sampled.tolist()),
        usage_pct=tuple(np.round(fullest, 3).tolist()),
    )
