"""docs/llms.txt: the pages of the navigation, each with its headings, for programs that read documentation.

`make commands` writes it; tests/test_docs.py compares it with the pages. The site has the texts of the pages under the
names that it lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

DOCS = Path(__file__).parent
PAGE = DOCS / "llms.txt"


def text() -> str:
    """Return the list, by the navigation of mkdocs.yml."""
    config = yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"))
    lines = [f"# {config['site_name']}\n\n> {config['site_description']}\n\n## Begin\n"]
    for part in config["nav"]:
        if isinstance(part, str):
            lines += _entries([part])
        else:
            for name, pages in part.items():
                lines += [f"\n## {name}\n", *_entries(pages)]
    return "\n".join(lines) + "\n"


def _entries(names: list[str]) -> Iterator[str]:
    for name in names:
        path = DOCS / name
        if path.suffix == ".md" and name != "changelog.md":  # whose text is CHANGELOG.md
            page = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
            title, *headings = re.findall(r"^##? (.*)$", page, re.MULTILINE)
            yield f"- [{title}]({name}){': ' + '; '.join(headings) if headings else ''}"


def main() -> None:
    """Write the list."""
    PAGE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
