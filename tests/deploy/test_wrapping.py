"""On a terminal of any width no line ends between a number and its unit: alerts, the demo, tables, warnings."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import msgspec
import pytest
from rich.console import Console

from deploy.commands.doctor import Finding, print_findings
from deploy.show.alerts import alert_block
from deploy.show.demo import picture
from deploy.show.document import Table
from deploy.show.terminal import print_line, show
from tests.support.console_feed import alert_event
from twin.records import AlertRecord

WIDTHS = range(40, 121)
CAUSE = (
    "Entries of QSG1/APP1: 80.3 % in use, full in about 29 min (21 to 37 min, probability 71 %), then"
    " puts fail with 2192. A.QUEUE: 1.5 puts/s, no get for 45 s, 4 GB of it in 2 h, 512 bytes each."
)
BROKEN = re.compile(r"[0-9][\s│]*\n[\s│]*(?:(?:s|min|h|Gi?B|bytes|puts/s)\b|%)")


@pytest.fixture
def alert() -> AlertRecord:
    event = alert_event(cause=CAUSE, actions=[f"Do it within 29 min: {CAUSE}"])
    return msgspec.convert({**event, "subject": "QM01/PS04", "time": event["data"]["time"]}, AlertRecord)


def assert_unbroken(texts: list[str]) -> None:
    """Assert that texts are wrapped, none of them before a unit."""
    assert all(len(text.splitlines()) > 1 for text in texts)
    assert [text for text in texts if BROKEN.search(text)] == []
    assert not any("\N{BRAILLE PATTERN BLANK}" in text for text in texts)


def test_an_alert_is_wrapped_with_an_indent(alert: AlertRecord) -> None:
    texts = [alert_block(alert, width).plain for width in WIDTHS]
    assert_unbroken(texts)
    for width, text in zip(WIDTHS, texts, strict=True):
        heading, *lines = text.splitlines()
        assert width < 75 or heading.endswith("91.5%")
        assert max(map(len, (heading, *lines))) <= width and all(line.startswith("    ") for line in lines)
        assert " ".join(text.split()) == " ".join(alert_block(alert).plain.split())


def test_the_heading_of_an_updated_alert_breaks_between_words(alert: AlertRecord) -> None:
    long = msgspec.structs.replace(alert.data, store="QMGR.OF.FORTY.EIGHT/Q", resource="queue/SOME.LONG.QUEUE")
    updated = msgspec.structs.replace(alert, type="mqtwin.alert.updated", data=long)
    whole = alert_block(updated).plain.splitlines()[0].split()
    assert whole[-1] == "(updated)"
    for width in WIDTHS:
        text = alert_block(updated, width).plain
        assert max(map(len, text.splitlines())) <= width
        assert text.split()[: len(whole)] == whole


def test_the_alert_of_the_demo_is_wrapped_in_its_frame(alert: AlertRecord) -> None:
    texts = []
    for width in WIDTHS:
        console = Console(width=width, file=io.StringIO(), force_terminal=False)
        console.print(picture({}, [alert], 1000, 240.0))
        assert isinstance(console.file, io.StringIO)
        texts.append(console.file.getvalue())
        assert {len(line) for line in texts[-1].splitlines()[1:]} == {width}
    assert_unbroken(texts)


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """Call a function on terminals of all WIDTHS, and return what it prints, without colours."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(function: Callable[..., None], *arguments: object) -> list[str]:
        texts = []
        for width in WIDTHS:
            monkeypatch.setenv("COLUMNS", str(width))
            function(*arguments)
            texts.append(re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out))
        return texts

    return call


def test_cells_of_a_table_are_wrapped(printed: Callable[..., list[str]]) -> None:
    headings, cells = ("time to full", "p10 to p90", "why"), ("29 min", "21 to 37 min", CAUSE)
    texts = printed(show, Table(headings, [cells]))
    assert all("29 min" in text and "37 min" in text for text in texts)
    assert_unbroken(texts)


def test_findings_are_wrapped(printed: Callable[..., list[str]]) -> None:
    finding = Finding("memory", "lacking", "2.0 GiB, of which 512 bytes are free", CAUSE)
    assert_unbroken(printed(print_findings, [finding]))


def test_a_warning_is_wrapped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    texts = []
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        print_line(CAUSE)
        texts.append(capsys.readouterr().err)
    assert_unbroken(texts)
