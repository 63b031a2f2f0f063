"""``mqtwin doctor``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from deploy.doctor import examine
from deploy.jars import KAFKA_BROKER, SPARK_CONNECTOR, ensure_jars
from deploy.show.findings import print_findings


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
    print_findings(findings)
    return 1 if any(finding.state == "missing" for finding in findings) else 0
