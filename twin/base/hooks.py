"""Additions of other distributions to mqtwin, by entry points of their metadata: see docs/hooks.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from typing_extensions import override

from twin.base.errors import UsageError

FEEDS, SINKS, SCENARIOS = "mqtwin.feeds", "mqtwin.sinks", "mqtwin.scenarios"  # groups of entry points
GROUPS = (FEEDS, SINKS, SCENARIOS)

T = TypeVar("T")


class WithAdded(Mapping[str, T]):
    """Things of a kind by name, those of mqtwin and behind them those that are added, imported at the first look.

    `group` is that of the entry points; `check` returns what is expected of an added one, "": it is right.
    """

    def __init__(self, group: str, own: Mapping[str, T], check: Callable[[T], str]) -> None:
        self._group, self._own, self._check = group, own, check

    @override
    def __getitem__(self, name: str) -> T:
        return self._own[name] if name in self._own else self._added[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter((*self._own, *self._added))

    @override
    def __len__(self) -> int:
        return len(self._own) + len(self._added)

    @cached_property
    def _added(self) -> dict[str, T]:
        added: dict[str, T] = {}
        for point in sorted(entry_points(group=self._group), key=lambda point: (point.name, point.value)):
            if point.name in self._own or point.name in added:
                raise UsageError(f"{_whose(point)}: there is one of this name; expected: another name")
            try:
                loaded: T = point.load()
            except Exception as error:  # of others
                raise UsageError(
                    f"{_whose(point)} cannot be loaded ({type(error).__name__}: {error}); expected: one of this version"
                ) from error
            if expected := self._check(loaded):
                raise UsageError(f"{_whose(point)} is {loaded!r:.80}; expected: {expected}")
            added[point.name] = loaded
        return added


def _whose(point: EntryPoint) -> str:
    owner = "" if point.dist is None else f" of {point.dist.name}"
    return f"{point.group} {point.name} = {point.value}{owner}"
