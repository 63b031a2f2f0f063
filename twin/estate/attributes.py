"""Attributes of an estate by table: their checks, and those that an event may change. Described in docs/estate.md.

Sources: [IBM: MQ 9.2, DEFINE CFSTRUCT] (values of DSBLOCK, lengths of names), [IBM: MQ 9.2, DEFINE STGCLASS],
[IBM: MQ 9.2, Rules for naming IBM MQ objects].
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from twin.estate.checks import (
    WRONG,
    Check,
    block_size,
    boolean,
    disk_pages,
    disk_size,
    integer,
    names,
    number,
    one_of,
    or_none,
    or_none_for_0,
    size,
    text,
)
from twin.estate.errors import EstateError, did_you_mean, show
from twin.estate.model import ADMINISTRATION, MAX_PAGES, RULE_OFF, SMDS_MAX_SIZE, StoreConfig, Structure
from twin.units import KIB, MIB, format_size

MAX_DEPTH = 999_999_999  # largest MAXDEPTH [IBM: MQ 9.1, MaxQDepth, q103290_]
DS_BLOCKS = {f"{1 << n}K": KIB << n for n in range(3, 10)} | {"1M": MIB}  # 8K, 16K ... 512K, 1M

QUEUE_NAME = text("[A-Za-z0-9./_%]{1,48}", "a queue name: 1 to 48 letters, digits and . / _ %")
QMGR_NAME = text("[A-Za-z0-9._%]{1,48}", "a queue manager name: 1 to 48 letters, digits and . _ %")
GROUP_NAME = text("[A-Z@#$][A-Z0-9@#$]{0,3}", "the name of a queue-sharing group: 1 to 4 capitals and digits")
STRUCTURE_NAME = text(
    "[A-Z][A-Z0-9]{0,11}", "the name of a CFSTRUCT: 1 to 12 capitals and digits, without the group's name"
)
_STRUCTURE_STORE = text(
    f"[A-Z][A-Z0-9]{{0,11}}|{ADMINISTRATION}",
    f"the name of a CFSTRUCT: 1 to 12 capitals and digits, without the group's name; or {ADMINISTRATION}",
)
CFRM_POLICY_NAME = text("[A-Z@#$][A-Z0-9@#$_]{0,7}", "the name of a CFRM policy: 1 to 8 characters")
POLICY_NAME = text("[A-Z@#$][A-Z0-9@#$_]{0,15}", "the name of a structure in the CFRM policy: 1 to 16 characters")
STORAGE_CLASS_NAME = text("[A-Z0-9]{1,8}", "the name of a storage class: 1 to 8 capitals and digits")
FACILITY_NAME = text("[A-Z][A-Z0-9@#$]{0,7}", "the name of a coupling facility: 1 to 8 capitals and digits")
HOST_NAME = text("[A-Za-z0-9._-]{1,253}", "the name of a host: 1 to 253 letters, digits and . _ -")
CLUSTER_NAME = text("[A-Za-z0-9._%]{1,48}", "a cluster name: 1 to 48 letters, digits and . _ %")

FORECAST: Mapping[str, Check] = {
    "forecast_horizon_s": number(59, 86_400),
    "forecast_lead_s": number(0, 86_400),
    "forecast_miss_cost": number(0, 10),
    "forecast_page_lead_s": number(0, 86_400),
    "forecast_probability": number(0, 1),
}
STRUCTURE: Mapping[str, Check] = {
    "coupling_facility": FACILITY_NAME,
    "size": size(1),
    "init_size": size(1),
    "full_threshold": integer(0, 100),
    "allow_auto_alter": boolean,
    "scm_max_size": or_none_for_0(size(0)),
    "scm_prestage_rate": size(MIB),
    "scm_prefetch_rate": size(MIB),
    "scm_read_us": integer(0, 1_000_000),
    "cf_level": integer(1, 5),
    "offload": one_of("SMDS", "DB2", "NONE"),
    **{f"offld{n}_th": integer(0, 100) for n in (1, 2, 3)},
    **{f"offld{n}_sz": size(0, RULE_OFF) for n in (1, 2, 3)},
    "ds_block": block_size(DS_BLOCKS),
    "ds_expand": boolean,
    "smds_prefix": integer(0, 400),
    "offload_min_length": integer(0, RULE_OFF),
    "drift_tolerance_pct": number(0, 100),
    **FORECAST,
}
LEVELS: Mapping[str, Check] = {  # of a structure that holds no queues
    **{name: STRUCTURE[name] for name in ("coupling_facility", "size", "init_size", "full_threshold")},
    "allow_auto_alter": boolean,
    **FORECAST,
}
SMDS: Mapping[str, Check] = {
    "size": disk_size(1, SMDS_MAX_SIZE),
    "secondary": disk_size(0, SMDS_MAX_SIZE),
    "max_size": disk_size(1, SMDS_MAX_SIZE),
}
PAGE_SET: Mapping[str, Check] = {
    "pages": disk_pages(2, MAX_PAGES),
    "expand": one_of("SYSTEM", "USER", "NONE"),
    "secondary_pages": disk_pages(0, MAX_PAGES),
    "buffer_pool": integer(0, 99),
    "max_pages": disk_pages(2, MAX_PAGES),
    "drift_tolerance_pct": number(0, 100),
    **FORECAST,
}
STORAGE_CLASS: Mapping[str, Check] = {"page_set": integer(0, 99)}
QUEUE: Mapping[str, Check] = {
    "structure": STRUCTURE_NAME,
    "storage_class": STORAGE_CLASS_NAME,
    "max_depth": integer(1, MAX_DEPTH),
}
QUEUE_FILE: Mapping[str, Check] = {
    "max_size": size(1),
    "file_system_size": size(1),
    "default_q_buffer_size": size(0),
    "default_pq_buffer_size": size(0),
    "drift_tolerance_pct": number(0, 100),
    **FORECAST,
}
COUPLING_FACILITY: Mapping[str, Check] = {
    "size": size(1),
    "scm": size(0),
    "cflevel": integer(1, 99),
    "dump_space": size(0),
}
UNIFORM_CLUSTER: Mapping[str, Check] = {
    "queue_managers": names(QMGR_NAME, "queue managers"),
    "messages_per_second": number(0, 1e9),
    "cpu_us": number(0, 1e9),
    "trigger_pct": number(75, 100),
}
HOST: Mapping[str, Check] = {"cores": number(0, 1e6)}
QUEUE_SHARING_GROUP: Mapping[str, Check] = {"queue_managers": names(QMGR_NAME, "queue managers")}
QUEUE_MANAGER: Mapping[str, Check] = {
    "platform": one_of("zos", "distributed"),
    "version": text("[0-9]+(\\.[0-9]+)*", 'a string like "9.4"'),
    "expiry_interval_s": number(0, 99_999_999, or_low=True),
    "silence_s": number(0, 604_800),
    "host": HOST_NAME,
}

_ASSUMPTIONS = (  # of the model, not settings of MQ
    *("scm_prestage_rate", "scm_prefetch_rate", "scm_read_us"),
    *("smds_prefix", "offload_min_length", "drift_tolerance_pct", *FORECAST),
)
_AT_START = ("default_q_buffer_size", "default_pq_buffer_size")  # in effect from the next start of the queue manager
_OF_MACHINE = ("cflevel", "dump_space")  # no event changes it: another machine or policy does
_MAY_BE_ABSENT = ("init_size", "scm_max_size", "secondary_pages", "max_pages", "file_system_size", "scm")


def _settings(table: Mapping[str, Check]) -> Mapping[str, Check]:
    """Return the attributes of a table that may change while the store exists."""
    return {key: check for key, check in table.items() if key not in (*_ASSUMPTIONS, *_AT_START, *_OF_MACHINE)}


_ALTERABLE: Mapping[str, Mapping[str, Check]] = {
    "structure": _settings(STRUCTURE),
    "page_set": _settings(PAGE_SET),
    "queue_file": _settings(QUEUE_FILE),
    "coupling_facility": _settings(COUPLING_FACILITY),
    "uniform_cluster": UNIFORM_CLUSTER,
    "queue_manager": {},
}


_OF_LEVELS = _settings(LEVELS)


@dataclass(frozen=True, slots=True)
class Section:
    """Table of the TOML file: the form of its keys, and the attributes under a key."""

    key: tuple[Check, ...]  # the parts of its name, between slashes
    example: str
    attributes: Mapping[str, Check]
    required: tuple[str, ...] = ()


_PSID = text("[0-9]{1,2}", "a page set number, 0 to 99")

SECTIONS: Mapping[str, Section] = {
    "coupling_facility": Section((FACILITY_NAME,), "CF01", COUPLING_FACILITY, ("size",)),
    "queue_sharing_group": Section((GROUP_NAME,), "QSG1", QUEUE_SHARING_GROUP, ("queue_managers",)),
    "queue_manager": Section((QMGR_NAME,), "QM01", QUEUE_MANAGER),
    "host": Section((HOST_NAME,), "QMHost1", HOST, ("cores",)),
    "structure": Section((GROUP_NAME, _STRUCTURE_STORE), "QSG1/APP1", STRUCTURE),
    "other_structure": Section((POLICY_NAME,), "LOGSTR1", LEVELS),
    "smds": Section((GROUP_NAME, STRUCTURE_NAME, QMGR_NAME), "QSG1/APP1/QM01", SMDS, ("size",)),
    "page_set": Section((QMGR_NAME, _PSID), "QM01/4", PAGE_SET),
    "storage_class": Section((QMGR_NAME, STORAGE_CLASS_NAME), "QM01/DEFAULT", STORAGE_CLASS, ("page_set",)),
    "queue": Section((QMGR_NAME, QUEUE_NAME), "QSG1/ORDERS", QUEUE),
    "queue_file": Section((QMGR_NAME, QUEUE_NAME), "QMD1/INVOICES", QUEUE_FILE),
    "uniform_cluster": Section((CLUSTER_NAME,), "UC01", UNIFORM_CLUSTER, ("queue_managers", "messages_per_second")),
}


def parse_attributes(
    config: StoreConfig, op: Literal["ALTER", "REBUILD"], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the checked `attributes` of an ALTER or REBUILD event, sizes in bytes; see docs/events.md.

    None (null in JSON) removes `init_size`, `scm_max_size`, `secondary_pages`, `max_pages`, `file_system_size` or
    `scm`. Whether the store accepts the attributes with its current contents is decided by the twin.

    Args:
        config: the store.
        op: the operation.
        attributes: attributes of the event, named as in the estate.

    Returns:
        Values by the field names of the store's dataclass.

    Raises:
        EstateError: unknown key, wrong type, value out of range, values that contradict each other, or a REBUILD of a
            store that is no structure. It names the key, the value and the expected value.
    """
    if op == "REBUILD" and config.kind != "structure":
        raise EstateError(f"REBUILD of {config.name}: only a structure is rebuilt; send ALTER")
    table = _ALTERABLE[config.kind]
    if isinstance(config, Structure) and not config.holds_queues:
        table = _OF_LEVELS
    parsed = {}
    for key, value in attributes.items():
        if not table:
            raise EstateError(f"{op} of {config.name}: {key} = {show(value)}: expected: none")
        if key not in table:
            raise EstateError(f"{op} of {config.name}: {_unknown(key, table)}")
        check = or_none(table[key]) if key in _MAY_BE_ABSENT else table[key]
        try:
            parsed[key] = check(value)
        except WRONG as wrong:
            raise EstateError(f"{op} of {config.name}: {key} = {show(value)}: {wrong}") from None
    wrong_together = incompatible(parsed)
    if wrong_together:
        raise EstateError(f"{op} of {config.name}: {wrong_together[1]}")
    return parsed


