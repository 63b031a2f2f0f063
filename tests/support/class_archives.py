"""Make the archives of classes that Java loads in tests: once per environment, in half a minute.

A Java process that has one starts a third faster. Run it: `python -m tests.support.class_archives`. It starts a broker
and Spark's job, and each writes an archive of what it has loaded when it ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.java import BROKER_ARCHIVE, QUICK_SPARK, SPARK_ARCHIVE

_ROOT = Path(__file__).resolve().parents[2]
_WRITE_SECONDS = 300.0  # that of Spark has 180 MB
MAX_SECONDS = 900.0  # on a busy machine that compiles kernels beside it


def start_making() -> subprocess.Popen[bytes] | None:
    """Start to make the archives in a process of its own; return it, or None if there are some."""
    if BROKER_ARCHIVE.exists() and SPARK_ARCHIVE.exists():
        return None
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.class_archives"], cwd=_ROOT, stdout=subprocess.DEVNULL
    )


def main() -> None:
    """Make both archives."""
    SPARK_ARCHIVE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SPARK_ARCHIVE.parent) as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        new_broker, new_spark = folder / BROKER_ARCHIVE.name, folder / SPARK_ARCHIVE.name
        for variable, options in QUICK_SPARK.items():
            patch.setenv(variable, options.partition('"')[0])
        patch.setenv("SPARK_SUBMIT_OPTS", f"{os.environ['SPARK_SUBMIT_OPTS']} -XX:ArchiveClassesAtExit={new_spark}")
        patch.setenv("JAVA_TOOL_OPTIONS", f"-XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit={new_broker}")
        _run_broker_and_job(folder)
        new_broker.replace(BROKER_ARCHIVE)
        new_spark.replace(SPARK_ARCHIVE)


def _run_broker_and_job(folder: Path) -> None:
    """Run a broker and a batch of the job, and end both."""
    from pyspark import SparkContext

    from deploy.broker import Broker
    from deploy.jars import SPARK_CONNECTOR, ensure_jars
    from deploy.java import find_java
    from streams.query.session import open_session
    from tests.support.estates import small_estate
    from tests.system.harness import Stream
    from twin.estate import load_estate

    broker = Broker(data=folder / "broker")
    broker.start()
    try:
        del os.environ["JAVA_TOOL_OPTIONS"]
        session = open_session(
            master="local[2]",
            jars=ensure_jars(SPARK_CONNECTOR),
            java_home=find_java().home,
            conf={"spark.local.dir": str(folder / "spark")},
        )
        stream = Stream(session, broker.bootstrap_servers, "archive", load_estate(small_estate(folder)), folder / "job")
        put = b'{"time":"2026-11-20T12:00:00Z","qmgr":"QM01","op":"PUT","queue":"ORDERS","length":1000}'
        stream.send([(b"QSG1/APP1", put, None)])
        stream.run()
        session.stop()
        gateway = SparkContext._gateway
        assert gateway is not None
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(_WRITE_SECONDS)
    finally:
        broker.stop(_WRITE_SECONDS)


if __name__ == "__main__":
    main()
