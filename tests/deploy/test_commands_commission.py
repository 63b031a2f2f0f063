"""`mqtwin commission`: of a recording, of the topics of a job, and the block on its page of the docs."""

from __future__ import annotations

import re
import time
from pathlib import Path

import msgspec
import pytest

from deploy.cli import main
from deploy.commands.commission import commission_document
from deploy.show.document import page as html_page
from streams.kafka.present import read_latency, read_lateness
from streams.kafka.topics import Topics
from streams.query.status import JobStatus
from tests.streams.kafka_help import create, send
from tests.support.measured import simulate_measured, without_puts
from twin.playback.commission import Commission
from twin.playback.replays import replay
from twin.playback.verdicts import Fitness

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commission.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an estate, a good recording and one that lacks puts."""
    folder = tmp_path_factory.mktemp("site")
    without_puts(simulate_measured(folder), folder / "bad.ndjson", 0.05)
    return folder


def arguments(site: Path, *more: str) -> list[str]:
    return ["commission", "--estate", str(site / "estate.toml"), *more]


def test_the_verdict_the_reasons_and_the_page_of_a_recording(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    html = tmp_path / "report.html"
    bad = arguments(site, "--recording", str(site / "bad.ndjson"))
    assert main([*bad, "--html", str(html)]) == 1
    out = capsys.readouterr().out
    assert main([*bad, "--json"]) == 1
    report = msgspec.json.decode(capsys.readouterr().out, type=Commission)
    assert report.verdict == Fitness.UNFIT
    assert out.startswith("not fit: 2 stores, 2026-11-20 00:00 to ")
    for check in report.checks:
        assert check.reason in out and check.remedy in out
    page = html.read_text(encoding="utf-8")
    assert page == html_page(commission_document(report, "bad.ndjson"))
    assert page.count("<figure") == sum(bool(own.apart) for store in report.stores for own in store.fidelity)
    assert 'class="apart"' in page
    assert not re.search(r"(?:src|href)=", page)
    assert main(arguments(site, "--recording", str(site / "good.ndjson"))) == 0
    assert capsys.readouterr().out.startswith("fit: ")


def test_the_block_of_the_page_is_what_the_command_prints(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(site, "--recording", str(site / "bad.ndjson"))) == 1
    printed = capsys.readouterr().out.partition("\nnot shown\t")[0]
    (block,) = re.findall(
        r"^\$ mqtwin commission --recording [^\n]*\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert block == printed


def test_names_in_a_recording_cannot_write_html(site: Path, tmp_path: Path) -> None:
    report = msgspec.structs.replace(empty(site, tmp_path), silent_queue_managers=("<b>",))
    assert "<script>" not in html_page(commission_document(report, "<script>alert(1)</script>"))


def empty(site: Path, tmp_path: Path) -> Commission:
    from twin import commission

    path = tmp_path / "nothing.ndjson"
    path.write_text("", encoding="utf-8")
    return commission(path, site / "estate.toml")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ([], "expected: one of them"),
        (["--recording", "x.ndjson", "--bootstrap-servers", "localhost:9"], "expected: one of them"),
        (["--recording", "x.ndjson", "--status-file", "s"], "expected: --bootstrap-servers"),
        (["--recording", "x.txt"], ".ndjson"),
    ],
)
def test_wrong_use_is_one_line(site: Path, more: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(site, *more)) == 2
    error = capsys.readouterr().err
    assert expected in error and error.count("\n") == 1


def test_the_topics_of_a_job_give_latency_and_the_status_file_its_limits(
    site: Path, tmp_path: Path, kafka: str, topic_prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    topics, client = Topics(topic_prefix), ["--bootstrap-servers", kafka, "--topic-prefix", topic_prefix]
    estate = site / "estate.toml"
    publish = ["publish", str(site / "good.ndjson"), "--estate", str(estate), *client, "--create-topics"]
    assert main(publish) == 0
    states = replay(site / "good.ndjson", estate).states
    create(kafka, topics.state)
    send(kafka, topics.state, [msgspec.json.encode(state) for state in states.values()])
    capsys.readouterr()
    status = tmp_path / "status.json"
    figures = {"jvm_fds": 850, "fds_limit": 1000, "memory_used_bytes": 1, "memory_limit_bytes": 10}
    status.write_bytes(msgspec.json.encode(JobStatus(started_s=1.0, beat_s=4e9, behind=3, figures=figures)))
    assert main(arguments(site, *client, "--status-file", str(status), "--json")) == 0
    report = msgspec.json.decode(capsys.readouterr().out, type=Commission)
    assert report.verdict == Fitness.LIMITED
    assert report.job is not None and report.job.latency is not None and report.job.limits is not None
    assert report.job.latency == read_latency({"bootstrap.servers": kafka}, topics, 24.0)
    assert report.job.latency.records == sum(state.time is not None for state in states.values())
    assert [(use.noun, use.used, use.limit) for use in report.job.limits] == [
        ("descriptors of the JVM", 850, 1000),
        ("bytes of memory", 1, 10),
    ]
    limited = {check.subject for check in report.checks if check.verdict == Fitness.LIMITED}
    assert limited == {"job", "latency"}  # the events of the recording are history
    assert main(arguments(site, *client, "--status-file", str(tmp_path / "none"))) == 2


def test_the_interval_of_a_feed_is_how_much_later_its_events_are_known(kafka: str, topic_prefix: str) -> None:
    topics, client = Topics(topic_prefix), {"bootstrap.servers": kafka}
    assert read_lateness(client, topics, 24.0) is None
    create(kafka, topics.events)
    now_us = time.time_ns() // 1000
    ages_s = range(0, 900, 10)  # an interval of 15 minutes in slices
    event = {"qmgr": "QM01", "op": "GET", "queue": "ORDERS", "count": 5}
    events = [msgspec.json.encode({**event, "time": now_us - age_s * 1_000_000}) for age_s in ages_s]
    send(kafka, topics.events, [*events, b"no event"])
    lateness = read_lateness(client, topics, 24.0)
    assert lateness is not None
    assert lateness.records == len(events)
    assert abs(lateness.p50_s - 440) < 30
    assert abs(lateness.p99_s - 890) < 30


def test_a_topic_without_states_has_no_latency(kafka: str, topic_prefix: str) -> None:
    topics = Topics(topic_prefix)
    assert read_latency({"bootstrap.servers": kafka}, topics, 24.0) is None
    create(kafka, topics.state)
    send(kafka, topics.state, [b"no state record"])
    assert read_latency({"bootstrap.servers": kafka}, topics, 24.0) is None
