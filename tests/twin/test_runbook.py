"""The runbook as data: rows of mqtwin, rows of a site beside or instead of them, and what a wrong file says."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deploy.cli import main
from tests.support.twin_driver import PageSetDriver, QueueFileDriver, TwinDriver
from tests.twin.test_alert_texts import FULL, actions
from twin.alerts import texts
from twin.alerts.texts import OURS, Facts, Runbook
from twin.base.conditions import DATA, Condition, Pool, Resource
from twin.base.units import GIB
from twin.estate import EstateError, load_estate
from twin.estate.routes import read_saved_estate, save_estate
from twin.estate.runbook import FACTS, PLACEHOLDERS, PROCEDURES, read_runbook
from twin.records import Action
from twin.testing import Driver

SITE = '[site]\nrunbook = "ours.toml"\n'
ROW = '[[action]]\nid = "call"\nfor = ["full"]\nsay = "Call {store}"\n'


def write(folder: Path, rows: str) -> Path:
    """Return an estate with a runbook."""
    (folder / "ours.toml").write_text(rows)
    (folder / "estate.toml").write_text(FULL.replace("schema = 1\n", f"schema = 1\n{SITE}"))
    return folder / "estate.toml"


def chosen(folder: Path, rows: str, *facts: str, **values: str) -> list[Action]:
    """Return the actions of `full` by a runbook of the site."""
    estate = load_estate(write(folder, rows))
    known = Facts().adding("filler_known", *facts, store="S", queue="Q", queue_mqsc="Q", scope="", **values)
    return list(Runbook(estate.runbook).actions(Condition.FULL, known, {"getters": "then never"}))


def test_the_rows_of_a_site_stand_in_front(tmp_path: Path) -> None:
    assert [action.id for action in chosen(tmp_path, ROW)] == ["call", "getters"]
    (call, _) = chosen(tmp_path, f'{ROW}command = "D {{queue_mqsc}}"')
    assert (call.summary, call.sentence) == ("Call S", "Call S: D Q")


def test_a_row_with_an_id_of_ours_takes_its_place_and_its_effect(tmp_path: Path) -> None:
    own = ROW.replace('"call"', '"getters"')
    [action] = chosen(tmp_path, own)
    assert (action.id, action.heading) == ("getters", "Call S (then never)")


def test_instead_leaves_no_other_row(tmp_path: Path) -> None:
    rows = f"{ROW}instead = true\n{ROW.replace('call', 'mail')}"
    assert [action.id for action in chosen(tmp_path, rows)] == ["call"]


def test_a_row_applies_where_its_facts_hold_and_its_names_are_known(tmp_path: Path) -> None:
    rows = f'{ROW}when = ["smds"]\nunless = ["ds_expands"]\nrisk = "{{qmgr}} waits"'
    for facts, values, applies in (
        (("smds",), {"qmgr": "QM01"}, True),
        ((), {"qmgr": "QM01"}, False),
        (("smds", "ds_expands"), {"qmgr": "QM01"}, False),
        (("smds",), {}, False),
    ):
        assert ("call" in [action.id for action in chosen(tmp_path, rows, *facts, **values)]) is applies


def test_of_two_rows_with_an_id_that_apply_the_first_counts(tmp_path: Path) -> None:
    rows = ROW + ROW.replace("Call", "Mail") + 'when = ["filler_known"]\n'
    assert [action.summary for action in chosen(tmp_path, rows)][:-1] == ["Call S"]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (ROW.replace('"full"', '"brimming"'), "'brimming' is an unknown condition; expected: "),
        (f'{ROW}when = ["smd"]', "'smd' is an unknown fact; expected: "),
        (f'{ROW}steps = [{{ say = "x", unless = ["y"] }}]', "'y' is an unknown fact; expected: "),
        (ROW.replace("{store}", "{shop}"), "'shop' is an unknown placeholder; expected: "),
        (f'{ROW}undo = "{{0.__class__}}"', "'0.__class__' is an unknown placeholder; expected: "),
        (f'{ROW}risk = "{{store!r}}"', "a placeholder is a name between braces; expected: "),
        (f'{ROW}risk = "{{store"', "expected '}' before end of string; expected: "),
        (f'{ROW}steps = ["change"]', "'change' is an unknown procedure; expected: "),
        (f'{ROW}steps = ["look"]\ncommand = "x"', "command and steps; expected: one of them"),
        (ROW.replace('"call"', '"Call us"'), "id; expected: "),
        (ROW.replace('["full"]', "[]"), "for names no condition"),
        (ROW + ROW, "id: another action has it"),
        (f"{ROW}during = []", "unknown field `during`"),
        ('[[action]]\nid = "call"\nfor = ["full"]', "missing required field `say`"),
        (f"{ROW}when = 3", "Expected `array`, got `int`"),
        ("[[action]", "expected: a runbook of [[action]] rows"),
        ("action = 3", "expected: a runbook of [[action]] rows"),
    ],
)
def test_a_wrong_file_is_one_line_of_the_estate(
    tmp_path: Path, rows: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estate", "check", str(write(tmp_path, rows))]) == 2
    [line] = [line for line in capsys.readouterr().err.splitlines() if line]
    assert str(tmp_path / "ours.toml") in line and expected in line


def test_a_file_that_is_missing_is_an_error_of_the_estate(tmp_path: Path) -> None:
    file = write(tmp_path, ROW)
    (tmp_path / "ours.toml").unlink()
    with pytest.raises(EstateError, match=r"ours\.toml: cannot be read .*; expected: a runbook"):
        load_estate(file)


def test_an_alert_has_the_action_of_the_site(tmp_path: Path) -> None:
    driver = Driver(write(tmp_path, ROW.replace('["full"]', '["full", "threshold"]')))
    for _ in range(60):
        driver.put("A.QUEUE", length=1_000, count=200)
        driver.wait(seconds=10)
    opened = [alert for alert in driver.alerts if alert.condition in ("full", "threshold") and alert.change == "opened"]
    assert opened and all(alert.runbook[0].summary == "Call QSG1/APP1" for alert in opened)


def test_a_saved_estate_keeps_the_rows_and_without_them_its_digest(tmp_path: Path) -> None:
    estate = load_estate(write(tmp_path, ROW))
    digest, data = save_estate(estate)
    assert read_saved_estate(data, "saved").runbook == estate.runbook
    (tmp_path / "plain.toml").write_text(FULL)
    assert save_estate(load_estate(tmp_path / "plain.toml"))[0] != digest


def test_what_the_model_knows_is_what_a_file_may_name(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Facts] = []
    own = Runbook.actions

    def note(self: Runbook, condition: str, facts: Facts, *effects: Any) -> tuple[Action, ...]:
        seen.append(facts)
        return own(self, condition, facts, *effects)

    monkeypatch.setattr(Runbook, "actions", note)
    assert list(actions())
    assert {name for facts in seen for name in facts.names} <= FACTS
    assert {name for facts in seen for name in facts.values} <= PLACEHOLDERS
    assert {name for facts in seen for name in facts.procedures} <= PROCEDURES


@pytest.mark.parametrize("pool", ["entries", "elements", "smds", "scm", "augmented", "pages", "file"])
def test_each_condition_of_a_resource_has_an_action_without_a_queue_that_fills(pool: str) -> None:
    drivers = {"pages": PageSetDriver, "file": partial(QueueFileDriver, max_size=GIB)}
    driver: Any = drivers.get(pool, partial(TwinDriver, scm_max_size=GIB))()
    view = driver.twin.view(Resource(pool, "QM01" if pool == Pool.SMDS else ""))
    of_pool = [condition for condition in Condition if pool in condition.pools and condition.about != DATA]
    assert of_pool and [condition for condition in of_pool if not view.actions(condition, ())] == []


def test_the_page_lists_facts_that_there_are() -> None:
    page = (Path(__file__).parents[2] / "docs" / "runbook.md").read_text(encoding="utf-8")
    rows = page.partition("| facts |")[2].partition("\n\n")[0].splitlines()[2:]
    facts = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row.split("|")[1])}
    assert facts and facts <= FACTS
    assert set(re.findall(r"\{([a-z_]+)\}", page)) <= PLACEHOLDERS


def test_a_condition_without_an_action_fails_at_import_with_its_name(tmp_path: Path) -> None:
    source = Path(texts.__file__)
    rows = source.with_name("runbook.toml").read_text(encoding="utf-8")
    (tmp_path / "runbook.toml").write_text(rows.replace('for = ["in-doubt"]', 'for = ["drift"]'), encoding="utf-8")
    with pytest.raises(TypeError, match=r"^condition in-doubt lacks an action; expected: "):
        exec(compile(source.read_text(encoding="utf-8"), "scratch", "exec"), {"__file__": str(tmp_path / "x.py")})
    assert len(read_runbook(source.with_name("runbook.toml"))) > 30
    assert OURS.actions(Condition.IN_DOUBT, Facts().adding(qmgr="QM01", store="S"))
