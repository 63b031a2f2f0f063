"""A passage of a page that a run writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class Passage(NamedTuple):
    """A passage of a page that a run writes.

    Attributes:
        page: the page.
        pattern: regular expression that fits the page once; its group is the passage.
        text: the passage, as the run has it.
    """

    page: Path
    pattern: str
    text: str

    def current(self) -> str:
        """Return the passage that the page has."""
        [passage] = re.findall(self.pattern, self.page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        return str(passage)

    def write(self) -> None:
        """Write the passage into the page."""
        page = self.page.read_text(encoding="utf-8")
        match = re.search(self.pattern, page, re.MULTILINE | re.DOTALL)
        assert match is not None, f"{self.page.name} lacks {self.pattern}"
        self.page.write_text(page[: match.start(1)] + self.text + page[match.end(1) :], encoding="utf-8")
