"""Twins driven by public events in short form, for cases worked by hand."""

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from kernels import EVENT, FLAG_HAS_MSGID, OPS
from kernels.layout import MARK_IN_SCM
from tests.kernels.beside import Config, Decoding
from tests.naive.estates import structure
from tests.naive.private_estates import page_set, queue_file
from tests.naive.scm_estates import with_scm
from tests.support.store_driver import State, StoreDriver
from tests.support.workloads import START_US
from twin.alerts.episodes import Alert


class TwinDriver(StoreDriver):
    """The twin of a structure, tiny by default, and all its alerts."""

    def __init__(self, **fields: Any) -> None:
        self.open(structure(**fields))

    def open(self, config: Config) -> None:
        """Open the twin of a store, without events."""
        self.decoding = Decoding(config)
        self.name = self.decoding.name
        self.twin = self.decoding.twin()
        self.alerts: list[Alert] = []
        self.pages: dict[int, bytes] = {}

    def apply(self, event: dict[str, Any]) -> None:
        """Apply an event, which must be no dead letter, and keep its alerts."""
        block, accepted = self.decoding.block([event])
        assert accepted, f"a dead letter: {event}"
        self.alerts += self.twin.apply(block)

    def state(self) -> State:
        """Return the state record as a reader of the topic has it."""
        return msgspec.json.decode(msgspec.json.encode(self.twin.state()))

    def lengths_in_scm(self) -> list[int]:
        """Return the lengths in bytes of the messages in SCM, oldest first."""
        messages = self.twin.tables.store.messages
        inside = messages[messages["marks"] & MARK_IN_SCM != 0]
        return [int(length) for length in inside["length"][np.argsort(inside["age"])]]

    def alert_changes(self) -> list[tuple[str, str, str]]:
        """Return (change, condition, resource) of the alerts so far."""
        return [(alert.change, alert.condition, alert.resource) for alert in self.alerts]

    def reopen(self, arrays: Any = None) -> "TwinDriver":
        """Open the twin again from its header and the pages it has written, as after a restart."""
        self.pages |= dict(self.twin.dirty_pages())
        self.twin = self.decoding.twin(arrays, self.twin.header(), self.pages.items())
        return self


class ScmDriver(TwinDriver):
    """A structure with SCM, alone on its coupling facility, by default of 38 entries and 232 elements."""

    def __init__(self, **fields: Any) -> None:
        self.open(with_scm(**fields))


class PageSetDriver(TwinDriver):
    """A page set of 100 pages, 98 of them for messages, which by default does not expand."""

    def __init__(self, **fields: Any) -> None:
        self.open(page_set(**{"expand": "NONE", **fields}))


class QueueFileDriver(TwinDriver):
    """A queue file with buffers of 8 (nonpersistent) and 16 blocks (persistent) by default."""

    def __init__(self, **fields: Any) -> None:
        self.open(queue_file(**{"default_q_buffer_size": 8 * 512, "default_pq_buffer_size": 16 * 512, **fields}))


def demands(route: int, lengths: Iterable[int], op: str = "PUT", keys: Iterable[int] | None = None) -> np.ndarray:
    """Return EVENT[n]: puts or gets at the same time, with `keys` as message ids or without ids."""
    sizes = np.fromiter(lengths, np.int32)
    events = np.zeros(sizes.size, EVENT)
    events["time"], events["seq"], events["count"] = START_US, -1, 1
    events["route"], events["length"], events["op"] = route, sizes, OPS.index(op)
    if keys is not None:
        events["msgid"], events["flags"] = np.fromiter(keys, np.uint64), FLAG_HAS_MSGID
    return events
