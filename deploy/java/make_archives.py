"""The run of a broker and of a job's first batch, at whose end Java writes its class archives."""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

import filelock

from deploy.java.broker import Broker
from deploy.java.jars import (
    SPARK_CONNECTOR,
    Content,
    Java,
    Program,
    archive_path,
    ensure_jars,
    find_java,
    make_folder,
    missing_archives,
    useless_archives,
)
from streams.kafka.admin import prepare_topics
from streams.kafka.clients import LastError, new_producer
from streams.kafka.topics import Topics
from streams.query.definition import JobSettings
from streams.query.job import start_job
from streams.query.session import SparkJava
from twin.base.errors import MqtwinError
from twin.estate import load_estate
from twin.simulation import demo_estate_text
from twin.stores.warm_up import UNUSED_S

WRITE_SECONDS = 300.0  # that of Spark has 180 MB
_PUT = b'{"time":"2026-11-20T12:00:00Z","qmgr":"QM01","op":"PUT","queue":"ORDERS","length":1000}'


def make_archives() -> None:
    """Make the archives that are missing, in about half a minute, and remove those that no longer fit or are unused.

    If several processes call this function at the same time, one makes them and the others wait. MqtwinError: There is
    no Java, or it writes no archive.
    """
    java = find_java()
    folder = archive_path("spark", java).parent
    make_folder(folder)
    with filelock.FileLock(folder / ".lock"):
        if not missing_archives(java):
            return
        with tempfile.TemporaryDirectory(dir=folder) as name:
            _run(Path(name), java)
            for program in missing_archives(java):
                archive = _new_archive(Path(name), program)
                if not archive.is_file():
                    raise MqtwinError(f"{java.executable} wrote no archive of the classes of {program}")
                archive.replace(archive_path(program, java))
        for archive in useless_archives(java, time.time() - UNUSED_S):
            archive.unlink()  # a Java that has mapped it keeps its pages


def _new_archive(folder: Path, content: Content) -> Path:
    return folder / f"{content}.jsa"


def _run(folder: Path, java: Java) -> None:
    """Run a broker and a batch of the job, and end both in an orderly way, since Java writes archives at its exit."""
    from pyspark import SparkContext

    below = _below(folder, java)
    with Broker(data=folder / "broker", java_options=(*below, *_writing(folder, "broker"))) as broker:
        servers, topics = {"bootstrap.servers": broker.bootstrap_servers}, Topics()
        estate = folder / "estate.toml"
        estate.write_text(demo_estate_text(), encoding="utf-8")
        prepare_topics(topics, servers)
        producer = new_producer(servers, {}, LastError())
        producer.produce(topics.events, _PUT, b"QSG1/APP1")
        producer.flush(WRITE_SECONDS)
        settings = JobSettings(
            estate=load_estate(estate),
            bootstrap_servers=broker.bootstrap_servers,
            checkpoint=str(folder / "checkpoint"),
            conf={"spark.local.dir": str(folder / "spark")},
            available_now=True,
            jars=ensure_jars(SPARK_CONNECTOR),
            java=SparkJava(java.home, (*below, *_writing(folder, "spark"))),
        )
        job = start_job(settings)
        job.wait()
        job.stop()
        job.session.stop()
        gateway = SparkContext._gateway  # noqa: SLF001 -- PySpark has no other way to ask
        if gateway is None:
            raise MqtwinError("Spark's Java was not started by this process, so that it writes no archive")
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(WRITE_SECONDS)
        broker.stop(WRITE_SECONDS)


def _below(folder: Path, java: Java) -> tuple[str, ...]:
    """Return Java's options to write archives that add to one of its own classes, which is made if Java has none.

    A trimmed Java has none, and then writes no other archive either.
    """
    command = [str(java.executable), "-Xshare:on", "-version"]  # without such an archive it ends with an error
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        return ()
    path, draft = archive_path("java", java), _new_archive(folder, "java")
    command = [str(java.executable), "-Xshare:dump", f"-XX:SharedArchiveFile={draft}", "-Xlog:disable"]
    subprocess.run(command, capture_output=True, check=False)
    if not draft.is_file():
        raise MqtwinError(f"{java.executable} wrote no archive of its own classes")
    draft.replace(path)  # where it stays: the others have its path in them
    return (f"-XX:SharedArchiveFile={path}",)


def _writing(folder: Path, program: Program) -> tuple[str, ...]:
    return f"-XX:ArchiveClassesAtExit={_new_archive(folder, program)}", "-Xlog:disable"  # else: a line a class left out
