"""Storage class memory behind a structure, SCMALGORITHM(KEYPRIORITY1): movements and their limits.

The rules: docs/storage-model.md#storage-class-memory.
"""

from collections.abc import Callable
from typing import Any

from tests.naive.pools import Pools, exceeds, rounded_up

PRESTAGE_ABOVE_PCT = 90
PREFETCH_UP_TO_PCT = 70
ENTRY_BYTES = 256  # per entry, and per element [assumed]
BLOCK_BYTES = 4096
FIXED_AUGMENTED = 8 * 1024**2  # bytes [assumed]
DYNAMIC_AUGMENTED_PCT = 2  # of the bytes in use [assumed]
SECOND_NS = 1_000_000_000


def bytes_of(entries: int, elements: int) -> int:
    """Return the bytes of entries and elements together, in 4 KB blocks."""
    return rounded_up(ENTRY_BYTES * (entries + elements), BLOCK_BYTES) * BLOCK_BYTES


def blocks_of(message: Any) -> int:
    """Return the 4 KB blocks in which a message is moved or read, by itself [assumed]."""
    return rounded_up(ENTRY_BYTES + ENTRY_BYTES * message.elements, BLOCK_BYTES)


def augmented(used: int) -> int:
    """Return the dynamic augmented space for `used` bytes in SCM, rounded up [assumed]."""
    return rounded_up(used * DYNAMIC_AUGMENTED_PCT, 100)


