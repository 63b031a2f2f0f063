"""Mutated pages of every format: no crash, no undeclared error, no hang, and no event that a decoder would refuse."""

from __future__ import annotations

import random
import time

import msgspec
import pytest

from tests.support.profile import IS_LARGE
from tests.twin.feeds.live_samples import LIVE_PAGES
from tests.twin.feeds.read import read
from tests.twin.feeds.samples import PAGES
from twin.events import Decoder
from twin.feeds import FORMATS, Page

INPUTS = 1_000_000 if IS_LARGE else 400
MAX_SECONDS = 1.0  # of processor time for one page
NOON = 1_795_176_000_000_000
NUMBERS = (b"0", b"-1", b"99999999999999999999", b"1e999", b"null", b'""', b"[]", b"{}", b"\xff\xff\xff\xff", b"\0" * 8)


def mutated(rng, page, others):
    """Return a page with a few damages."""
    data = bytearray(page)
    for _ in range(rng.randint(1, 4)):
        first = rng.randrange(len(data) + 1)
        last = min(len(data), first + rng.choice((1, 1, 2, 8, 200)))
        match rng.randrange(8):
            case 0:
                data[first:last] = bytes(rng.randrange(256) for _ in range(last - first))
            case 1:
                del data[first:last]
            case 2:
                del data[first:]
            case 3:
                data[first:first] = data[first:last]
            case 4:
                data[first:first] = rng.choice(NUMBERS)
            case 5:
                data[first:last] = rng.choice(NUMBERS)
            case 6:
                other = rng.choice(others)
                start = rng.randrange(len(other))
                data[first:first] = other[start : start + 300]
            case _:
                for place in range(first, last):
                    data[place] ^= 1 << rng.randrange(8)
    return bytes(data)


def test_every_format_of_files_has_sample_pages():
    assert {name for name, format_ in FORMATS.items() if format_.is_file} <= PAGES.keys() | LIVE_PAGES.keys()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_mutated_pages_end_no_import(name, estate):
    rng = random.Random(name)
    others = [page for pages in PAGES.values() for page in pages]
    decoder = Decoder(estate)
    encoder = msgspec.json.Encoder()
    for number in range(INPUTS):
        page = mutated(rng, rng.choice(PAGES[name]), others)
        began = time.process_time()
        try:
            flows = rng.choice(("statistics", "accounting"))
            events, intake = read(name, Page(page, "page", NOON), estate=estate, qmgr="QM01", flows=flows)
        except Exception as error:  # noqa: BLE001  (the input that raised it must be shown)
            pytest.fail(f"{name}, input {number}: {type(error).__name__} {error}\n{page!r}")
        assert time.process_time() - began < MAX_SECONDS, (number, page)
        for complaint in intake.complaints:
            assert "\n" not in str(complaint)
        if events:
            rejects = decoder.ndjson([b"\n".join(map(encoder.encode, events))]).rejects
            assert rejects == [], (number, page)
