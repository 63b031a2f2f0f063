"""A pytest plugin that runs kernels as Python, so that `coverage` sees their lines: `make coverage`.

A row of a structured array gets its fields as attributes, as in compiled kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels import _compile
from tests.support.rows import IndexedFromStart, with_attributes
from twin.forecast import flows, outlook

_PATHS = 2


class _Bytes(IndexedFromStart):
    """Bytes that are integers without a limit, as in compiled kernels, once they are read."""

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        return int(value) if isinstance(value, np.uint8) else value


def _with_attributes(argument: Any) -> Any:
    """Return an argument of a kernel as compiled kernels see it: an array, a row, or a tuple of them."""
    if isinstance(argument, np.ndarray) and type(argument) is np.ndarray:
        if argument.dtype.names:
            return with_attributes(argument).view(IndexedFromStart)
        return argument.view(_Bytes if argument.dtype == np.uint8 else IndexedFromStart)
    if isinstance(argument, np.void):
        return with_attributes(argument)
    if isinstance(argument, tuple) and hasattr(argument, "_fields"):
        return type(argument)(*map(_with_attributes, argument))
    return argument


_depth = 0


def _call(kernel: Any, *args: Any) -> Any:
    """Call a kernel. Arguments of calls between kernels are converted already."""
    global _depth  # noqa: PLW0603 -- one thread runs the tests
    if _depth:
        return kernel.py_func(*args)
    _depth += 1
    try:
        with np.errstate(over="ignore"):
            return kernel.py_func(*map(_with_attributes, args))
    finally:
        _depth -= 1


def pytest_configure(config: pytest.Config) -> None:  # noqa: ARG001
    """Replace the call of every kernel; a forecast has few paths, as each takes seconds."""
    flows.PATHS = outlook.PATHS = _PATHS  # type: ignore[attr-defined]
    _compile._Kernel.__call__ = _call  # type: ignore[method-assign]
