"""Measurements beside puts and gets: what the model does not know opens an alert; a put that was taken is no `full`.

The recordings and their right values: ../shared/fixtures/joined/README.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.naive.estates import data_set, structure
from tests.naive.private_estates import page_set, queue_file
from tests.support.twin_driver import PageSetDriver, QueueFileDriver, ScmDriver, TwinDriver
from twin.alerts.episodes import Alert
from twin.estate import Estate, load_estate
from twin.events import Decoder
from twin.records import StructureState
from twin.records.usage import resources_of
from twin.stores.message_store import MessageStore
from twin.stores.open import open_message_store, reopened

MINUTE = 60.0
JOINED = Path(__file__).parents[3] / "shared" / "fixtures" / "joined"
needs_fixtures = pytest.mark.skipif(not JOINED.exists(), reason="no recordings at ../shared/fixtures/joined")


@dataclass
class Played:
    """A store after its events, and its alerts."""

    twin: MessageStore
    alerts: list[Alert] = field(default_factory=list)

    @property
    def state(self) -> StructureState:
        state = self.twin.state()
        assert isinstance(state, StructureState)
        return state

    def pct(self, resource: str) -> float:
        """Return the percentage in use of a resource."""
        return next(usage.pct for usage in resources_of(self.state) if usage.name == resource and usage.pct is not None)

    @property
    def minutes_left(self) -> float:
        """The median time until its first resource is full."""
        first = self.state.first
        assert first is not None
        assert first.time_to_full_s is not None
        return first.time_to_full_s.p50 / MINUTE

    @property
    def opened(self) -> list[tuple[str, str]]:
        """(condition, resource) of the alerts that opened."""
        return [(alert.condition, alert.resource) for alert in self.alerts if alert.change == "opened"]


def play(estate: Estate, store: str, events: Iterable[dict[str, Any]], *, restarts: bool) -> Played:
    """Play events one by one; with `restarts` the twin is opened again from its bytes in the middle."""
    decoder, played, lines = Decoder(estate), Played(open_message_store(estate, store)), list(events)
    for number, event in enumerate(lines):
        if restarts and number == len(lines) // 2:
            again = reopened(played.twin, estate)
            assert isinstance(again, MessageStore)
            played.twin = again
        for block in decoder.ndjson([json.dumps(event).encode()]).blocks(estate):
            if block.store == store:
                played.alerts += played.twin.apply(block)
    return played


def events_of(name: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a recording."""
    yield from map(json.loads, (JOINED / f"{name}.ndjson").read_text().splitlines())


# --- the four recordings ---------------------------------------------------------------------------------------------


@needs_fixtures
@pytest.mark.parametrize("restarts", [False, True], ids=["", "restart"])
@pytest.mark.parametrize(
    ("name", "store", "resource", "pct", "minutes"),
    [
        ("elements", "BKQ1/PAY", "elements", 97.0, None),
        ("smds", "BKQ1/BAT", "smds/BK1A", 75.0, 40.0),
        ("alter", "BKQ1/PAY", "elements", 62.3, 36.0),
        ("counts", "BKQ1/APP1", "scm", 54.3, 40.0),
    ],
)
def test_what_the_system_holds_is_known_beside_measurements_and_counts(
    name: str, store: str, resource: str, pct: float, minutes: float | None, restarts: bool
) -> None:
    estate = load_estate(JOINED / ("counts.toml" if name == "counts" else "estate.toml"))
    played = play(estate, store, events_of(name), restarts=restarts)
    assert played.pct(resource) == pytest.approx(pct, abs=1.5)
    if minutes is not None:
        assert played.minutes_left == pytest.approx(minutes, rel=0.1)
    assert "full" not in {alert.condition for alert in played.alerts}
    if name in ("elements", "smds"):
        assert ("full-forecast", resource) in played.opened
        assert list(played.twin.episodes)
    whole = play(estate, store, events_of(name), restarts=False)
    assert (played.alerts, played.state) == (whole.alerts, whole.state)


