"""Pages of each format that are damaged: small ones, so that a damage hits something."""

from __future__ import annotations

import struct
from functools import cache
from random import Random

from tests.twin.feeds.live_samples import LIVE_PAGES
from tests.twin.feeds.rounds import DEFINITIONS, LEVELS
from tests.twin.feeds.samples import PAGES, SMF

COMMANDS = tuple(command for _, command, _ in (*LEVELS, *DEFINITIONS))

ESTATE = """
schema = 1
[coupling_facility.CF01]
size = "64G"
scm = "16G"
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[queue_manager.QM01]
[queue_manager.QM02]
[queue_manager.QMD1]
platform = "distributed"
[structure."QSG1/APP1"]
size = "4G"
cf_level = 5
offload = "SMDS"
coupling_facility = "CF01"
scm_max_size = "8G"
[queue."QSG1/ORDERS"]
structure = "APP1"
[page_set."QM01/4"]
pages = 20000
buffer_pool = 3
[storage_class."QM01/DEFAULT"]
page_set = 4
[queue."QM01/LOCAL"]
storage_class = "DEFAULT"
[queue_file."QMD1/INVOICES"]
max_size = "2T"
[queue_file."QMD1/ORDERS"]
"""


@cache
def pages_of(name: str) -> tuple[bytes, ...]:
    """Return the pages of a format."""
    pages = PAGES.get(name) or tuple(LIVE_PAGES[name])
    return (*pages, *records(SMF)) if name == "smf" else pages


def headers_of(name: str, rng: Random) -> dict[str, str]:
    """Return the headers of a page: of the REST interface mostly those of a round, whose pages come in any order."""
    if name != "rest" or rng.random() < 0.25:
        return {}
    headers = {"mqweb.round": str(rng.randrange(3)), "mqweb.command": rng.choice(COMMANDS)}
    headers |= {"mqweb.qmgr": rng.choice(("QM01", "QM02", "QMD1"))} if rng.random() < 0.9 else {}
    return headers | ({"mqweb.last": "1"} if rng.random() < 0.2 else {})


def records(data: bytes) -> tuple[bytes, ...]:
    """Return the records of an SMF file, each with its RDW; a segmented one is in pieces."""
    whole = []
    while data:
        (length,) = struct.unpack_from(">H", data)
        whole.append(data[:length])
        data = data[length:]
    return tuple(whole)


def pieces() -> list[bytes]:
    """Return pages of every format, of which damages take pieces."""
    return [page for name in sorted(PAGES.keys() | LIVE_PAGES.keys()) for page in pages_of(name)]
