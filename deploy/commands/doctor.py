"""``mqtwin doctor``."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from deploy.doctor import examine
from deploy.java.jars import CONSOLE, KAFKA_BROKER, SPARK_CONNECTOR, ensure_jars
from deploy.java.make_archives import make_archives
from deploy.show.findings import print_findings
from streams.log import configure_logging


def doctor(
    *,
    fetch: Annotated[bool, Parameter(negative="")] = False,
    class_archives: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Show what this machine lacks, and how to get it.

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
