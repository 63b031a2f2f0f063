"""The log of a distributed queue manager: records of all its queues, checkpoints, and the files they truncate.

Sources: [IBM: What's the point of logging?; Views of the Queue; MQCMIT Walkthrough], quoted where used;
docs/storage-model.md.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.shared import START_US
from twin.estate import Estate, EstateError, load_estate
from twin.events import Decoder
from twin.playback.replays import Player, replay
from twin.recordings.files import RecordingWriter
from twin.stores.open import open_store

QUEUES = ("A", "B", "C")
ESTATE = "schema = 1\n" + "".join(
    f'[queue_file."QMD1/{queue}"]\ndefault_q_buffer_size = 4096\ndefault_pq_buffer_size = 8192\n' for queue in QUEUES
)
DISTRIBUTED = '[queue_manager.QMD1]\nplatform = "distributed"\n'
ONE_BLOCK = 148  # the longest message of one block
MINUTE = 60


def played(folder: Path, estate: Estate, events: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the state of the log of QMD1 after a recording."""
    with RecordingWriter(folder / "played.ndjson") as writer:
        writer.write(events)
    return replay(folder / "played.ndjson", estate).states["QMD1"]


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Three queues of QMD1 with buffers of 8 (nonpersistent) and 16 blocks (persistent)."""
    return written(tmp_path_factory.mktemp("estate"), ESTATE + DISTRIBUTED)


def written(folder: Path, text: str) -> Estate:
    (folder / "estate.toml").write_text(text, encoding="utf-8")
    return load_estate(folder / "estate.toml")


class QueueManager:
    """QMD1 driven by events, after a heartbeat of every queue: a queue that says nothing is waited for."""

    def __init__(self, estate: Estate) -> None:
        self.decoder, self.player = Decoder(estate), Player(estate)
        self.send(0, "HEARTBEAT")

    def send(self, seconds: float, op: str, *queues: str, **fields: Any) -> None:
        """Apply an event to each of some queues, at the same time."""
        event = {"time": START_US + int(seconds * 1e6), "qmgr": "QMD1", "op": op} | fields
        if op == "PUT":
            event.setdefault("length", ONE_BLOCK)
        self.feed([event | {"queue": queue} for queue in queues] or [event])

    def feed(self, events: list[dict[str, Any]]) -> None:
        decoded = self.decoder.json([msgspec.json.encode(event) for event in events])
        assert not decoded.rejects, decoded.rejects
        self.player.feed(decoded)

    def state(self, seconds: float) -> dict[str, Any]:
        """Return the state of its log once every queue has passed that time."""
        self.send(seconds, "HEARTBEAT")
        return self.player.states()["QMD1"]

    def files(self, seconds: float) -> dict[str, int]:
        """Return the blocks of the files."""
        return {file.name: file.bytes // 512 for file in self.state(seconds).files}


def log(state: dict[str, Any]) -> tuple[int, int, int]:
    return state.log_records, state.checkpoints, state.records_to_replay


# --- the estate ------------------------------------------------------------------------------------------------------


def test_a_queue_manager_with_queue_files_has_a_log(estate: Estate) -> None:
    assert estate.stores["QMD1"].kind == "queue_manager"
    assert estate.stores["QMD1"].details == "log of 3 queue files"
    assert [route.qmgr for route in estate.routes if route.store == "QMD1"] == ["QMD1"]


def test_a_cluster_has_another_name_than_a_queue_manager_with_queue_files(tmp_path: Path) -> None:
    cluster = '[uniform_cluster.QMD1]\nqueue_managers = ["QMD1"]\nmessages_per_second = 1\n'
    with pytest.raises(EstateError, match="queue manager QMD1 has queue files, and there is a uniform cluster QMD1"):
        written(tmp_path, ESTATE + DISTRIBUTED + cluster)


def test_its_log_has_nothing_to_alter(estate: Estate) -> None:
    event = {"time": START_US, "qmgr": "QMD1", "op": "ALTER", "store": "QMD1", "attributes": {"size": 1}}
    (reject,) = Decoder(estate).json([msgspec.json.encode(event)]).rejects
    assert "ALTER of QMD1: size = 1: expected: none" in str(reject)


# --- queues that are not used ----------------------------------------------------------------------------------------


def puts(queue: str, begin: int, number: int, interval: float) -> list[dict[str, Any]]:
    """Return persistent puts from a second on."""
    event = {"qmgr": "QMD1", "op": "PUT", "queue": queue, "length": ONE_BLOCK, "persistent": True}
    times = (START_US + int((begin + i * interval) * 1e6) for i in range(number))
    return [event | {"time": time} for time in times]


def test_a_queue_that_is_not_used_stops_no_log(estate: Estate, tmp_path: Path) -> None:
    """Three queue files of which one is unused: nothing says so, not even a heartbeat."""
    events = puts("A", 0, 20_000, 2) + puts("B", 1, 20_000, 2)
    events += [{"qmgr": "QMD1", "op": "GET", "queue": queue, "time": START_US + 40_020_000_000} for queue in "AB"]
    state = played(tmp_path, estate, sorted(events, key=lambda event: event["time"]))
    assert log(state) == (40_000, 22, 390), "a put is a record, and one in a second; a checkpoint every 1,800 s"
    assert state.late_reports == 0


def test_a_queue_that_is_used_no_longer_stops_no_log(estate: Estate, tmp_path: Path) -> None:
    events = puts("A", 0, 12_000, 1) + puts("B", 0, 300, 1) + puts("B", 8_000, 1, 1)
    state = played(tmp_path, estate, sorted(events, key=lambda event: event["time"]))
    assert state.time == "2026-11-20T15:17:50.000000Z", "two minutes in which B may still be heard"
    assert state.log_records == 11_870 + 300, "the last one of B is reported when B is heard again"
    assert state.late_reports == 0


# --- log records -----------------------------------------------------------------------------------------------------


def test_10000_log_records_of_all_queues_together_make_a_checkpoint(estate: Estate) -> None:
    """What's the point of logging?: "when 10000 log records have been written", by the queue manager."""
    qmgr = QueueManager(estate)
    qmgr.send(1, "PUT", "A", "B", persistent=True, count=4_999)
    qmgr.send(2, "PUT", "C", persistent=True)
    assert log(qmgr.state(20)) == (9_999, 0, 9_999)
    qmgr.send(21, "PUT", "C", persistent=True)
    assert log(qmgr.state(40)) == (10_000, 1, 0)
    qmgr.send(41, "PUT", "A", "B", persistent=True, count=6_000)
    assert log(qmgr.state(60)) == (22_000, 2, 2_000)


