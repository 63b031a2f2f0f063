"""The SparkSession of the streaming job, with settings that were measured and that users can override.

The figures in comments were measured on two cores, PySpark 4.2.0, small micro-batches with two state partitions.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from streams.errors import one_line
from streams.host.java_process import DOCTOR, launch_java, quiet_updates
from streams.host.resources import ScratchDirectory, crash_report, temporary_base
from streams.query.worker import DAEMON
from twin.base.errors import MqtwinError, UsageError

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

LOCAL_FAILURES = 4  # attempts at a task before the job fails, as on a cluster
MASTER = f"local[*,{LOCAL_FAILURES}]"
LOOPBACK = "127.0.0.1"
ARROW_BATCH_RECORDS = 8_192  # rows, which `streams.query.rows` keeps short
ARROW_BATCH_BYTES = 2**31 - 1  # for Spark no bound
CONNECT_SECONDS = 5.0  # limit for a connection to the master
_PORTS = {"spark": 7077, "k8s": 443}
_STOPPED = re.compile(r"stopped SparkContext|SparkContext (was|has been) shut ?down|Master removed our application")
_NO_EXECUTORS = (
    "its executors failed as soon as they were started, and the master gave up; the reason is in their logs: stderr in "
    "the folder work/app-.../N of each worker, which the master's web page shows, too"
)
STATE_RECORDS_PER_FETCH = 512  # state pages per message; Spark's default of 10,000 would make messages of 80 MB

SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Shuffle files go when Java collects garbage; an idle heap does so seldom, and the files of an hour are a gigabyte.
    "spark.cleaner.periodicGC.interval": "5min",
    "spark.sql.session.timeZone": "UTC",
    # RocksDB with a changelog; without a changelog each commit uploads whole SST files.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Spark's count of rows costs a look-up per written page; the job counts pages itself.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # Batches without data would run the stateful operator for nothing: the job has no timers and no watermark.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Unix sockets between the JVM and its Python workers.
    "spark.python.unix.domain.socket.enabled": "true",
    # Workers are forked from a daemon that has imported everything.
    "spark.python.daemon.module": DAEMON,
    # Spark sets this for Python in SQL. Without it here, RDDs, as in the preflight, would have a daemon of their own.
    "spark.executorEnv.SPARK_SIMPLIFIED_TRACEBACK": "1",
    # A crash inside native code (numba, RocksDB) leaves a Python traceback in the error.
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_BATCH_RECORDS),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(ARROW_BATCH_BYTES),
    "spark.sql.execution.arrow.transformWithStateInPySpark.maxStateRecordsPerBatch": str(STATE_RECORDS_PER_FETCH),
}

LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.memory": "2g",  # in local mode the driver's JVM does all the work
}

# Spark's own manager for local files forks about nine processes per batch: 114 ms instead of 10 ms for a state commit.
LOCAL_CHECKPOINT_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


@dataclass(frozen=True, slots=True)
class SparkJava:
    """The Java of Spark's driver on this machine."""

    home: Path | None = None  # value for JAVA_HOME; None: the environment decides
    options: tuple[str, ...] = ()  # of its command line


