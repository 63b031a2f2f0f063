"""The four packages of mqtwin on Python's path: whether each is the one installed with mqtwin.

Their names are short: other distributions have a `kernels` or a `twin` too. Where such a package stands in front of
ours, or was installed over it, `import twin` and the command `mqtwin` say so on one line, before anything of it runs.
So this file needs the standard library only, and `mqtwin/__init__.py`, where the command begins, runs it by its path.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("kernels", "twin", "streams", "deploy")
MARK = '__distribution__ = "mqtwin"'  # a line of the `__init__.py` of each
_REMEDY = "expected: mqtwin in an environment of its own: pipx, uv tool install, or python3 -m venv"


def wrong_package(names: tuple[str, ...] = PACKAGES) -> str | None:
    """Return one line about the first package that is not mqtwin's, with the remedy, or None; imports none of them."""
    return next((_sentence(name) for name in names if not _is_ours(name)), None)


def _is_ours(name: str) -> bool:
    spec = _spec(name)
    if spec is None or spec.origin is None:  # missing, or a folder without `__init__.py`
        return False
    get_source = getattr(spec.loader, "get_source", None)  # pytest's loader has none
    source = Path(spec.origin).read_text(encoding="utf-8") if get_source is None else get_source(name)
    return source is None or MARK in source  # byte code alone says nothing


def _spec(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except ValueError:  # imported already, from no file
        return None


def _sentence(name: str) -> str:
    from importlib.metadata import packages_distributions  # slow to import, and needed where something is wrong only

    spec = _spec(name)
    places = [] if spec is None else [*(spec.submodule_search_locations or ()), spec.origin]
    where = f" in {places[0]}" if places else ""
    others = sorted(set(packages_distributions().get(name, ())) - {"mqtwin"})
    whose = f" but of {' and '.join(others)}" if others else ""
    return f"the package {name}{where} is not of mqtwin{whose}; {_REMEDY}"


def main() -> int:
    """Run the command `mqtwin` and return its exit status."""
    wrong = wrong_package()
    if wrong is not None:
        print(f"mqtwin: {wrong}", file=sys.stderr)
        return 2
    status: int = import_module("deploy.cli").main()  # by name: it is above this package
    return status
