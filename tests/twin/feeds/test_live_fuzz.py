"""Mutated pages of every live format: no error but complaints, no hang, and no event that a decoder refuses."""

from __future__ import annotations

import copy
import random
import time

import msgspec
import pytest

from tests.support.profile import examples
from tests.twin.feeds.live_samples import LIVE_PAGES
from twin.events import Decoder
from twin.feeds import FORMATS, FeedOptions, Intake, Page, make_feed
from twin.recordings import LinesChunk

MAX_SECONDS = 1.0  # of processor time for one page
PIECES = (b"0", b"-1", b"9" * 30, b"1e999", b"NaN", b"null", b'""', b"[]", b"{}", b"\xff" * 4, b"\0" * 8, b"[" * 50)


VALUES = (None, -1, 0, 1.5, 2**63, 1e300, "", "x", "-5", "1e400", "NaN", True, [], {}, [[]], {"a": []}, "9" * 50)


def mutated(rng, page):
    data = bytearray(page)
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((1, 2, 8, 100)))
        match rng.randrange(5):
            case 0:
                data[start:end] = rng.randbytes(end - start)
            case 1:
                del data[start:end]
            case 2:
                data[start:start] = data[start:end]
            case 3:
                data[start:end] = rng.choice(PIECES)
            case _:
                for place in range(start, end):
                    data[place] ^= 1 << rng.randrange(8)
    return bytes(data)


def mutated_json(rng, page):
    """Return a JSON page with some values replaced by others; another page with damaged bytes."""
    try:
        content = msgspec.json.decode(page)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return mutated(rng, page)
    for _ in range(rng.randint(1, 3)):
        parent, key, node = None, None, content
        while isinstance(node, dict | list) and node and rng.random() < 0.9:
            parent, key = node, rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
            node = parent[key]
        if parent is not None:
            parent[key] = copy.deepcopy(rng.choice(VALUES))
    return msgspec.json.encode(content)


def test_every_live_format_has_pages():
    assert {name for name, format_ in FORMATS.items() if format_.is_live} <= LIVE_PAGES.keys()


@pytest.mark.parametrize("name", sorted(LIVE_PAGES))
def test_mutated_pages_are_complaints_at_most(name, site):
    rng = random.Random(name)
    decoder, intake = Decoder(site), Intake(site)
    feed = make_feed(name, intake, FeedOptions(qmgr="QM01", queue="ORDERS"))
    lines = []
    for number in range(examples(300)):
        damage = mutated if number % 2 else mutated_json
        page = damage(rng, rng.choice(LIVE_PAGES[name]))
        began = time.process_time()
        lines += map(msgspec.json.encode, intake.sift(feed.take(Page(page, f"page {number}", 1_795_176_000_000_000))))
        assert time.process_time() - began < MAX_SECONDS, page
    lines += map(msgspec.json.encode, intake.sift(feed.finish()))
    decoded = LinesChunk(0, b"\n".join(lines)).decode(decoder)
    assert decoded.rejects == []
