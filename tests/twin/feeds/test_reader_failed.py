"""Readers that fail at a file: a complaint, and the files behind it are read."""

from __future__ import annotations

import pytest

from tests.twin.feeds.read import read
from tests.twin.feeds.samples import SYSPRINT
from twin.feeds import Page
from twin.feeds.display import DisplayFeed

NOON = 1_795_176_000_000_000


@pytest.mark.parametrize("method", ["take", "finish"])
@pytest.mark.parametrize("error", [OverflowError("too large"), RecursionError(), AssertionError()], ids=repr)
def test_a_defect_of_a_reader_costs_a_file(method: str, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    known = getattr(DisplayFeed, method)

    def failing(self, *pages):
        if any(page.name == "bad" for page in pages) or method == "finish":
            raise error
        yield from known(self, *pages)

    monkeypatch.setattr(DisplayFeed, method, failing)
    pages = [Page(SYSPRINT.encode(), name, NOON) for name in ("bad", "good")]
    _, intake = read("display", *pages, qmgr="QM01")
    assert intake.counts["reader-failed"] == 1
    assert type(error).__name__ in intake.latest["reader-failed"].text
    assert intake.facts.section("structure")
