"""Estates of the tests of simulated traffic."""

from __future__ import annotations

import pytest

from tests.estates import small_estate
from twin.estate import Estate, load_estate


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Three queue managers; some ten thousand messages fill QSG1/APP1."""
    return load_estate(small_estate(tmp_path_factory.mktemp("small")))
