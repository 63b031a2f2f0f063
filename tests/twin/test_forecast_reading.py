"""A queue that no application has open for input: its rise does not end by itself, and alerts say so first."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.proof import check_same_results
from tests.support.profile import examples
from tests.support.workloads import SECOND_US
from tests.twin.test_alerts_forecast import ENTRIES, MINUTE_US, Story
from twin.alerts.episodes import Alert
from twin.base.conditions import INFO
from twin.forecast import rule
from twin.forecast.flows import READ, Reading, how_read
from twin.forecast.rises import under_way

ASKED = ["QM01", "QM02"]


class Read(Story):
    """A story whose queue's handles are measured each half minute; getters None: they are not."""

    getters: int | None = None

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []

    def apply(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        super().apply(event)

    def go_on(self, minutes: float, puts: int, gets: int, **fields: Any) -> None:
        for _ in range(round(minutes * 2)):
            super().go_on(0.5, puts, gets, **fields)
            if self.getters is not None:
                fact = {"name": "A.QUEUE", "getters": self.getters}
                self.send("MEASURE", None, time=self.time, measured={"asked": ASKED, "queues": [fact]})

    def bursts(self, number: int) -> None:
        """Rises that turn back at 10 %, while the queue is read."""
        for _ in range(number):
            self.go_on(5, puts=20, gets=20)
            self.go_on(10, puts=30, gets=20)
            self.go_on(10, puts=20, gets=30)

    def first(self, *, of_pages: bool) -> Alert | None:
        """Return the first alert about the future, or the first page."""
        return next((alert for alert in self.foreseen() if not of_pages or alert.severity != INFO), None)


def stopped(is_measured: bool, minutes: float = 50, puts: int = 20) -> tuple[Read, int]:
    """Return a store whose getters have stopped after bursts, and when they did."""
    story = Read()
    story.getters = 3 if is_measured else None
    story.bursts(3)
    story.go_on(5, puts=20, gets=20)
    story.getters = 0 if is_measured else None
    began = story.time
    story.go_on(minutes, puts=puts, gets=0)
    return story, began


def test_the_page_about_getters_that_stopped_comes_half_an_hour_ahead() -> None:
    (known, began), (unknown, _) = stopped(True), stopped(False)
    with_fact, without = known.first(of_pages=True), unknown.first(of_pages=True)
    assert with_fact is not None and without is not None
    assert with_fact.time - began < 22 * MINUTE_US < without.time - began
    assert with_fact.full_probability == 1.0
    assert "nobody reads what fills it: how earlier rises ended does not count" in with_fact.evidence
    assert with_fact.time_to_full_s is not None
    assert 25 * 60 < with_fact.time_to_full_s.p50 <= 30 * 60
    first_words = known.first(of_pages=False), unknown.first(of_pages=False)
    assert first_words[0].time < first_words[1].time  # type: ignore[union-attr]


def test_its_cause_begins_with_who_was_asked_and_its_runbook_with_the_handles() -> None:
    story, began = stopped(True, 25)
    alert = story.first(of_pages=True)
    assert alert is not None
    since = story.state()["queues"][0]["unread_since"]
    assert since[11:16] in alert.cause
    sentence = f"application has A.QUEUE open for input since {since[11:16]} UTC (QM01, QM02 asked)"
    assert alert.cause.startswith(f"No {sentence}. Entries of QSG1/APP1: ")
    assert alert.brief[0].startswith("full ~")
    assert alert.brief[1:] == (f"no {sentence}", "DISPLAY QSTATUS(A.QUEUE) TYPE(HANDLE) CMDSCOPE(*) ALL")
    assert alert.runbook[0].summary == "Start the application that reads A.QUEUE"
    assert alert.runbook[0].effect == "then not full within the horizon"
    assert began < alert.time


def test_getters_that_come_back_end_it_at_once() -> None:
    story, _ = stopped(True, 25)
    story.getters = 2
    story.go_on(0.5, puts=20, gets=0)
    story.send("HEARTBEAT", None, time=story.time + 10 * SECOND_US)
    forecast = story.state()["forecast"]["resources"][0]
    assert forecast["full_probability"] < 0.9
    story.go_on(25, puts=20, gets=50)
    assert [alert.change for alert in story.foreseen()][-1] == "cleared"
    assert story.state()["forecast"] is None


def test_a_get_ends_it_although_the_last_measurement_found_no_getter() -> None:
    story, _ = stopped(True, 25)
    assert story.twin.readers.unread(story.twin.queues, story.twin.tables.store.queues, story.time)
    story.send("GET")
    assert not story.twin.readers.unread(story.twin.queues, story.twin.tables.store.queues, story.time)


def test_a_fact_that_is_no_longer_measured_changes_nothing_after_five_minutes() -> None:
    story = stopped(True, 2)[0]
    plain = stopped(False, 2)[0]
    for own in (story, plain):
        own.getters = None
        own.go_on(15, puts=20, gets=0)
    assert story.state()["forecast"] == plain.state()["forecast"]


def test_a_queue_read_by_a_job_on_a_timetable_pages_no_sooner_than_without_the_fact() -> None:
    """Its getters are away 50 minutes of each hour, from the first one on; then it does not come."""
    pages: dict[bool, list[tuple[int, str]]] = {}
    for is_measured in (True, False):
        story = Read()
        for _ in range(4):
            story.getters = 0 if is_measured else None
            story.go_on(50, puts=14, gets=0)
            story.getters = 1 if is_measured else None
            story.go_on(10, puts=14, gets=84)
        assert all(alert.severity == INFO for alert in story.foreseen())
        story.getters = 0 if is_measured else None
        story.go_on(70, puts=14, gets=0)
        pages[is_measured] = [(alert.time, alert.severity) for alert in story.foreseen() if alert.severity != INFO]
        assert story.state()["queues"][0].get("getters") == (0 if is_measured else None)
    assert pages[True][0] <= pages[False][0]


def test_a_short_restart_is_no_reason_for_doubt_to_end() -> None:
    story, plain = stopped(True, 1.5, puts=300)[0], stopped(False, 1.5, puts=300)[0]
    assert story.state()["forecast"]["resources"][0]["full_probability"] < 0.9
    assert story.first(of_pages=True) is None or plain.first(of_pages=True) is not None


def test_a_page_needs_less_certainty_where_nobody_reads() -> None:
    times, doubtful = (600.0, 1200.0, 2400.0), {"usage": 0.4, "turned_before": True}
    config = Story().twin.config
    assert not rule.is_worth_a_page(rule.Danger(0.85, times, **doubtful), config)  # type: ignore[arg-type]
    assert rule.is_worth_a_page(rule.Danger(0.85, times, **doubtful, is_clear=True), config)  # type: ignore[arg-type]


@pytest.mark.parametrize("getters", [1, 4])
def test_open_handles_that_get_nothing_are_said_with_the_last_get(getters: int) -> None:
    story = Read()
    story.getters = getters
    story.bursts(1)
    story.go_on(5, puts=20, gets=20)
    story.go_on(45, puts=20, gets=0)
    alert = story.foreseen()[-1]
    have = "1 application has" if getters == 1 else "4 applications have"
    assert alert.cause.startswith(f"{have} A.QUEUE open for input, last get ")
    assert alert.runbook[0].summary == "Find out why the application that has A.QUEUE open for input gets nothing"
    assert story.state()["ents_used"] < ENTRIES


def test_cuts_of_blocks_and_restarts_do_not_change_what_facts_of_queues_do() -> None:
    story, _ = stopped(True, 30)
    story.getters = 2
    story.go_on(10, puts=20, gets=50)
    block, _ = story.decoding.block(story.events)
    check_same_results(story.decoding, block, [7, 100, 333, 334, 335, 700, 701, 900])


# --- levels alone ----------------------------------------------------------------------------------------------------


class Measured(Story):
    """A store known by levels each minute, with the depths of two queues, of which A.QUEUE fills it."""

    depth: int = 600

    def rise(self, minutes: int, messages: int, getters: int | None) -> None:
        for _ in range(minutes):
            self.time += MINUTE_US
            self.depth += messages
            own: dict[str, Any] = {"name": "A.QUEUE", "depth": self.depth, "getters": getters}
            queues = [own, {"name": "OTHER", "depth": 5}]
            measured = {"resync": True, "ents_used": self.depth, "elems_used": 6 * self.depth, "queues": queues}
            self.send("MEASURE", None, time=self.time, measured={**measured, "asked": ASKED})
            self.send("HEARTBEAT", None, time=self.time + SECOND_US)


def test_levels_alone_page_sooner_where_nobody_reads_the_queue_that_grows() -> None:
    stories = []
    for getters in (0, None):
        story = Measured()
        story.rise(40, 0, None if getters is None else 2)
        story.rise(44, 100, getters)
        stories.append(next(alert for alert in story.foreseen() if alert.severity != INFO))
    assert stories[0].time + 5 * MINUTE_US < stories[1].time
    assert stories[0].full_probability == 1.0
    assert stories[0].cause.startswith("No application has A.QUEUE open for input since ")
    assert "A.QUEUE alone fills it: 2,700 messages in 28 min." in stories[0].cause
    assert stories[0].fillers == stories[1].fillers
    assert (stories[0].fillers[0].queue, stories[0].fillers[0].share) == ("A.QUEUE", 1.0)


# -- how the queue that fills is read, where nothing but puts and gets is known


@pytest.mark.parametrize(("gets", "got", "is_absent", "keeps_up"), [(0, 0.0, True, False), (6, 0.3, False, False)])
def test_how_the_queue_that_fills_is_read_is_seen_in_its_own_puts_and_gets(
    gets: int, got: float, is_absent: bool, keeps_up: bool
) -> None:
    story = Story()
    story.go_on(30, puts=20, gets=20)
    story.go_on(17, puts=20, gets=gets)
    tick = int(story.twin.tables.store.scalars[0]["tick"])
    reading = how_read(story.twin, tick)
    age = under_way(story.twin.tables.store, tick).age
    assert reading.got == pytest.approx(got, abs=0.01)
    assert (reading.is_absent(age), reading.keeps_up(age)) == (is_absent, keeps_up)
    assert reading.unread == 0.0
    assert not reading.is_absent(11.0), "a queue that was empty until the rise began is silent since then only"


def test_of_a_store_known_by_levels_it_is_not_known_whether_getters_lag() -> None:
    assert not READ.lags
    assert not READ.keeps_up(1e3)
    assert Reading(got=0.79).lags


def test_getters_that_get_four_fifths_of_the_puts_keep_up() -> None:
    assert Reading(got=0.8).keeps_up(1e3)
    assert not Reading(got=0.79).keeps_up(1e3)
    assert not Reading(got=0.9, silent=12).keeps_up(1e3)
    assert not Reading(got=0.9, unread=0.6).keeps_up(1e3)


def test_a_store_from_which_nearly_all_is_got_is_paged_later_than_one_whose_getter_stopped() -> None:
    usage: dict[int, float] = {}
    for gets in (0, 34):
        story = Story()
        story.go_on(40, puts=40, gets=40)
        story.go_on(180 if gets else 26, puts=40, gets=gets)
        pages = [alert for alert in story.foreseen() if alert.severity != INFO]
        usage[gets] = pages[0].usage_pct or 0.0 if pages else 100.0
    assert usage[0] < usage[34]


@settings(max_examples=examples(30), deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["A.QUEUE", "B.QUEUE"]), st.integers(0, 40), st.integers(0, 40)), max_size=12
    )
)
def test_what_queues_hold_and_got_adds_up_to_the_store(steps: list[tuple[str, int, int]]) -> None:
    story = Story()
    held = {"A.QUEUE": 0, "B.QUEUE": 0}
    for queue, puts, gets in steps:
        story.time += 30 * SECOND_US
        for op, count in (("PUT", puts), ("GET", min(gets, held[queue] + puts))):
            if count:
                story.send(op, queue, time=story.time, count=count, **({"length": 800} if op == "PUT" else {}))
                held[queue] += count if op == "PUT" else -count
    store = story.twin.tables.store
    rows = store.queues[: len(story.twin.queues)]
    assert int(rows["depth"].sum()) == int(store.scalars[0]["messages"]) == sum(held.values())
    assert int(rows["puts"].sum() - rows["gets"].sum()) == int(store.scalars[0]["messages"])