def test_the_commit_of_a_unit_over_several_queues_is_one_record(estate: Estate) -> None:
    """MQCMIT Walkthrough: "a log record is written to end the transaction"; a collector sends a COMMIT a queue."""
    qmgr = QueueManager(estate)
    qmgr.send(1, "PUT", *QUEUES, persistent=True, uow="U")
    qmgr.send(2, "COMMIT", *QUEUES, uow="U")
    assert log(qmgr.state(20))[0] == 3 + 1
    qmgr.send(21, "PUT", "A", "B", persistent=True, uow="U")
    qmgr.send(22, "COMMIT", "A", "B", uow="U")
    qmgr.send(23, "PUT", "A", persistent=True, uow="U")
    qmgr.send(24, "COMMIT", "A", uow="U")
    assert log(qmgr.state(40))[0] == 4 + 3 + 2, "of a uow used again in the same ten seconds each end counts"


def test_ends_of_different_units_are_records_of_their_own(estate: Estate) -> None:
    qmgr = QueueManager(estate)
    for queue in QUEUES:
        qmgr.send(1, "PUT", queue, persistent=True, uow=queue)
        qmgr.send(2, "COMMIT", queue, uow=queue)
    assert log(qmgr.state(20))[0] == 6


def test_ends_beyond_those_that_a_report_lists_count_by_themselves(estate: Estate) -> None:
    qmgr = QueueManager(estate)
    puts = [
        {"time": START_US, "qmgr": "QMD1", "op": op, "queue": queue, "uow": f"U{number}", **fields}
        for number in range(1_030)
        for op, fields in (("PUT", {"length": 0, "persistent": True}), ("COMMIT", {}))
        for queue in ("A", "B")
    ]
    qmgr.feed(puts)
    assert log(qmgr.state(20))[0] == 2 * 1_030 + 1_024 + 2 * 6


