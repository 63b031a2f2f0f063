"""Requests to Spark's state server: the same state as by PySpark's own calls, fewer waits, refusals found."""

from __future__ import annotations

import pickle
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyspark.sql.streaming.proto.StateMessage_pb2 as messages
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkRuntimeError
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import (
    StatefulProcessorApiClient,
    StatefulProcessorHandleState,
)
from pyspark.sql.types import StringType, StructField, StructType

from streams.state import twins
from streams.state.twins import MAX_PENDING_REQUESTS, SavedState, StoreState

KEY = StructType([StructField("store", StringType())])
Writes = list[tuple[str, dict[int, bytes], bytes]]  # store, pages, header


class StateServer(threading.Thread):
    """The part of Spark's state server that a store needs.

    Args:
        path: path of its socket.
        refuses: bytes that a value must not have.
    """

    def __init__(self, path: str, *, refuses: bytes = b"\0never") -> None:
        super().__init__(daemon=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen()
        self._refuses = refuses
        self.held = 0  # requests whose answers it keeps back until the last of them has come
        self._key: Any = None
        self.values: dict[Any, Any] = {}
        self.maps: dict[Any, dict[Any, Any]] = {}

    def run(self) -> None:
        with self._listener:
            connection, _ = self._listener.accept()
        with suppress(OSError), connection, connection.makefile("rwb") as file:  # a client that fails reads no more
            answers = []
            while head := file.read(8):
                request = messages.StateRequest()
                request.ParseFromString(file.read(struct.unpack("!ii", head)[1]))
                answers.append(self._answer(request))
                self.held -= 1
                if self.held <= 0:
                    for each in answers:
                        text = each.SerializeToString()
                        file.write(struct.pack("!i", len(text)) + text)
                    file.flush()
                    answers.clear()

    def _answer(self, request: Any) -> Any:
        if request.HasField("implicitGroupingKeyRequest"):
            self._key = pickle.loads(request.implicitGroupingKeyRequest.setImplicitKey.key)
            return messages.StateResponse()
        call = request.stateVariableRequest
        if call.HasField("valueStateCall") and call.valueStateCall.HasField("get"):
            row = self.values.get((self._key, call.valueStateCall.stateName))
            return messages.StateResponse(value=row or b"")
        if call.HasField("valueStateCall"):
            update = call.valueStateCall
            self.values[self._key, update.stateName] = update.valueStateUpdate.value
            return self._status(update.valueStateUpdate.value)
        if call.HasField("mapStateCall"):
            update = call.mapStateCall.updateValue
            pages_of_key = self.maps.setdefault((self._key, call.mapStateCall.stateName), {})
            pages_of_key[pickle.loads(update.userKey)] = pickle.loads(update.value)
            return self._status(update.value)
        return messages.StateResponse()

    def _status(self, value: bytes) -> Any:
        is_refused = self._refuses in value
        return messages.StateResponse(statusCode=int(is_refused), errorMessage="no room" if is_refused else "")


@contextmanager
def connected(refuses: bytes = b"\0never") -> Iterator[tuple[StateServer, Any, StoreState]]:
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "state.sock")
        server = StateServer(path, refuses=refuses)
        server.start()
        client = StatefulProcessorApiClient(path, KEY)
        client._client_socket.settimeout(10)
        yield server, client, StoreState(StatefulProcessorHandle(client))
        client.sockfile.close()
        client._client_socket.close()
        server.join(10)


def run(client: Any, state: StoreState, writes: Writes) -> list[SavedState | None]:
    saved = []
    for number, (store, own, header) in enumerate(writes):
        saved += state.saved([store])
        state.select(store)
        state.write_pages(own.items())
        state.write_header(b"token%d" % number, header)
    client.set_handle_state(StatefulProcessorHandleState.DATA_PROCESSED)
    return saved


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["QSG1/A", "QSG1/B", "QM1/PS04"]),
            st.dictionaries(st.integers(0, 200), st.binary(max_size=200), max_size=80),
            st.binary(min_size=1, max_size=50),
        ),
        max_size=6,
    )
)
@settings(max_examples=25, deadline=None)
def test_the_state_is_that_of_pysparks_own_calls(writes: Writes):
    with connected() as (server, client, state):
        saved = run(client, state, writes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twins, "_open_pipeline", lambda _: None)
        with connected() as (own_server, own_client, own_state):
            assert run(own_client, own_state, writes) == saved
    assert server.maps == own_server.maps
    assert {k: pickle.loads(v) for k, v in server.values.items()} == {
        k: pickle.loads(v) for k, v in own_server.values.items()
    }


def test_stores_wait_once_for_their_keys_and_headers():
    stores = [f"QSG1/{name}" for name in "ABC"]
    with connected() as (server, client, state):
        server.held = 2 * len(stores)
        assert state.saved(stores) == [None, None, None]
        for store in stores:
            state.select(store)
            state.write_header(b"token", store.encode())
        client.set_handle_state(StatefulProcessorHandleState.DATA_PROCESSED)
        assert len(server.values) == 3
        assert state.saved([]) == []


def test_answers_are_read_before_they_fill_the_socket():
    many = dict.fromkeys(range(3 * MAX_PENDING_REQUESTS), b"x" * 10)
    with connected() as (server, client, state):
        run(client, state, [("QSG1/A", many, b"header")])
        assert len(server.maps[("QSG1/A",), "pages"]) == 3 * MAX_PENDING_REQUESTS


@pytest.mark.parametrize("others", [0, 1])
def test_a_refused_page_fails_the_task_at_the_next_store_or_at_its_end(others: int):
    writes: Writes = [("QSG1/A", {1: b"too large"}, b"header")] + [("QSG1/B", {}, b"header")] * others
    with connected(refuses=b"too large") as (_, client, state), pytest.raises(PySparkRuntimeError, match="no room"):
        run(client, state, writes)
