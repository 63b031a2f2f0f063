"""Event time of one store."""

DAY_US = 24 * 60 * 60 * 1_000_000
TICK_US = 10 * 1_000_000  # whatever time alone does, it does on this raster


class NaiveClock:
    """The clock of a store: the latest event time, in microseconds since 1970 UTC; None before the first event.

    It never goes back: late events leave it where it is.
    """

    def __init__(self) -> None:
        self.now: int | None = None
        self.far: int | None = None  # time of the previous event, when that lay too far ahead to be believed

    def advance(self, time: int) -> None:
        """Take the time of the next accepted event.

        contract.md, 7 (Events): an event more than 24 hours ahead of the clock does not move it, unless the store's
        very next event lies within 24 hours of it: then both do. Our reading: the very first event is believed, and
        duplicates are no events of the store, so "the very next" is the next accepted one.
        """
        if self.now is None:
            self.now = time
        elif self.far is not None and abs(time - self.far) <= DAY_US:
            self.now = max(self.now, self.far, time)
            self.far = None
        elif time > self.now + DAY_US:
            self.far = time
        else:
            self.now = max(self.now, time)
            self.far = None

    def tick(self) -> int | None:
        """How many ticks since 1970 have been; None before the first event."""
        return None if self.now is None else self.now // TICK_US
