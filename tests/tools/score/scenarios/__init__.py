"""Scenarios of the scorecard: those of the product that may fill a store, and others that mislead a forecast."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Literal

from tests.tools.score.scenarios.chance import HeavyTailedBursts, ShortOutages
from tests.tools.score.scenarios.nights import DayAndNight, NightlyBatch
from tests.tools.score.scenarios.turning import (
    BeatingTeeth,
    ClimbsThatTurn,
    DriftingSawtooth,
    FlakyGetter,
    LengthsStep,
    LevelsOffHigh,
    Sawtooth,
    ShiftingBursts,
    UnitsComeAndGo,
)
from tests.tools.score.scenarios.undone import LongUnitOfWork, TwoStores
from twin.simulation.scenario import SCENARIOS, StoreScenario
from twin.simulation.stories import filling, mechanisms

Wants = Literal["any", "rules", "fixed-smds", "two-stores", "no-expansion", "scm", "scm-over-committed"]


def _registered_in(module: ModuleType) -> list[type[StoreScenario]]:
    kinds = [kind for kind in SCENARIOS.values() if kind.__module__ == module.__name__]
    return [kind for kind in kinds if issubclass(kind, StoreScenario)]


_KINDS: tuple[type[StoreScenario], ...] = (
    HeavyTailedBursts,
    ShortOutages,
    *_registered_in(filling),
    *_registered_in(mechanisms),
    NightlyBatch,
    DayAndNight,
    *_registered_in(mechanisms),
    Sawtooth,
    DriftingSawtooth,
    ClimbsThatTurn,
    BeatingTeeth,
    ShiftingBursts,
    LevelsOffHigh,
    UnitsComeAndGo,
    LengthsStep,
    FlakyGetter,
    LongUnitOfWork,
    TwoStores,
)
STORIES: Mapping[str, type[StoreScenario]] = {kind.name: kind for kind in _KINDS}
"""Scenarios by name. Their order decides which case is of which scenario."""

STEADY = frozenset({"getter-outage", "slow-consumer", "one-queue-hogging", "flat-near-limit", "page-set-expand-none"})
"""Names of those that a straight line predicts well; the others are hard."""

HELD_OUT = frozenset({BeatingTeeth.name, UnitsComeAndGo.name, FlakyGetter.name})
"""Names of those that are not in the tuning set: new to whoever tunes the forecast."""

WANTS: Mapping[str, Wants] = {
    "smds-cannot-expand": "fixed-smds",
    "offload-stops-growth": "rules",
    "scm-fills-behind": "scm",
    "priority-inversion": "scm",
    "scm-over-committed": "scm-over-committed",
    "flat-structure-full-data-set": "fixed-smds",
    "page-set-expand-none": "no-expansion",
    "two-stores": "two-stores",
}
"""Needs of an estate (`tests.tools.score.case_estate`) by name; of the others any estate will do."""
