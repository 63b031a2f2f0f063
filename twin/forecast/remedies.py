"""Remedies tried on the forecast: the same futures rolled again as if one thing were different."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernels.meter_rows import NOTHING_FULL
from twin.alerts import texts
from twin.base.units import as_rate, as_span
from twin.estate import ForecastSettings, Structure
from twin.forecast import flows
from twin.forecast.fill_model import FillModel, ForecastView, offloading_sooner
from twin.forecast.flows import Futures
from twin.forecast.outlook import SECONDS, Outlook, roll
from twin.records import GETTERS, Filler, is_full_now

_MIN_GAIN = 1.3  # times the time that is left: less is not worth saying


def effects(
    outlook: Outlook, fillers: tuple[Filler, ...], config: ForecastSettings, *, is_full: bool = False
) -> dict[str, str]:
    """Return the effect of each remedy in words, by action (`twin.alerts.texts`); `is_full`: puts are refused."""
    if outlook.drawn is None:
        return {}
    remedied: dict[str, Outlook] = {}
    less = _growth_of(outlook, outlook.drawn, fillers[0].share) if fillers else 0.0
    if fillers:
        remedied[GETTERS] = replace(outlook, drawn=replace(outlook.drawn, extra=outlook.drawn.extra - less))
    if isinstance(config, Structure):
        if sooner := offloading_sooner(outlook.fill, config):
            remedied[texts.OFFLOAD] = replace(outlook, fill=sooner)
        size = float(outlook.fill.size)
        if 0 < size < config.size:
            remedied[texts.SIZE] = replace(outlook, fill=_enlarge(outlook.fill, config.size / size))
        elif size > 0:
            larger = _enlarge(outlook.fill, texts.proposed_size(config) / size)
            remedied[texts.CFRM_SIZE] = replace(outlook, fill=larger)
    before = 0.0 if is_full else _median_s(outlook)
    phrases = {remedy: _phrase(before, _median_s(changed)) for remedy, changed in remedied.items()}
    if is_full_now(before) and less > 0:
        phrases[GETTERS] = _needs(less)
    return {remedy: phrase for remedy, phrase in phrases.items() if phrase}


def effects_when_full(view: ForecastView, fillers: tuple[Filler, ...], tick: int) -> dict[str, str]:
    """Return the remedy of a full store, as `effects`: the additional gets that keep up with puts to its first filler.

    Refused puts count: with fewer additional gets, the store would be full again at once.
    """
    store = view.tables.store
    regime = flows.present(store, tick, view.fill_model(tick).weights) if fillers else None
    if regime is None or regime.net_messages <= 0:
        return {}
    rows = store.queues[: len(view.queues)]
    asked, got = rows["puts"] - rows["puts_before"], rows["gets"] - rows["gets_before"]
    grown = np.maximum(asked - got, 0)
    less = regime.net_messages * float(grown[view.queues.index(fillers[0].queue)]) / max(1, int(grown.sum()))
    return {GETTERS: _needs(less)} if less > 0 else {}


def _needs(messages: float) -> str:
    """Return that a queue needs more gets. messages: its growth in a tick, as if no put were refused."""
    return f"needs {as_rate(messages / SECONDS)} gets/s more; at the present rate it stays full"


def _growth_of(outlook: Outlook, drawn: Futures, share: float) -> float:
    """Return the messages by which a queue with this share of the growth grows in a tick."""
    space = float(drawn.mix @ outlook.fill.weights[drawn.classes])
    return share * max(0.0, outlook.net) / max(space, 1e-9)


def _enlarge(fill: FillModel, factor: float) -> FillModel:
    scalars = fill.scalars.copy()
    for name in ("ents_max", "space_max"):
        scalars[name] *= factor
    return replace(fill, scalars=scalars)


def _median_s(outlook: Outlook) -> float:
    """Return the seconds until full on the median path, inf: beyond the horizon."""
    assert outlook.drawn is not None
    full_at, full_of = roll(outlook.fill, outlook.drawn)
    full_at = np.where((full_of != NOTHING_FULL) & (full_at <= outlook.horizon), full_at, np.inf)
    return float(np.median(full_at)) * SECONDS


def _phrase(before: float, after: float) -> str:
    if after < _MIN_GAIN * before or is_full_now(after):
        return ""
    if np.isinf(after):
        return "then not full within the horizon"
    if is_full_now(before):
        return f"then full again in {as_span(after)}"
    return f"then full in {as_span(after)} instead of {as_span(before)}"
