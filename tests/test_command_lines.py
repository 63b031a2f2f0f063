"""Command lines of the docs: each is read by the real commands; at night those that need no other system run.

A line of a `console` block is read whole, as the shell would pass it. One within a sentence, or with an ellipsis,
leaves out what the sentence does not need: its words and options are compared with those of the command.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from cyclopts import App, CycloptsError

from deploy.cli import _new_app, main
from docs.make_commands import arguments

ROOT = Path(__file__).resolve().parents[1]
TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md")
}
PROGRAM = re.compile(r"(?:\S*/)?mqtwin|uvx --from \S+ mqtwin")
OWN = {"--help", "--version", "--debug"}  # of mqtwin itself


class Line(NamedTuple):
    """A command line of a page. words: what follows `mqtwin`."""

    page: str
    words: tuple[str, ...]
    is_whole: bool

    def __str__(self) -> str:
        return f"{self.page}: mqtwin {shlex.join(self.words)}"


def blocks(text: str) -> list[list[str]]:
    """Return the commands of each `console` block, continued lines joined."""
    console = re.findall(r"^```console[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [re.findall(r"^\$ (.*)$", block.replace("\\\n", " "), re.MULTILINE) for block in console]


def parts(command: str) -> Iterator[list[str]]:
    """Yield the words of each command of a line: those that `|`, `;` and `&&` divide. A comment ends the line."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|;&")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("|;&"):
            yield words
            words = []
        else:
            words.append(word)
    yield words


def lines() -> Iterator[Line]:
    for page, text in TEXTS.items():
        for command in (command for block in blocks(text) for command in block):
            for words in parts(command):
                own = " ".join(words[:4]) if words[:1] == ["uvx"] else " ".join(words[:1])
                if PROGRAM.fullmatch(own):
                    rest = tuple(words[len(own.split()) :])
                    yield Line(page, rest, "..." not in rest)
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        for command in re.findall(r"`(?:\.venv/bin/|uvx --from \S+ )?mqtwin\s+([^`]*)`", prose):
            yield Line(page, tuple(shlex.split(command)), is_whole=False)


LINES = list(dict.fromkeys(lines()))


@pytest.fixture(scope="module")
def app() -> App:
    return _new_app()


def command_of(app: App, words: tuple[str, ...]) -> tuple[App, tuple[str, ...]]:
    """Return the command that words begin with, and the other words."""
    while words and words[0] in app and not words[0].startswith("-"):
        app, words = app[words[0]], words[1:]
    return app, words


@pytest.mark.parametrize("line", [line for line in LINES if line.is_whole], ids=str)
def test_a_command_line_is_read(line, app, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    try:
        app.parse_args(line.words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        pytest.fail(f"{line}: {error}")


@pytest.mark.parametrize("line", [line for line in LINES if not line.is_whole], ids=str)
def test_a_command_in_a_sentence_has_its_options(line, app):
    own, rest = command_of(app, line.words)
    assert own is not app or rest[0] in {"COMMAND", *OWN}, f"{line}: no such command"
    if own.default_command is not None:  # not a group of commands
        known = OWN.union(*(argument.names for argument in arguments(own)))
        assert {word for word in rest if word.startswith("-")} <= known | {"-"}, str(line)  # -: standard input


def test_commands_are_found_wherever_they_stand():
    assert list(parts("amqsevt -o json | mqtwin collect amqsevt - && cd x")) == [
        ["amqsevt", "-o", "json"],
        ["mqtwin", "collect", "amqsevt", "-"],
        ["cd", "x"],
    ]
    assert {line.words[0] for line in LINES if line.is_whole} > {"collect", "replay", "stream"}


# --- what runs -------------------------------------------------------------------------------------------------------

RUNS = {"advise", "commission", "estate", "replay", "report", "simulate", "size", "whatif"}
# Inputs that only a site has: SMF, logs, policies, and what became of them. The tests of feeds read such files.
SITE = {"MONDAY.SMF", "monday.ndjson.zst", "display:qm01.joblog", "recording.arrow"}


def is_run(line: Line) -> bool:
    return line.is_whole and line.words[0] in RUNS and "--bootstrap-servers" not in line.words


RUN = {page: [line for line in LINES if line.page == page and is_run(line)] for page in TEXTS}
RUN = {page: own for page, own in RUN.items() if own}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what the pages take for granted: estates of a clone, recordings of the quick start."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "twin" / "simulation", folder / "twin" / "simulation")
    shutil.copy(ROOT / "twin" / "simulation" / "demo.toml", folder / "estate.toml")
    for name in ("friday.arrow", "friday.ndjson.zst", "friday-measured.ndjson", "events.ndjson.zst"):
        out = str(folder / name)
        assert (
            main(["simulate", "getter-outage", "--estate", str(folder / "estate.toml"), "-o", out, "--seed", "1"]) == 0
        )
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize("page", RUN)
def test_the_command_lines_of_a_page_run(page, site, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "site"
    shutil.copytree(site, folder)
    monkeypatch.chdir(folder)
    for line in RUN[page]:
        if SITE.isdisjoint(line.words):
            right = {0, 1} if line.words[0] == "commission" else {0}  # 1: not fit, which the page is about
            assert main(list(line.words)) in right, f"{line}\n{capsys.readouterr().err}"


def test_a_line_that_does_not_run_needs_another_system():
    others = {line.words[0] for line in LINES if line.is_whole and not is_run(line)}
    stopped = {"alerts", "bridge", "broker", "collect", "console", "demo", "export", "mcp", "record", "stream"}
    once = {"acknowledge", "acted", "checkpoint", "commission", "import", "plan", "publish", "report", "start", "state"}
    once |= {"act", "acts", "compare", "judge", "share", "tune"}
    assert others <= stopped | once
