"""Live collection: sources, position, and what reaches the events topic."""

from __future__ import annotations

import base64
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from deploy.cli import main
from streams.collecting import collect as collecting
from streams.collecting.collect import ComplaintLetters, Statistics, collect
from streams.collecting.http import HttpClient, RequestError, check_url
from streams.collecting.sources import (
    HttpSource,
    Position,
    load_position,
    save_position,
)
from tests.streams.kafka_help import create, everything, send
from tests.support.estates import facility_estate
from tests.tools.fuzz.pages import records
from tests.twin.feeds import rounds
from tests.twin.feeds.smf_made import queue_statistics, record, segmented
from twin.base.errors import UsageError
from twin.estate import load_estate
from twin.feeds import FORMATS, FeedOptions, Intake, Page, make_feed
from twin.feeds.prometheus import metric_requests, range_requests
from twin.feeds.protocol import Asked
from twin.feeds.rmf import dds_requests

NOON = 1_795_176_000_000_000
LIVE = sorted(name for name, own in FORMATS.items() if own.is_live)
ROOT = Path(__file__).resolve().parents[2]
ALTERABLE = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[structure."QSG1/APP1"]
size = "1G"
offload = "SMDS"
cf_level = 5
offld1_th = {}
[queue."QSG1/ORDERS"]
structure = "APP1"
"""


@pytest.fixture(scope="module")
def estate_file(tmp_path_factory):
    return facility_estate(tmp_path_factory.mktemp("estate"), "1G")


@contextmanager
def server(answers, certificate=None):
    """Serve (status, body) by path; yield the address and the requests that came, each (path, headers)."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append((self.path, dict(self.headers)))
            status, body = answers(self.path)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    listener = ThreadingHTTPServer(("localhost", 0), Handler)
    if certificate is not None:
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        listener.socket = context.wrap_socket(listener.socket, server_side=True)
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        scheme = "http" if certificate is None else "https"
        yield f"{scheme}://localhost:{listener.server_port}", requests
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


class KeepingWriter:
    """A writer that keeps the events."""

    def __init__(self):
        self.events = []
        self.letters = []
        self.flushes = 0

    def write(self, events):
        self.events += events

    def send_letter(self, letter):
        self.letters.append(letter)

    def flush(self):
        self.flushes += 1


class Scripted:
    """A source of given pages."""

    name = "scripted"
    is_ended = False
    is_asked = False

    def __init__(self, *pages):
        self.pages = list(pages)
        self.page_count = 0

    def read(self):
        return [self.pages.pop(0)] if self.pages else []

    def note_taken(self, _page, _feed):
        self.page_count += 1

    def note_events(self, events):
        pass

    def position(self, _feed):
        return Position(source=self.name, offsets={"0": self.page_count})


_DDS_TIME = "%Y%m%d%H%M%S"


def dds_report(second=0, elements=3, end=None, **columns):
    end = end or datetime(2026, 11, 20, 12, 0, second, tzinfo=UTC)
    row = {
        "CFAPSTRU": "QSG1APP1",
        "CFAPTYPE": "LIST",
        "CFAPSTAT": "A",
        "CFAPSYS": "*ALL",
        "CFAILEL": "9",
        "CFAILEM": str(elements),
        **columns,
    }
    return {
        "report": [
            {
                "columnHeaders": {"col": [{"type": "T", "value": name} for name in row]},
                "metric": {"id": "CFACT"},
                "row": [{"refno": 1, "col": list(row.values())}],
                "timeData": {"utcStart": f"{end - timedelta(minutes=1):{_DDS_TIME}}", "utcEnd": f"{end:{_DDS_TIME}}"},
            }
        ]
    }


# --- position --------------------------------------------------------------------------------------------------------


def test_a_position_is_read_back_and_belongs_to_its_source(tmp_path):
    path = tmp_path / "p.json"
    assert load_position(path, "t") == Position(source="t")
    position = Position(source="t", offsets={"0": 5}, read={"0": 7}, passed=9)
    save_position(path, position)
    assert load_position(path, "t") == position
    with pytest.raises(UsageError, match=r"is of t; expected: other"):
        load_position(path, "other")
    path.write_text("{")
    with pytest.raises(UsageError, match=r"expected: a file that mqtwin collect wrote"):
        load_position(path, "t")
    with pytest.raises(UsageError, match="cannot be written"):
        save_position(tmp_path / "none" / "p.json", position)


