"""Input that comes in pieces: the events are those of the whole, wherever a source has cut it."""

from __future__ import annotations

import base64
import json
from random import Random

import pytest

from tests.support.profile import examples
from tests.tools.fuzz.pages import records as records_of
from tests.twin.feeds.read import read
from tests.twin.feeds.samples import (
    POLICY,
    QUEUE_FULL,
    RUNMQSC,
    SMF,
    STATISTICS,
    SYSPRINT,
    USAGE_ROWS,
    activity,
    get,
    json_text,
    numbered,
    operation,
    put,
    responses,
    syslog,
)
from tests.twin.feeds.smf_made import queue_statistics, record, segmented
from twin.feeds import FeedOptions, Intake, Page, make_feed
from twin.feeds.importing import read_page, sort_key

NOON = 1_795_176_000_000_000
SEEDS = range(examples(25))


def pieces(name, values, *, stream="t/0/", second=1, estate=None, is_end=True, **options):
    """Return the events of values of a stream, `second` seconds apart, their intake, and the feed."""
    intake = Intake(estate)
    feed = make_feed(name, intake, FeedOptions(**options))
    events = []
    for number, value in enumerate(values):
        own, data = value if isinstance(value, tuple) else (stream, value)
        page = Page(data, f"t/0@{number}", NOON + number * second * 1_000_000, stream=own)
        events += intake.sift(read_page(feed, page, "t"))
    if is_end:
        events += intake.sift(feed.finish())
    return events, intake, feed


def cut(rng, parts, number):
    """Return parts in `number` values, cut at random ends of parts."""
    ends = sorted(rng.sample(range(1, len(parts)), min(number, len(parts) - 1)))  # none of a single part
    return [b"".join(parts[start:end]) for start, end in zip([0, *ends], [*ends, len(parts)], strict=True)]


MESSAGES = (STATISTICS, QUEUE_FULL, activity(put(), get(1), operation("Cmit", 2)), QUEUE_FULL)
TEXTS = {
    "json": json_text(*MESSAGES),
    "json_array": json.dumps(MESSAGES, indent=1).encode(),
    "json_compact": b"\n".join(json.dumps(message).encode() for message in MESSAGES),
}


