"""Shared message data sets: blocks, 4 KB pages within blocks, the space map, expansion.

Blocks of a data set are interchangeable, and so are rows of `blocks`: all data sets of a store take them from one free
list. Sources: [IBM: APAR PI40571] (space map); [assumed] (placement and expansion);
docs/storage-model.md#shared-message-data-sets.
"""

from __future__ import annotations

import numpy as np

from kernels._compile import kernel, routine
from kernels._intrinsics import trailing_zeros
from kernels.layout import BLOCK_SHIFT, FAILED, MAXIMUM, NONE, NORMAL, OFFLOAD_SMDS, Store, touch
from kernels.meter_rows import DATA_SETS
from kernels.pools import base_left

PAGE_BYTES = 4096
EXPAND_ABOVE = 90  # percent of the blocks in use, from which it expands [assumed]


@kernel
def pages_of_length(length: int, prefix: int) -> int:
    """Return the 4 KB pages of a message of `length` bytes in a data set that keeps `prefix` bytes before it."""
    return max(1, (length + prefix + PAGE_BYTES - 1) // PAGE_BYTES)


@kernel
def pages_of(store: Store, length: int) -> int:
    """Return the 4 KB pages of a message of `length` bytes in a data set."""
    return pages_of_length(length, store.params[0].smds_prefix)


@kernel
def map_blocks(total: int, ds_block: int) -> int:
    """Return the space map blocks among `total` blocks of `ds_block` bytes; each covers ds_block - 4096 data blocks."""
    covered = ds_block - PAGE_BYTES + 1
    if 0 < total <= covered:  # of most data sets; a put asks several times, and a division takes ten times a comparison
        return 1
    return (total + covered - 1) // covered


@kernel
def _cut(pages: int, per_block: int) -> tuple[int, int]:
    """Return the blocks that pages fill up, and the pages of the rest. A block has 2**n pages, as DSBLOCK is one."""
    return pages >> trailing_zeros(np.uint64(per_block)), pages & (per_block - 1)


@kernel
def blocks_in_use(store: Store, dataset: int) -> int:
    """Return the blocks with at least one page in use, including map blocks and what is left of the baseline."""
    data = store.datasets[dataset]
    used = map_blocks(data.blocks_total, store.params[0].ds_block) + data.blocks_data
    if data.base_blocks != 0:
        used += base_left(store, data.base_blocks)
    return used


@kernel
def pages_in_use(store: Store, dataset: int) -> int:
    """Return the pages in use, including what is left of the baseline."""
    data = store.datasets[dataset]
    return data.pages + base_left(store, data.base_pages)


@kernel
def _new_blocks(store: Store, dataset: int, pages: int) -> int:
    if pages <= store.datasets[dataset].room:
        return 0
    filled, rest = _cut(pages, store.params[0].ds_block // PAGE_BYTES)
    return filled + min(rest, 1)


@kernel
def _expand(store: Store, dataset: int, new: int) -> None:
    """Expand the data set while `new` more blocks would take it above 90 %, as far as it may grow."""
    data = store.datasets[dataset]
    params = store.params[0]
    while params.ds_expand == 1 and data.status == NORMAL:
        if (blocks_in_use(store, dataset) + new) * 100 <= EXPAND_ABOVE * data.blocks_total:
            return
        extent = data.extent if data.extent > 0 else max(1, data.blocks_total // 10)
        if data.blocks_total + extent > data.limit:
            data.status = FAILED if data.limited == 1 else MAXIMUM
            return
        data.blocks_total += extent
        data.size += extent * params.ds_block


@kernel
def make_room(store: Store, dataset: int, pages: int) -> bool:
    """Return True if `pages` more pages fit, after expanding the data set for them if it may expand."""
    new = _new_blocks(store, dataset, pages)
    _expand(store, dataset, new)
    return blocks_in_use(store, dataset) + new <= store.datasets[dataset].blocks_total


@kernel
def has_room(store: Store, dataset: int, pages: int) -> bool:
    """Return True if `pages` more pages fit into the data set as it is."""
    return blocks_in_use(store, dataset) + _new_blocks(store, dataset, pages) <= store.datasets[dataset].blocks_total


@kernel
def max_blocks(store: Store, dataset: int) -> int:
    """Return the blocks after all expansions that the data set can still make."""
    data = store.datasets[dataset]
    total = data.blocks_total
    if store.params[0].ds_expand == 0 or data.status != NORMAL:
        return total
    if data.extent > 0:
        return total + max(0, data.limit - total) // data.extent * data.extent
    row = store.usage[DATA_SETS + dataset]
    if row.grown_from != total or row.grown_limit != data.limit:
        row.grown_from, row.grown_limit, row.grown = total, data.limit, _grown(total, data.limit)
    return row.grown


@routine
def _grown(total: int, limit: int) -> int:
    """Return the blocks of a data set of `total` blocks after all expansions by a tenth within a limit.

    It takes a hundred steps to 16 TB, and every tick asks for it.
    """
    extent = max(1, total // 10)
    while total + extent <= limit:
        total += extent
        extent = max(1, total // 10)
    return total


@kernel
def max_rows(store: Store, length: int, count: int) -> int:
    """Return the maximum of rows of `blocks` that `count` messages of `length` bytes take.

    Only a block that messages may share has a row: the one that a message begins and does not fill up. So a message
    takes one row or none, whatever its length and whether or not it fits into the data set.
    """
    params = store.params[0]
    if params.cf_level < 5 or params.offload != OFFLOAD_SMDS:
        return 0
    if count == 1:
        return 1
    shared = max(1, params.ds_block // PAGE_BYTES // pages_of(store, length))
    return (count + shared - 1) // shared


@kernel
def _take_row(store: Store) -> int:
    scalars = store.scalars[0]
    row = scalars.block_free
    if row == NONE:
        row = scalars.block_high
        scalars.block_high += 1
    else:
        scalars.block_free = store.blocks[row].next
    store.blocks[row].next = NONE
    return row


@kernel
def place(store: Store, row: int, dataset: int, pages: int) -> None:
    """Give message `row` its pages, in the block being filled or from the next free block on.

    The last block that it starts becomes the block being filled, unless the message fills it up. Blocks that the
    message fills up are its own: they are counted and have no row.
    """
    data = store.datasets[dataset]
    message = store.messages[row]
    per_block = store.params[0].ds_block // PAGE_BYTES
    message.owner = dataset
    message.pages = pages
    data.pages += pages
    data.messages += 1
    if pages <= data.room:
        message.block = data.filling
        store.blocks[data.filling].pages += pages
        touch(store.blocks_dirty, data.filling, BLOCK_SHIFT)
        data.room -= pages
        if data.room == 0:
            data.filling = NONE
        return
    filled, rest = _cut(pages, per_block)
    data.blocks_data += filled
    if rest > 0:
        block = _take_row(store)
        store.blocks[block].pages = rest
        touch(store.blocks_dirty, block, BLOCK_SHIFT)
        message.block = block
        data.blocks_data += 1
        data.filling = block
        data.room = per_block - rest


@kernel
def release(store: Store, row: int) -> None:
    """Give back the pages of message `row`. A block is free again when its last page is."""
    message = store.messages[row]
    data = store.datasets[message.owner]
    per_block = store.params[0].ds_block // PAGE_BYTES
    filled, rest = _cut(message.pages, per_block)
    data.pages -= message.pages
    data.messages -= 1
    data.blocks_data -= filled
    block = message.block
    if block != NONE:
        store.blocks[block].pages -= rest
        touch(store.blocks_dirty, block, BLOCK_SHIFT)
        if store.blocks[block].pages == 0:
            if block == data.filling:
                data.filling = NONE
                data.room = 0
            store.blocks[block].next = store.scalars[0].block_free
            store.scalars[0].block_free = block
            data.blocks_data -= 1
    message.block = NONE
    message.pages = 0
