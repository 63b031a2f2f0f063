"""Changed definitions: what queue managers show otherwise than the estate, or otherwise than was announced last.

What ALTER CFSTRUCT takes is an ALTER. A queue has no event for its MAXDEPTH or its place, and the running job takes no
new queue or structure: these are complaints, as only a changed estate and a restart of the job help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from twin.estate import EstateError, Structure, parse_attributes
from twin.feeds.intake import Complaint, Item
from twin.feeds.measurements import members_of, note_unknown_queue
from twin.feeds.mqsc_objects import Definition
from twin.feeds.protocol import Feed

_EXPECTED = "expected: this in the estate, as mqtwin estate import or mqtwin start --live writes it"


class Definitions:
    """Comparison with the estate and with what was announced. feed: makes the complaints, keeps what was announced."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._intake = feed.intake

    def changes(self, definitions: Iterable[Definition]) -> Iterator[Item]:
        """Yield the ALTERs of changed structures, once until they change again, and complaints about the rest.

        Args:
            definitions: those of a round; of several of one object the last counts.
        """
        if self._intake.estate is None:
            return
        latest = {(definition.section, definition.key): definition for definition in definitions}
        for (section, _), definition in sorted(latest.items()):
            yield from self._structure(definition) if section == "structure" else self._queue(definition)

    def _structure(self, definition: Definition) -> Iterator[Item]:
        store, estate = definition.key, self._intake.estate
        config = None if estate is None else estate.stores.get(store)
        if estate is not None and config is None:
            group = store.partition("/")[0]
            self._intake.note_unknown(
                min(members_of(estate, group), default=definition.qmgr), definition.time, store=store
            )
        if not isinstance(config, Structure) or not config.holds_queues:
            return
        announced = self._announced(config)
        changed = {
            name: value
            for name, value in definition.values.items()
            if value != announced.get(name, getattr(config, name))
        }
        subject = f"definition of {store}"
        if not changed:
            yield from self._feed.lasting(subject, None)
            return
        try:
            parse_attributes(config, "ALTER", changed)
        except EstateError as error:
            yield from self._feed.lasting(subject, Complaint("definition-changed", definition.place, str(error)))
            return
        yield from self._feed.lasting(subject, None)
        self._feed.announced[store] = {
            name: (value, getattr(config, name)) for name, value in (announced | changed).items()
        }
        yield {
            "time": definition.time,
            "qmgr": definition.qmgr,
            "op": "ALTER",
            "store": store,
            "attributes": changed,
        }

    def _announced(self, config: Structure) -> dict[str, Any]:
        """Return what was announced of a structure, but for what the estate has otherwise since: the job takes it."""
        before = self._feed.announced.get(config.name, {})
        return {name: value for name, (value, described) in before.items() if described == getattr(config, name, None)}

    def _queue(self, definition: Definition) -> Iterator[Item]:
        estate = self._intake.estate
        if estate is None:
            return
        queue = definition.key.partition("/")[2]
        number = estate.queue_routes.get((definition.qmgr, queue))
        if number is None:
            note_unknown_queue(self._intake, definition.qmgr, definition.time, queue)
            return
        store = estate.routes[number].store
        known = {"store": store, "MAXDEPTH": estate.max_depths.get(store, {}).get(queue)}
        seen = {"store": self._store_of(definition), "MAXDEPTH": definition.values["max_depth"]}
        changed = [
            f"{word} {seen[word]}, in the estate {value}"
            for word, value in known.items()
            if value is not None and seen[word] is not None and seen[word] != value
        ]
        text = f"queue {definition.key}: {', '.join(changed)}; {_EXPECTED}"
        complaint = Complaint("definition-changed", definition.place, text) if changed else None
        yield from self._feed.lasting(f"definition of {definition.key}", complaint)

    def _store_of(self, definition: Definition) -> str | None:
        """Return the store where a queue is defined to be; None if the page set of its storage class is not known."""
        owner = definition.key.partition("/")[0]
        if "structure" in definition.values:
            return f"{owner}/{definition.values['structure']}"
        storage_class = f"{owner}/{definition.values['storage_class']}"
        number = self._intake.facts.value("storage_class", storage_class, "page_set")
        return None if number is None else f"{owner}/PS{number:02d}"
