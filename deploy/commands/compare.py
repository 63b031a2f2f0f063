"""``mqtwin compare``."""

from __future__ import annotations

from typing import Annotated

import msgspec
from cyclopts import Parameter

from deploy.options.common import Flag, open_estate
from deploy.options.files import EstateFile, InputFile
from deploy.show.comparison import comparison_markdown
from deploy.show.progress import show_progress
from twin.reporting.comparison import compare as compare_estates


def compare(
    old: EstateFile,
    new: EstateFile,
    /,
    *,
    recording: Annotated[tuple[InputFile, ...], Parameter(negative="", consume_multiple=True)],
    json_: Flag = False,
) -> None:
    """Print a Markdown table of what recorded nights would have been under two estates, for a pull request.

    Puts of a recording count as requests: each estate decides which are refused. Gets and measurements happen as
    recorded.

    Args:
        old: Estate file (TOML) as it is.
        new: Estate file (TOML) with the change.
        recording: Recordings: .ndjson, .ndjson.zst or .arrow.
        json_: Print JSON instead of Markdown.
    """
    before, after = open_estate(old), open_estate(new)
    with show_progress("compare") as advance:
        nights = compare_estates(before, after, recording, advance)
    if json_:
        print(msgspec.json.encode(nights).decode())
    else:
        print(comparison_markdown(nights, (old.name, new.name)), end="")
