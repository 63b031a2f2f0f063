"""Hooks of MkDocs: a folder for each version, the page of changes, and the texts of the pages beside them.

`make docs` builds `site/MAJOR.MINOR/` and leaves the folders of other versions as they are; `site/versions.json` lists
them for the selector of the theme, and `site/index.html` leads to the newest.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
CHANGELOG = ROOT / "CHANGELOG.md"
VERSIONS, INDEX = "versions.json", "index.html"
_REDIRECT = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={0}/"><a href="{0}/">{0}</a>\n'
)
_serves = [False]  # `mkdocs serve` has one version, at its root


def version() -> str:
    """Return the version that the pages are about, MAJOR.MINOR."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return ".".join(project["version"].split(".")[:2])


def on_startup(command: str, **_: object) -> None:
    """Note whether the site is built or served."""
    _serves[0] = command == "serve"


def on_config(config: MkDocsConfig) -> None:
    """Build into the folder of the version."""
    if not _serves[0]:
        config.site_dir = str(Path(config.site_dir) / version())


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Return the text of a page; that of changelog.md is CHANGELOG.md, with its links as seen from docs/."""
    if page.file.src_uri != "changelog.md":
        return markdown
    return CHANGELOG.read_text(encoding="utf-8").replace("](docs/", "](")


def on_post_build(config: MkDocsConfig) -> None:
    """Copy the texts of the pages, which llms.txt names, and list the versions."""
    site = Path(config.site_dir)
    for page in Path(config.docs_dir).glob("*.md"):
        shutil.copy(page, site)
    if not _serves[0]:
        list_versions(site.parent)


def list_versions(root: Path) -> None:
    """Write the list of the versions that a folder has, the newest first, and the way to that.

    Args:
        root: the folder of the folders of versions.
    """
    built = [folder.name for folder in root.iterdir() if (folder / INDEX).is_file()]
    newest_first = sorted(built, key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    entries = [
        {"version": name, "title": name, "aliases": ["latest"] if name == newest_first[0] else []}
        for name in newest_first
    ]
    (root / VERSIONS).write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    (root / INDEX).write_text(_REDIRECT.format(newest_first[0]), encoding="utf-8")
