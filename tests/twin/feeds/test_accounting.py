"""Every line or object of an input is read, passed over or not understood; much of the last kind ends a command."""

from __future__ import annotations

import json

import pytest

from deploy.cli import main
from tests.twin.feeds.read import read
from tests.twin.feeds.samples import STATISTICS, envelope, json_text
from tests.twin.feeds.smf_made import queue_statistics, record
from tests.twin.feeds.test_live_formats import COLUMNS, NOON, answer, exposition, odp, report, structure
from tests.twin.feeds.test_otlp import as_json, span
from tests.twin.feeds.test_polls import QUEUE, camel, counts, mq_json
from twin.feeds import Intake, Page

SMF = record(216, [queue_statistics()])
OTHER_SMF = SMF[:5] + bytes([30]) + SMF[6:]
GOOD_SPAN = span(1, messaging__message__body__size=1, messaging__ibmmq__queue_manager="QM01")
KAFKA_SPAN = span(2, scope="kafka", messaging__system="kafka")
DYNAMIC_SPAN = span(
    3, queue="AMQ.0123456789ABCDEF", messaging__destination__temporary=True, messaging__ibmmq__queue_manager="QM01"
)
SMALL_SPAN = as_json(GOOD_SPAN)
CHANNEL = envelope(46, {"channelName": "TO.QM2"})
TOO_MANY = envelope(165, {**STATISTICS["eventData"], "queueStatisticsData": [{"queueName": "X", "puts": [1]}]})
OTHER_POINT = ("channel", {"qmgr": "QM01", "channel": "C"}, {"messages": 1.0})

# input -> (read, passed over, not understood)
CASES = {
    "smf": ([SMF + OTHER_SMF + SMF[:-4]], (1, 1, 1)),
    "amqsevt": ([json_text(STATISTICS, CHANNEL, TOO_MANY, {"a": 1}) + b'{"eventSource": tru}'], (1, 1, 3)),
    "otlp": (
        [b"\n".join([as_json(GOOD_SPAN, KAFKA_SPAN, DYNAMIC_SPAN), b"{}", b'{"resourceMetrics":[]}', b'{"x":'])],
        (1, 4, 1),
    ),
    "mq_json": ([mq_json(0, ("queue", QUEUE, camel(counts(1, 1))), OTHER_POINT) + b"noise\n"], (1, 1, 1)),
    "prometheus": ([exposition("gauge", 5, 4, 500) + b"go_threads 5\nibmmq_qmgr_uptime 3\n"], (5, 2, 0)),
    "odp": ([odp("lh_smds") + b"\n" + odp("other") + b"\n" + odp("qmq_lh") + b"\nnoise\n"], (0, 1, 3)),
    "dds": (
        [answer(report("CFACT", COLUMNS, structure(), structure("LOCK", CFAPTYPE="LOCK")), report("X", []))],
        (1, 1, 1),
    ),
    "m3": ([b'mvs_cf_storage_size_bytes{cf="CF01"} 5\nmvs_cpu_busy 3\n'], (1, 1, 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_passed_over_and_not_understood_is_all(site, name):
    pages, expected = CASES[name]
    _, intake = read(name, *(Page(page, f"page {i}", NOON) for i, page in enumerate(pages)), estate=site)
    (own,) = intake.inputs
    assert (own.read, own.passed_over, own.not_understood) == expected
    assert own.total == sum(expected)


def test_each_input_has_its_counts(site):
    _, intake = read("otlp", SMALL_SPAN, b'{"x": 1}', SMALL_SPAN, estate=site)
    assert intake.lines_for_inputs() == [
        "page 0: 1 line or object: 1 read, 0 passed over, 0 not understood",
        "page 1: 1 line or object: 0 read, 0 passed over, 1 not understood",
        "page 2: 1 line or object: 1 read, 0 passed over, 0 not understood",
    ]


@pytest.mark.parametrize(("bad", "is_said"), [(1, False), (2, True)])
def test_more_than_a_tenth_is_said_with_the_first_such_line(site, bad, is_said):
    good = [as_json(span(i, messaging__message__body__size=1)) for i in range(1, 11)]
    page = b"\n".join([*good[:3], *[b'{"some": "thing"}'] * bad, *good[3:]])
    _, intake = read("otlp", page, estate=site)
    text = (
        f'page 0: {bad} of {10 + bad} lines or objects not understood; the first, page 0 line 4: "{{"some": "thing"}}"'
    )
    text += ". Send that line, without what is confidential, to the issues of mqtwin, so that it will be read"
    assert intake.lines_for_not_understood() == ([text] if is_said else [])


@pytest.mark.parametrize(("name", "page"), [("otlp", b'{"resourceMetrics":[]}'), ("smf", OTHER_SMF)])
def test_a_file_of_other_things_is_understood(site, name, page):
    _, intake = read(name, page, estate=site)
    assert "nothing-read" in intake.counts
    assert intake.lines_for_not_understood() == []
    assert intake.inputs[0].passed_over == intake.inputs[0].total == 1


def test_of_an_input_that_is_no_text_the_complaint_stands_for_the_line(site):
    _, intake = read("smf", SMF[:-4], estate=site)
    (line,) = intake.lines_for_not_understood()
    assert "the first, page 0, byte 0: " in line
    assert line.isprintable()


def test_complaints_outside_of_inputs_are_no_lines_of_them():
    intake = Intake()
    intake.complain("foreign", "here", "what")
    assert intake.inputs == []


@pytest.fixture
def files(tmp_path):
    (tmp_path / "estate.toml").write_text(
        'schema = 1\n[queue_manager.QMD1]\nplatform = "distributed"\n[queue_file."QMD1/INVOICES"]\n'
    )
    (tmp_path / "events.json").write_bytes(json.dumps(STATISTICS).encode() + b'\n{"color": "blue"}\n')
    return tmp_path


@pytest.mark.parametrize("command", ["import", "start", "estate"])
def test_the_last_line_of_a_command_says_what_was_not_understood(files, capfd, command):
    events, estate = str(files / "events.json"), str(files / "estate.toml")
    main(
        {
            "import": ["import", "amqsevt", events, "-o", str(files / "rec.ndjson"), "--estate", estate],
            "start": ["start", events, estate, "-o", str(files / "site"), "--no-console"],
            "estate": ["estate", "import", f"amqsevt:{events}", "-o", str(files / "seen.toml")],
        }[command]
    )
    errors = capfd.readouterr().err.splitlines()
    assert "1 of 2 lines or objects not understood" in errors[-1]
    assert '"{"color": "blue"}"' in errors[-1]
    assert any(line.endswith("1 read, 0 passed over, 1 not understood") for line in errors)
