"""Use of resources by the job's processes, compared with their limits."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from streams.host import resources
from streams.host.resources import Resources, count_mappings, count_open_files, memory_limit, memory_used
from streams.log import configure_logging
from streams.query.job import Job
from streams.query.progress import BatchLog
from streams.state.mirror import map_shared
from twin.base.errors import MqtwinError

LIMITS = {"fds_limit": 1000, "maps_limit": 65_530, "memory_limit_bytes": 1 << 32}
STATE_ERROR = "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state. SQLSTATE: 58030"


def of_figures(monkeypatch: pytest.MonkeyPatch, **figures: int) -> Resources:
    """Return resources that report these figures."""
    job = Resources(os.getpid())

    def report(self: Resources) -> dict[str, int]:
        self._last |= LIMITS | figures
        return self._last

    monkeypatch.setattr(Resources, "figures", report)
    return job


def test_open_descriptors_are_counted(tmp_path: Path) -> None:
    before = count_open_files(os.getpid())
    files = [(tmp_path / f"{number}").open("w") for number in range(7)]
    assert count_open_files(os.getpid()) == before + 7
    for file in files:
        file.close()
    assert count_open_files(os.getpid()) == before


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not report mappings")
def test_mappings_are_counted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(10_000))
    before = count_mappings(os.getpid())
    assert before is not None
    with (tmp_path / "file").open("r+b") as file:
        arrays = [map_shared(file.fileno(), size) for size in (5000, 10_000, 4000)]
    after = count_mappings(os.getpid())
    assert after is not None
    assert before < after <= before + 3
    del arrays


def test_memory_is_bounded_by_the_machine() -> None:
    assert 0 < memory_used() < memory_limit() <= psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("line", "limit", "usage", "idle"),
    [
        ("0::/a/b", "memory.max", "memory.current", "inactive_file"),
        ("4:cpu,memory:/a/b", "memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
    ],
    ids=["version 2", "version 1"],
)
def test_memory_of_a_container_is_bounded_by_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, limit: str, usage: str, idle: str
) -> None:
    """The lowest limit of the group and its parents counts. Cached file pages that can be dropped are not in use."""
    root, above = (tmp_path / limit).parent, (tmp_path / limit).parent / "a"
    (above / "b").mkdir(parents=True)
    own, name = (above / "b", Path(limit).name)
    (own / name).write_text("max\n" if "max" in name else f"{1 << 62}\n")
    (above / name).write_text(f"{1 << 20}\n")
    (above / Path(usage).name).write_text("700000\n")
    (above / "memory.stat").write_text(f"anon 5\n{idle} 200000\n")
    (tmp_path / "cgroup").write_text(f"{line}\n9:pids:/x\n")
    monkeypatch.setattr(resources, "_OWN_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(resources, "_GROUPS", tmp_path)
    resources._find_memory_group.cache_clear()
    try:
        assert (memory_limit(), memory_used()) == (1 << 20, 500_000)
    finally:
        resources._find_memory_group.cache_clear()
    assert root.exists()


_PARENT = """
import subprocess, sys
opens = "import sys, time; f = [open('/dev/null') for _ in range(int(sys.argv[1]))]; print(flush=True); time.sleep(600)"
pipe = subprocess.PIPE
workers = [subprocess.Popen([sys.executable, "-c", opens, str(files)], stdout=pipe) for files in (5, 50)]
for worker in workers:
    worker.stdout.readline()
print(workers[1].pid, flush=True)
sys.stdin.readline()
for worker in workers:
    worker.kill()
    worker.wait()
print(flush=True)
sys.stdin.readline()
"""


def test_figures_are_those_of_the_jvm_and_of_the_largest_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "RENEW_SECONDS", 0.0)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _PARENT], stdin=pipe, stdout=pipe, text=True) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        worker = int(parent.stdout.readline())
        job = Resources(parent.pid)
        figures = job.figures()
        assert figures["jvm_fds"] == count_open_files(parent.pid)
        assert figures["worker_fds"] == count_open_files(worker) > 50
        assert figures["worker_rss_bytes"] > 1 << 20
        assert figures["memory_limit_bytes"] == memory_limit()
        if sys.platform == "linux":
            assert 0 < figures["worker_maps"] < figures["maps_limit"]
            assert 0 < figures["jvm_maps"] < figures["maps_limit"]
            assert figures["fds_limit"] == psutil.Process().rlimit(psutil.RLIMIT_NOFILE)[0]
        parent.stdin.write("\n")
        parent.stdin.flush()
        parent.stdout.readline()
        assert "worker_fds" not in job.figures()
        parent.stdin.write("\n")


_FORKING = """
import os, sys, time
files = [open("/dev/null") for _ in range(50)]
child = os.fork()  # as Java does before it starts a program
if child == 0:
    time.sleep(600)
