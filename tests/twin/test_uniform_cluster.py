"""A uniform cluster's capacity. Source: uniform-cluster-scaling.txt ("MQ Uniform Cluster Scaling Example")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.shared import FILES, MEMBERS, START_US, Shared, changes, file_report, shared_estate
from twin.capacity import (
    SATURATED_CPU_US,
    USABLE_HOST_PCT,
    Candidate,
    ClusterCapacity,
    achieved,
    host_rate,
    message_cpu_us,
)
from twin.estate import Estate, UniformCluster, load_estate
from twin.events import Decoder
from twin.playback.replays import Player, Replayed, replay
from twin.recordings.files import RecordingWriter
from twin.records import HostState
from twin.stores.reports import Report
from twin.stores.uniform_cluster import SPARE_PCT

TABLE_1 = (  # target rate, rate achieved, queue managers, CPU % of MQHost1 and of MQHost2
    (20_700, 20_700, 1, 10.96, 0.00),
    (41_400, 21_070, 1, 16.06, 0.06),
    (41_400, 41_402, 2, 26.93, 0.02),
    (62_100, 42_244, 2, 32.63, 0.00),
    (62_100, 62_101, 3, 44.59, 0.00),
    (82_800, 63_108, 3, 49.13, 0.00),
    (82_800, 82_809, 4, 63.02, 0.00),
    (103_500, 84_896, 4, 65.63, 0.00),
    (103_500, 103_495, 5, 79.76, 0.00),
    (124_200, 106_077, 5, 82.00, 0.00),
    (124_200, 124_192, 6, 94.53, 0.00),
    (144_900, 125_901, 6, 95.75, 0.00),
    (144_900, 144_892, 7, 94.45, 9.12),
    (165_600, 146_211, 7, 95.06, 9.13),
    (165_600, 165_595, 8, 94.28, 23.02),
    (186_300, 165_589, 8, 94.25, 23.06),
    (186_300, 186_293, 9, 93.33, 42.60),
    (207_000, 186_347, 9, 93.81, 42.69),
    (207_000, 206_974, 10, 96.45, 56.05),
    (227_700, 206_974, 10, 95.25, 57.81),
    (227_700, 227_670, 11, 96.16, 73.03),
    (248_400, 227_675, 11, 96.00, 72.81),
    (248_400, 248_338, 12, 96.88, 86.95),
)
RATES = [row[:3] for row in TABLE_1]
ONE_MEMBER = TABLE_1[1][1]  # messages/s: the second row, one queue manager at its limit
STEP = 180 * 115  # senders, messages/s each
MEMBERS_12 = [Candidate(f"UC01QM{n:02d}", "QMHost1" if n <= 6 else "QMHost2") for n in range(1, 13)]
HOSTS_12 = [member.host for member in MEMBERS_12]


def document_laws() -> ClusterCapacity:
    """Return the laws of the document's cluster: two hosts of 24 cores."""
    return ClusterCapacity(ONE_MEMBER, {"QMHost1": host_rate(24), "QMHost2": host_rate(24)})


def document_estate(folder: Path, messages_per_second: float = ONE_MEMBER) -> Estate:
    """Return the estate of the document: twelve members on two hosts of 24 cores."""
    names = [member.name for member in MEMBERS_12]
    text = (
        f"schema = 1\n[uniform_cluster.UC01]\nqueue_managers = {names}\nmessages_per_second = {messages_per_second}\n"
    )
    text += "[host.QMHost1]\ncores = 24\n[host.QMHost2]\ncores = 24\n"
    text += "".join(
        f'[queue_manager.{member.name}]\nplatform = "distributed"\nhost = "{member.host}"\n'
        f'[queue_file."{member.name}/REQUEST"]\n'
        for member in MEMBERS_12
    )
    (folder / "document.toml").write_text(text.replace("'", '"'), encoding="utf-8")
    return load_estate(folder / "document.toml")


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


def errors_pct(laws: ClusterCapacity) -> list[float]:
    """Return the error of each row of Table 1, percent."""
    rates = [achieved(target, laws.carried(HOSTS_12[:members])) for target, _, members in RATES]
    return [100 * (rate / reached - 1) for rate, (_, reached, _) in zip(rates, RATES, strict=True)]


def test_180_senders_of_one_message_per_second_are_carried_by_one_member() -> None:
    laws = document_laws()
    assert achieved(180, laws.carried(HOSTS_12[:1])) == 180
    assert laws.members_for(180, MEMBERS_12) == 1


