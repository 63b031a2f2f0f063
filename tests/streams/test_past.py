"""The past of a job is that of a replay, wherever its batches end, its snapshots are, and a question is about."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.kafka import present
from streams.kafka.present import events_until, merged_until
from tests.streams.past_help import MemoryJob, MemoryReader, lines
from tests.support.profile import examples
from tests.support.shared import FILES, START_US, shared_estate
from twin.base.errors import UsageError
from twin.base.units import as_text
from twin.estate import Estate
from twin.events import Decoder
from twin.playback.replays import Player
from twin.records import StateRecord

QUEUES = {"QSG1/APP1": ("QM01", "ORDERS"), "QSG1/APP2": ("QM02", "INVOICES")}
QUEUES |= {name: (name.partition("/")[0], "REQUEST") for name in FILES}
STORES = sorted(QUEUES)
COUNT = 250


def events_of(seed: int, late_us: int = 20_000_000) -> list[list[dict[str, Any]]]:
    """Return events of five stores in two partitions, some of them a little late."""
    chance = random.Random(seed)
    partitions: list[list[dict[str, Any]]] = [[], []]
    for number in range(COUNT):
        store = chance.choice(STORES)
        qmgr, queue = QUEUES[store]
        late = chance.choice((0, 0, 0, late_us))
        event: dict[str, Any] = {"time": START_US + number * 3_000_000 - late, "qmgr": qmgr}
        if number % 50 == 49:
            event |= {"op": "HEARTBEAT", "store": store}
        else:
            op = chance.choice(("PUT", "PUT", "GET"))
            event |= {"op": op, "queue": queue, "length": chance.choice((200, 70_000, 4_000_000))}
        partitions[STORES.index(store) % 2].append(event)
    return partitions


def replayed(estate: Estate, partitions: list[list[dict[str, Any]]], time_us: int = 2**62) -> dict[str, StateRecord]:
    """Return the states of a replay of the whole stream up to a time."""
    decoder, player = Decoder(estate), Player(estate)
    for own in partitions:
        player.feed(decoder.json(lines([event for event in own if event["time"] <= time_us])))
    player.catch_up()
    return player.states()


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return shared_estate(tmp_path_factory.mktemp("past"))


def job_of(estate: Estate, seed: int, cuts: list[tuple[float, float, bool]], at_once: int = 7) -> MemoryJob:
    """Return a job that has processed events; cuts: shares of both partitions at batch ends."""
    job = MemoryJob(estate, [lines(own) for own in events_of(seed)], at_once=at_once)
    ends = [0, 0]
    for first, second, is_kept in [*cuts, (1.0, 1.0, False)]:
        ends = [
            max(end, round(share * len(own))) for end, share, own in zip(ends, (first, second), job.events, strict=True)
        ]
        job.run_batch(ends, is_kept=is_kept)
    return job


shares = st.floats(0, 1)


@settings(max_examples=examples(12), deadline=None)
@given(
    seed=st.integers(0, 5),
    cuts=st.lists(st.tuples(shares, shares, st.booleans()), max_size=6),
    at_once=st.sampled_from((1, 7, 1000)),
    share=shares,
)
def test_a_state_is_that_of_a_replay_up_to_the_time(estate: Estate, seed: int, cuts, at_once: int, share: float):
    job = job_of(estate, seed, sorted(cuts), at_once)
    time_us = START_US + round(share * COUNT * 3_000_000)
    expected = replayed(estate, events_of(seed), time_us)
    with job.past() as past:
        assert past.states(time_us) == expected
        for store in sorted(expected)[seed::3]:
            assert past.states(time_us, store) == {store: expected[store]}


def test_snapshots_and_reports_on_the_way_are_used(estate: Estate):
    """The case that the property is about, and what it costs: only the events since are read."""
    job = job_of(estate, 1, [(0.3, 0.3, True), (0.6, 0.6, True)])
    assert len(job.snapshots) == 2 and job.snapshots[1].offsets()["mqtwin.reports"][0] < len(job.reports)
    time_us = job.snapshots[1].time + 60_000_000
    with job.past() as past:
        assert past.states(time_us) == replayed(estate, events_of(1), time_us)
        assert past.begins()[1:] == [own.time for own in job.snapshots]
        job.first = 1  # Kafka has deleted the first record
        assert past.states(time_us) == replayed(estate, events_of(1), time_us)
        assert past.begins() == [own.time for own in job.snapshots]


def test_beyond_what_is_kept_there_is_one_line(estate: Estate):
    job = job_of(estate, 1, [(0.5, 0.5, True)])
    job.first = 1
    early = job.snapshots[0].time - 1
    with job.past() as past:
        reach = f"reach back to {as_text(job.snapshots[0].time)}; expected: a later time"
        with pytest.raises(UsageError, match=reach) as error:
            past.states(early)
        assert "\n" not in str(error.value)
        job.snapshots.clear()
        with pytest.raises(UsageError, match="reach to no time, as Kafka has deleted its begin; expected: "):
            past.states(early)
        job.first = 0
        with pytest.raises(UsageError, match="has no event of QSG1/APP1 until then; expected: a later time"):
            past.states(START_US - 10**9, "QSG1/APP1")


def test_a_store_ahead_of_a_snapshot_keeps_it_from_being_used(estate: Estate):
    """After a restart the job knows a store's clock only once it has events; the snapshot's time may be earlier."""
    job = job_of(estate, 2, [(0.5, 0.1, True)])
    (snapshot,) = job.snapshots
    job.snapshots[0] = snapshot._replace(time=snapshot.time - 300_000_000)
    time_us = snapshot.time - 200_000_000
    with job.past() as past:
        assert past.states(time_us) == replayed(estate, events_of(2), time_us)


def test_a_job_that_reads_spans_has_no_past(estate: Estate):
    job = job_of(estate, 1, [(0.5, 0.5, True)])
    (snapshot,) = job.snapshots
    job.snapshots[0] = snapshot._replace(places={**snapshot.places, "otlp_spans": {0: 5}})
    with job.past() as past, pytest.raises(UsageError, match="its job also reads otlp_spans; expected: "):
        past.states(snapshot.time)


@settings(max_examples=examples(6), deadline=None)
@given(
    seed=st.integers(0, 3),
    cut=shares,
    share=st.floats(0.4, 1),
    after=shares,
    at_once=st.sampled_from((1, 50)),
)
def test_every_moment_of_a_period_is_that_of_a_replay(
    estate: Estate,
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    cut: float,
    share: float,
    after: float,
    at_once: int,
):
    job = job_of(estate, seed, [(cut, cut, True)], at_once)
    end = START_US + round(share * COUNT * 3_000_000)
    with job.past() as past:
        begin = past.begins()[-1] if past.begins()[-1] < end else past.begins()[0]
        timeline = past.timeline(begin, end, tmp_path_factory.mktemp("period"))
    time_us = begin + round(after * (end - begin))
    expected = replayed(estate, events_of(seed), time_us)
    states = {name: timeline.twin_at(name, time_us) for name in estate.stores}
    assert {name: twin.state() for name, twin in states.items() if twin is not None} == expected


# --- restarts with another estate -----------------------------------------------------------------------------------


def changed(estate: Estate, **settings: Any) -> Estate:
    """Return the estate with other settings of its first structure."""
    config = estate.stores["QSG1/APP1"]
    return replace(estate, stores={**estate.stores, config.name: replace(config, **settings)})  # type: ignore[arg-type]


@pytest.mark.parametrize(("snapshots", "is_whole"), [((), True), ((0, 1), True), ((0, 2), False)])
def test_each_stretch_is_played_by_the_estate_of_its_time(
    estate: Estate, tmp_path: Path, snapshots: tuple[int, ...], is_whole: bool
):
    """Two estates, and the first again: what `state --at` says is what the job published, of every batch."""
    other = changed(estate, offld1_th=0, offld1_sz=0)
    events = events_of(3, late_us=0)
    job = MemoryJob(estate, [lines(own) for own in events], at_once=11, folder=tmp_path)
    published = {}
    for number, own in enumerate((estate, other, estate)):
        if number:
            job.restart(own)
        for part in (1, 2):
            time_us = START_US + COUNT * 3_000_000 * (2 * number + part) // 6
            ends = [sum(event["time"] <= time_us for event in records) for records in events]
            job.run_batch(ends, is_kept=part == 2 and number in snapshots)
            published[time_us] = job.states()
    if not is_whole and snapshots:
        job.first = 1
        published = {time_us: states for time_us, states in published.items() if time_us >= job.snapshots[0].time}
    for own in (estate, other):
        assert replayed(own, events) != published[time_us]
    for today in (estate, other):
        job.estate = today
        with job.past() as past:
            for time_us, states in published.items():
                for store in ("QSG1/APP1", FILES[0]):
                    assert past.states(time_us, store) == {store: states[store]}
    assert not job.warnings


def test_a_period_ends_at_a_change_of_the_estate(estate: Estate, tmp_path: Path):
    other = changed(estate, offld1_th=0, offld1_sz=0)
    job = MemoryJob(estate, [lines(own) for own in events_of(3)], folder=tmp_path)
    half = [len(own) // 2 for own in job.events]
    job.run_batch(half, is_kept=False)
    job.restart(other)
    job.run_batch([len(own) for own in job.events], is_kept=False)
    with job.past() as past:
        first, change = past.begins()
        assert change == max(event["time"] for own, end in zip(events_of(3), half, strict=True) for event in own[:end])
        until, since = past.timeline(first, change, tmp_path), past.timeline(change, change + 10**9, tmp_path)
    twins = [timeline.twin_at("QSG1/APP1", change + 10**12) for timeline in (until, since)]
    assert [own.config for own in twins if own is not None] == [own.stores["QSG1/APP1"] for own in (estate, other)]
    assert twins[1] is not None and twins[1].state() == job.states()["QSG1/APP1"]


def test_an_estate_that_was_not_kept_is_said(estate: Estate, tmp_path: Path):
    """Checkpoints of earlier versions have none, and a file may be gone."""
    job = MemoryJob(estate, [lines(own) for own in events_of(1)])
    job.folder = tmp_path
    half = [len(own) // 2 for own in job.events]
    job.run_batch(half, is_kept=False)
    job.restart(changed(estate, offld1_th=0))
    time_us, unknown = START_US + 10**9, f"{tmp_path} does not have the estate of the events before "
    with job.past() as past:
        past.states(time_us)
        place = f"mqtwin.events/0/{half[0]}, mqtwin.events/1/{half[1]}"
        assert job.warnings == [f"{unknown}{place}, which may have changed since: by today's"]
        for path in (tmp_path / "estates").iterdir():
            path.write_bytes(b"damaged")
        past.states(time_us)
        assert "(digest " in job.warnings[-1]
        past = replace(past, checkpoint=None)
        past.states(time_us)
    assert job.warnings[-1].startswith("without --checkpoint it is not known whether")


# --- how far a topic is read ----------------------------------------------------------------------------------------


def topic_of(*times: list[int]) -> list[list[bytes]]:
    return [
        lines(
            [
                {"time": START_US + time * 1_000_000, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 1}
                for time in own
            ]
        )
        for own in times
    ]


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_a_partition_is_read_until_enough_later_events(estate: Estate, monkeypatch: pytest.MonkeyPatch, at_once: int):
    monkeypatch.setattr(present, "LATER_EVENTS", 4)
    reader = MemoryReader(topic_of([1, 9, 9, 2, 9, 9, 9, 9, 3, *[9] * 50], [5, 6]), at_once)
    reader.start()
    times = [
        event for own in events_until(START_US + 6_000_000, reader, Decoder(estate)) for event in own.events["time"]
    ]
    assert sorted((int(time) - START_US) // 1_000_000 for time in times) == [1, 2, 5, 6]  # 3 comes too late
    assert reader.is_at_end and reader.reads <= 8 + at_once + 2


@settings(max_examples=examples(50), deadline=None)
@given(
    first=st.lists(st.integers(0, 50), max_size=40),
    second=st.lists(st.integers(0, 50), max_size=40),
    at_once=st.integers(1, 20),
    waiting=st.integers(0, 10),
)
def test_partitions_are_merged_by_time_and_keep_their_order(
    estate: Estate, first: list[int], second: list[int], at_once: int, waiting: int
):
    reader = MemoryReader(topic_of(first, second), at_once)
    reader.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(present, "MAX_WAITING", waiting)
        places = [
            (own.partition(), own.offset()) for group in merged_until(2**62, reader, Decoder(estate)) for own in group
        ]
    by_time: Iterator[tuple[int, int, int]] = (
        (max(own[: offset + 1]), number, offset)
        for number, own in enumerate((first, second))
        for offset in range(len(own))
    )
    assert places == [(number, offset) for _, number, offset in sorted(by_time)]
