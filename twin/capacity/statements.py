"""Statements that an operator types, each once, and the plan of a change as such statements and steps.

Sources: [IBM: MQ, ALTER CFSTRUCT; RESET SMDS; ALTER SMDS; ALTER PSID], [IBM: z/OS MVS System Commands, DISPLAY CF,
DISPLAY XCF and SETXCF], [IBM: z/OS MVS Setting Up a Sysplex, CFRM parameters for administrative data utility].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from twin.estate import MessageStoreConfig, OffloadRule, PageSet, QueueFile, StoreConfig, Structure, format_size
from twin.estate.model import mqsc_name
from twin.estate.settings import DataSetSetting
from twin.records import Step
from twin.units import KIB


def alter_rules(config: Structure, rules: Iterable[OffloadRule]) -> str:
    """Return the MQSC command that sets all offload rules: six values, in order."""
    values = (f"OFFLD{rule.number}TH({rule.th}) OFFLD{rule.number}SZ({rule.sz // KIB}K)" for rule in rules)
    return f"ALTER {config.mqsc_object} {' '.join(values)}"


def display_queue_status(queue: str, words: str) -> str:
    """Return the MQSC command that displays the status of a queue. words: what of it."""
    return f"DISPLAY QSTATUS({mqsc_name(queue)}) {words}"


def display_structure_status(config: Structure) -> str:
    """Return the MQSC command that displays entries and size of a CF structure."""
    return f"DISPLAY CFSTATUS({mqsc_name(config.short_name)}) TYPE(SUMMARY)"


def expand_data_set(config: Structure, qmgr: str) -> str:
    """Return the MQSC command that lets a shared message data set expand again after a failed expansion."""
    return f"ALTER SMDS({mqsc_name(qmgr)}) CFSTRUCT({mqsc_name(config.short_name)}) DSEXPAND(YES)"


def copy_data_set(config: Structure, qmgr: str) -> tuple[Step, ...]:
    """Return the steps that copy a shared message data set to a larger one [IBM: MQ 9.2, RESET SMDS]."""
    reset = f"RESET SMDS({mqsc_name(qmgr)}) CFSTRUCT({mqsc_name(config.short_name)})"
    return (
        Step(
            "See its name, which has the queue manager in place of the asterisk",
            f"DISPLAY {config.mqsc_object} DSGROUP",
        ),
        Step("Close it in all members", f"{reset} ACCESS(DISABLED)"),
        Step("Copy it to a larger data set, and give that one its name"),
        Step("Let the members open it", f"{reset} ACCESS(ENABLED)"),
    )


def alter_size(structure: str, size: int) -> str:
    """Return the operator command that changes the size of a structure, bytes rounded up to KB, its unit."""
    return f"SETXCF START,ALTER,STRNAME={structure},SIZE={policy_size(size)}"


def rebuild(structure: str) -> str:
    """Return the operator command that rebuilds a structure. structure: its name in the policy."""
    return f"SETXCF START,REBUILD,STRNAME={structure}"


def change_policy(structure: str, policy: str | None, sizes: Iterable[str] = (), without: str = "") -> tuple[Step, ...]:
    """Return the steps by which a change of the CFRM policy takes effect [IBM: APAR II08695]. `policy` is None if not
    known; `sizes` has the parts of its STRUCTURE statement that change, its name in front, none: the reader chooses;
    `without` names keywords to remove.
    """
    statement = " ".join(sizes) or None
    where = f"policy {policy}" if policy else "the CFRM policy"
    removed = f"remove {without}, " if without else ""
    change = f"Change this in {where}, {removed}keep the rest, and run IXCMIAPU with the whole policy"
    if statement is None:
        change = f"Change the STRUCTURE statement of {structure} in {where}, and run IXCMIAPU with the whole policy"
    if policy:
        activate = [Step("Activate the policy", f"SETXCF START,POLICY,TYPE=CFRM,POLNAME={policy}")]
    else:
        activate = [
            Step("Look up the name of the active policy", "D XCF,POLICY,TYPE=CFRM"),
            Step("Activate the policy of that name by SETXCF START,POLICY,TYPE=CFRM"),
        ]
    return (Step(change, statement), *activate, Step("Rebuild the structure", rebuild(structure)))


def alter_if_policy_allows(structure: str, size: int) -> tuple[Step, ...]:
    """Return the steps before changing a policy that was not seen: its SIZE may have room for `size` bytes already."""
    has_room = f"If that is {policy_size(size)} or more, alter the size; nothing else is needed"
    return (
        Step("See POLICY SIZE, up to which it can be altered", display_structure(structure)),
        Step(has_room, alter_size(structure, size)),
    )


def as_sentence(steps: Iterable[Step]) -> str:
    """Return steps in their order as part of a sentence."""
    return "; ".join(step.line for step in steps)


def display_facility(facility: str) -> str:
    """Return the operator command that displays a coupling facility."""
    return f"D CF,CFNAME={facility}"


def display_structure(structure: str) -> str:
    """Return the operator command that displays a structure. structure: its name in the policy."""
    return f"D XCF,STR,STRNAME={structure}"


def structure_sizes(structure: str, size: int | None, init_size: int | None, scm_max_size: int | None) -> list[str]:
    """Return the parts of a STRUCTURE statement of a CFRM policy up to its sizes, each rounded up to KB. Sizes in
    bytes; None: it stays. `scm_max_size` 0 goes, and has no text.
    """
    parts = [f"STRUCTURE NAME({structure})"]
    if size is not None:
        parts.append(f"SIZE({policy_size(size)})")
    if init_size is not None:
        parts.append(f"INITSIZE({policy_size(init_size)})")
    if scm_max_size:
        parts.append(f"SCMALGORITHM(KEYPRIORITY1) SCMMAXSIZE({policy_size(scm_max_size)})")
    return parts


def structure_statement(config: Structure) -> str:
    """Return the STRUCTURE statement of what the estate knows of a policy, which `twin.estate.cfrm` reads."""
    name, *sizes = structure_sizes(config.policy_name, config.size, config.init_size, config.scm_max_size)
    parts = [f"{name} {sizes[0]}", *sizes[1:]]
    parts.append(f"FULLTHRESHOLD({config.full_threshold}) ALLOWAUTOALT({'YES' if config.allow_auto_alter else 'NO'})")
    if config.coupling_facility is not None:
        parts.append(f"PREFLIST({config.coupling_facility})")
    return "\n  ".join(parts)


def policy_size(size: int) -> str:
    """Return bytes as text, rounded up to KB: a number without a unit would be KB in a policy and in SETXCF."""
    return format_size(-(-size // KIB) * KIB)


def mqsc(config: MessageStoreConfig, settings: Mapping[str, Any]) -> str:
    """Return the MQSC commands of a plan that the estate reads too; "": none."""
    rows = config.rows
    known = [(rows[name], value) for name, value in settings.items() if name in rows]
    words = [row.statement(value) for row, value in known if row.mqsc and row.action]
    return f"ALTER {config.mqsc_object} {' '.join(words)}\n" if words else ""


def cfrm(changed: StoreConfig, settings: Mapping[str, Any]) -> str:
    """Return the STRUCTURE statement of a plan for the CFRM policy; "": the policy stays. changed: with the plan."""
    if isinstance(changed, Structure) and any(name in settings for name, row in Structure.rows.items() if row.cfrm):
        return structure_statement(changed) + "\n"
    return ""


def steps(config: MessageStoreConfig, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a plan asks people to do, with commands, in order. Arguments as of `mqsc`."""
    lines: list[str] = []
    command = mqsc(config, settings).strip()
    match config:
        case Structure() if settings.get("scm_max_size") == 0:
            lines += _leave_scm_steps(config, settings, command)
        case Structure():
            if any(name.startswith("offld") for name in settings):
                lines.append(f"Offload sooner: {command}")
            elif command:
                lines.append(f"Let data sets expand: {command}")
            lines += [*_policy_steps(config, settings), *_data_set_steps(config, settings)]
        case PageSet():
            lines += _page_set_steps(config, settings, command)
        case QueueFile() if "max_size" in settings:
            if "file_system_size" in settings:
                lines.append(f"Give its file system room for {format_size(settings['file_system_size'])}")
            lines.append(f"Raise the maximum size of the queue file: {command}")
    return tuple(lines)


