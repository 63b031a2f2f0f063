"""Storage class memory behind a structure: what kernels need to know of it, its part of the state record, its pace.

A structure knows its own bounds only: SCMMAXSIZE, what the estate leaves of its facility's storage, and of
over-committed SCM the share that is left when all structures take theirs: what the others use at the moment would have
to arrive from the facility's twin at a place among its events that depends on batches. Its own puts may show that they
leave it more, or less. The alerts about its pace look at the event time since the last tick. Sources:
docs/storage-model.md, "Storage class memory"; [IBM: How storage class memory works with IBM MQ for z/OS] (pre-staging
above 90 %, applications wait for a read of SCM); [assumed] (bandwidth of the mover, when the wait is worth an alert);
docs/alerts.md, "Conditions".
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from kernels import clock, layout, meter_rows, scm
from kernels.pools import exceeds
from twin.alerts import texts
from twin.alerts.episodes import Alert, Episodes, Finding
from twin.capacity.structures import assured_scm, bounds
from twin.conditions import CRITICAL, INFO, SCM, Condition
from twin.estate import Estate, Structure
from twin.estate.model import DYNAMIC_AUGMENTED_PPM, FIXED_AUGMENTED
from twin.records import ScmState
from twin.state.tables import Tables
from twin.stores.resources import read_usage
from twin.units import percent

_SECOND_NS = 10**9
MAX_WAIT_PCT = 10.0  # of event time that gets wait for faults, together, above which the alert opens [assumed]
_CALM_RATIO = 0.8  # of either limit, below which the alert may clear [assumed]


def scm_params(estate: Estate, config: Structure) -> dict[str, int]:
    """Return the fields of PARAMS that bound a structure's SCM and give its speeds."""
    scm_most, aug_max = bounds(estate, config)
    return {
        "scm_max": min(scm_most, assured_scm(estate, config)),
        "scm_most": scm_most,
        "aug_max": aug_max,
        "aug_ppm": DYNAMIC_AUGMENTED_PPM,
        "stage_ns": _block_ns(config.scm_prestage_rate),
        "fetch_ns": _block_ns(config.scm_prefetch_rate),
        "read_us": config.scm_read_us,
    }


def enrol(tables: Tables, *, has_scm: bool) -> None:
    """Add SCM to a structure or remove it, if that has changed: its messages are put in order, or moved back."""
    store = tables.store
    if store.scm[0]["enrolled"] == has_scm:
        return
    if not has_scm:
        scm.bring_back(store)
        store.scm[:] = np.zeros(1, layout.SCM_USE)
        return
    tables.reserve("order", store.messages.size)
    by_age = np.argsort(store.messages["age"][: int(store.scalars[0]["message_high"])], kind="stable")
    scm.enrol(tables.store, by_age)


def scm_state(store: layout.Store) -> ScmState | None:
    """Return the state of a structure's SCM; None where the structure has none."""
    use = store.scm[0]
    if not use["enrolled"]:
        return None
    usage = read_usage(store)
    return ScmState(
        max=int(usage[meter_rows.SCM]["total"]),
        used=int(usage[meter_rows.SCM]["used"]),
        ents=int(scm.messages_in_use(store)),
        elems=int(scm.elements_in_use(store)),
        messages=int(scm.messages_in_use(store)),
        aug_fixed=FIXED_AUGMENTED,
        aug_dynamic=int(usage[meter_rows.AUGMENTED]["used"]),
        prestaged=int(use["prestaged"]),
        prefetched=int(use["prefetched"]),
        faults=int(use["faults"]),
        fault_wait_s=int(use["fault_wait_us"]) / 1e6,
    )


