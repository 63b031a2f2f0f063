"""Files that grow and standard input: pages of whole lines or records, and a position that repeats nothing."""

from __future__ import annotations

import base64
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from deploy.cli import main
from streams.collecting import sources
from streams.collecting.collect import collect
from streams.collecting.sources import FollowedFile, Position, load_position
from tests.streams.kafka_help import everything
from tests.streams.test_collect import KeepingWriter, spans
from tests.support.estates import facility_estate
from tests.tools.fuzz.pages import records
from tests.twin.feeds.conftest import ESTATE
from tests.twin.feeds.read import read
from tests.twin.feeds.samples import QUEUE_FULL, STATISTICS, SYSPRINT, activity, get, json_text, put, syslog
from tests.twin.feeds.smf_made import queue_statistics, record, segmented
from tests.twin.feeds.test_pieces import merged as of_measures
from twin.base.errors import UsageError
from twin.estate import load_estate
from twin.feeds import FeedOptions, Intake, Page, make_feed
from twin.feeds.importing import read_page, sort_key

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def estate(tmp_path):
    path = tmp_path / "estate.toml"
    path.write_text(ESTATE, encoding="utf-8")
    return load_estate(path)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(sources, "_WAIT_S", 0.0)


class Followed:
    """Runs of a collector that follows a file."""

    def __init__(self, name, path, estate):
        self.name, self.path, self.estate = name, path, estate
        self.position = path.parent / "position.json"
        self.complaints = []
        self.events = []

    def run(self, *steps, saves=True):
        """Collect: after each step, a function, until nothing more comes; return the new events."""
        intake, writer = Intake(self.estate), KeepingWriter()
        feed = make_feed(self.name, intake, FeedOptions(slice_s=3600.0))
        position = load_position(self.position, str(self.path))
        source = FollowedFile(self.path, feed, position, intake.complain)
        left, quiet = list(steps), 0
        read = source.read

        def counted():
            nonlocal quiet
            pages = read()
            quiet = 0 if pages else quiet + 1
            return pages

        def stop():
            nonlocal quiet
            if quiet <= sources._QUIET_READS + 1:
                return False
            if left:
                left.pop(0)()
                quiet = 0
                return False
            return True

        source.read = counted
        collect(
            source,
            feed,
            intake,
            writer,
            self.position if saves else None,
            stop=stop,
            on_complaint=self.complaints.append,
        )
        source.close()
        self.events += writer.events
        return writer.events


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


def smf(minute, **values):
    return record(216, [queue_statistics(**values)], end=1_795_176_000_000_000 + minute * 60_000_000)


def merged(events):
    """Return events by time and kind; of measurements of one moment and store, one."""
    measures = of_measures([event for event in events if event["op"] == "MEASURE"])
    others = sorted((event for event in events if event["op"] != "MEASURE"), key=sort_key)
    return measures, others


def counts(events):
    return [event["count"] for event in events if event["op"] == "GET"]


def test_what_is_appended_is_read_once_across_restarts(tmp_path, estate):
    followed = Followed("smf", tmp_path / "smf.dat", estate)
    followed.path.write_bytes(smf(0, gets=1))
    assert counts(followed.run(lambda: append(followed.path, smf(1, gets=2)))) == [1, 2]
    assert counts(followed.run()) == []
    append(followed.path, smf(2, gets=3))
    assert counts(followed.run()) == [3]
    assert followed.complaints == []
    assert load_position(followed.position, str(followed.path)).offsets.popitem()[1] == followed.path.stat().st_size


@pytest.mark.parametrize("number", [1, 3, 4, 5, 40, 200, -1])
def test_a_record_that_is_half_written_waits(tmp_path, estate, number):
    followed = Followed("smf", tmp_path / "smf.dat", estate)
    whole = smf(1, gets=2)
    followed.path.write_bytes(smf(0, gets=1) + whole[:number])
    assert counts(followed.run()) == [1]
    assert counts(followed.run(lambda: append(followed.path, whole[number:]))) == [2]
    assert followed.complaints == []


def test_segments_that_have_not_all_come_are_read_again_after_a_restart(tmp_path, estate):
    followed = Followed("smf", tmp_path / "smf.dat", estate)
    parts = segmented(smf(1, gets=2), 200, 400)
    followed.path.write_bytes(smf(0, gets=1) + parts[:200])
    assert counts(followed.run(lambda: append(followed.path, smf(0, gets=1)[:0]))) == [1]
    append(followed.path, parts[200:-1])
    assert counts(followed.run()) == []
    append(followed.path, parts[-1:] + smf(2, gets=3))
    assert counts(followed.run()) == [2, 3]
    assert followed.complaints == []


