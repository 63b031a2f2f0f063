"""The second stage, run by PySpark's own tester: the calls of Spark without a JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest
from pyspark.sql.streaming import TwsTester

from streams.plan import PackedPlan
from streams.query.decode_stage import decode_task
from streams.query.processor import TwinProcessor, open_twins
from streams.query.rows import FIGURES
from tests.streams.stage_help import SOURCE, as_json, plan, put, rows
from twin.events import Decoder
from twin.replays import Player

STORE = "QSG1/APP1"


def new_tester(packed: PackedPlan) -> TwsTester:
    open_twins.cache_clear()
    return TwsTester(TwinProcessor(packed))


def blocks_of(packed: PackedPlan, values: list[bytes], offset: int = 0, partition: int = 0) -> pd.DataFrame:
    """Return the rows of these records after the shuffle."""
    offsets = list(range(offset, offset + len(values)))
    batches = decode_task(packed, SOURCE, 0, [rows(values, partitions=[partition] * len(values), offsets=offsets)])
    return pd.concat([batch.to_pandas() for batch in batches])


def figure(frame: pd.DataFrame, name: str) -> int:
    """Return the sum of a figure over the rows, as the job observes it."""
    return sum(row[FIGURES.index(name)] for row in frame["figures"] if row is not None)


def records(frame: pd.DataFrame, topic: str) -> list[Any]:
    return [msgspec.json.decode(value) for value in frame["value"][frame["topic"] == topic]]


def replayed(packed: PackedPlan, values: list[bytes]) -> dict[str, Any]:
    """Return the states after those events, by the twin alone."""
    estate = packed.unpack().estate
    player = Player(estate)
    player.feed(Decoder(estate).json(values))
    return player.states()


def test_a_batch_gives_one_state_record(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    values = [as_json(put(n)) for n in range(10)]
    frame = new_tester(packed).testInPandas(STORE, blocks_of(packed, values))
    assert list(frame["topic"]) == ["mqtwin.state"]
    assert list(frame["key"]) == [STORE.encode()]
    assert records(frame, "mqtwin.state") == [replayed(packed, values)[STORE]]


def test_event_batches_are_applied_in_the_order_of_the_topic(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    values = [as_json(put(n)) for n in range(30)]
    parts = [blocks_of(packed, values[start : start + 10], start) for start in (20, 0, 10)]
    frame = new_tester(packed).testInPandas(STORE, pd.concat(parts))
    (state,) = records(frame, "mqtwin.state")
    assert state == replayed(packed, values)[STORE]
    assert figure(frame, "blocks") == 3


def test_state_survives_without_any_cache(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    values = [as_json(put(n)) for n in range(3000)]
    job = new_tester(packed)
    for start in range(0, 3000, 1000):
        open_twins.cache_clear()
        frame = job.testInPandas(STORE, blocks_of(packed, values[start : start + 1000], start))
    assert records(frame, "mqtwin.state") == [replayed(packed, values)[STORE]]
    assert figure(frame, "loaded") == 1


def test_only_touched_pages_are_written(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    job = new_tester(packed)
    job.testInPandas(STORE, blocks_of(packed, [as_json(put(n)) for n in range(20_000)]))
    frame = job.testInPandas(STORE, blocks_of(packed, [as_json(put(n)) for n in range(20_000, 20_010)], 20_000))
    assert figure(frame, "pages") < 12  # 20,000 messages take about 160 pages


def test_dead_letters_are_passed_on_with_their_headers(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    frame = new_tester(packed).testInPandas("#dlq/0", blocks_of(packed, [b"nonsense", b"[]"], 7, 2))
    assert list(frame["topic"]) == ["mqtwin.dlq"] * 2
    assert list(frame["value"]) == [b"nonsense", b"[]"]
    headers = [{header["key"]: header["value"] for header in row} for row in frame["headers"]]
    assert [(row["reason"], row["partition"], row["offset"], row["index"]) for row in headers] == [
        (b"not-json", b"2", b"7", b"0"),
        (b"not-an-object", b"2", b"8", b"0"),
    ]
    assert figure(frame, "dead_letters") == 2


def test_alerts_are_cloudevents_keyed_by_their_id(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    values = [as_json(put(n, length=60_000)) for n in range(800)]
    frame = new_tester(packed).testInPandas(STORE, blocks_of(packed, values))
    alerts = frame[frame["topic"] == "mqtwin.alerts"]
    assert len(alerts) == figure(frame, "alerts") > 0
    for key, value, headers in zip(alerts["key"], alerts["value"], alerts["headers"], strict=True):
        assert msgspec.json.decode(value)["data"]["alert_id"] == key.decode()
        assert headers == [{"key": "content-type", "value": b"application/cloudevents+json; charset=UTF-8"}]


def test_an_output_record_beyond_the_limit_of_its_topic_is_a_dead_letter(tmp_path: Path) -> None:
    packed = plan(tmp_path, state=100)
    frame = new_tester(packed).testInPandas(STORE, blocks_of(packed, [as_json(put(0))]))
    assert list(frame["topic"]) == ["mqtwin.dlq"]
    headers = {header["key"]: header["value"] for header in frame["headers"][0]}
    assert headers["reason"] == b"too-large"
    assert b"mqtwin.state" in headers["detail"] and b"max.message.bytes" in headers["detail"]


def test_figures_are_whole_numbers_on_the_first_row(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    frame = new_tester(packed).testInPandas(
        STORE, blocks_of(packed, [as_json(put(n, length=60_000)) for n in range(800)])
    )
    assert [type(number) for number in frame["figures"][0]] == [int] * len(FIGURES)
    assert list(frame["figures"][1:]) == [None] * (len(frame) - 1)
    assert len(frame) > 1
    assert figure(frame, "events") == 800


def test_an_unknown_store_is_an_error_with_its_name(tmp_path: Path) -> None:
    packed = plan(tmp_path)
    with pytest.raises(KeyError, match="QSG9/APP9"):
        new_tester(packed).testInPandas("QSG9/APP9", blocks_of(packed, [as_json(put(0))]))
