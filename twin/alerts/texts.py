"""Causes and actions of alerts of message stores, with the MQSC or SETXCF commands that help.

A cause states resource, usage with unit, time and queue. An action may be followed by its effect on the forecast:
`effects` maps an action (GETTERS, OFFLOAD, SIZE, EXPAND) to a text of `twin.forecast.remedies`.
"""

from __future__ import annotations

from collections.abc import Mapping

from twin.alerts.episodes import Filler
from twin.estate import PageSet, QueueFile, Structure, format_size
from twin.units import KIB, as_range, as_span, readable_size

GETTERS, OFFLOAD, SIZE, EXPAND = "getters", "offload", "size", "expand"  # actions
NOTHING: Mapping[str, str] = {}

SOONER_RULE_2 = (60, 4 * KIB)  # OFFLDnTH, percent, and OFFLDnSZ, bytes, of the action OFFLOAD [assumed]
SOONER_RULE_3 = (70, 0)


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


def describe_forecast(times: tuple[float, float, float], probability: float) -> str:
    """Return the clause that states when a resource is full.

    Args:
        times: seconds until full, p10, p50, p90.
        probability: of full within the horizon, 0..1.
    """
    p10, p50, p90 = times
    if p50 < 1:
        return "full now: puts fail with 2192"
    chance = f"{as_range(p10, p90)}, probability {100 * probability:.0f} %"
    return f"at the current rate full in {as_span(p50)} ({chance}), then puts fail with 2192"


def describe_rates(puts: float, gets: float, since_get: float | None) -> str:
    """Return the clause that states how a queue is served.

    Args:
        puts: puts per second.
        gets: gets per second.
        since_get: seconds since the last get; None if there was none.
    """
    if since_get is None:
        return f"{puts:.3g} puts/s, no get so far"
    if since_get >= 60:
        return f"{puts:.3g} puts/s, no get for {as_span(since_get)}"
    return f"{puts:.3g} puts/s, {gets:.3g} gets/s"


def _getters(fillers: tuple[Filler, ...], effects: Mapping[str, str]) -> list[str]:
    if not fillers:
        return []
    queue = fillers[0].queue
    action = f"Start more getters on {queue}, or find out why its getters stopped{effects.get(GETTERS, '')}"
    return [f"{action}: DISPLAY QSTATUS({queue}) TYPE(QUEUE) ALL"]


def _structure_size(config: Structure, size_now: int, effects: Mapping[str, str], alterable: bool) -> list[str]:
    cf_name = config.name.replace("/", "")
    if not alterable:
        why = "a structure with data in SCM cannot be altered"
        return [f"Raise SIZE and INITSIZE in the CFRM policy ({why}), then SETXCF START,REBUILD,STRNAME={cf_name}"]
    if size_now < config.size:
        action = f"Expand the structure to its SIZE{effects.get(SIZE, '')}"
        return [f"{action}: SETXCF START,ALTER,STRNAME={cf_name},SIZE={format_size(config.size)}"]
    why = f"the structure has reached {format_size(config.size)}"
    return [f"Raise SIZE in the CFRM policy ({why}), then SETXCF START,REBUILD,STRNAME={cf_name}"]


def pool_actions(
    config: Structure,
    resource: str,
    size_now: int,
    fillers: tuple[Filler, ...],
    effects: Mapping[str, str] = NOTHING,
    *,
    alterable: bool,
) -> tuple[str, ...]:
    """Return the actions for entries or elements. Offloading saves elements, never entries."""
    actions = _getters(fillers, effects)
    offloads = config.cf_level >= 5 and config.offload != "NONE"
    if resource == "elements" and alterable and offloads and config.offld3_th > SOONER_RULE_3[0]:
        name = config.name.partition("/")[2]
        (th2, sz2), (th3, sz3) = SOONER_RULE_2, SOONER_RULE_3
        actions.append(
            f"Offload sooner to save elements{effects.get(OFFLOAD, '')}: ALTER CFSTRUCT({name})"
            f" OFFLD2TH({th2}) OFFLD2SZ({sz2 // KIB}K) OFFLD3TH({th3}) OFFLD3SZ({sz3 // KIB}K)"
        )
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
    config: Structure, resource: str, fillers: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
) -> tuple[str, ...]:
    """Return the actions for SCM (resource scm) or storage for dynamic augmented space (resource augmented)."""
    cf_name = config.name.replace("/", "")
    facility = config.coupling_facility or "the coupling facility"
    if resource == "scm":
        room = (
            f"Raise SCMMAXSIZE of {cf_name} in the CFRM policy (do not over-commit the SCM of {facility}), then"
            f" SETXCF START,REBUILD,STRNAME={cf_name}"
        )
    else:
        room = (
            f"Free storage in {facility}: contract another structure (SETXCF START,ALTER,STRNAME=...,SIZE=...) or"
            " rebuild it into another coupling facility"
        )
    return (*_getters(fillers, effects), room)


