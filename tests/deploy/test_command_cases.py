"""The cases of `tests/cases/commands`: what commands print as they are typed. A new text is a new test."""

from __future__ import annotations

import pytest

from tests.cases.commands import played, typed_cases
from tests.cases.scripts import Script


@pytest.mark.parametrize("script", typed_cases(), ids=lambda script: script.name)
def test_a_command_prints_these_lines(script: Script) -> None:
    assert played(script) == script.text.splitlines(), f"`python -m tests.cases {script.path}` writes what comes out"
