"""Options of all commands as a table: one name has one meaning and one type, and one meaning has one name."""

from __future__ import annotations

import re
import types
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple, Union, get_args, get_origin

import pytest

from deploy.cli import RENAMED, main, with_new_names
from docs.make_commands import arguments, commands

# Several names whose help begins alike, and why they are not one option.
_PAIRS = [
    {"--estate", "--against"},  # `mqtwin estate import` writes an estate: --against is compared with it
    {"--messages", "--persistent", "--at-max-depth", "--rate"},  # LENGTH:COUNT of different messages
    {"--queue-managers", "--cflevel"},  # with --admin
]
_OTHER_TYPES = {
    "--checkpoint",
    "--rate",
    "--queues",
    "--follow",
    "--spans",
    "--messages",
}  # a URI for Spark; of a page set a rate for each length; numbers, names; the file, of `collect`; where from; a mix
_OTHER_WORDS = {"--set", "--messages"}  # parameters of a scenario, or attributes; a mix, or planned work


class Option(NamedTuple):
    """An option of a command. meaning: its help; type: without None, and of a repeated one that of an item."""

    command: str
    name: str
    type: Any
    meaning: str


def table() -> Iterator[Option]:
    for command, app in commands():
        for argument in arguments(app):
            names = [name for name in argument.names if name.startswith("--")]
            if names:
                yield Option(command, names[0], item_type(argument.hint), argument.parameter.help or "")


def item_type(hint: Any) -> Any:
    kinds = [kind for kind in get_args(hint) if kind not in (type(None), Ellipsis)]
    if get_origin(hint) in (Union, types.UnionType, tuple) and kinds:
        return item_type(kinds[0])
    return kinds[0] if hasattr(hint, "__metadata__") else hint


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}", text.lower().replace("json", "text")))


def beginning(meaning: str) -> str:
    return re.split(r"[.,;:(]", meaning)[0].strip().lower()


TABLE = list(table())


def test_every_option_says_what_it_means() -> None:
    assert len(TABLE) > 200
    assert [(option.command, option.name) for option in TABLE if not option.meaning] == []


def test_one_meaning_has_one_name() -> None:
    names = defaultdict[str, set[str]](set)
    for option in TABLE:
        names[beginning(option.meaning)].add(option.name)
    assert [own for own in names.values() if len(own) > 1 and not any(own <= pair for pair in _PAIRS)] == []


@pytest.mark.parametrize("name", sorted({option.name for option in TABLE}))
def test_one_name_has_one_meaning_and_one_type(name: str) -> None:
    own = [option for option in TABLE if option.name == name]
    assert name in _OTHER_WORDS or set.intersection(*(words(option.meaning) for option in own)), own
    assert name in _OTHER_TYPES or len({option.type for option in own}) == 1, own


@pytest.mark.parametrize(
    ("words", "now"),
    [
        ("console --port 0", "console --listen=127.0.0.1:0"),
        ("console --host=::1 --port 1 --open", "console --open --listen=[::1]:1"),
        ("start a.dat --port 0", "start a.dat --listen=127.0.0.1:0"),
        ("broker --port=9092", "broker --listen=127.0.0.1:9092"),
        ("publish r --as arrow", "publish r --content-type arrow"),
        ("size cluster --events-per-second=5", "size cluster --rate=5"),
        ("simulate burst --hours 3", "simulate burst --set=hours=3"),
        ("warm --from a b", "warm --recording a b"),
        ("advise S --write=plans", "advise S --output=plans"),
        ("commission --hours 3", "commission --last-hours 3"),
    ],
)
def test_an_old_name_still_works_and_warns_in_a_line(words: str, now: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert " ".join(with_new_names(words.split())) == now
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("words", ["advise S --hours 3", "whatif S --hours 3", "size page-set --rate 2K:5", "demo"])
def test_a_name_that_stays_is_not_touched(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert " ".join(with_new_names(words.split())) == words
    assert capsys.readouterr().err == ""


def test_the_new_names_are_options_of_their_commands() -> None:
    known = {(option.command, option.name) for option in TABLE}
    for command, own in RENAMED.items():
        for old, new in own.items():
            assert (command, new.name) in known and (command, old) not in known


def test_the_recording_of_record_is_an_output(capsys: pytest.CaptureFixture[str]) -> None:
    record = ["record", "--bootstrap-servers", "localhost:9"]
    assert main(record) == 2
    assert "expected: --output FILE" in capsys.readouterr().err
    assert main([*record, "r.txt"]) == 2
    warning, error = capsys.readouterr().err.splitlines()
    assert "the recording is now --output r.txt" in warning and "r.txt" in error
