"""Advice: the least change of a store's settings that keeps a promise, such as two hours without getters.

    >>> moment = twin.at_moment("friday.arrow", twin.load_estate("estate.toml"), "QSG1/APP1", "2026-11-20T01:30:00Z")
    >>> advice = twin.advise(moment, twin.Promise(hours=2), twin.Traffic(gets=0))
    >>> sorted(advice.plans[0].settings) != []
    True

A plan is found by what-if: the store is rolled forward with it, so a remedy that fills something else is left out.
Settings may be required, such as `{"scm_max_size": 0}` of a structure that gives up its storage class memory: advice is
the least change beside them. `twin.planning.proof` then replays a recording with it. Described in docs/what-if.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from twin.alerts.texts import member_facts
from twin.base.conditions import ELEMENTS, Condition, Pool, Resource
from twin.base.errors import UsageError
from twin.base.units import MIB
from twin.capacity import SOONER_TH, cfrm, has_rules, mqsc, offloads_all_by, steps, with_all_offloaded_above
from twin.estate import Estate, MessageStoreConfig, PageSet, QueueFile, Smds, StoreConfig, Structure
from twin.estate.advice import warnings
from twin.estate.model import PRESTAGES_ABOVE_PCT, facility_of, others_of
from twin.estate.planned import Plan as PlannedPlan
from twin.estate.settings import DataSetSetting, Setting, Settings, changed_config
from twin.planning.whatif import MAX_HORIZON_S, UNCHANGED, FillOutcome, Moment, NoRoomError, Traffic, what_if
from twin.records import PlannedWork, UniformClusterState, sentences_of
from twin.stores.message_store import MessageStore
from twin.stores.uniform_cluster import UniformClusterTwin

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
    """A condition to hold: the store is not full within `hours`, in `confidence` of all futures.

    Attributes:
        hours: a minute to eight hours.
        confidence: share of the futures, 0.5 to 0.99.
    """

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
    """Settings that keep the promise."""

    title: str  # what kind of change
    settings: Settings  # attributes as in the estate
    steps: tuple[str, ...]  # what people are to do, sentences with commands
    mqsc: str  # its MQSC commands that the estate reads too; "": none
    cfrm: str  # its STRUCTURE statement of the CFRM policy; "": the policy stays
    outcome: FillOutcome  # with it


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """Advice about a store.

    Attributes:
        store: its name.
        time: the moment, event time as text.
        promise: what was asked for.
        traffic: factors on the traffic of the last minutes.
        required: settings that every plan has.
        outcome: without any change but these.
        is_kept: True if the promise holds so.
        plans: the least changes, if it does not or settings are required; none where no change helps.
        left_out: plans that would bring a new warning about the estate, or that a recording refutes: title and reason.
        smaller: sizes that could be smaller one at a time, if it does: by name the settings, with what goes along.
        planned: the windows that are to fit, in the place of the promise.
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
    planned: tuple[PlannedWork, ...] = ()


def advise(
    moment: Moment,
    promise: Promise,
    traffic: Traffic = UNCHANGED,
    required: Mapping[str, Setting] | None = None,
    *,
    plan: PlannedPlan | Sequence[PlannedPlan] = (),
) -> Advice:
    """Return the least changes that keep a promise, or what could be smaller where it is kept already.

    Args:
        moment: the store at a moment.
        promise: what must hold.
        traffic: factors on the traffic, under which it must.
        required: settings that change in any case, as for `what_if`.
        plan: planned work that is to fit, as for `what_if`, in the place of the promise.

    Raises:
        UsageError: the store's traffic is not known yet, or a required setting or a plan is wrong.
    """
    required = dict(required or {})
    ask = asking(moment, promise, traffic, plan)
    first = what_if(moment, None, traffic, promise.hours * 3600, plan=plan)
    outcome = ask(required) if required else first.after
    is_kept = promise.is_kept(outcome)
    rounds = _MAX_ROUNDS * (max(1, len(sizes(moment.twin))) if plan else 1)  # planned work may be many times the store
    plans, left_out = ((), ()) if is_kept and not required else _plans(moment, promise, ask, required, rounds)
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
        planned=first.planned,
    )


def asking(moment: Moment, promise: Promise, traffic: Traffic, plan: PlannedPlan | Sequence[PlannedPlan] = ()) -> Ask:
    """Return a function from settings to their outcome, as far ahead as a promise or planned work goes.

    A store whose content does not fit under the settings is full now.
    """

    def ask(settings: Settings) -> FillOutcome:
        try:
            return what_if(moment, settings, traffic, promise.hours * 3600, plan=plan).after
        except NoRoomError:
            as_it_is = what_if(moment, None, traffic, promise.hours * 3600, plan=plan).after
            full = str(ELEMENTS)
            now = {"p10": 0.0, "p50": 0.0, "p90": 0.0, "probability": 1.0, "messages_that_fit": 0}
            return msgspec.structs.replace(as_it_is, resource=full, shares={full: 1.0}, **now)

    return ask


