"""The proof of a plan, or of a smaller size: a recording asked again on the estate as it is and with it.

Puts are demands (`twin.playback.replays`): the estate decides which are refused. Described in docs/what-if.md.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from twin.errors import UsageError
from twin.estate import Estate
from twin.planning.advise import Advice
from twin.planning.levers import Settings
from twin.planning.whatif import changed_config
from twin.playback.demands import AskedStore, Refusals
from twin.playback.replays import replay
from twin.units import as_text


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """A recording asked again with a plan.

    Attributes:
        title: of the plan; "as it is" without one; of a smaller size its name.
        recorded: messages refused with 2192 in the recording.
        refused: messages refused with 2192 here.
        first_full: time of the first of them; None: none is refused.
        unserved_gets: gets of the recording whose message was refused here.
        times: f8 seconds since 1970, samples.
        usage_pct: the fullest resource of the store at each sample, percent.
    """

    title: str
    recorded: int
    refused: int
    first_full: str | None
    unserved_gets: int
    times: tuple[float, ...]
    usage_pct: tuple[float, ...]


AS_IT_IS = "as it is"


def prove(recording: str | Path, estate: Estate, advice: Advice) -> tuple[Proof, ...]:
    """Ask a recording again: on the estate as it is, then with each plan and each size that could be smaller.

    Args:
        recording: the recording, from its beginning to its end.
        estate: the estate of the advice.
        advice: about one of its stores.

    Raises:
        UsageError: the recording cannot be read, or has no event of the store.
    """
    without: tuple[str, Settings] = (AS_IT_IS, {})
    plans = [(plan.title, plan.settings) for plan in advice.plans]
    changes = (without, *plans, *advice.smaller.items())
    return tuple(_proof(recording, estate, advice.store, *change) for change in changes)


def _proof(recording: str | Path, estate: Estate, store: str, title: str, settings: Settings) -> Proof:
    config = changed_config(estate.stores[store], settings) if settings else estate.stores[store]
    replayed = replay(recording, replace(estate, stores={**estate.stores, store: config}), demands=True)
    if store not in replayed.asked:
        raise UsageError(f"{recording} has no event of {store}; expected: a recording of it")
    outcome: AskedStore = replayed.asked[store]
    asked: Refusals = outcome.asked
    usage = replayed.usage
    rows = np.array(usage["store"].to_pylist()) == store
    times = usage["time"].cast("int64").to_numpy()[rows] / 1e6
    sampled = np.unique(times)
    fullest = np.zeros(sampled.size)
    np.maximum.at(fullest, np.searchsorted(sampled, times), usage["usage_pct"].to_numpy()[rows])
    return Proof(
        title=title,
        recorded=outcome.recorded.full,
        refused=asked.full,
        first_full=None if asked.first_full is None else as_text(asked.first_full),
        unserved_gets=outcome.unserved_gets,
        times=tuple(sampled.tolist()),
        usage_pct=tuple(np.round(fullest, 3).tolist()),
    )
