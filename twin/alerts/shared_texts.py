"""Causes and actions of the alerts of shared stores: coupling facilities and uniform clusters.

Sources of the commands: z/OS MVS System Commands (D CF, SETXCF), z/OS MVS Setting Up a Sysplex (CFRM policy);
uniform-cluster-scaling.txt (crtmqm with -ii, -ic and -iv, endmqm -r).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twin.units import UNITS

_NAMED_AT_MOST = 3


def in_units(size: int) -> str:
    """Bytes as a person reads them: `4 GB`, `1.5 TB`, `512 bytes`; powers of 1024."""
    for unit in ("T", "G", "M", "K"):
        if abs(size) >= UNITS[unit]:
            return (
                f"{size / UNITS[unit]:.3g} {unit}B" if size < 1000 * UNITS[unit] else f"{size // UNITS[unit]} {unit}B"
            )
    return f"{size} bytes"


def _largest(amounts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(((name, amount) for name, amount in amounts.items() if amount), key=lambda one: (-one[1], one[0]))


def _shares(amounts: Mapping[str, int]) -> str:
    """The structures that take most: `QSG1/APP1 6 GB, QSG1/APP2 2 GB and 3 more`."""
    ranked = _largest(amounts)
    named = ", ".join(f"{name} {in_units(amount)}" for name, amount in ranked[:_NAMED_AT_MOST])
    more = len(ranked) - _NAMED_AT_MOST
    return f"{named} and {more} more" if more > 0 else named or "no structure"


def _policy_name(store: str) -> str:
    """The name of a structure in the CFRM policy: the group padded with @ to four characters, and the structure's."""
    group, _, name = store.partition("/")
    return group.ljust(4, "@") + name


def scm_overcommitted(facility: str, total: int, wanting: Mapping[str, int]) -> str:
    """wanting: SCMMAXSIZE of each structure, bytes; total: SCM there is."""
    has = in_units(total) if total else "none"
    return (
        f"The structures of {facility} may use {in_units(sum(wanting.values()))} of SCM ({_shares(wanting)}), it has"
        f" {has}: when they use it together, puts get 2192 before a structure's own SCMMAXSIZE is reached."
    )


def scm_overcommitted_actions(facility: str, total: int, wanting: Mapping[str, int]) -> tuple[str, ...]:
    """What helps; see `scm_overcommitted`."""
    ranked = _largest(wanting)
    actions = []
    if ranked:
        first = _policy_name(ranked[0][0])
        actions.append(
            f"Lower SCMMAXSIZE in the CFRM policy until the sum is at most {in_units(total)}, first of {first}, then"
            f" SETXCF START,REBUILD,STRNAME={first}"
        )
    actions.append(
        f"Or configure {in_units(sum(wanting.values()) - total)} more SCM to {facility}; D CF,CFNAME={facility} shows"
        " what it has"
    )
    return tuple(actions)


def scm_exhausted(facility: str, total: int, using: Mapping[str, int]) -> str:
    """using: SCM in use by each structure, bytes."""
    return (
        f"All {in_units(total)} of SCM of {facility} are in use ({_shares(using)}): nothing more is pre-staged, and a"
        " structure that fills up gets 2192."
    )


def scm_exhausted_actions(facility: str, using: Mapping[str, int]) -> tuple[str, ...]:
    """What helps; see `scm_exhausted`."""
    ranked = _largest(using)
    actions = []
    if ranked:
        name, _ = ranked[0]
        actions.append(
            f"Start more getters on the queues of {name}, which holds most: D XCF,STR,STRNAME={_policy_name(name)}"
            " shows its SCM in use"
        )
    actions.append(f"Configure more SCM to {facility}: D CF,CFNAME={facility} shows what it has")
    return tuple(actions)


def augmented_exhausted(facility: str, size: int, using: Mapping[str, int]) -> str:
    """using: augmented space of each structure, bytes; size: of the facility."""
    return (
        f"The storage of {facility}, {in_units(size)}, is used up: its structures leave nothing more for augmented"
        f" space ({_shares(using)}); what should go to SCM gets 2192."
    )


def augmented_exhausted_actions(facility: str, using: Mapping[str, int]) -> tuple[str, ...]:
    """What helps; see `augmented_exhausted`."""
    ranked = _largest(using)
    name = _policy_name(ranked[0][0]) if ranked else "..."
    return (
        f"Free storage of {facility}: SETXCF START,REBUILD,STRNAME=...,LOC=OTHER moves a structure to another one",
        f"Or lower SCMMAXSIZE of {name} in the CFRM policy; D CF,CFNAME={facility} shows the storage that is free",
    )


def _rate(messages_per_second: float) -> str:
    return f"{messages_per_second:,.0f} messages/s"


def _members(count: int) -> str:
    return "1 member" if count == 1 else f"{count} members"


def _load(rate: float, depth: int) -> str:
    return f"{_rate(rate)} are put and {depth:,} messages wait"


def _would_do(count: int) -> str:
    return f"{_members(count)} would do"


def members_wanted(cluster: str, active: int, one: float, rate: float, depth: int, needed: int) -> str:
    """rate: messages/s put; one: messages/s that a member carries; needed: members that would do."""
    return (
        f"{cluster} has {_members(active)} active, good for {_rate(active * one)}; {_load(rate, depth)}:"
        f" {_would_do(needed)}."
    )


def more_members_actions(cluster: str, idle: Iterable[str], more: int) -> tuple[str, ...]:
    """idle: members that are not active; more: how many are wanted."""
    names = list(idle)[:more]
    actions = []
    if names:
        actions.append(f"Start {', '.join(names)}: strmqm; {cluster} balances the connected applications over all")
    if more > len(names):
        actions.append(
            f"Create {more - len(names)} more for {cluster}: crtmqm -ii ... -ic ... -iv CONNAME=host(port), with the"
            " files of the other members, then strmqm"
        )
    return tuple(actions)


def fewer_members_actions(active: Iterable[str]) -> tuple[str, ...]:
    """active: members; the last is named."""
    name = list(active)[-1]
    return (f"Stop one: endmqm -r {name} moves its applications to the other members",)


def load_is_over(cluster: str, active: int, one: float, rate: float, depth: int) -> str:
    """What there is to say when neither more nor fewer members are wanted."""
    return f"It is over: {_load(rate, depth)}; {cluster} has {_members(active)} active, good for {_rate(active * one)}."


def drifted(store: str, resource: str, pct: float, tolerance_pct: float) -> str:
    """pct: twin less measured, in percent of the total."""
    direction = "more" if pct > 0 else "less"
    return (
        f"The twin of {store} has {abs(pct):.1f} % of its {resource} {direction} than measured; its tolerance is"
        f" {tolerance_pct:g} %."
    )
