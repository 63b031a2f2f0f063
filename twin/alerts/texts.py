"""Causes and actions of alerts, with the MQSC, SETXCF or control commands that help.

A cause states resource, usage with unit, time and queue. `effects` maps the id of an action (GETTERS, OFFLOAD, SIZE,
CFRM_SIZE) to its effect on the forecast, a text of `twin.forecast.remedies`. Sources of the commands:
`twin.capacity.statements`; [IBM: MQ 9.2, crtmqm (-ii, -ic, -iv) and endmqm (-r)].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo

import msgspec

from kernels.clock import SECOND
from twin.capacity.statements import (
    alter_if_policy_allows,
    alter_rules,
    alter_size,
    alter_structure,
    change_policy,
    copy_data_set,
    display_facility,
    display_queue_status,
    display_structure,
    display_structure_status,
    expand_data_set,
    rebuild,
    structure_sizes,
)
from twin.capacity.structures import SOONER_TH, has_rules, offloads_all_by, with_all_offloaded_above
from twin.conditions import Pool, Resource
from twin.estate import Structure, format_size, policy_name_of
from twin.records import GETTERS, Action, Filler, Step
from twin.units import as_count, as_estimate, as_local, as_rate, as_span, readable_size

OFFLOAD, SIZE, CFRM_SIZE = "offload", "alter-size", "cfrm-size"  # actions with an effect, as GETTERS
NOTHING: Mapping[str, str] = {}
UNKNOWN_FILLER = "Which queue fills it is not known"
_MAX_NAMED = 3  # structures, or queue managers that were asked
_STILL_REFUSED = 60 * SECOND  # from the last refused put


def describe_growth(fillers: tuple[Filler, ...], grown: int, unit: str, span: str, *, is_reported: bool = True) -> str:
    """Return the clause that names the queue that fills most.

    Args:
        grown: growth of all queues in `span`.
        unit: unit of `grown`, in words.
        is_reported: False if no put and no get of the store was ever reported.
    """
    if not fillers:
        return "No queue holds any of it" if is_reported else f"{UNKNOWN_FILLER}: no puts and gets are reported"
    first, share = fillers[0], f"{100 * fillers[0].share:.0f} %"
    if share == "100 %":
        return f"{first.queue} alone {f'fills it: {grown:,} {unit} in {span}' if grown > 0 else 'holds it'}"
    if grown > 0:
        return f"{first.queue} fills it most: {share} of {grown:,} {unit} in {span}"
    return f"{first.queue} holds it most: {share}"


def is_full_now(p50: float) -> bool:
    """Return True if a resource counts as full already. p50: seconds until full."""
    return p50 < 1


def describe_forecast(times: tuple[float, float, float], probability: float, consequence: str) -> str:
    """Return the clause that states when a resource is full.

    Args:
        times: seconds until full, p10, p50, p90.
        probability: probability of full within the horizon, 0..1.
    """
    p10, p50, p90 = times
    if is_full_now(p50):
        return f"full now: {consequence}"
    middle, interval = as_estimate(p10, p50, p90)
    chance = f"probability {100 * probability:.0f} %"
    return f"full in about {middle} ({interval}, {chance}), then {consequence}"


def full_at(times: tuple[float, float, float], now: int, zone: tzinfo) -> str:
    """Return when a resource is full, to begin a line: `full ~02:01 CET (in 20 min)`.

    Args:
        times: seconds until full, p10, p50, p90.
    """
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
    """Return the cause of drift.

    Args:
        pct: twin minus measurement, percent of the total.
    """
    direction = "above" if pct > 0 else "below"
    return (
        f"{store}, {resource}: the twin is {abs(pct):.1f} % of the total {direction} the measurement (tolerance"
        f" {tolerance_pct:g} %)."
    )


# --- structures, and queues of all stores ----------------------------------------------------------------------------


def getter_actions(fillers: tuple[Filler, ...], effects: Mapping[str, str], *, is_shared: bool) -> list[Action]:
    """Return the action of more getters on the queue that fills most; none without such a queue.

    A member of a queue-sharing group answers for itself alone: CMDSCOPE(*) asks all [IBM: MQ 9.2, DISPLAY QSTATUS].
    """
    if not fillers:
        return []
    queue, scope = fillers[0].queue, " CMDSCOPE(*)" if is_shared else ""
    return [
        Action(
            id=GETTERS,
            summary=f"Start more getters on {queue}, or find out why its getters stopped",
            effect=effects.get(GETTERS),
            steps=(
                Step("See when it was last got from", display_queue_status(queue, f"TYPE(QUEUE){scope} ALL")),
                Step("See who has it open, and where", display_queue_status(queue, f"TYPE(HANDLE){scope} ALL")),
                Step("Start the application that gets from it; where it runs, start more of it"),
            ),
        )
    ]


def to_read(runbook: tuple[Action, ...], queue: str, *, is_open: bool) -> tuple[Action, ...]:
    """Return a runbook whose action of more getters is about who reads the queue.

    Args:
        runbook: actions, that of getters as `getter_actions` returns it.
        is_open: True where applications have it open for input and get nothing; False where none has.
    """
    summary, step = f"Start the application that reads {queue}", "Start it, or find out why it ended"
    if is_open:
        summary = f"Find out why the application that has {queue} open for input gets nothing"
        step = "See what it waits for: an open unit of work, locks, a resource; end and start it if need be"
    return tuple(
        msgspec.structs.replace(action, summary=summary, steps=(*action.steps[-2:-1], Step(step)))
        if action.id == GETTERS
        else action
        for action in runbook
    )


def without_getters(runbook: tuple[Action, ...]) -> tuple[Action, ...]:
    """Return a runbook without the action of more getters: they are back, or gets exceed puts."""
    return tuple(action for action in runbook if action.id != GETTERS)


def _policy_action(
    config: Structure,
    action: str,
    summary: str,
    sizes: tuple[int | None, int | None, int | None],
    before: tuple[int | None, int | None, int | None],
    precondition: str,
    effect: str | None = None,
) -> Action:
    """Return the action that changes sizes of the CFRM policy: SIZE, INITSIZE and SCMMAXSIZE, None where one stays."""
    name = config.policy_name
    return Action(
        id=action,
        summary=summary,
        effect=effect,
        precondition=precondition,
        steps=change_policy(name, config.cfrm_policy, structure_sizes(name, *sizes)),
        risk=(
            f"calls to queues of {config.name} wait during the rebuild"
            if config.holds_queues
            else f"what uses {config.name} waits during the rebuild"
        ),
        undo=f"the same steps with {' '.join(structure_sizes(name, *before))}",
    )


def _has_room(config: Structure, size: int, room: int | None) -> str:
    """Return the condition that the coupling facility of a structure has room for more of it.

    Args:
        size: bytes by which it is to grow.
        room: bytes that are left by the estate; None: not known.
    """
    facility, name = config.coupling_facility, config.policy_name
    display = display_structure(name) if facility is None else display_facility(facility)
    asked = f"{facility or 'its coupling facility'} has {readable_size(size)} of free storage: {display}"
    if room is None:
        return asked
    left = f"{readable_size(room)} is left" if room > 0 else "nothing is left"
    return f"{asked}; by the estate {left}{'' if size <= room else ', too little'}"


def proposed_size(config: Structure) -> int:
    """Return the SIZE that is proposed for a structure that has reached its own, bytes."""
    return 2 * config.size


def _structure_size(
    config: Structure, size_now: int, effects: Mapping[str, str], alterable: bool, room: int | None
) -> Action:
    if alterable and size_now < config.size:
        summary = f"Expand the structure from {format_size(size_now)} to its SIZE"
        if config.allow_auto_alter:
            summary = "Expand the structure to its SIZE at once: automatic alter does so by 10 % a minute"
        return Action(
            id=SIZE,
            summary=summary,
            effect=effects.get(SIZE),
            precondition=_has_room(config, config.size - size_now, room),
            steps=(Step("Alter its size", alter_size(config.policy_name, config.size)),),
            undo=alter_size(config.policy_name, size_now),
        )
    larger = proposed_size(config)
    init_size = None if alterable and config.init_size is None else larger
    why = f"the structure has reached {format_size(config.size)}"
    if not alterable:
        why = "the size of a structure with data in SCM cannot be altered"
    if alterable and not config.is_policy_seen:
        return _enlarge_unseen(config, larger, effects.get(CFRM_SIZE), _has_room(config, larger - size_now, room))
    return _policy_action(
        config,
        CFRM_SIZE,
        f"Raise SIZE{'' if init_size is None else ' and INITSIZE'} in the CFRM policy to {format_size(larger)}: {why}",
        (larger, init_size, None),
        (config.size, config.init_size, None),
        _has_room(config, larger - size_now, room),
        effects.get(CFRM_SIZE),
    )


def _enlarge_unseen(config: Structure, larger: int, effect: str | None, precondition: str) -> Action:
    """Return the action that enlarges a structure whose SIZE in the CFRM policy was not seen. larger: bytes."""
    policy = _policy_action(
        config,
        CFRM_SIZE,
        f"Enlarge the structure to {format_size(larger)}: it has {format_size(config.size)}, and its SIZE in the CFRM"
        " policy was not seen",
        (larger, None, None),
        (config.size, None, None),
        precondition,
        effect,
    )
    first, *rest = policy.steps
    other = msgspec.structs.replace(first, text=f"Else {first.text[0].lower()}{first.text[1:]}")
    steps = (*alter_if_policy_allows(config.policy_name, larger), other, *rest)
    return msgspec.structs.replace(policy, steps=steps)


def pool_actions(
    config: Structure,
    resource: Resource,
    size_now: int,
    fillers: tuple[Filler, ...],
    effects: Mapping[str, str] = NOTHING,
    *,
    alterable: bool,
    room: int | None = None,
) -> tuple[Action, ...]:
    """Return the actions for entries or elements. Offloading saves elements, never entries.

    The offload rules may be altered at any time, the size only while nothing is in SCM (`alterable`). room: bytes that
    the coupling facility has left by the estate; None: not known.
    """
    actions = getter_actions(fillers, effects, is_shared=True)
    saves = has_rules(config) and not offloads_all_by(config, SOONER_TH)
    if resource.pool == Pool.ELEMENTS and saves:
        sooner = alter_rules(config, with_all_offloaded_above(config, SOONER_TH))
        actions.append(
            Action(
                id=OFFLOAD,
                summary="Offload sooner to save elements",
                effect=effects.get(OFFLOAD),
                precondition="the data sets have room: DISPLAY USAGE TYPE(SMDS) CMDSCOPE(*)",
                steps=(Step("Alter the offload rules", sooner),),
                risk="puts and gets of what is offloaded are slower",
                undo=alter_rules(config, config.rules),
            )
        )
    return (*actions, _structure_size(config, size_now, effects, alterable, room))


def level_actions(config: Structure, size_now: int, room: int | None) -> tuple[Action, ...]:
    """Return the actions for a structure that holds no queues; arguments as of `pool_actions`.

    Source: [IBM: APAR PH54826] (channels that retry puts to a shared queue at MAXDEPTH filled it).
    """
    size = _structure_size(config, size_now, NOTHING, True, room)
    if not config.is_administration:
        return (size,)
    users = Action(
        id="find-users",
        summary="Find what takes its entries: long units of work, and channels that retry puts to a full shared queue",
        steps=(
            Step("See the units of work and how old they are", "DISPLAY CONN(*) TYPE(CONN) ALL"),
            Step("See shared queues at their MAXDEPTH", "DISPLAY QSTATUS(*) TYPE(QUEUE) CURDEPTH CMDSCOPE(*)"),
            Step("See its entries", display_structure_status(config)),
        ),
    )
    return (size, users)


def stopped_staging(subject: str, used: int, total: int, usage_pct: float) -> str:
    """Return the cause when no more messages can move to SCM.

    Args:
        used: bytes in use.
        total: bytes in total.
        usage_pct: usage of the structure, percent.
    """
    return (
        f"{subject}: {readable_size(used)} of {readable_size(total)} in use, no room for the next message."
        f" The structure is {usage_pct:.1f} % full, at 100 % puts fail with 2192"
    )


def scm_actions(
    config: Structure, resource: Resource, fillers: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
) -> tuple[Action, ...]:
    """Return the actions for SCM, or for storage of dynamic augmented space."""
    getters = getter_actions(fillers, effects, is_shared=True)
    facility = config.coupling_facility or "the coupling facility"
    if resource.pool == Pool.SCM:
        before = config.scm_max_size or 0
        asks = "" if config.coupling_facility is None else f": {display_facility(facility)}"
        return (
            *getters,
            _policy_action(
                config,
                "scm",
                f"Raise SCMMAXSIZE of {config.policy_name} in the CFRM policy to {format_size(2 * before)}",
                (None, None, 2 * before),
                (None, None, before),
                f"{facility} has {readable_size(before)} of SCM that no structure may use{asks}",
            ),
        )
    look = display_structure(config.policy_name)
    if config.coupling_facility is not None:
        look = display_facility(config.coupling_facility)
    return (
        *getters,
        Action(
            id="augmented",
            summary=f"Free storage in {facility}",
            steps=(
                Step("See its free storage and its structures", look),
                Step("Contract a structure that has room to spare, by SETXCF START,ALTER with a smaller SIZE"),
                Step("Or rebuild a structure into another coupling facility, by SETXCF START,REBUILD with LOC=OTHER"),
            ),
        ),
    )


def cannot_alter(config: Structure, used: int, messages: int) -> str:
    """Return the cause of a refused alter.

    Args:
        used: bytes in SCM.
    """
    return (
        f"{config.name}: alter refused, {messages:,} messages ({readable_size(used)}) are in SCM. Size and ratio of a"
        " structure with data in SCM cannot be altered, neither by SETXCF nor automatically"
    )


def alter_actions(config: Structure, fillers: tuple[Filler, ...]) -> tuple[Action, ...]:
    """Return the actions that let the size and ratio of a structure be altered again."""
    return (
        *getter_actions(fillers, NOTHING, is_shared=True),
        Action(
            id="wait",
            summary="Alter it when `alterable` is true again: at 70 % usage and below, the coupling facility"
            " pre-fetches messages",
        ),
        Action(
            id="cfrm-policy",
            summary="Or change the CFRM policy, which a rebuild takes over",
            steps=change_policy(config.policy_name, config.cfrm_policy),
            risk=f"calls to queues of {config.name} wait during the rebuild",
        ),
    )


def dataset_actions(
    config: Structure,
    qmgr: str,
    fillers: tuple[Filler, ...],
    effects: Mapping[str, str] = NOTHING,
    *,
    has_failed: bool = False,
) -> tuple[Action, ...]:
    """Return the actions for the blocks of a shared message data set. has_failed: an expansion has failed."""
    actions = getter_actions(fillers, effects, is_shared=True)
    if not config.ds_expand:
        actions.append(
            Action(
                id="ds-expand",
                summary="Let the data set expand",
                precondition="its storage group has room",
                steps=(Step("Alter the CF structure object", alter_structure(config, "DSEXPAND(YES)")),),
                undo=alter_structure(config, "DSEXPAND(NO)"),
            )
        )
    volumes = [Step("Look up the name of the data set and its storage group, and add volumes to that")]
    if has_failed:
        volumes.append(Step("Let it expand again", expand_data_set(config, qmgr)))
    actions += [
        Action(
            id="volumes",
            summary=f"Add volumes to the storage group of {qmgr}'s data set",
            steps=tuple(volumes),
        ),
        Action(
            id="ds-copy",
            summary=f"Or copy {qmgr}'s data set to a larger one",
            steps=copy_data_set(config, qmgr),
            risk=f"messages in {qmgr}'s data set cannot be got meanwhile, and {qmgr} cannot offload",
            undo="keep the old data set until the new one is in use; then the same steps with it",
        ),
    ]
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
        total: bytes of SCM it has.
        maxima: SCMMAXSIZE of each structure, bytes.
    """
    has = readable_size(total) if total else "none"
    return (
        f"SCM of {facility}: {has}, its structures may use {readable_size(sum(maxima.values()))} ({_shares(maxima)})."
        " If they do, puts fail with 2192 before a structure reaches its own SCMMAXSIZE."
    )


