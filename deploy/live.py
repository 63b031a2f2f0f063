"""The live twin of `mqtwin start --live`: broker, job, collectors and console, each a process under one supervisor.

Each part is a command of mqtwin. One that ends is started again, and its cause is one line; what it writes is in a log
of bounded size. A part that never worked ends all: then the use is wrong, or something is missing.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
import webbrowser
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from logging import LogRecord, makeLogRecord
from logging.handlers import RotatingFileHandler
from pathlib import Path

from typing_extensions import override

from deploy.show.alerts import alert_line
from deploy.show.terminal import command_line, printable
from deploy.supervisor import Supervisor
from streams.host.signals import stop_requests
from streams.kafka.topic_reader import Latest, TopicReader
from streams.kafka.topics import DEFAULT_PREFIX, Topics
from twin.base.conditions import OPENED
from twin.base.errors import MqtwinError
from twin.base.units import as_count

_PROGRAM = (sys.executable, "-m", "deploy")  # mqtwin
POSITION = "position.json"  # of the collector of levels, in the folder
KEPT_HOURS = 168  # for which the embedded broker keeps events
_FIRST_FAILURES = 2  # in a row, of a part that has never worked
_LOG_BYTES = 4 << 20  # of a log, and of the one before it
_READ_SECONDS = 0.25
_STOP_SECONDS = 30.0  # for the end of parts that were asked to stop; a killed job continues where it was, too
_MAX_WARNINGS = 3  # of a code that are shown; all are in the log
_LINE, _WARNING, _AGAIN = "mqtwin: ", "mqtwin: warning: ", "answers again"


@dataclass(frozen=True, kw_only=True)
class Kafka:
    """A Kafka that is there already."""

    words: tuple[str, ...]  # options of commands for it
    client: Mapping[str, str]
    prefix: str = DEFAULT_PREFIX


@dataclass(frozen=True, kw_only=True)
class LiveFeed:
    """A feed that is collected beside the levels."""

    name: str  # of the log as well
    collect: tuple[str, ...]  # arguments of `mqtwin collect` but for estate, position and Kafka, the source last

    @property
    def position(self) -> str:
        """Name of its position, by its source: in another order on the command line each continues where it was."""
        return f"position-{self.collect[0]}-{zlib.crc32(self.collect[-1].encode()):08x}.json"


@dataclass(frozen=True, kw_only=True)
class LiveSettings:
    """Settings of a live twin."""

    folder: Path  # of broker, checkpoint, positions and logs
    estate: Path
    stores: int
    collect: tuple[str, ...]  # arguments of `mqtwin collect` for levels, but for estate, position and Kafka
    feeds: tuple[LiveFeed, ...] = ()
    kafka: Kafka | None = None  # None: an embedded broker that keeps its data in the folder
    listen: str | None = None  # HOST:PORT of the console; None: no console
    opens: bool = False  # the console, in the browser of this machine


class LiveTwin:
    """The parts of a live twin, from `run` to its end. `say` gets each line on what happens, from several threads."""

    def __init__(self, settings: LiveSettings, say: Callable[[str], None], began_s: float) -> None:
        self._settings, self._say, self._began_s = settings, say, began_s
        self._kafka = settings.kafka
        self._listen = settings.listen
        self._broker = self._part("broker", self._broker_words, "bootstrap.servers=", self._note_broker)
        self._job = self._part("job", self._job_words, '"event":"query started"')
        sources = [("collector", settings.collect, POSITION)]
        sources += [(own.name, own.collect, own.position) for own in settings.feeds]
        self._collectors = tuple(
            self._part(name, partial(self._collect_words, words, position), "collecting ")
            for name, words, position in sources
        )
        self._console = self._part("console", self._console_words, "console http", self._note_console)

    def run(self) -> None:
        """Run the parts until Ctrl-C or SIGTERM. UsageError: A part was used wrongly. MqtwinError: One never worked."""
        with stop_requests() as stop:
            try:
                if self._kafka is None:
                    self._broker.start()
                    while self._kafka is None and not stop.wait(_READ_SECONDS):
                        self._broker.check()
                self._job.start()
                for collector in self._collectors:
                    collector.start()
                self._follow(stop)
            finally:
                self._stop()

    def _follow(self, stop: threading.Event) -> None:
        """Start the console when the job works, and print what comes first, until `stop`."""
        if self._kafka is None:
            return  # asked to stop before the broker was up
        topics = Topics(self._kafka.prefix)
        latest, alerts = Latest(topics), 0
        with TopicReader(self._kafka.client, {topics.state: 0, topics.alerts: 0}) as reader:
            while not stop.is_set():
                for part in self._parts:
                    part.check()
                if self._job.is_up and self._listen is not None and not self._console.is_started:
                    self._console.start()
                known = bool(latest.states)
                for record in reader.read(_READ_SECONDS):
                    entry = latest.apply(record)
                    if entry is not None and entry.alert.change == OPENED and not alerts:  # not one of before
                        alerts += 1
                        self._say(f"first alert: {alert_line(entry.alert)}")
                        self._say(f"all alerts: {command_line(('mqtwin', 'alerts', *self._kafka.words))}")
                if latest.states and not known:
                    seconds = time.monotonic() - self._began_s
                    stores = f"{len(latest.states)} of {as_count(self._settings.stores, 'store')}"
                    self._say(f"first state after {seconds:.0f} s: {stores}")

    def _stop(self) -> None:
        """Stop what runs: the broker last, as the others write to it until their end. What does not end is killed."""
        try:
            for parts in (self._parts[:-1], self._parts[-1:]):
                for part in parts:
                    part.request_stop()
                ends_s = time.monotonic() + _STOP_SECONDS
                for part in parts:
                    part.wait(ends_s - time.monotonic())
                    part.kill()
        finally:  # after a second signal, too
            for part in self._parts:
                part.request_stop()
                part.kill()

    @property
    def _parts(self) -> tuple[_Part, ...]:
        """All parts, the broker last."""
        return (*self._collectors, self._console, self._job, self._broker)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _part(
        self, name: str, words: Callable[[], Sequence[str]], up: str, note: Callable[[str], str] = lambda _: ""
    ) -> _Part:
        return _Part(name, words, up, note, self._settings.folder / "logs", self._say)

    def _broker_words(self) -> Sequence[str]:
        """Return the command of the broker; once it has an address it keeps it, as the others know it."""
        listen = () if self._kafka is None else ("--listen", self._kafka.client["bootstrap.servers"])
        return ("broker", "--data", self._place("broker"), "--retention-hours", str(KEPT_HOURS), *listen)

    def _note_broker(self, line: str) -> str:
        address = line.partition("=")[2]
        self._kafka = Kafka(words=("--bootstrap-servers", address), client={"bootstrap.servers": address})
        return f": {address}"

    def _job_words(self) -> Sequence[str]:
        own = () if self._settings.kafka is not None else ("--tolerate-data-loss",)  # events of before KEPT_HOURS
        place = ("--checkpoint", self._place("checkpoint"), "--status-file", self._place("status.json"))
        return ("stream", *self._estate(), *place, *self._kafka_words(), *own, "--log", "json")

    def _collect_words(self, words: Sequence[str], position: str) -> Sequence[str]:
        place = ("--position", self._place(position), "--create-topics")
        return ("collect", *words, *self._estate(), *place, *self._kafka_words())

    def _console_words(self) -> Sequence[str]:
        job = ("--checkpoint", self._place("checkpoint"), "--status-file", self._place("status.json"))
        return ("console", *self._kafka_words(), *self._estate(), *job, "--listen", self._listen or "")

    def _note_console(self, line: str) -> str:
        address = line.partition(" ")[2]
        if self._settings.opens and not self._console.is_up:
            webbrowser.open(address)
        self._listen = address.rpartition("//")[2].rstrip("/")  # the one that is open in browsers
        return f": {address}"

    def _estate(self) -> Sequence[str]:
        return ("--estate", str(self._settings.estate))

    def _kafka_words(self) -> Sequence[str]:
        return () if self._kafka is None else self._kafka.words

    def _place(self, name: str) -> str:
        return str(self._settings.folder / name)


class _Part:
    """A part: a command of mqtwin, its supervisor in a thread, and its log. `words` returns the arguments before each
    start; `up` is in the line that says that it works, which `note` gets.
    """

    def __init__(
        self,
        name: str,
        words: Callable[[], Sequence[str]],
        up: str,
        note: Callable[[str], str],
        logs: Path,
        say: Callable[[str], None],
    ) -> None:
        self.name = name
        self._up, self._note, self._say = up, note, say
        self._path = logs / f"{name}.log"
        self._log: _BoundedLog | None = None
        self._error: MqtwinError | None = None
        self._works = False  # since its last start
        self._ended = threading.Event()
        self._warnings: Counter[str] = Counter()
        self._supervisor = Supervisor(
            lambda: (*_PROGRAM, *words()),
            _FIRST_FAILURES,
            name="it",
            on_line=self._take,
            on_restart=self._say_restart,
        )
        self._thread = threading.Thread(target=self._run, name=f"mqtwin-{name}", daemon=True)

    @property
    def is_started(self) -> bool:
        """True from `start` on."""
        return self._thread.ident is not None

    @property
    def is_up(self) -> bool:
        """True once it has worked."""
        return self._supervisor.is_up

    def start(self) -> None:
        """Start it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._log = _BoundedLog(self._path, self._say)
        self._thread.start()

    def check(self) -> None:
        """Raise the error with which it has ended for good, if it has."""
        if self._error is not None:
            raise self._error

    def request_stop(self) -> None:
        """Ask it to stop."""
        self._supervisor.request_stop()

    def wait(self, seconds: float) -> None:
        """Wait until it has ended for good: for an event, as a signal within `Thread.join` marks a thread as ended."""
        if self.is_started:
            self._ended.wait(max(0.0, seconds))

    def kill(self) -> None:
        """Kill what still runs."""
        self._supervisor.kill()
        self.wait(_STOP_SECONDS)

    def _run(self) -> None:
        try:
            self._supervisor.run()
        except MqtwinError as error:
            see = f"; see {self._path}" if str(self._path) not in str(error) else ""
            self._error = type(error)(f"{self.name}: {error}{see}")
        finally:
            if self._log is not None:
                self._log.close()
            self._ended.set()

    def _take(self, line: str) -> None:
        if self._log is not None:
            self._log.handle(makeLogRecord({"msg": line}))
        if self._up in line:
            again = " again" if self.is_up else ""
            self._say(f"{self.name} up{again}{self._note(line)}")
            self._supervisor.is_up = self._works = True
        elif _AGAIN in line:
            self._warnings.clear()
            self._say(f"{self.name}: {line.removeprefix(_LINE)}")
        elif line.startswith(_WARNING) and self._works:  # those of the estate, before it, were said
            code = line.rpartition("(")[2]
            self._warnings[code] += 1
            if self._warnings[code] <= _MAX_WARNINGS:
                more = f"; further ones are in {self._path}" if self._warnings[code] == _MAX_WARNINGS else ""
                self._say(f"{self.name}: {line.removeprefix(_WARNING)}{more}")

    def _say_restart(self, cause: str, wait_s: float) -> None:
        self._works = False
        self._say(f"{self.name}: {' '.join(cause.split())}; started again in {wait_s:.0f} s")


class _BoundedLog(RotatingFileHandler):
    """A log of bounded size. A full disk costs lines of it, and is said once."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        super().__init__(path, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
        self._say = say
        self._has_failed = False

    @override
    def handleError(self, record: LogRecord) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._say(f"{self.baseFilename} cannot be written: {sys.exception()}")


class TimedLines:
    """Prints lines with their time, UTC, from several threads. A closed output does not disturb the twin."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, line: str) -> None:
        """Print a line."""
        with self._lock, suppress(OSError):
            print(f"{time.strftime('%H:%M:%SZ', time.gmtime())}  {printable(line)}", flush=True)


def free_address(host: str, port: int) -> str:
    """Return an address HOST:PORT of this machine, with port 0, any free one, if the given port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            own.bind((host, port))
        except OSError:
            port = 0
    return f"[{host}]:{port}" if family is socket.AF_INET6 else f"{host}:{port}"
