"""The compile policy of every kernel, in one place.

Kernels are plain Python functions under `@kernel` or `@routine`; none of them says how it is compiled. Machine code is
kept on disk, in a folder named by a hash of all kernel sources, of the versions of compiler and Python and of the
processor: numba notices a change of the file that defines a function, not of those that it calls in other files.
Compiling happens under a lock between processes (`twin.stores.warm_up`), as numba's cache has crashed when several
processes wrote it at once (numba issue 4807); loading from a complete folder needs none. There is no fast-math: state
must be the same on every machine.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, cast

import numba
import numpy as np
import platformdirs
from filelock import FileLock
from numba import config as numba_config
from numba import types
from numba.core import ir
from numba.core.caching import _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.registry import cpu_target
from numba.core.typed_passes import NopythonTypeInference
from numba.extending import models, register_model, typeof_impl

_SOURCES = Path(__file__).parent


def _cache_folder() -> Path:
    processor = cpu_target.target_context.codegen().magic_tuple()  # by which numba finds machine code in its files
    digest = hashlib.sha256(f"numba {numba.__version__}, {sys.implementation.cache_tag}, {processor}".encode())
    for source in sorted(_SOURCES.glob("*.py")):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    root = os.environ.get("MQTWIN_CACHE") or platformdirs.user_cache_dir("mqtwin")
    return Path(root) / "kernels" / digest.hexdigest()[:16]


class CacheFolderError(OSError):
    """The cache folder of machine code cannot be written. The message is one line with the remedy."""

    is_wrong_use = True  # for the command line


CACHE_FOLDER = _cache_folder()


class CacheLocator(_CacheLocator):
    """Where numba keeps the machine code of a kernel: independent of the checkout's path and of its files' times."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> CacheLocator:  # noqa: ARG003 -- numba's call
        return cls(py_func)

    def get_cache_path(self) -> str:
        return str(CACHE_FOLDER)

    def ensure_cache_path(self) -> None:
        make_cache_folder(CACHE_FOLDER)

    def get_source_stamp(self) -> str:
        return CACHE_FOLDER.name

    def get_disambiguator(self) -> str:
        return str(self._line)


def make_cache_folder(path: Path) -> None:
    """Make a folder below CACHE_FOLDER. Raises CacheFolderError if that is impossible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CacheFolderError(
            f"the cache folder {CACHE_FOLDER.parent.parent} cannot be written ({error.strerror}): "
            "set MQTWIN_CACHE to a writable folder"
        ) from error


_compiled: list[Any] = []

F = TypeVar("F", bound=Callable[..., Any])


class _NoEngine:
    """The engine of a `_Part`, which runs nothing, so that it has no use for the constants that numba hands over."""

    @staticmethod
    def set_env(name: str, environment: object) -> None:
        """Take the Python constants of a function."""


class _Part(JITCodeLibrary):
    """A kernel for other kernels to link with: LLVM's intermediate code, optimised, in memory only.

    Machine code is made of kernels that Python calls, with all that they call. That of the others, which nothing runs,
    took a fifth of the time of compilation and six sevenths of the disk.
    """

    codegen = _NoEngine

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002 -- numba's call
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True


@register_pass(mutates_CFG=False, analysis_only=False)  # type: ignore[no-untyped-call]
class _IndexesFromTheStart(FunctionPass):
    """Takes every index of an array as unsigned: kernels use none that counts from an array's end.

    numba compares each signed index with 0 and adds the array's size to a negative one, which took a sixth of the time
    of an event. Kernels that run as Python (`tests.support.uncompiled`) refuse a negative index.
    """

    _name = "indexes_from_the_start"

    def __init__(self) -> None:
        """Make the pass, as numba wants every class to say."""

    def run_pass(self, state: Any) -> bool:
        for block in state.func_ir.blocks.values():
            for statement in block.body:
                access = statement.value if isinstance(statement, ir.Assign) else statement
                if isinstance(access, ir.SetItem) or (isinstance(access, ir.Expr) and access.op == "getitem"):
                    array, index, *value = state.calltypes[access].args
                    if isinstance(array, types.Array) and isinstance(index, types.Integer):
                        typed = state.calltypes.pop(access)
                        state.calltypes[access] = typed.replace(args=(array, types.uintp, *value))
        return True


class _KernelCompiler(Compiler):
    """numba's compiler with that pass."""

    def define_pipelines(self) -> list[Any]:
        pipelines: list[Any] = super().define_pipelines()  # type: ignore[no-untyped-call]
        for pipeline in pipelines:
            pipeline.add_pass_after(_IndexesFromTheStart, NopythonTypeInference)
            pipeline.finalize()
        return pipelines


