"""A shared message data set of a structure and queue manager, in blocks of DSBLOCK bytes and pages of 4 KB.

The rules: docs/storage-model.md#shared-message-data-sets.
"""

from tests.naive.pools import rounded_up
from twin.estate.model import Smds

PAGE_BYTES = 4096
LARGEST_DATA_SET = 16 * 1024**4  # 16 TB
EXPANDS_ABOVE_PCT = 90  # [assumed]


def pages_of_length(length: int, prefix: int) -> int:
    """Return the 4 KB pages of an offloaded message. Assumed: an empty message takes a page too."""
    return max(1, rounded_up(length + prefix, PAGE_BYTES))


def map_blocks(blocks_total: int, ds_block: int) -> int:
    """Return the space map blocks among `blocks_total` blocks.

    The map has a byte per block, and a map block holds DSBLOCK - 4096 of them:
    total = data + ceil(data / (DSBLOCK - 4096)). Solved for the map blocks of a total, that is one of every
    DSBLOCK - 4096 + 1 blocks, rounded up.
    """
    return rounded_up(blocks_total, ds_block - PAGE_BYTES + 1)


class NaiveDataSet:
    """The data set of a queue manager.

    `blocks[n]` is the number of pages in use in data block n, 0 for a free block. The list grows as needed: a put that
    does not fit is placed all the same.
    """

    def __init__(self, size: int, secondary: int | None, max_size: int | None, ds_block: int) -> None:
        self.size = size  # bytes, expansions included
        self.secondary = secondary
        self.max_size = max_size
        self.ds_block = ds_block
        self.status = "NORMAL"
        self.blocks: list[int] = []
        self.filling: int | None = None  # index of the block being filled
        self.left = 0  # unused pages of the block being filled

    # -- size and usage

    def blocks_total(self) -> int:
        """Return size / DSBLOCK rounded down, map blocks included."""
        return self.size // self.ds_block

    def data_blocks_in_use(self) -> int:
        """Return the number of data blocks with at least one page in use."""
        return len([pages for pages in self.blocks if pages > 0])

    def blocks_used(self) -> int:
        """Return the number of blocks with at least one page in use, space map blocks included."""
        return map_blocks(self.blocks_total(), self.ds_block) + self.data_blocks_in_use()

    def pages_used(self) -> int:
        """Return the number of pages of the messages."""
        return sum(self.blocks)

    def pages_per_block(self) -> int:
        """Return the number of pages per block."""
        return self.ds_block // PAGE_BYTES

    # -- putting and getting

    def new_blocks_for(self, pages: int) -> int:
        """Return the free blocks that a message would take: 0 if it fits into the block being filled."""
        return 0 if pages <= self.left else rounded_up(pages, self.pages_per_block())

    def make_room(self, pages: int, ds_expand: bool, beyond_the_model: int) -> bool:
        """Expand the data set for a message; return True if the message fits then.

        DSEXPAND(YES) expands when more than 90 % of the blocks are in use, by the secondary allocation or else by 10 %,
        up to 16 TB. Assumed: the blocks of the new message count as in use. An extent is a whole number of blocks, at
        least one, and is taken whole or not at all. The data set expands as often as needed. `max_size` is what its
        volumes hold: beyond it the state is FAILED, beyond 16 TB it is MAXIMUM, and neither expands again.

        `beyond_the_model` is the number of blocks in use that only a MEASURE knows of.
        """
        new = self.new_blocks_for(pages) + beyond_the_model
        while self._wants_to_expand(new) and ds_expand and self.status == "NORMAL":
            extent = self.extent_blocks()
            limit = LARGEST_DATA_SET if self.max_size is None else self.max_size
            if self.blocks_total() + extent > limit // self.ds_block:
                self.status = "MAXIMUM" if self.max_size is None else "FAILED"
            else:
                self.size += extent * self.ds_block
        return self.blocks_used() + new <= self.blocks_total()

    def _wants_to_expand(self, new: int) -> bool:
        return (self.blocks_used() + new) * 100 > EXPANDS_ABOVE_PCT * self.blocks_total()

    def extent_blocks(self) -> int:
        """Return the number of blocks of the next expansion."""
        if self.secondary is not None:
            return max(1, self.secondary // self.ds_block)
        return max(1, self.blocks_total() // 10)

    def blocks_max(self, ds_expand: bool) -> int:
        """Return the blocks after every expansion that is still possible."""
        limit = (LARGEST_DATA_SET if self.max_size is None else self.max_size) // self.ds_block
        blocks = self.blocks_total()
        if not ds_expand or self.status != "NORMAL" or blocks > limit:
            return blocks
        if self.secondary is not None:
            return blocks + (limit - blocks) // self.extent_blocks() * self.extent_blocks()
        while blocks + max(1, blocks // 10) <= limit:
            blocks += max(1, blocks // 10)
        return blocks

    def place(self, pages: int) -> list[tuple[int, int]]:
        """Place a message; return (block, pages in it) for each of its blocks.

        A message goes into the block being filled if it fits there. Otherwise it starts at the next free block and
        takes whole blocks as it needs. Its last block becomes the block being filled, and the rest of the old one is
        lost until that block is free. Assumed: a message that fills its last block leaves the block being filled as it
        is.
        """
        if pages <= self.left:
            assert self.filling is not None
            self.blocks[self.filling] += pages
            self.left -= pages
            return [(self.filling, pages)]
        where = []
        while pages > 0:
            block = self._free_block()
            self.blocks[block] = min(pages, self.pages_per_block())
            where.append((block, self.blocks[block]))
            pages -= self.blocks[block]
        last, pages_in_last = where[-1]
        if pages_in_last < self.pages_per_block():
            self.filling = last
            self.left = self.pages_per_block() - pages_in_last
        return where

    def release(self, where: list[tuple[int, int]]) -> None:
        """Free the pages of a message. A block is free again when its last page is.

        Assumed: a block being filled that becomes free is no longer being filled.
        """
        for block, pages in where:
            self.blocks[block] -= pages
            if self.blocks[block] == 0 and block == self.filling:
                self.filling = None
                self.left = 0

    def _free_block(self) -> int:
        for block, pages in enumerate(self.blocks):
            if pages == 0:
                return block
        self.blocks.append(0)
        return len(self.blocks) - 1

    # -- ALTER

    def set_block_size(self, ds_block: int) -> None:
        """Set a new DSBLOCK, which needs an empty data set; the size in bytes stays [assumed]."""
        assert self.pages_used() == 0
        self.ds_block = ds_block
        self.blocks = []

    def try_again(self) -> None:
        """Allow expansion again after it failed, as ALTER CFSTRUCT DSEXPAND(YES) does [assumed]."""
        self.status = "NORMAL"


def new_data_set(smds: Smds, ds_block: int) -> NaiveDataSet:
    """Return the data set of a queue manager from the estate."""
    return NaiveDataSet(smds.size, smds.secondary, smds.max_size, ds_block)
