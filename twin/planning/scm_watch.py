"""Use of storage class memory and data sets by a structure in a replay, sampled over time: docs/leave-scm.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from kernels.clock import SECOND
from kernels.layout import PUT, RULES
from kernels.meter_rows import DATA_SETS
from kernels.offload import rule_in_force
from twin.capacity.structures import has_rules
from twin.conditions import ELEMENTS, ENTRIES
from twin.estate import ALWAYS_OFFLOADED_ABOVE
from twin.events import Decoded
from twin.events.decoded import merge
from twin.planning.proof import Proof, Rehearsed
from twin.playback.samples import STEP, Usage, usage_of
from twin.state.arrays import Array
from twin.stores.open import Twin
from twin.stores.resources import read_usage
from twin.stores.structure import StructureTwin
from twin.units import as_text, percent

POOLS = (str(ENTRIES), str(ELEMENTS))
QUIET_PCT = 50.0  # of a structure in use, up to which a plan is not looked at: the least limit of a margin


class ScmUse(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which SCM held data, by samples every 30 seconds.

    Attributes:
        began: time of the first sample with data in SCM.
        ended: time of the first one without; None: it is still in use at the end.
        peak_time: time of the highest use.
        peak_bytes: SCM in use then.
        peak_messages: messages in SCM then.
    """

    began: str
    ended: str | None
    peak_time: str
    peak_bytes: int
    peak_messages: int


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """Use of SCM and data sets by applications in a replay.

    Attributes:
        faults: gets of messages in SCM, which wait for a read.
        fault_wait_s: total of these waits, seconds.
        offloaded: messages whose data a put writes to a data set, and a get reads from it.
        pages: 4 KB pages of these messages.
        pages_per_s: most of them in a second, by samples of 30.
        datasets: bytes in use at most in the data set of each queue manager.
        peaks: percent in use at most of each resource.
    """

    faults: int
    fault_wait_s: float
    offloaded: int
    pages: int
    pages_per_s: float
    datasets: dict[str, int]
    peaks: dict[str, float]


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """A replay over time, n samples.

    Attributes:
        times: microseconds since 1970.
        usage: percent in use of each resource, of "scm" percent of SCMMAXSIZE.
        refused: messages refused since the previous sample.
    """

    times: tuple[int, ...]
    usage: dict[str, tuple[float, ...]]
    refused: tuple[int, ...]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A recording replayed with settings: its proof, and what applications have from SCM and data sets."""

    proof: Proof
    effect: Effect
    course: Course


class ScmWatch:
    """Usage of a structure in a replay, sampled at the end of each STEP of event time, as `Samples` does."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._usage: dict[int, Usage] = {}  # by number of the STEP
        self._scm: dict[int, tuple[int, int]] = {}  # bytes and messages
        self._times: dict[int, int] = {}  # of the sample, microseconds
        self._pages: dict[int, float] = {}  # of messages offloaded
        self._datasets: dict[str, int] = {}  # bytes in use at most
        self._offloaded = self._faults = self._fault_wait_s = 0.0
        self._in_force = np.zeros(RULES)
        self._refused = 0
        self._refused_in: dict[int, int] = {}  # messages by number of the STEP
        self._step = -1
        self._scm_max = 0
        self.closed: Usage = {}  # usage of the last STEP that is over

    def add(self, rehearsed: Rehearsed) -> None:
        """Add a piece of a replay."""
        twin = rehearsed.player.twins[self._store]
        assert isinstance(twin, StructureTwin)
        if len(rehearsed.piece):
            refused = rehearsed.player.refusals[self._store].replayed.full
            step = self.sample(twin)
            self._count(twin, rehearsed.piece.events, refused - self._refused, step)
            self._refused_in[step] = self._refused_in.get(step, 0) + refused - self._refused
            self._refused = refused

    def sample(self, twin: Twin) -> int:
        """Sample the structure; return the number of the STEP."""
        assert isinstance(twin, StructureTwin)
        store = twin.tables.store
        clock, scm = int(store.scalars[0]["clock"]), store.scm[0]
        step = clock // STEP
        if step != self._step:
            self.closed, self._step = self._usage.get(self._step, {}), step
        self._usage[step] = usage_of(twin)
        self._times[step] = clock
        self._scm_max = twin.config.scm_max_size or 0
        self._scm[step] = twin.scm_used, int(scm["messages"])
        self._faults, self._fault_wait_s = float(scm["faults"]), float(scm["fault_wait_us"]) / 1e6
        usage = read_usage(store)["used"]
        for row, qmgr in enumerate(twin.qmgrs):
            in_use = int(usage[DATA_SETS + row]) * twin.config.ds_block
            self._datasets[qmgr] = max(self._datasets.get(qmgr, 0), in_use)
        return step

    @property
    def fullest(self) -> str:
        """The fullest resource of the last sample."""
        usage = self._usage[self._step]
        return max(usage, key=lambda name: usage[name])

    def uses(self) -> tuple[ScmUse, ...]:
        """Return the times in which SCM held data, in order of time."""
        uses: list[list[int]] = []  # steps of each
        steps, ended = sorted(self._scm), dict[int, int]()
        is_open = False
        for step in steps:
            if self._scm[step][0] and not is_open:
                uses.append([])
            if self._scm[step][0]:
                uses[-1].append(step)
            elif is_open:
                ended[len(uses) - 1] = self._times[step]
            is_open = self._scm[step][0] > 0
        return tuple(self._use(own, ended.get(number)) for number, own in enumerate(uses))

    def _use(self, steps: Sequence[int], ended: int | None) -> ScmUse:
        top = max(steps, key=lambda step: (self._scm[step][0], -step))
        return ScmUse(
            began=as_text(self._times[steps[0]]),
            ended=None if ended is None else as_text(ended),
            peak_time=as_text(self._times[top]),
            peak_bytes=self._scm[top][0],
            peak_messages=self._scm[top][1],
        )

    def trial(self, proof: Proof) -> Trial:
        """Return the trial whose replay was watched."""
        steps = sorted(self._usage)
        names = {name: None for usage in self._usage.values() for name in usage}
        usage = {name: tuple(round(self._usage[step].get(name, 0.0), 3) for step in steps) for name in names}
        if self._scm_max:
            usage["scm"] = tuple(round(percent(self._scm[step][0], self._scm_max), 3) for step in steps)
        course = Course(
            times=tuple(self._times[step] for step in steps),
            usage=usage,
            refused=tuple(self._refused_in.get(step, 0) for step in steps),
        )
        return Trial(proof=proof, effect=self.effect(), course=course)

    def joined(self, pieces: Sequence[Decoded]) -> list[Decoded]:
        """Return pieces joined while the structure was at most half full and nothing in SCM: a plan holds there too.

        What a plan has in the structure, it had there or in SCM, and no plan has a smaller SIZE.
        """
        joined: list[Decoded] = []
        run: list[Decoded] = []
        for number, piece in enumerate(pieces):
            step = int(piece.events["time"].max()) // STEP
            usage = self._usage.get(step, {})
            if step in self._usage and not self._scm[step][0] and max(usage[name] for name in POOLS) <= QUIET_PCT:
                run.append(replace(piece, record=np.full(len(piece), number, np.int32)))  # `merge` keeps that order
                continue
            joined += [merge(run)] if run else []
            joined.append(piece)
            run = []
        return joined + ([merge(run)] if run else [])

    def effect(self) -> Effect:
        """Return what applications had from SCM and data sets."""
        names = {name: None for usage in self._usage.values() for name in usage}
        peaks = {name: max(usage.get(name, 0.0) for usage in self._usage.values()) for name in names}
        return Effect(
            faults=int(self._faults),
            fault_wait_s=round(self._fault_wait_s, 3),
            offloaded=round(self._offloaded),
            pages=round(sum(self._pages.values())),
            pages_per_s=round(max(self._pages.values(), default=0.0) * SECOND / STEP, 1),
            datasets=dict(self._datasets),
            peaks={name: round(peak, 3) for name, peak in peaks.items()},
        )

    def _count(self, twin: StructureTwin, events: Array, refused: int, step: int) -> None:
        """Count messages whose data goes to data sets: by the rules in force before and after a piece, on average.

        Puts that are refused are taken out in proportion.
        """
        config, store = twin.config, twin.tables.store
        before, self._in_force = self._in_force, np.array([bool(rule_in_force(store, rule)) for rule in range(RULES)])
        if not has_rules(config) or config.offload != "SMDS":
            return
        puts = events[events["op"] == PUT]
        lengths, counts = puts["length"], puts["count"].astype(np.float64)
        share = np.zeros(lengths.size)
        for in_force in (before, self._in_force):
            goes = lengths > ALWAYS_OFFLOADED_ABOVE
            for rule, is_in_force in zip(config.rules, in_force, strict=True):
                if is_in_force:
                    goes |= (lengths > rule.sz) & (lengths > config.offload_min_length)
            share += goes / 2
        total = counts.sum()
        messages = share * counts * (1 - refused / total if total else 1.0)
        self._offloaded += messages.sum()
        pages = np.maximum(1, -(-(lengths + config.smds_prefix) // 4096))
        self._pages[step] = self._pages.get(step, 0.0) + float((messages * pages).sum())
