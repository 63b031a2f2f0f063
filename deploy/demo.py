"""The demo: a real broker, the streaming job and three structures in fast motion, in one process and scratch folder."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from deploy.console.live import LiveTwins, NoteTaker, TopicFeed
from deploy.console.model import ConsoleModel
from deploy.console.server import ConsoleServer, Listen
from deploy.java.broker import Broker
from deploy.java.jars import SPARK_CONNECTOR, ensure_jars, find_spark_java
from deploy.show.alerts import alert_line
from deploy.show.demo import MethodResult, compare, judge_demo, picture, waiting_picture
from deploy.show.summaries import forecast_text, warm_kernels
from streams.kafka.publish import Pace, publish
from streams.kafka.topic_reader import AlertReader, Latest, TopicReader
from streams.kafka.topics import Topics
from streams.log import configure_logging
from streams.query.definition import JobSettings
from streams.query.job import Job, start_job
from streams.query.past import JobPast
from twin.base.errors import MqtwinError, UsageError
from twin.base.outputs import OwnFolder
from twin.base.units import as_span
from twin.estate import Estate, load_estate
from twin.events import ARROW
from twin.recordings.files import Chunk
from twin.records import AlertRecord, StructureState
from twin.simulation import Outcome, SideBySide, side_by_side_estate_text, simulate

ESTATE, RECORDING = "estate.toml", "demo.arrow"  # in the output folder

_PICTURES_PER_SECOND = 4
_TIMEOUT_S = 120.0  # the demo fails after this time without a new state record
_AHEAD_S = 2.0  # wall time by which the publishing may be ahead of the job
_MIN_AHEAD_S = 600.0  # event time by which it always may be


@dataclass(slots=True)
class DemoRun:
    """The results of a demo run."""

    outcome: Outcome
    estate: Path
    recording: Path
    address: str | None = None  # of the page in the browser; None: no page
    alerts: list[AlertRecord] = field(default_factory=list)
    compared: list[MethodResult] = field(default_factory=list)  # results of fixed lines and of the twin

    def judge(self) -> tuple[bool, str]:
        """Return True if the forecast's alert opened before the first 2192, and the line that reports it."""
        return judge_demo(self.outcome, self.alerts)


class StoryGate:
    """Holds the publishing until every store has a state, then wherever the job is too far behind.

    The story does not catch up on the time for which it was held: it continues at its own speed. The methods may be
    called from several threads. The window is the number of events by which the publishing may be ahead of the job.
    """

    def __init__(self, pace: Pace, stores: Iterable[str], window: int) -> None:
        self._pace, self._waiting_for, self._window = pace, set(stores), window
        self._applied = 0
        self._changed = threading.Condition()

    @property
    def is_open(self) -> bool:
        """True once every store has a state."""
        return not self._waiting_for

    def pass_on(self, _chunk: Chunk, published: int) -> None:
        """Return when more may be published. published: number of events so far."""
        began = time.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: published - self._applied <= (self._window if self.is_open else 0))
        self._pace.hold(time.monotonic() - began)

    def apply(self, states: Mapping[str, StructureState]) -> None:
        """Take note of what the job has applied. states: latest state record of each store."""
        with self._changed:
            self._applied = _applied(states)
            self._waiting_for -= set(states)
            self._changed.notify_all()


def run_demo(
    folder: Path,
    output: Path,
    *,
    seconds: float,
    seed: int,
    console_port: int | None = None,
) -> Iterator[DemoRun]:
    """Run the demo and yield its results while broker and job are still running; then stop them. The output folder is
    made; what is another's there stays. `seconds` of wall time begin when the job is ready; without `console_port`
    there is no page. UsageError: The output folder cannot be written. MqtwinError: The broker, the job or the
    publishing fails.
    """
    console = Console()
    results = OwnFolder(output)
    described, recording = results.write(ESTATE, side_by_side_estate_text()), results.free(RECORDING)
    estate = load_estate(described)
    configure_logging(json_lines=True, stream=(folder / "job.log").open("w", encoding="utf-8"))
    warm_kernels(console)
    with _activity(console, "simulating six hours of three structures"):
        outcome = simulate(SideBySide(), estate, recording, seed)
    results.note_written(recording)
    _print_line(f"Simulated {outcome.events:,} events, {as_span((outcome.last - outcome.first) / 1e6)} of event time.")
    with _activity(console, "starting Kafka"):
        broker = Broker(data=folder / "kafka").start()
    try:
        _print_line(f"Kafka is running on {broker.bootstrap_servers}.")
        with _activity(console, "starting Spark: up to a minute"):
            job = _start_job(estate, broker.bootstrap_servers, folder)
        with ExitStack() as parts:
            parts.callback(job.session.stop)
            parts.callback(job.stop)
            _print_line(f"The streaming job is running. Its log: {folder / 'job.log'}")
            run = DemoRun(outcome, described, recording)
            if console_port is not None:
                run.address = _open_console(parts, estate, broker.bootstrap_servers, console_port)
                _print_line(f"The console is running: {run.address}")
            _show(console, job, estate, broker.bootstrap_servers, recording, run, seconds)
            with _activity(console, "replaying the recording with fixed lines"):
                run.compared = compare(recording, estate, run.alerts, SideBySide().planned(estate))
            yield run
    finally:
        broker.stop()