# --- HTTP ------------------------------------------------------------------------------------------------------------


def test_a_password_or_token_is_read_from_its_file_and_sent(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    with server(lambda _: (200, b"ok")) as (url, requests):
        HttpClient(user="mona", password_file=secret).get(url, "text/plain")
        HttpClient(token_file=secret).get(url, "text/plain")
        HttpClient().get(url, "text/plain")
    sent = [headers.get("Authorization") for _, headers in requests]
    assert sent == ["Basic " + base64.b64encode(b"mona:s3cret").decode(), "Bearer s3cret", None]


def test_certificates_are_verified(tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with server(lambda _: (200, b"ok"), authority.issue_cert("localhost")) as (url, _):
        assert HttpClient(ca_file=tmp_path / "ca.pem").get(url, "text/plain")[0] == b"ok"
        with pytest.raises(RequestError, match="certificate"):
            HttpClient().get(url, "text/plain")


@pytest.mark.parametrize("status", [401, 404, 500, 302])
def test_another_status_is_an_error_without_the_query(status):
    with server(lambda _: (status, b"")) as (url, requests), pytest.raises(RequestError) as raised:
        HttpClient().get(f"{url}/a?secret=1", "text/plain")
    assert f"/a answers {status}" in str(raised.value)
    assert "secret" not in str(raised.value)
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "cobol",
            f"cobol: no such format; expected: {', '.join(LIVE)}",
        ),
        ("smf", "smf comes through Kafka; expected: --topic, that it is written to, --follow or -"),
        ("prometheus", "prometheus is asked for by HTTP; expected: --url"),
        ("rest", "rest is asked for by HTTP; expected: --url"),
        ("rest --url http://127.0.0.1:9", "no queue manager to ask; expected: --qmgr QM01,QM02"),
        ("rest --url h", "--url h; expected: http://HOST:PORT or https://HOST:PORT"),
        (
            "rest --url http://127.0.0.1:9 --qmgr A,B-1",
            "--qmgr B-1; expected: the name of a queue manager, such as QM01",
        ),
        (
            "rest --url http://127.0.0.1:9 --qmgr A --queues A*B",
            "--queues A*B; expected: a name, or the beginning of names and *, such as 'APP*'",
        ),
        (
            "rest --url http://127.0.0.1:9 --qmgr A --token-login",
            "--token-login needs a user; expected: --user and --password-file",
        ),
        (
            "rest --url http://127.0.0.1:9 --qmgr A --user u",
            "--user and --password-file belong together; expected: both or none",
        ),
    ],
)
def test_a_format_that_cannot_be_collected_is_wrong_use(name, text, estate_file, tmp_path, capsys):
    words = ["--estate", str(estate_file), "--position", str(tmp_path / "p"), "--bootstrap-servers", "127.0.0.1:9"]
    assert main(["collect", *name.split(), *words]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"mqtwin: {text}"


def test_options_that_contradict_each_other_are_refused(tmp_path):
    foreign = tmp_path / "foreign"
    foreign.write_text("tokén", encoding="utf-8")
    for options in (
        {"token_file": foreign},  # a header takes ASCII only
        {"user": "u"},
        {"password_file": tmp_path},
        {"token_file": tmp_path / "none"},
        {"ca_file": tmp_path / "none"},
    ):
        with pytest.raises(UsageError, match="expected"):
            HttpClient(**options)
    for url in ("localhost:8803", "ftp://h/x", "http://", "http://u:p@h/"):
        with pytest.raises(UsageError, match="expected") as raised:
            check_url(url)
        assert ":p@" not in str(raised.value)
    for host in ("h", "h.site", "10.1.2.3", "[2001:db8::1]", "localhost.site"):
        with pytest.raises(UsageError, match="would send a secret in clear; expected: https, or --allow-http"):
            check_url(f"http://{host}:1", has_secret=True)
        assert check_url(f"https://{host}:1", has_secret=True) and check_url(f"http://{host}:1")
    for host in ("localhost", "127.0.0.1", "127.1.2.3", "[::1]"):
        assert check_url(f"http://{host}:1", has_secret=True)


def test_rmf_is_asked_for_both_reports_and_an_outage_is_a_complaint(estate_file):
    state = {"up": False}

    def answers(path):
        if not state["up"]:
            return 503, b""
        return 200, json.dumps(dds_report() if "CFACT" in path else {"report": []}).encode()

    complaints = []
    with server(answers) as (url, requests):
        source = HttpSource(
            url,
            HttpClient(),
            dds_requests(Asked(url, 0.01, "PLEX1")),
            0.01,
            Position(source=url),
            lambda *c: complaints.append(c),
        )
        assert source.read() == []
        state["up"] = True
        time.sleep(0.02)
        pages = source.read()
    assert complaints == [
        ("no-answer", url, "/gpm/rmfm3.xml answers 503 Service Unavailable; asked again in 0.01 s"),
    ]
    assert [path for path, _ in requests[1:]] == [
        f"/gpm/rmfm3.xml?report={name}&resource=%2CPLEX1%2CSYSPLEX" for name in ("CFACT", "CFOVER")
    ]
    assert requests[1][1]["Accept"] == "application/json"
    intake = Intake(load_estate(estate_file))
    feed = make_feed("dds", intake)
    events = [event for page in pages for event in intake.account(feed.take(page))]
    assert [event["measured"] for event in events] == [{"ents_max": 9, "ents_used": 3}]


def test_prometheus_is_asked_from_the_last_end_on():
    requests = range_requests("http://p:9090/", "up", 30.0, 3600.0)
    second = 1_000_000
    [_, (url, _)] = requests(NOON, NOON + 95 * second)
    assert url.startswith("http://p:9090/api/v1/query_range?query=up&start=2026-11-20T12%3A00%3A30Z&")
    assert "&end=2026-11-20T12%3A01%3A30Z&step=30" in url
    assert requests(NOON, NOON + 29 * second) == []
    [_, (url, _)] = requests(0, NOON)
    assert "start=2026-11-20T11%3A00%3A00Z" in url


# --- collection ------------------------------------------------------------------------------------------------------


def test_one_bad_page_does_not_end_the_collection(tmp_path, estate_file, monkeypatch):
    monkeypatch.setattr(collecting, "_SAVE_SECONDS", 0.0)
    intake = Intake(load_estate(estate_file))
    feed = make_feed("dds", intake, FeedOptions())
    good = [Page(json.dumps(dds_report(second)).encode(), f"page {second}") for second in (0, 1)]
    source, writer, complaints = Scripted(good[0], Page(b"\xff", "bad"), good[1]), KeepingWriter(), []
    collect(
        source,
        feed,
        intake,
        writer,
        tmp_path / "p.json",
        stop=lambda: source.page_count == 3,
        on_complaint=complaints.append,
    )
    assert [event["store"] for event in writer.events] == ["QSG1/APP1"] * 2
    assert [(complaint.code, complaint.place) for complaint in complaints] == [("unreadable", "bad")]
    (letter,) = (own for own in writer.letters if own.reason != "lacks")  # the report has few columns
    assert (letter.reason, letter.topic, letter.partition, letter.offset) == ("unreadable", "scripted", -1, -1)
    assert letter.value == b"\xff"
    assert letter.detail.startswith("bad: ")
    assert load_position(tmp_path / "p.json", "scripted").offsets == {"0": 3}
    assert writer.flushes


def test_a_restarted_collector_announces_exactly_what_has_changed(tmp_path):
    """While it was down a definition changed back; the estate, which the job takes over, may have changed, too."""
    path, number = tmp_path / "estate.toml", itertools.count()

    def run(*percentages, in_estate=70):
        path.write_text(ALTERABLE.format(in_estate))
        intake = Intake(load_estate(path))
        answers = [("QM01", rounds.STRUCTURES, rounds.body(rounds.structure(offld1th=own))) for own in percentages]
        pages = [page for own in answers for page in rounds.pages(own, start=NOON + next(number))]
        source, writer = Scripted(*pages), KeepingWriter()
        collect(
            source,
            make_feed("rest", intake),
            intake,
            writer,
            tmp_path / "p.json",
            stop=lambda: source.page_count == len(pages),
            on_complaint=print,
        )
        return [event["attributes"]["offld1_th"] for event in writer.events]

    assert run(60, 60) == [60]
    assert run(60) == []
    assert run(70, 70) == [70]
    assert run(50) == [50]
    assert run(50, in_estate=50) == []  # `mqtwin start --live` has written it anew
    assert run(70, in_estate=50) == [70]
    assert run(70, in_estate=40) == [70]  # the job took the new 40 of the estate


def test_a_page_is_scraped_with_the_time_of_its_collection():
    with server(lambda _: (200, b"x 1\n")) as (url, _):
        source = HttpSource(
            "n", HttpClient(), metric_requests(Asked(url + "/metrics", 5.0)), 5.0, Position(source="n"), print
        )
        before = time.time_ns() // 1000
        (page,) = source.read()
    assert page.data == b"x 1\n"
    assert before <= page.time <= time.time_ns() // 1000
    assert source.position(make_feed("m3", Intake())).time == page.time


def spans(*numbers, second=0):
    return json.dumps(
        {
            "resourceSpans": [
                {
                    "scopeSpans": [
                        {
                            "scope": {"name": "z/OS OTel"},
                            "spans": [
                                {
                                    "traceId": f"{number:032x}",
                                    "spanId": f"{number:016x}",
                                    "kind": 4,
                                    "endTimeUnixNano": str((NOON + second * 1_000_000 + number) * 1000),
                                    "attributes": [
                                        {"key": "messaging.destination.name", "value": {"stringValue": "ORDERS"}},
                                        {"key": "messaging.system", "value": {"stringValue": "ibmmq"}},
                                        {"key": "messaging.message.body.size", "value": {"intValue": str(number)}},
                                    ],
                                }
                                for number in numbers
                            ],
                        }
                    ]
                }
            ]
        }
    ).encode()


def test_many_complaints_of_a_code_are_few_dead_letters_that_count_them(estate_file):
    intake = Intake(load_estate(estate_file))
    sent, later, now = [], [], [0.0]
    letters = ComplaintLetters(intake, "spans", sent.append, lambda: now[0], later.append)
    page = Page(b"x", "spans/3@7", headers={"kafka.partition": "3", "kafka.offset": "7"})
    for number in range(200):
        now[0] = number
        intake.complain("no-size", f"place {number}", "tells no size")
        intake.complain("late", "here", "is late") if number == 5 else None
        letters.send_new(page)
    letters.send_new()
    assert [letter.reason for letter in sent if letter.reason != "no-size"] == ["late"]
    details = [letter.detail for letter in sent if letter.reason == "no-size"]
    assert details[0] == "place 0: tells no size"
    assert [detail.partition(":")[0] for detail in details[20:]] == ["place 79", "place 139", "place 199"]
    assert details[-1].endswith("(200 such complaints so far)")
    assert [str(complaint).partition(":")[0] for complaint in later] == ["place 79", "place 139", "place 199"]
    assert {(letter.partition, letter.offset, letter.value) for letter in sent} == {(3, 7, b"x")}


def test_an_option_that_is_missing_is_said_and_no_dead_letter(estate_file):
    """It comes up at each start, and no data are wrong."""
    intake, sent = Intake(load_estate(estate_file)), []
    letters = ComplaintLetters(intake, "rest", sent.append)
    intake.complain("no-zone", "here", "its times are local; expected: --zone")
    intake.complain("bad-value", "there", "is none")
    letters.send_new(Page(b"a whole answer", "https://mqweb"))
    assert [letter.reason for letter in sent] == ["bad-value"]
    assert intake.counts["no-zone"] == 1


def test_an_unknown_name_is_one_dead_letter(estate_file):
    intake = Intake(load_estate(estate_file))
    intake.facts.add("queue", "QSG1/ORDERZ", "DISPLAY", structure="APP1")
    sent = []
    letters = ComplaintLetters(intake, "spans", sent.append)
    for _ in range(3):
        event = {"time": NOON, "qmgr": "QM01", "op": "GET", "queue": "ORDERZ"}
        assert not [*intake.sift([event])]
        letters.send_new()
    assert [letter.reason for letter in sent] == ["unknown-name"]
    line = '[queue."QSG1/ORDERZ"] structure = "APP1"'
    assert f"QM01/ORDERZ is not in the estate; expected: {line} there, as mqtwin estate import" in sent[0].detail


def test_a_page_of_many_unknown_names_is_sent_once(estate_file):
    intake = Intake(load_estate(estate_file))
    sent = []
    letters = ComplaintLetters(intake, "mqweb", sent.append)
    for number in range(3):
        intake.note_unknown("QM01", NOON, queue=f"NEW.{number}")
    letters.send_new(Page(b"answer", "https://mqweb"))
    assert [(letter.value, letter.length) for letter in sent] == [(b"answer", 6), (b"", 6), (b"", 6)]


class Running:
    """A running `mqtwin collect` of a format with its options."""

    def __init__(self, kafka, prefix, words, estate_file, position):
        self._log = position.with_suffix(".log")
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "deploy", "collect", *words, "--create-topics"),
                    *("--estate", str(estate_file), "--position", str(position)),
                    *("--bootstrap-servers", kafka, "--topic-prefix", prefix),
                ],
                cwd=ROOT,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    @property
    def text(self):
        return self._log.read_text()

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(60)


