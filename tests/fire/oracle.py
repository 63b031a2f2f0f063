"""What a job that has processed exactly a prefix of its topic must have written, by the twin alone; the differences.

As the exactly-once tests of Kafka Streams do it: the committed offsets of the checkpoint say which records are
processed; the same records go through the twin again, without Spark, mirror, pages or batches; every alert, the last
state of every store and every dead letter must be there, equal byte for byte, and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import msgspec
import pyarrow as pa

from streams.kafka.dead_letters import DeadLetter
from tests.system.harness import Record
from twin.estate import Estate
from twin.events import Decoder
from twin.events.refusals import DETAIL_CHARACTERS, Limits
from twin.stores.open import Twin, open_store

Ends = Mapping[int, int]  # partition -> offset of the next record
SHARED_KINDS = ("coupling_facility", "queue_manager", "uniform_cluster")  # of reports, which the reports topic orders


@dataclass(frozen=True, slots=True)
class Segment:
    """The records up to some offsets, which were processed with an estate."""

    estate: Estate
    ends: Ends


@dataclass(slots=True)
class Outputs:
    """What a job has written, or has to have written.

    Attributes:
        alerts: values by the id of the CloudEvent.
        states: the last value of each store that holds messages.
        letters: value and headers by topic/partition/offset/index.
        clashes: ids of alerts and letters that came with other content than before.
    """

    alerts: dict[str, bytes] = field(default_factory=dict)
    states: dict[str, bytes] = field(default_factory=dict)
    letters: dict[str, tuple[bytes, tuple[tuple[str, str], ...]]] = field(default_factory=dict)
    clashes: list[str] = field(default_factory=list)

    def copy(self) -> Outputs:
        """Return a copy that can be changed."""
        return Outputs(dict(self.alerts), dict(self.states), dict(self.letters), list(self.clashes))


@dataclass(slots=True)
class Expected:
    """The outputs of a prefix. events: accepted ones by partition; letters: number of dead letters by partition."""

    outputs: Outputs
    events: Counter[int]
    letters: Counter[int]


class _Saved:
    """A twin and, for another estate, all that a checkpoint would have of it."""

    def __init__(self, estate: Estate, name: str, before: _Saved | None) -> None:
        self._pages: dict[int, bytes] = dict(before._pages) if before is not None else {}
        if before is None:
            self.twin: Twin = open_store(estate, name)
        else:
            self.twin = open_store(estate, name, None, before.twin.header(), self._pages.items())

    def save(self) -> None:
        self._pages |= dict(self.twin.dirty_pages())


def expect(records: Mapping[int, list[Record]], topic: str, segments: Iterable[Segment], letter_bytes: int) -> Expected:
    """Return the outputs of the records of a topic up to the end of the last segment.

    Args:
        records: all records by partition, from offset 0.
        topic: name of the topic.
        segments: in their order.
        letter_bytes: maximum bytes of the value of a dead letter.
    """
    expected = Expected(Outputs(), Counter(), Counter())
    twins: dict[str, _Saved] = {}
    starts: Ends = {}
    for segment in segments:
        decoder = Decoder(segment.estate, Limits(value_bytes=letter_bytes))
        current: dict[str, _Saved] = {}
        for partition, end in sorted(segment.ends.items()):
            part = records.get(partition, [])[starts.get(partition, 0) : end]
            if not part:
                continue
            values = pa.array([record.value for record in part], pa.large_binary())
            kinds = pa.array([record.headers.get("content-type") for record in part], pa.string())
            decoded = decoder.records(values, kinds)
            for block in decoded.blocks(segment.estate):
                if block.store not in current:
                    current[block.store] = _Saved(segment.estate, block.store, twins.get(block.store))
                for alert in current[block.store].twin.apply(block):
                    value = alert.record()
                    expected.outputs.alerts[str(msgspec.json.decode(value)["id"])] = value
                current[block.store].twin.drain_reports()
                expected.events[partition] += len(block.events)
            for reject in decoded.rejects:
                offset = part[reject.record].offset
                letter = DeadLetter(
                    reason=str(reject.reason),
                    detail=reject.detail[:DETAIL_CHARACTERS],
                    topic=topic,
                    partition=partition,
                    offset=offset,
                    index=reject.index,
                    value=reject.value[:letter_bytes],
                    length=reject.length,
                )
                headers = tuple((header["key"], header["value"].decode()) for header in letter.headers())
                expected.outputs.letters[f"{topic}/{partition}/{offset}/{reject.index}"] = letter.value, headers
                expected.letters[partition] += 1
        for name, saved in current.items():
            expected.outputs.states[name] = msgspec.json.encode(saved.twin.state())
            saved.save()
            twins[name] = saved
        starts = segment.ends
    return expected


def differences(seen: Outputs, least: Outputs, most: Outputs | None = None) -> list[str]:
    """Return what differs between what a job has written and what it must have, one line each.

    Args:
        seen: what a consumer of committed records has read.
        least: the outputs of the committed prefix.
        most: the outputs of the prefix that was planned, of a job that is down: it may have written a part of what
            comes after `least`; None: it must have written `least` and nothing else.
    """
    most = most or least
    found = [f"{key} came twice with different content" for key in seen.clashes]
    for kind in ("alerts", "letters"):
        own, needed, allowed = (getattr(outputs, kind) for outputs in (seen, least, most))
        found += [f"{kind}: {key} is missing" for key in needed.keys() - own.keys()]
        found += [f"{kind}: {key} is beyond the prefix" for key in own.keys() - allowed.keys()]
        found += [
            f"{kind}: {key} is {_cut(own[key])}, not {_cut(allowed[key])}"
            for key in own.keys() & allowed.keys()
            if own[key] != allowed[key]
        ]
    for store in sorted(seen.states.keys() | least.states.keys()):
        values = [outputs.states.get(store) for outputs in (least, most)]
        if seen.states.get(store) not in values:
            found.append(f"states: {store} is {_difference(seen.states.get(store), values[0])}")
    return sorted(found)


def _cut(value: object) -> str:
    return str(value)[:300]


def _difference(seen: bytes | None, wanted: bytes | None) -> str:
    """Return the fields of two state records that differ."""
    if seen is None or wanted is None:
        return "missing" if seen is None else "beyond the prefix"
    one, other = (msgspec.json.decode(value) for value in (seen, wanted))
    fields = [name for name in (one | other) if one.get(name) != other.get(name)]
    return "; ".join(f"{name} {_cut(one.get(name))}, not {_cut(other.get(name))}" for name in fields) or "other bytes"


def ledger_problems(published: Counter[int], expected: Expected, seen: Outputs) -> list[str]:
    """Return partitions whose accepted events and dead letters are not what was published there.

    Args:
        published: events by partition, as the broker has acknowledged them.
        expected: the outputs of all that was published; duplicates are among its accepted events.
        seen: what the job has written.
    """
    states = [msgspec.json.decode(value) for value in seen.states.values()]
    counted = sum(state["events"] + state["duplicates"] for state in states)
    problems = [
        f"ledger: partition {partition}: {count} published, {expected.events[partition]} accepted, "
        f"{expected.letters[partition]} dead letters"
        for partition, count in sorted(published.items())
        if count != expected.events[partition] + expected.letters[partition]
    ]
    if counted != expected.events.total():
        problems.append(f"ledger: the states count {counted} events and duplicates of {expected.events.total()}")
    return problems


def plant(seen: Outputs, number: int) -> Outputs:
    """Return outputs with a difference that the oracle has to see: the canary. number: which kind of difference."""
    planted = seen.copy()
    kind = number % 4
    if kind == 0 and planted.alerts:
        planted.alerts.pop(sorted(planted.alerts)[number % len(planted.alerts)])
    elif kind == 1 and planted.alerts:
        key = max(planted.alerts)
        planted.alerts[key] = planted.alerts[key].replace(b'"', b"'", 1)
    elif kind == 2 and planted.letters:
        planted.letters["events/0/999999999/0"] = b"", ()
    else:
        store = min(planted.states)
        planted.states[store] = planted.states[store].replace(b'"events":', b'"events":1', 1)
    return planted


def without_shared(outputs: Outputs, estate: Estate) -> Outputs:
    """Return outputs without the stores that others share: their state depends on when reports are read."""
    shared = {name for name, store in estate.stores.items() if store.kind in SHARED_KINDS}
    states = {store: value for store, value in outputs.states.items() if store not in shared}
    return replace(outputs, states=states)
