"""Input that comes in pieces: the events are those of the whole, wherever a source has cut it."""

from __future__ import annotations

import base64
import json
from random import Random

import pytest

from tests.support.profile import examples
from tests.tools.fuzz.pages import records as records_of
from tests.twin.feeds.read import read
from tests.twin.feeds.samples import QUEUE_FULL, SMF, STATISTICS, activity, get, json_text, operation, put
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
        monkeypatch.setattr("twin.feeds.streams._MAX_STREAMS", 4)
        values = [(f"t/0/{number}", b'{"eventSource": {') for number in range(6)]
        _, intake, feed = pieces("amqsevt", values, estate=estate, is_end=False)
        assert intake.counts == {"truncated": 2}
        assert sorted(feed.begun_in) == [f"t/0@{number}" for number in (2, 3, 4, 5)]

    def test_bytes_that_wait_are_bounded(self, estate, monkeypatch):
        monkeypatch.setattr("twin.feeds.json_pages.MAX_OBJECT_BYTES", 5_000)
        monkeypatch.setattr("twin.feeds.streams._MAX_BYTES", 12_000)
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

    def test_segments_that_wait_are_bounded(self, estate, monkeypatch):
        monkeypatch.setattr("twin.feeds.streams._MAX_STREAMS", 3)
        first = records_of(segmented(smf(0), 200))[0]
        _, intake, feed = pieces("smf", [(f"t/0/{key}", first) for key in range(5)], estate=estate, is_end=False)
        assert (intake.counts, len(feed.begun_in)) == ({"segments": 2}, 3)

    @pytest.mark.parametrize("value", [b"no record", b"AAAA" * 40, b"deadbeef" * 10, b"{}", b"\0" * 40, b""])
    def test_other_values_are_complaints(self, estate, value):
        events, intake, _ = pieces("smf", [value, smf(0, gets=1)], estate=estate)
        assert counts(events) == [1]
        assert intake.counts.total() == (1 if value else 0)
