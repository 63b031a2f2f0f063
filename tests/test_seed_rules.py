"""Check of docs/seed-rules.md: its functions and tests exist, and its statements say what the documents say.

The documents are not part of the repository. Where they are at hand, every number and every word of a statement is held
to the lines that the row names; text in parentheses that begins with "ours" is not of the document.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cases.scripts import STORES, scripts_of

ROOT = Path(__file__).resolve().parents[1]
SEEDS = ROOT.parent / "shared" / "seeds"
PAGE = (ROOT / "docs" / "seed-rules.md").read_text(encoding="utf-8")
DOCUMENTS = 5
NOT_MODELLED = "not modelled"

# Words that join the terms of a document into a sentence of ours: no term of storage and no comparison is among them.
_JOINING = (
    "and are at be by does each else even follows for from go goes has have into is it its keeps may need needs"
    " neither nor of one ones put remain so takes that the their them then those too used what when where which while"
    " with"
)
JOINING = frozenset(_JOINING.split())


class Rule(NamedTuple):
    """A row: statement, lines of the document, functions, and tests or the reason why it is not modelled."""

    statement: str
    lines: str
    functions: str
    tests: str


@cache
def rules() -> dict[str, tuple[str, list[Rule]]]:
    """Return (file, rows) of each document, by its heading."""
    documents: dict[str, tuple[str, list[Rule]]] = {}
    for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:2] == "| "]
        rows = [Rule(*row) for row in table if row[0] != "statement" and not row[0].startswith("---")]
        file = re.search(r"^Document `([^`]+)`", text, re.MULTILINE)
        if rows:
            assert file is not None, heading
            documents[heading] = (file[1], rows)
    return documents


def all_rules() -> list[Rule]:
    return [rule for _, rows in rules().values() for rule in rows]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


NAMED_FUNCTIONS = sorted({name for rule in all_rules() for name in names(rule.functions)})
NAMED_TESTS = sorted({name for rule in all_rules() if rule.functions != NOT_MODELLED for name in names(rule.tests)})


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
    assert all(all(rule) for rule in all_rules())


@pytest.mark.parametrize("document", rules())
def test_every_statement_has_a_function_and_a_test_or_a_reason(document):
    for rule in rules()[document][1]:
        if rule.functions == NOT_MODELLED:
            assert len(rule.tests.split()) > 4, f"no reason: {rule.statement}"
        else:
            assert names(rule.functions) and names(rule.tests), rule.statement
            assert all(name.startswith("tests/") for name in names(rule.tests)), rule.statement


@pytest.mark.parametrize("dotted", NAMED_FUNCTIONS)
def test_functions_that_are_named_exist(dotted):
    value = function(dotted)
    assert callable(value) or isinstance(value, property), dotted


@pytest.mark.parametrize("node", NAMED_TESTS)
def test_tests_that_are_named_exist(node):
    file, _, words = node.partition("::")
    name, _, case = words.removesuffix("]").partition("[")
    assert name.startswith("test_") and name in defined_in(ROOT / file), node
    assert not case or case in {script.name for script in scripts_of(*STORES.glob("*.events"))}, node


# --- held to the documents -------------------------------------------------------------------------------------------


def cited(file: str, lines: str) -> str:
    """Return the lines of a document: "3,25-27"."""
    text = (SEEDS / file).read_text(encoding="utf-8", errors="replace").split("\n")
    chosen: list[str] = []
    for part in lines.split(","):
        first, _, last = part.partition("-")
        assert int(first) <= int(last or first) <= len(text), f"{file} has no lines {part}"
        chosen += text[int(first) - 1 : int(last or first)]
    return " ".join(chosen)


def of_document(statement: str) -> str:
    """Return a statement without what is ours."""
    return re.sub(r"\s*\(ours: [^()]*(\([^()]*\)[^()]*)*\)", "", statement)


def numbers(text: str) -> set[str]:
    """Return the numbers of a text, without commas; 0.75G has 0.75, OFFLD3TH(80) has 80, CFLEVEL(5) has 5."""
    matches = re.findall(r"(?<![A-Za-z0-9])\d[\d,]*(?:\.\d+)?", re.sub(r"OFFLD(\d|n|\s*x\s*)", "OFFLD", text))
    return {number.replace(",", "").rstrip(".") for number in matches}


def words(text: str) -> Iterator[str]:
    yield from re.findall(r"[a-z][a-z0-9-]*", text.lower())


def stem(word: str) -> str:
    """Return the part of a word that its forms have in common: of five letters, or of all where it is shorter."""
    bare = word.replace("-", "")
    for ending in ("ing", "ed", "es", "s"):
        if len(bare) > len(ending) + 2 and bare.endswith(ending):
            bare = bare.removesuffix(ending)
            break
    return (bare.rstrip("e") or bare)[:5]


def missing_in(statement: str, lines: str) -> list[str]:
    """Return numbers and words of a statement that the lines do not have."""
    theirs = {stem(word) for word in words(lines)} | {stem(part) for word in words(lines) for part in word.split("-")}
    joined = re.sub(r"[^a-z0-9]", "", lines.lower())
    ours = of_document(statement)
    lacking = sorted(numbers(ours) - numbers(lines))
    for word in words(ours):
        known = word in JOINING or len(word) < 2 or stem(word) in theirs or word.replace("-", "") in joined
        if not known:
            lacking.append(word)
    return lacking


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the documents are not at ../shared/seeds")
@pytest.mark.parametrize("document", rules())
def test_every_number_and_word_of_a_statement_is_in_the_lines_it_names(document):
    file, rows = rules()[document]
    lacking = {rule.statement: missing_in(rule.statement, cited(file, rule.lines)) for rule in rows}
    assert {statement: terms for statement, terms in lacking.items() if terms} == {}


@pytest.mark.parametrize(
    ("statement", "lacking"),
    [
        ("Messages exceeding 63.75 KB are always offloaded", []),
        ("Messages exceeding 63.75 KB, header included, are always offloaded", ["header", "included"]),
        ("Messages exceeding 63 KB are always offloaded", ["63"]),
        ("Messages exceeding 63.75 KB are always offloaded (ours: 64,512 bytes (63 KB) of data)", []),
    ],
)
def test_a_paraphrase_that_says_more_is_found(statement, lacking):
    assert missing_in(statement, "Important: Messages exceeding 63.75 KB are always offloaded.") == lacking