def incompatible(values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the first attribute that contradicts another and the expected value, or None.

    INITSIZE is at most SIZE [IBM: z/OS MVS Setting Up a Sysplex, CFRM parameters]. OFFLOAD(SMDS) and OFFLOAD(DB2) need
    CFLEVEL(5), and CFLEVEL(5) needs one of them [IBM: MQ 9.2, DEFINE CFSTRUCT].
    """
    init_size, size = values.get("init_size"), values.get("size")
    if init_size is not None and size is not None and init_size > size:
        return "init_size", f"init_size, {format_size(init_size)}, must be at most size, {format_size(size)}"
    level, offload = values.get("cf_level"), values.get("offload")
    if level is not None and level < 5 and offload in ("SMDS", "DB2"):
        return "offload", f'offload "{offload}" needs cf_level 5, it is {level}: raise it, or leave offload out'
    if level == 5 and offload == "NONE":
        return "offload", 'offload "NONE" goes with a cf_level below 5: at 5 it must be "SMDS" or "DB2"'
    pages, volumes = values.get("pages"), values.get("max_pages")
    if pages is not None and volumes is not None and pages > volumes:
        return "max_pages", f"max_pages ({volumes}) must be at least pages ({pages})"
    return None


def _unknown(key: str, table: Mapping[str, Check]) -> str:
    if key in _ASSUMPTIONS:
        return f"{key} is an assumption of the model and fixed by the estate; what may change is {', '.join(table)}"
    if key in _AT_START:
        return f"{key} is taken when the queue manager starts: change the estate; what may change is {', '.join(table)}"
    return f"unknown attribute {show(key)}{suggest_key(key, table)}"


def suggest_key(key: str, known: Collection[str]) -> str:
    """Return what may have been meant by an unknown key, else the known ones, but only the number of assumptions."""
    main = [name for name in known if name not in _ASSUMPTIONS]
    more = f" and {len(known) - len(main)} more" if len(main) < len(known) else ""
    return did_you_mean(key, known) or f"; known are {', '.join(main)}{more}"
