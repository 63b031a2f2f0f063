"""Types of the fields of records: their bounds, their formats, and which of them a MEASURE may carry.

Readers refuse values beyond the bounds. Extensible sets of words, such as conditions of alerts, are bounded in the
schema only, so that a reader accepts the records of a later version.
"""

from __future__ import annotations

from typing import Annotated, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

MEASURED_MAX = 2**53 - 1  # of a measured number: exact in a double; 8 PiB
MESSAGES_MAX = 2**31 - 1  # of measured messages: a store counts them in 31 bits
SET_PAGES_MAX = 2**24  # of 4 KB of a page set: 64 GB [published]
DATA_SET_BLOCKS_MAX = 2**31  # of a shared message data set: 16 TB [published] in blocks of 8 KB, the smallest DSBLOCK
DATA_SET_PAGES_MAX = 2**32  # of 4 KB, likewise
PCT_MAX = 100  # of a measured share: no system uses more than it has
_MEASURED = "measured_max"  # key of a type's `extra`

Text = Annotated[str, msgspec.Meta(min_length=1)]
Time = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
Count = Annotated[int, msgspec.Meta(ge=0)]
Number = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
# The same, of quantities by which a MEASURE may describe a store.
MeasuredCount = Annotated[int, msgspec.Meta(ge=0, extra={_MEASURED: MEASURED_MAX})]
MeasuredMessages = Annotated[int, msgspec.Meta(ge=0, extra={_MEASURED: MESSAGES_MAX})]
MeasuredNumber = Annotated[float, msgspec.Meta(ge=0, extra={_MEASURED: MEASURED_MAX})]
MeasuredSetPages = Annotated[int, msgspec.Meta(ge=0, extra={_MEASURED: SET_PAGES_MAX})]
MeasuredDataSetBlocks = Annotated[int, msgspec.Meta(ge=0, extra={_MEASURED: DATA_SET_BLOCKS_MAX})]
MeasuredDataSetPages = Annotated[int, msgspec.Meta(ge=0, extra={_MEASURED: DATA_SET_PAGES_MAX})]
MeasuredPct = Annotated[float, msgspec.Meta(ge=0, extra={_MEASURED: PCT_MAX})]


def text_of(text: str | UnsetType) -> str:
    """Return a text that a record may lack; "": it does."""
    return "" if text is UNSET else text


def one_of(*words: str) -> msgspec.Meta:
    """Return the words of a field, to which later versions may add: readers take others, too."""
    return msgspec.Meta(extra_json_schema={"enum": list(words)})


def measured_bounds(record: type[msgspec.Struct], number: type[int | float]) -> dict[str, int]:
    """Return the largest measured value of each field of a record that is an integer, or a float, and measurable."""
    bounds: dict[str, int] = {}
    for name, hint in get_type_hints(record, include_extras=True).items():
        for part in (hint, *getattr(hint, "__args__", ())):  # of `MeasuredCount | None`
            if getattr(part, "__origin__", None) is number:
                extra = part.__metadata__[0].extra or {}
                bounds |= {name: extra[_MEASURED]} if _MEASURED in extra else {}
    return bounds
