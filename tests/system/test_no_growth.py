"""Resources of a batch, descriptors above all, are released at its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.streams.stage_help import START_US
from tests.support.estates import small_estate
from tests.system.harness import Stream
from twin.estate import Estate, load_estate

pytestmark = pytest.mark.system

STORE = "QSG1/APP1"
BATCHES = 60
SETTLED = 20  # batches after which all workers, connections and caches exist
SLACK = 25  # descriptors; a leak of one per batch in each of two state partitions would be 80


def test_descriptors_do_not_grow_with_batches(new_stream: Callable[[Estate], Stream], tmp_path: Path) -> None:
    stream = new_stream(load_estate(small_estate(tmp_path)))
    beats = [
        {"time": START_US + n * 1_000_000, "qmgr": "QM01", "op": "HEARTBEAT", "store": STORE} for n in range(BATCHES)
    ]
    stream.send([(STORE.encode(), msgspec.json.encode(beat), None) for beat in beats])
    stream.run(max_records=1)

    assert len(stream.batches) == BATCHES
    assert sum(batch["events"] for batch in stream.batches) == BATCHES
    for figure in ("jvm_fds", "worker_fds"):
        seen = [batch[figure] for batch in stream.batches]
        assert max(seen[SETTLED:]) <= seen[SETTLED] + SLACK, f"{figure}: {seen}"
    assert not any(batch["unmirrored"] for batch in stream.batches)
