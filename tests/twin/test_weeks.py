"""The long forecast (docs/forecast.md): rhythms last, leaks are named, plans count, Friday says what does not last."""

from collections.abc import Callable
from datetime import UTC
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
import pytest

from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.support.store_driver import SECOND_US
from tests.support.twin_driver import TwinDriver
from tests.twin.test_alerts_forecast import MINUTE_US, Story
from twin.alerts.episodes import Alert
from twin.base.conditions import CLEARED, OPENED, WATCH
from twin.base.units import as_microseconds, as_text
from twin.estate import Smds
from twin.forecast.weeks import HOURS, Weeks, next_friday, next_monday
from twin.records import LongForecast

HOUR_US = 60 * MINUTE_US
HOUR_TICKS = 360
ENTRIES = 6_000
FRIDAY_NOON = as_microseconds("2026-11-20T12:00:00Z")
STORE = "QSG1/APP1"
Level = Callable[[int], float]  # share in use at an hour, counted from Friday, 12:00 UTC


def rhythm(hour: int) -> float:
    """Return the share of a store that is used from 6 to 18 each day."""
    return 0.4 if 6 <= (hour + 12) % 24 < 18 else 0.02


def leaking(pct_per_day: float, since: int = 0) -> Level:
    return lambda hour: rhythm(hour) + pct_per_day / 100 * max(0, hour - since) / 24


