"""Shared memory mappings of files that hold no file descriptor.

Python's `mmap` keeps a duplicate of the descriptor as long as the mapping lives (`trackfd` came with Python 3.13).
Thousands of mapped files would need thousands of descriptors. The system needs none once the file is mapped.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

_FAILED = ctypes.c_void_p(-1).value


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
        ctypes.c_int64,  # off_t, on every 64-bit system
    ]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


class _Mapping:
    """A mapping that is unmapped when the last array that views it is deleted."""

    def __init__(self, address: int, size: int) -> None:
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (address, False)}
        # Not at exit: arrays may still be in use then, and the system unmaps everything by itself.
        weakref.finalize(self, _libc().munmap, address, size).atexit = False


def map_shared(file: int, size: int) -> npt.NDArray[np.uint8]:
    """Map the first `size` bytes of a file, writable and shared, and return them as an array.

    The descriptor may be closed afterwards.

    Args:
        file: descriptor of the open file, which has at least `size` bytes.
        size: bytes, at least 1.

    Raises:
        OSError: the file cannot be mapped; ENOMEM if the process has reached its limit of mappings.
    """
    address = _libc().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file, 0)
    if address == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"mapping of {size} bytes")
    return np.asarray(_Mapping(address, size))