def test_a_restart_undoes_a_unit_over_two_queues_with_one_end(estate: Estate) -> None:
    """Phases of Restart Recovery: a compensation record for each operation undone."""
    qmgr = QueueManager(estate)
    qmgr.send(1, "PUT", "A", "B", persistent=True, uow="U", count=2)
    qmgr.send(2, "RESTART")
    assert log(qmgr.state(20))[0] == 4 + 4 + 1


def test_half_an_hour_after_the_last_checkpoint_100_records_of_all_queues_are_enough(estate: Estate) -> None:
    """What's the point of logging?: "either every 30 minutes provided there are at least 100 log records"."""
    qmgr = QueueManager(estate)
    qmgr.send(1, "PUT", "A", persistent=True, count=50)
    qmgr.send(2, "PUT", "B", persistent=True, count=49)
    assert log(qmgr.state(31 * MINUTE)) == (99, 0, 99)
    qmgr.send(31 * MINUTE, "PUT", "C", persistent=True)
    assert log(qmgr.state(32 * MINUTE)) == (100, 1, 0)
    qmgr.send(32 * MINUTE, "PUT", "A", "B", persistent=True, count=50)
    assert log(qmgr.state(61 * MINUTE)) == (200, 1, 100)
    assert log(qmgr.state(90 * MINUTE)) == (200, 2, 0), "at its time, although no event comes then"


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_checkpoint_that_other_queues_bring_truncates_the_file_of_a_queue_with_a_persistent_update(
    estate: Estate,
) -> None:
    """Views of the Queue: "A queue is checkpointed when a checkpoint occurs AND a recoverable update" was made."""
    qmgr = QueueManager(estate)
    qmgr.send(1, "PUT", "A", "B", count=8 + 40)  # 40 blocks of each file
    qmgr.send(2, "GET", "A", "B", count=48)
    qmgr.send(3, "PUT", "A", persistent=True)
    assert qmgr.files(20) == {"A": 40, "B": 40, "C": 0}
    qmgr.send(21, "PUT", "C", persistent=True, count=10_000)
    assert qmgr.files(40) == {"A": 1, "B": 40, "C": 10_000}, "B had no persistent update"
    assert qmgr.state(41).truncations == 1
    assert qmgr.state(42).file_bytes == (1 + 40 + 10_000) * 512


def test_a_checkpoint_that_other_queues_bring_stops_at_the_last_block_in_use(estate: Estate) -> None:
    qmgr = QueueManager(estate)
    qmgr.send(1, "PUT", "A", count=8 + 100)
    qmgr.send(2, "GET", "A", count=8 + 99)  # all but the last
    qmgr.send(3, "PUT", "A", persistent=True)
    qmgr.send(4, "PUT", "C", persistent=True, count=9_999)
    assert qmgr.files(20)["A"] == 100
    qmgr.send(21, "PUT", "A", count=8 + 10)  # in the buffer, and in the blocks that are free before the last
    qmgr.send(22, "GET", "A")  # the last
    qmgr.send(23, "PUT", "A", persistent=True)
    qmgr.send(24, "PUT", "C", persistent=True, count=9_999)
    assert qmgr.files(40)["A"] == 10 + 2, "with persistent data of the buffer"


def test_persistent_data_in_the_buffer_reaches_the_file_at_a_checkpoint(estate: Estate) -> None:
    """What's the point of logging?: "the log and data are brought into line"."""
    qmgr = QueueManager(estate)
    qmgr.send(1, "PUT", "A", persistent=True, count=16)
    qmgr.send(1, "PUT", "A", count=8)
    assert qmgr.files(20)["A"] == 0
    qmgr.send(21, "PUT", "B", persistent=True, count=9_984)
    assert qmgr.files(40)["A"] == 16


