"""The log line of a batch."""

from __future__ import annotations

import io
import json
import os

import structlog

from streams.host.resources import Resources
from streams.log import configure_logging
from streams.query.progress import BatchLog, batch_figures
from twin.errors import MqtwinError

REPORT = {
    "batchId": 7,
    "numInputRows": 12,
    "durationMs": {"addBatch": 250, "triggerExecution": 400, "queryPlanning": 40, "walCommit": 9, "commitOffsets": 8},
    "sources": [{"metrics": {"avgOffsetsBehindLatest": "3.0"}}],
    "stateOperators": [{"memoryUsedBytes": 4096, "commitTimeMs": 11}],
    "observedMetrics": {"mqtwin": {"events": 60, "dead_letters": 2, "stores": 1, "kept": 1, "pages": None}},
}


def test_figures_have_readable_names() -> None:
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
    log.on_progress(json.dumps(REPORT))
    log.on_progress(json.dumps({"batchId": 8, "numInputRows": 0}))
    (line,) = out.getvalue().splitlines()
    assert json.loads(line)["events"] == 60
    assert [figures["batch"] for figures in seen] == [7]


def test_dead_letters_are_counted_by_reason_where_there_are_any() -> None:
    assert "dead_letter_reasons" not in batch_figures(REPORT)
    observed = REPORT["observedMetrics"]["mqtwin"] | {"dlq_unknown_queue": 2, "dlq_bad_time": 0, "dlq_not_json": None}
    figures = batch_figures(REPORT | {"observedMetrics": {"mqtwin": observed}})
    assert figures["dead_letter_reasons"] == {"unknown-queue": 2}


def test_the_batch_that_runs_again_after_a_kill_has_the_figure_behind() -> None:
    """Spark did not ask Kafka for the end of the topic, so the metrics of the source are empty."""
    source = {"metrics": {}, "endOffset": {"mqtwin.events": {"0": 10, "1": 20}, "mqtwin.reports": {"0": 5}}}
    ends = {"mqtwin.events": {0: 40, 1: 80}, "mqtwin.reports": {0: 5}}
    seen: list[dict] = []
    BatchLog(seen.append, ends=lambda topic: ends[topic]).on_progress(json.dumps(REPORT | {"sources": [source]}))
    assert seen[0]["behind"] == 30
    assert list(seen[0])[:3] == ["batch", "records", "behind"]


def test_a_kafka_that_does_not_answer_the_question_for_behind_is_a_warning() -> None:
    out = io.StringIO()
    configure_logging(json_lines=True, stream=out)

    def ends(_topic: str) -> dict[int, int]:
        raise MqtwinError("no Kafka answers")

    source = {"metrics": {}, "endOffset": {"mqtwin.events": {"0": 10}}}
    BatchLog(ends=ends).on_progress(json.dumps(REPORT | {"sources": [source]}))
    warning, batch = map(json.loads, out.getvalue().splitlines())
    assert (warning["level"], warning["why"]) == ("warning", "no Kafka answers")
    assert batch["event"] == "batch" and "behind" not in batch


def test_stores_without_room_in_the_mirror_are_one_warning() -> None:
    out = io.StringIO()
    configure_logging(json_lines=True, stream=out)
    log = BatchLog()
    short = REPORT | {"observedMetrics": {"mqtwin": {"events": 60, "stores": 9, "unmirrored": 4}}}
    for report in (REPORT, short, short):
        log.on_progress(json.dumps(report))
    entries = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [entry["unmirrored"] for entry in entries if entry["event"] == "batch"] == [0, 4, 4]
    (warning,) = (entry for entry in entries if entry["level"] == "warning")
    assert warning["stores"] == 4
    assert "spark.local.dir" in warning["do"]


def test_the_line_of_a_batch_has_the_resources_of_the_processes() -> None:
    out = io.StringIO()
    configure_logging(json_lines=True, stream=out)
    BatchLog(resources=Resources(os.getpid())).on_progress(json.dumps(REPORT))
    entry = json.loads(out.getvalue().splitlines()[0])
    assert entry["jvm_fds"] > 0
    assert entry["jvm_rss_bytes"] > 0


def test_secrets_do_not_reach_the_log() -> None:
    out = io.StringIO()
    configure_logging(json_lines=True, stream=out)
    structlog.get_logger().info("start", kafka={"sasl.jaas.config": "hush", "client.id": "x"}, password="hush")
    assert "hush" not in out.getvalue()
    assert json.loads(out.getvalue())["kafka"]["client.id"] == "x"