def test_all_23_rows_of_table_1_within_one_percent() -> None:
    assert max(map(abs, errors_pct(document_laws()))) <= 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        ClusterCapacity(1e12, {}),  # infinite
        ClusterCapacity(ONE_MEMBER * 1.02, document_laws().host_rates),
        ClusterCapacity(ONE_MEMBER * 0.98, document_laws().host_rates),
        ClusterCapacity(ONE_MEMBER, {}),  # hosts without end: 1.8 % too much with 8 to 11 members
        ClusterCapacity(ONE_MEMBER, {name: rate * 0.98 for name, rate in document_laws().host_rates.items()}),
    ],
)
def test_another_capacity_than_that_of_the_document_misses_table_1(wrong: ClusterCapacity) -> None:
    assert max(map(abs, errors_pct(wrong))) > 1.0


def test_members_at_their_limit_are_those_rows_that_miss_their_target() -> None:
    for target, reached, members in RATES:
        assert (document_laws().carried(HOSTS_12[:members]) < target) == (reached < 0.99 * target)


def test_the_last_member_of_a_host_carries_less() -> None:
    carried = [document_laws().carried(HOSTS_12[:members]) for members in range(1, 7)]
    added = [after - before for before, after in zip([0.0, *carried], carried, strict=False)]
    assert added[:5] == pytest.approx([ONE_MEMBER] * 5)
    assert added[5] == pytest.approx(125_901 - 106_077, rel=0.02), "Table 1, six members less five, at their limit"


def test_a_step_of_the_seed_is_98_percent_of_a_member_and_no_trigger(cluster: Shared) -> None:
    """A step of 20,700/s is 98 % of 21,070/s; "around 85%" describes a step, not when to start a member."""
    step_pct = 100 * STEP / ONE_MEMBER
    assert RATES[0][0] == STEP
    assert step_pct == pytest.approx(98.2, abs=0.05)
    run(cluster, range(1, 20), round(1000 * STEP / ONE_MEMBER))
    assert cluster.alerts == []


@pytest.mark.parametrize("reached", [248_338, 248_300, 248_400])
def test_table_2_twelve_members_achieve_the_same_started_one_by_one_or_all_at_first(reached: int) -> None:
    capacity = document_laws().carried(HOSTS_12)
    assert achieved(248_400, capacity) == pytest.approx(reached, rel=0.01)
    assert achieved(1e9, capacity) == pytest.approx(reached, rel=0.01), "and no more"


def test_table_2_two_members_without_a_limit_of_their_own_carry_248100() -> None:
    unrestricted = ClusterCapacity(1e12, document_laws().host_rates)
    assert unrestricted.carried(["QMHost1", "QMHost2"]) == pytest.approx(248_100, rel=0.01)


def test_cpu_of_a_message_is_127_us_at_first_and_184_us_at_the_limit_of_a_member() -> None:
    """24 cores; the CPU of both hosts counts."""
    (_, first, _, *first_cpu), (_, second, _, *second_cpu) = TABLE_1[:2]
    load = first / host_rate(24)
    assert message_cpu_us(load, is_saturated=False) == pytest.approx(sum(first_cpu) / 100 * 24 / first * 1e6, rel=0.01)
    at_limit = message_cpu_us(load, is_saturated=True)
    assert at_limit == pytest.approx(sum(second_cpu) / 100 * 24 / second * 1e6, rel=0.01)
    assert TABLE_1[11][3] == USABLE_HOST_PCT


def host_cpu_pct(estate: Estate, active: Sequence[str], reached: int) -> list[float]:
    """Return the CPU of both hosts that the twin shows when some members carry a rate together."""
    cluster = Shared(estate, "UC01")
    share = round(10 * reached / len(active))  # in a tick
    for tick in range(1, 8):
        cluster.reports(*(file_report(f"{name}/REQUEST", tick, None, share, share) for name in active))
    hosts = cluster.state().hosts
    assert cluster.state().rate == pytest.approx(reached, rel=0.001)
    return [hosts[name].cpu_pct for name in ("QMHost1", "QMHost2")]


def test_cpu_of_both_hosts_within_five_points_in_every_row_of_table_1(tmp_path: Path) -> None:
    estate = document_estate(tmp_path)
    for _, reached, members, *cpu_pct in TABLE_1:
        active = [member.name for member in MEMBERS_12[:members]]
        assert host_cpu_pct(estate, active, reached) == pytest.approx(cpu_pct, abs=5.0)


