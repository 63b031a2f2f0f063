"""Every reader takes at most in proportion to the length of its input: no line makes an expression quadratic."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.twin.feeds.read import read
from twin.base.errors import MqtwinError
from twin.estate import load_estate
from twin.estate.cfrm import Policies
from twin.estate.mqsc_text import parameters, statements
from twin.feeds import FORMATS, FeedOptions, Page
from twin.feeds.site import recognise

LENGTH = 10_000  # bytes, at which a quadratic expression takes seconds
AT_ONCE_S = 0.02  # below it a time says nothing
GROWTH = 3.2  # of the time, for twice the length: 2 in proportion, 4 quadratic
TRIES = 4

REPEATED = [
    *"\n -_=.,:;'\"\\()[]{}<>|/*#@+%&!?$0123A"[:36],
    *("a", "\t", "\r", "\0", "\f", "\x85", "\u00e9", " \n", "\n\n ", "- ", "-A", "--A ", "---- A, ", "A ", "A\n"),
    *(
        "A(",
        "AA(",
        "AA(B) ",
        "AA(B",
        "AA('",
        "AA('''",
        "A''",
        "/*",
        "*/",
        "/* */",
        "(*",
        "//",
        "*\n",
        "+\n",
        "-\n",
        "=\n",
    ),
    *(
        '\\"',
        '"a":',
        '{"a":',
        '{"a":"',
        '[{"',
        "{}",
        '{"eventSource"',
        "a=",
        "a.b.",
        "[a]",
        '[a."',
        "a{b=",
        'a{b="c"} ',
        "# ",
    ),
    *(
        "1 ",
        "12.",
        "10:00:00 ",
        "105 ",
        "00000090 ",
        "CSQM401I ",
        "CSQM401I A(",
        "IXC360I ",
        "DEFINE ",
        "DATA TYPE ",
        "PAGE 1 ",
    ),
]
_JSON = ["", '{"a":"', '{"commandResponse":[{"parameters":{"queue":"']
HEADS: dict[str, list[str]] = {
    "display": [
        "",
        "10.17.01 STC08037  ",
        "CSQM401I +QM01 QUEUE(",
        "IXC585E STRUCTURE QSG1APP1 ENTRIES: ",
        "CSQI010I +QM01 Page set usage ... 105\n",
    ],
    **dict.fromkeys(("rest", "amqsevt"), _JSON),
    "mqsc": ["", "DEFINE QLOCAL("],
    "cfrm": ["", "STRUCTURE NAME(QSG1APP1) "],
    "toml": ["schema = 1\n", 'schema = 1\n[queue."'],
}

Reader = Callable[[bytes, Path], object]


def feed(name: str) -> Reader:
    """Return the reader of a format."""
    return lambda data, _: read(name, Page(data, "text", 1_795_600_801_000_000), qmgr="QM01")


def mqsc(data: bytes, _: Path) -> None:
    for statement in statements(data.decode("utf-8", "replace"), "a.mqsc"):
        parameters(statement)


def cfrm(data: bytes, _: Path) -> None:
    Policies().read(data.decode("utf-8", "replace"), "policy.txt")


def toml(data: bytes, folder: Path) -> None:
    (folder / "estate.toml").write_bytes(data)
    load_estate(folder / "estate.toml")


def estate_of(kind: str) -> Reader:
    """Return the reader of an estate with an import."""

    def reader(data: bytes, folder: Path) -> None:
        owner = 'queue_manager = "QM01"\n' if kind == "mqsc" else ""
        text = f'schema = 1\n[queue_manager.QM01]\n[[import]]\n{kind} = "part.txt"\n{owner}'
        (folder / "estate.toml").write_text(text)
        (folder / "part.txt").write_bytes(data)
        load_estate(folder / "estate.toml")

    return reader


def recognised(data: bytes, folder: Path) -> None:
    (folder / "a.txt").write_bytes(data)
    recognise(folder / "a.txt", FeedOptions())


READERS: dict[str, Reader] = {
    **{name: feed(name) for name, own in FORMATS.items() if own.is_file},
    "mqsc": mqsc,
    "cfrm": cfrm,
    "toml": toml,
    "estate with mqsc": estate_of("mqsc"),
    "estate with cfrm": estate_of("cfrm"),
}


def seconds(reader: Reader, data: bytes, folder: Path) -> float:
    """Return the processor time of a reader. What it says about its input does not matter here."""
    start = time.process_time()
    with suppress(MqtwinError):
        reader(data, folder)
    return time.process_time() - start


def is_in_proportion(reader: Reader, head: str, repeated: str, folder: Path) -> bool:
    """Return True if twice the text takes about twice the time, in one of some tries."""
    texts = [(head + repeated * (length // len(repeated.encode()))).encode() for length in (LENGTH, 2 * LENGTH)]
    for _ in range(TRIES):
        if seconds(reader, texts[1], folder) < GROWTH * AT_ONCE_S:
            return True
        once, twice = (min(seconds(reader, text, folder) for _ in range(2)) for text in texts)
        if twice < GROWTH * max(once, AT_ONCE_S):
            return True
    return False


@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.nightly)], ids=["some", "all"])
@pytest.mark.parametrize("name", READERS)
def test_no_line_is_quadratic(name: str, step: int, tmp_path: Path) -> None:
    reader = READERS[name]
    slow = [
        (head, repeated)
        for head in HEADS.get(name, [""])
        for repeated in REPEATED[::step]
        if not is_in_proportion(reader, head, repeated, tmp_path)
    ]
    assert not slow


@pytest.mark.parametrize("repeated", ["\n", "-", '\\"', " ", ",", "A(", "'"])
def test_the_format_of_a_file_is_recognised_in_proportion(repeated: str, tmp_path: Path) -> None:
    assert is_in_proportion(recognised, '{"a":"', repeated, tmp_path)
