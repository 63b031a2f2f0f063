"""Tiny structures with storage class memory, in which a few messages reach pre-staging, pre-fetching and their bounds.

They are chosen or random. Some are changed by automatic alter.
"""

from dataclasses import fields
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.naive.estates import ENTRY_AND_6_ELEMENTS, QMGRS, QUEUES, RULE_SIZES, THRESHOLDS, OnFacility, data_set, pick
from tests.naive.estates import structure as structure_without
from tests.naive.scm import BLOCK_BYTES, FIXED_AUGMENTED
from twin.estate.model import Structure

NO_RULES = {"offld1_sz": 65_536, "offld2_sz": 65_536, "offld3_sz": 65_536}
MIB = 1024**2
RATES = (500_000_000, MIB, 4 * MIB, 100 * MIB, MIB)  # bytes/s; at the minimum a block of 4 KB takes 3.9 ms
SCM_SIZES = (MIB, 3 * BLOCK_BYTES, 16 * BLOCK_BYTES, 16 * BLOCK_BYTES + 1, 60 * BLOCK_BYTES, 1, 300 * BLOCK_BYTES)
FACILITY_SCM = (*(64 * MIB,) * 8, 8 * BLOCK_BYTES, 30 * BLOCK_BYTES, 0, None)
LEFT_FOR_AUGMENTED = (*(64 * MIB,) * 7, 82 * 4, 82 * 30, 500, 82, 0)  # 82 bytes per block of 4 KB
FULL_THRESHOLDS = (80, 80, 0, 50, 95, 100)


OTHERS_SCM = (*(0,) * 8, 64 * MIB, 2048 * MIB, 8192 * MIB, 16 * 1024**4)  # of SCMMAXSIZE


def with_scm(
    facility_scm: int | None = 64 * MIB, left_for_augmented: int = 64 * MIB, others_scm: int = 0, **different: Any
) -> OnFacility:
    """Return a structure with SCM, by default without offload rules and of 40 entries (38 with SCM)."""
    described = structure_without(**{"scm_max_size": MIB, **NO_RULES, **different})
    allocated = described.init_size or described.size
    fixed = FIXED_AUGMENTED if described.scm_max_size is not None else 0
    own_names = [field.name for field in fields(Structure) if field.init]
    return OnFacility(
        **{name: getattr(described, name) for name in own_names},
        facility_size=allocated + fixed + left_for_augmented,
        facility_scm=facility_scm,
        others_scm=others_scm,
    )


def scm_structure_from(*choices: int) -> OnFacility:
    """Return a structure made from thirteen small integers."""
    entries, scm_max, facility, augmented, stage, fetch, init, automatic, threshold, rules, qmgrs, queues, others = (
        choices
    )
    size = (20 + entries % 50) * ENTRY_AND_6_ELEMENTS
    names = QMGRS[: 1 + qmgrs % 2]
    rule = {"offld1_th": pick(THRESHOLDS, threshold), "offld1_sz": pick(RULE_SIZES, rules)} if rules > 5 else {}
    return with_scm(
        facility_scm=pick(FACILITY_SCM, facility),
        left_for_augmented=pick(LEFT_FOR_AUGMENTED, augmented),
        others_scm=pick(OTHERS_SCM, others),
        **rule,
        size=size,
        init_size=pick((None, None, size, size * 3 // 4, size // 2), init),
        scm_max_size=None if scm_max == 11 else pick(SCM_SIZES, scm_max),
        scm_prestage_rate=pick(RATES, stage),
        scm_prefetch_rate=pick(RATES, fetch),
        scm_read_us=pick((275, 0, 1), stage),
        allow_auto_alter=automatic % 3 == 1,
        full_threshold=pick(FULL_THRESHOLDS, threshold),
        queue_managers=names,
        queues=QUEUES[: 1 + queues % 3],
        smds={qmgr: data_set(size=4 * MIB) for qmgr in names},
    )


def scm_structures() -> st.SearchStrategy[OnFacility]:
    """Return a strategy for tiny structures with SCM."""
    choices = st.tuples(st.integers(0, 100), *[st.integers(0, 11)] * 12)
    return choices.map(lambda integers: scm_structure_from(*integers))


def random_scm_structure(seed: int) -> OnFacility:
    """Return a random tiny structure with SCM, a function of the seed."""
    rng = np.random.default_rng([seed, 1])
    return scm_structure_from(int(rng.integers(0, 101)), *(int(n) for n in rng.integers(0, 12, 12)))
