"""The twin of a store and its oracle, with the same public events for both, and the comparison of their states."""

import json
import tempfile
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from tests.naive import NaivePageSet, NaiveQueueFile, NaiveStore, NaiveStructure
from tests.naive.estates import OnFacility, aliases_of, write_estate
from tests.naive.private_estates import Private, write_private_estate
from tests.naive.structure import Facility
from tests.support.workloads import Workload
from twin.alerts.episodes import Alert
from twin.base.units import as_text
from twin.estate import Estate, Structure, load_estate
from twin.events import Decoder, EventBlock
from twin.state.tables import TABLES, Tables
from twin.stores.message_store import MessageStore
from twin.stores.open import open_store

Event = dict[str, Any]

Config = Structure | Private


def estate_of(config: Config) -> Estate:
    """Return the estate of a store, its queues and its alias queues, read from its files."""
    write = write_private_estate if isinstance(config, Private) else write_estate
    with tempfile.TemporaryDirectory() as folder:
        return load_estate(write(Path(folder), config, aliases_of(config)))


class Decoding:
    """The pipeline of the public events of a store: NDJSON, decoder, blocks, twins.

    `foresees` is False in tests of states only: forecasts take nine tenths of the time of random workloads.
    """

    def __init__(self, config: Config, *, foresees: bool = True) -> None:
        self.estate = estate_of(config)
        self.name = config.name
        self.foresees = foresees
        self._decoder = Decoder(self.estate)

    def block(self, events: Iterable[Event]) -> tuple[EventBlock, list[Event]]:
        """Return the events in a block, and those of them that are not dead letters."""
        all_events = list(events)
        decoded = self._decoder.ndjson(["\n".join(json.dumps(event) for event in all_events).encode()])
        refused = {reject.index for reject in decoded.rejects}
        blocks = decoded.blocks(self.estate) or [EventBlock(self.name, decoded.events, {})]
        assert [block.store for block in blocks] == [self.name]
        return blocks[0], [event for index, event in enumerate(all_events) if index not in refused]

    def twin(self, *saved: Any) -> Any:
        """Return a new twin, or one restored from saved arrays, header and pages."""
        twin: Any = open_store(self.estate, self.name, *saved)
        twin.monitor.enabled = self.foresees
        return twin

    def oracle(self, workload: Workload) -> NaiveStore:
        """Return the oracle of a workload's store."""
        config = workload.config
        if isinstance(config, Private):
            kind: Any = {"page_set": NaivePageSet, "queue_file": NaiveQueueFile}[config.kind]
            private: NaiveStore = kind(config.attributes | {"version": config.version}, workload.aliases)
            private.queues = set(config.queues)
            if config.expiry_interval_s is not None:
                private.scan_interval_us = int(config.expiry_interval_s * 1_000_000)
            return private
        described = self.estate.stores[self.name]
        assert isinstance(described, Structure)
        if isinstance(config, OnFacility):
            shared = NaiveStructure(
                described, workload.aliases, Facility(config.facility_size, config.facility_scm or 0, config.others_scm)
            )
        else:
            shared = NaiveStructure(described, workload.aliases)
        shared.queues = set(config.queues)
        return shared


def cut(block: EventBlock, *places: int) -> list[EventBlock]:
    """Cut a block before the events at `places`, in any order and with repetitions."""
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


def oracle_record(oracle: NaiveStore) -> dict[str, Any]:
    """Return the fields of the state record that the oracle has, as a state record writes them."""
    state = oracle.state()
    deepest = sorted(state["queues"].items(), key=lambda entry: (-entry[1][0], entry[0]))[:10]
    return state | {
        "time": None if state["time"] is None else as_text(state["time"]),
        "queues": [{"name": name, "depth": depth, "bytes": size} for name, (depth, size) in deepest],
        **({"usage_pct": round(state["usage_pct"], 3)} if state.get("usage_pct") is not None else {}),
        "drift_pct": None if state["drift_pct"] is None else round(state["drift_pct"], 4),
    }


def assert_same(twin: MessageStore, oracle: NaiveStore) -> None:
    """Assert that all fields of the state record that the oracle has are equal; it has no measured facts of queues."""
    expected, actual = oracle_record(oracle), msgspec.json.decode(msgspec.json.encode(twin.state()))
    counted = (queue for queue in actual["queues"] if queue["bytes"] is not None)
    actual["queues"] = [{name: queue[name] for name in ("name", "depth", "bytes")} for queue in counted]
    different = {name: (value, actual[name]) for name, value in expected.items() if actual[name] != value}
    assert not different, f"oracle, twin: {different}"


def contents(tables: Tables) -> dict[str, bytes]:
    """Return the rows of every table, and the names."""
    return {name: getattr(tables.store, name).tobytes() for name in TABLES} | {"names": tables.names}


def header_of(twin: MessageStore) -> dict[str, Any]:
    """Return the header of a twin without the numbers of its journals, which depend on where batches end."""
    header: dict[str, Any] = msgspec.msgpack.decode(twin.header())
    del header["journals"]
    return header


def records(alerts: Iterable[Alert]) -> list[bytes]:
    """Return alerts as they are published."""
    return [alert.record() for alert in alerts]
