"""Where a worker finds the twin of a store at the beginning of a batch: as cheaply as is safe.

In the order of cost: *kept* in this process, *attached* to the mirror's files, *loaded* from the state store's pages,
or *new*. The token in the state store's header decides; the state store is the truth. Whatever goes wrong in a batch,
the twin that took part in it is dropped. So are those that were not used lately, where they are more than a process
should keep: partitions wander between workers, and in time each would keep every store.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from kernels._compile import CACHE_FOLDER
from streams.host.resources import max_kept_twins, memory_limit
from streams.plan import Loss
from streams.state.mirror import (
    NO_ROOM,
    AttachError,
    Mirror,
    block_directory,
    mirror_root,
    mirrors_of,
    remove_abandoned,
)
from twin.estate import Estate
from twin.state.arrays import Arrays, MemoryArrays
from twin.stores.open import Twin, open_store

Pages = Iterable[tuple[int, bytes]]
TOKEN_BYTES = 16
NEW, KEPT, ATTACHED, LOADED = "new", "kept", "attached", "loaded"
KEEP_VARIABLE = "MQTWIN_TEST_KEEP"  # for tests: how many twins a process keeps


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a process keeps at most of twins that are not in use.

    Args:
        twins: their number; each has one memory mapping.
        memory_bytes: arrays of twins in this process's own memory, where there was no room for the mirror.
    """

    twins: int
    memory_bytes: int

    @classmethod
    def of_process(cls) -> Bounds:
        """Return the bounds that the limits of this process leave room for."""
        chosen = os.environ.get(KEEP_VARIABLE)
        return cls(int(chosen) if chosen else max_kept_twins(), memory_limit() // 8)


@dataclass(frozen=True, slots=True)
class Saved:
    """What the state store has of a twin besides its pages."""

    token: bytes
    header: bytes


@dataclass(slots=True)
class Held:
    """A twin during a batch.

    Args:
        twin: of the store.
        found: new, kept, attached, loaded.
        token: of the batch, for the state store's header.
        arrays: where its arrays are.
    """

    twin: Twin
    found: str
    token: bytes
    arrays: Arrays

    @property
    def is_mirrored(self) -> bool:
        """True if the twin's arrays are where other workers find them; asked at the end of the batch."""
        return isinstance(self.arrays, Mirror) and self.arrays.sound


@dataclass(frozen=True, slots=True)
class _Kept:
    token: bytes
    twin: Twin
    arrays: Arrays
    memory_bytes: int  # of the arrays, in this process's own memory

    @property
    def mirror(self) -> Mirror | None:
        """The mirror that its arrays are in; None: they are in this process's memory."""
        return self.arrays if isinstance(self.arrays, Mirror) and self.arrays.sound else None


class Twins:
    """The twins of one query in this process.

    Args:
        estate: what exists.
        directory: where mirrors are; None: this process's memory only.
        loss: for tests, how often the caches are taken away.
        bounds: what is kept at most; None: what this process has room for.
    """

    def __init__(
        self, estate: Estate, directory: Path | None, loss: Loss | None = None, bounds: Bounds | None = None
    ) -> None:
        self._estate = estate
        self._directory = directory
        self._loss = loss or Loss()
        self._bounds = bounds or Bounds.of_process()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()  # the one used last stands last
        self._memory_bytes = 0  # of those kept

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
        claimed = self._claim(store)
        mirror = claimed
        try:
            held, mirror = self._open(store, saved, pages, claimed)
            yield held
            if mirror is not None:
                mirror.validate(held.token)
            self._keep(store, held)
        finally:
            for lock in (claimed, mirror):
                if lock is not None:
                    lock.release()

    def _open(
        self, store: str, saved: Saved | None, pages: Callable[[], Pages], claimed: Mirror | None
    ) -> tuple[Held, Mirror | None]:
        """The twin, and the mirror its arrays are in, if any. Whatever the mirror stood at, it does no longer."""
        token = os.urandom(TOKEN_BYTES)
        kept = self._drop(store)
        current = claimed is not None and saved is not None and claimed.token() == saved.token
        if claimed is not None:
            claimed.invalidate()
        if kept is not None and saved is not None and kept.token == saved.token and (kept.mirror is None or current):
            if kept.mirror is not None and claimed is not None:
                kept.mirror.reclaim(claimed)
            return Held(kept.twin, KEPT, token, kept.arrays), kept.mirror
        del kept  # its mapping goes before there is another one
        if current and saved is not None and claimed is not None:
            try:
                return Held(
                    open_store(self._estate, store, claimed, saved.header, None), ATTACHED, token, claimed
                ), claimed
            except AttachError:
                pass  # the state store has it all
        if claimed is not None:
            claimed.reset()
        arrays = claimed if claimed is not None else MemoryArrays()
        if saved is None:
            return Held(open_store(self._estate, store, arrays), NEW, token, arrays), claimed
        return Held(open_store(self._estate, store, arrays, saved.header, pages()), LOADED, token, arrays), claimed

    def _keep(self, store: str, held: Held) -> None:
        """Keep a twin for the next batch, and drop those used longest ago while they are more than the bounds allow."""
        kept = _Kept(held.token, held.twin, held.arrays, held.arrays.memory_bytes)
        self._kept[store] = kept
        self._memory_bytes += kept.memory_bytes
        bounds = self._bounds
        while len(self._kept) > 1 and (len(self._kept) > bounds.twins or self._memory_bytes > bounds.memory_bytes):
            self._drop(next(iter(self._kept)))

    def _drop(self, store: str) -> _Kept | None:
        """Keep a store's twin no longer; return it, where it was kept."""
        kept = self._kept.pop(store, None)
        if kept is not None:
            self._memory_bytes -= kept.memory_bytes
        return kept

    def _claim(self, store: str) -> Mirror | None:
        """The mirror of a store; None where another process works on it, or where there is no room for it."""
        if self._directory is None:
            return None
        try:
            return Mirror.claim(self._directory / quote(store, safe=""))
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            return None

    def _lose(self, store: str, batch: int) -> None:
        """For tests: take away what is kept in this process, or the mirror's token, or its files, or all of it."""
        if not self._loss.probability:
            return
        chance = random.Random(f"{self._loss.seed}/{store}/{batch}")  # noqa: S311 -- not a secret
        if chance.random() >= self._loss.probability:
            return
        what = chance.choice(("process", "token", "files", "all"))
        if what in ("process", "all"):
            self._drop(store)
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
        # Arrays that other kernels filled may mean something else: a new version of the program loads them.
        directory = mirrors_of(root, query, hashlib.sha256(f"{plan} {CACHE_FOLDER.name}".encode()).hexdigest())
        remove_abandoned(root, directory)
    except OSError:
        return None  # no scratch space: each worker keeps its arrays to itself, and reloads after another's turn
    return directory
