"""Check of docs/seed-rules.md: each statement of the five documents names a function and a test that exist."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "seed-rules.md").read_text(encoding="utf-8")
DOCUMENTS = 5


def rules() -> dict[str, list[list[str]]]:
    """Return the rows (statement, section, function, test) of each document, by its heading."""
    documents: dict[str, list[list[str]]] = {}
    for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        lines = [line for line in text.splitlines() if line.startswith("| ")]
        table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
        rows = [row for row in table if row[0] != "statement" and not row[0].startswith("---")]
        if rows:
            documents[heading] = rows
    return documents


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


NAMED_FUNCTIONS = sorted({name for rows in rules().values() for row in rows for name in names(row[2])})
NAMED_TESTS = sorted({name for rows in rules().values() for row in rows for name in names(row[3])})


def function(dotted: str) -> Any:
    """Return the object of a dotted name: the longest part that is a module, then attributes."""
    parts = dotted.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            value = getattr(value, part)
        return value
    raise ModuleNotFoundError(dotted)


@cache
def defined_in(file: Path) -> frozenset[str]:
    """Return the names of the test functions of a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_all_documents_are_there():
    assert len(rules()) == DOCUMENTS
    assert all(len(row) == 4 and row[0] and row[1] for rows in rules().values() for row in rows)


@pytest.mark.parametrize("document", rules())
def test_every_statement_has_a_function_and_a_test(document):
    open_rows = [
        statement
        for statement, _, functions, tests in rules()[document]
        if "TODO" in functions + tests or not names(functions) or not names(tests)
    ]
    assert not open_rows, f"{len(open_rows)} of {len(rules()[document])} statements of {document} are open"


@pytest.mark.parametrize("dotted", NAMED_FUNCTIONS)
def test_functions_that_are_named_exist(dotted):
    assert callable(function(dotted)), dotted


@pytest.mark.parametrize("node", NAMED_TESTS)
def test_tests_that_are_named_exist(node):
    file, _, name = node.partition("::")
    assert name.startswith("test_") and name in defined_in(ROOT / file), node
