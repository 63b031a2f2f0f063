"""Two estates compared: what the nights of some recordings would have been under each. See docs/testing.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from twin.conditions import CLEARED, OPENED, PAGE
from twin.errors import UsageError
from twin.estate import Estate, as_estate
from twin.playback.replays import Refusals, Replayed, replay
from twin.recordings.files import Chunk


class StoreNight(msgspec.Struct, frozen=True, kw_only=True):
    """A store in a recording, by one estate."""

    alerts: int  # number of alerts that opened
    first_page: int | None  # when somebody was first called, microseconds since 1970; None: nobody was
    refused: int  # number of messages that were refused because the store was full
    first_full: int | None  # when the first of them was, microseconds since 1970; None: none was
    head_room_pct: float | None  # least free percentage of the fullest resource; None: usage not known
    fullest: str | None  # that resource; None likewise


class ComparedNight(msgspec.Struct, frozen=True, kw_only=True):
    """A recording, by two estates.

    Attributes:
        recording: name of its file.
        stores: the store before and after, by name; None: that estate takes no event of it.
        dead_letters: events that the estate before, and the one after, refuses.
    """

    recording: str
    stores: dict[str, tuple[StoreNight | None, StoreNight | None]]
    dead_letters: tuple[int, int]

    @property
    def changed(self) -> dict[str, tuple[StoreNight | None, StoreNight | None]]:
        """The stores that are not the same under both."""
        return {name: sides for name, sides in self.stores.items() if sides[0] != sides[1]}


def compare(
    old: Estate | str | Path,
    new: Estate | str | Path,
    recordings: Iterable[str | Path],
    on_chunk: Callable[[Chunk, int], None] | None = None,
) -> list[ComparedNight]:
    """Replay recordings under two estates. Puts count as requests: each estate refuses its own.

    Args:
        old: the estate as it is, or its file.
        new: the changed one, or its file.
        recordings: files (`.ndjson`, `.ndjson.zst`, `.arrow`).
        on_chunk: as for `replay`.

    Raises:
        UsageError: an estate is wrong, a file is missing, has an unknown suffix, or cannot be read to its end, or
            neither estate takes an event of it.
    """
    estates = as_estate(old), as_estate(new)
    nights = []
    for path in recordings:
        replays = [replay(path, estate, demands=True, on_chunk=on_chunk) for estate in estates]
        before, after = map(_stores, replays)
        if not before and not after:
            raise UsageError(f"{path} has no event that either estate takes; expected: a recording of these stores")
        names = sorted({*before, *after})
        nights.append(
            ComparedNight(
                recording=Path(path).name,
                stores={name: (before.get(name), after.get(name)) for name in names},
                dead_letters=(replays[0].dead_letters, replays[1].dead_letters),
            )
        )
    return nights


def _stores(replayed: Replayed) -> dict[str, StoreNight]:
    peaks = replayed.usage.group_by(["store", "resource"]).aggregate([("usage_pct", "max")]).to_pylist()
    nights = {}
    for name in replayed.states:
        own = [alert for alert in replayed.alerts if alert.store == name]
        pages = [alert.time for alert in own if alert.level == PAGE and alert.change != CLEARED]
        outcome = replayed.refusals.get(name)
        refused = Refusals() if outcome is None else outcome.replayed
        known = [row for row in peaks if row["store"] == name and row["usage_pct_max"] is not None]
        peak = max(known, key=lambda row: (row["usage_pct_max"], row["resource"]), default=None)
        nights[name] = StoreNight(
            alerts=sum(alert.change == OPENED for alert in own),
            first_page=min(pages, default=None),
            refused=refused.full,
            first_full=refused.first_full,
            head_room_pct=None if peak is None else round(max(0.0, 100 - peak["usage_pct_max"]), 1),
            fullest=None if peak is None else peak["resource"],
        )
    return nights
