"""Parameters of random events, by kind of store: frequency of each op, lengths, counts, times."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.naive.estates import random_structure, structures
from tests.naive.private_estates import page_sets, queue_files, random_page_set, random_queue_file
from tests.naive.scm_estates import random_scm_structure, scm_structures
from tests.support import changes

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US

# how time advances: microseconds to the event, and whether the next events start from there (else from where they were)
FORWARD = ((0, True), (1, True), (1000, True), (SECOND_US, True), (7 * SECOND_US, True), (MINUTE_US, True))
ODD_TIMES = (
    *((10 * MINUTE_US, True), (HOUR_US // 2, True), (HOUR_US - 1, True), (HOUR_US, True), (2 * HOUR_US, True)),
    *((-1, False), (-SECOND_US, False), (-HOUR_US, False), (-30 * HOUR_US, False)),
    *((DAY_US, False), (DAY_US + 1, False), (25 * HOUR_US, False), (49 * HOUR_US, False), (40 * DAY_US, False)),
    *((DAY_US, True), (DAY_US + 1, True), (26 * HOUR_US, True), (40 * DAY_US, True)),
)
LENGTHS = (
    *(0, 100, 1000, 2048, 139, 140, 141, 395, 396, 397, 651, 652, 1164, 1165, 4095, 4096, 4097, 8192),
    *(32_767, 32_768, 32_769, 64_511, 64_512, 64_513, 65_536, 100_000, 200_000),
)
COUNTS = (1, 1, 1, 2, 3, 5, 8, 13, 30)
MIXED = {
    "PUT": 40,
    "GET": 30,
    "COMMIT": 8,
    "BACKOUT": 4,
    "PREPARE": 2,
    "EXPIRE": 3,
    "CLEAR": 1,
    "RESTART": 1,
    "HEARTBEAT": 2,
    "ALTER": 2,
    "REBUILD": 1,
    "MEASURE": 1,
}
FILLING = {"PUT": 60, "GET": 20, "EXPIRE": 3, "CLEAR": 1, "ALTER": 1}
UNITS = {"PUT": 35, "GET": 35, "COMMIT": 14, "BACKOUT": 10, "PREPARE": 4, "RESTART": 2, "EXPIRE": 2, "CLEAR": 1}


@dataclass(frozen=True)
class Mix:
    """Parameters of the random events of a kind of store; 0 means the plainest choice in every table."""

    configs: st.SearchStrategy[Any]  # random stores
    random_config: Callable[[int], Any]  # one, of a seed
    changes: Callable[[Any, str, int, int, int], dict[str, Any]]  # of ALTER, REBUILD, MEASURE
    weights: dict[str, dict[str, int]]  # how often each op comes, by profile
    in_phases: tuple[str, ...] = ("filling",)  # profiles in which PUT and GET change places: usage goes up and down
    kept_small: dict[str, dict[str, int]] = field(default_factory=dict)  # choices of a table in long runs, by profile
    lengths: tuple[int, ...] = LENGTHS
    counts: tuple[int, ...] = COUNTS
    times: tuple[tuple[int, bool], ...] = (*FORWARD * 8, *ODD_TIMES)


STRUCTURE = Mix(
    configs=structures(),
    random_config=random_structure,
    changes=changes.with_facts(changes.of_structure),
    weights={
        "mixed": MIXED,
        "filling": FILLING,
        "units": UNITS,
        "held": {"PUT": 30, "GET": 45, "COMMIT": 8, "BACKOUT": 6, "RESTART": 1, "HEARTBEAT": 2},
        "smds": {"PUT": 55, "GET": 25, "EXPIRE": 2, "CLEAR": 1, "COMMIT": 3, "BACKOUT": 2, "ALTER": 1},
        "attributes": {"PUT": 40, "GET": 25, "CLEAR": 3, "ALTER": 15, "REBUILD": 6, "MEASURE": 8},
    },
    in_phases=("filling", "smds"),
    kept_small={
        "filling": {"time": 48, "msgid": 1, "reason": 14, "seq": 23, "direct": 24, "uow": 3},
        "units": {"time": 49, "seq": 23, "length": 12},
        "held": {"time": 52, "length": 12, "count": 5, "seq": 23},
        "smds": {"time": 48, "seq": 23, "count": 6},
    },
)

MIB4 = 4 * 1024**2
PAGE_SET = Mix(
    configs=page_sets(),
    random_config=random_page_set,
    changes=changes.with_facts(changes.of_page_set),
    weights={
        "mixed": MIXED,
        "filling": FILLING,
        "units": UNITS,
        "packing": {"PUT": 50, "GET": 40, "EXPIRE": 8, "COMMIT": 4, "BACKOUT": 4, "CLEAR": 1, "RESTART": 1},
        "attributes": {"PUT": 40, "GET": 25, "CLEAR": 3, "RESTART": 3, "ALTER": 15, "MEASURE": 8},
    },
    in_phases=("filling", "packing"),
    kept_small={
        "filling": {"time": 48, "msgid": 1, "reason": 14, "seq": 23, "direct": 24, "uow": 3},
        "units": {"time": 49, "seq": 23, "length": 16},
        "packing": {"time": 48, "seq": 23, "length": 22, "count": 5, "uow": 4},
    },
    lengths=(
        *(0, 100, 300, 1000, 1656, 1657, 1656, 1657, 3313, 3314, 3684, 3685, 0, 0, 3313, 2000),
        *(3686, 3697, 3698, 7746, 7747, 20_000, 100_000, 300_000),
        *(MIB4, MIB4 + 1, MIB4 + 3685, MIB4 + 3686, 2 * MIB4, 3 * MIB4 - 1),
    ),
)

OF_LOG = {"PUT": 40, "GET": 45, "COMMIT": 6, "BACKOUT": 6, "PREPARE": 2, "EXPIRE": 2, "CLEAR": 1, "HEARTBEAT": 4}
QUEUE_FILE = Mix(
    configs=queue_files(),
    random_config=random_queue_file,
    changes=changes.with_facts(changes.of_queue_file),
    weights={
        "mixed": MIXED,
        "filling": FILLING,
        "units": UNITS,
        "log": OF_LOG,
        "checkpoints": {"PUT": 40, "GET": 60, "COMMIT": 4, "BACKOUT": 2, "EXPIRE": 2, "HEARTBEAT": 4},
        "attributes": {"PUT": 40, "GET": 25, "CLEAR": 3, "RESTART": 3, "ALTER": 15, "MEASURE": 8},
    },
    kept_small={
        "mixed": {"count": 13},
        "filling": {"count": 9, "msgid": 1, "reason": 14, "seq": 23, "direct": 24, "uow": 3},
        "units": {"count": 12, "seq": 23},
        "log": {"time": 4, "msgid": 1, "reason": 14, "seq": 23, "direct": 24, "length": 12, "uow": 4},
        # 100 log records in less than half an hour; the file is oversized, or not, by a block
        "checkpoints": {"time": 7, "count": 5, "length": 4, "msgid": 1, "reason": 14, "seq": 23, "direct": 24},
        "attributes": {"count": 12},
    },
    lengths=(*(0, 100, 147, 148, 149, 659, 660, 661, 1000, 1171, 1172, 1173), *(2048, 10_000, 100_000, 1_700_000)),
    counts=(1, 1, 1, 31, 32, 2, 3, 5, 8, 13, 20, 50, 70, 70, 100, 200, 300),
    times=(*((*FORWARD, (5 * MINUTE_US, True), (10 * MINUTE_US, True)) * 6), *ODD_TIMES),
)

SCM_TIMES = (0, 1, 5, 9, 100, 1000, 4000, 8000, 16_000, 100_000, SECOND_US, 7 * SECOND_US, 10 * SECOND_US, MINUTE_US)
SCM = Mix(
    configs=scm_structures(),
    random_config=random_scm_structure,
    changes=changes.with_facts(changes.of_scm),
    weights={
        "mixed": MIXED,
        "filling": FILLING,
        "units": UNITS | {"PUT": 50},
        "moving": {"PUT": 60, "GET": 25, "EXPIRE": 2, "CLEAR": 1, "COMMIT": 3, "BACKOUT": 3, "HEARTBEAT": 10},
        "attributes": {"PUT": 40, "GET": 25, "CLEAR": 2, "HEARTBEAT": 5, "ALTER": 10, "REBUILD": 4, "MEASURE": 3},
    },
    in_phases=("filling", "moving", "units"),
    kept_small={
        "filling": {"time": 14, "msgid": 1, "reason": 14, "seq": 23, "direct": 24, "uow": 3},
        "units": {"time": 14, "seq": 23, "length": 10},
        "moving": {"time": 14, "length": 12, "count": 5, "seq": 23, "reason": 14, "uow": 4},
    },
    lengths=(*(0, 100, 1000, 2048, 140, 141, 396, 397, 1164, 1165, 4096, 8192), *(32_769, 60_000, 64_513)),
    times=(*((us, True) for us in SCM_TIMES * 3), *ODD_TIMES[:9], (DAY_US, True)),
)

MIXES = {"structure": STRUCTURE, "scm": SCM, "page_set": PAGE_SET, "queue_file": QUEUE_FILE}
