"""A real Kafka broker (KRaft, one node) as a child process, for the demo and for tests. No Docker, no root.

It listens on the loopback address only, and writes to one folder: data, settings and the log ``broker.log``. One that
is started on the folder of an earlier one is the same cluster, on the same port if that is free. On Linux the kernel
kills it when the process that started it ends (:mod:`deploy._child`); elsewhere ``kill -9`` leaves it running.
"""

from __future__ import annotations

import base64
import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Self

import filelock
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy.java.jars import KAFKA_BROKER, archive_options, class_path, ensure_jars, find_java
from twin.base.errors import MqtwinError, UsageError

HOST = "127.0.0.1"
MAX_RECORD_BYTES = 16 * 1024 * 1024  # the largest record batch accepted
START_SECONDS = 90.0  # a start takes 3 s on an idle machine with two cores
STOP_SECONDS = 20.0  # a clean stop takes half a second
_HERE = Path(__file__).parent
_CHILD = _HERE.parent / "_child.py"
_JVM = ("-Xmx512m", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={_HERE / 'broker-log4j2.properties'}")

_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    # There is one node: nothing to replicate to, no other member to wait for.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # After kill -9 the controller waits for the old session to end: 12 s by default, 5 s with these settings.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "message.max.bytes": str(MAX_RECORD_BYTES),
    "replica.fetch.max.bytes": str(MAX_RECORD_BYTES),
    "socket.request.max.bytes": str(4 * MAX_RECORD_BYTES),
    # A mistyped topic name is an error, not a new topic.
    "auto.create.topics.enable": "false",
    # Records may carry event times: a retention by time would delete last year's records as they are published.
    "log.retention.ms": "-1",
    # The defaults (8 I/O threads, 128 MB for the cleaner) are for servers; this broker has one client.
    "num.io.threads": "4",
    "num.network.threads": "2",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
}


# Systems give the ports above these to outgoing connections (Linux from 32768, macOS from 49152): one of those could be
# taken in the seconds until Java binds it.
_PORTS = range(20_000, 32_000)
_SEGMENTS = 8  # of a topic within its retention


