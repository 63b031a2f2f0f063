"""The cases of `tests/cases/feeds`: a site's files, whole, cut, again and line by line. A new folder is a new test."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from random import Random

import msgspec
import pytest

from tests.cases import FEEDS, estate_of, folders, outcome, pages_of, read
from tests.support.profile import examples
from twin.events import Decoder
from twin.feeds import Event, Page
from twin.recordings.files import LinesChunk

CASES = folders()
CUTS = examples(2)
JOINED = {"amqsevt", "display"}  # whose pages of a stream continue each other at any line
of_all = pytest.mark.parametrize("folder", CASES, ids=[str(folder.relative_to(FEEDS)) for folder in CASES])


def texts(events: list[Event]) -> set[bytes]:
    return {msgspec.json.encode(event) for event in events}


@of_all
def test_the_files_of_a_site_give_these_events_and_complaints(folder: Path) -> None:
    own = outcome(folder)
    if not (folder / "facts").exists():
        del own["facts"]
    files = {name: folder / name for name in own}
    expected = {name: path.read_text(encoding="utf-8") if path.exists() else "" for name, path in files.items()}
    assert own == expected, f"`python -m tests.cases {folder.relative_to(FEEDS.parents[2])}` writes what comes out now"


@of_all
def test_the_decoder_takes_every_event_of_a_case(folder: Path) -> None:
    events, _, _ = read(folder, pages_of(folder))
    decoded = LinesChunk(0, b"\n".join(map(msgspec.json.encode, events))).decode(Decoder(estate_of(folder)))
    assert not decoded.rejects
    assert len(decoded) >= len(events)  # a restart is an event of each store


@of_all
def test_files_that_are_cut_or_come_twice_are_complaints_at_most(folder: Path) -> None:
    pages = pages_of(folder)
    whole, _, _ = read(folder, pages)
    twice, intake, _ = read(folder, [*pages, *(dataclasses.replace(page, name=f"{page.name} again") for page in pages)])
    assert texts(twice) >= texts(whole)
    assert "reader-failed" not in intake.counts
    for seed in range(CUTS):
        rng = Random(seed)
        cut = [dataclasses.replace(page, data=page.data[: rng.randint(0, len(page.data))]) for page in pages]
        _, intake, _ = read(folder, cut)
        assert "reader-failed" not in intake.counts, seed
        assert all(own.read >= 0 for own in intake.inputs), seed


@pytest.mark.parametrize(
    "folder",
    [folder for folder in CASES if folder.parent.name in JOINED and (folder / "in").exists()],
    ids=lambda folder: str(folder.relative_to(FEEDS)),
)
def test_a_stream_gives_the_same_wherever_lines_are_cut(folder: Path) -> None:
    (page,) = pages_of(folder)
    lines = bytes(page.data).splitlines(keepends=True)

    def cut_at(ends: list[int]) -> list[Page]:
        parts = zip([0, *ends], [*ends, len(lines)], strict=True)
        return [
            dataclasses.replace(page, name=f"t/0@{number}", data=b"".join(lines[start:end]))
            for number, (start, end) in enumerate(parts)
        ]

    first, intake, _ = read(folder, cut_at(list(range(1, len(lines)))), is_stream=True)
    for seed in range(CUTS):
        rng = Random(seed)
        ends = sorted(rng.sample(range(1, len(lines)), rng.randint(0, len(lines) - 1)))
        events, own, feed = read(folder, cut_at(ends), is_stream=True)
        assert events == first, ends
        assert (own.counts.keys(), feed.begun_in) == (intake.counts.keys(), {}), ends
