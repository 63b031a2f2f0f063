"""Causes and actions of alerts, with the MQSC, SETXCF or control commands that help.

A cause states resource, usage with unit, time and queue. An action may be followed by its effect on the forecast:
`effects` maps an action (GETTERS, OFFLOAD, SIZE, EXPAND) to a text of `twin.forecast.remedies`.

Sources of the commands: `twin.capacity.statements`; [IBM: MQ 9.2, crtmqm (-ii, -ic, -iv) and endmqm (-r)].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twin.capacity.offload_rules import SOONER_TH, has_rules, offloads_all_by, with_all_offloaded_above
from twin.capacity.statements import (
    activation,
    alter_rules,
    alter_size,
    alter_structure,
    copy_data_set,
    display_facility,
    display_structure,
    rebuild,
)
from twin.conditions import Pool, Resource
from twin.estate import Structure, format_size, policy_name_of
from twin.records import Filler
from twin.units import as_count, as_estimate, as_rate, as_span, readable_size

GETTERS, OFFLOAD, SIZE, EXPAND = "getters", "offload", "size", "expand"  # actions
NOTHING: Mapping[str, str] = {}
_MAX_NAMED = 3  # structures


def describe_growth(fillers: tuple[Filler, ...], grown: int, unit: str, span: str) -> str:
    """Return the clause that names the queue that fills most.

    Args:
        fillers: queues that fill, the largest share first.
        grown: growth of all queues in `span`.
        unit: unit of `grown`, in words.
        span: time as text.
    """
    if not fillers:
        return "No queue of the estate holds any of it"
    first = fillers[0]
    if grown > 0:
        return f"{first.queue}: {100 * first.share:.0f} % of the growth of {grown:,} {unit} in the last {span}"
    return f"{first.queue}: {100 * first.share:.0f} % of the usage"


def is_full_now(p50: float) -> bool:
    """Return True if a resource counts as full already. p50: seconds until full."""
    return p50 < 1


def describe_forecast(times: tuple[float, float, float], probability: float) -> str:
    """Return the clause that states when a resource is full.

    Args:
        times: seconds until full, p10, p50, p90.
        probability: probability of full within the horizon, 0..1.
    """
    p10, p50, p90 = times
    if is_full_now(p50):
        return "full now: puts fail with 2192"
    middle, interval = as_estimate(p10, p50, p90)
    chance = f"probability {100 * probability:.0f} %"
    return f"at the current rate full in {middle} ({interval}, {chance}), then puts fail with 2192"


def describe_rates(puts: float, gets: float, since_get: float | None) -> str:
    """Return the clause that states how a queue is served.

    Args:
        puts: puts per second.
        gets: gets per second.
        since_get: seconds since the last get; None if there was none.
    """
    if since_get is None:
        return f"{as_rate(puts)} puts/s, no get so far"
    if since_get >= 60:
        return f"{as_rate(puts)} puts/s, no get for {as_span(since_get)}"
    return f"{as_rate(puts)} puts/s, {as_rate(gets)} gets/s"


def drifted(store: str, resource: Resource, pct: float, tolerance_pct: float) -> str:
    """Return the cause of drift.

    Args:
        store: name of the store.
        resource: resource with the largest drift.
        pct: twin minus measurement, percent of the total.
        tolerance_pct: drift that raises no alert.
    """
    direction = "above" if pct > 0 else "below"
    return (
        f"{store}, {resource}: the twin is {abs(pct):.1f} % of the total {direction} the measurement (tolerance"
        f" {tolerance_pct:g} %)."
    )


# --- structures, and queues of all stores ----------------------------------------------------------------------------


def getter_actions(fillers: tuple[Filler, ...], effects: Mapping[str, str], *, is_shared: bool) -> list[str]:
    """Return the action of more getters on the queue that fills most; none without such a queue.

    A member of a queue-sharing group answers for itself alone: CMDSCOPE(*) asks all [IBM: MQ 9.2, DISPLAY QSTATUS].
    """
    if not fillers:
        return []
    queue = fillers[0].queue
    action = f"Start more getters on {queue}, or find out why its getters stopped{effects.get(GETTERS, '')}"
    if not is_shared:
        return [f"{action}: DISPLAY QSTATUS({queue}) TYPE(QUEUE) ALL"]
    handles = f"who has it open, and where: DISPLAY QSTATUS({queue}) TYPE(HANDLE) CMDSCOPE(*) ALL"
    return [f"{action}: DISPLAY QSTATUS({queue}) TYPE(QUEUE) CMDSCOPE(*) ALL; {handles}"]


def _structure_size(config: Structure, size_now: int, effects: Mapping[str, str], alterable: bool) -> list[str]:
    cf_name, activated = config.policy_name, activation(config.policy_name, config.cfrm_policy)
    if not alterable:
        why = "the size of a structure with data in SCM cannot be altered"
        return [f"Raise SIZE and INITSIZE in the CFRM policy ({why}): {activated}"]
    if size_now < config.size and config.allow_auto_alter:
        action = f"Automatic alter expands the structure to its SIZE by 10 % a minute; at once{effects.get(SIZE, '')}"
        return [f"{action}: {alter_size(cf_name, config.size)}"]
    if size_now < config.size:
        action = f"Expand the structure to its SIZE{effects.get(SIZE, '')}"
        return [f"{action}: {alter_size(cf_name, config.size)}"]
    why = f"the structure has reached {format_size(config.size)}"
    return [f"Raise SIZE in the CFRM policy ({why}): {activated}"]


def pool_actions(
    config: Structure,
    resource: Resource,
    size_now: int,
    fillers: tuple[Filler, ...],
    effects: Mapping[str, str] = NOTHING,
    *,
    alterable: bool,
) -> tuple[str, ...]:
    """Return the actions for entries or elements. Offloading saves elements, never entries.

    The offload rules may be altered at any time, the size only while nothing is in SCM (`alterable`).
    """
    actions = getter_actions(fillers, effects, is_shared=True)
    saves = has_rules(config) and not offloads_all_by(config, SOONER_TH)
    if resource.pool == Pool.ELEMENTS and saves:
        command = alter_rules(config, with_all_offloaded_above(config, SOONER_TH))
        actions.append(f"Offload sooner to save elements{effects.get(OFFLOAD, '')}: {command}")
    return tuple(actions + _structure_size(config, size_now, effects, alterable))


def stopped_staging(subject: str, used: int, total: int, usage_pct: float) -> str:
    """Return the cause when no more messages can move to SCM.

    Args:
        subject: resource that is exhausted.
        used: bytes in use.
        total: bytes there are.
        usage_pct: usage of the structure, percent.
    """
    return (
        f"{subject}: {readable_size(used)} of {readable_size(total)} in use, no room for the next message."
        f" The structure is {usage_pct:.1f} % full, at 100 % puts fail with 2192"
    )


def scm_actions(
    config: Structure, resource: Resource, fillers: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
) -> tuple[str, ...]:
    """Return the actions for SCM, or for storage of dynamic augmented space."""
    cf_name = config.policy_name
    facility = config.coupling_facility or "the coupling facility"
    if resource.pool == Pool.SCM:
        room = (
            f"Raise SCMMAXSIZE of {cf_name} in the CFRM policy (do not over-commit the SCM of {facility}):"
            f" {activation(cf_name, config.cfrm_policy)}"
        )
    else:
        room = (
            f"Free storage in {facility}: contract another structure ({alter_size()}) or"
            " rebuild it into another coupling facility"
        )
    return (*getter_actions(fillers, effects, is_shared=True), room)


def cannot_alter(config: Structure, used: int, messages: int) -> str:
    """Return the cause of a refused alter.

    Args:
        config: estate entry.
        used: bytes in SCM.
        messages: number of messages in SCM.
    """
    return (
        f"{config.name}: alter refused, {messages:,} messages ({readable_size(used)}) are in SCM. Size and ratio of a"
        " structure with data in SCM cannot be altered, neither by SETXCF nor automatically"
    )


def alter_actions(config: Structure, fillers: tuple[Filler, ...]) -> tuple[str, ...]:
    """Return the actions that let the size and ratio of a structure be altered again."""
    return (
        *getter_actions(fillers, NOTHING, is_shared=True),
        "Alter it when `alterable` is true again: at 70 % usage and below, the coupling facility pre-fetches messages",
        f"Or change the CFRM policy: {activation(config.policy_name, config.cfrm_policy)}",
    )


def dataset_actions(
    config: Structure, qmgr: str, fillers: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
) -> tuple[str, ...]:
    """Return the actions for the blocks of a shared message data set."""
    actions = getter_actions(fillers, effects, is_shared=True)
    if not config.ds_expand:
        actions.append(f"Let the data set expand{effects.get(EXPAND, '')}: {alter_structure(config, 'DSEXPAND(YES)')}")
    actions.append(
        f"Add volumes to the storage group of {qmgr}'s data set, or copy it to a larger one:"
        f" {copy_data_set(config, qmgr)}"
    )
    return tuple(actions)


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
    """Return the cause of over-committed SCM.

    Args:
        facility: name of the coupling facility.
        total: bytes of SCM it has.
        maxima: SCMMAXSIZE of each structure, bytes.
    """
    has = readable_size(total) if total else "none"
    return (
        f"SCM of {facility}: {has}, its structures may use {readable_size(sum(maxima.values()))} ({_shares(maxima)})."
        " If they do, puts fail with 2192 before a structure reaches its own SCMMAXSIZE."
    )


def scm_overcommitted_actions(facility: str, total: int, maxima: Mapping[str, int]) -> tuple[str, ...]:
    """Return the actions for over-committed SCM; arguments as for `scm_overcommitted`."""
    ranked = _largest(maxima)
    actions = []
    if ranked:
        first = policy_name_of(ranked[0][0])
        actions.append(
            f"Lower SCMMAXSIZE in the CFRM policy, {first} first, until the sum is at most {readable_size(total)}:"
            f" {activation(first)}"
        )
    actions.append(
        f"Or configure {readable_size(sum(maxima.values()) - total)} more SCM for {facility}; display its SCM:"
        f" {display_facility(facility)}"
    )
    return tuple(actions)


def scm_exhausted(facility: str, total: int, usage: Mapping[str, int]) -> str:
    """Return the cause of exhausted SCM.

    Args:
        facility: name of the coupling facility.
        total: bytes of SCM it has.
        usage: SCM in use by each structure, bytes.
    """
    return (
        f"SCM of {facility}: all {readable_size(total)} in use ({_shares(usage)}). No more messages are pre-staged, and"
        " puts fail with 2192 when a structure is full."
    )


def scm_exhausted_actions(facility: str, usage: Mapping[str, int]) -> tuple[str, ...]:
    """Return the actions for exhausted SCM; arguments as for `scm_exhausted`."""
    ranked = _largest(usage)
    actions = []
    if ranked:
        name, _ = ranked[0]
        actions.append(
            f"Start more getters on the queues of {name}, which uses most SCM; display its usage:"
            f" {display_structure(policy_name_of(name))}"
        )
    actions.append(f"Configure more SCM for {facility}; display its SCM: {display_facility(facility)}")
    return tuple(actions)


def augmented_exhausted(facility: str, size: int, usage: Mapping[str, int]) -> str:
    """Return the cause when a coupling facility has no storage left for augmented space.

    Args:
        facility: name of the coupling facility.
        size: its storage, bytes.
        usage: augmented space of each structure, bytes.
    """
    return (
        f"Storage of {facility}: all {readable_size(size)} in use, none left for augmented space ({_shares(usage)})."
        " Puts whose messages would go to SCM fail with 2192."
    )


def augmented_exhausted_actions(facility: str, usage: Mapping[str, int]) -> tuple[str, ...]:
    """Return the actions for exhausted augmented space; arguments as for `augmented_exhausted`."""
    ranked = _largest(usage)
    name = policy_name_of(ranked[0][0]) if ranked else "..."
    return (
        f"Free storage in {facility}: move a structure to another one, {rebuild()},LOC=OTHER",
        f"Or lower SCMMAXSIZE of {name} in the CFRM policy; display the free storage: {display_facility(facility)}",
    )


# --- uniform clusters ------------------------------------------------------------------------------------------------


def _load_and_capacity(cluster: str, active: int, capacity: float, rate: float, depth: int) -> str:
    return (
        f"{cluster}: {rate:,.0f} messages/s put, {as_count(depth, 'message')} waiting;"
        f" {as_count(active, 'active member')}, capacity {capacity:,.0f} messages/s"
    )


def members_wanted(cluster: str, active: int, capacity: float, rate: float, depth: int, needed: int) -> str:
    """Return the cause when a uniform cluster needs more or fewer members.

    Args:
        cluster: name of the cluster.
        active: number of active members.
        capacity: capacity of the active members, messages/s.
        rate: messages/s put.
        depth: messages waiting.
        needed: members that carry the load.
    """
    load = _load_and_capacity(cluster, active, capacity, rate, depth)
    return f"{load}; {as_count(needed, 'member')} needed."


def _placed(places: Iterable[tuple[str, str | None]]) -> str:
    """Return members with their hosts: `UC01QM07 on QMHost2, UC01QM08`."""
    return ", ".join(name if host is None else f"{name} on {host}" for name, host in places)


def more_members_actions(
    cluster: str, start: Iterable[tuple[str, str | None]], hosts: Iterable[str | None], missing: int
) -> tuple[str, ...]:
    """Return the actions that add members; none to start or create: what to watch.

    Args:
        cluster: name of the cluster.
        start: name and host of each existing member to start; host None: not placed by the estate.
        hosts: host of each of the first members to create, None where no host has room or none is known.
        missing: number of members to create.
    """
    actions = []
    if placed := _placed(start):
        actions.append(f"Start {placed} (strmqm); {cluster} rebalances the connected applications")
    if missing:
        named = [host for host in dict.fromkeys(hosts) if host is not None]
        place = f" on {', '.join(named)}" if named else ""
        actions.append(
            f"Create {missing} more for {cluster}{place}: crtmqm -ii ... -ic ... -iv CONNAME=host(port), with the"
            " files of the other members, then strmqm"
        )
    return tuple(actions) or (f"Start no further member: those of {cluster} that run carry the load",)


def fewer_members_actions(name: str) -> tuple[str, ...]:
    """Return the action that removes a member."""
    return (f"Stop one member: endmqm -r {name} moves its applications to the others",)


def load_is_over(cluster: str, active: int, capacity: float, rate: float, depth: int) -> str:
    """Return the cause when the number of members is right again; arguments as for `members_wanted`."""
    return f"{_load_and_capacity(cluster, active, capacity, rate, depth)}; alert cleared."
