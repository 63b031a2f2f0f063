"""Names of stores and their queue managers, for data that know them by other names."""

from __future__ import annotations

from twin.estate import Estate, Structure

_CONNECTOR = "CSQE"  # CSQE, group, queue manager, 02; both names padded to 4 characters [IBM: MQ, message CSQE005I]
_PAD = "@"


def structures_by_policy_name(estate: Estate | None) -> dict[str, str]:
    """Return the store names of structures by their z/OS names: the group, padded to 4 with @, and the name in MQ."""
    names = {}
    for store in estate.stores.values() if estate is not None else ():
        if isinstance(store, Structure):
            group, _, name = store.name.partition("/")
            names[group + name] = store.name
            names[group.ljust(4, _PAD) + name] = store.name
    return names


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


def group_of(estate: Estate | None, qmgr: str) -> str | None:
    """Return the queue-sharing group of a queue manager; None if it has none or the estate lacks it."""
    config = estate.queue_managers.get(qmgr) if estate is not None else None
    return config.queue_sharing_group if config is not None else None
