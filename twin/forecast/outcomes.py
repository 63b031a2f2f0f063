"""Outcomes of a store's forecasts and pages: the live scores of docs/state.md, and how wide its intervals should be.

Every five minutes one look is noted: its probability to be full within each of HORIZONS, and its interval. It is
settled by event times: by the next alert `full` if that comes before a horizon ends, else by the end of the horizon.
Days are those of event time, UTC. The content depends on the store's looks and alert records alone. Intervals are
corrected as in split conformal prediction: of each filling it is known by which factor the intervals had to be wider to
contain it, and four fifths of these factors are covered [Angelopoulos and Bates: A gentle introduction to conformal
prediction].
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import UNSET

from kernels.clock import SECOND, TICK
from twin.alerts.episodes import CALM_FOR, Alert
from twin.base.conditions import CLEARED, DATA, INFO, OPENED, Condition
from twin.forecast.outlook import SECONDS, Outlook
from twin.records import (
    NONE,
    USEFUL,
    USELESS,
    ForecastScores,
    HorizonScore,
    IntervalScore,
    PageScore,
    ProbabilityBin,
    opened_of,
)

HORIZONS = (900, 1800, 3600, 7200)  # seconds
WINDOW_DAYS = 30
_BINS = 5  # of the probability, equally wide
_MILLE = 1000  # probabilities are kept in thousandths, so that sums are exact
_SLOT_TICKS = round(300 / SECONDS)  # one look in each is noted
_DAY = 86_400 * SECOND
_IN_TIME = 300 * SECOND  # before full, from which a page is in time
_LAST_HOUR = 3600.0  # of a filling, whose intervals count
_MAX_FILLINGS = 8  # whose intervals correct the next ones
_MAX_INTERVALS = 12  # of a filling, the last ones
_MIN_FILLINGS = 4  # from which intervals are corrected; those of one filling resemble each other [assumed]
_MIN_INTERVALS = 20  # the same [assumed]
_COVERED = 0.8  # share that p10..p90 has to contain
_TOLERANCE = 0.1  # of that share, within which intervals stay as they are
_MAX_SPREAD = 999  # percent
_MIN_WIDTH, _MAX_WIDTH = 0.5, 3.0  # of a correction [assumed]
_MAX_CALLS = 32  # pages of the forecast that a store remembers, the last ones
_PRIOR_PAGES, _PRIOR_USEFUL = 4.0, 0.6  # weight of what is assumed before any word, in pages, and the share [assumed]
_LEAST_WORTH, _MOST_WORTH = 0.25, 2.0  # factor on the odds that words may make of a page [assumed]

Times = tuple[float, float, float]  # seconds until full: p10, p50, p90


class Look(msgspec.Struct, array_like=True):
    """A look ahead that is not settled for all horizons."""

    tick: int  # when it was
    chances: list[int]  # thousandths, probability to be full within each horizon that the forecast reaches
    times: list[int]  # whole seconds until full (p10, p50, p90), uncorrected; empty if full was unlikely
    width: int  # percent, the correction of its interval
    settled: int = 0  # number of horizons that have ended


class Day(msgspec.Struct, array_like=True):
    """Sums of a day."""

    day: int  # days since 1970
    # by horizon, squared errors of the probabilities in millionths
    squares: list[int] = msgspec.field(default_factory=lambda: [0] * len(HORIZONS))
    bins: dict[int, list[int]] = {}  # by horizon and bin of probability: looks, those followed by full, thousandths
    intervals: int = 0  # number of settled intervals
    inside: int = 0  # number of those that contained the time of full
    right: int = 0  # number of pages in time
    late: int = 0  # number of pages too late
    false: int = 0  # number of pages without a refused put
    saved: int = 0  # number of those that were useful in the word of people

    def count(self, horizon: int, chance: int, *, came: bool) -> None:
        """Count a settled probability; `came`: the store was full before the end of the horizon."""
        self.squares[horizon] += (chance - _MILLE * came) ** 2
        sums = self.bins.setdefault(horizon * _BINS + min(_BINS - 1, chance * _BINS // _MILLE), [0, 0, 0])
        sums[0] += 1
        sums[1] += came
        sums[2] += chance


class Page(msgspec.Struct, array_like=True):
    """A page of a store: from the call until nothing has called for ten minutes. Times in microseconds."""

    opened: int  # when it called
    ended: int | None = None  # when it last ceased to call; None: it calls
    is_judged: bool = False  # True once a put was refused: it is counted

    def is_over(self, now: int) -> bool:
        """Return True if what calls from now on is another page."""
        return self.ended is not None and now - self.ended >= CALM_FOR


class Call(msgspec.Struct, array_like=True):
    """A page of the forecast, and what people say of it."""

    opened: int  # when its alert opened, microseconds, as its id says
    paged: int  # when it became a page
    situation: str  # the situation that it was called in, as of `rule.Situation`; "": called by a measurement
    word: str = ""  # USEFUL or USELESS; "": nobody has said anything
    over_on: int | None = None  # day, since 1970, it was counted as over without a refused put; None: it was not


class Outcomes(msgspec.Struct, kw_only=True):
    """Outcomes of a store's forecasts and pages, part of its state, of bounded size."""

    looks: list[Look] = []  # those not settled, oldest first
    days: list[Day] = []  # sums of the last days with any, in order
    spreads: list[list[int]] = []  # percent of its width at which each interval of the last fillings reaches full
    calling: list[str] = []  # ids of the open alerts that are pages
    page: Page | None = None  # the page that calls, or may call again
    calls: list[Call] = []  # the last pages of the forecast, oldest first

    def note_look(self, outlook: Outlook, tick: int, *, is_likely: bool) -> None:
        """Note a look ahead, at most one in five minutes; if full `is_likely`, its interval counts."""
        if self.looks and self.looks[-1].tick // _SLOT_TICKS == tick // _SLOT_TICKS:
            return
        self._settle(tick * TICK)
        chances = [
            round(_MILLE * float(outlook.weights[outlook.full_at <= horizon].sum()) / outlook.full_at.size)
            for horizon in HORIZONS
            if horizon <= outlook.horizon * SECONDS
        ]
        times = outlook.quantiles() if is_likely else None
        if chances:
            seconds = [] if times is None else [round(seconds) for seconds in times]
            self.looks.append(Look(tick, chances, seconds, round(100 * self.width)))

    def note_alert(self, alert: Alert, situation: str = "") -> None:
        """Take an alert record of the store, which may begin or end a page, or say that the store is full."""
        time, opens = alert.time, alert.change == OPENED
        if opens and alert.condition == Condition.FULL:
            self.note_full(time)
        self._settle(time)
        if Condition(alert.condition).about == DATA:
            return
        if alert.change != CLEARED and alert.severity != INFO:
            if alert.alert_id not in self.calling:
                self.calling.append(alert.alert_id)
            self.page = self.page or Page(time)
            self.page.ended = None
            if alert.condition == Condition.FULL_FORECAST:
                self._note_call(alert, situation)
        elif alert.alert_id in self.calling:
            self.calling.remove(alert.alert_id)
            if not self.calling and self.page is not None:
                self.page.ended = time
        if opens and alert.condition in (Condition.FULL, Condition.QUEUE_FULL):
            self._judge_page(time, is_full=alert.condition == Condition.FULL)

    def note_full(self, time: int) -> None:
        """Settle every look: the store is full. time: event time, microseconds."""
        self._settle(time)
        if not self.looks:
            return
        day, spreads = self._day(time), []
        for look in self.looks:
            for horizon in range(look.settled, len(look.chances)):
                day.count(horizon, look.chances[horizon], came=True)
            seconds = (time - look.tick * TICK) / SECOND
            if look.times and seconds <= _LAST_HOUR:
                spread = spread_of(look.times, seconds)
                spreads.append(spread)
                day.intervals += 1
                day.inside += spread <= look.width
        self.looks = []
        if spreads:
            self.spreads = [*self.spreads, spreads[-_MAX_INTERVALS:]][-_MAX_FILLINGS:]

    def turn_back(self, before: int, now: int) -> None:
        """Continue from an earlier time; looks after it, and the sums of later days, are forgotten."""
        self._settle(before)
        self.looks = [look for look in self.looks if look.tick * TICK <= now]
        self.days = [day for day in self.days if before // _DAY - WINDOW_DAYS < day.day <= now // _DAY]
        self.calls = [call for call in self.calls if call.paged <= now]
        if self.page is not None:
            self.page.opened = min(self.page.opened, now)
            self.page.ended = None if self.page.ended is None else min(self.page.ended, now)

    # --- settling --------------------------------------------------------------------------------------------------

    def _ended_horizons(self, now: int) -> Iterator[tuple[Look, int, int]]:
        """Yield (look, index into HORIZONS, end in microseconds) of each horizon that ended before `now`."""
        for look in self.looks:
            for horizon in range(look.settled, len(look.chances)):
                end = look.tick * TICK + HORIZONS[horizon] * SECOND
                if end < now:
                    yield look, horizon, end

    def _settle(self, now: int) -> None:
        """Count the outcomes that are decided by `now`, event time, without a put refused."""
        for look, horizon, end in list(self._ended_horizons(now)):
            self._day(end).count(horizon, look.chances[horizon], came=False)
            look.settled = horizon + 1
        self.looks = [look for look in self.looks if look.settled < len(look.chances)]
        self._settle_page(now, self)
        if self.page is not None and self.page.is_over(now):
            self.page = None

    def _settle_page(self, now: int, into: Outcomes) -> None:
        """Count the page as false if it is over by `now`, event time, and no put was refused."""
        page = self.page
        if page is None or page.ended is None or page.is_judged or not page.is_over(now):
            return
        day, call = into._day(page.ended), self.calls[-1] if self.calls else None
        if call is None or call.paged < page.opened:
            day.false += 1
            return
        is_saved = call.word == USEFUL
        day.saved += is_saved
        day.false += not is_saved
        if into is self:
            call.over_on = day.day

    def _judge_page(self, time: int, *, is_full: bool) -> None:
        """Count the page that calls, when puts are first refused. is_full: True for lack of storage, not of depth."""
        page = self.page
        if page is None or page.ended is not None or page.is_judged:
            return
        page.is_judged = True
        if is_full and time - page.opened < _IN_TIME:
            self._day(time).late += 1
        else:
            self._day(time).right += 1

    def _day(self, time: int) -> Day:
        number = time // _DAY
        day = next((day for day in reversed(self.days) if day.day == number), None)
        if day is None:
            day = Day(number)
            days = sorted([*self.days, day], key=lambda day: day.day)
            self.days = [each for each in days if each.day > days[-1].day - WINDOW_DAYS]
        return day

    # --- words -----------------------------------------------------------------------------------------------------

    def _note_call(self, alert: Alert, situation: str) -> None:
        """Remember a page of the forecast, once."""
        opened = opened_of(alert.alert_id)
        if opened is not None and all(call.opened != opened for call in self.calls):
            self.calls = [*self.calls, Call(opened, alert.time, situation)][-_MAX_CALLS:]

    def take_word(self, opened: int, word: str) -> None:
        """Take what people say of a page that opened then, microseconds: USEFUL, USELESS, or NONE, which takes an
        earlier word back. One that is not remembered changes nothing.
        """
        call = next((call for call in self.calls if call.opened == opened), None)
        if call is None:
            return
        before, call.word = call.word, "" if word == NONE else word
        day = next((day for day in self.days if day.day == call.over_on), None)
        if day is not None:
            change = (call.word == USEFUL) - (before == USEFUL)
            day.saved += change
            day.false -= change

    def words(self, situation: str) -> tuple[int, int]:
        """Return how many pages of a situation were useful, and useless, in the word of people."""
        words = [call.word for call in self.calls if call.situation == situation]
        return words.count(USEFUL), words.count(USELESS)

    def worth(self, situation: str) -> float:
        """Return the factor on the odds that a page of a situation is useful; 1.0: nobody has said anything.

        Words count as outcomes do, beside _PRIOR_PAGES pages of which the share _PRIOR_USEFUL was useful.
        """
        useful, useless = self.words(situation)
        if not useful + useless:
            return 1.0
        odds = (_PRIOR_USEFUL * _PRIOR_PAGES + useful) / ((1.0 - _PRIOR_USEFUL) * _PRIOR_PAGES + useless)
        return min(_MOST_WORTH, max(_LEAST_WORTH, odds * (1.0 - _PRIOR_USEFUL) / _PRIOR_USEFUL))

    # --- intervals -------------------------------------------------------------------------------------------------

    @property
    def width(self) -> float:
        """Factor by which intervals are made wider; 1.0: they are right, or too few have been settled."""
        if len(self.spreads) < _MIN_FILLINGS:
            return 1.0
        spreads = sorted(spread for filling in self.spreads for spread in filling)
        count = len(spreads)
        if count < _MIN_INTERVALS:
            return 1.0
        if abs(sum(spread <= 100 for spread in spreads) / count - _COVERED) <= _TOLERANCE:
            return 1.0
        spread = spreads[math.ceil(_COVERED * (count + 1)) - 1]
        return min(_MAX_WIDTH, max(_MIN_WIDTH, spread / 100))

    def widen(self, times: Times) -> Times:
        """Return the seconds until full (p10, p50, p90) with the interval corrected."""
        width, (p10, p50, p90) = self.width, times
        if width == 1.0 or p50 <= 0.0:
            return times
        return p50 * (p10 / p50) ** width, p50, p50 * (p90 / p50) ** width

    @property
    def reason(self) -> str:
        """The correction as a sentence of evidence; "" without one."""
        width, spreads = self.width, [spread for filling in self.spreads for spread in filling]
        if width == 1.0:
            return ""
        changed = "widened" if width > 1.0 else "narrowed"
        inside = sum(spread <= 100 for spread in spreads)
        return f"intervals {changed} by {width:.1f}: {inside} of the last {len(spreads)} were inside"

    # --- scores ----------------------------------------------------------------------------------------------------

    def scores(self, now: int) -> ForecastScores | None:
        """Return the scores of the last 30 days as of `now`, event time; None before anything is settled."""
        undecided = Outcomes()  # what is decided by now, but not yet counted
        for look, horizon, end in self._ended_horizons(now):
            undecided._day(end).count(horizon, look.chances[horizon], came=False)
        self._settle_page(now, undecided)
        today = now // _DAY
        days = [day for day in (*self.days, *undecided.days) if today - WINDOW_DAYS < day.day <= today]
        if not days:
            return None
        intervals, inside = sum(day.intervals for day in days), sum(day.inside for day in days)
        return ForecastScores(
            days=today - min(day.day for day in days) + 1,
            horizons=tuple(_horizon_scores(days)),
            intervals=IntervalScore(
                count=intervals,
                inside=inside,
                coverage=round(inside / intervals, 4) if intervals else None,
                width=round(self.width, 2),
            ),
            pages=PageScore(
                right=sum(day.right for day in days),
                late=sum(day.late for day in days),
                false=sum(day.false for day in days),
                saved=sum(day.saved for day in days) or UNSET,
            ),
        )


def spread_of(times: Iterable[int], seconds: float) -> int:
    """Return the factor, percent rounded up, by which an interval (p10, p50, p90) must be widened to reach a time."""
    p10, p50, p90 = (max(1, time) for time in times)
    seconds = max(1.0, seconds)
    if seconds >= p50:
        ratio = math.log(seconds / p50) / math.log(max(p90, p50 + 1) / p50)
    else:
        ratio = math.log(p50 / seconds) / math.log(p50 / min(p10, p50 - 1))
    return min(_MAX_SPREAD, math.ceil(100 * ratio))


def _horizon_scores(days: Iterable[Day]) -> Iterator[HorizonScore]:
    squares = [0] * len(HORIZONS)
    bins: dict[int, list[int]] = {}
    for day in days:
        squares = [total + own for total, own in zip(squares, day.squares, strict=True)]
        for number, (looks, full, chances) in day.bins.items():
            sums = bins.setdefault(number, [0, 0, 0])
            sums[0] += looks
            sums[1] += full
            sums[2] += chances
    for horizon, seconds in enumerate(HORIZONS):
        of_horizon = [bins[number] for number in sorted(bins) if number // _BINS == horizon]
        looks = sum(sums[0] for sums in of_horizon)
        if not looks:
            continue
        full = sum(sums[1] for sums in of_horizon)
        yield HorizonScore(
            horizon_s=seconds,
            looks=looks,
            full=full,
            brier=round(squares[horizon] / looks / _MILLE**2, 6),
            climatology=round(full / looks * (1.0 - full / looks), 6),
            bins=tuple(
                ProbabilityBin(looks=count, full=came, predicted=round(chances / count / _MILLE, 4))
                for count, came, chances in of_horizon
            ),
        )
