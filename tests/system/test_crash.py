"""Kills in the middle of a job, lost caches and changing workers: alerts and states stay the same."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from streams.query.job import LOSS_VARIABLE
from tests.support.processes import send_signal, still_alive
from tests.support.profile import IS_LARGE
from tests.system.harness import Played, Stream, check_equal
from twin.estate import Estate

pytestmark = pytest.mark.system

NewStream = Callable[[Estate], Stream]
PATIENCE = 180.0  # seconds, on a busy machine
MAX_RECORDS = 1  # per batch, so that the recording is some dozen batches
CATCH_UP = 4  # per batch, where what matters has happened and the rest of the recording follows


@pytest.fixture
def published(new_stream: NewStream, outage: Played) -> Stream:
    """A stream whose events topic holds the outage."""
    return outage.publish(new_stream(outage.estate))


class Driver:
    """`mqtwin stream` as a process, with methods to read its log, wait for its end and kill it; a context kills it."""

    def __init__(self, stream: Stream, estate: Path, *options: str, max_records: int = MAX_RECORDS) -> None:
        command = [sys.executable, "-m", "deploy", "stream", "--estate", str(estate), "--checkpoint"]
        command += [str(stream.checkpoint), "--bootstrap-servers", stream.servers, "--topic-prefix", stream.prefix]
        command += ["--master", "local[2]", "--log", "json", "--max-records", str(max_records)]
        command += ["--conf", f"spark.local.dir={stream.checkpoint.parent / 'spark'}", *options]
        self.lines: list[str] = []  # of standard error, as far as they were read
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()

    def log(self) -> Iterator[dict[str, Any]]:
        """Yield its log lines as they arrive."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if line.startswith("{"):
                yield json.loads(line)

    def batches(self, count: int) -> list[dict[str, Any]]:
        """Return the log lines of its first batches."""
        batches = []
        deadline = time.monotonic() + PATIENCE
        for entry in self.log():
            assert time.monotonic() < deadline, batches
            if entry["event"] == "batch":
                batches.append(entry)
                if len(batches) == count:
                    return batches
        raise AssertionError(f"it ended after {len(batches)} batches with {self.end()}: {''.join(self.lines)}")

    def end(self) -> int:
        """Wait for its end and return its exit status."""
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode

    def kill(self) -> None:
        """Send SIGKILL to the driver and to all its descendants, at once."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        send_signal(family)
        assert not still_alive(family, PATIENCE)
        self.end()


def test_a_store_of_every_kind_gives_the_same_alerts_and_states(new_stream: NewStream, every_kind: Played) -> None:
    """It is here and not in test_stream_equals_replay.py because the recording takes long to make."""
    stream = every_kind.publish(new_stream(every_kind.estate))
    stream.run(max_records=9)
    check_equal(stream, every_kind.replayed)


@pytest.mark.parametrize(("story", "max_records"), [("every_kind", 8), ("outage", MAX_RECORDS)])
def test_a_job_killed_in_the_middle_has_the_output_of_an_undisturbed_one(
    new_stream: NewStream, request: pytest.FixtureRequest, story: str, max_records: int
) -> None:
    played: Played = request.getfixturevalue(story)
    published = played.publish(new_stream(played.estate))
    done = 0
    for later in (0.05, 0.2):
        with Driver(published, played.described, max_records=max_records) as driver:
            batches = driver.batches(2)
            time.sleep(later)  # into the next batch
            driver.kill()
        assert batches[0]["batch"] >= done
        done = batches[-1]["batch"]
    published.run(max_records=max(max_records, CATCH_UP))
    assert len(published.batches) > 1
    check_equal(published, played.replayed)


@pytest.mark.skipif(not IS_LARGE, reason="its rules are also those of test_processes.py, for a signal to the group")
def test_a_job_asked_to_stop_finishes_its_batch_and_goes_on_later(published: Stream, outage: Played) -> None:
    with Driver(published, outage.described) as driver:
        driver.batches(2)
        family = psutil.Process(driver.process.pid).children(recursive=True)
        driver.process.send_signal(signal.SIGTERM)
        entries = list(driver.log())
        assert driver.end() == 0
    stops = [entry["event"] for entry in entries if entry["event"] in {"stopping", "stopped"}]
    assert stops == ["stopping", "stopped"]
    assert not [entry for entry in entries if entry["level"] == "error"]
    assert not still_alive(family)
    published.run(max_records=CATCH_UP)
    check_equal(published, outage.replayed)


@pytest.mark.parametrize("seed", [1, 2] if IS_LARGE else [1])
def test_caches_that_vanish_at_random_change_nothing(
    published: Stream, outage: Played, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setenv(LOSS_VARIABLE, f"0.5,{seed}")
    published.run(max_records=MAX_RECORDS)
    assert sum(batch["loaded"] for batch in published.batches) > 0
    check_equal(published, outage.replayed)


def test_workers_that_take_turns_reload_nothing(published: Stream, outage: Played) -> None:
    published.run(max_records=MAX_RECORDS)
    counts = {name: sum(batch[name] for batch in published.batches) for name in ("new", "kept", "attached", "loaded")}
    assert counts["loaded"] == 0
    assert counts["new"] == len(published.states())
    assert counts["kept"] + counts["attached"] == sum(batch["stores"] for batch in published.batches) - counts["new"]
    assert counts["attached"] > 0
    check_equal(published, outage.replayed)


def test_a_restart_resumes_from_the_state_of_the_last_run(published: Stream, outage: Played) -> None:
    for _ in range(3):
        published.run(max_records=10_000)
    check_equal(published, outage.replayed)
