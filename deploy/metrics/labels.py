"""Labels of stores, as mq_prometheus spells those that it has too."""

from __future__ import annotations

import re

_PAGE_SET = re.compile(r"PS(\d+)")  # the second part of the name of a page set's store: QM01/PS04
ZOS = "ZOS"


def store_labels(store: str, kind: str) -> dict[str, str]:
    """Return the labels of a store; those that do not concern its kind are empty.

    Args:
        store: its name, such as QSG1/APP1 or QM01/PS04.
        kind: see docs/state.md.
    """
    owner, _, name = store.partition("/")
    labels = dict.fromkeys(("qsg", "structure", "qmgr", "pageset", "queue", "platform"), "")
    match kind:
        case "structure":
            labels |= {"qsg": owner, "structure": name, "platform": ZOS}
        case "page_set":
            number = _PAGE_SET.fullmatch(name)
            labels |= {"qmgr": owner, "pageset": str(int(number[1])) if number else name, "platform": ZOS}
        case "queue_file":
            labels |= {"qmgr": owner, "queue": name}
        case "queue_manager":
            labels |= {"qmgr": owner}
        case "coupling_facility":
            labels |= {"platform": ZOS}
    return {"store": store, "kind": kind, **labels}


def resource_labels(resource: str) -> dict[str, str]:
    """Return the labels of a resource: `resource`, and `qmgr` of a data set (smds/QM01) or source (source/QM01)."""
    _, slash, qmgr = resource.partition("/")
    return {"resource": resource, "qmgr": qmgr} if slash else {"resource": resource}
