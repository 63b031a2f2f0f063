"""The cost of each operation, counted in statements of kernels instead of time, so that it is the same everywhere.

Run it with NUMBA_DISABLE_JIT=1, which leaves kernels uncompiled. It prints JSON: the cost of each case at two sizes.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any

import numpy as np
import pytest

from tests.kernels.beside import Config, Decoding, Event
from tests.naive.estates import structure
from tests.naive.private_estates import page_set, queue_file
from tests.naive.scm_estates import with_scm
from tests.support.rows import IndexedFromStart, with_attributes
from tests.support.workloads import HOUR_US, SECOND_US, START_US
from twin.events import EventBlock, to_table
from twin.state.arrays import Array, MemoryArrays, Size
from twin.state.tables import Tables
from twin.stores import message_store

SIZES = (200, 400)
_COUNT = "_statements"  # name of the count in modules of kernels
_LARGE: dict[str, Any] = {"size": 1 << 30, "full_threshold": 0}


class _Records(MemoryArrays):
    """Arrays whose rows have attributes, as in compiled kernels, and which no index counts from the end."""

    def tables(self, sizes: Mapping[str, Size]) -> dict[str, Array]:
        return {name: _with_attributes(array) for name, array in super().tables(sizes).items()}

    def grow(self, rows: Mapping[str, int]) -> dict[str, Array]:
        return {name: _with_attributes(array) for name, array in super().grow(rows).items()}


def _with_attributes(array: Array) -> Array:
    return (with_attributes(array) if array.dtype.names else array).view(IndexedFromStart)


class _Tables(Tables):
    """Tables of such arrays."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.wrap()

    def wrap(self) -> None:
        self.store = type(self.store)(*map(_with_attributes, self.store))


