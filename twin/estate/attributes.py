"""Attributes of an estate by table: their checks, words in MQSC and CFRM, and what changes them: docs/estate.md.

Sources: [IBM: MQ 9.2, DEFINE CFSTRUCT] (values of DSBLOCK, lengths of names), [IBM: MQ 9.2, DEFINE STGCLASS],
[IBM: MQ 9.2, Rules for naming IBM MQ objects].
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from twin.base.units import format_size
from twin.estate.errors import EstateError, did_you_mean, show
from twin.estate.model import (
    ADMINISTRATION,
    CouplingFacility,
    ForecastSettings,
    PageSet,
    QueueFile,
    QueueManager,
    Smds,
    StoreConfig,
    Structure,
    UniformCluster,
)
from twin.estate.rows import (
    BYTES,
    FACILITY_NAME,
    HOST_NAME,
    QMGR_NAME,
    WRONG,
    Attribute,
    Change,
    Check,
    Form,
    Table,
    blank_or,
    digits,
    integer,
    names,
    number,
    or_none,
    text,
    whole,
)

MAX_DEPTH = 999_999_999  # largest MAXDEPTH [IBM: MQ 9.1, MaxQDepth, q103290_]

QUEUE_NAME = text("[A-Za-z0-9./_%]{1,48}", "a queue name: 1 to 48 letters, digits and . / _ %")
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
CLUSTER_NAME = text("[A-Za-z0-9._%]{1,48}", "a cluster name: 1 to 48 letters, digits and . _ %")


CHOICE = {name: ForecastSettings.rows[name] for name in ("needless_per_saved", "policy")}
FORECAST = {name: row for name, row in ForecastSettings.rows.items() if name.startswith("forecast_")} | CHOICE
_OF_LEVELS = {"coupling_facility", "size", "init_size", "full_threshold", "allow_auto_alter", *FORECAST}
LEVELS: Table = {name: row for name, row in Structure.rows.items() if name in _OF_LEVELS}  # of one without queues
STORAGE_CLASS: Table = {"page_set": Attribute(whole(0, 99), mqsc="PSID")}
QUEUE: Table = {
    "structure": Attribute(Form(STRUCTURE_NAME, blank_or(STRUCTURE_NAME)), mqsc="CFSTRUCT"),
    "storage_class": Attribute(Form(STORAGE_CLASS_NAME, blank_or(STORAGE_CLASS_NAME)), mqsc="STGCLASS"),
    "max_depth": Attribute(Form(integer(1, MAX_DEPTH), digits(0, MAX_DEPTH)), mqsc="MAXDEPTH"),
}
_MEMBERS = Attribute(Form(names(QMGR_NAME, "queue managers")))

Reading = Mapping[str, tuple[str, Check]]
"""Attribute of the estate and check of its value, by keyword of another text."""


def mqsc_reading(table: Table) -> Reading:
    """Return the attributes of a table that MQSC has."""
    return {own.mqsc: (name, own.form.word) for name, own in table.items() if own.mqsc and own.form.word}


def settings_of(table: Table) -> Table:
    """Return the attributes of a table that an event changes."""
    return {name: own for name, own in table.items() if own.change is Change.EVENT}


_ASSUMPTIONS, _AT_START = (
    {name for config in (Structure, PageSet, QueueFile) for name, own in config.rows.items() if own.change is change}
    for change in (Change.NOTHING, Change.START)
)


@dataclass(frozen=True, slots=True)
class Section:
    """Table of the TOML file: the form of its keys, and the attributes under a key."""

    key: tuple[Check, ...]  # the parts of its name, between slashes
    example: str
    attributes: Table
    required: tuple[str, ...] = ()


_PSID = text("[0-9]{1,2}", "a page set number, 0 to 99")

SECTIONS: Mapping[str, Section] = {
    "coupling_facility": Section((FACILITY_NAME,), "CF01", CouplingFacility.rows, ("size",)),
    "queue_sharing_group": Section((GROUP_NAME,), "QSG1", {"queue_managers": _MEMBERS}, ("queue_managers",)),
    "queue_manager": Section((QMGR_NAME,), "QM01", QueueManager.rows),
    "host": Section((HOST_NAME,), "QMHost1", {"cores": Attribute(Form(number(0, 1e6)))}, ("cores",)),
    "structure": Section((GROUP_NAME, _STRUCTURE_STORE), "QSG1/APP1", Structure.rows),
    "other_structure": Section((POLICY_NAME,), "LOGSTR1", LEVELS),
    "smds": Section((GROUP_NAME, STRUCTURE_NAME, QMGR_NAME), "QSG1/APP1/QM01", Smds.rows, ("size",)),
    "page_set": Section((QMGR_NAME, _PSID), "QM01/4", PageSet.rows),
    "storage_class": Section((QMGR_NAME, STORAGE_CLASS_NAME), "QM01/DEFAULT", STORAGE_CLASS, ("page_set",)),
    "queue": Section((QMGR_NAME, QUEUE_NAME), "QSG1/ORDERS", QUEUE),
    "queue_file": Section((QMGR_NAME, QUEUE_NAME), "QMD1/INVOICES", QueueFile.rows),
    "uniform_cluster": Section((CLUSTER_NAME,), "UC01", UniformCluster.rows, ("queue_managers", "messages_per_second")),
}

SIZES = frozenset(
    name for section in SECTIONS.values() for name, own in section.attributes.items() if own.form.unit == BYTES
)
"""Attributes that are bytes."""


def parse_attributes(
    config: StoreConfig, op: Literal["ALTER", "REBUILD"], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the checked `attributes` of an ALTER or REBUILD event by the field names of the store's dataclass, sizes
    in bytes; see docs/events.md.

    None (null in JSON) removes `init_size`, `scm_max_size`, `secondary_pages`, `max_pages`, `file_system_size` or
    `scm`. Whether the store accepts the attributes with its current contents is decided by the twin. EstateError:
    unknown key, wrong type, value out of range, values that contradict each other, or a REBUILD of a store other than a
    structure. It names the key, the value and the expected value.
    """
    if op == "REBUILD" and config.kind != "structure":
        raise EstateError(f"REBUILD of {config.name}: only a structure is rebuilt; send ALTER")
    table = settings_of(config.rows)
    if config.known_by_levels:
        table = settings_of(LEVELS)
    parsed = {}
    for key, value in attributes.items():
        if not table:
            raise EstateError(f"{op} of {config.name}: {key} = {show(value)}: expected: none")
        if key not in table:
            raise EstateError(f"{op} of {config.name}: {_unknown(key, table)}")
        check = or_none(table[key]) if table[key].optional else table[key]
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