def scm_overcommitted_actions(
    facility: str, total: int, maxima: Mapping[str, int], policy: str | None = None
) -> tuple[Action, ...]:
    """Return the actions for over-committed SCM; other arguments as of `scm_overcommitted`.

    policy: name of the CFRM policy; None: not known.
    """
    ranked, excess = _largest(maxima), sum(maxima.values()) - total
    install = _install_scm(facility, f"Or configure {readable_size(excess)} more SCM for {facility}")
    if not ranked:
        return (install,)
    store, present = ranked[0]
    name, lower = policy_name_of(store), present - excess
    sizes = structure_sizes(name, None, None, lower) if lower > 0 else ()
    return (
        Action(
            id="scm-lower",
            summary=f"Lower SCMMAXSIZE in the CFRM policy, {name} first, until the sum is at most"
            f" {readable_size(total)}",
            precondition=f"the data of {store} fits without the SCM",
            steps=change_policy(name, policy, sizes),
            risk=f"calls to queues of {store} wait during the rebuild",
            undo=f"the same steps with {' '.join(structure_sizes(name, None, None, present))}",
        ),
        install,
    )


def _install_scm(facility: str, summary: str) -> Action:
    return Action(id="scm-install", summary=summary, steps=(Step("See its SCM", display_facility(facility)),))


