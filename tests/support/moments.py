"""Moments of stores for what-if and advice: traffic at rest, made by hand."""

from __future__ import annotations

from pathlib import Path

from twin.planning.whatif import Moment, moment_of
from twin.testing import Driver

QUEUE = "A.QUEUE"


def structure_at_rest(folder: Path, attributes: str, *, length: int, rate: int, store: str = "QSG1/APP1") -> Moment:
    """Return a structure with one queue after 15 minutes in which gets kept up with puts.

    Args:
        folder: where its estate is written.
        attributes: TOML of the tables of coupling facility and data sets, then, after a line `---`, of the structure.
        length: bytes of each message.
        rate: messages put and got per second.
        store: its name.
    """
    tables, _, own = attributes.rpartition("---\n")
    group, _, structure = store.partition("/")
    path = folder / "estate.toml"
    path.write_text(
        f'schema = 1\n\n[queue_sharing_group.{group}]\nqueue_managers = ["QM01"]\n\n{tables}\n'
        f'[structure."{store}"]\ncf_level = 5\n{own}\n[queue."{group}/{QUEUE}"]\nstructure = "{structure}"\n',
        encoding="utf-8",
    )
    return after_rest(Driver(path), store, length=length, rate=rate)


def after_rest(driver: Driver, store: str, *, length: int, rate: int, queue: str = QUEUE) -> Moment:
    """Return a store after 15 minutes in which gets of a queue kept up with puts."""
    for _ in range(90):
        driver.put(queue, length=length, count=10 * rate)
        driver.get(queue, count=10 * rate)
        driver.wait(seconds=10)
    return moment_of(driver.estate, driver._player.twins[store])