def test_an_object_over_several_lines_is_read_again_after_a_restart(tmp_path, estate):
    followed = Followed("amqsevt", tmp_path / "events.json", estate)
    text = json_text(QUEUE_FULL) + b"\n"
    followed.path.write_bytes(text + text[:100])
    assert len(followed.run()) == 1
    append(followed.path, text[100:300])
    assert followed.run() == []
    append(followed.path, text[300:] + text)
    assert len(followed.run()) == 2
    assert followed.complaints == []


def test_spans_of_a_file_that_grows_are_read_once_across_restarts(tmp_path):
    followed = Followed("otlp", tmp_path / "traces.json", load_estate(facility_estate(tmp_path, "1G")))
    followed.path.write_bytes(spans(1) + b"\n" + spans(2, second=1) + b"\n" + spans(3)[:50])
    assert [event["length"] for event in followed.run()] == [1, 2]
    append(followed.path, spans(3)[50:] + b"\n")
    assert [event["length"] for event in followed.run()] == [3]
    assert followed.run() == []


def test_a_file_that_was_replaced_is_read_to_its_end_and_then_the_new_one(tmp_path, estate):
    followed = Followed("smf", tmp_path / "smf.dat", estate)
    old = tmp_path / "smf.1"

    def rotate():
        followed.path.rename(old)
        followed.path.write_bytes(smf(2, gets=3))
        append(old, smf(1, gets=2) + smf(5)[:50])

    followed.path.write_bytes(smf(0, gets=1))
    assert counts(followed.run(rotate)) == [1, 2, 3]
    assert [complaint.code for complaint in followed.complaints] == ["truncated", "replaced"]
    assert counts(followed.run()) == []
    followed.path.rename(tmp_path / "smf.2")
    append(tmp_path / "smf.2", smf(3, gets=4))
    followed.path.write_bytes(smf(4, gets=5))
    assert counts(followed.run()) == [4, 5]


def test_a_file_that_was_replaced_and_is_gone_is_a_complaint(tmp_path, estate):
    followed = Followed("smf", tmp_path / "smf.dat", estate)
    followed.path.write_bytes(smf(0, gets=1))
    followed.run()
    (tmp_path / "new").write_bytes(smf(2, gets=3))
    (tmp_path / "new").replace(followed.path)
    assert counts(followed.run()) == [3]
    assert [complaint.code for complaint in followed.complaints] == ["replaced"]
    assert "is gone" in followed.complaints[0].text


def test_a_file_that_has_become_shorter_is_read_from_its_start(tmp_path, estate):
    followed = Followed("smf", tmp_path / "smf.dat", estate)
    followed.path.write_bytes(smf(0, gets=1) + smf(1, gets=2))
    assert counts(followed.run(lambda: followed.path.write_bytes(smf(2, gets=3)))) == [1, 2, 3]
    followed.path.write_bytes(b"")
    assert counts(followed.run(lambda: append(followed.path, smf(3, gets=4)))) == [4]
    assert [complaint.code for complaint in followed.complaints] == ["shorter", "shorter"]


def test_the_memory_of_a_line_without_end_is_bounded(tmp_path, estate, monkeypatch):
    monkeypatch.setattr(sources, "_MAX_REST", 1 << 12)
    monkeypatch.setattr(sources, "_READ_BYTES", 1 << 10)
    followed = Followed("amqsevt", tmp_path / "events.json", estate)
    followed.path.write_bytes(b"x" * 20_000 + b"\n" + json_text(QUEUE_FULL) + b"\n")
    assert len(followed.run()) == 1
    assert {complaint.code for complaint in followed.complaints} == {"foreign"}


def blocked(data):
    """Return records in blocks of two, each behind its descriptor word."""
    own = records(data)
    blocks = [b"".join(own[start : start + 2]) for start in range(0, len(own), 2)]
    return b"".join(struct.pack(">HH", len(block) + 4, 0) + block for block in blocks)