def test_cpu_of_both_hosts_within_five_points_in_table_2(tmp_path: Path) -> None:
    estate = document_estate(tmp_path)
    for reached, *cpu_pct in ((248_300, 94, 90), (248_400, 90, 90)):
        assert host_cpu_pct(estate, [member.name for member in MEMBERS_12], reached) == pytest.approx(cpu_pct, abs=5.0)


def test_a_member_without_a_limit_of_its_own_takes_the_cpu_of_six(tmp_path: Path) -> None:
    """Table 2: "2 unrestricted QMs", 248,100/s, 96 and 95 %; "each host's CPU resources" are their limit."""
    estate = document_estate(tmp_path, messages_per_second=1e9)
    both = host_cpu_pct(estate, ["UC01QM01", "UC01QM07"], 248_100)
    assert both == pytest.approx([96, 95], abs=5.0)
    assert both == host_cpu_pct(estate, [member.name for member in MEMBERS_12], 248_100)


def test_only_members_at_their_limit_take_the_cpu_of_the_limit() -> None:
    laws = document_laws()
    assert laws.is_limit("QMHost1", HOSTS_12[:7]), "six members share what the host carries"
    assert not laws.is_limit("QMHost2", HOSTS_12[:7]), "one carries as much as each of those"
    assert laws.is_limit("QMHost1", HOSTS_12[:5]), "five carry all that a member can"


@pytest.mark.parametrize("number", range(1, 13))
def test_each_load_needs_the_members_that_carried_it_in_table_1(number: int) -> None:
    """At the rate that the alert uses: what members carry below the default trigger."""
    trigger = UniformCluster(name="UC01", queue_managers=(), messages_per_second=1.0).trigger_pct / 100
    (reached,) = (reached for target, reached, members in RATES if members == number and target == number * STEP)
    assert document_laws().members_for(reached / trigger, MEMBERS_12) == number
    assert document_laws().members_for(number * STEP / trigger, MEMBERS_12) == number
    hosts, idle = HOSTS_12[: number - 1], MEMBERS_12[number - 1 :]
    assert document_laws().plan(number * STEP / trigger, hosts, idle).members == number


def test_the_member_to_start_next_is_on_the_host_with_most_room() -> None:
    active = HOSTS_12[:5]
    assert document_laws().best(MEMBERS_12[5:], active) == ("UC01QM07", "QMHost2"), (
        "five on one host, none on the other"
    )
    assert document_laws().best(MEMBERS_12[5:6], active) == ("UC01QM06", "QMHost1")
    assert document_laws().best(MEMBERS_12, HOSTS_12) is None, (
        "both hosts are full: a thirteenth member there carries nothing"
    )


def test_where_no_host_has_room_members_are_created_elsewhere() -> None:
    plan = document_laws().plan(300_000, HOSTS_12, [])
    assert plan == (15, (), (None, None, None)), "each carries 20,815"


def test_a_load_far_beyond_every_host_is_planned_at_once() -> None:
    assert document_laws().plan(1e12, HOSTS_12, []).members == pytest.approx(1e12 / 20_815, rel=1e-3)


# --- what is measured ------------------------------------------------------------------------------------------------


def test_rate_is_that_of_the_last_minute_of_ticks(cluster: Shared) -> None:
    run(cluster, range(1, 4), 100, 50)
    assert cluster.state().rate == 75.0
    run(cluster, range(4, 10), 100, 50)
    assert cluster.state().rate == 150.0


def test_members_are_those_with_a_put_or_get_within_a_minute(cluster: Shared) -> None:
    run(cluster, [1], 100, 50)
    assert (cluster.state().members, cluster.state().capacity) == (2, 2000.0)
    run(cluster, range(2, 7), 100)
    assert cluster.state().members == 2
    run(cluster, [7], 100)
    assert cluster.state().members == 1
    cluster.reports(file_report(FILES[0], 8), file_report(FILES[1], 8), file_report(FILES[2], 8, gets=1))
    assert cluster.state().members == 2, "gets count as well"


def test_depth_is_that_of_all_members(cluster: Shared) -> None:
    cluster.reports(*(file_report(name, 1, depth=number) for number, name in enumerate(FILES, 1)))
    assert cluster.state().depth == 6
    cluster.event(11, "ALTER", attributes={"queue_managers": ["UC01QM01", "UC01QM02"]})
    cluster.reports(*(file_report(name, 2, depth=number) for number, name in enumerate(FILES, 1)))
    assert cluster.state().depth == 3


