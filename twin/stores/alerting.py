"""Alerts of a store that holds messages: when conditions fire, and at the end of a tick.

Kernels mark in `fired` which conditions have begun, and each is marked once until it is armed again: when its alert is
cleared. A tick runs the forecast and reviews the open alerts. A threshold that is passed only informs, because the
forecast is the better judge of whether the store will be full. It is a page where there is no forecast: docs/alerts.md,
"Which alerts are pages".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from kernels import clock, layout, watch
from twin.alerts import texts
from twin.alerts.episodes import SEVERITIES, STEP, Alert, Episode, Finding
from twin.alerts.findings import CALM_AFTER_FULL, NEARLY_FULL_PCT
from twin.alerts.texts import NOTHING
from twin.base.conditions import CRITICAL, INFO, REVIEWED, WARNING, Condition, Pool, Resource
from twin.base.units import as_microseconds, as_span
from twin.forecast import remedies
from twin.records import GETTERS, Filler
from twin.stores import watches
from twin.stores.kind import StoreKind
from twin.stores.resources import DATA_SET, check_depth, depth_lead_s

_DATASET_BITS = {bit: condition for condition, bit in DATA_SET.bits.items()}
_GETS_TICKS = clock.MINUTE_TICKS  # since the last get, for which getters are said to get
_TOGETHER = (Pool.ENTRIES, Pool.ELEMENTS, Pool.SMDS)  # resources that pass a line at one tick are one alert


def open_fired(view: StoreKind, now: int | None = None) -> list[Alert]:
    """Open an alert for every condition that fired, at a time in microseconds; None: the store's clock."""
    store = view.tables.store
    scalars, datasets, queues = store.scalars[0], store.datasets, store.queues[: len(view.queues)]
    if not scalars["fired"] and not datasets["fired"].any() and not queues["fired"].any():
        return []
    now = int(scalars["clock"]) if now is None else now
    fired = [condition for bit, condition in view.conditions.items() if int(scalars["fired"]) & bit]
    for row in np.flatnonzero(datasets["fired"]).tolist():
        bits, resource = int(datasets["fired"][row]), Resource(Pool.SMDS, view.qmgrs[row])
        fired += [(condition, resource) for bit, condition in _DATASET_BITS.items() if bits & bit]
    fired += [
        (Condition.QUEUE_FULL, Resource(Pool.QUEUE, view.queues[row]))
        for row in np.flatnonzero(queues["fired"]).tolist()
    ]
    scalars["fired"] = datasets["fired"] = queues["fired"] = 0
    by_condition: dict[str, list[Resource]] = {}
    alerts: list[Alert] = []
    for condition, resource in fired:
        if view.is_relieved(condition, resource) or view.monitor.plans.allows(view, condition, resource):
            continue
        if resource.pool in _TOGETHER:
            by_condition.setdefault(condition, []).append(resource)
        else:
            alerts += view.episodes.open(_finding(view, condition, (resource,), None, now), now)
    for condition, resources in by_condition.items():
        alerts += _open_together(view, condition, resources, now)
    return alerts


def _open_together(view: StoreKind, condition: str, resources: list[Resource], now: int) -> list[Alert]:
    """Open one alert for the resources that have passed a line, or add them to that of the same tick."""
    same_tick = (
        alert
        for alert in view.episodes
        if alert.condition == condition and alert.opened // clock.TICK == now // clock.TICK
    )
    episode = next(same_tick, None)
    if episode is not None:
        every = (*episode.resources, *(resource for resource in resources if resource not in episode.resources))
        return view.episodes.update(episode, _finding(view, condition, every, episode, now), now)
    foreseen = [forecast.resource for forecast in view.monitor.memory.last]

    def order(resource: Resource) -> tuple[int, float]:
        """Return where a resource stands: the one that is full first in front, else the fuller one."""
        place = foreseen.index(str(resource)) if str(resource) in foreseen else len(foreseen)
        return place, -view.view(resource).usage_pct

    return view.episodes.open(_finding(view, condition, tuple(sorted(resources, key=order)), None, now), now)


