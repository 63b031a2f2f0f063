"""Tiny structures, in which a few messages reach the limits of pools, offload rules, blocks and expansions.

They are chosen or random, and written as estate files.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from tests.naive.scm import FIXED_AUGMENTED
from tests.naive.smds import LARGEST_DATA_SET
from twin.estate.model import Smds, Structure

STORE = "QSG1/APP1"
QMGRS = ("QM01", "QM02", "QM03")
QUEUES = ("A.QUEUE", "B.QUEUE", "C.QUEUE", "D.QUEUE")
ALIASES = {"ALIAS.QUEUE": "A.QUEUE"}
ALIASES_FILE = "aliases.mqsc"
OTHER_BYTES = 1024**2  # of another structure
ENTRY_AND_6_ELEMENTS = 695 + 6 * 256  # bytes of SIZE per message of up to 1,164 bytes


# -- one structure


def structure(**different: Any) -> Structure:
    """Return a structure of the estate: tiny by default, with 40 entries and two queue managers."""
    described: dict[str, Any] = {
        "name": STORE,
        "queue_sharing_group": "QSG1",
        "coupling_facility": "CF01",
        "size": 40 * ENTRY_AND_6_ELEMENTS,
        "init_size": None,
        "full_threshold": 80,
        "allow_auto_alter": False,
        "scm_max_size": None,
        "cf_level": 5,
        "offload": "SMDS",
        "offld1_th": 70,
        "offld1_sz": 32 * 1024,
        "offld2_th": 80,
        "offld2_sz": 4 * 1024,
        "offld3_th": 90,
        "offld3_sz": 0,
        "ds_block": 256 * 1024,
        "ds_expand": True,
        "smds_prefix": 0,
        "offload_min_length": 140,
        "drift_tolerance_pct": 5.0,
        "queue_managers": QMGRS[:2],
        "queues": QUEUES[:2],
        **different,
    }
    if "smds" not in described:
        described["smds"] = {qmgr: data_set(size=10 * 1024**2) for qmgr in described["queue_managers"]}
    return Structure(**described)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnFacility(Structure):
    """A structure and its coupling facility, on which others hold nothing.

    Attributes:
        facility_size: its bytes that others do not take.
        facility_scm: its bytes of SCM; None: it has none.
        others_scm: SCMMAXSIZE of another structure, bytes; 0: there is none.
    """

    facility_size: int
    facility_scm: int | None
    others_scm: int = 0


def data_set(size: int, secondary: int | None = None, max_size: int | None = None) -> Smds:
    """Return a data set of the estate, sizes in bytes."""
    return Smds(size=size, secondary=secondary, max_size=max_size)


THRESHOLDS = (70, 80, 90, 0, 100, 50, 20, 60, 5)
RULE_SIZES = (32 * 1024, 4 * 1024, 0, 64 * 1024, 1024, 140, 141, 64_512)
BLOCK_SIZES = (8 * 1024, 16 * 1024, 32 * 1024)
LEVELS = ((5, "SMDS"), (5, "SMDS"), (5, "SMDS"), (5, "DB2"), (4, "NONE"), (3, "NONE"))


# -- random structures: small integers, one per choice


class Choices(NamedTuple):
    """The choices of a random structure, each a small integer."""

    entries: int = 0
    odd_bytes: int = 0
    init: int = 0
    scm: int = 0
    level: int = 0
    rules: tuple[int, ...] = (0, 0, 1, 1, 2, 2)  # threshold, size, threshold, size ...
    offload_all: int = 0  # 6, 7, 8: rule 1, 2, 3 has threshold 0 and size 0
    block: int = 0
    expand: int = 0
    prefix: int = 0
    qmgrs: int = 0
    queues: int = 0
    smds: tuple[tuple[int, int, int, int], ...] = ((0, 0, 0, 0),) * 3  # blocks, odd bytes, secondary, max_size


def pick(table: Sequence[Any], number: int) -> Any:
    return table[number % len(table)]


def structure_from(choices: Choices) -> Structure:
    """Return a structure made from choices."""
    size = (20 + choices.entries) * ENTRY_AND_6_ELEMENTS + choices.odd_bytes
    cf_level, offload = pick(LEVELS, choices.level)
    ds_block = pick(BLOCK_SIZES, choices.block)
    qmgrs = QMGRS[: 1 + choices.qmgrs % 3]
    rules = {
        f"offld{n}_{what}": pick(table, choices.rules[2 * (n - 1) + place])
        for n in (1, 2, 3)
        for place, (what, table) in enumerate((("th", THRESHOLDS), ("sz", RULE_SIZES)))
    }
    if choices.offload_all >= 6:
        n = choices.offload_all - 5
        rules |= {f"offld{n}_th": 0, f"offld{n}_sz": 0}
    return structure(
        size=size,
        init_size=pick((None, None, size, size * 3 // 4, size // 2 + 8 * ENTRY_AND_6_ELEMENTS), choices.init),
        scm_max_size=pick((None, None, None, 8 * 1024**2), choices.scm),
        cf_level=cf_level,
        offload=offload,
        ds_block=ds_block,
        ds_expand=choices.expand % 3 != 1,
        smds_prefix=pick((0, 0, 400), choices.prefix),
        queue_managers=qmgrs,
        queues=QUEUES[: 1 + choices.queues % 4],
        smds={qmgr: _data_set_from(*choices.smds[place], ds_block) for place, qmgr in enumerate(qmgrs)},
        **rules,
    )


def _data_set_from(blocks: int, odd_bytes: int, secondary: int, max_size: int, ds_block: int) -> Smds:
    size = (3 + blocks) * ds_block + odd_bytes
    return data_set(
        size=size,
        secondary=pick((None, ds_block, 3 * ds_block + 1, 1, 10 * ds_block, LARGEST_DATA_SET), secondary),
        max_size=pick((None, None, size, size + 2 * ds_block, size + 20 * ds_block - 1), max_size),
    )


def aliases_of(config: Structure) -> dict[str, str]:
    """Return the targets of the alias queues of a structure."""
    return {alias: queue for alias, queue in ALIASES.items() if queue in config.queues}


def structures() -> st.SearchStrategy[Structure]:
    """Return a strategy for tiny structures."""
    small = st.integers(0, 8)
    return st.builds(
        Choices,
        entries=st.integers(0, 380),
        odd_bytes=st.integers(0, ENTRY_AND_6_ELEMENTS - 1),
        init=small,
        scm=small,
        level=st.integers(0, 5),
        rules=st.tuples(*[small] * 6),
        offload_all=small,
        block=st.integers(0, 2),
        expand=st.integers(0, 2),
        prefix=st.integers(0, 2),
        qmgrs=st.integers(0, 2),
        queues=st.integers(0, 3),
        smds=st.tuples(*[st.tuples(st.integers(0, 37), st.integers(0, 8191), small, small)] * 3),
    ).map(structure_from)


def random_structure(seed: int) -> Structure:
    """Return a random tiny structure, a function of the seed."""
    rng = np.random.default_rng([seed, 1])
    smds = tuple((int(a), int(b), int(c), int(d)) for a, b, c, d in rng.integers(0, (38, 8192, 9, 9), (3, 4)))
    entries, odd_bytes, level = (int(n) for n in rng.integers(0, (381, ENTRY_AND_6_ELEMENTS, 6)))
    rules = tuple(int(n) for n in rng.integers(0, 9, 6))
    block, expand, prefix, qmgrs, queues = (int(n) for n in rng.integers(0, 9, 5))
    init, scm, offload_all = (int(n) for n in rng.integers(0, 9, 3))
    return structure_from(
        Choices(entries, odd_bytes, init, scm, level, rules, offload_all, block, expand, prefix, qmgrs, queues, smds)
    )


# -- as the files of an estate


def write_estate(folder: Path, config: Structure, aliases: dict[str, str]) -> Path:
    """Write the estate of a structure, its queues and alias queues; return the TOML file."""
    return write_files(folder, estate_toml(config, ALIASES_FILE), aliases)


def write_files(folder: Path, toml: str, aliases: dict[str, str]) -> Path:
    """Write the TOML of an estate and the MQSC of alias queues that it imports; return the TOML file."""
    path = folder / "estate.toml"
    path.write_text(toml)
    mqsc = [f"DEFINE QALIAS({alias}) TARGET({queue})\n" for alias, queue in aliases.items()]
    (folder / ALIASES_FILE).write_text("* alias queues\n" + "".join(mqsc))
    return path


def estate_toml(config: Structure, mqsc: str) -> str:
    """Return the TOML of a structure and its queues, which imports an MQSC text."""
    group, name = config.name.split("/")
    lines = ["schema = 1", "[[import]]", line("mqsc", mqsc), line("queue_sharing_group", group)]
    lines += [f'[coupling_facility."{config.coupling_facility}"]', *_facility_lines(config)]
    lines += [f'[queue_sharing_group."{group}"]']
    lines += [f"queue_managers = [{', '.join(_quoted(qmgr) for qmgr in config.queue_managers)}]"]
    for qmgr in config.queue_managers:
        lines += [f'[queue_manager."{qmgr}"]', 'platform = "zos"', 'version = "9.4"']
    lines += [f'[structure."{config.name}"]']
    lines += [line(key, value) for key, value in _fields(config) if key not in NOT_ATTRIBUTES]
    for qmgr, smds in sorted(dict(config.smds).items()):
        lines += [f'[smds."{config.name}/{qmgr}"]', *[line(key, value) for key, value in _fields(smds)]]
    for queue in config.queues:
        lines += [f'[queue."{group}/{queue}"]', line("structure", name)]
    if isinstance(config, OnFacility) and config.others_scm:
        lines += [f'[structure."{group}/OTHER"]', line("size", OTHER_BYTES), line("cf_level", 5)]
        lines += [line("scm_max_size", config.others_scm), line("coupling_facility", config.coupling_facility)]
    return "\n".join(lines) + "\n"


def _facility_lines(config: Structure) -> list[str]:
    if not isinstance(config, OnFacility):
        return ['size = "64G"', 'scm = "64G"']
    scm = [] if config.facility_scm is None else [line("scm", config.facility_scm)]
    other = OTHER_BYTES + FIXED_AUGMENTED if config.others_scm else 0
    return [line("size", config.facility_size + other), *scm]


OF_FACILITY = ("facility_size", "facility_scm", "others_scm")
NOT_ATTRIBUTES = (*OF_FACILITY, "name", "queue_sharing_group", "queue_managers", "queues", "smds")


def _fields(thing: Structure | Smds) -> list[tuple[str, Any]]:
    """Return the fields that are not None, with their values."""
    values = [(f.name, getattr(thing, f.name)) for f in fields(thing)]
    return [(name, value) for name, value in values if value is not None]


def _quoted(text: str) -> str:
    return f'"{text}"'


def line(name: str, value: Any) -> str:
    """Return a line of TOML."""
    if isinstance(value, bool):
        return f"{name} = {str(value).lower()}"
    return f"{name} = {_quoted(value) if isinstance(value, str) else value}"
