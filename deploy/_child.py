"""``python _child.py PARENT COMMAND...``: becomes COMMAND, killed as soon as the thread that started it is gone.

A parent that is killed with -9 cannot stop its children; on Linux the kernel does it (prctl(2), PR_SET_PDEATHSIG, kept
through exec). Elsewhere this only becomes COMMAND. A program of its own, because ``preexec_fn`` of subprocess is not
safe with threads. Run as ``python -I -S``: standard library only.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    """Asks the kernel, makes sure that the parent is not gone already, and becomes the command."""
    parent, *command = sys.argv[1:]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
        if os.getppid() != int(parent):
            sys.exit("the process that asked for this one is gone")
    os.execv(command[0], command)  # noqa: S606 - the command of our own parent


main()
