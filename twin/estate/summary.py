"""Summary of an estate, one row per store, for `mqtwin estate check`."""

from __future__ import annotations

from dataclasses import dataclass

from twin.estate.model import CouplingFacility, PageSet, QueueFile, StoreConfig, Structure
from twin.estate.routes import Estate
from twin.units import KIB, format_size

HEADINGS = ("store", "kind", "size", "queue managers", "queues", "details")


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """Row of one store, ready to print; its fields are in the order of `HEADINGS`."""

    store: str
    kind: str
    size: str
    queue_managers: str
    queues: int
    details: str


def summary(estate: Estate) -> list[SummaryRow]:
    """Return one row per store, sorted by name."""
    return [
        SummaryRow(
            store=store.name,
            kind=store.kind.replace("_", " "),
            size=_size(store),
            queue_managers=", ".join(store.queue_managers),
            queues=1 if isinstance(store, QueueFile) else len(getattr(store, "queues", ())),
            details=_details(store),
        )
        for store in estate.stores.values()
    ]


def _size(store: StoreConfig) -> str:
    if isinstance(store, PageSet):
        return format_size(store.pages * 4 * KIB)
    size = store.limit if isinstance(store, QueueFile) else getattr(store, "size", None)
    return "" if size is None else format_size(size)


def _details(store: StoreConfig) -> str:
    if isinstance(store, Structure):
        return _structure(store)
    if isinstance(store, PageSet):
        return _page_set(store)
    if isinstance(store, QueueFile):
        return _queue_file(store)
    if isinstance(store, CouplingFacility):
        scm = f"SCM {format_size(store.scm)}" if store.scm else "no SCM"
        return f"{scm}, {len(store.structures)} structures"
    return f"{store.messages_per_second:g} messages/s per member"


def _structure(store: Structure) -> str:
    parts = [f"CFLEVEL({store.cf_level})"]
    if store.offload == "NONE":
        parts.append("no offload rules")
    else:
        rules = " ".join("off" if rule.off else f"{rule.th}%/{format_size(rule.sz)}" for rule in store.rules)
        parts.append(f"OFFLOAD({store.offload}) {rules}")
    if store.init_size is not None and store.init_size != store.size:
        parts.append(f"INITSIZE {format_size(store.init_size)}")
    if store.scm_max_size is not None:
        parts.append(f"SCM {format_size(store.scm_max_size)}")
    if store.coupling_facility is not None:
        parts.append(f"on {store.coupling_facility}")
    return ", ".join(parts)


def _page_set(store: PageSet) -> str:
    expand = f"EXPAND({store.expand})"
    if store.expand == "USER" and store.secondary_pages:
        expand += f" by {format_size(store.secondary_pages * 4 * KIB)}"
    if store.max_pages is not None and store.expand != "NONE":
        expand += f" up to {format_size(store.max_pages * 4 * KIB)}"
    packed = ", short messages share pages" if store.packs else ""
    return f"{expand}, buffer pool {store.buffer_pool}{packed}"


def _queue_file(store: QueueFile) -> str:
    buffers = f"{format_size(store.default_q_buffer_size)} and {format_size(store.default_pq_buffer_size)}"
    return f"MAXFSIZE {format_size(store.max_size)}, buffers {buffers}"
