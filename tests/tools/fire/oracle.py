"""The outputs that a prefix of the topic must have, by the twin alone, and the differences of those that a job wrote.

As the exactly-once tests of Kafka Streams do it: the committed offsets of the checkpoint say which records are
processed; the same records go through the twin again, without Spark, mirror, pages or batches; every alert, the last
state of every store and every dead letter must be there, equal byte for byte, and nothing else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from streams.kafka.dead_letters import DeadLetter
from streams.query.report_records import ReadMark, read_record
from tests.system.harness import Record
from twin.alerts.episodes import Alert
from twin.estate import Estate
from twin.events import Decoder
from twin.events.refusals import DETAIL_CHARACTERS, Limits
from twin.stores.open import MESSAGE_KINDS, Twin, open_store
from twin.stores.reports import Report
from twin.stores.shared_store import SharedStore

Ends = Mapping[int, int]  # partition -> offset of the next record


@dataclass(frozen=True, slots=True)
class Segment:
    """The records up to some offsets, which were processed with an estate. last_batch: the batch that ends there."""

    estate: Estate
    ends: Ends
    last_batch: int = 1 << 62


@dataclass(slots=True)
class Outputs:
    """The records that a job has written, or has to have written.

    Attributes:
        alerts: values by the id of the CloudEvent.
        states: the last value of each store.
        letters: value and headers by topic/partition/offset/index.
        clashes: ids of alerts and letters that came with other content than before.
    """

    alerts: dict[str, bytes] = field(default_factory=dict)
    states: dict[str, bytes] = field(default_factory=dict)
    letters: dict[str, tuple[bytes, tuple[tuple[str, str], ...]]] = field(default_factory=dict)
    clashes: list[str] = field(default_factory=list)

    def add_alerts(self, alerts: Iterable[Alert]) -> None:
        """Add the records of alerts."""
        for alert in alerts:
            value = alert.record()
            self.alerts[str(msgspec.json.decode(value)["id"])] = value

    def copy(self) -> Outputs:
        """Return a copy that can be changed."""
        return Outputs(dict(self.alerts), dict(self.states), dict(self.letters), list(self.clashes))


@dataclass(slots=True)
class Expected:
    """The outputs of a prefix.

    Attributes:
        outputs: the outputs.
        events: accepted events by partition.
        letters: number of dead letters by partition.
        reports: reports of message stores to those that they share.
    """

    outputs: Outputs
    events: Counter[int]
    letters: Counter[int]
    reports: list[Report]


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
    oracle = Oracle(topic, letter_bytes)
    starts: Ends = {}
    for segment in segments:
        oracle.use(segment.estate)
        for partition, end in sorted(segment.ends.items()):
            oracle.take(partition, records.get(partition, [])[starts.get(partition, 0) : end])
        starts = segment.ends
    return oracle.finish()


class Oracle:
    """The outputs of the records of a topic, which it takes in pieces.

    Args:
        topic: name of the topic.
        letter_bytes: maximum bytes of the value of a dead letter.
    """

    def __init__(self, topic: str, letter_bytes: int) -> None:
        self._topic, self._letter_bytes = topic, letter_bytes
        self._expected = Expected(Outputs(), Counter(), Counter(), [])
        self._twins: dict[str, _Saved] = {}  # by earlier estates
        self._current: dict[str, _Saved] = {}

    def use(self, estate: Estate) -> None:
        """Process what comes with an estate."""
        self._save()
        self._estate = estate
        self._decoder = Decoder(estate, Limits(value_bytes=self._letter_bytes))

    def take(self, partition: int, records: list[Record]) -> None:
        """Process the next records of a partition."""
        if not records:
            return
        expected = self._expected
        values = pa.array([record.value for record in records], pa.large_binary())
        kinds = pa.array([record.headers.get("content-type") for record in records], pa.string())
        decoded = self._decoder.records(values, kinds)
        for block in decoded.blocks(self._estate):
            if block.store not in self._current:
                self._current[block.store] = _Saved(self._estate, block.store, self._twins.get(block.store))
            twin = self._current[block.store].twin
            expected.outputs.add_alerts(twin.apply(block))
            expected.reports += twin.drain_reports()
            expected.events[partition] += len(block.events)
        for reject in decoded.rejects:
            offset = records[reject.record].offset
            letter = DeadLetter(
                reason=str(reject.reason),
                detail=reject.detail[:DETAIL_CHARACTERS],
                topic=self._topic,
                partition=partition,
                offset=offset,
                index=reject.index,
                value=reject.value[: self._letter_bytes],
                length=reject.length,
            )
            headers = tuple((header["key"], header["value"].decode()) for header in letter.headers())
            expected.outputs.letters[f"{self._topic}/{partition}/{offset}/{reject.index}"] = letter.value, headers
            expected.letters[partition] += 1

    def finish(self) -> Expected:
        """Return the outputs of all that came."""
        self._save()
        return self._expected

    def _save(self) -> None:
        for name, saved in self._current.items():
            self._expected.outputs.states[name] = msgspec.json.encode(saved.twin.state())
            saved.save()
            self._twins[name] = saved
        self._current = {}


def add_shared(
    outputs: Outputs, records: Mapping[int, list[Record]], batches: Mapping[int, Ends], segments: Iterable[Segment]
) -> None:
    """Add the outputs of the stores that others share, which follow from the topic of reports and its batches.

    Args:
        outputs: takes them.
        records: all records of the topic of reports by partition, from offset 0.
        batches: the ends of the batches in that topic, by number, from the first one on.
        segments: in their order.
    """
    twins: dict[str, _Saved] = {}
    starts: Ends = {}
    first = -1
    for segment in segments:
        current: dict[str, _Saved] = {}
        for _, ends in sorted(pair for pair in batches.items() if first < pair[0] <= segment.last_batch):
            reports: dict[str, list[Report]] = defaultdict(list)
            marks: dict[str, bool] = {}
            # The order of the processor, to which partition n of this topic is -1 - n.
            for partition, end in sorted(ends.items(), reverse=True):
                for record in records.get(partition, [])[starts.get(partition, 0) : end]:
                    content = read_record(record.value, segment.estate)
                    if isinstance(content, ReadMark):
                        marks[content.store] = content.caught_up
                    else:
                        reports[content[0].target] += content
            for name in sorted({*reports, *marks}):
                if name not in current:
                    current[name] = _Saved(segment.estate, name, twins.get(name))
                twin = current[name].twin
                assert isinstance(twin, SharedStore)
                outputs.add_alerts(twin.take(reports[name], caught_up=marks.get(name)))
                if not twin.is_untouched:
                    outputs.states[name] = msgspec.json.encode(twin.state())
            starts = ends
        first = segment.last_batch
        for name, saved in current.items():
            saved.save()
            twins[name] = saved


def differences(seen: Outputs, least: Outputs, upmost: Outputs | None = None) -> list[str]:
    """Return what differs between what a job has written and what it must have, one line each.

    Args:
        seen: what a consumer of committed records has read.
        least: the outputs of the committed prefix.
        upmost: the outputs of the prefix that was planned, of a job that is down: it may have written a part of what
            comes after `least`; None: it must have written `least` and nothing else.
    """
    upmost = upmost or least
    lines = [f"{key} came twice with different content" for key in seen.clashes]
    for kind in ("alerts", "letters"):
        own, needed, allowed = (getattr(outputs, kind) for outputs in (seen, least, upmost))
        lines += [f"{kind}: {key} is missing" for key in needed.keys() - own.keys()]
        lines += [f"{kind}: {key} is beyond the prefix" for key in own.keys() - allowed.keys()]
        lines += [
            f"{kind}: {key} is {_cut(own[key])}, not {_cut(allowed[key])}"
            for key in own.keys() & allowed.keys()
            if own[key] != allowed[key]
        ]
    for store in sorted(seen.states.keys() | least.states.keys()):
        values = [outputs.states.get(store) for outputs in (least, upmost)]
        if seen.states.get(store) not in values:
            lines.append(f"states: {store} is {_difference(seen.states.get(store), values[0])}")
    return sorted(lines)


def _cut(value: object) -> str:
    return str(value)[:300]


def _difference(seen: bytes | None, expected: bytes | None) -> str:
    """Return the fields of two state records that differ."""
    if seen is None or expected is None:
        return "missing" if seen is None else "beyond the prefix"
    left, right = (msgspec.json.decode(value) for value in (seen, expected))
    fields = [name for name in (left | right) if left.get(name) != right.get(name)]
    if fields:
        return "; ".join(f"{name} {_cut(left.get(name))}, not {_cut(right.get(name))}" for name in fields)
    place = next((i for i, pair in enumerate(zip(seen, expected, strict=False)) if pair[0] != pair[1]), 0)
    return f"{seen[max(0, place - 40) : place + 20]!r}, not {expected[max(0, place - 40) : place + 20]!r}"


def ledger_problems(published: Counter[int], expected: Expected, seen: Outputs) -> list[str]:
    """Return partitions whose accepted events and dead letters are not what was published there.

    Args:
        published: events by partition, as the broker has acknowledged them.
        expected: the outputs of all that was published; duplicates are among its accepted events.
        seen: what the job has written.
    """
    states = [msgspec.json.decode(value) for value in seen.states.values()]
    own = [state for state in states if state["kind"] in MESSAGE_KINDS]
    counted = sum(state["events"] + state["duplicates"] for state in own)
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
