"""Instructions of the processor that numba has no name for. Uncompiled, each is the Python function of that name."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

_BYTE = ir.IntType(8)
_INT = ir.IntType(32)
_WORD = ir.IntType(64)


def fetch(table: npt.NDArray[Any], row: int) -> None:
    """Ask for the cache line with the beginning of table[row]; any row may be named. A hint: it changes nothing."""


def load_word(data: npt.NDArray[np.uint8], place: int) -> np.uint64:
    """Return the little-endian integer of the eight bytes from data[place] on, which must exist."""
    return np.uint64(int.from_bytes(data[place : place + 8].tobytes(), "little"))


def trailing_zeros(word: np.uint64) -> int:
    """Return the number of zero bits below the lowest one of a word that is not 0."""
    return (int(word) & -int(word)).bit_length() - 1


def _pointer(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    """Return the address of an element of a one-dimensional array, as one of bytes."""
    struct = context.make_array(kind)(context, builder, array)
    item = cgutils.get_item_pointer(  # type: ignore[no-untyped-call]  # nor has this part of numba
        context, builder, kind, struct, [place], wraparound=False, boundscheck=False
    )
    return builder.bitcast(item, _BYTE.as_pointer())


@intrinsic
def _fetch(typing_context: Any, table: Any, row: Any) -> Any:  # noqa: ARG001 -- numba's call
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _pointer(context, builder, signature.args[0], *arguments)
        kind = ir.FunctionType(ir.VoidType(), [address.type, _INT, _INT, _INT])
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]  # nor has this part of numba
            builder.module, kind, "llvm.prefetch.p0"
        )
        for_writing, keep, data = _INT(1), _INT(3), _INT(1)
        builder.call(function, [address, for_writing, keep, data])
        return context.get_dummy_value()

    return types.void(table, types.intp), emit


@intrinsic
def _load_word(typing_context: Any, data: Any, place: Any) -> Any:  # noqa: ARG001 -- numba's call
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _pointer(context, builder, signature.args[0], *arguments)
        word = builder.load(builder.bitcast(address, _WORD.as_pointer()), align=1)
        return word if sys.byteorder == "little" else builder.bswap(word)

    return types.uint64(data, types.intp), emit


@intrinsic
def _trailing_zeros(typing_context: Any, word: Any) -> Any:  # noqa: ARG001 -- numba's call
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.uint64), emit


# `strict=False`: the annotations of the functions above are no part of the match. numba compiles the lambdas, in which
# an intrinsic lacks the first argument of its definition.


@overload(fetch, strict=False)
def _compiled_fetch(table: Any, row: Any) -> Any:  # noqa: ARG001 -- numba asks with the types
    return lambda table, row: _fetch(table, row)  # type: ignore[call-arg]  # noqa: PLW0108


@overload(load_word, strict=False)
def _compiled_load_word(data: Any, place: Any) -> Any:  # noqa: ARG001
    return lambda data, place: _load_word(data, place)  # type: ignore[call-arg]  # noqa: PLW0108


@overload(trailing_zeros, strict=False)
def _compiled_trailing_zeros(word: Any) -> Any:  # noqa: ARG001
    return lambda word: _trailing_zeros(word)  # type: ignore[call-arg]  # noqa: PLW0108
