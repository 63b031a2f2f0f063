"""A wall clock for the job and all that it starts, which a test sets forward and back while they run.

Debian's libfaketime 0.9.10 is no help: `time.sleep` of Python 3.11 then fails with EINVAL, and Java stands still.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")
_SECONDS = struct.Struct("<q")


class Clock:
    """A clock.

    Args:
        folder: for the library and its file.

    Attributes:
        environment: variables of a process that is to have this clock.
    """

    def __init__(self, folder: Path) -> None:
        self._file, library = folder / "clock", folder / "clock.so"
        self._file.write_bytes(_SECONDS.pack(0))
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "MQTWIN_TEST_CLOCK": str(self._file)}

    @staticmethod
    def is_possible() -> bool:
        """Return True on Linux with a C compiler."""
        return sys.platform == "linux" and shutil.which("cc") is not None

    def set(self, seconds: int) -> None:
        """Set it. seconds: by which it is wrong from now on."""
        with self._file.open("r+b") as file:  # written in its place: the processes have it in memory
            file.write(_SECONDS.pack(seconds))
