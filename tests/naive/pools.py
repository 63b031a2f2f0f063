"""Entries and elements of a CF list structure, the cost of a message, and offload rules.

``attributes`` is always the dict of the structure's attributes with their names in the estate, and sizes in bytes. The
rules: docs/storage-model.md#entries-and-elements, docs/storage-model.md#offloading.
"""

from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

ENTRY_BYTES = 695  # of SIZE per list entry [fitted]
ELEMENT_BYTES = 256  # per data element
MESSAGE_HEADER_BYTES = 372  # that MQ adds to a message held in the structure [fitted]
LARGEST_IN_STRUCTURE = 64_512  # 63 KB of data
OFFLOADED_ELEMENTS = 2  # with 1 entry, that refer to SMDS or Db2
PLACEHOLDER_ELEMENTS = 16  # the placeholder of 4 KB that refers to Db2 at CFLEVEL(4)
RULE_OFF = 65_536  # OFFLDnSZ(64K) switches rule n off
RATIO = 6  # elements per entry at allocation [fitted]
RATIO_ALL_OFFLOADED = 2  # if an offload rule has threshold 0 and size 0
RULES = (1, 2, 3)


class Pools(NamedTuple):
    """Numbers of entries and elements, of a structure or in use."""

    entries: int
    elements: int


class Cost(NamedTuple):
    """The cost of a message besides its entry: elements, and the place of its data: "" (the structure), SMDS or DB2."""

    elements: int
    data: str


def rounded_up(dividend: int, divisor: int) -> int:
    """Return dividend / divisor, rounded up."""
    return (dividend + divisor - 1) // divisor


def has_offload_rules(attributes: dict[str, Any]) -> bool:
    """Return True if offload rules apply: OFFLOAD(SMDS) and OFFLOAD(DB2) need CFLEVEL(5)."""
    return attributes["cf_level"] >= 5 and attributes["offload"] in ("SMDS", "DB2")


def rules_in_effect(attributes: dict[str, Any]) -> list[tuple[int, int, int]]:
    """Return (n, threshold in %, size in bytes) of the rules that are not switched off."""
    if not has_offload_rules(attributes):
        return []
    rules = [(n, attributes[f"offld{n}_th"], attributes[f"offld{n}_sz"]) for n in RULES]
    return [rule for rule in rules if rule[2] != RULE_OFF]


def ratio_at_allocation(attributes: dict[str, Any]) -> int:
    """Return the elements per entry: 6, or 2 if an offload rule has threshold 0 and size 0.

    The ratio is chosen at allocation and at REBUILD, not when the rules are altered.
    """
    for _, threshold, size in rules_in_effect(attributes):
        if threshold == 0 and size == 0:
            return RATIO_ALL_OFFLOADED
    return RATIO


def pools_of_size(size: int, ratio: int | Fraction, attributes: dict[str, Any]) -> Pools:
    """Return the entries and elements of `size` bytes at a ratio, both rounded down [assumed].

    A structure with SCM has 3 % fewer, each pool rounded down by itself [assumed].
    """
    entries = floor(size / (ENTRY_BYTES + Fraction(ratio) * ELEMENT_BYTES))
    elements = floor(entries * ratio)
    if attributes["scm_max_size"]:
        return Pools(entries * 97 // 100, elements * 97 // 100)
    return Pools(entries, elements)


def reaches(threshold: int, used: Pools, total: Pools) -> bool:
    """Return True if entries or elements in use are at or above FULLTHRESHOLD; 0 switches it off."""
    reached = used.entries * 100 >= threshold * total.entries or used.elements * 100 >= threshold * total.elements
    return threshold > 0 and reached


def exceeds(threshold: int, used: Pools, total: Pools) -> bool:
    """Return True if more than `threshold` percent of the entries or of the elements are in use.

    Threshold 0 is always exceeded, even by an empty structure.
    """
    if threshold == 0:
        return True
    return used.entries * 100 > threshold * total.entries or used.elements * 100 > threshold * total.elements


def offload_rule(attributes: dict[str, Any], used: Pools, total: Pools) -> int:
    """Return the highest rule whose threshold is exceeded, or 0. Rules switched off do not count."""
    exceeded = [n for n, threshold, _ in rules_in_effect(attributes) if exceeds(threshold, used, total)]
    return max(exceeded, default=0)


def elements_of_length(length: int) -> int:
    """Return the elements of a message held in the structure."""
    return rounded_up(length + MESSAGE_HEADER_BYTES, ELEMENT_BYTES)


def must_be_offloaded(length: int, attributes: dict[str, Any], used: Pools, total: Pools) -> bool:
    """Return True if a message is offloaded at CFLEVEL(5), by its size or by a rule; `used` is before its put.

    A rule does not offload a message that needs only 2 elements anyway: `offload_min_length` [assumed].
    """
    if length > LARGEST_IN_STRUCTURE:
        return True
    if length <= attributes["offload_min_length"]:
        return False
    rules = rules_in_effect(attributes)
    return any(exceeds(threshold, used, total) and length > size for _, threshold, size in rules)


def cost_of_put(length: int, attributes: dict[str, Any], used: Pools, total: Pools) -> Cost:
    """Return the cost of a message of `length` bytes put while `used` of `total` are in use."""
    if has_offload_rules(attributes):
        if must_be_offloaded(length, attributes, used, total):
            return Cost(OFFLOADED_ELEMENTS, attributes["offload"])
    elif attributes["cf_level"] == 4 and length > LARGEST_IN_STRUCTURE:
        return Cost(PLACEHOLDER_ELEMENTS, "DB2")
    return Cost(elements_of_length(length), "")


def fits_pools(cost: Cost, used: Pools, total: Pools) -> bool:
    """Return True if an entry and the elements are left."""
    return used.entries + 1 <= total.entries and used.elements + cost.elements <= total.elements


def fits_structure(length: int, cost: Cost) -> bool:
    """Return False for a message over 63 KB in the structure, which cannot be put: at CFLEVEL(3) and below.

    If an event says that it was put, it is kept, at 1 entry and the elements of its length.
    """
    return cost.data != "" or length <= LARGEST_IN_STRUCTURE


def usage_pct(used: Pools, total: Pools) -> float:
    """Return 100 * max(entries used / entries, elements used / elements).

    Assumed: an empty pool, which automatic alter may leave of an overfull structure, counts as 1.
    """
    return 100.0 * max(used.entries / max(1, total.entries), used.elements / max(1, total.elements))
