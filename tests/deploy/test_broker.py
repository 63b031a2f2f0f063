from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from deploy.java.broker import MAX_RECORD_BYTES, Broker, _bind, _escaped
from tests.streams.kafka_help import new_producer
from tests.support.java import quick_java
from tests.support.processes import is_alive, still_alive
from twin.base.errors import MqtwinError, UsageError

ROOT = Path(__file__).resolve().parents[2]
linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends a dead parent's children on Linux only")


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with quick_java():
        yield


def create(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})  # has to live until the answer is there
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()


def put(servers: str, topic: str, *values: bytes) -> None:
    producer = new_producer(servers, message_max_bytes=MAX_RECORD_BYTES)
    refused = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _message: refused.append(error) if error else None)
    assert producer.flush(60) == 0
    assert refused == []


def get(servers: str, topic: str, count: int) -> list[bytes]:
    settings = {"bootstrap.servers": servers, "group.id": "test", "auto.offset.reset": "earliest"}
    with contextlib.closing(Consumer({**settings, "enable.auto.commit": False})) as consumer:
        consumer.subscribe([topic])
        messages = consumer.consume(count, timeout=60)
    assert [message.error() for message in messages] == [None] * len(messages)
    return [message.value() for message in messages]


def cluster_id(servers: str) -> str:
    admin = AdminClient({"bootstrap.servers": servers})
    return admin.describe_cluster().result().cluster_id


@contextlib.contextmanager
def running(*command: str):
    """The command as a child, with pipes; killed at the end whatever happens."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, *command], cwd=ROOT, text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.system
def test_a_record_of_almost_sixteen_mebibytes_goes_through(kafka, topic_prefix):
    create(kafka, topic_prefix)
    large = bytes(MAX_RECORD_BYTES - 4096)
    put(kafka, topic_prefix, b"small", large)
    assert get(kafka, topic_prefix, 2) == [b"small", large]


@pytest.mark.system
def test_a_cluster_id_may_begin_with_a_hyphen(monkeypatch):
    """One in 64 does."""
    monkeypatch.setattr("deploy.java.broker.uuid.uuid4", lambda: uuid.UUID(int=0xF8 << 120))
    with Broker() as broker:
        assert cluster_id(broker.bootstrap_servers).startswith("-")


@pytest.mark.system
@pytest.mark.nightly
def test_a_broker_started_again_is_the_same_cluster_with_its_messages(tmp_path):
    with Broker(data=tmp_path / "data") as broker:
        servers, cluster = broker.bootstrap_servers, cluster_id(broker.bootstrap_servers)
        create(servers, "kept")
        put(servers, "kept", b"before the stop")
        broker.kill()
        assert broker.pid is None
        assert broker.start().bootstrap_servers == servers
        put(servers, "kept", b"after kill -9")
        java = psutil.Process(broker.pid)
    assert not java.is_running()
    with Broker(data=tmp_path / "data") as again:
        assert again.bootstrap_servers == servers
        assert cluster_id(servers) == cluster
        assert get(servers, "kept", 2) == [b"before the stop", b"after kill -9"]


@pytest.mark.system
def test_it_listens_on_the_loopback_address_only_and_one_folder_has_one_broker(tmp_path):
    with Broker(data=tmp_path) as broker:
        listening = [c for c in psutil.Process(broker.pid).net_connections("tcp") if c.status == psutil.CONN_LISTEN]
        assert {c.laddr.ip.removeprefix("::ffff:") for c in listening} == {"127.0.0.1"}
        with pytest.raises(UsageError, match="another broker runs on this folder"):
            Broker(data=tmp_path).start()
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        with pytest.raises(UsageError, match=f"port {port}: .*name a free port"):
            Broker(port=port).start()


@linux
@pytest.mark.system
@pytest.mark.nightly
def test_nothing_is_left_when_the_parent_is_killed(tmp_path):
    program = (
        "import sys, threading, time; from pathlib import Path; from deploy.java.broker import Broker\n"
        f"broker = Broker(data=Path({str(tmp_path)!r}))\n"
        # Started in a thread that ends: the broker belongs to the process, not to that thread.
        "starter = threading.Thread(target=broker.start); starter.start(); starter.join(); time.sleep(1)\n"
        "print(broker.pid, flush=True); time.sleep(600)"
    )
    with running("-c", program) as parent:
        java = psutil.Process(int(parent.stdout.readline()))
        assert java.is_running()
        parent.kill()
    assert still_alive([java]) == []


@pytest.mark.system
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT], ids=lambda stop: stop.name)
@pytest.mark.nightly
def test_the_command_prints_its_address_and_a_signal_ends_it_cleanly(stop, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with running("-m", "deploy", "broker") as process:
        line = process.stdout.readline()
        address = re.fullmatch(r"bootstrap\.servers=(127\.0\.0\.1:\d+)\n", line)
        assert address, line + process.stderr.read()
        assert cluster_id(address.group(1))
        children = psutil.Process(process.pid).children(recursive=True)
        assert children
        process.send_signal(stop)
        rest, complaints = process.communicate(timeout=60)
    assert (process.returncode, rest, complaints) == (0, "", "")
    assert not [child for child in children if is_alive(child)]
    assert not list(tmp_path.glob("mqtwin-broker-*"))


@pytest.mark.system
@pytest.mark.nightly
def test_a_broker_that_dies_ends_the_command_with_one_line(tmp_path):
    with running("-m", "deploy", "broker", "--data", str(tmp_path)) as process:
        process.stdout.readline()
        (java,) = psutil.Process(process.pid).children(recursive=True)
        java.kill()
        _, complaints = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.fullmatch(r"mqtwin: the broker ended by itself \(exit status -9\).*broker\.log\n", complaints)


def test_a_chosen_port_is_none_of_those_for_outgoing_connections_and_free_until_the_next_is_chosen():
    with contextlib.ExitStack() as ports:
        chosen = [_bind(0, ports) for _ in range(50)]
        assert len(set(chosen)) == 50
        assert all(20_000 <= port < 32_000 for port in chosen)


def test_a_broker_that_cannot_start_says_why_and_where_its_log_is(tmp_path):
    meta = tmp_path / "data" / "meta.properties"
    meta.parent.mkdir()
    meta.write_text("version=1\ncluster.id=mine\nnode.id=77\n")
    (tmp_path / "server.properties").write_text("")
    with pytest.raises(MqtwinError, match=r"ended while starting \(exit status 1\): .* ERROR .*broker\.log") as error:
        Broker(data=tmp_path).start()
    assert "\n" not in str(error.value)


def test_a_folder_with_other_things_in_it_is_refused_untouched(tmp_path):
    (tmp_path / "thesis.odt").write_text("years of work")
    with pytest.raises(UsageError, match="not a broker's folder"):
        Broker(data=tmp_path).start()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.odt"]


def test_a_port_in_use_is_refused_before_anything_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(UsageError, match="name a free port"):
        Broker(port=other.getsockname()[1]).start()
    assert list(tmp_path.iterdir()) == []


def test_paths_survive_a_java_properties_file():
    path = "/tmp/Größe\\𝄞 x"
    escaped = _escaped(path)
    assert escaped.isascii()
    units = re.sub(r"\\\\|\\u([0-9a-f]{4})", lambda m: f"%{m[1]}" if m[1] else "\\", escaped)
    decoded = re.sub(r"%([0-9a-f]{4})", lambda m: chr(int(m[1], 16)), units)
    assert decoded.encode("utf-16", "surrogatepass").decode("utf-16") == path
