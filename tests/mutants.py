"""Run the mutants of mutants.toml: each changes a number, order or boundary, and the test it names must fail.

Run it: `python -m tests.mutants`, or `python -m tests.mutants 2026-11-20` for the eight of a day, of which each day
has others. It runs kernels as Python, prints what survives and ends with 1 if any does.
"""

from __future__ import annotations

import os
import sys
import tomllib
from contextlib import redirect_stdout
from datetime import date
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.mutation import mutated

_ROOT = Path(__file__).resolve().parents[1]
_A_DAY = 8


class Mutant(NamedTuple):
    """A change of the code, and the test that must fail. statement: what of docs/seed-rules.md it is about."""

    statement: str
    module: str
    before: str
    after: str
    test: str
    is_slow: bool = False  # as Python it takes more than ten seconds


MUTANTS = tuple(
    Mutant(**entry) for entry in tomllib.loads((_ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))["mutant"]
)


def _fails(tests: list[str]) -> bool:
    """Return True if any of the tests fails; AssertionError if they cannot run."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        code = pytest.main(["-q", "-x", "-p", "tests.support.uncompiled", "-p", "no:cacheprovider", *tests])
    assert code in {0, 1}, f"pytest ended with {code} for {tests}"
    return code == 1


def _is_killed(mutant: Mutant) -> bool:
    with mutated(mutant.module, mutant.before, mutant.after):
        return _fails([mutant.test])


def mutants_of(day: date) -> list[Mutant]:
    """Return the mutants of a day: all that are quick have their turn within three weeks."""
    quick = [mutant for mutant in MUTANTS if not mutant.is_slow]
    return [quick[(day.toordinal() * _A_DAY + place) % len(quick)] for place in range(_A_DAY)]


def main(day: str | None = None) -> int:
    """Run all mutants, or those of a day; return 1 if any survives, or a test fails without any."""
    os.chdir(_ROOT)
    mutants = list(MUTANTS) if day is None else mutants_of(date.fromisoformat(day))
    if _fails(sorted({mutant.test for mutant in mutants})):
        print("a test fails without a mutant")
        return 1
    survivors = [mutant for mutant in mutants if not _is_killed(mutant)]
    for mutant in survivors:
        print(f"survives: {mutant.statement} ({mutant.module}: {mutant.before!r} -> {mutant.after!r}), {mutant.test}")
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
