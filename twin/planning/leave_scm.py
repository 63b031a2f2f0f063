"""Leaving storage class memory: what a structure needs when its coupling facility has none any more.

    leaving = twin.leave_scm("day.arrow", twin.load_estate("scm.toml"), "QSG1/APP1")
    print([plan.title for plan in leaving.plans])

Coupling facilities at CFLEVEL 26 (IBM z17) have no Virtual Flash Memory [IBM: IBM Z 9175-ME1, CFCC Level 26 Coupling
Facility]. A plan is a SIZE, or offload rules and data sets, with which the recording, replayed as requests from its
beginning to its end, has no put refused and leaves a margin (`twin.planning.proof`), and with which the store, rolled
forward from where SCM came into use before its highest peak, keeps a promise up to the time of that peak
(`twin.planning.advise`). Described in docs/leave-scm.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

import msgspec

from twin.capacity.structures import SOONER_TH, has_rules
from twin.conditions import ELEMENTS
from twin.errors import UsageError
from twin.estate import CouplingFacility, Estate, Structure, as_estate
from twin.estate.model import SMDS_MAX_SIZE
from twin.estate.settings import DataSetSetting, Settings, changed_config
from twin.events import Decoded
from twin.planning.advise import LARGER, STEPS, Plan, Promise, Tried, asking, enlarge, least_of, new_warnings, plan_of
from twin.planning.levers import offload_above, sizes, with_size
from twin.planning.moment import Moment, at_moment
from twin.planning.proof import AS_IT_IS, pieces_of, rehearse, replay_with
from twin.planning.scm_watch import POOLS, ScmUse, ScmWatch, Trial
from twin.planning.whatif import MAX_HORIZON_S, UNCHANGED, Traffic
from twin.playback.samples import Usage
from twin.units import as_seconds, as_text

WITHOUT_SCM = "without SCM"  # title of the proof without SCM and without any other change
GROWN = f"{WITHOUT_SCM}, {LARGER}"  # title of the plan in which SIZE alone changes
OFFLOADED = f"{WITHOUT_SCM}, offload to SMDS"  # title of the plan of rules and data sets
_NO_SCM: Settings = {"scm_max_size": 0}
_THRESHOLDS = (80, 70, 60, 50, 40, 30, 20, 10, 0)  # percent: OFFLD3TH that a plan may have, the least effect first
_MAX_DOUBLINGS = 6  # of what is full, until a plan is left out


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """Advice for a structure that gives up its SCM.

    Attributes:
        store: the structure.
        time: the moment from which it was rolled forward: SCM comes into use before its highest peak.
        scm_max_size: SCMMAXSIZE, bytes.
        uses: when SCM held data, and how much.
        margin_pct: percent of structure and data sets that a plan leaves free in the recording.
        promise: what a plan keeps ahead of `time`, up to the peak.
        plans: plans that hold.
        left_out: plans that do not, with the reason.
        trials: the recording as it is, without SCM, and with each plan; none without a recording.
    """

    store: str
    time: str
    scm_max_size: int
    uses: tuple[ScmUse, ...]
    margin_pct: float
    promise: Promise
    plans: tuple[Plan, ...]
    left_out: tuple[str, ...]
    trials: tuple[Trial, ...]

    @property
    def peak(self) -> ScmUse | None:
        """The use with the highest peak; None: SCM never held data."""
        return max(self.uses, key=lambda use: use.peak_bytes, default=None)


class FacilitySizes(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of all structures of a coupling facility with plans of a title; where a structure has none, its SIZE.

    Attributes:
        facility: its name.
        title: that of the plans.
        total: sum of SIZE, bytes.
        size: its storage, bytes.
        planned: names of the structures that have such a plan.
    """

    facility: str
    title: str
    total: int
    size: int
    planned: tuple[str, ...]

    @property
    def is_enough(self) -> bool:
        """True if all structures can reach their SIZE at once."""
        return self.total <= self.size