def slow_twin(decoding: Decoding) -> Any:
    """Return a new twin whose kernels run as Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_store, "Tables", _Tables)
        twin = decoding.twin(_Records())
    twin.tables.wrap()
    twin._routes = _with_attributes(twin._routes)
    return twin


def slow_blocks(decoding: Decoding, events: list[Event]) -> list[EventBlock]:
    """Return the blocks of events for such a twin; none may be a dead letter."""
    decoded = decoding._decoder.arrow_table(to_table(events))
    assert not decoded.rejects, decoded.rejects
    return [
        EventBlock(block.store, _with_attributes(block.events), block.extras)
        for block in decoded.blocks(decoding.estate)
    ]


class _Counting(ast.NodeTransformer):
    """Adds to each block of functions a statement that counts the others of the block."""

    def visit_FunctionDef(self, function: ast.FunctionDef) -> ast.FunctionDef:
        for node in list(ast.walk(function)):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and block:
                    block.insert(0, ast.parse(f"{_COUNT}[0] += {len(block)}").body[0])
        return function


def count_statements() -> list[int]:
    """Let kernels count their statements from now on; return the count, the only number of a list."""
    count = [0]
    for module in [module for name, module in sys.modules.items() if name.startswith("kernels.")]:
        tree = _Counting().visit(ast.parse(inspect.getsource(module)))
        constants = compile(tree, inspect.getfile(module), "exec").co_consts
        codes = {code.co_name: code for code in constants if isinstance(code, CodeType)}
        kernels = {name: value.py_func for name, value in vars(module).items() if hasattr(value, "py_func")}
        for function in kernels.values():
            if function.__module__ == module.__name__:
                function.__code__ = codes[function.__name__]
        vars(module).update(kernels, **{_COUNT: count})  # the functions themselves: a kernel's call takes longer
    return count


def cost(config: Config, before: list[Event], counted: list[Event], statements: list[int]) -> int:
    """Return the statements that the events `counted` run after the events `before`.

    statements: the count that `count_statements` returned.
    """
    decoding = Decoding(config, foresees=False)
    twin = slow_twin(decoding)
    for block in slow_blocks(decoding, before) if before else ():
        twin.apply(block)
    (block,) = slow_blocks(decoding, counted)
    start = statements[0]
    twin.apply(block)
    return statements[0] - start


# --- events in short form ---------------------------------------------------------------------------------------------


def _event(op: str, time: int = START_US, **fields: Any) -> Event:
    named = {} if op in ("RESTART", "HEARTBEAT", "ALTER", "REBUILD") else {"queue": "A.QUEUE"}
    return {"time": time, "qmgr": "QM01", "op": op} | named | fields


def _puts(n: int, **fields: Any) -> Iterator[Event]:
    """Yield `n` puts. A field may be a function of the number of the put."""
    yield from _many("PUT", n, length=100, **fields)


def _many(op: str, n: int, **fields: Any) -> Iterator[Event]:
    for i in range(n):
        yield _event(op, **{name: value(i) if callable(value) else value for name, value in fields.items()})


def _id(i: int) -> str:
    return f"message {i}"


def _uow(i: int) -> str:
    return f"unit {i}"


def _shuffled(n: int, name: Callable[[int], str]) -> Callable[[int], str]:
    order = _mixed(n)
    return lambda i: name(order[i])


def _mixed(n: int) -> list[int]:
    """Return 0..n-1 in random order."""
    return [int(i) for i in np.random.default_rng(1).permutation(n)]


Case = Callable[[int], tuple[list[Event], list[Event]]]


def _case(before: Callable[[int], Iterator[Event]], counted: Callable[[int], Iterator[Event]]) -> Case:
    return lambda n: (list(before(n)), list(counted(n)))


def _none(n: int) -> Iterator[Event]:  # noqa: ARG001
    yield from ()


def _units_of_one_get(n: int) -> Iterator[Event]:
    """Yield `n` puts, a get of each in a unit of its own in random order, and `n` younger puts."""
    yield from _puts(n, msgid=_id)
    yield from _many("GET", n, msgid=_shuffled(n, _id), uow=_uow)
    yield from _puts(n)


def _units_of_one_put(n: int) -> Iterator[Event]:
    yield from _many("PUT", n, length=100, uow=_uow, priority=lambda i: i % 10)
    yield from _puts(n, priority=lambda i: i % 10)


def _every_other(n: int) -> Iterator[Event]:
    """Yield `2 n` puts, and gets of every other message in random order."""
    yield from _puts(2 * n, msgid=_id)
    yield from _many("GET", n, msgid=_shuffled(n, lambda i: _id(2 * i)))


def _poisoned(n: int) -> Iterator[Event]:
    """Yield a get by id and a backout of each message of a deep queue, in random order."""
    for i in _mixed(n):
        yield _event("GET", msgid=_id(i), uow="u")
        yield _event("BACKOUT", uow="u")


def _restart(op: str = "RESTART") -> Callable[[int], Iterator[Event]]:
    return lambda _: iter([_event(op, store="")])


CASES: dict[str, Case] = {
    "put": _case(_none, _puts),
    "put and get": _case(_puts, lambda n: _many("GET", n)),
    "put with count": _case(_none, lambda n: _puts(1, count=n)),
    "put, overfull": _case(_none, lambda n: _many("PUT", n, length=100 << 20)),
    "put of ids": _case(_none, lambda n: _puts(n, msgid=_id)),
    "get by id": _case(lambda n: _puts(n, msgid=_id), lambda n: _many("GET", n, msgid=_id)),
    "get by id in random order": _case(
        lambda n: _puts(n, msgid=_id), lambda n: _many("GET", n, msgid=_shuffled(n, _id))
    ),
    "put into holes": _case(_every_other, _puts),
    "put of one id": _case(_none, lambda n: _puts(n, msgid="same")),
    "get by one id": _case(lambda n: _puts(n, msgid="same"), lambda n: _many("GET", n, msgid="same")),
    "get by one id of ten priorities": _case(
        lambda n: _puts(n, msgid="same", priority=lambda i: i % 10), lambda n: _many("GET", n, msgid="same")
    ),
    "get by one id that is mostly uncommitted": _case(
        lambda n: iter([*_puts(n, msgid="same", uow="u"), *_puts(n, msgid="same")]),
        lambda n: _many("GET", n, msgid="same"),
    ),
    "get of nothing": _case(_none, lambda n: _many("GET", n)),
    "get of nothing by one id": _case(_none, lambda n: _many("GET", n, msgid="same")),
    "put to held gets": _case(lambda n: _many("GET", n), _puts),
    "put to held gets of one id": _case(lambda n: _many("GET", n, msgid="same"), lambda n: _puts(n, msgid="same")),
    "put to a held get of many": _case(lambda n: iter([_event("GET", count=n)]), _puts),
    "put past held gets of another id": _case(lambda n: _many("GET", n, msgid="same"), lambda n: _puts(n, msgid=_id)),
    "held gets that expire": _case(
        lambda n: iter([*_many("GET", n), *_many("GET", n, msgid="same")]),
        lambda n: _many("HEARTBEAT", n, store="", time=lambda i: START_US + HOUR_US + i * 60 * SECOND_US),
    ),
    "commit of a large unit": _case(
        lambda n: iter([*_puts(n, uow="u", priority=lambda i: i % 10), *_puts(n, priority=lambda i: i % 10)]),
        lambda _: iter([_event("COMMIT", uow="u")]),
    ),
    "backout of a large unit": _case(
        lambda n: iter([*_puts(n, priority=lambda i: i % 10), *_many("GET", n, uow="u"), *_puts(n)]),
        lambda _: iter([_event("BACKOUT", uow="u")]),
    ),
    "commit of held gets": _case(lambda n: _many("GET", n, uow="u"), lambda _: iter([_event("COMMIT", uow="u")])),
    "backout of held gets": _case(lambda n: _many("GET", n, uow="u"), lambda _: iter([_event("BACKOUT", uow="u")])),
    "commit of many units": _case(_units_of_one_put, lambda n: _many("COMMIT", n, uow=_shuffled(n, _uow))),
    "backout of messages got by id": _case(lambda n: _puts(n, msgid=_id), _poisoned),
    "get after backouts": _case(
        lambda n: iter([*_puts(n, msgid=_id), *_poisoned(n)]),
        lambda n: _many("GET", n),
    ),
    "restart with many open units": _case(_units_of_one_get, _restart()),
    "restart with many held gets": _case(lambda n: _many("GET", n, uow=_uow), _restart()),
    "clear": _case(lambda n: _puts(n, msgid="same", priority=lambda i: i % 10), lambda _: iter([_event("CLEAR")])),
    "clear with many units": _case(_units_of_one_put, lambda n: _many("CLEAR", n)),
    "expire": _case(lambda n: _puts(n, priority=lambda i: i % 10), lambda n: _many("EXPIRE", n)),
    "expire with count": _case(_puts, lambda n: iter([_event("EXPIRE", count=n)])),
    "restart again and again": _case(lambda n: _puts(n, persistent=True), lambda n: _many("RESTART", n, store="")),
    "alter": _case(_puts, lambda n: _many("ALTER", n, store="", attributes={})),
    "rebuild": _case(_puts, lambda _: iter([_event("REBUILD", store="", attributes={})])),
    "clock that goes back": _case(
        lambda n: iter([*_many("GET", n), *_many("HEARTBEAT", 2, store="", time=START_US * 2)]),
        lambda _: _many("HEARTBEAT", 101, store=""),
    ),
    "far jumps": _case(
        _puts, lambda n: _many("HEARTBEAT", n // 50, store="", time=lambda i: START_US + (i + 1) * 23 * HOUR_US)
    ),
}

STORES: dict[str, Config] = {
    "structure": structure(**_LARGE),
    "structure with SCM": with_scm(),
    "page set": page_set(pages=100_000, expand="NONE"),
    "queue file": queue_file(default_q_buffer_size=0),
}


STRUCTURES_ONLY = frozenset({"rebuild"})


def main() -> None:
    """Print the cost of each case of a kind of store at both sizes."""
    costs_by_case, statements = {}, count_statements()
    config = STORES[sys.argv[1]]
    skipped = frozenset() if sys.argv[1].startswith("structure") else STRUCTURES_ONLY
    for name, case in CASES.items():
        if name in skipped:
            continue
        costs = []
        for size in SIZES:
            before, counted = case(size)
            for event in (*before, *counted):
                if "store" in event:
                    event["store"] = config.name
            costs.append(cost(config, before, counted, statements))
        costs_by_case[name] = costs
    print(json.dumps(costs_by_case))


if __name__ == "__main__":
    main()
