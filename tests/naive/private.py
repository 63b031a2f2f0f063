"""Base of the stores of a single queue manager: page sets and queue files."""

from abc import abstractmethod
from typing import Any

from tests.naive.attributes import size_in_bytes
from tests.naive.baseline import NaiveBaseline, beyond
from tests.naive.store import MQRC_Q_SPACE_NOT_AVAILABLE, MQRC_STORAGE_MEDIUM_FULL, Event, NaiveStore

WORDS = ("expand", "version")
ENOUGH = 20  # messages, whose mean counts


def in_bytes(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes of the estate or of an event, with sizes in bytes."""
    return {name: value if name in WORDS else size_in_bytes(value) for name, value in attributes.items()}


class NaivePrivateStore(NaiveStore):
    """A store that counts persistent and nonpersistent messages separately, in pages or in blocks.

    `described` has attributes with their names in the estate, `defaults` the others.
    """

    unit: str  # "pages" or "blocks", as in the fields of the state record

    def __init__(self, described: dict[str, Any], defaults: dict[str, Any], aliases: dict[str, str] | None) -> None:
        super().__init__(aliases)
        self.attributes = defaults | in_bytes(described)
        self.space: list[float] = []  # pages or blocks of each message stored, or refused for lack of room

    @abstractmethod
    def _of_model(self, persistent: bool) -> int:
        """Return the pages or blocks of the messages, persistent or nonpersistent ones."""

    def _name(self, persistent: bool) -> str:
        """Return the field of the state record that counts the pages or blocks."""
        return f"{self.unit}_{'persistent' if persistent else 'nonpersistent'}"

    def _in_use(self, persistent: bool) -> int:
        """Return the pages or blocks in use, including what is left of the baseline [assumed]."""
        return self._of_model(persistent) + self._beyond(self._name(persistent))

    def _used(self) -> int:
        return self._in_use(persistent=True) + self._in_use(persistent=False)

    def _rebuild(self, attributes: dict[str, Any]) -> None:  # noqa: ARG002
        """Refuse a REBUILD, which only structures have [assumed]."""
        self.refused_alters += 1

    # -- restart

    def _restarted(self) -> None:
        """Discard nonpersistent messages, and those of the baseline [assumed]."""
        for unit in self.units.open_units:  # in doubt
            unit.drop_nonpersistent()
        for message in [message for message in self.messages if not message.persistent]:
            self._remove(message)
        if self.baseline is not None:
            self.baseline.restart(self._name(True), self._name(False), self.held.unmatched())

    # -- the mean of a message

    @abstractmethod
    def _space_of_kept(self, length: int) -> float:
        """Return the pages or blocks of a message that is kept."""

    def _space_of_refused(self, length: int) -> float:
        """Return the pages or blocks that a message would take."""
        return self._space_of_kept(length)

    def _put_done(self, message: Any, unit: Any) -> None:  # noqa: ARG002
        self.space.append(self._space_of_kept(message.length))

    def _failed(self, event: Event) -> None:
        super()._failed(event)
        if event["op"] == "PUT" and event["reason"] in (MQRC_STORAGE_MEDIUM_FULL, MQRC_Q_SPACE_NOT_AVAILABLE):
            self.space += [self._space_of_refused(event["length"])] * event.get("count", 1)

    def _usual_space(self) -> float:
        """Return the pages or blocks of a message on average; 0: too few are known."""
        return round(sum(self.space) / len(self.space), 6) if len(self.space) >= ENOUGH else 0.0

    def _known_by(self, measured: dict[str, Any]) -> float:
        """Return the messages of the model; where nothing counts them, by what it has in use."""
        if super()._messages_by(measured) is None and self._space_by(measured) is not None:
            return self._space_of_model(measured) / (self._usual_space() or 1.0)
        return super()._known_by(measured)

    def _space_of_model(self, measured: dict[str, Any]) -> int:  # noqa: ARG002
        """Return the pages or blocks in use by the model, where a measurement has them."""
        return self._used()

    @abstractmethod
    def _space_by(self, measured: dict[str, Any]) -> int | None:
        """Return the pages or blocks in use by a measurement."""

    def _messages_by(self, measured: dict[str, Any]) -> float | None:
        """Return the messages, by what is in use where nothing counts them."""
        counted, used = super()._messages_by(measured), self._space_by(measured)
        return used / (self._usual_space() or 1.0) if counted is None and used is not None else counted

    # -- MEASURE

    def _new_baseline(self, measured: dict[str, Any]) -> NaiveBaseline:
        """Return the baseline. Assumed: if messages were not measured, there is one per page or block.

        `measured` also has what follows from the measurement.
        """
        parts = {
            self._name(persistent): beyond(measured, self._name(persistent), self._of_model(persistent))
            for persistent in (True, False)
        }
        messages = sum(parts.values())
        if measured.get("messages") is not None:
            messages = beyond(measured, "messages", len(self.messages))
        known = {name for name in ("messages", *parts) if measured.get(name) is not None}
        return NaiveBaseline({"messages": messages} | parts, self.held.unmatched(), known)
