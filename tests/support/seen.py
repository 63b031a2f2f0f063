"""Rules for every text that a person can see: what none may have."""

from __future__ import annotations

import re
from collections.abc import Iterable

_EXPONENT = re.compile(r"[0-9]e[+-]?[0-9]{2}\b")
_NOTHING = re.compile(r"\b(?:nan|inf|NaN|Infinity|None|null|undefined)\b")
_PLACEHOLDER = re.compile(r"\.\.\.|\bnn\b|<[^>]*>|\([a-z][a-z ]*\)|\{[^}]*\}|=[a-z]+\b")
_PERCENT = re.compile(r"([0-9][0-9,]*(?:\.[0-9]+)?) ?%")
_SPACES = re.compile(r"\S {2,}\S")
_CLOCK = re.compile(r"(?<![0-9T:~-])(?<!falling since )(?<![0-9]{4}-[0-9]{2}-[0-9]{2} )[0-2][0-9]:[0-5][0-9]\b")
_WITHOUT_ZONE = re.compile(r"(?<![0-9T:+-])[0-2][0-9]:[0-5][0-9](?::[0-5][0-9])?(?![0-9:.])(?! [A-Z]{3})")
# A load, a sum of maxima, what all structures of a facility use.
_REASON_ABOVE = re.compile(r"more than the twin has room for|\bcapacity\b|overcommitted|SCM of CF[0-9]+: all")


def has_gap(statement: str) -> bool:
    """Return True if a reader would have to fill in something before the statement can be typed."""
    return _PLACEHOLDER.search(statement) is not None


def offences(texts: Iterable[str], *, is_distributed: bool = False, is_table: bool = False) -> list[str]:
    """Return what is wrong with texts, a line for each offence.

    Args:
        texts: sentences, or lines of output.
        is_distributed: True if they are about a distributed queue manager, whose code is 2056.
        is_table: True if columns may stand apart.
    """
    return [f"{what}: {text}" for text in texts for what in _offences(text, is_distributed, is_table)]


def _offences(text: str, is_distributed: bool, is_table: bool) -> list[str]:
    percentages = [float(number.replace(",", "")) for number in _PERCENT.findall(text)]
    rules = {
        "an exponent": _EXPONENT.search(text) is not None,
        "no value": _NOTHING.search(text) is not None,
        "two spaces": not is_table and _SPACES.search(text.strip()) is not None,
        "a time without a date": _CLOCK.search(text) is not None,
        "a time without a zone": _WITHOUT_ZONE.search(text) is not None,
        "2192 of a distributed queue manager": is_distributed and "2192" in text,
        "more than 100 % without a reason": any(pct > 100 for pct in percentages) and not _REASON_ABOVE.search(text),
        "a size that DISPLAY does not have": "of what it can grow to" in text or "of the present" in text,
    }
    return [what for what, holds in rules.items() if holds]
