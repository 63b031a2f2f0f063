"""Stores of both sides, so that each rule of the storage domain holds for the oracle and for the twin."""

from pathlib import Path

import pytest

from tests.support.oracle_driver import OracleDriver, OraclePageSetDriver, OracleQueueFileDriver, OracleScmDriver
from tests.support.store_driver import Open
from tests.support.twin_driver import PageSetDriver, QueueFileDriver, ScmDriver, TwinDriver


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the rules: they reach kernels that `make coverage` runs as Python."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.uncompiled)


@pytest.fixture(params=["oracle", "twin"])
def side(request: pytest.FixtureRequest) -> str:
    """Return the side that a test runs against."""
    return str(request.param)


@pytest.fixture
def structure(side: str) -> Open:
    """Return what opens a structure, tiny by default, with attributes as keyword arguments."""
    return {"oracle": OracleDriver, "twin": TwinDriver}[side]


@pytest.fixture
def scm_structure(side: str) -> Open:
    """Return what opens a structure with SCM, alone on its coupling facility: 38 entries, 232 elements by default."""
    return {"oracle": OracleScmDriver, "twin": ScmDriver}[side]


@pytest.fixture
def page_set(side: str) -> Open:
    """Return what opens a page set, by default of 100 pages (98 for messages) that does not expand."""
    return {"oracle": OraclePageSetDriver, "twin": PageSetDriver}[side]


@pytest.fixture
def queue_file(side: str) -> Open:
    """Return what opens a queue file, by default with buffers of 8 (nonpersistent) and 16 blocks (persistent)."""
    return {"oracle": OracleQueueFileDriver, "twin": QueueFileDriver}[side]
