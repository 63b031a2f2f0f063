"""What would help: the paths of an alert's forecast rolled again with one thing changed.

The same futures, one rule or one flow otherwise: what differs is the effect of the change, not chance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernels.resources import NOTHING_FULL
from twin.alerts import texts
from twin.alerts.episodes import Filler
from twin.estate import Structure
from twin.forecast.fill_model import Rules
from twin.forecast.outlook import SECONDS, Outlook, roll
from twin.forecast.structure_model import offloading_sooner
from twin.units import as_span


def effects(outlook: Outlook, fillers: tuple[Filler, ...], config: Any) -> dict[str, str]:
    """By what is done (see texts.py): what it changes, as part of a sentence; nothing where it changes little."""
    changed: dict[str, Outlook] = {}
    if fillers:
        changed[texts.GETTERS] = _without(outlook, fillers[0].share)
    if isinstance(config, Structure):
        if sooner := offloading_sooner(outlook.rules, config):
            changed[texts.OFFLOAD] = replace(outlook, rules=sooner)
        size_now = float(outlook.rules.size)
        if 0 < size_now < config.size:
            changed[texts.SIZE] = replace(outlook, rules=_larger(outlook.rules, config.size / size_now))
    before = _median(outlook)
    said = {what: _said(before, _median(one)) for what, one in changed.items()}
    return {what: text for what, text in said.items() if text}


def _without(outlook: Outlook, share: float) -> Outlook:
    """As if this share of the growth did not come."""
    space = float(outlook.drawn.mix @ outlook.rules.weights)
    less = share * max(0.0, outlook.net) / max(space, 1e-9)
    return replace(outlook, drawn=replace(outlook.drawn, extra=outlook.drawn.extra - less))


def _larger(rules: Rules, factor: float) -> Rules:
    model = rules.model.copy()
    for name in ("ents_max", "space_max"):
        model[name] *= factor
    return replace(rules, model=model)


def _median(outlook: Outlook) -> float:
    """Seconds until full on the middle path, inf: beyond the horizon."""
    full_at, full_of = roll(outlook.rules, outlook.drawn)
    full_at = np.where((full_of != NOTHING_FULL) & (full_at <= outlook.horizon), full_at, np.inf)
    return float(np.median(full_at)) * SECONDS


def _said(before: float, after: float) -> str:
    if after < 1.3 * before:
        return ""
    if np.isinf(after):
        return " (then it does not fill within the horizon)"
    return f" (then it lasts {as_span(after)} instead of {as_span(before)})"
