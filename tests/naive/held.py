"""Held gets: their message has not arrived, is an uncommitted put, or was never known.

The rule: docs/events.md#duplicates-gaps-and-late-events.
"""

from dataclasses import dataclass

from tests.naive.units import Message, Unit

HOLD_US = 60 * 60 * 1_000_000  # an hour of event time


@dataclass(eq=False)
class HeldGet:
    """A get without its message. A get with `count` is held message by message."""

    queue: str  # resolved
    msgid: str | None
    held_at: int  # the store's clock when it was held
    unit: Unit | None  # None outside syncpoint
    expired: bool = False  # already before the clock went back


class NaiveHeldGets:
    """The held gets, oldest first. Those held for an hour stay in the list and match no more."""

    def __init__(self) -> None:
        self.gets: list[HeldGet] = []

    def unmatched(self) -> int:
        """Return the number of gets still open or expired."""
        return len(self.gets)

    def hold(self, get: HeldGet) -> None:
        """Hold a get."""
        self.gets.append(get)

    def pop_first_for(self, message: Message, now: int) -> HeldGet | None:
        """Remove and return the oldest held get that matches a message now available, or None.

        Assumed: a get without msgid matches any message of its queue.
        """
        for get in self.gets:
            matches = get.queue == message.queue and get.msgid in (None, message.msgid)
            if matches and not self._expired(get, now):
                self.gets.remove(get)
                return get
        return None

    def end_waits(self) -> None:
        """End the wait of gets of any message outside syncpoint: a measurement that is taken over knows of them."""
        for get in self.gets:
            get.expired = get.expired or (get.msgid is None and get.unit is None)

    def commit(self, unit: Unit) -> None:
        """Let the held gets of a unit of work keep waiting after its COMMIT, without the unit."""
        for get in self.gets:
            if get.unit is unit:
                get.unit = None

    def back_out(self, unit: Unit, now: int) -> None:
        """Drop the held gets of a unit of work at its BACKOUT. Assumed: expired ones stay counted."""
        self.gets = [get for get in self.gets if get.unit is not unit or self._expired(get, now)]

    def turn_back(self, before: int, now: int) -> None:
        """Turn the clock back: expired gets stay expired, and times in the future become the present."""
        for get in self.gets:
            get.expired = self._expired(get, before)
            get.held_at = min(get.held_at, now)

    @staticmethod
    def _expired(get: HeldGet, now: int) -> bool:
        return get.expired or now - get.held_at >= HOLD_US
