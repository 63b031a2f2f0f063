"""``mqtwin doctor``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deploy.doctor import Finding, examine
from deploy.java.jars import CONSOLE, KAFKA_BROKER, SPARK_CONNECTOR, ensure_jars
from deploy.java.make_archives import make_archives
from deploy.show.terminal import Wrapped
from streams.log import configure_logging

_STYLES = {"ok": "green", "optional": "cyan", "lacking": "yellow", "missing": "bold red"}


def print_findings(findings: Sequence[Finding]) -> None:
    """Print a table on a terminal, elsewhere one line per finding, columns separated by two or more spaces."""
    console = Console()
    if not console.is_terminal:
        for finding in findings:
            remedy = f"  -> {finding.remedy}" if finding.remedy else ""
            print(f"{finding.state:<8}  {finding.subject:<23}  {finding.detail}{remedy}")
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        # Text, not str: rich would take brackets in a path for markup.
        details = Text(finding.detail, overflow="fold")
        if finding.remedy:
            details.append(f"\n-> {finding.remedy}", style="bold")
        table.add_row(Text(finding.state, style=_STYLES[finding.state]), Text(finding.subject), Wrapped(details))
    console.print(table)


def doctor(
    *,
    fetch: Annotated[bool, Parameter(negative="")] = False,
    class_archives: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Check the prerequisites and name what is missing.

    The exit status is 0 if nothing needed is missing, else 1.

    Args:
        fetch: First fetch missing jars.
        class_archives: First make missing archives of Java's classes, with which Spark and the embedded broker start
            some seconds sooner. This takes half a minute, and 240 MB of disk.
    """
    if fetch:
        ensure_jars(SPARK_CONNECTOR)
        ensure_jars(KAFKA_BROKER)
        ensure_jars(CONSOLE)
    if class_archives:
        configure_logging(level="warning")
        print("making archives of Java's classes", file=sys.stderr)
        make_archives()
    findings = examine()
    print_findings(findings)
    return 1 if any(finding.state == "missing" for finding in findings) else 0
