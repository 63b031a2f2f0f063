"""Traces of real requests as recordings."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.estates import TRACE_SERVICE_RATE, small_estate, trace_estate
from twin.errors import UsageError
from twin.estate import load_estate
from twin.events import from_table
from twin.playback.replays import replay
from twin.recordings.files import open_recording
from twin.simulation import Outcome
from twin.simulation.trace import Serving, import_trace

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"


class Importer:
    """Imports the lines of a trace; events and outcome of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "trace.csv"
        self.estate = load_estate(small_estate(folder))
        self.recording = folder / "trace.ndjson"

    def __call__(self, *lines: str, header: str = HEADER, **serving: Any) -> tuple[list[dict[str, Any]], Outcome]:
        self.file.write_text("\n".join((header, *lines)), encoding="utf-8")
        described = Serving(**{"queue": "ORDERS", "qmgr": "QM01", "service_rate": 10.0, **serving})
        outcome = import_trace(self.file, self.estate, self.recording, described)
        events: list[dict[str, Any]] = []
        for chunk in open_recording(self.recording):
            events += from_table(chunk.table(np.arange(len(chunk))))
        return events, outcome


@pytest.fixture
def imported(tmp_path: Path) -> Importer:
    return Importer(tmp_path)


def times_of(events: list[dict[str, Any]], op: str) -> list[str]:
    return [event["time"][11:23] for event in events if event["op"] == op]


def test_a_request_is_put_when_it_arrives_and_got_when_it_has_been_served(imported: Importer) -> None:
    events, outcome = imported("2023-11-16 18:15:46.6805900,374,44", get_qmgr="QM02")
    put, get = events
    assert (put["time"], put["op"], put["qmgr"], put["length"]) == ("2023-11-16T18:15:46.680590Z", "PUT", "QM01", 1496)
    assert (get["time"], get["op"], get["qmgr"]) == ("2023-11-16T18:15:51.080590Z", "GET", "QM02")
    assert get["msgid"] == put["msgid"]
    assert (put["queue"], put["seq"], get["queue"], get["seq"]) == ("ORDERS", 0, "ORDERS", 0)
    assert outcome.events == 2


def test_one_server_takes_them_one_after_the_other(imported: Importer) -> None:
    lines = ("2023-11-16 18:00:00.0,1,20", "2023-11-16 18:00:01.0,1,30", "2023-11-16 18:00:09.0,1,10")
    events, _ = imported(*lines)
    assert times_of(events, "GET") == ["18:00:02.000", "18:00:05.000", "18:00:10.000"]
    assert [event["op"] for event in events] == ["PUT", "PUT", "GET", "GET", "PUT", "GET"]


def test_several_servers_work_beside_each_other_and_may_end_in_another_order(imported: Importer) -> None:
    lines = ("2023-11-16 18:00:00.0,1,50", "2023-11-16 18:00:01.0,1,10", "2023-11-16 18:00:01.5,1,10")
    events, _ = imported(*lines, servers=2)
    gets = [event["msgid"] for event in events if event["op"] == "GET"]
    puts = [event["msgid"] for event in events if event["op"] == "PUT"]
    assert times_of(events, "GET") == ["18:00:02.000", "18:00:03.000", "18:00:05.000"]
    assert gets == [puts[1], puts[2], puts[0]]


def test_bytes_a_token_and_the_start_may_be_chosen(imported: Importer) -> None:
    lines = ("2023-11-16 18:00:00.5,101,1", "2023-11-16 18:00:02.5,10,1")
    events, _ = imported(*lines, bytes_per_token=2.5, start=1_795_132_800_000_000)
    assert [event["length"] for event in events if event["op"] == "PUT"] == [252, 25]
    assert [event["time"] for event in events if event["op"] == "PUT"] == [
        "2026-11-20T00:00:00.000000Z",
        "2026-11-20T00:00:02.000000Z",
    ]


def test_times_with_a_zone_other_columns_and_empty_lines_are_fine(imported: Importer) -> None:
    header = "GeneratedTokens,model,TIMESTAMP,ContextTokens"
    events, _ = imported(
        "10,m,2024-05-10 02:00:00.009930+02:00,7", "", "10,m,2024-05-10 00:00:01+00:00,7", "", header=header
    )
    assert times_of(events, "PUT") == ["00:00:00.009", "00:00:01.000"]


def test_a_request_that_does_not_fit_is_refused_and_not_served(imported: Importer) -> None:
    lines = [f"2023-11-16 18:{number // 60:02}:{number % 60:02}.0,25000,1000" for number in range(400)]
    events, outcome = imported(*lines)
    refused = [event for event in events if event["reason"] == 2192]
    stored = [event["msgid"] for event in events if event["op"] == "PUT" and event["reason"] == 0]
    gets = [event["msgid"] for event in events if event["op"] == "GET"]
    assert 0 < len(refused) == outcome.stores["QSG1/APP1"].refused
    assert len(stored) + len(refused) == 400
    assert gets == stored
    assert outcome.first_full is not None


