"""The base alone: the packages of the extra `stream` hidden, as where they are missing, by `hide`.

`pytest -p tests.support.base` runs the tests of the base, which are those that import no package of an extra: a file
that does is skipped, and so is a test that does while it runs, or that runs a command which does. `make matrix` runs
them in an environment without the extras.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

from deploy import cli
from deploy.cli import STREAM_PACKAGES

OF_EXTRAS = STREAM_PACKAGES | {"authlib", "joserfc"}  # those of sign-in; the tests' tools have the rest


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
    """Hide the packages, and skip the test whose command lacks one."""
    hide()
    explain = cli._explained

    def skip_or_explain(error: Exception) -> tuple[str, int]:
        if lacked := _lacked(error):
            pytest.skip(f"needs {lacked}")
        return explain(error)

    cli._explained = skip_or_explain


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Skip a file that imports one of the packages, and a folder whose fixtures do."""
    report = yield
    report = _skipped(report, report.call.excinfo, collector)
    if report.skipped:  # whoever imports this file has to fail for the same reason, not for half a module
        for name, module in list(sys.modules.items()):
            if getattr(module, "__file__", None) == str(collector.path):
                del sys.modules[name]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Skip a test that imports one of them while it runs."""
    report = yield
    return _skipped(report, call.excinfo, item)


def _skipped(
    report: Any, raised: pytest.ExceptionInfo[BaseException] | None, node: pytest.Item | pytest.Collector
) -> Any:
    lacked = _lacked(raised.value) if raised else ""
    if lacked:
        report.outcome, report.longrepr = "skipped", (str(node.path), 1, f"needs {lacked}")
    return report


def _lacked(error: BaseException | None) -> str:
    """Return the package that an import asked for in vain; "": an error has another reason."""
    while error is not None:
        package = (error.name or "").partition(".")[0] if isinstance(error, ImportError) else ""
        if package in OF_EXTRAS:
            return package
        error = error.__cause__ or (error.__context__ if isinstance(error, ImportError) else None)
    return ""
