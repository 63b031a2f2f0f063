"""When a measurement is taken over: two that differ the same way, or one of a store that nothing reports, show it.

The rule: docs/feeds-joined.md, "How it works".
"""

from math import sqrt

LEAST_GAP = 10  # messages by which a measurement may differ from events
AGREED = 20  # measurements in a row with which events agree, after which they are complete again
ENOUGH = 20  # messages, below which a share says little
FADING = 0.9
DEAD = 3  # measurements
Z90 = 1.645

Compared = dict[str, tuple[int, int, int]]  # (model, measured, total) by resource


class NaiveEstimate:
    """The agreement of events with measurements, and by how much these have moved what is in use."""

    def __init__(self) -> None:
        self.tick: int | None = None  # of the last measurement
        self.calls = 0  # puts and gets known by then
        self.is_partial = False
        self.odd = 0.0  # messages by which the last measurement differed where the one before it did not
        self.agreed = 0
        self.moved: dict[str, float] = {}
        self.seen: NaiveSeen | None = None

    def shows_a_sample(self, tick: int, gap: float, calls: int, is_reported: bool) -> bool:
        """Take a measurement that has `gap` messages more than events and baseline; return True if it is taken over.

        `is_reported` is False while no operation of a queue was ever reported.
        """
        if self.tick is not None:
            pace = (calls - self.calls) / max(1, tick - self.tick)
            agrees = abs(gap) <= LEAST_GAP + 0.5 * pace
            if self.is_partial:
                if calls > self.calls:
                    self.agreed = self.agreed + 1 if agrees else 0
                    self.is_partial = self.agreed < AGREED
            else:
                before, self.odd = self.odd, 0.0 if agrees else gap
                if not agrees and (before * gap > 0 or not is_reported):
                    self.is_partial, self.agreed = True, 0
        if self.is_settled:
            self.tick, self.calls = tick, calls
        return self.is_partial

    @property
    def is_settled(self) -> bool:
        """True if the last measurement was taken over, or agreed with events."""
        return self.is_partial or self.odd == 0.0

    @property
    def is_known_sample(self) -> bool:
        """True if a tenth of the puts, or gets, is known to be missing."""
        return self.seen is not None and self.seen.lacks_a_tenth()

    def note_seen(self, known: int, measured: int) -> None:
        """Take the messages by events and by a measurement."""
        if self.seen is None:
            self.seen = NaiveSeen(known, measured)
        else:
            self.seen.note(known, measured)

    def note_moved(self, compared: Compared) -> None:
        """Take what a measurement moves. Where a tenth of the puts or gets is known to be missing nothing counts."""
        if self.is_known_sample:
            self.moved = {}
            return
        for resource, (model, measured, _) in compared.items():
            self.moved[resource] = self.moved.get(resource, 0.0) + measured - model

    def unmoved(self, compared: Compared) -> list[tuple[float, int, int]]:
        """Return what is compared as it would be without these moves."""
        return [(model - self.moved.get(name, 0.0), real, total) for name, (model, real, total) in compared.items()]


class NaiveSeen:
    """By how much a store grew and shrank between measurements, and how much of that events have reported."""

    def __init__(self, known: int, measured: int) -> None:
        self.known, self.measured = known, measured
        self.grown, self.shrunk = (0.0, 0.0), (0.0, 0.0)  # (by events, in all), of which the older counts less
        self.dead = 0  # measurements in a row at which it has changed and no event said so

    def note(self, known: int, measured: int) -> None:
        """Take the messages by events and by a measurement."""
        by_events, real = known - self.known, measured - self.measured
        self.known, self.measured = known, measured
        if abs(real) < LEAST_GAP:
            return
        was_dead = self.is_dead
        self.dead = self.dead + 1 if by_events == 0 else 0
        if self.is_dead != was_dead:
            self.grown, self.shrunk = (0.0, 0.0), (0.0, 0.0)
        if real > 0:
            self.grown = FADING * self.grown[0] + by_events, FADING * self.grown[1] + real
        else:
            self.shrunk = FADING * self.shrunk[0] - by_events, FADING * self.shrunk[1] - real

    @property
    def is_dead(self) -> bool:
        """True if nothing has been reported of the last changes."""
        return self.dead >= DEAD

    def lacks_a_tenth(self) -> bool:
        """Return True if fewer than nine in ten are reported, also by the upper bound of Wilson's interval."""
        return self.is_dead or any(
            real >= ENOUGH and upper_bound(known / real, real) < 0.9 for known, real in (self.grown, self.shrunk)
        )


def upper_bound(share: float, number: float) -> float:
    """Return the bound that 95 % of the shares do not exceed, by Wilson."""
    share = min(1.0, max(0.0, share))
    spread = sqrt(share * (1 - share) / number + Z90**2 / (4 * number**2))
    return round(min(1.0, (share + Z90**2 / (2 * number) + Z90 * spread) / (1 + Z90**2 / number)), 4)


def removed_by_queue(held: dict[str, int], surplus: int, depths: dict[str, int]) -> dict[str, int]:
    """Return how many available messages of each queue go: first what a queue has beyond its measured depth."""
    beyond = {queue: max(0, own - depths.get(queue, own)) for queue, own in held.items()}
    excess, rest = sum(beyond.values()), sum(held.values()) - sum(beyond.values())
    scale = min(1.0, surplus / max(1, excess))
    more = min(1.0, max(0, surplus - excess) / max(1, rest))
    return {queue: min(own, round(beyond[queue] * scale + (own - beyond[queue]) * more)) for queue, own in held.items()}
