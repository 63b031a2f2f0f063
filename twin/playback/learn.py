"""Learning the history of an estate from recordings: how the rises of its stores ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from twin.estate import Estate
from twin.estate.past_rises import PastRise
from twin.events import Decoder
from twin.forecast.rises import kept_rises
from twin.playback.replays import Player
from twin.recordings.files import Chunk, open_recording
from twin.stores.message_store import MessageStore
from twin.stores.warm_up import warm


def learn(
    recordings: Sequence[str | Path], estate: Estate, on_chunk: Callable[[Chunk, int], None] | None = None
) -> dict[str, tuple[PastRise, ...]]:
    """Return the rises that the stores of an estate remember after some recordings, by store.

    A store remembers those of the history of its estate, too, if it still has room for them.

    Args:
        recordings: files (`.ndjson`, `.ndjson.zst`, `.arrow`), the oldest first. Each is played from empty stores.
        estate: the estate.
        on_chunk: as for `twin.playback.replays.replay`.

    Raises:
        UsageError: a file is missing, has an unknown suffix, or cannot be read to its end.
    """
    warm()
    events = 0
    for path in recordings:
        decoder, player = Decoder(estate), Player(estate)
        for chunk in open_recording(path):
            decoded = chunk.decode(decoder)
            player.feed(decoded)
            events += len(decoded)
            if on_chunk is not None:
                on_chunk(chunk, events)
        learned = {
            name: kept_rises(twin.tables.store, twin.qmgrs)
            for name, twin in player.twins.items()
            if isinstance(twin, MessageStore)
        }
        estate = replace(
            estate, history={**estate.history, **{name: rises for name, rises in learned.items() if rises}}
        )
    return dict(estate.history)
