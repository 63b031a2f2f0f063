"""Every mutant of `tests.mutants` is killed by its test, in a process of its own: its kernels run as Python."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.mutants import MUTANTS, mutants_of
from tests.test_seed_rules import NOT_MODELLED, all_rules, names

ROOT = Path(__file__).resolve().parents[1]
TODAY = datetime.now(UTC).date()


@pytest.mark.parametrize("day", [(TODAY.isoformat(),), pytest.param((), marks=pytest.mark.nightly)], ids=["day", "all"])
def test_a_changed_number_order_or_boundary_fails_the_test_that_the_page_names(day: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "tests.mutants", *day]
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"


def test_every_mutant_that_is_quick_has_its_day() -> None:
    chosen = {mutant for number in range(21) for mutant in mutants_of(TODAY + timedelta(days=number))}
    assert chosen == {mutant for mutant in MUTANTS if not mutant.is_slow}


def test_each_mutant_changes_text_that_stands_once_in_its_module() -> None:
    sources = {mutant.module: inspect.getsource(importlib.import_module(mutant.module)) for mutant in MUTANTS}
    assert [mutant for mutant in MUTANTS if sources[mutant.module].count(mutant.before) != 1] == []


def test_each_mutant_names_one_test_and_changes_something() -> None:
    assert len({mutant[1:4] + mutant[4:] for mutant in MUTANTS}) == len(MUTANTS)
    assert all(mutant.before != mutant.after and mutant.test.startswith("tests/") for mutant in MUTANTS)


def test_every_statement_that_is_modelled_has_a_mutant_that_its_test_finds() -> None:
    tests = {mutant.test for mutant in MUTANTS}
    modelled = [rule for rule in all_rules() if rule.functions != NOT_MODELLED]
    assert [rule.statement for rule in modelled if not tests & set(names(rule.tests))] == []
