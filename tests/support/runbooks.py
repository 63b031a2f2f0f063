"""Actions of the runbook for a place in a model, without an alert that opens there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twin.alerts import texts
from twin.alerts.texts import NOTHING, OURS, Facts
from twin.base.conditions import SCM, Condition, Pool, Resource
from twin.estate import Structure
from twin.records import Action, Filler
from twin.stores.resources import depth_facts

Actions = tuple[Action, ...]
Fillers = tuple[Filler, ...]


def pool_actions(
    config: Structure,
    resource: Resource,
    size_now: int,
    fillers: Fillers,
    effects: Mapping[str, str] = NOTHING,
    *,
    alterable: bool,
) -> Actions:
    """Return the actions for entries or elements that are full."""
    facts = texts.pool_facts(config, resource, size_now, fillers, alterable=alterable)
    return OURS.actions(Condition.FULL, facts, effects)


def scm_actions(config: Structure, resource: Resource, fillers: Fillers) -> Actions:
    condition = Condition.SCM_EXHAUSTED if resource == SCM else Condition.AUGMENTED_EXHAUSTED
    return OURS.actions(condition, texts.scm_facts(config, resource, fillers))


def alter_actions(config: Structure, fillers: Fillers) -> Actions:
    return OURS.actions(Condition.NOT_ALTERABLE, texts.scm_facts(config, SCM, fillers))


def dataset_actions(config: Structure, qmgr: str, fillers: Fillers, *, has_failed: bool = False) -> Actions:
    facts = texts.dataset_facts(config, Resource(Pool.SMDS, qmgr), fillers, has_failed=has_failed)
    return OURS.actions(Condition.CANNOT_EXPAND, facts)


def facility_actions(
    condition: Condition, amounts: Mapping[str, int], policy: str | None = None, total: int | None = None
) -> Actions:
    return OURS.actions(condition, texts.facility_facts("CF01", amounts, policy, total))


def more_members_actions(
    cluster: str, start: Iterable[tuple[str, str | None]], hosts: Iterable[str | None], missing: int
) -> Actions:
    return OURS.actions(Condition.CAPACITY, texts.member_facts(cluster, start, hosts, missing))


def fewer_members_actions(member: str) -> Actions:
    return OURS.actions(Condition.CAPACITY, Facts().adding("member_spare", store="UC01", member=member))


def depth_actions(queue: str, limit: int, *, is_shared: bool) -> Actions:
    facts = depth_facts(Resource(Pool.QUEUE, queue), limit, "3 % in use", "QSG1/APP1", is_shared=is_shared)
    return OURS.actions(Condition.QUEUE_FULL, facts)


def getter_actions(fillers: Fillers, *, is_shared: bool) -> Actions:
    return OURS.actions(Condition.FULL, texts.queue_facts(fillers[0].queue, is_shared=is_shared))
