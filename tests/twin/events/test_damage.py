"""A damaged Arrow stream loses itself and nothing else."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.ipc
import pytest

from tests.twin.events.samples import GET, PUT
from tests.twin.events.test_arrow import stream
from twin.events import Decoder, Reason, to_table

pytestmark = pytest.mark.uncompiled

WHOLE = to_table([PUT | {"seq": n, "msgid": f"m{n}"} for n in range(10)] + [GET])


def damaged(decoder: Decoder, value: bytes) -> tuple[list[int], str]:
    """Rows kept of a damaged value, and the detail of its dead letter; its neighbours come through whole."""
    sound = stream(WHOLE)
    decoded = decoder.arrow([sound, value, sound])
    assert (decoded.record == 0).sum() == (decoded.record == 2).sum() == 11
    (reject,) = [reject for reject in decoded.rejects if reject.reason == Reason.BAD_ARROW]
    rows = decoded.index[decoded.record == 1].tolist()
    assert (reject.record, reject.index, reject.value) == (1, len(rows), value)
    assert reject.detail.endswith("expected: one whole Arrow IPC stream")
    return rows, reject.detail


@pytest.mark.parametrize("value", [b"", b"junk", b"{}", b"\xff\xff\xff\xff\x10\x00\x00\x00junk", b"\x00" * 1000])
def test_bytes_that_are_no_stream(decoder: Decoder, value: bytes) -> None:
    assert damaged(decoder, value)[0] == []


def test_a_record_without_value(decoder: Decoder) -> None:
    decoded = decoder.arrow(pa.array([None, stream(WHOLE)], pa.binary()))
    assert [(r.record, r.reason, r.value) for r in decoded.rejects] == [(0, Reason.BAD_ARROW, b"")]
    assert len(decoded) == 11


def test_whole_batches_before_the_damage_are_kept(decoder: Decoder) -> None:
    value = stream(WHOLE, WHOLE, WHOLE)
    first, both = len(stream(WHOLE)), len(stream(WHOLE, WHOLE))
    assert damaged(decoder, value[: both + 40])[0] == [*range(22)]
    assert damaged(decoder, value[: first + 40])[0] == [*range(11)]
    assert damaged(decoder, value[:200])[0] == []


def test_bytes_after_the_end(decoder: Decoder) -> None:
    rows, detail = damaged(decoder, stream(WHOLE) + b"more")
    assert rows == [*range(11)]
    assert detail.startswith("4 bytes follow the end of the stream")


def test_a_file_is_no_stream(decoder: Decoder) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, WHOLE.schema) as writer:
        writer.write_table(WHOLE)
    rows, detail = damaged(decoder, sink.getvalue().to_pybytes())
    assert rows == []
    assert detail.startswith("an Arrow IPC file; ")


def test_strings_that_are_not_utf8(decoder: Decoder) -> None:
    rows, detail = damaged(decoder, stream(WHOLE).replace(b"m3", b"\xff3"))
    assert rows == []
    assert "UTF8" in detail


def test_names_that_are_not_utf8(decoder: Decoder) -> None:
    more = WHOLE.append_column("inner", pa.array([{"abcd": 1}] * 11))
    for name in (b"priority", b"abcd"):
        assert damaged(decoder, stream(more).replace(name, b"\xff" * len(name)))[0] == []
    assert damaged(decoder, stream(WHOLE).replace(b"UTC", b"\xff\xffC"))[0] == []


def test_random_damage_raises_nothing_and_spares_the_neighbours(decoder: Decoder) -> None:
    chance = random.Random(20261121)
    sound = stream(WHOLE)
    values = [sound, stream(WHOLE, WHOLE, compression="zstd"), stream(WHOLE, compression="lz4")]
    for _ in range(1500):
        value = bytearray(chance.choice(values))
        for _ in range(chance.choice([1, 1, 2, 10])):
            i = chance.randrange(len(value))
            if chance.random() < 0.7:
                value[i] = chance.choice([0, 1, 127, 128, 255, chance.randrange(256)])
            elif chance.random() < 0.5:
                del value[i : i + 8]
            else:
                value[i:i] = chance.randbytes(8)
        decoded = decoder.arrow([sound, bytes(value), sound])
        assert (decoded.record == 0).sum() == (decoded.record == 2).sum() == 11