def _finding(
    view: StoreKind, condition: str, resources: tuple[Resource, ...], episode: Episode | None, now: int
) -> Finding:
    """Return the finding about a condition that holds for resources, the first in front."""

    def effects(fillers: tuple[Filler, ...]) -> Mapping[str, str]:
        """Return what empties the store, where it is full."""
        is_full = condition == Condition.FULL and view.monitor.enabled
        return remedies.effects_when_full(view, fillers, now // clock.TICK) if is_full else NOTHING

    before = None if episode is None else episode.severity
    since = view.monitor.falling_since(view, resources[0], now // clock.TICK) if _eases(condition) else None
    viewer = view.viewer()
    finding = viewer.finding(condition, resources[0], before, effects, None if since is None else since * clock.TICK)
    back_at = _getters_back_at(view, finding, now)
    if back_at is not None:
        why = finding.why
        if not finding.has_eased:  # its rates are means of 15 to 30 minutes
            why = f"{finding.fillers[0].queue}: getters back for {as_span((now - back_at) / clock.SECOND)}"
        finding = msgspec.structs.replace(finding, runbook=texts.without_getters(finding.runbook), why=why)
    also = "".join(f" {view.view(other).describe(condition)}." for other in resources[1:])
    return msgspec.structs.replace(
        finding,
        severity=_severity(view, condition, resources, episode, now),
        cause=finding.cause + also,
        others=resources[1:],
    )


def _getters_back_at(view: StoreKind, finding: Finding, now: int) -> int | None:
    """Return the time from which the incident has its getters back, if they get and enough of them are back."""
    incident = view.episodes.incident
    times = [] if incident is None else [done.time for done in incident.done if done.id == GETTERS]
    if not times or not finding.fillers:
        return None
    needs_more = any(action.id == GETTERS and action.effect is not None for action in finding.runbook)
    got_at = int(view.tables.store.queues[view.queues.index(finding.fillers[0].queue)]["got_at"])
    return None if needs_more or now // clock.TICK - got_at > _GETS_TICKS else as_microseconds(times[-1])


def refreshed(view: StoreKind, episode: Episode, now: int) -> Finding:
    """Return the finding about an open alert as of `now`, microseconds, with its present severity.

    Alerts with their own rules keep their last text, but that of the forecast, which looks again.
    """
    if Condition(episode.condition).review == REVIEWED:
        finding = _finding(view, episode.condition, episode.resources, episode, now)
        return msgspec.structs.replace(finding, severity=min(finding.severity, episode.severity, key=SEVERITIES.index))
    if episode.condition != Condition.FULL_FORECAST:
        return episode.last_finding()
    foreseen = view.monitor.refreshed(view, episode)
    if foreseen is not None:
        return foreseen
    calm = view.viewer().over(episode.condition, episode.resource, episode.severity)
    of_resource = view.view(episode.resource)
    cause = f"{of_resource.text}: {of_resource.usage}, no forecast can be made at present."
    return msgspec.structs.replace(calm, headline="", cause=cause)


def _severity(
    view: StoreKind, condition: str, resources: tuple[Resource, ...], episode: Episode | None, now: int
) -> str:
    """Return the severity of a condition that holds: info where it informs only. A page does not become a watch."""
    before = None if episode is None else episode.severity
    is_page = before not in (None, INFO)
    if (
        condition == Condition.THRESHOLD
        and not is_page
        and all(view.view(resource).is_below_own for resource in resources)
    ):
        return INFO
    if Condition(condition).informs and not is_page and view.monitor.can_foresee(view, now // clock.TICK):
        return INFO
    severity = max((view.view(resource).severity(condition, before) for resource in resources), key=SEVERITIES.index)
    if condition == Condition.FULL and _refuses_no_more(view, resources, now):
        return WARNING
    if severity == CRITICAL and _eases(condition) and _all_fall(view, resources, now):
        return WARNING
    return severity


def _eases(condition: str) -> bool:
    """Return True if a condition is over, or less urgent, once the store empties."""
    return condition == Condition.FULL or Condition(condition).informs


def _all_fall(view: StoreKind, resources: tuple[Resource, ...], now: int) -> bool:
    tick = now // clock.TICK
    return all(view.monitor.falling_since(view, resource, tick) is not None for resource in resources)


def _refuses_no_more(view: StoreKind, resources: Iterable[Resource], now: int) -> bool:
    """Return True if no put was refused for ten minutes, and every resource that is or was full is well below that."""
    noted = view.monitor.memory.refused_at  # at the end of its tick
    full = [resource for alert in view.episodes if alert.condition == Condition.FULL for resource in alert.resources]
    views = [view.view(resource) for resource in dict.fromkeys((*resources, *full))]
    refused_at = max([viewed.last_refused for viewed in views] + ([] if noted is None else [noted * clock.TICK]))
    if refused_at != layout.NEVER and now - refused_at < 2 * CALM_AFTER_FULL:
        return False
    return all(viewed.usage_pct <= NEARLY_FULL_PCT for viewed in views)


def _recover(view: StoreKind, now: int) -> list[Alert]:
    """Return the record that puts succeed again, once per incident: that of its root."""
    incident, refused_at = view.episodes.incident, view.monitor.memory.refused_at
    if incident is None or incident.recovered is not None or not _is_any_full(view):
        return []
    if refused_at is None or refused_at * clock.TICK < incident.opened or not _refuses_no_more(view, (), now):
        return []
    root = next(episode for episode in view.episodes if episode.alert_id == incident.root)
    words = view.episodes.note_recovered(now)
    finding = refreshed(view, root, now)
    if root.condition == Condition.FULL:
        finding = msgspec.structs.replace(finding, severity=_severity(view, root.condition, root.resources, root, now))
    return view.episodes.update(root, _headed(finding, words), now)


def _is_any_full(view: StoreKind) -> bool:
    return any(episode.condition == Condition.FULL for episode in view.episodes)


def _headed(finding: Finding, words: str) -> Finding:
    headline = finding.headline.partition(": ")[2] or finding.cause.partition(". ")[0]
    cause = f"{words[0].upper()}{words[1:]}. {finding.cause}"
    return msgspec.structs.replace(finding, cause=cause, headline=f"{words}: {headline}")


def fire(view: StoreKind, condition: str, resource: Resource, now: int) -> list[Alert]:
    """Fire a measured condition unless it has fired; return the alert of a resource that kernels do not fire."""
    store = view.tables.store
    bit = next((bit for bit, watched in view.conditions.items() if watched == (condition, resource)), None)
    if bit is None and resource.pool != Pool.SMDS:
        if view.episodes.get(condition, resource) is not None:
            return []
        return view.episodes.open(_finding(view, condition, (resource,), None, now), now)
    row, rows = (0, store.scalars) if bit is not None else (view.qmgrs.index(resource.owner), store.datasets)
    bit = DATA_SET.bits[condition] if bit is None else bit
    if int(rows["armed"][row]) & bit:
        rows["armed"][row] ^= bit
        rows["fired"][row] |= bit
    return []


def arm(view: StoreKind, condition: str, resource: Resource) -> None:
    """Allow a condition of a resource to fire again."""
    store = view.tables.store
    for bit, watched in view.conditions.items():
        if watched == (condition, resource):
            store.scalars[0]["armed"] |= np.uint32(bit)
    if resource.pool == Pool.SMDS:
        row = view.qmgrs.index(resource.owner)
        for bit, of_dataset in _DATASET_BITS.items():
            if of_dataset == condition:
                store.datasets["armed"][row] |= np.uint8(bit)
    elif resource.pool == Pool.QUEUE:
        store.queues["armed"][view.queues.index(resource.owner)] |= np.uint8(watch.QUEUE_FULL)
        store.queues_dirty[:] = 1


def check_tick(view: StoreKind, tick: int) -> list[Alert]:
    """Return the alerts at the end of a tick that is sampled and metered."""
    now = tick * clock.TICK
    alerts = watches.check_in_doubt(view.tables.store, view.estate, view.name, view.qmgrs, view.episodes, now)
    alerts += foresee(view, tick)
    alerts += watches.review_unread(view, now)
    alerts += _recover(view, now)
    for episode in view.episodes:
        if Condition(episode.condition).review == REVIEWED:
            alerts += _review(view, episode, now)
    return alerts


def foresee(view: StoreKind, tick: int) -> list[Alert]:
    """Return the alerts about the future, at a tick that is sampled and metered."""
    rows = view.tables.store.queues[: len(view.queues)]
    lead_s, now = depth_lead_s(view.config), tick * clock.TICK
    with_reader = view.viewer().with_reader
    alerts = check_depth(rows, view.queues, view.view, with_reader, lead_s, view.began, view.episodes, now)
    alerts += view.monitor.tick(view, tick)
    for resource in view.monitor.plans.take_relieved():
        arm(view, Condition.THRESHOLD, resource)
    return alerts


def _review(view: StoreKind, episode: Episode, now: int) -> list[Alert]:
    """Clear an open alert whose condition has been over for long enough; update it where it got worse."""
    resources = episode.resources
    views = [view.view(resource) for resource in resources]
    is_over = all(own.is_over(episode.condition, now) for own in views)

    def make_cleared() -> Finding:
        over = view.viewer().over(episode.condition, resources[0], episode.severity)
        if _ends_refusals(view, episode):
            over = _headed(over, view.episodes.note_recovered(now))
        return msgspec.structs.replace(over, others=resources[1:])

    calm_for = max(own.calm_for(episode.condition) or 0 for own in views) or None
    cleared = view.episodes.settle(episode, make_cleared, now, is_over=is_over, calm_for=calm_for)
    if cleared:
        for resource in resources:
            arm(view, episode.condition, resource)
    if cleared:
        return cleared
    severity = _severity(view, episode.condition, resources, episode, now)
    if is_over and SEVERITIES.index(severity) >= SEVERITIES.index(episode.severity):
        return []
    usage_pct = views[0].usage_pct
    if severity == episode.severity and min(100.0, usage_pct) < episode.usage_pct + STEP:
        return []
    return view.episodes.update(episode, _finding(view, episode.condition, resources, episode, now), now)


def _ends_refusals(view: StoreKind, episode: Episode) -> bool:
    """Return True if the last `full` of an incident that has refused puts ends, without a record that puts succeed.

    It ends half an hour after the last refused put at the latest, however full the store is.
    """
    incident, refused_at = view.episodes.incident, view.monitor.memory.refused_at
    if incident is None or incident.recovered is not None or episode.condition != Condition.FULL:
        return False
    is_last = sum(other.condition == Condition.FULL for other in view.episodes) == 1
    return is_last and refused_at is not None and refused_at * clock.TICK >= incident.opened
