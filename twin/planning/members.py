"""Advice about the members of a uniform cluster: how many carry the load, and which ones.

    advice = advise_members(cluster, puts=1.5)  # the live twin of a uniform cluster

The laws are those of the twin's alerts (`twin.capacity.clusters`). Described in docs/what-if.md.
"""

from __future__ import annotations

import msgspec

from twin.alerts.texts import more_members_actions
from twin.errors import UsageError
from twin.records import UniformClusterState, sentences_of
from twin.stores.open import Twin
from twin.stores.uniform_cluster import UniformClusterTwin


class MemberAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a cluster that carry a load.

    Attributes:
        store: name of the cluster.
        time: the moment, event time as text.
        load_per_s: messages/s that they are to carry: those put, and those that wait, times the factor.
        carried_per_s: messages/s that the active members carry.
        active: number of active members.
        members: number that carries the load: of the active ones alone where they suffice.
        start: existing members to start, the best first.
        steps: what people are to do, sentences with commands; none where the active members carry it.
    """

    store: str
    time: str
    load_per_s: float
    carried_per_s: float
    active: int
    members: int
    start: tuple[str, ...]
    steps: tuple[str, ...]

    @property
    def is_enough(self) -> bool:
        """True if the active members carry the load."""
        return self.members <= self.active


def advise_members(twin: Twin, puts: float = 1.0) -> MemberAdvice:
    """Return the members that a cluster needs.

    Args:
        twin: twin of a uniform cluster.
        puts: factor on the load.

    Raises:
        UsageError: it is no uniform cluster, or nothing was put in it for a minute.
    """
    if not isinstance(twin, UniformClusterTwin):
        raise UsageError(f"{twin.name} is no uniform cluster; expected: one")
    state = twin.state()
    assert isinstance(state, UniformClusterState)
    if not state.members:
        raise UsageError(f"{twin.name}: no member is active at {state.time}; expected: a moment with traffic")
    plan, active = twin.plan_for(puts), state.members
    is_enough = plan.members <= active
    missing = plan.members - active - len(plan.start)
    return MemberAdvice(
        store=twin.name,
        time=state.time or "",
        load_per_s=round(twin.load * puts, 1),
        carried_per_s=state.capacity or 0.0,
        active=active,
        members=twin.fewest_for(puts) if is_enough else plan.members,
        start=() if is_enough else tuple(candidate.name for candidate in plan.start),
        steps=() if is_enough else sentences_of(more_members_actions(twin.name, plan.start, plan.create, missing)),
    )
