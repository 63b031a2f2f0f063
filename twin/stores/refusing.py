"""Events at which a twin raises an error: each is refused alone, like one that cannot be decoded.

What raises has changed the twin half, so such events are found on a copy as it was before. Which are refused depends on
the events and their order only, as all that a twin does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np

from twin.alerts.episodes import Alert
from twin.base.units import as_text
from twin.estate import Estate
from twin.events import EventBlock, Reason
from twin.events.decoded import describe_failure, take_rows
from twin.events.fields import OPS
from twin.state.arrays import MemoryArrays
from twin.state.tables import StateError
from twin.stores.message_store import MessageStore
from twin.stores.open import SHARED_TWINS, open_message_store, reopened_messages

OF_THE_MACHINE = (MemoryError, OSError, StateError)  # no event is to blame for them
_MIN_BACKUP_BYTES = 1 << 15  # of events, before a copy of a twin is made again


def apply_block(twin: MessageStore, block: EventBlock) -> list[Alert]:
    """Apply a block to a twin and return the alerts; a replay may do it in its own way."""
    return twin.apply(block)


class Refused(NamedTuple):
    """An event that a twin refused: its row in the block, the code of the reason, and what was wrong."""

    row: int
    reason: Reason
    detail: str


def apply_others(
    twin: MessageStore,
    estate: Estate,
    block: EventBlock,
    apply: Callable[[MessageStore, EventBlock], list[Alert]] = apply_block,
) -> tuple[MessageStore, list[Alert], list[Refused]]:
    """Apply a block without the events at which the twin raises. Return the twin afterwards, which may be another one,
    the alerts, and the events that were refused.
    """
    alerts: list[Alert] = []
    refused: list[Refused] = []
    row, size, before = 0, len(block), None
    while row < len(block):
        before = before or reopened_messages(twin, estate)
        size = min(size, len(block) - row)
        try:
            alerts += apply(twin, rows_of(block, range(row, row + size)))
        except OF_THE_MACHINE:
            raise
        except Exception as error:  # noqa: BLE001 -- the letter names what no rule foresees
            twin, before = before, None
            if size == 1:
                refused.append(Refused(row, *describe_failure(error)))
                row += 1
            else:
                size //= 2
        else:
            row, size, before = row + size, 2 * size, None
    return twin, alerts, refused


def refused_at_once(estate: Estate, block: EventBlock) -> list[Refused]:
    """Return the events of a block whose content a shared store cannot take; none for other stores.

    A shared store takes them at a later tick, when nobody knows their record any more: so each is tried on an empty
    twin before the block is applied.
    """
    refused: list[Refused] = []
    config = estate.stores[block.store]
    if not block.extras or config.holds_messages:
        return refused
    for row in sorted(block.extras):
        twin = SHARED_TWINS[config.kind](estate, block.store)
        try:
            twin.try_event(block, row)
        except OF_THE_MACHINE:
            raise
        except Exception as error:  # noqa: BLE001 -- the letter names what no rule foresees
            refused.append(Refused(row, *describe_failure(error)))
    return refused


def rows_of(block: EventBlock, rows: range) -> EventBlock:
    """Return consecutive rows of a block."""
    extras = {row - rows.start: text for row, text in block.extras.items() if row in rows}
    return EventBlock(block.store, block.events[rows.start : rows.stop], extras)


def without(block: EventBlock, refused: Collection[Refused]) -> EventBlock:
    """Return a block without refused events."""
    if not refused:
        return block
    others = np.delete(np.arange(len(block)), [event.row for event in refused])
    place = {row: number for number, row in enumerate(others.tolist())}
    extras = {place[row]: text for row, text in block.extras.items() if row in place}
    return EventBlock(block.store, take_rows(block.events, others), extras)


def event_text(block: EventBlock, row: int, estate: Estate) -> bytes:
    """Return an event of a block as JSON, for its dead letter. Ids are not known any more."""
    event = block.events[row]
    route, op = estate.routes[int(event["route"])], OPS[int(event["op"])]
    fields: dict[str, Any] = {"time": as_text(int(event["time"])), "qmgr": route.qmgr, "op": op}
    fields |= {"queue": route.reported} if route.reported is not None else {"store": block.store}
    fields |= {name: int(event[name]) for name in ("seq", "count", "length", "reason") if int(event[name]) > 0}
    if row in block.extras:
        name = {"MEASURE": "measured", "HEARTBEAT": "measured", "PLAN": "plan"}.get(op, "attributes")
        fields[name] = msgspec.Raw(block.extras[row])
    return msgspec.json.encode(fields)


@dataclass(slots=True)
class Backup:
    """Backup of a twin in memory: a copy of its state, and the blocks since, which together take twice its memory.

    The copy is made again once the blocks are as large as it: so it costs no more than reading the events.
    """

    header: bytes | None = None  # its state that is not in arrays; None: the twin was new
    arrays: MemoryArrays | None = None  # copy of its arrays
    blocks: list[EventBlock] = field(default_factory=list)  # those since
    _bytes: int = 0

    def note(self, twin: MessageStore, block: EventBlock) -> None:
        """Note a block just before the twin applies it."""
        if self._bytes > max(_MIN_BACKUP_BYTES, self.arrays.memory_bytes if self.arrays is not None else 0):
            self.renew(twin)
        base = block.events.base  # which a view keeps in memory
        is_whole = base is None or base.nbytes <= 2 * block.events.nbytes
        events = block.events if is_whole else block.events.copy()
        self.blocks.append(EventBlock(block.store, events, block.extras))
        self._bytes += block.events.nbytes + sum(map(len, block.extras.values()))

    def renew(self, twin: MessageStore) -> None:
        """Copy the state of the twin as it is."""
        self.header, self.arrays = twin.header(), twin.tables.copied_arrays()
        self.blocks, self._bytes = [], 0

    def restored(self, twin: MessageStore, apply: Callable[[MessageStore, EventBlock], object]) -> MessageStore:
        """Return a twin as it was before the last block."""
        arrays = self.arrays.copied() if self.arrays is not None else None
        forecasts = twin.monitor.enabled
        restored = open_message_store(twin.estate, twin.name, arrays, self.header, None, forecasts=forecasts)
        for block in self.blocks[:-1]:
            apply(restored, block)
        restored.drain_reports()
        restored.drain_forecasts()
        return restored
