"""A broker with TLS, users and rights: every command works with the documented rights, and names a missing one."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from deploy.cli import main
from deploy.options.common import KafkaOptions
from streams.kafka.admin import explain_refusal, prepare_topics
from streams.kafka.publish import publish
from streams.kafka.topics import Topics
from streams.query.definition import JobSettings
from streams.query.job import start_job
from tests.streams.kafka_help import create, everything, send
from tests.streams.test_subscribe import alert
from tests.support.estates import small_estate
from tests.support.java import quick_java
from tests.support.processes import free_port, still_alive
from tests.support.secured_broker import MECHANISM, PASSWORD, Right, SecuredBroker, as_options, new_user
from tests.support.traffic import START_US, write_recording
from tests.system.harness import Stream, check_equal
from twin.base.errors import MqtwinError
from twin.estate import load_estate
from twin.playback.replays import replay

pytestmark = [pytest.mark.system, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("stream", "publish", "record", "alerts")
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_SSL")
USERS = {command: new_user() for command in COMMANDS}
PATIENCE = 180.0  # seconds, on a busy machine


def documented(command: str, needed: str = "always") -> list[tuple[str, str]]:
    """Return (operation, topic) of the rights of a command in the documentation, the topic without its prefix."""
    page = (ROOT / "docs" / "operations-reference.md").read_text(encoding="utf-8")
    [table] = re.findall(r"^## Rights$(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (`mqtwin\..*?) \| (.*?) \|$", table, re.MULTILINE)
    assert len(rows) == table.count("| `mqtwin.")
    rights = [
        (operation, topic)
        for name, operation, topics, when in rows
        for topic in re.findall(r"`mqtwin\.([\w*]+)`", topics)
        if name == command and needed in when
    ]
    assert rights
    return rights


def as_acls(prefix: str, rights: list[tuple[str, str]]) -> list[Right]:
    return [(operation, "topic", f"{prefix}.{topic}") for operation, topic in rights]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    broker = SecuredBroker(tmp_path_factory.mktemp("secured"), USERS.values())
    with quick_java():
        broker.start()
    with broker:
        yield broker


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_estate(tmp_path_factory.mktemp("estate"))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Puts that fill a structure beyond a threshold."""
    put = {"qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 1000, "count": 5000}
    events = [put | {"time": START_US + second * 1_000_000} for second in range(10)]
    return write_recording(tmp_path_factory.mktemp("recording") / "r.ndjson", events)


@dataclass(frozen=True)
class Site:
    """The user, broker, topics and files of a command."""

    broker: SecuredBroker
    protocol: str
    prefix: str
    folder: Path

    def options(self, command: str) -> list[str]:
        where = ["--bootstrap-servers", self.broker.servers(self.protocol), "--topic-prefix", self.prefix]
        settings = self.broker.settings(self.protocol, USERS[command])
        if self.protocol != "SASL_SSL":
            return [*where, *as_options(settings)]
        return [*where, "--kafka-file", str(self.secrets(command))]

    def secrets(self, command: str) -> Path:
        path = self.folder / f"{command}.properties"
        settings = self.broker.settings(self.protocol, USERS[command])
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        path.chmod(0o600)
        return path

    def arguments(self, command: str, estate: Path, recording: Path) -> list[str]:
        first = {
            "publish": [str(recording), "--estate", str(estate)],
            "record": ["-o", str(self.folder / "again.ndjson")],
            "alerts": ["--from-beginning", "--until-idle", "1.5", "--json"],
            "stream": ["--estate", str(estate), "--checkpoint", str(self.folder / "checkpoint"), "--available-now"],
        }
        return [command, *first[command], *self.options(command)]


def messages(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("mqtwin: warning: ")]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_command_works_with_exactly_the_documented_rights(
    protocol: str,
    secured: SecuredBroker,
    spark: SparkSession,
    estate: Path,
    recording: Path,
    topic_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prepare_topics(Topics(topic_prefix), {"bootstrap.servers": secured.bootstrap_servers})
    for command in COMMANDS:
        secured.grant(USERS[command], as_acls(topic_prefix, documented(command)))
    site = Site(secured, protocol, topic_prefix, tmp_path)
    assert main(site.arguments("publish", estate, recording)) == 0, capsys.readouterr().err
    kafka = KafkaOptions(
        bootstrap_servers=secured.servers(protocol),
        topic_prefix=topic_prefix,
        kafka=tuple(f"{key}={value}" for key, value in secured.settings(protocol).items() if key != "sasl.password"),
        kafka_file=site.secrets("stream") if protocol == "SASL_SSL" else None,
    )
    settings = JobSettings(
        estate=load_estate(estate),
        bootstrap_servers=kafka.bootstrap_servers,
        checkpoint=str(tmp_path / "checkpoint"),
        prefix=topic_prefix,
        kafka=kafka.settings() | ({"sasl.username": USERS["stream"]} if protocol == "SASL_SSL" else {}),
        available_now=True,
    )
    job = start_job(settings, session=spark)
    try:
        job.wait()
    finally:
        job.stop()
    assert main(site.arguments("record", estate, recording)) == 0, capsys.readouterr().err
    replayed = replay(tmp_path / "again.ndjson", load_estate(estate))
    capsys.readouterr()
    assert main(site.arguments("alerts", estate, recording)) == 0
    printed = [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]
    assert printed == [json.loads(alert.record())["id"] for alert in replayed.alerts] != []


def test_a_right_revoked_from_a_running_job_is_named_and_once_restored_the_job_resumes(
    secured: SecuredBroker, spark: SparkSession, estate: Path, recording: Path, topic_prefix: str, tmp_path: Path
) -> None:
    prepare_topics(Topics(topic_prefix), {"bootstrap.servers": secured.bootstrap_servers})
    for command in ("publish", "stream"):
        secured.grant(USERS[command], as_acls(topic_prefix, documented(command)))
    site = Site(secured, "SASL_SSL", topic_prefix, tmp_path)
    assert main(site.arguments("publish", estate, recording)) == 0
    settings = JobSettings(
        estate=load_estate(estate),
        bootstrap_servers=secured.servers("SASL_SSL"),
        checkpoint=str(tmp_path / "checkpoint"),
        prefix=topic_prefix,
        kafka=secured.settings("SASL_SSL", USERS["stream"]),
        available_now=True,
        max_records=2,
    )
    without = [right for right in documented("stream") if right != ("WRITE", "state")]

    def run(rights: list[tuple[str, str]]) -> None:
        job = start_job(
            settings, session=spark, on_batch=lambda _: secured.grant(USERS["stream"], as_acls(topic_prefix, rights))
        )
        try:
            job.wait()
        finally:
            job.stop()

    with pytest.raises(MqtwinError, match=rf"Kafka refuses the job .* WRITE on .*{topic_prefix}\.state"):
        run(without)
    secured.grant(USERS["stream"], as_acls(topic_prefix, documented("stream")))
    run(documented("stream"))
    stream = Stream(spark, secured.bootstrap_servers, topic_prefix, load_estate(estate), tmp_path / "checkpoint")
    replayed = replay(recording, load_estate(estate))
    assert stream.alerts().keys() == {json.loads(alert.record())["id"] for alert in replayed.alerts}
    assert stream.states() == replayed.states


def test_a_certificate_that_expires_under_a_job_is_named_and_with_a_new_one_the_job_resumes(
    spark: SparkSession, estate: Path, recording: Path, topic_prefix: str, tmp_path: Path
) -> None:
    with SecuredBroker(tmp_path, ()) as broker:
        topics, described = Topics(topic_prefix), load_estate(estate)
        publish(recording, described, {"bootstrap.servers": broker.bootstrap_servers}, topics)
        settings = JobSettings(
            estate=described,
            bootstrap_servers=broker.servers("SSL"),
            checkpoint=str(tmp_path / "checkpoint"),
            prefix=topic_prefix,
            kafka=broker.settings("SSL"),
            available_now=True,
            max_records=2,
        )

        def start_again(until: datetime | None) -> None:
            broker.stop()
            broker.certify(until)
            broker.start()

        def run(on_batch: Callable[[object], None]) -> None:
            job = start_job(settings, session=spark, on_batch=on_batch)
            try:
                job.wait()
            finally:
                job.stop()

        yesterday = datetime.now(UTC) - timedelta(days=1)
        with pytest.raises(MqtwinError, match=r"no TLS with Kafka: .*; expected: a certificate") as refused:
            run(lambda _: start_again(yesterday))
        assert "\n" not in str(refused.value)
        start_again(None)
        run(lambda _: None)
        stream = Stream(spark, broker.bootstrap_servers, topic_prefix, described, tmp_path / "checkpoint")
        check_equal(stream, replay(recording, described))


@pytest.mark.parametrize(
    ("command", "right"),
    [(command, right) for command in COMMANDS for right in documented(command)],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_a_missing_right_is_named_on_one_line_before_spark_starts(
    command: str,
    right: tuple[str, str],
    secured: SecuredBroker,
    estate: Path,
    recording: Path,
    topic_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prepare_topics(Topics(topic_prefix), {"bootstrap.servers": secured.bootstrap_servers})
    operation, name = right
    if command == "record":  # an empty topic is not read
        send(secured.bootstrap_servers, f"{topic_prefix}.events", [b"{}"])
    rest = [other for other in documented(command) if other != right]
    secured.grant(USERS[command], as_acls(topic_prefix, [*rest, ("DESCRIBE", name)]))
    site = Site(secured, "SASL_SSL", topic_prefix, tmp_path)
    expected = f"an ACL that allows {operation} on topic {topic_prefix}.{name}"
    for rights in ([*rest, ("DESCRIBE", name)], rest):  # without DESCRIBE the topic is not even visible
        secured.grant(USERS[command], as_acls(topic_prefix, rights))
        started = time.monotonic()
        assert main(site.arguments(command, estate, recording)) == 2
        [line] = messages(capsys.readouterr().err)
        assert line.endswith(expected)
        assert time.monotonic() - started < 15
        assert not (tmp_path / "again.ndjson").exists()
        assert not (tmp_path / "checkpoint").exists()
    if command == "publish":
        assert everything(secured.bootstrap_servers, f"{topic_prefix}.events") == []


@pytest.mark.parametrize("command", ["stream", "publish"])
def test_topics_are_created_by_users_with_the_right(
    command: str,
    secured: SecuredBroker,
    estate: Path,
    recording: Path,
    topic_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    site = Site(secured, "SASL_SSL", topic_prefix, tmp_path)
    secured.grant(USERS[command], as_acls(topic_prefix, documented(command)))
    options = ["--create-topics"] if command == "publish" else []
    assert main([*site.arguments(command, estate, recording), *options]) == 2
    [line] = messages(capsys.readouterr().err)
    assert f"an ACL that allows CREATE on topic {topic_prefix}.events" in line
    create_rights = documented(command, "missing")
    assert [operation for operation, _ in create_rights] == ["CREATE"]
    secured.grant(USERS[command], as_acls(topic_prefix, [*documented(command), *create_rights]))
    if command == "publish":
        assert main([*site.arguments(command, estate, recording), *options]) == 0
    else:
        settings = secured.settings("SASL_SSL", USERS[command])
        prepare_topics(Topics(topic_prefix), {"bootstrap.servers": secured.servers("SASL_SSL"), **settings})


def test_records_beyond_the_default_need_the_right_to_read_settings(
    secured: SecuredBroker,
    estate: Path,
    topic_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    create(secured.bootstrap_servers, f"{topic_prefix}.events", max_message_bytes="4000000")
    put = {"time": START_US, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 1, "note": "x" * 2_000_000}
    recording = write_recording(tmp_path / "large.ndjson", [put])
    site = Site(secured, "SASL_SSL", topic_prefix, tmp_path)
    rights = documented("publish")
    secured.grant(USERS["publish"], as_acls(topic_prefix, rights))
    assert main(site.arguments("publish", estate, recording)) == 1
    assert "a record may have 1047564" in capsys.readouterr().err
    more = documented("publish", "1 MB")
    assert [operation for operation, _ in more] == ["DESCRIBE_CONFIGS"]
    secured.grant(USERS["publish"], as_acls(topic_prefix, [*rights, *more]))
    assert main(site.arguments("publish", estate, recording)) == 0


def test_a_wrong_password_is_one_line_that_does_not_show_it(
    secured: SecuredBroker,
    estate: Path,
    recording: Path,
    topic_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    site = Site(secured, "SASL_SSL", topic_prefix, tmp_path)
    arguments = site.arguments("record", estate, recording)
    path = tmp_path / "record.properties"
    path.write_text(path.read_text(encoding="utf-8").replace(PASSWORD, "wr0ng"), encoding="utf-8")
    assert main(arguments) == 1
    [line] = messages(capsys.readouterr().err)
    assert re.search("authentication failed", line, re.IGNORECASE)
    assert "wr0ng" not in line


def test_doctor_says_which_step_to_a_secured_broker_fails(
    secured: SecuredBroker, topic_prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user = USERS["stream"]
    prepare_topics(Topics(topic_prefix), {"bootstrap.servers": secured.bootstrap_servers})
    site = Site(secured, "SASL_SSL", topic_prefix, tmp_path)
    arguments = ["doctor", *site.options("stream")]
    address, file = secured.servers("SASL_SSL"), tmp_path / "stream.properties"

    def lines(status: int) -> list[str]:
        assert main(arguments) == status
        output = capsys.readouterr()
        assert PASSWORD not in output.out + output.err
        return [re.sub(" {2,}", "  ", line) for line in output.out.splitlines()]

    secured.grant(user, as_acls(topic_prefix, documented("stream")))
    answers = lines(0)
    assert {line.split()[0] for line in answers} == {"ok"}
    for text in (f"SASL {address}  {MECHANISM} is taken", f"user {user} is logged in", "READ and WRITE is allowed"):
        assert any(text in line for line in answers), text
    without = [right for right in documented("stream") if right not in (("READ", "events"), ("WRITE", "alerts"))]
    secured.grant(user, as_acls(topic_prefix, [*without, ("DESCRIBE", "alerts")]))
    failed = [line for line in lines(1) if line.startswith("missing")]
    assert failed == [
        f"missing  ACL {topic_prefix}.{name}  {right} is refused  -> expected: an ACL that allows {right} to {user}"
        for right, name in (("READ", "events"), ("WRITE", "alerts"))
    ]
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(PASSWORD, "wr0ng"), encoding="utf-8")
    assert lines(1)[-1] == (
        f"missing  SASL {address}  user {user} is refused: wrong name or password  "
        "-> expected: a user of the broker, and its password"
    )
    file.write_text(text.replace(MECHANISM, "PLAIN"), encoding="utf-8")
    assert f"the broker does not take PLAIN  -> expected: sasl.mechanism={MECHANISM}" in lines(1)[-1]
    file.write_text(text.replace("SASL_SSL", "SASL_PLAINTEXT"), encoding="utf-8")
    assert lines(1)[-1].startswith(f"missing  Kafka {address}  ")
    assert "security.protocol=SSL or SASL_SSL" in lines(1)[-1]


@pytest.mark.parametrize(
    ("exception", "message"),
    [
        (
            "TopicAuthorizationException: Not authorized to access topics: [p.reports, p.alerts]",
            "ACLs that allow WRITE on topic p.alerts, READ on topic p.reports, WRITE on topic p.reports",
        ),
        (
            "GroupAuthorizationException: Not authorized to access group: spark-kafka-source-1-executor",
            "Kafka refuses the job the group spark-kafka-source-1-executor; expected: an ACL that allows READ on it",
        ),
    ],
    ids=["topics", "group"],
)
def test_a_refusal_of_kafka_to_a_running_job_is_named(exception: str, message: str) -> None:
    failure = f"[STREAM_FAILED] Query failed ...\nCaused by: org.apache.kafka.common.errors.{exception}\n"
    assert str(explain_refusal(failure, Topics("p").rights)).endswith(message)
    expired = "Caused by: java.security.cert.CertificateExpiredException: NotAfter: Tue Nov 24 21:04:48 UTC 2026\n\tat"
    assert "its certificate expired on Tue Nov 24 21:04:48 UTC 2026; expected" in str(explain_refusal(expired, {}))
    handshake = "Caused by: org.apache.kafka.common.errors.SslAuthenticationException: SSL handshake failed"
    assert "no TLS with Kafka: SSL handshake failed; expected" in str(explain_refusal(handshake, {}))
    assert explain_refusal("[STREAM_FAILED] Query failed: Connection refused", Topics("p").rights) is None


def test_a_note_needs_rights_of_its_own_and_the_job_needs_none_there(
    secured: SecuredBroker, topic_prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = Topics(topic_prefix)
    prepare_topics(topics, {"bootstrap.servers": secured.bootstrap_servers})
    send(secured.bootstrap_servers, topics.alerts, [alert(1).record()])
    site = Site(secured, "SASL_SSL", topic_prefix, tmp_path)
    job = {"bootstrap.servers": secured.servers("SASL_SSL"), **secured.settings("SASL_SSL", USERS["stream"])}
    for more, warnings in (([], 1), ([("DESCRIBE", "notes")], 0)):
        secured.grant(USERS["stream"], as_acls(topic_prefix, [*documented("stream"), *more]))
        with capture_logs() as logs:
            prepare_topics(topics, job)
        assert [entry["event"] for entry in logs] == ["no topic of notes"] * warnings
    arguments = ["acknowledge", alert(1).alert_id, "--who", "ann", *site.options("alerts")]
    rights = documented("acknowledge")
    secured.grant(USERS["alerts"], as_acls(topic_prefix, rights))
    assert main(arguments) == 0, capsys.readouterr().err
    for operation, name in rights:
        rest = [right for right in rights if right != (operation, name)]
        secured.grant(USERS["alerts"], as_acls(topic_prefix, rest))
        assert main(arguments) == 2
        [line] = messages(capsys.readouterr().err)
        assert line.endswith(f"an ACL that allows {operation} on topic {topic_prefix}.{name}")
    assert len(everything(secured.bootstrap_servers, topics.notes)) == 1


# --- a job with the UI on, as users run it ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Running:
    """A job that has run a batch; `ui` is the address of Spark's UI."""

    process: psutil.Process
    log: Path
    folder: Path
    ui: str

    @property
    def family(self) -> list[psutil.Process]:
        """The job's processes."""
        return [self.process, *self.process.children(recursive=True)]

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.ui}{path}", timeout=30) as answer:
            text: str = answer.read().decode()
        return text


@pytest.fixture(scope="module")
def running(
    secured: SecuredBroker, estate: Path, recording: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """`mqtwin stream` with TLS, a user, `--kafka-file`, Spark's UI, and all its files in one folder."""
    folder = tmp_path_factory.mktemp("running")
    prepare_topics(Topics("leak"), {"bootstrap.servers": secured.bootstrap_servers})
    for command in ("stream", "publish"):
        secured.grant(USERS[command], as_acls("leak", documented(command)))
    site = Site(secured, "SASL_SSL", "leak", tmp_path_factory.mktemp("secrets"))
    assert main(site.arguments("publish", estate, recording)) == 0
    port = free_port()
    (folder / "java").mkdir()
    conf = {
        "spark.ui.enabled": "true",
        "spark.ui.port": str(port),
        "spark.local.dir": str(folder / "spark"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder / 'java'}",
        "spark.sql.shuffle.partitions": "1",
    }
    arguments = ["stream", "--estate", str(estate), "--checkpoint", str(folder / "checkpoint"), "--master", "local[1]"]
    arguments += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    command_line = [sys.executable, "-m", "deploy", *arguments, *site.options("stream"), "--log", "json"]
    log = folder / "stream.log"
    with (
        log.open("wb") as output,
        subprocess.Popen([*command_line, "--log-level", "debug"], cwd=ROOT, stdout=output, stderr=output) as process,
    ):
        try:
            wait_for_batch(log, process)
            yield Running(psutil.Process(process.pid), log, folder, f"http://127.0.0.1:{port}")
            family = psutil.Process(process.pid).children(recursive=True)
            process.terminate()  # only the driver
            assert process.wait(PATIENCE) == 0
            assert not still_alive(family, PATIENCE)
        finally:
            process.kill()


def wait_for_batch(log: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while b'"event":"batch"' not in log.read_bytes().replace(b": ", b":"):
        assert process.poll() is None, log.read_text(encoding="utf-8")
        assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
        time.sleep(0.2)


def connections(process: psutil.Process) -> list[Any]:
    """Return the network connections of a process; none if it has ended."""
    try:
        return process.net_connections("inet")
    except psutil.NoSuchProcess:  # also of a zombie
        return []


def pages(running: Running) -> Mapping[str, str]:
    """Return the pages and API responses of Spark's UI that might show settings, by path."""
    [application] = json.loads(running.page("/api/v1/applications"))
    api = f"/api/v1/applications/{application['id']}"
    paths = [f"{api}/{name}" for name in ("environment", "jobs", "stages", "allexecutors", "streaming/statistics")]
    executions: list[dict[str, Any]] = json.loads(running.page(f"{api}/sql?details=true&planDescription=true"))
    assert executions
    paths = [path for path in paths if "streaming" not in path]
    paths += [f"{api}/sql?details=true&planDescription=true", "/environment/", "/SQL/", "/StreamingQuery/"]
    paths += [f"/SQL/execution/?id={execution['id']}" for execution in executions[:3]]
    return {path: running.page(path) for path in paths}


def test_nothing_secret_is_in_processes_logs_checkpoint_local_files_or_spark_ui(running: Running) -> None:
    contents: dict[str, bytes] = {"log": running.log.read_bytes()}
    for process in running.family:
        with contextlib.suppress(psutil.NoSuchProcess):  # a Python worker may end meanwhile
            contents[f"cmdline of {process.pid}"] = "\0".join(process.cmdline()).encode()
            contents[f"environ of {process.pid}"] = repr(process.environ()).encode()
    for path in running.folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # Spark's temporary files come and go
            if path.is_file():  # neither a folder nor a socket
                contents[str(path)] = path.read_bytes()
    ui_pages = pages(running)
    contents |= {path: text.encode() for path, text in ui_pages.items()}
    assert [place for place, content in contents.items() if PASSWORD.encode() in content] == []
    assert sum(place.startswith("environ of ") for place in contents) >= 3  # ours, Java, a Python worker
    assert any("/checkpoint/offsets/" in place for place in contents)
    assert b'"kafka"' in contents["log"]
    assert any("spark.ui.port" in text for text in ui_pages.values())


def test_spark_and_its_ui_listen_on_loopback_only(running: Running) -> None:
    listening = {
        connection.laddr.ip.removeprefix("::ffff:")
        for process in running.family
        for connection in connections(process)
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}