def lengths(kafka, prefix):
    events = [json.loads(message.value()) for message in everything(kafka, f"{prefix}.events")]
    return [event["length"] for event in events]


def wait_for(condition, running):
    deadline = time.monotonic() + 90
    while not condition():
        assert running.process.poll() is None, running.text
        assert time.monotonic() < deadline, running.text
        time.sleep(0.1)


@pytest.mark.system
@pytest.mark.nightly
def test_spans_from_kafka_are_events_once_across_a_stop_and_a_crash(kafka, topic_prefix, tmp_path, estate_file):
    topic, position = f"{topic_prefix}.spans", tmp_path / "position.json"
    words = ("otlp", "--late", "5", "--topic", topic)
    create(kafka, topic)
    create(kafka, f"{topic_prefix}.events")
    send(kafka, topic, [spans(1), b"\xff noise", spans(2, second=10), spans(2, second=10), spans(3, second=20)])
    running = Running(kafka, topic_prefix, words, estate_file, position)
    wait_for(lambda: position.is_file() and json.loads(position.read_bytes())["read"] == {"0": 5}, running)
    assert lengths(kafka, topic_prefix) == [1, 2]  # the third is held back
    assert "unreadable" in running.text
    (letter, twice) = everything(kafka, f"{topic_prefix}.dlq")
    assert letter.value() == b"\xff noise"
    headers = {name: value.decode() for name, value in letter.headers()}
    assert headers["reason"] == "unreadable"
    assert (headers["topic"], headers["partition"], headers["offset"]) == (topic, "0", "1")
    assert dict(twice.headers())["reason"] == b"duplicate"
    assert running.end(signal.SIGKILL) == -signal.SIGKILL
    send(kafka, topic, [spans(4, second=40)])
    running = Running(kafka, topic_prefix, words, estate_file, position)
    wait_for(lambda: len(lengths(kafka, topic_prefix)) == 3, running)
    assert running.end(signal.SIGTERM) == 0, running.text
    assert lengths(kafka, topic_prefix) == [1, 2, 3, 4]
    send(kafka, topic, [spans(5, second=50)])
    running = Running(kafka, topic_prefix, words, estate_file, position)
    wait_for(lambda: json.loads(position.read_bytes())["read"] == {"0": 7}, running)
    assert running.end(signal.SIGTERM) == 0, running.text
    assert lengths(kafka, topic_prefix) == [1, 2, 3, 4, 5]
    keys = {message.key() for message in everything(kafka, f"{topic_prefix}.events")}
    assert keys == {b"QSG1/APP1"}


