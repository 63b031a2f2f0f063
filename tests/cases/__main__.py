"""`python -m tests.cases FOLDER`: write what comes out of a case today, to be read before it is committed."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cases import write

for folder in map(Path, sys.argv[1:]):
    write(folder.resolve())
    for name in ("events", "complaints"):
        if (folder / name).exists():
            print(f"--- {folder / name}\n{(folder / name).read_text(encoding='utf-8')}", end="")
