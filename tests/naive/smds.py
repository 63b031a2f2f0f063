"""A shared message data set: one for each (structure, queue manager), in blocks of DSBLOCK bytes and pages of 4 KB."""

from tests.naive.pools import rounded_up
from twin.estate.model import Smds

PAGE_BYTES = 4096  # domain.md, 2
LARGEST_DATA_SET = 16 * 1024**4  # domain.md, 2: 16 TB
EXPANDS_ABOVE_PCT = 90  # domain.md, 2 (an assumption there)


def pages_of_length(length: int, prefix: int) -> int:
    """4 KB pages of an offloaded message (domain.md, 2). Our reading: a message of no bytes takes one page too."""
    return max(1, rounded_up(length + prefix, PAGE_BYTES))


def map_blocks(blocks_total: int, ds_block: int) -> int:
    """How many of `blocks_total` blocks are space map.

    domain.md, 2: one byte of map a block, DSBLOCK - 4096 bytes of them in a map block, and
    total = data + ceil(data / (DSBLOCK - 4096)). Solved for the map blocks of a total: one of every
    DSBLOCK - 4096 + 1 blocks, begun ones included.
    """
    return rounded_up(blocks_total, ds_block - PAGE_BYTES + 1)


class NaiveDataSet:
    """The data set of one queue manager.

    `blocks[n]` is the number of pages in use in data block n; 0: the block is free. The list is as long as it ever had
    to be: a put that does not fit is a fact and is placed all the same (contract.md, 7, State).
    """

    def __init__(self, size: int, secondary: int | None, max_size: int | None, ds_block: int) -> None:
        self.size = size  # bytes now, expansions included
        self.secondary = secondary
        self.max_size = max_size
        self.ds_block = ds_block
        self.status = "NORMAL"
        self.blocks: list[int] = []
        self.filling: int | None = None  # number of the block being filled
        self.left = 0  # pages not yet used at the end of the block being filled

    # -- how much there is, how much is used

    def blocks_total(self) -> int:
        """Size / DSBLOCK rounded down, map blocks included (domain.md, 2)."""
        return self.size // self.ds_block

    def data_blocks_in_use(self) -> int:
        """Data blocks holding at least one page in use."""
        return len([pages for pages in self.blocks if pages > 0])

    def blocks_used(self) -> int:
        """Blocks holding at least one page in use, space map blocks included (contract.md, 3)."""
        return map_blocks(self.blocks_total(), self.ds_block) + self.data_blocks_in_use()

    def pages_used(self) -> int:
        """Pages that messages hold."""
        return sum(self.blocks)

    def pages_a_block(self) -> int:
        """Pages of a block."""
        return self.ds_block // PAGE_BYTES

    # -- putting and getting

    def new_blocks_for(self, pages: int) -> int:
        """Free blocks that a message would take: none when it fits in what is left of the block being filled."""
        return 0 if pages <= self.left else rounded_up(pages, self.pages_a_block())

    def make_room(self, pages: int, ds_expand: bool, beyond_the_model: int) -> bool:
        """Expand as the message needs it; True when it fits then.

        domain.md, 2: DSEXPAND(YES) expands when more than 90 % of the blocks are in use, by the secondary allocation,
        else by 10 %; at most 16 TB. Our reading: the blocks of the message to come are counted as in use; an extent is
        whole blocks, at least one; it is taken whole or not at all; the data set expands again until it need not.
        `max_size` is what its volumes hold: beyond it the state is FAILED, beyond 16 TB it is MAXIMUM, and no
        expansion is tried again in either.

        `beyond_the_model`: blocks in use that only a MEASURE knows of (contract.md, 7, Events).
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
        """Blocks of the next expansion."""
        if self.secondary is not None:
            return max(1, self.secondary // self.ds_block)
        return max(1, self.blocks_total() // 10)

    def place(self, pages: int) -> list[tuple[int, int]]:
        """Place a message; gives (block, pages in it) of each block it lies in.

        domain.md, 2: contiguous in the block being filled; a message that does not fit in what is left starts at the
        next free block and takes whole blocks as it needs, the rest of its last block becoming the block being filled.
        The rest of the old one is lost until that block is free. Our reading: a message that leaves no rest in its last
        block leaves the block being filled as it is.
        """
        if pages <= self.left:
            assert self.filling is not None
            self.blocks[self.filling] += pages
            self.left -= pages
            return [(self.filling, pages)]
        where = []
        while pages > 0:
            block = self._free_block()
            self.blocks[block] = min(pages, self.pages_a_block())
            where.append((block, self.blocks[block]))
            pages -= self.blocks[block]
        last, pages_in_last = where[-1]
        if pages_in_last < self.pages_a_block():
            self.filling = last
            self.left = self.pages_a_block() - pages_in_last
        return where

    def release(self, where: list[tuple[int, int]]) -> None:
        """Free the pages of a message; a block is free again when its last page is (domain.md, 2).

        Our reading: a block being filled that becomes free is no longer the block being filled.
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
        """Take a new DSBLOCK: only while the data set is empty; it keeps its bytes (our reading)."""
        assert self.pages_used() == 0
        self.ds_block = ds_block
        self.blocks = []

    def try_again(self) -> None:
        """ALTER CFSTRUCT DSEXPAND(YES): expansion is tried again after it failed (our reading)."""
        self.status = "NORMAL"


def new_data_set(smds: Smds, ds_block: int) -> NaiveDataSet:
    """The data set of a queue manager, as the estate describes it."""
    return NaiveDataSet(smds.size, smds.secondary, smds.max_size, ds_block)
