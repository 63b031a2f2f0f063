"""Entries and elements of a CF list structure: how many there are, what a message takes, which offload rule applies.

``attributes`` is everywhere the dict of the structure's attributes as the estate names them (contract.md, 1), sizes in
bytes.
"""

from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

ENTRY_BYTES = 695  # domain.md, 1: what a list entry takes of SIZE
ELEMENT_BYTES = 256  # domain.md, 1: a data element
MESSAGE_HEADER_BYTES = 372  # domain.md, 1: what MQ adds to a message held in the structure
LARGEST_IN_STRUCTURE = 64_512  # domain.md, 1: 63 KB of data at most
OFFLOADED_ELEMENTS = 2  # domain.md, 1: 1 entry and 2 elements point to SMDS or Db2
PLACEHOLDER_ELEMENTS = 16  # domain.md, 1: at CFLEVEL(4) a 4 KB placeholder points to Db2
RULE_OFF = 65_536  # domain.md, 1: OFFLDnSZ(64K) switches rule n off
RATIO = 6  # domain.md, 1: elements an entry, at allocation
RATIO_ALL_OFFLOADED = 2  # domain.md, 1: where some rule has threshold 0 and size 0
RULES = (1, 2, 3)


class Pools(NamedTuple):
    """A number of entries and of elements: those a structure has, or those in use."""

    entries: int
    elements: int


class Cost(NamedTuple):
    """What a message takes: always 1 entry, so many elements; where its data is: "" (the structure), SMDS or DB2."""

    elements: int
    data: str


def rounded_up(dividend: int, divisor: int) -> int:
    """The least whole number not below dividend / divisor."""
    return (dividend + divisor - 1) // divisor


def has_offload_rules(attributes: dict[str, Any]) -> bool:
    """OFFLOAD(SMDS) and OFFLOAD(DB2) need CFLEVEL(5) (domain.md, 1)."""
    return attributes["cf_level"] >= 5 and attributes["offload"] in ("SMDS", "DB2")


def rules_in_effect(attributes: dict[str, Any]) -> list[tuple[int, int, int]]:
    """(n, threshold in %, size in bytes) of the rules that are not switched off."""
    if not has_offload_rules(attributes):
        return []
    rules = [(n, attributes[f"offld{n}_th"], attributes[f"offld{n}_sz"]) for n in RULES]
    return [rule for rule in rules if rule[2] != RULE_OFF]


def ratio_at_allocation(attributes: dict[str, Any]) -> int:
    """Elements an entry: 6, or 2 when some offload rule has threshold 0 and size 0 (domain.md, 1).

    contract.md, 7 (Estate): chosen at allocation and at REBUILD, not at an ALTER of the rules.
    """
    for _, threshold, size in rules_in_effect(attributes):
        if threshold == 0 and size == 0:
            return RATIO_ALL_OFFLOADED
    return RATIO


def pools_of_size(size: int, ratio: int | Fraction, attributes: dict[str, Any]) -> Pools:
    """Entries and elements that `size` bytes give at a ratio (domain.md, 1). Our reading: both rounded down.

    domain.md, 3: 3 % fewer where the structure has SCM; contract.md, 7 (Estate): that rounds down, each pool by itself.
    """
    entries = floor(size / (ENTRY_BYTES + Fraction(ratio) * ELEMENT_BYTES))
    elements = floor(entries * ratio)
    if attributes["scm_max_size"]:
        return Pools(entries * 97 // 100, elements * 97 // 100)
    return Pools(entries, elements)


def reaches(threshold: int, used: Pools, total: Pools) -> bool:
    """Entries or elements in use are at FULLTHRESHOLD (domain.md, 1); 0 switches it off."""
    at = used.entries * 100 >= threshold * total.entries or used.elements * 100 >= threshold * total.elements
    return threshold > 0 and at


def exceeds(threshold: int, used: Pools, total: Pools) -> bool:
    """Usage is more than `threshold` %: of the entries or of the elements (domain.md, 1).

    contract.md, 7 (State): threshold 0 is always exceeded, that is, by an empty structure too.
    """
    if threshold == 0:
        return True
    return used.entries * 100 > threshold * total.entries or used.elements * 100 > threshold * total.elements


def offload_rule(attributes: dict[str, Any], used: Pools, total: Pools) -> int:
    """The highest rule whose threshold is exceeded, 0: none; rules switched off do not count (contract.md, 7)."""
    exceeded = [n for n, threshold, _ in rules_in_effect(attributes) if exceeds(threshold, used, total)]
    return max(exceeded, default=0)


def elements_of_length(length: int) -> int:
    """Elements of a message held in the structure (domain.md, 1)."""
    return rounded_up(length + MESSAGE_HEADER_BYTES, ELEMENT_BYTES)


def must_be_offloaded(length: int, attributes: dict[str, Any], used: Pools, total: Pools) -> bool:
    """At CFLEVEL(5): by size, or by a rule at the moment of the put (`used` is before it) (domain.md, 1).

    A rule does not touch a message that needs only 2 elements anyway: `offload_min_length` (domain.md, 1).
    """
    if length > LARGEST_IN_STRUCTURE:
        return True
    if length <= attributes["offload_min_length"]:
        return False
    rules = rules_in_effect(attributes)
    return any(exceeds(threshold, used, total) and length > size for _, threshold, size in rules)


def cost_of_put(length: int, attributes: dict[str, Any], used: Pools, total: Pools) -> Cost:
    """What a message of `length` bytes takes when it is put while `used` of `total` are in use (domain.md, 1)."""
    if has_offload_rules(attributes):
        if must_be_offloaded(length, attributes, used, total):
            return Cost(OFFLOADED_ELEMENTS, attributes["offload"])
    elif attributes["cf_level"] == 4 and length > LARGEST_IN_STRUCTURE:
        return Cost(PLACEHOLDER_ELEMENTS, "DB2")
    return Cost(elements_of_length(length), "")


def fits_pools(cost: Cost, used: Pools, total: Pools) -> bool:
    """There is an entry, and the elements, for one more message."""
    return used.entries + 1 <= total.entries and used.elements + cost.elements <= total.elements


def fits_structure(length: int, cost: Cost) -> bool:
    """False for more than 63 KB kept in the structure, which cannot be: at CFLEVEL(3) and below (domain.md, 1).

    contract.md, 7 (State): such a put is a fact all the same, at 1 entry and the elements of its length.
    """
    return cost.data != "" or length <= LARGEST_IN_STRUCTURE


def usage_pct(used: Pools, total: Pools) -> float:
    """100 x max(entries used / entries, elements used / elements) (domain.md, 1).

    Our reading: a pool of none, which automatic alter may make of an overfull structure, counts as one.
    """
    return 100.0 * max(used.entries / max(1, total.entries), used.elements / max(1, total.elements))