class Broker:
    """An embedded broker: a context manager, or :meth:`start` and :meth:`stop`. Without `data` the folder is a
    temporary one, which :meth:`stop` removes, but not after a failed start, for its log. The port is that of the last
    start on ``data``, or any free one. Java loads the archive of its classes, if there is one. Topics without a
    retention of their own keep records without end. UsageError: ``data`` is in use by another broker or is not a
    broker's folder, or ``port`` is in use.
    """

    def __init__(
        self,
        *,
        data: Path | None = None,
        port: int | None = None,
        java_options: Sequence[str] | None = None,
        retention_hours: float | None = None,
    ) -> None:
        self._temporary = data is None
        self.data = (data or Path(tempfile.mkdtemp(prefix="mqtwin-broker-"))).absolute()
        self._requested_port = port
        self._java_options, self._retention_hours = java_options, retention_hours
        self._port: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = filelock.FileLock(self.data / ".lock", thread_local=False)

    @property
    def log(self) -> Path:
        """The broker's log file. Each start on the same data appends to it."""
        return self.data / "broker.log"

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT for clients; known after the start."""
        if self._port is None:
            raise MqtwinError("the broker has not been started: it has no address yet")
        return f"{HOST}:{self._port}"

    @property
    def pid(self) -> int | None:
        """The process id of the broker's Java, None while it is not running."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self, timeout: float = START_SECONDS) -> Self:
        """Start the broker and return when it answers an admin request, within ``timeout`` seconds. UsageError: See the
        class. MqtwinError: There is no Java, jars cannot be fetched, the broker ended or did not answer in time.
        """
        if self.pid is not None:
            return self
        try:
            self._claim_data()
            java = find_java()
            jars = class_path(ensure_jars(KAFKA_BROKER))
            properties = self._write_properties()
            self._format(str(java.executable), jars, properties)
            options = archive_options("broker", java) if self._java_options is None else self._java_options
            command = [str(java.executable), *_JVM, *options, "-cp", jars, "kafka.Kafka", str(properties)]
            self._process = _start_child(command, self.log)
            self._wait_until_ready(time.monotonic() + timeout)
        except BaseException as error:
            self._end_process(0)
            self._lock.release()
            if self._temporary and not (isinstance(error, MqtwinError) and self.log.exists()):
                shutil.rmtree(self.data, ignore_errors=True)
            raise
        return self

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Stop the broker with SIGTERM, after ``timeout`` seconds with SIGKILL. Remove a temporary folder."""
        self._end_process(timeout)
        self._lock.release()
        if self._temporary:
            shutil.rmtree(self.data, ignore_errors=True)

    def kill(self) -> None:
        """End the broker as a power cut would (SIGKILL). The data stay, and :meth:`start` uses them."""
        self._end_process(0)
        self._lock.release()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until the broker ends, and return its exit status; None if it still runs after ``timeout`` seconds."""
        if self._process is None:
            return None
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _claim_data(self) -> None:
        try:
            self.data.mkdir(parents=True, exist_ok=True)
            foreign = sorted(path.name for path in self.data.iterdir() if path.name not in _OURS)
            if foreign and not self._properties.exists():
                raise UsageError(
                    f"{self.data}: not a broker's folder (it has {foreign[0]}): name an empty or a new one"
                )
            self._lock.acquire(blocking=False)
        except filelock.Timeout:
            raise UsageError(f"{self.data}: another broker runs on this folder: stop it or name another") from None
        except OSError as error:
            raise UsageError(f"{self.data}: {error.strerror}; expected: a folder that can be written") from error

    @property
    def _properties(self) -> Path:
        return self.data / "server.properties"

    def _write_properties(self) -> Path:
        with contextlib.ExitStack() as ports:  # keeps each port open while the next is chosen
            self._port = self._choose_port(ports)
            controller_port = _bind(0, ports)
            settings = _SETTINGS | {
                "listeners": f"PLAINTEXT://{HOST}:{self._port},CONTROLLER://{HOST}:{controller_port}",
                "advertised.listeners": f"PLAINTEXT://{HOST}:{self._port}",
                "controller.quorum.voters": f"1@{HOST}:{controller_port}",
                "log.dirs": str(self.data / "data"),
            }
            if self._retention_hours is not None:  # whole segments are deleted, so one has a fraction of that time
                kept_ms = round(self._retention_hours * 3_600_000)
                settings |= {"log.retention.ms": str(kept_ms), "log.roll.ms": str(-(-kept_ms // _SEGMENTS))}
            settings = self._protect(settings, ports)
        text = "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())
        self._properties.write_text(text, encoding="ascii")
        return self._properties

    def _protect(self, settings: dict[str, str], ports: contextlib.ExitStack) -> dict[str, str]:
        """Return the settings with those of security added. A hook: this broker has no users and adds none."""
        del ports
        return settings

    def _choose_port(self, ports: contextlib.ExitStack) -> int:
        if self._requested_port is not None:
            try:
                return _bind(self._requested_port, ports)
            except OSError as error:
                raise UsageError(
                    f"port {self._requested_port}: {error.strerror}: name a free port, or none to get one"
                ) from error
        try:
            return _bind(self._last_port(), ports)
        except OSError:
            return _bind(0, ports)

    def _last_port(self) -> int:
        """Return the port of the last start on this data, which its clients know; 0 (any) before the first start."""
        if self._port is not None:
            return self._port
        if not self._properties.exists():
            return 0
        text = self._properties.read_text(encoding="ascii")
        return next(
            (int(line.rpartition(":")[2]) for line in text.splitlines() if line.startswith("advertised.listeners=")), 0
        )

    def _format(self, java: str, jars: str, properties: Path) -> None:
        """Give new data a cluster id. Data that have one keep it."""
        if (self.data / "data" / "meta.properties").exists():
            return
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        tool = [java, *_JVM, "-cp", jars, "kafka.tools.StorageTool", "format"]
        with self.log.open("ab") as log:
            # The = makes it one argument: an id in base64 may begin with a hyphen, which looks like an option.
            formatted = subprocess.run(
                [*tool, f"--cluster-id={cluster}", "-c", str(properties), "--ignore-formatted", *self._first_users()],
                stdout=log,
                stderr=log,
                check=False,
            )
        if formatted.returncode != 0:
            raise MqtwinError(
                f"the broker's folder was not formatted (exit status {formatted.returncode}){self.last_error()}"
            )

    def _first_users(self) -> list[str]:
        """Return the arguments that create users when new data are formatted. A hook: none here."""
        return []

    def _wait_until_ready(self, deadline: float) -> None:
        process = self._process
        admin = AdminClient(
            {"bootstrap.servers": self.bootstrap_servers, "log_level": 0, "reconnect.backoff.max.ms": 200}
        )
        assert process is not None
        while time.monotonic() < deadline:
            if process.poll() is not None:
                status = process.returncode
                raise MqtwinError(f"the broker ended while starting (exit status {status}){self.last_error()}")
            try:
                nodes = admin.describe_cluster(request_timeout=2).result().nodes
            except KafkaException:
                time.sleep(0.1)
                continue
            if any(node.port == self._port for node in nodes):
                return
            time.sleep(0.1)  # it answers, but has not joined its own cluster yet
        raise MqtwinError(f"the broker did not answer in time{self.last_error()}")

    def last_error(self) -> str:
        """Return the end of an error message: the last error in the log, and the path of the log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        errors = [line for line in lines if " ERROR " in line or " FATAL " in line or line.startswith("Error")]
        return f": {errors[-1].strip()}: see {self.log}" if errors else f": see {self.log}"

    def _end_process(self, timeout: float) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if timeout > 0 and process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout)
        if process.poll() is None:
            process.kill()
        process.wait()


_OURS = {".lock", "broker.log", "server.properties", "data"}


def _bind(port: int, ports: contextlib.ExitStack) -> int:
    """Bind a port until the stack closes, and return its number. 0 binds any free port. OSError: The port is in use."""
    if not port:
        return _bind_any(ports)
    listener = ports.enter_context(socket.socket())
    # Kafka binds in the same way: connections in TIME_WAIT from the last start do not matter.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((HOST, port))
    return port


def _bind_any(ports: contextlib.ExitStack) -> int:
    for port in random.sample(_PORTS, 100):
        listener = ports.enter_context(socket.socket())
        with contextlib.suppress(OSError):
            listener.bind((HOST, port))
            return port
    listener.bind((HOST, 0))
    return int(listener.getsockname()[1])


def _escaped(value: str) -> str:
    """Return a value for a Java properties file: backslashes doubled, other than ASCII as UTF-16 escapes."""
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes)


def _start_child(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a child that does not outlive this process, in a session of its own, so that Ctrl-C reaches only us.

    The kernel kills the child when the *thread* that started it ends, so a thread waits for the child.
    """
    started: Future[subprocess.Popen[bytes]] = Future()

    def start_and_wait() -> None:
        helper = [sys.executable, "-I", "-S", str(_CHILD), str(os.getpid())]
        with log.open("ab") as output:
            try:
                process = subprocess.Popen(
                    [*helper, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                started.set_exception(error)
                return
        started.set_result(process)
        process.wait()

    threading.Thread(target=start_and_wait, name="mqtwin-broker", daemon=True).start()
    return started.result()
