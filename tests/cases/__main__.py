"""`python -m tests.cases PATH`: write what comes out of a case or a file of scripts; read it before you commit it."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cases import write
from tests.cases.scripts import written

for path in (Path(name).resolve() for name in sys.argv[1:]):
    if path.is_file():
        path.write_text(written(path), encoding="utf-8")
        continue
    write(path)
    for own in (path / "events", path / "complaints"):
        if own.exists():
            print(f"--- {own}\n{own.read_text(encoding='utf-8')}", end="")
