"""Actions: what people changed in a store while it was in danger, seen in its events, and what that was worth.

An ALTER, REBUILD or CLEAR is a change, and a MEASURE with another SIZE than the one before it. The store's events are
played once more. At the first change of an incident a copy of the twin goes on without any change; the puts of the
recording are made to it as demands (`twin.playback.demands`), so that it refuses what does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kernels.clock import SECOND
from kernels.layout import ALTER, CLEAR, MEASURE, PUT, REBUILD
from twin.conditions import Q_SPACE_NOT_AVAILABLE, STORAGE_MEDIUM_FULL
from twin.errors import UsageError
from twin.estate import Estate, Structure
from twin.events import Decoded, EventBlock
from twin.planning.moment import Moment
from twin.planning.whatif import FillOutcome, what_if
from twin.playback.demands import as_demands
from twin.playback.replays import chunks_of, chunks_until, decoded_chunks
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore
from twin.stores.open import open_message_store
from twin.stores.structure import StructureTwin
from twin.units import format_size

MINUTE = 60 * SECOND
_FULL = (STORAGE_MEDIUM_FULL, Q_SPACE_NOT_AVAILABLE)
_OPS = (ALTER, REBUILD, CLEAR, MEASURE)
_KEYWORDS = {"allow_auto_alter": "ALLOWAUTOALT", "pages": "pages", "max_pages": "pages at most", "max_size": "MAXFSIZE"}
_NUMBERS = ("_th", "pages", "_us", "_pct", "threshold", "cf_level")  # ends of names of what is no size


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreChange:
    """A change of a store in a recording.

    Attributes:
        index: line or row of its event in the recording, from 0.
        time: microseconds since 1970.
        content: attributes as in the event; of a MEASURE `size`, and `before`, the one measured before it.
        queue: the queue that was cleared; "": no CLEAR.
    """

    index: int
    store: str
    op: int
    time: int
    content: Mapping[str, Any]
    queue: str = ""

    @property
    def action_id(self) -> str:
        """Id of the action in runbooks that it matches; "" without one."""
        names = self.content.keys()
        if self.op == REBUILD:
            return "scm" if "scm_max_size" in names else "cfrm-size"
        if self.op != ALTER:
            return "alter-size" if "size" in names else ""
        if names & {"pages", "max_pages", "expand"}:
            return "ps-expand"
        by_name = {"size": "alter-size", "ds_expand": "ds-expand", "max_size": "max-file-size"}
        by_name["file_system_size"] = "file-system"
        known = (action for name, action in by_name.items() if name in names)
        return next(known, "offload" if any(name.startswith("offld") for name in names) else "")


@dataclass(slots=True)
class ChangeLog:
    """The changes in a recording, collected while it is played.

    Attributes:
        changes: in the order of the recording.
        measurements: MEASURE events by store.
    """

    estate: Estate
    changes: list[StoreChange] = field(default_factory=list)
    measurements: dict[str, int] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)  # last measured SIZE, by store

    def add(self, piece: Decoded) -> None:
        """Add the changes of a piece."""
        for row in np.flatnonzero(np.isin(piece.events["op"], _OPS)).tolist():
            event, route = piece.events[row], self.estate.routes[int(piece.events["route"][row])]
            op, content = int(event["op"]), msgspec.json.decode(piece.extras.get(row, b"{}"))
            if op == MEASURE:
                self.measurements[route.store] = self.measurements.get(route.store, 0) + 1
                content = self._measured(route.store, content)
            elif op != CLEAR:
                self._sizes.pop(route.store, None)  # a measurement that shows the change is no other change
            if op in (CLEAR, REBUILD) or content:
                change = StoreChange(
                    index=int(piece.index[row]),
                    store=route.store,
                    op=op,
                    time=int(event["time"]),
                    content=content,
                    queue=(route.reported or "") if op == CLEAR else "",
                )
                self.changes.append(change)

    def _measured(self, store: str, measured: Mapping[str, Any]) -> dict[str, int]:
        """Return the SIZE of a measurement and the one before, where they differ and no automatic alter did it."""
        config, size = self.estate.stores[store], measured.get("size")
        if not isinstance(config, Structure) or config.allow_auto_alter or not isinstance(size, int):
            return {}
        before = self._sizes.get(store, size)
        self._sizes[store] = size
        return {} if size == before else {"size": size, "before": before}


@dataclass(frozen=True, slots=True)
class Window:
    """The time of an incident with changes. Times in microseconds since 1970.

    Attributes:
        opened, over: when changes belong to it.
        until: until when the untouched twin is played.
    """

    incident: str
    opened: int
    over: int
    until: int

    def has(self, change: StoreChange) -> bool:
        """Return True if a change belongs to it."""
        return self.opened <= change.time <= self.over


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEffect:
    """A change in words, and when the store would be full just before and just after; None: not known."""

    text: str
    is_refused: bool
    before: FillOutcome | None
    after: FillOutcome | None


@dataclass(slots=True)
class Untouched:
    """The twin of a store without the changes of an incident, and the times of the puts that it refuses."""

    window: Window
    twin: MessageStore
    since: int  # microseconds
    refused: list[Array] = field(default_factory=list)  # i8[n] each, microseconds

    def feed(self, block: EventBlock) -> None:
        """Apply events up to the end of the window; puts are demands."""
        demands = as_demands(block)
        self.twin.apply(demands, demands=True)
        self.twin.drain_reports()
        events = demands.events
        is_refused = (events["op"] == PUT) & np.isin(events["reason"], _FULL) & (events["time"] <= self.window.until)
        self.refused.append(events["time"][is_refused].copy())

    @property
    def refused_at(self) -> Array:
        """Times of the refused puts, i8[n], microseconds."""
        return np.concatenate([np.zeros(0, np.int64), *self.refused])


@dataclass(slots=True)
class Traced:
    """Effects of the changes of a store by index, and its untouched twins by incident."""

    effects: dict[int, ChangeEffect] = field(default_factory=dict)
    untouched: dict[str, Untouched] = field(default_factory=dict)


def trace(
    recording: str | Path,
    estate: Estate,
    store: str,
    changes: Sequence[StoreChange],
    windows: Sequence[Window],
    until: int,
) -> Traced:
    """Play the events of a store with its changes, and beside them its untouched twins.

    Args:
        recording: the recording.
        estate: its estate.
        store: a store that holds messages.
        changes: its changes.
        windows: its incidents with changes.
        until: time of the last events that are played, microseconds.
    """
    traced, twin = Traced(), open_message_store(estate, store)
    by_index = {change.index: change for change in changes}
    for piece in _pieces(recording, estate, store, by_index, until):
        change = by_index.get(int(piece.index[0]))
        [block] = piece.blocks(estate)
        before = None
        if change is not None:
            window = next((window for window in windows if window.has(change)), None)
            before = None if window is None else _outcome(estate, twin)
            if window is not None and window.incident not in traced.untouched:
                traced.untouched[window.incident] = Untouched(window, _copy(estate, twin), change.time)
        for untouched in traced.untouched.values():
            own = piece.until(untouched.window.until)
            if len(own) and (change is None or not untouched.window.has(change)):
                untouched.feed(own.blocks(estate)[0])
        if change is None:
            twin.apply(block)
        else:
            in_window = any(window.has(change) for window in windows)
            traced.effects[change.index] = _apply(estate, twin, change, block, before, in_window=in_window)
        twin.drain_reports()
    return traced


def _apply(
    estate: Estate,
    twin: MessageStore,
    change: StoreChange,
    block: EventBlock,
    before: FillOutcome | None,
    *,
    in_window: bool,
) -> ChangeEffect:
    """Apply a change and return its effect."""
    refused, messages = (
        int(twin.tables.store.scalars[0]["refused_alters"]),
        int(twin.tables.store.scalars[0]["messages"]),
    )
    values = {name: _value(twin, name) for name in change.content}
    twin.apply(block)
    scalars = twin.tables.store.scalars[0]
    is_refused = int(scalars["refused_alters"]) > refused
    return ChangeEffect(
        text=_text(twin, change, values, messages - int(scalars["messages"]), is_refused=is_refused),
        is_refused=is_refused,
        before=before,
        after=_outcome(estate, twin) if in_window else None,
    )


def _pieces(recording: str | Path, estate: Estate, store: str, indexes: Iterable[int], until: int) -> Iterator[Decoded]:
    """Yield the events of a store, each change in a piece of its own."""
    listed = np.array(list(indexes), np.int64)
    for own in chunks_of(chunks_until(decoded_chunks(recording, estate), until), estate, store):
        rows = np.flatnonzero(np.isin(own.index, listed))
        yield from own.split(np.unique([rows, rows + 1]).tolist())


def _copy(estate: Estate, twin: MessageStore) -> MessageStore:
    return open_message_store(estate, twin.name, twin.tables.copied_arrays(), twin.header(), None, forecasts=False)


def _outcome(estate: Estate, twin: MessageStore) -> FillOutcome | None:
    """Return when a store is full if its traffic goes on; None where that is not known."""
    try:
        return what_if(Moment(estate, twin)).before
    except UsageError:
        return None


def minutes(times: Array) -> int:
    """Return the number of minutes of the clock in which some times lie. times: i8[n], microseconds."""
    return int(np.unique(times // MINUTE).size)


# --- words -----------------------------------------------------------------------------------------------------------


def _value(twin: MessageStore, name: str) -> object:
    if name == "size" and isinstance(twin, StructureTwin):
        return twin.allocation.size
    return getattr(twin.config, name, None)


def _text(
    twin: MessageStore, change: StoreChange, before: Mapping[str, object], cleared: int, *, is_refused: bool
) -> str:
    if change.op == CLEAR:
        return f"{change.queue} cleared of {cleared:,} messages"
    if change.op == MEASURE:
        return f"{_raised('SIZE', 'size', change.content['before'], change.content['size'])}, as measured"
    words = [_KEYWORDS.get(name, name.upper().replace("_", "")) for name in change.content]
    if is_refused:
        what = "REBUILD" if change.op == REBUILD else "ALTER"
        return f"{what} of {', '.join(words)} refused" if words else f"{what} refused"
    texts = [
        _raised(word, name, before[name], _value(twin, name))
        for word, name in zip(words, change.content, strict=True)
        if _value(twin, name) != before[name]
    ]
    return ", ".join(texts) or ("rebuilt" if change.op == REBUILD else f"{', '.join(words)} set as it was")


def _raised(word: str, name: str, before: object, after: object) -> str:
    """Return the change of a value: `SIZE raised from 1G to 2G`, `OFFLOAD set to SMDS`."""
    if isinstance(before, int) and isinstance(after, int) and not isinstance(after, bool):
        direction = "raised" if after > before else "lowered"
        return f"{word} {direction} from {_value_text(name, before)} to {_value_text(name, after)}"
    return f"{word} set to {_value_text(name, after)}"


def _value_text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, int):
        return f"{value:,}" if name.endswith(_NUMBERS) else format_size(value)
    return "none" if value is None else str(value)