class _PartCompiler(_KernelCompiler):
    """The same, with a `_Part` as its result."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = _Part(self.state.targetctx.codegen(), func.__qualname__)  # type: ignore[no-untyped-call]
        return super().compile_extra(func)  # type: ignore[no-untyped-call]


class _PartType(types.Dispatcher):
    """The type of a kernel named in another kernel, which takes constants as values, and integers as 64 bits.

    A constant, a number of 32 bits out of an array and one of 64 bits would each compile the kernel once more.
    """

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        return super().get_call_type(context, tuple(map(_widened, args)), {k: _widened(v) for k, v in kws.items()})


register_model(_PartType)(models.OpaqueModel)


def _widened(argument: Any) -> Any:
    """Return the type as which a kernel takes an argument of another kernel; int64 cannot hold uint64."""
    value: Any = types.unliteral(argument)  # type: ignore[no-untyped-call]
    return types.int64 if isinstance(value, types.Integer) and value != types.uint64 else value


class Uniform:
    """Base class of a named tuple of arrays that have the same types in every instance, those of the first one.

    They are compared when an instance is made, and not at each call of a kernel: numba looks at the type of every
    argument, for the fifty arrays of a store in 4 microseconds, while many kernels run for less than one.
    """

    __slots__ = ()
    _types: ClassVar[dict[str, tuple[np.dtype[Any], int]]]  # dtype and dimensions by field, of the first instance

    def __init_subclass__(cls) -> None:
        """Begin without types."""
        cls._types = {}

    def __new__(cls, *arrays: Any, **by_name: Any) -> Self:
        """Return an instance. TypeError: see `_check`."""
        parent: Any = super()
        instance = parent.__new__(cls, *arrays, **by_name)
        if not cls._types:
            cls._types = dict(zip(instance._fields, map(_TYPE, instance), strict=True))
        cls._check(instance._fields, instance)
        return cast(Self, instance)

    def _replace(self, **arrays: Any) -> Self:
        """Return an instance with some other arrays. TypeError: see `_check`."""
        self._check(tuple(arrays), tuple(arrays.values()))
        parent: Any = super()
        return cast(Self, parent._replace(**arrays))

    @classmethod
    def _check(cls, names: tuple[str, ...], arrays: tuple[Any, ...]) -> None:
        """Raise TypeError for an array of another type than in the first instance, or with gaps, or read-only."""
        if all(map(_IS_PLAIN, arrays)) and list(map(_TYPE, arrays)) == [cls._types.get(name) for name in names]:
            return
        for name, array in zip(names, arrays, strict=True):
            if _TYPE(array) != cls._types.get(name) or not _IS_PLAIN(array):
                flags = f"contiguous: {array.flags.c_contiguous}, writable: {array.flags.writeable}"
                expected = f"{cls._types.get(name)}, contiguous, writable and aligned"
                raise TypeError(f"{cls.__name__}.{name} is an array of {_TYPE(array)}, {flags}; expected: {expected}")


_TYPE, _IS_PLAIN = attrgetter("dtype", "ndim"), attrgetter("flags.carray")
_ARRAY_FLAGS = 0x1 | 0x2 | 0x100 | 0x400  # numpy's C and F contiguous, aligned, writable
_NUMBERS = frozenset({bool, float, np.int64, np.uint64, np.float64, np.bool_})


def _kind(argument: Any) -> object:
    """Return what decides about the type that numba gives an argument; None: that is not known here."""
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.ndim, argument.flags.num & _ARRAY_FLAGS
    if type(argument) is int:
        return int if -(2**63) <= argument < 2**63 else None
    return type(argument) if type(argument) in _NUMBERS or isinstance(argument, Uniform) else None


class _Kernel:
    """A function compiled twice: for calls from other kernels (`inner`) and for calls from Python.

    The first goes without the code that unpacks Python's arguments, which takes five times as long to compile as the
    kernel itself.
    """

    def __init__(self, function: Callable[..., Any], *, inlined: bool) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._inlined = inlined
        self.inner = self._dispatcher(no_cpython_wrapper=True, pipeline_class=_PartCompiler)
        self._outer: Any = None
        self._entries: dict[tuple[object, ...], Any] = {}  # machine code by kinds of arguments, the first a `Uniform`

    def __call__(self, *args: Any) -> Any:
        """Call the kernel from Python, compiling or loading it at the first call."""
        kinds = tuple(map(_kind, args)) if args and isinstance(args[0], Uniform) else ()
        entry = self._entries.get(kinds)
        if entry is not None:
            return entry(*args)
        if self._outer is None:
            self._outer = self._dispatcher(cache=True, pipeline_class=_KernelCompiler)
        result = self._outer(*args)
        if kinds and None not in kinds:
            self._keep_entry(kinds, args)
        return result

    def _keep_entry(self, kinds: tuple[object, ...], args: tuple[Any, ...]) -> None:
        """Keep the machine code that numba has found, unless it converts an argument; without numba there is none."""
        overloads = getattr(self._outer, "overloads", {})
        compiled = overloads.get(tuple(map(numba.typeof, args)))
        if compiled is not None:
            self._entries[kinds] = compiled.entry_point

    @property
    def signatures(self) -> list[Any]:
        """Argument types of the calls from Python so far."""
        return [] if self._outer is None else list(self._outer.signatures)

    def _dispatcher(self, **options: Any) -> Any:
        others = numba_config.CACHE_LOCATOR_CLASSES  # type: ignore[attr-defined]  # set at run time
        numba_config.CACHE_LOCATOR_CLASSES = f"{__name__}.{CacheLocator.__name__}"  # type: ignore[attr-defined]
        try:
            dispatcher = numba.njit(  # type: ignore[call-overload]
                _nrt=False,
                error_model="numpy",
                nogil=True,
                forceinline=self._inlined,
                no_cfunc_wrapper=True,
                **options,
            )(self.py_func)
        finally:
            numba_config.CACHE_LOCATOR_CLASSES = others  # type: ignore[attr-defined]
        _compiled.append(dispatcher)
        return dispatcher


@typeof_impl.register(_Kernel)
def _typeof_kernel(kernel: _Kernel, _: Any) -> types.Dispatcher:
    """Return the type that numba gives a kernel named in another kernel."""
    return _PartType(kernel.inner)


def kernel(function: F) -> F:
    """Compile a step of the hot path, inlined into its callers.

    Measured with 10,000 messages held, puts and gets in turn, in million events per second: 0.5 as numba compiles by
    default (every call counts references to every array of the store), 7 without reference counts (kernels allocate
    nothing), 22 inlined as well (a call passes 25 arrays).
    Division follows numpy: it raises no exception on zero, which input checks have excluded.
    """
    return cast(F, _Kernel(function, inlined=True))


def routine(function: F) -> F:
    """Compile a function that is called rarely, or from Python, without inlining it."""
    return cast(F, _Kernel(function, inlined=False))


def compile_lock() -> FileLock:
    """Return the lock for writing machine code into `CACHE_FOLDER`.

    Raises:
        CacheFolderError: the folder cannot be made.
    """
    make_cache_folder(CACHE_FOLDER)
    return FileLock(CACHE_FOLDER / "compile.lock")


def compiled_here() -> int:
    """Return the number of signatures that this process compiled instead of loading them from disk."""
    return sum(sum(dispatcher.stats.cache_misses.values()) for dispatcher in _compiled)
