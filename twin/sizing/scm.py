"""Storage class memory for a backlog beyond the structure: SCMMAXSIZE, and augmented space in the coupling facility.

Source: [IBM: How storage class memory works with IBM MQ for z/OS] (90 %, over-committing, augmented space, fewer
entries and elements). The constants of `twin.capacity.structures` are assumed and agree with IBM's published example.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernels.scm import BLOCK_BYTES, PRESTAGE_ABOVE, blocks_of
from twin.capacity.statements import structure_sizes
from twin.capacity.structures import allocate, pool_sizes
from twin.errors import UsageError
from twin.estate import Structure, format_size
from twin.estate.model import DYNAMIC_AUGMENTED_PPM, FIXED_AUGMENTED
from twin.sizing.mix import Mix, count_of
from twin.sizing.structure import IN_STRUCTURE, OFFLOADED, elements_of_mix, round_up


@dataclass(frozen=True, slots=True, kw_only=True)
class ScmPlan:
    """Plan of SCM for a backlog in a structure. Sizes in bytes."""

    data: str
    size: int
    ents_without: int  # pools of that SIZE without SCM
    elems_without: int
    ents_max: int  # pools with SCM
    elems_max: int
    in_structure: int  # messages that stay, up to 90 %
    in_scm: int  # the other messages
    scm_used: int
    scm_max_size: int  # scm_used in whole MB; 0: no SCM is needed
    aug_fixed: int  # augmented space
    aug_dynamic: int
    cf_storage: int  # SIZE and augmented space
    cfrm: str
    warnings: tuple[str, ...]


def scm_bytes(messages: int, elements: int) -> int:
    """Return the bytes of SCM of messages with `elements` in all: 256 each, the sum in 4 KB blocks."""
    return int(blocks_of(messages, elements)) * BLOCK_BYTES


def plan_scm(
    config: Structure, mix: Mix, scm_total: int | None = None, committed: int = 0, *, offloaded: bool = False
) -> ScmPlan:
    """Plan SCM for the part of a backlog that the structure does not hold: bytes of the coupling facility in all, and
    SCMMAXSIZE of its other structures. UsageError: the structure holds no message, or the mix has none.
    """
    size, ratio = allocate(config)
    ents_without, elems_without = pool_sizes(replace(config, scm_max_size=None), size, ratio)
    ents_max, elems_max = pool_sizes(replace(config, scm_max_size=1), size, ratio)
    if not ents_max:
        raise UsageError(f"SIZE({format_size(size)}) holds no message; expected: a larger one")
    messages, elements = count_of(mix), elements_of_mix(config, mix, offloaded=offloaded)
    room = ents_max * PRESTAGE_ABOVE // 100, elems_max * PRESTAGE_ABOVE // 100
    in_structure = min(messages, room[0], room[1] * messages // elements)
    in_scm = messages - in_structure
    scm_used = scm_bytes(in_scm, -(-in_scm * elements // messages))
    scm_max_size = round_up(scm_used)
    aug_dynamic = -(-scm_used * DYNAMIC_AUGMENTED_PPM // 1_000_000)
    statement = structure_sizes(config.policy_name, config.size, config.init_size, scm_max_size)
    return ScmPlan(
        data=OFFLOADED if offloaded else IN_STRUCTURE,
        size=size,
        ents_without=ents_without,
        elems_without=elems_without,
        ents_max=ents_max,
        elems_max=elems_max,
        in_structure=in_structure,
        in_scm=in_scm,
        scm_used=scm_used,
        scm_max_size=scm_max_size,
        aug_fixed=FIXED_AUGMENTED,
        aug_dynamic=aug_dynamic,
        cf_storage=size + FIXED_AUGMENTED + aug_dynamic,
        cfrm=" ".join(statement) if scm_max_size else "",
        warnings=tuple(_warnings(scm_max_size, scm_total, committed)),
    )


def _warnings(scm_max_size: int, scm_total: int | None, committed: int) -> list[str]:
    if not scm_max_size or scm_total is None or scm_max_size + committed <= scm_total:
        return []
    beside = f" beside {format_size(committed)} of other structures" if committed else ""
    available = f"there are {format_size(scm_total)}"
    return [
        f"SCM would be over-committed: {format_size(scm_max_size)}{beside}, {available}; 2192 may come unexpectedly"
    ]
