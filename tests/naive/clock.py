"""Event time of one store."""

DAY_US = 24 * 60 * 60 * 1_000_000
TICK_US = 10 * 1_000_000  # whatever time alone does, it does on this raster
TRUST = 100  # docs/events.md: events by which a clock that has just jumped must be contradicted
MOST_SUPPORT = 1_000_000


class NaiveClock:
    """The clock of a store: the latest event time, in microseconds since 1970 UTC; None before the first event.

    Late events leave it where it is, unless a majority of events contradicts it: then it goes back.
    """

    trust = TRUST

    def __init__(self) -> None:
        self.now: int | None = None
        self.far: int | None = None  # time of the previous event, when that lay too far ahead to be believed
        self.support = 0  # events within a day of the clock, less those more than a day behind it, since it jumped
        self.behind: list[int] = []  # times of the latter, since the clock jumped
        self.turned = False  # the last event took the clock back

    def advance(self, time: int) -> None:
        """Take the time of the next accepted event.

        contract.md, 7 (Events): an event more than 24 hours ahead of the clock does not move it, unless the store's
        very next event lies within 24 hours of it: then both do. Our reading: the very first event is believed, and
        duplicates are no events of the store, so "the very next" is the next accepted one.

        docs/events.md: a clock that a majority contradicts goes back to the latest of the times that contradict it, of
        those that lie within 24 hours of one another, from the last one on.
        """
        self.turned = False
        if self.now is None or (self.far is not None and abs(time - self.far) <= DAY_US):
            self._jump(max(known for known in (self.now, self.far, time) if known is not None))
        elif time > self.now + DAY_US:
            self.far = time
        elif time >= self.now - DAY_US:
            self.now = max(self.now, time)
            self.far = None
            self.support = min(self.support + 1, MOST_SUPPORT)
        else:
            self.far = None
            self.support -= 1
            self.behind.append(time)
            if self.support <= 0:
                self._jump(self._latest_behind())
                self.support += 1  # the event that took it back agrees with it
                self.turned = True

    def _jump(self, time: int) -> None:
        self.now, self.far, self.support, self.behind = time, None, self.trust, []

    def _latest_behind(self) -> int:
        latest: int | None = None
        for time in self.behind:
            latest = time if latest is None or abs(time - latest) > DAY_US else max(latest, time)
        assert latest is not None
        return latest

    def tick(self) -> int | None:
        """How many ticks since 1970 have been; None before the first event."""
        return None if self.now is None else self.now // TICK_US
