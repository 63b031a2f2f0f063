"""What the stores of one queue manager have in common: page sets and queue files."""

from abc import abstractmethod
from typing import Any

from tests.naive.attributes import size_in_bytes
from tests.naive.baseline import NaiveBaseline, beyond
from tests.naive.store import NaiveStore

WORDS = ("expand", "version")


def in_bytes(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes as the estate or an event gives them, sizes as bytes."""
    return {name: value if name in WORDS else size_in_bytes(value) for name, value in attributes.items()}


class NaivePrivateStore(NaiveStore):
    """A store whose persistent and nonpersistent messages are counted apart, in pages or in blocks.

    `described`: attributes as the estate names them; those left out are at `defaults`.
    """

    unit: str  # "pages" or "blocks", as in the fields of the state record

    def __init__(self, described: dict[str, Any], defaults: dict[str, Any], aliases: dict[str, str] | None) -> None:
        super().__init__(aliases)
        self.attributes = defaults | in_bytes(described)

    def _name(self, persistent: bool) -> str:
        """The field of one of the two amounts."""
        return f"{self.unit}_{'persistent' if persistent else 'nonpersistent'}"

    @abstractmethod
    def _takes(self, new: dict[str, Any]) -> bool:
        """Whether the store can have those attributes."""

    @abstractmethod
    def _total(self) -> int:
        """Pages or blocks there are."""

    @abstractmethod
    def _of_model(self, persistent: bool) -> int:
        """Pages or blocks that messages hold: persistent ones, or the others."""

    @abstractmethod
    def _attributes_changed(self, new: dict[str, Any]) -> None:
        """Attributes have their new values: do what that brings."""

    def _in_use(self, persistent: bool) -> int:
        """Pages or blocks in use, what is left of the baseline included (our reading)."""
        return self._of_model(persistent) + self._beyond(self._name(persistent))

    def _used(self) -> int:
        return self._in_use(persistent=True) + self._in_use(persistent=False)

    # -- ALTER and REBUILD

    def _alter(self, attributes: dict[str, Any]) -> None:
        """Attributes count from this event on; messages already stored keep their cost (contract.md, 7, State)."""
        new = in_bytes(attributes)
        if not self._takes(new):
            self.refused_alters += 1
            return
        self.attributes |= new
        self._attributes_changed(new)

    def _rebuild(self, attributes: dict[str, Any]) -> None:  # noqa: ARG002
        """Only structures are rebuilt: refused (our reading)."""
        self.refused_alters += 1

    # -- restart

    def _restarted(self) -> None:
        """Nonpersistent messages are gone (contract.md, 7, Events), those of the baseline too (our reading)."""
        for message in [message for message in self.messages if not message.persistent]:
            self._remove(message)
        if self.baseline is not None:
            self.baseline.restart(self._name(persistent=True), self._name(persistent=False), self.held.unmatched())

    # -- MEASURE

    def _new_baseline(self, measured: dict[str, Any]) -> NaiveBaseline:
        """Our reading: where `messages` is not measured there are as many as pages or blocks."""
        found = self._measured(measured)
        amounts = {self._name(kind): beyond(found, self._name(kind), self._of_model(kind)) for kind in (True, False)}
        messages = sum(amounts.values())
        if measured.get("messages") is not None:
            messages = beyond(measured, "messages", len(self.messages))
        return NaiveBaseline({"messages": messages, **amounts}, self.held.unmatched())

    def _measured(self, measured: dict[str, Any]) -> dict[str, Any]:
        """What was measured, with what follows from it."""
        return measured

    def _compared(self, measured: dict[str, Any]) -> list[tuple[int, int, int]]:
        return [
            (self._in_use(persistent), measured[self._name(persistent)], self._total())
            for persistent in (True, False)
            if measured.get(self._name(persistent)) is not None
        ]
