"""`python -m tests.cases PATH`: write what comes out of a case, a file of scripts or one of commands; read it first."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cases import commands, scripts, write

for path in (Path(name).resolve() for name in sys.argv[1:]):
    if path.is_file():
        kind = commands if path.suffix == ".typed" else scripts
        path.write_text(kind.written(path), encoding="utf-8")
        continue
    write(path)
    for own in (path / "events", path / "complaints"):
        if own.exists():
            print(f"--- {own}\n{own.read_text(encoding='utf-8')}", end="")
