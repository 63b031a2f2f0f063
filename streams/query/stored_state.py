"""The state of a checkpoint without a running job: read as twins and state records, or spread over other partitions.

Spark's offline repartition adds a batch that reads no records: it has the offsets of the last committed batch, and
writes every key of the state into the partition that is the right one of the new number. Until that batch is committed
the state before it is untouched, and a command that was killed is run again. Source: Spark 4.2,
OfflineStateRepartitionRunner, StateRewriter.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from streams.checkpoint.guard import open_stopped
from streams.checkpoint.local_files import OPERATORS, CheckpointFiles, drop_uncommitted_state, remove_numbered
from streams.checkpoint.manifest import LocalGuard, check_readable, check_sound
from streams.errors import one_line
from streams.query.session import SparkJava, open_session
from streams.state.twins import HEADER, PAGES
from twin.base.errors import MqtwinError, UsageError
from twin.estate import Estate
from twin.records import StateRecord
from twin.state.tables import StateError
from twin.stores.headers import is_older
from twin.stores.open import Twin, open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    """Yield the state record of each store after the last committed batch, by store. Names and sizes come from the
    estate; stores that it lacks are left out. Without `session` a temporary one is used. UsageError: there is no such
    store. MqtwinError: the state cannot be read, or does not fit the estate.
    """
    with _session(java, session) as own:
        for twin in _read_twins(own, directory, estate, store):
            yield twin.state()


def read_twin(
    directory: Path,
    estate: Estate,
    store: str,
    *,
    java: SparkJava | None = None,
    session: SparkSession | None = None,
) -> Twin:
    """Return the twin of a store after the last committed batch. Arguments and errors as of `read_states`."""
    with _session(java, session) as own:
        (twin,) = _read_twins(own, directory, estate, store)
        return twin


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
    with _session(java, session) as own:
        return {twin.name: twin for twin in _read_twins(own, directory, estate, store, is_needed=False)}


def count_older(directory: Path, *, java: SparkJava | None = None, session: SparkSession | None = None) -> Counts:
    """Return the number of stores whose state is of an earlier format, and of all, after the last committed batch.
    MqtwinError: the state cannot be read, or is of a format that is not read.
    """
    older = stores = 0
    with _session(java, session) as own, _reading(directory):
        for store, header in _headers(own, directory):
            stores += 1
            older += is_older(header, store)
    return Counts(older, stores)


@contextmanager
def _session(
    java: SparkJava | None, session: SparkSession | None, master: str | None = "local[1]"
) -> Iterator[SparkSession]:
    """Yield a session that can read states; None: a temporary one."""
    own = session or open_session(name="mqtwin state", master=master, java=java)
    try:
        _ = own.streams  # creates the coordinator of state stores, which their readers need
        yield own
    finally:
        if session is None:
            own.stop()


@contextmanager
def _reading(directory: Path) -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise MqtwinError(
            f"checkpoint {directory}: its state cannot be read: {one_line(error)}; "
            f"`mqtwin checkpoint check {shlex.quote(str(directory))}` says what is damaged"
        ) from error


def _headers(session: SparkSession, directory: Path) -> Iterator[tuple[str, bytes]]:
    headers = _read_variable(session, directory, HEADER).selectExpr("key.store as store", "value.header as header")
    for row in headers.toLocalIterator():
        yield str(row["store"]), bytes(row["header"])


def _read_twins(
    session: SparkSession, directory: Path, estate: Estate, store: str | None, *, is_needed: bool = True
) -> Iterator[Twin]:
    with _reading(directory):
        headers = dict(_headers(session, directory))
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


def _read_variable(session: SparkSession, directory: Path, name: str) -> DataFrame:
    return session.read.format("statestore").option("stateVarName", name).load(str(directory.resolve()))


def _restore(estate: Estate, name: str, header: bytes, pages: list[tuple[int, bytes]]) -> Twin:
    try:
        return open_store(estate, name, None, header, pages)
    except StateError as error:
        raise MqtwinError(f"store {name}: {error}") from error


def repartition(
    directory: Path, partitions: int, *, java: SparkJava | None = None, session: SparkSession | None = None
) -> int:
    """Distribute the state of a checkpoint over another number of partitions, and return the number before. That of the
    state changes nothing. UsageError: a job runs on it, it is damaged or of a format that is not read, or was never
    committed. MqtwinError: Spark fails; the checkpoint is as it was, or the same command continues.
    """
    open_stopped(directory)
    guard = LocalGuard(directory)
    try:
        files, location = CheckpointFiles(directory), str(directory)
        check_readable(location, guard.manifest)
        check_sound(location, files)
        if not files.has_state:
            raise UsageError(f"checkpoint {location} has no committed batch, and so no state; expected: one that has")
        unfinished = files.unfinished_partitions
        if unfinished not in (None, partitions):
            raise UsageError(
                f"--partitions {partitions}: the repartition of checkpoint {location} to {unfinished} has not ended: "
                f"give --partitions {unfinished} first"
            )
        before = files.partitions_of(files.commits[-1])
        if before != partitions:
            if unfinished is None:
                _drop_uncommitted(files)
            _run(directory, partitions, java, session)
        if guard.manifest is not None and guard.manifest.partitions != partitions:
            guard.write(msgspec.structs.replace(guard.manifest, partitions=partitions))
        return before
    finally:
        guard.release()


def _drop_uncommitted(files: CheckpointFiles) -> None:
    """Remove a batch that was started and not committed; its records are read again.

    Its state goes first: state without its offsets would be damage. So does the operator's metadata, which the first
    batch of a start has: Spark would not write that of the repartition over it.
    """
    last = files.last_batch
    if last is None or last <= files.commits[-1]:
        return
    drop_uncommitted_state(files)
    for name in (OPERATORS, "offsets"):
        remove_numbered(files.directory / name, last)


def _run(directory: Path, partitions: int, java: SparkJava | None, session: SparkSession | None) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    with _session(java, session, master=None) as own:
        manager = own._streamingCheckpointManager  # noqa: SLF001 -- PySpark has no public name for it
        try:
            manager.repartition(str(directory.resolve()), partitions)
        except (PySparkException, Py4JError) as error:
            raise MqtwinError(
                f"checkpoint {directory}: its repartition failed: {one_line(error)}; the same command continues it"
            ) from error
