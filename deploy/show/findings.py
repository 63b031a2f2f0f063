"""The findings of `mqtwin doctor`, for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deploy.doctor import Finding
from deploy.show.wrapping import Wrapped

_STYLES = {"ok": "green", "lacking": "yellow", "missing": "bold red"}


def print_findings(findings: Sequence[Finding]) -> None:
    """Print a table on a terminal, elsewhere one line per finding, columns separated by two or more spaces."""
    console = Console()
    if not console.is_terminal:
        for finding in findings:
            remedy = f"  -> {finding.remedy}" if finding.remedy else ""
            print(f"{finding.state:<7}  {finding.subject:<23}  {finding.detail}{remedy}")
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        # Text, not str: rich would take brackets in a path for markup.
        details = Text(finding.detail, overflow="fold")
        if finding.remedy:
            details.append(f"\n-> {finding.remedy}", style="bold")
        table.add_row(Text(finding.state, style=_STYLES[finding.state]), Text(finding.subject), Wrapped(details))
    console.print(table)
