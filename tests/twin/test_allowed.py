"""The site's list of changes that may be requested: nothing by default, bounds, windows, and who may read it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.asked_acts import NOW, actions, estate, request
from twin.base.errors import UsageError
from twin.base.units import as_text, event_time, zone_of
from twin.planning.proposals import HOUR_US, Allow, read_allowed

RULES = {"offld1_th": 60, "offld1_sz": 32_768, "offld2_th": 70}
ROW = '[[allow]]\nkind = "alter-cfstruct"\nstores = ["QSG1/APP*"]\n'


def allow(tmp_path: Path, text: str, kind: str = "alter-cfstruct", store: str = "QSG1/APP1", **settings: Any) -> Allow:
    return read_allowed(actions(tmp_path, text)).row_of(kind, store, settings)


@pytest.mark.parametrize(
    ("text", "settings", "expected"),
    [
        ("", RULES, "alter-cfstruct of QSG1/APP1 is not allowed; expected: an [[allow]] of it"),
        (ROW.replace("APP*", "BPP*"), RULES, "is not allowed; expected: an [[allow]] of it"),
        (ROW.replace("cfstruct", "psid"), RULES, "is not allowed; expected: an [[allow]] of it"),
        (ROW, RULES, "offld1_th = 60; expected: bounds of offld1_th in the row of alter-cfstruct"),
        (ROW + "bounds = {offld1_th = [50, 90]}\n", RULES, "offld1_sz = 32768; expected: bounds of offld1_sz"),
        (ROW + 'bounds = {"offld*" = [70, 90]}\n', RULES, "offld1_th = 60; expected: 70 to 90, its bounds"),
        (
            ROW + 'bounds = {"offld?_th" = [50, 90], "offld?_sz" = ["0K", "16K"]}\n',
            RULES,
            "offld1_sz = 32768; expected: 0K to 16K, its bounds",
        ),
    ],
)
def test_what_the_list_does_not_allow_is_refused(
    tmp_path: Path, text: str, settings: dict[str, int], expected: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(expected)):
        allow(tmp_path, text, **settings)


def test_numbers_within_their_bounds_and_words_are_allowed(tmp_path: Path) -> None:
    text = ROW + 'bounds = {"offld?_th" = [50, 90], "offld?_sz" = ["0K", "64K"]}\napprovers = 2\n'
    assert allow(tmp_path, text, **RULES).approvers == 2
    assert allow(tmp_path, ROW, ds_expand=True).approvers == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[allow]]\n", "missing required field"),
        (ROW + "approvers = 0\n", "approvers"),
        (ROW + "approvers = 4\n", "approvers"),
        (ROW + "per_hour = 0\n", "per_hour"),
        (ROW + 'text = "CLEAR"\n', "unknown field"),
        (ROW.replace("alter-cfstruct", "clear-qlocal"), "kind"),
        (ROW.replace('["QSG1/APP*"]', "[]"), "stores"),
        (ROW + "bounds = {size = [5, 1]}\n", "bounds of size: 5 to 1; the first must be at most the second"),
        (ROW + 'bounds = {size = ["x", 1]}\n', "not a size"),
        (ROW + 'windows = ["always"]\n', 'windows: "always"; expected: such as Mon-Fri 06:00-20:00'),
        (ROW + 'windows = ["Mon 25:00-26:00"]\n', "expected: such as Mon-Fri"),
        ('zone = "Mars"\n' + ROW, "Mars; expected: a name such as Europe/Berlin"),
        ("allow = 1\n", "expected: [[allow]] rows"),
        ("\x00", "expected: [[allow]] rows"),
        ("#" * 300_000, "is larger than 262,144 bytes; expected"),
    ],
)
def test_a_list_that_is_wrong_is_one_line(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(UsageError, match=re.escape(expected)) as error:
        read_allowed(actions(tmp_path, text))
    assert "expected: " in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o601])
def test_a_list_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = actions(tmp_path)
    path.chmod(mode)
    with pytest.raises(UsageError, match=f"can be used by others \\(mode {mode:o}\\); expected: chmod 600 {path}"):
        read_allowed(path)


def test_a_list_of_somebody_else_or_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = actions(tmp_path)
    with pytest.raises(UsageError, match="cannot be read: No such file or directory; expected"):
        read_allowed(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="cannot be read: Is a directory; expected"):
        read_allowed(tmp_path)
    if path.stat().st_uid == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(UsageError, match=r"belongs to user \d+; expected: to the one of this process"):
        read_allowed(path)


@pytest.mark.parametrize(
    ("windows", "zone", "time", "is_open"),
    [
        ([], "", "2026-11-20T03:00:00Z", True),
        (["Mon-Fri 06:00-20:00"], "", "2026-11-20T06:00:00Z", True),  # a Friday
        (["Mon-Fri 06:00-20:00"], "", "2026-11-20T20:00:00Z", False),
        (["Mon-Fri 06:00-20:00"], "", "2026-11-21T12:00:00Z", False),
        (["Mon-Fri 06:00-20:00"], "Europe/Berlin", "2026-11-20T05:00:00Z", True),
        (["Mon-Fri 06:00-20:00", "Sat 08:00-24:00"], "", "2026-11-21T23:59:00Z", True),
        (["Fri 22:00-06:00"], "", "2026-11-21T05:59:00Z", True),
        (["Fri 22:00-06:00"], "", "2026-11-22T05:59:00Z", False),
        (["Fri-Mon 00:00-24:00"], "", "2026-11-23T12:00:00Z", True),
        (["Fri-Mon 00:00-24:00"], "", "2026-11-24T12:00:00Z", False),
    ],
)
def test_windows_are_of_the_zone_of_the_list(windows: list[str], zone: str, time: str, is_open: bool) -> None:
    row = Allow(kind="alter-psid", stores=("*",), windows=tuple(windows))
    assert row.is_open(event_time(time), zone_of(zone)) is is_open


def test_requests_of_the_last_hour_count_by_the_row(tmp_path: Path) -> None:
    asked = request(estate(tmp_path))
    row = Allow(kind="alter-psid", stores=("QM01/*",))
    times = [as_text(NOW - HOUR_US), as_text(NOW - HOUR_US + 1), as_text(NOW)]
    assert row.count(((asked, time) for time in times), NOW) == 2
    assert Allow(kind="alter-psid", stores=("QM02/*",)).count(((asked, time) for time in times), NOW) == 0
