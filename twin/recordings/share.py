"""A recording that its site may give away: names are pseudonyms, times are moved, lengths and rates stay.

A field of an event is kept, replaced or rewritten by its row of `HANDLED`; one without a row is left out, and so is an
event that the estate refuses. So a new field leaks nothing before somebody has decided about it. Described in
docs/recordings.md.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from twin.base.errors import UsageError
from twin.base.outputs import write_output
from twin.base.units import as_count, as_text, event_time
from twin.estate import Estate, as_estate
from twin.estate.planned import Plan
from twin.events import ARROW_SCHEMA, Decoded, Decoder
from twin.events.fields import (
    MEASURED_COUNTS,
    MEASURED_NUMBERS,
    MEASURED_QUEUE,
    MEASURED_SCM,
    MEASURED_SMDS,
    OPS,
    PLAN,
    QUEUE_TIMES,
    SILENT,
)
from twin.recordings.files import Chunk, RecordingWriter, open_recording
from twin.recordings.pseudonyms import WEEK, Numbers, Pseudonyms, moved_plan, named_values, plan_fields, shared_texts

RECORDING = "recording.arrow"
UNCHANGED, NAMED, NUMBERED, MOVED, REWRITTEN = "kept", "named", "numbered", "moved", "rewritten"
HANDLED: Mapping[str, str] = {
    "time": MOVED,
    "qmgr": NAMED,
    "seq": UNCHANGED,
    "op": UNCHANGED,
    "queue": NAMED,
    "msgid": NUMBERED,
    "count": UNCHANGED,
    "length": UNCHANGED,
    "priority": UNCHANGED,
    "persistent": UNCHANGED,
    "expiry": UNCHANGED,
    "uow": NUMBERED,
    "direct": UNCHANGED,
    "reason": UNCHANGED,
    "store": NAMED,
    "attributes": REWRITTEN,
    "measured": REWRITTEN,
    "plan": REWRITTEN,
}
"""Treatment of each field of an event."""

_NUMBERS = {*MEASURED_COUNTS, *MEASURED_NUMBERS, SILENT.name}
_KINDS = {"qmgr": "queue manager", "queue": "queue"}  # of names in the fields that are NAMED; a store has parts
_ABOUT = """\
A recording of mqtwin under pseudonyms, written by `mqtwin share`.

{contents}
Replaced: names of queues, structures, queue managers, coupling facilities, policies, clusters, hosts and planned work;
ids of messages and units of work are numbers in the order in which they came. Moved: all times, by the same number of
weeks. Left out: notes of planned work, the site's name and runbook, and what the estate refuses.

    mqtwin replay {recording} --estate estate.toml
