"""Proof of advice: a recording replayed with each plan, its puts as requests.

A plan, or a smaller size, is replayed as if it had been in effect from the beginning of the recording to its end, as
`mqtwin replay --demands` does with the changed estate. A plan holds if no put is refused, a smaller size if it refuses
no more puts than the present one, each with a margin if one is requested. A plan that does not hold is enlarged until
it does, or left out. Described in docs/what-if.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from kernels.clock import SECOND
from twin.conditions import Condition
from twin.errors import UsageError
from twin.estate import Estate
from twin.estate.settings import Settings, changed_config
from twin.events import Decoded
from twin.planning.advise import (
    ALONE,
    LARGER,
    STEPS,
    Advice,
    Plan,
    asking,
    new_warnings,
    plan_of,
    size_in,
    sizes,
    with_doubled,
    with_size,
)
from twin.planning.whatif import FillOutcome, Moment, moment_of
from twin.playback.replays import Player, StoreRefusals, chunks_of, decoded_chunks, play
from twin.playback.samples import STEP, Alerts, Samples, Usage, usage_of
from twin.playback.timeline import Timeline
from twin.stores.open import open_message_store
from twin.units import EventTime, as_text, event_us

AS_IT_IS = "as it is"  # title of a proof without any plan

_MAX_DOUBLINGS = 6  # of what is full in the recording, until a plan is left out
_HALVINGS = 2  # of the way between sizes that do not hold and sizes that do
_HALVINGS_REQUIRED = 5  # likewise where settings are required: their plans are for good


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """A recording replayed with a plan, its puts as requests."""

    title: str  # title of the plan; "as it is" without one; of a smaller size its name
    recorded: int  # messages refused in the recording because a store was full
    puts: int  # messages that were asked to be put
    refused: int  # messages refused here because a store was full
    first_full: str | None  # time of the first of them; None: none is refused
    full: tuple[str, ...]  # the resources that were full then
    unserved_gets: int  # gets of the recording whose message was refused here
    peak_pct: float  # the highest of `usage_pct`
    fullest: str | None = None  # the resource that has it
    times: tuple[float, ...]  # f8 seconds since 1970, samples
    usage_pct: tuple[float, ...]  # the fullest resource of the store at each sample, percent


class Hindsight(msgspec.Struct, frozen=True, kw_only=True):
    """Events after a moment, replayed as it is and with other settings from then on.

    Attributes:
        store: the store.
        time: the moment, event time as text.
        before: the events since, replayed as it is; its `recorded` is what was refused.
        after: the same with the settings.
    """

    store: str
    time: str
    before: Proof
    after: Proof


class Proven(NamedTuple):
    """Advice that holds in a recording.

    Attributes:
        advice: what holds of the advice that was asked about.
        proofs: as it is, with required settings alone if there are some, then with each plan and each smaller size.
    """

    advice: Advice
    proofs: tuple[Proof, ...]


def prove(recording: str | Path, moment: Moment, advice: Advice, margin_pct: float = 0.0) -> Proven:
    """Return advice with the plans and smaller sizes that hold in a recording, larger where they have to be.

    Args:
        recording: the recording, from its beginning to its end.
        moment: that of the advice.
        advice: about the store of the moment.
        margin_pct: percent of its resources that plans leave free in the recording, 0 to 50.

    Raises:
        UsageError: the recording cannot be read, or has no event of the store; the margin is out of bounds.
    """
    if not 0 <= margin_pct <= 50:
        raise UsageError(f"margin of {margin_pct:g} percent; expected: 0 to 50")
    return _Prover(Path(recording), moment, advice, margin_pct).prove()


@dataclass(slots=True)
class _Prover:
    recording: Path
    moment: Moment
    advice: Advice
    margin_pct: float

    def prove(self) -> Proven:
        as_it_is = self._replay(AS_IT_IS, {})
        proofs, left_out = [as_it_is], list(self.advice.left_out)
        if self.advice.required:
            proofs.append(self._replay(ALONE, self.advice.required))
        plans: list[Plan] = []
        smaller: dict[str, Settings] = {}
        for plan in self.advice.plans:
            held, proof = self._hold(plan)
            reasons = [self._refuted(proof, as_it_is)] if held is None else self._warnings(held)
            left_out += [f"{proof.title}: {reason}" for reason in reasons]
            if held is not None and not reasons and all(held.settings != other.settings for other in plans):
                plans.append(held)
                if held.title == ALONE:
                    break
                proofs.append(proof)
        for name, settings in self.advice.smaller.items():
            held_settings, proof = self._hold_smaller(name, settings, as_it_is)
            if held_settings is None:
                left_out.append(f"{name} smaller: {self._refuted(proof, as_it_is)}")
            else:
                smaller[name] = held_settings
                proofs.append(proof)
        advice = msgspec.structs.replace(self.advice, plans=tuple(plans), left_out=tuple(left_out), smaller=smaller)
        return Proven(advice, tuple(proofs))

    def _refuted(self, proof: Proof, as_it_is: Proof) -> str:
        """Return the reason for leaving a plan or size out."""
        if not proof.refused:
            return f"at most {proof.peak_pct:.1f} % in use in {self.recording.name}, of {proof.fullest}"
        return f"{proof.refused:,} of {proof.puts:,} refused in {self.recording.name}, {as_it_is.refused:,} as it is"

    def _warnings(self, plan: Plan) -> list[str]:
        changed = changed_config(self.moment.twin.config, plan.settings)
        return new_warnings(self.moment.estate, changed)

    # --- plans ---------------------------------------------------------------------------------------------------

    def _hold(self, plan: Plan) -> tuple[Plan | None, Proof]:
        """Return a plan, enlarged as the recording requires, and its proof; None and the last proof: none holds."""
        twin, proof = self.moment.twin, self._replay(plan.title, plan.settings)
        if self._has_room(proof):
            return plan, proof
        title = plan.title if plan.title.endswith(LARGER) else f"{plan.title}, and {LARGER}"
        if plan.title == ALONE:
            title = LARGER
        settings, required = plan.settings, self.advice.required
        full: tuple[str | None, ...] = proof.full if proof.refused else (proof.fullest,)
        for _ in range(_MAX_DOUBLINGS):
            doubled = with_doubled(twin, settings, full, required)
            larger = None if doubled is None else self._try(title, doubled)
            if doubled is None or larger is None:
                return None, proof
            held, proof = larger
            if self._holds(held, proof):
                return self._narrow(settings, held, proof)
            settings = doubled
            if proof.refused or self._has_room(proof):
                full = proof.full or (held.outcome.resource,)
            else:
                full = (proof.fullest,)
        return None, proof

    def _holds(self, plan: Plan, proof: Proof) -> bool:
        return self._has_room(proof) and self.advice.promise.is_kept(plan.outcome)

    def _has_room(self, proof: Proof) -> bool:
        """Return True if nothing was refused and the margin stayed free."""
        return not proof.refused and proof.peak_pct <= 100.0 - self.margin_pct

    def _try(self, title: str, settings: Settings) -> tuple[Plan, Proof] | None:
        """Return a plan and its proof; None: a size is larger than it may be."""
        try:
            outcome = self._ask(settings)
        except UsageError:
            return None
        return plan_of(self.moment.twin, title, settings, outcome), self._replay(title, settings)

    def _narrow(self, failing: Settings, plan: Plan, proof: Proof) -> tuple[Plan, Proof]:
        """Return a plan that holds and is nearer to settings that do not, and its proof."""
        for _ in range(_HALVINGS_REQUIRED if self.advice.required else _HALVINGS):
            middle = self._between(failing, plan.settings)
            tried = None if middle in (failing, plan.settings) else self._try(plan.title, middle)
            if tried is None:
                break
            if self._holds(*tried):
                plan, proof = tried
            else:
                failing = middle
        return plan, proof

    def _between(self, low: Settings, high: Settings) -> Settings:
        """Return settings whose sizes are half-way between those of others, in steps."""
        twin, middle = self.moment.twin, dict(high)
        known = sizes(twin)
        for name in [name for name in high if name in known or name == "scm_max_size"]:
            small, large = size_in(low, name) or known.get(name, 0), size_in(high, name)
            step = max(1, (known.get(name) or large) // STEPS)
            if large - small > step:
                middle = with_size(twin.config, middle, name, small + (large - small) // 2 // step * step)
        return middle

    # --- smaller sizes -------------------------------------------------------------------------------------------

    def _hold_smaller(self, name: str, settings: Settings, as_it_is: Proof) -> tuple[Settings | None, Proof]:
        """Return the smallest sufficient size and its proof; None and the first proof if no smaller size suffices."""
        twin, proof = self.moment.twin, self._replay(name, settings)
        if proof.refused <= as_it_is.refused:
            return settings, proof
        held: Settings | None = None
        now = sizes(twin)[name]
        step = max(1, now // STEPS)
        low, high = size_in(settings, name) // step, now // step
        for _ in range(_HALVINGS):
            middle = (low + high) // 2
            if middle == low:
                break
            larger = with_size(twin.config, {}, name, middle * step)
            tried = self._replay(name, larger)
            if tried.refused <= as_it_is.refused and self.advice.promise.is_kept(self._ask(larger)):
                held, proof, high = larger, tried, middle
            else:
                low = middle
        return held, proof

    # --- replays -------------------------------------------------------------------------------------------------

    def _ask(self, settings: Settings) -> FillOutcome:
        return asking(self.moment, self.advice.promise, self.advice.traffic)(settings)

    def _replay(self, title: str, settings: Settings) -> Proof:
        estate, store = self.moment.estate, self.advice.store
        return replay_with(pieces_of(self.recording, estate, store), estate, store, title, settings)


def hindsight(timeline: Timeline, store: str, time: EventTime, settings: Settings) -> Hindsight:
    """Return the effect that other settings, from a moment on, would have had on the events since.

    Puts since then are requests, refused ones too; gets happen as recorded.

    Args:
        timeline: the recording, played; it ends some time after the moment.
        store: name of the store, which holds messages.
        time: the moment.
        settings: attributes as for `what_if`.

    Raises:
        UsageError: as `what_if`; the store has no event by then, or not all of its puts are reported.

    Examples:
        >>> timeline = twin.Timeline("friday.arrow", "estate.toml")
        >>> moment = timeline.times[len(timeline.times) // 2]
        >>> twin.hindsight(timeline, "QSG1/APP1", moment, {"size": "2G"}).after.refused
        0
    """

    def proof(title: str, changes: Settings) -> Proof:
        twin = timeline.twin_at(store, time)
        if twin is None:
            raise UsageError(f"{store}: no event of it until then; expected: a later time")
        since, events = moment_of(timeline.estate, twin), timeline.events_since(store, time)
        if not since.is_whole:
            raise UsageError(f"{store}: not all puts are reported; hindsight needs them; expected: another store")
        return replay_with(events, timeline.estate, store, title, changes, since=since)

    title = ", ".join(f"{name}={value}" for name, value in settings.items())
    return Hindsight(
        store=store, time=as_text(event_us(time)), before=proof(AS_IT_IS, {}), after=proof(title, settings)
    )


# --- replays --------------------------------------------------------------------------------------------------------


def pieces_of(recording: str | Path, estate: Estate, store: str) -> Iterator[Decoded]:
    """Yield the events of a store in a recording. UsageError: it cannot be read, or has none."""
    count = 0
    for own in chunks_of(decoded_chunks(recording, estate), estate, store):
        count += len(own)
        yield own
    if not count:
        raise UsageError(f"{recording} has no event of {store}; expected: a recording of it")


def replay_with(
    pieces: Iterable[Decoded], estate: Estate, store: str, title: str, settings: Settings, since: Moment | None = None
) -> Proof:
    """Return the proof of settings: a store's own events are replayed, its puts as requests; others do not change it.
    They are of the store, as of `pieces_of`; since a moment its twin continues with them, else it is empty.
    """
    config = changed_config(estate.stores[store] if since is None else since.twin.config, settings)
    estate = replace(estate, stores={**estate.stores, store: config})
    twin = open_message_store(estate, store, forecasts=False) if since is None else since.with_settings(settings)
    samples, alerts = Samples(estate, usage_of), Alerts()
    player = play(pieces, estate, samples, alerts, player=Player(estate, {store: twin}, demands=True))
    full = [alert for alert in alerts.alerts if alert.condition == Condition.FULL]
    refusals, sampled = player.refusals.get(store, StoreRefusals()), samples.by_store[store]
    first_full = refusals.replayed.first_full
    fullest = [round(max(usage.values(), default=0.0), 3) for usage in sampled.values()]
    peak: Usage = max(sampled.values(), key=lambda usage: max(usage.values(), default=0.0), default={})
    return Proof(
        title=title,
        recorded=refusals.recorded.full,
        puts=refusals.replayed.puts,
        refused=refusals.replayed.full,
        first_full=None if first_full is None else as_text(first_full),
        full=tuple(dict.fromkeys(name for alert in full for name in (alert.resource, *alert.resources))),
        unserved_gets=refusals.unserved_gets,
        peak_pct=max(fullest, default=0.0),
        fullest=max(peak, key=lambda resource: peak[resource], default=None),
        times=tuple((step + 1) * STEP / SECOND for step in sampled),
        usage_pct=tuple(fullest),
    )
