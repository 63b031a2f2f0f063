"""Resync on request: a MEASURE with `resync` makes a store twin take over what was measured.

The model's messages are dropped, those of open units of work excepted, and the measurement becomes the baseline, which
unmatched gets draw down. What was not measured stays as large as it was. Described in docs/events.md, "Resync".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels import layout

RESYNC = "resync"
# Fields that say the same in different ways: of each group the measured ones count, or else all of the model.
_GROUPS = (
    ("ents_used",),
    ("elems_used",),
    ("pages_used", "pages_persistent", "pages_nonpersistent"),
    ("blocks_persistent",),
    ("blocks_nonpersistent",),
)
_DATASET = ("blocks_used", "pages_used", "messages")


def completed(measured: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a measurement with the fields that it lacks, as the model has them.

    Args:
        measured: fields of the state record.
        state: fields of the state record before the model's messages are dropped.
    """
    result = dict(measured)
    for group in _GROUPS:
        if not any(name in measured for name in group):
            result |= {name: state[name] for name in group if name in state}
    datasets = state.get("smds") or {}
    real = measured.get("smds", {})
    if datasets or real:
        result["smds"] = {
            **real,
            **{
                qmgr: {**{name: dataset[name] for name in _DATASET}, **real.get(qmgr, {})}
                for qmgr, dataset in datasets.items()
            },
        }
    return result


def clear_events(routes: npt.NDArray[Any], base: int, queues: Sequence[str], time: int) -> npt.NDArray[Any]:
    """Return a CLEAR of each queue of a store, EVENT[n].

    Args:
        routes: ROUTE[m] of the store.
        base: index of the first of them in the estate.
        queues: names of the queues by row.
        time: microseconds.
    """
    _, firsts = np.unique(routes["queue"], return_index=True)
    firsts = firsts[(routes["queue"][firsts] >= 0) & (routes["queue"][firsts] < len(queues))]
    events = np.zeros(firsts.size, layout.EVENT)
    events["time"], events["seq"], events["op"], events["count"] = time, -1, layout.CLEAR, 1
    events["route"] = firsts + base
    return events
