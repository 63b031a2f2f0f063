"""OFFLD3TH for a predetermined number of messages: from where on all data are offloaded, so that they fit.

Source: *Specifying offload options for shared messages*, Selecting which shared queue messages are offloaded: Capacity
(1M messages, 10G: "92% or lower", "not more than 90% of the maximum structure space", "around 80%") and the example of
1 million messages and 4 GB (18.75 %, OFFLD3TH(80)).
"""

from __future__ import annotations

from dataclasses import dataclass

from kernels import offload
from twin.allocation import allocate, pool_sizes
from twin.errors import UsageError
from twin.estate import Structure, format_size
from twin.sizing.structure import DOCUMENTED_BYTES, rounded
from twin.units import MIB

_MB = 10**6  # the documents say 1,000,000 x 0.75 KB = 768 MB, and set it against a SIZE of 4,096 MB
_LAST_ELEMENTS = 254  # of the longest message that stands in a structure: it may come just before the threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdPlan:
    """Where OFFLD3TH must be for `backlog` messages. Shares are of SIZE, percent.

    needed: bytes, 0.75 KB a message; documented_pct: in the documents' words, MB of 10^6 bytes against MB of SIZE;
    exact_pct: bytes against bytes; latest: "or lower", 100 less documented_pct; aimed: `aim` less exact_pct;
    threshold: `aim` less documented_pct in the documents' manner, "around", a ten or below it: what `mqsc` sets.
    ents_pct, elems_pct: of the twin's pools; pools_latest: the highest OFFLD3TH at which so many messages fit after
    it whatever stands there before, None where there is none.
    """

    backlog: int
    size: int
    needed: int
    documented_pct: float
    exact_pct: float
    latest: int
    aim: int
    aimed: float
    threshold: int
    ents_pct: float
    elems_pct: float
    pools_latest: int | None
    mqsc: str
    warnings: tuple[str, ...]


def plan_threshold(config: Structure, backlog: int, aim: int = 90) -> ThresholdPlan:
    """OFFLD3TH of the structure for so many messages; `aim`: percent of SIZE that may be used in the end.

    UsageError where 0.75 KB a message is more than that.
    """
    size = config.init_size or config.size
    needed = backlog * DOCUMENTED_BYTES
    documented = 100 * (needed / _MB) / (size / MIB)
    if documented > aim:
        least = format_size(rounded(-(-needed * MIB * 100 // (_MB * aim))))
        raise UsageError(
            f"{backlog:,} messages need {documented:.2f} % of {format_size(size)}, more than {aim} %: SIZE({least}) or"
            " more is right"
        )
    threshold = _around(aim - documented)
    pools_pct = _pools(config, size, backlog)
    return ThresholdPlan(
        backlog=backlog,
        size=size,
        needed=needed,
        documented_pct=documented,
        exact_pct=100 * needed / size,
        latest=int(100 - documented),
        aim=aim,
        aimed=aim - 100 * needed / size,
        threshold=threshold,
        ents_pct=pools_pct[0],
        elems_pct=pools_pct[1],
        pools_latest=pools_pct[2],
        mqsc=f"ALTER CFSTRUCT({config.name.partition('/')[2]}) OFFLD3TH({threshold}) OFFLD3SZ(0K)",
        warnings=tuple(_warnings(config, threshold, pools_pct[2])),
    )


def _around(share: float) -> int:
    """A ten at or below, as the documents round; below ten the whole number, for 0 means something else."""
    return int(share) // 10 * 10 or int(share)


def _pools(config: Structure, size: int, backlog: int) -> tuple[float, float, int | None]:
    """Percent of entries and of elements of so many offloaded messages, and the threshold that leaves both.

    The message that crosses the threshold was put below it: 1 entry, and up to 254 elements.
    """
    entries, elements = pool_sizes(config, size, allocate(config).ratio)
    if not entries:
        raise UsageError(f"SIZE({format_size(size)}) holds no message: a larger one is right")
    taken = backlog * offload.OFFLOADED_ELEMENTS
    spare_entries = (entries - backlog - 1) * 100 // entries
    spare_elements = (elements - taken - _LAST_ELEMENTS) * 100 // elements
    latest = min(spare_entries, spare_elements)
    return 100 * backlog / entries, 100 * taken / elements, latest if latest >= 0 else None


def _warnings(config: Structure, threshold: int, pools_latest: int | None) -> list[str]:
    warnings = [
        f"OFFLD{rule.number}TH({rule.th}) is not below OFFLD3TH({threshold}): that rule offloads nothing by itself;"
        " adjust it too"
        for rule in config.rules[:2]
        if not rule.off and rule.th >= threshold
    ]
    if config.cf_level < 5:
        warnings.append(f"offload rules need CFLEVEL(5), this structure is at CFLEVEL({config.cf_level})")
    if pools_latest is None or pools_latest < threshold:
        lower = "no threshold is low enough" if pools_latest is None else f"{pools_latest} or lower would do"
        warnings.append(
            "entries and elements by the model: if what stands there before are messages of up to 1,164 bytes, entries"
            f" run out first: {lower} at the ratio 1:{allocate(config).ratio}; a larger SIZE gives more"
        )
    return warnings
