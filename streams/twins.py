"""Where a worker finds the twin of a store at the beginning of a batch: as cheaply as is safe.

In the order of cost: *kept* in this process, *attached* to the mirror's files, *loaded* from the state store's pages,
or *new*. The token in the state store's header decides; the state store is the truth. Whatever goes wrong in a batch,
the twin that took part in it is dropped.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from streams.mirror import Mirror, block_directory, mirror_root, mirrors_of, remove_abandoned
from streams.plan import Loss
from twin.arrays import MemoryArrays
from twin.estate import Estate
from twin.store import Twin, open_store

Pages = Iterable[tuple[int, bytes]]
TOKEN_BYTES = 16
NEW, KEPT, ATTACHED, LOADED = "new", "kept", "attached", "loaded"


@dataclass(frozen=True, slots=True)
class Saved:
    """What the state store has of a twin besides its pages."""

    token: bytes
    header: bytes


@dataclass(slots=True)
class Held:
    """A twin during a batch. found: new, kept, attached, loaded; token: of the batch, for the state store's header."""

    twin: Twin
    found: str
    token: bytes


@dataclass(frozen=True, slots=True)
class _Kept:
    token: bytes
    twin: Twin
    mirror: Mirror | None  # None: its arrays are in this process's memory


class Twins:
    """The twins of one query in this process.

    Args:
        estate: what exists.
        directory: where mirrors are; None: this process's memory only.
        loss: for tests, how often the caches are taken away.
    """

    def __init__(self, estate: Estate, directory: Path | None, loss: Loss | None = None) -> None:
        self._estate = estate
        self._directory = directory
        self._loss = loss or Loss()
        self._kept: dict[str, _Kept] = {}

    @contextmanager
    def hold(self, store: str, batch: int, saved: Saved | None, pages: Callable[[], Pages]) -> Iterator[Held]:
        """The twin of a store, for one batch.

        The body applies the batch's events and writes pages and header, with `Held.token`, to the state store. When it
        ends without an error the caches are taken to stand at that token, otherwise the twin is dropped.

        Args:
            store: its name.
            batch: number of the batch; only `loss` looks at it.
            saved: what the state store has; None where it has nothing of this store.
            pages: reads all pages of the state store; called only where no cache is current.
        """
        self._lose(store, batch)
        kept = self._kept.pop(store, None)
        claimed = self._claim(store)
        mirror = claimed
        try:
            held, mirror = self._open(store, saved, pages, claimed, kept)
            yield held
            if mirror is not None:
                mirror.validate(held.token)
            self._kept[store] = _Kept(held.token, held.twin, mirror if mirror is not None and mirror.sound else None)
        finally:
            for lock in (claimed, mirror):
                if lock is not None:
                    lock.release()

    def _open(
        self, store: str, saved: Saved | None, pages: Callable[[], Pages], claimed: Mirror | None, kept: _Kept | None
    ) -> tuple[Held, Mirror | None]:
        """The twin, and the mirror its arrays are in, if any. Whatever the mirror stood at, it does no longer."""
        token = os.urandom(TOKEN_BYTES)
        current = claimed is not None and saved is not None and claimed.token() == saved.token
        if claimed is not None:
            claimed.invalidate()
        if kept is not None and saved is not None and kept.token == saved.token and (kept.mirror is None or current):
            if kept.mirror is not None and claimed is not None:
                kept.mirror.reclaim(claimed)
            return Held(kept.twin, KEPT, token), kept.mirror
        if current and saved is not None:
            return Held(open_store(self._estate, store, claimed, saved.header, None), ATTACHED, token), claimed
        if claimed is not None:
            claimed.reset()
        arrays = claimed if claimed is not None else MemoryArrays()
        if saved is None:
            return Held(open_store(self._estate, store, arrays), NEW, token), claimed
        return Held(open_store(self._estate, store, arrays, saved.header, pages()), LOADED, token), claimed

    def _claim(self, store: str) -> Mirror | None:
        """The mirror of a store; None where another process works on it, or where there can be none."""
        if self._directory is None:
            return None
        return Mirror.claim(self._directory / quote(store, safe=""))

    def _lose(self, store: str, batch: int) -> None:
        """For tests: take away what is kept in this process, or the mirror's token, or its files, or all of it."""
        if not self._loss.probability:
            return
        chance = random.Random(f"{self._loss.seed}/{store}/{batch}")  # noqa: S311 -- not a secret
        if chance.random() >= self._loss.probability:
            return
        what = chance.choice(("process", "token", "files", "all"))
        if what in ("process", "all"):
            self._kept.pop(store, None)
        mirror = self._claim(store) if what != "process" else None
        if mirror is not None:
            mirror.invalidate()
            if what != "token":
                mirror.reset()
            mirror.release()


def query_directory(query: str, plan: str) -> Path | None:
    """The directory of a query's mirrors on this host, abandoned ones removed; None where there can be none."""
    try:
        root = mirror_root(block_directory())
        directory = mirrors_of(root, query, plan)
        remove_abandoned(root, directory)
    except OSError:
        return None  # no scratch space: each worker keeps its arrays to itself, and reloads after another's turn
    return directory
