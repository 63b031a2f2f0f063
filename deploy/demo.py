"""The demo: a real broker, the streaming job and a scenario in fast motion, in one process and a scratch folder."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from deploy.broker import Broker
from deploy.jars import SPARK_CONNECTOR, ensure_jars
from deploy.java import find_java
from deploy.show.alerts import in_one_line
from deploy.show.forecast import in_words
from deploy.show.picture import picture
from deploy.show.verdict import Line, fixed_line, verdict
from streams.kafka.pace import Pace
from streams.kafka.publish import publish
from streams.kafka.state_reader import StateReader
from streams.kafka.subscribe import AlertReader, AlertRecord
from streams.kafka.topics import Topics
from streams.log import configure_logging
from streams.query.job import Job, JobSettings, start_job
from twin.errors import MqtwinError
from twin.estate import Estate
from twin.events import ARROW
from twin.simulation import Outcome, demo_estate, make_scenario, simulate
from twin.units import as_span

SCENARIO = "getter-outage"
_REFRESH = 4  # pictures a second
_PATIENCE = 120.0  # seconds without a new state record after which the demo gives up


@dataclass(slots=True)
class Played:
    """What the demo showed. line: see `deploy.show.verdict`."""

    outcome: Outcome
    alerts: list[AlertRecord] = field(default_factory=list)
    line: Line | None = None

    def verdict(self) -> tuple[bool, list[str]]:
        """Whether the forecast's alert came before the first 2192, and the last lines that say so."""
        return verdict(self.outcome, self.alerts, self.line)


def play(folder: Path, *, seconds: float, seed: int, on_ready: Callable[[str], None] | None = None) -> Iterator[Played]:
    """Run the demo in `folder`; yields what it showed, with everything still running, then ends it.

    seconds: wall time the recording is played in. Raises MqtwinError where broker, job or playing fails.
    """
    console = Console()
    configure_logging(json_lines=True, stream=(folder / "job.log").open("w", encoding="utf-8"))
    estate = demo_estate()
    recording = folder / "getter-outage.arrow"
    with console.status("simulating two hours without a getter", spinner="dots"):
        outcome = simulate(make_scenario(SCENARIO), estate, recording, seed)
    _say(f"{outcome.events:,} events simulated, {as_span((outcome.last - outcome.first) / 1e6)} of event time")
    with console.status("starting Kafka", spinner="dots"):
        broker = Broker(data=folder / "kafka").start()
    try:
        _say(f"Kafka runs at {broker.bootstrap_servers}")
        if on_ready is not None:
            on_ready(broker.bootstrap_servers)
        with console.status("starting Spark; kernels are compiled once on a machine, half a minute", spinner="dots"):
            job = _start(estate, broker.bootstrap_servers, folder)
        try:
            _say("the job runs; its log is " + str(folder / "job.log"))
            played = _show(console, job, estate, broker.bootstrap_servers, recording, Played(outcome), seconds)
            with console.status("looking where a static line would have come", spinner="dots"):
                played.line = fixed_line(recording, estate, outcome)
            yield played
        finally:
            job.stop()
            job.session.stop()
    finally:
        broker.stop()


def _start(estate: Estate, servers: str, folder: Path) -> Job:
    settings = JobSettings(
        estate=estate,
        bootstrap_servers=servers,
        checkpoint=str(folder / "checkpoint"),
        conf={"spark.local.dir": str(folder / "spark")},
        jars=ensure_jars(SPARK_CONNECTOR),
        java_home=find_java().home,
    )
    return start_job(settings)


def _show(
    console: Console, job: Job, estate: Estate, servers: str, recording: Path, played: Played, seconds: float
) -> Played:
    """Play the recording and show states and alerts until the last event is in the twin."""
    kafka, topics = {"bootstrap.servers": servers}, Topics()
    speed = max(1.0, (played.outcome.last - played.outcome.first) / 1e6 / seconds)
    states, told = StateReader(kafka, topics), dict[str, str]()
    with (
        AlertReader(kafka, topics, from_beginning=True) as reader,
        _publishing(recording, estate, kafka, speed) as failed,
    ):
        try:
            with _screen(console) as refresh:
                last = time.monotonic()
                while sum(int(state["events"]) for state in states.latest.values()) < played.outcome.events:
                    if failed:
                        raise failed[0]
                    if not job.query.isActive:
                        job.wait()
                        raise MqtwinError("the job ended before the recording did")
                    last = time.monotonic() if states.read(1 / _REFRESH) else last
                    if time.monotonic() - last > _PATIENCE:
                        raise MqtwinError(f"the job has told nothing for {_PATIENCE:.0f} seconds")
                    _take(console, reader, played)
                    if not console.is_terminal:
                        _tell_forecasts(states.latest, told)
                    refresh(picture(states.latest, played.alerts, played.outcome.events, speed))
                _take(console, reader, played, wait=1.0)
                refresh(picture(states.latest, played.alerts, played.outcome.events, speed))
        finally:
            states.close()
    return played


def _take(console: Console, reader: AlertReader, played: Played, wait: float = 0.01) -> None:
    for alert in reader.read(wait):
        played.alerts.append(alert)
        if not console.is_terminal:
            _say(in_one_line(alert))


def _tell_forecasts(states: Mapping[str, Mapping[str, Any]], told: dict[str, str]) -> None:
    """What is foreseen, a line for each store and ten minutes of event time. told: store -> the last of these."""
    for name, state in sorted(states.items()):
        if state["forecast"] is not None and told.get(name) != state["time"][:15]:
            told[name] = state["time"][:15]
            _say(f"{state['time']}  {'forecast':<17}  {name}  {in_words(state['forecast'])}")


@contextmanager
def _screen(console: Console) -> Iterator[Callable[..., None]]:
    """A picture that renews itself on a terminal; nothing elsewhere, where alerts are printed as lines."""
    if not console.is_terminal:
        yield lambda _: None
        return
    with Live(console=console, refresh_per_second=_REFRESH) as live:
        yield live.update


@contextmanager
def _publishing(recording: Path, estate: Estate, kafka: dict[str, str], speed: float) -> Iterator[list[BaseException]]:
    """Play the recording into Kafka in the background; the list gets what went wrong."""
    failed: list[BaseException] = []

    def send() -> None:
        try:
            publish(recording, estate, kafka, Topics(), content_type=ARROW, pace=Pace(speed=speed))
        except BaseException as error:  # noqa: BLE001 -- raised again by who shows the demo
            failed.append(error)

    thread = threading.Thread(target=send, name="mqtwin-demo-publish", daemon=True)
    thread.start()
    yield failed
    thread.join(timeout=_PATIENCE)


def _say(line: str) -> None:
    print(line, flush=True, file=sys.stdout)
