"""The demo: a real broker, the streaming job and three structures in fast motion, in one process and scratch folder."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from deploy.broker import Broker
from deploy.class_archives import find_spark_java
from deploy.console.feed import TopicFeed
from deploy.console.live import LiveTwins
from deploy.console.model import ConsoleModel
from deploy.console.server import ConsoleServer, Listen
from deploy.jars import SPARK_CONNECTOR, ensure_jars
from deploy.show.alerts import alert_line
from deploy.show.forecast import forecast_text
from deploy.show.picture import picture
from deploy.show.verdict import MethodResult, compare, judge_demo
from streams.kafka.latest import Latest
from streams.kafka.pace import Pace
from streams.kafka.publish import publish
from streams.kafka.subscribe import AlertReader, AlertRecord
from streams.kafka.topic_reader import TopicReader
from streams.kafka.topics import Topics
from streams.log import configure_logging
from streams.query.job import Job, JobSettings, start_job
from twin.errors import MqtwinError, UsageError
from twin.estate import Estate
from twin.events import ARROW
from twin.simulation import Outcome, SideBySide, side_by_side_estate, simulate
from twin.units import as_span

_PICTURES_PER_SECOND = 4
_TIMEOUT_S = 120.0  # the demo fails after this time without a new state record


@dataclass(slots=True)
class DemoRun:
    """The results of a demo run.

    Attributes:
        outcome: Outcome of the simulation.
        alerts: Alerts of the job, in their order.
        compared: Results of fixed lines and of the twin on the same recording.
    """

    outcome: Outcome
    alerts: list[AlertRecord] = field(default_factory=list)
    compared: list[MethodResult] = field(default_factory=list)

    def judge(self) -> tuple[bool, str]:
        """Return True if the forecast's alert opened before the first 2192, and the line that reports it."""
        return judge_demo(self.outcome, self.alerts)


def run_demo(
    folder: Path,
    *,
    seconds: float,
    seed: int,
    on_ready: Callable[[str], None] | None = None,
    console_port: int | None = None,
) -> Iterator[DemoRun]:
    """Run the demo and yield its results while broker and job are still running; then stop them.

    Args:
        folder: Scratch folder.
        seconds: Wall time for the whole recording.
        seed: Seed of the simulation.
        on_ready: Called with the broker's address when the broker is ready.
        console_port: Port of the page in the browser; a free one is taken where it is in use. None: no page.

    Raises:
        MqtwinError: The broker, the job or the publishing fails.
    """
    console = Console()
    configure_logging(json_lines=True, stream=(folder / "job.log").open("w", encoding="utf-8"))
    estate = side_by_side_estate()
    recording = folder / "side-by-side.arrow"
    with console.status("simulating six hours of three structures", spinner="dots"):
        outcome = simulate(SideBySide(), estate, recording, seed)
    _print_line(f"Simulated {outcome.events:,} events, {as_span((outcome.last - outcome.first) / 1e6)} of event time.")
    with console.status("starting Kafka", spinner="dots"):
        broker = Broker(data=folder / "kafka").start()
    try:
        _print_line(f"Kafka is running on {broker.bootstrap_servers}.")
        if on_ready is not None:
            on_ready(broker.bootstrap_servers)
        with console.status("starting Spark (about 30 s more at the first start, to compile kernels)", spinner="dots"):
            job = _start_job(estate, broker.bootstrap_servers, folder)
        with ExitStack() as parts:
            parts.callback(job.session.stop)
            parts.callback(job.stop)
            _print_line(f"The streaming job is running. Its log: {folder / 'job.log'}")
            if console_port is not None:
                address = _open_console(parts, estate, broker.bootstrap_servers, console_port)
                _print_line(f"The console is running: {address}")
            run = _show(console, job, estate, broker.bootstrap_servers, recording, DemoRun(outcome), seconds)
            with console.status("replaying the recording with fixed lines", spinner="dots"):
                run.compared = compare(recording, estate, run.alerts)
            yield run
    finally:
        broker.stop()


def _open_console(parts: ExitStack, estate: Estate, servers: str, port: int) -> str:
    """Serve the page until `parts` is closed, and return its address."""
    kafka, topics = {"bootstrap.servers": servers}, Topics()
    model = ConsoleModel(topics)
    parts.enter_context(TopicFeed(kafka, topics, model))
    twins = parts.enter_context(LiveTwins(estate).follow(kafka, topics))
    try:
        server = ConsoleServer(model, Listen(port=port), twins.answer)
    except UsageError:  # the port is taken
        server = ConsoleServer(model, Listen(port=0), twins.answer)
    return parts.enter_context(server).address


def _start_job(estate: Estate, servers: str, folder: Path) -> Job:
    settings = JobSettings(
        estate=estate,
        bootstrap_servers=servers,
        checkpoint=str(folder / "checkpoint"),
        conf={"spark.local.dir": str(folder / "spark")},
        jars=ensure_jars(SPARK_CONNECTOR),
        java=find_spark_java(),
    )
    return start_job(settings)