def test_a_clear_truncates_at_once(estate: Estate) -> None:
    qmgr = QueueManager(estate)
    qmgr.send(1, "PUT", "A", count=48)
    assert qmgr.files(20)["A"] == 40
    qmgr.send(21, "CLEAR", "A")
    assert qmgr.files(40)["A"] == 0


def test_a_file_grows_again_after_a_checkpoint_that_its_own_records_did_not_bring(estate: Estate) -> None:
    qmgr = QueueManager(estate)
    qmgr.send(1, "PUT", "A", count=48)
    qmgr.send(2, "GET", "A", count=48)
    qmgr.send(3, "PUT", "A", persistent=True)
    qmgr.send(4, "PUT", "B", persistent=True, count=9_999)
    assert qmgr.files(20)["A"] == 1
    qmgr.send(21, "PUT", "A", count=28)
    assert qmgr.files(40)["A"] == 20
    qmgr.send(41, "PUT", "A", count=40)
    assert qmgr.files(60)["A"] == 60


# --- determinism, restart --------------------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return events of an hour on three queues: persistent and other messages, units over several queues."""
    events: list[dict[str, Any]] = []
    time = START_US
    for op, queue, count, uow, pause in draw(
        st.lists(
            st.tuples(
                st.sampled_from(["PUT", "PUT", "GET", "COMMIT", "BACKOUT", "CLEAR", "RESTART"]),
                st.sampled_from([("A",), ("B",), ("A", "B"), QUEUES]),
                st.sampled_from([1, 30, 60, 5_000]),
                st.sampled_from([None, "U", "V"]),
                st.sampled_from([0, 1, 9, 700]),
            ),
            min_size=5,
            max_size=30,
        )
    ):
        time += pause * 1_000_000
        event: dict[str, Any] = {"time": time, "qmgr": "QMD1", "op": op}
        if op in ("COMMIT", "BACKOUT"):
            event["uow"] = uow or "U"
        elif op in ("PUT", "GET"):
            event |= {"count": count} | ({"uow": uow} if uow else {})
            event |= {"length": ONE_BLOCK, "persistent": count != 60} if op == "PUT" else {}
        events += [event | {"queue": name} for name in queue] if op != "RESTART" else [event]
    return [*events, {"time": time + 20_000_000, "qmgr": "QMD1", "op": "HEARTBEAT"}]


@given(events=histories(), cuts=st.lists(st.integers(0, 40), max_size=6))
def test_neither_batches_nor_a_restart_of_the_job_change_anything(
    estate: Estate, events: list[dict[str, Any]], cuts: list[int]
) -> None:
    whole = QueueManager(estate)
    whole.feed(events)
    pieces = QueueManager(estate)
    for start, end in pairwise([0, *sorted(cuts), len(events)]):
        if start < end:
            pieces.feed(events[start:end])
    assert pieces.player.states() == whole.player.states()


def test_its_state_continues_after_the_job_is_started_again(estate: Estate) -> None:
    qmgr = QueueManager(estate)
    qmgr.send(1, "PUT", *QUEUES, persistent=True, count=50, uow="U")
    qmgr.send(2, "COMMIT", *QUEUES, uow="U")
    before = qmgr.state(20)
    again = open_store(estate, "QMD1", header=qmgr.player.twins["QMD1"].header())
    assert again.state() == before


@given(
    puts=st.lists(
        st.tuples(st.sampled_from(QUEUES), st.booleans(), st.integers(1, 4_000), st.integers(0, 40)), max_size=20
    )
)
def test_checkpoints_and_records_to_replay_follow_from_the_number_of_records(
    estate: Estate, puts: list[tuple[str, bool, int, int]]
) -> None:
    qmgr, time, since, checkpoints = QueueManager(estate), 0, 0, 0
    for queue, persistent, count, seconds in puts:
        time += 10 + seconds  # a tick of its own
        qmgr.send(time, "PUT", queue, persistent=persistent, count=count)
        since += count if persistent else 0
        checkpoints, since = checkpoints + since // 10_000, since % 10_000
    state = qmgr.state(time + 20)
    assert (state.checkpoints, state.records_to_replay) == (checkpoints, since)