# --- search ----------------------------------------------------------------------------------------------------------


def _plans(
    moment: Moment, promise: Promise, ask: Ask, required: Settings, rounds: int
) -> tuple[tuple[Plan, ...], tuple[str, ...]]:
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
        settings = _enlarge(twin, required | beginning, test, required, rounds)
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
    """Return the warnings about an estate that a changed store adds."""
    before = {_kind_of(warning, changed.name) for warning in _warnings(estate, estate.stores)}
    after = _warnings(estate, {**estate.stores, changed.name: changed})
    return [warning for warning in after if _kind_of(warning, changed.name) not in before]


def _kind_of(warning: str, store: str) -> str:
    """Return a warning without sizes, percentages and the store in a list: with others of these it is not new."""
    return re.sub(r"\d+[KMGT]?\b", "#", warning.replace(f"{store}, ", "").replace(f", {store}", ""))


def _warnings(estate: Estate, stores: Mapping[str, StoreConfig]) -> list[str]:
    described = {(store.name, qmgr) for store in stores.values() for qmgr in store.smds}
    return list(warnings(stores, described, estate.queue_managers, {}))


def _enlarge(twin: MessageStore, beginning: Settings, test: Test, required: Settings, rounds: int) -> Settings | None:
    """Double the size of full resources until the settings hold; None if that does not help in some rounds."""
    settings = dict(beginning)
    for _ in range(rounds):
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
    """Return settings that double the size of full resources, except required sizes; None if none can be larger."""
    names = {name: None for resource in full if (name := size_of(twin, resource)) is not None and name not in required}
    doubled = dict(settings)
    for name in names:
        now = size_in(settings, name) or sizes(twin).get(name)
        if now is not None:
            doubled = with_size(twin.config, doubled, name, 2 * now)
    return None if doubled == settings else doubled


