"""Plans: what a run does, made from a seed before it begins, so that seed and commit are the test.

The kinds of actions declare what they require of what came before, what they provide and what they take away, as in
Materialize's Zippy; the seed expands into options that are printed, as in TigerBeetle's simulator. A plan says when by
records and by instants of a batch; the only seconds in it are those for which something is stopped or waits.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

import msgspec

from streams import seams

JAVA_INSTANTS = ("planning", "state commit", "sink", "offset commit")  # of a batch, seen by the runner
INSTANTS = ("planning", seams.READING, seams.APPLYING, seams.WRITING, "state commit", "sink", "offset commit")
SEAMS = seams.POINTS
LONG_FAULTS = 1  # in a plan: those after which Spark starts again, 15 seconds or more each; see `_turns`
ACTIONS = 15  # of a plan, validations apart; with its validations it takes two or three minutes
FAKED_CLOCK_SEEDS = 4  # one seed in four has a clock of its own
BEFORE_VALIDATE = 4  # at most this many actions between two validations

Form = Literal["json", "ndjson", "arrow"]
Flaw = Literal["", "repeat", "shuffle", "poison", "huge", "clock", "two"]
Whom = Literal["java", "driver", "daemon", "worker", "broker", "all"]
Do = Literal["kill", "stop", "raise", "delay", "hold", "starve"]


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step of a plan.

    Args:
        kind: a key of `KINDS`.
        events: that are published with it; a fault strikes while they are processed.
        form: content type of the records.
        flaw: what is wrong with them; two: two producers publish them at once.
        do: a fault; `raise` and `delay` happen in a worker, and `starve` lets it have no more memory.
        whom: process that is killed or stopped.
        instant: instant of the batch at which it strikes; empty: at once after publishing.
        seconds: for which something is stopped or waits.
        max_records: records per batch after a restart.
        cores: cores after a restart.
        number: number of the estate or of the damage; of a clock, seconds by which it is wrong from then on.
    """

    kind: str
    events: int = 0
    form: Form = "json"
    flaw: Flaw = ""
    do: Do = "kill"
    whom: Whom = "java"
    instant: str = ""
    seconds: float = 0.0
    max_records: int = 0
    cores: int = 0
    number: int = 0

    def __str__(self) -> str:
        """The fields that are not at their defaults."""
        fields = msgspec.to_builtins(self)
        return " ".join([fields.pop("kind"), *(f"{name}={value}" for name, value in fields.items())])

    @property
    def label(self) -> str:
        """The kind, and of a fault what it does to whom."""
        if self.kind != "fault":
            return self.kind if not self.flaw else f"{self.kind} ({self.flaw})"
        return f"{self.do} {'worker' if self.do in ('raise', 'delay') else self.whom}"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A run.

    Args:
        seed: seed of the traffic, and of the actions where it made them.
        actions: in their order.
        max_records: records per batch at the beginning.
        cores: cores of Spark at the beginning.
        small_disk: the checkpoint is on a small disk of its own.
        faked_clock: the job has a system clock of its own, which is set forward and back.
        commit: commit of the program with which it failed; empty: it has not.
        difference: with which it failed, the first.
    """

    seed: int
    actions: tuple[Action, ...]
    max_records: int = 1000
    cores: int = 2
    small_disk: bool = False
    faked_clock: bool = False
    commit: str = ""
    difference: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """The frequency and the conditions of a kind of action.

    Args:
        weight: how often it is drawn, of all whose requirements hold; 0: it comes in its turn.
        requires: facts that must hold before it.
        provides: facts that hold after it.
        removes: facts that do not hold any more.
    """

    weight: int
    requires: frozenset[str] = frozenset()
    provides: frozenset[str] = frozenset()
    removes: frozenset[str] = frozenset()


def _kind(weight: int, requires: str = "", provides: str = "", removes: str = "") -> Kind:
    return Kind(weight, *(frozenset(words.split()) for words in (requires, provides, removes)))


# Facts: state (a batch is committed), drained (a validation just passed), changed (something happened since),
# small-disk and faked-clock (see Plan).
KINDS = {
    "publish": _kind(30, provides="changed", removes="drained"),
    "fault": _kind(45, requires="state", provides="changed", removes="drained"),
    "lose-mirror": _kind(5, requires="state", provides="changed", removes="drained"),
    "partitions": _kind(8, requires="state drained", provides="changed", removes="drained"),
    "clock": _kind(20, requires="state faked-clock", provides="changed", removes="drained"),
    "restart": _kind(0, requires="state", provides="changed", removes="drained"),
    "estate": _kind(0, requires="state drained", provides="changed", removes="drained"),
    "damage": _kind(0, requires="state drained", provides="changed", removes="drained"),
    "full-disk": _kind(0, requires="state small-disk", provides="changed", removes="drained"),
    "validate": _kind(0, requires="changed", provides="state drained", removes="changed"),
}
LONG_KINDS = ("restart", "estate", "damage", "full-disk")
_LONG_WHOM: tuple[Whom, ...] = ("java", "driver", "all")


def is_long(action: Action) -> bool:
    """Return True for an action after which Spark starts again."""
    return action.kind in LONG_KINDS or (action.kind == "fault" and action.do == "kill" and action.whom in _LONG_WHOM)


def make_plan(seed: int) -> Plan:
    """Return the plan of a seed: always the same."""
    draw = random.Random(f"fire {seed}")
    turns = _turns(draw, seed)
    small_disk = any("small-disk" in KINDS[action.kind].requires for action in turns)
    faked_clock = seed % FAKED_CLOCK_SEEDS == 0
    facts = _first_facts(small_disk=small_disk, faked_clock=faked_clock)
    actions: list[Action] = []
    done, since = 0, 0  # actions, and those after the last validation

    def add(action: Action) -> None:
        nonlocal done, since
        kind = KINDS[action.kind]
        assert kind.requires <= facts, action
        facts.difference_update(kind.removes)
        facts.update(kind.provides)
        actions.append(action)
        is_validate = action.kind == "validate"
        done, since = done + (not is_validate), 0 if is_validate else since + 1

    add(_publish(draw))
    add(Action(kind="validate"))
    while done < ACTIONS:
        is_turn = done + len(turns) >= ACTIONS or draw.random() < 0.2
        if since >= draw.randint(1, BEFORE_VALIDATE) or (
            turns and is_turn and not KINDS[turns[0].kind].requires <= facts
        ):
            add(Action(kind="validate"))
        elif turns and is_turn:
            add(turns.pop(0))
        else:
            possible = {name: kind.weight for name, kind in KINDS.items() if kind.requires <= facts}
            (name,) = draw.choices(list(possible), list(possible.values()))
            add(_action(draw, name))
    add(Action(kind="validate"))
    return Plan(
        seed=seed,
        actions=tuple(actions),
        max_records=draw.choice((60, 300, 1000)),
        cores=draw.choice((1, 2, 2, 3)),
        small_disk=small_disk,
        faked_clock=faked_clock,
    )


def make_life(seed: int, faults: int) -> Plan:
    """Return faults for a long life: every third takes Java along, one in ten is a restart or the loss of a mirror."""
    draw = random.Random(f"life {seed}")
    actions = []
    for number in range(faults):
        if number % 10 == 4:
            action = Action(kind="restart", max_records=draw.choice((50_000, 200_000)), cores=2, events=100)
        elif number % 10 == 9:
            action = Action(kind="lose-mirror", events=100)
        elif number % 3 == 0:
            whom, instant = draw.choice(_LONG_WHOM), INSTANTS[number // 3 % len(INSTANTS)]
            action = Action(kind="fault", whom=whom, instant=instant, events=300)
        else:
            action = _fault(draw)
            if action.do == "stop":
                action = msgspec.structs.replace(action, seconds=draw.choice((5.0, 20.0, 60.0)))
        actions.append(action)
    return Plan(seed=seed, actions=tuple(actions), max_records=100_000)


def make_publish(draw: random.Random) -> Action:
    """Return a piece of random traffic for a long life, without huge records, of which few would be many events."""
    action = _publish(draw)
    return msgspec.structs.replace(action, flaw="") if action.flaw == "huge" else action


def _turns(draw: random.Random, seed: int) -> list[Action]:
    """Return a kill and perhaps an action of which each has its turn, so that seeds in a row come to all.

    The kill of an even seed takes Java along, at each instant in turn; an odd seed has a long action of another kind,
    each kind in turn.
    """
    instant = INSTANTS[seed % len(INSTANTS)]
    if seed % 2 == 0:
        return [Action(kind="fault", whom=draw.choice(_LONG_WHOM), instant=instant, events=300)]
    kill = Action(kind="fault", whom=draw.choice(("daemon", "broker")), instant=instant, events=300)
    turns = [kill, _action(draw, LONG_KINDS[seed // 2 % len(LONG_KINDS)])]
    return draw.sample(turns, len(turns))


def _publish(draw: random.Random) -> Action:
    flaw: Flaw = draw.choice(("", "", "repeat", "shuffle", "poison", "huge", "clock", "two"))
    form: Form = draw.choice(("json", "ndjson", "arrow"))
    return Action(kind="publish", events=draw.choice((50, 200, 500)), form=form, flaw=flaw)


def _action(draw: random.Random, name: str) -> Action:
    if name == "publish":
        return _publish(draw)
    if name == "fault":
        return _fault(draw)
    if name == "restart":
        return Action(kind=name, max_records=draw.choice((50, 500, 5000)), cores=draw.choice((1, 2, 3)))
    numbers = {"estate": range(1, 4), "damage": range(4), "clock": (-3600, 0, 3600)}
    if name in numbers:
        return Action(kind=name, number=draw.choice(numbers[name]), events=200 if name == "clock" else 100)
    return Action(kind=name, events=200)


def _fault(draw: random.Random) -> Action:
    do: Do = draw.choices(("kill", "stop", "raise", "delay", "starve"), (60, 20, 12, 8, 8))[0]
    events, instant = draw.choice((100, 300)), draw.choice(INSTANTS)
    form: Form = draw.choice(("json", "ndjson", "arrow"))
    if do in ("raise", "delay"):
        return Action(
            kind="fault", do=do, whom="worker", instant=draw.choice(SEAMS), events=events, form=form, seconds=0.5
        )
    if do == "starve":
        return Action(kind="fault", do=do, whom="worker", instant=draw.choice(SEAMS), events=events, form=form)
    short: tuple[Whom, ...] = ("worker", "daemon", "broker")
    long = _LONG_WHOM if do == "stop" else ()
    whom = draw.choice((*short, *long))
    if whom == "worker" and instant in JAVA_INSTANTS:
        instant = draw.choice(SEAMS)  # a worker has nothing to do at the others
    if do == "stop" and whom == "all":
        whom = "java"
    seconds = float(draw.randint(2, 5)) if do == "stop" else 0.0
    return Action(kind="fault", do=do, whom=whom, instant=instant, events=events, form=form, seconds=seconds)


def _first_facts(*, small_disk: bool, faked_clock: bool) -> set[str]:
    return {name for name, holds in (("small-disk", small_disk), ("faked-clock", faked_clock)) if holds}


def needs(plan: Plan) -> str:
    """Return the first action whose requirements do not hold, for plans from a file; empty if there is none."""
    facts = _first_facts(small_disk=plan.small_disk, faked_clock=plan.faked_clock)
    for number, action in enumerate(plan.actions):
        kind = KINDS.get(action.kind)
        if kind is None:
            return f"action {number}: {action.kind}; expected: {', '.join(KINDS)}"
        if not kind.requires <= facts:
            return f"action {number}: {action.kind} requires {', '.join(sorted(kind.requires - facts))}"
        facts.difference_update(kind.removes)
        facts.update(kind.provides)
    return ""
