"""``mqtwin import-trace``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from deploy.options import start_time
from deploy.show.progress import shown
from deploy.show.summaries import simulated_summary
from deploy.show.warnings import warned
from twin.estate import load_estate
from twin.simulation.trace import Serving
from twin.simulation.trace import import_trace as turn


def import_trace(
    file: Path,
    *,
    estate: Path,
    output: Annotated[Path, Parameter(name=("--output", "-o"))],
    queue: str,
    qmgr: str,
    service_rate: float,
    get_qmgr: str | None = None,
    servers: int = 1,
    bytes_per_token: float = 4.0,
    start: str | None = None,
) -> None:
    """A recording from a trace of real requests: a put when one arrives, a get when it has been served.

    The trace is CSV with the columns TIMESTAMP, ContextTokens and GeneratedTokens, as in the Azure Public Dataset.

    Args:
        file: The trace.
        estate: What exists, a TOML file.
        output: The recording, .ndjson, .ndjson.zst or .arrow.
        queue: Where the requests wait.
        qmgr: The queue manager that puts.
        service_rate: Tokens a second that a server generates.
        get_qmgr: The queue manager that gets; by default the one that puts.
        servers: How many serve at a time, first come, first served.
        bytes_per_token: Of the context, which is the message.
        start: Time of the first request; by default as in the trace.
    """
    described = warned(load_estate(estate))
    serving = Serving(
        queue=queue,
        qmgr=qmgr,
        get_qmgr=get_qmgr,
        service_rate=service_rate,
        servers=servers,
        bytes_per_token=bytes_per_token,
        start=None if start is None else start_time(start),
    )
    with shown("import-trace") as advance:
        outcome = turn(file, described, output, serving, lambda events, _: advance(None, events))
    print(simulated_summary(outcome))
