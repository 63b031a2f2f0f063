"""The past of a real job: the snapshots that it writes, and the state at past moments, by the command.

See tests/streams/test_past.py for what it is under all batches, snapshots and times.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from deploy.cli import main
from streams.checkpoint.snapshots import list_snapshots
from streams.query.definition import JobSettings
from streams.query.job import start_job
from streams.query.past import JobPast
from tests.support.traffic import START_US, lines_of, traffic, write_estate, write_recording
from tests.system.harness import Stream
from twin.base.units import as_text
from twin.estate import Estate, load_estate
from twin.planning.whatif import twin_at

pytestmark = [pytest.mark.system, pytest.mark.nightly]

STORES = ("QSG1/APP1", "QSG1/APP2")
MINUTE_US = 60_000_000


def test_a_past_moment_is_that_of_a_replay_also_after_a_restart(
    tmp_path: Path, new_stream: Callable[[Estate], Stream], capsys: pytest.CaptureFixture[str]
) -> None:
    described = write_estate(tmp_path)
    stream = new_stream(load_estate(described))
    events = [event for event in traffic(400) if "queue" in event]
    recording = write_recording(tmp_path / "traffic.ndjson", events)
    settings = JobSettings(
        estate=stream.estate,
        bootstrap_servers=stream.servers,
        checkpoint=str(stream.checkpoint),
        prefix=stream.prefix,
        available_now=True,
        max_records=120,
        snapshot_hours=1 / 60,
    )
    keys = [b"QSG1/APP1" if event["queue"] == "ORDERS" else b"QSG1/APP2" for event in events]
    records = [(key, line, None) for key, line in zip(keys, lines_of(events), strict=True)]
    for part in (records[:200], records[200:]):  # a restart in between
        stream.send(part)
        job = start_job(settings, session=stream.session)
        try:
            job.wait()
        finally:
            job.stop()
    snapshots = list_snapshots(stream.checkpoint)
    assert len(snapshots) >= 3 and snapshots[0].time < START_US + 100 * 1_000_000 < snapshots[-1].time

    def check(past: JobPast, time_us: int) -> None:
        for store in STORES:
            expected = twin_at(recording, stream.estate, store, time_us).state()
            assert past.states(time_us, store) == {store: expected}

    servers = {"bootstrap.servers": stream.servers}
    past = JobPast(
        kafka=servers,
        topics=stream.topics,
        estate=stream.estate,
        checkpoint=stream.checkpoint,
        session=stream.session,
    )
    check(past, snapshots[-1].time + 7_500_000)
    check(past, snapshots[-1].time - 1)
    place = ["--bootstrap-servers", stream.servers, "--topic-prefix", stream.prefix, "--estate", str(described)]
    early = START_US + MINUTE_US
    assert main(["state", "--at", as_text(early), *place, "--store", STORES[0]]) == 0  # the topic has its begin still
    expected = twin_at(recording, stream.estate, STORES[0], early).state()
    assert capsys.readouterr().out == msgspec.json.encode(expected).decode() + "\n"
    assert main(["state", "--at", "yesterday", *place]) == 2
    assert "--at yesterday; expected: RFC 3339" in capsys.readouterr().err