def _show(
    console: Console, job: Job, estate: Estate, servers: str, recording: Path, run: DemoRun, seconds: float
) -> DemoRun:
    """Publish the recording, and show states and alerts until the twin has applied the last event.

    Args:
        console: Console for the picture.
        job: The running job.
        estate: Estate of the demo.
        servers: Address of the broker.
        recording: The recording.
        run: Results so far; the alerts are added.
        seconds: Wall time for the whole recording.
    """
    kafka, topics = {"bootstrap.servers": servers}, Topics()
    speed = max(1.0, (run.outcome.last - run.outcome.first) / 1e6 / seconds)
    latest, printed = Latest(topics), dict[str, str]()
    with (
        TopicReader(kafka, {topics.state: None}) as state_reader,
        AlertReader(kafka, topics, from_beginning=True) as reader,
        _publishing(recording, estate, kafka, speed) as failures,
        _screen(console) as refresh,
    ):
        begun = last_state = time.monotonic()
        states: dict[str, dict[str, Any]] = {}
        while sum(int(state["events"]) for state in states.values()) < run.outcome.events:
            if failures:
                raise failures[0]
            if not job.query.isActive:
                job.wait()
                raise MqtwinError("the job ended before the recording did")
            for record in state_reader.read(1 / _PICTURES_PER_SECOND):
                latest.apply(record)
                last_state = time.monotonic()
            if time.monotonic() - last_state > _TIMEOUT_S:
                raise MqtwinError(f"the job has written no state record for {_TIMEOUT_S:.0f} s")
            states = {name: entry.state for name, entry in latest.states.items()}
            _read_alerts(console, reader, run)
            if not console.is_terminal:
                _print_forecasts(states, printed)
            behind_s = _behind_s(states, run.outcome, (time.monotonic() - begun), speed)
            refresh(picture(states, run.alerts, run.outcome.events, speed, behind_s))
        _read_alerts(console, reader, run, timeout_s=1.0)
        refresh(picture(states, run.alerts, run.outcome.events, speed))
    return run


def _behind_s(states: Mapping[str, Mapping[str, Any]], outcome: Outcome, elapsed_s: float, speed: float) -> float:
    """Return how many seconds of wall time the slowest store is behind what has been published.

    Args:
        states: Latest state record of each store.
        outcome: Outcome of the simulation.
        elapsed_s: Wall time since the publishing began.
        speed: Event time over real time.
    """
    published = min(outcome.last, outcome.first + elapsed_s * speed * 1e6)
    times = [datetime.fromisoformat(state["time"]).timestamp() * 1e6 for state in states.values() if state["time"]]
    return max(0.0, (published - min(times, default=outcome.first)) / 1e6 / speed)


def _read_alerts(console: Console, reader: AlertReader, run: DemoRun, timeout_s: float = 0.01) -> None:
    for alert in reader.read(timeout_s):
        run.alerts.append(alert)
        if not console.is_terminal:
            _print_line(alert_line(alert))


def _print_forecasts(states: Mapping[str, Mapping[str, Any]], printed: dict[str, str]) -> None:
    """Print the forecast of each store, one line per ten minutes of event time.

    Args:
        states: Latest state record of each store.
        printed: The ten minutes of the last printed forecast of each store, updated.
    """
    for name, state in sorted(states.items()):
        ten_minutes = state["time"][:15] if state["forecast"] is not None else None
        if ten_minutes is not None and printed.get(name) != ten_minutes:
            printed[name] = ten_minutes
            _print_line(f"{state['time']}  {'forecast':<17}  {name}  {forecast_text(state['forecast'])}")


@contextmanager
def _screen(console: Console) -> Iterator[Callable[..., None]]:
    """Yield a function that draws a picture over the last one; without a terminal it does nothing."""
    if not console.is_terminal:
        yield lambda _: None
        return
    with Live(console=console, refresh_per_second=_PICTURES_PER_SECOND) as live:
        yield live.update


@contextmanager
def _publishing(recording: Path, estate: Estate, kafka: dict[str, str], speed: float) -> Iterator[list[BaseException]]:
    """Publish the recording in the background, and yield a list that receives the error of a failure.

    Args:
        recording: The recording.
        estate: Its estate.
        kafka: Settings of the Kafka client.
        speed: Event time over real time.
    """
    failures: list[BaseException] = []

    def send() -> None:
        try:
            publish(recording, estate, kafka, Topics(), content_type=ARROW, pace=Pace(speed=speed))
        except BaseException as error:  # noqa: BLE001 -- raised again in the main thread
            failures.append(error)

    thread = threading.Thread(target=send, name="mqtwin-demo-publish", daemon=True)
    thread.start()
    yield failures
    thread.join(timeout=_TIMEOUT_S)


def _print_line(line: str) -> None:
    print(line, flush=True, file=sys.stdout)
