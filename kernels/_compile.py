"""The compile policy of every kernel, in one place.

Kernels are plain Python functions under `@kernel`; none of them says how it is compiled. The policy:

* machine code is kept on disk, so that Spark's Python workers load kernels instead of compiling them;
* the folder it is kept in is named by a hash of all kernel sources and of the compiler's version. numba notices a
  change of the file a function stands in, not of the functions it calls in other files; a folder of its own for each
  state of the sources makes a stale hit impossible;
* loading and compiling happen under a lock between processes (`warm`): numba's on-disk cache has crashed where
  several processes wrote it at once (numba issue 4807);
* no fast-math: state must be the same on every machine.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import platformdirs
from filelock import FileLock
from numba import config as numba_config

_SOURCES = Path(__file__).parent


def _cache_folder() -> Path:
    digest = hashlib.sha256(f"numba {numba.__version__}".encode())
    for source in sorted(_SOURCES.glob("*.py")):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    root = os.environ.get("MQTWIN_CACHE") or platformdirs.user_cache_dir("mqtwin")
    return Path(root) / "kernels" / digest.hexdigest()[:16]


CACHE_FOLDER = _cache_folder()
CACHE_FOLDER.mkdir(parents=True, exist_ok=True)
numba_config.CACHE_DIR = str(CACHE_FOLDER)  # type: ignore[attr-defined]  # numba sets its names at run time

_compiled: list[Any] = []

F = TypeVar("F", bound=Callable[..., Any])


def _compile(function: Any, *, inlined: bool) -> Any:
    options: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True, "forceinline": inlined}
    dispatcher = numba.njit(_nrt=False, **options)(function)  # type: ignore[call-overload]  # the stubs lack _nrt
    _compiled.append(dispatcher)
    return dispatcher


def kernel(function: F) -> F:
    """Compile a step of the hot path: inlined into whatever calls it.

    Measured, 10,000 messages held, put and get in turn, million events a second: 0.5 as numba compiles by default
    (every call counts references to every array of the store), 7 without reference counts (kernels allocate nothing),
    22 inlined as well (a call hands over 25 arrays).
    Division follows numpy: no exception on zero, input checks have excluded it.
    """
    return _compile(function, inlined=True)


def routine(function: F) -> F:
    """Compile a function that is called seldom, or from Python: code of its own, not inlined."""
    return _compile(function, inlined=False)


def compile_lock() -> FileLock:
    """The lock under which machine code is loaded from, or written to, `CACHE_FOLDER`."""
    return FileLock(CACHE_FOLDER / "compile.lock")


def compiled_here() -> int:
    """How many signatures this process compiled itself, instead of loading them from disk."""
    return sum(sum(dispatcher.stats.cache_misses.values()) for dispatcher in _compiled)
