"""The public driver: events by hand, and scripts with pauses and crashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.profile import examples
from tests.support.shared import shared_estate
from tests.support.traffic import START_US, lines_of, traffic, write_estate, write_recording
from twin.alerts.episodes import Alert
from twin.base.errors import UsageError
from twin.estate import Estate, load_estate
from twin.playback.replays import replay
from twin.testing import ABORT, EOF, PAUSE, Driver, Item, Signal

EVENTS = list(traffic(2000))
MINUTE_US = 60_000_000


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return load_estate(write_estate(tmp_path_factory.mktemp("estate")))


def in_order(alerts: list[Alert]) -> list[Alert]:
    return sorted(alerts, key=lambda alert: (alert.time, alert.store))


def played(estate: Estate, source: list[Item]) -> tuple[list[Alert], dict[str, Any]]:
    driver = Driver(estate)
    driver.play(source)
    return in_order(driver.alerts), driver.states()


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_a_structure_that_is_filled_and_drained_opens_and_clears_an_alert(estate: Estate) -> None:
    with Driver(estate) as driver:
        opened = driver.put("ORDERS", length=2048, count=1000, qmgr="QM02")
        assert {alert.store for alert in opened} == {"QSG1/APP1"}
        assert opened[0].change == "opened"
        driver.get("ORDERS", count=1000)
        driver.wait(hours=1)
    assert not driver.state("QSG1/APP1").usage_pct
    assert {alert.alert_id for alert in driver.alerts if alert.change == "cleared"} == {
        alert.alert_id for alert in driver.alerts
    }
    assert driver.state("QSG1/APP1").messages == 0


def test_a_call_returns_the_alerts_it_brought_and_the_sink_has_all(estate: Estate) -> None:
    sink: list[Alert] = []
    driver = Driver(estate, sink=sink)
    returned = [
        *driver.put("BILLS", length=900, count=2000),
        *driver.put("ORDERS", length=900, count=2000),
        *driver.clear("BILLS"),
        *driver.wait(minutes=20),
    ]
    assert driver.alerts is sink and sink == returned != []


def test_units_of_work_end_by_commit_backout_or_restart(estate: Estate) -> None:
    driver = Driver(estate)
    driver.put("ORDERS", length=100, count=3, uow="u1")
    driver.put("ORDERS", length=100, count=4, uow="u2")
    driver.put("ORDERS", length=100, count=5, uow="u3", qmgr="QM02")
    assert driver.state("QSG1/APP1").uncommitted == 12
    driver.commit("ORDERS", "u1")
    driver.backout("ORDERS", "u2")
    driver.restart("QM02")
    state = driver.state("QSG1/APP1")
    assert (state.messages, state.uncommitted) == (3, 0)


def test_an_alter_a_rebuild_and_a_measurement_reach_the_store(estate: Estate) -> None:
    driver = Driver(estate)
    driver.alter("QSG1/APP1", size="512K")
    assert driver.state("QSG1/APP1").size == 512 << 10
    driver.rebuild("QSG1/APP1", size="2M")
    assert driver.state("QSG1/APP1").size == 2 << 20
    driver.measure("QSG1/APP1", messages=10, ents_used=10, elems_used=60)
    assert driver.state("QSG1/APP1").messages == 10


def test_expired_messages_are_removed(estate: Estate) -> None:
    driver = Driver(estate)
    driver.put("BILLS", length=100, msgid="a1")
    driver.put("BILLS", length=100)
    driver.expire("BILLS", msgid="a1")
    assert driver.state("QSG1/APP2").messages == 1


def test_waiting_lets_the_clocks_of_all_stores_go_on(estate: Estate) -> None:
    driver = Driver(estate, start="2026-11-20T12:00:00Z")
    driver.wait(minutes=1, seconds=5)
    assert driver.time == START_US + 65_000_000
    states = driver.states()
    assert set(states) == {route.store for route in estate.routes}
    assert {state.time for state in states.values()} == {"2026-11-20T12:01:05.000000Z"}
    assert states["QM01/PS04"].events == 7
    assert states["QSG1/APP1"].events == 14


def test_time_advances_with_the_events_that_are_sent(estate: Estate) -> None:
    driver = Driver(estate, start=START_US)
    driver.send({"time": START_US + MINUTE_US, "qmgr": "QM01", "op": "HEARTBEAT"})
    assert driver.time == START_US + MINUTE_US
    driver.send({"time": START_US, "qmgr": "QM01", "op": "HEARTBEAT"})
    assert driver.time == START_US + MINUTE_US


def test_a_store_without_an_event_is_new_and_not_among_the_states(estate: Estate) -> None:
    driver = Driver(estate)
    driver.put("ORDERS", length=1)
    assert driver.state("QSG1/APP2").time is None
    assert list(driver.states()) == ["QSG1/APP1"]


def test_the_estate_may_be_a_path(tmp_path: Path) -> None:
    assert "QSG1/APP1" in Driver(write_estate(tmp_path)).estate.stores


# --- wrong use -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda driver: driver.put("ORDERZ", length=1), "no queue manager has a queue ORDERZ; did you mean ORDERS?"),
        (lambda driver: driver.get("X"), "no queue manager has a queue X; expected: BILLS, LOCAL, ORDERS"),
        (lambda driver: driver.put("ORDERS", length=1, cuont=2), "cuont is no field of an event; did you mean count?"),
        (lambda driver: driver.put("ORDERS", length=-1), "event 0 of 1 is refused (bad-value): length is -1"),
        (lambda driver: driver.put("ORDERS", length=1, qmgr="QM09"), "(unknown-queue-manager)"),
        (lambda driver: driver.get("ORDERS", msgid="m", count=2), "count is 2 beside a msgid"),
        (lambda driver: driver.alter("QSG1/APP1", offld1=60), "(bad-attributes)"),
        (lambda driver: driver.alter("QSG1/APP9", offld1_th=60), "the estate has no store QSG1/APP9; did you mean"),
        (lambda driver: driver.state("QSG1/APP9"), "the estate has no store QSG1/APP9"),
        (lambda driver: driver.measure("QSG1/APP1", mesages=1), "mesages cannot be measured; did you mean messages?"),
        (lambda driver: driver.wait(), "wait of 0 s; expected: hours"),
        (lambda driver: driver.restart("QM09"), "there is no queue manager"),
    ],
)
def test_wrong_use_is_refused_in_one_line(estate: Estate, call: Any, text: str) -> None:
    driver = Driver(estate)
    with pytest.raises(UsageError) as raised:
        call(driver)
    assert text in str(raised.value) and "\n" not in str(raised.value)
    assert driver.states() == {}


def test_a_start_that_is_no_time_is_refused(estate: Estate) -> None:
    with pytest.raises(UsageError, match="start: time is"):
        Driver(estate, start="noon")


def test_of_a_refused_batch_nothing_is_applied(estate: Estate) -> None:
    driver = Driver(estate)
    with pytest.raises(UsageError, match="event 1 of 2 is refused"):
        driver.send(EVENTS[0], b'{"op":')
    assert driver.states() == {}


def test_private_queues_of_one_name_need_their_queue_manager(tmp_path: Path) -> None:
    text = write_estate(tmp_path).read_text(encoding="utf-8")
    private = "".join(line for line in text[text.index("[page_set") :].splitlines(keepends=True))
    path = tmp_path / "two.toml"
    path.write_text(text + private.replace("QM01", "QM02"), encoding="utf-8")
    driver = Driver(path)
    with pytest.raises(UsageError, match="queue LOCAL is in QM01/PS04, QM02/PS04; expected: qmgr="):
        driver.put("LOCAL", length=1)
    driver.put("LOCAL", length=1, qmgr="QM02")
    assert list(driver.states()) == ["QM02/PS04"]


# --- scripts ---------------------------------------------------------------------------------------------------------


def test_a_script_gives_what_a_replay_gives(estate: Estate, tmp_path: Path) -> None:
    replayed = replay(write_recording(tmp_path / "traffic.ndjson", EVENTS), estate)
    assert replayed.alerts
    assert played(estate, EVENTS) == (replayed.alerts, replayed.states)
    assert played(estate, list(lines_of(EVENTS))) == (replayed.alerts, replayed.states)


Cuts = st.lists(st.tuples(st.integers(0, 2000), st.sampled_from([PAUSE, ABORT])), max_size=6)


def cut(events: list[Any], cuts: list[tuple[int, Signal]]) -> list[Item]:
    """Put sentinels in front of events, by their place."""
    source: list[Item] = list(events)
    for place, signal in sorted(cuts, key=lambda entry: entry[0], reverse=True):
        source.insert(min(place, len(events)), signal)
    return source


@pytest.fixture(scope="module")
def whole(estate: Estate) -> Any:
    """Return what the events give without a cut."""
    return played(estate, EVENTS)


@settings(max_examples=examples(24))
@given(cuts=Cuts)
def test_pauses_and_crashes_at_any_place_change_nothing(
    estate: Estate, whole: Any, cuts: list[tuple[int, Signal]]
) -> None:
    assert played(estate, cut(EVENTS, cuts)) == whole


@pytest.fixture(scope="module")
def sharing(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return shared_estate(tmp_path_factory.mktemp("shared"), ('scm_max_size = "1G"', 'scm_max_size = "2G"'))


def sharing_events() -> list[dict[str, Any]]:
    """Return traffic of half an hour in structures that share storage class memory, and in the members of a cluster."""
    events: list[dict[str, Any]] = []
    for second in range(0, 1800, 15):
        time = START_US + second * 1_000_000
        events += [{"time": time, "qmgr": qmgr, "op": "HEARTBEAT"} for qmgr in ("QM01", "QM02")]
        events.append({"time": time, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 9000, "count": 20_000})
        events.append({"time": time, "qmgr": "QM02", "op": "PUT", "queue": "INVOICES", "length": 5000, "count": 5000})
        events += [
            {"time": time, "qmgr": f"UC01QM0{member}", "op": op, "queue": "REQUEST", "length": 2048, "count": 14_000}
            for member in (1, 2, 3)
            for op in ("PUT", "GET")
        ]
    return events


@pytest.fixture(scope="module")
def shared_whole(sharing: Estate) -> Any:
    """Return what the events of stores that share give without a cut: also states and alerts of what is shared."""
    alerts, states = played(sharing, sharing_events())
    assert {"CF01", "UC01"} <= set(states)
    assert {"CF01", "UC01"} & {alert.store for alert in alerts}
    return alerts, states


@settings(max_examples=examples(12))
@given(cuts=Cuts)
@pytest.mark.nightly
def test_stores_that_others_share_lose_nothing_either(
    sharing: Estate, shared_whole: Any, cuts: list[tuple[int, Signal]]
) -> None:
    assert played(sharing, cut(sharing_events(), cuts)) == shared_whole


def test_a_pause_opens_every_twin_from_its_header_and_pages(estate: Estate) -> None:
    driver = Driver(estate)
    driver.send(*EVENTS[:100])
    before, states = dict(driver._player.twins), driver.states()
    driver.pause()
    assert driver.states() == states
    assert not any(driver._player.twins[name] is twin for name, twin in before.items())


def test_a_crash_by_hand_forgets_what_followed_the_last_pause(estate: Estate) -> None:
    driver = Driver(estate)
    driver.put("ORDERS", length=100, count=5)
    driver.pause()
    driver.put("ORDERS", length=2048, count=1000)
    driver.put("BILLS", length=100)
    driver.wait(minutes=1)
    assert driver.alerts
    driver.abort()
    assert (driver.alerts, list(driver.states())) == ([], ["QSG1/APP1"])
    assert driver.state("QSG1/APP1").messages == 5
    driver.put("ORDERS", length=100)
    assert driver.state("QSG1/APP1").messages == 6


def test_a_crash_in_a_script_leaves_what_was_done_before_the_script(estate: Estate) -> None:
    driver = Driver(estate, start=START_US)
    driver.put("BILLS", length=100, count=5)
    driver.play([*EVENTS[:3], ABORT])
    assert driver.state("QSG1/APP2").events == 1 + sum(event.get("queue") == "BILLS" for event in EVENTS[:3])


def test_a_script_ends_at_eof_and_continues_behind_it(estate: Estate) -> None:
    source = iter([*EVENTS[:500], EOF, *EVENTS[500:], EOF, {"op": "never read"}])
    driver = Driver(estate)
    driver.play(source)
    assert driver.states() == played(estate, EVENTS[:500])[1]
    driver.play(source)
    assert (in_order(driver.alerts), driver.states()) == played(estate, EVENTS)
