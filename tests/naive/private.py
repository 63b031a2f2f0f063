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
        return self._of_model(persistent) + self._beyond("persistent" if persistent else "nonpersistent")

    def _used(self) -> int:
        return self._in_use(persistent=True) + self._in_use(persistent=False)

    # -- ALTER and REBUILD

    def _alter(self, attributes: dict[str, Any]) -> None:
        """Attributes count from this event on; messages already stored keep their cost (contract.md, 7, State)."""
        new = in_bytes(attributes)
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
            self.baseline.gone.append("nonpersistent")

    # -- MEASURE

    def _new_baseline(self, measured: dict[str, Any]) -> NaiveBaseline:
        shown = {
            "messages": beyond(measured, "messages", len(self.messages)),
            "persistent": beyond(measured, f"{self.unit}_persistent", self._of_model(persistent=True)),
            "nonpersistent": beyond(measured, f"{self.unit}_nonpersistent", self._of_model(persistent=False)),
        }
        return NaiveBaseline(shown, self.held.unmatched())

    def _compared(self, measured: dict[str, Any]) -> list[tuple[int, int, int]]:
        parts = ((f"{self.unit}_persistent", True), (f"{self.unit}_nonpersistent", False))
        return [
            (self._in_use(persistent), measured[name], self._total())
            for name, persistent in parts
            if measured.get(name) is not None
        ]
