"""A master that accepts no connection is reported at once."""

from __future__ import annotations

import socket
import time

import pytest

from streams.query.session import check_classic, check_master
from twin.base.errors import MqtwinError, UsageError


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("master", ["", "local", "local[*,4]", "yarn", "local-cluster[2,1,1024]"])
def test_masters_without_an_address_are_left_to_spark(master):
    check_master(master)


def test_one_listening_master_of_several_is_enough(listening):
    check_master(f"spark://127.0.0.1:{listening}")
    check_master(f"spark://127.0.0.1:9,127.0.0.1:{listening}")
    check_master(f"k8s://https://127.0.0.1:{listening}")


@pytest.mark.parametrize(
    ("master", "cause"),
    [
        ("spark://[::1]:9", "[::1]:9: "),
        ("spark://nohost.invalid:7077", "nohost.invalid:7077: "),
        ("spark://127.0.0.1:9", "127.0.0.1:9: Connection refused"),
        ("spark://127.0.0.1:9,127.0.0.1:10", "127.0.0.1:9: Connection refused; 127.0.0.1:10: Connection refused"),
    ],
    ids=["IPv6", "no such host", "nobody listens", "nobody listens on two"],
)
def test_an_unreachable_master_is_one_line_with_the_cause(master, cause):
    started = time.monotonic()
    with pytest.raises(MqtwinError) as caught:
        check_master(master)
    assert not isinstance(caught.value, UsageError)  # the master may come back
    assert str(caught.value).startswith(f"--master {master}: nobody answers ({cause}")
    assert "\n" not in str(caught.value)
    assert time.monotonic() - started < 15


@pytest.mark.parametrize(
    "master",
    ["spark://:7077", "spark://host:0", "spark://host:99999", "spark://::1:7077", "spark://[host]:7077"],
)
def test_a_malformed_address_is_wrong_use(master):
    with pytest.raises(UsageError, match="expected: HOST:PORT"):
        check_master(master)


@pytest.mark.parametrize(
    ("master", "conf", "environment", "words"),
    [
        ("sc://host:15002", {}, {}, "--master=sc://host:15002"),
        (None, {"spark.remote": "local"}, {}, "spark.remote=local"),
        (None, {"spark.master": "sc://host"}, {}, "spark.master=sc://host"),
        ("local[2]", {}, {"SPARK_REMOTE": "sc://host"}, "SPARK_REMOTE=sc://host"),
        (None, {}, {"SPARK_CONNECT_MODE_ENABLED": "1"}, "SPARK_CONNECT_MODE_ENABLED=1"),
    ],
)
def test_spark_connect_is_one_line_that_names_where_it_was_asked_for(monkeypatch, master, conf, environment, words):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="neither SPARK_REMOTE nor") as caught:
        check_classic(master, conf)
    assert str(caught.value).startswith(f"{words}: Spark Connect is not supported")
    assert "\n" not in str(caught.value)


def test_classic_masters_are_not_spark_connect(monkeypatch):
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    check_classic(None, {"spark.master": "local[*]"})
    check_classic("spark://host:7077", {})
