"""Messages of wrong use: each names the thing, and what would be right."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("deploy", "streams", "twin")
# What to do, after a colon, a semicolon or "or".
REMEDY = re.compile(
    r"(?:[:;,]| or|; or) (?:give|name|set|stop|leave|remove|install|correct|--tolerate-data-loss|`mqtwin)",
    re.IGNORECASE,
)
# The sentence of another error or check, which has what is expected.
PASSED_ON = re.compile(
    r"\{(?:error(?:\.detail)?|str\(error\).*|reason|problem|text|first|one_line\(error\)|cause|_reason\(error\)|reject\.detail"
    r"|[\w.]*(?:_hint|did_you_mean|missing_right|explain_failure|format_skips)\(.*\))\}"
)


def messages() -> Iterator[tuple[str, str]]:
    """Yield (place, message) of each UsageError that is raised, values in braces."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "UsageError" and node.args:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", text_of(node.args[0])


def text_of(node: ast.expr) -> str:
    """Return a message as it is written, with each value as {expression}."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(text_of(part) for part in parts)
        case ast.FormattedValue(value=value):
            return f"{{{ast.unparse(value)}}}"
        case ast.BinOp(left=left, right=right):
            return text_of(left) + text_of(right)
    return f"{{{ast.unparse(node)}}}"


def says_what_is_right(text: str) -> bool:
    """Return True if a message has "expected", a remedy, or the sentence of a check that has one."""
    return bool("expected" in text.lower() or REMEDY.search(text) or PASSED_ON.search(text) or "WRITABLE" in text)


def test_every_message_of_wrong_use_says_what_would_be_right():
    every = list(messages())
    assert len(every) > 200
    assert [f"{place}: {text}" for place, text in every if not says_what_is_right(text)] == []


def test_every_message_of_wrong_use_has_a_value_or_says_that_there_is_none():
    empty = [f"{place}: {text}" for place, text in messages() if not re.search(r"\{|--\w|\bno\b", text)]
    assert empty == []


@pytest.mark.parametrize("text", ["{path} cannot be read", "the store is wrong: {value}"])
def test_a_message_that_only_complains_is_found(text):
    assert not says_what_is_right(text)
