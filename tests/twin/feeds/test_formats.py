"""The table of formats: an import fails where a row lacks a part, and `mqtwin collect` knows none by its name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from deploy.commands import collect
from twin.feeds import protocol

SOURCE = Path(protocol.__file__).read_text(encoding="utf-8")
ROW = '"rmf": Format("rmf_print:RmfFeed", (), (LEVELS,)),'


def import_with(row: str) -> Any:
    """Return the formats of the module with another row of rmf."""
    assert SOURCE.count(ROW) == 1
    module: dict[str, Any] = {"__name__": protocol.__name__}
    exec(compile(SOURCE.replace(ROW, row), "scratch", "exec"), module)
    return module["FORMATS"]


@pytest.mark.parametrize(
    ("row", "lacks"),
    [
        ('Format("rmf_print:RmfFeed")', "facts, gives"),
        ('Format("rmf_print:RmfFeed", (), (), is_file=False)', "topic or server"),
        ('Format("rmf_print:RmfFeed", (), (), server=Server(30.0))', "server.requests"),
        ("Format(facts=(), gives=(), server=Server(requests=COMMANDS))", "reader, server.interval_s"),
    ],
)
def test_a_row_without_a_part_fails_at_import_with_its_name_and_what_it_lacks(row: str, lacks: str) -> None:
    with pytest.raises(TypeError, match=rf"^format rmf lacks {lacks}; expected: "):
        import_with(f'"rmf": {row},')


def test_a_row_is_all_that_makes_a_format_live() -> None:
    assert not import_with(ROW)["rmf"].is_live
    assert import_with('"rmf": Format("rmf_print:RmfFeed", (), (LEVELS,), topic=ANY_TOPIC),')["rmf"].is_live


def test_collect_names_no_format() -> None:
    code = Path(collect.__file__).read_text(encoding="utf-8")
    assert not re.findall(rf"[\"']({'|'.join(protocol.FORMATS)})[\"']", code)
