"""Counting of what people get on our own recordings: hand-made cases, alerts and loads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.tools.score.judge import StorePages
from tests.tools.score.people import (
    BEGIN,
    END,
    CountedCase,
    full_again,
    part_between,
    readme_table,
    section,
    write_readme,
)
from tests.tools.score.recordings import Recorded
from tests.tools.score.samples import alert
from tests.tools.score.score import METHODS
from twin.base.conditions import CLEARED, OPENED, UPDATED
from twin.base.errors import MqtwinError

HELD_OUT, TUNED = "beating-teeth", "burst"
CASE = Recorded(
    number=7, split="test", scenario=TUNED, class_="hard", store="QSG1/APP1", filler="A", story="", stem="test-0007"
)


def pages(store: str, count: int, *leads: float | None, false: int = 0, unheard: int = 0) -> StorePages:
    return StorePages(
        store=store,
        days=1.0,
        fillings=len(leads),
        unheard=unheard,
        pages=count,
        false=false,
        undecided=0,
        again=0,
        notices=count,
        leads=leads,
    )


def counted_case(*stores: StorePages, scenario: str = TUNED, full: int = 0) -> CountedCase:
    calls = tuple(
        (store.store, "full-forecast", "01:00:00 full-forecast") for store in stores for _ in range(store.pages)
    )
    case = replace(CASE, scenario=scenario)
    return CountedCase(case, dict.fromkeys(METHODS, stores), calls, full)


def test_a_finding_is_a_store_with_more_pages_than_fillings_or_with_an_unheard_one() -> None:
    assert counted_case(pages("QSG1/APP1", 1, 60.0), pages("QSG1/APP2", 0)).findings == []
    [extra] = counted_case(pages("QSG1/APP1", 2, 60.0, false=1)).findings
    assert extra.startswith("test-0007-burst seed 7, QSG1/APP1: 1 fillings, 0 unheard, 2 pages, 1 false: 01:00:00 ")
    [calm] = counted_case(pages("QSG1/APP1", 0), pages("QSG1/APP2", 1, false=1)).findings
    assert "QSG1/APP2 (beside the story): 0 fillings" in calm
    [unheard] = counted_case(pages("QSG1/APP1", 0, None, unheard=1)).findings
    assert "1 fillings, 1 unheard, 0 pages" in unheard


def test_full_again_is_a_full_of_the_same_resource_within_ten_minutes_of_the_end() -> None:
    alerts = [
        alert(OPENED, 0, "a", condition="full"),
        alert(UPDATED, 5, "a", condition="full"),
        alert(CLEARED, 10, "a", condition="full"),
        alert(OPENED, 15, "f"),
        alert(OPENED, 19, "b", condition="full"),
        alert(CLEARED, 30, "b", condition="full"),
        alert(OPENED, 41, "c", condition="full"),
        alert(CLEARED, 50, "c", condition="full", store="QSG1/APP2"),
        alert(OPENED, 55, "d", condition="full", store="QSG1/APP3"),
    ]
    assert full_again(alerts) == 1


CASES = [
    counted_case(pages("QSG1/APP1", 3, 60.0, 180.0, false=1), pages("QSG1/APP2", 0)),
    counted_case(pages("QSG1/APP1", 0), pages("QSG1/APP2", 4, false=4)),
    counted_case(pages("QSG1/APP1", 1, false=1), scenario=HELD_OUT),
]


def test_the_section_counts_the_stores_of_the_stories_and_names_what_came_beside_them() -> None:
    text = section(CASES, {}, "the command")
    assert text.startswith(BEGIN) and text.endswith(END)
    assert "3 scenarios that tuning never saw:\n1 recording, 0 fillings, 1 store-days." in text
    assert "All scenarios: 3 recordings, 2 fillings, 3 store-days." in text
    assert "2 stores with little traffic and 0 fillings; about these the twin sent\n4 pages." in text
    rows = {cells[1].strip(): cells[2].strip() for line in text.splitlines() if len(cells := line.split("|")) > 4}
    assert (rows["pages a filling"], rows["pages a store in which nothing fills"]) == ("1.50", "0.50")
    assert "| pages | 1 | 1 | 1 | 1 | 1 | 1 | 1 |" in text  # of all rules, in the scenario that tuning never saw
    assert "Counted by `the command` on 20" in text
    loads = {"laws, held-out series": CASES}
    assert "| the twin | all recordings | hard classes | laws, held-out series |" in section(
        CASES, loads, "the command"
    )


def test_the_table_of_the_readme_has_the_precision_on_scenarios_that_tuning_never_saw() -> None:
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in readme_table(CASES).splitlines()]
    assert lines[0] == ["what people get", "mqtwin", "fixed line at 80 %", "straight line"]
    rows = {line[0]: line[1] for line in lines[2:]}
    assert rows["share that was right"] == "50 %"
    assert rows["the same, in scenarios that the tuning set does not have"] == "0 %"
    assert (rows["fillings unheard"], rows["lead of a page, p50"]) == ("0", "2 min")


def test_tables_are_written_between_their_marks(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    write_readme(CASES, path)
    assert path.read_text(encoding="utf-8") == f"before\n{BEGIN}\n{readme_table(CASES)}\n{END}\nafter\n"
    assert part_between(path, BEGIN, END) == f"{BEGIN}\n{readme_table(CASES)}\n{END}"
    path.write_text("no marks\n", encoding="utf-8")
    assert part_between(path, BEGIN, END) == ""
    with pytest.raises(MqtwinError, match=r"README\.md has no .*pages: begin"):
        write_readme(CASES, path)
