"""Causes and actions of alerts in words an administrator can act on, with the MQSC or SETXCF text that helps.

Beside an action stands what it would change, where the forecast was asked: `effects`, by what is done
(`twin.forecast.remedies`).
"""

from __future__ import annotations

from collections.abc import Mapping

from twin.alerts.episodes import Filler
from twin.estate import PageSet, QueueFile, Structure, format_size
from twin.units import as_range, as_span


def filled_by(fillers: tuple[Filler, ...], grown: int, unit: str, span: str) -> str:
    """The sentence part that names the queue which fills; grown: what all queues added in `span`, in `unit`."""
    if not fillers:
        return "no queue of the estate holds any of it"
    first = fillers[0]
    if grown > 0:
        return f"{first.queue} made {100 * first.share:.0f} % of the growth of {grown:,} {unit} in the last {span}"
    return f"{first.queue} holds {100 * first.share:.0f} % of what is in use"


def as_it_goes(times: tuple[float, float, float], probability: float) -> str:
    """The sentence part that says when something is full. times: seconds until then, p10, p50, p90."""
    p10, p50, p90 = times
    if p50 < 1:
        return "they are used up"
    return f"as it goes, they are used up in {as_span(p50)} ({as_range(p10, p90)}; {100 * probability:.0f} % likely)"


GETTERS, OFFLOAD, SIZE, EXPAND = "getters", "offload", "size", "expand"  # what can be done
NOTHING: Mapping[str, str] = {}


def served(queue: str, puts: float, gets: float, silent: float | None) -> str:
    """The sentence part that says how a queue is served. puts, gets: a second; silent: seconds without a get.

    silent None: nothing was ever got from it.
    """
    if silent is None:
        return f"nothing has been got from {queue} yet"
    if silent >= 60:
        return f"nothing has been got from {queue} for {as_span(silent)}"
    return f"{queue} gets {puts:.3g} puts and {gets:.3g} gets a second"


def _getters(fillers: tuple[Filler, ...], effects: Mapping[str, str]) -> list[str]:
    if not fillers:
        return []
    queue = fillers[0].queue
    why = f"Start more getters on {queue}, or find out why those it has stopped{effects.get(GETTERS, '')}"
    return [f"{why}: DISPLAY QSTATUS({queue}) TYPE(QUEUE) ALL"]


def _structure_size(config: Structure, size_now: int, effects: Mapping[str, str], alterable: bool) -> list[str]:
    cf_name = config.name.replace("/", "")
    if not alterable:
        stands = "It cannot be altered while data is in storage class memory"
        return [f"{stands}: raise SIZE and INITSIZE in the CFRM policy, then SETXCF START,REBUILD,STRNAME={cf_name}"]
    if size_now < config.size:
        grow = f"Let the structure grow to its SIZE{effects.get(SIZE, '')}"
        return [f"{grow}: SETXCF START,ALTER,STRNAME={cf_name},SIZE={format_size(config.size)}"]
    at_most = f"The structure is at its SIZE of {format_size(config.size)}"
    return [f"{at_most}: raise SIZE of {cf_name} in the CFRM policy, then SETXCF START,REBUILD,STRNAME={cf_name}"]


def pool_actions(
    config: Structure,
    resource: str,
    size_now: int,
    fillers: tuple[Filler, ...],
    effects: Mapping[str, str] = NOTHING,
    *,
    alterable: bool,
) -> tuple[str, ...]:
    """What helps where entries or elements run out. Offloading frees elements, never entries."""
    actions = _getters(fillers, effects)
    offloads = config.cf_level >= 5 and config.offload != "NONE"
    if resource == "elements" and alterable and offloads and config.offld3_th > 70:
        name = config.name.partition("/")[2]
        actions.append(
            f"Offload sooner, which spares elements{effects.get(OFFLOAD, '')}: "
            f"ALTER CFSTRUCT({name}) OFFLD2TH(60) OFFLD2SZ(4K) OFFLD3TH(70) OFFLD3SZ(0K)"
        )
    return tuple(actions + _structure_size(config, size_now, effects, alterable))


def stopped_staging(of: str, used: int, most: int, usage_pct: float) -> str:
    """That messages are not moved out any more. of: what is used up; usage_pct: of the structure."""
    return (
        f"{used:,} of the {most:,} {of} are in use and the next message finds no room: the structure fills, "
        f"{usage_pct:.1f} % are in use, then puts get 2192"
    )