class TestAmqsevt:
    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    @pytest.mark.parametrize("is_of_lines", [True, False])
    def test_objects_are_read_however_they_are_cut(self, estate, text, is_of_lines):
        whole, _ = read("amqsevt", text, estate=estate)
        assert len(whole) > 10
        for seed in SEEDS:
            rng = Random(seed)
            parts = text.splitlines(keepends=rng.random() < 0.5) if is_of_lines else [bytes([own]) for own in text]
            events, intake, feed = pieces("amqsevt", cut(rng, parts, rng.randint(1, 300)), estate=estate)
            assert events == whole, seed
            assert set(intake.counts) == {"no-zone"}
            assert not feed.begun_in

    def test_an_object_is_an_event_as_soon_as_it_ends(self, estate):
        lines = json_text(QUEUE_FULL).splitlines()
        events, _, feed = pieces("amqsevt", lines[:-1], estate=estate, is_end=False)
        assert (events, list(feed.begun_in)) == ([], ["t/0@0"])
        events, _, feed = pieces("amqsevt", lines, estate=estate, is_end=False)
        assert (len(events), list(feed.begun_in)) == (1, [])

    @pytest.mark.parametrize("seed", SEEDS)
    def test_an_object_without_its_end_is_a_complaint_and_the_next_is_read(self, estate, seed):
        rng = Random(seed)
        lines = json_text(STATISTICS).splitlines(keepends=True)
        lost = lines[: rng.randint(1, len(lines) - 1)]
        lost[-1] = lost[-1][: rng.randint(1, len(lost[-1]))]
        values = [cut(rng, own, rng.randint(1, 9)) for own in (lost, json_text(QUEUE_FULL).splitlines(keepends=True))]
        events, intake, _ = pieces("amqsevt", values[0] + values[1], estate=estate)
        assert [event["op"] for event in events][-1:] == ["PUT"], values
        assert intake.counts["truncated"] == 1

    def test_keys_and_partitions_are_streams_of_their_own(self, estate):
        lines = json_text(QUEUE_FULL).splitlines()
        values = [value for line in lines for value in (("t/0/A", line), ("t/0/B", line), ("t/1/", line))]
        events, intake, _ = pieces("amqsevt", values, estate=estate)
        assert (len(events), dict(intake.counts)) == (3, {})

    def test_streams_with_an_object_that_does_not_end_are_bounded(self, estate, monkeypatch):
        monkeypatch.setattr("twin.feeds.protocol._MAX_STREAMS", 4)
        values = [(f"t/0/{number}", b'{"eventSource": {') for number in range(6)]
        _, intake, feed = pieces("amqsevt", values, estate=estate, is_end=False)
        assert intake.counts == {"truncated": 2}
        assert sorted(feed.begun_in) == [f"t/0@{number}" for number in (2, 3, 4, 5)]

    def test_bytes_that_wait_are_bounded(self, estate, monkeypatch):
        monkeypatch.setattr("twin.feeds.json_pages.MAX_OBJECT_BYTES", 5_000)
        monkeypatch.setattr("twin.feeds.protocol._MAX_BYTES", 12_000)
        piece = b'"a": "' + b"x" * 1000 + b'",\n'
        endless = [b'{"eventSource": {'] + [piece] * 20 + json_text(QUEUE_FULL).splitlines()
        events, intake, _ = pieces("amqsevt", endless, estate=estate)
        assert intake.counts["truncated"] == 1
        assert len(events) == 1
        many = [(f"t/{number}/", own) for number in range(6) for own in [b'{"eventSource": {', piece, piece, piece]]
        _, intake, feed = pieces("amqsevt", many, estate=estate, is_end=False)
        assert intake.counts == {"truncated": 3}
        assert len(feed.begun_in) == 3

    def test_text_of_another_kind_is_a_complaint(self, estate):
        events, intake, _ = pieces(
            "amqsevt", [b"AMQ8146", b"[", *json_text(QUEUE_FULL).splitlines(), b"]"], estate=estate
        )
        assert (len(events), dict(intake.counts)) == (1, {"foreign": 1})


def smf(minute, **values):
    return record(216, [queue_statistics(**values)], end=NOON + minute * 60_000_000)


def counts(events):
    return [event["count"] for event in events if event["op"] == "GET"]


def as_lines(data):
    return b"\n".join(base64.b64encode(own) for own in records_of(data))


ENCODINGS = {
    "binary": lambda data: data,
    "base64": base64.b64encode,
    "base64 of URLs": base64.urlsafe_b64encode,
    "base64 in short lines": base64.encodebytes,
    "a record a line in base64": as_lines,
    "quoted base64": lambda data: b'"' + base64.b64encode(data) + b'"\n',
    "hexadecimal": lambda data: data.hex().encode(),
    "upper-case hexadecimal": lambda data: data.hex().upper().encode(),
}


