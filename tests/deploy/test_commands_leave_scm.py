"""`mqtwin advise --leave-scm`: what it prints and writes, what it refuses, and the blocks of docs/leave-scm.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

import twin
from deploy.cli import main
from deploy.commands.advise import LeavingRecord
from deploy.show.leaving import draw_leaving
from docs.make_pictures import LEAVE_SCM, SCM_ESTATE
from tests.twin.test_leave_scm import DURING, STORE, recorded
from twin.estate import load_estate
from twin.planning.leave_scm import Leaving

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "leave-scm.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `estate.toml` and `day.ndjson`, in which SCM takes an outage of ten minutes."""
    folder = tmp_path_factory.mktemp("site")
    recording, _ = recorded(folder, 3_500, 900, 6)
    assert recording == folder / "day.ndjson"
    return folder


def advise(site: Path, *arguments: str, store: str = STORE) -> int:
    return main(["advise", "--leave-scm", store, "--estate", str(site / "estate.toml"), *arguments])


def test_text_json_picture_and_folder_say_the_same(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = ("--recording", str(site / "day.ndjson"))
    picture, folder = tmp_path / "day.svg", tmp_path / "plans"
    assert advise(site, *recording, "--picture", str(picture), "--write", str(folder)) == 0
    text = capsys.readouterr().out
    assert advise(site, *recording, "--json") == 0
    record = msgspec.json.decode(capsys.readouterr().out, type=LeavingRecord)
    (leaving,), expected = (
        record.structures,
        twin.leave_scm(site / "day.ndjson", load_estate(site / "estate.toml"), STORE),
    )
    assert (leaving.plans, leaving.uses, leaving.left_out) == (expected.plans, expected.uses, expected.left_out)
    assert [trial.proof.title for trial in leaving.trials] == [trial.proof.title for trial in expected.trials]
    assert text.startswith(f"{STORE}: SCMMAXSIZE 8M, in use in day.ndjson:")
    assert text.count("Plan ") == len(leaving.plans) == 2
    for plan in leaving.plans:
        assert plan.title in text and all(re.sub(r"\s+", " ", step) in re.sub(r"\s+", " ", text) for step in plan.steps)
    for sizes in record.facilities:
        assert f"{sizes.facility}, with {STORE} {sizes.title}: its structures may grow to " in text
    drawn = picture.read_text(encoding="utf-8")
    assert drawn.startswith("<?xml") and "without SCM" in drawn
    for number, plan in enumerate(leaving.plans, 1):
        changed = load_estate(folder / "QSG1APP1" / f"plan-{number}.toml").stores[STORE]
        assert changed.scm_max_size is None or changed.scm_max_size == 0  # type: ignore[union-attr]
        assert changed.size == plan.settings.get("size", 1 << 20)  # type: ignore[union-attr]


def test_without_a_recording_a_moment_is_asked_and_nothing_is_proven(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert advise(site, "--recording", str(site / "day.ndjson"), "--margin", "40", "--confidence", "0.8") == 0
    assert "at most 20 %" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    assert advise(site, "--checkpoint", str(tmp_path / "empty")) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("store", "more", "expected"),
    [
        ("QSG1/NONE", ["--recording", "DAY"], "QSG1/NONE is not in the estate; expected: a structure with SCMMAXSIZE"),
        (STORE, [], "expected one of --recording FILE, --checkpoint FOLDER and --bootstrap-servers"),
        (STORE, ["--recording", "DAY", "--at", DURING], "expected no --at and no --html with --leave-scm"),
        (STORE, ["--recording", "DAY", "--html", "a.html"], "expected no --at and no --html with --leave-scm"),
        (STORE, ["--recording", "DAY", "--picture", "a.gif"], "a.gif"),
        (STORE, ["--checkpoint", "none", "--picture", "a.svg"], "--picture a.svg without --recording"),
        (STORE, ["--recording", "DAY", "--margin", "60"], "--margin. Must be <= 50"),
        (STORE, ["--recording", "DAY", "--confidence", "1"], "0.5 to 0.99"),
        (STORE, ["--recording", "none.ndjson"], "none.ndjson"),
        (STORE, ["--recording", "DAY", "--write", "none/here/plans"], "expected: a name in a folder that exists"),
    ],
)
def test_wrong_use_is_one_line(
    site: Path, store: str, more: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert advise(site, *[str(site / "day.ndjson") if word == "DAY" else word for word in more], store=store) == 2
    printed = capsys.readouterr()
    assert expected in printed.err and printed.err.count("\n") == 1 and not printed.out


def test_a_store_beside_structures_that_leave_scm_is_refused(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estate = ["--estate", str(site / "estate.toml"), "--recording", str(site / "day.ndjson")]
    assert main(["advise", STORE, *estate, "--leave-scm", STORE]) == 2
    assert "expected either a store, or --leave-scm with structures" in capsys.readouterr().err
    assert main(["advise", *estate]) == 2


# --- the page --------------------------------------------------------------------------------------------------------


def lines_of(text: str) -> list[str]:
    return [line for line in (re.sub(r"\s+", " ", line).strip() for line in text.splitlines()) if line]


@pytest.mark.nightly
def test_the_page_shows_what_the_command_prints_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example in Python as well: what it returns is what is drawn."""
    monkeypatch.chdir(tmp_path)
    drawn: list[Leaving] = []

    def draw(path: Path, leavings: Sequence[Leaving]) -> None:
        drawn.extend(leavings)
        draw_leaving(path, leavings)

    monkeypatch.setattr("deploy.commands.advise.draw_leaving", draw)
    simulate, ask = re.findall(r"^\$ mqtwin (.*)$", PAGE, re.MULTILINE)
    own = [command.replace("twin/simulation/scm.toml", str(SCM_ESTATE)).split() for command in (simulate, ask)]
    assert main(own[0]) == 0
    capsys.readouterr()
    assert main(own[1]) == 0
    (block,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert lines_of(capsys.readouterr().out) == lines_of(block)
    words = [
        re.findall(r"<text [^>]*>(.*?)</text>", path.read_text("utf-8")) for path in (Path(LEAVE_SCM.name), LEAVE_SCM)
    ]
    assert words[0] == words[1] and "without SCM" in " ".join(words[0])
    (question, returned), (leaving,) = re.findall(r"^>>> (leaving\..*)\n(.*)$", PAGE, re.MULTILINE)[0], drawn
    assert returned == repr(eval(question, {"leaving": leaving}))
