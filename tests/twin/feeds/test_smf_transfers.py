"""SMF that a transfer has put lengths, marks or ends of lines around: read where it can be, and said in one line."""

from __future__ import annotations

import struct

import pytest

from tests.twin.feeds.read import read, total
from tests.twin.feeds.smf_made import END, MINUTE, queue_statistics, record, segmented
from twin.feeds.smf_records import framing_of

MQ = [record(216, [queue_statistics()], end=END + number * MINUTE) for number in range(4)]
RECORDS = [*MQ[:2], MQ[0][:5] + bytes([30]) + MQ[0][6:], *MQ[2:]]
EXPECTED = "expected: binary, with record descriptor words (FTP: binary, mode s, stru f, quote site rdw)"


def framed(form: str, *, has_rdw: bool, records: list[bytes] = RECORDS) -> bytes:
    start, end = (">I", b"") if form == "record" else (">BH", b"\x40\0\0") if form == "block" else (">H", b"")
    contents = [data if has_rdw else data[4:] for data in records]
    values = [(0x80, len(data)) if form == "block" else (len(data),) for data in contents]
    return b"".join(struct.pack(start, *value) + data for value, data in zip(values, contents, strict=True)) + end


@pytest.mark.parametrize(
    ("form", "has_rdw"), [("record", False), ("record", True), ("block", False), ("block", True), ("length", False)]
)
def test_records_behind_their_lengths_are_read(estate, form, has_rdw):
    events, intake = read("smf", framed(form, has_rdw=has_rdw), estate=estate)
    assert total(events, "PUT") == 400
    assert dict(intake.counts) == {"transfer": 1}
    assert EXPECTED in intake.complaints[0].text
    (own,) = intake.inputs
    assert (own.read, own.passed_over, own.not_understood) == (4, 1, 0)


def test_segments_in_such_records_are_put_together(estate):
    pieces, segments = segmented(MQ[0], 300), []
    while pieces:
        length = int.from_bytes(pieces[:2], "big")
        segments.append(pieces[:length])
        pieces = pieces[length:]
    events, intake = read("smf", framed("record", has_rdw=True, records=[*segments, MQ[1]]), estate=estate)
    assert (total(events, "PUT"), dict(intake.counts)) == (200, {"transfer": 1})


def test_a_file_that_is_cut_in_such_a_record_is_truncated(estate):
    events, intake = read("smf", framed("record", has_rdw=False)[:-9], estate=estate)
    assert total(events, "PUT") == 300
    assert dict(intake.counts) == {"transfer": 1, "truncated": 1}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            b"".join(data[4:].replace(b"\xff", b"\xff\xff") + b"\xff\x01" for data in RECORDS) + b"\xff\x02",
            "record structure of FTP",
        ),
        (b"".join(data[4:] + b"\r\n" for data in RECORDS), "an end of line behind each record"),
        (b"".join(data[4:] + b"\n" for data in RECORDS), "an end of line behind each record"),
        (b"\0" + struct.pack(">H", 1000) + b"".join(RECORDS)[:1000], "blocks end anywhere"),
    ],
)
def test_what_cannot_be_taken_out_is_said_in_one_line(estate, data, words):
    _, intake = read("smf", data, estate=estate)
    (complaint,) = [complaint for complaint in intake.complaints if complaint.code == "transfer"]
    assert words in complaint.text
    assert EXPECTED in complaint.text


@pytest.mark.parametrize("data", [b"".join(MQ), MQ[0], b"".join(data[4:] for data in RECORDS), b"", b"\0" * 99])
def test_a_data_set_as_it_should_be_has_nothing_around_its_records(data):
    assert framing_of(data) is None


def test_a_record_without_rdw_that_ends_like_a_line_does_not_end_a_line():
    ends = MQ[0][4:-1] + b"\n" + MQ[1][4:]
    assert framing_of(ends) is None


def test_other_types_without_rdw_are_counted_by_type(estate):
    events, intake = read("smf", b"".join(data[4:] for data in RECORDS), estate=estate)
    assert (total(events, "PUT"), intake.complaints) == (400, [])
    assert intake.lines_for_passed_over() == ["1 record of other types, 780 bytes (1 of SMF 30)"]
