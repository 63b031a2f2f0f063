"""Statements that an operator pastes: they name the object that they are about."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

import twin
from deploy.console.model import commands_in
from twin import capacity
from twin.estate import QueueFile, load_estate

ROOT = Path(__file__).parents[2]
ESTATE = """
schema = 1
[queue_manager.QMD1]
platform = "distributed"
[queue_file."QMD1/orders.in"]
max_size = "20M"
[queue_manager.QM01]
[page_set."QM01/4"]
pages = 1000
expand = "NONE"
[queue."QM01/Mixed.Case"]
storage_class = "SC4"
max_depth = 900
[storage_class."QM01/SC4"]
page_set = 4
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ORDERS.IN", "ORDERS.IN"), ("orders.in", "'orders.in'"), ("Orders/1_%", "'Orders/1_%'"), ("Q/1_%.X", "Q/1_%.X")],
)
def test_a_name_with_small_letters_stands_in_quotes(name: str, expected: str) -> None:
    file = QueueFile(name=f"QMD1/{name}", queue_manager="QMD1", queue=name)
    assert capacity.mqsc(file, {"max_size": 40 << 20}) == f"ALTER QLOCAL({expected}) MAXFSIZE(40)\n"


def test_each_statement_of_an_alert_names_the_queue_that_it_is_about(tmp_path: Path) -> None:
    """A queue ORDERS.IN may be there, too: it is another one."""
    (tmp_path / "estate.toml").write_text(ESTATE)
    put = {"op": "PUT", "length": 4000, "count": 100}
    lines = [
        msgspec.json.encode({**put, "time": 1_795_132_800_000_000 + number * 10_000_000, "qmgr": qmgr, "queue": queue})
        for number in range(100)
        for qmgr, queue in (("QMD1", "orders.in"), ("QM01", "Mixed.Case"))
    ]
    (tmp_path / "fill.ndjson").write_bytes(b"\n".join(lines) + b"\n")
    alerts = twin.replay(tmp_path / "fill.ndjson", load_estate(tmp_path / "estate.toml"), course=False).alerts
    texts = [text for alert in alerts for action in alert.runbook for text in (*action.lines, action.sentence)]
    named = {name for text in texts for name in re.findall(r"(?:QLOCAL|QSTATUS)\(([^)]*)\)", text)}
    assert named == {"'orders.in'", "'Mixed.Case'"}
    commands = {command for text in texts for command in commands_in(text)}
    assert {"ALTER QLOCAL('orders.in') MAXFSIZE(40)", "ALTER QLOCAL('Mixed.Case') MAXDEPTH(1800)"} <= commands


def test_statements_with_names_are_made_in_one_place() -> None:
    pattern = re.compile(
        r"\b(?:ALTER|DISPLAY|RESET|DEFINE|CLEAR) (?:QLOCAL|QSTATUS|CFSTRUCT|CFSTATUS|SMDS)\(\{(?!mqsc_name)"
    )
    folders = (
        "twin/stores",
        "twin/alerts",
        "twin/planning",
        "twin/sizing",
        "twin/reporting",
        "deploy",
    )
    paths = [ROOT / "twin/capacity.py", *(path for folder in folders for path in (ROOT / folder).rglob("*.py"))]
    assert [path for path in paths if pattern.search(path.read_text())] == []