def test_a_member_that_was_taken_out_is_not_waited_for(cluster: Shared) -> None:
    cluster.event(1, "ALTER", attributes={"queue_managers": ["UC01QM01"]})
    run(cluster, [1], 100)
    cluster.reports(file_report(FILES[0], 2, 7, puts=10))
    assert cluster.state().time == "2026-11-20T12:01:10.000000Z"


def test_an_alter_that_names_an_unknown_queue_manager_is_refused(cluster: Shared) -> None:
    cluster.event(1, "ALTER", attributes={"queue_managers": ["NOBODY"], "messages_per_second": 5})
    run(cluster, [1], 100)
    assert (cluster.state().refused_alters, cluster.state().capacity) == (1, 1000.0)


# --- more members ----------------------------------------------------------------------------------------------------


def test_another_member_is_wanted_when_the_rate_is_what_they_carry(cluster: Shared) -> None:
    run(cluster, range(1, 8), 994)
    assert cluster.alerts == []
    run(cluster, range(8, 16), 996)
    (alert,) = cluster.alerts
    assert (alert.condition, alert.resource, alert.severity) == ("capacity", "capacity", "critical")
    assert alert.usage_pct == pytest.approx(99.5, abs=0.1)
    assert alert.cause == (
        "UC01: 995 messages/s put, 0 messages waiting; 1 active member, capacity 1,000 messages/s; 2 members needed."
    )
    assert alert.actions == ("Start UC01QM02; UC01 rebalances the connected applications: strmqm UC01QM02",)


def test_it_is_critical_near_the_end_and_names_how_many_to_create(cluster: Shared) -> None:
    run(cluster, range(1, 10), 1000, 1000, 1000)
    last = cluster.alerts[-1]
    assert (last.severity, last.usage_pct) == ("critical", 100.0)
    assert "4 members needed" in last.cause
    assert last.actions[0].startswith("Create 1 more for UC01: 1. Look up")


def test_messages_that_wait_count_as_load(cluster: Shared) -> None:
    run(cluster, range(1, 10), 600, depth=0)
    assert cluster.alerts == []
    run(cluster, range(10, 20), 600, depth=360_000)  # 400 messages/s for a quarter of an hour
    assert changes(cluster.alerts) == [("capacity", "opened")]
    assert "360,000 messages waiting" in cluster.alerts[0].cause


def test_a_member_started_in_time_ends_the_alert(cluster: Shared) -> None:
    run(cluster, range(1, 10), 1000)
    run(cluster, range(10, 90), 500, 500)
    assert changes(cluster.alerts) == [("capacity", "opened"), ("capacity", "cleared")]
    assert cluster.alerts[-1].time == START_US + 700_000_000, "two members at 100 s, calm for ten minutes"


def with_hosts(tmp_path: Path, *, trigger: str = "") -> Shared:
    """The first two members on A, of 2.2 members' CPU, the third on B."""
    cores = 2.2 * 1000 * SATURATED_CPU_US / 1e6 / (USABLE_HOST_PCT / 100)
    places = [
        (f"[queue_manager.{name}]", f'[queue_manager.{name}]\nhost = "{host}"')
        for name, host in zip(MEMBERS, "AAB", strict=True)
    ]
    hosts = ("schema = 1\n", f"schema = 1\n[host.A]\ncores = {cores}\n[host.B]\ncores = {cores}\n")
    rate = ("messages_per_second = 1000\n", f"messages_per_second = 1000\n{trigger}\n")
    return Shared(shared_estate(tmp_path, *places, hosts, rate), "UC01")


def test_the_action_names_the_host_with_room(tmp_path: Path) -> None:
    cluster = with_hosts(tmp_path)
    run(cluster, range(1, 10), 1000)
    assert cluster.alerts[0].actions == (
        "Start UC01QM03 on B; UC01 rebalances the connected applications: strmqm UC01QM03",
    )
    state = cluster.state()
    assert (state.members, state.members_needed) == (1, 2)
    assert state.hosts["A"] == HostState(members=1, capacity=2200.0, cpu_pct=43.52)
    assert state.hosts["B"] == HostState(members=0, capacity=2200.0, cpu_pct=0.0)


def test_members_to_create_go_to_the_host_with_room(tmp_path: Path) -> None:
    cluster = with_hosts(tmp_path)
    run(cluster, range(1, 10), 1000, 1000, 1000)
    assert cluster.alerts[-1].actions[0].startswith("Create 1 more for UC01 on B: ")


