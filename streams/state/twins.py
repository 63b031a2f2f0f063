"""The twins of a worker: cached between batches, checked out for one, and saved in Spark's state store.

- In the order of cost a twin is cached in this process, mapped from the mirror's file, or reloaded from the state
  store's pages; the token in the state store's header decides which is current (docs/architecture.md, The cache). A
  twin is dropped if its batch fails. Beyond the bounds of a process the least recently used ones are dropped too:
  partitions move between workers, and each worker would end up with every store.
- Of each store the state store holds its header, and a map from page number to bytes.
"""

from __future__ import annotations

import hashlib
import os
import random
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from kernels._compile import CACHE_FOLDER
from streams import seams
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


# --- state of stores in Spark's state store ---------------------------------------------------------------------------
# PySpark waits for the JVM's answer to each call: the key of the rows, the header, each page, the header again. The JVM
# answers requests in their order, so what only says "done" can be read later. Here `MAX_STORES` stores cost one wait,
# for their headers: the requests for them go out together, and the answers to writes are read with those of the next
# stores. This needs private names of PySpark. They are looked up once; if one is missing, all goes through the public
# interface.

PAGES, HEADER = "pages", "header"  # names of the state variables
KEY = StructType([StructField("page", LongType(), False)])
VALUE = StructType([StructField("data", BinaryType(), False)])
HEADER_TYPE = StructType([StructField("token", BinaryType(), False), StructField("header", BinaryType(), False)])
MAX_STORES = 32  # whose headers are asked for together: the requests, 4 KB, must fit into a socket's buffer
MAX_PENDING_REQUESTS = 64  # their answers, about 10 bytes each, must fit into a socket's buffer
MAX_PENDING_BYTES = 1024 * 1024
PROTOCOL_VERSION = 0
_FRAME_HEAD = struct.Struct("!ii")  # protocol version, bytes of the request


class StoreState:
    """State of the stores of a task, one at a time: see `select`. Created in the processor's `init`, for one task."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._set_key = _key_setter(handle)
        self._pages = handle.getMapState(PAGES, KEY, VALUE)
        self._header = handle.getValueState(HEADER, HEADER_TYPE)
        self._pipeline = _open_pipeline(handle)

    def select(self, store: str) -> None:
        """Make a store the one whose state is read and written. It must be of this task's partition."""
        self._set_key(store)

    def saved(self, stores: Sequence[str]) -> list[SavedState | None]:
        """Return token and header of each of at most `MAX_STORES` stores as last written; None: there is none yet.
        PySparkRuntimeError: the state store refused this, or what was written before.
        """
        if self._pipeline is not None:
            rows = self._pipeline.get_values(HEADER, [(store,) for store in stores])
        else:
            rows = [self._saved_row(store) for store in stores]
        return [SavedState(bytes(row[0]), bytes(row[1])) if row is not None else None for row in rows]

    def _saved_row(self, store: str) -> Any:
        self.select(store)
        return self._header.get()

    def pages(self) -> Iterator[tuple[int, bytes]]:
        """Yield all pages of the key, in no order: (page number, bytes)."""
        for (number,), (data,) in self._pages.iterator():
            yield int(number), bytes(data)

    def write_pages(self, pages: Iterable[tuple[int, bytes]]) -> tuple[int, int]:
        """Write pages, and return their number and total size in bytes. PySparkRuntimeError: the state store refused a
        page, of this key or of one before.
        """
        if seams.ACTIVE is not None:
            seams.ACTIVE.reach(seams.WRITING)
        count = size = 0
        for number, data in pages:
            if self._pipeline is None:
                self._pages.updateValue((number,), (data,))
            else:
                self._pipeline.put_in_map(PAGES, (number,), (data,))
            count, size = count + 1, size + len(data)
        return count, size

    def write_header(self, token: bytes, header: bytes) -> None:
        """Write token and header, after the pages: making these changes what the header says of journals.
        PySparkRuntimeError: the state store refused this, or what was written before.
        """
        if self._pipeline is None:
            self._header.update((token, header))
        else:
            self._pipeline.put_value(HEADER, (token, header))


def _key_setter(handle: Any) -> Callable[[str], None]:
    """Return the function that sets the key of a task's state; a private one of PySpark, but for that of its tester."""
    client = getattr(handle, "_statefulProcessorApiClient", None)
    return (lambda store: client.set_implicit_key((store,))) if client is not None else handle.setGroupingKey


