"""An estate from texts given in the test."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from twin.estate import Estate, EstateError, load_estate

GROUP = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM02", "QM01"]
"""

Load = Callable[..., Estate]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """`load(toml, **{"qsg1.mqsc": text})`: the estate of those texts, written to files."""

    def load(toml: str, **files: str) -> Estate:
        for name, text in files.items():
            (tmp_path / name.replace("_", ".")).write_text(text, encoding="utf-8")
        path = tmp_path / "estate.toml"
        path.write_text(textwrap.dedent(toml), encoding="utf-8")
        return load_estate(path)

    return load


@pytest.fixture
def refused(load: Load, tmp_path: Path) -> Callable[..., str]:
    """Return the error for the estate of some texts, without the directory: one line."""

    def refused(toml: str, **files: str) -> str:
        with pytest.raises(EstateError) as caught:
            load(toml, **files)
        message = str(caught.value)
        assert "\n" not in message
        return message.replace(f"{tmp_path}/", "")

    return refused


@pytest.fixture
def qsg1(load: Load) -> Load:
    """Load the estate of an MQSC text of queue-sharing group QSG1 (QM01, QM02), with more TOML where given."""

    def qsg1(mqsc: str, more: str = "") -> Estate:
        imports = '[[import]]\nmqsc = "qsg1.mqsc"\nqueue_sharing_group = "QSG1"\n'
        sized = '[structure."QSG1/APP1"]\nsize = "4G"\n'
        return load(GROUP + imports + sized + textwrap.dedent(more), qsg1_mqsc=mqsc)

    return qsg1
