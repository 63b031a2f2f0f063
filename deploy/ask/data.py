"""Texts of others as data, results that are small, and a search in the documentation.

Whoever names a queue, writes a note or sends a message that is refused could write to the program that asks: its texts
are quoted by JSON, without a control or direction character, and cut. Every answer passes here as a whole, so no tool
can leave it out.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from deploy.ask.replies import Answer
from deploy.show.terminal import printable

MAX_BYTES = 4_000  # of a result
MAX_TEXT = 600  # characters of one text
_SHORTER = (300, 120, 40, 12)  # the same where a result has no list left to cut


class Reply(NamedTuple):
    """An answer."""

    content: Answer
    paged: str = ""  # its list that is asked for in parts; "": none
    skipped: int = 0  # items of that list before these
    total: int = 0  # items of that list in all


def as_data(text: str, limit: int = MAX_TEXT) -> str:
    """Return a text of others as data: control and direction characters escaped, and cut. limit: characters."""
    own = printable(text[: limit + 1])
    if len(text) <= limit and len(own) <= limit:
        return own
    return f"{own[:limit]}... ({len(text):,} characters)"


def small(reply: Reply) -> dict[str, Any]:
    """Return an answer as it is sent: its texts as data, in at most `MAX_BYTES` of JSON.

    The longest list loses its last item until it fits; `more` says how many, and how to get them.
    """
    whole = msgspec.to_builtins(reply.content)
    for limit in (MAX_TEXT, *_SHORTER):
        content: dict[str, Any] = _cleaned(whole, limit)
        left_out: dict[str, int] = {}
        while True:
            content["more"] = _more(reply, content, left_out)
            if len(msgspec.json.encode(content)) <= MAX_BYTES:
                return content
            name, longest = max(_lists(content), key=lambda own: _size(own[1]), default=("", []))
            if not longest:
                break
            longest.pop()
            left_out[name] = left_out.get(name, 0) + 1
    raise AssertionError(reply.content)  # fields are few, and each is short now


def _more(reply: Reply, content: dict[str, Any], left_out: dict[str, int]) -> str:
    texts = [reply.content.more] if reply.content.more else []
    texts += [f"{count} more of {name}" for name, count in left_out.items() if name != reply.paged]
    if reply.paged:
        following = reply.skipped + len(content[reply.paged])
        if following < reply.total:
            texts.insert(0, f"{reply.total - following} more of {reply.paged}; ask for skip={following}")
    return "; ".join(texts)


def _cleaned(content: Any, limit: int) -> Any:
    if isinstance(content, str):
        return as_data(content, limit)
    if isinstance(content, dict):
        return {as_data(key, limit): _cleaned(value, limit) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_cleaned(value, limit) for value in content]
    return round(content, 3) if isinstance(content, float) else content


def _lists(content: dict[str, Any]) -> list[tuple[str, list[Any]]]:
    lists = []
    for name, value in content.items():
        if isinstance(value, list) and value:
            lists.append((name, value))
            if len(value) == 1 and isinstance(value[0], dict):  # of a single item its own lists are cut, too
                lists += _lists(value[0])
        elif isinstance(value, dict):
            lists += _lists(value)
    return lists


def _size(content: list[Any]) -> int:
    return len(msgspec.json.encode(content))


_PLACES = (Path(__file__).with_name("documentation"), Path(__file__).parents[2] / "docs")
_WORD = re.compile(r"[a-z0-9]+")
_HEADING = re.compile(r"^(#{1,3}) (.+)$")
_TITLE_WEIGHT = 4  # a word of a heading counts as often


class Section(NamedTuple):
    """A section of a page. words: how often it has each."""

    page: str
    heading: str
    text: str
    words: Counter[str]


def search(query: str, limit: int) -> tuple[list[Section], int]:
    """Return the sections that answer a query best, and the number of all that have a word of it.

    The wheel has the pages beside this file (hatch_build.py); in a clone they are those of docs/.
    """
    sections = _sections()
    query_words = dict.fromkeys(_words(query))
    having = {word: sum(word in own.words for own in sections) for word in query_words}
    weights = {word: math.log(1 + len(sections) / count) for word, count in having.items() if count}

    def score(section: Section) -> float:
        rare = sum(min(3, section.words[word]) * weight for word, weight in weights.items())
        return rare / math.log(10 + section.words.total()) * sum(word in section.words for word in weights)

    ranked = sorted((own for own in sections if score(own) > 0), key=score, reverse=True)
    return ranked[:limit], len(ranked)


def excerpt(section: Section, query: str, characters: int) -> str:
    """Return the part of a section that has most words of a query, as one line."""
    query_words, lines = set(_words(query)), [line for line in section.text.splitlines() if line.strip()]
    texts = [" ".join(lines[place:]) for place in range(len(lines))]
    best = max(texts, key=lambda text: len(query_words & set(_words(text[:characters]))), default="")
    return " ".join(best.split())[:characters]


def _words(text: str) -> list[str]:
    """Return the words of a text without the endings of plurals."""
    return [word[:-1] if len(word) > 3 and word.endswith("s") else word for word in _WORD.findall(text.lower())]


@cache
def _sections() -> list[Section]:
    folder = next((place for place in _PLACES if place.is_dir()), None)
    return [] if folder is None else [own for path in sorted(folder.glob("*.md")) for own in _parts(path)]


def _parts(path: Path) -> list[Section]:
    parts: list[tuple[str, list[str]]] = [(path.stem, [])]
    is_code = False
    for line in path.read_text(encoding="utf-8").splitlines():
        is_code ^= line.startswith("```")
        heading = None if is_code else _HEADING.match(line)
        if heading is not None:
            parts.append((heading[2], []))
        else:
            parts[-1][1].append(line)
    texts = ((heading, "\n".join(lines)) for heading, lines in parts)
    return [
        Section(path.name, heading, text, Counter(_TITLE_WEIGHT * _words(heading) + _words(text)))
        for heading, text in texts
        if text.strip()
    ]