class TestSmf:
    @pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS)
    def test_records_are_read_however_they_are_cut_and_encoded(self, estate, encode):
        whole, intake = read("smf", SMF, estate=estate, slice_s=600.0)
        expected = sorted(whole, key=sort_key)
        assert len(whole) > 5
        for seed in SEEDS:
            rng = Random(seed)
            values = [encode(value) for value in cut(rng, records_of(SMF), rng.randint(1, 9))]
            events, own, feed = pieces("smf", values, estate=estate, slice_s=600.0)
            assert sorted(events, key=sort_key) == expected, seed
            assert (own.counts, feed.begun_in) == (intake.counts, {})

    @pytest.mark.parametrize("name", sorted(ENCODINGS.keys() - {"a record a line in base64"}))
    def test_a_record_without_rdw_is_read(self, estate, name):
        values = [ENCODINGS[name](smf(minute, gets=minute + 1)[4:]) for minute in (0, 1)]
        events, intake, _ = pieces("smf", values, estate=estate)
        assert sum(counts(events)) == 3
        assert intake.counts == {}

    def test_the_values_of_a_data_set_of_a_real_site_are_read_as_the_file(self, shared):
        data = (shared / "fixtures" / "smf" / "SMF_MQ1000.dat").read_bytes()
        whole, intake = read("smf", data)
        events, own, _ = pieces("smf", cut(Random(1), records_of(data), 300))
        assert sorted(events, key=sort_key) == sorted(whole, key=sort_key)
        assert own.counts == intake.counts

    def test_segments_of_other_streams_may_come_between(self, estate):
        parts = {
            key: records_of(segmented(smf(0, queue="ORDERS", gets=own), 200, 400)) for key, own in (("A", 1), ("B", 2))
        }
        values = [(f"t/0/{key}", parts[key][number]) for number in range(3) for key in "AB"]
        events, intake, _ = pieces("smf", values, estate=estate)
        assert (sum(counts(events)), intake.counts) == (3, {})

    def test_records_may_come_in_any_order_and_twice(self, estate):
        values = [smf(minute, gets=6) for minute in range(4)]
        whole, _ = read("smf", b"".join(values), estate=estate)
        events, intake, _ = pieces("smf", [values[3], values[0], values[2], values[0], values[1]], estate=estate)
        assert sorted(events, key=sort_key) == sorted(whole, key=sort_key)
        assert intake.counts == {"copy": 1}

    @pytest.mark.parametrize("lost", [0, 1, 2])
    def test_a_record_of_which_a_segment_is_missing_is_a_complaint_and_the_next_is_read(self, estate, lost):
        parts = records_of(segmented(smf(0, gets=1), 200, 400))
        events, intake, feed = pieces("smf", [*parts[:lost], *parts[lost + 1 :], smf(1, gets=2)], estate=estate)
        assert sum(counts(events)) == 2
        assert set(intake.counts) <= {"segments", "damaged"}
        assert intake.counts.total() >= 1
        assert not feed.begun_in

    def test_segments_that_wait_for_long_are_given_up(self, estate):
        first = records_of(segmented(smf(0), 200))[0]
        values = [("t/0/A", first), ("t/0/B", first), *[("t/0/C", smf(minute)) for minute in range(3)]]
        _, intake, feed = pieces("smf", values, second=200, estate=estate, is_end=False)
        assert (intake.counts, list(feed.begun_in)) == ({"segments": 1}, ["t/0@1"])

    def test_segments_of_a_partition_that_is_read_later_are_not_given_up(self, estate):
        parts = records_of(segmented(smf(0, gets=1), 200))
        values = [("t/0/", parts[0]), *[("t/1/", smf(minute, gets=2)) for minute in range(1, 4)], ("t/0/", parts[1])]
        events, intake, _ = pieces("smf", values, second=3600, estate=estate)
        assert (sum(counts(events)), intake.counts) == (7, {})

    def test_segments_that_wait_are_bounded(self, estate, monkeypatch):
        monkeypatch.setattr("twin.feeds.protocol._MAX_STREAMS", 3)
        first = records_of(segmented(smf(0), 200))[0]
        _, intake, feed = pieces("smf", [(f"t/0/{key}", first) for key in range(5)], estate=estate, is_end=False)
        assert (intake.counts, len(feed.begun_in)) == ({"segments": 2}, 3)

    @pytest.mark.parametrize("value", [b"no record", b"AAAA" * 40, b"deadbeef" * 10, b"{}", b"\0" * 40, b""])
    def test_other_values_are_complaints(self, estate, value):
        events, intake, _ = pieces("smf", [value, smf(0, gets=1)], estate=estate)
        assert counts(events) == [1]
        assert intake.counts.total() == (1 if value else 0)


