"""The second stage, run by PySpark's own tester: the calls of Spark without a JVM."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType, SimpleNamespace

import msgspec
import pytest
from pyspark.sql import Row

from streams.plan import PackedPlan
from streams.query import processor
from streams.query.decode_stage import open_buckets
from streams.query.processor import open_twins
from streams.query.rows import FIGURES, pack_items, unpack_items
from tests.streams.stage_help import START_US, as_json, blocks_of, figure, new_tester, of_topic, plan, put
from twin.base.errors import MqtwinError, UsageError
from twin.events import Decoder
from twin.playback.replays import Player
from twin.records import StateRecord, read_state_record
from twin.stores import measurement
from twin.stores.message_store import MessageStore

STORE = "QSG1/APP1"
ROOT = Path(__file__).resolve().parents[2]
MAX_CALLS = 230  # of Python functions of mqtwin for a heartbeat, outside the tester


def states(output: list[Row]) -> list[StateRecord]:
    return [read_state_record(row.value) for row in of_topic(output, "mqtwin.state")]


def replayed(packed: PackedPlan, values: list[bytes]) -> dict[str, StateRecord]:
    """Return the states after those events, by the twin alone."""
    estate = packed.unpack().estate
    player = Player(estate)
    player.feed(Decoder(estate).json(values))
    return player.states()


def test_a_batch_gives_one_state_record(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    values = [as_json(put(n)) for n in range(10)]
    output = new_tester(packed).test(STORE, blocks_of(packed, values))
    assert [row.topic for row in output] == ["mqtwin.state"]
    assert [row.key for row in output] == [STORE.encode()]
    assert states(output) == [replayed(packed, values)[STORE]]


def test_event_batches_are_applied_in_the_order_of_the_topic(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    values = [as_json(put(n)) for n in range(30)]
    parts = [blocks_of(packed, values[start : start + 10], start) for start in (20, 0, 10)]
    output = new_tester(packed).test(STORE, [row for part in parts for row in part])
    (state,) = states(output)
    assert state == replayed(packed, values)[STORE]
    assert figure(output, "blocks") == 3


def test_state_survives_without_any_cache(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    values = [as_json(put(n)) for n in range(3000)]
    job = new_tester(packed)
    for start in range(0, 3000, 1000):
        open_twins.cache_clear()
        output = job.test(STORE, blocks_of(packed, values[start : start + 1000], start))
    assert states(output) == [replayed(packed, values)[STORE]]
    assert figure(output, "loaded") == 1


def test_rows_in_a_journal_survive_without_any_cache(tmp_path: Path) -> None:
    """Gets of any message of a backlog; the header says how many journals are written."""
    packed = plan(tmp_path)
    held = 20_000
    values = [as_json(put(n)) for n in range(held)]
    job = new_tester(packed)
    job.test(STORE, blocks_of(packed, values))
    for first in (0, 1, 2):
        open_twins.cache_clear()
        gets = [put(n) for n in range(first, held, 40)]
        gets = [{name: get[name] for name in ("qmgr", "queue", "msgid")} | {"op": "GET"} for get in gets]
        now = put(held + first)["time"]
        more = [as_json(get | {"time": now}) for get in gets]
        job.test(STORE, blocks_of(packed, more, len(values)))
        values += more
    open_twins.cache_clear()
    again = [as_json({"time": now, "qmgr": "QM01", "op": "GET", "queue": "ORDERS", "msgid": f"m{n}"}) for n in (0, 40)]
    output = job.test(STORE, blocks_of(packed, again, len(values)))  # they are gone
    values += again
    assert states(output) == [replayed(packed, values)[STORE]]


def test_only_touched_pages_are_written(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    job = new_tester(packed)
    job.test(STORE, blocks_of(packed, [as_json(put(n)) for n in range(20_000)]))
    output = job.test(STORE, blocks_of(packed, [as_json(put(n)) for n in range(20_000, 20_010)], 20_000))
    assert figure(output, "pages") < 12  # 20,000 messages take about 160 pages


HOUR = 3600 * 1_000_000


def restarted(output: list[Row]) -> list[int]:
    return [row.figures[len(FIGURES)] for row in output if row.figures is not None]


def test_a_producer_that_starts_its_numbers_again_is_named_by_its_route(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    job = new_tester(packed)
    estate = packed.unpack().estate
    output = job.test(STORE, blocks_of(packed, [as_json(put(n)) for n in range(200)]))
    assert (figure(output, "duplicates"), restarted(output)) == (0, [0])
    again = [put(n, time=put(n)["time"] + HOUR) for n in range(100)]
    output = job.test(STORE, blocks_of(packed, [as_json(event) for event in again], 200))
    (number,) = restarted(output)
    route = estate.routes[number - 1]
    assert figure(output, "duplicates") == 100
    assert (route.store, route.qmgr, route.queue) == (STORE, "QM01", "ORDERS")


def test_a_repeated_delivery_is_no_producer_that_starts_again(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    job = new_tester(packed)
    values = [as_json(put(n)) for n in range(200)]
    job.test(STORE, blocks_of(packed, values))
    output = job.test(STORE, blocks_of(packed, values, 200))
    assert (figure(output, "duplicates"), restarted(output)) == (200, [0])


def test_a_few_duplicates_among_new_events_are_no_producer_that_starts_again(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    job = new_tester(packed)
    job.test(STORE, blocks_of(packed, [as_json(put(n)) for n in range(200)]))
    few = [put(n, time=put(n)["time"] + HOUR) for n in range(40)]
    output = job.test(STORE, blocks_of(packed, [as_json(e) for e in [put(n) for n in range(200, 300)] + few], 200))
    assert (figure(output, "duplicates"), restarted(output)) == (40, [0])


def test_dead_letters_are_passed_on_with_their_headers(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    output = new_tester(packed).test("0", blocks_of(packed, [b"nonsense", b"[]"], 7, 2))
    assert [row.topic for row in output] == ["mqtwin.dlq"] * 2
    assert [row.value for row in output] == [b"nonsense", b"[]"]
    headers = [{header["key"]: header["value"] for header in row.headers} for row in output]
    assert [(row["reason"], row["partition"], row["offset"], row["index"]) for row in headers] == [
        (b"not-json", b"2", b"7", b"0"),
        (b"not-an-object", b"2", b"8", b"0"),
    ]
    assert figure(output, "dead_letters") == 2


@pytest.mark.parametrize("is_cached", [True, False])
def test_an_event_at_which_the_twin_raises_is_a_dead_letter_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cached: bool
) -> None:
    """The same letters and states as without Spark, whether the twin is in memory or in the state store."""
    take = measurement._take_over

    def raising(store, measured, new_fields, holding):
        alerts = take(store, measured, new_fields, holding)
        if measured.get("messages") == 13:
            raise OverflowError("too large")
        return alerts

    monkeypatch.setattr(measurement, "_take_over", raising)
    packed = plan(tmp_path)
    poison = {"time": put(20)["time"], "qmgr": "QM01", "op": "MEASURE", "store": STORE}
    poison |= {"measured": {"messages": 13, "resync": True}}
    values = [as_json(put(n)) for n in range(30)]
    poisoned = [*values[:20], as_json(poison), *values[20:], as_json(poison)]
    job = new_tester(packed)
    job.test(STORE, blocks_of(packed, poisoned[:10]))
    if not is_cached:
        open_twins.cache_clear()
    output = job.test(STORE, blocks_of(packed, poisoned[10:], 10, 3))
    assert states(output) == [replayed(packed, values)[STORE]]
    assert (figure(output, "events"), figure(output, "dead_letters")) == (20, 2)
    letters = of_topic(output, "mqtwin.dlq")
    headers = [{header["key"]: header["value"].decode() for header in row.headers} for row in letters]
    places = [(row["reason"], row["topic"], row["partition"], row["offset"], row["index"]) for row in headers]
    assert places == [("undecodable", "mqtwin.events", "3", offset, "0") for offset in ("20", "31")]
    player = Player(packed.unpack().estate)
    player.feed(Decoder(packed.unpack().estate).json(poisoned))
    rejects = player.drain_rejects()
    assert [(row["detail"], letter.value) for row, letter in zip(headers, letters, strict=True)] == [
        (reject.detail, reject.value) for reject in rejects
    ]


def test_an_error_that_no_event_causes_fails_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [RuntimeError("once")]
    apply = MessageStore.apply

    def raising(self, *arguments, **named):
        if failures:
            raise failures.pop()
        return apply(self, *arguments, **named)

    monkeypatch.setattr(MessageStore, "apply", raising)
    packed = plan(tmp_path)
    with pytest.raises(RuntimeError, match="once"):
        new_tester(packed).test(STORE, blocks_of(packed, [as_json(put(0))]))


def test_alerts_are_cloudevents_keyed_by_their_id(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    values = [as_json(put(n, length=60_000)) for n in range(800)]
    output = new_tester(packed).test(STORE, blocks_of(packed, values))
    alerts = of_topic(output, "mqtwin.alerts")
    assert len(alerts) == figure(output, "alerts") > 0
    for alert in alerts:
        assert msgspec.json.decode(alert.value)["data"]["alert_id"] == alert.key.decode()
        assert alert.headers == [{"key": "content-type", "value": b"application/cloudevents+json; charset=UTF-8"}]


def test_an_output_record_beyond_the_limit_of_its_topic_is_a_dead_letter(tmp_path: Path) -> None:
    packed = plan(tmp_path, state=100)
    output = new_tester(packed).test(STORE, blocks_of(packed, [as_json(put(0))]))
    assert [row.topic for row in output] == ["mqtwin.dlq"]
    headers = {header["key"]: header["value"] for header in output[0].headers}
    assert headers["reason"] == b"too-large"
    assert b"mqtwin.state" in headers["detail"] and b"max.message.bytes" in headers["detail"]


def test_figures_are_whole_numbers_on_the_first_row(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    output = new_tester(packed).test(STORE, blocks_of(packed, [as_json(put(n, length=60_000)) for n in range(800)]))
    assert [type(number) for number in output[0].figures] == [int] * (len(FIGURES) + 2)
    assert [row.figures for row in output[1:]] == [None] * (len(output) - 1)
    assert len(output) > 1
    assert figure(output, "events") == 800


def test_an_unknown_store_is_an_error_with_its_name(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    items = unpack_items(blocks_of(packed, [as_json(put(0))]))
    (row,) = pack_items("0", 0, 1, [msgspec.structs.replace(item, store="QSG9/APP9") for item in items])
    with pytest.raises(UsageError, match="QSG9/APP9"):
        new_tester(packed).test("0", [Row(*row)])


def test_the_stores_of_a_bucket_have_a_state_each_and_one_row_of_figures(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    queues = {"ORDERS": "QSG1/APP1", "AUDIT": "QSG1/APP2"}
    values = [as_json(put(n, queue)) for n, queue in enumerate([*queues] * 10)]
    job = new_tester(packed)
    first = job.test("0", blocks_of(packed, values[:10]))
    open_twins.cache_clear()
    output = job.test("0", blocks_of(packed, values[10:], 10))
    assert {state.store: state for state in states(output)} == replayed(packed, values)
    assert [row.key.decode() for row in output] == sorted(queues.values())
    assert [row.figures is None for row in output] == [False, True]
    assert [figure(first, name) for name in ("stores", "new", "events", "blocks")] == [2, 2, 10, 2]
    assert [figure(output, name) for name in ("stores", "loaded", "events", "blocks")] == [2, 2, 10, 2]


def test_a_bucket_in_a_partition_without_its_state_fails_the_batch(tmp_path: Path, monkeypatch) -> None:
    packed = plan(tmp_path, partitions=4)
    (row,) = blocks_of(packed, [as_json(put(0))])
    partition = open_buckets(packed).partition_of(row["store"])
    for other in range(4):
        context = SimpleNamespace(partitionId=lambda number=other: number, getLocalProperty=lambda _: None)
        monkeypatch.setattr(processor.TaskContext, "get", lambda context=context: context)
        if other == partition:
            assert new_tester(packed).test(row["store"], [row])
        else:
            with pytest.raises(MqtwinError, match=f"bucket {row['store']} of 4 state partitions came to .* {other};"):
                new_tester(packed).test(row["store"], [row])


@pytest.mark.parametrize("puts", [0, 1])
def test_a_heartbeat_takes_few_calls_of_python_and_of_kernels(tmp_path: Path, puts: int) -> None:
    packed, calls = plan(tmp_path), Counter[str]()
    heartbeat = {"qmgr": "QM01", "op": "HEARTBEAT", "store": STORE}
    job = new_tester(packed)
    if puts:
        job.test(STORE, blocks_of(packed, [as_json(put(0))]))

    def count(frame: FrameType, event: str, _: object) -> None:
        folder = Path(frame.f_code.co_filename).parent
        if event == "call" and folder.parent.parent == ROOT and folder.parent.name in ("twin", "streams"):
            calls["python"] += 1
        elif event == "call" and folder == ROOT / "kernels":
            calls[frame.f_code.co_name] += 1

    for number in range(1, 4):
        rows = blocks_of(packed, [as_json(heartbeat | {"time": START_US + number * 10_000_000})], number)
        calls.clear()
        sys.setprofile(count)
        try:
            (state,) = states(job.test(STORE, rows))
        finally:
            sys.setprofile(None)
        assert state.events == number + puts
    assert calls["python"] < MAX_CALLS
    assert calls["__call__"] <= (6 if puts else 3)