def leave_scm(
    recording: str | Path,
    estate: Estate | str | Path,
    store: str,
    *,
    margin_pct: float = 10.0,
    confidence: float = 0.9,
    traffic: Traffic = UNCHANGED,
) -> Leaving:
    """Return what a structure needs without SCM so that a recording goes on as it did.

    Args:
        recording: the recording.
        estate: its estate, or the file of it.
        store: name of a structure with SCM.
        margin_pct: percent of structure and data sets to leave free, 0 to 50.
        confidence: share of all futures in which it is not full by the time of the peak, 0.5 to 0.99.
        traffic: factors on the traffic of these futures.

    Raises:
        UsageError: no such structure, it has no SCM, or the recording cannot be read or has no event of it.
    """
    described = as_estate(estate)
    _check(described, store, margin_pct)
    watch, pieces = ScmWatch(store), list(pieces_of(recording, described, store))
    proof = replay_with(pieces, described, store, AS_IT_IS, {}, watch.add)
    peak = max(watch.uses(), key=lambda use: use.peak_bytes, default=None)
    moment = at_moment(recording, described, store, None if peak is None else peak.began)
    first = watch.trial(proof)
    promise = Promise(hours=_hours(peak), confidence=confidence)
    return _Planner(moment, promise, traffic, margin_pct, pieces, first, watch.joined(pieces)).leaving(watch.uses())


def leave_scm_now(
    moment: Moment, promise: Promise, *, margin_pct: float = 10.0, traffic: Traffic = UNCHANGED
) -> Leaving:
    """Return what a structure needs without SCM in the next hours. Arguments and errors as of `leave_scm`."""
    _check(moment.estate, moment.twin.name, margin_pct)
    watch = ScmWatch(moment.twin.name)
    watch.sample(moment.twin)
    return _Planner(moment, promise, traffic, margin_pct, (), None).leaving(watch.uses())


def facility_sizes(estate: Estate, leavings: Sequence[Leaving]) -> tuple[FacilitySizes, ...]:
    """Return the sums of SIZE in each coupling facility of which the storage is known, by title of plans."""
    sums = []
    for name, facility in estate.stores.items():
        if not isinstance(facility, CouplingFacility) or facility.size is None:
            continue
        own = [leaving for leaving in leavings if leaving.store in facility.structures]
        for title in (GROWN, OFFLOADED):
            plans = {leaving.store: plan for leaving in own for plan in leaving.plans if plan.title.startswith(title)}
            if plans:
                total = sum(_size_with(estate, structure, plans.get(structure)) for structure in facility.structures)
                planned = tuple(plans)
                sums.append(FacilitySizes(facility=name, title=title, total=total, size=facility.size, planned=planned))
    return tuple(sums)


def _size_with(estate: Estate, name: str, plan: Plan | None) -> int:
    config = estate.stores[name]
    assert isinstance(config, Structure)
    size = config.size if plan is None else plan.settings.get("size", config.size)
    assert isinstance(size, int)
    return size


def _check(estate: Estate, store: str, margin_pct: float) -> None:
    """Raise UsageError if a store is no structure with SCM, or the margin is out of bounds."""
    if not 0 <= margin_pct <= 50:
        raise UsageError(f"margin of {margin_pct:g} percent; expected: 0 to 50")
    with_scm = [name for name, config in estate.stores.items() if isinstance(config, Structure) and config.scm_max_size]
    if store in with_scm:
        return
    problem = "has no SCM" if store in estate.stores else "is not in the estate"
    expected = f"a structure with SCMMAXSIZE: {', '.join(with_scm)}" if with_scm else "an estate with SCMMAXSIZE"
    raise UsageError(f"{store} {problem}; expected: {expected}")


def _hours(peak: ScmUse | None) -> float:
    """Return the hours from the beginning of a use to its peak, as far as a promise may go."""
    if peak is None:
        return 2.0
    seconds = round(as_seconds(peak.peak_time) - as_seconds(peak.began), 6)
    return min(max(ceil(seconds / 36) / 100, 0.02), MAX_HORIZON_S / 3600)


