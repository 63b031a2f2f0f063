"""Commands as they are typed, and what they print. `tests/deploy/test_command_cases.py` runs them.

`commands/NAME.typed` has cases, between empty lines: `#` and a title, and commands behind `$ mqtwin`, run in
`commands/files`. Below a command stand the lines that it prints, behind `!` those of standard error, and behind `=` its
exit status unless that is 0. `python -m tests.cases FILE` writes what comes out.
"""

from __future__ import annotations

import io
import shlex
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from deploy.cli import main
from tests.cases.scripts import Script, scripts_of

COMMANDS = Path(__file__).with_name("commands")
PROMPT = "$ mqtwin "


def played(script: Script) -> list[str]:
    """Return the lines of a case as they come out."""
    return [line for own in script.text.splitlines() if own[0] != " " for line in (own, *_printed(own))]


def _printed(line: str) -> Iterator[str]:
    if not line.startswith(PROMPT):
        return
    out, err = io.StringIO(), io.StringIO()
    with chdir(COMMANDS / "files"), redirect_stdout(out), redirect_stderr(err):
        status = main(shlex.split(line.removeprefix(PROMPT)))
    yield from (f"  {text}".rstrip() for text in out.getvalue().splitlines())
    yield from (f"  ! {text}" for text in err.getvalue().splitlines())
    if status:
        yield f"  = {status}"


def typed_cases() -> list[Script]:
    """Return all cases."""
    return scripts_of(*sorted(COMMANDS.glob("*.typed")))


def written(path: Path) -> str:
    """Return a file of cases as it comes out."""
    return "\n".join("\n".join([*played(script), ""]) for script in scripts_of(path))