class Weekly(Story):
    """A store whose use follows a level, by one event an hour."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.events: list[dict[str, Any]] = []
        self.held = 0

    def apply(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        super().apply(event)

    def follow(self, level: Level, hours: range) -> "Weekly":
        for hour in hours:
            self.set_to(level(hour), FRIDAY_NOON + hour * HOUR_US + SECOND_US)
        return self

    def set_to(self, share: float, time: int) -> None:
        target = round(share * ENTRIES)
        op, count = ("PUT", target - self.held) if target > self.held else ("GET", self.held - target)
        base = {"store": STORE, "qmgr": "QM01", "time": time}
        if count:
            self.apply(
                {**base, "op": op, "queue": "A.QUEUE", "count": count, **({"length": 800} if op == "PUT" else {})}
            )
        self.apply({**base, "op": "HEARTBEAT"})
        self.held = target

    @property
    def long(self) -> LongForecast:
        own = self.twin.state().long_forecast
        assert isinstance(own, LongForecast)
        return own

    def weekend(self) -> list[Alert]:
        return [alert for alert in self.alerts if alert.condition == "weekend-does-not-last"]

    def copied(self) -> "Weekly":
        """Return another store with the same events."""
        other = Weekly()
        for event in self.events:
            other.apply(event)
        other.time, other.held = self.time, self.held
        return other


def test_nothing_is_said_before_two_days_are_known() -> None:
    store = Weekly().follow(rhythm, range(47))
    assert "long_forecast" not in store.state()
    assert store.follow(rhythm, range(47, 50)).long.lasts_probability == 1.0


def test_a_rhythm_of_the_day_lasts_and_is_no_leak() -> None:
    own = Weekly().follow(rhythm, range(10 * 24)).long
    assert own.lasts_probability > 0.95 and own.full_probability < 0.1
    assert own.leak_pct_per_day is None
    assert own.until == "2026-12-07T08:00:00.000000Z" > own.time
    assert own.sentence_in(UTC).startswith("lasts until Mon 08:00 UTC: ")


@pytest.mark.parametrize("pct_per_day", [1.0, 2.0, 4.0])
def test_a_leak_is_named_within_three_days(pct_per_day: float) -> None:
    own = Weekly().follow(leaking(pct_per_day, since=5 * 24), range(8 * 24)).long
    assert own.leak_pct_per_day == pytest.approx(pct_per_day, rel=0.3)


@pytest.mark.parametrize("pct_per_day", [6.0, 9.0])
def test_what_rises_faster_is_a_leak_after_five_days(pct_per_day: float) -> None:
    own = Weekly().follow(leaking(pct_per_day), range(6 * 24 + 2)).long
    assert own.leak_pct_per_day == pytest.approx(pct_per_day, rel=0.05)
    assert own.time_to_full_s is not None
    assert own.time_to_full_s.p50 / 86_400 == pytest.approx(60 / pct_per_day - 6, abs=1)


def test_a_leak_says_about_when_the_store_is_full() -> None:
    """At 4 % a day 40 % become 100 % after 15 days; eight are over."""
    store = Weekly().follow(leaking(4), range(8 * 24))
    own = store.long
    assert own.time_to_full_s is not None
    assert own.time_to_full_s.p50 / 86_400 == pytest.approx(7, abs=2)
    assert ", leaks 4.0 % a day, full about " in own.sentence_in(UTC)


# --- the store's hours ------------------------------------------------------------------------------------------------


def test_hours_are_bounded_and_silent_ones_have_the_share_that_stayed() -> None:
    weeks = Weeks()
    weeks.begin(FRIDAY_NOON, UTC)
    first = FRIDAY_NOON // HOUR_US * HOUR_TICKS
    weeks.note(first + 1, 0.5)
    weeks.note(first + 20 * HOUR_TICKS, 0.25)
    assert (len(weeks.lows), len(weeks.highs)) == (40, 40)
    assert weeks.lows[:2] == weeks.lows[-2:] and weeks.highs[:2] == (5000).to_bytes(2, "little") != weeks.highs[-2:]
    weeks.note(first + 5_000 * HOUR_TICKS, 9.0)
    assert (len(weeks.lows), len(weeks.highs)) == (2 * HOURS, 2 * HOURS)
    assert weeks.highs[-2:] == (32_767).to_bytes(2, "little")


def test_a_clock_that_is_turned_back_forgets_later_hours() -> None:
    weeks = Weeks()
    weeks.begin(FRIDAY_NOON, UTC)
    first = FRIDAY_NOON // HOUR_US * HOUR_TICKS
    for hour in range(10):
        weeks.note(first + hour * HOUR_TICKS, hour / 10)
    weeks.turn_back(first + 4 * HOUR_TICKS + 7)
    assert len(weeks.lows) == 8 and weeks.due == 0
    weeks.note(first + 5 * HOUR_TICKS, 0.9)
    assert len(weeks.lows) == 10


@pytest.mark.parametrize("cuts", [[], [100], list(range(7, 420, 7))])
def test_hours_and_records_are_the_same_for_any_division_and_after_restarts(cuts: list[int]) -> None:
    store = Weekly().follow(leaking(3), range(9 * 24))
    again = TwinDriver()
    again.decoding, again.name, again.twin = store.decoding, store.name, store.decoding.twin()
    events = store.events
    for begin, end in zip([0, *cuts], [*cuts, len(events)], strict=True):
        block, _ = again.decoding.block(events[begin:end])
        again.alerts += again.twin.apply(block)
        again.reopen()
    assert again.twin.monitor.memory.weeks == store.twin.monitor.memory.weeks
    assert again.state() == store.state()
    assert msgspec.json.encode(again.alerts) == msgspec.json.encode(store.alerts)


def test_a_store_that_is_altered_has_its_hours_in_shares_of_the_new_size() -> None:
    """Twice the size: 40 % by day and a leak of 4 % a day become 20 % and 2 %."""
    size = ENTRIES * ENTRY_AND_6_ELEMENTS
    store = Weekly(size=2 * size, init_size=size).follow(leaking(4), range(8 * 24))
    before = store.twin.monitor.memory.weeks
    lows = np.frombuffer(before.lows, "<i2")
    store.send("ALTER", None, store=STORE, attributes={"size": 2 * size})
    assert np.frombuffer(before.lows, "<i2") == pytest.approx(lows / 2, abs=10)
    assert before.share == pytest.approx(store.held / (2 * ENTRIES), abs=0.001)
    store.send("HEARTBEAT", None, store=STORE, time=store.time + HOUR_US)
    assert store.long.leak_pct_per_day == pytest.approx(2, rel=0.1)
    assert store.long.lasts_probability > 0.95


def test_a_data_set_measured_at_night_leaves_the_hours_of_the_entries() -> None:
    """At night the store is empty, its data set holds its map alone; the days were full of entries."""
    sets = {qmgr: Smds(size=16 * 1024**4) for qmgr in ("QM01", "QM02")}
    store = Weekly(smds=sets).follow(lambda hour: rhythm(hour) - 0.02, range(6 * 24 - 12))
    assert store.held == 0
    highs = store.twin.monitor.memory.weeks.highs
    measured = {"smds": {"QM01": {"blocks_total": 4_000}}}
    store.send("MEASURE", None, store=STORE, time=FRIDAY_NOON + (6 * 24 - 12) * HOUR_US, measured=measured)
    assert store.twin.monitor.memory.weeks.highs[: len(highs)] == highs
    assert store.long.lasts_probability > 0.95


def test_automatic_alter_leaves_hours_in_shares_of_the_new_size() -> None:
    size = ENTRIES * ENTRY_AND_6_ELEMENTS
    store = Weekly(size=2 * size, init_size=size, allow_auto_alter=True, full_threshold=60)
    store.follow(rhythm, range(2 * 24))
    highs = np.frombuffer(store.twin.monitor.memory.weeks.highs, "<i2")
    store.set_to(0.7, FRIDAY_NOON + 2 * 24 * HOUR_US)
    state = store.send("HEARTBEAT", None, time=FRIDAY_NOON + 2 * 24 * HOUR_US + 5 * MINUTE_US)
    assert state["auto_alters"] > 0 and state["ents_max"] > 1.1 * ENTRIES
    after = np.frombuffer(store.twin.monitor.memory.weeks.highs, "<i2")[: highs.size]
    assert after == pytest.approx(highs * (ENTRIES / state["ents_max"]), abs=3)


def test_a_level_that_is_taken_with_another_size_counts_in_shares_of_that() -> None:
    """Of a store of whose events some are missing each measurement is metered at once."""
    size = ENTRIES * ENTRY_AND_6_ELEMENTS
    store = Weekly(size=2 * size, init_size=size)
    held = 0
    for _ in range(40):
        store.put(800, count=30)
        store.wait(60)
        held += 60
        store.measure(ents_used=held, elems_used=6 * held, messages=held, ents_max=6_000, elems_max=36_000)
    store.wait(3600)
    weeks = store.twin.monitor.memory.weeks
    store.wait(60)
    store.measure(ents_used=held, elems_used=6 * held, messages=held, ents_max=12_000, elems_max=72_000)
    assert store.twin.monitor.memory.estimated_at is not None
    assert (weeks.low, weeks.high) == pytest.approx((held / 12_000, held / 12_000), rel=0.01)


def test_planned_work_counts_and_then_the_store_does_not_last() -> None:
    store = Weekly().follow(rhythm, range(6 * 24))
    assert store.long.lasts_probability > 0.95
    begins = FRIDAY_NOON + 8 * 24 * HOUR_US
    times = {"from": as_text(begins), "until": as_text(begins + 3 * HOUR_US)}
    store.send(
        "PLAN", None, time=store.time, store=STORE, plan={"id": "BATCH", "messages": 6_500, "length": 800, **times}
    )
    assert store.long.lasts_probability < 0.05
    assert store.long.time_to_full_s is not None
    assert store.long.time_to_full_s.p50 == pytest.approx(50 * 3600, abs=3 * 3600)


# --- Friday -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def friday() -> Weekly:
    """Until an hour after Friday, 15:00, with a job planned on Saturday that does not fit."""
    store = Weekly().follow(rhythm, range(6 * 24))
    begins = FRIDAY_NOON + 8 * 24 * HOUR_US
    plan = {"id": "BATCH", "messages": 6_500, "length": 800}
    plan |= {"from": as_text(begins), "until": as_text(begins + 3 * HOUR_US)}
    store.send("PLAN", None, time=store.time, store=STORE, plan=plan)
    return store.follow(rhythm, range(6 * 24, 7 * 24 + 5))


def test_friday_says_that_the_weekend_does_not_last(friday: Weekly) -> None:
    [opened] = friday.weekend()
    assert opened.change == OPENED and opened.data().level == WATCH
    assert as_text(opened.time).startswith("2026-11-27T15:00:")
    assert opened.brief[0] == "the weekend does not last: lasts until Mon 08:00 UTC: 0 %"
    assert [action.id for action in opened.runbook] == ["weekend"]


@pytest.mark.parametrize("is_cancelled", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_it_is_over_once_the_weekend_lasts_and_at_the_latest_on_monday(friday: Weekly, *, is_cancelled: bool) -> None:
    store, monday = friday.copied(), as_microseconds("2026-11-30T03:00:00Z")
    plan: dict[str, Any] = {"id": "BATCH", "cancelled": True}
    if not is_cancelled:  # the job is due on Monday morning, and is not run
        plan = {"id": "BATCH", "messages": 100_000, "length": 800}
        plan |= {"from": as_text(monday), "until": as_text(monday + 6 * HOUR_US)}
    store.send("PLAN", None, time=store.time, store=STORE, plan=plan)
    store.follow(rhythm, range(7 * 24 + 5, 7 * 24 + 70))
    assert (store.weekend()[0].change, store.weekend()[-1].change) == (OPENED, CLEARED)
    over = "2026-11-27T17:" if is_cancelled else "2026-11-30T08:"
    assert as_text(store.weekend()[-1].time).startswith(over)


@pytest.mark.parametrize(
    ("zone", "now", "friday", "monday"),
    [
        ("UTC", "2026-11-20T15:00:00Z", "2026-11-27T15:00:00Z", "2026-11-23T08:00:00Z"),
        ("UTC", "2026-11-20T14:59:59Z", "2026-11-20T15:00:00Z", "2026-11-23T08:00:00Z"),
        ("UTC", "2026-11-23T08:00:00Z", "2026-11-27T15:00:00Z", "2026-11-30T08:00:00Z"),
        ("Europe/Berlin", "2026-10-23T12:00:00Z", "2026-10-23T13:00:00Z", "2026-10-26T07:00:00Z"),  # summer time ends
        ("Europe/Berlin", "2027-03-26T13:00:00Z", "2027-03-26T14:00:00Z", "2027-03-29T06:00:00Z"),  # and begins
        ("Pacific/Auckland", "2026-11-20T01:00:00Z", "2026-11-20T02:00:00Z", "2026-11-22T19:00:00Z"),
    ],
)
def test_friday_and_monday_are_those_of_the_site(zone: str, now: str, friday: str, monday: str) -> None:
    own, time = ZoneInfo(zone), as_microseconds(now)
    assert (next_friday(time, own), next_monday(time, own)) == (as_microseconds(friday), as_microseconds(monday))
