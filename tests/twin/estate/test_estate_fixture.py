"""The example estate: a policy, commands of a group and of a queue manager, and a TOML file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from twin.estate import HEADINGS, Estate, PageSet, Smds, Structure, load_estate, summary
from twin.events import Decoder
from twin.playback.replays import Player

FIXTURE = Path(__file__).resolve().parents[4] / "shared" / "fixtures" / "estates" / "estate.toml"

pytestmark = pytest.mark.skipif(not FIXTURE.exists(), reason="no example estate at ../shared/fixtures/estates")

GIB = 1 << 30


@pytest.fixture(scope="module")
def estate() -> Estate:
    return load_estate(FIXTURE)


def test_its_stores(estate: Estate) -> None:
    assert list(estate.stores) == ["CF01", "CF02", "QM01/PS02", "QM01/PS04", "QSG1/APP1", "QSG1/APP2"]


def test_its_first_structure(estate: Estate) -> None:
    smds = Smds(size=10 * GIB, secondary=GIB)
    assert estate.stores["QSG1/APP1"] == Structure(
        name="QSG1/APP1",
        queue_sharing_group="QSG1",
        queue_managers=("QM01", "QM02"),
        coupling_facility="CF01",
        cfrm_policy="PROD01",
        size=4 * GIB,
        init_size=4 * GIB,
        cf_level=5,
        queues=("ORDERS", "ORDERS.REPLY", "PAYMENTS"),
        smds={"QM01": smds, "QM02": smds},
    )


def test_its_second_structure_is_altered_and_has_scm(estate: Estate) -> None:
    app2 = estate.stores["QSG1/APP2"]
    assert isinstance(app2, Structure)
    assert (app2.size, app2.init_size, app2.scm_max_size, app2.coupling_facility) == (2 * GIB, GIB, 8 * GIB, "CF02")
    assert [(rule.th, rule.sz) for rule in app2.rules] == [(0, 32768), (80, 4096), (90, 0)]
    assert app2.allow_auto_alter


def test_its_page_sets(estate: Estate) -> None:
    assert estate.stores["QM01/PS02"] == PageSet(
        name="QM01/PS02",
        queue_manager="QM01",
        psid=2,
        pages=50040,
        expand="USER",
        secondary_pages=5000,
        buffer_pool=2,
        version="9.4",
        queues=("TO.HEAD.OFFICE",),
    )


def test_its_alias(estate: Estate) -> None:
    route = estate.routes[estate.route_of_queue("QM02", "ORDERS.IN")]
    assert (route.store, route.queue) == ("QSG1/APP1", "ORDERS")


def test_its_warnings_are_of_data_sets_that_are_not_described_and_of_its_scm(estate: Estate) -> None:
    administration, data_sets, automatic, rule = estate.warnings
    assert administration.startswith("QSG1: QSG1CSQ_ADMIN of its CFRM policy is not watched")
    assert data_sets.startswith("QSG1/APP2: OFFLOAD(SMDS), but the data sets of QM01, QM02 are not described")
    assert automatic.startswith("QSG1/APP2: ALLOWAUTOALT(YES) beside SCM")
    assert rule.startswith("QSG1/APP2: offload rule 3, OFFLD3TH(90) OFFLD3SZ(0), can never fire while SCM has room")


def test_its_summary_has_a_row_for_each_store(estate: Estate) -> None:
    rows = summary(estate)
    assert [row.store for row in rows] == list(estate.stores)
    assert len(HEADINGS) == len(rows[0].__slots__)
    assert (rows[4].size, rows[4].queue_managers, rows[4].queues) == ("4G", "QM01, QM02", 3)
    assert rows[4].details == "CFLEVEL(5), OFFLOAD(SMDS) 70%/32K 80%/4K 90%/0, on CF01"
    assert rows[5].details.endswith("INITSIZE 1G, SCM 8G, on CF02")


def test_events_of_its_page_sets_are_simulated(estate: Estate) -> None:
    """5,000 messages of 1 KB on 50,035 pages, ten of 10,000 bytes on the other page set: 3 pages and one of control."""
    player = Player(estate)
    puts = [
        {"queue": "LOCAL.REPLIES", "length": 1024, "count": 5000},
        {"queue": "TO.HEAD.OFFICE", "length": 10_000, "count": 10, "persistent": True},
    ]
    event = {"time": 1_795_176_000_000_000, "qmgr": "QM01", "op": "PUT"}
    assert player.feed(Decoder(estate).json([json.dumps(event | put).encode() for put in puts])) == []
    states = player.states()
    assert (states["QM01/PS04"].pages_nonpersistent, states["QM01/PS04"].buffer_pool) == (5000, 3)
    assert (states["QM01/PS02"].pages_persistent, states["QM01/PS02"].pages_total) == (40, 50_035)
