"""A row: all that is known of an attribute of the estate, written where its field stands.

Tables of the TOML file, keywords of MQSC, CFRM and D XCF texts, texts of what people changed, statements of plans and
sliders of the page are made of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import Enum
from functools import partial
from typing import Any, ClassVar, TypeVar, dataclass_transform

from twin.estate.checks import WRONG, Check, boolean, digits, disk_pages, disk_size, integer, mapped, one_of, size
from twin.units import format_size

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
