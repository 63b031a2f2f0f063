"""Names and texts of others that hold ESC, BEL, CSI: no command writes them to a terminal, nor into a file of text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.cli import main
from deploy.commands.collect import _say as collect_says
from deploy.options.common import _warn
from deploy.show.summaries import ComplaintPrinter, print_intake, print_not_understood
from tests.twin.feeds.conftest import ESTATE
from tests.twin.feeds.samples import activity, json_text, put
from twin.estate.sources import toml_string
from twin.feeds import Complaint, Intake

HOSTILE = "A\x1b[31mB\x07\x9bC\u2028D"
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_DISPLAY = f"""\
CSQM201I QM01 CSQMDRTC  DISPLAY QSTATUS DETAILS
QSTATUS({HOSTILE})
TYPE(QUEUE)
CURDEPTH(17)
IPPROCS(0)
 END QSTATUS DETAILS
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "estate.toml").write_text(ESTATE, encoding="utf-8")
    message = activity(put(objectName=HOSTILE, resolvedQueueName=HOSTILE))
    (tmp_path / "calls.json").write_bytes(json_text(message))
    (tmp_path / "display.txt").write_text(_DISPLAY, encoding="utf-8")
    return tmp_path


COMMANDS: dict[str, list[str]] = {
    "import of calls": ["import", "amqsevt", "calls.json", "--estate", "estate.toml", "-o", "out.ndjson"],
    "import of texts": [
        "import",
        "display",
        "display.txt",
        "--qmgr",
        "QM01",
        "--estate",
        "estate.toml",
        "-o",
        "o.ndjson",
    ],
    "estate": ["estate", "import", "display:display.txt", "--qmgr", "QM01"],
    "differences": ["estate", "import", "display:display.txt", "--qmgr", "QM01", "--estate", "estate.toml"],
    "start": ["start", "display:display.txt", "estate.toml", "--qmgr", "QM01", "-o", "site", "--no-console"],
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_no_command_writes_control_characters(
    words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    main(words)
    printed = "".join(capsys.readouterr())
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("site/*.t*")}
    for place, text in {"terminal": printed, **texts}.items():
        assert not _CONTROL.findall(text), (place, ascii(text))


def _complain(text: str) -> None:
    intake = Intake(None)
    intake.complain(text, text, text)
    intake.complaints.append(Complaint("code", text, text))
    print_intake(intake)
    print_not_understood(intake)


FUNNELS: dict[str, Callable[[str], object]] = {
    "complaints as they come": lambda text: ComplaintPrinter()(Complaint("code", text, text)),
    "complaints at the end": _complain,
    "lines of a collector": collect_says,
    "warnings of options": _warn,
}


@pytest.mark.parametrize("say", FUNNELS.values(), ids=FUNNELS)
def test_no_line_that_a_command_says_has_control_characters(
    say: Callable[[str], object], capsys: pytest.CaptureFixture[str]
) -> None:
    say(HOSTILE)
    printed = "".join(capsys.readouterr())
    assert "A" in printed
    assert not _CONTROL.findall(printed)


def test_a_string_of_toml_has_no_control_characters() -> None:
    assert toml_string(HOSTILE) == '"A\\u001b[31mB\\u0007\\u009bC\\u2028D"'
