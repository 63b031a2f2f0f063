"""Rows of attributes: what lacks a part, or contradicts itself, fails where it is declared."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from twin.alerts import texts
from twin.estate import PageSet, QueueFile, Structure
from twin.estate.rows import Config, Form, attribute, described, integer, whole
from twin.estate.runbook import read_runbook


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ({}, "Store.depth lacks its form; expected: unit and range, such as whole(0, 100)"),
        ({"form": Form(integer(0, 9)), "mqsc": "DEPTH"}, "Store.depth lacks a check of DEPTH(...); expected: a form"),
        ({"form": Form(integer(0, 9)), "cfrm": "DEPTH"}, "Store.depth lacks a check of DEPTH(...); expected: a form"),
        ({"form": whole(0, 9), "default": 10}, "Store.depth = 10: must be an integer of 0 to 9"),
    ],
)
def test_an_attribute_without_a_part_fails_at_import(parts: dict[str, Any], error: str) -> None:
    class Store(Config):
        depth: int = attribute(**parts)

    with pytest.raises(TypeError) as refusal:
        described(Store)
    assert str(refusal.value).startswith(error)


def test_what_nothing_names_is_called_as_in_mq() -> None:
    words = {name: row.word for config in (Structure, PageSet, QueueFile) for name, row in config.rows.items()}
    assert (words["offld1_th"], words["scm_max_size"], words["pages"]) == ("OFFLD1TH", "SCMMAXSIZE", "pages")
    assert (words["max_pages"], words["secondary_pages"]) == ("pages at most", "secondary pages")


@pytest.mark.parametrize("config", [Structure, PageSet, QueueFile])
def test_what_is_written_in_a_statement_is_read_again(config: type[Config]) -> None:
    for name, row in config.rows.items():
        [default] = [known.default for known in fields(config) if known.name == name]  # type: ignore[arg-type]
        if row.mqsc and isinstance(default, int | str):
            keyword, _, value = row.statement(default).removesuffix(")").partition("(")
            assert row.form.word is not None and keyword == row.mqsc
            assert row.form.word(value) == default, name


def test_what_people_change_is_an_action_of_the_runbook() -> None:
    known = {row.id for row in read_runbook(Path(texts.__file__).with_name("runbook.toml"))}
    used = {row.action for config in (Structure, PageSet, QueueFile) for row in config.rows.values() if row.action}
    assert used <= known
