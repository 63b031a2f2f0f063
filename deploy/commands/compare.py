"""``mqtwin compare``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
from cyclopts import Parameter

from deploy.options.common import Flag, open_estate
from deploy.options.files import EstateFile, InputFile
from deploy.show.document import site_time
from deploy.show.progress import show_progress
from twin.reporting.comparison import ComparedNight, StoreNight
from twin.reporting.comparison import compare as compare_estates
from twin.units import as_count


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
        names = (old.name, new.name) if old.name != new.name else ("before", "after")
        print("\n".join(_night(night, *names) for night in nights), end="")


_ABSENT = "not of this estate"


def _night(night: ComparedNight, old: str, new: str) -> str:
    lines = [f"### {night.recording}", ""]
    if night.changed:
        lines += [f"| store | | {old} | {new} |", "| --- | --- | ---: | ---: |"]
        for store, sides in night.changed.items():
            for place, (fact, text) in enumerate(_FACTS.items()):
                before, after = (_ABSENT if side is None else text(side) for side in sides)
                marked = after if before == after else f"**{after}**"
                lines.append(f"| {store if place == 0 else ''} | {fact} | {before} | {marked} |")
        lines.append("")
    same = [store for store in night.stores if store not in night.changed]
    if same:
        lines += [f"The same under both: {', '.join(same)}.", ""]
    if any(night.dead_letters):
        first, second = (as_count(number, "event") for number in night.dead_letters)
        lines += [f"Refused: {first} by {old}, {second} by {new}.", ""]
    return "\n".join(lines)


def _moment(time: int | None) -> str:
    return "none" if time is None else site_time(time)


_FACTS: dict[str, Callable[[StoreNight], str]] = {
    "alerts opened": lambda side: f"{side.alerts:,}",
    "first page": lambda side: _moment(side.first_page),
    "puts refused": lambda side: f"{side.refused:,}",
    "first put refused": lambda side: _moment(side.first_full),
    "lowest head room": lambda side: (
        "not known" if side.head_room_pct is None else f"{side.head_room_pct:.1f} % of {side.fullest}"
    ),
}
