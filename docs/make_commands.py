"""The reference in docs/commands.md, generated from the help of the commands.

`make commands` writes it below the mark; the text above is written by hand. tests/test_docs.py compares the page with
the commands.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from cyclopts import App
from cyclopts.argument import Argument, ArgumentCollection

from deploy.cli import COMMANDS, JOBS, _new_app
from deploy.options.common import KAFKA
from deploy.options.feeds import FACTS, SERVER, SPANS

PAGE = Path(__file__).parent / "commands.md"
MARK = "<!-- make commands writes what follows -->\n"
_PAGES = {
    "acknowledge": "incidents.md#notes",
    "acted": "incidents.md#notes",
    "judge": "incidents.md#one-word-back",
    "advise": "what-if.md#advice",
    "alerts": "alerts.md",
    "bridge alertmanager": "surfaces.md#alertmanager",
    "checkpoint": "operations.md#checkpoint",
    "collect": "feeds.md#live-collection",
    "commission": "commission.md",
    "compare": "testing.md#two-estates",
    "tune": "forecast.md#when-a-page-pays",
    "console": "console.md",
    "estate": "estate.md",
    "export": "surfaces.md#metrics",
    "import": "feeds.md",
    "plan": "planned-work.md",
    "report": "report.md",
    "share": "recordings.md#share",
    "simulate": "recordings.md",
    "size": "sizing.md",
    "start": "your-own-data.md",
    "state": "time-travel.md",
    "stream": "operations.md",
    "whatif": "what-if.md",
}
_SHARED = {  # groups of options that several commands take: their heading, a command that has them all, and no more
    KAFKA: ("Every command that meets Kafka", "alerts", "options of Kafka"),
    FACTS: ("Facts that the data lack", "import", "facts that the data lack"),
    SPANS: ("OpenTelemetry spans", "import", "options of spans"),
    SERVER: ("A server that is asked", "start", "options of a server"),
}


def commands() -> Iterator[tuple[str, App]]:
    """Yield each command that does something, with its words: `size structure`, not `size`."""
    yield from _leaves(_new_app(), ())


def _leaves(app: App, path: tuple[str, ...]) -> Iterator[tuple[str, App]]:
    for name in app:
        if name.startswith("-"):
            continue
        own = app[name]
        if any(not word.startswith("-") for word in own):
            yield from _leaves(own, (*path, name))
        else:
            yield " ".join((*path, name)), own


def arguments(app: App) -> ArgumentCollection:
    """Return the arguments of a command that its help shows."""
    return app.assemble_argument_collection(parse_docstring=True).filter_by(show=True)


def reference() -> str:
    """Return the reference: the table of commands, options that several take, and a section for each command."""
    parts = [
        "## All commands\n",
        _table(
            ("to", "command", "purpose"),
            [(job.lower(), f"[`{name}`](#{name})", COMMANDS[name][1]) for job, names in JOBS.items() for name in names],
        ),
    ]
    shared: dict[str, str] = {}  # name of an option: link to its table
    for group, (heading, command, words) in _SHARED.items():
        own = [argument for argument in arguments(_new_app()[command]) if argument.parameter.group == (group,)]
        parts += [f"## {heading}\n", _options(own)]
        shared |= dict.fromkeys(map(_key, own), f"[{words}](#{heading.lower().replace(' ', '-')})")
    family = ""
    for command, app in commands():
        first, _, rest = command.partition(" ")
        if rest and first != family:
            parts.append(f"## {first}\n\n{_with_page(first, COMMANDS[first][1])}\n")
        family = first
        parts.append(f"{'###' if rest else '##'} {command}\n\n{_with_page(command, _text(app))}\n")
        own = list(arguments(app))
        if links := list(dict.fromkeys(shared[key] for key in map(_key, own) if key in shared)):
            parts.append(f"Also: {', '.join(links)}.\n")
        parts.append(_options([argument for argument in own if _key(argument) not in shared]))
    return "\n".join(filter(None, parts)).rstrip() + "\n"


def _key(argument: Argument) -> str:
    """Return what is the same of an option in all commands that share it: group, name and help."""
    return f"{argument.parameter.group} {argument.name} {argument.parameter.help}"


def _with_page(command: str, text: str) -> str:
    return f"{text} More: [{page.partition('#')[0]}]({page})." if (page := _PAGES.get(command)) else text


def _text(app: App) -> str:
    """Return the description of a command: its docstring up to the sections."""
    described = inspect.getdoc(app.default_command) or ""
    return _linked(described.partition("\n\nArgs:")[0])


def _linked(text: str) -> str:
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", text)


def _options(own: Sequence[Argument]) -> str:
    rows = []
    for argument in own:
        names = [name for name in argument.names if name.startswith("-")] or list(argument.names)
        rows.append(
            (", ".join(f"`{name}`" for name in names), _default(argument), _linked(argument.parameter.help or ""))
        )
    return _table(("option", "default", "meaning"), rows)


def _default(argument: Argument) -> str:
    if argument.required:
        return "required"
    value = argument.field_info.default
    if value is inspect.Parameter.empty or value is None or value in ((), ""):
        return ""
    return "off" if value is False else f"{value:g}" if isinstance(value, float) else str(value)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [headings, ["---"] * len(headings), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(' '.join(cell.split()) for cell in line)} |" for line in lines) + "\n"


def main() -> None:
    """Write the page."""
    by_hand = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    PAGE.write_text(by_hand + MARK + "\n" + reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
