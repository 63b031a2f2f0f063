"""Files from which nothing, or not all, is read: each ends with the reason."""

from __future__ import annotations

import gzip
import json
import struct

import pytest

from tests.twin.feeds.read import read, total
from tests.twin.feeds.samples import PAGES, REST, SYSPRINT
from tests.twin.feeds.smf_made import END, MINUTE, data_set, queue_statistics, record, section, segmented
from tests.twin.feeds.test_otlp import as_json, span
from twin.feeds import FORMATS, Page
from twin.feeds.importing import describe_file, import_files
from twin.feeds.smf_layout import QIS1, QPST

NOON = 1_795_176_000_000_000
FIRST = record(216, [queue_statistics()])
SECOND = record(216, [queue_statistics()], end=END + MINUTE)
FILES = [name for name, form in FORMATS.items() if form.is_file]


def other_type(number=30):
    data = bytearray(FIRST)
    data[5] = number
    return bytes(data)


def blocked(*records, is_large=False):
    """Return records in a block with its descriptor word."""
    body = b"".join(records)
    length = len(body) + 4
    return (struct.pack(">I", length | 1 << 31) if is_large else struct.pack(">HH", length, 0)) + body


def reason(intake):
    """Return the text of the complaint that nothing was read."""
    (text,) = [complaint.text for complaint in intake.complaints if complaint.code == "nothing-read"]
    return text


# --- blocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_large", [False, True])
def test_block_descriptor_words_are_read_over(estate, is_large):
    data = blocked(other_type(), FIRST, is_large=is_large) + blocked(SECOND, is_large=is_large)
    events, intake = read("smf", data, estate=estate)
    assert total(events, "PUT") == 200
    assert intake.complaints == []
    assert intake.lines_for_passed_over() == [f"1 record of other types, {len(FIRST):,} bytes (1 of SMF 30)"]


def test_segments_in_several_blocks_are_put_together(estate):
    pieces = segmented(FIRST, 300)
    events, intake = read("smf", blocked(SECOND, pieces[:300]) + blocked(pieces[300:]), estate=estate)
    assert (total(events, "PUT"), intake.complaints) == (200, [])


@pytest.mark.parametrize("cut", [10, len(SECOND)])
def test_a_block_cut_by_the_end_of_the_file_is_read_as_far_as_it_goes(estate, cut):
    events, intake = read("smf", blocked(FIRST) + blocked(FIRST, SECOND)[:-cut], estate=estate)
    assert total(events, "PUT") == 100
    assert dict(intake.counts) == {"copy": 1, "truncated": 1}


def test_a_record_cut_by_the_end_of_the_file_is_truncated(estate):
    for data in (FIRST + SECOND[:-10], FIRST + SECOND[:6], FIRST[:-10]):
        _, intake = read("smf", data, estate=estate)
        assert intake.counts["truncated"] == 1
        assert intake.counts["foreign"] == 0


# --- what is passed over, and what it looks like ---------------------------------------------------------------------


def test_records_of_other_types_are_counted_by_type_with_their_bytes(estate):
    data = other_type(30) + FIRST + other_type(70) + other_type(30)
    _, intake = read("smf", data, estate=estate)
    assert intake.lines_for_passed_over() == [
        f"3 records of other types, {3 * len(FIRST):,} bytes (2 of SMF 30, 1 of SMF 70)"
    ]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "an empty file"),
        (gzip.compress(FIRST), "a gzip file"),
        (other_type(), "SMF records of type 30"),
        (blocked(other_type(30), other_type(42)), "SMF records of types 30, 42"),
        (FIRST.decode("cp037").encode("latin-1"), "SMF translated to ASCII"),
        (FIRST[4:].decode("cp037").encode("latin-1"), "SMF translated to ASCII"),
        (FIRST.decode("cp037").encode(), "SMF translated to ASCII"),
        (SYSPRINT.encode("cp037"), "EBCDIC text"),
        ("".join(line.ljust(133) for line in SYSPRINT.splitlines()).encode("cp037"), "in records of 133 bytes"),
        (b'{"resourceSpans": []}', 'JSON with "resourceSpans"'),
        (b"<html><body>401</body></html>", "HTML or XML"),
        (b"Dear colleague,\nhere is the file", 'text that begins with "Dear colleague,"'),
        (b"\x01\x02\xff\xfe\x80" * 9, "01 02 ff fe"),
    ],
)
def test_of_a_file_without_records_of_mq_it_is_said_what_it_looks_like(estate, data, words):
    events, intake = read("smf", data, estate=estate)
    assert events == []
    assert words in reason(intake)
    assert "expected: SMF 115 or 116" in reason(intake)


def test_a_translated_file_is_to_be_transferred_in_binary():
    assert "in binary, with quote site rdw" in describe_file(FIRST.decode("cp037").encode("latin-1"))


def test_records_of_mq_look_like_what_they_are():
    assert describe_file(FIRST) == "SMF records of type 115"
    assert describe_file(FIRST[4:]) == "SMF records of type 115, without record descriptor words"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("data", [gzip.compress(b"x" * 500, mtime=0), b"Dear colleague,\nhere it is", b"[]", b""])
def test_no_format_reads_nothing_without_a_reason(estate, name, data):
    events, intake = read(name, Page(data, "file", NOON), estate=estate, qmgr="QM01")
    assert events == []
    assert "it looks like" in reason(intake)


