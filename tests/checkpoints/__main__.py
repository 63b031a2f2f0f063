"""Write the checkpoint of a release: `python -m tests.checkpoints [--tree DIR]`.

A tree of another commit (`git worktree add --detach DIR COMMIT`) runs the job; this one makes the events, the broker
and the archive. A release that raises the state format, or forecasts otherwise, adds an archive; none is ever written
again, and `archives.OTHER_RULES` then has the one before it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import msgspec

from deploy.java.broker import Broker
from streams.checkpoint.files import MANIFEST
from streams.kafka.admin import prepare_topics
from streams.kafka.publish import publish
from streams.kafka.topics import Topics
from tests.checkpoints import workload
from tests.checkpoints.archives import FOLDER, Contents, pack
from tests.streams.kafka_help import create, send
from tests.support.mixed import mixed_estate
from twin.estate import load_estate
from twin.events import JSON

ROOT = Path(__file__).parents[2]
PARTITIONS = 4  # of the state
# Some batches, the last of which follows a snapshot, and few files.
_OPTIONS = ("--master", "local[2]", "--available-now", "--max-records", "1200", "--log", "json")
_CONF = (
    f"spark.sql.shuffle.partitions={PARTITIONS}",
    "spark.sql.streaming.stateStore.maintenanceInterval=1s",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot=2",
    "spark.sql.streaming.minBatchesToRetain=2",
)


def main() -> None:
    """Write the file, and print its path and size."""
    parser = argparse.ArgumentParser(prog="python -m tests.checkpoints", description=__doc__)
    parser.add_argument("--tree", type=Path, default=ROOT, help="source tree of the release; default: this one")
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder of the file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mqtwin-checkpoint-") as scratch, Broker().start() as broker:
        path = _write(arguments.tree.resolve(), Path(scratch), broker.bootstrap_servers, arguments.output)
    print(f"{path}: {path.stat().st_size:,} bytes")


def _write(tree: Path, scratch: Path, servers: str, output: Path) -> Path:
    folder, checkpoint = scratch / "archive", scratch / "checkpoint"
    folder.mkdir()
    changed = _git(tree, "status", "--porcelain", "--", "kernels", "twin", "streams", "deploy")
    if changed:
        raise SystemExit(f"{tree} is not the commit that it would be named after: {changed}")
    commit = _git(tree, "rev-parse", "--short=7", "HEAD")
    version = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    prefix = f"kept-{commit}"
    topics = Topics(prefix, f"{prefix}.spans")
    estate_file = mixed_estate(folder).rename(folder / "estate.toml")
    events, calls = workload.make_events(), workload.make_span_events()
    spans, spans_before = workload.make_spans()
    for name, rows in (("events", events), ("calls", calls)):
        (folder / f"{name}.ndjson").write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in rows))
    (folder / "spans.msgpack").write_bytes(msgspec.msgpack.encode(spans))
    before = sum(event["time"] < workload.START_US + workload.HALF * workload.STEP_US for event in events)
    first = scratch / "first.ndjson"
    first.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events[:before]))

    client = {"bootstrap.servers": servers}
    prepare_topics(Topics(prefix), client)
    create(servers, str(topics.otlp))
    publish(first, load_estate(estate_file), client, Topics(prefix), content_type=JSON)
    send(servers, str(topics.otlp), list(spans[:spans_before]))
    _run(
        tree,
        version,
        scratch,
        ["--estate", str(estate_file), "--checkpoint", str(checkpoint), *_kafka(topics, servers)],
    )
    manifest = msgspec.json.decode((checkpoint / MANIFEST).read_bytes())
    contents = Contents(
        version=version,
        state_format=manifest["state_format"],
        commit=commit,
        prefix=prefix,
        otlp=str(topics.otlp),
        partitions=_partitions(servers, topics),
        events=before,
        spans=spans_before,
    )
    return pack(contents, folder, servers, checkpoint, output)


def _kafka(topics: Topics, servers: str) -> list[str]:
    return ["--bootstrap-servers", servers, "--topic-prefix", topics.prefix, "--otlp-topic", str(topics.otlp)]


def _partitions(servers: str, topics: Topics) -> dict[str, int]:
    from streams.kafka.admin import partitions_of

    return {
        name: len(partitions_of({"bootstrap.servers": servers}, name)) for name in sorted({*topics.read, *topics.out})
    }


def _run(tree: Path, version: str, scratch: Path, options: list[str]) -> None:
    """Run the job of a tree, whose modules come before those installed here, and so does its version."""
    installed = scratch / "installed" / f"mqtwin-{version}.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: mqtwin\nVersion: {version}\n", encoding="utf-8")
    path = os.pathsep.join((str(tree), str(installed.parent)))
    command = [sys.executable, "-m", "deploy", "stream", *options, *_OPTIONS]
    command += [part for setting in _CONF for part in ("--conf", setting)]
    done = subprocess.run(
        command, cwd=tree, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"the job of {tree} failed: {done.stderr[-4000:]}")
    if re.search(r'"dead_letters": ?[1-9]', done.stderr):
        raise SystemExit(f"the job of {tree} wrote dead letters: {done.stderr[-4000:]}")


def _git(tree: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(tree), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
