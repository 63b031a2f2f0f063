"""How past rises decide whether the present one continues (docs/forecast.md, "How rises end")."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernels.meter_rows import DATA_SETS, ENTRIES, RISE, RISES, TIDE, TOTAL_TIDE
from tests.naive.estates import data_set
from tests.support.store_driver import KIB, MIB
from tests.support.twin_driver import TwinDriver
from tests.support.workloads import SECOND_US
from tests.twin.test_alerts_forecast import TICK_US, Story
from twin.base.conditions import CLEARED, INFO
from twin.forecast.rises import (
    Past,
    Rise,
    chance_beyond_past,
    chance_to_last,
    kept_rises,
    kept_rows,
    past_of,
    past_threshold,
)
from twin.state.arrays import Array


class Store:
    """The rises of a store. rows: (ticks, low, top, refused puts) of each past rise, a day apart."""

    def __init__(self, *rows: tuple[int, float, float, int]) -> None:
        self.rises = np.zeros(RISES, RISE)
        self.tides = np.zeros(DATA_SETS, TIDE)
        self.tides[TOTAL_TIDE]["rises"] = len(rows)
        self.rises["tide"] = TOTAL_TIDE
        for row, (lasted, low, top, refused) in zip(self.rises, rows, strict=False):
            row["began"], row["ended"], row["low"], row["top"] = 0, lasted, low, top
            row["refused"], row["puts"], row["stayed"], row["usage"] = refused, 100, 100, top


def chance(store: Store, rise: Rise, *ahead: float) -> Array:
    past: Past = past_of(store, rise)  # type: ignore[arg-type]  # the arrays that it reads
    return chance_to_last(rise, past, rise.pace, int(rise.age), np.array(ahead))


def rise(age: float, height: float, low: float = 0.1) -> Rise:
    return Rise(age, low, height, 1.0)


def test_without_precedent_a_rise_lasts_twice_as_long_as_it_has_with_a_probability_of_one_half() -> None:
    assert chance(Store(), rise(60, 0.5), 60.0, 120.0) == pytest.approx([0.5, 1 / 3])


def test_without_precedent_a_rise_lasts_longer_where_a_getter_has_stopped() -> None:
    young, past = rise(60, 0.5), past_of(Store(), rise(60, 0.5))  # type: ignore[arg-type]
    chances = chance_to_last(young, past, young.pace, 60, np.array([60.0, 180.0]), has_stopped=True)
    assert chances == pytest.approx([0.5**0.5, 0.5])


def test_a_rise_that_became_faster_is_as_old_as_its_present_pace() -> None:
    slow = rise(600, 0.4)
    past = past_of(Store(), slow)  # type: ignore[arg-type]
    [now] = chance_to_last(slow, past, 10 * slow.pace, 6, np.array([54.0]))
    assert now == pytest.approx(6 / 60)


def test_a_rise_like_eleven_that_turned_is_not_expected_to_outlast_them() -> None:
    store = Store(*[(140 + i % 3, 0.1, 0.92 + 0.002 * (i % 2), 0) for i in range(11)])
    [soon, beyond] = chance(store, rise(100, 0.69), 20.0, 80.0)
    assert soon > 0.9
    assert beyond < 0.05


def test_one_that_has_outlasted_them_all_and_is_higher_continues() -> None:
    store = Store(*[(140, 0.1, 0.8, 0) for _ in range(11)])
    [beyond] = chance(store, rise(190, 1.05), 20.0)
    assert beyond > 0.75


def test_one_that_outlasts_four_that_were_each_as_long_as_the_last_continues() -> None:
    store = Store(*[(238 + i % 2, 0.0, top, 0) for i, top in enumerate((1.04, 1.09, 1.06, 1.05))])
    [before] = chance(store, rise(234, 1.05, 0.0), 24.0)
    [after] = chance(store, rise(248, 1.08, 0.0), 24.0)
    assert before < 0.2
    assert after > 0.6


def test_rises_that_ended_in_2192_lasted() -> None:
    harmless = Store(*[(140, 0.1, 0.8, 0) for _ in range(6)])
    mixed = Store(*[(140, 0.1, 0.8, i % 2) for i in range(6)])
    beyond = 100.0
    assert chance(harmless, rise(90, 0.55), beyond)[0] < 0.1
    assert 0.3 < chance(mixed, rise(90, 0.55), beyond)[0] < 0.7


def test_small_rises_say_nothing_about_a_large_one() -> None:
    store = Store(*[(10, 0.1, 0.16, 0) for _ in range(20)])
    assert chance(store, rise(60, 0.5), 60.0) == pytest.approx([0.5])


def share_by_hand(rows: list[tuple[int, float, float, int]], now: Rise, age: float, unseen: float) -> float:
    """Return the share of rises that last until an age. unseen: that of rises of a kind not seen yet."""
    shares = []
    for is_paced in (False, True):
        weights = []
        for lasted, low, top, refused in rows:
            pace = math.log((top - low) / lasted / now.pace) if is_paced else 0.0
            counts = refused > 0 or top - low >= 0.3 * (now.height - now.low)
            weights.append(counts * math.exp(-0.5 * (pace / 0.4) ** 2))
        harmless = [(weight, math.log(row[0])) for weight, row in zip(weights, rows, strict=True) if not row[3]]
        count = sum(weight for weight, _ in harmless)
        mean = sum(weight * log for weight, log in harmless) / max(count, 1e-9)
        variance = (0.12**2 + sum(weight * (log - mean) ** 2 for weight, log in harmless)) / (1 + count)
        width = min(0.3, max(0.012, 0.6 * math.sqrt(variance) * max(1.0, count) ** -0.2))
        lasting, total = 0.5 * unseen, 0.5
        for weight, (lasted, _, _, refused) in zip(weights, rows, strict=True):
            steep = min(50, math.log(age / lasted) * 1.7 / width)
            lasting += weight * (1.0 if refused else 1 / (1 + math.exp(steep)))
            total += weight
        shares.append(lasting / total)
    return 0.63 * shares[0] + 0.37 * shares[1]


def test_it_is_the_share_of_earlier_rises_that_lasted_as_long() -> None:
    """The formula of docs/forecast.md, rise by rise."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        rows = [
            (int(rng.integers(5, 400)), 0.1, float(rng.uniform(0.5, 1)), int(rng.integers(0, 2)))
            for _ in range(int(rng.integers(1, 9)))
        ]
        now, ahead = rise(float(rng.integers(1, 300)), float(rng.uniform(0.2, 1))), float(rng.uniform(1, 700))

        later = share_by_hand(rows, now, now.age + ahead, now.age / (now.age + ahead))
        expected = later / share_by_hand(rows, now, now.age, 1.0)
        assert chance(Store(*rows), now, ahead)[0] == pytest.approx(min(1.0, expected))


