"""Offload rules that an administrator is told to set: always the whole set of six values.

[IBM: Specifying offload options for shared messages, Capacity]: a threshold for all messages is given, and "the other
offload parameters would also need to be adjusted". A rule helps only if no other one offloads the same data earlier:
thresholds rise and sizes fall from rule 1 to rule 3.
"""

from __future__ import annotations

from twin.estate import ALWAYS_OFFLOADED_ABOVE, RULE_OFF, OffloadRule, Structure
from twin.units import KIB

SOONER_TH = 70  # OFFLD3TH of the remedy that saves elements, percent [assumed]
_STEP = 10  # percent between the thresholds of two rules, as in the defaults 70, 80, 90 [IBM: the same, table]
_SIZES = (32 * KIB, 4 * KIB)  # of rules 1 and 2 by default [IBM: the same, table]


def has_rules(config: Structure) -> bool:
    """True if the structure offloads by rules: [IBM: the same] they need CFLEVEL(5)."""
    return config.cf_level >= 5 and config.offload != "NONE"


def offloads_all_by(config: Structure, threshold: int) -> bool:
    """True if some rule offloads all data at that threshold, percent, or below."""
    return any(not rule.off and rule.th <= threshold and rule.sz <= config.offload_min_length for rule in config.rules)


def with_all_offloaded_above(config: Structure, threshold: int) -> tuple[OffloadRule, ...]:
    """Return three rules of which the third offloads all data above a threshold, and the others less, earlier.

    Rules 1 and 2 keep what the structure has, as far as they can fire before rule 3. A rule for which no threshold is
    left is switched off with a size of 64K.

    Args:
        config: the structure.
        threshold: OFFLD3TH, percent.
    """
    first, second, _ = config.rules
    third = OffloadRule(number=3, th=threshold, sz=0)
    first_sz = first.sz // KIB * KIB
    if not first.off and not 2 * KIB <= first_sz < ALWAYS_OFFLOADED_ABOVE:
        first_sz = _SIZES[0]
    max_sz = ALWAYS_OFFLOADED_ABOVE if first.off else first_sz
    second_sz = second.sz // KIB * KIB
    if second.off or not 0 < second_sz < max_sz:
        second_sz = _SIZES[1] if max_sz > _SIZES[1] else max_sz // 2 // KIB * KIB
    second_th = _below(threshold, second.th)
    if second_th is None:
        return OffloadRule(number=1, th=0, sz=RULE_OFF), OffloadRule(number=2, th=0, sz=RULE_OFF), third
    first_th = _below(second_th, first.th)
    if first.off or first_th is None:
        return OffloadRule(number=1, th=0, sz=RULE_OFF), OffloadRule(number=2, th=second_th, sz=second_sz), third
    return OffloadRule(number=1, th=first_th, sz=first_sz), OffloadRule(number=2, th=second_th, sz=second_sz), third


def _below(threshold: int, present: int) -> int | None:
    """Return a threshold below another: the present one if it is, else a step less; None: there is none."""
    if present < threshold:
        return present
    if threshold <= 0:
        return None
    return threshold - _STEP if threshold > _STEP else threshold // 2
