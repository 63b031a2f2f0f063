"""Calls in the machine code of the event loop: each hands over every array of the store, some 300 values."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from kernels import event_loop
from twin.stores.warm_up import warm

# Routines that a working queue calls seldom or never. What a plain put, get or commit needs is inlined.
RARE = {
    "event_loop._act_rarely": "an operation other than PUT, GET, COMMIT and BACKOUT, or one that failed",
    "event_loop._refuse": "demands only",
    "messages.fits": "more messages are stored that did not fit than are kept",
    "messages.remove_expired": "a get meets a message that has expired",
    "ids.hold_get": "the message of a get has not arrived",
    "ids._match_held_get": "gets wait for messages",
    "ids.forget_get": "a unit with waiting gets is backed out",
    "chains._insert_late": "a message is committed late, or returns",
    "chains._remove_late": "such a message is taken",
    "ids._leave_others": "several messages share an id",
    "chains.heap_without": "such messages",
    "chains.heap_without_top": "such messages",
    "scm._leave_heap": "a message that is late in the order of storage class memory",
    "watch.pass_quietly": "the clock moves over a tick",
    "scm.on_accepted_put": "a structure has no room for a put that was accepted",
    "scm._run": "storage class memory has something to move",
    "watch.move": "storage class memory begins to move",
    "queue_file._checkpoint": "the 10,000th log record since the last checkpoint",
    "watch._look_at_pages": "page sets",
    "watch._look_at_file": "queue files",
}

_DEFINITION = re.compile(r'^define .*?@"?([^"(]+)')
_CALL = re.compile(r'\bcall\b.*?@"?([^"(]+)"?\((.*)')
_MANY = 100  # arguments: only a store has more


def _name(symbol: str) -> str:
    """Return module and function of a mangled name: ``_ZN7kernels6chains12heap_without...`` is such a name."""
    parts, rest = [], symbol.removeprefix("_ZN")
    while size := re.match(r"\d+", rest):
        start = size.end()
        parts.append(rest[start : start + int(size[0])])
        rest = rest[start + int(size[0]) :]
    return ".".join(parts[1:3])


def _calls_with_the_store() -> set[str]:
    """Return the functions that the compiled `apply` calls with a store."""
    warm()
    dispatcher = event_loop.apply._outer  # type: ignore[attr-defined]
    library = dispatcher.overloads[dispatcher.signatures[0]].library
    # Loaded from disk or compiled just now, the code that others may link with is what it runs.
    module = library._get_module_for_linking()
    called, inside = set(), False
    for line in str(module).splitlines():
        definition = _DEFINITION.match(line)
        if definition:
            inside = _name(definition[1]) == "event_loop.apply"
        call = _CALL.search(line) if inside else None
        if call and call[2].count(",") > _MANY:
            called.add(_name(call[1]))
    return called


def test_what_a_queue_does_all_the_time_calls_nothing_with_the_store() -> None:
    called = _calls_with_the_store() - {"event_loop.apply"}  # its wrapper for Python
    assert "event_loop._act_rarely" in called  # the calls are found
    assert called <= RARE.keys()


@pytest.mark.parametrize("name", RARE)
def test_what_is_rare_exists(name: str) -> None:
    module, _, function = name.partition(".")
    assert callable(getattr(import_module(f"kernels.{module}"), function))