USAGE = f"CSQI010I QM01 Page set usage ...\n{USAGE_ROWS}"
LINE = "N 0000000 MVS1     26324 12:00:{:02}.10 STC08037 00000090  {}"
THRESHOLD = """IXC585E STRUCTURE QSG1APP1 IN COUPLING FACILITY CF01,
PHYSICAL STRUCTURE VERSION DE928A95 A9012381,
IS AT OR ABOVE STRUCTURE FULL MONITORING THRESHOLD OF 80%.
ENTRIES: IN USE: 870 TOTAL: 1000, 87% FULL
ELEMENTS: IN USE: 5000 TOTAL: 6000, 83% FULL
EMCS: IN USE: 10 TOTAL: 100, 10% FULL"""
BELOW = "IXC586I STRUCTURE QSG1APP1 IN COUPLING FACILITY CF01,"
STATUS = "CSQM401I QM01 CFSTATUS(APP1) ENTSMAX({}) ENTSUSED(10)"
TEXTS = {
    "sysprint": SYSPRINT,
    "runmqsc": RUNMQSC,
    "job log": numbered(USAGE, 105) + numbered(USAGE.replace("QM01", "QM01"), 106),
    "responses": responses(SYSPRINT),
    "syslog": syslog(POLICY) + syslog(THRESHOLD, 106) + LINE.format(3, STATUS.format(99)),
    "dated lines": "\n".join(f"2026-11-20 12:00:{second:02} {STATUS.format(second + 10)}" for second in range(20)),
}


def merged(events):
    """Return measurements by time, queue manager and store: several of one moment say together what one says."""
    own = {}
    for event in events:
        entry = own.setdefault((event["time"], event["qmgr"], event["store"]), {})
        for name, value in event["measured"].items():
            if isinstance(value, dict):
                entry[name] = entry.get(name, {}) | value
            elif isinstance(value, list):
                entry[name] = [*entry.get(name, []), *(item for item in value if item not in entry.get(name, []))]
            else:
                entry[name] = value
    return own


def line_of(text, second=0):
    return LINE.format(second, text).encode()


def row(text, system="MVS1", kind="NC", second=0):
    """Return a record of SYSLOG as the Common Data Provider writes it."""
    quoted = text.replace('"', '""')
    fields = [f"26324 12.00.{second:02}.120 -0100", system, "STC08037", "QM01MSTR", "0" * 32, "00000090", "", "80"]
    message = f'{kind},002B,{",".join(fields)}," {quoted}"'
    metadata = f"host.example,SYSLOG,1.0.0,zOS-SYSLOG-Console,{system}-SYSLOG,-0100,PLEX1,{system},1795176000120"
    header = {"headerName": "zOS-SYSLOG-Console:1.0.0", "hasHeaderTopic": "true"}
    return json.dumps({**header, "metadata": metadata, "message": message}).encode()


