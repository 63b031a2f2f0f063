"""Names of stores and their queue managers, for data that know them by other names."""

from __future__ import annotations

from collections.abc import Iterable

from twin.estate import Estate, Structure, group_prefix
from twin.feeds.intake import Intake

_CONNECTOR = "CSQE"  # CSQE, group, queue manager, 02; both names padded to 4 characters [IBM: MQ, message CSQE005I]
_PAD = "@"


def structures_by_policy_name(estate: Estate | None) -> dict[str, str]:
    """Return the store names of structures by their z/OS names: the group, padded to 4 with @, and the name in MQ."""
    names = {}
    for store in estate.stores.values() if estate is not None else ():
        if isinstance(store, Structure):
            names[store.name.replace("/", "")] = store.name
            names[store.policy_name] = store.name
    return names


def store_of_policy_name(name: str, groups: Iterable[str]) -> str | None:
    """Return the store name of a structure of one of the groups by its z/OS name; None if it is of no such group."""
    structure = name[len(_PAD * 4) :]
    if not structure:
        return None
    return next((f"{group}/{structure}" for group in groups if name.startswith(group_prefix(group))), None)


def groups_of(estate: Estate | None) -> set[str]:
    """Return the queue-sharing groups of an estate."""
    configs = estate.queue_managers.values() if estate is not None else ()
    return {config.queue_sharing_group for config in configs if config.queue_sharing_group}


def parse_connector(text: str) -> tuple[str, str] | None:
    """Return (group, queue manager) of a connector's name; None if it is none of MQ."""
    if len(text) < 12 or not text.startswith(_CONNECTOR):
        return None
    group, qmgr = text[4:8].rstrip(_PAD + " "), text[8:12].rstrip(_PAD + " ")
    return (group, qmgr) if group and qmgr else None


def member_of(estate: Estate | None, store: str) -> str | None:
    """Return the first queue manager of a store; None if the estate lacks it."""
    config = estate.stores.get(store) if estate is not None else None
    return min(config.queue_managers, default=None) if config is not None else None


def reporter_of(estate: Estate | None, store: str, qmgr: str) -> str:
    """Return a queue manager that may report a store, for data of z/OS that name none or another one.

    Args:
        estate: the estate.
        store: its name.
        qmgr: the queue manager that the data are of; "" if they name none.
    """
    config = estate.stores.get(store) if estate is not None else None
    return qmgr if config is None or qmgr in config.queue_managers else min(config.queue_managers, default=qmgr)


def group_of(estate: Estate | None, qmgr: str) -> str | None:
    """Return the queue-sharing group of a queue manager; None if it has none or the estate lacks it."""
    config = estate.queue_managers.get(qmgr) if estate is not None else None
    return config.queue_sharing_group if config is not None else None


def note_facility(intake: Intake, name: str, time: int) -> None:
    """Count a coupling facility that is not measured: one that the estate lacks, or has no structure on.

    Args:
        intake: intake of the feed.
        name: name of the coupling facility.
        time: microseconds since 1970.
    """
    if intake.estate is not None and name in intake.estate.stores:
        intake.pass_over("coupling facility without a structure of the estate", name)
    elif intake.estate is not None:
        intake.note_unknown("", time, store=name)
