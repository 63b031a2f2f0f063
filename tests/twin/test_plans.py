"""Planned work (docs/planned-work.md). Stories of one structure of 6,000 entries, a put and a get a queue and tick."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.support.store_driver import SECOND_US
from tests.support.twin_driver import TwinDriver
from tests.twin.test_alerts_forecast import MINUTE_US, TICK_US, Story
from twin.alerts.episodes import Alert
from twin.base.conditions import CLEARED, INFO, OPENED
from twin.base.units import as_text
from twin.events import EventError

STORE = "QSG1/APP1"
LATE_US = 2 * MINUTE_US  # by which a wrong plan may delay a page


class PlannedStory(Story):
    """A store whose A.QUEUE is always read, and to whose B.QUEUE a job puts."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.events: list[dict[str, Any]] = []

    def apply(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        super().apply(event)

    def pass_time(self, minutes: float, puts: int = 0, gets: int = 0, usual: int = 20) -> None:
        """Apply some minutes: `puts` to and `gets` from B.QUEUE in a tick, `usual` of both at A.QUEUE."""
        for _ in range(round(minutes * 6)):
            self.time += TICK_US - self.time % TICK_US
            base = {"store": STORE} | {"time": self.time + SECOND_US}
            for queue, put, got in (("A.QUEUE", usual, usual), ("B.QUEUE", puts, gets)):
                if put:
                    self.apply({**base, "qmgr": "QM01", "op": "PUT", "queue": queue, "count": put, "length": 800})
                if got:
                    self.apply({**base, "qmgr": "QM01", "op": "GET", "queue": queue, "count": got})
            self.apply({**base, "qmgr": "QM01", "op": "HEARTBEAT"})

    def plan(self, begins: float, ends: float, name: str = "BATCH", **parts: Any) -> None:
        """Announce a window that begins and ends some minutes from now, of B.QUEUE."""
        now = self.time - self.time % MINUTE_US
        times = {"from": as_text(now + round(begins * MINUTE_US)), "until": as_text(now + round(ends * MINUTE_US))}
        self.send_plan(id=name, **times, **({"queue": "B.QUEUE"} | parts))

    def send_plan(self, **plan: Any) -> None:
        self.send("PLAN", None, time=self.time, store=STORE, plan=plan)

    def about(self, condition: str) -> list[Alert]:
        return [alert for alert in self.alerts if alert.condition == condition]

    @property
    def paged_at(self) -> int:
        """Time of the first page."""
        return next(alert.time for alert in self.alerts if alert.severity != INFO)


def story(**fields: Any) -> PlannedStory:
    """Return a store that was used evenly for a while."""
    begun = PlannedStory(**fields)
    begun.pass_time(8)
    return begun


def compared(happens: Callable[[PlannedStory], None], *window: float, **plan: Any) -> tuple[PlannedStory, PlannedStory]:
    """Return two stores to which the same happens, of which the first has a plan."""
    planned, other = story(), story()
    planned.plan(*window, **plan)
    happens(planned)
    happens(other)
    return planned, other


# --- as planned -------------------------------------------------------------------------------------------------------


def test_a_planned_rise_that_fits_is_silent_and_the_same_rise_without_a_plan_is_a_page() -> None:
    def runs(store: PlannedStory) -> None:
        store.pass_time(1)
        store.pass_time(32, puts=25)
        store.pass_time(12)

    planned, other = compared(runs, 1, 45, messages=4800, length=800)
    assert planned.alerts == []
    assert other.paged_at


def test_getters_that_are_away_as_planned_are_silent() -> None:
    def runs(store: PlannedStory) -> None:
        store.pass_time(20, puts=25, gets=25)
        store.pass_time(31, puts=25)
        store.pass_time(4, puts=25, gets=60)

    planned, other = compared(runs, 20, 50.5, getters="away")
    assert planned.alerts == []
    assert other.paged_at


def test_a_level_that_is_allowed_passes_no_threshold() -> None:
    def runs(store: PlannedStory) -> None:
        store.pass_time(1)
        store.pass_time(12, puts=60)

    planned, other = (PlannedStory(full_threshold=60) for _ in range(2))
    for store in (planned, other):
        store.pass_time(4)
    planned.plan(1, 14, messages=4320, allowed_pct=80)
    runs(planned)
    runs(other)
    assert planned.alerts == []
    assert other.about("threshold")
    planned.pass_time(3)  # it is over, and the store stays where it is
    planned.pass_time(1, puts=1)
    assert [alert.change for alert in planned.about("threshold")] == [OPENED]


# --- before it begins -------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_said_before_it_begins_with_room_and_time() -> None:
    store = story()
    store.plan(60, 180, messages=9000, length=800)
    store.pass_time(1)
    [opened] = store.alerts
    assert (opened.change, opened.condition, opened.severity) == (OPENED, "plan-does-not-fit", INFO)
    assert "B.QUEUE at 13:08 UTC does not fit: 9,000 announced, room for 6,000;" in opened.cause
    assert "full about 14:28 UTC if nothing is got meanwhile. " in opened.cause and opened.data().level == "watch"
    assert [action.id for action in opened.runbook] == ["plan"]
    assert opened.fillers[0].queue == "B.QUEUE"


def test_what_fits_is_not_said_and_what_does_not_is_cleared_when_it_is_cancelled() -> None:
    store = story()
    store.plan(60, 180, messages=5000, length=800)
    store.pass_time(2)
    assert store.alerts == []
    store.plan(60, 180, messages=9000, length=800)
    store.pass_time(2)
    store.send_plan(id="BATCH", cancelled=True)
    store.pass_time(1)
    assert [alert.change for alert in store.alerts] == [OPENED, CLEARED]
    assert "plans" not in store.state()


def test_getters_that_will_be_away_too_long_are_said_before_they_go() -> None:
    store = story()
    store.pass_time(31, puts=30, gets=30)
    store.plan(30, 150, getters="away")
    store.pass_time(1, puts=30, gets=30)
    [opened] = store.alerts
    assert "B.QUEUE at " in opened.cause and "does not fit: its getters are away; full about " in opened.cause


def test_what_does_not_fit_is_a_page_in_time_once_it_runs() -> None:
    store = story()
    store.plan(1, 61, messages=9000, length=800)
    store.pass_time(1)
    store.pass_time(30, puts=25)
    page = next(alert for alert in store.about("full-forecast") if alert.severity != INFO)
    assert page.time_to_full_s is not None and page.time_to_full_s.p50 > 20 * 60
    assert page.cause.startswith("B.QUEUE has put ") and " of 9,000 announced. Entries of " in page.cause


# --- not as planned ---------------------------------------------------------------------------------------------------


def test_twice_the_size_is_a_page_that_says_so() -> None:
    def runs(store: PlannedStory) -> None:
        store.pass_time(1)
        store.pass_time(32, puts=25)

    planned, other = compared(runs, 1, 121, messages=2400, length=800)
    assert planned.paged_at <= other.paged_at + LATE_US
    page = next(alert for alert in planned.alerts if alert.severity != INFO)
    assert " of 2,400 announced and does not stop. " in page.cause
    assert planned.state()["plans"][0]["status"] == "exceeded"


def test_a_little_more_than_announced_that_stops_is_silent() -> None:
    store = story()
    store.plan(1, 46, messages=4000, length=800)
    store.pass_time(1)
    store.pass_time(27, puts=25)  # 4,050
    store.pass_time(10)
    assert store.alerts == []
    assert store.state()["plans"][0]["status"] == "running"


def test_puts_beyond_the_end_are_a_page_that_says_so() -> None:
    def runs(store: PlannedStory) -> None:
        store.pass_time(1)
        store.pass_time(32, puts=25)

    planned, other = compared(runs, 1, 21, messages=6000, length=800)
    assert planned.paged_at <= other.paged_at + LATE_US
    page = next(alert for alert in planned.alerts if alert.severity != INFO)
    assert page.cause.startswith("B.QUEUE was planned until 12:29 UTC and does not stop")


def test_a_rise_of_another_queue_is_a_page_as_without_a_plan() -> None:
    def runs(store: PlannedStory) -> None:
        store.pass_time(1)
        for _ in range(6):
            store.go_on(5, puts=45, gets=20)

    planned, other = compared(runs, 1, 61, messages=4000, length=800)
    assert planned.paged_at <= other.paged_at + LATE_US


def test_a_getter_that_is_not_back_is_a_page_that_says_so() -> None:
    def runs(store: PlannedStory) -> None:
        store.pass_time(20, puts=25, gets=25)
        store.pass_time(30, puts=25)

    planned, other = compared(runs, 20, 38, getters="away")
    assert planned.paged_at <= max(other.paged_at, planned.events[0]["time"] + 46 * MINUTE_US) + LATE_US
    page = next(alert for alert in planned.alerts if alert.severity != INFO)
    assert page.cause.startswith("getters of B.QUEUE were planned back at 12:46 UTC, no get since")


@pytest.mark.parametrize("begins", [-1, 20], ids=["not run", "late"])
def test_a_plan_that_is_not_kept_delays_no_page(begins: int) -> None:
    """It is not run, and A.QUEUE fills the store; or it begins later and lasts beyond its end."""

    def runs(store: PlannedStory) -> None:
        store.pass_time(20)
        if begins < 0:
            store.go_on(34, puts=45, gets=20)
        else:
            store.pass_time(32, puts=25)

    planned, other = compared(runs, 1, 31, messages=4000, length=800)
    assert planned.paged_at <= other.paged_at + LATE_US


# --- what is remembered -----------------------------------------------------------------------------------------------


def test_a_planned_rise_is_remembered_by_the_plan_and_by_nothing_else() -> None:
    planned, other = story(), story()
    planned.plan(1, 21, messages=2500, length=800)
    for store in (planned, other):
        store.pass_time(1)
        store.pass_time(16, puts=25)
        store.pass_time(6, gets=100)
    assert planned.twin.monitor.memory.plans.took == {"BATCH": (40.0,)}
    for store, count in ((planned, 0), (other, 1)):
        rises = store.twin.tables.store
        ended = rises.rises[: int(rises.tides[3]["rises"])]
        assert int((ended["usage"] > 0).sum()) == count and len(ended) == 1
    assert planned.twin.monitor.memory.plans.credited == 2400


def test_a_plan_that_took_less_than_announced_fits() -> None:
    """Its getters keep up with most of it; the first time it is said that it may not fit, then no more."""
    store = story()
    store.send_plan(
        id="NIGHTLY", queue="B.QUEUE", messages=9000, length=800, rrule="FREQ=DAILY;BYHOUR=12,13,14", duration_s=1200
    )
    for _ in range(2):
        store.pass_time(55 - (store.time // MINUTE_US) % 60)
        before = len(store.about("plan-does-not-fit"))
        store.pass_time(5)
        store.pass_time(15, puts=60, gets=50)
        store.pass_time(7, gets=300)
    assert before == len(store.about("plan-does-not-fit")) > 0
    assert len(store.twin.monitor.memory.plans.took["NIGHTLY"]) == 2


def test_a_job_that_puts_as_much_more_as_it_did_before_is_as_planned() -> None:
    """A count that is announced is a round one: the job of each night puts 7 % more, and takes as much longer."""
    store = story()
    store.send_plan(
        id="NIGHTLY", queue="B.QUEUE", messages=4000, length=800, rrule="FREQ=DAILY;BYHOUR=12,13,14", duration_s=1600
    )
    news = []
    for _ in range(2):
        store.pass_time(60 - (store.time // MINUTE_US) % 60)
        store.pass_time(28.5, puts=25)
        store.pass_time(6, gets=200)
        news.append(store.twin.monitor.memory.plans.runs[-1].is_broken)
    assert news == [True, False]
    assert store.twin.monitor.memory.plans.put["NIGHTLY"] == pytest.approx((1.069, 1.069), abs=0.01)


def test_a_job_that_begins_late_is_as_planned_while_it_puts_the_rest() -> None:
    store = story()
    store.plan(1, 31, messages=4000, length=800)
    store.pass_time(9)
    store.pass_time(26, puts=25)  # until 4 minutes beyond its end, 3,900 messages
    store.pass_time(10)
    assert store.alerts == []
    assert not store.twin.monitor.memory.plans.runs[-1].is_broken


def test_the_state_record_has_the_plans_of_a_day() -> None:
    store = story()
    store.plan(10, 40, messages=2500, length=800, note="month end")
    store.plan(60 * 30, 60 * 31, "FAR", messages=2500)
    store.pass_time(12, puts=0)
    [own] = store.state()["plans"]
    assert own == {
        "id": "BATCH",
        "queue": "B.QUEUE",
        "begins": "2026-11-20T12:18:00.000000Z",
        "ends": "2026-11-20T12:48:00.000000Z",
        "announced": 2500,
        "seen": 0,
        "getters_away": False,
        "status": "running",
    }


def test_the_65th_plan_of_a_store_is_refused_and_ended_ones_make_room() -> None:
    store = story()
    for number in range(64):
        store.plan(1, 2, f"P{number:02}", messages=1)
    with pytest.raises(EventError, match="64 plans are kept of a store already; expected: cancel one"):
        store.plan(1, 2, "MORE", messages=1)
    store.pass_time(3)
    store.plan(1, 2, "MORE", messages=1)
    assert [plan.id for plan in store.twin.monitor.memory.plans.plans] == ["MORE"]


# --- replays ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def night() -> PlannedStory:
    """A plan that does not fit, and is exceeded, with rises before and behind it."""
    store = story()
    store.plan(6, 30, messages=2000, length=800)
    store.pass_time(6)
    store.pass_time(25, puts=30)
    store.pass_time(4, gets=200)
    return store


def test_a_plan_of_another_day_changes_nothing(night: PlannedStory) -> None:
    """Each tick is then looked at, which must do what passing it does."""
    without, with_one = (TwinDriver() for _ in range(2))
    for again in (without, with_one):
        again.decoding, again.name, again.twin = night.decoding, night.name, night.decoding.twin()
        for event in night.events:
            if event["op"] != "PLAN":
                again.apply(event)
            elif again is with_one:
                times = {"from": "2026-12-24T00:00:00Z", "until": "2026-12-24T01:00:00Z"}
                again.apply(event | {"plan": {"id": "FAR", "messages": 1, **times}})
    assert without.alerts and msgspec.json.encode(without.alerts) == msgspec.json.encode(with_one.alerts)
    assert without.state() | {"events": 0} == with_one.state() | {"events": 0}


@pytest.mark.parametrize("cut", [1, 7, 61, 400])
def test_alerts_do_not_depend_on_blocks_and_restarts_in_the_middle_of_a_plan(night: PlannedStory, cut: int) -> None:
    again = TwinDriver()
    again.decoding, again.name = night.decoding, night.name
    again.twin = night.decoding.twin()
    for start in range(0, len(night.events), cut):
        block, accepted = again.decoding.block(night.events[start : start + cut])
        assert len(accepted) == min(cut, len(night.events) - start)
        again.alerts += again.twin.apply(block)
        if cut > 1 or start % 50 == 0:
            again.reopen()
    assert night.alerts
    assert msgspec.json.encode(again.alerts) == msgspec.json.encode(night.alerts)
    assert again.state() == night.state()
    assert again.twin.monitor.memory == night.twin.monitor.memory
