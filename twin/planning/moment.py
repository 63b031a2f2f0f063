"""A store at one moment: its twin as a recording leaves it, of which copies can be opened under other settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from twin.errors import UsageError
from twin.estate import Estate, as_estate
from twin.estate.errors import known_hint
from twin.estate.settings import Setting, changed_config, check_scm
from twin.events import EventError
from twin.events.fields import FIELD
from twin.playback.replays import play
from twin.stores.measured_structure import MeasuredStructureTwin
from twin.stores.message_store import MessageStore
from twin.stores.open import MESSAGE_KINDS, Twin, open_message_store
from twin.stores.structure import StructureTwin


class NoRoomError(UsageError):
    """A content that does not fit into its structure under other settings."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The twin of a store at one moment, of which copies can be opened.

    Attributes:
        estate: the estate.
        twin: the twin; it is read only.
    """

    estate: Estate
    twin: MessageStore

    @property
    def tick(self) -> int:
        """The tick of the moment."""
        return int(self.twin.tables.store.scalars[0]["tick"])

    def check_traffic(self) -> None:
        """Raise UsageError if the store is known by measurements alone: their rise says nothing of other settings."""
        if not self.twin.is_counted and self.twin.drift.baseline is not None:
            missing = f"no puts and gets of {self.twin.name} are reported; what-if needs them"
            raise UsageError(f"{missing}; expected: statistics, accounting or an activity trace")

    def with_settings(self, settings: Mapping[str, Setting]) -> MessageStore:
        """Return a copy of the twin under other settings; the twin itself without any. UsageError: as `what_if`."""
        if not settings:
            return self.twin
        name = self.twin.name
        changed = changed_config(self.twin.config, settings)
        check_scm(self.estate, self.twin.config, changed)
        estate = replace(self.estate, stores={**self.estate.stores, name: changed})
        twin = open_message_store(estate, name, self.twin.tables.copied_arrays(), self.twin.header(), None)
        if isinstance(twin, StructureTwin) and twin.policy_pending and not twin.rebuild():
            listed_values = ", ".join(f"{key} = {value}" for key, value in twin.policy_pending.items())
            raise NoRoomError(f"{name}: what it holds does not fit with {listed_values}; expected: room for it")
        return twin


def moment_of(estate: Estate, twin: Twin) -> Moment:
    """Return the present of a twin. UsageError: the store holds no messages, so there is nothing to ask again."""
    if not isinstance(twin, MessageStore):
        raise UsageError(f"{twin.name} holds no messages; expected: {', '.join(MESSAGE_KINDS)}")
    if isinstance(twin, MeasuredStructureTwin):
        raise UsageError(
            f"{twin.name} holds no queues, what fills it is not known; expected: a structure with queues, or"
            " mqtwin size structure --admin"
        )
    return Moment(estate, twin)


def at_moment(recording: str | Path, estate: Estate | str | Path, store: str, time: str | int | None = None) -> Moment:
    """Return a store that holds messages at a moment of a recording. Arguments and errors as of `twin_at`.

    Args:
        recording: the recording.
        estate: its estate, or the file of it.
        store: name of the store.
        time: as for `twin_at`.
    """
    described = as_estate(estate)
    return moment_of(described, twin_at(recording, described, store, time))


def twin_at(recording: str | Path, estate: Estate, store: str, time: str | int | None = None) -> Twin:
    """Return the twin of a store at a moment of a recording.

    Args:
        recording: the recording.
        estate: its estate.
        store: name of the store.
        time: event time, RFC 3339 or microseconds since 1970, up to which events are applied; None: all of them.

    Raises:
        UsageError: no such store, no such time, or the recording cannot be read or has no event of the store by then.
    """
    if store not in estate.stores:
        raise UsageError(f"{store}: the estate has no such store{known_hint(store, estate.stores)}")
    try:
        limit = None if time is None else int(FIELD["time"].checked(time))
    except EventError as error:
        raise UsageError(f"--at: {error.detail}") from None
    twins = play(recording, estate, until=limit).twins
    if store not in twins:
        by_then = "" if time is None else f" until {time}"
        raise UsageError(f"{recording} has no event of {store}{by_then}; expected: a later --at, or another store")
    return twins[store]
