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
    def _of_model(self, persistent: bool) -> int:
        """Pages or blocks that messages hold: persistent ones, or the others."""

    def _name(self, persistent: bool) -> str:
        """The field of the state record that counts those of persistent messages, or the others."""
        return f"{self.unit}_{'persistent' if persistent else 'nonpersistent'}"

    def _in_use(self, persistent: bool) -> int:
        """Pages or blocks in use, what is left of the baseline included (our reading)."""
        return self._of_model(persistent) + self._beyond(self._name(persistent))

    def _used(self) -> int:
        return self._in_use(persistent=True) + self._in_use(persistent=False)

    def _rebuild(self, attributes: dict[str, Any]) -> None:  # noqa: ARG002
        """Only structures are rebuilt: refused (our reading)."""
        self.refused_alters += 1

    # -- restart

    def _restarted(self) -> None:
        """Nonpersistent messages are gone (contract.md, 7, Events), those of the baseline too (our reading)."""
        for message in [message for message in self.messages if not message.persistent]:
            self._remove(message)
        if self.baseline is not None:
            self.baseline.restart(self._name(True), self._name(False), self.held.unmatched())

    # -- MEASURE

    def _new_baseline(self, measured: dict[str, Any]) -> NaiveBaseline:
        """Our reading: where messages were not measured, there is one for each page or block."""
        parts = {
            self._name(persistent): beyond(measured, self._name(persistent), self._of_model(persistent))
            for persistent in (True, False)
        }
        messages = sum(parts.values())
        if measured.get("messages") is not None:
            messages = beyond(measured, "messages", len(self.messages))
        return NaiveBaseline({"messages": messages} | parts, self.held.unmatched())