@pytest.mark.system
@pytest.mark.nightly
def test_what_is_not_whole_at_a_stop_or_a_crash_is_read_once(kafka, topic_prefix, tmp_path, estate_file):
    topic, position = f"{topic_prefix}.smf", tmp_path / "position.json"
    create(kafka, topic)
    create(kafka, f"{topic_prefix}.events")
    parts = [
        part
        for minute in range(3)
        for part in records(
            segmented(record(216, [queue_statistics(gets=minute + 1)], end=NOON + minute * 60_000_000), 200, 400)
        )
    ]

    def run():
        return Running(kafka, topic_prefix, ("smf", "--slice-s", "3600", "--topic", topic), estate_file, position)

    def counts():
        events = [json.loads(message.value()) for message in everything(kafka, f"{topic_prefix}.events")]
        return [event["count"] for event in events if event["op"] == "GET"]

    def is_read(number):
        return position.is_file() and json.loads(position.read_bytes())["read"] == {"0": number}

    send(kafka, topic, parts[:5])
    running = run()
    wait_for(lambda: is_read(5), running)
    assert counts() == [1]
    assert json.loads(position.read_bytes())["offsets"] == {"0": 3}
    assert running.end(signal.SIGKILL) == -signal.SIGKILL
    send(kafka, topic, parts[5:7])
    running = run()
    wait_for(lambda: is_read(7), running)
    assert running.end(signal.SIGTERM) == 0, running.text
    assert counts() == [1, 2]
    send(kafka, topic, parts[7:])
    running = run()
    wait_for(lambda: is_read(9), running)
    assert running.end(signal.SIGTERM) == 0, running.text
    assert counts() == [1, 2, 3]
    assert "segments" not in running.text