def test_a_large_trace_comes_in_pieces_and_in_order(imported: Importer) -> None:
    lines = [
        f"2023-11-16 {18 + n // 36000:02}:{n // 600 % 60:02}:{n / 10 % 60:04.1f},{n % 900},1" for n in range(40_000)
    ]
    events, outcome = imported(*lines)
    assert outcome.events == 80_000
    assert all(first["time"] <= second["time"] for first, second in pairwise(events))
    assert [event["length"] for event in events if event["op"] == "PUT"] == [n % 900 * 4 for n in range(40_000)]


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (
            ["2023-11-16 18:00:00.5,1,1", "yesterday,1,1"],
            'line 3: TIMESTAMP is "yesterday"; expected: a time such as 2023',
        ),
        (
            ["1999-11-16 18:00:00.5,1,1"],
            'line 2: TIMESTAMP is "1999-11-16 18:00:00.5"; expected: a time .* 2000 to 2100',
        ),
        (["2023-11-16 18:00:00.5,1,1", "", "2023-11-16 18:00:00.4,1,1"], "line 4: TIMESTAMP .* not before the request"),
        (["2023-11-16 18:00:00.5,1,1", "2023-11-16 18:00:01Z,1,1"], "lines 2 to 3: TIMESTAMP has a time zone in some"),
        (
            ["2023-11-16 18:00:00.5,many,1"],
            'line 2: ContextTokens is "many"; expected: a whole number of tokens from 0',
        ),
        (["2023-11-16 18:00:00.5,-1,1"], 'line 2: ContextTokens is "-1"'),
        (
            ["2023-11-16 18:00:00.5,30000000,1"],
            'line 2: ContextTokens is "30000000"; expected: at most 26214400, as 4 bytes',
        ),
        (["2023-11-16 18:00:00.5,1,"], 'line 2: GeneratedTokens is ""; expected: a whole number'),
        (["2023-11-16 18:00:00.5,1,1.5"], 'line 2: GeneratedTokens is "1.5"'),
        (["2023-11-16 18:00:00.5,1,1", "2023-11-16 18:00:00.5,1"], "line 3: 2 columns; expected: 3, as in line 1"),
        ([], "has no requests; expected: a line of TIMESTAMP, ContextTokens, GeneratedTokens for each"),
    ],
    ids=["time", "year", "order", "zones", "word", "negative", "long", "empty", "fraction", "short", "none"],
)
def test_wrong_text_is_told_by_file_line_and_column(imported: Importer, lines: list[str], text: str) -> None:
    with pytest.raises(UsageError, match=text) as error:
        imported(*lines)
    assert str(imported.file) in str(error.value)
    assert "\n" not in str(error.value)
    assert not imported.recording.exists()


def test_the_line_is_right_in_a_large_file_too(imported: Importer) -> None:
    lines = ["2023-11-16 18:00:00.5,1,1"] * 80_000
    lines[70_000] = "2023-11-16 18:00:00.5,x,1"
    with pytest.raises(UsageError, match="line 70002: ContextTokens"):
        imported(*lines)
    lines[70_000] = "2023-11-16 18:00:00.5"
    with pytest.raises(UsageError, match="line 70002: 1 columns; expected: 3"):
        imported(*lines)


def test_a_column_that_is_missing_is_named(imported: Importer) -> None:
    with pytest.raises(
        UsageError, match="line 1: no column ContextTokens in TIMESTAMP, Context; expected: TIMESTAMP, Con"
    ):
        imported("2023-11-16 18:00:00.5,1", header="TIMESTAMP,Context")


@pytest.mark.parametrize(
    ("serving", "text"),
    [
        ({"service_rate": 0.0}, "the service rate is 0; expected: from 0.000001"),
        ({"service_rate": 1e-300}, "the service rate is 1e-300; expected: from 0.000001"),
        ({"service_rate": float("nan")}, "the service rate is nan"),
        ({"bytes_per_token": -1.0}, "the bytes per token is -1"),
        ({"servers": 0}, "there are 0 servers; expected: 1 to 1,000,000"),
        ({"servers": 10**12}, "servers; expected: 1 to 1,000,000"),
        ({"queue": "ORDER"}, "QM01 has no queue .ORDER."),
        ({"qmgr": "QM09"}, "there is no queue manager .QM09."),
        ({"get_qmgr": "QM09"}, "there is no queue manager .QM09."),
    ],
    ids=["rate", "least", "nan", "bytes", "servers", "many", "queue", "qmgr", "get-qmgr"],
)
def test_wrong_use_is_told(imported: Importer, serving: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        imported("2023-11-16 18:00:00.5,1,1", **serving)


def test_a_file_that_is_not_there_is_told(imported: Importer, tmp_path: Path) -> None:
    serving = Serving(queue="ORDERS", qmgr="QM01", service_rate=1.0)
    with pytest.raises(UsageError, match=r"none\.csv is not a file; expected: a CSV file"):
        import_trace(tmp_path / "none.csv", imported.estate, imported.recording, serving)


def test_the_bursts_of_the_real_trace_cross_all_offload_rules_and_run_out_of_entries(
    shared: Path, tmp_path: Path
) -> None:
    trace = shared / "fixtures" / "traffic" / "AzureLLMInferenceTrace_conv.csv"
    if not trace.exists():
        pytest.skip(f"no trace at {trace}")
    estate = load_estate(trace_estate(tmp_path))
    recording = tmp_path / "trace.arrow"
    serving = Serving(queue="ORDERS", qmgr="QM01", get_qmgr="QM02", service_rate=TRACE_SERVICE_RATE)
    outcome = import_trace(trace, estate, recording, serving)
    structure = outcome.stores["QSG1/LLM"]
    assert structure.puts == 19_366
    assert structure.offload_rule == 3
    assert 0 < structure.refused < 1_000
    assert outcome.events == 2 * 19_366 - structure.refused
    replayed = replay(recording, estate)
    state = replayed.states["QSG1/LLM"]
    assert state.full_puts == structure.refused
    assert (state.messages, state.unmatched_gets, state.gaps, state.overfull_puts) == (0, 0, 0, 0)
    assert {alert.resource for alert in replayed.alerts} >= {"entries", "elements"}
