"""Tiny page sets and queue files, in which a few messages reach packing, expansion, buffers and checkpoints.

They are chosen or random, and written as TOML.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.naive.estates import ALIASES_FILE, line, pick, write_files

QMGR = "QM01"
PAGE_SET_QUEUES = ("A.QUEUE", "B.QUEUE", "C.QUEUE")


@dataclass(frozen=True)
class Private:
    """A page set or a queue file of a queue manager, as in the estate."""

    kind: str  # page_set, queue_file
    name: str
    queues: tuple[str, ...]
    attributes: dict[str, Any] = field(hash=False)  # those in the estate's file, sizes in bytes
    version: str | None = None  # of the queue manager
    expiry_interval_s: float | None = None  # of the queue manager
    queue_managers: tuple[str, ...] = (QMGR,)


EXPANDS = ("SYSTEM", "USER", "NONE", "SYSTEM", "USER")
SECONDARY_PAGES = (None, 1, 3, 10, 0, 200, 16_777_216)
VERSIONS = ("9.4", "7.0.0", "6", None, "7.0.1", "7.0")
BUFFERS = (4 * 512, 0, 512, 512 * 7 + 511, 512 * 40, None)  # bytes; None: the default
MAX_SIZES = (None, 40 * 512, 512 * 3 + 1, 1, 300 * 512, "64K")


def page_set(
    queues: int = 1, version: str | None = None, expiry_interval_s: float | None = None, **attributes: Any
) -> Private:
    """Return a page set, of 100 pages by default, without the attributes that are None."""
    values = {name: value for name, value in attributes.items() if value is not None}
    names = PAGE_SET_QUEUES[:queues]
    return Private("page_set", f"{QMGR}/PS04", names, {"pages": 100} | values, version, expiry_interval_s)


def queue_file(expiry_interval_s: float | None = None, **attributes: Any) -> Private:
    """Return a queue file, without the attributes that are None."""
    values = {name: value for name, value in attributes.items() if value is not None}
    return Private("queue_file", f"{QMGR}/A.QUEUE", ("A.QUEUE",), values, expiry_interval_s=expiry_interval_s)


def page_set_from(*choices: int) -> Private:
    """Return a page set made from seven small integers."""
    pages, scale, expand, secondary, volumes, version, queues = choices
    allocated = 3 + pages * (1, 1, 1, 30)[scale % 4]
    return page_set(
        queues=1 + queues % 3,
        version=pick(VERSIONS, version),
        pages=allocated,
        expand=pick((*EXPANDS, None), expand),
        secondary_pages=pick(SECONDARY_PAGES, secondary),
        max_pages=pick((None, None, allocated, allocated + 7, allocated * 2, 16_777_216), volumes),
        expiry_interval_s=pick((None, 300, 0, 7), volumes),
    )


def queue_file_from(*choices: int) -> Private:
    """Return a queue file made from seven small integers."""
    nonpersistent, persistent, largest, volume, *_ = choices
    return queue_file(
        default_q_buffer_size=pick(BUFFERS, nonpersistent),
        default_pq_buffer_size=pick(BUFFERS, persistent),
        max_size=pick(MAX_SIZES, largest),
        file_system_size=pick((None, None, None, "10K", 600), volume),
    )


def _small_integers() -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(st.integers(0, 120), *[st.integers(0, 11)] * 6)


def _seeded(seed: int) -> list[int]:
    rng = np.random.default_rng([seed, 1])
    return [int(rng.integers(0, 121)), *(int(n) for n in rng.integers(0, 12, 6))]


def page_sets() -> st.SearchStrategy[Private]:
    """Return a strategy for tiny page sets."""
    return _small_integers().map(lambda choices: page_set_from(*choices))


def queue_files() -> st.SearchStrategy[Private]:
    """Return a strategy for tiny queue files."""
    return _small_integers().map(lambda choices: queue_file_from(*choices))


def random_page_set(seed: int) -> Private:
    """Return a random tiny page set, a function of the seed."""
    return page_set_from(*_seeded(seed))


def random_queue_file(seed: int) -> Private:
    """Return a random tiny queue file, a function of the seed."""
    return queue_file_from(*_seeded(seed))


def write_private_estate(folder: Path, config: Private, aliases: dict[str, str]) -> Path:
    """Write the estate of a page set or a queue file, its queues and alias queues; return the TOML file."""
    return write_files(folder, private_toml(config, ALIASES_FILE), aliases)


def private_toml(config: Private, mqsc: str) -> str:
    """Return the TOML of a page set or a queue file and its queues, which imports an MQSC text."""
    qmgr, name = config.name.split("/")
    lines = ["schema = 1", "[[import]]", line("mqsc", mqsc), line("queue_manager", qmgr)]
    lines += [f'[queue_manager."{qmgr}"]']
    lines += [line("platform", "zos" if config.kind == "page_set" else "distributed")]
    lines += [line("version", config.version)] if config.version is not None else []
    lines += [line("expiry_interval_s", config.expiry_interval_s)] if config.expiry_interval_s is not None else []
    lines += [f'[{config.kind}."{qmgr}/{name.removeprefix("PS").lstrip("0")}"]']
    lines += [line(attribute, value) for attribute, value in config.attributes.items()]
    if config.kind == "page_set":
        lines += [f'[storage_class."{qmgr}/DEFAULT"]', "page_set = 4"]
        for queue in config.queues:
            lines += [f'[queue."{qmgr}/{queue}"]', 'storage_class = "DEFAULT"']
    return "\n".join(lines) + "\n"
