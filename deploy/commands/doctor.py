"""``mqtwin doctor``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deploy.doctor import Finding, examine
from deploy.jars import KAFKA_BROKER, SPARK_CONNECTOR, ensure_jars

_STYLES = {"ok": "green", "lacking": "yellow", "missing": "bold red"}


def doctor(*, fetch: Annotated[bool, Parameter(negative="")] = False) -> int:
    """What is missing on this machine, and how to get it.

    The exit status is 0 when all that is needed is there, else 1.

    Args:
        fetch: First fetch the jars that are missing.
    """
    if fetch:
        ensure_jars(SPARK_CONNECTOR)
        ensure_jars(KAFKA_BROKER)
    findings = examine()
    _show(findings)
    return 1 if any(finding.state == "missing" for finding in findings) else 0


def _show(findings: list[Finding]) -> None:
    """A table on a terminal; elsewhere one line a finding, columns with two spaces or more between them."""
    console = Console()
    if not console.is_terminal:
        for finding in findings:
            remedy = f"  -> {finding.remedy}" if finding.remedy else ""
            print(f"{finding.state:<7}  {finding.what:<23}  {finding.found}{remedy}")
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        # Text, not str: a path may hold brackets, which rich would take for markup.
        said = Text(finding.found, overflow="fold")
        if finding.remedy:
            said.append(f"\n-> {finding.remedy}", style="bold")
        table.add_row(Text(finding.state, style=_STYLES[finding.state]), Text(finding.what), said)
    console.print(table)
