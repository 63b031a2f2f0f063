"""Actions of people about a store that fills: its alerts say them, and nothing else depends on it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twin
import twin.stores.open
from tests.kernels.beside import Decoding
from tests.support.acted import ALTERED, STORE, Site, altered, simulate_outage, with_events
from tests.support.profile import examples
from tests.support.twin_driver import TwinDriver
from tests.support.workloads import random_workload
from twin.alerts.episodes import Alert, Episodes
from twin.base.conditions import CLEARED, OPENED, UPDATED
from twin.planning.whatif import at_moment, what_if
from twin.records import DoneAction
from twin.records.alerts import MAX_DONE


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A getter that is away from 00:30 to 02:30; of the real system the structure never refuses a put."""
    return simulate_outage(tmp_path_factory.mktemp("outage"))


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The same, and the structure refuses puts from 01:06 on."""
    return simulate_outage(tmp_path_factory.mktemp("full"), "16M")


def alerts_with(site: Site, name: str, *events: dict[str, Any]) -> list[Alert]:
    return twin.replay(with_events(site.recording, name, *events), site.estate, course=False).alerts


def actions_of(alerts: list[Alert]) -> list[DoneAction]:
    """Return the actions of all records, each once, in order."""
    return list(dict.fromkeys(action for alert in alerts for action in alert.done))


def measured(time: str, size: int) -> dict[str, Any]:
    return {"time": time, "qmgr": "QM01", "op": "MEASURE", "store": STORE, "measured": {"size": size}}


# --- what alerts say -------------------------------------------------------------------------------------------------


def test_the_alert_says_at_once_what_a_larger_size_brought(outage: Site) -> None:
    alerts = alerts_with(outage, "altered.ndjson", altered())
    [action] = [action for action in actions_of(alerts) if action.id == "alter-size"]
    assert (action.text, action.time, action.is_refused) == ("SIZE raised from 16M to 64M", ALTERED, False)
    [first] = [alert for alert in alerts if alert.done and alert.when.strftime("%H:%M:%S") == "01:02:00"]
    assert (first.condition, first.change) == ("full-forecast", UPDATED)
    assert first.incident.role == "root" and first.done == (action,)
    assert action.effect is not None and action.effect.startswith("full in 1.") and "instead of in" in action.effect
    assert first.cause.endswith(f" SIZE raised from 16M to 64M at 2026-11-20 01:02 UTC: {action.effect}.")
    before = json.loads(first.record())["data"]
    assert before["done"] == [msgspec.to_builtins(action)]


def test_an_alert_that_has_eased_says_what_was_done_but_no_time_until_full(outage: Site) -> None:
    alerts = alerts_with(outage, "eased.ndjson", altered("2026-11-20T00:55:00Z"))
    eased = next(alert for alert in alerts if "full is unlikely now" in alert.cause)
    assert (
        eased.cause.endswith(" SIZE raised from 16M to 64M at 2026-11-20 00:55 UTC.") and "full in" not in eased.cause
    )


def test_what_it_brought_is_the_answer_of_what_if(outage: Site) -> None:
    path = with_events(outage.recording, "altered.ndjson", altered())
    [action, _] = actions_of(twin.replay(path, outage.estate, course=False).alerts)
    estate, time = twin.load_estate(outage.estate), "2026-11-20T01:01:59.999999Z"
    assert action.before_s == what_if(at_moment(path, estate, STORE, time)).before.p50
    assert action.after_s == what_if(at_moment(path, estate, STORE, ALTERED)).before.p50


def test_the_record_that_clears_the_alert_says_it_too_and_so_do_parts(outage: Site) -> None:
    alerts = alerts_with(outage, "altered.ndjson", altered())
    ends = [alert for alert in alerts if alert.change == CLEARED]
    assert {alert.condition for alert in ends} == {"full-forecast", "threshold"}
    assert all("SIZE raised from 16M to 64M at 2026-11-20 01:02 UTC." in alert.cause and alert.done for alert in ends)


def test_a_store_that_refused_puts_has_the_room_that_the_change_made(full: Site) -> None:
    alerts = alerts_with(full, "late.ndjson", altered(time="2026-11-20T01:14:00Z"))
    action = actions_of(alerts)[0]
    assert action.before_s == 0.0 and action.after_s is not None and action.after_s > 3600
    assert action.effect == f"full in {action.after_s / 3600:.1f} h instead of now"
    assert next(alert for alert in alerts if alert.done).condition == "full"


def test_a_refused_change_is_said_without_an_effect(full: Site) -> None:
    action = actions_of(alerts_with(full, "refused.ndjson", altered(time="2026-11-20T01:14:00Z", size="1M")))[0]
    assert (action.text, action.is_refused, action.effect) == ("ALTER of SIZE refused", True, None)


def test_a_measured_size_is_no_room_of_the_model(outage: Site) -> None:
    sizes = [measured(f"2026-11-20T{time}:00Z", mb << 20) for time, mb in (("00:50", 16), ("01:00", 64), ("01:02", 64))]
    [action] = [
        action for action in actions_of(alerts_with(outage, "measured.ndjson", *sizes)) if action.id == "alter-size"
    ]
    assert action.text == "SIZE raised from 16M to 64M, as measured"
    assert (action.before_s, action.after_s, action.effect) == (None, None, None)


def test_a_change_that_moves_no_limit_leaves_as_much_time(outage: Site) -> None:
    [action, _] = actions_of(alerts_with(outage, "line.ndjson", altered(full_threshold=70)))
    assert action.text == "FULLTHRESHOLD lowered from 80 to 70"
    assert action.before_s == action.after_s is not None
    assert action.effect is not None and action.effect.endswith(" min, as before")


def test_a_measurement_that_shows_an_alter_is_no_other_action(outage: Site) -> None:
    events = [measured("2026-11-20T00:50:00Z", 16 << 20), altered(), measured("2026-11-20T01:03:00Z", 64 << 20)]
    actions = actions_of(alerts_with(outage, "both.ndjson", *events))
    assert [action.text for action in actions if action.id == "alter-size"] == ["SIZE raised from 16M to 64M"]


def test_clearing_next_to_nothing_is_no_action_and_clearing_a_queue_is_one() -> None:
    driver = TwinDriver(size=1 << 20, full_threshold=20)
    driver.put(count=400)
    driver.wait(10)
    driver.put(queue="B.QUEUE", count=4)
    driver.send("CLEAR", "B.QUEUE")
    assert driver.alerts and actions_of(driver.alerts) == []
    driver.put(queue="B.QUEUE", count=40)
    driver.send("CLEAR", "B.QUEUE")
    driver.send("CLEAR", "B.QUEUE")
    assert [action.text for action in actions_of(driver.alerts)] == ["B.QUEUE cleared of 40 messages"]


def test_a_change_without_an_open_alert_is_none(outage: Site) -> None:
    alerts = alerts_with(outage, "early.ndjson", altered(time="2026-11-20T00:10:00Z"))
    assert [action.id for action in actions_of(alerts)] in ([], ["getters"])


def test_an_incident_keeps_a_few_actions(outage: Site) -> None:
    rules = [altered(time=f"2026-11-20T00:{minute}:00Z", full_threshold=minute) for minute in range(50, 58)]
    alerts = alerts_with(outage, "rules.ndjson", *rules)
    assert len(actions_of(alerts)) >= len(rules) > MAX_DONE
    assert max(len(alert.done) for alert in alerts) == MAX_DONE
    last = [alert for alert in alerts if alert.done and alert.done[-1].text.startswith("FULLTHRESHOLD")][-1]
    assert [action.time[14:16] for action in last.done] == ["54", "55", "56", "57"]


# --- getters ---------------------------------------------------------------------------------------------------------


def test_getters_that_are_back_are_said_once_with_what_that_brought(full: Site) -> None:
    alerts = twin.replay(full.recording, full.estate, course=False).alerts
    [action] = actions_of(alerts)
    assert (action.id, action.text) == ("getters", "Getters of ORDERS have been back")
    assert action.time == "2026-11-20T02:30:00.000000Z"
    first = next(alert for alert in alerts if alert.done)
    assert first.when.strftime("%H:%M") in ("02:31", "02:32")
    assert (
        action.effect is not None
        and f"Getters of ORDERS have been back since 2026-11-20 02:30 UTC: {action.effect}." in first.cause
    )
    assert (action.before_s, action.after_s) == (0.0, None)  # they drain it


def test_what_they_brought_is_not_known_while_the_store_is_full(outage: Site) -> None:
    """The twin takes the structure to be full, whatever the real system put."""
    [action] = actions_of(twin.replay(outage.recording, outage.estate, course=False).alerts)
    assert (action.text, action.effect) == ("Getters of ORDERS have been back", None)


@pytest.mark.parametrize(("puts", "gets", "is_said"), [(10, 10, True), (10, 6, True), (10, 4, False), (1, 1, False)])
def test_getters_are_back_when_they_take_half_of_what_is_put(puts: int, gets: int, is_said: bool) -> None:
    """`puts` and `gets` in ten seconds of the three minutes in which they may be back, after ten without a get."""
    driver = filled()
    for _ in range(60):
        driver.put(count=10)
        driver.wait(9)
    for _ in range(19):
        driver.put(count=puts)
        driver.get(count=gets)
        driver.wait(8)
    assert ("getters" in [action.id for action in actions_of(driver.alerts)]) == is_said


def test_a_queue_that_is_got_from_has_no_getters_that_come_back() -> None:
    driver = filled()
    for _ in range(90):
        driver.put(count=10)
        driver.get(count=4)
        driver.wait(8)
    assert actions_of(driver.alerts) == []


def filled() -> TwinDriver:
    """Return a structure above its FULLTHRESHOLD, in events of half an hour."""
    driver = TwinDriver(size=4 << 20, full_threshold=20)
    for _ in range(40):
        driver.put(count=60)
        driver.wait(44)
    assert driver.twin.episodes.filling is not None
    return driver


# --- nothing else depends on it --------------------------------------------------------------------------------------


def played(config: Any, events: list[dict[str, Any]], cuts: frozenset[int]) -> tuple[list[Alert], Any]:
    """Return the alerts and the state of a store whose events come in blocks; after each it is opened again."""
    decoding = Decoding(config)
    store, alerts, pages, block = decoding.twin(), list[Alert](), dict[int, bytes](), list[dict[str, Any]]()
    for number, event in enumerate(events, 1):
        block.append(event)
        if number in cuts or number == len(events):
            alerts += store.apply(decoding.block(block)[0])
            pages |= dict(store.dirty_pages())
            store, block = decoding.twin(None, store.header(), pages.items()), []
    return alerts, store.state()


@pytest.mark.nightly
@settings(max_examples=examples(2), deadline=None)
@given(seed=st.integers(0, 1 << 30), cuts=st.frozensets(st.integers(1, 400), max_size=6))
def test_alerts_do_not_depend_on_blocks_and_restarts_whatever_people_do(seed: int, cuts: frozenset[int]) -> None:
    workload = random_workload(seed, 400, "mixed")
    whole = played(workload.config, workload.events, frozenset())
    assert played(workload.config, workload.events, cuts) == whole


@pytest.mark.nightly
@settings(max_examples=examples(2), deadline=None)
@given(seed=st.integers(0, 1 << 30))
def test_the_same_alerts_open_and_clear_whether_or_not_they_say_what_was_done(seed: int) -> None:
    workload = random_workload(seed, 400, "mixed")
    check_same(lambda: played(workload.config, workload.events, frozenset()))


@pytest.mark.parametrize("name", ["outage", "full"])
def test_an_outage_with_an_alter_opens_and_clears_the_same_alerts(name: str, request: pytest.FixtureRequest) -> None:
    site: Site = request.getfixturevalue(name)
    path = with_events(site.recording, "altered.ndjson", altered())

    def play() -> tuple[list[Alert], Any]:
        replayed = twin.replay(path, site.estate, course=False)
        return replayed.alerts, replayed.states

    check_same(play)


def check_same(play: Any) -> None:
    """Check that what is told changes no state, and no opening or clearing with its severity, incident and role."""

    def ends(alerts: list[Alert]) -> list[tuple[Any, ...]]:
        return [
            (alert.alert_id, alert.change, alert.time, alert.severity, alert.usage_pct, alert.incident)
            for alert in alerts
            if alert.change in (OPENED, CLEARED)
        ]

    alerts, state = play()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Episodes, "note_done", lambda *_: [])
        quiet, quiet_state = play()
    assert ends(alerts) == ends(quiet) and state == quiet_state
    assert not actions_of(quiet)


def test_a_header_from_before_actions_opens(outage: Site) -> None:
    store = at_moment(outage.recording, twin.load_estate(outage.estate), STORE, "2026-11-20T01:01:00Z").twin
    content = msgspec.msgpack.decode(store.header())
    assert content.pop("acts")["getters"]["queue"] == "ORDERS"
    del content["incident"]["done"]
    again = twin.stores.open.open_message_store(
        store.estate, STORE, store.tables.copied_arrays(), msgspec.msgpack.encode(content), None
    )
    assert again.episodes.incident is not None and again.episodes.incident.done == []
    assert again.acts.getters is None and again.state() == store.state()
