"""Facts that MEASUREs have by queue: who reads it, for how long a fact counts, what the state record shows of it."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from tests.support.twin_driver import PageSetDriver, QueueFileDriver, TwinDriver
from tests.support.workloads import SECOND_US, START_US
from twin.alerts import readers
from twin.alerts.readers import QueueFact, Readers
from twin.base.units import as_text

MINUTE = 60.0
RATES = ("puts_per_s", "gets_per_s")  # counted, of events


def measure(driver: TwinDriver, asked: tuple[str, ...] = ("QM01", "QM02"), **fact: Any) -> dict[str, Any]:
    """Measure the queue A.QUEUE; return the state record."""
    return dict(driver.measure(queues=[{"name": "A.QUEUE", **fact}], asked=list(asked)))


def queue_of(driver: TwinDriver) -> dict[str, Any]:
    """Return what the state record shows of its deepest queue."""
    return dict(driver.state()["queues"][0])


@pytest.mark.parametrize("open_driver", [TwinDriver, PageSetDriver, QueueFileDriver])
def test_a_measurement_of_queues_alone_is_no_level_of_the_store(open_driver: type[TwinDriver]) -> None:
    driver = open_driver()
    driver.put(count=3)
    before = driver.state()
    after = driver.measure(resync=True, queues=[{"name": "A.QUEUE", "getters": 2, "depth": 9}])
    changed = {name for name in before if before[name] != after[name]}
    assert changed <= {"queues", "events", "time"}
    assert after["queues"][0]["getters"] == 2
    assert after["queues"][0]["depth"] == 3
    assert driver.reopen().state() == driver.state()


def test_the_state_record_has_only_facts_that_are_known() -> None:
    driver = TwinDriver()
    driver.put(count=3)
    assert queue_of(driver).keys() == {"name", "depth", "bytes", *RATES}
    measure(driver, getters=0, oldest_s=17, last_get="2026-11-20T11:00:00+01:00", uncommitted=None)
    assert queue_of(driver) == {
        "name": "A.QUEUE",
        "depth": 3,
        "bytes": queue_of(driver)["bytes"],
        "puts_per_s": queue_of(driver)["puts_per_s"],
        "gets_per_s": 0.0,
        "getters": 0,
        "oldest_s": 17,
        "last_get": "2026-11-20T10:00:00.000000Z",
        "asked": ["QM01", "QM02"],
        "measured_at": as_text(driver.time),
        "unread_since": as_text(driver.time),
    }


def test_a_list_of_queues_as_in_state_records_of_earlier_versions_is_accepted() -> None:
    driver = TwinDriver()
    driver.put(count=3)
    driver.measure(ents_used=3, queues=[{"name": "A.QUEUE", "depth": 3, "bytes": 300}, {"name": "NONE", "depth": 1}])
    assert driver.state()["baseline"]["entries"] == 0
    assert queue_of(driver).keys() == {"name", "depth", "bytes", "measured_at", *RATES}


def test_a_queue_has_its_puts_and_gets_per_second_of_15_to_30_minutes() -> None:
    driver = TwinDriver(size=8 << 20)
    for _ in range(40):  # a minute each
        driver.put(count=120)
        driver.get(count=60)
        driver.wait(58)
    queue = queue_of(driver)
    assert queue["depth"] == 40 * 60
    assert 1.9 < queue["puts_per_s"] < 2.1 and 0.95 < queue["gets_per_s"] < 1.05
    driver.wait(2 * MINUTE)
    assert queue_of(driver)["gets_per_s"] == 0.0 < queue_of(driver)["puts_per_s"]  # nobody gets any more
    driver.wait(60 * MINUTE)
    driver.wait(1)
    assert queue_of(driver)["puts_per_s"] == 0.0
    assert driver.reopen().state() == driver.state()


def test_the_first_rates_are_those_since_the_first_event() -> None:
    driver = TwinDriver()
    driver.put(count=10)
    driver.wait(20)
    driver.get()
    assert queue_of(driver)["puts_per_s"] == pytest.approx(10 / 21, abs=0.001)
    assert queue_of(driver)["gets_per_s"] == pytest.approx(1 / 21, abs=0.001)


def test_where_only_levels_are_known_the_measured_depths_are_shown() -> None:
    driver = TwinDriver()
    driver.measure(resync=True, ents_used=12, queues=[{"name": "A.QUEUE", "depth": 12}])
    (queue,) = driver.state()["queues"]
    assert (queue["depth"], queue["bytes"]) == (12, None)
    assert not queue.keys() & {*RATES}


def test_a_fact_counts_for_three_usual_distances_and_five_minutes_at_least() -> None:
    driver = TwinDriver()
    driver.put()
    measure(driver, getters=1)
    driver.wait(5 * MINUTE)
    assert queue_of(driver)["getters"] == 1
    driver.wait(1)
    assert "getters" not in queue_of(driver)
    for _ in range(3):
        measure(driver, getters=1)
        driver.wait(10 * MINUTE)
    driver.wait(20 * MINUTE)
    assert queue_of(driver)["getters"] == 1
    driver.wait(6)
    assert "getters" not in queue_of(driver)


def test_it_counts_for_two_hours_at_most() -> None:
    fact = QueueFact(0, gap=3600 * SECOND_US)
    assert fact.counts(7200 * SECOND_US)
    assert not fact.counts(7200 * SECOND_US + 1)


def test_nobody_reads_it_since_the_first_of_the_measurements_in_a_row() -> None:
    driver = TwinDriver()
    driver.put(count=9)
    measure(driver, getters=0)
    since = as_text(driver.time)
    for _ in range(3):
        driver.wait(30)
        measure(driver, getters=0)
    assert queue_of(driver)["unread_since"] == since
    measure(driver, getters=1)
    assert "unread_since" not in queue_of(driver)


def test_a_get_proves_a_getter() -> None:
    driver = TwinDriver()
    driver.put(count=9)
    measure(driver, getters=0)
    driver.send("GET")
    assert queue_of(driver).keys() >= {"measured_at"}
    assert not {"getters", "unread_since", "asked"} & queue_of(driver).keys()
    driver.wait(30)
    measure(driver, getters=0)
    assert queue_of(driver)["unread_since"] == as_text(driver.time)


def test_the_time_of_the_last_get_proves_one_where_gets_are_not_reported() -> None:
    driver = TwinDriver()
    driver.measure(resync=True, ents_used=12, queues=[{"name": "A.QUEUE", "depth": 12, "getters": 0}])
    driver.wait(60)
    got_at = as_text(driver.time - 20 * SECOND_US)
    driver.measure(queues=[{"name": "A.QUEUE", "depth": 3, "getters": 0, "last_get": got_at}])
    assert queue_of(driver)["unread_since"] == as_text(driver.time)


def test_handles_that_a_member_did_not_answer_about_stay_as_they_were_until_they_are_old() -> None:
    driver = TwinDriver()
    driver.put()
    measure(driver, getters=0)
    since = as_text(driver.time)
    for _ in range(4):
        driver.wait(60)
        measure(driver, depth=4)
    assert queue_of(driver)["unread_since"] == since
    driver.wait(60)
    measure(driver, depth=4)
    assert "getters" not in queue_of(driver)
    measure(driver, getters=0)
    assert queue_of(driver)["unread_since"] == as_text(driver.time)


def test_an_older_measurement_changes_nothing() -> None:
    driver = TwinDriver()
    driver.put()
    driver.wait(60)
    measure(driver, getters=1)
    expected = queue_of(driver)
    older = {"queues": [{"name": "A.QUEUE", "getters": 0}]}
    driver.send("MEASURE", None, store=driver.name, measured=older, time=driver.time - 30 * SECOND_US)
    assert queue_of(driver) == expected


# --- absences, and bounds --------------------------------------------------------------------------------------------


def measured(fact: QueueFact, minute: float, **values: Any) -> QueueFact:
    time = START_US + round(minute * 60) * SECOND_US
    refused_at = values.pop("refused_at", None)
    fact.take({"name": "A", **values}, time, ("QM01",), 0, 0, refused_at)
    return fact


def away(fact: QueueFact, begin: int, minutes: int, **last: Any) -> None:
    """Measure a queue each minute, without a getter for some minutes."""
    for minute in range(begin, begin + minutes):
        measured(fact, minute, getters=0)
    measured(fact, begin + minutes, getters=1, **last)


def test_a_queue_that_is_mostly_closed_is_read_on_a_timetable_once_three_absences_are_known() -> None:
    fact = QueueFact(START_US)
    measured(fact, 0, getters=1)
    for number in range(3):
        assert fact.usual_absence is None
        away(fact, 1 + 60 * number, 50 + number)
    assert fact.usual_absence == 52 * 60 * SECOND_US
    assert not fact.is_steady
    for minute in range(180, 300):
        measured(fact, minute, getters=0)
        assert fact.may_return(fact.measured_at) == (minute - 180 <= 52 * 1.5)


def test_a_steady_reader_is_away_for_longer_than_usual_after_a_restart() -> None:
    fact = QueueFact(START_US)
    for minute in range(60):
        measured(fact, minute, getters=1)
    assert fact.is_steady
    assert fact.usual_absence == 0
    for minute in range(60, 70):
        measured(fact, minute, getters=0)
        assert fact.may_return(fact.measured_at) == (minute - 60 <= 5)
    measured(fact, 70, getters=1)
    assert (fact.is_steady, fact.usual_absence) == (True, 0)
    away(fact, 71, 4)
    assert (fact.is_steady, fact.usual_absence) == (True, 4 * 60 * SECOND_US)


def test_a_job_that_has_the_queue_open_for_hours_is_no_steady_reader() -> None:
    fact = QueueFact(START_US)
    away(fact, 0, 270)
    for minute in range(271, 390):
        measured(fact, minute, getters=1)
    for minute in range(390, 1500):
        measured(fact, minute, getters=0)
        assert fact.may_return(fact.measured_at)


def test_a_queue_that_was_not_read_for_a_whole_day_has_no_timetable() -> None:
    fact = QueueFact(START_US)
    for minute in range(0, 1500, 4):
        measured(fact, minute, getters=0)
        assert fact.may_return(fact.measured_at) == (minute < 1440)


def test_an_absence_in_which_puts_were_refused_is_no_timetable() -> None:
    fact = QueueFact(START_US)
    for begin in (0, 100, 200):
        away(fact, begin, 60, refused_at=START_US + (begin + 50) * 60 * SECOND_US)
    assert fact.absences == []


def test_the_longest_absences_of_two_weeks_are_kept() -> None:
    fact = QueueFact(START_US)
    for number in range(20):
        away(fact, 100 * number, 10 + number)
    assert [end - begin for begin, end in fact.absences] == [m * 60 * SECOND_US for m in range(22, 30)]
    away(fact, 100 * 20 + 16 * 1440, 5)
    assert len(fact.absences) == 1


def test_few_depths_are_kept_and_the_older_the_further_apart() -> None:
    fact = QueueFact(START_US)
    for minute in range(600):
        measured(fact, minute, depth=minute)
    assert len(fact.samples) <= 6
    assert fact.samples[0][1] == 0
    distances = [after[0] - before[0] for before, after in zip(fact.samples, fact.samples[1:], strict=False)]
    assert distances == sorted(distances, reverse=True)
    grown = fact.grown_since(START_US + 300 * 60 * SECOND_US)
    assert 299 <= grown <= 599


def test_facts_are_kept_of_so_many_queues_and_old_ones_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "MAX_QUEUES", 2)
    driver, names = TwinDriver(), ["A", "B", "C", "D"]
    rows = driver.twin.tables.store.queues[[0, 0, 0, 0]]
    own = Readers()
    own.note({"queues": [{"name": name, "depth": 1} for name in names]}, START_US, names, rows)
    assert own.facts.keys() == {"A", "B"}
    own.note({"queues": [{"name": "D", "depth": 1}]}, START_US + 3600 * SECOND_US, names, rows)
    assert own.facts.keys() == {"D"}


def test_a_clock_that_goes_back_forgets_them() -> None:
    driver = TwinDriver()
    driver.put()
    measure(driver, getters=0)
    earlier = driver.time - 5 * 86_400 * SECOND_US
    for second in range(2_000):
        driver.send("HEARTBEAT", None, store=driver.name, time=earlier + second * SECOND_US)
        if not driver.twin.readers.facts:
            break
    assert queue_of(driver).keys() == {"name", "depth", "bytes", *RATES}


# --- the watch about a queue that nobody reads -----------------------------------------------------------------------


class Watched(TwinDriver):
    """A structure whose queue A.QUEUE is put to and measured each minute."""

    def go_on(self, minutes: int, getters: int | None, *, puts: int = 1, gets: int = 0, **fact: Any) -> None:
        for _ in range(minutes):
            self.time += 56 * SECOND_US
            if puts:
                self.put(count=puts)
            if gets:
                self.get(count=gets)
            if getters is not None:
                measure(self, getters=getters, **fact)
            self.send("HEARTBEAT", None)

    def watches(self) -> list[tuple[str, int]]:
        return [
            (alert.change, round((alert.time - START_US) / 60 / SECOND_US))
            for alert in self.alerts
            if alert.condition == "queue-unread"
        ]


def watched() -> Watched:
    return Watched(size=1 << 24)


def test_a_queue_with_a_steady_reader_is_unread_after_ten_minutes_in_which_it_was_put_to() -> None:
    driver = watched()
    driver.go_on(40, getters=2, gets=1)
    driver.go_on(11, getters=0)
    assert driver.watches() == []
    driver.go_on(3, getters=0)
    assert driver.watches() == [("opened", 52)]
    (alert,) = (alert for alert in driver.alerts if alert.condition == "queue-unread")
    assert (alert.severity, alert.level, alert.resource) == ("info", "watch", "queue/A.QUEUE")
    assert alert.cause.startswith("No application has A.QUEUE open for input since ")
    assert alert.cause.endswith(" messages wait, and puts come.")
    assert alert.runbook[0].steps[0].statement == "DISPLAY QSTATUS(A.QUEUE) TYPE(HANDLE) CMDSCOPE(*) ALL"


@pytest.mark.parametrize("known", ["events", "levels"])
@pytest.mark.parametrize("before", [40, 4], ids=["steady reader", "seen read for a short while"])
def test_a_queue_that_grows_is_unread_after_five_minutes(known: str, before: int) -> None:
    driver, depth, since = watched(), 0, 0
    for minute in range(before + 15):
        is_read = minute < before
        depth += 0 if is_read else 60
        if known == "events":
            driver.go_on(1, getters=int(is_read), puts=60, gets=60 * is_read)
        else:
            levels = {"resync": True, "ents_used": 10 + depth, "ents_max": 20_000, "size": 1 << 24}
            driver.time += 60 * SECOND_US
            facts = [{"name": "A.QUEUE", "depth": 10 + depth, "getters": int(is_read)}]
            driver.measure(**levels, queues=facts, asked=["QM01"])
        since = driver.time if minute == before else 0 if is_read else since
    own = [alert for alert in driver.alerts if alert.condition == "queue-unread"]
    assert own[0].change == "opened" and 300 <= (own[0].time - since) / SECOND_US < 365
    assert all(alert.severity == "info" for alert in own)


def test_a_burst_to_an_unread_queue_that_then_stays_as_it_is_waits_for_longer() -> None:
    driver = watched()
    driver.go_on(40, getters=1, gets=1)
    driver.go_on(1, getters=0, puts=200, depth=200)
    driver.go_on(8, getters=0, puts=0, depth=200)
    assert driver.watches() == []


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ({"getters": 1}, "A.QUEUE is open for input again, alert cleared."),
        ({"getters": 0, "puts": 0, "gets": 50}, "A.QUEUE is empty, alert cleared."),
        ({"getters": None}, "A.QUEUE is not measured any more, alert cleared."),
    ],
)
def test_it_clears_when_it_is_read_again_empty_or_not_measured_any_more(end: dict[str, Any], words: str) -> None:
    driver = watched()
    driver.go_on(40, getters=2, gets=1)
    driver.go_on(15, getters=0)
    driver.go_on(10, **end)
    assert [change for change, _ in driver.watches()] == ["opened", "cleared"]
    assert driver.alerts[-1].cause == words


def test_it_does_not_open_without_puts() -> None:
    driver = watched()
    driver.put(count=5)
    driver.go_on(40, getters=2, puts=0)
    driver.go_on(60, getters=0, puts=0)
    assert driver.watches() == []


@pytest.mark.parametrize("known", ["events", "depth", "last put"])
def test_it_does_not_open_long_after_the_last_put(known: str) -> None:
    driver = watched()
    for minute in range(130):
        deep = min(20, minute)
        last_put = as_text(START_US + deep * 60 * SECOND_US)
        facts = {"events": {}, "depth": {"depth": deep}, "last put": {"depth": 20, "last_put": last_put}}[known]
        driver.go_on(1, getters=0, puts=int(known == "events" and minute < 20), **facts)
    assert driver.watches() == []


def test_it_does_not_open_for_a_queue_read_on_a_timetable_until_that_is_exceeded() -> None:
    driver = watched()
    for _ in range(3):
        driver.go_on(50, getters=0)
        driver.go_on(10, getters=1, gets=6)
    assert driver.watches() == []
    since = round((driver.time - START_US) / 60 / SECOND_US)
    driver.go_on(85, getters=0)
    ((change, minute),) = driver.watches()
    assert (change, 72 <= minute - since <= 77) == ("opened", True)


def test_a_store_with_an_open_watch_continues_from_its_state() -> None:
    driver = watched()
    driver.go_on(40, getters=2, gets=1)
    driver.go_on(15, getters=0)
    before = driver.state()
    driver.reopen()
    assert driver.state() == before
    driver.go_on(5, getters=1, gets=20)
    assert [change for change, _ in driver.watches()] == ["opened", "cleared"]


def test_state_of_a_version_without_facts_opens_without_them() -> None:
    driver = TwinDriver()
    driver.put(count=3)
    header = msgspec.msgpack.decode(driver.twin.header())
    del header["readers"]
    pages = dict(driver.twin.dirty_pages())
    driver.twin = driver.decoding.twin(None, msgspec.msgpack.encode(header), pages.items())
    assert driver.state()["messages"] == 3
    measure(driver, getters=0)
    assert queue_of(driver)["getters"] == 0


# --- queues that the estate lacks ------------------------------------------------------------------------------------


def rising(driver: Watched, *, is_named: bool) -> str:
    """Let a queue that the estate lacks fill the store by levels; return the cause of the last alert about it."""
    for minute in range(16):
        new = 600 * minute
        driver.time += 60 * SECOND_US
        others = sorted(set(driver.twin.config.queues) - {"A.QUEUE"})
        facts = [{"name": name, "depth": 0, "getters": 1} for name in others]
        facts += [{"name": "A.QUEUE", "depth": 1_300 + minute, "getters": 1}]
        facts += [{"name": "NEW", "depth": new, "getters": 0}] if is_named else []
        levels = {"resync": True, "ents_used": 1_300 + minute + new, "ents_max": 11_000}
        driver.measure(**levels, queues=facts, asked=["QM01"])
        driver.send("HEARTBEAT", None)
    return [alert for alert in driver.alerts if alert.condition == "threshold"][-1].cause


def test_a_queue_that_the_estate_lacks_is_named_as_what_fills_the_store() -> None:
    driver = watched()
    cause = rising(driver, is_named=True)
    assert "NEW fills it most: 100 %" in cause or "NEW alone fills it" in cause or "NEW fills it most: 99" in cause
    assert re.search(r" [0-9],[0-9]{3} entries are of queues that the estate lacks: NEW\.", cause)
    assert [queue["name"] for queue in driver.state()["queues"]] == ["NEW", "A.QUEUE"]
    watches = [alert for alert in driver.alerts if alert.condition == "queue-unread"]
    assert {alert.resource for alert in watches} == {"queue/NEW"}
    before = driver.state()
    assert driver.reopen().state() == before


def test_where_no_measurement_names_it_no_other_queue_is_blamed() -> None:
    driver = watched()
    cause = rising(driver, is_named=False)
    assert "Which queue fills it is not known" in cause and "A.QUEUE" not in cause
    assert re.search(r" [0-9],[0-9]{3} entries are of queues that the estate lacks\.", cause)
    assert all(not alert.fillers for alert in driver.alerts if alert.condition == "threshold")


def test_a_feed_cannot_give_a_store_queues_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twin.stores.message_store.MAX_FOREIGN_QUEUES", 2)
    driver = watched()
    for number in range(5):
        driver.measure(queues=[{"name": f"N{number}", "depth": 1}, {"name": f"E{number}", "depth": 0}])
    assert set(driver.twin.queues) >= {"N0", "N1"}
    assert not {"N2", "E0"} & set(driver.twin.queues)