def _block_ns(rate: int) -> int:
    """Return the nanoseconds that a block of 4 KB takes at `rate` bytes/s, rounded up."""
    return -(-scm.BLOCK_BYTES * _SECOND_NS // rate)


# --- pace ------------------------------------------------------------------------------------------------------------


class Counters(NamedTuple):
    """Messages that a structure holds, and microseconds that gets have waited for faults so far."""

    messages: int = 0
    fault_wait_us: int = 0


class Pace(NamedTuple):
    """Rates since the previous tick."""

    growth: float  # messages/s put and not removed
    mover: float  # messages/s that it can write
    wait_pct: float  # percent of event time


def count_waits(store: layout.Store) -> Counters:
    """Return the counters of a structure."""
    return Counters(int(store.scalars[0]["messages"]), int(store.scm[0]["fault_wait_us"]))


def measure_pace(store: layout.Store, before: Counters, now: Counters, ticks: int) -> Pace:
    """Return the pace of the last ticks, with messages of the mean size of those held."""
    seconds = ticks * clock.TICK / clock.SECOND
    growth = now.messages - before.messages
    waited_us = max(0, now.fault_wait_us - before.fault_wait_us)
    return Pace(growth / seconds, mover_rate(store), 100.0 * waited_us / (seconds * 1e6))


def mover_rate(store: layout.Store) -> float:
    """Return the messages/s of the mean size held that the mover can write; 0 without messages."""
    use = store.scm[0]
    entries, elements_used = read_usage(store)["used"][[meter_rows.ENTRIES, meter_rows.SPACE]].tolist()
    messages = entries + int(use["messages"])
    if messages == 0:
        return 0.0
    elements = -(-(elements_used + int(use["elems"])) // messages)
    return 1e9 / (int(scm.blocks_of(1, elements)) * int(store.params[0]["stage_ns"]))


def check_pace(store: layout.Store, config: Structure, pace: Pace, episodes: Episodes, now: int) -> list[Alert]:
    """Open or clear the alerts about the pace of SCM; return what is published."""
    prestages = bool(exceeds(store, scm.PRESTAGE_ABOVE)) or int(store.scm[0]["messages"]) > 0
    overrun = Finding(
        condition=Condition.SCM_OVERRUN,
        resource=SCM,
        severity=CRITICAL if exceeds(store, scm.PRESTAGE_ABOVE) else INFO,
        usage_pct=_usage_pct(store),
        cause=(
            f"SCM of {config.name}: the structure grows by {pace.growth:,.0f} messages/s, the mover takes"
            f" {pace.mover:,.0f} messages/s of their size. Above 90 % the structure fills although SCM has room."
        ),
    )
    wait = Finding(
        condition=Condition.FAULT_WAIT,
        resource=SCM,
        severity=Condition.FAULT_WAIT.severity,
        usage_pct=_usage_pct(store),
        cause=(
            f"SCM of {config.name}: gets waited for messages in SCM for {pace.wait_pct:.1f} % of the time"
            f" (limit {MAX_WAIT_PCT:.0f} %); an application is blocked while it waits."
        ),
    )
    limit = pace.mover if prestages else float("inf")
    publish = partial(_publish, config, episodes, now)
    return [
        *publish(overrun, holds=pace.growth > limit > 0, is_over=pace.growth < _CALM_RATIO * limit),
        *publish(wait, holds=pace.wait_pct > MAX_WAIT_PCT, is_over=pace.wait_pct < _CALM_RATIO * MAX_WAIT_PCT),
    ]


def _publish(
    config: Structure, episodes: Episodes, now: int, finding: Finding, *, holds: bool, is_over: bool
) -> list[Alert]:
    def with_actions() -> Finding:  # every tick asks, few publish
        facts = texts.structure_facts(config, SCM, ())
        return msgspec.structs.replace(finding, runbook=episodes.runbook.actions(finding.condition, facts))

    episode = episodes.get(finding.condition, finding.resource)
    if episode is None:
        return episodes.open(with_actions(), now) if holds else []
    cleared = f"{finding.cause.partition(':')[0]}: alert cleared."
    if finding.severity != episode.severity and episode.severity == INFO and not is_over:
        return episodes.update(episode, with_actions(), now)
    over = msgspec.structs.replace(finding, severity=episode.severity, cause=cleared)
    return episodes.settle(episode, lambda: over, now, is_over=is_over)


def _usage_pct(store: layout.Store) -> float:
    used, total, *_ = read_usage(store)[meter_rows.SCM].tolist()
    return percent(used, total, of_nothing=100.0)
