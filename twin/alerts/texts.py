"""Causes of alerts of message stores, and actions of structures, with the MQSC or SETXCF commands that help.

A cause states resource, usage with unit, time and queue. An action may be followed by its effect on the forecast:
`effects` maps an action (GETTERS, OFFLOAD, SIZE, EXPAND) to a text of `twin.forecast.remedies`.
"""

from __future__ import annotations

from collections.abc import Mapping

from twin.capacity.offload_rules import SOONER_TH, has_rules, offloads_all_by, with_all_offloaded_above
from twin.capacity.statements import (
    activation,
    alter_rules,
    alter_size,
    alter_structure,
    copy_data_set,
)
from twin.conditions import Pool, Resource
from twin.estate import Structure, format_size
from twin.records import Filler
from twin.units import as_estimate, as_rate, as_span, readable_size

GETTERS, OFFLOAD, SIZE, EXPAND = "getters", "offload", "size", "expand"  # actions
NOTHING: Mapping[str, str] = {}


def describe_growth(fillers: tuple[Filler, ...], grown: int, unit: str, span: str) -> str:
    """Return the clause that names the queue that fills most.

    Args:
        fillers: queues that fill, the largest share first.
        grown: growth of all queues in `span`.
        unit: of `grown`, in words.
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
        probability: of full within the horizon, 0..1.
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
