"""Texts of others as data, and results that are small.

Whoever names a queue, writes a note or sends a message that is refused could write to the program that asks: its texts
are quoted by JSON, without a control or direction character, and cut. Every answer passes here as a whole, so no tool
can leave it out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from deploy.ask.replies import Answer
from deploy.show.terminal import printable

MAX_BYTES = 4_000  # of a result
MAX_TEXT = 600  # characters of one text
_SHORTER = (300, 120, 40, 12)  # the same where a result has no list left to cut


class Reply(NamedTuple):
    """An answer.

    Attributes:
        content: the answer; its field `more` says what was left out.
        paged: its list that is asked for in parts; "": none.
        skipped: items of that list before these.
        total: number of items of that list in all.
    """

    content: Answer
    paged: str = ""
    skipped: int = 0
    total: int = 0


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
    """Return the lists that are not empty, by the names of their fields."""
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
