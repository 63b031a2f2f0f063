"""The resources of a structure: its pools, its data sets, storage class memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from typing_extensions import override

from kernels import layout, scm, smds, watch
from kernels.pools import elements_in_use, entries_in_use
from twin.alerts import fillers, texts
from twin.alerts.resource_view import ResourceView
from twin.alerts.texts import NOTHING
from twin.conditions import AUGMENTED, CRITICAL, ELEMENTS, ENTRIES, INFO, SCM, Condition, Resource
from twin.estate import Structure
from twin.records import Action, Filler
from twin.state.arrays import Array
from twin.stores.state_record import EXPAND_STATUS
from twin.units import as_times, percent, readable_size

POOL_BITS: dict[int, tuple[str, Resource]] = {  # in the order in which alerts of one event are published
    watch.THRESHOLD_ENTRIES: (Condition.THRESHOLD, ENTRIES),
    watch.THRESHOLD_ELEMENTS: (Condition.THRESHOLD, ELEMENTS),
    watch.FULL_ENTRIES: (Condition.FULL, ENTRIES),
    watch.FULL_ELEMENTS: (Condition.FULL, ELEMENTS),
}
SCM_BITS: dict[int, tuple[str, Resource]] = {
    watch.SCM_EXHAUSTED: (Condition.SCM_EXHAUSTED, SCM),
    watch.AUGMENTED_EXHAUSTED: (Condition.AUGMENTED_EXHAUSTED, AUGMENTED),
}
_LACKS: dict[str, int] = {Condition.SCM_EXHAUSTED: scm.NO_SCM, Condition.AUGMENTED_EXHAUSTED: scm.NO_AUGMENTED}


def structure_resource(
    config: Structure,
    store: layout.Store,
    qmgrs: Sequence[str],
    queues: int,
    resource: Resource,
    of_mean_length: int = 0,
    room: int | None = None,
    *,
    grows: bool,
) -> ResourceView:
    """Return the view of a structure's resource.

    Args:
        config: the structure's attributes.
        store: its arrays.
        qmgrs: queue managers by the row of their data set.
        queues: how many queues have a row.
        resource: entries, elements, a data set, SCM or augmented space.
        of_mean_length: messages held whose length is a mean.
        room: bytes that its coupling facility has left for it to grow; None: not known.
        grows: True if z/OS is expected to enlarge it as it fills.
    """
    rows = store.queues[:queues]
    if resource == ENTRIES:
        return (_Entries if config.holds_queues else _LevelOfEntries)(config, store, rows, room, grows=grows)
    if resource == ELEMENTS and config.holds_queues:
        return _Elements(config, store, rows, room, of_mean_length, grows=grows)
    if resource == ELEMENTS:
        return _LevelOfElements(config, store, rows, room, grows=grows)
    if resource in (SCM, AUGMENTED):
        return (_Scm if resource == SCM else _Augmented)(config, store, rows)
    return _DataSet(config, store, rows, qmgrs.index(resource.owner), resource)


def pools_pct(store: layout.Store, entries: int, elements: int) -> float:
    """Return the percentage in use of the pool that is used more. entries, elements: in use."""
    return max(_pct(entries, store.params[0]["ents_max"]), _pct(elements, store.params[0]["elems_max"]))


def _pct(used: int, total: int) -> float:
    return round(100.0 * (int(used) / max(1, int(total))), 3)


def _last_refused(store: layout.Store) -> int:
    """Return the time of the last put for which any resource had no room, microseconds, or NEVER."""
    of_sets = int(store.datasets["last_full"].max()) if store.datasets.size else layout.NEVER
    return max(int(store.scalars[0]["last_full_ents"]), int(store.scalars[0]["last_full_elems"]), of_sets)


class _Pool(ResourceView):
    """Entries or elements."""

    counted: str  # field of QUEUE
    last_full_field: str  # of the scalars

    def __init__(self, config: Structure, store: layout.Store, queues: Array, room: int | None, *, grows: bool) -> None:
        super().__init__(store)
        self._config = config
        self._grows = grows
        self._queues = queues
        self._room = room
        self.text = f"{self.resource.pool.capitalize()} of {config.name}"
        self.unit = self.present = str(self.resource)

    @property
    @override
    def threshold_pct(self) -> float:
        return float(self._store.params[0]["full_threshold"])

    @property
    @override
    def threshold_name(self) -> str:
        return "FULLTHRESHOLD" if self.threshold_pct == self._config.full_threshold else "watched from"

    @property
    @override
    def maximum_pct(self) -> float:
        """Percent of what automatic alter can make of it."""
        return self.usage_pct / self._times if self._grows else self.usage_pct

    @property
    def _times(self) -> float:
        """Factor by which an alter can enlarge the structure. The size of one with data in SCM stays."""
        size = int(self._store.params[0]["size_now"])
        is_fixed = size <= 0 or size >= self._config.size or int(self._store.scm[0]["messages"]) > 0
        return 1.0 if is_fixed else self._config.size / size

    @property
    @override
    def growth(self) -> str:
        return f"SIZE allows {as_times(self._times)} as much" if self._times > 1 else ""

    @property
    @override
    def growth_ahead(self) -> str:
        return f"; {self.growth}" if self.growth else ""

    @property
    @override
    def last_full(self) -> int:
        return int(self._store.scalars[0][self.last_full_field])

    @property
    @override
    def last_refused(self) -> int:
        return _last_refused(self._store)

    @override
    def describe(self, condition: str) -> str:
        sentence = super().describe(condition)
        if scm.is_share_used(self._store):
            share, maximum = int(scm.bound(self._store)), int(self._config.scm_max_size or 0)
            sentence += (
                f"; its share of {self._config.coupling_facility}'s SCM, {readable_size(share)} of"
                f" SCMMAXSIZE {readable_size(maximum)}, is used up"
            )
        if not self._config.allow_auto_alter:
            return sentence
        size = int(self._store.params[0]["size_now"])
        if size < self._config.size and not self._grows:
            return f"{sentence}; automatic alter is on, and has not enlarged it"
        if size < self._config.size:
            return f"{sentence}; automatic alter is on, at {readable_size(size)} of {readable_size(self._config.size)}"
        return f"{sentence}; automatic alter has reached SIZE, {readable_size(size)}, and cannot relieve it"

    @override
    def by_queue(self) -> tuple[Array, Array]:
        return fillers.growth(self._queues, self.counted), self._queues[self.counted]

    @override
    def actions(self, ranked: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING) -> tuple[Action, ...]:
        size, alterable = int(self._store.params[0]["size_now"]), int(self._store.scm[0]["messages"]) == 0
        return texts.pool_actions(
            self._config, self.resource, size, ranked, effects, alterable=alterable, room=self._room
        )


class _Entries(_Pool):
    resource = ENTRIES
    counted = "depth"
    last_full_field = "last_full_ents"

    @override
    def _read_usage_pct(self) -> float:
        return _pct(entries_in_use(self._store), self._store.params[0]["ents_max"])

    @property
    @override
    def is_exhausted(self) -> bool:
        return bool(watch.entries_exhausted(self._store))


class _Elements(_Pool):
    resource = ELEMENTS
    counted = "elems"
    last_full_field = "last_full_elems"

    def __init__(
        self,
        config: Structure,
        store: layout.Store,
        queues: Array,
        room: int | None,
        of_mean_length: int = 0,
        *,
        grows: bool,
    ) -> None:
        super().__init__(config, store, queues, room, grows=grows)
        self._of_mean_length = of_mean_length

    @property
    @override
    def evidence(self) -> tuple[str, ...]:
        if not self._of_mean_length:
            return ()
        used, total = int(elements_in_use(self._store)), int(self._store.params[0]["elems_max"])
        low, high = max(0, used - self._of_mean_length), used + self._of_mean_length
        messages = "1 message held is" if self._of_mean_length == 1 else f"{self._of_mean_length:,} messages held are"
        elements = f"{low:,} to {high:,} elements are in use, {_pct(low, total):.1f} to {_pct(high, total):.1f} %"
        return (f"{messages} known from counts with a mean length: {elements}",)

    @override
    def _read_usage_pct(self) -> float:
        return _pct(elements_in_use(self._store), self._store.params[0]["elems_max"])

    @property
    @override
    def is_exhausted(self) -> bool:
        return bool(watch.elements_exhausted(self._store))


class _Level(_Pool):
    """Entries or elements of a structure that holds no queues: measured, and what takes them is not known."""

    has_fillers = False

    @property
    @override
    def consequence(self) -> str:
        return texts.fails_when_full(self._config)

    @override
    def describe(self, condition: str) -> str:
        if condition == Condition.FULL:
            return f"{self.text}: {self.usage}, full: {self.consequence}"
        return f"{super().describe(condition)}; when it is full, {self.consequence}"

    @override
    def actions(self, ranked: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING) -> tuple[Action, ...]:
        return texts.level_actions(self._config, int(self._store.params[0]["size_now"]), self._room)


class _LevelOfEntries(_Level, _Entries):
    pass


class _LevelOfElements(_Level, _Elements):
    pass


class _DataSet(ResourceView):
    """The blocks of one shared message data set."""

    unit = "pages"
    present = "blocks"

    def __init__(self, config: Structure, store: layout.Store, queues: Array, row: int, resource: Resource) -> None:
        super().__init__(store)
        self._config = config
        self._queues = queues
        self._row = row
        self.resource = resource
        self.text = f"SMDS blocks of {resource.owner} for {config.name}"

    @override
    def _read_usage_pct(self) -> float:
        return _pct(smds.blocks_in_use(self._store, self._row), self._store.datasets[self._row]["blocks_total"])

    @property
    @override
    def maximum_pct(self) -> float:
        total = self._store.datasets[self._row]["blocks_total"]
        is_known = bool(self._store.datasets[self._row]["limited"])
        maximum = smds.max_blocks(self._store, self._row) if is_known else total
        return _pct(smds.blocks_in_use(self._store, self._row), maximum)

    @property
    @override
    def threshold_pct(self) -> float:
        return float(smds.EXPAND_ABOVE)

    @property
    @override
    def is_exhausted(self) -> bool:
        return bool(smds.is_full(self._store, self._row))

    @property
    @override
    def last_full(self) -> int:
        return int(self._store.datasets[self._row]["last_full"])

    @property
    @override
    def last_refused(self) -> int:
        return _last_refused(self._store)

    @property
    @override
    def can_expand(self) -> bool:
        return int(self._store.datasets[self._row]["status"]) == layout.NORMAL

    @property
    @override
    def expansion_problem(self) -> str:
        return f"EXPANDST {EXPAND_STATUS[int(self._store.datasets[self._row]['status'])]}"

    @override
    def by_queue(self) -> tuple[Array, Array]:
        messages = self._store.messages[: int(self._store.scalars[0]["message_high"])]
        held = fillers.pages_in_dataset(messages, self._row, self._queues.size)
        # Growth is known over all data sets only; a queue added to this one no more than it holds there.
        return np.minimum(fillers.growth(self._queues, "pages"), held), held

    @override
    def actions(self, ranked: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING) -> tuple[Action, ...]:
        has_failed = not self.can_expand
        return texts.dataset_actions(self._config, self.resource.owner, ranked, effects, has_failed=has_failed)


class _Scm(ResourceView):
    """Storage class memory: full, or so full that the structure cannot be altered."""

    resource = SCM
    unit = "messages"
    description = "SCM of {name}"

    def __init__(self, config: Structure, store: layout.Store, queues: Array) -> None:
        super().__init__(store)
        self._config = config
        self._queues = queues
        self.text = self.description.format(name=config.name)
        if self.resource == SCM and int(scm.bound(store)) < (config.scm_max_size or 0):
            self.text += f" (its share of {config.coupling_facility})"

    def _bytes(self) -> tuple[int, int]:
        """Return (bytes in use, bytes there are)."""
        return int(scm.bytes_in_use(self._store)), int(scm.bound(self._store))

    @override
    def _read_usage_pct(self) -> float:
        used, total = self._bytes()
        return percent(used, total, of_nothing=100.0)

    @override
    def by_queue(self) -> tuple[Array, Array]:
        messages = self._store.messages[: int(self._store.scalars[0]["message_high"])]
        held = fillers.messages_in_scm(messages, self._queues.size)
        return np.minimum(fillers.growth(self._queues, "depth"), held), held

    @override
    def is_over(self, condition: str, now: int) -> bool:
        """True if nothing is in storage class memory any more, or if what pre-staging lacked is there again."""
        if condition == Condition.NOT_ALTERABLE:
            return int(self._store.scm[0]["messages"]) == 0
        return int(scm.lacking(self._store)) != _LACKS[condition]

    @override
    def severity(self, condition: str, before: str | None) -> str:
        return INFO if condition == Condition.NOT_ALTERABLE else CRITICAL

    @override
    def describe(self, condition: str) -> str:
        used, total = self._bytes()
        if condition == Condition.NOT_ALTERABLE:
            return texts.cannot_alter(self._config, used, int(self._store.scm[0]["messages"]))
        return texts.stopped_staging(
            self.text, used, total, pools_pct(self._store, entries_in_use(self._store), elements_in_use(self._store))
        )

    @override
    def actions(self, ranked: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING) -> tuple[Action, ...]:
        return texts.scm_actions(self._config, self.resource, ranked, effects)

    @override
    def actions_for(
        self, condition: str, ranked: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
    ) -> tuple[Action, ...]:
        if condition == Condition.NOT_ALTERABLE:
            return texts.alter_actions(self._config, ranked)
        return self.actions(ranked, effects)


class _Augmented(_Scm):
    """Storage of the coupling facility for dynamic augmented space."""

    resource = AUGMENTED
    description = "Storage for dynamic augmented space of {name}"

    @override
    def _bytes(self) -> tuple[int, int]:
        used = int(scm.bytes_in_use(self._store))
        return int(scm.augmented_bytes(self._store, used)), int(self._store.params[0]["aug_max"])
