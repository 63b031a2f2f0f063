"""An estate as bytes that another process, and a later version, reads again: what a job applied to which events.

The text is that of the estate as checked, not of its files, which others may change; it holds no code, unlike a pickle.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any, get_args

import msgspec

from twin.estate.model import QueueManager, StoreConfig
from twin.estate.past_rises import History
from twin.estate.routes import Estate, Route

_KINDS: dict[str, type[StoreConfig]] = {kind.kind: kind for kind in get_args(StoreConfig)}
_MAX_BYTES = 256 << 20  # of the text: an estate of 100,000 queues has 30 MB


class _Text(msgspec.Struct, frozen=True, kw_only=True):
    """The text. stores: kind and attributes by name."""

    stores: dict[str, tuple[str, Any]]
    queue_managers: dict[str, QueueManager]
    routes: tuple[Route, ...]
    max_depths: dict[str, dict[str, int]]
    hosts: dict[str, float]
    history: History


class SavedEstateError(ValueError):
    """Bytes that are no saved estate; the message is the problem."""


def save_estate(estate: Estate) -> tuple[str, bytes]:
    """Return (digest, bytes) of an estate. Two that treat every event alike have one digest, wherever their files are.

    Its warnings and the name of its file are left out.
    """
    text = _Text(
        stores={name: (store.kind, msgspec.to_builtins(store)) for name, store in estate.stores.items()},
        queue_managers=dict(estate.queue_managers),
        routes=estate.routes,
        max_depths={store: dict(depths) for store, depths in estate.max_depths.items()},
        hosts=dict(estate.hosts),
        history=estate.history,
    )
    encoded = msgspec.json.encode(text)
    return hashlib.sha256(encoded).hexdigest(), zlib.compress(encoded)


def read_saved_estate(data: bytes, source: str) -> Estate:
    """Return a saved estate. source: what names it. SavedEstateError: it is none, or of another version."""
    try:
        unpacked = zlib.decompressobj().decompress(data, _MAX_BYTES)
        text = msgspec.json.decode(unpacked, type=_Text)
        stores = {name: msgspec.convert(own, _KINDS[kind]) for name, (kind, own) in text.stores.items()}
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError) as error:
        raise SavedEstateError(f"{source}: no estate that this version reads ({error})") from None
    return Estate(
        source=source,
        stores=stores,
        queue_managers=text.queue_managers,
        routes=text.routes,
        max_depths=text.max_depths,
        hosts=text.hosts,
        history=text.history,
    )
