"""Advice that the five documents give about an estate, as warnings of one line; listed in docs/estate.md.

Sources: [IBM: Specifying offload options for shared messages], [IBM: How storage class memory works with IBM MQ for
z/OS], [IBM: WebSphere MQ internals, distributed].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twin.estate.model import PRESTAGES_ABOVE_PCT, QueueFile, QueueManager, StoreConfig, Structure
from twin.units import MIB, format_size

MAX_QUEUE_SIZE = 2_097_151 * MIB  # [IBM: WebSphere MQ internals, Tuning Queue Buffers: maxQSize]
_CF_LEVEL_5_FROM = (7, 1)  # [IBM: Specifying offload options, Selecting where the messages are stored]


def document_advice(
    stores: Mapping[str, StoreConfig],
    queue_managers: Mapping[str, QueueManager],
    default_persistent: Mapping[str, bool],
) -> Iterator[str]:
    """Yield the advice about every store in the order of the mapping.

    Args:
        stores: stores by name.
        queue_managers: queue managers by name.
        default_persistent: True for each queue file whose queue has DEFPSIST(YES), by store name.
    """
    for store in stores.values():
        if isinstance(store, Structure):
            yield from _offload(store)
            yield from _levels(store, queue_managers)
            yield from _scm(store)
        elif isinstance(store, QueueFile):
            yield from _queue_file(store, persistent=default_persistent.get(store.name, False))


def _offload(store: Structure) -> Iterator[str]:
    if store.offload == "DB2":
        yield (
            f"{store.name}: OFFLOAD(DB2) is supported primarily for migration; for messages of more than 63 KB"
            " OFFLOAD(SMDS) performs significantly better"
        )
    first, second, third = store.rules
    if store.offload != "NONE" and second.off and not first.off and not third.off and first.th < third.th:
        yield (
            f"{store.name}: offload rule 2 is off, so at {third.th} % usage the ratio of entries to elements changes"
            f" all at once; rule 2 between OFFLD1TH({first.th}) and OFFLD3TH({third.th}) cushions that"
        )


def _levels(store: Structure, queue_managers: Mapping[str, QueueManager]) -> Iterator[str]:
    if store.cf_level < 5:
        return
    versions = {name: queue_managers[name].version for name in store.queue_managers if name in queue_managers}
    older = {name: text for name, text in versions.items() if text is not None and _parse(text) < _CF_LEVEL_5_FROM}
    if older:
        named = ", ".join(f"{name} ({text})" for name, text in older.items())
        yield (
            f"{store.name}: CFLEVEL({store.cf_level}), but {named} cannot connect to it: all queue managers of the"
            " group must be at version 7.1 or higher"
        )


def _parse(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _scm(store: Structure) -> Iterator[str]:
    if store.scm_max_size is None:
        return
    if store.allow_auto_alter:
        yield (
            f"{store.name}: ALLOWAUTOALT(YES) beside SCM: while data is in SCM the structure cannot be altered, neither"
            " manually nor automatically"
        )
    if store.offload == "NONE":
        return
    for rule in store.rules:
        if not rule.off and PRESTAGES_ABOVE_PCT <= rule.th < 100:
            yield (
                f"{store.name}: offload rule {rule.number}, OFFLD{rule.number}TH({rule.th})"
                f" OFFLD{rule.number}SZ({format_size(rule.sz)}), can never fire while SCM has room: pre-staging holds"
                f" usage at {PRESTAGES_ABOVE_PCT} %; expected: a threshold below that"
            )


def _queue_file(store: QueueFile, *, persistent: bool) -> Iterator[str]:
    if store.max_size > MAX_QUEUE_SIZE:
        yield (
            f"{store.name}: max_size {format_size(store.max_size)} is more than a queue file can have,"
            f" {format_size(MAX_QUEUE_SIZE)}"
        )
    if persistent:
        yield (
            f"{store.name}: DEFPSIST(YES): put and get its persistent messages inside syncpoint; outside, each waits"
            " until the log is forced"
        )