def _policy_steps(config: Structure, settings: Mapping[str, Any]) -> list[str]:
    name, sizes = config.policy_name, (settings.get(key) for key in ("size", "init_size", "scm_max_size"))
    words = structure_sizes(name, *sizes)
    if len(words) == 1:
        return []
    if "allow_auto_alter" in settings:
        words.append("ALLOWAUTOALT(NO)")
    policy = change_policy(name, config.cfrm_policy, words)
    if "size" in settings and not config.is_policy_seen and config.scm_max_size is None:
        policy = (*alter_if_policy_allows(name, settings["size"]), *policy)
    return [f"Raise the sizes of {name}: {as_sentence(policy)}"]


def _leave_scm_steps(config: Structure, settings: Mapping[str, Any], command: str) -> list[str]:
    """Return how a structure gives up its SCM, in the order in which it can be done.

    MQSC is taken while data is in SCM, size and ratio cannot change until then [IBM: How storage class memory works]; a
    rebuild moves data from SCM into the structure, so SCM has to be emptied first. The policy takes effect by it.
    `command`: its MQSC command or "".
    """
    name = config.policy_name
    lines = _data_set_steps(config, settings)
    if command:
        lines.append(f"Offload sooner, in effect at once, also while data is in SCM: {command}")
    drained = "it comes back when getters have taken the structure to 70 % or below"
    lines.append(f"Wait until no data is in SCM, {drained}: {display_structure(name)}")
    if "size" in settings and config.coupling_facility is not None:
        size = format_size(settings["size"])
        lines.append(
            f"See that {config.coupling_facility} has {size} free, as both structures exist during a rebuild:"
            f" {display_facility(config.coupling_facility)}"
        )
    words = structure_sizes(name, settings.get("size", config.size), settings.get("init_size"), 0)
    policy = change_policy(name, config.cfrm_policy, words, "SCMALGORITHM and SCMMAXSIZE")
    lines.append(f"Take SCM out of {name}: {as_sentence(policy)}")
    lines.append(f"See that no change of the policy is pending: {display_structure(name)}")
    return lines


