"""``mqtwin doctor``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from deploy.doctor import examine
from deploy.jars import CONSOLE, KAFKA_BROKER, SPARK_CONNECTOR, ensure_jars
from deploy.show.findings import print_findings


def doctor(*, fetch: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Show what this machine lacks, and how to get it.

    The exit status is 0 if nothing needed is missing, else 1.

    Args:
        fetch: First fetch missing jars.
    """
    if fetch:
        ensure_jars(SPARK_CONNECTOR)
        ensure_jars(KAFKA_BROKER)
        ensure_jars(CONSOLE)
    findings = examine()
    print_findings(findings)
    return 1 if any(finding.state == "missing" for finding in findings) else 0
