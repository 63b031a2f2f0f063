"""The reading of names, headings and dotted names on which the rules of language rest (tests/language.py)."""

from __future__ import annotations

import ast

import pytest

from tests.language import BANNED_NAMES, bound_names, dotted_is_there, explained_names, slug


def test_names_are_seen_however_they_are_bound():
    text = """
import numpy as one
from os import path as told
def found(at, *given, **kept): ...
for most in []: pass
with open("x") as said: ...
said.of = 1
lambda then: then
{taken for taken in []}
(made := 1)
class Held:
    wanted: int
match made:
    case [shown, *_]: ...
"""
    names = {name for _, name, _ in bound_names(ast.parse(text))}
    assert names == (BANNED_NAMES - {"now_and_then"}) | {"Held"}


def test_names_that_a_docstring_may_explain_are_arguments_and_fields():
    text = """
class Rise:
    slope: float
    def __init__(self, *, age): ...
    def of(self, height): ...
def rise(start, /, end): ...
"""
    module = ast.parse(text)
    assert [explained_names(node) for node in module.body] == [{"slope", "self", "age"}, {"start", "end"}]


def test_anchors_are_those_of_the_site():
    assert slug('`[structure."GROUP/NAME"]`') == "structuregroupname"
    assert slug("What several stores share") == "what-several-stores-share"
    assert slug("Puts, gets and units of work") == "puts-gets-and-units-of-work"


@pytest.mark.parametrize("dotted", ["kernels.smds", "twin.estate.load_estate", "twin.Alert", "twin.stores.open"])
def test_dotted_names_are_looked_up(dotted):
    assert dotted_is_there(dotted)
    assert not dotted_is_there(f"{dotted}_of_nothing")
