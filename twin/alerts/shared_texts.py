"""Causes and actions of the alerts of shared stores: coupling facilities and uniform clusters.

Sources of the commands: [IBM: z/OS MVS System Commands, DISPLAY CF and SETXCF], [IBM: z/OS MVS Setting Up a Sysplex,
CFRM policy], [IBM: MQ 9.2, crtmqm (-ii, -ic, -iv) and endmqm (-r)].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twin.capacity.statements import activation, display_facility, display_structure, rebuild
from twin.conditions import Resource
from twin.estate import policy_name_of
from twin.units import as_count, readable_size

_MAX_NAMED = 3


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
        capacity: of the active members, messages/s.
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
