"""Causes and actions of alerts: rows of `runbook.toml`, and of the site's own file, with their facts.

- Runbook: rows are chosen by condition and facts.
- Facts: a cause states resource, usage with unit, time and queue. `effects` maps the id of an action (GETTERS, OFFLOAD,
  SIZE, CFRM_SIZE) to its effect on the forecast, a text of `twin.forecast.remedies`.
- Sources of the commands: `twin.capacity`; [IBM: MQ 9.2, crtmqm (-ii, -ic, -iv) and endmqm (-r)].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from kernels.clock import SECOND
from twin.base.conditions import Condition, Resource
from twin.base.units import as_count, as_estimate, as_local, as_rate, as_span, readable_size
from twin.capacity import (
    SOONER_TH,
    alter_if_policy_allows,
    alter_rules,
    change_policy,
    copy_data_set,
    display_facility,
    display_structure,
    has_rules,
    offloads_all_by,
    policy_size,
    structure_sizes,
    with_all_offloaded_above,
)
from twin.estate import StoreConfig, Structure, format_size, policy_name_of
from twin.estate.model import mqsc_name
from twin.estate.runbook import ActionRow, StepRow, placeholders, read_runbook
from twin.records import GETTERS, Action, Filler, Step, is_full_now

# --- runbook ----------------------------------------------------------------------------------------------------------

NOTHING: Mapping[str, str] = {}
_ROWS = read_runbook(Path(__file__).with_name("runbook.toml"))
_BY_CONDITION = {condition: [row for row in _ROWS if condition in row.conditions] for condition in Condition}
for _condition, _own in _BY_CONDITION.items():
    if not _own:
        raise TypeError(f"condition {_condition} lacks an action; expected: a row of runbook.toml for it")


class Facts(NamedTuple):
    """Facts that hold where an alert opens, texts of placeholders, steps of procedures."""

    names: frozenset[str] = frozenset()
    values: Mapping[str, str] = NOTHING
    procedures: Mapping[str, tuple[Step, ...]] = {}

    def adding(self, *names: str, **values: str) -> Facts:
        """Return these with further facts and texts."""
        return self._replace(names=self.names | {*names}, values={**self.values, **values})

    def where(self, **facts: object) -> Facts:
        """Return these with those facts that are true."""
        return self.adding(*(name for name, is_true in facts.items() if is_true))

    def by(self, **procedures: tuple[Step, ...]) -> Facts:
        """Return these with further procedures."""
        return self._replace(procedures={**self.procedures, **procedures})


class Runbook:
    """Actions by condition; own: the rows of the site, which stand in front, or in place of one with their id."""

    def __init__(self, own: tuple[ActionRow, ...] = ()) -> None:
        self._own = own

    def actions(self, condition: str, facts: Facts, effects: Mapping[str, str] = NOTHING) -> tuple[Action, ...]:
        """Return the actions for a condition, the best first. effects: effect on the forecast, by action."""
        own = [row for row in self._own if condition in row.conditions and _applies(row, facts)]
        ours = [row for row in _BY_CONDITION[Condition(condition)] if _applies(row, facts)]
        if any(row.instead for row in own):
            own, ours = [row for row in own if row.instead], []
        own_rows = {row.id: row for row in reversed(own)}  # of two with an id the first
        beside = [row for row in own if row is own_rows[row.id] and row.id not in {other.id for other in ours}]
        return tuple(_fill(row, facts, effects) for row in (*beside, *(own_rows.get(row.id, row) for row in ours)))

    def action(self, action: str, condition: str, facts: Facts) -> Action | None:
        """Return the action of an id for a condition."""
        return next((own for own in self.actions(condition, facts) if own.id == action), None)


@cache
def runbook_of(rows: tuple[ActionRow, ...]) -> Runbook:
    """Return the runbook with rows of a site."""
    return Runbook(rows)


OURS = runbook_of(())


def _holds(row: ActionRow | StepRow, facts: Facts) -> bool:
    return facts.names.issuperset(row.when) and facts.names.isdisjoint(row.unless)


@cache
def _needs(row: ActionRow) -> frozenset[str]:
    """Return the placeholders and procedures without which a row does not apply: what they stand for is not there."""
    return frozenset(name for text in row.texts for name in placeholders(text))


def _applies(row: ActionRow, facts: Facts) -> bool:
    return _holds(row, facts) and facts.values.keys() >= _needs(row)


def _fill(row: ActionRow, facts: Facts, effects: Mapping[str, str]) -> Action:
    def text(own: str | None) -> str | None:
        return None if own is None else own.format_map(facts.values)

    steps: list[Step] = [] if row.command is None else [Step("Run this", text(row.command))]
    for step in row.steps:
        if isinstance(step, str):
            steps += facts.procedures.get(step, ())
        elif _holds(step, facts):
            steps.append(Step(step.say.format_map(facts.values), text(step.command)))
    return Action(
        id=row.id,
        summary=row.say.format_map(facts.values),
        effect=effects.get(row.id),
        precondition=text(row.precondition),
        steps=tuple(steps),
        risk=text(row.risk),
        undo=text(row.undo),
    )


# --- facts: forecasts, rates and the queues that fill -----------------------------------------------------------------

OFFLOAD, SIZE, CFRM_SIZE = "offload", "alter-size", "cfrm-size"  # actions with an effect, as GETTERS
UNKNOWN_FILLER = "Which queue fills it is not known"
_MAX_NAMED = 3  # structures, or queue managers that were asked
_STILL_REFUSED = 60 * SECOND  # from the last refused put


def describe_growth(fillers: tuple[Filler, ...], grown: int, unit: str, span: str, *, is_reported: bool = True) -> str:
    """Return the clause that names the queue that fills most; `is_reported`: the store had any put or get."""
    if not fillers:
        return "No queue holds any of it" if is_reported else f"{UNKNOWN_FILLER}: no puts and gets are reported"
    first, share = fillers[0], f"{100 * fillers[0].share:.0f} %"
    if share == "100 %":
        return f"{first.queue} alone {f'fills it: {grown:,} {unit} in {span}' if grown > 0 else 'holds it'}"
    if grown > 0:
        return f"{first.queue} fills it most: {share} of {grown:,} {unit} in {span}"
    return f"{first.queue} holds it most: {share}"


def describe_forecast(times: tuple[float, float, float], probability: float, consequence: str) -> str:
    """Return the clause that states when a resource is full: `times` in seconds (p10, p50, p90)."""
    p10, p50, p90 = times
    if is_full_now(p50):
        return f"full now: {consequence}"
    middle, interval = as_estimate(p10, p50, p90)
    chance = f"probability {100 * probability:.0f} %"
    return f"full in about {middle} ({interval}, {chance}), then {consequence}"


def full_at(times: tuple[float, float, float], now: int, zone: tzinfo) -> str:
    """Return when a resource is full, from seconds (p10, p50, p90), to begin a line: `full ~02:01 CET (in 20 min)`."""
    p10, p50, p90 = times
    if is_full_now(p50):
        return "full now"
    full_us = now + round(p50 * SECOND)
    return f"full ~{as_local(full_us, zone, full_us)} (in {as_estimate(p10, p50, p90)[0]})"


def since_refusal(refused: int, now: int) -> str:
    """Return when a put was last refused, as the end of a sentence. refused: NEVER if none was; now: microseconds."""
    if refused < 0:
        return "there is room again"
    if now - refused < _STILL_REFUSED:
        return "puts are still refused"
    return f"no put refused for {as_span((now - refused) / SECOND)}"


def fails_when_full(config: Structure) -> str:
    """Return what fails when a structure that holds no queues is full.

    Sources: [IBM: APAR PH54826] (CSQE038E, units of work are backed out with 2003), [IBM: APAR PH39578] (abend
    5C6-00C51165, then termination with 00C510AB).
    """
    if not config.is_administration:
        return "the programs that use it get no more of it"
    qmgrs = " and ".join(config.queue_managers) if len(config.queue_managers) < _MAX_NAMED else "the queue managers"
    return (
        f"shared-queue work of {qmgrs} of {config.queue_sharing_group} is backed out (CSQE038E, 2003) and queue"
        " managers may end abnormally (5C6-00C51165, 00C510AB)"
    )


def describe_rates(puts: float, gets: float, since_get: float | None) -> str:
    """Return the clause that states how a queue is served: calls per second, seconds since the last get or None."""
    if since_get is None:
        return f"{as_rate(puts)} puts/s, no get so far"
    if since_get >= 60:
        return f"{as_rate(puts)} puts/s, no get for {as_span(since_get)}"
    return f"{as_rate(puts)} puts/s, {as_rate(gets)} gets/s"


def unread(queue: str, since: int, asked: Sequence[str], now: int, zone: tzinfo) -> str:
    """Return that nobody reads a queue, as a sentence without its end."""
    more = f" and {len(asked) - _MAX_NAMED} more" if len(asked) > _MAX_NAMED else ""
    who = f" ({', '.join(asked[:_MAX_NAMED])}{more} asked)" if asked else ""
    return f"no application has {queue} open for input since {as_local(since, zone, now)}{who}"


def read_in_vain(queue: str, getters: int, got_at: int, now: int, zone: tzinfo) -> str:
    """Return that applications have a queue open and get nothing, as a sentence without its end."""
    have = as_count(getters, "application") + (" has" if getters == 1 else " have")
    return f"{have} {queue} open for input, last get {as_local(got_at, zone, now, seconds=True)}"


def drifted(store: str, resource: Resource, pct: float, tolerance_pct: float) -> str:
    """Return the cause of drift; `pct`: twin minus measurement, percent of the total."""
    direction = "above" if pct > 0 else "below"
    return (
        f"{store}, {resource}: the twin is {abs(pct):.1f} % of the total {direction} the measurement (tolerance"
        f" {tolerance_pct:g} %)."
    )


# --- structures, and queues of all stores ----------------------------------------------------------------------------


def queue_facts(queue: str, *, is_shared: bool) -> Facts:
    """Return the facts about the queue that fills most."""
    scope, qsgdisp = (" CMDSCOPE(*)", " QSGDISP(SHARED)") if is_shared else ("", "")
    values = {"queue": queue, "queue_mqsc": mqsc_name(queue), "scope": scope, "qsgdisp": qsgdisp}
    return Facts(frozenset(("filler_known",)), values)


def store_facts(kind: str, config: StoreConfig, resource: Resource, fillers: tuple[Filler, ...]) -> Facts:
    """Return the facts about a resource of a store that holds messages. kind: the kind of store, a fact."""
    facts = Facts() if not fillers else queue_facts(fillers[0].queue, is_shared=config.shares_queues)
    return facts.adding(kind, resource.pool, store=config.name, resource=resource.label)


def to_read(runbook: tuple[Action, ...], reading: Action | None) -> tuple[Action, ...]:
    """Return a runbook whose action of more getters is about who reads the queue: with the words of `reading`."""
    if reading is None:
        return runbook
    return tuple(
        msgspec.structs.replace(action, summary=reading.summary, steps=reading.steps)
        if action.id == GETTERS
        else action
        for action in runbook
    )


def without_getters(runbook: tuple[Action, ...]) -> tuple[Action, ...]:
    """Return a runbook without the action of more getters: they are back, or gets exceed puts."""
    return tuple(action for action in runbook if action.id != GETTERS)


def _has_room(config: Structure, size: int, room: int | None) -> str:
    """Return the condition that a facility has room for `size` bytes more; `room`: bytes left by it, or None."""
    facility, name = config.coupling_facility, config.policy_name
    display = display_structure(name) if facility is None else display_facility(facility)
    asked = f"{facility or 'its coupling facility'} has {readable_size(size)} of free storage: {display}"
    if room is None:
        return asked
    left = f"{readable_size(room)} is left" if room > 0 else "nothing is left"
    return f"{asked}; by the estate {left}{'' if size <= room else ', too little'}"


def proposed_size(config: Structure) -> int:
    """Return the SIZE to propose for a structure that has reached its present one, bytes."""
    return 2 * config.size


def structure_facts(config: Structure, resource: Resource, fillers: tuple[Filler, ...]) -> Facts:
    """Return the facts about a resource of a structure."""
    name, facts = config.policy_name, store_facts("structure", config, resource, fillers)
    waits = f"calls to queues of {config.name} wait" if config.holds_queues else f"what uses {config.name} waits"
    return (
        facts.where(facility_known=config.coupling_facility)
        .adding(
            structure=config.name,
            structure_mqsc=mqsc_name(config.short_name),
            policy_name=name,
            facility=config.coupling_facility or "the coupling facility",
            rebuild_risk=f"{waits} during the rebuild",
        )
        .by(change_policy=change_policy(name, config.cfrm_policy))
    )


def pool_facts(
    config: Structure,
    resource: Resource,
    size_now: int,
    fillers: tuple[Filler, ...],
    *,
    alterable: bool,
    room: int | None = None,
) -> Facts:
    """Return the facts about entries or elements. Offloading saves elements, never entries.

    The offload rules may be altered at any time, the size only while nothing is in SCM (`alterable`). room: bytes that
    the coupling facility has left by the estate; None: not known.
    """
    name, larger = config.policy_name, proposed_size(config)
    init_size, is_below = None if alterable and config.init_size is None else larger, size_now < config.size
    is_seen = config.is_policy_seen or not alterable
    sizes_before = (config.size, config.init_size if is_seen else None, None)
    size = config.size if alterable and is_below else larger
    facts = structure_facts(config, resource, fillers).where(
        sized=True,
        alterable=alterable,
        below_size=alterable and is_below,
        auto_alter=config.allow_auto_alter,
        policy_seen=is_seen,
        administration=config.is_administration,
        offloads_later=config.holds_queues and has_rules(config) and not offloads_all_by(config, SOONER_TH),
    )
    facts = facts.adding(
        size=format_size(config.size),
        size_kb=policy_size(config.size),
        size_now=format_size(size_now),
        size_now_kb=policy_size(size_now),
        larger=format_size(larger),
        and_init_size="" if init_size is None else " and INITSIZE",
        room=_has_room(config, size - size_now, room),
        sizes_before=" ".join(structure_sizes(name, *sizes_before)),
        offload_now=alter_rules(config, config.rules),
        offload_sooner=alter_rules(config, with_all_offloaded_above(config, SOONER_TH)) if has_rules(config) else "",
    )
    sizes = structure_sizes(name, larger, init_size if is_seen else None, None)
    change = change_policy(name, config.cfrm_policy, sizes)
    first = msgspec.structs.replace(change[0], text=f"Else {change[0].text[0].lower()}{change[0].text[1:]}")
    unseen = (*alter_if_policy_allows(name, larger), first, *change[1:])
    return facts.by(change_size=change, enlarge_unseen=unseen)


def stopped_staging(subject: str, used: int, total: int, usage_pct: float) -> str:
    """Return the cause when no more messages can move to SCM: bytes used, in total, and usage of the structure."""
    return (
        f"{subject}: {readable_size(used)} of {readable_size(total)} in use, no room for the next message."
        f" The structure is {usage_pct:.1f} % full, at 100 % puts fail with 2192"
    )


def scm_facts(config: Structure, resource: Resource, fillers: tuple[Filler, ...]) -> Facts:
    """Return the facts about SCM, or about storage of dynamic augmented space."""
    name, before = config.policy_name, config.scm_max_size or 0
    facts = structure_facts(config, resource, fillers)
    asks = "" if config.coupling_facility is None else f": {display_facility(config.coupling_facility)}"
    change = change_policy(name, config.cfrm_policy, structure_sizes(name, None, None, 2 * before))
    return facts.adding(
        larger_scm=format_size(2 * before),
        scm_room=f"{facts.values['facility']} has {readable_size(before)} of SCM that no structure may use{asks}",
        scm_before=" ".join(structure_sizes(name, None, None, before)),
    ).by(change_scm=change)


def cannot_alter(config: Structure, used: int, messages: int) -> str:
    """Return the cause of a refused alter; `used`: bytes in SCM."""
    return (
        f"{config.name}: alter refused, {messages:,} messages ({readable_size(used)}) are in SCM. Size and ratio of a"
        " structure with data in SCM cannot be altered, neither by SETXCF nor automatically"
    )


def dataset_facts(
    config: Structure, resource: Resource, fillers: tuple[Filler, ...], *, has_failed: bool = False
) -> Facts:
    """Return the facts about the blocks of a shared message data set. has_failed: an expansion has failed."""
    qmgr = resource.owner
    facts = structure_facts(config, resource, fillers).where(ds_expands=config.ds_expand, expansion_failed=has_failed)
    return facts.adding(qmgr=qmgr, qmgr_mqsc=mqsc_name(qmgr)).by(copy_data_set=copy_data_set(config, qmgr))


# --- coupling facilities ---------------------------------------------------------------------------------------------


def _largest(amounts: Mapping[str, int]) -> list[tuple[str, int]]:
    positive = [(name, amount) for name, amount in amounts.items() if amount]
    return sorted(positive, key=lambda entry: (-entry[1], entry[0]))


def _shares(amounts: Mapping[str, int]) -> str:
    """Return the structures that use most: `QSG1/APP1 6 GB, QSG1/APP2 2 GB and 3 more`."""
    ranked = _largest(amounts)
    named = ", ".join(f"{name} {readable_size(amount)}" for name, amount in ranked[:_MAX_NAMED])
    more = len(ranked) - _MAX_NAMED
    return f"{named} and {more} more" if more > 0 else named or "no structure"


def scm_overcommitted(facility: str, total: int, maxima: Mapping[str, int]) -> str:
    """Return the cause of over-committed SCM: bytes it has, SCMMAXSIZE by structure."""
    has = readable_size(total) if total else "none"
    return (
        f"SCM of {facility}: {has}, its structures may use {readable_size(sum(maxima.values()))} ({_shares(maxima)})."
        " If they do, puts fail with 2192 before a structure reaches its own SCMMAXSIZE."
    )


def facility_facts(
    facility: str, amounts: Mapping[str, int], policy: str | None = None, total: int | None = None
) -> Facts:
    """Return the facts about what structures have of a coupling facility.

    amounts: bytes by structure; policy: name of the CFRM policy, None: not known; total: bytes that they may have
    together, None: no matter.
    """
    facts, ranked = Facts(frozenset(("coupling_facility",)), {"store": facility}), _largest(amounts)
    excess = 0 if total is None else sum(amounts.values()) - total
    if total is not None:
        facts = facts.adding(total=readable_size(total), excess=readable_size(excess))
    if not ranked:
        return facts
    user, present = ranked[0]
    name, lower = policy_name_of(user), present - excess
    sizes = structure_sizes(name, None, None, lower) if total is not None and lower > 0 else ()
    before = " ".join(structure_sizes(name, None, None, present))
    facts = facts.adding("user_known", user=user, user_policy=name, user_before=before)
    return facts.by(change_scm=change_policy(name, policy, sizes), change_policy=change_policy(name, policy))


def scm_exhausted(facility: str, total: int, usage: Mapping[str, int]) -> str:
    """Return the cause of exhausted SCM: bytes it has, bytes in use by structure."""
    return (
        f"SCM of {facility}: all {readable_size(total)} in use ({_shares(usage)}). No more messages are pre-staged, and"
        " puts fail with 2192 when a structure is full."
    )


def augmented_exhausted(facility: str, size: int, usage: Mapping[str, int]) -> str:
    """Return the cause when a coupling facility has no storage left for augmented space; sizes in bytes."""
    return (
        f"Storage of {facility}: all {readable_size(size)} in use, none left for augmented space ({_shares(usage)})."
        " Puts whose messages would go to SCM fail with 2192."
    )


# --- uniform clusters ------------------------------------------------------------------------------------------------


def _load_and_capacity(cluster: str, active: int, capacity: float, rate: float, depth: int) -> str:
    return (
        f"{cluster}: {rate:,.0f} messages/s put, {as_count(depth, 'message')} waiting;"
        f" {as_count(active, 'active member')}, capacity {capacity:,.0f} messages/s"
    )


def members_wanted(cluster: str, active: int, capacity: float, rate: float, depth: int, needed: int) -> str:
    """Return the cause when a uniform cluster needs more or fewer members."""
    load = _load_and_capacity(cluster, active, capacity, rate, depth)
    return f"{load}; {as_count(needed, 'member')} needed."


def _placed(places: Iterable[tuple[str, str | None]]) -> str:
    """Return members with their hosts: `UC01QM07 on QMHost2, UC01QM08`."""
    return ", ".join(name if host is None else f"{name} on {host}" for name, host in places)


def member_facts(
    cluster: str, start: Iterable[tuple[str, str | None]], hosts: Iterable[str | None], missing: int
) -> Facts:
    """Return the facts about members that are to be added to a cluster.

    start: name and host of each existing member to start, host None: not placed by the estate; hosts: host of each of
    the first members to create, None where no host has room or none is known; missing: number of members to create.
    """
    members = tuple(start)
    named = [host for host in dict.fromkeys(hosts) if host is not None]
    steps = (Step("Start it" if host is None else f"On {host}", f"strmqm {name}") for name, host in members)
    facts = Facts().where(uniform_cluster=True, members_stopped=members, members_missing=missing)
    return facts.adding(
        store=cluster,
        members=_placed(members),
        undo_members=" and ".join(f"endmqm -r {name}" for name, _ in members),
        missing=str(missing),
        hosts=f" on {', '.join(named)}" if named else "",
    ).by(start_members=tuple(steps))


def load_is_over(cluster: str, active: int, capacity: float, rate: float, depth: int) -> str:
    """Return the cause when the number of members is right again; arguments as for `members_wanted`."""
    return f"{_load_and_capacity(cluster, active, capacity, rate, depth)}; alert cleared."