def _least_of(twin: MessageStore, settings: Settings, test: Test, required: Settings) -> Settings:
    """Reduce each size of settings that hold as far as possible, one after the other; unneeded ones are dropped.

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
    """Return the smallest value of each size with the others unchanged, if that is at least a step smaller."""
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


# --- sizes and other changes -----------------------------------------------------------------------------------------


def sizes(twin: MessageStore) -> Mapping[str, int]:
    """Return the sizes that can be changed, by setting: bytes, or pages of 4 KB.

    Of a data set or a page set that expands it is what its volumes hold; without such a limit it has none.
    """
    match twin.config:
        case Structure() as config:
            return _structure_sizes(twin, config)
        case PageSet() as config if config.expands:
            return {} if config.max_pages is None else {"max_pages": config.max_pages}
        case PageSet(pages=pages):
            return {"pages": pages}
        case QueueFile(max_size=size):
            return {"max_size": size}


def _structure_sizes(twin: MessageStore, config: Structure) -> dict[str, int]:
    values = {"size": config.size}
    if config.scm_max_size:
        values["scm_max_size"] = config.scm_max_size
    datasets = twin.tables.store.datasets
    for row, qmgr in enumerate(twin.qmgrs):
        if config.offload != "SMDS" or qmgr not in config.queue_managers:
            continue
        described = config.smds.get(qmgr, Smds())
        if not config.ds_expand:
            values[str(DataSetSetting(qmgr, "size"))] = max(int(datasets[row]["size"]), described.size)
        elif described.max_size is not None:
            values[str(DataSetSetting(qmgr, "max_size"))] = described.max_size
    return values


def with_size(config: MessageStoreConfig, settings: Settings, name: str, value: int) -> Settings:
    """Return settings of a store with one more. SIZE takes INITSIZE along: a rebuild allocates the latter."""
    more: Settings = {name: value}
    match config:
        case Structure():
            more |= _with_size_of_structure(config, name, value)
        case PageSet() if name == "max_pages" and value < config.pages:
            more["pages"] = value
        case PageSet() if name == "pages" and value > (config.max_pages or value):
            more["max_pages"] = value
        case QueueFile() if name == "max_size" and value > (config.file_system_size or value):
            more["file_system_size"] = value
    return {**settings, **more}


def _with_size_of_structure(config: Structure, name: str, value: int) -> Settings:
    """Return what goes along with a size of a structure or of one of its data sets."""
    if name == "size" and config.init_size is not None:
        return {"init_size": value}
    if (dataset := DataSetSetting.parse(name)) is not None:
        described = config.smds.get(dataset.qmgr, Smds())
        is_maximum = dataset.attribute == "max_size"
        if value < described.size if is_maximum else value > (described.max_size or value):
            return {_other(dataset): value}
    return {}


def without_size(settings: Settings, name: str) -> Settings:
    """Return settings without a size, and without what went along with it."""
    along = {"size": "init_size", "pages": "max_pages", "max_pages": "pages", "max_size": "file_system_size"}
    dataset = DataSetSetting.parse(name)
    left_out = {name, along.get(name) if dataset is None else _other(dataset)}
    return {key: value for key, value in settings.items() if key not in left_out}


def _other(dataset: DataSetSetting) -> str:
    """Return the setting of a data set that goes along with its size or its maximum."""
    return str(dataset._replace(attribute="max_size" if dataset.attribute == "size" else "size"))


def size_of(twin: MessageStore, resource: str | None) -> str | None:
    """Return the setting that makes a resource larger; None where there is none."""
    if resource is None:
        return None
    known, (pool, owner) = sizes(twin), Resource.parse(resource)
    names = {
        Pool.SMDS: [str(DataSetSetting(owner, attribute)) for attribute in ("max_size", "size")],
        Pool.PAGES: ["max_pages", "pages"],
        Pool.ENTRIES: ["size"],
        Pool.ELEMENTS: ["size"],
        Pool.SCM: ["scm_max_size"],
        Pool.FILE: ["max_size"],
    }.get(Pool(pool), [])
    return next((name for name in names if name in known or name == "scm_max_size"), None)


def beginnings(twin: MessageStore, estate: Estate) -> list[tuple[str, Settings]]:
    """Return the changes that a plan may begin with, by title: those that need no more storage first."""
    config = twin.config
    changes: list[tuple[str, Settings]] = []
    if isinstance(config, Structure):
        if has_rules(config) and not offloads_all_by(config, SOONER_TH):
            changes.append(("offload sooner", offload_above(config, SOONER_TH)))
        if config.offload == "SMDS" and not config.ds_expand:
            changes.append(("let data sets expand", {"ds_expand": True}))
        scm = _free_scm(config, estate)
        if scm:
            changes.append(("storage class memory", _with_scm(config, scm)))
    elif isinstance(config, PageSet) and not config.expands:
        changes.append(("let it expand", {"expand": "SYSTEM"}))
    return [*changes, ("larger", {})]


def offload_above(config: Structure, threshold: int) -> Settings:
    """Return all six offload values with which all data is offloaded above a threshold, percent."""
    rules = with_all_offloaded_above(config, threshold)
    return {f"offld{rule.number}_{name}": value for rule in rules for name, value in (("th", rule.th), ("sz", rule.sz))}


def _with_scm(config: Structure, scm: int) -> Settings:
    """Return storage class memory and the settings it requires [IBM: How storage class memory works].

    A structure with data in SCM is not altered, and its usage stays at 90 %, so a rule above that would never fire.
    """
    settings: Settings = {"scm_max_size": scm}
    if config.allow_auto_alter:
        settings["allow_auto_alter"] = False
    if has_rules(config) and any(not rule.off and rule.th >= PRESTAGES_ABOVE_PCT for rule in config.rules):
        settings |= offload_above(config, SOONER_TH)
    return settings


def _free_scm(config: Structure, estate: Estate) -> int:
    """Return the SCM that the coupling facility can spare for a structure without any, bytes in whole MB."""
    facility = facility_of(estate.stores, config)
    if config.scm_max_size is not None or facility is None or not facility.scm:
        return 0
    in_use = sum(store.scm_max_size or 0 for store in others_of(estate.stores, config, facility))
    return max(0, facility.scm - in_use) // MIB * MIB


# --- members of a uniform cluster ------------------------------------------------------------------------------------

# The laws are those of the twin's alerts (`twin.capacity`).


class MemberAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a cluster that carry a load."""

    store: str  # name of the cluster
    time: str  # the moment, event time as text
    load_per_s: float  # messages/s that they are to carry: those put, and those that wait, times the factor
    carried_per_s: float  # messages/s that the active members carry
    active: int  # number of active members
    members: int  # number that carries the load: of the active ones alone where they suffice
    start: tuple[str, ...]  # existing members to start, the best first
    steps: tuple[str, ...]  # what people are to do, sentences with commands; none where the active members carry it

    @property
    def is_enough(self) -> bool:
        """True if the active members carry the load."""
        return self.members <= self.active


def advise_members(twin: UniformClusterTwin, puts: float = 1.0) -> MemberAdvice:
    """Return the members that a cluster needs. UsageError: nothing was put in it for a minute."""
    state = twin.state()
    assert isinstance(state, UniformClusterState)
    if not state.members:
        raise UsageError(f"{twin.name}: no member is active at {state.time}; expected: a moment with traffic")
    plan, active = twin.plan_for(puts), state.members
    is_enough = plan.members <= active
    facts = member_facts(twin.name, plan.start, plan.create, plan.members - active - len(plan.start))
    return MemberAdvice(
        store=twin.name,
        time=state.time or "",
        load_per_s=round(twin.load * puts, 1),
        carried_per_s=state.capacity or 0.0,
        active=active,
        members=twin.fewest_for(puts) if is_enough else plan.members,
        start=() if is_enough else tuple(candidate.name for candidate in plan.start),
        steps=() if is_enough else sentences_of(twin.episodes.runbook.actions(Condition.CAPACITY, facts)),
    )