@contextmanager
def _activity(console: Console, text: str) -> Iterator[None]:
    """Show what is going on and for how long. Without a terminal it prints nothing."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task(text, total=None)
        yield


def _open_console(parts: ExitStack, estate: Estate, servers: str, port: int) -> str:
    kafka, topics = {"bootstrap.servers": servers}, Topics()
    model = ConsoleModel(topics)
    parts.enter_context(TopicFeed(kafka, topics, model))
    source = JobPast(kafka=kafka, topics=topics, estate=estate)
    twins = parts.enter_context(LiveTwins(estate).follow(source))
    take_note = NoteTaker(kafka, topics, model).take
    try:
        server = ConsoleServer(model, Listen(port=port), twins, take_note=take_note)
    except UsageError:  # the port is taken
        server = ConsoleServer(model, Listen(port=0), twins, take_note=take_note)
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
) -> None:
    """Publish the recording, and show states and alerts until the twin has applied the last event."""
    kafka, topics, outcome = {"bootstrap.servers": servers}, Topics(), run.outcome
    span_s = (outcome.last - outcome.first) / 1e6
    asked = max(1.0, span_s / seconds)
    pace = Pace(speed=asked)
    window = int(outcome.events * min(1.0, max(_AHEAD_S * asked, _MIN_AHEAD_S) / span_s))
    gate = StoryGate(pace, outcome.stores, window)
    latest, printed = Latest(topics), dict[str, str]()
    with (
        TopicReader(kafka, {topics.state: None}) as state_reader,
        AlertReader(kafka, topics, from_beginning=True) as reader,
        _publishing(recording, estate, kafka, pace, gate) as failures,
        _screen(console) as refresh,
    ):
        begun = begun_story = last_state = time.monotonic()
        speed = asked
        states: dict[str, StructureState] = {}
        while _applied(states) < outcome.events:
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
            states = {
                name: entry.state for name, entry in latest.states.items() if isinstance(entry.state, StructureState)
            }
            gate.apply(states)
            _read_alerts(console, reader, run)
            if not gate.is_open:
                begun_story = time.monotonic()
                refresh(waiting_picture(begun_story - begun))
                continue
            if not console.is_terminal:
                _print_forecasts(states, printed)
            times = [datetime.fromisoformat(state.time).timestamp() * 1e6 for state in states.values() if state.time]
            played_s = max(0.0, (min(times, default=outcome.first) - outcome.first) / 1e6)  # by the slowest store
            speed = played_s / max(1.0, time.monotonic() - begun_story)
            refresh(picture(states, run.alerts, outcome.events, speed, asked))
        _read_alerts(console, reader, run, timeout_s=1.0)
        refresh(picture(states, run.alerts, outcome.events, speed, asked))


def _applied(states: Mapping[str, StructureState]) -> int:
    """Return the number of events that the job has applied. states: latest state record of each store."""
    return sum(state.events for state in states.values())


def _read_alerts(console: Console, reader: AlertReader, run: DemoRun, timeout_s: float = 0.01) -> None:
    for alert in reader.read(timeout_s):
        run.alerts.append(alert)
        if not console.is_terminal:
            _print_line(alert_line(alert))


def _print_forecasts(states: Mapping[str, StructureState], printed: dict[str, str]) -> None:
    """Print the forecast of each store, one line per ten minutes of event time. `printed` has the ten minutes of the
    last printed forecast of each store, and is updated.
    """
    for name, state in sorted(states.items()):
        ten_minutes = state.time[:15] if state.time is not None and state.first is not None else None
        if ten_minutes is not None and printed.get(name) != ten_minutes:
            printed[name] = ten_minutes
            _print_line(
                f"{state.time}  {'forecast':<17}  {name}  {forecast_text(state.first, assumed=state.lacks_limits)}"
            )


@contextmanager
def _screen(console: Console) -> Iterator[Callable[..., None]]:
    """Yield a function that draws a picture over the last one; without a terminal it does nothing."""
    if not console.is_terminal:
        yield lambda _: None
        return
    with Live(console=console, refresh_per_second=_PICTURES_PER_SECOND) as live:
        yield live.update


@contextmanager
def _publishing(
    recording: Path, estate: Estate, kafka: dict[str, str], pace: Pace, gate: StoryGate
) -> Iterator[list[BaseException]]:
    """Publish the recording in the background, and yield a list that receives the error of a failure."""
    failures: list[BaseException] = []

    def send() -> None:
        try:
            publish(recording, estate, kafka, Topics(), content_type=ARROW, pace=pace, on_progress=gate.pass_on)
        except BaseException as error:  # noqa: BLE001 -- raised again in the main thread
            failures.append(error)

    thread = threading.Thread(target=send, name="mqtwin-demo-publish", daemon=True)
    thread.start()
    yield failures
    thread.join(timeout=_TIMEOUT_S)


def _print_line(line: str) -> None:
    print(line, flush=True, file=sys.stdout)
