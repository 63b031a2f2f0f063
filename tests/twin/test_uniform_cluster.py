"""A uniform cluster's capacity. Source: uniform-cluster-scaling.txt ("MQ Uniform Cluster Scaling Example")."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from tests.support.shared import FILES, MEMBERS, START_US, Shared, changes, file_report, shared_estate
from twin.estate import Estate
from twin.events import Decoder
from twin.replays import Player
from twin.stores.reports import Report
from twin.stores.uniform_cluster import SPARE_PCT, THRESHOLD_PCT, achieved, members_for

ONE_MEMBER = 21_070  # messages/s: Table 1, the second row, one queue manager at its limit
TABLE_1 = (  # target rate, rate achieved, queue managers
    (20_700, 20_700, 1),
    (41_400, 21_070, 1),
    (41_400, 41_402, 2),
    (62_100, 42_244, 2),
    (62_100, 62_101, 3),
    (82_800, 63_108, 3),
    (82_800, 82_809, 4),
    (103_500, 84_896, 4),
    (103_500, 103_495, 5),
    (124_200, 106_077, 5),
    (124_200, 124_192, 6),
    (144_900, 125_901, 6),
    (144_900, 144_892, 7),
    (165_600, 146_211, 7),
    (165_600, 165_595, 8),
    (186_300, 165_589, 8),
    (186_300, 186_293, 9),
    (207_000, 186_347, 9),
    (207_000, 206_974, 10),
    (227_700, 206_974, 10),
    (227_700, 227_670, 11),
    (248_400, 227_675, 11),
    (248_400, 248_338, 12),
)
STEP = 180 * 115  # senders, messages/s each: "around 85% of 1 QMs messaging capability"


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    """Three members of 1,000 messages/s each."""
    return shared_estate(tmp_path)


@pytest.fixture
def cluster(estate: Estate) -> Shared:
    return Shared(estate, "UC01")


def loads(tick: int, *per_second: int, depth: int = 0) -> list[Report]:
    """Reports of all members at a tick: messages/s that each carries; 0 is a member that is not active."""
    rates = (*per_second, 0, 0, 0)[: len(FILES)]
    return [
        file_report(name, tick, None, 10 * rate, 10 * rate, depth if number == 0 else 0)
        for number, (name, rate) in enumerate(zip(FILES, rates, strict=True))
    ]


def run(cluster: Shared, ticks: Iterable[int], *per_second: int, depth: int = 0) -> None:
    for tick in ticks:
        cluster.reports(*loads(tick, *per_second, depth=depth))


# --- capacity --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "reached", "members"), TABLE_1)
def test_table_1_of_the_seed_within_two_percent(target: int, reached: int, members: int) -> None:
    assert achieved(target, members, ONE_MEMBER) == pytest.approx(reached, rel=0.02)


def test_table_1_is_whole() -> None:
    assert len(TABLE_1) == 23
    assert {members for *_, members in TABLE_1} == set(range(1, 13))


@pytest.mark.parametrize("reached", [248_338, 248_300, 248_400])
def test_table_2_of_the_seed_is_what_twelve_members_achieve(reached: int) -> None:
    """MQ Uniform Cluster Scaling Example, Table 2: twelve members, started one by one or all at first."""
    assert achieved(248_400, 12, ONE_MEMBER) == pytest.approx(reached, rel=0.02)


def test_each_step_of_the_seed_wants_the_member_that_was_started_next() -> None:
    for number, (target, reached, members) in enumerate(TABLE_1):
        assert members_for(target, ONE_MEMBER) > members or reached >= 0.99 * target
        if number + 1 < len(TABLE_1) and reached < 0.99 * target:
            started = TABLE_1[number + 1][2]
            assert members_for(target, ONE_MEMBER) in (started, started + 1, started + 2)


def test_a_step_of_the_seed_lies_between_the_mark_and_what_one_member_carries() -> None:
    assert THRESHOLD_PCT < 100 * STEP / ONE_MEMBER < 100


# --- what is measured ------------------------------------------------------------------------------------------------


def test_rate_is_that_of_the_last_minute_of_ticks(cluster: Shared) -> None:
    run(cluster, range(1, 4), 100, 50)
    assert cluster.state()["rate"] == 75.0
    run(cluster, range(4, 10), 100, 50)
    assert cluster.state()["rate"] == 150.0


def test_members_are_those_with_a_put_or_get_within_a_minute(cluster: Shared) -> None:
    run(cluster, [1], 100, 50)
    assert (cluster.state()["members"], cluster.state()["capacity"]) == (2, 2000.0)
    run(cluster, range(2, 7), 100)
    assert cluster.state()["members"] == 2
    run(cluster, [7], 100)
    assert cluster.state()["members"] == 1
    cluster.reports(file_report(FILES[0], 8), file_report(FILES[1], 8), file_report(FILES[2], 8, gets=1))
    assert cluster.state()["members"] == 2, "gets count as well"


def test_depth_is_that_of_all_members(cluster: Shared) -> None:
    cluster.reports(*(file_report(name, 1, depth=number) for number, name in enumerate(FILES, 1)))
    assert cluster.state()["depth"] == 6
    cluster.event(11, "ALTER", attributes={"queue_managers": ["UC01QM01", "UC01QM02"]})
    cluster.reports(*(file_report(name, 2, depth=number) for number, name in enumerate(FILES, 1)))
    assert cluster.state()["depth"] == 3


def test_a_member_that_was_taken_out_is_not_waited_for(cluster: Shared) -> None:
    cluster.event(1, "ALTER", attributes={"queue_managers": ["UC01QM01"]})
    run(cluster, [1], 100)
    cluster.reports(file_report(FILES[0], 2, 7, puts=10))
    assert cluster.state()["time"] == "2026-11-20T12:01:10.000000Z"


def test_an_alter_that_names_an_unknown_queue_manager_is_refused(cluster: Shared) -> None:
    cluster.event(1, "ALTER", attributes={"queue_managers": ["NOBODY"], "messages_per_second": 5})
    run(cluster, [1], 100)
    assert (cluster.state()["refused_alters"], cluster.state()["capacity"]) == (1, 1000.0)


# --- more members ----------------------------------------------------------------------------------------------------


def test_another_member_is_wanted_before_the_rate_is_what_they_carry(cluster: Shared) -> None:
    run(cluster, range(1, 8), 840)
    assert cluster.alerts == []
    run(cluster, range(8, 16), 860)
    (alert,) = cluster.alerts
    assert (alert.condition, alert.resource, alert.severity) == ("capacity", "capacity", "warning")
    assert alert.usage_pct < 100
    assert alert.cause == (
        "UC01: 853 messages/s put, 0 messages waiting; 1 active member, capacity 1,000 messages/s; 2 members needed."
    )
    assert alert.actions == ("Start UC01QM02 (strmqm); UC01 rebalances the connected applications",)


def test_it_is_critical_near_the_end_and_names_how_many_to_create(cluster: Shared) -> None:
    run(cluster, range(1, 10), 1000, 1000, 1000)
    last = cluster.alerts[-1]
    assert (last.severity, last.usage_pct) == ("critical", 100.0)
    assert "4 members needed" in last.cause
    assert "Create 1 more for UC01: crtmqm -ii" in last.actions[0]


def test_messages_that_wait_count_as_load(cluster: Shared) -> None:
    run(cluster, range(1, 10), 500, depth=0)
    assert cluster.alerts == []
    run(cluster, range(10, 20), 500, depth=360_000)  # 400 messages/s for a quarter of an hour
    assert changes(cluster.alerts) == [("capacity", "opened")]
    assert "360,000 messages waiting" in cluster.alerts[0].cause


def test_a_member_started_in_time_ends_the_alert(cluster: Shared) -> None:
    run(cluster, range(1, 10), 900)
    run(cluster, range(10, 30), 450, 450)
    assert changes(cluster.alerts) == [("capacity", "opened"), ("capacity", "cleared")]
    assert cluster.alerts[-1].time == START_US + 160_000_000, "two members at 100 s, calm for 60 s"


# --- fewer members ---------------------------------------------------------------------------------------------------


def test_a_member_can_be_spared_after_a_quarter_of_an_hour(cluster: Shared) -> None:
    run(cluster, range(1, 91), 300, 300)
    assert cluster.alerts == []
    run(cluster, range(91, 93), 300, 300)
    (alert,) = cluster.alerts
    assert (alert.condition, alert.severity) == ("capacity", "warning")
    assert "1 member needed" in alert.cause
    assert alert.actions == ("Stop one member: endmqm -r UC01QM02 moves its applications to the others",)


def test_a_surge_between_begins_the_quarter_of_an_hour_anew(cluster: Shared) -> None:
    run(cluster, range(1, 80), 300, 300)
    run(cluster, range(80, 90), 400, 400)
    run(cluster, range(90, 170), 300, 300)
    assert cluster.alerts == []


@pytest.mark.parametrize("load", [560, 600, 690])
def test_stopping_the_member_that_could_be_spared_brings_no_alert(cluster: Shared, load: int) -> None:
    assert load < SPARE_PCT * 10
    run(cluster, range(1, 100), load // 2, load // 2)
    run(cluster, range(100, 200), load)
    assert changes(cluster.alerts) == [("capacity", "opened"), ("capacity", "cleared")]


@pytest.mark.parametrize("load", range(600, 1000, 25))
def test_the_two_never_take_turns(cluster: Shared, load: int) -> None:
    """Follow the alerts at a steady load: no second one opens."""
    members = 2
    opened = 0
    for tick in range(1, 400):
        before = len(cluster.alerts)
        run(cluster, [tick], *([load // members] * members))
        for alert in cluster.alerts[before:]:
            if alert.change == "opened":
                opened += 1
                members += -1 if "endmqm" in alert.actions[0] else 1
    assert opened <= 1


# --- real queue files ------------------------------------------------------------------------------------------------


def test_queue_files_of_members_report_by_themselves_in_a_replay(estate: Estate) -> None:
    decoder, player = Decoder(estate), Player(estate)
    alerts = []
    for second in range(121):
        events = [
            {"time": START_US + second * 1_000_000, "qmgr": member, "queue": "REQUEST", "op": "PUT", "length": 2048}
            | {"count": 900, "direct": number == 0}
            for number, member in enumerate(MEMBERS[:2])
        ]
        idle = {"time": START_US + second * 1_000_000, "qmgr": MEMBERS[2], "op": "HEARTBEAT"}
        alerts += player.feed(decoder.json([msgspec.json.encode(event) for event in (*events, idle)]))
    state = player.states()["UC01"]
    assert state["time"] == "2026-11-20T12:02:00.000000Z"
    assert (state["members"], state["rate"], state["capacity"]) == (2, 1800.0, 2000.0)
    assert state["depth"] == 120 * 900, "those put to a waiting getter never waited"
    cluster_changes = changes(alert for alert in alerts if alert.store == "UC01")
    assert cluster_changes[0] == ("capacity", "opened") and ("capacity", "cleared") not in cluster_changes


# --- measurements ----------------------------------------------------------------------------------------------------


def test_drift_is_in_percent_of_the_capacity(cluster: Shared) -> None:
    run(cluster, range(1, 7), 500)
    cluster.event(61, "MEASURE", measured={"rate": 600, "depth": 4})
    run(cluster, [7], 500)
    assert cluster.state()["drift_pct"] == -10.0
    assert cluster.state()["baseline"] == {"depth": 4}
