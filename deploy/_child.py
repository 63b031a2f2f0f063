"""``python _child.py PARENT COMMAND...``: a program that becomes COMMAND and does not outlive its parent.

A parent that is killed with -9 cannot stop its children. On Linux the kernel kills them when the thread that started
them ends (prctl(2), PR_SET_PDEATHSIG, kept through exec). On other systems this program only becomes COMMAND. It is a
program of its own because ``preexec_fn`` of subprocess is not safe with threads, and it uses the standard library only:
run it as ``python -I -S``.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    """Ask the kernel to kill this process with its parent, check that the parent still runs, and become the command."""
    parent, *command = sys.argv[1:]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
        if os.getppid() != int(parent):
            sys.exit("the parent process has already ended")
    os.execv(command[0], command)  # noqa: S606 - the command comes from our own parent


main()
