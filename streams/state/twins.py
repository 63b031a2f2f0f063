"""The twins of a worker: cached between batches, and checked out for one batch at the lowest safe cost.

In the order of cost a twin is cached in this process, mapped from the mirror's file, or reloaded from the state store's
pages; the token in the state store's header decides which is current (docs/architecture.md, The cache). A twin is
dropped if its batch fails. Beyond the bounds of a process the least recently used ones are dropped too: partitions move
between workers, and each worker would end up with every store.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
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
    mirror_directory,
    mirror_root,
    remove_abandoned,
)
from twin.estate import Estate
from twin.state.arrays import Arrays, MemoryArrays
from twin.stores.open import Twin, open_store

Pages = Iterable[tuple[int, bytes]]
TOKEN_BYTES = 16
KEEP_VARIABLE = "MQTWIN_TEST_KEEP"  # for tests: number of twins that a process caches


class TwinSource(Enum):
    """Origin of the twin of a batch. Its value is the key of the batch's figure in the log."""

    NEW = "new"  # the state store has nothing of the store
    CACHED = "kept"  # in this process since an earlier batch
    MAPPED = "attached"  # from the mirror's file
    RELOADED = "loaded"  # from the state store's pages


@dataclass(frozen=True, slots=True)
class Bounds:
    """Upper bounds of the cached twins of a process. memory_bytes: bound of arrays without a mirror."""

    twins: int
    memory_bytes: int

    @classmethod
    def of_process(cls) -> Bounds:
        """Return the bounds that the limits of this process allow."""
        twins = os.environ.get(KEEP_VARIABLE)
        return cls(int(twins) if twins else max_kept_twins(), memory_limit() // 8)


@dataclass(frozen=True, slots=True)
class SavedState:
    """The state of a twin in the state store, without its pages. token: token of the last committed batch."""

    token: bytes
    header: bytes


@dataclass(slots=True)
class TwinLease:
    """A twin checked out for one batch."""

    twin: Twin
    source: TwinSource
    token: bytes
    arrays: Arrays

    @property
    def is_mirrored(self) -> bool:
        """True if other workers find the twin's arrays in the mirror; valid at the end of the batch."""
        return isinstance(self.arrays, Mirror) and self.arrays.is_shared


@dataclass(frozen=True, slots=True)
class _CachedTwin:
    token: bytes
    twin: Twin
    arrays: Arrays
    memory_bytes: int  # of arrays in this process's own memory

    @property
    def mirror(self) -> Mirror | None:
        """The mirror of its arrays; None if they are in this process's own memory."""
        return self.arrays if isinstance(self.arrays, Mirror) and self.arrays.is_shared else None


class Twins:
    """The twins of one query in this process. directory: None: arrays are in memory only; loss: for tests."""

    def __init__(
        self, estate: Estate, directory: Path | None, loss: Loss | None = None, bounds: Bounds | None = None
    ) -> None:
        self._estate, self._directory = estate, directory
        self._loss = loss or Loss()
        self._bounds = bounds or Bounds.of_process()
        self._cache: OrderedDict[str, _CachedTwin] = OrderedDict()  # by store, the last used at the end
        self._memory_bytes = 0  # of the cached twins

    @contextmanager
    def lease(
        self, store: str, batch: int, saved_state: SavedState | None, pages: Callable[[], Pages]
    ) -> Iterator[TwinLease]:
        """Check out the twin of a store for one batch.

        The body applies the batch's events and writes pages and header, with the token of the lease, to the state
        store. If it ends without an error the caches get that token, otherwise the twin is dropped. Pages are read only
        if no cache is current.
        """
        self._lose_caches(store, batch)
        claimed = self._claim(store)
        mirror = claimed
        try:
            lease, mirror = self._open(store, saved_state, pages, claimed)
            yield lease
            if mirror is not None:
                mirror.validate(lease.token)
            self._keep(store, lease)
        finally:
            for lock in (claimed, mirror):
                if lock is not None:
                    lock.release()

    def _open(
        self, store: str, saved_state: SavedState | None, pages: Callable[[], Pages], claimed: Mirror | None
    ) -> tuple[TwinLease, Mirror | None]:
        """Open the twin from the first current source, and invalidate the mirror.

        Returns:
            The lease, and the mirror that holds the lock, if any.
        """
        token = os.urandom(TOKEN_BYTES)
        cached = self._drop(store)
        is_current = claimed is not None and saved_state is not None and claimed.token() == saved_state.token
        if claimed is not None:
            claimed.invalidate()
        if (
            cached is not None
            and saved_state is not None
            and cached.token == saved_state.token
            and (cached.mirror is None or is_current)
        ):
            if cached.mirror is not None and claimed is not None:
                cached.mirror.reclaim(claimed)
            return TwinLease(cached.twin, TwinSource.CACHED, token, cached.arrays), cached.mirror
        del cached  # ends its mapping before there is another one
        if is_current and saved_state is not None and claimed is not None:
            try:
                twin = open_store(self._estate, store, claimed, saved_state.header, None)
            except AttachError:
                pass  # reload from the state store
            else:
                return TwinLease(twin, TwinSource.MAPPED, token, claimed), claimed
        if claimed is not None:
            claimed.reset()
        arrays = claimed if claimed is not None else MemoryArrays()
        if saved_state is None:
            return TwinLease(open_store(self._estate, store, arrays), TwinSource.NEW, token, arrays), claimed
        twin = open_store(self._estate, store, arrays, saved_state.header, pages())
        return TwinLease(twin, TwinSource.RELOADED, token, arrays), claimed

    def _keep(self, store: str, lease: TwinLease) -> None:
        """Cache a twin for the next batch, and drop the least recently used ones beyond the bounds."""
        cached = _CachedTwin(lease.token, lease.twin, lease.arrays, lease.arrays.memory_bytes)
        self._cache[store] = cached
        self._memory_bytes += cached.memory_bytes
        bounds = self._bounds
        while len(self._cache) > 1 and (len(self._cache) > bounds.twins or self._memory_bytes > bounds.memory_bytes):
            self._drop(next(iter(self._cache)))

    def _drop(self, store: str) -> _CachedTwin | None:
        cached = self._cache.pop(store, None)
        if cached is not None:
            self._memory_bytes -= cached.memory_bytes
        return cached

    def _claim(self, store: str) -> Mirror | None:
        """Lock and return the mirror of a store; None if another process uses it, or there is no room for it."""
        if self._directory is None:
            return None
        try:
            return Mirror.claim(_mirror_path(self._directory, store))
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            return None

    def _lose_caches(self, store: str, batch: int) -> None:
        """Lose, for tests, the cached twin, the mirror's token, its file, or all of them."""
        if not self._loss.probability:
            return
        chance = random.Random(f"{self._loss.seed}/{store}/{batch}")  # noqa: S311 -- not a secret
        if chance.random() >= self._loss.probability:
            return
        lost_cache = chance.choice(("process", "token", "files", "all"))
        if lost_cache in ("process", "all"):
            self._drop(store)
        mirror = self._claim(store) if lost_cache != "process" else None
        if mirror is not None:
            mirror.invalidate()
            if lost_cache != "token":
                mirror.reset()
            mirror.release()


@lru_cache(maxsize=1 << 14)
def _mirror_path(directory: Path, store: str) -> Path:
    return directory / quote(store, safe="")


def query_directory(query: str, plan: str) -> Path | None:
    """Return the directory of a query's mirrors on this host and remove abandoned ones; None if there is no room."""
    try:
        root = mirror_root(block_directory())
        # Other kernels may give the same arrays another meaning, so their version is part of the digest.
        directory = mirror_directory(root, query, hashlib.sha256(f"{plan} {CACHE_FOLDER.name}".encode()).hexdigest())
        remove_abandoned(root, directory)
    except OSError:
        return None  # without scratch space a worker reloads a store that another worker had last
    return directory
