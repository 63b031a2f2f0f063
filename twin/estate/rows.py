"""Rows of attributes: all that is known of one, and the checked conversion of single values.

- A check converts a value from its source form to the form of the estate, or raises ValueError or TypeError whose text
  states the expected value ("must be 0 to 100"). `convert` turns that into an `EstateError` with place and value.
- Tables of the TOML file, keywords of MQSC, CFRM and D XCF texts, texts of what people changed, statements of plans and
  sliders of the page are made of rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import Enum
from functools import partial
from typing import Any, ClassVar, TypeVar, dataclass_transform

from twin.base.units import CYLINDER, KIB, MAX_SIZE, TRACK, format_size, parse_size
from twin.estate.errors import EstateError, show

# --- checked conversion of single values ------------------------------------------------------------------------------

Check = Callable[[Any], Any]
"""A check of a value of the estate: it returns the value, converted, or raises one of WRONG with what it must be."""
WRONG = (ValueError, TypeError)  # raised by checks


@dataclass(frozen=True, slots=True)
class SourceValue:
    """Checked value and its place in the source, which later errors name."""

    value: Any
    where: str


Values = Mapping[str, SourceValue]  # by attribute of the estate


def convert(where: str, value: object, check: Check) -> SourceValue:
    """Check and convert a value. EstateError: the check refuses the value."""
    try:
        return SourceValue(check(value), where)
    except WRONG as wrong:
        raise EstateError(f"{where}: {wrong}") from None


def locate_key(file: str, path: str, key: str, value: object) -> str:
    """Return place and value of a key of the TOML file: `estate.toml: structure."QSG1/APP1".size = "4GB"`."""
    return f"{file}: {path}.{key} = {show(value)}"


def integer(low: int, high: int) -> Check:
    """Return a check for integers of low to high (booleans are not integers)."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"must be an integer of {low} to {high}")
        return value

    return check


def digits(low: int, high: int) -> Check:
    """Return a check for integers written in digits, as in MQSC and CFRM."""

    def check(value: str) -> int:
        if not re.fullmatch("[0-9]{1,12}", value) or not low <= int(value) <= high:
            raise ValueError(f"must be a number of {low} to {high}")
        return int(value)

    return check


def with_unit(factor: int, low: int, high: int, unit: str) -> Check:
    """Return a check for digits with a unit letter, converted to bytes, as in MQSC: OFFLD1SZ(32K)."""
    count = digits(low, high)

    def check(value: str) -> int:
        """Return digits with the unit in bytes. ValueError: others, or out of bounds."""
        try:
            converted: int = count(value.removesuffix(unit) if value.endswith(unit) else "") * factor
        except ValueError:
            raise ValueError(f"must be {low}{unit} to {high}{unit}") from None
        return converted

    return check


