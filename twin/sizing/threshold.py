"""OFFLD3TH for a number of messages: the threshold from which all data is offloaded, so that they fit.

Source: [IBM: Specifying offload options for shared messages, Selecting which shared queue messages are offloaded:
Capacity] (1M messages, 10G: "92% or lower", "not more than 90% of the maximum structure space", "around 80%", and the
example of 1 million messages and 4 GB: 18.75 %, OFFLD3TH(80)).
"""

from __future__ import annotations

from dataclasses import dataclass

from kernels import offload, pools
from twin.capacity.statements import alter_rules
from twin.capacity.structures import allocate, has_rules, pool_sizes, with_all_offloaded_above
from twin.errors import UsageError
from twin.estate import Structure, format_size
from twin.sizing.structure import DOCUMENTED_BYTES, offload_all_commands, round_up
from twin.units import MIB

_MB = 10**6  # the document divides 1,000,000 x 0.75 KB = 768 MB by a SIZE of 4,096 MB
_AIM = 90  # percent of SIZE: "it may be better ... to aim to use not more than 90%"
_AROUND = 80  # OFFLD3TH of both published examples, percent
_BESIDE_SCM = 80  # the highest OFFLD3TH in tens that pre-staging, which begins above 90 %, leaves a chance to fire
_LAST_ELEMENTS = 254  # of the longest message in a structure, which may come just before the threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdPlan:
    """Plan of OFFLD3TH for a backlog. Shares are percent of SIZE."""

    backlog: int  # messages
    size: int  # bytes
    needed: int  # bytes, 0.75 KB per message
    documented_pct: float  # as in the document, MB of 10^6 bytes divided by MB of SIZE
    exact_pct: float  # bytes divided by bytes
    latest: int  # the document's "or lower": 100 minus documented_pct
    aim: int
    aimed: float  # `aim` minus exact_pct
    threshold: int  # `aim` minus documented_pct, rounded down to a ten as in the document
    ents_pct: float  # of the entries of the twin
    elems_pct: float  # of the elements of the twin
    pools_latest: int | None  # the highest OFFLD3TH above which the backlog fits, whatever was put before; None: none
    mqsc: str | None  # command by which the backlog fits by the pools, too; None: at this size there is none
    warnings: tuple[str, ...]


def plan_threshold(config: Structure, backlog: int, aim: int | None = None) -> ThresholdPlan:
    """Plan OFFLD3TH of a structure.

    Args:
        config: the structure.
        backlog: number of messages.
        aim: percent of SIZE that may be in use in the end. None: as in the published examples, 90, but 100 where only
            that leaves "around 80%".

    Raises:
        UsageError: 0.75 KB per message exceed `aim`.
    """
    size = config.init_size or config.size
    needed = backlog * DOCUMENTED_BYTES
    documented = 100 * (needed / _MB) / (size / MIB)
    if aim is None:
        aim = 100 if _around(_AIM - documented) < _AROUND <= _around(100 - documented) else _AIM
    if documented > aim:
        least = format_size(round_up(-(-needed * MIB * 100 // (_MB * aim))))
        raise UsageError(
            f"{backlog:,} messages need {documented:.2f} % of {format_size(size)}, more than {aim} %; expected:"
            f" SIZE({least}) or more"
        )
    threshold = _around(aim - documented)
    if config.scm_max_size:
        threshold = min(threshold, _BESIDE_SCM)
    pools_pct = _pools(config, size, backlog)
    command = _command(config, size, backlog, threshold, pools_pct[2])
    warnings = _warnings(config, aim, threshold, documented, pools_pct[2], has_command=command is not None)
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
        mqsc=command,
        warnings=tuple(warnings),
    )


def _around(share: float) -> int:
    """Round down to a ten, as the document does; below ten to a whole number, since 0 has another meaning."""
    return int(share) // 10 * 10 or int(share)


def _pools(config: Structure, size: int, backlog: int) -> tuple[float, float, int | None]:
    """Return the percent of entries and elements of offloaded messages, and the highest threshold that leaves both.

    The message that crosses the threshold was put below it: 1 entry and up to 254 elements.
    """
    entries, elements = pool_sizes(config, size, allocate(config).ratio)
    if not entries:
        raise UsageError(f"SIZE({format_size(size)}) holds no message; expected: a larger one")
    used_elements = backlog * offload.OFFLOADED_ELEMENTS
    spare_entries = (entries - backlog - 1) * 100 // entries
    spare_elements = (elements - used_elements - _LAST_ELEMENTS) * 100 // elements
    latest = min(spare_entries, spare_elements)
    return 100 * backlog / entries, 100 * used_elements / elements, latest if latest >= 0 else None


def _command(config: Structure, size: int, backlog: int, threshold: int, pools_latest: int | None) -> str | None:
    """Return the command by which the backlog fits: an earlier threshold, or everything offloaded and a rebuild."""
    if pools_latest is not None:
        return alter_rules(config, with_all_offloaded_above(config, min(threshold, pools_latest)))
    entries, elements = pool_sizes(config, size, pools.RATIO_ALL_OFFLOADED)
    fits = backlog <= entries and backlog * offload.OFFLOADED_ELEMENTS <= elements
    return offload_all_commands(config) if fits and has_rules(config) else None


def _warnings(
    config: Structure, aim: int, threshold: int, documented: float, pools_latest: int | None, *, has_command: bool
) -> list[str]:
    warnings = []
    if aim > _AIM and threshold + documented > _AIM:
        warnings.append(
            f"OFFLD3TH({threshold}) would use {threshold + documented:.2f} % of SIZE, as in the document's example of"
            f" 4 GB; --aim {_AIM} leaves room, OFFLD3TH({_around(_AIM - documented)})"
        )
    if config.allow_auto_alter and config.full_threshold:
        warnings.append(
            f"ALLOWAUTOALT(YES): from FULLTHRESHOLD({config.full_threshold}) on the ratio follows the messages that"
            " stand there, just before all take 1 entry and 2 elements. In the published case of 4 GB it makes things"
            " worse: 34 to 59 % fewer messages of 2 to 4 KB fit before the first 2192"
        )
    if config.cf_level < 5:
        warnings.append(f"offload rules need CFLEVEL(5), this structure is at CFLEVEL({config.cf_level})")
    if pools_latest is None or pools_latest < threshold:
        ratio = allocate(config).ratio
        if pools_latest is not None:
            remedy = (
                f"Use OFFLD3TH({pools_latest}) or lower at the ratio 1:{ratio}, as the command does, or a larger SIZE"
            )
        elif has_command:
            remedy = (
                f"No threshold is low enough at the ratio 1:{ratio}: offload everything and rebuild, as the command"
                " does, or use a larger SIZE"
            )
        else:
            remedy = f"No threshold is low enough at the ratio 1:{ratio}: use a larger SIZE"
        warnings.append(
            "if the structure already holds messages of up to 1,164 bytes, entries run out first, in spite of the"
            f" document's threshold of {threshold}. {remedy}"
        )
    return warnings
