"""Files to a recording, and the recording to states: imports of every format replay."""

from __future__ import annotations

import pytest

from tests.twin.feeds.conftest import ESTATE
from tests.twin.feeds.samples import SMF, STATISTICS, SYSPRINT, activity, get, json_text, operation, put
from tests.twin.feeds.smf_made import END, MINUTE, data_set, queue_statistics, record
from twin.base.errors import UsageError
from twin.estate import load_estate
from twin.feeds import FeedOptions
from twin.feeds.importing import import_files
from twin.playback.replays import replay
from twin.recordings.files import RecordingWriter, open_recording


def imported(tmp_path, estate, name, data, recording="out.ndjson", **options):
    """Return the intake of an import, and the replay of its recording."""
    paths = []
    for number, content in enumerate([data] if isinstance(data, bytes) else data):
        paths.append(tmp_path / f"in{number}")
        paths[-1].write_bytes(content)
    intake = import_files(name, paths, tmp_path / recording, estate, **options)
    return intake, replay(tmp_path / recording, estate)


@pytest.mark.parametrize("recording", ["out.ndjson", "out.ndjson.zst", "out.arrow"])
def test_statistics_of_queues_replay_into_the_state_of_a_structure(tmp_path, estate, recording):
    data = record(216, [queue_statistics()]) + record(216, [queue_statistics()], end=END + MINUTE)
    intake, replayed = imported(tmp_path, estate, "smf", data, recording)
    state = replayed.states["QSG1/APP1"]
    assert replayed.dead_letters == 0
    assert state.messages == 2 * (100 - 90)
    assert state.queues[0].name == "ORDERS"
    assert intake.events == replayed.events


def test_the_recording_is_in_order_of_time_whatever_the_order_of_the_files(tmp_path, estate):
    late = record(216, [queue_statistics()], end=END + MINUTE)
    intake, _ = imported(tmp_path, estate, "smf", [late, record(216, [queue_statistics()])])
    (chunk,) = open_recording(tmp_path / "out.ndjson")
    times = [int(line.split(b'"time":')[1].split(b",")[0]) for line in chunk.lines()]
    assert times == sorted(times)
    assert len(times) == intake.events


def test_a_measurement_at_the_end_of_an_interval_comes_after_its_puts_and_gets(tmp_path, estate):
    """The first measurement becomes the baseline: what is there beyond the model."""
    sections = [data_set(blocks_total=65536, blocks_used=30, blocks_free=65506, messages=12)]
    data = record(2, sections) + record(216, [queue_statistics()])
    _, replayed = imported(tmp_path, estate, "smf", data)
    assert replayed.states["QSG1/APP1"].baseline["smds"]["QM01"]["messages"] == 12


def test_page_sets_and_structures_of_command_output_replay(tmp_path, estate):
    _, replayed = imported(tmp_path, estate, "display", SYSPRINT.encode())
    assert replayed.dead_letters == 0
    assert replayed.states["QSG1/APP1"].baseline["entries"] == 6372
    assert replayed.states["QM01/PS04"].pages_used == 8


def test_an_activity_trace_replays_with_units_of_work(tmp_path, estate):
    steps = [put(n, msgId=f"{n:048X}") for n in range(1, 6)]
    steps += [operation("Cmit", 10), get(11, msgId=f"{1:048X}"), operation("Cmit", 12), get(13, msgId=f"{2:048X}")]
    _, replayed = imported(tmp_path, estate, "amqsevt", json_text(activity(*steps)))
    state = replayed.states["QMD1/ORDERS"]
    assert (state.messages, state.uncommitted, state.unmatched_gets) == (4, 1, 0)
    assert replayed.dead_letters == 0


def test_statistics_of_a_distributed_queue_manager_replay(tmp_path, estate):
    _, replayed = imported(tmp_path, estate, "amqsevt", json_text(STATISTICS))
    assert replayed.dead_letters == 0
    assert replayed.states["QMD1/INVOICES"].messages == 110 - 80 - 5


def test_events_of_unknown_names_go_to_a_recording_of_their_own(tmp_path, estate):
    intake, _ = imported(tmp_path, estate, "smf", SMF, aside=tmp_path / "aside.ndjson")
    (chunk,) = open_recording(tmp_path / "aside.ndjson")
    assert len(chunk) == intake.aside > 0
    assert all(b'"OTHER"' in line for line in chunk.lines())


def test_the_line_for_an_unknown_queue_makes_the_estate_take_it(tmp_path, estate):
    data = record(216, [queue_statistics(queue="OTHER")])
    intake, _ = imported(tmp_path, estate, "smf", data)
    assert intake.events == 0
    (line,) = intake.lines_for_unknown()
    table, _, value = line.partition("add ")[2].partition("] ")
    path = tmp_path / "estate.toml"
    path.write_text(f"{ESTATE}\n{table}]\n{value}\n", encoding="utf-8")
    intake, replayed = imported(tmp_path, load_estate(path), "smf", data)
    assert (intake.aside, replayed.states["QSG1/APP1"].messages) == (0, 10)


