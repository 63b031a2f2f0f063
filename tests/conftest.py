"""Fixtures of all tests.

MQTWIN_TEST_KAFKA chooses the broker of the fixture ``kafka``: nothing (an embedded one), HOST:PORT (that one), or
``testcontainers`` (one in a container, where there is a Docker engine).
"""

from __future__ import annotations

import gc
import logging
import os
import re
import subprocess
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import structlog

from tests.support.java import QUICK_SPARK, quick_java
from tests.support.profile import IS_LARGE, examples

# The first call of a kernel compiles it, and machines that run tests are busy: no example is too slow.
# A commit passes or fails, the same on each machine: new examples are looked for by the large profile alone.
hypothesis.settings.register_profile(
    "mqtwin",
    max_examples=examples(200),
    deadline=None,
    derandomize=not IS_LARGE,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=True,
)
hypothesis.settings.load_profile("mqtwin")

for _name, _options in QUICK_SPARK.items():
    os.environ.setdefault(_name, _options)

ARCHIVE_SECONDS = 900.0  # of making them on a busy machine that compiles kernels beside it
_SYSTEM_FIXTURES = {"kafka", "spark", "secured"}
_LONGEST = (
    "test_crash.py",
    "test_security.py",
    "test_stream_command.py",
    "test_console.py",
    "test_stream_reports.py",
    "test_oracles.py",
    "test_stream_equals_replay.py",
    "test_bad_input_cases.py",
    "test_checkpoint.py",
    "test_old_checkpoints.py",
    "test_repartition.py",
    "test_browser.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Compile kernels and archive the classes of Java, where it must be, once and not in each worker."""
    from twin.stores.warm_up import warm

    making = None if "not system" in config.option.markexpr else _start_making_archives()
    warm()
    if making is not None:
        making.wait(ARCHIVE_SECONDS)  # where it fails it says why, and Java only starts more slowly


def _start_making_archives() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "deploy", "doctor", "--class-archives"]
    return subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.DEVNULL)


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses a broker or Spark, and begin with the long files: none is to be last on its own."""
    for item in items:
        if not _SYSTEM_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.system)
    is_system = {item.path for item in items if item.get_closest_marker("system")}
    items.sort(key=lambda item: (_place(item.path), item.path not in is_system))


def _place(path: Path) -> int:
    return _LONGEST.index(path.name) if path.name in _LONGEST else len(_LONGEST)


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """Log warnings and worse to standard error, and let no test leave a log behind that writes into a closed file.

    structlog's own default writes everything to standard output, where a thread that an earlier test left behind
    (Py4J's, as Java collects its objects) would write into what a command printed.
    """
    before = structlog.get_config()
    structlog.configure(
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # what it is at the time
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
    )
    yield
    structlog.configure(**before)


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """The bootstrap servers of a real Kafka, one for the whole session."""
    chosen = os.environ.get("MQTWIN_TEST_KAFKA", "")
    if chosen == "testcontainers":
        yield from _kafka_in_a_container()
    elif chosen:
        if not re.fullmatch(r"\S+:\d+", chosen):
            pytest.fail(f"MQTWIN_TEST_KAFKA={chosen}; expected: HOST:PORT or testcontainers")
        yield chosen
    else:
        from deploy.java.broker import Broker

        broker = Broker()
        with quick_java():
            broker.start()
        with broker:
            yield broker.bootstrap_servers


def _kafka_in_a_container() -> Iterator[str]:
    from testcontainers.community.kafka import KafkaContainer

    lack = _lack_of_docker()
    if lack:
        pytest.skip(f"no Docker engine: {lack}")
    with KafkaContainer().with_kraft().with_env("KAFKA_MESSAGE_MAX_BYTES", "16777216") as container:
        yield container.get_bootstrap_server()


def _lack_of_docker() -> str:
    """Why no Docker engine can be used; empty where one answers."""
    import docker

    lack = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # a docker client that fails leaves its socket open
        try:
            docker.from_env().close()
        except docker.errors.DockerException as error:
            lack = str(error)
        gc.collect()
    return lack


@pytest.fixture
def topic_prefix(request: pytest.FixtureRequest) -> str:
    """A topic prefix that no other test has, so that tests share a broker without meeting."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name).strip("-")[:60]
    return f"test-{name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A temporary directory whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="mq-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder ``shared`` beside the project, with example estates and recorded traffic."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip(f"no folder {folder} with the example files")
    return folder
