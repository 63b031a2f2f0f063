"""Opening the twin of a store, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterable

from twin import message_store, shared_header
from twin.arrays import Arrays, MemoryArrays
from twin.coupling_facility import CouplingFacilityTwin
from twin.estate import Estate
from twin.message_store import MessageStore
from twin.page_set import PageSetTwin
from twin.queue_file import QueueFileTwin
from twin.structure import StructureTwin
from twin.tables import StateError
from twin.uniform_cluster import UniformClusterTwin

SharedTwin = CouplingFacilityTwin | UniformClusterTwin
Twin = MessageStore | SharedTwin

_KINDS: dict[str, type[MessageStore]] = {twin.kind: twin for twin in (StructureTwin, PageSetTwin, QueueFileTwin)}
MESSAGE_KINDS = tuple(sorted(_KINDS))  # kinds of stores that hold messages

# The format of headers and pages: what another format wrote is not read.
STATE_FORMAT = f"{message_store.VERSION}.{shared_header.VERSION}"


def open_store(
    estate: Estate,
    name: str,
    arrays: Arrays | None = None,
    header: bytes | None = None,
    pages: Iterable[tuple[int, bytes]] | None = (),
) -> Twin:
    """The twin of store `name`: new where `header` is None, else as its header and pages left it.

    arrays: where its arrays live, plain memory by default. pages: (page number, bytes) of every page ever written; None
    where `arrays` already hold them and their indexes. Raises StateError where header and pages do not fit together.
    """
    kind = estate.stores[name].kind
    if kind == CouplingFacilityTwin.kind:
        return CouplingFacilityTwin(estate, name, header)
    if kind == UniformClusterTwin.kind:
        return UniformClusterTwin(estate, name, header)
    return open_message_store(estate, name, arrays, header, pages)


def open_message_store(
    estate: Estate,
    name: str,
    arrays: Arrays | None = None,
    header: bytes | None = None,
    pages: Iterable[tuple[int, bytes]] | None = (),
) -> MessageStore:
    """As `open_store`, of a store that holds messages. StateError for any other."""
    kind = estate.stores[name].kind
    if kind not in _KINDS:
        raise StateError(f"store {name} is a {kind}, which holds no messages; right: {', '.join(MESSAGE_KINDS)}")
    return _KINDS[kind](estate, name, arrays or MemoryArrays(), header, pages)
