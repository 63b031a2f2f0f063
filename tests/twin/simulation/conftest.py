"""Estates of the tests of simulated traffic."""

from __future__ import annotations

import pytest

from tests.support.estates import small_estate
from twin.estate import Estate, load_estate
from twin.stores.page_set import PageSetTwin
from twin.stores.queue_file import QueueFileTwin
from twin.stores.structure import StructureTwin


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Three queue managers; some ten thousand messages fill QSG1/APP1."""
    return load_estate(small_estate(tmp_path_factory.mktemp("small")))


@pytest.fixture(autouse=True)
def _without_forecasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay without forecasts, which would take most of the time: states and full stores are compared."""
    for kind in (StructureTwin, PageSetTwin, QueueFileTwin):
        monkeypatch.setattr(kind, "has_fill_model", False)