def test_a_missing_file_is_an_error_and_leaves_no_recording(tmp_path, estate):
    with pytest.raises(UsageError, match="cannot be read"):
        import_files("smf", [tmp_path / "missing"], tmp_path / "out.ndjson", estate)
    assert not (tmp_path / "out.ndjson").exists()


def test_an_empty_file_has_no_events(tmp_path, estate):
    intake, _ = imported(tmp_path, estate, "smf", b"")
    assert (intake.events, dict(intake.counts)) == (0, {"nothing-read": 1})


# --- truth from outside ----------------------------------------------------------------------------------------------


def test_page_sets_of_a_real_queue_manager_replay_to_their_measured_pages(tmp_path, shared):
    """Each page set has at the end the pages of its last record, by the rule for usable pages of its data set."""
    path = shared / "fixtures" / "smf" / "SMF_MQ1000.dat"
    estate_path = tmp_path / "estate.toml"
    sizes = {0: 22860, 1: 600480}
    estate_path.write_text(
        "schema = 1\n[queue_manager.MQ1A]\n"
        + "".join(f'[page_set."MQ1A/{number}"]\npages = {pages}\n' for number, pages in sizes.items()),
        encoding="utf-8",
    )
    estate = load_estate(estate_path)
    intake = import_files("smf", [path], tmp_path / "out.ndjson", estate)
    state = replay(tmp_path / "out.ndjson", estate).states["MQ1A/PS01"]
    assert intake.events > 0
    assert (state.pages_total, state.baseline is not None) == (600441, True)
    assert state.drift_pct is not None


def test_the_page_growth_of_real_short_messages_is_one_page_each(tmp_path, shared):
    """403 nonpersistent puts of 33 bytes left 345 pages: one per message that stayed, none is shared."""
    data = (shared / "fixtures" / "smf" / "SMF_MQ1000.dat").read_bytes()
    estate_path = tmp_path / "estate.toml"
    estate_path.write_text(
        """
schema = 1
[queue_manager.MQ1A]
version = "10.0"
[page_set."MQ1A/1"]
pages = 600480
[storage_class."MQ1A/DEFAULT"]
page_set = 1
[queue."MQ1A/Q"]
storage_class = "DEFAULT"
""",
        encoding="utf-8",
    )
    estate = load_estate(estate_path)
    intake, _ = imported(tmp_path, estate, "smf", data)
    (chunk,) = open_recording(tmp_path / "out.ndjson")
    measured = [line for line in chunk.lines() if b'"MQ1A/PS01"' in line and b"pages_nonpersistent" in line]
    pages = [int(line.split(b'"pages_nonpersistent":')[1].split(b",")[0].rstrip(b"}")) for line in measured]
    growth = pages[-1] - pages[-2]
    assert growth == 345
    event = {"time": END, "qmgr": "MQ1A", "op": "PUT", "queue": "Q", "length": 33, "count": growth}
    with RecordingWriter(tmp_path / "puts.ndjson") as writer:
        writer.write([event])
    state = replay(tmp_path / "puts.ndjson", estate).states["MQ1A/PS01"]
    assert state.pages_nonpersistent == growth
    assert intake.peaks["SQ29/APPLICATION1"].entries == 34


def test_two_real_puts_take_two_pages(tmp_path, shared):
    """Messages of 354 and 713 bytes took two new pages (MQ 8.0): short messages do not share a page."""
    estate_path = tmp_path / "estate.toml"
    queue = "SYSTEM.CLUSTER.TRANSMIT.QUEUE"
    estate_path.write_text(
        f"""
schema = 1
[queue_manager.MQPC]
version = "8.0"
[page_set."MQPC/5"]
pages = 1080
[storage_class."MQPC/PS05"]
page_set = 5
[queue."MQPC/{queue}"]
storage_class = "PS05"
""",
        encoding="utf-8",
    )
    estate = load_estate(estate_path)
    path = shared / "fixtures" / "smf" / "TEST116.dat"
    import_files("smf", [path], tmp_path / "out.ndjson", estate, FeedOptions(flows="accounting"))
    state = replay(tmp_path / "out.ndjson", estate).states["MQPC/PS05"]
    assert (state.messages, state.bytes, state.pages_used) == (2, 354 + 713, 2)


@pytest.mark.parametrize("suffix", [".ndjson", ".arrow"])
def test_an_earlier_recording_stays_where_no_event_is_made(tmp_path, estate, suffix):
    out, aside, empty = tmp_path / f"out{suffix}", tmp_path / f"aside{suffix}", tmp_path / "empty.smf"
    for path in (out, aside):
        path.write_text("earlier")
    empty.write_bytes(b"\0" * 1000)
    assert import_files("smf", [empty], out, estate, aside=aside).events == 0
    with pytest.raises(UsageError, match="cannot be read"):
        import_files("smf", [tmp_path / "mistyped"], out, estate, aside=aside)
    assert {path.read_text() for path in (out, aside)} == {"earlier"}
    assert not list(tmp_path.glob(".*"))
