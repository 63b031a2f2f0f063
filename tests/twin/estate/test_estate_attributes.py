"""The attributes of ALTER and REBUILD events: checked as the estate's are."""

from __future__ import annotations

import pytest

from twin.estate import (
    CouplingFacility,
    EstateError,
    PageSet,
    QueueFile,
    StoreConfig,
    Structure,
    UniformCluster,
    parse_attributes,
)

APP1 = Structure(name="QSG1/APP1", queue_sharing_group="QSG1", queue_managers=("QM01",), size=4 << 30, cf_level=5)
PS04 = PageSet(name="QM01/PS04", queue_manager="QM01", psid=4, pages=1000)
INVOICES = QueueFile(name="QMD1/INVOICES", queue_manager="QMD1", queue="INVOICES")
CF01 = CouplingFacility(name="CF01", size=64 << 30)
UC01 = UniformCluster(name="UC01", queue_managers=("A",), messages_per_second=1.0)


def test_sizes_become_bytes_and_words_those_of_the_model() -> None:
    attributes = {
        "size": "8G",
        "offld1_th": 60,
        "offld1_sz": "16K",
        "offload": "db2",
        "ds_block": "1M",
        "ds_expand": False,
    }
    assert parse_attributes(APP1, "ALTER", attributes) == {
        "size": 8 << 30,
        "offld1_th": 60,
        "offld1_sz": 16384,
        "offload": "DB2",
        "ds_block": 1 << 20,
        "ds_expand": False,
    }


@pytest.mark.parametrize(
    ("config", "attributes"),
    [
        (APP1, {"full_threshold": 0, "allow_auto_alter": True, "cf_level": 5, "init_size": 4096}),
        (PS04, {"expand": "NONE", "secondary_pages": 100, "pages": 5000, "buffer_pool": 2, "max_pages": 5000}),
        (INVOICES, {"max_size": 4096, "file_system_size": 8192}),
        (CF01, {"size": 4096, "scm": 8192}),
        (UC01, {"messages_per_second": 5.0}),
    ],
    ids=["structure", "page set", "queue file", "coupling facility", "uniform cluster"],
)
def test_each_kind_takes_its_own_attributes(config: StoreConfig, attributes: dict[str, object]) -> None:
    assert parse_attributes(config, "ALTER", attributes) == attributes


def test_a_rebuild_may_take_policy_values_away() -> None:
    assert parse_attributes(APP1, "REBUILD", {"scm_max_size": None, "init_size": None}) == {
        "scm_max_size": None,
        "init_size": None,
    }


def test_a_rebuild_may_change_nothing() -> None:
    assert parse_attributes(APP1, "REBUILD", {}) == {}


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"offld1_th": 170}, "ALTER of QSG1/APP1: offld1_th = 170: must be an integer of 0 to 100"),
        ({"ofld1_th": 60}, 'ALTER of QSG1/APP1: unknown attribute "ofld1_th"; did you mean offld1_th?'),
        ({"zzz": 60}, 'unknown attribute "zzz"; known are coupling_facility, size, '),
        ({"size": None}, "size = null: must be a whole number of bytes"),
        ({"size": "8GB"}, 'size = "8GB": must be a whole number of bytes, or of K, M, G or T, like "4G"'),
        ({"size": [1]}, "size = [1]: must be a whole number of bytes"),
        ({"size": "1G", "init_size": "2G"}, "init_size, 2G, must be at most size, 1G"),
        ({"cf_level": 4, "offload": "SMDS"}, 'offload "SMDS" needs cf_level 5'),
        ({"smds_prefix": 4}, "smds_prefix is an assumption of the model and fixed by the estate; what may change is"),
        ({"ds_expand": "YES"}, 'ds_expand = "YES": must be true or false'),
        ({"name": "QSG1/APP2"}, 'unknown attribute "name"'),
    ],
)
def test_what_is_wrong_names_key_value_and_what_would_be_right(attributes: dict[str, object], message: str) -> None:
    with pytest.raises(EstateError) as caught:
        parse_attributes(APP1, "ALTER", attributes)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_a_structure_is_rebuilt() -> None:
    with pytest.raises(EstateError, match="REBUILD of QM01/PS04: only a structure is rebuilt; send ALTER"):
        parse_attributes(PS04, "REBUILD", {"expand": "NONE"})


def test_what_concerns_volumes_and_file_systems_may_be_taken_away() -> None:
    none = {"max_pages": None, "secondary_pages": None}
    assert parse_attributes(PS04, "ALTER", none) == none
    assert parse_attributes(INVOICES, "ALTER", {"file_system_size": None}) == {"file_system_size": None}


@pytest.mark.parametrize(
    ("config", "attributes", "message"),
    [
        (PS04, {"pages": 1}, "ALTER of QM01/PS04: pages = 1: must be an integer of 2 to 16777216"),
        (PS04, {"pages": 100, "max_pages": 99}, "max_pages (99) must be at least pages (100)"),
        (
            PS04,
            {"drift_tolerance_pct": 1.0},
            "drift_tolerance_pct is an assumption of the model and fixed by the estate",
        ),
        (INVOICES, {"max_size": "2 TB"}, 'max_size = "2 TB": must be a whole number of bytes'),
        (
            *(INVOICES, {"default_q_buffer_size": "1M"}),
            "default_q_buffer_size is taken when the queue manager starts: change the estate; what may change is max_s",
        ),
    ],
)
def test_what_page_sets_and_queue_files_do_not_take(
    config: StoreConfig, attributes: dict[str, object], message: str
) -> None:
    with pytest.raises(EstateError) as caught:
        parse_attributes(config, "ALTER", attributes)
    assert message in str(caught.value)
