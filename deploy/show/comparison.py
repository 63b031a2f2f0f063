"""A comparison of two estates as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deploy.show.document import site_time
from twin.reporting.comparison import ComparedNight, StoreNight
from twin.units import as_count

_ABSENT = "not of this estate"


def comparison_markdown(nights: Sequence[ComparedNight], names: tuple[str, str]) -> str:
    """Return a heading and a table for each night: a row for each fact of the stores that change.

    Args:
        nights: the nights.
        names: names of the estates, as columns.
    """
    old, new = names if names[0] != names[1] else ("before", "after")
    return "\n".join(_night(night, old, new) for night in nights)


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


def _head_room(side: StoreNight) -> str:
    return "not known" if side.head_room_pct is None else f"{side.head_room_pct:.1f} % of {side.fullest}"


_FACTS: dict[str, Callable[[StoreNight], str]] = {
    "alerts opened": lambda side: f"{side.alerts:,}",
    "first page": lambda side: _moment(side.first_page),
    "puts refused": lambda side: f"{side.refused:,}",
    "first put refused": lambda side: _moment(side.first_full),
    "lowest head room": _head_room,
}
