from __future__ import annotations

import functools
import hashlib
import http.server
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from deploy.java import jars
from deploy.java.jars import KAFKA_BROKER, SPARK_CONNECTOR, ensure_jars, missing, pinned
from twin.base.errors import MqtwinError


class Repository(http.server.SimpleHTTPRequestHandler):
    """A Maven repository over a folder, on the loopback address."""

    requests: list[str]

    def do_GET(self):
        self.requests.append(self.path)
        super().do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A Maven repository and an empty cache: (the folder served, the requested paths)."""
    folder = tmp_path / "central"
    for jar, source in zip(pinned(SPARK_CONNECTOR), ensure_jars(SPARK_CONNECTOR), strict=True):
        group, artifact, version = jar.coordinate.split(":")
        place = folder / group.replace(".", "/") / artifact / version
        place.mkdir(parents=True)
        shutil.copy(source, place)
    requests: list[str] = []
    handler = functools.partial(type("Handler", (Repository,), {"requests": requests}), directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    config = tmp_path / "jgo.conf"
    config.write_text(f"[repositories]\ncentral = http://127.0.0.1:{server.server_port}\n")
    monkeypatch.setenv("JGO_CONFIG_FILE", str(config))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("MQTWIN_CACHE", str(tmp_path / "cache"))
    yield folder, requests
    server.shutdown()
    thread.join()
    server.server_close()


def requested_jars(requests: list[str]) -> list[str]:
    return [path for path in requests if path.endswith(".jar")]


def test_every_jar_is_pinned_by_version_and_sum():
    for name, least in ((SPARK_CONNECTOR, 4), (KAFKA_BROKER, 40)):
        assert len(pinned(name)) >= least
        assert all(len(jar.coordinate.split(":")) == 3 for jar in pinned(name))
        assert all(len(bytes.fromhex(jar.sha256)) == hashlib.sha256().digest_size for jar in pinned(name))


def test_missing_jars_are_fetched_once(repository):
    _, requests = repository
    assert len(missing(SPARK_CONNECTOR)) == len(pinned(SPARK_CONNECTOR))
    files = ensure_jars(SPARK_CONNECTOR)
    assert all(file.is_file() for file in files)
    assert len(requested_jars(requests)) == len(files)
    assert ensure_jars(SPARK_CONNECTOR) == files
    assert len(requested_jars(requests)) == len(files)


@pytest.mark.parametrize("damage", ["one byte", "cut off"])
def test_a_tampered_jar_is_seen_and_fetched_again(repository, damage):
    _, requests = repository
    victim = ensure_jars(SPARK_CONNECTOR)[1]
    before = victim.stat()
    good = victim.read_bytes()
    victim.write_bytes(good[: len(good) // 2] if damage == "cut off" else good[:-1] + bytes([good[-1] ^ 1]))
    os.utime(victim, ns=(before.st_atime_ns, before.st_mtime_ns))  # as it was, to the nanosecond
    requests.clear()
    assert [jar.path for jar in missing(SPARK_CONNECTOR)] == [victim]
    ensure_jars(SPARK_CONNECTOR)
    assert victim.read_bytes() == good
    assert len(requested_jars(requests)) == 1


def test_what_is_served_with_another_sum_is_refused_and_not_kept(repository):
    folder, _ = repository
    served = next(folder.rglob("commons-pool2-*.jar"))
    served.write_bytes(b"something else")
    with pytest.raises(MqtwinError, match=r"commons-pool2.*14 bytes served do not have the pinned SHA-256") as error:
        ensure_jars(SPARK_CONNECTOR)
    assert "\n" not in str(error.value)
    assert [jar.path.exists() for jar in missing(SPARK_CONNECTOR)] == [False]


def test_a_jar_that_nobody_has_is_named(repository):
    folder, _ = repository
    next(folder.rglob("commons-pool2-*.jar")).unlink()
    with pytest.raises(MqtwinError, match="commons-pool2") as error:
        ensure_jars(SPARK_CONNECTOR)
    assert "\n" not in str(error.value)


def test_two_at_once_fetch_every_jar_once(repository):
    _, requests = repository
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(ensure_jars, [SPARK_CONNECTOR] * 2)
    assert first == second
    assert not missing(SPARK_CONNECTOR)
    assert len(requested_jars(requests)) == len(first)


@pytest.mark.usefixtures("repository")
def test_progress_is_said_in_plain_lines_where_there_is_no_terminal(capsys):
    ensure_jars(SPARK_CONNECTOR)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        f"fetching 4 jars of spark-connector into {jars.cache_dir() / 'maven'}",
        "fetched 4 jars of spark-connector",
    ]


def test_what_failed_is_not_said_to_be_fetched(repository, capsys):
    folder, _ = repository
    next(folder.rglob("commons-pool2-*.jar")).unlink()
    with pytest.raises(MqtwinError):
        ensure_jars(SPARK_CONNECTOR)
    assert "fetched" not in capsys.readouterr().err


@pytest.mark.usefixtures("repository")
def test_a_network_with_an_authority_of_its_own_gets_the_setting(monkeypatch):
    """uv and pip have settings of their own, and come first: what they fetched says nothing about this one."""

    class Refusing:
        def create_dependency(self, _):
            raise requests.exceptions.SSLError("HTTPSConnectionPool(host='repo'): CERTIFICATE_VERIFY_FAILED")

    monkeypatch.setattr(jars, "maven", lambda *_: Refusing())
    with pytest.raises(MqtwinError, match=r"unknown authority; expected: REQUESTS_CA_BUNDLE=/path") as error:
        ensure_jars(SPARK_CONNECTOR)
    assert "\n" not in str(error.value)