@pytest.mark.parametrize("length", [80, 121, 132, 133])
def test_ebcdic_records_of_one_length_are_lines(estate, length):
    text = "".join(line.ljust(length)[:length] for line in SYSPRINT.splitlines()).encode("cp037")
    events, intake = read("display", Page(text, "log", NOON), estate=estate)
    assert [event["store"] for event in events] == ["QM01/PS04", "QSG1/APP1"]
    assert intake.counts == {"no-time": 1}


def test_ebcdic_without_lines_is_a_complaint(estate):
    text = "".join(SYSPRINT.splitlines()).encode("cp037") + b"\xc1\xc2"
    _, intake = read("display", Page(text, "log", NOON), estate=estate)
    assert intake.counts["no-lines"] == 1


def test_an_import_of_facts_only_says_that_they_are_of_an_estate(estate, tmp_path):
    text = "CSQM201I QM01 CSQMDRTC  DISPLAY QMGR DETAILS\nQMNAME(QM01)\nQSGNAME(QSG1)\n END QMGR DETAILS\n"
    (tmp_path / "qmgr.txt").write_text(text)
    intake = import_files("display", [tmp_path / "qmgr.txt"], tmp_path / "out.ndjson", estate)
    assert intake.counts == {"no-time": 1, "no-events": 1}
    assert "only facts for mqtwin estate import" in intake.latest["no-events"].text


@pytest.mark.parametrize("name", FILES)
def test_what_was_read_is_not_called_nothing(site, name):
    for data in PAGES[name]:
        _, intake = read(name, Page(data, "file", NOON), estate=site, qmgr="QM01")
        assert "nothing-read" not in intake.counts


# --- data that are of the format and say nothing ---------------------------------------------------------------------


def test_an_answer_to_a_command_that_failed_has_its_reason(estate):
    answer = {
        "commandResponse": [{"completionCode": 2, "reasonCode": 2085, "message": ["AMQ8147E: object X not found."]}],
        "overallCompletionCode": 2,
        "overallReasonCode": 3008,
    }
    events, intake = read("rest", Page(json.dumps(answer).encode(), "answer", NOON), estate=estate, qmgr="QM01")
    assert events == []
    (complaint,) = intake.complaints
    assert complaint.code == "command-failed"
    assert "overallReasonCode 3008, reason 2085: AMQ8147E: object X not found." in complaint.text


def test_what_a_failed_command_did_answer_is_read(estate):
    answer = json.loads(REST)
    answer["commandResponse"].append({"completionCode": 2, "reasonCode": 2085})
    answer |= {"overallCompletionCode": 2, "overallReasonCode": 3008}
    events, intake = read("rest", Page(json.dumps(answer).encode(), "answer", NOON), estate=estate, qmgr="QM01")
    assert len(events) == 1
    assert intake.counts == {"command-failed": 1}


def test_spans_of_other_systems_only_are_counted_by_system(estate):
    foreign = (span(i, scope="kafka", messaging__system="kafka") for i in range(3))
    value = as_json(*foreign, span(4, scope="http"))
    events, intake = read("otlp", value, estate=estate)
    assert events == []
    assert intake.lines_for_passed_over() == ["4 spans of no put or get on MQ (3 of kafka, 1 of no messaging system)"]
    assert intake.counts == {"no-spans": 1}
    assert 'expected: spans of the scope "z/OS OTel"' in intake.complaints[0].text


def test_spans_of_mq_that_are_no_call_say_why(estate):
    browse = span(1)
    browse["kind"] = 1
    _, intake = read("otlp", as_json(browse, span(2, status=2), span(3)), estate=estate)
    assert intake.lines_for_passed_over() == [
        "2 spans of no put or get on MQ (1 of neither producer nor consumer, 1 of a call that failed)"
    ]
    assert "no-spans" not in intake.counts


@pytest.mark.parametrize("length", [84, 120])
def test_statistics_of_queues_without_counts_are_a_complaint_once_a_queue_manager(estate, length):
    events, intake = read("smf", record(216, [queue_statistics(length)] * 3), estate=estate)
    assert [event["op"] for event in events] == ["MEASURE"] * (length > 100)  # handles, since MQ 9.3.1
    assert dict(intake.counts) == {"no-counts": 1}
    assert f"QQST of {length} bytes" in intake.complaints[0].text
    assert "9.3.0 to 9.3.2" in intake.complaints[0].text


def test_a_page_set_that_is_offline_is_a_complaint_once():
    offline = section(QIS1, 104, page_set=7, status=2)
    data = record(201, [offline]) + record(201, [offline], end=END + MINUTE)
    events, intake = read("smf", data)
    assert events == []
    (complaint,) = intake.complaints
    assert complaint.code == "offline"
    assert "page set 7 of QM01 is offline (QIS1 status 2)" in complaint.text


def test_a_shared_message_data_set_that_is_not_open_is_a_complaint_once():
    data = record(2, [data_set()]) + record(2, [data_set()], end=END + MINUTE)
    events, intake = read("smf", data)
    assert (events, dict(intake.counts)) == ([], {"offline": 1})


def test_a_buffer_pool_with_more_stealable_buffers_than_buffers_is_a_complaint(estate):
    page_set = section(QIS1, 104, page_set=4, buffer_pool=3, total=100, unused=90, persistent=10)
    pool = section(QPST, 104, pool=3, buffers=100, stealable=101)
    events, intake = read("smf", record(201, [page_set]) + record(215, [pool]), estate=estate)
    assert len(events) == 1
    assert intake.counts == {"inconsistent": 1}