# --- plans -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Planner:
    """Search for the plans of one structure.

    Attributes:
        pieces: its events in a recording, by the STEP; none without one.
        as_it_is: the recording as it is; None without one.
        joined: the same events in fewer pieces, with which settings are tried.
    """

    moment: Moment
    promise: Promise
    traffic: Traffic
    margin_pct: float
    pieces: Sequence[Decoded]
    as_it_is: Trial | None
    joined: Sequence[Decoded] = ()
    _tried: dict[str, Tried] = field(default_factory=dict)
    _left_out: list[str] = field(default_factory=list)

    @property
    def _config(self) -> Structure:
        config = self.moment.twin.config
        assert isinstance(config, Structure)
        return config

    def leaving(self, uses: tuple[ScmUse, ...]) -> Leaving:
        """Return the advice. uses: when SCM held data."""
        plans: list[Plan] = []
        if (grown := self._grown()) is not None:
            self._add(plans, GROWN, grown)
        if (offloaded := self._offloaded()) is not None:
            self._add(plans, f"{OFFLOADED}, and {LARGER}" if "size" in offloaded else OFFLOADED, offloaded)
        trials: list[Trial] = []
        if self.as_it_is is not None:
            proven = {plan.title: self._trial(plan.title, plan.settings) for plan in plans}
            refuted = {title: self._refuted(trial) for title, trial in proven.items()}
            self._left_out += [f"{title}: {reason}" for title, reason in refuted.items() if reason]
            plans = [plan for plan in plans if not refuted[plan.title]]
            trials = [self.as_it_is, self._trial(WITHOUT_SCM, _NO_SCM), *(proven[plan.title] for plan in plans)]
        return Leaving(
            store=self._config.name,
            time=as_text(int(self.moment.twin.tables.store.scalars[0]["clock"])),
            scm_max_size=self._config.scm_max_size or 0,
            uses=uses,
            margin_pct=self.margin_pct,
            promise=self.promise,
            plans=tuple(plans),
            left_out=tuple(self._left_out),
            trials=tuple(trials),
        )

    def _add(self, plans: list[Plan], title: str, settings: Settings) -> None:
        """Add a plan, unless it brings a new warning about the estate."""
        news = new_warnings(self.moment.estate, changed_config(self._config, settings))
        self._left_out += [f"{title}: {warning}" for warning in news]
        if not news and all(plan.settings != settings for plan in plans):
            outcome = asking(self.moment, self.promise, self.traffic)(settings)
            plans.append(plan_of(self.moment.twin, title, settings, outcome))

    def _trial(self, title: str, settings: Settings) -> Trial:
        watch = ScmWatch(self._config.name)
        return watch.trial(replay_with(self.pieces, self.moment.estate, self._config.name, title, settings, watch.add))

    def _refuted(self, trial: Trial) -> str:
        """Return why a recording refutes a plan that held with joined pieces; "": it does not."""
        beyond = ", ".join(f"{name} {trial.effect.peaks[name]:.1f} %" for name in self._beyond(trial.effect.peaks))
        refused = f"{trial.proof.refused:,} of {trial.proof.puts:,} refused" if trial.proof.refused else ""
        return refused or (f"at most {beyond} in use" if beyond else "")

    def _grown(self) -> Settings | None:
        """Return the least SIZE that holds with rules and data sets as they are; None, and why: none does."""

        def test(settings: Settings) -> Tried:
            return Tried(self._test(settings).holds, (str(ELEMENTS),))

        settings = enlarge(self.moment.twin, _NO_SCM, test, _MAX_DOUBLINGS)
        if settings is None:
            self._left_out.append(f"{GROWN}: no SIZE up to {1 << _MAX_DOUBLINGS - 1} times the present one is enough")
            return None
        return least_of(self.moment.twin, settings, test)

    def _offloaded(self) -> Settings | None:
        """Return offload rules with the least data sets, and SIZE where no rules are enough; None, and why."""
        config = self._config
        if not has_rules(config) or config.offload != "SMDS":
            level = f"CFLEVEL({config.cf_level}) and OFFLOAD({config.offload})"
            self._left_out.append(f"{OFFLOADED}: needs CFLEVEL(5) and OFFLOAD(SMDS), it has {level}")
            return None
        settings = enlarge(self.moment.twin, self._with_rules(), self._test)
        if settings is None:
            self._left_out.append(f"{OFFLOADED}: not enough with any rules, SIZE or data sets tried")
            return None
        return least_of(self.moment.twin, settings, self._test, is_close=True)

    def _with_rules(self) -> Settings:
        """Return the rules with the least effect that hold if data sets have room; those of 70 % if none do.

        With a recording each data set has the room that it takes in there, and the margin.
        """
        config, room = self._config, self._with_data_sets(dict.fromkeys(self._config.queue_managers, SMDS_MAX_SIZE))
        rules: list[Settings] = [{}, *(offload_above(config, threshold) for threshold in _THRESHOLDS)]
        low, high = 0, len(rules)  # the first that holds is from low on
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._test(room | rules[middle]).holds else (middle + 1, high)
        chosen = offload_above(config, SOONER_TH) if low == len(rules) else rules[low]
        if self.as_it_is is None:
            return _NO_SCM | chosen
        in_use = self._trial(OFFLOADED, room | chosen).effect.datasets
        return (
            self._with_data_sets({qmgr: int(size / (1 - self.margin_pct / 100)) for qmgr, size in in_use.items()})
            | chosen
        )

    def _with_data_sets(self, room: Mapping[str, int]) -> Settings:
        """Return settings without SCM and with data sets of at least these sizes, bytes by queue manager, in steps."""
        known, settings = sizes(self.moment.twin), dict(_NO_SCM)
        for qmgr, size in room.items():
            names = (str(DataSetSetting(qmgr, attribute)) for attribute in ("max_size", "size"))
            name = next((name for name in names if name in known), None)
            if name is not None and size > known[name]:
                step = max(1, known[name] // STEPS)
                settings = with_size(self._config, settings, name, min(SMDS_MAX_SIZE, -(-size // step) * step))
        return settings

    def _test(self, settings: Settings) -> Tried:
        """Return whether settings keep the promise, and the recording goes on with the margin.

        The replay ends where it is clear that they do not.
        """
        key = repr(sorted(settings.items()))
        if key not in self._tried:
            outcome = asking(self.moment, self.promise, self.traffic)(settings)
            is_kept = self.promise.is_kept(outcome)
            self._tried[key] = self._replay(settings) if is_kept else Tried(False, (outcome.resource,))
        return self._tried[key]

    def _replay(self, settings: Settings) -> Tried:
        if self.as_it_is is None:
            return Tried(True)
        name, watch, full = self._config.name, ScmWatch(self._config.name), dict[str, None]()
        for rehearsed in rehearse(self.joined, self.moment.estate, name, settings):
            if not len(rehearsed.piece):
                continue
            watch.sample(rehearsed.player.twins[name])
            full |= rehearsed.full
            refusals = rehearsed.player.refusals.get(name)
            if refusals is not None and refusals.replayed.full:
                return Tried(False, tuple(full) or (watch.fullest,))
            if beyond := self._beyond(watch.closed):
                return Tried(False, beyond)
        return Tried(not (beyond := self._beyond(watch.effect().peaks)), beyond)

    def _beyond(self, peaks: Usage) -> tuple[str, ...]:
        """Return the resources with a peak beyond the margin: of a data set also beyond its peak as it is."""
        assert self.as_it_is is not None
        limit, before = 100.0 - self.margin_pct, self.as_it_is.effect.peaks
        bounds = {name: max(limit, before.get(name, 0.0)) if name not in POOLS else limit for name in peaks}
        return tuple(name for name, peak in peaks.items() if peak > bounds[name])
