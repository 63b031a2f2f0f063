"""Bytes of others that are JSON or MessagePack: no sense, one byte that is not UTF-8, nested 100,000 deep.

Each reader answers as to any text that it does not know, and a new one has to: the errors of decoding have one name.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from streams.checkpoint.files import DamagedFileError, decode_json
from streams.collecting.mqweb_session import decode_answer
from streams.collecting.sources import load_position
from streams.query.status import read_status
from twin.base.errors import MqtwinError
from twin.estate import EstateError
from twin.estate.planned import read_history
from twin.events import EventError
from twin.events.rules import parse
from twin.state.tables import StateError
from twin.stores.headers import decode_header, decode_shared_state, is_older

ROOT = Path(__file__).resolve().parents[1]
_PACKED_NOT_UTF_8 = b"\x81\xa4kind\xa1\xff"
_PACKED_DEEP = b"\x81\xa4kind" + b"\x91" * 100_000

HOSTILE = {
    "nonsense": b"{nonsense",
    "not UTF-8": b'{"name":"H\xe4user","source":"\xff","commandResponse":[{"parameters":{"descr":"\xe4"}}]}',
    "nested": b'{"commandResponse":' + b"[" * 100_000,
    "nested objects": b'{"a":' * 100_000,
}
"""Texts that each of these readers refuses."""


def of_file(read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    """Return a reader of bytes from one of a file."""

    def reader(data: bytes, folder: Path) -> object:
        path = folder / "file"
        path.write_bytes(data)
        return read(path)

    return reader


READERS: dict[str, Callable[[bytes, Path], Any]] = {
    "an answer of mqweb": lambda data, _: decode_answer(data),
    "a position": of_file(lambda path: load_position(path, "source")),
    "a history": of_file(read_history),
    "a status": of_file(read_status),
    "an event": lambda data, _: parse(data),
    "a file of Spark": lambda data, _: decode_json(data.decode("utf-8", "replace"), dict[str, int]),
    "a header": lambda data, _: decode_header(data, "structure", "QSG1/APP1"),
    "a header of a shared store": lambda data, _: decode_shared_state(data, "CF01"),
    "a version": lambda data, _: is_older(data, "CF01"),
}


@pytest.mark.parametrize("data", [*HOSTILE.values(), _PACKED_NOT_UTF_8, _PACKED_DEEP], ids=[*HOSTILE, "packed", "deep"])
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_what_others_write_ends_no_reader(read: Callable[[bytes, Path], Any], data: bytes, tmp_path: Path) -> None:
    with suppress(MqtwinError, EstateError, EventError, StateError, DamagedFileError):
        read(data, tmp_path)


def _handlers() -> list[tuple[str, int, str]]:
    """Return each handler of the product that names an error of decoding itself: file, line, text."""
    handlers = []
    for package in ("twin", "streams", "deploy"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ExceptHandler) and node.type is not None:
                    text = ast.unparse(node.type)
                    if ("DecodeError" in text and "msgspec" in text) or "MsgspecError" in text:
                        handlers.append((str(path.relative_to(ROOT)), node.lineno, text))
    return handlers


def test_whoever_decodes_expects_all_that_it_raises() -> None:
    assert _handlers() == []  # UNREADABLE of `twin.base.decoding` has all three
