"""``mqtwin state``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from deploy.java import find_java
from deploy.show import usage
from deploy.show.checkpoint import warn_of_job
from deploy.show.table import show
from deploy.show.warnings import warned
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
    """The state records that a checkpoint holds, without Kafka: those after its last committed batch.

    A table on a terminal, elsewhere the records as JSON lines, as in the state topic.

    Args:
        checkpoint: The --checkpoint of a job, on this machine.
        estate: What exists, a TOML file: that of the job, for the checkpoint has neither names nor sizes.
        store: Only this store, as QSG1/APP1.
        json: JSON lines on a terminal, too.
    """
    described = warned(load_estate(estate))
    if store is not None and store not in described.stores:
        raise UsageError(f"--store {store}: not in {estate}; expected: {', '.join(sorted(described.stores))}")
    files, manifest = open_stopped(checkpoint)
    if not files.commits:
        raise UsageError(f"{checkpoint} has no committed batch, hence no state yet")
    warn_of_job(checkpoint)
    gone = sorted(set(manifest.stores) - described.stores.keys()) if manifest is not None else []
    if gone:
        print(f"mqtwin: warning: not in {estate}, hence left out: {', '.join(gone)}", file=sys.stderr)
    configure_logging(level="critical")  # what Spark logs of an error is on its line
    states = read_states(checkpoint, described, store, java_home=find_java().home)
    if json or not sys.stdout.isatty():
        for record in states:
            print(msgspec.json.encode(record).decode(), flush=True)
    else:
        show(usage.HEADINGS, usage.lines(states), usage.RIGHT)
