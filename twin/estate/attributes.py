"""Attributes of an estate by table: their checks, words in MQSC and CFRM, and what changes them: docs/estate.md.

Sources: [IBM: MQ 9.2, DEFINE CFSTRUCT] (values of DSBLOCK, lengths of names), [IBM: MQ 9.2, DEFINE STGCLASS],
[IBM: MQ 9.2, Rules for naming IBM MQ objects].
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from twin.estate.checks import (
    WRONG,
    Check,
    blank_or,
    block_size,
    boolean,
    digits,
    disk_pages,
    disk_size,
    integer,
    mapped,
    names,
    number,
    one_of,
    or_none,
    or_none_for_0,
    size,
    text,
    with_unit,
)
from twin.estate.errors import EstateError, did_you_mean, show
from twin.estate.model import (
    ADMINISTRATION,
    MAX_PAGES,
    QUEUE_FILE_MAX_SIZE,
    RULE_OFF,
    SMDS_MAX_SIZE,
    StoreConfig,
    Structure,
)
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

Words = tuple[str, Check]
"""Keyword of an attribute in another text, and the check of its value there."""


class Change(Enum):
    """The ways in which an attribute changes while its store exists."""

    EVENT = "ALTER or REBUILD"
    START = "the next start of the queue manager"
    MACHINE = "another machine or policy"
    NOTHING = "an assumption of the model, not a setting of MQ"


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a store; called with a value of the TOML file or of an event, it checks it.

    Args:
        check: the check.
        mqsc: its words in MQSC; None: it has none.
        cfrm: its words in a CFRM policy; None: it has none.
        change: what changes it.
        may_be_absent: True if null in an event removes it.
    """

    check: Check
    mqsc: Words | None = None
    cfrm: Words | None = None
    change: Change = Change.EVENT
    may_be_absent: bool = False

    def __call__(self, value: Any) -> Any:
        """Return a value as the estate has it. Raises as the check."""
        return self.check(value)


Table = Mapping[str, Attribute]
"""Attributes by name."""


def _queue_file_size(value: str) -> int:
    """Convert MAXFSIZE, DEFAULT or megabytes, to bytes [IBM: MQ 10.0, Modifying queue files]."""
    if value == "DEFAULT":
        return QUEUE_FILE_MAX_SIZE
    megabytes: int = with_unit(MIB, 1, 999_999_999, "")(value)
    return megabytes


def _assumed(check: Check) -> Attribute:
    return Attribute(check, change=Change.NOTHING)


_DRIFT = {"drift_tolerance_pct": _assumed(number(0, 100))}
_YES_NO = mapped({"YES": True, "NO": False})
_POLICY_SIZE = size(1, unit="K")
_NUMBERED = {  # of the three offload rules
    **{f"offld{n}_th": Attribute(integer(0, 100), mqsc=(f"OFFLD{n}TH", digits(0, 100))) for n in (1, 2, 3)},
    **{
        f"offld{n}_sz": Attribute(size(0, RULE_OFF), mqsc=(f"OFFLD{n}SZ", with_unit(KIB, 0, 64, "K")))
        for n in (1, 2, 3)
    },
}

