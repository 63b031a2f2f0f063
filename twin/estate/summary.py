"""Summary of an estate, one row per store, for `mqtwin estate check`."""

from __future__ import annotations

from dataclasses import dataclass

from twin.estate.routes import Estate
from twin.units import format_size

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
            size="" if store.total_bytes is None else format_size(store.total_bytes),
            queue_managers=", ".join(store.queue_managers),
            queues=len(store.queues),
            details=store.details,
        )
        for store in estate.stores.values()
    ]