"""


@dataclass(frozen=True, slots=True)
class Shared:
    """Outcome of `share`."""

    events: int  # events in the recording
    left_out: int  # events of the original that are not in it: the estate refuses them
    stores: int  # stores with events
    ids: int  # different ids of messages and units of work
    first: int  # time of the first event as shared, microseconds
    last: int  # time of the last one, microseconds
    files: tuple[str, ...]  # names of the files in the folder
    size: int  # bytes of the files together
    shift: int  # microseconds by which times are later, for the site alone
    zone: str  # zone of the site, which stays, as planned work is in it; "": UTC
    table: Mapping[tuple[str, str], str]  # pseudonym by kind and name, for the site alone

    @property
    def contents(self) -> str:
        """The content of the folder, in one sentence."""
        hours = (self.last - self.first) / 3_600_000_000
        zone = f", in the zone {self.zone}" if self.zone else ""
        return (
            f"{as_count(self.events, 'event')} of {as_count(self.stores, 'store')} over {hours:.1f} h{zone}, with"
            f" {as_count(self.ids, 'id')}; {as_count(self.left_out, 'event')} that the estate refuses left out."
        )


def share(
    recording: str | Path,
    estate: Estate | str | Path,
    folder: str | Path,
    key: bytes | None = None,
    on_chunk: Callable[[Chunk, int], None] | None = None,
) -> Shared:
    """Write a recording and its estate under pseudonyms into a folder, and return what is there. The folder is a new or
    an empty one: what it has is given away. The same key, at least 16 bytes, gives the same pseudonyms again; None: a
    random one. `on_chunk` gets the number of events so far. UsageError: the recording cannot be read or has no event of
    the estate, or the folder cannot be written.
    """
    folder, estate = Path(folder), as_estate(estate)
    names = Pseudonyms(secrets.token_bytes(32) if key is None else key)
    names.add(estate)
    decoder = Decoder(estate)
    first, last, plans = _survey(recording, decoder, estate)
    shift = WEEK * names.weeks(first, last, estate.site.clock, plans)
    _make(folder)
    writer, total = _Writer(estate, names, shift), 0
    with RecordingWriter(folder / RECORDING) as out:
        for chunk in open_recording(recording):
            total += len(chunk)
            out.write(writer.table(chunk, chunk.decode(decoder)))
            if on_chunk is not None:
                on_chunk(chunk, out.events)
    texts = shared_texts(estate, names, shift)
    for name, content in texts.items():
        write_output(folder / name, content)
    shared = Shared(
        events=out.events,
        left_out=total - out.events,
        stores=len(writer.stores),
        ids=len(writer.numbers["msgid"]) + len(writer.numbers["uow"]),
        first=first + shift,
        last=last + shift,
        files=(RECORDING, *texts, "README.txt"),
        size=0,
        shift=shift,
        zone=estate.site.zone,
        table=dict(names.table),
    )
    write_output(folder / "README.txt", _ABOUT.format(contents=shared.contents, recording=RECORDING))
    return replace(shared, size=sum((folder / name).stat().st_size for name in shared.files))


def _make(folder: Path) -> None:
    """Make the folder. UsageError: it cannot be made, or has something already."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_empty = not any(folder.iterdir())
    except OSError as error:
        raise UsageError(f"{folder} cannot be made ({error.strerror}); expected: a new folder") from None
    if not is_empty:
        raise UsageError(f"{folder} has files, which would be given away too; expected: a new or an empty folder")


def _survey(recording: str | Path, decoder: Decoder, estate: Estate) -> tuple[int, int, list[Plan]]:
    """Return the times of the first and the last event, and all plans. UsageError: there is no event."""
    plans = [plan for own in estate.planned.values() for plan in own]
    first, last = 1 << 62, -1
    for chunk in open_recording(recording):
        decoded = chunk.decode(decoder)
        if len(decoded):
            first = min(first, int(decoded.events["time"].min()))
            last = max(last, int(decoded.events["time"].max()))
        planned = (read for row in decoded.extras if isinstance(read := _extra(decoded, row), Plan))
        plans.extend(planned)
    if last < 0:
        raise UsageError(f"{recording} has no event of {estate.source}; expected: the estate of the recording")
    return first, last, plans


def _extra(decoded: Decoded, row: int) -> Any:
    """Return the checked object of an event: attributes, a measurement, a `Plan` or the end of one."""
    content: dict[str, Any] = msgspec.json.decode(decoded.extras[row])
    if decoded.events["op"][row] == PLAN and "cancelled" not in content:
        return msgspec.convert(content, Plan)
    return content


