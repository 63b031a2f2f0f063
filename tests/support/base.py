"""The packages of the extra `stream` hidden, as where they are missing: `pytest -p tests.support.base`, or `hide`."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from deploy.cli import STREAM_PACKAGES

_NEED_STREAM = {"test_commission.py", "test_shared_clock.py"}  # of tests/twin: they compare it with what the job does


class _Finder:
    """A finder of Python's, which does not find these packages."""

    def __init__(self, finder: Any) -> None:
        self._finder = finder

    def find_spec(self, name: str, *arguments: Any) -> ModuleSpec | None:
        return None if name in STREAM_PACKAGES else self._finder.find_spec(name, *arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)


def hide() -> None:
    """Hide the packages from imports of this process, before the first of them."""
    assert not STREAM_PACKAGES & sys.modules.keys()
    sys.meta_path[:] = [_Finder(finder) for finder in sys.meta_path]  # type: ignore[misc]


def pytest_configure() -> None:
    hide()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return True if collection_path.name in _NEED_STREAM else None
