"""Every format of data that sites have, through Kafka and Spark into states: by `mqtwin import`, and live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from deploy.cli import main
from streams.collecting.collect import EventWriter, collect
from streams.collecting.sources import Position
from streams.collecting.topic_source import TopicSource
from streams.kafka.dead_letters import LetterSender
from streams.kafka.publish import PublishResult, Sender
from tests.streams.kafka_help import create, send
from tests.system.harness import Played, Stream, check_equal
from tests.twin.feeds.conftest import ESTATE
from tests.twin.feeds.live_samples import LIVE_PAGES
from tests.twin.feeds.samples import PAGES
from twin.estate import Estate, load_estate
from twin.feeds import FORMATS, FeedOptions, Intake, make_feed

pytestmark = [pytest.mark.system, pytest.mark.nightly]

NewStream = Callable[[Estate], Stream]
_OPTIONS = {
    "otlp": ["--late", "0", "--lpar", "MV4C=QM01"],
    "rest": ["--qmgr", "QM01"],
    "prometheus": ["--length", "100"],
}
_LIVE_OPTIONS = {
    "otlp": FeedOptions(late_s=0.0, lpars={"MV4C": "QM01"}),
    "prometheus": FeedOptions(length=100),
    "connect": FeedOptions(qmgr="QM01", queue="ORDERS"),
}


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("site") / "estate.toml"
    path.write_text(ESTATE, encoding="utf-8")
    return path


def test_files_of_every_format_become_states_in_the_stream(
    new_stream: NewStream, described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, lines = tmp_path / "whole.ndjson", []
    formats = sorted(name for name, format_ in FORMATS.items() if format_.is_file)
    for name in formats:
        recording, files = tmp_path / f"{name}.ndjson", []
        for number, page in enumerate(PAGES[name]):
            files.append(tmp_path / f"{name}-{number}")
            files[-1].write_bytes(page)
        words = ["import", name, *map(str, files), "--estate", str(described), "-o", str(recording)]
        assert main([*words, *_OPTIONS.get(name, ())]) == 0, f"{name}: {capsys.readouterr().err}"
        lines += recording.read_bytes().splitlines(keepends=True)
    # In the order of time, as what a coupling facility measures must not come after what its structures report later.
    whole.write_bytes(b"".join(sorted(lines, key=lambda line: int(msgspec.json.decode(line)["time"]))))
    played = Played.replay(described, whole)
    stream = played.publish(new_stream(played.estate))
    stream.run()
    check_equal(stream, played.replayed)
    assert played.replayed.dead_letters == 0
    assert stream.states().keys() >= {"QSG1/APP1", "QM01/PS04", "QMD1/INVOICES", "CF01"}


def test_every_live_format_becomes_states_in_the_stream(
    new_stream: NewStream, kafka: str, described: Path, tmp_path: Path
) -> None:
    estate = load_estate(described)
    stream = new_stream(estate)
    client = {"bootstrap.servers": kafka}
    for name in sorted(name for name, format_ in FORMATS.items() if format_.is_live and name != "rest"):
        pages, intake = LIVE_PAGES.get(name) or PAGES[name], Intake(estate)
        feed = make_feed(name, intake, _LIVE_OPTIONS.get(name))
        topic = f"{stream.prefix}.{name}"
        create(kafka, topic)
        send(kafka, topic, list(pages))
        source = TopicSource(client, topic, Position(source=topic))
        with Sender(client, stream.topics, PublishResult(), linger_ms=5, create_topics=True) as sender:
            collect(
                source,
                feed,
                intake,
                EventWriter(sender, LetterSender(client, stream.topics, create_topics=True), estate),
                tmp_path / f"{name}.json",
                stop=lambda: source.position(feed).read.get("0", 0) >= len(pages),  # noqa: B023 -- called in this turn
                on_complaint=lambda _: None,
            )
        source.close()
        assert intake.events, name
    stream.run()
    states = stream.states()
    assert states.keys() >= {"QSG1/APP1", "QM01/PS04", "QMD1/INVOICES", "CF01"}
    assert states["QSG1/APP1"].drift_pct is not None
    assert states["QMD1/INVOICES"].events > 0
