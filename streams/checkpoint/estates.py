"""The estates of a job, which change at its restarts: which of them applied to which events, for questions of the past.

`mqtwin.json` says from which offsets of the events topic on each applied, ``estates/DIGEST`` is its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from streams.checkpoint.files import Folder
from twin.estate import Estate
from twin.estate.saved import SavedEstateError, read_saved_estate, save_estate

_FOLDER = "estates"
_MAX_CHANGES = 200  # that are remembered

EventOffsets = Mapping[int, int]  # partition of the events topic -> offset of the next record


class EstateSince(msgspec.Struct, frozen=True, kw_only=True):
    """An estate of a job. begin: offsets of the events that it first applied to; empty: the first of the job."""

    digest: str
    begin: dict[int, int]


class Stretch(NamedTuple):
    """Events to which one estate applied.

    Attributes:
        begin: offset of the first record of each partition; of others it is their first one.
        end: that of the first record behind it; None: it goes to the end of the topic.
        digest: digest of the estate; "": the job did not keep it.
        estate: the estate; None: it cannot be read.
    """

    begin: EventOffsets
    end: EventOffsets | None
    digest: str
    estate: Estate | None


def note_estate(
    folder: Folder, estate: Estate, begin: EventOffsets, before: Sequence[EstateSince]
) -> tuple[EstateSince, ...]:
    """Keep the estate of a job that starts, and return all that it has had.

    Args:
        folder: the checkpoint.
        estate: the estate.
        begin: offsets of the next batch.
        before: those of the starts before, in their order.

    Raises:
        OSError: it cannot be written.
    """
    digest, data = save_estate(estate)
    name = f"{_FOLDER}/{digest}"
    if not folder.exists(name):
        folder.write(name, data)
    if before and before[-1].digest == digest:
        return tuple(before)
    applied = [own for own in before if own.begin != begin]  # one whose job has processed nothing did not apply
    if applied and applied[-1].digest == digest:
        return tuple(applied)
    return (*applied, EstateSince(digest=digest, begin=dict(begin)))[-_MAX_CHANGES:]


def last_estate(folder: Folder, known: Sequence[EstateSince]) -> Estate | None:
    """Return the estate of the last start; None if it is not kept, or cannot be read. known: those of the job."""
    return _read(folder, known[-1].digest) if known else None


def stretches_from(folder: Folder, known: Sequence[EstateSince], begin: EventOffsets) -> list[Stretch]:
    """Return the stretches of the events from some offsets on, in order, one at least.

    Where they begin at a change, the first stretch is the empty one before it: a store that has no event behind a
    change is as the estate before left it.

    Args:
        folder: the checkpoint.
        known: estates of the job, in order.
        begin: offsets between two batches; empty: from the beginning of the topic on.
    """
    starts = [(own.digest, own.begin) for own in known]
    if not starts or starts[0][1]:
        starts.insert(0, ("", {}))  # a version that kept none
    first = max(place for place, (_, own) in enumerate(starts) if place == 0 or _is_behind(begin, own))
    ends: list[EventOffsets | None] = [own for _, own in starts[first + 1 :]]
    begins = [begin, *(own for _, own in starts[first + 1 :])]
    return [
        Stretch(own, end, digest, _read(folder, digest))
        for own, end, (digest, _) in zip(begins, [*ends, None], starts[first:], strict=True)
    ]


def _is_behind(offsets: EventOffsets, change: EventOffsets) -> bool:
    """Return True if there are records of a change before these offsets."""
    return any(offset > change.get(partition, 0) for partition, offset in offsets.items())


def _read(folder: Folder, digest: str) -> Estate | None:
    if not digest:
        return None
    name = f"{_FOLDER}/{digest}"
    try:
        return read_saved_estate(folder.read(name), f"{folder.location}/{name}")
    except (OSError, SavedEstateError):
        return None
