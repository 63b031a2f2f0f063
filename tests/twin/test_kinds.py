"""Kinds of stores: one that lacks a part fails at import, with its name and what it lacks."""

from __future__ import annotations

from typing import ClassVar

import pytest

from twin.estate import QueueFile, QueueManagerLog
from twin.stores.open import MESSAGE_TWINS, SHARED_TWINS, check_kinds
from twin.stores.queue_file import QueueFileTwin, QueueManagerTwin


class StoreConfigOfTapes:
    """The config of a kind that nothing else knows."""

    kind: ClassVar[str] = "tape"


def test_a_kind_without_a_part_fails_with_its_name() -> None:
    with pytest.raises(TypeError, match="the kind tape lacks a twin"):
        check_kinds([StoreConfigOfTapes], MESSAGE_TWINS)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="the kind tape lacks a state record, in STATES"):
        check_kinds([StoreConfigOfTapes], {"tape": QueueFileTwin})  # type: ignore[list-item]


@pytest.mark.parametrize("part", ["identity", "resources", "conditions", "measurable", "known_by"])
def test_a_twin_without_a_part_fails_with_its_name(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(QueueFileTwin, part)
    with pytest.raises(TypeError, match=f"the kind queue_file lacks {part}"):
        check_kinds([QueueFile], MESSAGE_TWINS)


def test_a_shared_twin_that_names_no_values_fails_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(QueueManagerTwin, "takes")
    with pytest.raises(TypeError, match="the kind queue_manager lacks takes"):
        check_kinds([QueueManagerLog], SHARED_TWINS)


def test_a_resource_without_words_fails_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QueueFileTwin, "resources", {"reels": None})
    with pytest.raises(TypeError, match="the kind queue_file lacks words of reels, in RESOURCES"):
        check_kinds([QueueFile], MESSAGE_TWINS)