SMF_OF_MINUTES = b"".join(segmented(smf(n, gets=n + 1), 200) if n % 3 else smf(n, gets=n + 1) for n in range(12))
WHOLE = b"".join(smf(n, gets=n + 1) for n in range(12))
GROWING = {
    "SMF": ("smf", SMF_OF_MINUTES),
    "SMF in blocks": ("smf", blocked(SMF_OF_MINUTES)),
    "SMF without RDW": ("smf", b"".join(own[4:] for own in records(WHOLE))),
    "SMF behind lengths": ("smf", b"".join(struct.pack(">I", len(own)) + own for own in records(WHOLE))),
    "SMF in base64": ("smf", b"".join(base64.b64encode(own) + b"\n" for own in records(SMF_OF_MINUTES))),
    "amqsevt": ("amqsevt", json_text(QUEUE_FULL, STATISTICS, activity(put(), get(1)), QUEUE_FULL) + b"\n"),
    "SYSLOG": ("display", (syslog(SYSPRINT) + syslog(SYSPRINT, 106)).encode()),
    "SYSLOG with CR": ("display", (syslog(SYSPRINT) + syslog(SYSPRINT, 106)).replace("\n", "\r\n").encode()),
    "SYSLOG in EBCDIC": ("display", syslog(SYSPRINT).replace("\n", "\x85").encode("cp037")),
}


@pytest.mark.parametrize(("name", "data"), GROWING.values(), ids=GROWING)
def test_a_file_that_grows_by_any_bytes_gives_the_events_of_the_whole(tmp_path, estate, name, data):
    whole, intake = read(name, data, estate=estate, slice_s=3600.0)
    assert whole
    path = tmp_path / "grows"
    for seed in range(8):
        rng = Random(seed)
        path.write_bytes(b"")
        own = Intake(estate)
        feed = make_feed(name, own, FeedOptions(slice_s=3600.0))
        source, events, written = FollowedFile(path, feed, Position(source=str(path)), own.complain), [], 0
        while written < len(data):
            step = rng.choice((1, 7, 100, 400, 2000))
            append(path, data[written : written + step])
            written += step
            for page in source.read():
                events += own.sift(read_page(feed, page, "grows"))
                source.note_taken(page, feed)
        events += own.sift(feed.finish())
        source.close()
        rest = data[sum(source.position(feed).read.values()) :]
        events += own.sift(feed.take(Page(rest, "rest"))) if rest else []
        assert merged(events) == merged(whole), seed
        assert own.counts.keys() == intake.counts.keys()


@pytest.mark.parametrize(("path", "text"), [("none", "cannot be read: No such file"), (".", "is not a file")])
def test_what_cannot_be_followed_is_wrong_use(tmp_path, path, text):
    with pytest.raises(UsageError, match=text):
        FollowedFile(tmp_path / path, make_feed("smf", Intake()), Position(source="x"), print)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["smf", "-", "--position", "P"], "--position P: standard input has no position; expected: no --position"),
        (["smf", "-", "--topic", "t"], "- and --topic: two sources; expected: one of them"),
        (["smf", "-", "--follow", "estate.toml"], "- and --follow: two sources; expected: one of them"),
        (
            ["smf", "--follow", "estate.toml", "--topic", "t", "--position", "P"],
            "--follow and --topic: two sources; expected: one of them",
        ),
        (["smf", "--follow", "estate.toml"], "--position is missing; expected: a file that keeps the position"),
        (["smf", "--topic", "t"], "--position is missing; expected: a file that keeps the position"),
        (["rest", "-"], "rest is not read from files; expected: no - and no --follow"),
        (["connect", "-"], "connect is not read from files; expected: no - and no --follow"),
    ],
)
def test_sources_that_contradict_each_other_are_wrong_use(estate, monkeypatch, capsys, words, text):
    monkeypatch.chdir(Path(estate.source).parent)
    assert main(["collect", *words, "--estate", "estate.toml", "--bootstrap-servers", "127.0.0.1:9"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"mqtwin: {text}"


@pytest.mark.system
@pytest.mark.nightly
def test_standard_input_is_read_to_its_end(kafka, topic_prefix, estate):
    lines = json_text(QUEUE_FULL).splitlines(keepends=True)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "deploy", "collect", "amqsevt", "-", "--create-topics"),
            *("--estate", estate.source, "--bootstrap-servers", kafka, "--topic-prefix", topic_prefix),
        ],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    _, errors = process.communicate(b"".join(lines * 3), timeout=120)
    assert process.returncode == 0, errors.decode()
    assert "3 events collected; standard input has no position" in errors.decode()
    events = [json.loads(message.value()) for message in everything(kafka, f"{topic_prefix}.events")]
    assert [event["op"] for event in events] == ["PUT"] * 3