def test_a_changed_recording_of_statistics_scales_spans_and_the_share_is_kept(tmp_path, estate_file, monkeypatch):
    monkeypatch.setattr(collecting, "_SAVE_SECONDS", 0.0)
    estate = load_estate(estate_file)
    counts, position_file, sentences = tmp_path / "counts.ndjson", tmp_path / "p.json", []
    quarter = 900

    def page(window):
        numbers = range(window * 100 + 1, window * 100 + 21)
        return Page(spans(*numbers, second=window * quarter), f"page {window}")

    def run(statistics, *pages):
        intake = Intake(estate)
        source, writer = Scripted(*pages), KeepingWriter()
        collect(
            source,
            make_feed("otlp", intake, FeedOptions(late_s=0.0)),
            intake,
            writer,
            position_file,
            statistics=statistics,
            stop=lambda: source.page_count == len(pages),
            on_complaint=lambda _: None,
        )
        return writer.events

    statistics = Statistics(counts, estate, {}, sentences.append)
    assert len(run(statistics, page(0), page(1), page(2))) == 60
    assert load_position(position_file, "scripted").coverage == {}
    counts.write_text("nothing\n")
    assert len(run(statistics, page(3))) == 20
    assert sentences[0].endswith("the coverage stays as it was")
    event = {
        "time": NOON + quarter * 1_000_000,
        "qmgr": "QM01",
        "op": "PUT",
        "queue": "ORDERS",
        "length": 5,
        "count": 60,
    }
    counts.write_text(json.dumps(event) + "\n")
    scaled = run(statistics, page(4))
    assert sum(event.get("count", 1) for event in scaled) == 60
    assert "coverage 33.3 %" in sentences[1]
    known = load_position(position_file, "scripted").coverage
    assert known == {"QSG1/APP1\tORDERS\tPUT": (20, 60)}
    again = run(Statistics(tmp_path / "none.ndjson", estate, known, sentences.append), page(5))
    assert sum(event.get("count", 1) for event in again) == 60


def test_what_a_live_input_lacks_is_a_complaint_and_a_letter_before_its_end(tmp_path, estate_file):
    """Metrics of which one half of the names is known: a page has 20 queues, and the collector runs on."""
    intake = Intake(load_estate(estate_file))
    lines = [f'ibmmq_queue_mqget_count{{qmgr="QM01",queue="Q{i}"}} 5' for i in range(20)]
    pages = [Page("\n".join([*lines, ""]).encode(), f"page {i}", NOON + i * 30_000_000) for i in range(2)]
    source, writer, complaints = Scripted(*pages), KeepingWriter(), []
    collect(
        source,
        make_feed("prometheus", intake, FeedOptions()),
        intake,
        writer,
        tmp_path / "p.json",
        stop=lambda: source.page_count == len(pages),
        on_complaint=complaints.append,
    )
    [complaint] = [own for own in complaints if own.code == "lacks"]
    assert complaint.text == "20 queues: 20 without depth, 20 without puts, so it is not known; expected: each has it"
    assert [letter.reason for letter in writer.letters].count("lacks") == 1
