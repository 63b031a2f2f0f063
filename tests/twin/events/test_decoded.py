"""Pieces of decoded events: what is cut keeps its rows, its origins and its texts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.twin.events.samples import PUT, text
from twin.events import Decoded, Decoder

MEASURE = {"time": PUT["time"], "qmgr": "QM01", "store": "QSG1/APP1", "op": "MEASURE"}


@pytest.fixture
def decoded(decoder: Decoder) -> Decoded:
    """Return six events a second apart; the second, the fourth and the last have texts of their own."""
    events = [PUT | {"msgid": str(i)} for i in range(6)]
    for i in (1, 3, 5):
        events[i] = MEASURE | {"measured": {"messages": i}}
    decoded = decoder.json([text(event) for event in events] + [b"no event"])
    assert len(decoded) == 6 and decoded.rejects
    decoded.events["time"] = np.arange(6) * 1_000_000
    return decoded


def contents(piece: Decoded) -> list[tuple[int, int, bytes | None]]:
    return [
        (int(time), int(record), piece.extras.get(row))
        for row, (time, record) in enumerate(zip(piece.events["time"], piece.record, strict=True))
    ]


@pytest.mark.parametrize("cuts", [(), (0, 6), (1,), (2, 2, 4), (1, 2, 3, 4, 5)])
def test_pieces_are_the_whole_and_none_is_empty(decoded: Decoded, cuts: tuple[int, ...]) -> None:
    pieces = list(decoded.split(cuts))
    assert all(len(piece) for piece in pieces) and not any(piece.rejects for piece in pieces)
    assert [row for piece in pieces for row in contents(piece)] == contents(decoded)
    assert np.cumsum([len(piece) for piece in pieces]).tolist() == sorted({*cuts, 6} - {0})


def test_nothing_has_no_pieces() -> None:
    assert list(Decoded(np.zeros(0), np.zeros(0), np.zeros(0)).split(())) == []


@pytest.mark.parametrize("rows", [[], [0], [1, 3], [5, 4, 1], [2, 3, 4, 5]])
def test_what_is_taken_has_its_own_texts(decoded: Decoded, rows: list[int]) -> None:
    picked = decoded.take(np.array(rows, np.int64))
    assert contents(picked) == [contents(decoded)[row] for row in rows] and not picked.rejects


def test_events_until_a_time_need_not_be_in_order(decoded: Decoded) -> None:
    decoded.events["time"][2] = 9_000_000  # a clock that is ahead
    assert contents(decoded.until(3_000_000)) == [contents(decoded)[row] for row in (0, 1, 3)]
    assert decoded.until(9_000_000) is decoded