def test_a_file_that_was_cut_while_nobody_looked_is_read_from_its_start(tmp_path, estate):
    """The same file, longer again than what was read: logrotate's copytruncate."""
    followed = Followed("smf", tmp_path / "smf.dat", estate)
    followed.path.write_bytes(smf(0, gets=1))
    followed.run()
    number = followed.path.stat().st_ino
    followed.path.write_bytes(smf(1, gets=2) + smf(2, gets=3))
    assert followed.path.stat().st_ino == number
    assert counts(followed.run()) == [2, 3]
    assert [complaint.code for complaint in followed.complaints] == ["replaced"]
    assert "is lost" in followed.complaints[0].text
    assert counts(followed.run(lambda: append(followed.path, smf(3, gets=4)))) == [4]


def test_a_file_that_is_cut_between_two_looks_is_read_from_its_start(tmp_path, estate):
    followed = Followed("smf", tmp_path / "smf.dat", estate)
    followed.path.write_bytes(smf(0, gets=1))
    cut = followed.run(lambda: followed.path.write_bytes(smf(1, gets=2) + smf(2, gets=3)))
    assert counts(cut) == [1, 2, 3]
    assert [complaint.code for complaint in followed.complaints] == ["replaced"]


def test_a_new_file_of_the_same_number_is_read_from_its_start(tmp_path, estate):
    followed = Followed("smf", tmp_path / "smf.dat", estate)
    followed.path.write_bytes(smf(0, gets=1))
    followed.run()
    followed.path.unlink()
    followed.path.write_bytes(smf(1, gets=2) + smf(2, gets=3))
    position = json.loads(followed.position.read_bytes())
    own, before = sources._identity(followed.path.stat()), next(iter(position["offsets"]))
    for name in ("offsets", "read", "marks"):  # as most file systems give the number at once
        position[name] = {own: position[name][before]}
    followed.position.write_text(json.dumps(position))
    assert counts(followed.run()) == [2, 3]
    assert [complaint.code for complaint in followed.complaints] == ["replaced"]


@pytest.mark.parametrize("names", [("smf.dat.2", "smf.dat.1"), ("smf-0900", "smf-0930")])
@pytest.mark.parametrize("is_running", [True, False])
def test_files_that_were_rotated_between_are_read_in_their_order(tmp_path, estate, names, is_running):
    followed = Followed("smf", tmp_path / "smf.dat", estate)

    def rotate():
        append(followed.path, smf(1, gets=2))
        followed.path.rename(tmp_path / names[0])
        os.utime(tmp_path / names[0], ns=(10**18, 10**18))
        followed.path.write_bytes(smf(2, gets=3) + smf(3, gets=4))
        followed.path.rename(tmp_path / names[1])
        os.utime(tmp_path / names[1], ns=(10**18 + 1, 10**18 + 1))
        followed.path.write_bytes(smf(4, gets=5))

    (tmp_path / "smf.dat.9").write_bytes(smf(0, gets=99))
    os.utime(tmp_path / "smf.dat.9", ns=(10**17, 10**17))  # rotated before
    followed.path.write_bytes(smf(0, gets=1))
    first = followed.run(rotate) if is_running else followed.run()
    if not is_running:
        rotate()
    assert counts(first + followed.run()) == [1, 2, 3, 4, 5]
    assert [complaint.code for complaint in followed.complaints] == ["replaced"] * 2
    assert counts(followed.run(lambda: append(followed.path, smf(5, gets=6)))) == [6]


def test_a_compressed_file_between_is_said_to_be_lost(tmp_path, estate):
    followed = Followed("smf", tmp_path / "smf.dat", estate)
    followed.path.write_bytes(smf(0, gets=1))
    followed.run()
    followed.path.rename(tmp_path / "smf.dat.2")
    (tmp_path / "smf.dat.1.gz").write_bytes(b"compressed")
    followed.path.write_bytes(smf(4, gets=5))
    assert counts(followed.run()) == [5]
    texts = [complaint.text for complaint in followed.complaints]
    assert any("smf.dat.1.gz" in text and "is lost" in text for text in texts), texts


def test_a_position_without_marks_of_an_earlier_release_is_read(tmp_path, estate):
    followed = Followed("smf", tmp_path / "smf.dat", estate)
    followed.path.write_bytes(smf(0, gets=1))
    followed.run()
    position = json.loads(followed.position.read_bytes())
    del position["marks"]
    followed.position.write_text(json.dumps(position))
    append(followed.path, smf(1, gets=2))
    assert counts(followed.run()) == [2]
    assert followed.complaints == []
