"""Advice: the least change of a store's settings that keeps a promise, such as two hours without getters.

    >>> advice = advise(moment, Promise(hours=2), Traffic(gets=0))
    >>> advice.plans[0].settings

A plan is found and proven by what-if: the store is rolled forward with it, so a remedy that fills something else is no
plan. Described in docs/what-if.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from twin.errors import UsageError
from twin.estate import Smds, format_size
from twin.offload_rules import SOONER_TH, has_rules, offloads_all_by, with_all_offloaded_above
from twin.stores.message_store import MessageStore
from twin.whatif import AS_IT_IS, MAX_HORIZON_S, Moment, Outcome, Traffic, what_if

_MAX_ROUNDS = 16  # in which the resource that is full first is doubled
_STEPS = 32  # a size is a multiple of this part of its value now, so that plans are round
_MIB = 1024 * 1024

Settings = dict[str, Any]


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """A condition to hold: the store is not full within `hours`, in `confidence` of all futures."""

    hours: float
    confidence: float = 0.9

    def __post_init__(self) -> None:
        if not 60 <= self.hours * 3600 <= MAX_HORIZON_S:
            raise UsageError(f"hours = {self.hours:g}; expected: from a minute to {MAX_HORIZON_S / 3600:g}")
        if not 0.5 <= self.confidence <= 0.99:
            raise UsageError(f"confidence = {self.confidence:g}; expected: 0.5 to 0.99")

    def is_kept(self, outcome: Outcome) -> bool:
        """Return True if it holds for an outcome that was rolled as far as the promise goes."""
        return outcome.probability <= 1 - self.confidence


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that keep the promise. title: what kind; steps: sentences with commands; outcome: with them."""

    title: str
    settings: dict[str, Any]
    steps: tuple[str, ...]
    outcome: Outcome


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """Advice about a store.

    Attributes:
        outcome: without any change.
        is_kept: True if the promise holds without any change.
        plans: the least changes, if it does not; none where no change helps.
        smaller: settings that could be smaller one at a time, if it does: value by name.
    """

    store: str
    time: str
    promise: Promise
    traffic: Traffic
    outcome: Outcome
    is_kept: bool
    plans: tuple[Plan, ...]
    smaller: dict[str, int]


def advise(moment: Moment, promise: Promise, traffic: Traffic = AS_IT_IS) -> Advice:
    """Return the least changes that keep a promise, or what could be smaller where it is kept already.

    Args:
        moment: the store at a moment.
        promise: what must hold.
        traffic: factors on the traffic, under which it must.

    Raises:
        UsageError: the store's traffic is not known yet.
    """

    def ask(settings: Settings) -> Outcome:
        return what_if(moment, settings, traffic, promise.hours * 3600).after

    first = what_if(moment, None, traffic, promise.hours * 3600)
    is_kept = promise.is_kept(first.after)
    plans = () if is_kept else _plans(moment.twin, promise, ask)
    smaller = _smaller(moment.twin, promise, ask) if is_kept else {}
    return Advice(
        store=first.store,
        time=first.time,
        promise=promise,
        traffic=traffic,
        outcome=first.after,
        is_kept=is_kept,
        plans=plans,
        smaller=smaller,
    )


# --- search ----------------------------------------------------------------------------------------------------------


def _plans(twin: MessageStore, promise: Promise, ask: Callable[[Settings], Outcome]) -> tuple[Plan, ...]:
    beginnings: list[tuple[str, Settings]] = [("larger", {})]
    if twin.kind == "structure" and has_rules(twin.config) and not offloads_all_by(twin.config, SOONER_TH):
        beginnings.insert(0, ("offload sooner", _sooner(twin)))
    plans: list[Plan] = []
    for title, beginning in beginnings:
        settings = _enlarge(twin, beginning, promise, ask)
        if settings is None:
            continue
        least = _least(twin, settings, promise, ask)
        full_title = title if set(least) <= set(beginning) or not beginning else f"{title}, and larger"
        if all(plan.settings != least for plan in plans):
            plans.append(Plan(title=full_title, settings=least, steps=_steps(twin, least), outcome=ask(least)))
    return tuple(plans)


def _sooner(twin: MessageStore) -> Settings:
    """Return all six offload values with which all data is offloaded sooner."""
    rules = with_all_offloaded_above(twin.config, SOONER_TH)
    return {f"offld{rule.number}_{name}": value for rule in rules for name, value in (("th", rule.th), ("sz", rule.sz))}


def _enlarge(
    twin: MessageStore, beginning: Settings, promise: Promise, ask: Callable[[Settings], Outcome]
) -> Settings | None:
    """Double what is full first until the promise is kept; None where that leads nowhere."""
    settings = dict(beginning)
    for _ in range(_MAX_ROUNDS):
        try:
            outcome = ask(settings)
        except UsageError:
            return None  # larger than the attribute may be
        if promise.is_kept(outcome):
            return settings
        name = _setting_of(twin, outcome.resource)
        if name is None:
            return None
        settings = _with(twin, settings, name, 2 * int(settings.get(name) or _current(twin)[name]))
    return None