class _Writer:
    """Events under pseudonyms. Attributes: stores: of events so far; numbers: of ids, by field."""

    def __init__(self, estate: Estate, names: Pseudonyms, shift: int) -> None:
        self._estate, self._names, self._shift = estate, names, shift
        self.stores: set[str] = set()
        self.numbers = {field: Numbers() for field, treatment in HANDLED.items() if treatment == NUMBERED}

    def table(self, chunk: Chunk, decoded: Decoded) -> pa.Table:
        lines = decoded.index - chunk.first
        rows, firsts = np.unique(lines, return_index=True)
        routes = np.unique(decoded.events["route"]).tolist()
        self.stores.update(self._estate.routes[route].store for route in routes)
        table = chunk.table(rows)
        objects = self._objects(decoded, firsts)
        columns = []
        for field in ARROW_SCHEMA:
            treatment, values = HANDLED.get(field.name), table.column(field.name)
            if treatment == UNCHANGED:
                columns.append(values)
            elif treatment == MOVED:
                columns.append(pc.add(values.cast(pa.int64()), self._shift).cast(field.type))
            elif treatment == NAMED:
                columns.append(self._named(field.name, values))
            elif treatment == NUMBERED:
                number = self.numbers[field.name].replacement
                columns.append(pa.array([number(name) for name in values.to_pylist()], field.type))
            elif treatment == REWRITTEN:
                columns.append(pa.array(objects[field.name], field.type))
            else:
                columns.append(pa.nulls(table.num_rows, field.type))
        return pa.table(columns, schema=ARROW_SCHEMA)

    def _named(self, field: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return a column with the pseudonyms of its names; null for a store that the estate does not have."""
        chunks = []
        for encoded in values.chunks:
            words = [None if word is None else self._name(field, word) for word in encoded.dictionary.to_pylist()]
            plain = pa.array(words, pa.string()).take(encoded.indices)
            chunks.append(plain)
        return pa.chunked_array(chunks, pa.string()).dictionary_encode().cast(values.type)

    def _name(self, field: str, name: str) -> str | None:
        if field in _KINDS:
            return self._names.replacement(_KINDS[field], name)
        return self._store(name)

    def _store(self, name: str) -> str | None:
        config = self._estate.stores.get(name)
        return None if config is None else self._names.store(config)

    def _objects(self, decoded: Decoded, rows: npt.NDArray[np.int64]) -> dict[str, list[str | None]]:
        columns: dict[str, list[str | None]] = {
            field: [None] * rows.size for field, treatment in HANDLED.items() if treatment == REWRITTEN
        }
        place = {row: number for number, row in enumerate(rows.tolist())} if decoded.extras else {}
        for row in decoded.extras.keys() & place.keys():
            op, content = OPS[int(decoded.events["op"][row])], _extra(decoded, row)
            field, own = self._rewritten(op, content)
            columns[field][place[row]] = msgspec.json.encode(own).decode()
        return columns

    def _rewritten(self, op: str, content: Any) -> tuple[str, Any]:
        """Return the field of an object, and what may be shared of it."""
        if isinstance(content, Plan):
            return "plan", plan_fields(moved_plan(content, self._names, self._shift))
        if op == "PLAN":
            return "plan", {"id": self._names.replacement("plan", content["id"]), "cancelled": True}
        if op == "NOTE":
            return "attributes", content | {"opened": content["opened"] + self._shift}
        if op in ("ALTER", "REBUILD"):
            return "attributes", named_values(content, self._names)
        return "measured", self._measured(content)

    def _measured(self, content: Mapping[str, Any]) -> dict[str, Any]:
        own = _only(content, _NUMBERS)
        if "smds" in content:
            named = {self._names.replacement("queue manager", qmgr): values for qmgr, values in content["smds"].items()}
            own["smds"] = {qmgr: _only(values, MEASURED_SMDS) for qmgr, values in named.items()}
        if "scm" in content:
            own["scm"] = _only(content["scm"], MEASURED_SCM)
        if "queues" in content:
            own["queues"] = [self._queue(values) for values in content["queues"]]
        if "asked" in content:
            own["asked"] = [self._names.replacement("queue manager", qmgr) for qmgr in content["asked"]]
        if content.get("resync") is True:
            own["resync"] = True
        return own

    def _queue(self, values: Mapping[str, Any]) -> dict[str, Any]:
        moved = {name: as_text(event_time(values[name]) + self._shift) for name in QUEUE_TIMES if name in values}
        return {"name": self._names.replacement("queue", values["name"]), **_only(values, MEASURED_QUEUE), **moved}


def _only(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in names and isinstance(value, int | float)}
