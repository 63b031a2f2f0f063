"""Request traces as traffic: each request is a message, put at its arrival and got at the end of its service.

The format is that of the Azure LLM inference traces (Azure Public Dataset, CC-BY 4.0): a CSV file with the columns
TIMESTAMP, ContextTokens and GeneratedTokens, in order of time. The length of a message is that of the context, its
service time that of generating the answer. Requests wait for the servers first come, first served. A message stays in
its queue until the end of its service, as under syncpoint.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from kernels import EVENT, FLAG_HAS_MSGID
from kernels.layout import GET, PUT
from twin.errors import UsageError
from twin.estate import Estate, RoutingError
from twin.events.fields import FIELD
from twin.events.refusals import show
from twin.simulation.run import Outcome, Progress, serve_into
from twin.simulation.system import tag_of
from twin.stores.warm_up import warm

Array = npt.NDArray[Any]

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")

_BLOCK = 1 << 20  # bytes of the file that are read at a time
_SECOND = 1_000_000  # microseconds
_MAX_SERVERS = 1_000_000
_EARLIEST, _LATEST = 946_684_800 * _SECOND, 4_133_980_800 * _SECOND  # 2000 to 2101, as event times
_TIMES = (pa.timestamp("ns"), pa.timestamp("ns", "UTC"))  # without a zone in the text, and with one
_TIME_RIGHT = "a time such as 2023-11-16 18:15:46.6805900, in the years 2000 to 2100"


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Queue, queue managers and servers of a trace."""

    queue: str
    qmgr: str  # of the puts
    get_qmgr: str | None = None  # of the servers; by default that of the puts
    service_rate: float  # tokens per second that a server generates
    servers: int = 1
    bytes_per_token: float = 4.0
    start: int | None = None  # time of the first request, microseconds since 1970; by default as in the trace


def import_trace(
    path: str | Path, estate: Estate, recording: str | Path, serving: Serving, progress: Progress | None = None
) -> Outcome:
    """Convert a trace to a recording. A request whose put fails with 2192 is not served.

    Args:
        path: CSV file.
        estate: the estate.
        recording: file to write.
        serving: queue and servers.
        progress: called after every piece.

    Raises:
        UsageError: wrong trace (with file, line, column, expected value), unknown queue or queue manager, a number of
            `serving` out of range, or the recording cannot be written.
    """
    return serve_into(recording, estate, tag_of("trace", Path(path).name), demands(path, estate, serving), progress)


def demands(path: str | Path, estate: Estate, serving: Serving) -> Iterator[Array]:
    """Yield a PUT and a GET per request in order of time, EVENT[n] each. Raise UsageError as `import_trace`."""
    _check(serving)
    warm()
    try:
        put_route = estate.route_of_queue(serving.qmgr, serving.queue)
        get_route = estate.route_of_queue(serving.get_qmgr or serving.qmgr, serving.queue)
    except RoutingError as error:
        raise UsageError(str(error)) from None
    free = [0] * serving.servers  # when each server is free, a heap
    waiting = np.zeros(0, EVENT)  # gets still to come
    count = 0
    offset = None
    for times, context, generated in _requests(Path(path), serving.bytes_per_token):
        if offset is None:
            offset = 0 if serving.start is None else serving.start - int(times[0])
        arrivals = times + offset
        numbers = np.arange(count + 1, count + 1 + times.size)
        count += times.size
        puts = _calls(PUT, put_route, arrivals, numbers)
        puts["length"] = (context * serving.bytes_per_token).astype(np.int64)
        services = np.rint(generated * (_SECOND / serving.service_rate)).astype(np.int64)
        gets = _calls(GET, get_route, _served(arrivals, services, free), numbers)
        merged = np.concatenate([puts, waiting, gets])
        merged = merged[np.argsort(merged["time"], kind="stable")]
        # Calls after the last request known so far may come after the next request.
        cut = int(np.searchsorted(merged["time"], puts["time"][-1], side="right"))
        waiting = merged[cut:]
        yield merged[:cut]
    yield waiting


def _check(serving: Serving) -> None:
    for name, value in (("service rate", serving.service_rate), ("bytes per token", serving.bytes_per_token)):
        if not 1e-6 <= value < 1e9:
            raise UsageError(f"the {name} is {value:g}; expected: from 0.000001, less than a thousand million")
    if not 1 <= serving.servers <= _MAX_SERVERS:
        raise UsageError(f"there are {serving.servers} servers; expected: 1 to {_MAX_SERVERS:,}")


def _served(arrivals: Array, services: Array, free: list[int]) -> Array:
    """Return the end of each service, i8[n], microseconds, and update `free`."""
    ends = np.empty(arrivals.size, np.int64)
    for i, (arrival, service) in enumerate(zip(arrivals.tolist(), services.tolist(), strict=True)):
        ends[i] = max(arrival, free[0]) + service
        heapq.heapreplace(free, int(ends[i]))
    return ends