FORECAST: Table = {
    "forecast_horizon_s": _assumed(number(59, 86_400)),
    "forecast_lead_s": _assumed(number(0, 86_400)),
    "forecast_page_lead_s": _assumed(number(0, 86_400)),
    "forecast_probability": _assumed(number(0, 1)),
}
STRUCTURE: Table = {
    "coupling_facility": Attribute(FACILITY_NAME, cfrm=("PREFLIST", FACILITY_NAME)),
    "size": Attribute(size(1), cfrm=("SIZE", _POLICY_SIZE)),
    "init_size": Attribute(size(1), cfrm=("INITSIZE", _POLICY_SIZE), may_be_absent=True),
    "full_threshold": Attribute(integer(0, 100), cfrm=("FULLTHRESHOLD", digits(0, 100))),
    "allow_auto_alter": Attribute(boolean, cfrm=("ALLOWAUTOALT", _YES_NO)),
    "scm_max_size": Attribute(or_none_for_0(size(0)), cfrm=("SCMMAXSIZE", _POLICY_SIZE), may_be_absent=True),
    "scm_prestage_rate": _assumed(size(MIB)),
    "scm_prefetch_rate": _assumed(size(MIB)),
    "scm_read_us": _assumed(integer(0, 1_000_000)),
    "cf_level": Attribute(integer(1, 5), mqsc=("CFLEVEL", digits(1, 5))),
    "offload": Attribute(
        one_of("SMDS", "DB2", "NONE"), mqsc=("OFFLOAD", mapped({"SMDS": "SMDS", "DB2": "DB2", "NONE": "NONE"}))
    ),
    **_NUMBERED,
    "ds_block": Attribute(block_size(DS_BLOCKS), mqsc=("DSBLOCK", mapped(DS_BLOCKS))),
    "ds_expand": Attribute(boolean, mqsc=("DSEXPAND", _YES_NO)),
    "smds_prefix": _assumed(integer(0, 400)),
    "offload_min_length": _assumed(integer(0, RULE_OFF)),
    **_DRIFT,
    **FORECAST,
}
LEVELS: Table = {  # of a structure that holds no queues
    **{
        name: STRUCTURE[name]
        for name in ("coupling_facility", "size", "init_size", "full_threshold", "allow_auto_alter")
    },
    **FORECAST,
}
SMDS: Table = {
    "size": Attribute(disk_size(1, SMDS_MAX_SIZE)),
    "secondary": Attribute(disk_size(0, SMDS_MAX_SIZE)),
    "max_size": Attribute(disk_size(1, SMDS_MAX_SIZE)),
}
PAGE_SET: Table = {
    "pages": Attribute(disk_pages(2, MAX_PAGES)),
    "expand": Attribute(
        one_of("SYSTEM", "USER", "NONE"), mqsc=("EXPAND", mapped({"SYSTEM": "SYSTEM", "USER": "USER", "NONE": "NONE"}))
    ),
    "secondary_pages": Attribute(disk_pages(0, MAX_PAGES), may_be_absent=True),
    "buffer_pool": Attribute(integer(0, 99), mqsc=("BUFFPOOL", digits(0, 99))),
    "max_pages": Attribute(disk_pages(2, MAX_PAGES), may_be_absent=True),
    **_DRIFT,
    **FORECAST,
}
STORAGE_CLASS: Table = {"page_set": Attribute(integer(0, 99), mqsc=("PSID", digits(0, 99)))}
QUEUE: Table = {
    "structure": Attribute(STRUCTURE_NAME, mqsc=("CFSTRUCT", blank_or(STRUCTURE_NAME))),
    "storage_class": Attribute(STORAGE_CLASS_NAME, mqsc=("STGCLASS", blank_or(STORAGE_CLASS_NAME))),
    "max_depth": Attribute(integer(1, MAX_DEPTH), mqsc=("MAXDEPTH", digits(0, MAX_DEPTH))),
}
QUEUE_FILE: Table = {
    "max_size": Attribute(size(1), mqsc=("MAXFSIZE", _queue_file_size)),
    "file_system_size": Attribute(size(1), may_be_absent=True),
    "default_q_buffer_size": Attribute(size(0), change=Change.START),
    "default_pq_buffer_size": Attribute(size(0), change=Change.START),
    **_DRIFT,
    **FORECAST,
}
COUPLING_FACILITY: Table = {
    "size": Attribute(size(1)),
    "scm": Attribute(size(0), may_be_absent=True),
    "cflevel": Attribute(integer(1, 99), change=Change.MACHINE),
    "dump_space": Attribute(size(0), change=Change.MACHINE),
}
UNIFORM_CLUSTER: Table = {
    "queue_managers": Attribute(names(QMGR_NAME, "queue managers")),
    "messages_per_second": Attribute(number(0, 1e9)),
    "cpu_us": Attribute(number(0, 1e9)),
    "trigger_pct": Attribute(number(75, 100)),
}
HOST: Table = {"cores": Attribute(number(0, 1e6))}
QUEUE_SHARING_GROUP: Table = {"queue_managers": Attribute(names(QMGR_NAME, "queue managers"))}
QUEUE_MANAGER: Table = {
    "platform": Attribute(one_of("zos", "distributed")),
    "version": Attribute(text("[0-9]+(\\.[0-9]+)*", 'a string like "9.4"')),
    "expiry_interval_s": Attribute(number(0, 99_999_999, or_low=True)),
    "silence_s": Attribute(number(0, 604_800)),
    "host": Attribute(HOST_NAME),
}

Reading = Mapping[str, tuple[str, Check]]
"""Attribute of the estate and check of its value, by keyword of another text."""


def mqsc_reading(table: Table) -> Reading:
    """Return the attributes of a table that MQSC has."""
    return {own.mqsc[0]: (name, own.mqsc[1]) for name, own in table.items() if own.mqsc is not None}


def cfrm_reading(table: Table) -> Reading:
    """Return the attributes of a table that a CFRM policy has."""
    return {own.cfrm[0]: (name, own.cfrm[1]) for name, own in table.items() if own.cfrm is not None}


def _settings(table: Table) -> Table:
    """Return the attributes of a table that an event changes."""
    return {name: own for name, own in table.items() if own.change is Change.EVENT}


_ALTERABLE: Mapping[str, Table] = {
    "structure": _settings(STRUCTURE),
    "page_set": _settings(PAGE_SET),
    "queue_file": _settings(QUEUE_FILE),
    "coupling_facility": _settings(COUPLING_FACILITY),
    "uniform_cluster": UNIFORM_CLUSTER,
    "queue_manager": {},
}
_OF_LEVELS = _settings(LEVELS)
_ASSUMPTIONS = {
    name for table in (STRUCTURE, PAGE_SET, QUEUE_FILE) for name, own in table.items() if own.change is Change.NOTHING
}
_AT_START = {name for name, own in QUEUE_FILE.items() if own.change is Change.START}


@dataclass(frozen=True, slots=True)
class Section:
    """Table of the TOML file: the form of its keys, and the attributes under a key."""

    key: tuple[Check, ...]  # the parts of its name, between slashes
    example: str
    attributes: Table
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

    Returns:
        Values by the field names of the store's dataclass.

    Raises:
        EstateError: unknown key, wrong type, value out of range, values that contradict each other, or a REBUILD of a
            store other than a structure. It names the key, the value and the expected value.
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
        check = or_none(table[key]) if table[key].may_be_absent else table[key]
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


def _unknown(key: str, table: Table) -> str:
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