def test_more_time_is_never_more_probable() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        rows = [
            (int(rng.integers(5, 400)), float(rng.uniform(0, 0.5)), float(rng.uniform(0.5, 1)), int(rng.integers(0, 2)))
            for _ in range(int(rng.integers(0, RISES)))
        ]
        ahead = np.sort(rng.uniform(1, 700, 9))
        chances = chance(Store(*rows), rise(float(rng.integers(1, 300)), float(rng.uniform(0.2, 1))), *ahead)
        assert (np.diff(chances) <= 1e-12).all()
        assert ((chances >= 0) & (chances <= 1)).all()


def test_a_store_that_is_half_full_when_it_is_first_seen_has_no_rise_yet() -> None:
    story = Story()
    story.go_on(0.5, puts=1500, gets=0)
    tide = story.twin.tables.store.tides[TOTAL_TIDE]
    assert tide["began"] > 0
    assert story.foreseen() == []


def test_of_more_rises_than_are_kept_the_lowest_of_the_older_half_is_forgotten() -> None:
    story = Story()
    heights = [36 if number == 3 else 72 for number in range(RISES + 1)]
    for height in heights:
        story.go_on(4, puts=height, gets=0)
        story.go_on(3, puts=0, gets=height * 4 // 3)
    rises = story.twin.tables.store.rises[:RISES]
    tide = story.twin.tables.store.tides[TOTAL_TIDE]
    assert tide["rises"] == len(heights)
    climbs = rises["top"] - rises["low"]
    assert climbs.min() > 0.9 * climbs.max()  # the low one is gone


def test_the_evidence_counts_earlier_rises_and_names_the_silent_getters() -> None:
    story = Story()
    for _ in range(4):
        story.go_on(60, puts=10, gets=0)
        story.go_on(15, puts=10, gets=50)
    story.go_on(98, puts=10, gets=0)
    *_, last = [alert for alert in story.foreseen() if alert.change != "cleared"]
    text = "; ".join(last.evidence)
    assert "getters of A.QUEUE stopped" in text
    assert "4 earlier rises like this ended after" in text or "no earlier rise" in text


def test_where_gets_follow_the_backlog_it_comes_to_rest_below_full() -> None:
    """Puts rise to ten a tick, and 1 in 500 of what is held is got: it rests at 5,000 of 6,000 messages."""
    story = Story(forecast_lead_s=7200.0)
    story.go_on(20, puts=2, gets=2)
    for _ in range(60 * 6):
        held = int(story.state()["messages"])
        story.go_on(1 / 6, puts=10, gets=round(held / 500))
    assert [alert for alert in story.foreseen() if alert.severity != "info"] == []


def test_bursts_of_one_length_are_known_by_it_whatever_their_pace() -> None:
    """Each lasts ten minutes; this one, faster than any before, is full after five and a half."""
    store = Store((60, 0.0, 0.64, 0), (60, 0.0, 1.72, 0), (60, 0.0, 3.76, 0), (60, 0.0, 2.4, 0))
    [in_time, too_late] = chance(store, Rise(12.0, 0.0, 1.62, 1.0), 21.0, 60.0)
    assert in_time > 0.75
    assert too_late < 0.5


# -- a small data set beside a large structure


class DataSet(TwinDriver):
    """A structure whose messages all go to the data set of QM01, of 40 MB, which does not expand."""

    def __init__(self, size: str) -> None:
        rules = {"offld1_th": 0, "offld1_sz": 16 * KIB, "full_threshold": 0, "ds_expand": False}
        data_sets = {qmgr: data_set(size=40 * MIB) for qmgr in ("QM01", "QM02")}
        super().__init__(size=size, smds=data_sets, **rules)

    def go_on(self, minutes: float, puts: int, gets: int = 0, length: int = 30_000) -> None:
        """Apply a number of minutes with a number of puts and gets per tick."""
        for _ in range(round(minutes * 6)):
            self.time += TICK_US - self.time % TICK_US
            if puts:
                self.send("PUT", time=self.time + SECOND_US, count=puts, length=length)
            if gets:
                self.send("GET", time=self.time + 2 * SECOND_US, count=gets)
            self.send("HEARTBEAT", None, time=self.time + 3 * SECOND_US, store=self.name)

    def called(self) -> dict[str, float]:
        """Return the percentage in use of the data set at the first watch, and at the first page."""
        first: dict[str, float] = {}
        for alert in self.alerts:
            if alert.condition == "full-forecast" and alert.change != CLEARED:
                assert alert.resource == "smds/QM01"
                first.setdefault("watch" if alert.severity == INFO else "page", alert.usage_pct or 0.0)
        return first


@pytest.mark.parametrize(("puts", "length"), [(5, 30_000), (2, 70_000)])
def test_a_data_set_is_foreseen_as_early_whatever_the_size_of_the_structure_beside_it(puts: int, length: int) -> None:
    calls = {}
    for size in ("64M", "2G", "16G"):
        driver = DataSet(size)
        driver.go_on(48, puts, length=length)
        calls[size] = driver.called()
    assert calls["2G"] == calls["16G"]
    for level in ("watch", "page"):
        assert calls["2G"][level] == pytest.approx(calls["64M"][level], abs=5.0)


def test_rises_of_a_small_data_set_that_turned_are_remembered_over_a_restart() -> None:
    driver = DataSet("2G")
    for _ in range(5):
        driver.go_on(31, puts=5)  # up to 81 %
        driver.go_on(5, puts=0, gets=31)  # as many
    past = kept_rises(driver.twin.tables.store, driver.twin.qmgrs)
    assert [rise.data_set for rise in past] == ["QM01"] * 5
    assert all(0.7 < rise.top < 0.9 and rise.refused == 0 for rise in past)
    driver.reopen()
    before = len(driver.alerts)
    driver.go_on(30, puts=5)
    assert [alert for alert in driver.alerts[before:] if alert.severity != INFO] == [], "no page, as five have turned"
    driver.go_on(7, puts=5)
    assert "5 earlier rises like this ended" in "; ".join(driver.alerts[-1].evidence)


def test_a_small_data_set_does_not_end_the_rises_of_its_structure() -> None:
    driver = DataSet("2G")
    driver.go_on(20, puts=5)
    driver.go_on(5, puts=0, gets=40)
    tides = driver.twin.tables.store.tides
    assert (tides[TOTAL_TIDE]["rising"], tides[DATA_SETS]["apart"], tides[ENTRIES]["apart"]) == (0, 1, 0)
    assert kept_rows(driver.twin.tables.store).size == 0
    assert kept_rows(driver.twin.tables.store, DATA_SETS).size == 1


@pytest.mark.parametrize(
    ("share", "rises", "chance"),
    [(0.65, 3, 0.125), (0.8, 3, 0.5), (1.0, 3, 1.0), (0.8, 2, 0.0), (0.55, 3, 0.0), (0.5, 3, 0.0)],
)
def test_the_further_a_store_is_beyond_every_rise_it_knows_the_less_likely_it_turns_back(
    share: float, rises: int, chance: float
) -> None:
    store = Store(*[(140, 0.1, 0.5, 0) for _ in range(rises)])
    store.tides[ENTRIES]["rising"], store.tides[ENTRIES]["share"], store.tides[ENTRIES]["top"] = 1, share, share
    assert chance_beyond_past(store, ENTRIES) == pytest.approx(chance)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rising", "low", "share", "top", "is_past"),
    [
        (1, 0.1, 0.8, 0.8, True),
        (1, 0.1, 0.79, 0.79, False),
        (1, 0.1, 0.79, 0.81, True),  # the same rise as before, a little lower
        (1, 0.8, 0.9, 0.9, False),  # it began above
        (0, 0.1, 0.8, 0.8, False),
    ],
)
def test_a_rise_is_past_a_threshold_that_it_began_below(
    rising: int, low: float, share: float, top: float, is_past: bool
) -> None:
    store = Store()
    store.tides[ENTRIES] = store.tides[TOTAL_TIDE]
    for name, value in {"rising": rising, "began": 7, "low": low, "share": share, "top": top}.items():
        store.tides[ENTRIES][name] = value
    assert past_threshold(store, (ENTRIES,), 80) == (((ENTRIES, 7),) if is_past else ())  # type: ignore[arg-type]


@pytest.mark.parametrize("top", [1.0, 1.2])
def test_a_store_with_overfull_puts_is_full_whatever_its_rises_reached(top: float) -> None:
    store = Store(*[(140, 0.1, top, 0) for _ in range(3)])
    store.tides[ENTRIES]["rising"] = 1
    store.tides[ENTRIES]["share"] = store.tides[ENTRIES]["top"] = top + 0.1
    assert chance_beyond_past(store, ENTRIES) == 1.0  # type: ignore[arg-type]


def test_rises_turn_back_where_more_did_than_ended_in_2192() -> None:
    turned = (140, 0.1, 0.9, 0)
    refused = (141, 0.1, 1.0, 5)
    under_way = rise(100, 0.7)
    assert past_of(Store(turned), under_way).turns_back  # type: ignore[arg-type]
    assert not past_of(Store(turned, refused, refused), under_way).turns_back  # type: ignore[arg-type]
    assert not past_of(Store(), under_way).turns_back  # type: ignore[arg-type]
