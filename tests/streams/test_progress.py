"""The log line of a batch."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from structlog.testing import capture_logs

from streams.host.resources import Resources
from streams.log import configure_logging
from streams.query import job
from streams.query.progress import BatchLog, ClockSetBackError, batch_figures
from streams.query.rows import RESTARTED, BatchReport, RestartLog
from tests.support.estates import small_estate
from twin.base.errors import MqtwinError
from twin.estate import load_estate

REPORT = {
    "batchId": 7,
    "numInputRows": 12,
    "durationMs": {"addBatch": 250, "triggerExecution": 400, "queryPlanning": 40, "walCommit": 9, "commitOffsets": 8},
    "sources": [{"metrics": {"avgOffsetsBehindLatest": "3.0"}}],
    "stateOperators": [{"memoryUsedBytes": 4096, "commitTimeMs": 11}],
    "observedMetrics": {"mqtwin": {"events": 60, "dead_letters": 2, "stores": 1, "kept": 1, "pages": None}},
}


def report(**fields: Any) -> BatchReport:
    """Return Spark's report, with other fields, as the listener reads it."""
    return msgspec.json.decode(json.dumps(REPORT | fields), type=BatchReport)


def test_figures_have_readable_names() -> None:
    figures = batch_figures(report())
    assert (figures["batch"], figures["records"], figures["events"], figures["dead_letters"]) == (7, 12, 60, 2)
    assert (figures["behind"], figures["state_bytes"], figures["state_commit_ms"]) == (3, 4096, 11)
    assert (figures["batch_ms"], figures["run_ms"], figures["pages"]) == (400, 250, 0)


def test_a_report_without_data_has_no_figures_missing() -> None:
    assert batch_figures(BatchReport(0))["events"] == 0


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


def test_a_terminal_has_a_short_line_for_a_batch_and_all_figures_at_debug() -> None:
    out = io.StringIO()
    configure_logging(json_lines=False, stream=out)
    observed = {"events": 967_206, "alerts": 28}
    report = REPORT | {"observedMetrics": {"mqtwin": observed}, "durationMs": {"triggerExecution": 5400}}
    report |= {"sources": [{"metrics": {"avgOffsetsBehindLatest": "0.0"}}]}
    BatchLog().on_progress(json.dumps(report))
    (line,) = out.getvalue().splitlines()
    assert line.rstrip().endswith("batch 7  967,206 events in 5.4 s  28 alerts  0 behind")
    BatchLog().on_progress(json.dumps(REPORT))
    assert out.getvalue().splitlines()[1].rstrip().endswith("0 alerts  3 behind  2 dead letters")
    configure_logging(json_lines=False, stream=out, level="debug")
    BatchLog().on_progress(json.dumps(report))
    assert "state_bytes=4096" in out.getvalue().splitlines()[2]


def test_dead_letters_are_counted_by_reason_where_there_are_any() -> None:
    assert "dead_letter_reasons" not in batch_figures(report())
    observed = REPORT["observedMetrics"]["mqtwin"] | {"dlq_unknown_queue": 2, "dlq_bad_time": 0, "dlq_not_json": None}
    figures = batch_figures(report(observedMetrics={"mqtwin": observed}))
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


def test_a_batch_that_runs_for_long_is_a_warning_after_a_minute_and_after_twice_as_long() -> None:
    now_s = [0.0]
    log = BatchLog(monotonic=lambda: now_s[0])

    def warnings(seconds: float, is_running: bool) -> list[int]:
        now_s[0] = seconds
        with capture_logs() as logs:
            log.warn_if_slow(lambda: is_running)
        return [entry["seconds"] for entry in logs]

    assert warnings(59.0, True) == []
    assert warnings(61.0, True) == [61]
    assert warnings(100.0, True) == []
    assert warnings(121.0, True) == [121]
    log.on_progress(json.dumps(REPORT))
    assert warnings(180.0, True) == []
    assert warnings(190.0, False) == []  # it waits for records
    assert warnings(249.0, True) == []
    assert warnings(251.0, True) == [61]


@pytest.mark.parametrize(("wall_s", "ends"), [(4_000.0, False), (1_061.0, False), (1_055.0, False), (-2_539.0, True)])
def test_a_batch_that_runs_for_long_while_the_clock_was_set_back_ends_the_job(wall_s: float, ends: bool) -> None:
    now_s, at_s = [0.0], [1_000.0]
    log = BatchLog(monotonic=lambda: now_s[0], wall=lambda: at_s[0])
    now_s[0], at_s[0] = 30.0, wall_s - 31.0
    log.warn_if_slow(lambda: True)  # not slow yet
    now_s[0], at_s[0] = 61.0, wall_s
    expected = pytest.raises(MqtwinError, match=r"61 s, .* set back by 3539 s") if ends else contextlib.nullcontext()
    with expected:
        log.warn_if_slow(lambda: True)


def test_a_job_that_stands_still_since_the_clock_went_back_is_killed_as_it_would_not_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []

    class Stuck:
        session: Any = None

        def wait(self, _: object) -> None:
            raise ClockSetBackError("the system clock was set back")

        def stop(self) -> None:
            calls.append("stop")

    monkeypatch.setattr(job, "start_job", lambda *_, **__: Stuck())
    monkeypatch.setattr(job, "kill_java", lambda: calls.append("kill"))
    monkeypatch.setattr(job, "explain_java_exit", lambda: "it is gone" if calls else "")
    with pytest.raises(ClockSetBackError):
        job.run_job(None)  # type: ignore[arg-type] -- nothing of it is read
    assert calls == ["kill"]


def test_a_producer_that_starts_its_numbers_again_is_named_once(tmp_path: Path) -> None:
    estate = load_estate(small_estate(tmp_path))
    number = next(n for n, route in enumerate(estate.routes) if route.store == "QSG1/APP1" and route.qmgr == "QM02")
    observed = {"events": 60, "duplicates": 58, RESTARTED: number + 1}
    log = BatchLog(restarts=RestartLog(estate))
    with capture_logs() as logs:
        for _ in range(3):
            log.on_progress(json.dumps(REPORT | {"observedMetrics": {"mqtwin": observed}}))
        log.on_progress(json.dumps(REPORT))
    (warning,) = (entry for entry in logs if entry["log_level"] == "warning")
    assert (warning["store"], warning["qmgr"], warning["duplicates"]) == ("QSG1/APP1", "QM02", 58)
