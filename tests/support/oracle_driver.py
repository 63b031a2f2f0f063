"""Oracles driven by public events in short form, for cases worked by hand."""

from typing import Any

from tests.kernels.beside import estate_of, oracle_record
from tests.naive.estates import aliases_of, structure
from tests.naive.page_set import NaivePageSet
from tests.naive.private_estates import page_set, queue_file
from tests.naive.queue_file import NaiveQueueFile
from tests.naive.scm_estates import with_scm
from tests.naive.store import NaiveStore
from tests.naive.structure import PLENTY, Facility, NaiveStructure
from tests.support.store_driver import State, StoreDriver
from twin.estate.model import Structure


class OracleDriver(StoreDriver):
    """The oracle of a structure, tiny by default. Its state records have the shape of the twin's."""

    oracle: NaiveStore

    def __init__(self, **fields: Any) -> None:
        self.open(structure(**fields))

    def open(self, config: Structure, facility: Facility = PLENTY) -> None:
        """Open the oracle of a structure, without events."""
        self.name = config.name
        described = estate_of(config).stores[config.name]  # with every data set
        assert isinstance(described, Structure)
        self.oracle = NaiveStructure(described, aliases_of(config), facility)

    def apply(self, event: dict[str, Any]) -> None:
        """Apply an event."""
        self.oracle.apply(event)

    def state(self) -> State:
        """Return the state record."""
        return oracle_record(self.oracle)

    def lengths_in_scm(self) -> list[int]:
        """Return the lengths in bytes of the messages in SCM, oldest first."""
        return [message.length for message in self.oracle.messages if message.in_scm]


class OracleScmDriver(OracleDriver):
    """A structure with SCM, by default of 38 entries and 232 elements.

    A message of 1 KB takes 6 elements. It is moved as a block of 4 KB, in 8.192 microseconds, or in 3.90625 ms at the
    slowest rate.
    """

    def __init__(self, **fields: Any) -> None:
        config = with_scm(**fields)
        self.open(config, Facility(config.facility_size, config.facility_scm or 0, config.others_scm))


class OraclePageSetDriver(OracleDriver):
    """A page set of 100 pages, 98 of them for messages, which by default does not expand."""

    def __init__(self, **fields: Any) -> None:
        config = page_set(**{"expand": "NONE", **fields})
        self.name = config.name
        self.oracle = NaivePageSet(config.attributes | {"version": config.version})
        if config.expiry_interval_s is not None:
            self.oracle.scan_interval_us = int(config.expiry_interval_s * 1_000_000)


class OracleQueueFileDriver(OracleDriver):
    """A queue file with buffers of 8 (nonpersistent) and 16 blocks (persistent) by default."""

    def __init__(self, **fields: Any) -> None:
        config = queue_file(**{"default_q_buffer_size": 8 * 512, "default_pq_buffer_size": 16 * 512, **fields})
        self.name = config.name
        self.oracle = NaiveQueueFile(config.attributes)
        if config.expiry_interval_s is not None:
            self.oracle.scan_interval_us = int(config.expiry_interval_s * 1_000_000)
