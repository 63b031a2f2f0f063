"""The past of a real job: snapshots that it writes, and the state at past moments from them and a real Kafka."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streams.checkpoint.snapshots import list_snapshots
from streams.query.definition import JobSettings
from streams.query.job import start_job
from streams.query.past import JobPast
from tests.system.harness import Played, Stream
from twin.estate import Estate
from twin.events import NDJSON
from twin.playback.replays import Player, decoded_chunks, play
from twin.units import as_text

pytestmark = [pytest.mark.system, pytest.mark.nightly]


def test_x(every_kind: Played, new_stream: Callable[[Estate], Stream]) -> None:
    stream = new_stream(every_kind.estate)
    every_kind.publish(stream, NDJSON)
    for _ in range(2):
        settings = JobSettings(
            estate=stream.estate,
            bootstrap_servers=stream.servers,
            checkpoint=str(stream.checkpoint),
            prefix=stream.prefix,
            available_now=True,
            max_records=150,
            snapshot_hours=0.25,
        )
        job = start_job(settings, session=stream.session, on_batch=stream.batches.append)
        job.wait()
        job.stop()
    print(stream.batches[-1])
    snaps = list_snapshots(stream.checkpoint)
    print([(as_text(s.time), s.batch) for s in snaps])
    past = JobPast(
        kafka={"bootstrap.servers": stream.servers},
        topics=stream.topics,
        estate=stream.estate,
        checkpoint=stream.checkpoint,
        session=stream.session,
    )
    for s in snaps[1::3]:
        for d in (-1, 100_000_000):
            t = s.time + d
            player = Player(stream.estate)
            for _ in play((c.until(t) for c in decoded_chunks(every_kind.recording, stream.estate)), player):
                pass
            import time

            t0 = time.time()
            got, want = past.states(t), player.states()
            print("took", time.time() - t0)
            for name in want:
                if got.get(name) != want[name]:
                    print(
                        as_text(t),
                        name,
                        {
                            f: (getattr(got[name], f), getattr(want[name], f))
                            for f in want[name].__struct_fields__
                            if getattr(got.get(name), f, None) != getattr(want[name], f)
                        }
                        if name in got
                        else "missing",
                    )
    assert 0
