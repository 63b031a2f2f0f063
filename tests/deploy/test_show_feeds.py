"""The report of a feed on standard error."""

from __future__ import annotations

import pytest

from deploy.show.summaries import print_intake
from twin.feeds import Intake, PassedOver


def complained(number: int) -> Intake:
    intake = Intake()
    for line in range(number):
        intake.complain("no-size", f"line {line}", "no size")
    return intake


def test_what_is_too_much_to_print_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    print_intake(complained(23))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "mqtwin: warning: line 0: no size (no-size)"
    assert lines[20:] == ["mqtwin: warning: more like these: no-size 23"]


def test_what_was_passed_over_is_counted_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    intake = Intake()
    for kind in (30, 30, 42):
        intake.pass_over(PassedOver("record of other types", f"SMF {kind}", size=1000))
    print_intake(intake)
    expected = "mqtwin: passed over: 3 records of other types, 3,000 bytes (2 of SMF 30, 1 of SMF 42)\n"
    assert capsys.readouterr().err == expected


def test_what_was_printed_as_it_came_is_not_printed_again(capsys: pytest.CaptureFixture[str]) -> None:
    print_intake(complained(8), printed=8)
    assert capsys.readouterr().err == ""
    print_intake(complained(8), printed=7)
    assert capsys.readouterr().err == "mqtwin: warning: line 7: no size (no-size)\n"
    print_intake(complained(23), printed=20)
    assert capsys.readouterr().err == "mqtwin: warning: more like these: no-size 23\n"
