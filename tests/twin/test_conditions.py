"""The table of conditions: an import fails where a row lacks a part, and the page says what the rows say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from twin.base import conditions
from twin.base.conditions import PUT, VARIES, Condition, Pool
from twin.stores import page_set, queue_file, resources, structure

SOURCE = Path(conditions.__file__).read_text(encoding="utf-8")
ROW = "Rule(FILLING, 16, PUT, _FULL, REVIEWED, _FILLED, 3)"
PAGE = Path(__file__).parents[2] / "docs" / "alerts.md"


def import_with(row: str) -> dict[str, Any]:
    """Return the module with another row of `full`."""
    assert SOURCE.count(ROW) == 1
    module: dict[str, Any] = {"__name__": "scratch"}
    exec(compile(SOURCE.replace(ROW, row), "scratch", "exec"), module)
    return module


@pytest.mark.parametrize(
    ("row", "lacks"),
    [
        ("Rule(FILLING, 16, PUT, _FULL, REVIEWED, _FILLED)", "order"),
        ("Rule(FILLING, 16, PUT, _FULL, REVIEWED)", "pools, order"),
        ("Rule(FILLING, 16, PUT, review=REVIEWED, pools=_FILLED, order=3)", "severity"),
        ("Rule(raised_by=TICK)", "about, rank, severity, review, pools"),
    ],
)
def test_a_row_without_a_part_fails_at_import_with_its_name_and_what_it_lacks(row: str, lacks: str) -> None:
    with pytest.raises(TypeError, match=rf"^condition full lacks {lacks}; expected: "):
        import_with(row)
    assert import_with("Rule(FILLING, 16, TICK, _FULL, REVIEWED, _FILLED)")["Condition"].FULL.order is None


def test_no_two_conditions_have_one_rank() -> None:
    with pytest.raises(TypeError, match=r"^condition full has the rank of cannot-expand; expected: "):
        import_with("Rule(FILLING, 14, PUT, _FULL, REVIEWED, _FILLED, 3)")


def test_a_bit_of_a_condition_that_puts_do_not_raise_fails_with_its_name() -> None:
    spec = resources.Spec(0, "depth", {Condition.DRIFT: 1})
    with pytest.raises(TypeError, match=r"^condition drift of entries has a bit; expected: "):
        resources.conditions_of({Pool.ENTRIES: spec})


def test_what_puts_raise_has_a_bit_and_a_place_of_its_own() -> None:
    kinds = (structure.StructureTwin, page_set.PageSetTwin, queue_file.QueueFileTwin)
    with_bit = {condition for kind in kinds for condition, _ in kind.conditions.values()} | set(resources.DATA_SET.bits)
    raised = {condition for condition in Condition if condition.raised_by == PUT}
    assert raised == with_bit | {Condition.QUEUE_FULL}  # one bit for all queues
    assert len({condition.order for condition in raised}) == len(raised)


def test_the_page_names_the_pools_and_severities_of_the_table() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("\n## Conditions\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines() if "| `" in line]
    for condition in Condition:
        own = [row for row in rows if f"`{condition}`" in row[0]]
        named = {pool for row in own for pool in Pool if re.search(rf"\b{pool}\b", row[1])}
        assert named == set(condition.pools), condition
        assert condition.severity == VARIES or any(condition.severity in row[3] for row in own), condition
