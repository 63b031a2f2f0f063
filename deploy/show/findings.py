"""What `mqtwin doctor` found, for a terminal or a pipe."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deploy.doctor import Finding

_STYLES = {"ok": "green", "lacking": "yellow", "missing": "bold red"}


def print_findings(findings: list[Finding]) -> None:
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
