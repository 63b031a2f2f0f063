"""Routes: which store an event belongs to."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from twin.estate import Estate, Route, RoutingError, UnknownQueue, UnknownQueueManager, UnknownStore

Load = Callable[..., Estate]

TOML = """
schema = 1
[coupling_facility.CF01]
size = "64G"
[queue_sharing_group.QSG1]
queue_managers = ["QM02", "QM01"]
[queue_manager.QMD1]
platform = "distributed"
[structure."QSG1/APP1"]
size = "4G"
coupling_facility = "CF01"
[page_set."QM01/4"]
pages = 1000
[storage_class."QM01/DEFAULT"]
page_set = 4
[queue_file."QMD1/INVOICES"]
[uniform_cluster.UC01]
queue_managers = ["UCM1"]
messages_per_second = 100
[[import]]
mqsc = "a.mqsc"
queue_sharing_group = "QSG1"
"""
MQSC = """
DEFINE QLOCAL(ORDERS) QSGDISP(SHARED) CFSTRUCT(APP1)
DEFINE QALIAS(ORDERS.IN) TARGET(ORDERS)
DEFINE QLOCAL(LOCAL) CMDSCOPE(QM01)
DEFINE QALIAS(LOCAL.IN) TARGQ('LOCAL') CMDSCOPE(QM01)
DEFINE QALIAS(NEWS) TARGET(NEWS.TOPIC) TARGTYPE(TOPIC)
DEFINE QREMOTE(AWAY) RNAME(X) RQMNAME(Y)
DEFINE QALIAS(AWAY.IN) TARGET(AWAY)
"""


@pytest.fixture
def estate(load: Load) -> Estate:
    return load(TOML, a_mqsc=MQSC)


def test_every_store_queue_manager_and_name_has_one_route_in_a_fixed_order(estate: Estate) -> None:
    assert estate.routes == (
        Route("CF01", "QM01"),
        Route("CF01", "QM02"),
        Route("QM01/PS04", "QM01"),
        Route("QM01/PS04", "QM01", "LOCAL", "LOCAL"),
        Route("QM01/PS04", "QM01", "LOCAL", "LOCAL.IN"),
        Route("QMD1", "QMD1"),
        Route("QMD1/INVOICES", "QMD1"),
        Route("QMD1/INVOICES", "QMD1", "INVOICES", "INVOICES"),
        Route("QSG1/APP1", "QM01"),
        Route("QSG1/APP1", "QM01", "ORDERS", "ORDERS"),
        Route("QSG1/APP1", "QM01", "ORDERS", "ORDERS.IN"),
        Route("QSG1/APP1", "QM02"),
        Route("QSG1/APP1", "QM02", "ORDERS", "ORDERS"),
        Route("QSG1/APP1", "QM02", "ORDERS", "ORDERS.IN"),
        Route("UC01", "UCM1"),
    )


def test_an_alias_is_resolved_and_the_reported_name_kept(estate: Estate) -> None:
    route = estate.routes[estate.route_of_queue("QM02", "ORDERS.IN")]
    assert (route.store, route.queue, route.reported) == ("QSG1/APP1", "ORDERS", "ORDERS.IN")


def test_every_route_is_found_by_what_it_says(estate: Estate) -> None:
    for index, route in enumerate(estate.routes):
        if route.reported is None:
            assert estate.route_of_store(route.qmgr, route.store) == index
        else:
            assert estate.route_of_queue(route.qmgr, route.reported) == index


def test_an_event_of_a_queue_manager_concerns_each_of_its_stores(estate: Estate) -> None:
    concerned = [estate.routes[index] for index in estate.routes_of_qmgr("QM01")]
    assert [(route.store, route.queue) for route in concerned] == [
        ("CF01", None),
        ("QM01/PS04", None),
        ("QSG1/APP1", None),
    ]


@pytest.mark.parametrize("queue", ["NONE", "NEWS", "AWAY", "AWAY.IN", "orders", ""])
def test_a_queue_without_a_store_is_unknown_and_the_message_lists_those_that_have_one(
    estate: Estate, queue: str
) -> None:
    with pytest.raises(UnknownQueue) as caught:
        estate.route_of_queue("QM02", queue)
    assert str(caught.value) == f'QM02 has no queue "{queue}" with a store; its queues are ORDERS, ORDERS.IN'


def test_a_queue_of_another_queue_manager_is_unknown(estate: Estate) -> None:
    with pytest.raises(UnknownQueue, match="no queue of it is described"):
        estate.route_of_queue("UCM1", "LOCAL")


def test_an_unknown_queue_manager_is_reported_before_an_unknown_queue_or_store(estate: Estate) -> None:
    for ask in (lambda: estate.route_of_queue("QM9", "X"), lambda: estate.route_of_store("QM9", "X")):
        with pytest.raises(UnknownQueueManager, match='no queue manager "QM9"; the estate has QM01, QM02, QMD1, UCM1'):
            ask()
    with pytest.raises(UnknownQueueManager):
        estate.routes_of_qmgr("QM9")


def test_an_unknown_store_differs_from_one_that_does_not_concern_the_queue_manager(estate: Estate) -> None:
    with pytest.raises(UnknownStore, match='no store "QSG1/APP9"; those of QM02 are CF01, QSG1/APP1'):
        estate.route_of_store("QM02", "QSG1/APP9")
    with pytest.raises(UnknownStore, match="QM01/PS04 does not concern QM02; its queue managers are QM01"):
        estate.route_of_store("QM02", "QM01/PS04")


def test_routing_errors_are_one_kind() -> None:
    assert issubclass(UnknownQueue, RoutingError)
    assert issubclass(UnknownStore, RoutingError)
    assert issubclass(UnknownQueueManager, RoutingError)


def test_a_long_name_does_not_make_a_long_message(estate: Estate) -> None:
    with pytest.raises(UnknownQueue) as caught:
        estate.route_of_queue("QM01", "Q\n" * 10_000)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_an_estate_pickles_with_its_look_ups(estate: Estate) -> None:
    again = pickle.loads(pickle.dumps(estate))
    assert again == estate
    assert again.route_of_queue("QM02", "ORDERS.IN") == estate.route_of_queue("QM02", "ORDERS.IN")
    assert again.routes_of_qmgr("QM01") == estate.routes_of_qmgr("QM01")


def test_the_order_of_the_texts_does_not_change_the_numbers(load: Load, estate: Estate) -> None:
    lines = MQSC.strip().splitlines()
    turned = "\n".join([lines[0], *reversed(lines[1:])])
    assert load(TOML, a_mqsc=turned).routes == estate.routes


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("DEFINE QALIAS(A) TARGET(NOWHERE)", "a.mqsc:1: alias A leads to NOWHERE, which is not described"),
        (
            "DEFINE QALIAS(A) TARGET(B)\nDEFINE QALIAS(B) TARGET(X) TARGTYPE(TOPIC)",
            "alias A leads to B, an alias itself",
        ),
    ],
)
def test_an_alias_that_leads_to_no_queue_is_a_warning_with_its_queue_managers(
    load: Load, text: str, warning: str
) -> None:
    warnings = [line for line in load(TOML, a_mqsc=text).warnings if warning in line]
    assert len(warnings) == 1
    assert warnings[0].endswith("(QM01, QM02)")


def test_a_put_to_a_remote_definition_is_one_to_its_transmission_queue(load: Load) -> None:
    text = """
DEFINE QLOCAL(QMX) USAGE(XMITQ) QSGDISP(SHARED) CFSTRUCT(APP1)
DEFINE QLOCAL(OUT) USAGE(XMITQ) QSGDISP(SHARED) CFSTRUCT(APP1)
DEFINE QREMOTE(BY.NAME) RNAME(X) RQMNAME(QMX)
DEFINE QREMOTE(BY.XMITQ) RNAME(X) RQMNAME(QMX) XMITQ(OUT)
DEFINE QREMOTE(NOWHERE) RNAME(X) RQMNAME(QMY)
DEFINE QALIAS(BY.ALIAS) TARGET(BY.XMITQ)
"""
    estate = load(TOML, a_mqsc=MQSC + text)
    queues = {
        name: estate.routes[estate.route_of_queue("QM01", name)].queue for name in ("BY.NAME", "BY.XMITQ", "BY.ALIAS")
    }
    assert queues == {"BY.NAME": "QMX", "BY.XMITQ": "OUT", "BY.ALIAS": "OUT"}
    assert ("QM01", "NOWHERE") not in estate.queue_routes
