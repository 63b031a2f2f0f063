"""Structures that hold no queues, known by measured levels: docs/storage-model.md#structures-that-hold-no-queues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.profile import examples
from twin.alerts.episodes import Alert
from twin.estate import Estate, load_estate
from twin.events import Decoder
from twin.playback.replays import Player
from twin.records import StructureState
from twin.stores.message_store import MessageStore
from twin.stores.open import open_store

START_US = 1_795_176_000_000_000
MINUTE_US = 60_000_000
ADMIN, OTHER = "QSG1/CSQ_ADMIN", "LOGSTR1"
TOTALS = {"ents_max": 52_945, "elems_max": 107_055}  # [IBM: APAR PH39578]
TOML = """
schema = 1
[coupling_facility.CF01]
size = "1G"
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[structure."QSG1/CSQ_ADMIN"]
size = "64M"
init_size = "40M"
coupling_facility = "CF01"
[other_structure.LOGSTR1]
size = "100M"
[structure."QSG1/APP1"]
size = "64M"
[queue."QSG1/ORDERS"]
structure = "APP1"
"""


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    path: Path = tmp_path_factory.mktemp("estate") / "estate.toml"
    path.write_text(TOML, encoding="utf-8")
    return load_estate(path)


class Fed:
    """A store that is fed by measurements."""

    def __init__(self, estate: Estate, store: str = ADMIN) -> None:
        self.store, self.player, self.decoder = store, Player(estate), Decoder(estate)
        self.alerts: list[Alert] = []

    def send(self, minute: float, op: str, **fields: Any) -> StructureState:
        event = {"time": START_US + round(minute * MINUTE_US), "qmgr": "QM01", "op": op, "store": self.store, **fields}
        decoded = self.decoder.json([json.dumps(event).encode()])
        assert not decoded.rejects, decoded.rejects[0].detail
        self.alerts += self.player.feed(decoded)
        return self.state()

    def measure(self, minute: float, **measured: int) -> StructureState:
        return self.send(minute, "MEASURE", measured=measured)

    def state(self) -> StructureState:
        state = self.player.states()[self.store]
        assert isinstance(state, StructureState)
        return state

    def opened(self, condition: str, level: str | None = None) -> list[Alert]:
        return [
            alert
            for alert in self.alerts
            if alert.condition == condition and alert.change == "opened" and level in (None, alert.level)
        ]


@pytest.fixture
def admin(estate: Estate) -> Fed:
    return Fed(estate)


def test_the_case_of_ph39578_elements_are_full_and_entries_are_not(admin: Fed) -> None:
    """Elements 99 %, entries 12 %: each resource is judged by itself; one measurement is enough for a page."""
    state = admin.measure(0, ents_used=6708, elems_used=107_043, **TOTALS)
    assert round(state.usage_pct or 0, 2) == 99.99
    [alert] = admin.opened("threshold")
    assert (alert.resource, alert.level, alert.severity) == ("elements", "page", "critical")
    assert "QM01 and QM02 of QSG1" in alert.cause
    assert "CSQE038E" in alert.cause and "00C510AB" in alert.cause
    assert "2192" not in alert.cause


def test_an_alert_says_that_the_structure_can_grow_and_what_its_facility_has(admin: Fed) -> None:
    admin.measure(0, ents_used=6708, elems_used=107_043, **TOTALS)
    size, users = admin.alerts[-1].runbook
    assert size.summary == "Expand the structure from 40M to its SIZE"
    assert size.steps[0].statement == "SETXCF START,ALTER,STRNAME=QSG1CSQ_ADMIN,SIZE=64M"
    assert size.precondition == "CF01 has 24 MB of free storage: D CF,CFNAME=CF01; by the estate 984 MB is left"
    assert "channels that retry puts to a full shared queue" in users.summary


def test_a_structure_of_another_program_says_that_its_users_fail(estate: Estate) -> None:
    other = Fed(estate, OTHER)
    other.measure(0, ents_used=10, elems_used=98, ents_max=100, elems_max=100)
    [alert] = other.opened("threshold")
    assert "the programs that use it get no more of it" in alert.cause


def test_what_was_not_measured_is_null(admin: Fed) -> None:
    state = admin.measure(0, ents_used=6708)
    assert (state.ents_used, state.ents_max, state.elems_used, state.elems_max) == (6708, None, None, None)
    assert state.usage_pct is None
    state = admin.measure(1, ents_used=6709, ents_max=52_945)
    assert (state.ents_max, state.usage_pct) == (52_945, None), "elements are not known, they may be full"
    state = admin.measure(2, elems_used=107_043, elems_max=107_055)
    assert (state.ents_used, state.usage_pct) == (6709, 99.989)


def test_it_holds_no_messages(admin: Fed) -> None:
    state = admin.measure(0, ents_used=6708, elems_used=20_000, **TOTALS)
    assert (state.messages, state.bytes, state.queues, state.smds, state.scm) == (0, 0, (), {}, None)
    assert state.drift_pct is None, "there is no model that could drift"


def test_every_measurement_is_taken_over_and_alters_of_zos_are_seen(admin: Fed) -> None:
    admin.measure(0, ents_used=100, elems_used=90_000, size=40 << 20, **TOTALS)
    state = admin.measure(1, ents_used=101, elems_used=90_100, size=44 << 20, ents_max=40_000, elems_max=140_000)
    assert (state.size, state.ents_max, state.elems_max) == (44 << 20, 40_000, 140_000)
    assert state.usage_pct == round(100 * 90_100 / 140_000, 3)


def test_a_larger_total_keeps_the_rise_that_is_extended(admin: Fed) -> None:
    """Of 2 % a minute, a growth of the structure by a tenth leaves 20/11 %: the time until full is known at once."""
    for minute in range(30):
        elems_max = 100_000 if minute < 20 else 110_000
        state = admin.measure(
            minute, ents_used=10, ents_max=1000, elems_used=20_000 + 2000 * minute, elems_max=elems_max
        )
    assert state.forecast is not None
    [forecast] = state.forecast.resources
    assert forecast.resource == "elements"
    assert forecast.time_to_full_s is not None
    assert forecast.time_to_full_s.p10 <= 60 * (110_000 - 78_000) / 2000 <= forecast.time_to_full_s.p90


def test_after_a_rebuild_the_totals_are_unknown_until_they_are_measured(admin: Fed) -> None:
    admin.measure(0, ents_used=100, elems_used=90_000, **TOTALS)
    state = admin.send(1, "REBUILD", attributes={"size": "128M", "init_size": "64M"})
    assert (state.size, state.ents_max, state.elems_max, state.usage_pct) == (64 << 20, None, None, None)
    state = admin.measure(2, ents_used=100, elems_used=90_000, ents_max=90_000, elems_max=180_000)
    assert state.usage_pct == 50.0


def test_alter_takes_what_a_structure_without_queues_has(estate: Estate, admin: Fed) -> None:
    assert admin.send(0, "ALTER", attributes={"size": "48M"}).size == 48 << 20
    assert admin.send(1, "ALTER", attributes={"size": "80M"}).refused_alters == 1, "above SIZE"
    event = {"time": START_US, "qmgr": "QM01", "op": "ALTER", "store": ADMIN, "attributes": {"offld1_th": 50}}
    [reject] = Decoder(estate).json([json.dumps(event).encode()]).rejects
    assert reject.reason == "bad-attributes"


@pytest.mark.parametrize("op", ["PUT", "GET", "EXPIRE"])
def test_a_put_or_get_that_names_it_is_a_dead_letter_with_its_reason(estate: Estate, op: str) -> None:
    event = {"time": START_US, "qmgr": "QM01", "op": op, "queue": "X", "store": ADMIN, "length": 10}
    [reject] = Decoder(estate).json([json.dumps(event).encode()]).rejects
    assert reject.reason == "unknown-queue"
    assert "QSG1/CSQ_ADMIN holds no queues" in reject.detail
    missing = {key: value for key, value in event.items() if key != "queue"}
    [reject] = Decoder(estate).json([json.dumps(missing).encode()]).rejects
    assert reject.reason == "missing-field"


def test_its_state_is_kept_over_a_restart(estate: Estate) -> None:
    def measured(minute: int) -> list[Any]:
        elements = {"elems_used": 20_000 + 1500 * minute, "elems_max": 107_055}
        event = {"time": START_US + minute * MINUTE_US, "qmgr": "QM02", "op": "MEASURE", "store": ADMIN}
        return Decoder(estate).json([json.dumps(event | {"measured": elements}).encode()]).blocks(estate)

    whole, cut = open_store(estate, ADMIN), open_store(estate, ADMIN)
    pages: dict[int, bytes] = {}
    for minute in range(40):
        for block in measured(minute):
            alerts = whole.apply(block)
            assert [alert.record() for alert in cut.apply(block)] == [alert.record() for alert in alerts]
        pages |= dict(cut.dirty_pages())
        cut = open_store(estate, ADMIN, header=cut.header(), pages=pages.items())
        assert cut.state() == whole.state()


@settings(max_examples=examples(30), deadline=None)
@given(
    start=st.floats(0.05, 0.4),
    minutes=st.integers(45, 90),
    flat=st.floats(0.0, 0.5),
    rising=st.sampled_from(("entries", "elements")),
)
def test_a_rising_resource_pages_before_it_is_full_and_the_other_does_not(
    estate: Estate, start: float, minutes: int, flat: float, rising: str
) -> None:
    """The page comes at least five minutes before full, whichever resource it is and whatever the other one holds."""
    fed = Fed(estate)
    for minute in range(minutes + 1):
        share = start + (1 - start) * minute / minutes
        entries, elements = (share, flat) if rising == "entries" else (flat, share)
        used = {"ents_used": int(entries * 50_000), "elems_used": int(elements * 99_000)}
        fed.measure(minute, ents_max=50_000, elems_max=99_000, **used)
    pages = [alert for alert in fed.alerts if alert.level == "page"]
    assert pages, "nobody was called"
    assert {alert.resource for alert in pages} == {rising}
    assert pages[0].condition == "full-forecast"
    assert (START_US + minutes * MINUTE_US - pages[0].time) / MINUTE_US >= 5
    assert all(rising == alert.resource for alert in fed.alerts)


@settings(max_examples=examples(100), deadline=None)
@given(shares=st.lists(st.floats(0.0, 0.75), min_size=10, max_size=60))
def test_below_its_threshold_and_without_a_rise_nobody_is_paged(estate: Estate, shares: list[float]) -> None:
    fed = Fed(estate)
    for minute, share in enumerate(sorted(shares, reverse=True)):
        fed.measure(minute, ents_used=10, ents_max=50_000, elems_used=int(share * 99_000), elems_max=99_000)
    assert fed.alerts == []


def test_hours_are_kept_while_an_alter_leaves_the_totals_to_the_next_measurement(admin: Fed) -> None:
    for hour in range(50):
        admin.measure(60 * hour, ents_used=400, elems_used=900, ents_max=1_000, elems_max=2_000)
    twin = admin.player.twins[ADMIN]
    assert isinstance(twin, MessageStore)
    weeks = twin.monitor.memory.weeks
    hours = weeks.lows, weeks.highs
    admin.send(60 * 49 + 1, "ALTER", attributes={"size": 64 << 20})
    assert (weeks.lows, weeks.highs) == hours
    admin.measure(60 * 49 + 2, ents_used=400, elems_used=900, ents_max=2_000, elems_max=4_000)
    assert (weeks.lows, weeks.highs) == hours
    assert weeks.high < 1.0