def cannot_alter(config: Structure, used: int, messages: int) -> str:
    """Return the cause of a refused alter.

    Args:
        config: estate entry.
        used: bytes in SCM.
        messages: number of messages in SCM.
    """
    return (
        f"{config.name}: alter refused, {messages:,} messages ({readable_size(used)}) are in SCM. A structure with data"
        " in SCM cannot be altered, neither by command nor automatically"
    )


def alter_actions(config: Structure, fillers: tuple[Filler, ...]) -> tuple[str, ...]:
    """Return the actions that make a structure alterable again."""
    cf_name = config.name.replace("/", "")
    return (
        *_getters(fillers, NOTHING),
        "Alter it when `alterable` is true again: at 70 % usage and below, the coupling facility pre-fetches messages",
        f"Or change the CFRM policy, then SETXCF START,REBUILD,STRNAME={cf_name}",
    )


def dataset_actions(
    config: Structure, qmgr: str, fillers: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
) -> tuple[str, ...]:
    """Return the actions for the blocks of a shared message data set."""
    name = config.name.partition("/")[2]
    actions = _getters(fillers, effects)
    if not config.ds_expand:
        actions.append(f"Let the data set expand{effects.get(EXPAND, '')}: ALTER CFSTRUCT({name}) DSEXPAND(YES)")
    actions.append(
        f"Add volumes to the storage group of {qmgr}'s data set, or copy it to a larger one: RESET SMDS({qmgr})"
        f" CFSTRUCT({name}) ACCESS(DISABLED), copy, RESET SMDS({qmgr}) CFSTRUCT({name}) ACCESS(ENABLED)"
    )
    return tuple(actions)


def page_set_actions(
    config: PageSet, at_maximum: bool, fillers: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
) -> tuple[str, ...]:
    """Return the actions for the pages of a page set. at_maximum: it has the maximum size or number of expansions."""
    psid = config.psid
    actions = _getters(fillers, effects)
    if config.expand == "NONE":
        actions.append(f"Let the page set expand: ALTER PSID({psid}) EXPAND(SYSTEM)")
    elif config.expand == "USER" and not config.secondary_pages:
        actions.append(f"Let MQ choose the secondary extent, none is defined: ALTER PSID({psid}) EXPAND(SYSTEM)")
    elif not at_maximum:
        actions.append(
            f"Add volumes to its storage group, then retry the expansion: ALTER PSID({psid}) EXPAND({config.expand})"
        )
    if fillers:
        queue = fillers[0].queue
        actions.append(
            f"Move {queue} to a page set with free pages (DISPLAY USAGE TYPE(PAGESET)) or a new one (DEFINE PSID):"
            f" DEFINE STGCLASS(OTHER) PSID(nn), MOVE QLOCAL({queue}) TOQLOCAL(TEMP),"
            f" ALTER QLOCAL({queue}) STGCLASS(OTHER), MOVE QLOCAL(TEMP) TOQLOCAL({queue})"
        )
    return tuple(actions)


def queue_file_actions(
    config: QueueFile, fillers: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
) -> tuple[str, ...]:
    """Return the actions for a queue file that approaches its maximum size."""
    actions = _getters(fillers, effects)
    if config.file_system_size is not None and config.file_system_size <= config.max_size:
        actions.append(f"Enlarge the file system of {config.queue_manager} beyond {format_size(config.limit)}")
    else:
        actions.append(
            f"Raise the maximum file size above {format_size(config.limit)}: ALTER QLOCAL({config.queue})"
            f" MAXFSIZE(megabytes); display the current size: DISPLAY QSTATUS({config.queue}) CURFSIZE CURMAXFS"
        )
    return tuple(actions)