@needs_fixtures
def test_elements_of_a_baseline_follow_from_the_mix_where_nothing_says_how_full_it_is() -> None:
    events = list(events_of("elements"))
    for event in (events[0], events[-1]):
        del event["measured"]["usage_pct"]
    played = play(load_estate(JOINED / "estate.toml"), "BKQ1/PAY", events, restarts=True)
    assert played.pct("elements") == pytest.approx(97.0, abs=0.1)
    assert played.state.baseline is not None
    assert played.state.baseline["elements"] == 600_000


# --- measured shares open alerts whatever the model says -------------------------------------------------------------


def measured_share(kind: str, pct: float) -> dict[str, Any]:
    """Return a measurement in which the first resource of a kind of store is so full."""
    shares: dict[str, dict[str, Any]] = {
        "entries": {"ents_max": 10_000, "ents_used": round(100 * pct)},
        "elements": {"elems_max": 10_000, "elems_used": round(100 * pct)},
        "sizeused": {"usage_pct": pct},
        "smds": {"smds": {"QM01": {"blocks_total": 1_000, "blocks_used": round(10 * pct)}}},
        "scm": {"scm": {"max": 100_000, "used": round(1_000 * pct)}},
        "pages": {"pages_total": 1_000, "pages_used": round(10 * pct)},
        "unused": {"pages_total": 1_000, "pages_unused": 1_000 - round(10 * pct)},
        "file": {"file_max_bytes": 1 << 20, "file_bytes": round((1 << 20) * pct / 100), "messages": 10},
        "blocks": {"file_max_bytes": 512_000, "blocks_persistent": 16 + round(10 * pct), "blocks_nonpersistent": 0},
    }
    return shares[kind]


def driver_of(kind: str) -> TwinDriver:
    if kind in ("pages", "unused"):
        return PageSetDriver()
    if kind in ("file", "blocks"):
        return QueueFileDriver()
    return ScmDriver() if kind == "scm" else TwinDriver(full_threshold=85)


RESOURCES = {
    "entries": "entries",
    "elements": "elements",
    "sizeused": "elements",
    "smds": "smds/QM01",
    "scm": "scm",
    "pages": "pages",
    "unused": "pages",
    "file": "file",
    "blocks": "file",
}


@pytest.mark.parametrize("is_taken", [False, True], ids=["test", "resync"])
@pytest.mark.parametrize("kind", RESOURCES)
def test_a_share_is_watched_and_called_for_as_it_is_measured(kind: str, is_taken: bool) -> None:
    driver, resource = driver_of(kind), RESOURCES[kind]
    driver.put(100)  # the model knows one message
    line = 85 if resource in ("entries", "elements") else 80
    pcts = (20, line - 1, line + 1, 94, 96, 97)
    for pct in pcts:
        driver.wait(5 * MINUTE)
        driver.measure(**measured_share(kind, pct), resync=is_taken)
        open_now = {
            (alert.condition, alert.severity) for alert in driver.twin.episodes if alert.resource_text == resource
        }
        conditions = {condition for condition, _ in open_now}
        assert ("threshold" in conditions) == (pct > line), pct
        if pct > 95:
            assert any(condition == "full-forecast" and severity != "info" for condition, severity in open_now)
        if pct == 94:
            driver.reopen()
    assert "full" not in {alert.condition for alert in driver.alerts}
    paged = next(alert for alert in driver.alerts if alert.condition == "full-forecast" and alert.level == "page")
    assert paged.usage_pct < 97  # levels that events do not explain rise: the page may come before 95 %
    assert driver.reopen().state()


def test_a_page_of_a_measurement_ends_with_it() -> None:
    driver = TwinDriver()
    driver.put(100)
    for pct in (20, 96, 97):
        driver.wait(5 * MINUTE)
        driver.measure(**measured_share("elements", pct))
    assert ("opened", "full-forecast", "elements") in driver.alert_changes()
    for pct in (60, 40, 40, 40):
        driver.wait(5 * MINUTE)
        driver.measure(**measured_share("elements", pct))
    assert {("cleared", "full-forecast", "elements"), ("cleared", "threshold", "elements")} <= set(
        driver.alert_changes()
    )
    assert not any(alert.condition in ("full-forecast", "threshold") for alert in driver.twin.episodes)


