"""Does a batch cost more when more messages are held? The same events a batch, at 10^4 and at 10^6 messages held."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from streams.kafka.publish import Record
from tests.tools.bench import site
from tests.tools.bench.rig import Batch, Rig, Say
from tests.tools.bench.traffic import Traffic
from twin.events import ARROW
from twin.events.convert import arrow_value

LOW, HIGH = 10_000, 1_000_000
_STORES = site.STORES[:2]
RECORDS = 4  # of a batch
EVENTS = 5_000  # of a record, about
_FIGURES = ("batch_ms", "run_ms", "pages", "page_bytes", "apply_us", "write_us", "state_commit_ms", "events")


@dataclass(frozen=True, slots=True)
class Phase:
    """Batches of the same events. name: one of PHASES; batches: the job's figures."""

    name: str
    batches: list[dict[str, float]]

    def __getitem__(self, figure: str) -> float:
        """The median of one of the job's figures."""
        return statistics.median(batch[figure] for batch in self.batches)


LOW_FIRST, HIGH_FIRST, LOW_AGAIN, HIGH_ANY, LOW_AFTER = PHASES = (
    "low at first",  # gets take the oldest message, here and where nothing else is said
    "high",
    "low again",
    "high, gets take any message",
    "low, after the backlog was taken in any order",
)


@dataclass(slots=True)
class Backlog:
    """The phases by name, in the order of time."""

    phases: dict[str, Phase]

    def low(self, figure: str) -> float:
        """Return the median at LOW over both phases, because machine and JVM change meanwhile."""
        return (self.phases[LOW_FIRST][figure] + self.phases[LOW_AGAIN][figure]) / 2

    def ratio(self, figure: str = "batch_ms") -> float:
        """Return the cost of a batch at HIGH relative to one at LOW."""
        return self.phases[HIGH_FIRST][figure] / self.low(figure)

    def ratio_any_order(self) -> float:
        """Return the duration of a batch at HIGH with gets in any order, relative to one at LOW."""
        return self.phases[HIGH_ANY]["batch_ms"] / self.low("batch_ms")


class _Script:
    """The records to send, RECORDS a batch, and which batches belong to which phase."""

    def __init__(self, measured: int) -> None:
        self._traffic = {store: Traffic((store,), seed) for seed, store in enumerate(_STORES)}
        self._measured = measured
        self.phases: dict[str, range] = {}
        self.batches = 0

    def records(self) -> Iterator[Record]:
        """All records, in order."""
        yield from self._move(Traffic.fill, LOW, pieces=1, settle=10)
        yield from self._phase(LOW_FIRST)
        yield from self._move(Traffic.fill, HIGH - LOW)
        yield from self._phase(HIGH_FIRST)
        yield from self._move(Traffic.drain, HIGH - LOW)
        yield from self._phase(LOW_AGAIN)
        yield from self._move(Traffic.fill, HIGH - LOW)
        yield from self._phase(HIGH_ANY, any_order=True)
        self._shuffle()
        yield from self._move(Traffic.drain, HIGH - LOW)
        yield from self._phase(LOW_AFTER)

    def _move(
        self, how: Callable[[Traffic, int], pa.Table], messages: int, *, pieces: int = 2, settle: int = 3
    ) -> Iterator[Record]:
        for _ in range(pieces):
            yield from self._batch(lambda traffic: how(traffic, messages // (pieces * RECORDS)))
        for _ in range(settle):
            yield from self._batch(lambda traffic: traffic.steady(EVENTS))

    def _phase(self, name: str, *, any_order: bool = False) -> Iterator[Record]:
        self.phases[name] = range(self.batches, self.batches + self._measured)
        for _ in range(self._measured):
            if any_order:
                self._shuffle()
            yield from self._batch(lambda traffic: traffic.steady(EVENTS))

    def _shuffle(self) -> None:
        for traffic in self._traffic.values():
            traffic.shuffle()

    def _batch(self, make: Callable[[Traffic], pa.Table]) -> Iterator[Record]:
        for _ in range(RECORDS // len(_STORES)):
            for store, traffic in self._traffic.items():
                table = make(traffic)
                yield Record(store.encode(), arrow_value(table), ARROW, table.num_rows)
        self.batches += 1


def measure(rig: Rig, say: Say, *, quick: bool) -> Backlog:
    """All phases in one run of the job."""
    script = _Script(4 if quick else 15)
    say("publishing the same events for 10,000 and for 1,000,000 messages held")
    # A partition for each store: every batch has the same number of records from each.
    rig.send("bench-backlog", script.records(), partitions=len(_STORES))
    say(f"the job, {script.batches} small batches")
    batches = rig.run_job(rig.settings("bench-backlog", max_records=RECORDS))
    return Backlog({name: _phase(name, batches, places) for name, places in script.phases.items()})


def _phase(name: str, batches: Sequence[Batch], places: range) -> Phase:
    return Phase(name, [{figure: batches[place].figures[figure] for figure in _FIGURES} for place in places])
