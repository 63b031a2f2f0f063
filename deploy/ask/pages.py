"""Search in the documentation: sections of its pages, those that have most of the words first.

The wheel has the pages beside this file (hatch_build.py); in a clone they are those of docs/.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

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
    """Return the sections that answer a query best, and the number of all that have a word of it."""
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
