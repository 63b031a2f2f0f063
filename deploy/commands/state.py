"""``mqtwin state``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from deploy.java.class_archives import find_spark_java
from deploy.show.checkpoint import warn_of_job
from deploy.show.terminal import print_warnings
from deploy.show.usage import print_usage
from streams.checkpoint.guard import open_stopped
from streams.log import configure_logging
from streams.query.stored_state import read_states
from twin.errors import UsageError
from twin.estate import load_estate


def state(
    *,
    checkpoint: Path,
    estate: Path,
    store: str | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Print the state records in a checkpoint after its last committed batch, without Kafka.

    On a terminal this is a table, elsewhere JSON lines, as in the state topic.

    Args:
        checkpoint: Checkpoint folder of a job, on this machine.
        estate: Estate file (TOML) of the job; a checkpoint has neither names nor sizes.
        store: Print only this store, such as QSG1/APP1.
        json: Print JSON lines on a terminal too.
    """
    loaded_estate = load_estate(estate)
    print_warnings(loaded_estate.warnings)
    if store is not None and store not in loaded_estate.stores:
        raise UsageError(f"--store {store}: not in {estate}; expected: {', '.join(sorted(loaded_estate.stores))}")
    files, manifest = open_stopped(checkpoint)
    if not files.commits:
        raise UsageError(f"{checkpoint} has no committed batch; expected: one that a job has written events into")
    warn_of_job(checkpoint)
    unknown_stores = sorted(set(manifest.stores) - loaded_estate.stores.keys()) if manifest is not None else []
    if unknown_stores:
        print_warnings([f"not in {estate}, so not shown: {', '.join(unknown_stores)}"])
    configure_logging(level="critical")  # the error line already says what Spark would log
    states = read_states(checkpoint, loaded_estate, store, java=find_spark_java())
    if json or not sys.stdout.isatty():
        for record in states:
            print(msgspec.json.encode(record).decode(), flush=True)
    else:
        print_usage(states)
