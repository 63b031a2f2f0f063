"""Event time of one store."""

DAY_US = 24 * 60 * 60 * 1_000_000
TICK_US = 10 * 1_000_000  # the raster on which the passing of time has effects
TRUST = 100  # events that support a clock that has just jumped, docs/events.md#time
MAX_SUPPORT = 1_000_000


class NaiveClock:
    """The clock of a store: the latest event time, in microseconds since 1970 UTC; None before the first event.

    Late events do not move it, unless a majority of events contradicts it: then it goes back.
    """

    trust = TRUST

    def __init__(self) -> None:
        self.now: int | None = None
        self.far: int | None = None  # time of the previous event, if it was too far ahead
        self.support = 0  # events within a day of the clock, minus those further behind, since it jumped
        self.behind: list[int] = []  # times of the latter, since the clock jumped
        self.turned = False  # the last event took the clock back

    def advance(self, time: int) -> None:
        """Take the time of the next accepted event.

        An event more than 24 hours ahead of the clock does not move it, unless the store's next event lies within 24
        hours of that event: then both do. Assumed: the first event of all always moves the clock, and a duplicate is
        not the next event.

        A clock that a majority contradicts goes back to the latest of the contradicting times, among those within 24
        hours of each other, from the last one backwards.
        """
        self.turned = False
        if self.now is None or (self.far is not None and abs(time - self.far) <= DAY_US):
            self._jump(max(known for known in (self.now, self.far, time) if known is not None))
        elif time > self.now + DAY_US:
            self.far = time
        elif time >= self.now - DAY_US:
            self.now = max(self.now, time)
            self.far = None
            self.support = min(self.support + 1, MAX_SUPPORT)
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
        """Return the number of ticks since 1970, or None before the first event."""
        return None if self.now is None else self.now // TICK_US
