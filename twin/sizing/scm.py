"""Storage class memory for a backlog beyond the structure: SCMMAXSIZE, and storage that the coupling facility lends.

Sources: *How storage class memory works with IBM MQ for z/OS* (90 %, over-committing, augmented space, fewer entries
and elements); domain.md section 3 (bytes in SCM, 8 MiB, 2 %, 3 %: assumptions that fit IBM's published check).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernels.scm import BLOCK_BYTES, PRESTAGE_ABOVE, blocks_of
from twin.allocation import DYNAMIC_AUGMENTED_PPM, FIXED_AUGMENTED, allocate, pool_sizes
from twin.errors import UsageError
from twin.estate import Structure, format_size
from twin.sizing.mix import Mix, count_of
from twin.sizing.structure import IN_STRUCTURE, OFFLOADED, elements_of_mix, rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class ScmPlan:
    """A backlog in a structure of `size` with SCM beside it. Sizes in bytes.

    ents_without, elems_without: pools of that SIZE without SCM, ents_max, elems_max: with it; in_structure: messages
    that stay, up to 90 %; in_scm: the rest; scm_used: what those take; scm_max_size: that in whole MB, 0: no SCM is
    needed; aug_fixed, aug_dynamic: augmented space; cf_storage: SIZE and augmented space.
    """

    data: str
    size: int
    ents_without: int
    elems_without: int
    ents_max: int
    elems_max: int
    in_structure: int
    in_scm: int
    scm_used: int
    scm_max_size: int
    aug_fixed: int
    aug_dynamic: int
    cf_storage: int
    cfrm: str
    warnings: tuple[str, ...]


def scm_bytes(messages: int, elements: int) -> int:
    """Bytes of SCM of so many messages with so many elements in all: 256 each, the sum in 4 KB blocks."""
    return int(blocks_of(messages, elements)) * BLOCK_BYTES


def plan_scm(
    config: Structure, mix: Mix, scm_total: int | None = None, committed: int = 0, *, offloaded: bool = False
) -> ScmPlan:
    """SCM for the backlog `mix`, of which SCM takes what the structure does not, in the shares of the mix.

    scm_total: bytes of SCM of the coupling facility; committed: SCMMAXSIZE of its other structures. UsageError.
    """
    size, ratio = allocate(config)
    ents_without, elems_without = pool_sizes(replace(config, scm_max_size=None), size, ratio)
    ents_max, elems_max = pool_sizes(replace(config, scm_max_size=1), size, ratio)
    if not ents_max:
        raise UsageError(f"SIZE({format_size(size)}) holds no message: a larger one is right")
    messages, elements = count_of(mix), elements_of_mix(config, mix, offloaded=offloaded)
    room = ents_max * PRESTAGE_ABOVE // 100, elems_max * PRESTAGE_ABOVE // 100
    in_structure = min(messages, room[0], room[1] * messages // elements)
    in_scm = messages - in_structure
    used = scm_bytes(in_scm, -(-in_scm * elements // messages))
    wanted = rounded(used)
    dynamic = -(-used * DYNAMIC_AUGMENTED_PPM // 1_000_000)
    return ScmPlan(
        data=OFFLOADED if offloaded else IN_STRUCTURE,
        size=size,
        ents_without=ents_without,
        elems_without=elems_without,
        ents_max=ents_max,
        elems_max=elems_max,
        in_structure=in_structure,
        in_scm=in_scm,
        scm_used=used,
        scm_max_size=wanted,
        aug_fixed=FIXED_AUGMENTED,
        aug_dynamic=dynamic,
        cf_storage=size + FIXED_AUGMENTED + dynamic,
        cfrm=_cfrm(config, wanted),
        warnings=tuple(_warnings(wanted, scm_total, committed)),
    )


def _cfrm(config: Structure, wanted: int) -> str:
    if not wanted:
        return ""
    group = config.queue_sharing_group.ljust(4, "@") if config.queue_sharing_group else ""
    name = group + config.name.partition("/")[2]
    size = f"SIZE({format_size(config.size)})"
    if config.init_size is not None:
        size += f" INITSIZE({format_size(config.init_size)})"
    return f"STRUCTURE NAME({name}) {size} SCMALGORITHM(KEYPRIORITY1) SCMMAXSIZE({format_size(wanted)})"


def _warnings(wanted: int, scm_total: int | None, committed: int) -> list[str]:
    if not wanted or scm_total is None or wanted + committed <= scm_total:
        return []
    beside = f" beside {format_size(committed)} of other structures" if committed else ""
    there = f"there are {format_size(scm_total)}"
    return [f"SCM would be over-committed: {format_size(wanted)}{beside}, {there}; 2192 may come unexpectedly"]
