"""Random events for random tiny structures, for property tests (``workloads``) and for long runs (``random_workload``).

Both work alike: a handful of small integers, one for each choice, is turned into a structure or an event by the tables
below. 0 always means the plainest choice, so that hypothesis shrinks towards plain workloads and short ones.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.naive.estates import (
    BLOCK_SIZES,
    ENTRY_AND_6_ELEMENTS,
    LEVELS,
    RULE_SIZES,
    THRESHOLDS,
    aliases_of,
    pick,
    random_structure,
    structures,
)
from twin.estate.model import Structure

MSGIDS = tuple(f"414d5120514d3031{n:02d}" for n in range(5))
UOWS = ("c5a1", "c5a2", "c5a3")

START_US = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z
SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US

# -- steps: one small integer a choice, turned into an event by the tables

LENGTHS = (
    *(0, 100, 1000, 2048, 139, 140, 141, 395, 396, 397, 651, 652, 1164, 1165, 4095, 4096, 4097, 8192),
    *(32_767, 32_768, 32_769, 64_511, 64_512, 64_513, 65_536, 100_000, 200_000),
)
COUNTS = (1, 1, 1, 2, 3, 5, 8, 13, 30)
MSGID_CHOICES = (None, *MSGIDS)
UOW_CHOICES = (None, None, None, *UOWS)
ENDED_UOWS = (*UOWS, "never-seen")
REASONS = (0,) * 14 + (2192, 2033, 2003)
END_REASONS = (0,) * 6 + (2003, 2003, 2219)
# how time goes on: microseconds to the event, and whether the next events start from there (else from where they were)
FORWARD = ((0, True), (1, True), (1000, True), (SECOND_US, True), (7 * SECOND_US, True), (MINUTE_US, True))
TIMES = (
    *FORWARD * 8,
    *((10 * MINUTE_US, True), (HOUR_US // 2, True), (HOUR_US - 1, True), (HOUR_US, True), (2 * HOUR_US, True)),
    *((-1, False), (-SECOND_US, False), (-HOUR_US, False), (-30 * HOUR_US, False)),
    *((DAY_US, False), (DAY_US + 1, False), (25 * HOUR_US, False), (49 * HOUR_US, False), (40 * DAY_US, False)),
    *((DAY_US, True), (DAY_US + 1, True), (26 * HOUR_US, True), (40 * DAY_US, True)),
)
# how the sequence number goes on: "next", "none", ("back", n): n before the highest, ("hole", n): n left out
SEQS = (
    *("none",) * 3,
    *("next",) * 20,
    *(("back", n) for n in (0, 1, 2, 3, 5, 10, 4094, 4095, 4096, 4097)),
    *(("hole", n) for n in (1, 2, 3, 4094, 4095, 4096, 5000)),
)
CHANGED_ENTRIES = (20, 21, 30, 50, 100, 200, 400)


@dataclass(frozen=True)
class Step:
    """What a random event is made from, each a small integer; see the table of the same name."""

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
    time: int = 0
    seq: int = 0
    changes: tuple[int, ...] = (0, 0, 0)


CHOICES_OF = {  # the choices that an op looks at, and how many there are of each
    "time": len(TIMES),
    "seq": len(SEQS),
    "qmgr": 3,
    "queue": 5,
    "msgid": len(MSGID_CHOICES),
    "count": len(COUNTS),
    "length": len(LENGTHS),
    "priority": 10,
    "persistent": 2,
    "uow": len(UOW_CHOICES),
    "reason": len(REASONS),
    "direct": 25,
}
_ALWAYS = ("qmgr", "time")
_OF_QUEUE = (*_ALWAYS, "queue", "seq", "reason")
LOOKS_AT = {
    "PUT": (*_OF_QUEUE, "msgid", "count", "length", "priority", "persistent", "uow", "direct"),
    "GET": (*_OF_QUEUE, "msgid", "count", "uow"),
    "COMMIT": (*_OF_QUEUE, "uow"),
    "BACKOUT": (*_OF_QUEUE, "uow"),
    "EXPIRE": (*_OF_QUEUE, "msgid", "count", "uow"),
    "CLEAR": _OF_QUEUE,
    "RESTART": _ALWAYS,
    "HEARTBEAT": _ALWAYS,
    "ALTER": _ALWAYS,
    "REBUILD": _ALWAYS,
    "MEASURE": _ALWAYS,
}
CHANGING = ("ALTER", "REBUILD", "MEASURE")

WEIGHTS = {  # how often each op comes, by profile of a long run
    "mixed": {
        "PUT": 40,
        "GET": 30,
        "COMMIT": 8,
        "BACKOUT": 4,
        "EXPIRE": 3,
        "CLEAR": 1,
        "RESTART": 1,
        "HEARTBEAT": 2,
        "ALTER": 2,
        "REBUILD": 1,
        "MEASURE": 1,
    },
    "filling": {"PUT": 60, "GET": 20, "EXPIRE": 3, "CLEAR": 1, "ALTER": 1},
    "units": {"PUT": 35, "GET": 35, "COMMIT": 14, "BACKOUT": 10, "RESTART": 2, "EXPIRE": 2, "CLEAR": 1},
    "held": {"PUT": 30, "GET": 45, "COMMIT": 8, "BACKOUT": 6, "RESTART": 1, "HEARTBEAT": 2},
    "smds": {"PUT": 55, "GET": 25, "EXPIRE": 2, "CLEAR": 1, "COMMIT": 3, "BACKOUT": 2, "ALTER": 1},
    "attributes": {"PUT": 40, "GET": 25, "CLEAR": 3, "ALTER": 15, "REBUILD": 6, "MEASURE": 8},
}
PHASE = 150  # events; in every second phase of these profiles PUT and GET change places: usage goes up and down
IN_PHASES = ("filling", "smds")
KEPT_SMALL = {  # a profile looks only at the first so many of a table
    "filling": {"time": 48, "msgid": 1, "reason": 14, "seq": 23, "direct": 24, "uow": 3},
    "units": {"time": 49, "seq": 23, "length": 12},
    "held": {"time": 52, "length": 12, "count": 5, "seq": 23},
    "smds": {"time": 48, "seq": 23, "count": 6},
}


class EventMaker:
    """Turns steps into public events of one structure, keeping the time and the sequence numbers as it goes."""

    def __init__(self, config: Structure) -> None:
        self.config = config
        self.names = (*config.queues, *aliases_of(config))
        self.now = START_US
        self.highest: dict[tuple[str, str], int] = {}

    def event(self, step: Step) -> dict[str, Any]:
        """The event of the next step; fields at their default are left out."""
        event = {"time": self._time(step), "qmgr": pick(self.config.queue_managers, step.qmgr), "op": step.op}
        if step.op in CHANGING or step.op in ("RESTART", "HEARTBEAT"):
            event["store"] = self.config.name
            return event | self._changes(step)
        event["queue"] = pick(self.names, step.queue)
        event |= self._sequence(event["qmgr"], event["queue"], step.seq)
        if step.op in ("COMMIT", "BACKOUT"):
            event["uow"] = pick(ENDED_UOWS, step.uow)
            return event | _unless(0, reason=pick(END_REASONS, step.reason))
        return event | self._call(step) | _unless(0, reason=pick(REASONS, step.reason))

    def _call(self, step: Step) -> dict[str, Any]:
        if step.op == "CLEAR":
            return {}
        msgid = pick(MSGID_CHOICES, step.msgid)
        call = _unless(None, msgid=msgid, uow=pick(UOW_CHOICES, step.uow))
        if msgid is None:
            call |= _unless(1, count=pick(COUNTS, step.count))
        if step.op == "PUT":
            call["length"] = pick(LENGTHS, step.length)
            call |= _unless(0, priority=step.priority % 10)
            call |= _unless(False, persistent=step.persistent % 2 == 1, direct=step.direct % 25 == 24)
        return call

    def _time(self, step: Step) -> int:
        microseconds, stays = pick(TIMES, step.time)
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

    def _changes(self, step: Step) -> dict[str, Any]:
        if step.op == "ALTER":
            return {"attributes": self._altered(*step.changes)}
        if step.op == "REBUILD":
            return {"attributes": self._rebuilt(*step.changes)}
        if step.op == "MEASURE":
            return {"measured": self._measured(*step.changes)}
        return {}

    def _rules(self, first: int, second: int) -> dict[str, Any]:
        n = 1 + first % 3
        size = pick(RULE_SIZES, first // 3)
        return {f"offld{n}_th": pick(THRESHOLDS, second), f"offld{n}_sz": size if first % 2 else _as_text(size)}

    def _altered(self, what: int, first: int, second: int) -> dict[str, Any]:
        entries = pick((*CHANGED_ENTRIES, 1000), first)
        cf_level, offload = pick(LEVELS, first)
        kinds: tuple[Callable[[], dict[str, Any]], ...] = (
            lambda: self._rules(first, second),
            lambda: {"size": entries * ENTRY_AND_6_ELEMENTS + second},
            lambda: {"size": self.config.size + second % 2},
            lambda: {"ds_expand": first % 2 == 0},
            lambda: {"ds_block": _as_text(pick(BLOCK_SIZES, first))},
            lambda: {"cf_level": cf_level, "offload": offload},
            lambda: {"init_size": entries * ENTRY_AND_6_ELEMENTS},
            lambda: {"scm_max_size": "8M", "offld1_th": 0},
            lambda: {"ds_expand": True, "size": entries * ENTRY_AND_6_ELEMENTS} | self._rules(second, first),
            lambda: {"full_threshold": 60},
        )
        altered: dict[str, Any] = pick(kinds, what)()
        return altered

    def _rebuilt(self, what: int, first: int, second: int) -> dict[str, Any]:
        size = pick(CHANGED_ENTRIES, first) * ENTRY_AND_6_ELEMENTS
        kinds: tuple[dict[str, Any], ...] = (
            {},
            {"size": size, "init_size": size},
            {"size": 2 * size, "init_size": size + second},
            {"scm_max_size": "8M"},
            self._rules(first, second),
            {"size": size, "init_size": size} | self._rules(second, first),
        )
        rebuilt: dict[str, Any] = pick(kinds, what)
        return rebuilt

    def _measured(self, what: int, first: int, second: int) -> dict[str, Any]:
        measured: dict[str, Any] = {}
        if what % 4 != 3:
            measured["ents_used"] = 7 * first
        if what % 5 != 4:
            measured["elems_used"] = 25 * first + second
        if what % 3 == 1:
            measured["messages"] = 5 * second
        if what % 2 == 1:
            qmgr = pick(self.config.queue_managers, first)
            measured["smds"] = {qmgr: {"blocks_used": second, "pages_used": 2 * second, "messages": first}}
        return measured


def _as_text(size: int) -> int | str:
    return f"{size // 1024}K" if size % 1024 == 0 else size


def _unless(default: Any, **given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value != default}


@dataclass
class Workload:
    """A structure, its alias queues, and events for it."""

    config: Structure
    aliases: dict[str, str]
    events: list[dict[str, Any]] = field(repr=False)

    def __repr__(self) -> str:
        """What a failing test shows: enough to run it again."""
        lines = ",\n  ".join(str(event) for event in self.events)
        return f"Workload({self.config!r}, {self.aliases!r}, [\n  {lines}\n])"


# -- short workloads, by hypothesis


def _step(op: str) -> st.SearchStrategy[Step]:
    choices: dict[str, st.SearchStrategy[Any]]
    choices = {name: st.integers(0, CHOICES_OF[name] - 1) for name in LOOKS_AT[op]}
    if op in CHANGING:
        choices["changes"] = st.tuples(*[st.integers(0, 29)] * 3)
    return st.builds(Step, st.just(op), **choices)


STEP_OF = {op: _step(op) for op in LOOKS_AT}


@st.composite
def steps(draw: st.DrawFn, profile: str = "mixed", usual_size: int = 40, max_size: int = 150) -> list[Step]:
    """Lists of steps, `usual_size` of them on average (hypothesis's own lists are short however long they may be).

    A profile of ``WEIGHTS`` says which ops come and how often.
    """
    ops = st.sampled_from([op for op, weight in WEIGHTS[profile].items() for _ in range(weight)])
    chosen: list[Step] = []
    while len(chosen) < max_size and draw(st.integers(0, usual_size)) > 0:
        chosen.append(draw(STEP_OF[draw(ops)]))
    return chosen


def workloads(profile: str = "mixed", usual_size: int = 40) -> st.SearchStrategy[Workload]:
    """Random structures with `usual_size` events each, on average."""
    return st.builds(_workload, structures(), steps(profile, usual_size))


def _workload(config: Structure, chosen: list[Step]) -> Workload:
    maker = EventMaker(config)
    return Workload(config, aliases_of(config), [maker.event(step) for step in chosen])


# -- long workloads, from a seed


def random_events(seed: int, n: int, profile: str = "mixed", config: Structure | None = None) -> list[dict[str, Any]]:
    """`n` events for a structure (that of ``random_structure(seed)`` unless given); the same for the same arguments."""
    maker = EventMaker(random_structure(seed) if config is None else config)
    return [maker.event(step) for step in _random_steps(seed, n, profile)]


def random_workload(seed: int, n: int, profile: str = "mixed") -> Workload:
    """A random structure and `n` events for it; the same for the same arguments."""
    config = random_structure(seed)
    return Workload(config, aliases_of(config), random_events(seed, n, profile, config))


def _random_steps(seed: int, n: int, profile: str) -> Iterator[Step]:
    rng = np.random.default_rng([seed, 2])
    weights = WEIGHTS[profile]
    share = np.array(list(weights.values())) / sum(weights.values())
    ops = [str(op) for op in rng.choice(list(weights), size=n, p=share)]
    if profile in IN_PHASES:
        other = {"PUT": "GET", "GET": "PUT"}
        ops = [other.get(op, op) if i // PHASE % 2 else op for i, op in enumerate(ops)]
    kept_small = KEPT_SMALL.get(profile, {})
    choices = {name: rng.integers(0, kept_small.get(name, most), n).tolist() for name, most in CHOICES_OF.items()}
    changes = rng.integers(0, 30, (n, 3)).tolist()
    for i in range(n):
        yield Step(ops[i], changes=tuple(changes[i]), **{name: values[i] for name, values in choices.items()})
