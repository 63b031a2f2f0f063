"""Blocks: split by store, packed, unpacked."""

from __future__ import annotations

import pickle

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis.extra import numpy as st_numpy

from kernels import EVENT
from kernels.buffers import split_lines
from kernels.json_scan import rfc3339_column, scan_json
from tests.naive import packing
from tests.twin.events.samples import GET, PUT, text
from twin.estate import Estate
from twin.events import BlockError, Decoded, Decoder, EventBlock

FIELDS = [name for name in EVENT.names or () if name != "pad"]


@st.composite
def event_arrays(draw: st.DrawFn) -> np.ndarray:
    events = np.zeros(draw(st.integers(0, 40)), EVENT)
    for name in FIELDS:
        kind = EVENT[name]
        shape = draw(st.sampled_from(["constant", "near", "far"]))
        if shape == "constant":
            events[name] = draw(st_numpy.from_dtype(kind))
        elif shape == "near":
            events[name] = draw(st_numpy.arrays(np.uint8, events.size))
        else:
            events[name] = draw(st_numpy.arrays(kind, events.size))
    return events


def ids(*numbers: int) -> np.ndarray:
    events = np.zeros(len(numbers), EVENT)
    events["uow"] = numbers
    return events


@given(event_arrays(), st.dictionaries(st.integers(0, 2**32 - 1), st.binary(max_size=20)), st.text(max_size=20))
@example(ids(2**63, 0), {}, "")
@example(ids(2**64 - 1, 2**64 - 2, 2**64 - 1), {}, "")
@example(ids(0, 2**63, 2**63 + 5), {}, "")
def test_what_is_packed_is_unpacked(events: np.ndarray, extras: dict[int, bytes], store: str) -> None:
    block = EventBlock.unpack(EventBlock(store, events, extras).pack())
    assert block.store == store
    assert block.events.tolist() == events.tolist()
    assert block.extras == extras
    assert block.events.dtype == EVENT
    assert block.events.flags.c_contiguous
    assert block.events.flags.writeable
    assert len(block) == events.size


@given(event_arrays().filter(len))
@example(ids(2**63, 0, 0, 5))
@example(ids(*[0] * 30, 7, *[0] * 30))
@example(ids(2**64 - 1, 2**63, 2**63 - 1, 0))
def test_columns_are_packed_as_an_oracle_packs_them(events: np.ndarray) -> None:
    columns = b"".join(packing.packed(events[name].astype(np.int64).tolist()) for name in FIELDS)
    assert EventBlock("", events, {}).pack().endswith(columns)


@given(event_arrays())
def test_packing_is_deterministic_and_takes_slices(events: np.ndarray) -> None:
    assert EventBlock("S", events[::2], {}).pack() == EventBlock("S", events[::2].copy(), {}).pack()


def traffic(count: int) -> np.ndarray:
    """Return the events of a busy structure: 20,000 events a second, puts and gets, random ids, three queues."""
    chance = np.random.default_rng(3)
    events = np.zeros(count, EVENT)
    events["time"] = 1_795_176_000_000_000 + np.cumsum(chance.integers(0, 100, count))
    events["msgid"] = chance.integers(0, 2**64, count, np.uint64)
    events["seq"] = 10**9 + np.arange(count) // 3 + chance.integers(0, 3, count)
    events["route"] = chance.integers(9, 12, count)
    events["op"] = chance.integers(0, 2, count)
    events["length"] = np.where(events["op"] == 0, chance.integers(100, 30_000, count), 0)
    events["count"] = 1
    events["flags"] = 4 + chance.integers(0, 2, count)
    return events


@pytest.mark.parametrize("count", [500, 5_000, 20_000])
def test_usual_traffic_takes_at_most_24_bytes_an_event(count: int) -> None:
    assert len(EventBlock("QSG1/APP1", traffic(count), {}).pack()) <= 24 * count


def test_a_column_that_never_changes_costs_nothing_an_event() -> None:
    events = np.zeros(10_000, EVENT)
    assert len(EventBlock("QSG1/APP1", events, {}).pack()) < 300