def number(low: float, high: float, *, or_low: bool = False) -> Check:
    """Return a check for numbers above low (or_low: or low itself), up to high; it converts to float."""
    bounds = f"from {low:g} to {high:g}" if or_low else f"above {low:g}, at most {high:g}"

    def check(value: Any) -> float:
        """Return a number as float. ValueError: it is not a number, or out of bounds."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not (low < value <= high or (or_low and value == low)):
            raise ValueError(f"must be a number {bounds}")
        return float(value)

    return check


def size(low: int, high: int = MAX_SIZE, *, unit: str = "", units: str = "K, M, G or T") -> Check:
    """Return a check for sizes in bytes; `unit` is that of a number without one, `units` those that errors name."""

    def check(value: Any) -> int:
        """Return a size in bytes. ValueError: it is not a size, or out of bounds."""
        try:
            parsed = parse_size(value, unit=unit)
        except WRONG:
            bare = {"": "bytes", "K": "KB"}[unit]
            raise ValueError(f'must be a whole number of {bare}, or of {units}, like "4G"') from None
        if not low <= parsed <= high:
            bounds = f"{format_size(low)} to {format_size(high)}" if high < MAX_SIZE else f"at least {format_size(low)}"
            raise ValueError(f"must be {bounds}")
        return parsed

    return check


def disk_size(low: int, high: int = MAX_SIZE) -> Check:
    """Return a check for sizes of data sets: as `size`, or cylinders or tracks of a 3390 ("3000 CYL", "45 TRK")."""
    other = size(low, high, units="K, M, G, T, CYL or TRK")

    def check(value: Any) -> int:
        """Return a size, or space of a 3390, in bytes. ValueError: it is neither, or out of bounds."""
        space = re.fullmatch(r"([0-9]{1,9}) ?(CYL|TRK)", value.strip().upper()) if isinstance(value, str) else None
        if space is None:
            checked: int = other(value)
            return checked
        return int(other(int(space[1]) * (CYLINDER if space[2] == "CYL" else TRACK)))

    return check


def disk_pages(low: int, high: int) -> Check:
    """Return a check for 4 KB records of a data set: an integer, or cylinders or tracks of a 3390 ("3000 CYL")."""
    pages, space = integer(low, high), disk_size(0)

    def check(value: Any) -> int:
        """Return a number of 4 KB records. ValueError: it is not a number, or out of bounds."""
        if not isinstance(value, str):
            return int(pages(value))
        if not value.strip().upper().endswith(("CYL", "TRK")):
            raise ValueError(f'must be an integer of {low} to {high}, or of CYL or TRK, like "3000 CYL"')
        return int(pages(space(value) // (4 * KIB)))

    return check


def boolean(value: Any) -> bool:
    """Check for true or false."""
    if not isinstance(value, bool):
        raise TypeError("must be true or false")
    return value


def one_of(*allowed: str) -> Check:
    """Return a check for words in any case; it converts to the spelling in `allowed`."""
    spelled = {word.upper(): word for word in allowed}

    def check(value: Any) -> str:
        if not isinstance(value, str) or value.upper() not in spelled:
            raise ValueError(f"must be {_joined_by_or(allowed)}")
        return spelled[value.upper()]

    return check


def mapped(meaning: Mapping[str, Any]) -> Check:
    """Return a check for the keys of a mapping in any case; it converts to their values."""

    def check(value: Any) -> Any:
        if not isinstance(value, str) or value.upper() not in meaning:
            raise ValueError(f"must be {_joined_by_or(tuple(meaning))}")
        return meaning[value.upper()]

    return check


def block_size(sizes: Mapping[str, int]) -> Check:
    """Return a check for some sizes, in any notation."""
    any_size = size(0)

    def check(value: Any) -> int:
        """Return one of the sizes in bytes. ValueError: it is none of them."""
        parsed: int = any_size(value)
        if parsed not in sizes.values():
            raise ValueError(f"must be {_joined_by_or(tuple(sizes))}")
        return parsed

    return check


def text(pattern: str, right: str) -> Check:
    """Return a check for strings that fully match a pattern; `right` states what is expected."""
    compiled = re.compile(pattern)

    def check(value: Any) -> str:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise ValueError(f"must be {right}")
        return value

    return check


QMGR_NAME = text("[A-Za-z0-9._%]{1,48}", "a queue manager name: 1 to 48 letters, digits and . _ %")
FACILITY_NAME = text("[A-Z][A-Z0-9@#$]{0,7}", "the name of a coupling facility: 1 to 8 capitals and digits")
HOST_NAME = text("[A-Za-z0-9._-]{1,253}", "the name of a host: 1 to 253 letters, digits and . _ -")


def names(each: Check, right: str) -> Check:
    """Return a check for lists of distinct names, at least one; it converts to a sorted tuple."""

    def check(value: Any) -> tuple[str, ...]:
        """Return names, sorted. ValueError: no list, an empty one, or a name twice; also what `each` raises."""
        if not isinstance(value, list) or not value:
            raise ValueError(f"must be a list of {right}")
        checked = [each(name) for name in value]
        if len(set(checked)) < len(checked):
            raise ValueError(f"must be a list of {right}, none of them twice")
        return tuple(sorted(checked))

    return check


def or_none(check: Check) -> Check:
    """Return a check that also accepts None (null in JSON: the attribute is absent)."""
    return lambda value: None if value is None else check(value)


def or_none_for_0(check: Check) -> Check:
    """Return a check that converts 0 to None: the attribute is absent, also where an imported text has it."""
    return lambda value: check(value) or None


def blank_or(check: Check) -> Check:
    """Return a check that converts a blank value to None."""
    return lambda value: check(value) if value else None


def word_set(words: str) -> frozenset[str]:
    """Return the words of a string."""
    return frozenset(words.split())


def _joined_by_or(words: tuple[str, ...]) -> str:
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]


# --- rows -------------------------------------------------------------------------------------------------------------

BYTES, PAGES = "bytes", "pages"  # units of sizes


class Change(Enum):
    """The ways in which an attribute changes while its store exists."""

    EVENT = "ALTER or REBUILD"
    START = "the next start of the queue manager"
    MACHINE = "another machine or policy"
    NOTHING = "an assumption of the model, not a setting of MQ"


@dataclass(frozen=True, slots=True)
class Form:
    """Unit and range of values."""

    check: Check  # of a value of the TOML file or of an event
    word: Check | None = None  # check of a word of MQSC or of a CFRM policy; None: no such text has it
    unit: str = ""  # BYTES, PAGES or ""
    write: Callable[[Any], str] | None = None  # the way to write it in MQSC; None: as people read it

    def text(self, value: object) -> str:
        """Return a value as people read it: `1G`, `70`, `YES`, `none`."""
        if isinstance(value, bool):
            return "YES" if value else "NO"
        if isinstance(value, int):
            return format_size(value) if self.unit == BYTES else f"{value:,}"
        return "none" if value is None else str(value)


def whole(low: int, high: int) -> Form:
    """Return the form of integers."""
    return Form(integer(low, high), digits(low, high))


def choice(*words: str) -> Form:
    """Return the form of words."""
    return Form(one_of(*words), mapped({word: word for word in words}))


def in_bytes(low: int) -> Form:
    """Return the form of sizes; in a CFRM policy a number without a unit is in KB."""
    return Form(size(low), size(1, unit="K"), BYTES)


def on_disk(low: int, high: int, unit: str = BYTES) -> Form:
    """Return the form of sizes of data sets, in bytes or 4 KB records."""
    return Form((disk_size if unit == BYTES else disk_pages)(low, high), unit=unit)


YES_NO = Form(boolean, mapped({"YES": True, "NO": False}))


@dataclass(frozen=True, slots=True)
class Attribute:
    """The row of an attribute; called with a value of the TOML file or of an event, it checks it."""

    form: Form
    mqsc: str = ""  # keyword in MQSC
    cfrm: str = ""  # keyword in a CFRM policy
    xcf: str = ""  # keyword of a size in the output of D XCF,STR
    label: str = ""  # its name on the page; "": the keyword, else that of the field
    change: Change = Change.EVENT  # what changes it
    action: str = ""  # the action of runbooks by which people change it; "": none
    optional: bool = False  # True if null in an event removes it

    def __call__(self, value: Any) -> Any:
        """Return a value as the estate has it. Raises as the check."""
        return self.form.check(value)

    @property
    def word(self) -> str:
        """Its name in texts: MQ's keyword, else the label."""
        return self.mqsc or self.cfrm or self.label

    def statement(self, value: object) -> str:
        """Return keyword and value in MQSC."""
        return f"{self.mqsc}({(self.form.write or self.form.text)(value)})"


