"""Targets, the oracle's lead and the page: cases made by hand, of one store with one filling from minute 100 to 210."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.by_hand import STORE, alarm, line
from tests.tools.score import page
from tests.tools.score.ablation import PARTS, switched_off
from tests.tools.score.judge import judge, judge_pages
from tests.tools.score.month import BEGIN, END
from tests.tools.score.oracle import ORACLE, ORACLE_WATCH
from tests.tools.score.recordings import Recorded, read_note
from tests.tools.score.samples import filling, predict, series
from tests.tools.score.score import METHODS, RIVALS, TWIN_WATCH
from tests.tools.score.targets import UNSEEN, targets
from tests.tools.score.work import CaseScore, line_skills, share_of_lead
from twin.forecast import flows, monitor, outlook, rises, rule
from twin.playback.pages import TWIN

SERIES = series(line(600, (0, 0), (100, 0), (200, 100), (210, 100), (220, 0), (600, 0)))
FILLING = filling(100, 200, 210)
PREDICTIONS = predict(*((m, *[max(200 - m, 1)] * 3, 100 <= m < 210) for m in range(600)))
CASE = Recorded(
    number=7, split="test", scenario="burst", class_="hard", store=STORE, filler="A", story="", stem="test-0007"
)


def case_score(watch: float | None, oracle: float | None, *, class_: str = "hard") -> CaseScore:
    """Return a case in which watch and page of the twin, and of the oracle, open at a minute; None: never."""
    opened = {TWIN: watch, TWIN_WATCH: watch, ORACLE: oracle, ORACLE_WATCH: oracle}
    judged, pages = {}, {}
    for method in dict.fromkeys((*METHODS, *RIVALS, ORACLE, ORACLE_WATCH)):
        minute = opened.get(method, 190.0)
        alarms = [] if minute is None else [alarm(minute, 220)]
        predictions = PREDICTIONS if method in {TWIN, TWIN_WATCH} else None
        judged[method] = [judge(SERIES, [FILLING], alarms, predictions, withdrawing_counts=True)]
        pages[method] = [judge_pages(SERIES, [FILLING], alarms, withdrawing_counts=True)]
    return CaseScore(replace(CASE, class_=class_), judged, pages, {}, [0.0], 1000, (0.0, 0.0), (4, 1.0))


def test_the_share_of_lead_is_of_what_the_oracle_foresaw_and_nothing_where_the_twin_was_silent() -> None:
    scores = [case_score(180, 160), case_score(None, 160), case_score(180, None), case_score(150, 160)]
    assert share_of_lead(scores).value == pytest.approx(0.5)
    assert share_of_lead(scores).bounds is None
    low, high = share_of_lead(scores * 5).bounds or (2.0, 2.0)
    assert 0.0 <= low <= 0.5 <= high <= 1.25


def test_a_target_is_reached_if_every_set_reaches_it_and_neither_without_anything_to_measure() -> None:
    unseen = case_score(190, 100)
    unseen = replace(unseen, case=replace(CASE, scenario="flaky-getter"), behind=[31.0])
    loads = {"real, held-out series": [case_score(190, None)]}
    by_name = {target.what: target for target in targets([case_score(190, 100), unseen], loads)}
    assert 10 <= len(by_name) <= 13
    assert list(by_name["fillings unheard"].cells) == [UNSEEN, "real, held-out series", "all"]
    assert by_name["fillings unheard"].outcome == "reached"
    later = by_name["paged later than by static 80 %, where it was right"]
    assert [cell.met for cell in later.cells.values()] == [False, True, False]
    assert (later.outcome, later.cells["all"].measured) == ("missed", "1 of 2")
    assert by_name["Brier skill within 60 min, against climatology"].outcome == "reached"
    assert by_name["processor time of a look"].outcome == "reached"
    assert by_name["filler named first is the one that fills"].outcome == ""  # nobody named a queue
    [value] = [target for target in by_name.values() if target.what.startswith("value less")]
    assert all(cell.met for cell in value.cells.values())


def test_the_page_shows_probabilities_intervals_and_sets_of_real_loads(tmp_path: Path) -> None:
    scores = [case_score(180, 160), case_score(150, 160)] * 6
    run = page.Run("a command", "test", 60.0, {page.ABLATED_REAL: "a table"})
    loads = {"laws, held-out series": scores}
    month = f"{BEGIN}\na month\n{END}"
    docs = tmp_path / "docs"
    docs.mkdir()
    (tmp_path / page.APPENDIX).parent.mkdir(parents=True)
    (docs / "foresight.md").write_text(f"old\n{month}\nold\n", encoding="utf-8")
    path = page.write(run, scores, docs, loads)
    text = (tmp_path / page.APPENDIX).read_text(encoding="utf-8")
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line)
    rows = {row[0]: row[1:] for row in cells}
    assert float(rows["within 60 min"][3].split()[0]) > 0.9
    assert rows["within 60 min"][4] == line_skills(scores)[2].rule
    for heading in ("### Laws, held-out series", "## Probabilities", "## Calibration"):
        assert f"\n{heading}\n" in text
    assert "### Real loads\n\na table" in text
    page.write(replace(run, ablations={}), scores, docs, loads)
    assert "### Real loads\n\na table" in (tmp_path / page.APPENDIX).read_text(encoding="utf-8")
    written = path.read_text(encoding="utf-8")
    assert (
        "|  | target | laws, held-out series | all |" in written
        and "| fillings unheard | none | 0 of 12 | 0 of 12 |" in written
    )
    assert f"\n\n{month}\n\n" in written and "| laws, held-out series | " in written


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_was_switched_off_is_on_again(part: str) -> None:
    modules = (flows, monitor, outlook, rises, rule)
    before = [{name: np.copy(v) if isinstance(v, np.ndarray) else v for name, v in vars(m).items()} for m in modules]
    with switched_off(part):
        changed = _differ(before, modules)
    assert changed == (part != "the whole model")
    assert not _differ(before, modules)


def _differ(before: list[dict[str, object]], modules: tuple[object, ...]) -> bool:
    return any(
        not np.array_equal(value, now) if isinstance(value, np.ndarray) else value is not now
        for names, module in zip(before, modules, strict=True)
        for name, value in names.items()
        for now in [vars(module)[name]]
    )


def test_recordings_are_found_where_their_folder_has_been_moved(tmp_path: Path) -> None:
    note = tmp_path / "test-0007.json"
    note.write_text(
        '{"number":7,"split":"test","scenario":"burst","class_":"hard","store":"S","filler":"A","story":"",'
        '"stem":"/elsewhere/test-0007"}'
    )
    assert read_note(note).recording == tmp_path / "test-0007.arrow"
