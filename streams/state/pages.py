"""State of stores in Spark's state store: of each its header, and a map from page number to bytes.

PySpark waits for the JVM's answer to each call: the key of the rows, the header, each page, the header again. The JVM
answers requests in their order, so what only says "done" can be read later. Here `MAX_STORES` stores cost one wait, for
their headers: the requests for them go out together, and the answers to writes are read with those of the next stores.
This needs private names of PySpark. They are looked up once; if one is missing, all goes through the public interface.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from streams import seams
from streams.state.twins import SavedState

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