Table = Mapping[str, Attribute]
"""Attributes by name."""


class Config:
    """A table of the estate whose fields have rows."""

    __slots__ = ()
    rows: ClassVar[Table]  # in the order of the fields, inherited ones last


_Config = TypeVar("_Config", bound=Config)


def attribute(form: Form | None = None, *, default: object = MISSING, **parts: Any) -> Any:
    """Return a field of a config with a row, `parts` as of `Attribute`; `described` checks it."""
    return field(default=default, metadata={"row": Attribute(form, **parts)})  # type: ignore[arg-type]


assumed = partial(attribute, change=Change.NOTHING)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(attribute, assumed, field))
def described(config: type[_Config]) -> type[_Config]:
    """Return a class as a config, whose fields made by `attribute` have rows. TypeError: a row lacks a part."""
    complete = dataclass(frozen=True, slots=True, kw_only=True)(config)
    inherited_last = sorted(fields(complete), key=lambda known: known.name not in complete.__annotations__)  # type: ignore[arg-type]
    rows = {}
    for known in inherited_last:
        row, place = known.metadata.get("row"), f"{complete.__name__}.{known.name}"
        if row is None:
            continue
        if row.form is None:
            raise TypeError(f"{place} lacks its form; expected: unit and range, such as whole(0, 100)")
        if (row.mqsc or row.cfrm) and row.form.word is None:
            raise TypeError(f"{place} lacks a check of {row.word}(...); expected: a form with that of its word")
        try:
            _ = known.default in (MISSING, None) or row(known.default)
        except WRONG as wrong:
            raise TypeError(f"{place} = {known.default!r}: {wrong}") from None
        label = row.label or row.word or known.name.replace("_", " ")
        rows[known.name] = replace(row, label=label)
    complete.rows = rows
    return complete
