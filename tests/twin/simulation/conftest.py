"""Estates of the tests of simulated traffic."""

from __future__ import annotations

import pytest

from tests.support.estates import small_estate
from twin.estate import Estate, load_estate
from twin.stores.open import open_message_store


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Three queue managers; some ten thousand messages fill QSG1/APP1."""
    return load_estate(small_estate(tmp_path_factory.mktemp("small")))


@pytest.fixture(autouse=True)
def _without_forecasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay without forecasts, which would take most of the time: states and full stores are compared."""
    monkeypatch.setitem(open_message_store.__kwdefaults__, "forecasts", False)