def _least(twin: MessageStore, settings: Settings, promise: Promise, ask: Callable[[Settings], Outcome]) -> Settings:
    """Make each size of a plan as small as the promise allows, one after the other; one not needed goes.

    The structure comes first: storage of a coupling facility is scarcer than that of a data set.
    """
    least, now = dict(settings), _current(twin)
    for name in sorted((name for name in settings if name in now), key=lambda name: name != "size"):
        step = max(1, now[name] // _STEPS)
        low, high = 0, -(-(int(least[name]) - now[name]) // step)  # steps beyond the value now; `high` keeps it
        while low < high:
            middle = (low + high) // 2
            if promise.is_kept(ask(_with(twin, least, name, now[name] + middle * step))):
                high = middle
            else:
                low = middle + 1
        least = _with(twin, least, name, now[name] + high * step)
        if high == 0:
            least = {key: value for key, value in least.items() if key != name and (name, key) != ("size", "init_size")}
    return least


def _smaller(twin: MessageStore, promise: Promise, ask: Callable[[Settings], Outcome]) -> dict[str, int]:
    """Return how small each size could be alone, where that is at least a step smaller."""
    smaller: dict[str, int] = {}
    for name, value in _current(twin).items():
        step = max(1, value // _STEPS)
        low, high = 1, value // step  # in steps; `high` keeps the promise
        while low < high:
            middle = (low + high) // 2
            try:
                is_kept = promise.is_kept(ask(_with(twin, {}, name, middle * step)))
            except UsageError:
                is_kept = False
            low, high = (low, middle) if is_kept else (middle + 1, high)
        if high * step < value:
            smaller[name] = high * step
    return smaller


# --- settings --------------------------------------------------------------------------------------------------------


def _current(twin: MessageStore) -> Mapping[str, int]:
    """Return the sizes that can be changed, by setting: bytes, or pages."""
    config = twin.config
    if twin.kind == "structure":
        sizes = {"size": int(config.size)}
        if config.scm_max_size:
            sizes["scm_max_size"] = int(config.scm_max_size)
        datasets = twin.tables.store.datasets
        for row, qmgr in enumerate(twin.qmgrs):
            if config.offload == "SMDS" and qmgr in config.queue_managers:
                described = config.smds.get(qmgr, Smds())
                sizes[f"smds.{qmgr}.size"] = max(int(datasets[row]["size"]), described.size, described.max_size or 0)
        return sizes
    if twin.kind == "page_set":
        return {"pages": int(config.pages)}
    return {} if config.max_size is None else {"max_size": int(config.max_size)}


def _with(twin: MessageStore, settings: Settings, name: str, value: int) -> Settings:
    """Return settings with one more. SIZE takes INITSIZE along: a rebuild allocates the latter."""
    more: Settings = {name: value}
    if name == "size" and twin.config.init_size is not None:
        more["init_size"] = value
    return {**settings, **more}


def _setting_of(twin: MessageStore, resource: str | None) -> str | None:
    """Return the setting that makes a resource larger; None where there is none."""
    if resource is None:
        return None
    by_resource = {"entries": "size", "elements": "size", "scm": "scm_max_size", "pages": "pages", "file": "max_size"}
    name = f"smds.{resource[5:]}.size" if resource.startswith("smds/") else by_resource.get(resource)
    return name if name in _current(twin) else None


def _steps(twin: MessageStore, settings: Settings) -> tuple[str, ...]:
    """Return what a plan asks people to do, with commands."""
    steps: list[str] = []
    config, rules = twin.config, [name for name in settings if name.startswith("offld")]
    if rules:
        structure = twin.name.partition("/")[2]
        words = " ".join(f"{name.upper().replace('_', '')}({_mqsc(name, settings[name])})" for name in rules)
        steps.append(f"Offload sooner: ALTER CFSTRUCT({structure}) {words}")
    policy = {"size": "SIZE", "init_size": "INITSIZE", "scm_max_size": "SCMMAXSIZE"}
    words = " ".join(f"{word}({format_size(settings[name])})" for name, word in policy.items() if name in settings)
    if words:
        cf_name = twin.name.replace("/", "")
        steps.append(
            f"Set STRUCTURE NAME({cf_name}) {words} in the CFRM policy, then SETXCF START,REBUILD,STRNAME={cf_name}"
        )
    for name, value in settings.items():
        if name.startswith("smds."):
            qmgr = name.removeprefix("smds.").rpartition(".")[0]
            structure = twin.name.partition("/")[2]
            steps.append(
                f"Copy {qmgr}'s data set to one of {format_size(value)}: RESET SMDS({qmgr}) CFSTRUCT({structure})"
                f" ACCESS(DISABLED), copy, RESET SMDS({qmgr}) CFSTRUCT({structure}) ACCESS(ENABLED)"
            )
    if "pages" in settings:
        steps.append(
            f"Copy the page set to a data set of {settings['pages']:,} pages of 4 KB while {config.name} is down"
        )
    if "max_size" in settings:
        steps.append(f"Raise the maximum size of the queue file: ALTER QLOCAL MAXFSIZE({settings['max_size'] // _MIB})")
    return tuple(steps)


def _mqsc(name: str, value: Any) -> str:
    return f"{int(value) // 1024}K" if name.endswith("_sz") else str(value)
