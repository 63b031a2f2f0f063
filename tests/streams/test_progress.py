"""The log line of a batch."""

from __future__ import annotations

import io
import json
import os

import structlog

from streams.log import configure_logging
from streams.progress import BatchLog, batch_figures
from streams.resources import Resources

REPORT = {
    "batchId": 7,
    "numInputRows": 12,
    "durationMs": {"addBatch": 250, "triggerExecution": 400, "queryPlanning": 40, "walCommit": 9, "commitOffsets": 8},
    "sources": [{"metrics": {"avgOffsetsBehindLatest": "3.0"}}],
    "stateOperators": [{"memoryUsedBytes": 4096, "commitTimeMs": 11}],
    "observedMetrics": {"mqtwin": {"events": 60, "dead_letters": 2, "stores": 1, "kept": 1, "pages": None}},
}


def test_figures_are_named_for_a_person() -> None:
    figures = batch_figures(REPORT)
    assert (figures["batch"], figures["records"], figures["events"], figures["dead_letters"]) == (7, 12, 60, 2)
    assert (figures["behind"], figures["state_bytes"], figures["state_commit_ms"]) == (3, 4096, 11)
    assert (figures["batch_ms"], figures["run_ms"], figures["pages"]) == (400, 250, 0)


def test_a_report_without_data_has_no_figures_missing() -> None:
    assert batch_figures({"batchId": 0})["events"] == 0


def test_every_batch_with_data_is_one_json_line() -> None:
    out = io.StringIO()
    configure_logging(json_lines=True, stream=out)
    seen: list[dict] = []
    log = BatchLog(seen.append)
    log.progressed(json.dumps(REPORT))
    log.progressed(json.dumps({"batchId": 8, "numInputRows": 0}))
    (line,) = out.getvalue().splitlines()
    assert json.loads(line)["events"] == 60
    assert [figures["batch"] for figures in seen] == [7]


def test_stores_without_room_in_the_mirror_are_warned_of_once() -> None:
    out = io.StringIO()
    configure_logging(json_lines=True, stream=out)
    log = BatchLog()
    short = REPORT | {"observedMetrics": {"mqtwin": {"events": 60, "stores": 9, "unmirrored": 4}}}
    for report in (REPORT, short, short):
        log.progressed(json.dumps(report))
    entries = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [entry["unmirrored"] for entry in entries if entry["event"] == "batch"] == [0, 4, 4]
    (warning,) = (entry for entry in entries if entry["level"] == "warning")
    assert warning["stores"] == 4
    assert "spark.local.dir" in warning["do"]


def test_the_line_of_a_batch_tells_what_the_processes_use() -> None:
    out = io.StringIO()
    configure_logging(json_lines=True, stream=out)
    BatchLog(resources=Resources(os.getpid())).progressed(json.dumps(REPORT))
    entry = json.loads(out.getvalue().splitlines()[0])
    assert entry["jvm_fds"] > 0
    assert entry["jvm_rss_bytes"] > 0


def test_secrets_do_not_reach_the_log() -> None:
    out = io.StringIO()
    configure_logging(json_lines=True, stream=out)
    structlog.get_logger().info("start", kafka={"sasl.jaas.config": "hush", "client.id": "x"}, password="hush")
    assert "hush" not in out.getvalue()
    assert json.loads(out.getvalue())["kafka"]["client.id"] == "x"
