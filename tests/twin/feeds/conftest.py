"""The estate of most cases of feeds, for their other tests."""

from __future__ import annotations

import pytest

from tests.cases import FEEDS, estate_of
from twin.estate import Estate

ESTATE = (FEEDS / "estate.toml").read_text(encoding="utf-8")


@pytest.fixture
def estate() -> Estate:
    return estate_of(FEEDS)


@pytest.fixture(scope="session")
def site() -> Estate:
    return estate_of(FEEDS)
