"""Shared message data sets: blocks, pages, space map and size for the messages that one queue manager puts.

The arithmetic is that of the twin, `kernels.smds`; docs/storage-model.md states its sources.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernels import smds
from twin.errors import UsageError
from twin.estate import SMDS_MAX_SIZE, Structure, format_size
from twin.estate.attributes import DS_BLOCKS
from twin.sizing.data_sets import Extent, extended_addressability, places
from twin.sizing.mix import Mix, count_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SmdsPlan:
    """Plan of a data set for a mix."""

    ds_block: int  # bytes of a block
    messages: int  # offloaded
    pages: int  # 4 KB pages in use
    data_blocks: int  # blocks of these pages, messages in random order
    map_blocks: int  # of `least`
    least: Extent  # the smallest data set that holds the mix
    unexpanded: Extent  # one that does not expand: at most 90 % of its blocks are in use
    used_pct: dict[str, float]  # of the blocks of each data set of the estate, by queue manager
    warnings: tuple[str, ...]


def plan_smds(config: Structure, mix: Mix, ds_block: int | None = None) -> SmdsPlan:
    """Plan the data set of one queue manager for the messages it puts.

    Args:
        config: the structure, with the assumptions of the model.
        mix: the messages.
        ds_block: bytes of a block; None: DSBLOCK of `config`.

    Raises:
        UsageError: no message of the mix is long enough to be offloaded, or DSBLOCK is invalid.
    """
    config = replace(config, ds_block=ds_block or config.ds_block)
    if format_size(config.ds_block) not in DS_BLOCKS:
        raise UsageError(f"DSBLOCK({format_size(config.ds_block)}); expected: {', '.join(DS_BLOCKS)}")
    count_of(mix)
    offloaded = [part for part in mix if part.length > config.offload_min_length]
    if not offloaded:
        raise UsageError(f"no message is offloaded; expected: lengths above {config.offload_min_length} bytes")
    pages = [int(smds.pages_of_length(part.length, config.smds_prefix)) for part in offloaded]
    counts = [part.count for part in offloaded]
    data = places(pages, counts, config.ds_block // smds.PAGE_BYTES)
    least = _with_map(data, 100, config.ds_block)
    return SmdsPlan(
        ds_block=config.ds_block,
        messages=sum(counts),
        pages=sum(count * each for count, each in zip(counts, pages, strict=True)),
        data_blocks=data,
        map_blocks=least - data,
        least=_extent(least, config.ds_block),
        unexpanded=_extent(_with_map(data, smds.EXPAND_ABOVE, config.ds_block), config.ds_block),
        used_pct={qmgr: _used_pct(data, data_set.size, config.ds_block) for qmgr, data_set in config.smds.items()},
        warnings=tuple(_warnings(config, least * config.ds_block, sum(part.count for part in mix) - sum(counts))),
    )


def _with_map(data: int, percent: int, ds_block: int) -> int:
    """Return the smallest number of blocks of which data and space map take at most `percent`."""
    total = 0
    while True:
        used = data + int(smds.map_blocks(total, ds_block))
        needed = -(-used * 100 // percent)
        if needed <= total:
            return total
        total = needed


def _used_pct(data: int, size: int, ds_block: int) -> float:
    total = size // ds_block
    return 100 * (data + int(smds.map_blocks(total, ds_block))) / total


def _extent(blocks: int, ds_block: int) -> Extent:
    return Extent.of_pages(blocks * (ds_block // smds.PAGE_BYTES))


def _warnings(config: Structure, size: int, short: int) -> list[str]:
    warnings = []
    if short:
        warnings.append(f"{short:,} messages of at most {config.offload_min_length} bytes are not offloaded")
    if size > SMDS_MAX_SIZE:
        warnings.append(f"{format_size(SMDS_MAX_SIZE)} is the most a data set may have: 2192 comes before all fit")
    return warnings + extended_addressability(size)
