"""A standalone Spark cluster on this machine: a master, and workers of one core."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import MappingProxyType

import pyspark

from deploy.java.jars import find_spark_java

HOST = "127.0.0.1"
PATIENCE = 240.0  # seconds, on a busy machine


def _free_port() -> int:
    with closing(socket.socket()) as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


def _is_answering(port: int) -> bool:
    with closing(socket.socket()) as client:
        return client.connect_ex((HOST, port)) == 0


@contextmanager
def _spark_class(
    *command: str, prefix: tuple[str, ...] = (), scratch: Mapping[str, str] = MappingProxyType({})
) -> Iterator[None]:
    """Run a master or worker within the block."""
    home = find_spark_java().home
    environment = {**os.environ, "SPARK_LOCAL_IP": HOST, **scratch} | (
        {"JAVA_HOME": str(home)} if home is not None else {}
    )
    program = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    process = subprocess.Popen(
        [*prefix, program, *command], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def cluster(folder: Path, *prefixes: tuple[str, ...], tries: int = 1) -> Iterator[str]:
    """Run a master and workers that share no folder of theirs, and yield the master's address.

    Args:
        folder: for the folders of the workers.
        prefixes: the beginning of the command line of each worker.
        tries: executors that may fail before the master gives the job up.
    """
    port, package = _free_port(), "org.apache.spark.deploy"
    master = f"spark://{HOST}:{port}"
    ports = ("--host", HOST, "--webui-port", "0")
    options = {"SPARK_MASTER_OPTS": f"-Dspark.deploy.maxExecutorRetries={tries}"}
    with _spark_class(f"{package}.master.Master", *ports, "--port", str(port), scratch=options):
        deadline = time.monotonic() + PATIENCE
        while not _is_answering(port):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with ExitStack() as workers:
            for number, prefix in enumerate(prefixes):
                work = ("--work-dir", str(folder / f"work-{number}"), "--cores", "1", "--memory", "1g")
                scratch = {"SPARK_LOCAL_DIRS": str(folder / f"scratch-{number}")}
                worker = _spark_class(f"{package}.worker.Worker", *ports, *work, master, prefix=prefix, scratch=scratch)
                workers.enter_context(worker)
            yield master
