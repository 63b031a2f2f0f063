"""Administration structures: INITSIZE and SIZE for a number of queue managers, by IBM's documents.

The figures and their sources are in `twin.estate.administration`; docs/sizing.md has them in a table. SIZE is twice
INITSIZE, the most that [IBM: Health Checker, XCF_CF_STR_POLICYSIZE] takes without an exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twin.capacity.statements import structure_sizes
from twin.errors import UsageError
from twin.estate import Structure, format_size
from twin.estate.administration import (
    ENTRIES_PER_QMGR,
    MAX_QMGRS,
    NEWEST_CFLEVEL,
    PUBLISHED,
    PublishedSizes,
    published_for,
)
from twin.estate.model import ADMINISTRATION
from twin.sizing.structure import round_up

_GROWTH = 2  # SIZE over INITSIZE


@dataclass(frozen=True, slots=True)
class PublishedSize:
    """Least size that a document has for the number of queue managers, bytes.

    `listed` is False for a number between two of the document.
    """

    from_cflevel: int
    bytes: int
    listed: bool
    source: str


@dataclass(frozen=True, slots=True)
class AdministrationPlan:
    """Plan of an administration structure; sizes in bytes.

    Attributes:
        queue_managers: number of queue managers of the group that CSQ5PQSG has added.
        cflevel: level of the coupling facility; None: not known.
        entries: list entries that must fit.
        published: the least size by each document.
        init_size: the least size at the level, with the error of its chart, in whole MB.
        size: SIZE.
        cfrm: the parts of the STRUCTURE statement.
        warnings: what to know about the figures, one per line.
    """

    queue_managers: int
    cflevel: int | None
    entries: int
    published: tuple[PublishedSize, ...]
    init_size: int
    size: int
    cfrm: str
    warnings: tuple[str, ...]


def plan_administration(
    queue_managers: int, cflevel: int | None = None, config: Structure | None = None
) -> AdministrationPlan:
    """Plan the administration structure of a queue-sharing group.

    Args:
        queue_managers: their number, also those that are down.
        cflevel: CFLEVEL of the coupling facility; None: not known, which takes the largest figures.
        config: the structure of an estate, whose sizes are compared; None: none.

    Raises:
        UsageError: there is no such number of queue managers.
    """
    if not 1 <= queue_managers <= MAX_QMGRS:
        raise UsageError(f"{queue_managers} queue managers; expected: 1 to {MAX_QMGRS} of a queue-sharing group")
    chosen = published_for(cflevel)
    init_size = round_up(chosen.least(queue_managers) + chosen.error)
    size = _GROWTH * init_size
    name = f"QSG1{ADMINISTRATION}" if config is None else config.policy_name
    return AdministrationPlan(
        queue_managers=queue_managers,
        cflevel=cflevel,
        entries=ENTRIES_PER_QMGR * queue_managers,
        published=tuple(
            PublishedSize(
                sizes.from_cflevel, sizes.least(queue_managers), sizes.is_listed(queue_managers), sizes.source
            )
            for sizes in PUBLISHED
        ),
        init_size=init_size,
        size=size,
        cfrm=" ".join(structure_sizes(name, size, init_size, None)),
        warnings=tuple(_warnings(queue_managers, cflevel, chosen, init_size, config)),
    )


def _warnings(
    queue_managers: int, cflevel: int | None, chosen: PublishedSizes, init_size: int, config: Structure | None
) -> Iterator[str]:
    if cflevel is None:
        yield f"CFLEVEL is not known: the figures of CFLEVEL {chosen.from_cflevel} are taken; give --cflevel (D CF)"
    elif cflevel > NEWEST_CFLEVEL:
        published = f"the figures of CFLEVEL {NEWEST_CFLEVEL} are taken; ask CFSizer"
        yield f"nothing is published for CFLEVEL {cflevel}: {published}"
    elif cflevel < chosen.from_cflevel:
        yield f"nothing is published for CFLEVEL {cflevel}: the figures of CFLEVEL {chosen.from_cflevel} are taken"
    if not chosen.is_listed(queue_managers):
        listed = ", ".join(map(str, chosen.kilobytes))
        yield f"{chosen.source} has {listed} queue managers: {queue_managers} are on the line between two"
    if config is not None and (config.init_size or config.size) < init_size:
        has = format_size(config.init_size or config.size)
        yield f"{config.name} is allocated with {has}, less than {format_size(init_size)}"
