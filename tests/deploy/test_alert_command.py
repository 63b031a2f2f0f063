"""`mqtwin alerts`: incidents as text, and as JSON on the standard input of a command, retried, one at a time."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from structlog.testing import capture_logs

import deploy.commands.alerts
import twin
from deploy.bridge import AlertCommand
from deploy.cli import main
from twin.base.errors import UsageError
from twin.records import AlertData, AlertRecord, read_alert_record


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


def test_the_command_has_the_brief_in_its_environment(tmp_path: Path) -> None:
    run, _ = command(tmp_path, "import os, sys; open(sys.argv[1], 'w').write(os.environ['MQTWIN_BRIEF'])")
    brief = (
        "full ~02:01 UTC (in 20 min): SMDS blocks of QM01",
        "ORDERS: no get for 71 min\0",
        "DISPLAY QSTATUS(ORDERS) ALL",
    )
    of_record = record()
    assert run.deliver(msgspec.structs.replace(of_record, data=msgspec.structs.replace(of_record.data, brief=brief)))
    assert (tmp_path / "out").read_text() == "\n".join(brief).replace("\0", "\\x00")


def test_a_page_of_the_forecast_asks_whether_it_was_useful(tmp_path: Path) -> None:
    run, _ = command(tmp_path, "import os, sys; open(sys.argv[1], 'w').write(os.environ['MQTWIN_BRIEF'])")
    for severity, asked in (("warning", "useful? mqtwin judge a useful|useless"), ("info", "")):
        own = msgspec.structs.replace(record().data, condition="full-forecast", severity=severity, level="")
        assert run.deliver(msgspec.structs.replace(record(), data=own))
        assert (tmp_path / "out").read_text() == asked


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
    monkeypatch.setattr("deploy.bridge._PAUSES_S", ())
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


class Reader:
    """A reader of the alerts topic that stands in for AlertReader."""

    is_waiting, unreadable = False, 0

    def __init__(self, *_: Any, **__: Any) -> None: ...
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture
def run_alerts(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run `mqtwin alerts` with options on records, as if they came from the topic; return its status."""

    def run(records: Iterable[AlertRecord], *options: str) -> int:
        monkeypatch.setattr(deploy.commands.alerts, "AlertReader", Reader)
        monkeypatch.setattr(deploy.commands.alerts, "read_alerts", lambda *_: iter(records))
        monkeypatch.setattr("deploy.bridge._PAUSES_S", ())
        return main(["alerts", "--bootstrap-servers", "localhost:9092", *options])

    return run


def test_the_option_delivers_before_it_prints_and_ends_with_1_if_one_was_given_up(
    run_alerts: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run_alerts([record()], "--json", "--exec", f"tee {tmp_path}/copy") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["id"] == json.loads((tmp_path / "copy").read_text())["id"] == "a/0"
    assert "alert delivered" in err
    assert run_alerts([record()], "--json", "--exec", "false") == 1
    assert "alert given up" in capsys.readouterr().err


# --- incidents -------------------------------------------------------------------------------------------------------

FAKE_SMTP = """
import os
class SMTP:
    def __init__(self, host): pass
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def send_message(self, mail):
        with open(os.environ['MAILS'], 'a') as mails:
            mails.write(f"{mail['Subject']} | {mail['References']}\\n")
"""


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> list[AlertRecord]:
    """Return the alerts of the quick start: a getter stops for two hours."""
    recording = tmp_path_factory.mktemp("outage") / "friday.arrow"
    twin.simulate("getter-outage", twin.demo_estate(), recording, seed=1)
    alerts = twin.replay(recording, twin.demo_estate(), course=False).alerts
    return [read_alert_record(alert.record()) for alert in alerts]


def test_the_mail_of_the_page_is_sent_once_an_incident_and_escalation(
    run_alerts: Callable[..., int], outage: list[AlertRecord], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "incidents.md").read_text(encoding="utf-8")
    (program,) = re.findall(r'^```python title="mail_alert.py"\n(.*?)^```$', page, re.MULTILINE | re.DOTALL)
    (tmp_path / "mail_alert.py").write_text(program, encoding="utf-8")
    (tmp_path / "smtplib.py").write_text(FAKE_SMTP, encoding="utf-8")
    mails = tmp_path / "mails"
    monkeypatch.setenv("MAILS", str(mails))
    assert run_alerts(outage, "--exec", f"{sys.executable} {tmp_path}/mail_alert.py") == 0
    subjects, threads = zip(*(line.split(" | ") for line in mails.read_text().splitlines()), strict=True)
    assert [subject.partition(": SMDS blocks of QM01 for QSG1/APP1, ")[0] for subject in subjects] == [
        "[warning] full ~02:10 UTC (in 55 min)",
        "[critical] full ~02:01 UTC (in 10 min)",
        "[full] full now",
        "[warning] puts succeed again",
        "[warning] over",
    ]
    assert len(set(threads)) == 1


def test_with_all_the_command_runs_for_every_record(
    run_alerts: Callable[..., int], outage: list[AlertRecord], tmp_path: Path
) -> None:
    assert run_alerts(outage, "--all", "--exec", f"tee -a {tmp_path}/copy") == 0
    lines = (tmp_path / "copy").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [alert.id for alert in outage]


def test_in_a_pipe_an_incident_is_a_line_for_each_change_of_its_root_until_it_is_over(
    run_alerts: Callable[..., int], outage: list[AlertRecord], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_alerts(outage) == 0
    lines = [re.split("  +", line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0][1:6] == ["opened", "watch", "QSG1/APP1", "elements", "threshold"]
    assert list(dict.fromkeys(line[2] for line in lines)) == ["watch", "warning", "critical", "full"]
    assert [line[1] for line in lines].count("cleared") == 1 and lines[-1][1] == "cleared"
    foreseen = next(line for line in lines if line[5] == "full-forecast")
    assert foreseen[-1] == "[+ watch elements threshold]"
    full = next(line for line in lines if line[5] == "full")
    assert re.fullmatch(r"\[\+ critical smds/QM01 full-forecast; \+ watch \S+ \S+; \+2 parts\]", full[-1])
    assert len(lines) < len(outage) / 2
    assert run_alerts(outage, "--all") == 0
    assert len(capsys.readouterr().out.splitlines()) == len(outage)


def test_on_a_terminal_parts_are_lines_below_their_root(
    run_alerts: Callable[..., int],
    outage: list[AlertRecord],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, text in {"TTY_COMPATIBLE": "1", "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "80"}.items():
        monkeypatch.setenv(name, text)
    assert run_alerts(outage) == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 80
    assert "    + watch elements threshold" in lines and "    +2 parts" in lines
    headings = " ".join(line for line in lines if not line.startswith("     "))
    assert re.findall(r"\((a page|worse|over)\)", headings) == ["a page", "worse", "worse", "over"]
