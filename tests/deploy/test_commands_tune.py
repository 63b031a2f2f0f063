"""`mqtwin tune`: what it prints of a tuning, and its command line."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from deploy.cli import main
from deploy.commands.tune import tuning_document
from deploy.show.document import Code, Table
from tests.support.traffic import lines_of, traffic, write_estate, write_lines
from twin.reporting.tuning import STRAIGHT, THRESHOLD, TunedCaller, TunedNight, Tuning

CALLER = TunedCaller(
    name="twin",
    needless_per_saved=1.5,
    page_lead_s=1800.0,
    pages=4,
    in_time=2,
    late=1,
    needless=1,
    undecided=0,
    fillings=4,
    missed=1,
    lead_p50_s=1320.0,
    pages_a_month=2.4,
    interval=(1.2, 3.6),
)
LINE = msgspec.structs.replace(
    CALLER, name=THRESHOLD, needless_per_saved=None, page_lead_s=None, lead_p50_s=None, interval=None
)
TUNING = Tuning(
    since="2026-11-01T00:00:00.000000Z",
    until="2026-11-30T00:00:00.000000Z",
    events=1000,
    store_days=58.0,
    nights_played=30,
    present=1.5,
    choices=(CALLER, msgspec.structs.replace(CALLER, needless_per_saved=3.0, pages=72, in_time=3, needless=69)),
    lines=(LINE, msgspec.structs.replace(LINE, name=STRAIGHT)),
    nights=(
        TunedNight(date="2026-11-07", stores=("A/1", "A/2", "A/3"), fillings=1, pages=(1, 2), needless=(0, 1)),
        *(
            TunedNight(date=f"2026-11-{day}", stores=("A/1",), fillings=0, pages=(0, 1), needless=(0, 1))
            for day in range(8, 30)
        ),
    ),
    quietest=1.5,
)


def test_a_row_has_the_counts_of_a_setting_and_their_picture() -> None:
    document = tuning_document(TUNING)
    settings, nights = (part for part in document.parts if isinstance(part, Table))
    assert settings.rows[0] == (
        "1.5 (balanced, as now)",
        *("4", "2", "1", "1", "1 of 4", "22 min", "2.4 (1.2 to 3.6)"),
        "■",
    )
    assert settings.rows[1][0] == "3" and settings.rows[1][-1] == "■" + "□" * 23
    assert [row[0] for row in settings.rows[2:]] == ["FULLTHRESHOLD, else 80 %", "straight line"]
    assert settings.rows[2][6:8] == ("-", "2.4")
    assert nights.headings == ("night", "stores", "fillings", "1.5", "3")
    assert nights.rows[0] == ("2026-11-07", "A/1, A/2 and 1 more", "1", "1", "2/1")
    assert len(nights.rows) == 20
    [line] = [part for part in document.parts if isinstance(part, Code)]
    assert line.pasted == "[alerts]\nneedless_per_saved = 1.5"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One core, so that no process is started."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)


@pytest.mark.usefixtures("alone")
def test_it_prints_the_record_and_the_line_to_paste(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estate, recording = write_estate(tmp_path), write_lines(tmp_path / "r.ndjson", lines_of(traffic(5)))
    words = ["tune", "--estate", str(estate), "--recording", str(recording), "--needless-per-saved", "1.5", "4"]
    assert main([*words, "--json"]) == 0
    tuning = msgspec.json.decode(capsys.readouterr().out, type=Tuning)
    assert [(own.needless_per_saved, own.pages) for own in tuning.choices] == [(1.5, 0), (4.0, 0)]
    assert tuning.nights == ()
    assert main(words) == 0
    assert "TOML\talerts.needless_per_saved = 1.5" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["--needless-per-saved", "0"], ["--page-lead-s", "-1"]])
def test_wrong_use_is_one_line(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--estate", str(write_estate(tmp_path)), *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
