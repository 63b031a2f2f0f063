"""The cases of `tests/cases/stores`: what happens to a store, against twin and oracle. A new text is a new test."""

from __future__ import annotations

import pytest

from tests.cases.scripts import STORES, Played, Script, scripts_of
from tests.kernels.beside import records

SCRIPTS = scripts_of(*sorted(STORES.glob("*.events")))
of_all = pytest.mark.parametrize("script", SCRIPTS, ids=[script.name for script in SCRIPTS])


@of_all
def test_what_happens_brings_these_values_and_alerts(script: Script) -> None:
    lines = Played(script).lines
    assert lines == script.text.splitlines(), f"`python -m tests.cases {script.path}` writes what comes out now"


@of_all
def test_alerts_are_the_same_where_the_program_starts_anew_before_each_event(script: Script) -> None:
    assert records(Played(script, reopens=True).alerts) == records(Played(script).alerts)