def scm_exhausted(facility: str, total: int, usage: Mapping[str, int]) -> str:
    """Return the cause of exhausted SCM.

    Args:
        total: bytes of SCM it has.
        usage: SCM in use by each structure, bytes.
    """
    return (
        f"SCM of {facility}: all {readable_size(total)} in use ({_shares(usage)}). No more messages are pre-staged, and"
        " puts fail with 2192 when a structure is full."
    )


def scm_exhausted_actions(facility: str, usage: Mapping[str, int]) -> tuple[Action, ...]:
    """Return the actions for exhausted SCM; arguments as for `scm_exhausted`."""
    install = _install_scm(facility, f"Configure more SCM for {facility}")
    ranked = _largest(usage)
    if not ranked:
        return (install,)
    name, _ = ranked[0]
    getters = Action(
        id=GETTERS,
        summary=f"Start more getters on the queues of {name}, which uses most SCM",
        steps=(Step("See its usage", display_structure(policy_name_of(name))),),
    )
    return getters, install


def augmented_exhausted(facility: str, size: int, usage: Mapping[str, int]) -> str:
    """Return the cause when a coupling facility has no storage left for augmented space.

    Args:
        size: its storage, bytes.
        usage: augmented space of each structure, bytes.
    """
    return (
        f"Storage of {facility}: all {readable_size(size)} in use, none left for augmented space ({_shares(usage)})."
        " Puts whose messages would go to SCM fail with 2192."
    )


