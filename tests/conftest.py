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
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import structlog
from xdist.scheduler import LoadFileScheduling

from tests.support.java import QUICK_SPARK, quick_java
from tests.support.profile import CPU_LIMIT_S, IS_LARGE, examples

if TYPE_CHECKING:  # of the extra `stream`: tests of the base do without
    from deploy.java.broker import Broker

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
_KAFKA = "MQTWIN_TEST_KAFKA"
_SYSTEM_FIXTURES = {"kafka", "spark", "secured"}
_SPARK = "tests/system/"  # its quick tests share one Spark session
_BY_FUNCTION = ("tests/kernels/test_oracles.py",)  # long, and nothing is shared by its functions
_LONGEST = (  # of the night, then of the day
    "test_crash.py",
    "test_security.py",
    "test_console.py",
    "test_checkpoint.py",
    "test_old_checkpoints.py",
    "test_repartition.py",
    "test_stream_reports.py",
    "test_oracles.py",
    "test_browser.py",
    "test_notes.py",
    "test_timeline.py",
    "test_scenarios.py",
    "test_publish.py",
    "test_record.py",
    "test_latest.py",
    "test_clock.py",
    "test_commands_report.py",
    "test_demo.py",
    "test_past.py",
    "test_commands_whatif.py",
    "test_stream_command.py",
)
_SAME_TOPICS = ("test_old_checkpoints.py", "test_repartition.py")  # those that the archives of checkpoints name
_SLOWEST_FILES = 10  # that a run prints
_durations: Counter[str] = Counter()  # seconds of each file
_too_long: dict[str, float] = {}  # CPU seconds of tests


class _ByFile(LoadFileScheduling):
    """A file of tests for one worker; the quick tests of Spark for one, the functions of long files each for one.

    Files that write into the same topics of the one broker are one unit, too.
    """

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        if file in _BY_FUNCTION:
            return nodeid.partition("[")[0]
        if file.endswith(_SAME_TOPICS):
            return "archives"
        return _SPARK if file.startswith(_SPARK) and self.config.option.markexpr == "not nightly" else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFile | None:
    """Give whole files to workers, with two exceptions, unless another way is chosen."""
    return _ByFile(config, log) if config.option.dist == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Do once what each worker would do: compile kernels, archive the classes of Java, start a broker."""
    from twin.stores.warm_up import warm

    if "not system" in config.option.markexpr:
        warm()
        return
    making = _start_making_archives()
    warm()
    making.wait(ARCHIVE_SECONDS)  # where it fails it says why, and Java only starts more slowly
    runs_all = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.keyword
    if runs_all and _KAFKA not in os.environ:
        broker = _start_broker()
        config.add_cleanup(broker.stop)
        os.environ[_KAFKA] = broker.bootstrap_servers  # workers inherit it


def _start_making_archives() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "deploy", "doctor", "--class-archives"]
    return subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.DEVNULL)


def _start_broker() -> Broker:
    from deploy.java.broker import Broker

    broker = Broker()
    with quick_java():
        return broker.start()


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Measure the CPU seconds of a test and of the processes that it has waited for."""
    before = os.times()
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu_s", sum(os.times()[:4]) - sum(before[:4])))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the seconds of a file, of all workers, and note the tests that take too much CPU."""
    _durations[report.location[0]] += report.duration
    cpu_s = dict(report.user_properties).get("cpu_s", 0.0)
    if isinstance(cpu_s, float) and cpu_s > CPU_LIMIT_S:
        _too_long[report.nodeid] = cpu_s


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the slowest files and, by day, the tests that belong to the night."""
    if not _durations:
        return
    terminalreporter.section(f"slowest {_SLOWEST_FILES} files")
    for file, seconds in _durations.most_common(_SLOWEST_FILES):
        terminalreporter.write_line(f"{seconds:6.1f} s {file}")
    if "not nightly" not in config.option.markexpr:
        return
    for nodeid, cpu_s in _too_long.items():
        terminalreporter.write_line(f"{cpu_s:.1f} s of CPU, expected: at most {CPU_LIMIT_S:.0f}, or nightly: {nodeid}")


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
    """The bootstrap servers of a real Kafka, one for the whole session, of all workers where all tests run."""
    chosen = os.environ.get(_KAFKA, "")
    if chosen == "testcontainers":
        yield from _kafka_in_a_container()
    elif chosen:
        if not re.fullmatch(r"\S+:\d+", chosen):
            pytest.fail(f"{_KAFKA}={chosen}; expected: HOST:PORT or testcontainers")
        yield chosen
    else:
        with _start_broker() as broker:
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
