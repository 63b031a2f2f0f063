"""A recording through the twin, without Kafka and without Spark: the same alerts and states as the stream gives.

    >>> estate = load_estate("estate.toml")
    >>> replayed = replay("friday.ndjson.zst", estate)
    >>> replayed.states["QSG1/APP1"]["usage_pct"]

Source: contract section 6 (`mqtwin replay`) and section 7 (dead letters of a replay, last state of each store).
"""

from __future__ import annotations

import base64
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from twin.alerts.episodes import Alert
from twin.estate import Estate
from twin.events import Decoded, Decoder, Reject
from twin.recordings import Chunk, open_recording
from twin.stores.open import Twin, open_store
from twin.stores.reports import Report
from twin.stores.shared_store import SharedStore
from twin.warm import warm


@dataclass(slots=True)
class Replayed:
    """What a recording brought.

    alerts: ordered by time, then store, then as the store gave them; states: the last state record of each store that
    got an event, by store name, sorted; rejects: dead letters in the order of the recording, `index` being its line
    or row, from 0;
    dead_letters: how many there were; reasons: how many by reason, the most frequent first; first_reject: the first
    one; events: accepted lines or rows (duplicates too); seconds: of work, loading the kernels not counted.
    """

    alerts: list[Alert] = field(default_factory=list)
    states: dict[str, dict[str, Any]] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)
    dead_letters: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    first_reject: Reject | None = None
    events: int = 0
    seconds: float = 0.0


class Player:
    """The twins of an estate, fed piece by piece; how a recording is cut into pieces changes nothing."""

    def __init__(self, estate: Estate, twins: Mapping[str, Twin] | None = None) -> None:
        """Go on with `twins`, by store name. Those of other stores are opened at their first event."""
        self._estate = estate
        self._twins: dict[str, Twin] = dict(twins or {})

    def feed(self, decoded: Decoded) -> list[Alert]:
        """Apply events, in order, then hand over the reports they bring; the alerts, by store, a store's in order."""
        alerts: list[Alert] = []
        reports: dict[str, list[Report]] = {}
        for block in decoded.blocks(self._estate):
            twin = self._twin(block.store)
            alerts += twin.apply(block)
            for report in twin.drain_reports():
                reports.setdefault(report.target, []).append(report)
        for name, made in sorted(reports.items()):
            shared = self._twin(name)
            assert isinstance(shared, SharedStore)
            alerts += shared.take(made)
        return alerts

    @property
    def twins(self) -> Mapping[str, Twin]:
        """The twin of every store that got an event, by store name."""
        return self._twins

    def _twin(self, name: str) -> Twin:
        twin = self._twins.get(name)
        if twin is None:
            twin = self._twins[name] = open_store(self._estate, name)
        return twin

    def states(self) -> dict[str, dict[str, Any]]:
        """The state record of every store that got an event or a report, by store name, sorted."""
        return {name: twin.state() for name, twin in sorted(self._twins.items())}


def replay(
    path: str | Path,
    estate: Estate,
    *,
    chunk_events: int | None = None,
    on_reject: Callable[[Reject], None] | None = None,
    on_chunk: Callable[[Chunk, int], None] | None = None,
) -> Replayed:
    """Play a recording (`.ndjson`, `.ndjson.zst`, `.arrow`) through the twins of an estate.

    Args:
        path: the recording.
        estate: what exists; see `twin.estate.load_estate`.
        chunk_events: apply at most so many events at once; None: as many as a piece of the recording has. The result
            is the same.
        on_reject: gets each dead letter as it comes, instead of `Replayed.rejects`.
        on_chunk: called after each piece of the recording, with it and the number of events so far.

    Raises:
        UsageError: no such file, an unknown suffix, a file that cannot be read to its end.
    """
    warm()
    decoder = Decoder(estate)
    player = Player(estate)
    replayed = Replayed()
    began = time.monotonic()
    keep = replayed.rejects.append if on_reject is None else on_reject
    reasons: Counter[str] = Counter()
    for chunk in open_recording(path):
        decoded = chunk.decode(decoder)
        for piece in _pieces(decoded, chunk_events):
            replayed.alerts += player.feed(piece)
        for reject in decoded.rejects:
            keep(reject)
        if replayed.first_reject is None and decoded.rejects:
            replayed.first_reject = decoded.rejects[0]
        reasons.update(str(reject.reason) for reject in decoded.rejects)
        replayed.dead_letters += len(decoded.rejects)
        replayed.events += count_events(decoded)
        if on_chunk is not None:
            on_chunk(chunk, replayed.events)
    replayed.alerts.sort(key=lambda alert: (alert.time, alert.store))  # stable: a store's own order stays
    replayed.reasons = dict(reasons.most_common())
    replayed.states = player.states()
    replayed.seconds = time.monotonic() - began
    return replayed


def dead_letter(reject: Reject) -> dict[str, Any]:
    """A dead letter of a replay as contract section 7 names it, JSON-ready."""
    letter: dict[str, Any] = {"reason": str(reject.reason), "detail": reject.detail, "index": reject.index}
    if reject.length > len(reject.value):
        letter["original_length"] = reject.length
    try:
        return letter | {"value": reject.value.decode()}
    except UnicodeDecodeError:
        return letter | {"value_base64": base64.b64encode(reject.value).decode("ascii")}


def count_events(decoded: Decoded) -> int:
    """Accepted lines or rows: one that concerns several stores counts once."""
    if not len(decoded):
        return 0
    elsewhere = (np.diff(decoded.index) != 0) | (np.diff(decoded.record) != 0)
    return 1 + int(np.count_nonzero(elsewhere))


def _pieces(decoded: Decoded, most: int | None) -> Iterator[Decoded]:
    """The events cut into pieces of at most so many, in order."""
    if most is None or len(decoded) <= most:
        yield decoded
        return
    for start in range(0, len(decoded), most):
        rows = slice(start, start + most)
        extras = {row - start: text for row, text in decoded.extras.items() if start <= row < start + most}
        yield Decoded(decoded.events[rows], decoded.record[rows], decoded.index[rows], extras)
