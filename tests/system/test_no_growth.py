"""Many batches: workers take turns without reloading state, and what a batch takes is released at its end."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import pytest

from tests.system.harness import Played, Stream, check_equal
from twin.estate import Estate
from twin.events import NDJSON

pytestmark = [pytest.mark.system, pytest.mark.nightly]

SETTLED = 16  # batches after which all workers, connections and caches exist
WINDOW = 6  # batches of which the median counts: Java's number goes up and down by a dozen
APART = 18  # batches from the first window to the last one
SLACK = 10  # descriptors; a leak of one per batch would be 18, one in each of two state partitions 36


def test_workers_that_take_turns_reload_nothing_and_descriptors_do_not_grow_with_batches(
    new_stream: Callable[[Estate], Stream], outage: Played
) -> None:
    stream = outage.publish(new_stream(outage.estate), NDJSON)
    stream.run(max_records=2)
    assert len(stream.batches) >= SETTLED + APART + WINDOW
    check_equal(stream, outage.replayed)

    counts = {name: sum(batch[name] for batch in stream.batches) for name in ("new", "kept", "attached", "loaded")}
    assert counts["loaded"] == 0
    assert counts["new"] == len(stream.states())
    assert counts["kept"] + counts["attached"] == sum(batch["stores"] for batch in stream.batches) - counts["new"]
    assert counts["attached"] > 0

    for figure in ("jvm_fds", "worker_fds"):
        seen = [batch[figure] for batch in stream.batches]
        first, last = (median(seen[start : start + WINDOW]) for start in (SETTLED, SETTLED + APART))
        assert last <= first + SLACK, f"{figure}: {seen}"
    assert not any(batch["unmirrored"] for batch in stream.batches)