class NaiveScm:
    """The SCM of a structure. A message counts as moved from the moment its movement begins [assumed].

    Args:
        attributes: attributes of the structure, and of its coupling facility.
        messages: messages of the structure, oldest first, with `in_scm`, and `got` for a get that is not committed.
        usage: returns entries and elements in use, without those in SCM, and those of the structure.
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
        self.others_leave: int | None = (
            None  # bytes of SCM that puts have shown to be there for it; None: its share counts
        )
        self.unseen = (0, 0)  # messages and elements measured beyond those that are known, below 0: fewer

    # -- contents and limits

    def held(self) -> list[Any]:
        return [message for message in self.messages if message.in_scm]

    def in_use(self) -> tuple[int, int]:
        """Return messages and elements, with what only a measurement shows."""
        messages, elements = self.unseen
        return max(0, len(self.held()) + messages), max(0, sum(own.elements for own in self.held()) + elements)

    def used(self) -> int:
        """Return the bytes in use, in whole blocks."""
        return bytes_of(*self.in_use())

    def maximum(self) -> int:
        """Return SCMMAXSIZE, or the SCM of the coupling facility if that is smaller."""
        return int(min(self.attributes["scm_max_size"], self.attributes["facility_scm"]))

    def share(self) -> int:
        """Return what is left for the structure when all structures of its facility take their SCMMAXSIZE [assumed].

        If together they are more than the facility has, each is as much smaller as all lack.
        """
        own, there_is = self.attributes["scm_max_size"], self.attributes["facility_scm"]
        together = own + self.attributes["others_scm"]
        return int(own if together <= there_is else own * there_is // together)

    def limit(self) -> int:
        """Return the bytes that the structure may use: its share, or what its puts have shown."""
        if self.share() >= self.maximum() or self.others_leave is None:
            return min(self.share(), self.maximum())
        return min(self.others_leave, self.maximum())

    def see_accepted(self, elements: int) -> bool:
        """Take note of an accepted put of `elements` elements without room; return True if the structure has more now.

        The mover is late by the model, and must have made room in time. With its share used up, it must have moved on:
        others leave more. How much nobody says, so SCMMAXSIZE counts from now on, and what is above 90 % has been moved
        in the meantime [assumed].
        """
        used, total = self.usage()
        message = self.least_likely()
        if message is None or not exceeds(PRESTAGE_ABOVE_PCT, used, total):
            return False
        if self.has_room_for(message):
            return self.make_room(elements)
        if self.used_with(message) <= self.limit():
            return False  # it lacks augmented space
        before, self.others_leave = self.others_leave, self.any_maximum()
        if not self.has_room_for(message):
            self.others_leave = before
            return False
        while exceeds(PRESTAGE_ABOVE_PCT, self.usage()[0], total):
            message = self.least_likely()
            if message is None or not self.has_room_for(message):
                break
            message.in_scm = True
            self.prestaged += 1
        self.busy_until = None
        return True

    def make_room(self, elements: int) -> bool:
        """Move messages out, above 90 %, until an entry with `elements` elements fits; return True if any was moved."""
        before = self.prestaged
        while True:
            used, total = self.usage()
            fits = used.entries + 1 <= total.entries and used.elements + elements <= total.elements
            message = self.least_likely()
            if fits or not exceeds(PRESTAGE_ABOVE_PCT, used, total) or message is None:
                break
            if not self.has_room_for(message):
                break
            message.in_scm = True
            self.prestaged += 1
        return self.prestaged > before

    @staticmethod
    def any_maximum() -> int:
        """Return more bytes than any SCMMAXSIZE."""
        return 1 << 62

    def see_refused(self, after: Pools, fits: bool) -> None:
        """Take note of a put refused with 2192 that fits by the model: the facility has no more SCM than is in use.

        Only above 90 %, `after` the put, does the mover have to make room.
        """
        if (
            fits
            and self.held()
            and self.share() < self.maximum()
            and exceeds(PRESTAGE_ABOVE_PCT, after, self.usage()[1])
        ):
            self.others_leave = min(self.limit(), self.used())

    def forget_if_empty(self) -> None:
        """Let the share count again once nothing is in SCM: what the structure gave back others may have taken."""
        if not self.held():
            self.others_leave = None

    def augmented_limit(self) -> int:
        """Return the bytes of the coupling facility that structures and fixed augmented space leave [assumed]."""
        allocated = self.attributes["init_size"] or self.attributes["size"]
        return max(0, self.attributes["facility_size"] - allocated - FIXED_AUGMENTED)

    def used_with(self, message: Any) -> int:
        """Return the bytes in use once a message more is in SCM."""
        messages, elements = self.in_use()
        return bytes_of(messages + 1, elements + message.elements)

    def has_room_for(self, message: Any) -> bool:
        """Return True if SCM, and the coupling facility's augmented space for it, have room for a message."""
        used = self.used_with(message)
        return used <= self.limit() and augmented(used) <= self.augmented_limit()

    # -- one mover in event time

    def advance(self, now_us: int) -> None:
        """End the movements that are over by `now_us`; at the end of one the next begins if it is due."""
        while self.busy_until is not None and self.busy_until <= now_us * 1000:
            end_ns = self.busy_until
            self.busy_until = None
            self.begin(end_ns)

    def begin_if_idle(self, now_us: int) -> None:
        """Begin a movement that an event has made due."""
        if self.busy_until is None:
            self.begin(now_us * 1000)

    def begin(self, now_ns: int) -> None:
        """Move a message if one is due: out above 90 %, back at or below 70 %. Each message has its own test."""
        used, total = self.usage()
        if exceeds(PRESTAGE_ABOVE_PCT, used, total):
            message = self.least_likely()
            if message is not None and self.has_room_for(message):
                message.in_scm = True
                self.prestaged += 1
                self.busy_until = now_ns + blocks_of(message) * self._ns_per_block("scm_prestage_rate")
        elif not exceeds(PREFETCH_UP_TO_PCT, used, total) and self.held():
            message = self.most_likely()
            after = Pools(used.entries + 1, used.elements + message.elements)
            if not exceeds(PRESTAGE_ABOVE_PCT, after, total):  # [assumed]: else it would go back and forth for ever
                message.in_scm = False
                self.prefetched += 1
                self.forget_if_empty()
                self.busy_until = now_ns + blocks_of(message) * self._ns_per_block("scm_prefetch_rate")

    def _ns_per_block(self, rate: str) -> int:
        return rounded_up(BLOCK_BYTES * SECOND_NS, self.attributes[rate])

    def least_likely(self) -> Any:
        """Return the message of the structure least likely to be got next, or None: the lowest priority, put last.

        Assumed: an uncommitted put moves like any other, and a message taken by an uncommitted get does not move.
        """
        movable = [message for message in self.messages if not message.in_scm and not message.got]
        lowest = min([message.priority for message in movable], default=0)
        return next((message for message in reversed(movable) if message.priority == lowest), None)

    def most_likely(self) -> Any:
        """Return the message in SCM most likely to be got next: the highest priority, the oldest."""
        highest = max(message.priority for message in self.held())
        return next(message for message in self.held() if message.priority == highest)

    def read(self, message: Any) -> None:
        """Read a message for its get, which waits if the message is in SCM: a fault."""
        if message.in_scm:
            message.in_scm = False
            self.faults += 1
            self.fault_wait_us += blocks_of(message) * self.attributes["scm_read_us"]

    # -- the state record

    def record(self) -> dict[str, Any]:
        return {
            "max": self.limit(),
            "used": self.used(),
            "ents": self.in_use()[0],
            "elems": self.in_use()[1],
            "messages": self.in_use()[0],
            "aug_fixed": FIXED_AUGMENTED,
            "aug_dynamic": augmented(self.used()),
            "prestaged": self.prestaged,
            "prefetched": self.prefetched,
            "faults": self.faults,
            "fault_wait_s": self.fault_wait_us / 1_000_000,
        }