@given(st.data())
def test_damaged_bytes_are_an_error_not_a_block(data: st.DataObject) -> None:
    packed = EventBlock("QSG1/APP1", traffic(20), {3: b"{}"}).pack()
    with pytest.raises(BlockError):
        EventBlock.unpack(packed[: data.draw(st.integers(0, len(packed) - 1))])
    with pytest.raises(BlockError):
        EventBlock.unpack(packed + b"x")


def test_bits_that_name_more_numbers_than_there_are_are_an_error() -> None:
    packed = EventBlock("", ids(*[0] * 30, 7, *[0] * 30), {}).pack()
    bits = packed.index(bytes([0, 0, 0, 2]))
    with pytest.raises(BlockError, match="one for each of its bits"):
        EventBlock.unpack(packed[:bits] + b"\xff" + packed[bits + 1 :])


def test_another_version_is_an_error() -> None:
    packed = EventBlock("QSG1/APP1", traffic(1), {}).pack()
    with pytest.raises(BlockError, match="starts with"):
        EventBlock.unpack(packed[:3] + b"\x63" + packed[4:])
    with pytest.raises(BlockError, match="starts with"):
        EventBlock.unpack(b"something else")


def test_a_block_for_each_store_in_the_order_given(decoder: Decoder, estate: Estate) -> None:
    alter = {"time": PUT["time"], "qmgr": "QM01", "op": "ALTER", "store": "QSG1/APP2", "attributes": {"offld1_th": 6}}
    events = [GET, PUT | {"queue": "AUDIT"}, PUT | {"seq": 7}, alter, PUT | {"queue": "AUDIT", "seq": 8}]
    decoded = decoder.json([b"junk", *map(text, events)])
    first, second = decoded.blocks(estate)
    assert (first.store, second.store) == ("QSG1/APP1", "QSG1/APP2")
    assert first.events["seq"].tolist() == [-1, 7]
    assert second.events["seq"].tolist() == [1284, -1, 8]
    assert (first.extras, second.extras) == ({}, {1: b'{"offld1_th":6}'})
    assert (first.first, second.first) == ((1, 0), (2, 0))
    for block in (first, second):
        assert block.events.flags.c_contiguous
        assert block.events.flags.writeable


def test_one_store_needs_no_splitting(decoder: Decoder, estate: Estate) -> None:
    decoded = decoder.ndjson([text(GET) + b"\n" + text(PUT)])
    (block,) = decoded.blocks(estate)
    assert block.events is decoded.events
    assert block.first == (0, 0)


def test_what_is_decoded_pickles(decoder: Decoder) -> None:
    decoded = decoder.json([text(GET), b"junk"])
    again: Decoded = pickle.loads(pickle.dumps(decoded))
    assert again.events.tolist() == decoded.events.tolist()
    assert again.rejects == decoded.rejects


def test_a_decoder_pickles(decoder: Decoder) -> None:
    again: Decoder = pickle.loads(pickle.dumps(decoder))
    assert again.json([text(PUT)]).events.tolist() == decoder.json([text(PUT)]).events.tolist()


def test_compiled_code_is_made_once_for_all_kinds_of_arrays(decoder: Decoder) -> None:
    for first in (decoder, pickle.loads(pickle.dumps(decoder))):
        first.warm()
        for values in (
            [],
            [text(PUT)],
            [text(PUT), None],
            pa.array([text(PUT)] * 3)[1:],
            pa.chunked_array([[b"x"], [b""]]),
        ):
            first.json(values)
            first.ndjson(values)
        for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
            table = pa.table({"time": pa.array([PUT["time"]] * 3, kind), "msgid": pa.array(["a", None, "b"], kind)})
            first.arrow_table(table)
            first.arrow_table(table.slice(1))
    assert [len(compiled.signatures) for compiled in (scan_json, split_lines, rfc3339_column)] == [1, 1, 1]