def _open_pipeline(handle: StatefulProcessorHandle) -> _Pipeline | None:
    """Return the pipeline to the JVM's state server; None if this version of PySpark has another client."""
    client = getattr(handle, "_statefulProcessorApiClient", None)
    names = ("sockfile", "pickleSer", "set_implicit_key", "_send_proto_message", "_receive_proto_message")
    return _Pipeline(client) if all(hasattr(client, name) for name in names) else None


class _Pipeline:
    """Requests to the JVM's state server, whose answers are read when one is waited for.

    It takes two calls of PySpark's client over: the one that sets the key is not waited for, and before any other
    request the answers that are due are read, so that each reader finds its own.
    """

    def __init__(self, client: Any) -> None:
        import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

        self._messages, self._client = messages, client
        self._file = client.sockfile
        self._dumps = client.pickleSer.dumps
        self._unanswered = self._pending_bytes = 0
        self._send_own = client._send_proto_message  # noqa: SLF001 -- see the module's docstring
        client._send_proto_message = self._send_alone  # noqa: SLF001
        client.set_implicit_key = self._set_key

    def get_values(self, name: str, keys: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return the row of a value state for each key; None if it has none."""
        self._settle()
        get = self._messages.ValueStateCall(stateName=name, get=self._messages.Get())
        request = self._of_variable(valueStateCall=get)
        for key in keys:
            self._write(self._of_key(key))
            self._write(request)
        self._file.flush()
        answers = [self._client._receive_proto_message() for _ in range(2 * len(keys))]  # noqa: SLF001
        refusals = [message for status, message, _ in answers if status != 0]
        if refusals:
            raise _refused(refusals)
        return [self._client.pickleSer.loads(value) if value else None for _, _, value in answers[1::2]]

    def put_value(self, name: str, row: tuple[Any, ...]) -> None:
        """Set a value state."""
        update = self._messages.ValueStateUpdate(value=self._dumps(row))
        self._post(
            self._of_variable(valueStateCall=self._messages.ValueStateCall(stateName=name, valueStateUpdate=update))
        )

    def put_in_map(self, name: str, key: tuple[Any, ...], row: tuple[Any, ...]) -> None:
        """Set a value of a map state."""
        update = self._messages.UpdateValue(userKey=self._dumps(key), value=self._dumps(row))
        self._post(self._of_variable(mapStateCall=self._messages.MapStateCall(stateName=name, updateValue=update)))

    def _set_key(self, key: tuple[Any, ...]) -> None:
        self._post(self._of_key(key))

    def _of_key(self, key: tuple[Any, ...]) -> Any:
        call = self._messages.SetImplicitKey(key=self._dumps(tuple(key)))
        request = self._messages.ImplicitGroupingKeyRequest(setImplicitKey=call)
        return self._messages.StateRequest(implicitGroupingKeyRequest=request)

    def _send_alone(self, message: bytes) -> None:
        """Send a request of PySpark's own, which reads the next answer."""
        self._settle()
        self._send_own(message)

    def _of_variable(self, **call: Any) -> Any:
        return self._messages.StateRequest(stateVariableRequest=self._messages.StateVariableRequest(**call))

    def _post(self, request: Any) -> None:
        """Write a request whose answer only says that it is done."""
        self._pending_bytes += self._write(request)
        self._unanswered += 1
        if self._unanswered >= MAX_PENDING_REQUESTS or self._pending_bytes >= MAX_PENDING_BYTES:
            self._settle()

    def _write(self, request: Any) -> int:
        message = request.SerializeToString()
        self._file.write(_FRAME_HEAD.pack(PROTOCOL_VERSION, len(message)) + message)
        return len(message)

    def _settle(self) -> None:
        self._file.flush()
        refusals = []
        for _ in range(self._unanswered):
            status, message, _ = self._client._receive_proto_message()  # noqa: SLF001
            if status != 0:
                refusals.append(message)
        self._unanswered = self._pending_bytes = 0
        if refusals:
            raise _refused(refusals)


def _refused(refusals: list[str]) -> Exception:
    from pyspark.errors import PySparkRuntimeError

    return PySparkRuntimeError(f"the state store refused a request: {refusals[0]}")
