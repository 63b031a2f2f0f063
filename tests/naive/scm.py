"""Storage class memory behind a structure, SCMALGORITHM(KEYPRIORITY1): what moves, when, and what bounds it.

Sources: domain.md, 3, and the document "How storage class memory works with IBM MQ for z/OS"
(`storage-class-memory.txt`).
"""

from collections.abc import Callable
from typing import Any

from tests.naive.pools import Pools, exceeds, rounded_up

PRESTAGE_ABOVE_PCT = 90
PREFETCH_UP_TO_PCT = 70
ENTRY_BYTES = 256  # domain.md, 3 (an assumption there): for its entry, and for each element
BLOCK_BYTES = 4096
FIXED_AUGMENTED = 8 * 1024**2  # bytes (an assumption there)
DYNAMIC_AUGMENTED_PCT = 2  # of the bytes in use (an assumption there)
SECOND_NS = 1_000_000_000


def bytes_of(entries: int, elements: int) -> int:
    """What so many entries and elements take together: the sum in 4 KB blocks (domain.md, 3)."""
    return rounded_up(ENTRY_BYTES * (entries + elements), BLOCK_BYTES) * BLOCK_BYTES


def blocks_of(message: Any) -> int:
    """4 KB blocks that a message is moved or read in (our reading: by itself)."""
    return rounded_up(ENTRY_BYTES + ENTRY_BYTES * message.elements, BLOCK_BYTES)


def augmented(used: int) -> int:
    """Dynamic augmented space of so many bytes in SCM (domain.md, 3; our reading: rounded up)."""
    return rounded_up(used * DYNAMIC_AUGMENTED_PCT, 100)


class NaiveScm:
    """What a structure has in SCM. A message counts as moved from the moment its movement begins (our reading).

    `messages`: those of the structure, oldest first; each knows whether it is in SCM (`in_scm`) and whether a get has
    taken it and is not committed (`got`). `usage`: entries and elements in use, without what is in SCM, and those the
    structure has.
    """

    def __init__(
        self, attributes: dict[str, Any], messages: list[Any], usage: Callable[[], tuple[Pools, Pools]]
    ) -> None:
        self.attributes = attributes
        self.messages = messages
        self.usage = usage
        self.busy_until: int | None = None  # ns since 1970; None: nothing moves
        self.prestaged = 0
        self.prefetched = 0
        self.faults = 0
        self.fault_wait_us = 0

    # -- what is in it, what bounds it

    def held(self) -> list[Any]:
        return [message for message in self.messages if message.in_scm]

    def used(self) -> int:
        """Bytes, in whole blocks."""
        return bytes_of(len(self.held()), sum(message.elements for message in self.held()))

    def most(self) -> int:
        """SCMMAXSIZE bounds it, and the coupling facility's SCM if that is smaller."""
        return int(min(self.attributes["scm_max_size"], self.attributes["facility_scm"]))

    def augmented_most(self) -> int:
        """Bytes of the coupling facility that its structures leave, fixed augmented space taken off (our reading)."""
        allocated = self.attributes["init_size"] or self.attributes["size"]
        return max(0, self.attributes["facility_size"] - allocated - FIXED_AUGMENTED)

    def has_room_for(self, message: Any) -> bool:
        """SCM for one more message, and augmented space of the coupling facility for it."""
        elements = sum(one.elements for one in self.held()) + message.elements
        used = bytes_of(len(self.held()) + 1, elements)
        return used <= self.most() and augmented(used) <= self.augmented_most()

    # -- one mover in event time

    def advance(self, now_us: int) -> None:
        """End the movements that are over by then; where one ends, the next begins if it is due."""
        while self.busy_until is not None and self.busy_until <= now_us * 1000:
            at = self.busy_until
            self.busy_until = None
            self.begin(at)

    def begin_if_idle(self, now_us: int) -> None:
        """An event may have made a movement due."""
        if self.busy_until is None:
            self.begin(now_us * 1000)

    def begin(self, at_ns: int) -> None:
        """Move one message, if one is due: out above 90 %, back at or below 70 %; the test is made anew for each."""
        used, total = self.usage()
        if exceeds(PRESTAGE_ABOVE_PCT, used, total):
            message = self.least_likely()
            if message is not None and self.has_room_for(message):
                message.in_scm = True
                self.prestaged += 1
                self.busy_until = at_ns + blocks_of(message) * self._ns_a_block("scm_prestage_rate")
        elif not exceeds(PREFETCH_UP_TO_PCT, used, total) and self.held():
            message = self.most_likely()
            after = Pools(used.entries + 1, used.elements + message.elements)
            if not exceeds(PRESTAGE_ABOVE_PCT, after, total):  # our reading: else it would go back and forth for ever
                message.in_scm = False
                self.prefetched += 1
                self.busy_until = at_ns + blocks_of(message) * self._ns_a_block("scm_prefetch_rate")

    def _ns_a_block(self, rate: str) -> int:
        return rounded_up(BLOCK_BYTES * SECOND_NS, self.attributes[rate])

    def least_likely(self) -> Any:
        """To be got next, of those in the structure: the lowest priority, most recently put; None: there is none.

        Our reading: an uncommitted put moves like any other; what an uncommitted get has taken does not.
        """
        movable = [message for message in self.messages if not message.in_scm and not message.got]
        lowest = min([message.priority for message in movable], default=0)
        return next((message for message in reversed(movable) if message.priority == lowest), None)

    def most_likely(self) -> Any:
        """To be got next, of those in SCM: the highest priority, oldest."""
        highest = max(message.priority for message in self.held())
        return next(message for message in self.held() if message.priority == highest)

    def read(self, message: Any) -> None:
        """A get of a message in SCM waits until it is read into the structure: a fault."""
        if message.in_scm:
            message.in_scm = False
            self.faults += 1
            self.fault_wait_us += blocks_of(message) * self.attributes["scm_read_us"]

    # -- the state record

    def record(self) -> dict[str, Any]:
        return {
            "max": self.most(),
            "used": self.used(),
            "ents": len(self.held()),
            "elems": sum(message.elements for message in self.held()),
            "messages": len(self.held()),
            "aug_fixed": FIXED_AUGMENTED,
            "aug_dynamic": augmented(self.used()),
            "prestaged": self.prestaged,
            "prefetched": self.prefetched,
            "faults": self.faults,
            "fault_wait_s": self.fault_wait_us / 1_000_000,
        }