def _calls(op: int, route: int, times: Array, numbers: Array) -> Array:
    events = np.zeros(times.size, EVENT)
    events["time"], events["msgid"] = times, numbers
    events["op"], events["route"], events["count"], events["seq"] = op, route, 1, -1
    events["flags"] = FLAG_HAS_MSGID
    return events


# --- the file --------------------------------------------------------------------------------------------------------


def _requests(path: Path, bytes_per_token: float) -> Iterator[tuple[Array, Array, Array]]:
    """Yield (microseconds since 1970, context tokens, generated tokens), i8[n] each, by block of the file."""
    longest = FIELD["length"].high or 0
    limit = f"at most {int(longest / bytes_per_token)}, as {bytes_per_token:g} bytes per token make {longest} bytes"
    before = _EARLIEST
    has_requests = False
    for rows in _rows(path):
        times = rows.times()
        rows.check(times >= np.concatenate([[before], times[:-1]]), "TIMESTAMP", "not before the request above")
        before = int(times[-1])
        context = rows.tokens("ContextTokens")
        rows.check(context * bytes_per_token < longest + 1, "ContextTokens", limit)
        yield times, context, rows.tokens("GeneratedTokens")
        has_requests = True
    if not has_requests:
        raise UsageError(f"{path} has no requests; expected: a line of {', '.join(COLUMNS)} for each")


def _rows(path: Path) -> Iterator[_Rows]:
    """Yield the rows of the file without empty lines."""
    line = 2  # of the next row; the first line has the names
    for block in _blocks(path):
        columns = {name: block.column(name) for name in COLUMNS}
        filled = np.zeros(block.num_rows, np.bool_)
        for values in columns.values():
            filled |= np.asarray(pc.not_equal(values, "").to_numpy(zero_copy_only=False))
        lines = line + np.flatnonzero(filled)
        line += block.num_rows
        if lines.size:
            yield _Rows(path, lines, {name: values.filter(pa.array(filled)) for name, values in columns.items()})


def _blocks(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows as text, empty lines included, so that the index of a row gives its line."""
    cut_short: list[Any] = []

    def note(row: Any) -> str:
        cut_short.append(row)
        return "skip"

    if not path.is_file():
        raise UsageError(f"{path} is not a file; expected: a CSV file with the columns {', '.join(COLUMNS)}")
    try:
        reader = pa.csv.open_csv(
            path,
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=pa.csv.ParseOptions(ignore_empty_lines=False, invalid_row_handler=note),
            convert_options=pa.csv.ConvertOptions(column_types=dict.fromkeys(COLUMNS, pa.string())),
        )
        names = reader.schema.names
        for name in COLUMNS:
            if name not in names:
                raise UsageError(
                    f"{path}, line 1: no column {name} in {', '.join(names)}; expected: {', '.join(COLUMNS)}"
                )
        for block in reader:
            if cut_short:
                break
            yield block
    except (OSError, pa.ArrowException) as error:
        if "Empty CSV" in str(error):
            return
        raise UsageError(
            f"{path}: {' '.join(str(error).split())}; expected: CSV text with {', '.join(COLUMNS)}"
        ) from None
    if cut_short:
        row = cut_short[0]
        raise UsageError(
            f"{path}, line {row.number}: {row.actual_columns} columns; expected: {row.expected_columns}, as in line 1"
        )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of the file as text."""

    path: Path
    lines: Array  # i8[n], line numbers
    columns: dict[str, Any]

    def times(self) -> Array:
        """Return microseconds since 1970, i8[n], without further decimals. Times without a zone are UTC."""
        texts = self.columns["TIMESTAMP"]
        for kind in _TIMES:
            try:
                times = np.asarray(texts.cast(kind).cast(pa.int64()).to_numpy()) // 1_000
            except pa.ArrowException:
                continue
            self.check((times >= _EARLIEST) & (times < _LATEST), "TIMESTAMP", _TIME_RIGHT)
            return times
        self.check(np.array([_is_time(text) for text in texts.to_pylist()]), "TIMESTAMP", _TIME_RIGHT)
        raise UsageError(
            f"{self.path}, lines {self.lines[0]} to {self.lines[-1]}: TIMESTAMP has a time zone in some lines; "
            "expected: in all or in none"
        )

    def tokens(self, name: str) -> Array:
        """Return numbers of tokens, i8[n]."""
        texts = self.columns[name]
        whole = pc.match_substring_regex(texts, "^[0-9]{1,12}$").to_numpy(zero_copy_only=False)
        self.check(np.asarray(whole), name, "a whole number of tokens from 0")
        return np.asarray(texts.cast(pa.int64()).to_numpy())

    def check(self, right: Array, name: str, what: str) -> None:
        """Raise UsageError for the first row that is not right.

        Args:
            right: bool[n].
            name: column.
            what: expected value.
        """
        if not right.all():
            i = int(np.flatnonzero(~right)[0])
            value = self.columns[name][i].as_py()
            raise UsageError(f"{self.path}, line {self.lines[i]}: {name} is {show(value)}; expected: {what}")


def _is_time(text: str) -> bool:
    for kind in _TIMES:
        try:
            pa.scalar(text).cast(kind)
        except pa.ArrowException:
            continue
        return True
    return False