class TestDisplay:
    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_lines_are_read_however_they_are_cut(self, estate, text):
        whole, intake = read("display", Page(text.encode(), "t", NOON), estate=estate)
        assert whole
        lines = text.encode().splitlines(keepends=True)
        first, _, _ = pieces("display", lines, second=0, estate=estate)
        assert merged(first) == merged(whole)
        for seed in SEEDS:
            rng = Random(seed)
            values = cut(rng, lines, rng.randint(1, len(lines) - 1))
            events, own, feed = pieces("display", values, second=0, estate=estate)
            assert events == first, seed
            assert (own.counts, feed.begun_in) == (intake.counts, {})

    def test_lines_in_ebcdic_are_read(self, estate):
        whole, _ = read("display", syslog(USAGE).encode(), estate=estate)
        values = [line.encode("cp037") for line in syslog(USAGE).splitlines()]
        events, _, _ = pieces("display", values, estate=estate)
        assert merged(events) == merged(whole)

    @pytest.mark.parametrize("wrap", ["message", "log", "MESSAGE", "msg"])
    def test_lines_in_json_of_a_forwarder_are_read(self, estate, wrap):
        text = syslog(USAGE)
        whole, _ = read("display", text.encode(), estate=estate)
        values = [json.dumps({"@timestamp": "x", wrap: line}).encode() for line in text.splitlines()]
        events, intake, _ = pieces("display", values, estate=estate)
        assert merged(events) == merged(whole)
        assert set(intake.counts) == {"no-zone"}
        file, _ = read("display", b"\n".join(values), estate=estate)
        assert file == whole

    def test_json_without_a_text_is_passed_over_and_the_next_is_read(self, estate):
        good = [json.dumps({"message": line}).encode() for line in syslog(USAGE).splitlines()]
        for values in ([*good, b'{"other": 1}', b'{"message": "cut', *good], [b"\n".join([*good, b'{"other": 1}'])]):
            events, intake, _ = pieces("display", values, estate=estate)
            assert {event["store"] for event in events} == {"QM01/PS04"}
            assert intake.passed_over["line of other messages"].kinds["no message"] >= 1

    def test_a_record_of_the_common_data_provider_is_a_message_with_its_lines(self, estate):
        events, intake, feed = pieces("display", [row(USAGE), row(THRESHOLD, second=1)], estate=estate, is_end=False)
        times = [(event["store"], event["time"] - NOON) for event in events]
        assert times == [("QM01/PS04", 3600_000_000), ("QSG1/APP1", 3601_000_000)]
        assert events[-1]["measured"] == {"ents_used": 870, "ents_max": 1000, "elems_used": 5000, "elems_max": 6000}
        assert not feed.begun_in
        assert set(intake.counts) <= {"no-zone"}

    @pytest.mark.parametrize("layout", ["syslog", "plain", "provider"])
    def test_a_message_that_its_text_shows_to_be_whole_is_measured_at_once(self, estate, layout):
        if layout == "provider":
            values = [row(THRESHOLD)]
        else:
            text = syslog(THRESHOLD) if layout == "syslog" else THRESHOLD
            values = [line for line in text.encode().splitlines() if b"EMCS" not in line]
        events, _, feed = pieces("display", values[:-1], estate=estate, is_end=False)
        assert not events
        events, _, feed = pieces("display", values, estate=estate, is_end=False)
        assert [event["measured"]["elems_used"] for event in events] == [5000]
        assert not feed.begun_in

    def test_usage_is_measured_with_its_last_line(self, estate):
        lines = syslog(USAGE).encode().splitlines()
        events, _, _ = pieces("display", lines[:-1], estate=estate, is_end=False)
        assert not events
        events, _, _ = pieces("display", lines, estate=estate, is_end=False)
        assert [event["store"] for event in events] == ["QM01/PS04"]

    def test_a_message_of_one_line_is_whole_when_the_next_begins_or_after_silence(self, estate):
        first, second = line_of(STATUS.format(11)), line_of(STATUS.format(12), 1)
        events, _, feed = pieces("display", [first], estate=estate, is_end=False)
        assert (events, list(feed.begun_in)) == ([], ["t/0@0"])
        events, _, feed = pieces("display", [first, second], estate=estate, is_end=False)
        assert [event["measured"]["ents_max"] for event in events] == [11]
        assert list(feed.begun_in) == ["t/0@1"]
        events, _, feed = pieces("display", [first, ("t/0/other", b"")], second=5, estate=estate, is_end=False)
        assert [event["measured"]["ents_max"] for event in events] == [11]
        events, _, _ = pieces("display", [first, ("t/0/other", b"")], second=4, estate=estate, is_end=False)
        assert not events

    def test_a_record_of_another_partition_does_not_end_a_message(self, estate):
        first = line_of(STATUS.format(11))
        events, _, _ = pieces("display", [first, ("t/1/", b"")], second=3600, estate=estate, is_end=False)
        assert not events

    def test_lines_of_other_systems_may_come_between(self, estate):
        texts = {key: syslog(USAGE.replace("    5          3", f"    {key}          3")).encode() for key in "56"}
        texts["6"] = texts["6"].replace(b"1070", b"1069")
        rows = zip(*(text.splitlines() for text in texts.values()), strict=True)
        values = [(f"t/0/{key}", line) for lines in rows for key, line in zip("AB", lines, strict=True)]
        events, intake, _ = pieces("display", values, estate=estate)
        assert [event["measured"]["pages_persistent"] for event in events] == [5, 6]
        assert not intake.counts.keys() - {"no-zone"}
        values = [json.dumps({"host": {"name": stream}, "message": line.decode()}).encode() for stream, line in values]
        again, _, _ = pieces("display", values, estate=estate)
        assert again == events

    def test_the_queue_manager_that_a_text_names_is_that_of_its_stream(self, estate):
        texts = [RUNMQSC.splitlines(), RUNMQSC.replace("QMD1", "QMD2").splitlines()]
        values = [(f"t/0/{key}", line.encode()) for lines in zip(*texts, strict=True) for key, line in enumerate(lines)]
        events, intake, _ = pieces("display", values, second=0, estate=estate)
        assert {event["qmgr"] for event in events} == {"QMD1"}
        assert {qmgr for qmgr, _ in intake.unknown} == {"QMD2"}

    def test_a_structure_below_its_threshold_is_read_at_once(self, estate):
        """Of a structure that holds no queues; this one does, so that the message is passed over, not held."""
        _, intake, feed = pieces("display", [line_of(BELOW)], estate=estate, is_end=False)
        assert intake.passed_over["message without counts"].kinds == {"IXC586I": 1}
        assert not feed.begun_in

    def test_times_of_day_are_near_the_time_of_their_record(self, estate):
        values = [f"{clock} STC08037  {STATUS.format(99)}".encode() for clock in ("23.59.58", "00.00.01", "23.59.59")]
        midnight = NOON + 12 * 3_600_000_000
        intake = Intake(estate)
        feed = make_feed("display", intake, FeedOptions())
        pages = [Page(value, f"t/0@{number}", midnight, stream="t/0/") for number, value in enumerate(values)]
        events = [event for page in pages for event in intake.sift(feed.take(page))]
        events += intake.sift(feed.finish())
        assert [event["time"] - midnight for event in events] == [-2_000_000, 1_000_000, -1_000_000]

    def test_depths_of_a_store_that_come_one_by_one_are_its_messages(self, site):
        line = "2026-11-20 12:00:00 CSQM401I QM01 QUEUE(ORDERS) TYPE(QUEUE) CURDEPTH(7)"
        events, _, _ = pieces("display", [line.encode(), b""], second=5, estate=site, is_end=False)
        assert [event["measured"] for event in events] == [{"messages": 7}]

    def test_what_waits_is_bounded(self, estate, monkeypatch):
        monkeypatch.setattr("twin.feeds.display._MAX_CONSOLES", 3)
        values = [(f"t/0/{key}", line_of(STATUS.format(key + 20))) for key in range(5)]
        events, _, feed = pieces("display", values, second=0, estate=estate, is_end=False)
        assert [event["measured"]["ents_max"] for event in events] == [20, 21]
        assert len(feed.begun_in) == 3
        monkeypatch.setattr("twin.feeds.display._MAX_SIZE", 5_000)
        endless = syslog("CSQM201I QM01 CSQMDRTC  DISPLAY CFSTATUS DETAILS\n" + "CFSTATUS(APP1)\n" * 500)
        _, intake, feed = pieces("display", endless.encode().splitlines(), second=0, estate=estate, is_end=False)
        assert feed._size <= 5_000
        assert intake.counts["unjoined"] > 100

    def test_a_queue_manager_that_the_estate_lacks_is_counted(self, estate):
        _, intake, _ = pieces("display", [line_of(USAGE.replace("QM01", "QM77"))], estate=estate)
        assert "QM77" in {qmgr for qmgr, _ in intake.unknown}
