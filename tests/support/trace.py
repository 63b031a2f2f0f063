"""A trace of real requests as traffic: each request is a message, put at its arrival and got at the end of its service.

The format is that of the Azure LLM inference traces (Azure Public Dataset, CC-BY 4.0): a CSV file with the columns
TIMESTAMP, ContextTokens and GeneratedTokens, in order of time. Requests wait for one server, first come, first served.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from kernels import EVENT, FLAG_HAS_MSGID
from kernels.layout import GET, PUT
from twin.estate import Estate
from twin.simulation.scenario import Outcome, serve_into
from twin.simulation.system import tag_of
from twin.stores.warm_up import warm

_BYTES_PER_TOKEN = 4
_SECOND = 1_000_000  # microseconds


def import_trace(path: Path, estate: Estate, recording: Path, service_rate: float) -> Outcome:
    """Convert a trace to a recording of the queue ORDERS. A request whose put fails with 2192 is not served.

    Args:
        path: the trace.
        estate: an estate in which QM01 puts and QM02 gets.
        recording: file to write.
        service_rate: tokens per second that the server generates.
    """
    table = pa.csv.read_csv(path)
    arrivals = table.column("TIMESTAMP").cast(pa.timestamp("ns")).cast(pa.int64()).to_numpy() // 1_000
    context, generated = (table.column(name).to_numpy() for name in ("ContextTokens", "GeneratedTokens"))
    puts = _calls(PUT, estate.route_of_queue("QM01", "ORDERS"), arrivals)
    puts["length"] = context * _BYTES_PER_TOKEN
    services = np.rint(generated * (_SECOND / service_rate)).astype(np.int64)
    gets = _calls(GET, estate.route_of_queue("QM02", "ORDERS"), _served(arrivals, services))
    calls = np.concatenate([puts, gets])
    warm()
    return serve_into(recording, estate, tag_of("trace", path.name), [calls[np.argsort(calls["time"], kind="stable")]])


def _served(arrivals: np.ndarray, services: np.ndarray) -> np.ndarray:
    """Return the end of each service, i8[n], microseconds."""
    ends, free = np.empty(arrivals.size, np.int64), 0
    for i, (arrival, service) in enumerate(zip(arrivals.tolist(), services.tolist(), strict=True)):
        ends[i] = free = max(arrival, free) + service
    return ends


def _calls(op: int, route: int, times: np.ndarray) -> Any:
    events = np.zeros(times.size, EVENT)
    events["time"], events["msgid"] = times, np.arange(1, times.size + 1)
    events["op"], events["route"], events["count"], events["seq"] = op, route, 1, -1
    events["flags"] = FLAG_HAS_MSGID
    return events
