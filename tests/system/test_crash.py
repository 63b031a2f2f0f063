"""Kills in the middle of a job and lost caches: alerts and states stay the same."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from streams.query.job import LOSS_VARIABLE
from tests.support.processes import still_alive
from tests.support.profile import IS_LARGE
from tests.system.harness import Played, Stream, check_equal
from tests.system.job_process import CATCH_UP, MAX_RECORDS, PATIENCE, Command, check_clean, left_in, running
from twin.estate import Estate

pytestmark = pytest.mark.system


def test_a_job_killed_in_the_middle_has_the_output_of_an_undisturbed_one(
    new_stream: Callable[[Estate], Stream], every_kind: Played, temporary: Path
) -> None:
    """Stores of every kind. First all processes are killed at once, then only the driver, whose end the others notice.

    It is the only test of this recording, which takes long to make.
    """
    published = every_kind.publish(new_stream(every_kind.estate))
    begin = partial(Command, published, every_kind.described, temporary=temporary, max_records=8)
    with running(begin()) as command:
        done = command.read_until("batch", 2)["batch"]
        time.sleep(0.05)  # into the next batch
        command.kill()
    (left,) = left_in(temporary)
    with running(begin()) as command:
        assert command.read_until("batch")["batch"] >= done
        assert left not in left_in(temporary)
        command.read_until("batch")
        time.sleep(0.2)
        family = command.family()
        command.process.kill()
        assert not still_alive(family, PATIENCE)
        command.end()
    published.run(max_records=8)
    assert len(published.batches) > 1
    check_equal(published, every_kind.replayed)


@pytest.mark.skipif(not IS_LARGE, reason="test_processes.py and test_stream_command.py stop whole groups so")
def test_a_job_asked_to_stop_finishes_its_batch_and_goes_on_later(
    published: Stream, outage: Played, temporary: Path
) -> None:
    with running(Command(published, outage.described, temporary=temporary)) as command:
        command.read_until("batch", 2)
        family = command.family()
        command.process.terminate()
        assert command.end() == 0
    check_clean([json.loads(line) for line in command.lines], family, temporary)
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
