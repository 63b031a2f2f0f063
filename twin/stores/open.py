"""Entry points that open the twin of a store of any kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import get_args

from twin.base.errors import UsageError
from twin.estate import Estate, StoreConfig, as_estate
from twin.estate.attributes import SECTIONS
from twin.estate.errors import known_hint
from twin.records.states import STATES
from twin.records.usage import RESOURCES
from twin.state.arrays import Arrays, MemoryArrays
from twin.state.tables import StateError
from twin.stores.coupling_facility import CouplingFacilityTwin
from twin.stores.kind import StoreKind
from twin.stores.measured_structure import MeasuredStructureTwin
from twin.stores.message_store import MessageStore
from twin.stores.page_set import PageSetTwin
from twin.stores.queue_file import QueueFileTwin, QueueManagerTwin
from twin.stores.shared_store import SharedStore
from twin.stores.structure import StructureTwin
from twin.stores.uniform_cluster import UniformClusterTwin

SharedTwin = CouplingFacilityTwin | UniformClusterTwin | QueueManagerTwin
Twin = MessageStore | SharedTwin

MESSAGE_TWINS: dict[str, type[MessageStore]] = {twin.kind: twin for twin in (StructureTwin, PageSetTwin, QueueFileTwin)}
MESSAGE_KINDS = tuple(sorted(MESSAGE_TWINS))  # kinds of stores that hold messages
SHARED_TWINS: dict[str, type[SharedTwin]] = {
    twin.kind: twin for twin in (CouplingFacilityTwin, UniformClusterTwin, QueueManagerTwin)
}


def check_kinds(configs: Iterable[type[StoreConfig]], twins: Mapping[str, type[Twin]]) -> None:
    """Raise TypeError for a kind of store that lacks a part. twins: by kind."""
    for config in configs:
        parts = {"a twin": twins, "a state record, in STATES": STATES, "a table of the estate, in SECTIONS": SECTIONS}
        lacking = [part for part, known in parts.items() if config.kind not in known]
        if not lacking:
            twin, hooks = twins[config.kind], [*SharedStore.__annotations__]
            if config.holds_messages:
                hooks = [name for name, text in StoreKind.__annotations__.items() if text.startswith("ClassVar")]
            lacking = [name for name in hooks if not hasattr(twin, name)]
            pools = set(getattr(twin, "resources", ())) - RESOURCES.keys()
            lacking += [f"words of {pool}, in RESOURCES" for pool in sorted(pools)]
        if lacking:
            raise TypeError(f"the kind {config.kind} lacks {lacking[0]}")


check_kinds(get_args(StoreConfig), {**MESSAGE_TWINS, **SHARED_TWINS})


def open_store(
    estate: Estate | str | Path,
    name: str,
    arrays: Arrays | None = None,
    header: bytes | None = None,
    pages: Iterable[tuple[int, bytes]] | None = (),
) -> Twin:
    """Open the twin of a store.

    Args:
        estate: the estate, or its file.
        name: name of the store.
        arrays: allocator of its arrays; plain memory by default.
        header: state that is not in pages; None opens a new twin.
        pages: (page number, bytes) of every page ever written; None where `arrays` already hold them and their indexes.

    Raises:
        StateError: header and pages do not fit together, or are of another format or kind.
        UsageError: the estate has no such store.
    """
    estate = as_estate(estate)
    if name not in estate.stores:
        raise UsageError(f"{name}: the estate has no such store{known_hint(name, estate.stores)}")
    kind = estate.stores[name].kind
    if kind in SHARED_TWINS:
        return SHARED_TWINS[kind](estate, name, header)
    return open_message_store(estate, name, arrays, header, pages)


def reopened(twin: Twin, estate: Estate) -> Twin:
    """Return the twin with which a job continues after its estate has changed, made from a copy of the state."""
    if isinstance(twin, MessageStore):
        return reopened_messages(twin, estate)
    return open_store(estate, twin.name, None, twin.header(), None)


def reopened_messages(twin: MessageStore, estate: Estate) -> MessageStore:
    """Return a twin of a store that holds messages as `reopened` does."""
    arrays, forecasts = twin.tables.copied_arrays(), twin.monitor.enabled
    return open_message_store(estate, twin.name, arrays, twin.header(), None, forecasts=forecasts)


def open_message_store(
    estate: Estate,
    name: str,
    arrays: Arrays | None = None,
    header: bytes | None = None,
    pages: Iterable[tuple[int, bytes]] | None = (),
    *,
    forecasts: bool = True,
) -> MessageStore:
    """Open the twin of a store that holds messages; arguments as of `open_store`. Without `forecasts` it simulates the
    real system: it keeps its meters and makes no forecasts. StateError, too, if the store holds no messages.
    """
    kind = estate.stores[name].kind
    if kind not in MESSAGE_TWINS:
        raise StateError(f"store {name} is a {kind}, which holds no messages; expected: {', '.join(MESSAGE_KINDS)}")
    config, twin = estate.stores[name], MESSAGE_TWINS[kind]
    if config.known_by_levels:
        twin = MeasuredStructureTwin
    return twin(estate, name, arrays or MemoryArrays(), header, pages, forecasts=forecasts)
