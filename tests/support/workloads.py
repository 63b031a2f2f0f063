"""Random events for random tiny stores, for property tests (``workloads``) and for long runs (``random_workload``).

Both work alike: a handful of small integers, one for each choice, is turned into a store or an event by the tables
below and by those of the kind of store (`tests.support.mixes`). 0 always means the plainest choice, so that hypothesis
shrinks towards plain workloads and short ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.naive.estates import aliases_of, pick
from tests.support.mixes import DAY_US, HOUR_US, MINUTE_US, MIXES, SECOND_US, Mix

__all__ = [
    "DAY_US",
    "HOUR_US",
    "MINUTE_US",
    "SECOND_US",
    "SEEDS",
    "START_US",
    "Workload",
    "long_workload",
    "random_workload",
    "workloads",
]

MSGIDS = tuple(f"414d5120514d3031{n:02d}" for n in range(5))
UOWS = ("c5a1", "c5a2", "c5a3")

START_US = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z

# -- steps: one small integer a choice, turned into an event by the tables

MSGID_CHOICES = (None, *MSGIDS)
EXPIRIES = (None,) * 12 + (1, 0.25, 30, 299.95, 1200, 86_400)  # seconds
UOW_CHOICES = (None, None, None, *UOWS)
ENDED_UOWS = (*UOWS, "never-seen")
REASONS = (0,) * 14 + (2192, 2033, 2003)
END_REASONS = (0,) * 6 + (2003, 2003, 2219)
# how the sequence number continues: "next", "none", ("back", n): n before the highest, ("hole", n): n left out
SEQS = (
    *("none",) * 3,
    *("next",) * 20,
    *(("back", n) for n in (0, 1, 2, 3, 5, 10, 4094, 4095, 4096, 4097)),
    *(("hole", n) for n in (1, 2, 3, 4094, 4095, 4096, 5000)),
)


@dataclass(frozen=True)
class Step:
    """The choices of a random event, each a small integer; see the table of the same name."""

    op: str
    qmgr: int = 0
    queue: int = 0
    msgid: int = 0
    count: int = 0
    length: int = 0
    priority: int = 0
    persistent: int = 0
    uow: int = 0
    reason: int = 0
    direct: int = 0
    expiry: int = 0
    time: int = 0
    seq: int = 0
    changes: tuple[int, ...] = (0, 0, 0)


@cache
def choices_of(kind: str) -> dict[str, int]:
    """Return the choices of operations and their number of values."""
    mix = MIXES[kind]
    return {
        "time": len(mix.times),
        "seq": len(SEQS),
        "qmgr": 3,
        "queue": 5,
        "msgid": len(MSGID_CHOICES),
        "count": len(mix.counts),
        "length": len(mix.lengths),
        "priority": 10,
        "persistent": 2,
        "uow": len(UOW_CHOICES),
        "reason": len(REASONS),
        "direct": 25,
        "expiry": len(EXPIRIES),
    }


_ALWAYS = ("qmgr", "time")
_OF_QUEUE = (*_ALWAYS, "queue", "seq", "reason")
LOOKS_AT = {
    "PUT": (*_OF_QUEUE, "msgid", "count", "length", "priority", "persistent", "uow", "direct", "expiry"),
    "GET": (*_OF_QUEUE, "msgid", "count", "uow"),
    "COMMIT": (*_OF_QUEUE, "uow"),
    "BACKOUT": (*_OF_QUEUE, "uow"),
    "PREPARE": (*_OF_QUEUE, "uow"),
    "EXPIRE": (*_OF_QUEUE, "msgid", "count", "uow"),
    "CLEAR": _OF_QUEUE,
    "RESTART": _ALWAYS,
    "HEARTBEAT": _ALWAYS,
    "ALTER": _ALWAYS,
    "REBUILD": _ALWAYS,
    "MEASURE": _ALWAYS,
}
CHANGING = ("ALTER", "REBUILD", "MEASURE")

PHASE = 150  # events; in every second phase of some profiles PUT and GET change places


class EventMaker:
    """Turns steps into public events of one store, keeping the time and the sequence numbers as it goes."""

    def __init__(self, config: Any, mix: Mix) -> None:
        self.config = config
        self.mix = mix
        self.names = (*config.queues, *aliases_of(config))
        self.now = START_US
        self.highest: dict[tuple[str, str], int] = {}

    def event(self, step: Step) -> dict[str, Any]:
        """Return the event of the next step; fields at their default are left out."""
        event = {"time": self._time(step), "qmgr": pick(self.config.queue_managers, step.qmgr), "op": step.op}
        if step.op in CHANGING or step.op in ("RESTART", "HEARTBEAT"):
            event["store"] = self.config.name
            return event | (self.mix.changes(self.config, step.op, *step.changes) if step.op in CHANGING else {})
        event["queue"] = pick(self.names, step.queue)
        event |= self._sequence(event["qmgr"], event["queue"], step.seq)
        if step.op in ("COMMIT", "BACKOUT", "PREPARE"):
            event["uow"] = pick(ENDED_UOWS, step.uow)
            return event | _unless(0, reason=pick(END_REASONS, step.reason))
        return event | self._call(step) | _unless(0, reason=pick(REASONS, step.reason))

    def _call(self, step: Step) -> dict[str, Any]:
        if step.op == "CLEAR":
            return {}
        msgid = pick(MSGID_CHOICES, step.msgid)
        call = _unless(None, msgid=msgid, uow=pick(UOW_CHOICES, step.uow))
        if msgid is None:
            call |= _unless(1, count=pick(self.mix.counts, step.count))
        if step.op == "PUT":
            call["length"] = pick(self.mix.lengths, step.length)
            call |= _unless(0, priority=step.priority % 10)
            call |= _unless(False, persistent=step.persistent % 2 == 1, direct=step.direct % 25 == 24)
            call |= _unless(None, expiry=pick(EXPIRIES, step.expiry))
        return call

    def _time(self, step: Step) -> int:
        microseconds, stays = pick(self.mix.times, step.time)
        time = self.now + int(microseconds)
        if stays:
            self.now = time
        return time

    def _sequence(self, qmgr: str, queue: str, number: int) -> dict[str, int]:
        choice = pick(SEQS, number)
        if choice == "none":
            return {}
        highest = self.highest.get((qmgr, queue), 9)
        if choice == "next":
            seq = highest + 1
        elif choice[0] == "back":
            seq = max(0, highest - choice[1])
        else:
            seq = highest + 1 + choice[1]
        self.highest[qmgr, queue] = max(highest, seq)
        return {"seq": seq}


def _unless(default: Any, **values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value != default}


@dataclass
class Workload:
    """A store, its alias queues, and events for it."""

    config: Any  # Structure, Private
    aliases: dict[str, str]
    events: list[dict[str, Any]] = field(repr=False)

    def __repr__(self) -> str:
        """Return what a failing test shows: enough to run it again."""
        lines = ",\n  ".join(str(event) for event in self.events)
        return f"Workload({self.config!r}, {self.aliases!r}, [\n  {lines}\n])"


# -- short workloads, by hypothesis


@cache
def _step(kind: str, op: str) -> st.SearchStrategy[Step]:
    choices: dict[str, st.SearchStrategy[Any]]
    choices = {name: st.integers(0, choices_of(kind)[name] - 1) for name in LOOKS_AT[op]}
    if op in CHANGING:
        choices["changes"] = st.tuples(*[st.integers(0, 29)] * 3)
    return st.builds(Step, st.just(op), **choices)


@st.composite
def steps(
    draw: st.DrawFn, profile: str = "mixed", usual_size: int = 40, kind: str = "structure", max_size: int = 150
) -> list[Step]:
    """Lists of steps, `usual_size` of them on average (hypothesis's own lists are short however long they may be).

    A profile of the kind says which ops come and how often.
    """
    ops = st.sampled_from([op for op, weight in MIXES[kind].weights[profile].items() for _ in range(weight)])
    chosen: list[Step] = []
    while len(chosen) < max_size and draw(st.integers(0, usual_size)) > 0:
        chosen.append(draw(_step(kind, draw(ops))))
    return chosen


def workloads(profile: str = "mixed", usual_size: int = 40, kind: str = "structure") -> st.SearchStrategy[Workload]:
    """Random stores with `usual_size` events each, on average."""

    def workload(config: Any, chosen: list[Step]) -> Workload:
        maker = EventMaker(config, MIXES[kind])
        return Workload(config, aliases_of(config), [maker.event(step) for step in chosen])

    return st.builds(workload, MIXES[kind].configs, steps(profile, usual_size, kind))


# -- long workloads, from a seed

SEEDS = (1, 2, 3, 4, 5, 18)


def long_workload(seed: int, profile: str, kind: str) -> Workload:
    """Return a workload for comparing twin and oracle; `SEEDS` together are known to expose wrong rules."""
    return random_workload(seed, 1000 if profile == "log" else 500, profile, kind)


def random_workload(
    seed: int,
    n: int,
    profile: str = "mixed",
    kind: str = "structure",
    times: tuple[tuple[int, bool], ...] | None = None,
) -> Workload:
    """Return a random store and `n` events for it, the same for the same arguments. times: as in `Mix`."""
    config = MIXES[kind].random_config(seed)
    maker = EventMaker(config, MIXES[kind] if times is None else replace(MIXES[kind], times=times))
    return Workload(config, aliases_of(config), [maker.event(step) for step in random_steps(seed, n, profile, kind)])


def random_steps(seed: int, n: int, profile: str, kind: str) -> Iterator[Step]:
    """Yield random steps on a store of a kind.

    Args:
        seed: seed of the traffic.
        n: number of steps.
        profile: name of the weights of operations.
        kind: kind of the store.
    """
    rng = np.random.default_rng([seed, 2])
    mix = MIXES[kind]
    weights = mix.weights[profile]
    share = np.array(list(weights.values())) / sum(weights.values())
    ops = [str(op) for op in rng.choice(list(weights), size=n, p=share)]
    if profile in mix.in_phases:
        other = {"PUT": "GET", "GET": "PUT"}
        ops = [other.get(op, op) if i // PHASE % 2 else op for i, op in enumerate(ops)]
    kept_small = mix.kept_small.get(profile, {})
    choice_counts = choices_of(kind)
    choices = {name: rng.integers(0, kept_small.get(name, choice_counts[name]), n).tolist() for name in choice_counts}
    changes = rng.integers(0, 30, (n, 3)).tolist()
    for i in range(n):
        yield Step(ops[i], changes=tuple(changes[i]), **{name: values[i] for name, values in choices.items()})
