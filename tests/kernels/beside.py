"""The twin of a store beside the oracle: the same public events for both, and what each says afterwards."""

import json
import tempfile
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.naive import NaivePageSet, NaiveQueueFile, NaiveStore, NaiveStructure
from tests.naive.estates import OnFacility, aliases_of, write_estate
from tests.naive.private_estates import Private, write_private_estate
from tests.naive.structure import Facility
from tests.support.workloads import Workload
from twin.alerts.episodes import Alert
from twin.estate import Estate, Structure, load_estate
from twin.events import Decoder, EventBlock
from twin.stores.message_store import MessageStore
from twin.stores.open import open_store
from twin.units import as_text

Event = dict[str, Any]
Pages = dict[int, bytes]


Config = Structure | Private


def estate_of(config: Config) -> Estate:
    """The estate that describes a store, its queues and its alias queues, read from its files."""
    write = write_private_estate if isinstance(config, Private) else write_estate
    with tempfile.TemporaryDirectory() as folder:
        return load_estate(write(Path(folder), config, aliases_of(config)))


class Decoding:
    """The way of the public events of one store: NDJSON, decoder, blocks, twins.

    foresees: not where only state is looked at; of random workloads forecasts are nine tenths of the time.
    """

    def __init__(self, config: Config, *, foresees: bool = True) -> None:
        self.estate = estate_of(config)
        self.name = config.name
        self.foresees = foresees
        self._decoder = Decoder(self.estate)

    def block(self, events: Iterable[Event]) -> tuple[EventBlock, list[Event]]:
        """The events in one block, and those of them that are no dead letters."""
        given = list(events)
        decoded = self._decoder.ndjson(["\n".join(json.dumps(event) for event in given).encode()])
        refused = {reject.index for reject in decoded.rejects}
        blocks = decoded.blocks(self.estate) or [EventBlock(self.name, decoded.events, {})]
        assert [block.store for block in blocks] == [self.name]
        return blocks[0], [event for index, event in enumerate(given) if index not in refused]

    def twin(self, *kept: Any) -> Any:
        """A new twin, or, of what was kept (arrays, header, pages), the twin as it was."""
        twin: Any = open_store(self.estate, self.name, *kept)
        twin.foresight.enabled = self.foresees and twin.has_fill_model
        return twin

    def oracle(self, workload: Workload) -> NaiveStore:
        config = workload.config
        if isinstance(config, Private):
            oracle = {"page_set": NaivePageSet, "queue_file": NaiveQueueFile}[config.kind]
            return oracle(config.attributes | {"version": config.version}, workload.aliases)
        described = self.estate.stores[self.name]
        assert isinstance(described, Structure)
        if isinstance(config, OnFacility):
            return NaiveStructure(described, workload.aliases, Facility(config.facility_size, config.facility_scm or 0))
        return NaiveStructure(described, workload.aliases)


def cut(block: EventBlock, *places: int) -> list[EventBlock]:
    """A block cut before the events at those places (any order, any number of times)."""
    size = len(block)
    ends = sorted({min(place, size) for place in places} | {0, size})
    return [
        EventBlock(
            block.store,
            block.events[start:end],
            {row - start: text for row, text in block.extras.items() if start <= row < end},
        )
        for start, end in pairwise(ends)
    ]


def told_by_oracle(oracle: NaiveStore) -> dict[str, Any]:
    """The oracle's state as a state record writes it: every field that it knows."""
    state = oracle.state()
    deepest = sorted(state["queues"].items(), key=lambda entry: (-entry[1][0], entry[0]))[:10]
    return state | {
        "time": None if state["time"] is None else as_text(state["time"]),
        "queues": [{"name": name, "depth": depth, "bytes": size} for name, (depth, size) in deepest],
        **({"usage_pct": round(state["usage_pct"], 3)} if "usage_pct" in state else {}),
        "drift_pct": None if state["drift_pct"] is None else round(state["drift_pct"], 4),
    }


def assert_same(twin: MessageStore, oracle: NaiveStore) -> None:
    """Every field of the state record that the oracle knows is the same."""
    expected, found = told_by_oracle(oracle), twin.state()
    different = {name: (value, found[name]) for name, value in expected.items() if found[name] != value}
    assert not different, f"oracle, twin: {different}"


def all_of(twin: MessageStore) -> Pages:
    """Every page of a twin, written or not: what it holds."""
    for name in twin.tables.store._fields:
        if name.endswith("_dirty"):
            getattr(twin.tables.store, name)[:] = 1
    twin.tables._names_dirty = True
    return dict(twin.dirty_pages())


def records(alerts: Iterable[Alert]) -> list[bytes]:
    """Alerts as they are published."""
    return [alert.record() for alert in alerts]
