"""Restarts of a command that fails: logged causes, growing waits, stop requests."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from structlog.testing import capture_logs

from deploy import supervisor
from deploy.supervisor import VARIABLE, Supervisor, check_restart, reported_failure
from streams.checkpoint.manifest import LocalGuard
from tests.support.processes import still_alive
from twin.base.errors import MqtwinError, UsageError

ROOT = Path(__file__).resolve().parents[2]
# Fails a number of times, counted in a file, then succeeds.
FAILS = """
import os, sys
from pathlib import Path
from typing import Any
runs = Path(sys.argv[1])
count = len(runs.read_text()) if runs.exists() else 0
runs.write_text("x" * (count + 1))
if count < int(sys.argv[2]):
    os.write(int(os.environ["MQTWIN_SUPERVISED"]), f"reason {count}".encode())
    sys.exit(1)
"""
# Succeeds at the first SIGTERM, fails if there is a second one.
WAITS = """
import signal, sys, time
from pathlib import Path
from typing import Any
signals = []
signal.signal(signal.SIGTERM, lambda *_: signals.append(1))
Path(sys.argv[1]).touch()
while not signals:
    time.sleep(0.05)
time.sleep(0.3)
sys.exit(0 if len(signals) == 1 else 3)
"""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_WAIT_SECONDS", 0.01)


def failing(folder: Path, times: int, max_failures: int | None) -> Supervisor:
    return Supervisor(lambda: [sys.executable, "-c", FAILS, str(folder / "runs"), str(times)], max_failures)


def test_it_starts_again_until_all_is_well_and_logs_every_cause(tmp_path: Path) -> None:
    with capture_logs() as log:
        assert failing(tmp_path, 3, None).run() == 0
    assert [(entry["cause"], entry["wait_seconds"]) for entry in log] == [
        ("reason 0", 0.01),
        ("reason 1", 0.02),
        ("reason 2", 0.04),
    ]
    assert (tmp_path / "runs").read_text() == "xxxx"


def test_it_gives_up_after_too_many_failures_in_a_row(tmp_path: Path) -> None:
    with pytest.raises(MqtwinError, match=r"^reason 2; failures in a row: 3, --restart 2: given up$"):
        failing(tmp_path, 9, 2).run()


def test_a_command_that_ran_long_begins_a_new_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "GOOD_SECONDS", 0.0)
    with capture_logs() as log:
        assert failing(tmp_path, 3, 1).run() == 0
    assert [entry["failures"] for entry in log] == [1, 1, 1]


def test_the_wait_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "MAX_WAIT_SECONDS", 0.015)
    with capture_logs() as log:
        failing(tmp_path, 3, None).run()
    assert [entry["wait_seconds"] for entry in log] == [0.01, 0.015, 0.015]


def test_wrong_use_is_not_started_again(tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    assert Supervisor(lambda: [sys.executable, "-c", "import sys; sys.exit(2)"], None).run() == 2


def test_a_killed_command_is_a_cause(tmp_path: Path) -> None:
    kill = f"import os, sys; os.path.exists(p := {str(tmp_path / 'x')!r}) or (open(p, 'w'), os.kill(os.getpid(), 9))"
    with capture_logs() as log:
        assert Supervisor(lambda: [sys.executable, "-c", kill], None).run() == 0
    assert [entry["cause"] for entry in log] == ["the job was killed by signal 9 (out of memory?)"]


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "deploy.supervisor",
        "always",
        "json",
        "info",
        sys.executable,
        "-c",
        *arguments,
    ]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_signal_to_the_process_group_reaches_the_command_once(tmp_path: Path) -> None:
    process = start(WAITS, str(tmp_path / "ready"))
    wait_for(tmp_path / "ready")
    os.killpg(process.pid, signal.SIGTERM)
    assert process.communicate(timeout=60)[1] == ""
    assert process.returncode == 0


def test_a_signal_during_the_wait_ends_it_at_once() -> None:
    process = start("import sys, time; sys.exit(5)")
    assert process.stderr is not None
    waits = 0.0
    while waits < 4:
        line = process.stderr.readline()
        assert '"cause":"the job ended with status 5"' in line
        waits = float(line.partition('"wait_seconds":')[2].partition(",")[0])
    started_at = time.monotonic()
    process.terminate()
    assert process.wait(60) == 0
    assert time.monotonic() - started_at < waits
    process.stderr.close()


def test_the_command_is_gone_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    process = start(WAITS, str(tmp_path / "ready"))
    wait_for(tmp_path / "ready")
    (child,) = psutil.Process(process.pid).children()
    process.kill()
    process.communicate()
    assert still_alive([child]) == []


def test_it_is_small() -> None:
    heavy = (
        "{'pyspark', 'numba', 'numpy', 'confluent_kafka', 'pyarrow'} & {name.partition('.')[0] for name in sys.modules}"
    )
    code = f"import sys, deploy.supervisor; print({heavy})"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).strip() == "set()"


@pytest.mark.parametrize("text", ["0", "-1", "often", "1.5", ""])
def test_another_number_of_restarts_is_wrong_use(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"--restart .*expected: never, always, or a number of failures in a row, 1 or more$"
    ):
        check_restart(text)


def test_a_failure_is_reported_only_to_a_supervisor_and_wrong_use_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MQTWIN_DEBUG", raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(MqtwinError, match="cause"), reported_failure():
        raise MqtwinError("cause")
    reading, writing = os.pipe()
    monkeypatch.setenv(VARIABLE, str(writing))
    with pytest.raises(UsageError), reported_failure():
        raise UsageError("wrong")
    with pytest.raises(SystemExit) as ended, reported_failure():
        raise MqtwinError("cause")
    assert (ended.value.code, os.read(reading, 100)) == (1, b"cause")
    os.close(reading)
    os.close(writing)


def refuse(error: OSError) -> None:
    """Refuse a checkpoint as its guard does."""
    try:
        raise error
    except OSError as cause:
        raise UsageError(f"checkpoint /cp cannot be written: {cause.strerror}") from cause


@pytest.mark.parametrize("number", ["ENOSPC", "EDQUOT", "ENOMEM", "EMFILE", "EIO"])
def test_what_a_system_lacks_for_a_while_is_a_failure_that_a_restart_may_mend(number: str) -> None:
    code = getattr(errno, number)
    with pytest.raises(MqtwinError, match=r"^checkpoint /cp cannot be written: ") as failed, reported_failure():
        refuse(OSError(code, os.strerror(code)))
    assert not isinstance(failed.value, UsageError)


def test_wrong_use_stays_wrong_use() -> None:
    with pytest.raises(UsageError, match="Permission denied"), reported_failure():
        refuse(OSError(errno.EACCES, os.strerror(errno.EACCES)))


def test_a_lock_that_another_job_holds_is_no_lack(tmp_path: Path) -> None:
    guard = LocalGuard(tmp_path)
    with pytest.raises(UsageError, match="another mqtwin stream runs on it"), reported_failure():
        LocalGuard(tmp_path)
    guard.release()


def test_a_lack_that_java_reports_is_one_too() -> None:
    with pytest.raises(MqtwinError) as failed, reported_failure():
        raise UsageError("Spark does not start: IOException: No space left on device; `mqtwin doctor` ...")
    assert not isinstance(failed.value, UsageError)


SPEAKS = """
import os, sys
print("working")
print("mqtwin: warning: little room", file=sys.stderr)
print("mqtwin: the end\\t of it", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""


def speaking(status: int, **options: Any) -> tuple[Supervisor, list[str]]:
    lines: list[str] = []
    command = [sys.executable, "-c", SPEAKS, str(status)]
    return Supervisor(lambda: command, options.pop("max_failures", 0), on_line=lines.append, **options), lines


def test_the_last_error_of_a_command_whose_lines_are_taken_is_the_cause() -> None:
    speaker, lines = speaking(1)
    with pytest.raises(MqtwinError, match=r"^the end\t of it; failures in a row: 1, --restart 0: given up$"):
        speaker.run()
    assert sorted(lines) == ["mqtwin: the end\t of it", "mqtwin: warning: little room", "working"]


def test_wrong_use_has_the_words_of_the_command() -> None:
    with pytest.raises(UsageError, match=r"^the end\t of it$"):
        speaking(2)[0].run()


@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_command_that_has_worked_is_started_again_whatever_its_end(status: int) -> None:
    causes: list[tuple[str, float]] = []

    def note(cause: str, wait_s: float) -> None:
        causes.append((cause, wait_s))
        if len(causes) == 2:
            speaker.request_stop()

    speaker, _ = speaking(status, on_restart=note)
    speaker.is_up = True
    assert speaker.run() == 0
    assert causes == [("the end\t of it", 0.01), ("the end\t of it", 0.02)]


def test_each_start_asks_for_the_command() -> None:
    statuses = iter((1, 0))
    asked = Supervisor(lambda: [sys.executable, "-c", f"import sys; sys.exit({next(statuses)})"], 1)
    with capture_logs():
        assert asked.run() == 0


def test_a_process_that_keeps_the_output_open_does_not_hold_up_a_restart() -> None:
    leaves = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(8)'])"
    left = Supervisor(lambda: [sys.executable, "-c", leaves], 0, on_line=lambda _: None)
    began = time.monotonic()
    assert left.run() == 0
    assert time.monotonic() - began < 6