def test_the_trigger_is_the_estate_s(tmp_path: Path) -> None:
    cluster = with_hosts(tmp_path, trigger="trigger_pct = 90")
    run(cluster, range(1, 10), 890)
    assert cluster.alerts == []
    run(cluster, range(10, 20), 900)
    assert changes(cluster.alerts) == [("capacity", "opened")]
    assert cluster.alerts[0].severity == "warning"


def test_the_alert_follows_what_it_says_to_do(cluster: Shared) -> None:
    """Start one member after the other while the load stays at what they carry."""
    run(cluster, range(1, 10), 1000)
    run(cluster, range(10, 20), 1000, 1000)
    run(cluster, range(20, 30), 1000, 1000, 1000)
    run(cluster, range(30, 100), 800, 800, 800)
    advice = [(alert.change, alert.actions) for alert in cluster.alerts]
    assert [change for change, _ in advice][0 :: len(advice) - 1] == ["opened", "cleared"]
    assert all("Start UC01QM02;" in actions[0] for change, actions in advice if change == "opened")
    updates = [actions[0] for change, actions in advice if change == "updated"]
    assert any("Start UC01QM03;" in action for action in updates)
    assert "Create 1 more" in updates[-1]
    assert len(set(updates)) == len(updates), "each of them says something new"


def test_a_member_that_ends_while_the_alert_is_open_is_named_again(cluster: Shared) -> None:
    run(cluster, range(1, 20), 1000, 1000)
    assert "Start UC01QM03;" in cluster.alerts[-1].actions[0]
    run(cluster, range(20, 30), 1000)
    assert "Start UC01QM02;" in cluster.alerts[-1].actions[0]


def test_a_surge_turns_the_advice_to_stop_a_member_round_at_once(cluster: Shared) -> None:
    run(cluster, range(1, 95), 300, 300)
    assert "endmqm" in cluster.alerts[-1].actions[0]
    run(cluster, range(95, 102), 1000, 1000)
    assert cluster.alerts[-1].change == "updated"
    assert "Start UC01QM03;" in cluster.alerts[-1].actions[0]


def test_what_was_said_is_remembered_when_the_twin_is_opened_again(cluster: Shared) -> None:
    run(cluster, range(1, 10), 1000)
    before = len(cluster.alerts)
    cluster.reopen()
    run(cluster, range(10, 15), 1000)
    assert len(cluster.alerts) == before


def documents_cluster(tmp_path: Path) -> Shared:
    """The twelve members of the document on their two hosts of 24 cores."""
    return Shared(document_estate(tmp_path), "UC01")


def test_through_the_published_test_the_alert_asks_for_the_member_that_is_started_next(tmp_path: Path) -> None:
    """Eleven minutes of each row. With 8 to 11 members the document's rate is the same at the limit as below it."""
    cluster, tick = documents_cluster(tmp_path), 0
    for target, reached, members in RATES:
        for _ in range(66):
            tick += 1
            reports = []
            for number, (name, _) in enumerate(MEMBERS_12):
                messages = round(10 * reached / members) if number < members else 0
                reports.append(file_report(f"{name}/REQUEST", tick, None, messages, messages))
            cluster.reports(*reports)
        state, last = cluster.state(), cluster.alerts[-1] if cluster.alerts else None
        is_limit = reached < 0.99 * target
        assert state.members_needed == members + (is_limit and members < 8)
        if is_limit and members < 8:
            assert last is not None and last.change in {"opened", "updated"}
            assert f"{members} active member" in last.cause and f"{members + 1} members needed" in last.cause
            assert last.runbook[0].summary.count("UC01QM") == 1, "one member is to be started"
        else:
            assert last is None or last.change == "cleared"
    assert cluster.state().members_needed == 12
    assert cluster.alerts[-1].change == "cleared"


# --- fewer members ---------------------------------------------------------------------------------------------------


