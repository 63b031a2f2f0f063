"""Checked conversion of single values.

A check takes a value as it was written and returns it as the estate holds it, or raises ValueError or TypeError whose
text says what would be right ("must be 0 to 100"). `convert` makes an `EstateError` of that, with place and value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from twin.estate.errors import EstateError, shown
from twin.units import MAX_SIZE, format_size, parse_size

Check = Callable[[Any], Any]
WRONG = (ValueError, TypeError)  # what a check raises


@dataclass(frozen=True, slots=True)
class Given:
    """A value, checked and converted, and where it was written: what a later error about it names."""

    value: Any
    where: str


Values = Mapping[str, Given]  # attribute of the estate -> what was given for it


def convert(where: str, value: object, check: Check) -> Given:
    """The value through its check. EstateError: "<where>: <what would be right>"; `where` already shows the value."""
    try:
        return Given(check(value), where)
    except WRONG as wrong:
        raise EstateError(f"{where}: {wrong}") from None


def at_key(file: str, path: str, key: str, value: object) -> str:
    """Where a value of the TOML file stands: `estate.toml: structure."QSG1/APP1".size = "4GB"`."""
    return f"{file}: {path}.{key} = {shown(value)}"


def integer(low: int, high: int) -> Check:
    """An integer of low to high (booleans are not integers)."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"must be an integer of {low} to {high}")
        return value

    return check


def digits(low: int, high: int) -> Check:
    """An integer written in digits, as MQSC and CFRM have it."""

    def check(value: str) -> int:
        if not re.fullmatch("[0-9]{1,12}", value) or not low <= int(value) <= high:
            raise ValueError(f"must be a number of {low} to {high}")
        return int(value)

    return check


def number(low: float, high: float) -> Check:
    """A number above low, at most high, as a float."""

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low < value <= high:
            raise ValueError(f"must be a number above {low:g}, at most {high:g}")
        return float(value)

    return check


def size(low: int, high: int = MAX_SIZE, *, unit: str = "") -> Check:
    """A size in bytes; `unit` is that of a number without one."""

    def check(value: Any) -> int:
        try:
            parsed = parse_size(value, unit=unit)
        except WRONG:
            bare = {"": "bytes", "K": "KB"}[unit]
            raise ValueError(f'must be a whole number of {bare}, or of K, M, G or T, like "4G"') from None
        if not low <= parsed <= high:
            bounds = f"{format_size(low)} to {format_size(high)}" if high < MAX_SIZE else f"at least {format_size(low)}"
            raise ValueError(f"must be {bounds}")
        return parsed

    return check


def boolean(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise TypeError("must be true or false")
    return value


def one_of(*allowed: str) -> Check:
    """One of the words, in capitals or not; returned as spelled here."""
    spelled = {word.upper(): word for word in allowed}

    def check(value: Any) -> str:
        if not isinstance(value, str) or value.upper() not in spelled:
            raise ValueError(f"must be {_either(allowed)}")
        return spelled[value.upper()]

    return check


def mapped(meaning: Mapping[str, Any]) -> Check:
    """One of the keys, in capitals or not; returned as what it means."""

    def check(value: Any) -> Any:
        if not isinstance(value, str) or value.upper() not in meaning:
            raise ValueError(f"must be {_either(tuple(meaning))}")
        return meaning[value.upper()]

    return check


def block_size(sizes: Mapping[str, int]) -> Check:
    """One of the sizes, written in any way."""
    any_size = size(0)

    def check(value: Any) -> int:
        parsed: int = any_size(value)
        if parsed not in sizes.values():
            raise ValueError(f"must be {_either(tuple(sizes))}")
        return parsed

    return check


def text(pattern: str, right: str) -> Check:
    """A string that the pattern matches as a whole; `right` says what it must be."""
    compiled = re.compile(pattern)

    def check(value: Any) -> str:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise ValueError(f"must be {right}")
        return value

    return check


def names(each: Check, right: str) -> Check:
    """A list of at least one, each through its check, none twice; returned as a sorted tuple."""

    def check(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not value:
            raise ValueError(f"must be a list of {right}")
        checked = [each(one) for one in value]
        if len(set(checked)) < len(checked):
            raise ValueError(f"must be a list of {right}, none of them twice")
        return tuple(sorted(checked))

    return check


def or_none(check: Check) -> Check:
    """None (JSON's null: the attribute absent), or what the check takes."""
    return lambda value: None if value is None else check(value)


def word_set(words: str) -> frozenset[str]:
    """The words of a string, blanks between them."""
    return frozenset(words.split())


def _either(words: tuple[str, ...]) -> str:
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]
