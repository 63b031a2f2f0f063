"""The finder of commands in texts of actions takes time in proportion to their length."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.console.model import commands_in
from tests.twin.feeds.test_hostile_lines import REPEATED, is_in_proportion


@pytest.mark.parametrize("head", ["", "ALTER ", "D X"])
def test_no_text_of_an_action_is_quadratic(head: str, tmp_path: Path) -> None:
    def find(data: bytes, _: Path) -> None:
        commands_in(data.decode())

    assert not [
        text for text in (*REPEATED, "ALTER ", "D A ", "A ") if not is_in_proportion(find, head, text, tmp_path)
    ]