print(child, flush=True)
sys.stdin.readline()
os.kill(child, 9)
os.waitpid(child, 0)
"""


def test_a_copy_of_the_jvm_that_has_not_become_a_program_yet_is_not_a_worker() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _FORKING], stdin=pipe, stdout=pipe, text=True) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        assert psutil.pid_exists(int(parent.stdout.readline()))
        figures = Resources(parent.pid).figures()
        parent.stdin.write("\n")
    assert figures["jvm_fds"] > 50
    assert "worker_fds" not in figures


def test_a_jvm_that_has_ended_has_no_figures() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert Resources(process.pid).figures().keys() <= {"memory_used_bytes", "memory_limit_bytes", "maps_limit"}


def test_a_limit_that_is_near_is_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    configure_logging(json_lines=True, stream=out)
    job = of_figures(monkeypatch)
    for fds in (700, 800, 801, 900):
        job.warn_once(LIMITS | {"jvm_fds": fds, "worker_fds": 10})
    job.warn_once(LIMITS | {"jvm_fds": 999, "worker_maps": 60_000})
    job.warn_once({"jvm_fds": 5})  # an unknown limit is not near
    warnings = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(entry["level"], entry["uses"]) for entry in warnings] == [
        ("warning", "801 of 1,000 descriptors of the JVM"),
        ("warning", "60,000 of 65,530 memory mappings of a Python worker"),
    ]
    assert "LimitNOFILE" in warnings[0]["do"]
    assert "vm.max_map_count" in warnings[1]["do"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            "OSError: [Errno 24] Too many open files",
            "400 of 1,000 descriptors of the JVM, 990 of 1,000 descriptors of a",
        ),
        ("[Errno 23] Too many open files in system", "fs.file-max"),
        ("OSError: [Errno 12] Cannot allocate memory", "memory mappings of the JVM"),
        ("java.net.SocketException: Too many open files", "LimitNOFILE"),
    ],
)
def test_an_error_at_a_limit_names_it(monkeypatch: pytest.MonkeyPatch, error: str, message: str) -> None:
    job = of_figures(monkeypatch, jvm_fds=400, worker_fds=990, jvm_maps=900, worker_maps=800)
    text = job.shortage(RuntimeError(error))
    assert message in text
    assert "\n" not in text


def test_the_message_of_a_cause_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    job = of_figures(monkeypatch, jvm_fds=400)
    error = RuntimeError(STATE_ERROR)
    error.__cause__ = OSError(24, "Too many open files")
    assert "400 of 1,000 descriptors of the JVM" in job.shortage(error)


def test_an_error_of_state_near_a_limit_names_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    near = of_figures(monkeypatch, jvm_fds=950, worker_fds=20)
    assert near.shortage(RuntimeError(STATE_ERROR)) == (
        "; its cause may be a limit, 950 of 1,000 descriptors of the JVM are in use: "
        "raise LimitNOFILE= of the unit, or `ulimit -n`, and start again"
    )


def test_an_error_far_from_all_limits_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    far = of_figures(monkeypatch, jvm_fds=400, worker_fds=20, memory_used_bytes=(1 << 32) - 1)
    assert far.shortage(RuntimeError(STATE_ERROR)) == ""
    assert of_figures(monkeypatch).shortage(RuntimeError(STATE_ERROR)) == ""


class _Failed:
    """A query that has ended."""

    isActive = False  # noqa: N815 -- Spark's name

    def exception(self) -> Exception:
        return RuntimeError("java.io.FileNotFoundException: /var/lib/state (Too many open files)")


def test_a_job_that_fails_at_a_limit_names_it() -> None:
    log = BatchLog(resources=Resources(os.getpid()))
    job = Job(cast("Any", None), cast("Any", _Failed()), log, set())
    log.query_ended.set()
    with pytest.raises(MqtwinError, match=r"the stream failed: .*Too many open files.*; .*ulimit -n"):
        job.wait()
