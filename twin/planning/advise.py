"""Advice: the least change of a store's settings that keeps a promise, such as two hours without getters.

Settings may be required, such as `{"scm_max_size": 0}` of a structure that gives up its storage class memory. Then
advice is the least that has to change beside them.

    >>> moment = twin.at_moment("friday.arrow", twin.load_estate("estate.toml"), "QSG1/APP1", "2026-11-20T01:30:00Z")
    >>> advice = twin.advise(moment, twin.Promise(hours=2), twin.Traffic(gets=0))
    >>> sorted(advice.plans[0].settings) != []
    True

A plan is found by what-if: the store is rolled forward with it, so a remedy that fills something else is left out.
`twin.planning.proof` then replays a recording with it. Described in docs/what-if.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from twin.capacity.statements import cfrm, mqsc, steps
from twin.conditions import ELEMENTS
from twin.errors import UsageError
from twin.estate import Estate, StoreConfig, Structure
from twin.estate.advice import warnings
from twin.estate.settings import Setting, Settings, changed_config
from twin.planning.levers import beginnings, size_of, sizes, with_size, without_size
from twin.planning.moment import Moment, NoRoomError
from twin.planning.whatif import MAX_HORIZON_S, UNCHANGED, FillOutcome, Traffic, what_if
from twin.stores.message_store import MessageStore

Ask = Callable[[Settings], FillOutcome]
"""Returns the outcome with settings."""


class Tried(NamedTuple):
    """Settings that were tried. full: the resources that were too full, if they do not hold."""

    holds: bool
    full: tuple[str | None, ...] = ()


Test = Callable[[Settings], Tried]
"""Tries settings. UsageError: a size is larger than it may be."""

LARGER = "larger"  # title of the plan that begins with nothing else, and end of others that are
ALONE = "nothing else"  # title of the plan of required settings alone
_MAX_ROUNDS = 16  # in which the resource that is full first is doubled
STEPS = 32  # a size is a multiple of this part of its value now, so that plans are round


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
        required: settings that every plan has.
        outcome: without any change but these.
        is_kept: True if the promise holds so.
        plans: the least changes, if it does not or settings are required; none where no change helps.
        left_out: plans that would bring a new warning about the estate, or that a recording refutes: title and reason.
        smaller: sizes that could be smaller one at a time, if it does: by name the settings, with what goes along.
    """

    store: str
    time: str
    promise: Promise
    traffic: Traffic
    required: Settings = {}
    outcome: FillOutcome
    is_kept: bool
    plans: tuple[Plan, ...]
    left_out: tuple[str, ...]
    smaller: dict[str, Settings]


def advise(
    moment: Moment, promise: Promise, traffic: Traffic = UNCHANGED, required: Mapping[str, Setting] | None = None
) -> Advice:
    """Return the least changes that keep a promise, or what could be smaller where it is kept already.

    Args:
        moment: the store at a moment.
        promise: what must hold.
        traffic: factors on the traffic, under which it must.
        required: settings that change in any case, as for `what_if`.

    Raises:
        UsageError: the store's traffic is not known yet, or a required setting is wrong.
    """
    required = dict(required or {})
    ask = asking(moment, promise, traffic)
    first = what_if(moment, None, traffic, promise.hours * 3600)
    outcome = ask(required) if required else first.after
    is_kept = promise.is_kept(outcome)
    plans, left_out = ((), ()) if is_kept and not required else _plans(moment, promise, ask, required)
    smaller = _smaller(moment.twin, promise, ask) if is_kept and not required else {}
    return Advice(
        store=first.store,
        time=first.time,
        promise=promise,
        traffic=traffic,
        required=required,
        outcome=outcome,
        is_kept=is_kept,
        plans=plans,
        left_out=left_out,
        smaller=smaller,
    )


def asking(moment: Moment, promise: Promise, traffic: Traffic) -> Ask:
    """Return what asks for the outcome with settings, as far ahead as a promise goes.

    A store whose content does not fit with them is full now.
    """

    def ask(settings: Settings) -> FillOutcome:
        try:
            return what_if(moment, settings, traffic, promise.hours * 3600).after
        except NoRoomError:
            as_it_is = what_if(moment, None, traffic, promise.hours * 3600).after
            full = str(ELEMENTS)
            now = {"p10": 0.0, "p50": 0.0, "p90": 0.0, "probability": 1.0, "messages_that_fit": 0}
            return msgspec.structs.replace(as_it_is, resource=full, shares={full: 1.0}, **now)

    return ask


# --- search ----------------------------------------------------------------------------------------------------------


