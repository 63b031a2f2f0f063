"""`mqtwin alerts --exec`: each alert as JSON on the standard input of a command, retried, one at a time."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from structlog.testing import capture_logs

import deploy.commands.alerts
from deploy.bridge.alert_command import AlertCommand
from deploy.cli import main
from twin.errors import UsageError
from twin.records import AlertData, AlertRecord


def record(number: int = 0) -> AlertRecord:
    fields = {"status": "open", "severity": "full", "store": "QSG1/APP1", "resource": "entries", "condition": "full"}
    data = AlertData(alert_id="a", time="2026-11-20T00:00:00.000000Z", usage_pct=100.0, **fields)
    value = json.dumps({"id": f"a/{number}"}).encode()
    return AlertRecord(id=f"a/{number}", type="mqtwin.alert.opened", subject="s", time="t", data=data, value=value)


def command(folder: Path, program: str, **options: Any) -> tuple[AlertCommand, list[float]]:
    """Return the command that runs a Python program, and the list that gets its pauses."""
    file = folder / "program with space.py"
    file.write_text(program, encoding="utf-8")
    pauses: list[float] = []
    return AlertCommand(f"{sys.executable} '{file}' {folder}/out", sleep=pauses.append, **options), pauses


COPY = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read())"
FAIL_TWICE = """
import pathlib, sys
attempts = pathlib.Path(sys.argv[1])
attempts.write_text((attempts.read_text() if attempts.exists() else '') + 'x')
sys.exit('no route' if len(attempts.read_text()) < 3 else 0)
"""


def test_the_command_gets_the_alert_as_one_line_of_json(tmp_path: Path) -> None:
    run, pauses = command(tmp_path, COPY)
    assert run.deliver(record(0)) and run.deliver(record(1))
    assert [json.loads(line)["id"] for line in (tmp_path / "out").read_text().splitlines()] == ["a/0", "a/1"]
    assert (pauses, run.undelivered) == ([], 0)


def test_a_command_that_fails_is_run_again_after_growing_pauses(tmp_path: Path) -> None:
    run, pauses = command(tmp_path, FAIL_TWICE)
    assert run.deliver(record())
    assert pauses == [1.0, 5.0]


def test_an_alert_is_given_up_after_five_attempts(tmp_path: Path) -> None:
    run, pauses = command(tmp_path, "import sys; sys.exit(3)")
    assert not run.deliver(record())
    assert (pauses, run.undelivered) == ([1.0, 5.0, 15.0, 60.0], 1)


def test_a_command_that_hangs_has_failed(tmp_path: Path) -> None:
    run, pauses = command(tmp_path, "import time; time.sleep(60)", timeout_s=0.2)
    assert not run.deliver(record())
    assert len(pauses) == 4


LEAVE_ONE_BEHIND = """
import subprocess, sys
open(sys.argv[1], 'a').write('x')
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(5)'])
print('notified')
"""


def test_a_command_that_leaves_a_process_behind_has_succeeded_at_its_own_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The process holds standard input and output open; the command is not run again because of that."""
    run, pauses = command(tmp_path, LEAVE_ONE_BEHIND, timeout_s=4.5)
    long = msgspec.structs.replace(record(), value=b'"' + b"x" * (1 << 20) + b'"')  # which nobody reads
    began = time.monotonic()
    assert run.deliver(long)
    assert time.monotonic() - began < 4.5
    assert ((tmp_path / "out").read_text(), pauses) == ("x", [])
    assert "notified" in capsys.readouterr().err


def test_output_without_end_is_a_failure_and_takes_neither_memory_nor_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.bridge.alert_command._PAUSES_S", ())
    run, _ = command(tmp_path, "import sys\nwhile True: sys.stdout.write('y' * 65536)")
    with capture_logs() as lines:
        assert not run.deliver(record())
    assert lines[-1]["why"] == "more than 16 MB of output"


@pytest.mark.parametrize(
    ("text", "why"), [("", "no such program"), ("'open", "No closing"), ("/no/such x", "/no/such")]
)
def test_a_command_that_cannot_be_run_is_wrong_use(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        AlertCommand(text)


def test_the_option_delivers_before_it_prints_and_ends_with_1_if_one_was_given_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    class Reader:
        is_waiting, unreadable = False, 0

        def __init__(self, *_: Any, **__: Any) -> None: ...
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

    def read_alerts(*_: Any) -> Iterator[AlertRecord]:
        yield record()

    monkeypatch.setattr(deploy.commands.alerts, "AlertReader", Reader)
    monkeypatch.setattr(deploy.commands.alerts, "read_alerts", read_alerts)
    monkeypatch.setattr("deploy.bridge.alert_command._PAUSES_S", ())
    client = ["alerts", "--bootstrap-servers", "localhost:9092", "--json"]
    assert main([*client, "--exec", f"tee {tmp_path}/copy"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["id"] == json.loads((tmp_path / "copy").read_text())["id"] == "a/0"
    assert "alert delivered" in err
    assert main([*client, "--exec", "false"]) == 1
    assert "alert given up" in capsys.readouterr().err
