"""Named points of the workers at which a test can ask for a fault: `tests.tools.fire` is the only one who does.

In production `ACTIVE` is None. The runner of faults sets an environment variable to a folder and writes an order into
it, a file with the name of a point: ``kill``, ``raise``, ``delay SECONDS`` or ``hold``. The first worker that comes to
the point takes the order, by renaming the file, and obeys; a held worker waits until the runner removes the renamed
file. What Java does alone has no seam here: the runner sees it by the files of the checkpoint.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

VARIABLE = "MQTWIN_TEST_SEAMS"  # environment variable of the job: the folder of orders
READING = "reading"  # records were read from Kafka and are about to be decoded
APPLYING = "applying"  # a store's twin is checked out, its events are about to be applied
WRITING = "writing"  # the first page of a store is about to go to the state store, others and the header come after it
SENDING = "sending"  # state is written, the records of a store are about to go to the sink
POINTS = (READING, APPLYING, WRITING, SENDING)
HOLD_SECONDS = 30.0  # at most
_POLL_SECONDS = 0.005


class SeamError(RuntimeError):
    """The fault that a test requested."""


class Seams:
    """The orders in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @staticmethod
    def renamed(folder: Path, point: str) -> Path:
        """Return the path of the order of a point once a worker has taken it."""
        return folder / f"{point}.taken"

    def reach(self, point: str) -> None:
        """Obey the order for a point, if there is one. SeamError: it is to raise."""
        order_file = self.renamed(self._folder, point)
        try:
            (self._folder / point).rename(order_file)
        except FileNotFoundError:
            return
        order, _, seconds = order_file.read_text(encoding="ascii").partition(" ")
        if order == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if order == "raise":
            raise SeamError(f"a test asked for an error: {point}")
        deadline = time.monotonic() + (float(seconds) if seconds else HOLD_SECONDS)
        while time.monotonic() < deadline and (order == "delay" or order_file.exists()):
            time.sleep(_POLL_SECONDS)


ACTIVE = Seams(Path(os.environ[VARIABLE])) if VARIABLE in os.environ else None