def augmented_exhausted_actions(
    facility: str, usage: Mapping[str, int], policy: str | None = None
) -> tuple[Action, ...]:
    """Return the actions for exhausted augmented space; other arguments as of `augmented_exhausted`.

    policy: name of the CFRM policy; None: not known.
    """
    look = Step("See the free storage", display_facility(facility))
    ranked = _largest(usage)
    if not ranked:
        return (Action(id="augmented", summary=f"Free storage in {facility}", steps=(look,)),)
    store, _ = ranked[0]
    name, waits = policy_name_of(store), f"calls to queues of {store} wait during the rebuild"
    return (
        Action(
            id="augmented",
            summary=f"Free storage in {facility}: move {name} to another coupling facility",
            precondition=f"PREFLIST of {name} has another with room",
            steps=(look, Step("Move it", f"{rebuild(name)},LOC=OTHER")),
            risk=waits,
            undo=f"{rebuild(name)},LOC=OTHER once {facility} has room",
        ),
        Action(
            id="scm-lower",
            summary=f"Or lower SCMMAXSIZE of {name} in the CFRM policy",
            precondition=f"the data of {store} fits without the SCM",
            steps=change_policy(name, policy),
            risk=waits,
        ),
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


def more_members_actions(
    cluster: str, start: Iterable[tuple[str, str | None]], hosts: Iterable[str | None], missing: int
) -> tuple[Action, ...]:
    """Return the actions that add members; with none to start or create, the figures to watch.

    Args:
        start: name and host of each existing member to start; host None: not placed by the estate.
        hosts: host of each of the first members to create, None where no host has room or none is known.
    """
    actions, members = [], tuple(start)
    if members:
        steps = (Step("Start it" if host is None else f"On {host}", f"strmqm {name}") for name, host in members)
        actions.append(
            Action(
                id="start-members",
                summary=f"Start {_placed(members)}; {cluster} rebalances the connected applications",
                steps=tuple(steps),
                undo=" and ".join(f"endmqm -r {name}" for name, _ in members),
            )
        )
    if missing:
        named = [host for host in dict.fromkeys(hosts) if host is not None]
        place = f" on {', '.join(named)}" if named else ""
        actions.append(
            Action(
                id="create-members",
                summary=f"Create {missing} more for {cluster}{place}",
                steps=(
                    Step("Look up the files that the other members were created with, for -ii and -ic"),
                    Step("Create it by crtmqm with these and its CONNAME (-iv), then start it by strmqm"),
                ),
            )
        )
    idle = Action(id="wait", summary=f"Start no further member: those of {cluster} that run carry the load")
    return tuple(actions) or (idle,)


def fewer_members_actions(name: str) -> tuple[Action, ...]:
    """Return the action that removes a member."""
    return (
        Action(
            id="stop-member",
            summary="Stop one member, which moves its applications to the others",
            steps=(Step("Stop it", f"endmqm -r {name}"),),
            undo=f"strmqm {name}",
        ),
    )


def load_is_over(cluster: str, active: int, capacity: float, rate: float, depth: int) -> str:
    """Return the cause when the number of members is right again; arguments as for `members_wanted`."""
    return f"{_load_and_capacity(cluster, active, capacity, rate, depth)}; alert cleared."
