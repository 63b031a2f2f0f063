"""The live scores of a store in a slow and obvious way: a list of every look and alert record, and its outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

US = 1_000_000
HORIZONS = (900, 1800, 3600, 7200)
SLOT_US = 300 * US
DAY_US = 86_400 * US
CALM_US = 600 * US
NOT_ABOUT_FILLING = ("drift", "source-silent", "in-doubt", "scm-overcommitted", "not-alterable", "queue-unread")


@dataclass
class NaiveLook:
    """A look. chances: thousandths by horizon; times: seconds until full (p10, p50, p90), or None if unlikely."""

    time: int
    chances: list[int]
    times: tuple[int, int, int] | None
    width: float = 1.0


@dataclass
class NaiveAlert:
    """An alert record."""

    time: int
    alert_id: str
    condition: str
    change: str
    severity: str


@dataclass
class NaiveTurn:
    """A clock that goes back."""

    before: int
    now: int


@dataclass
class NaiveOutcomes:
    """Everything that happened, in order."""

    events: list[NaiveLook | NaiveAlert | NaiveTurn] = field(default_factory=list)

    def look(self, time: int, chances: list[int], times: tuple[int, int, int] | None) -> None:
        """Add a look, with the width that intervals have by then."""
        self.events.append(NaiveLook(time, chances, times, self.width(time)))

    def width(self, now: int) -> float:
        """Return the factor by which the next intervals are wider."""
        spreads = [filling[-12:] for filling in self._settled(now).fillings if filling][-8:]
        every = sorted(spread for filling in spreads for spread in filling)
        if len(spreads) < 4 or len(every) < 20:
            return 1.0
        inside = len([spread for spread in every if spread <= 100])
        if 0.7 - 1e-9 <= inside / len(every) <= 0.9 + 1e-9:
            return 1.0
        return max(0.5, min(3.0, every[math.ceil(0.8 * (len(every) + 1)) - 1] / 100))

    def scores(self, now: int) -> dict | None:
        """Return the scores as of `now`, as the state record has them."""
        settled, today = self._settled(now), now // DAY_US
        chances = [each for each in settled.chances if today - 30 < each[0] <= today]
        pages = [each for each in settled.pages if today - 30 < each[0] <= today]
        intervals = [each for each in settled.intervals if today - 30 < each[0] <= today]
        days = [each[0] for each in (*chances, *pages, *intervals)]
        if not days:
            return None
        horizons = []
        for horizon in range(4):
            looks = [(chance, came) for _, number, chance, came in chances if number == horizon]
            if not looks:
                continue
            share = sum(came for _, came in looks) / len(looks)
            bins = []
            for low in range(0, 1000, 200):
                those = [(c, came) for c, came in looks if low <= c < low + 200 or (low == 800 and c == 1000)]
                if those:
                    predicted = round(sum(chance for chance, _ in those) / len(those) / 1000, 4)
                    bins.append({"looks": len(those), "full": sum(came for _, came in those), "predicted": predicted})
            horizons.append(
                {
                    "horizon_s": HORIZONS[horizon],
                    "looks": len(looks),
                    "full": sum(came for _, came in looks),
                    "brier": round(sum((chance - 1000 * came) ** 2 for chance, came in looks) / len(looks) / 1e6, 6),
                    "climatology": round(share * (1 - share), 6),
                    "bins": bins,
                }
            )
        inside = sum(within for _, within in intervals)
        return {
            "days": today - min(days) + 1,
            "horizons": horizons,
            "intervals": {
                "count": len(intervals),
                "inside": inside,
                "coverage": round(inside / len(intervals), 4) if intervals else None,
                "width": round(self.width(now), 2),
            },
            "pages": {name: sum(what == name for _, what in pages) for name in ("right", "late", "false")},
        }

    def _settled(self, now: int) -> Settled:
        settled = Settled()
        for event in self.events:
            if isinstance(event, NaiveTurn):
                settled.turn(event)
            elif isinstance(event, NaiveLook):
                settled.look(event)
            else:
                settled.alert(event)
        settled.pass_time(now)
        return settled


@dataclass
class NaivePage:
    """A page. kind: right, late or false; None: not known yet."""

    opened: int
    ended: int | None = None
    kind: str | None = None


@dataclass
class Settled:
    """Outcomes, item by item.

    Attributes:
        chances: (day, horizon, chance, came).
        pages: (day, kind).
        intervals: (day, is inside).
        fillings: spreads of each.
        waiting: looks and horizons without an outcome.
        page: the present page.
        calling: ids of open alerts that are pages.
    """

    chances: list[tuple[int, int, int, bool]] = field(default_factory=list)
    pages: list[tuple[int, str]] = field(default_factory=list)
    intervals: list[tuple[int, bool]] = field(default_factory=list)
    fillings: list[list[int]] = field(default_factory=list)
    waiting: list[tuple[NaiveLook, int]] = field(default_factory=list)
    page: NaivePage | None = None
    calling: set[str] = field(default_factory=set)

    def pass_time(self, time: int) -> None:
        """Settle what ended before a time."""
        for look, horizon in self.waiting:
            end = look.time + HORIZONS[horizon] * US
            if end < time:
                self.chances.append((end // DAY_US, horizon, look.chances[horizon], False))
        self.waiting = [(look, h) for look, h in self.waiting if look.time + HORIZONS[h] * US >= time]
        page = self.page
        if page is not None and page.ended is not None and time - page.ended >= CALM_US:
            if page.kind is None:
                self.pages.append((page.ended // DAY_US, "false"))
            self.page = None

    def turn(self, turn: NaiveTurn) -> None:
        """Forget what comes after the new time."""
        self.pass_time(turn.before)
        self.waiting = [(look, h) for look, h in self.waiting if look.time <= turn.now]
        days = range(turn.before // DAY_US - 29, turn.now // DAY_US + 1)
        self.chances = [each for each in self.chances if each[0] in days]
        self.pages = [each for each in self.pages if each[0] in days]
        self.intervals = [each for each in self.intervals if each[0] in days]
        if self.page is not None:
            self.page.opened = min(self.page.opened, turn.now)
            self.page.ended = None if self.page.ended is None else min(self.page.ended, turn.now)

    def look(self, look: NaiveLook) -> None:
        """Wait for the outcome of a look, unless another one of the same five minutes waits."""
        if not any(other.time // SLOT_US == look.time // SLOT_US for other, _ in self.waiting):
            self.pass_time(look.time)
            self.waiting += [(look, horizon) for horizon in range(len(look.chances))]

    def alert(self, alert: NaiveAlert) -> None:
        """Settle what an alert record decides."""
        self.pass_time(alert.time)
        opens = alert.change == "opened"
        if opens and alert.condition == "full":
            self._fill(alert.time)
        if alert.condition in NOT_ABOUT_FILLING:
            return
        if alert.change != "cleared" and alert.severity != "info":
            self.calling.add(alert.alert_id)
            self.page = self.page or NaivePage(alert.time)
            self.page.ended = None
        elif alert.alert_id in self.calling:
            self.calling.discard(alert.alert_id)
            if not self.calling and self.page is not None:
                self.page.ended = alert.time
        page = self.page
        is_refused = opens and alert.condition in ("full", "queue-full")
        if is_refused and page is not None and page.ended is None and page.kind is None:
            is_late = alert.condition == "full" and alert.time - page.opened < 300 * US
            page.kind = "late" if is_late else "right"
            self.pages.append((alert.time // DAY_US, page.kind))

    def _fill(self, time: int) -> None:
        filling = []
        for look, horizon in self.waiting:
            self.chances.append((time // DAY_US, horizon, look.chances[horizon], True))
        for look in {id(look): look for look, _ in self.waiting}.values():
            seconds = (time - look.time) / US
            if look.times is not None and seconds <= 3600:
                filling.append(spread_of(look.times, seconds))
                self.intervals.append((time // DAY_US, filling[-1] <= round(100 * look.width)))
        self.fillings.append(filling)
        self.waiting = []


def spread_of(times: tuple[int, int, int], seconds: float) -> int:
    """Return the smallest whole percent of the width, on a logarithmic scale, whose interval reaches a time."""
    p10, p50, p90 = (max(1, time) for time in times)
    seconds = max(1.0, seconds)
    if seconds >= p50:
        ratio = math.log(seconds / p50) / math.log(max(p90, p50 + 1) / p50)
    else:
        ratio = math.log(p50 / seconds) / math.log(p50 / min(p10, p50 - 1))
    return min(999, math.ceil(100 * ratio))
