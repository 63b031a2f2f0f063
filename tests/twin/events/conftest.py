from __future__ import annotations

import pytest

from tests.twin.events.samples import ESTATE, MQSC
from twin.estate import Estate, load_estate
from twin.events import Decoder
from twin.events.rules import Rules


@pytest.fixture(scope="session")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Two structures of QM01 and QM02, a page set of QM01, a queue file of QMD1."""
    folder = tmp_path_factory.mktemp("estate")
    (folder / "qsg1.mqsc").write_text(MQSC)
    (folder / "estate.toml").write_text(ESTATE)
    return load_estate(folder / "estate.toml")


@pytest.fixture(scope="session")
def decoder(estate: Estate) -> Decoder:
    return Decoder(estate)


@pytest.fixture(scope="session")
def rules(estate: Estate) -> Rules:
    return Rules(estate)
