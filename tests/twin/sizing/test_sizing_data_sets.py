"""Shared message data sets, and storage class memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.estates import data_set
from tests.naive.smds import map_blocks, pages_of_length
from tests.support.store_driver import GIB, KIB, MIB
from tests.support.twin_driver import TwinDriver
from twin.base.errors import UsageError
from twin.estate.model import FIXED_AUGMENTED
from twin.sizing import bare_structure, parse_mix, plan_scm, plan_smds, plan_structure
from twin.sizing.structure import scm_bytes

# --- shared message data sets ----------------------------------------------------------------------------------------


def test_pages_blocks_and_space_map_of_64_kb_messages():
    """Check docs/storage-model.md: 16 pages each, four to a block of 256K, one map block."""
    plan = plan_smds(bare_structure(0), parse_mix(["64K:5000"]))
    assert (plan.pages, plan.data_blocks, plan.map_blocks) == (80_000, 1_250, 1)
    assert plan.least.bytes == 1_251 * 256 * KIB
    assert plan.least.pages == 1_251 * 64
    assert plan.least.cylinders == -(-1_251 * 64 // 180)


def test_a_second_map_block_comes_beyond_63_gib():
    """Check docs/storage-model.md: at 256K one map block covers exactly 63 GiB (APAR PI40571)."""
    of_63_gib = 63 * GIB // (256 * KIB)
    assert plan_smds(bare_structure(0), parse_mix([f"256K:{of_63_gib}"])).map_blocks == 1
    assert plan_smds(bare_structure(0), parse_mix([f"256K:{of_63_gib + 1}"])).map_blocks == 2


@given(
    length=st.integers(141, 2 * MIB),
    count=st.integers(1, 10**7),
    shift=st.integers(0, 7),
    prefix=st.integers(0, 400),
)
def test_a_data_set_just_holds_its_blocks_and_their_map_and_one_that_does_not_expand_is_used_to_90_percent(
    length, count, shift, prefix
):
    ds_block = 8 * KIB << shift
    plan = plan_smds(replace(bare_structure(0), smds_prefix=prefix), parse_mix([f"{length}:{count}"]), ds_block)
    assert plan.pages == count * pages_of_length(length, prefix)
    blocks = plan.least.bytes // ds_block
    assert blocks - map_blocks(blocks, ds_block) == plan.data_blocks
    roomy = plan.unexpanded.bytes // ds_block
    assert (plan.data_blocks + map_blocks(roomy, ds_block)) * 100 <= 90 * roomy
    assert (plan.data_blocks + map_blocks(roomy - 1, ds_block)) * 100 > 90 * (roomy - 1)


@pytest.mark.parametrize(("length", "count"), [(4_096, 100), (100_000, 13), (300_000, 7), (20_000, 50)])
def test_the_twin_puts_them_into_as_many_blocks(length, count):
    driver = TwinDriver(
        smds={"QM01": data_set(size=GIB)}, queue_managers=("QM01",), offld1_th=0, offld1_sz=0, size=64 * MIB
    )
    state = driver.put(length, count=count)["smds"]["QM01"]
    plan = plan_smds(bare_structure(0), parse_mix([f"{length}:{count}"]))
    assert (state["blocks_used"], state["pages_used"]) == (plan.data_blocks + 1, plan.pages)


def test_messages_too_short_to_be_offloaded_are_left_out_and_said():
    plan = plan_smds(bare_structure(0), parse_mix(["140:7", "141:5"]))
    assert plan.messages == 5
    assert plan.warnings == ("7 messages of at most 140 bytes are not offloaded",)
    with pytest.raises(UsageError, match="above 140 bytes"):
        plan_smds(bare_structure(0), parse_mix(["140:7"]))


def test_more_than_16_tb_is_said():
    assert "16T" in plan_smds(bare_structure(0), parse_mix(["100M:200000"])).warnings[0]


def test_a_wrong_block_size_is_answered_with_those_that_are_right():
    with pytest.raises(UsageError, match=r"DSBLOCK\(100K\); expected: 8K, 16K, .* 1M"):
        plan_smds(bare_structure(0), parse_mix(["64K:5"]), 100 * KIB)


# --- storage class memory --------------------------------------------------------------------------------------------


def test_scm_takes_256_bytes_an_entry_and_an_element_in_4_kb_blocks():
    """Check the bytes of docs/storage-model.md."""
    assert scm_bytes(1, 10) == 4096
    assert scm_bytes(1_000, 10_000) == 2_818_048  # 2,816,000 rounded up


def test_a_structure_with_scm_keeps_90_percent_of_3_percent_fewer_entries_and_elements():
    """How storage class memory works: threshold of 90 %, fewer entries and elements (docs/storage-model.md: 3 %)."""
    plan = plan_scm(bare_structure(4 * GIB), parse_mix(["100:3000000"]))
    assert (plan.ents_without, plan.ents_max) == (1_925_131, 1_867_377)
    assert plan.elems_max == 11_550_786 * 97 // 100
    assert plan.in_structure == 1_867_377 * 90 // 100
    assert plan.in_scm == 3_000_000 - plan.in_structure


def test_augmented_space_is_fixed_and_dynamic_and_not_of_the_structure():
    """How storage class memory works, SCMMAXSIZE: augmented space comes from the CF's own storage."""
    plan = plan_scm(bare_structure(4 * GIB), parse_mix(["2048:2500000"]))
    assert plan.aug_fixed == FIXED_AUGMENTED == 8 * MIB
    assert plan.aug_dynamic == -(-plan.scm_used * 2 // 100)
    assert plan.cf_storage == 4 * GIB + plan.aug_fixed + plan.aug_dynamic
    assert plan.scm_max_size % MIB == 0
    assert plan.scm_used <= plan.scm_max_size < plan.scm_used + MIB


def test_5_gb_of_2_kb_messages_do_not_fit_into_4_gb_and_fit_with_4_gb_of_scm():
    """IBM Q Replication report, pp. 7-13, by docs/storage-model.md."""
    messages = 5 * 10**9 // 2048
    mix = parse_mix([f"2048:{messages}"])
    assert plan_structure(bare_structure(0), mix, 4 * GIB)[0].fits < messages
    plan = plan_scm(bare_structure(4 * GIB), mix, 4 * GIB)
    assert plan.scm_used <= 4 * GIB
    assert not plan.warnings


def test_over_committed_scm_is_said():
    """How storage class memory works, SCMMAXSIZE: "Never over-commit SCM"."""
    mix = parse_mix(["2048:2500000"])
    assert "over-committed" in plan_scm(bare_structure(4 * GIB), mix, 2 * GIB).warnings[0]
    assert not plan_scm(bare_structure(4 * GIB), mix, 8 * GIB).warnings
    assert "beside 6G of other structures" in plan_scm(bare_structure(4 * GIB), mix, 8 * GIB, 6 * GIB).warnings[0]


def test_the_cfrm_text_names_structure_algorithm_and_maximum():
    """How storage class memory works: SCMALGORITHM and SCMMAXSIZE, both; KEYPRIORITY1 for shared queues."""
    config = replace(bare_structure(4 * GIB), name="QSG/APP1", queue_sharing_group="QSG", init_size=2 * GIB)
    plan = plan_scm(config, parse_mix(["2048:2500000"]), offloaded=True)
    assert plan.cfrm == (
        "STRUCTURE NAME(QSG@APP1) SIZE(4G) INITSIZE(2G) SCMALGORITHM(KEYPRIORITY1)"
        f" SCMMAXSIZE({plan.scm_max_size // MIB}M)"
    )


def test_a_backlog_that_fits_needs_no_scm():
    plan = plan_scm(bare_structure(4 * GIB), parse_mix(["2048:1000"]), 0)
    assert (plan.in_scm, plan.scm_used, plan.scm_max_size, plan.cfrm, plan.warnings) == (0, 0, 0, "", ())