def scm_actions(
    config: Structure, resource: str, fillers: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
) -> tuple[str, ...]:
    """What helps where storage class memory (scm), or storage for dynamic augmented space (augmented), runs out."""
    cf_name = config.name.replace("/", "")
    facility = config.coupling_facility or "the coupling facility"
    if resource == "scm":
        room = (
            f"Raise SCMMAXSIZE of {cf_name} in the CFRM policy, as far as {facility} has storage class memory: never "
            f"over-commit it; then SETXCF START,REBUILD,STRNAME={cf_name}"
        )
    else:
        room = (
            f"Free storage of {facility}: make another structure smaller (SETXCF START,ALTER,STRNAME=...,SIZE=...), "
            "or rebuild it into another coupling facility"
        )
    return (*_getters(fillers, effects), room)


def cannot_alter(config: Structure, used: int, messages: int) -> str:
    """That an alter was refused, with what is in storage class memory."""
    return (
        f"An alter of {config.name} was refused: while data is in storage class memory ({messages:,} messages, "
        f"{used:,} bytes) a structure cannot be altered, by hand or automatically"
    )


def alter_actions(config: Structure, fillers: tuple[Filler, ...]) -> tuple[str, ...]:
    """What makes a structure alterable again."""
    cf_name = config.name.replace("/", "")
    return (
        *_getters(fillers, NOTHING),
        "Alter it when `alterable` is true again: at 70 % and below the coupling facility brings messages back",
        f"Or change its CFRM policy, then SETXCF START,REBUILD,STRNAME={cf_name}",
    )


def dataset_actions(
    config: Structure, qmgr: str, fillers: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
) -> tuple[str, ...]:
    """What helps where a shared message data set runs out of blocks."""
    name = config.name.partition("/")[2]
    actions = _getters(fillers, effects)
    if not config.ds_expand:
        actions.append(f"Let the data set expand{effects.get(EXPAND, '')}: ALTER CFSTRUCT({name}) DSEXPAND(YES)")
    actions.append(
        f"Give the data set of {qmgr} more space: add volumes to its storage group, or RESET SMDS({qmgr}) "
        f"CFSTRUCT({name}) ACCESS(DISABLED), copy it to a larger one, ACCESS(ENABLED)"
    )
    return tuple(actions)


def page_set_actions(
    config: PageSet, at_maximum: bool, fillers: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
) -> tuple[str, ...]:
    """What helps where a page set runs out of pages. at_maximum: MQ lets it grow no further."""
    psid = config.psid
    actions = _getters(fillers, effects)
    if config.expand == "NONE":
        actions.append(f"Let the page set expand: ALTER PSID({psid}) EXPAND(SYSTEM)")
    elif config.expand == "USER" and not config.secondary_pages:
        actions.append(f"It has no secondary extent, let it choose its own: ALTER PSID({psid}) EXPAND(SYSTEM)")
    elif not at_maximum:
        actions.append(
            f"Add volumes to its storage group, then let it try again: ALTER PSID({psid}) EXPAND({config.expand})"
        )
    if fillers:
        queue = fillers[0].queue
        actions.append(
            f"Move {queue} to a page set with room (DISPLAY USAGE TYPE(PAGESET)) or to a new one (DEFINE PSID):"
            f" DEFINE STGCLASS(OTHER) PSID(nn), MOVE QLOCAL({queue}) TOQLOCAL(TEMP),"
            f" ALTER QLOCAL({queue}) STGCLASS(OTHER), MOVE QLOCAL(TEMP) TOQLOCAL({queue})"
        )
    return tuple(actions)


def queue_file_actions(
    config: QueueFile, fillers: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
) -> tuple[str, ...]:
    """What helps where a queue file comes near to what it may be."""
    actions = _getters(fillers, effects)
    if config.file_system_size is not None and config.file_system_size <= config.max_size:
        actions.append(f"Give the file system of {config.queue_manager} more space than {format_size(config.limit)}")
    else:
        actions.append(
            f"Let the file grow beyond {format_size(config.limit)}: ALTER QLOCAL({config.queue}) MAXFSIZE(megabytes);"
            f" DISPLAY QSTATUS({config.queue}) CURFSIZE CURMAXFS says what holds now"
        )
    return tuple(actions)