def open_session(
    *,
    name: str = "mqtwin",
    master: str | None = None,
    jars: Iterable[Path] = (),
    java: SparkJava | None = None,
    conf: Mapping[str, str] | None = None,
    local_checkpoint: bool = True,
) -> SparkSession:
    """Start Spark, or return the session that already runs in this process. Jars are Spark's Kafka connector and its
    dependencies, none if the cluster has them. A master may stand in `conf`, which overrides all other settings;
    without one it is all cores of this machine. UsageError: Spark does not start on this machine; the message is one
    line with the cause. MqtwinError: Spark does not start on a cluster, or its Java ended before it answered.
    """
    check_classic(master, conf or {})
    java = java or SparkJava()
    if java.home is not None:
        os.environ["JAVA_HOME"] = str(java.home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = session_settings(
        master=master, jars=jars, java_options=java.options, conf=conf, local_checkpoint=local_checkpoint
    )
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    spark_conf = SparkConf().setAppName(name).setAll(list(settings.items()))
    try:
        if SparkContext._active_spark_context is None:  # noqa: SLF001 -- PySpark has no other way to ask
            scratch, environment = _claim_scratch(spark_conf)
            with _own_interrupt_handler():
                quiet_updates(SparkContext(conf=spark_conf, gateway=launch_java(spark_conf, scratch, environment)))
        session = SparkSession.builder.config(conf=spark_conf).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
    except (PySparkException, Py4JError, OSError, RuntimeError) as error:
        if not is_local(settings["spark.master"]):  # a master may come back
            raise MqtwinError(f"Spark does not start on {settings['spark.master']}: {explain_stop(error)}") from error
        raise UsageError(f"Spark does not start: {one_line(error)}; {DOCTOR}") from error
    return session


def check_classic(master: str | None, conf: Mapping[str, str]) -> None:
    """Raise UsageError for Spark Connect, by `sc://` or by what a shell or a session of before has left behind."""
    remotes = {
        "SPARK_REMOTE": os.environ.get("SPARK_REMOTE", ""),
        "SPARK_CONNECT_MODE_ENABLED": os.environ.get("SPARK_CONNECT_MODE_ENABLED", ""),
        "spark.remote": conf.get("spark.remote", ""),
        "spark.master": conf.get("spark.master", "") if conf.get("spark.master", "").startswith("sc://") else "",
        "--master": (master or "") if (master or "").startswith("sc://") else "",
    }
    requests = [f"{name}={value}" for name, value in remotes.items() if value]
    if requests:
        raise UsageError(
            f"{', '.join(requests)}: Spark Connect is not supported, as the job starts Spark itself; expected: "
            "--master local[*], spark://HOST:PORT, yarn or k8s://..., and neither SPARK_REMOTE nor spark.remote"
        )


def check_master(master: str) -> None:
    """Connect to the master of a standalone cluster or of Kubernetes; other masters are left to Spark.

    Spark itself takes a minute to fail and does not name the cause. UsageError: the address is malformed. MqtwinError:
    no connection is accepted; the message has the cause.
    """
    match = re.fullmatch(r"(spark|k8s)://(?:https?://)?([^/]+)/?.*", master)
    if match is None:
        return
    scheme, addresses = match.group(1), match.group(2).split(",")
    refusals = []
    for address in addresses:
        host, port = _parse_address(master, address, _PORTS[scheme])
        try:
            with closing(socket.create_connection((host, port), timeout=CONNECT_SECONDS / len(addresses))):
                return
        except OSError as error:
            refusals.append(f"{address}: {error.strerror or error}")
    raise MqtwinError(f"--master {master}: nobody answers ({'; '.join(refusals)}); is the master running?")


def _parse_address(master: str, address: str, default_port: int) -> tuple[str, int]:
    host, _, port = address.rpartition(":") if re.search(r":\d+$", address) else (address, "", str(default_port))
    is_ipv6, has_brackets = ":" in host.strip("[]"), host.startswith("[")
    if not host or not 0 < int(port) < 65536 or is_ipv6 != has_brackets:
        raise UsageError(f"--master {master}: {address}: expected: HOST:PORT")
    return host.strip("[]"), int(port)


def explain_stop(error: BaseException) -> str:
    """Return the cause of a Spark error on one line; if the context was stopped, say why."""
    return _NO_EXECUTORS if _STOPPED.search(str(error)) else one_line(error)


def session_settings(
    *,
    master: str | None = None,
    jars: Iterable[Path] = (),
    java_options: Iterable[str] = (),
    conf: Mapping[str, str] | None = None,
    local_checkpoint: bool = True,
) -> dict[str, str]:
    """Return all settings of a session, including the user's; see `open_session`."""
    own = dict(conf or {})
    settings = dict(SETTINGS)
    settings["spark.master"] = with_retries(master or own.pop("spark.master", "") or MASTER)
    if is_local(settings["spark.master"]):
        settings.update(LOCAL_SETTINGS)
        settings["spark.sql.shuffle.partitions"] = str(local_cores(settings["spark.master"]))
        settings["spark.executorEnv.PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    if local_checkpoint:
        settings["spark.sql.streaming.checkpointFileManagerClass"] = LOCAL_CHECKPOINT_MANAGER
    jar_list = ",".join(str(jar) for jar in jars)
    if jar_list:
        settings["spark.jars"] = ",".join(filter(None, (jar_list, own.pop("spark.jars", ""))))
    log_options = f"-Dlog4j2.configurationFile={resources.files('streams').joinpath('log4j2.properties')}"
    quoted = [f'"{option}"' for option in java_options]  # there may be blanks in a path
    for process in ("driver", "executor") if is_local(settings["spark.master"]) else ("driver",):
        key = f"spark.{process}.extraJavaOptions"
        own_options = quoted if process == "driver" else []
        settings[key] = " ".join(filter(None, (log_options, *own_options, own.pop(key, ""))))
    own.pop("spark.master", None)
    settings.update(own)
    return settings


@contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Restore the handler of SIGINT: a new SparkContext installs one that cancels the running batch."""
    if threading.current_thread() is not threading.main_thread():  # SparkContext installs none in other threads
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _claim_scratch(conf: SparkConf) -> tuple[list[ScratchDirectory], dict[str, str]]:
    """Claim scratch directories for Java and add them to `conf`; see `streams.host.resources`. OSError: a directory
    cannot be created.

    The environment variables are for Java.
    """
    temporary = ScratchDirectory.claim(temporary_base())
    scratch, environment = [temporary], {}
    options = conf.get("spark.driver.extraJavaOptions", "")
    places = f"-Djava.io.tmpdir={temporary.path} -XX:ErrorFile={crash_report(temporary_base())}"
    conf.set("spark.driver.extraJavaOptions", f"{places} {options}".rstrip())
    if is_local(conf.get("spark.master", "")):
        bases = os.environ.get("SPARK_LOCAL_DIRS") or conf.get("spark.local.dir", "")
        directories = [ScratchDirectory.claim(Path(base).absolute()) for base in (bases or "").split(",") if base]
        scratch += directories
        local = ",".join(str(directory.path) for directory in directories or [temporary])
        conf.set("spark.local.dir", local)
        if os.environ.get("SPARK_LOCAL_DIRS"):  # it overrides the setting
            environment["SPARK_LOCAL_DIRS"] = local
        if not os.environ.get("SPARK_LOCAL_IP"):  # nothing else decides on which address Spark's UI listens
            environment["SPARK_LOCAL_IP"] = LOOPBACK
    return scratch, environment


def with_retries(master: str) -> str:
    """Return a local master with several attempts per task: ``local[2]`` becomes ``local[2,4]``.

    By default a local master gives a task one attempt, so that one killed Python worker would end the job. An explicit
    number of attempts stays.
    """
    match = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    return master if match is None else f"local[{match.group(1) or 1},{LOCAL_FAILURES}]"


def is_local(master: str) -> bool:
    """Return True if Spark runs on this machine as one JVM (``local``, ``local[2]``, ``local[*]``)."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def local_cores(master: str) -> int:
    """Return the cores of a local master: 3 for ``local[3]``, all of this process for ``local[*]``, 1 for ``local``."""
    match = re.match(r"local\[(\*|\d+)", master)
    if match is None:
        return 1
    if match.group(1) != "*":
        return int(match.group(1))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
