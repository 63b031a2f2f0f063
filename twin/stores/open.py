"""Opening the twin of a store, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterable

from twin.estate import Estate
from twin.state.arrays import Arrays, MemoryArrays
from twin.state.tables import StateError
from twin.stores import message_store, shared_header
from twin.stores.coupling_facility import CouplingFacilityTwin
from twin.stores.message_store import MessageStore
from twin.stores.page_set import PageSetTwin
from twin.stores.queue_file import QueueFileTwin
from twin.stores.structure import StructureTwin
from twin.stores.uniform_cluster import UniformClusterTwin

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
    *,
    forecasts: bool = True,
) -> MessageStore:
    """Open the twin of a store that holds messages, as `open_store` does. StateError for any other.

    forecasts: False where the twin stands in for the real system, as a simulation does: it only keeps its meters.
    """
    kind = estate.stores[name].kind
    if kind not in _KINDS:
        raise StateError(f"store {name} is a {kind}, which holds no messages; right: {', '.join(MESSAGE_KINDS)}")
    return _KINDS[kind](estate, name, arrays or MemoryArrays(), header, pages, forecasts=forecasts)
