"""The real system's stand-in: what it answers, and what it writes down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import EVENT, FLAG_DIRECT, FLAG_HAS_UOW
from kernels.layout import BACKOUT, COMMIT, GET, HEARTBEAT, PUT
from twin.base.errors import UsageError
from twin.estate import Estate, load_estate
from twin.events import from_table
from twin.simulation import RealSystem
from twin.simulation.arrivals import Flow, Traffic, constant, demands

START = 1_795_132_800_000_000


class Calls:
    """Demands one after the other, a second apart."""

    def __init__(self, estate: Estate) -> None:
        self.estate = estate
        self.rows: list[Any] = []

    def call(self, op: int, queue: str = "ORDERS", qmgr: str = "QM01", *, length: int = 100, uow: int = 0) -> Calls:
        event = np.zeros(1, EVENT)
        event["time"] = START + len(self.rows) * 1_000_000
        event["op"], event["route"], event["length"] = op, self.estate.route_of_queue(qmgr, queue), length
        event["count"], event["seq"], event["uow"] = 1, -1, uow
        event["flags"] = FLAG_HAS_UOW if uow else 0
        self.rows.append(event)
        return self

    def serve(self, system: RealSystem | None = None) -> list[dict[str, Any]]:
        rows, self.rows = np.concatenate(self.rows), []
        return from_table((system or RealSystem(self.estate, 7)).serve(rows))


@pytest.fixture
def calls(small: Estate) -> Calls:
    return Calls(small)


def test_a_get_carries_the_id_of_the_message_it_took(calls: Calls) -> None:
    put_1, put_2, get_1, get_2 = calls.call(PUT).call(PUT, qmgr="QM02").call(GET, qmgr="QM03").call(GET).serve()
    assert get_1["msgid"] == put_1["msgid"]
    assert get_2["msgid"] == put_2["msgid"]
    assert put_1["msgid"] != put_2["msgid"]


def test_an_id_names_who_put_the_message(calls: Calls) -> None:
    (put,) = calls.call(PUT, qmgr="QM02").serve()
    assert len(put["msgid"]) == 48
    assert bytes.fromhex(put["msgid"])[:16] == b"AMQ QM02        "


def test_two_stores_give_different_ids(calls: Calls) -> None:
    first, second = calls.call(PUT, "ORDERS").call(PUT, "AUDIT").serve()
    assert first["msgid"] != second["msgid"]


def test_a_get_that_finds_nothing_is_no_event_and_uses_up_no_number(calls: Calls) -> None:
    events = calls.call(GET).call(PUT).call(GET).call(GET).call(PUT).serve()
    assert [(event["op"], event["seq"]) for event in events] == [("PUT", 0), ("GET", 1), ("PUT", 2)]


def test_each_queue_manager_counts_its_events_of_each_queue(calls: Calls, small: Estate) -> None:
    system = RealSystem(small, 7)
    seen: dict[tuple[str, str], list[int]] = {}
    for _ in range(3):
        for qmgr in ("QM01", "QM02"):
            calls.call(PUT, "ORDERS", qmgr).call(PUT, "PAYMENTS", qmgr).call(GET, "ORDERS", qmgr).call(
                PUT, "AUDIT", qmgr
            )
        for event in calls.serve(system):
            seen.setdefault((event["qmgr"], event["queue"]), []).append(event["seq"])
    assert len(seen) == 6
    assert all(numbers == list(range(len(numbers))) for numbers in seen.values())


def test_a_put_that_does_not_fit_is_an_event_with_2192_and_no_id(calls: Calls, small: Estate) -> None:
    system = RealSystem(small, 7)
    for _ in range(200):
        calls.call(PUT, length=100_000)
    for _ in range(3):
        calls.call(GET)
    events = calls.serve(system)
    full = [event for event in events if event["reason"] == 2192]
    stored = [event for event in events if event["op"] == "PUT" and event["reason"] == 0]
    assert 100 < len(stored) < 200
    assert len(full) == 200 - len(stored) == system.outcomes["QSG1/APP1"].refused
    assert all("msgid" not in event for event in full)
    assert [event["msgid"] for event in events if event["op"] == "GET"] == [event["msgid"] for event in stored[:3]]
    first = START + events.index(full[0]) * 1_000_000
    assert system.outcomes["QSG1/APP1"].first_full == first
    assert system.outcomes["QSG1/APP1"].peak_smds_pct["QM01"] > 97


def test_a_put_has_what_a_put_needs_and_a_get_has_not(calls: Calls) -> None:
    put, get = calls.call(PUT, length=123).call(GET).serve()
    assert (put["length"], put["priority"], put["persistent"], put["reason"]) == (123, 0, False, 0)
    assert {"length", "priority", "persistent", "uow"}.isdisjoint(get)


def test_a_unit_of_work_ends_where_something_happened_in_it(calls: Calls) -> None:
    calls.call(PUT, uow=1).call(COMMIT, uow=1)
    calls.call(GET, "PAYMENTS", uow=2).call(COMMIT, "PAYMENTS", uow=2)
    calls.call(GET, uow=3).call(BACKOUT, uow=3).call(GET)
    events = calls.serve()
    assert [event["op"] for event in events] == ["PUT", "COMMIT", "GET", "BACKOUT", "GET"]
    assert events[0]["uow"] == events[1]["uow"] != events[2]["uow"] == events[3]["uow"]
    assert events[2]["msgid"] == events[4]["msgid"] == events[0]["msgid"]
    assert [event["seq"] for event in events] == [0, 1, 2, 3, 4]


def test_a_unit_of_work_may_end_in_a_later_piece(calls: Calls, small: Estate) -> None:
    system = RealSystem(small, 7)
    calls.call(PUT, uow=1).call(PUT, uow=2).serve(system)
    assert [event["op"] for event in calls.call(COMMIT, uow=1).serve(system)] == ["COMMIT"]
    assert calls.call(COMMIT, uow=1).call(GET, uow=3).serve(system)[0]["op"] == "GET"


def test_how_demands_are_cut_changes_nothing(small: Estate) -> None:
    traffic = Traffic(unit_share=0.5, backout_share=0.2)
    routes = [small.route_of_queue("QM01", "ORDERS"), small.route_of_queue("QM02", "AUDIT")]
    flows = [Flow(route=route, op=op, rate=constant(2), traffic=traffic) for route in routes for op in (PUT, GET)]
    rows = np.concatenate(list(demands(flows, START, 600, np.random.default_rng(1))))
    whole = from_table(RealSystem(small, 7).serve(rows.copy()))
    system = RealSystem(small, 7)
    cuts = range(0, rows.size, 137)
    assert [event for cut in cuts for event in from_table(system.serve(rows[cut : cut + 137].copy()))] == whole
    assert {event["op"] for event in whole} == {"PUT", "GET", "COMMIT", "BACKOUT"}
    assert sum(item.puts for item in system.outcomes.values()) == (rows["op"] == PUT).sum()


def test_a_put_to_a_waiting_getter_is_reported_and_takes_no_message(calls: Calls) -> None:
    calls.call(PUT).call(PUT).call(GET).call(GET)
    calls.rows[0]["flags"] = FLAG_DIRECT
    direct, put, get = calls.serve()
    assert direct["direct"]
    assert not put["direct"]
    assert get["msgid"] == put["msgid"]
    assert "msgid" not in direct


def test_a_heartbeat_is_of_the_store_and_has_no_number(calls: Calls, small: Estate) -> None:
    calls.call(PUT).call(GET).call(GET)
    calls.rows[1]["op"] = HEARTBEAT
    calls.rows[1]["route"] = small.route_of_store("QM03", "QSG1/APP1")
    put, heartbeat, get = calls.serve()
    assert (heartbeat["op"], heartbeat["store"], heartbeat["qmgr"]) == ("HEARTBEAT", "QSG1/APP1", "QM03")
    assert {"queue", "seq", "msgid"}.isdisjoint(heartbeat)
    assert (put["seq"], get["seq"]) == (0, 1)
    assert "store" not in put


def test_a_store_that_holds_no_messages_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(
        'schema = 1\n[queue_manager.QMD1]\nplatform = "distributed"\n[queue_file."QMD1/INVOICES"]\n'
        '[uniform_cluster.UC01]\nqueue_managers = ["QMD1"]\nmessages_per_second = 100\n'
    )
    estate = load_estate(path)
    calls = Calls(estate).call(PUT, "INVOICES", "QMD1")
    calls.rows[0]["route"], calls.rows[0]["op"] = estate.route_of_store("QMD1", "UC01"), HEARTBEAT
    with pytest.raises(
        UsageError, match="UC01 is a uniform_cluster, which is not simulated; expected: a queue of a page"
    ):
        calls.serve()


@pytest.mark.parametrize(
    ("text", "qmgr", "put"),
    [
        ('[queue_manager.QMD1]\nplatform = "distributed"\n[queue_file."QMD1/Q"]\nmax_size = "200K"\n', "QMD1", 600),
        (
            (
                '[page_set."QM01/4"]\npages = 102\nexpand = "NONE"\n[storage_class."QM01/S"]\npage_set = 4\n'
                '[queue_manager.QM01]\n[queue."QM01/Q"]\nstorage_class = "S"\n'
            ),
            *("QM01", 100),
        ),
    ],
    ids=["queue file", "page set"],
)
def test_page_sets_and_queue_files_refuse_what_does_not_fit(tmp_path: Path, text: str, qmgr: str, put: int) -> None:
    """A queue file of 400 blocks beside 256 of its buffer, 656 of which 600 messages of one block leave 56."""
    path = tmp_path / "estate.toml"
    path.write_text("schema = 1\n" + text)
    calls = Calls(load_estate(path))
    system = RealSystem(calls.estate, 7)
    for _ in range(put):
        calls.call(PUT, "Q", qmgr)
    assert [event["reason"] for event in calls.serve(system)] == [0] * put
    for _ in range(100):
        calls.call(PUT, "Q", qmgr)
    reasons = [event["reason"] for event in calls.serve(system)]
    left = 56 if put == 600 else 0
    assert reasons == [0] * left + [2192] * (100 - left)
    [outcome] = system.outcomes.values()
    assert (outcome.refused, outcome.peak_pct) == (100 - left, 100.0)
