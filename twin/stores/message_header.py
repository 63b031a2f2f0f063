"""The header of a store that holds messages: its state that is not in pages."""

from __future__ import annotations

from typing import Any

import msgspec

from twin.alerts.episodes import Episode
from twin.forecast.monitor import ForecastMemory
from twin.state.tables import StateError
from twin.stores.drift import Drift

VERSION = 11


class Format(msgspec.Struct, kw_only=True):
    """The fields of a header that every version has."""

    version: int
    kind: str


class Header(Format, kw_only=True):
    """The state of a twin that is not in pages."""

    rows: dict[str, int]
    names_size: int
    journals: dict[str, int]
    records: dict[str, bytes]
    described: dict[str, Any]  # attributes as the estate described them when the twin was last opened
    attributes: dict[str, Any]  # current attributes, after ALTER and REBUILD
    kind_state: dict[str, Any]  # see StoreKind._kind_state
    episodes: list[Episode]
    drift: Drift
    forecasts: ForecastMemory
    began: int | None = None  # see MessageStore
    counted: list[str] = []  # queues, see MessageStore
    is_counted: bool = False  # see MessageStore


def decode_header(content: bytes, kind: str, name: str) -> Header:
    """Return the header of a store.

    Args:
        content: msgpack.
        kind: expected kind of store.
        name: the store, for the error.

    Raises:
        StateError: it is of another kind, or of another version of the format.
    """
    written = msgspec.msgpack.decode(content, type=Format)
    if written.version != VERSION or written.kind != kind:
        raise StateError(
            f"state of {name} is of a {written.kind}, version {written.version}; "
            f"this program reads that of a {kind}, version {VERSION}: begin with a new checkpoint"
        )
    return msgspec.msgpack.decode(content, type=Header)
