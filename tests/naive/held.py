"""Gets held aside: their message is not there yet, or only as an uncommitted put, or was never known."""

from dataclasses import dataclass

from tests.naive.units import Message, Unit

HOLD_US = 60 * 60 * 1_000_000  # contract.md, 7 (Events): an hour of event time


@dataclass(eq=False)
class HeldGet:
    """One get without its message; a get with `count` is held message by message (contract.md, 7, Events)."""

    queue: str  # resolved
    msgid: str | None
    held_at: int  # the store's clock then
    unit: Unit | None  # None: outside syncpoint
    expired: bool = False  # before the clock went back


class NaiveHeldGets:
    """The gets held aside, in the order they were; those held for an hour stay in the list, and match no more."""

    def __init__(self) -> None:
        self.gets: list[HeldGet] = []

    def unmatched(self) -> int:
        """Gets still open or expired (contract.md, 7, Events)."""
        return len(self.gets)

    def hold(self, get: HeldGet) -> None:
        """Hold one more aside."""
        self.gets.append(get)

    def pop_first_for(self, message: Message, now: int) -> HeldGet | None:
        """The get that takes a message of its queue that is now available: of those that match, the one held first.

        Our reading: a get without msgid matches any message of its queue.
        """
        for get in self.gets:
            matches = get.queue == message.queue and get.msgid in (None, message.msgid)
            if matches and not self._expired(get, now):
                self.gets.remove(get)
                return get
        return None

    def commit(self, unit: Unit) -> None:
        """A get held aside in a unit of work waits on after its COMMIT (contract.md, 7, Events), without the unit."""
        for get in self.gets:
            if get.unit is unit:
                get.unit = None

    def back_out(self, unit: Unit, now: int) -> None:
        """... and is dropped by its BACKOUT. Our reading: not one that has expired, which stays counted."""
        self.gets = [get for get in self.gets if get.unit is not unit or self._expired(get, now)]

    def turn_back(self, before: int, now: int) -> None:
        """The clock has gone back: what has expired stays so, any other get held in the future was held now."""
        for get in self.gets:
            get.expired = self._expired(get, before)
            get.held_at = min(get.held_at, now)

    @staticmethod
    def _expired(get: HeldGet, now: int) -> bool:
        return get.expired or now - get.held_at >= HOLD_US
