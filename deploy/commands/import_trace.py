"""``mqtwin import-trace``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from deploy.options.common import open_estate, parse_start
from deploy.options.files import EstateFile, InputFile, OutputFile
from deploy.show.progress import show_progress
from deploy.show.summaries import simulated_summary
from twin.simulation.trace import Serving
from twin.simulation.trace import import_trace as convert_trace


def import_trace(
    file: InputFile,
    /,
    *,
    estate: EstateFile,
    output: Annotated[OutputFile, Parameter(name=("--output", "-o"))],
    queue: str,
    qmgr: str,
    service_rate: float,
    get_qmgr: str | None = None,
    servers: int = 1,
    bytes_per_token: float = 4.0,
    start: str | None = None,
) -> None:
    """Convert a trace of real requests into a recording: a put at each arrival, a get at the end of each service.

    The trace is CSV with the columns TIMESTAMP, ContextTokens and GeneratedTokens, as in the Azure Public Dataset.

    Args:
        file: Trace file (CSV).
        estate: Estate file (TOML).
        output: Recording to write: .ndjson, .ndjson.zst or .arrow.
        queue: Queue in which the requests wait.
        qmgr: Queue manager that puts.
        service_rate: Tokens per second that a server generates.
        get_qmgr: Queue manager that gets. Default: the one that puts.
        servers: Number of servers, first come, first served.
        bytes_per_token: Message bytes per token of the context.
        start: Time of the first request. Default: that of the trace.
    """
    loaded_estate = open_estate(estate)
    serving = Serving(
        queue=queue,
        qmgr=qmgr,
        get_qmgr=get_qmgr,
        service_rate=service_rate,
        servers=servers,
        bytes_per_token=bytes_per_token,
        start=None if start is None else parse_start(start),
    )
    with show_progress("import-trace") as advance:
        outcome = convert_trace(file, loaded_estate, output, serving, lambda events, _: advance(None, events))
    print(simulated_summary(outcome, (loaded_estate.stores[name].kind for name in outcome.stores)))
