"""``mqtwin advise``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from deploy.moment import open_moment, parse_traffic
from deploy.show.advice import print_advice
from deploy.show.warnings import print_warnings
from twin.advise import Promise
from twin.advise import advise as find_advice
from twin.estate import load_estate


def advise(
    store: str,
    /,
    *,
    estate: Path,
    recording: Path | None = None,
    time: Annotated[str | None, Parameter(name="--at")] = None,
    checkpoint: Path | None = None,
    hours: float = 2.0,
    confidence: float = 0.9,
    traffic: str = "",
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Find the least change with which a store is not full within some hours. Nothing is changed.

    Where it is not full anyway, it prints what could be smaller. Each plan is proven by rolling the store forward.

    Args:
        store: Name of the store, such as QSG1/APP1.
        estate: Estate file (TOML).
        recording: Recording that leads to the moment: .ndjson, .ndjson.zst or .arrow.
        time: Moment of the recording, RFC 3339; its end by default.
        checkpoint: Checkpoint folder of a job, on this machine, instead of a recording.
        hours: Hours within which the store must not be full.
        confidence: Share of all futures in which that must hold, 0.5 to 0.99.
        traffic: Factors on the traffic, such as gets=0 for an outage of all getters.
        json_: Print JSON instead of text.
    """
    promise, factors = Promise(hours=hours, confidence=confidence), parse_traffic(traffic)
    loaded_estate = load_estate(estate)
    print_warnings(loaded_estate.warnings)
    advice = find_advice(open_moment(store, loaded_estate, recording, time, checkpoint), promise, factors)
    if json_:
        print(msgspec.json.encode(advice).decode())
    else:
        print_advice(advice)
