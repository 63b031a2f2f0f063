"""A hook of MkDocs: the page of changes is CHANGELOG.md, with its links as seen from docs/."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Return the text of a page; that of changelog.md is CHANGELOG.md."""
    if page.file.src_uri != "changelog.md":
        return markdown
    return CHANGELOG.read_text(encoding="utf-8").replace("](docs/", "](")