def _plans(moment: Moment, promise: Promise, ask: Ask, required: Settings) -> tuple[tuple[Plan, ...], tuple[str, ...]]:
    """Return the plans, and why others are left out."""
    twin = moment.twin
    plans: list[Plan] = []
    left_out: list[str] = []

    def test(settings: Settings) -> Tried:
        outcome = ask(settings)
        return Tried(promise.is_kept(outcome), (outcome.resource,))

    changes = beginnings(twin, moment.estate)
    if required:
        changes.sort(key=lambda change: len(change[1]) > 0)  # required settings alone, if they hold, come first
    for title, beginning in changes:
        if not beginning.keys().isdisjoint(required):
            continue
        settings = _enlarge(twin, required | beginning, test, required)
        if settings is None:
            continue
        least = _least_of(twin, settings, test, required)
        if "scm_max_size" in beginning and "scm_max_size" not in least:
            continue  # what goes with it is enough: another plan
        is_same_size = set(least) <= {*required, *beginning}
        full_title = title if is_same_size or not beginning else f"{title}, and {LARGER}"
        if required and least == required:
            full_title = ALONE
        news = new_warnings(moment.estate, changed_config(twin.config, least))
        left_out += [f"{full_title}: {warning}" for warning in news]
        if not news and all(plan.settings != least for plan in plans):
            plans.append(plan_of(twin, full_title, least, ask(least)))
    return tuple(plans), tuple(left_out)


def plan_of(twin: MessageStore, title: str, settings: Settings, outcome: FillOutcome) -> Plan:
    """Return a plan with its texts. Arguments: those of `Plan`, and the store."""
    changed = changed_config(twin.config, settings)
    return Plan(
        title=title,
        settings=settings,
        steps=steps(twin.config, settings),
        mqsc=mqsc(twin.config, settings),
        cfrm=cfrm(changed, settings),
        outcome=outcome,
    )


def new_warnings(estate: Estate, changed: StoreConfig) -> list[str]:
    """Return the warnings that an estate has with a changed store and has not without."""
    before = {_kind_of(warning, changed.name) for warning in _warnings(estate, estate.stores)}
    after = _warnings(estate, {**estate.stores, changed.name: changed})
    return [warning for warning in after if _kind_of(warning, changed.name) not in before]


def _kind_of(warning: str, store: str) -> str:
    """Return a warning without sizes, percentages and the store in a list: with others of these it is not new."""
    return re.sub(r"\d+[KMGT]?\b", "#", warning.replace(f"{store}, ", "").replace(f", {store}", ""))


def _warnings(estate: Estate, stores: Mapping[str, StoreConfig]) -> list[str]:
    described = {(store.name, qmgr) for store in stores.values() if isinstance(store, Structure) for qmgr in store.smds}
    return list(warnings(stores, described, estate.queue_managers, {}))


def _enlarge(twin: MessageStore, beginning: Settings, test: Test, required: Settings) -> Settings | None:
    """Double what is full until settings hold; None where that leads nowhere."""
    settings = dict(beginning)
    for _ in range(_MAX_ROUNDS):
        try:
            tried = test(settings)
        except UsageError:
            return None  # larger than the attribute may be
        if tried.holds:
            return settings
        doubled = with_doubled(twin, settings, tried.full, required)
        if doubled is None:
            return None
        settings = doubled
    return None


def with_doubled(
    twin: MessageStore, settings: Settings, full: Iterable[str | None], required: Settings
) -> Settings | None:
    """Return settings that double what is full, but for required sizes; None where nothing makes it larger.

    Args:
        twin: the store.
        settings: those to begin with.
        full: resources.
        required: settings that stay.
    """
    names = {name: None for resource in full if (name := size_of(twin, resource)) is not None and name not in required}
    doubled = dict(settings)
    for name in names:
        now = size_in(settings, name) or sizes(twin).get(name)
        if now is not None:
            doubled = with_size(twin.config, doubled, name, 2 * now)
    return None if doubled == settings else doubled


def _least_of(twin: MessageStore, settings: Settings, test: Test, required: Settings) -> Settings:
    """Make each size of settings that hold as small as it can be, one after the other; one not needed goes.

    The structure comes first: storage of a coupling facility is scarcer than that of a data set. Required sizes stay.
    """
    least, known = dict(settings), sizes(twin)
    names = [name for name in settings if (name in known or name == "scm_max_size") and name not in required]
    for name in sorted(names, key=lambda name: name != "size"):
        if name not in least:
            continue  # it went with another one
        now, planned = known.get(name, 0), size_in(least, name)
        step = max(1, (now or planned) // STEPS)
        low, high = 0, -(-(planned - now) // step)  # steps beyond the value now; `high` holds
        while low < high:
            middle = (low + high) // 2
            tried = with_size(twin.config, without_size(least, name), name, now + middle * step)
            if test(tried if now + middle * step else without_size(least, name)).holds:
                high = middle
            else:
                low = middle + 1
        least = without_size(least, name)
        if high:
            least = with_size(twin.config, least, name, now + high * step)
    return least


def size_in(settings: Settings, name: str) -> int:
    """Return a size among settings, 0 where there is none."""
    value = settings.get(name, 0)
    assert isinstance(value, int)
    return value


def _smaller(twin: MessageStore, promise: Promise, ask: Ask) -> dict[str, Settings]:
    """Return how small each size could be alone, where that is at least a step smaller."""
    smaller: dict[str, Settings] = {}
    for name, value in sizes(twin).items():
        step = max(1, value // STEPS)
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
