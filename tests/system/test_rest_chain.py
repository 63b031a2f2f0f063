"""A site known by its REST interface, through Kafka and Spark: what the job writes is what twins in process say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streams.collecting.collect import EventWriter
from streams.kafka.dead_letters import LetterSender
from streams.kafka.publish import PublishResult, Sender
from tests.mqweb import MqwebServer
from tests.support.rest_chain import ASKED, SECOND, Chain, played
from tests.system.harness import Stream, by_id
from twin.estate import Estate

pytestmark = [pytest.mark.system, pytest.mark.nightly]

EVERY_S = 60


def test_rounds_become_alerts_and_states_in_the_stream(
    new_stream: Callable[[Estate], Stream], kafka: str, tmp_path: Path
) -> None:
    """The job runs in the midst of the rise and at the end; a queue file, a page set and structures are known."""
    system = played(tmp_path, "QSG1/APP1", length=300.0, hours=1.0, outage_after=0.3, outage=0.5)
    stream, client = new_stream(system.estate), {"bootstrap.servers": kafka}
    with (
        MqwebServer(system) as server,
        Sender(client, stream.topics, PublishResult(), linger_ms=5, create_topics=True) as sender,
    ):
        letters = LetterSender(client, stream.topics, create_topics=True)
        writer = EventWriter(sender, letters, system.estate)
        chain = Chain(server, system, ASKED, answer_s=0.02)
        for minute in range(60):
            system.play(system.start + minute * EVERY_S * SECOND)
            chain.round(has_definitions=not minute)
            writer.write(chain.events)
            if minute == 30:
                writer.flush()
                stream.run()
        writer.flush()
    stream.run()
    assert not chain.complaints
    assert stream.alerts() == by_id(chain.alerts)
    assert stream.states() == chain.player.states()
    assert not stream.letters()
    assert {"threshold", "full"} <= {alert.condition for alert in chain.alerts if alert.store == "QSG1/APP1"}