def _data_set_steps(config: Structure, settings: Mapping[str, Any]) -> list[str]:
    qmgrs = dict.fromkeys(setting.qmgr for name in settings if (setting := DataSetSetting.parse(name)))
    return [_data_set_step(config, qmgr, settings) for qmgr in qmgrs]


def _data_set_step(config: Structure, qmgr: str, settings: Mapping[str, Any]) -> str:
    size = settings.get(str(DataSetSetting(qmgr, "size")))
    if size is not None:
        return f"Copy {qmgr}'s data set to one of {format_size(size)}: {as_sentence(copy_data_set(config, qmgr))}"
    maximum = format_size(settings[str(DataSetSetting(qmgr, "max_size"))])
    growth = f"Add volumes to the storage group of {qmgr}'s data set, so that it can grow to {maximum}"
    return f"{growth}; if an expansion has failed: {expand_data_set(config, qmgr)}"


def _page_set_steps(config: PageSet, settings: Mapping[str, Any], command: str) -> list[str]:
    lines = [f"Let the page set expand: {command}"] if command else []
    if "pages" in settings:
        size = f"{settings['pages']:,} pages of 4 KB"
        lines.append(f"Copy the page set to a data set of {size} while {config.queue_manager} is down")
    elif "max_pages" in settings:
        size = f"{settings['max_pages']:,} pages of 4 KB"
        lines.append(f"Add volumes to the storage group of the page set, so that it can grow to {size}")
    return lines
