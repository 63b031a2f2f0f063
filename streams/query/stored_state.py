"""State records of a checkpoint, read from Spark's state store without Kafka or a running job."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from streams.checkpoint.manifest import local_directory
from streams.errors import one_line
from streams.query.session import SparkJava, open_session
from streams.state.pages import HEADER, PAGES
from twin.errors import MqtwinError, UsageError
from twin.estate import Estate
from twin.records import StateRecord
from twin.state.tables import StateError
from twin.stores.headers import check_header, is_older
from twin.stores.open import Twin, open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE_HEADERS = 100  # of a checkpoint without a manifest: a job writes all headers in one format


class Counts(NamedTuple):
    """Stores of a checkpoint: those whose state is of an earlier format, and all."""

    older: int
    stores: int


def read_states(
    directory: Path,
    estate: Estate,
    store: str | None = None,
    *,
    java: SparkJava | None = None,
    session: SparkSession | None = None,
) -> Iterator[StateRecord]:
    """Yield the state record of each store after the last committed batch, by store.

    Args:
        directory: the checkpoint.
        estate: stores and queues, whose names and sizes are not in the checkpoint. Other stores are left out.
        store: name of a single store to read; None: all.
        java: see `streams.query.session.open_session`.
        session: session to use; None: a temporary one.

    Raises:
        UsageError: there is no such store.
        MqtwinError: the state cannot be read, or does not fit the estate.
    """
    is_own = session is None
    session = session or open_session(name="mqtwin state", master="local[1]", java=java)
    try:
        for twin in _read_twins(session, directory, estate, store):
            yield twin.state()
    finally:
        if is_own:
            session.stop()


def read_twin(
    directory: Path,
    estate: Estate,
    store: str,
    *,
    java: SparkJava | None = None,
    session: SparkSession | None = None,
) -> Twin:
    """Return the twin of a store after the last committed batch. Arguments and errors as of `read_states`."""
    is_own = session is None
    session = session or open_session(name="mqtwin whatif", master="local[1]", java=java)
    try:
        (twin,) = _read_twins(session, directory, estate, store)
        return twin
    finally:
        if is_own:
            session.stop()


def read_twins(
    directory: Path,
    estate: Estate,
    store: str | None = None,
    *,
    java: SparkJava | None = None,
    session: SparkSession | None = None,
) -> dict[str, Twin]:
    """Return the twins after the last committed batch, by store, none of a store that had no event by then.

    Arguments and errors as of `read_states`.
    """
    is_own = session is None
    session = session or open_session(name="mqtwin state", master="local[1]", java=java)
    try:
        return {twin.name: twin for twin in _read_twins(session, directory, estate, store, is_needed=False)}
    finally:
        if is_own:
            session.stop()


def check_format(session: SparkSession, location: str) -> None:
    """Read some headers of the state of a checkpoint that has no manifest.

    Args:
        session: session of the job.
        location: the checkpoint, a path or URI of the user.

    Raises:
        UsageError: the state is of another format than this program's, or cannot be read.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    directory = local_directory(location)
    _ = session.streams  # creates the coordinator of state stores, which their readers need
    new = "install the mqtwin that wrote it, or name another --checkpoint"
    try:
        headers = _read_variable(session, directory if directory is not None else location, HEADER)
        rows = headers.selectExpr("key.store as store", "value.header as header").take(SAMPLE_HEADERS)
    except (PySparkException, Py4JError) as error:
        raise UsageError(
            f"checkpoint {location} has no mqtwin.json, and its state cannot be read: {one_line(error)}; {new}"
        ) from error
    for row in rows:
        try:
            check_header(bytes(row["header"]), str(row["store"]))
        except StateError as error:
            raise UsageError(f"checkpoint {location} has no mqtwin.json, and {error}: {new}") from error


def count_older(directory: Path, *, java: SparkJava | None = None, session: SparkSession | None = None) -> Counts:
    """Return the number of stores whose state is of an earlier format, and of all, after the last committed batch.

    Args:
        directory: the checkpoint.
        java: see `streams.query.session.open_session`.
        session: session to use; None: a temporary one.

    Raises:
        MqtwinError: the state cannot be read, or is of a format that is not read.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    is_own = session is None
    session = session or open_session(name="mqtwin checkpoint", master="local[1]", java=java)
    _ = session.streams  # creates the coordinator of state stores, which their readers need
    older = stores = 0
    try:
        headers = _read_variable(session, directory, HEADER)
        for row in headers.selectExpr("key.store as store", "value.header as header").toLocalIterator():
            stores += 1
            older += is_older(bytes(row["header"]), str(row["store"]))
    except (PySparkException, Py4JError) as error:
        raise _unreadable(directory, error) from error
    finally:
        if is_own:
            session.stop()
    return Counts(older, stores)


def _read_twins(
    session: SparkSession, directory: Path, estate: Estate, store: str | None, *, is_needed: bool = True
) -> Iterator[Twin]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    _ = session.streams  # creates the coordinator of state stores, which their readers need
    try:
        headers = {
            str(row["store"]): bytes(row["header"])
            for row in _read_variable(session, directory, HEADER)
            .selectExpr("key.store as store", "value.header as header")
            .toLocalIterator()
        }
        names = sorted(headers.keys() & estate.stores.keys() if store is None else {store} & headers.keys())
        if is_needed and store is not None and not names:
            raise UsageError(f"--store {store}: the checkpoint has none; expected: {', '.join(sorted(headers))}")
        pages = _read_variable(session, directory, PAGES).selectExpr(
            "key.store as store", "user_map_key.page as page", "user_map_value.data as data"
        )
        pages = pages.where(pages["store"].isin(names)).sort("store")
        remaining = iter(names)
        for name, rows in groupby(pages.toLocalIterator(), key=lambda row: str(row["store"])):
            for bare in iter(lambda: next(remaining), name):  # stores without pages, which `pages` lacks
                yield _restore(estate, bare, headers[bare], [])
            yield _restore(estate, name, headers[name], [(int(row["page"]), bytes(row["data"])) for row in rows])
        for bare in remaining:
            yield _restore(estate, bare, headers[bare], [])
    except (PySparkException, Py4JError) as error:
        raise _unreadable(directory, error) from error


def _unreadable(directory: Path, error: Exception) -> MqtwinError:
    return MqtwinError(
        f"checkpoint {directory}: its state cannot be read: {one_line(error)}; "
        f"`mqtwin checkpoint check {shlex.quote(str(directory))}` says what is damaged"
    )


def _read_variable(session: SparkSession, place: Path | str, name: str) -> DataFrame:
    """Return a state variable of the query as a frame. place: the checkpoint, a directory or a URI."""
    location = str(place.resolve()) if isinstance(place, Path) else place
    return session.read.format("statestore").option("stateVarName", name).load(location)


def _restore(estate: Estate, name: str, header: bytes, pages: list[tuple[int, bytes]]) -> Twin:
    try:
        return open_store(estate, name, None, header, pages)
    except StateError as error:
        raise MqtwinError(f"store {name}: {error}") from error
