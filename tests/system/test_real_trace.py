"""A trace of 19,366 real requests through the whole stream, whose bursts cross the offload rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.cli import main
from tests.support.estates import TRACE_SERVICE_RATE, trace_estate
from tests.support.trace import import_trace
from tests.system.harness import Stream, by_id, read_topic
from twin.estate import Estate, load_estate
from twin.playback.replays import replay
from twin.records import read_state_record

pytestmark = [pytest.mark.system, pytest.mark.nightly]

REQUESTS = 19_366
STORE = "QSG1/LLM"


@pytest.fixture(scope="module")
def trace(shared: Path) -> Path:
    path = shared / "fixtures" / "traffic" / "AzureLLMInferenceTrace_conv.csv"
    if not path.is_file():
        pytest.skip(f"no trace {path}")
    return path


@pytest.mark.parametrize(("content_type", "max_records"), [("json", 8_000), ("arrow", None)])
def test_the_real_trace_gives_the_same_alerts_and_states(
    new_stream: Callable[[Estate], Stream],
    kafka: str,
    trace: Path,
    tmp_path: Path,
    content_type: str,
    max_records: int | None,
) -> None:
    described = trace_estate(tmp_path)
    estate = load_estate(described)
    recording = tmp_path / "trace.arrow"
    files = [str(recording), "--estate", str(described)]
    import_trace(trace, estate, recording, TRACE_SERVICE_RATE)
    stream = new_stream(estate)
    client = ["--bootstrap-servers", kafka, "--topic-prefix", stream.prefix]
    assert main(["publish", *files, *client, "--content-type", content_type, "--create-topics"]) == 0
    stream.run(max_records=max_records)

    replayed = replay(recording, estate)
    assert sum(figures["events"] for figures in stream.batches) == replayed.events
    assert stream.alerts() == by_id(replayed.alerts)
    assert stream.states() == replayed.states
    assert stream.letters() == []

    state = stream.states()[STORE]
    assert state.full_puts > 0  # the real system was full
    assert state.events == 2 * REQUESTS - state.full_puts
    assert state.messages == state.gaps == state.unmatched_gets == 0  # all were served
    assert state.smds["QM01"].blocks_total > 0
    opened = {(a["data"]["condition"], a["data"]["resource"]) for a in stream.alerts().values()}
    assert opened >= {("threshold", "elements"), ("full", "entries")}
    if max_records is not None:  # the states between batches show the bursts
        records = read_topic(kafka, stream.topics.state)
        between = [read_state_record(record.value) for record in records]
        assert max(state.offloaded_messages for state in between) > 0
        assert max(state.offload_rule for state in between) > 0
