"""Learning the history of an estate from recordings: how the rises of its stores ended, and when they are put to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from twin.estate import Estate
from twin.estate.past_rises import StoreHistory
from twin.forecast.rises import kept_rises
from twin.playback.replays import Player, count_events, decoded_chunks, play
from twin.recordings.files import Chunk
from twin.stores.message_store import MessageStore


def learn(
    recordings: Sequence[str | Path], estate: Estate, on_chunk: Callable[[Chunk, int], None] | None = None
) -> dict[str, StoreHistory]:
    """Return what the stores of an estate remember after some recordings, by store.

    A store remembers the history of its estate, too, if it still has room for it.

    Args:
        recordings: files (`.ndjson`, `.ndjson.zst`, `.arrow`), the oldest first. Each is played from empty stores.
        estate: the estate.
        on_chunk: as for `twin.playback.replays.replay`.

    Raises:
        UsageError: a file is missing, has an unknown suffix, or cannot be read to its end.
    """
    events = 0
    for path in recordings:
        player = Player(estate)
        for piece, _ in play(decoded_chunks(path, estate, on_chunk, events), player):
            events += count_events(piece)
        learned = {
            name: StoreHistory(kept_rises(twin.tables.store, twin.qmgrs), twin.monitor.memory.puts.as_history())
            for name, twin in player.twins.items()
            if isinstance(twin, MessageStore)
        }
        known = {name: past for name, past in learned.items() if past != StoreHistory()}
        estate = replace(estate, history={**estate.history, **known})
    return dict(estate.history)