def test_a_member_can_be_spared_after_a_quarter_of_an_hour(cluster: Shared) -> None:
    run(cluster, range(1, 91), 300, 300)
    assert cluster.alerts == []
    run(cluster, range(91, 93), 300, 300)
    (alert,) = cluster.alerts
    assert (alert.condition, alert.severity) == ("capacity", "info")
    assert "1 member needed" in alert.cause
    assert alert.actions == ("Stop one member, which moves its applications to the others: endmqm -r UC01QM02",)


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
            | {"count": 1000, "direct": number == 0}
            for number, member in enumerate(MEMBERS[:2])
        ]
        idle = {"time": START_US + second * 1_000_000, "qmgr": MEMBERS[2], "op": "HEARTBEAT"}
        alerts += player.feed(decoder.json([msgspec.json.encode(event) for event in (*events, idle)]))
    state = player.states()["UC01"]
    assert state.time == "2026-11-20T12:02:00.000000Z"
    assert (state.members, state.rate, state.capacity) == (2, 2000.0, 2000.0)
    assert state.depth == 120 * 1000, "those put to a waiting getter never waited"
    cluster_changes = changes(alert for alert in alerts if alert.store == "UC01")
    assert cluster_changes[0] == ("capacity", "opened") and ("capacity", "cleared") not in cluster_changes


# --- members that do not run send nothing ----------------------------------------------------------------------------


def carried(member: str, begin: int, end: int, rate: int) -> list[dict[str, object]]:
    """Return what a member carries from a second to another, every 5 s: puts to waiting getters."""
    put = {"qmgr": member, "op": "PUT", "queue": "REQUEST", "length": 2048, "count": 5 * rate, "direct": True}
    return [put | {"time": START_US + second * 1_000_000} for second in range(begin, end, 5)]


def play(folder: Path, estate: Estate, events: list[dict[str, object]]) -> Replayed:
    with RecordingWriter(folder / "played.ndjson") as writer:
        writer.write(sorted(events, key=lambda event: (event["time"], event["qmgr"])))
    replayed = replay(folder / "played.ndjson", estate)
    assert not replayed.dead_letters
    return replayed


def test_the_first_of_twelve_members_is_seen_although_the_others_are_not_started(tmp_path: Path) -> None:
    """Test Scenario: "A single QM (UC01QM01) ... is started"; the others are started later, one after the other."""
    replayed = play(tmp_path, document_estate(tmp_path), carried("UC01QM01", 0, 3600, ONE_MEMBER))
    state = replayed.states["UC01"]
    assert (state.members, state.rate, state.capacity) == (1, ONE_MEMBER, ONE_MEMBER)
    assert state.time == "2026-11-20T12:59:50.000000Z"
    alert = next(alert for alert in replayed.alerts if alert.store == "UC01")
    assert (alert.condition, alert.change) == ("capacity", "opened")
    assert alert.time == START_US + 60_000_000
    assert "UC01QM07" in alert.actions[0], "the host with most room"


def test_a_member_that_is_stopped_delays_the_others_for_five_minutes_only(tmp_path: Path) -> None:
    estate = document_estate(tmp_path)
    events = carried("UC01QM01", 0, 3600, 15_000) + carried("UC01QM07", 0, 1800, 15_000)
    state = play(tmp_path, estate, events + carried("UC01QM01", 1800, 3600, 7_000)).states["UC01"]
    assert (state.members, state.rate, state.late_reports) == (1, 22_000, 0)
    assert state.time == "2026-11-20T12:57:50.000000Z", "known to be silent, it may still be heard for two minutes"


def test_events_in_any_pieces_give_the_same_with_silent_members(tmp_path: Path) -> None:
    """Members start, stop and start again; every event is fed by itself, as it comes, and all are fed at once."""
    estate = document_estate(tmp_path)
    events = carried("UC01QM01", 0, 3000, 20_000) + carried("UC01QM02", 0, 600, 25_000)
    events += carried("UC01QM02", 2000, 3000, 20_000) + carried("UC01QM07", 0, 60, 4_000)
    events += carried("UC01QM07", 1200, 1230, 4_000)
    whole = play(tmp_path, estate, events)
    player, decoder, alerts = Player(estate), Decoder(estate), []
    player.catch_up()
    lines = (tmp_path / "played.ndjson").read_bytes().splitlines()
    for start in range(0, len(lines), 7):
        alerts += player.feed(decoder.json(lines[start : start + 7]))
    assert player.states()["UC01"] == whole.states["UC01"]
    assert [alert for alert in alerts if alert.store == "UC01"] == [
        alert for alert in whole.alerts if alert.store == "UC01"
    ]
    assert whole.alerts and whole.states["UC01"].late_reports == 0


# --- measurements ----------------------------------------------------------------------------------------------------


def test_drift_is_in_percent_of_the_capacity(cluster: Shared) -> None:
    run(cluster, range(1, 7), 500)
    cluster.event(61, "MEASURE", measured={"rate": 600, "depth": 4})
    run(cluster, [7], 500)
    assert cluster.state().drift_pct == -10.0
    assert cluster.state().baseline == {"depth": 4}
