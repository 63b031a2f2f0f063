"""A plan as text: what people are to do, and the MQSC and CFRM texts of it.

Sources: [IBM: MQ, ALTER CFSTRUCT; RESET SMDS; ALTER SMDS; ALTER PSID], [IBM: z/OS MVS Setting Up a Sysplex, CFRM
parameters for administrative data utility].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twin.estate import PageSet, QueueFile, StoreConfig, Structure, format_size
from twin.estate.cfrm_text import activation, structure_statement
from twin.units import KIB, MIB

_POLICY = ("size", "init_size", "scm_max_size", "allow_auto_alter")


def mqsc(config: StoreConfig, settings: Mapping[str, Any]) -> str:
    """Return the MQSC commands of a plan that the estate reads too; "": none.

    Args:
        config: the store as it is.
        settings: those that the plan changes.
    """
    if isinstance(config, Structure):
        words = [_word(name, value) for name, value in settings.items() if name.startswith(("offld", "ds_expand"))]
        return f"ALTER CFSTRUCT({config.name.partition('/')[2]}) {' '.join(words)}\n" if words else ""
    if isinstance(config, PageSet) and "expand" in settings:
        return f"ALTER PSID({config.psid}) EXPAND({settings['expand']})\n"
    if isinstance(config, QueueFile) and "max_size" in settings:
        return f"ALTER QLOCAL({config.queue}) MAXFSIZE({settings['max_size'] // MIB})\n"
    return ""


def cfrm(changed: StoreConfig, settings: Mapping[str, Any]) -> str:
    """Return the STRUCTURE statement of a plan for the CFRM policy; "": the policy stays. changed: with the plan."""
    if not isinstance(changed, Structure) or settings.keys().isdisjoint(_POLICY):
        return ""
    return structure_statement(changed) + "\n"


def steps(config: StoreConfig, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a plan asks people to do, with commands, in order. Arguments as of `mqsc`."""
    lines: list[str] = []
    command = mqsc(config, settings).strip()
    if isinstance(config, Structure):
        if any(name.startswith("offld") for name in settings):
            lines.append(f"Offload sooner: {command}")
        elif command:
            lines.append(f"Let data sets expand: {command}")
        lines += _policy_steps(config, settings)
        for qmgr in dict.fromkeys(name.split(".")[1] for name in settings if name.startswith("smds.")):
            lines.append(_data_set_step(config, qmgr, settings))
    elif isinstance(config, PageSet):
        lines += _page_set_steps(config, settings, command)
    elif "max_size" in settings:
        if "file_system_size" in settings:
            lines.append(f"Give its file system room for {format_size(settings['file_system_size'])}")
        lines.append(f"Raise the maximum size of the queue file: {command}")
    return tuple(lines)


def _policy_steps(config: Structure, settings: Mapping[str, Any]) -> list[str]:
    names = {"size": "SIZE", "init_size": "INITSIZE", "scm_max_size": "SCMMAXSIZE"}
    words = [f"{word}({format_size(settings[name])})" for name, word in names.items() if name in settings]
    if not words:
        return []
    if "scm_max_size" in settings:
        words.insert(-1, "SCMALGORITHM(KEYPRIORITY1)")
    if "allow_auto_alter" in settings:
        words.append("ALLOWAUTOALT(NO)")
    name = config.policy_name
    return [f"Set STRUCTURE NAME({name}) {' '.join(words)} in the CFRM policy: {activation(name, config.cfrm_policy)}"]


def _data_set_step(config: Structure, qmgr: str, settings: Mapping[str, Any]) -> str:
    target = f"SMDS({qmgr}) CFSTRUCT({config.short_name})"
    size = settings.get(f"smds.{qmgr}.size")
    if size is not None:
        return (
            f"Copy {qmgr}'s data set to one of {format_size(size)}: RESET {target} ACCESS(DISABLED), copy the data set,"
            f" RESET {target} ACCESS(ENABLED)"
        )
    return (
        f"Add volumes to the storage group of {qmgr}'s data set, so that it can grow to"
        f" {format_size(settings[f'smds.{qmgr}.max_size'])}; if an expansion has failed:"
        f" ALTER {target} DSEXPAND(YES)"
    )


def _page_set_steps(config: PageSet, settings: Mapping[str, Any], command: str) -> list[str]:
    lines = [f"Let the page set expand: {command}"] if command else []
    if "pages" in settings:
        size = f"{settings['pages']:,} pages of 4 KB"
        lines.append(f"Copy the page set to a data set of {size} while {config.queue_manager} is down")
    elif "max_pages" in settings:
        size = f"{settings['max_pages']:,} pages of 4 KB"
        lines.append(f"Add volumes to the storage group of the page set, so that it can grow to {size}")
    return lines


def _word(name: str, value: Any) -> str:
    if name == "ds_expand":
        return f"DSEXPAND({'YES' if value else 'NO'})"
    text = f"{int(value) // KIB}K" if name.endswith("_sz") else str(value)
    return f"{name.upper().replace('_', '')}({text})"
