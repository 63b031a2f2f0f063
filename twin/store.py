"""Opening the twin of a store, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterable

from twin.arrays import Arrays, MemoryArrays
from twin.estate import Estate
from twin.message_store import MessageStore
from twin.structure import StructureTwin
from twin.tables import StateError

_KINDS: dict[str, type[MessageStore]] = {twin.kind: twin for twin in (StructureTwin,)}


def open_store(
    estate: Estate,
    name: str,
    arrays: Arrays | None = None,
    header: bytes | None = None,
    pages: Iterable[tuple[int, bytes]] | None = (),
) -> MessageStore:
    """The twin of store `name`: new where `header` is None, else as its header and pages left it.

    arrays: where its arrays live, plain memory by default. pages: (page number, bytes) of every page ever written; None
    where `arrays` already hold them and their indexes. Raises StateError where header and pages do not fit together.
    """
    kind = estate.stores[name].kind
    if kind not in _KINDS:
        raise StateError(f"store {name} is a {kind}, which has no twin; right: {', '.join(sorted(_KINDS))}")
    return _KINDS[kind](estate, name, arrays or MemoryArrays(), header, pages)