def test_a_share_that_does_not_rise_is_no_page() -> None:
    driver = TwinDriver()
    driver.put(100)
    for _ in range(5):
        driver.wait(5 * MINUTE)
        driver.measure(**measured_share("elements", 96))
    assert "full-forecast" not in {alert.condition for alert in driver.alerts}
    assert ("opened", "threshold", "elements") in driver.alert_changes()


def test_a_resource_measured_to_be_full_is_full() -> None:
    driver = TwinDriver()
    driver.put(100)
    driver.measure(ents_max=10_000, ents_used=10_000)
    assert ("opened", "full", "entries") in driver.alert_changes()
    assert "the next put fails with 2192" in next(alert.cause for alert in driver.alerts if alert.condition == "full")


# --- measured totals win at once -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["entries", "elements", "smds", "scm", "pages", "file"])
def test_a_measured_total_wins_at_once(kind: str) -> None:
    driver = driver_of(kind)
    driver.put(100)
    state = driver.measure(**measured_share(kind, 10))
    total = {
        "entries": lambda: state["ents_max"],
        "elements": lambda: state["elems_max"],
        "smds": lambda: state["smds"]["QM01"]["blocks_total"],
        "scm": lambda: state["scm"]["max"],
        "pages": lambda: state["pages_total"],
        "file": lambda: state["file_max_bytes"],
    }[kind]
    assert total() in (10_000, 1_000, 100_000, 1 << 20)
    assert state["sizes_measured"] == {}
    assert driver.reopen().state() == state


@pytest.mark.parametrize(
    "measured",
    [{"size": 2}, {"ents_max": 2}, {"elems_max": 2}, {"ents_max": 2, "elems_max": 2}, {"size": 2, "ents_max": 2}],
)
def test_a_total_that_is_measured_anew_is_an_alter(measured: dict[str, int]) -> None:
    driver = TwinDriver(size=1 << 22, init_size=1 << 20, allow_auto_alter=False)
    fields = ("size", "ents_max", "elems_max")
    before = driver.measure(**{name: driver.state()[name] for name in fields})
    after = driver.measure(**{name: before[name] * times for name, times in measured.items()})
    for name in fields:
        assert after[name] == pytest.approx(2 * before[name], rel=0.01)
    assert driver.reopen().state() == after


# --- a put that was taken shows that there was room ------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.parametrize(
    "config",
    [structure(), structure(full_threshold=0), page_set(expand="NONE"), queue_file(max_size=1 << 20)],
    ids=["structure", "unwatched", "page set", "queue file"],
)
def test_puts_that_are_taken_never_make_a_store_full(config: Any, count: int) -> None:
    driver = TwinDriver()
    driver.open(config)
    for _ in range(120 // count):
        driver.put(40_000, count=count)
        driver.wait(10)
    driver.wait(MINUTE)
    driver.put(40_000)
    assert driver.state()["overfull_puts"] > 0
    assert "full" not in {alert.condition for alert in driver.alerts}
    assert not any("next put fails" in alert.cause or "full now" in alert.cause for alert in driver.alerts)
    driver.put(40_000, reason=2192)
    assert "full" in {alert.condition for alert in driver.alerts}
    assert driver.reopen().state()


def test_puts_that_are_taken_never_fill_a_data_set() -> None:
    driver = TwinDriver(smds={qmgr: data_set(size=1 << 20, max_size=1 << 20) for qmgr in ("QM01", "QM02")})
    for _ in range(40):
        driver.put(70_000)
        driver.wait(10)
    assert driver.state()["overfull_puts"] > 0
    assert "full" not in {alert.condition for alert in driver.alerts}


# --- limits that are assumed -----------------------------------------------------------------------------------------


def test_a_data_set_of_which_nothing_is_known_has_no_known_limit() -> None:
    for expands in (False, True):
        driver = TwinDriver(smds={}, ds_expand=expands)
        driver.put(100)
        assert "smds/QM01" in driver.state()["limits_unknown"]
        driver.measure(smds={"QM01": {"blocks_total": 1_000, "blocks_used": 750}})
        state = driver.state()
        assert state["smds"]["QM01"]["blocks_max"] == 1_000
        assert ("smds/QM01" in state["limits_unknown"]) == expands
