"""The TOML file: every key of docs/estate.md, and errors in one line with the expected value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from twin.estate import (
    CouplingFacility,
    EstateError,
    PageSet,
    QueueFile,
    Smds,
    Structure,
    UniformCluster,
    load_estate,
    summary,
)
from twin.estate.routes import read_saved_estate, save_estate

EVERYTHING = """
schema = 1
[coupling_facility.CF01]
size = "64G"
scm = "256G"
[queue_sharing_group.QSG1]
queue_managers = ["QM02", "QM01"]
[queue_manager.QM01]
platform = "zos"
version = "9.4"
[queue_manager.QMD1]
platform = "distributed"
[structure."QSG1/APP1"]
coupling_facility = "CF01"
size = "4G"
init_size = "2G"
full_threshold = 75
allow_auto_alter = true
scm_max_size = "8G"
cf_level = 5
offload = "SMDS"
offld1_th = 60
offld1_sz = "16K"
offld2_th = 0
offld2_sz = "64K"
offld3_th = 85
offld3_sz = "0K"
ds_block = "1M"
ds_expand = false
smds_prefix = 300
offload_min_length = 120
drift_tolerance_pct = 7.5
[smds."QSG1/APP1/QM01"]
size = "10G"
secondary = "1G"
max_size = "1.5T"
[page_set."QM01/4"]
pages = 20000
expand = "SYSTEM"
secondary_pages = 2000
buffer_pool = 3
[storage_class."QM01/DEFAULT"]
page_set = 4
[queue."QSG1/ORDERS"]
structure = "APP1"
[queue."QM01/LOCAL.REPLIES"]
storage_class = "DEFAULT"
[queue_file."QMD1/INVOICES"]
max_size = "2T"
[uniform_cluster.UC01]
queue_managers = ["UC01QM02", "UC01QM01"]
messages_per_second = 21070
"""

GROUP = 'schema = 1\n[queue_sharing_group.QSG1]\nqueue_managers = ["QM01", "QM02"]\n'
APP1 = '[structure."QSG1/APP1"]\nsize = "4G"\n'

Load = Callable[..., object]
Refused = Callable[..., str]


def test_every_key_of_the_contract_is_in_the_model(load: Load) -> None:
    estate = load(EVERYTHING)
    assert list(estate.stores) == ["CF01", "QM01/PS04", "QMD1", "QMD1/INVOICES", "QSG1/APP1", "UC01"]
    assert estate.stores["QSG1/APP1"] == Structure(
        name="QSG1/APP1",
        queue_sharing_group="QSG1",
        queue_managers=("QM01", "QM02"),
        coupling_facility="CF01",
        size=4 << 30,
        init_size=2 << 30,
        full_threshold=75,
        allow_auto_alter=True,
        scm_max_size=8 << 30,
        cf_level=5,
        offload="SMDS",
        offld1_th=60,
        offld1_sz=16384,
        offld2_th=0,
        offld2_sz=65536,
        offld3_th=85,
        offld3_sz=0,
        ds_block=1 << 20,
        ds_expand=False,
        smds_prefix=300,
        offload_min_length=120,
        drift_tolerance_pct=7.5,
        queues=("ORDERS",),
        smds={"QM01": Smds(size=10 << 30, secondary=1 << 30, max_size=3 << 39), "QM02": Smds(size=16 << 40)},
    )
    assert estate.stores["QM01/PS04"] == PageSet(
        name="QM01/PS04",
        queue_manager="QM01",
        psid=4,
        pages=20000,
        expand="SYSTEM",
        secondary_pages=2000,
        buffer_pool=3,
        version="9.4",
        queues=("LOCAL.REPLIES",),
    )
    assert estate.stores["QMD1/INVOICES"] == QueueFile(
        name="QMD1/INVOICES", queue_manager="QMD1", queue="INVOICES", max_size=2 << 40
    )
    assert estate.stores["CF01"] == CouplingFacility(
        name="CF01", size=64 << 30, scm=256 << 30, structures=("QSG1/APP1",), queue_managers=("QM01", "QM02")
    )
    assert estate.stores["UC01"] == UniformCluster(
        name="UC01", queue_managers=("UC01QM01", "UC01QM02"), messages_per_second=21070.0
    )


def test_the_kinds_have_the_names_of_the_contract(load: Load) -> None:
    kinds = {name: store.kind for name, store in load(EVERYTHING).stores.items()}
    assert kinds == {
        "CF01": "coupling_facility",
        "QM01/PS04": "page_set",
        "QMD1": "queue_manager",
        "QMD1/INVOICES": "queue_file",
        "QSG1/APP1": "structure",
        "UC01": "uniform_cluster",
    }


def test_a_structure_of_size_only_has_the_documented_defaults(load: Load) -> None:
    app1 = load(GROUP + APP1).stores["QSG1/APP1"]
    assert (app1.cf_level, app1.offload) == (5, "SMDS")
    assert [(rule.th, rule.sz) for rule in app1.rules] == [(70, 32768), (80, 4096), (90, 0)]
    assert (app1.full_threshold, app1.allow_auto_alter, app1.init_size, app1.scm_max_size) == (80, False, None, None)
    assert (app1.ds_block, app1.ds_expand, app1.smds_prefix, app1.offload_min_length) == (262144, True, 0, 140)


def test_below_cf_level_5_there_are_no_offload_rules(load: Load) -> None:
    assert load(GROUP + APP1 + "cf_level = 4\n").stores["QSG1/APP1"].offload == "NONE"


def test_a_page_set_may_be_written_with_two_digits(load: Load) -> None:
    assert "QM01/PS04" in load('schema = 1\n[queue_manager.QM01]\n[page_set."QM01/04"]\npages = 100\n').stores


def test_a_secondary_allocation_of_zero_is_none(load: Load) -> None:
    estate = load(GROUP + APP1 + '[smds."QSG1/APP1/QM01"]\nsize = "1G"\nsecondary = 0\n')
    assert estate.stores["QSG1/APP1"].smds["QM01"].secondary is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('sise = "4G"', """structure."QSG1/APP1": unknown key "sise"; did you mean size?"""),
        ("offld1_th = 170", """structure."QSG1/APP1".offld1_th = 170: must be an integer of 0 to 100"""),
        ('offld1_th = "70"', """.offld1_th = "70": must be an integer of 0 to 100"""),
        ("offld1_th = true", ".offld1_th = true: must be an integer of 0 to 100"),
        ('offld1_sz = "65K"', """.offld1_sz = "65K": must be 0 to 64K"""),
        (
            'init_size = "4GB"',
            """.init_size = "4GB": must be a whole number of bytes, or of K, M, G or T, like "4G\"""",
        ),
        ('init_size = "5G"', "init_size, 5G, must be at most size, 4G"),
        ("init_size = 0", ".init_size = 0: must be at least 1"),
        ("cf_level = 6", "must be an integer of 1 to 5"),
        ('ds_block = "100K"', "must be 8K, 16K, 32K, 64K, 128K, 256K, 512K or 1M"),
        ('ds_expand = "YES"', """.ds_expand = "YES": must be true or false"""),
        ('offload = "DISK"', """.offload = "DISK": must be SMDS, DB2 or NONE"""),
        ('cf_level = 4\noffload = "SMDS"', '.offload = "SMDS": offload "SMDS" needs cf_level 5, it is 4'),
        ('offload = "NONE"', 'at 5 it must be "SMDS" or "DB2"'),
        ("smds_prefix = 401", "must be an integer of 0 to 400"),
        ("drift_tolerance_pct = 0", "must be a number above 0, at most 100"),
        ('coupling_facility = "CF09"', "unknown coupling facility CF09; describe [coupling_facility.CF09]"),
        ("size2 = {a = 1}", 'unknown key "size2"; did you mean size?'),
        ('[queue."QSG1/ORDERS"]', "shared queue QSG1/ORDERS has no store; give it a structure"),
        ('[queue."QSG1/ORDERS"]\nstructure = "APP2"', "unknown structure QSG1/APP2; did you mean QSG1/APP1?"),
        ('[queue."QSG1/ORDERS"]\nstorage_class = "X"', 'a shared queue has structure = "..."'),
        ('[queue."QM01/ORDERS"]\nstructure = "APP1"', 'a shared one is [queue."GROUP/ORDERS"]'),
        ('[queue."QM01/ORDERS"]', 'queue QM01/ORDERS has no store; give it storage_class = "..."'),
        (
            '[queue."QM01/ORDERS"]\nstorage_class = "DEFAULT"',
            'unknown storage class QM01/DEFAULT; describe [storage_class."QM01/DEFAULT"] or DEFINE STGCLASS(DEFAULT)',
        ),
        ('[queue."QSG2/ORDERS"]\nstructure = "APP1"', "QSG2 is neither a queue-sharing group nor a queue manager"),
        ('[queue."ORDERS"]\nstructure = "APP1"', 'queue.ORDERS: the name must be like "QSG1/ORDERS"'),
        ('[storage_class."QM01/DEFAULT"]\npage_set = 4', 'unknown page set; describe [page_set."QM01/4"]'),
        (
            '[page_set."QM01/4"]\nexpand = "SYSTEM"',
            'page set QM01/PS04 has no pages; give pages in [page_set."QM01/4"]',
        ),
        ('[page_set."QM09/4"]\npages = 100', "unknown queue manager QM09; did you mean QM01?"),
        ('[page_set."QM01/400"]\npages = 100', "must be a page set number, 0 to 99"),
        ('[page_set."QM01/4"]\npages = 9\n[page_set."QM01/04"]\npages = 9', "; keep one of them"),
        ('[page_set."QM01/4"]\npages = 9\nmax_pages = 8', "max_pages (8) must be at least pages (9)"),
        ('[queue_file."QM01/X"]', 'QM01 is not distributed; if it is, write platform = "distributed"'),
        ('[smds."QSG1/APP1/QM03"]\nsize = "1G"', "QM03 is not in QSG1; its queue managers are QM01, QM02"),
        ('[smds."QSG1/APP9/QM01"]\nsize = "1G"', "unknown structure QSG1/APP9; did you mean QSG1/APP1?"),
        ('[smds."QSG1/APP1/QM01"]', """smds."QSG1/APP1/QM01": size is missing"""),
        ('[smds."QSG1/APP1/QM01"]\nsize = "17T"', "must be 1 to 16T"),
        ('[smds."QSG1/APP1/QM01"]\nsize = "256K"', "must be at least two blocks of DSBLOCK, 512K"),
        ('[smds."QSG1/APP1/QM01"]\nsize = "2G"\nmax_size = "1G"', "must be at least size, 2G"),
        ('[structure."QSG1/CSQ_OTHER"]\nsize = "1G"', "must be the name of a CFSTRUCT"),
        (
            '[structure."QSG1/CSQ_ADMIN"]\nsize = "1G"\noffld1_th = 50',
            "offld1_th = 50: QSG1/CSQ_ADMIN holds no queues; expected: coupling_facility, size, init_size",
        ),
        ('[smds."QSG1/CSQ_ADMIN/QM01"]\nsize = "1G"', "must be the name of a CFSTRUCT"),
        ('[queue."QSG1/X"]\nstructure = "CSQ_ADMIN"', "must be the name of a CFSTRUCT"),
        ('[structure."QSG1/CSQ_ADMIN"]', "structure QSG1/CSQ_ADMIN has no size"),
        ("[other_structure.LOGSTR1]", "structure LOGSTR1 has no size; import the CFRM policy that has"),
        ('[other_structure.QSG1APP1]\nsize = "1G"', 'it is the structure QSG1/APP1; expected: [structure."QSG1/APP1"]'),
        ('[structure."QSG2/APP1"]\nsize = "1G"', "unknown queue-sharing group QSG2; did you mean QSG1?"),
        ("[coupling_facility.CF01]", "coupling_facility.CF01: size is missing"),
        ("[queue_sharing_group.QSG2]\nqueue_managers = []", "must be a list of queue managers"),
        ('[queue_sharing_group.QSG2]\nqueue_managers = ["QM01"]', "QM01 is in QSG1 already"),
        ('[queue_sharing_group.GROUP1]\nqueue_managers = ["QM03"]', "1 to 4 capitals and digits"),
        ('[queue_sharing_group.QM01]\nqueue_managers = ["QM03"]', "there is a queue manager QM01 too"),
        ('[queue_manager.QM01]\nplatform = "distributed"', 'its member QM01 must be platform = "zos"'),
        ('[queue_manager.QM01]\nplatform = "linux"', "must be zos or distributed"),
        ("[queue_manager.QM01]\nversion = 9.4", 'version = 9.4: must be a string like "9.4"'),
        ('[uniform_cluster.UC01]\nqueue_managers = ["QMD1"]', "messages_per_second is missing"),
        ('[queue_manager.QMD1]\nhost = "A"', "unknown host A; describe"),
        ("[host.A]\ncores = 0", "must be a number above 0"),
        ("[host.A]", "cores is missing"),
        ("[strukture.X]", 'unknown key "strukture"; did you mean structure?'),
        (
            "[[import]]\nmqsc = 'no.mqsc'\nqueue_sharing_group = 'QSG1'",
            "no.mqsc cannot be read (No such file or directory)",
        ),
        ("[[import]]\nmqsc = 'no.mqsc'", "must have queue_sharing_group or queue_manager beside it, one of them"),
        ("[[import]]\ncfrm = 'a'\nqueue_manager = 'QM01'", "must have policy or nothing beside it"),
        ("[[import]]\nqueue_manager = 'QM01'", 'must have cfrm = "FILE" or mqsc = "FILE", one of them'),
        ("[[import]]\nmqcs = 'a'", 'unknown key "mqcs"; did you mean mqsc?'),
        (
            "[[import]]\nmqsc = 'a'\nqueue_sharing_group = 'QSG9'",
            "unknown queue-sharing group QSG9; did you mean QSG1?",
        ),
        ("[[import]]\nmqsc = 'a'\nqueue_manager = 'QM0'", "unknown queue manager QM0; did you mean QM01?"),
    ],
)
def test_what_is_wrong_is_refused_in_one_line_that_says_what_would_be_right(
    refused: Refused, more: str, message: str
) -> None:
    assert message in refused(GROUP + APP1 + more + "\n")


def test_a_message_names_file_key_and_value(refused: Refused) -> None:
    message = refused(GROUP + APP1 + "offld1_th = 170\n")
    assert message == 'estate.toml: structure."QSG1/APP1".offld1_th = 170: must be an integer of 0 to 100'


def test_a_long_value_is_cut(refused: Refused) -> None:
    assert len(refused(GROUP + APP1 + f'offload = "{"x" * 10_000}"\n')) < 200


def test_text_that_is_not_toml_is_named_by_line(refused: Refused) -> None:
    assert refused(GROUP + "size = = 3\n").startswith("estate.toml:4: not TOML: ")


def test_an_estate_without_any_store_is_refused(refused: Refused) -> None:
    assert "it describes no store" in refused(GROUP)


@pytest.mark.parametrize("schema", ["", "schema = 2", "schema = '1'", "schema = true"])
def test_the_schema_must_be_1(refused: Refused, schema: str) -> None:
    assert "write schema = 1 at the top" in refused(schema + "\n[queue_manager.QM01]\n")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EstateError, match=r"no\.toml: cannot be read \(No such file or directory\)"):
        load_estate(tmp_path / "no.toml")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EstateError, match="give the TOML file of an estate"):
        load_estate(tmp_path)


def test_bytes_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    (tmp_path / "estate.toml").write_bytes(b"schema = 1 # \xff\n")
    with pytest.raises(EstateError, match="not UTF-8"):
        load_estate(tmp_path / "estate.toml")


def test_a_queue_file_has_the_documented_defaults(load: Load) -> None:
    """docs/storage-model.md#queue-files: buffers of 64 and 128 KB, doubled on 64 bit; MAXFSIZE(DEFAULT)."""
    estate = load('schema = 1\n[queue_manager.QMD1]\nplatform = "distributed"\n[queue_file."QMD1/Q"]\n')
    file = estate.stores["QMD1/Q"]
    assert isinstance(file, QueueFile)
    assert (file.default_q_buffer_size, file.default_pq_buffer_size) == (128 * 1024, 256 * 1024)
    assert file.limit == file.max_size == 2_088_960 << 20


def test_the_smaller_of_max_size_and_file_system_is_the_limit(load: Load) -> None:
    text = (
        'schema = 1\n[queue_manager.QMD1]\nplatform = "distributed"\n'
        '[queue_file."QMD1/A"]\nmax_size = "2G"\nfile_system_size = "1G"\n'
        '[queue_file."QMD1/B"]\nmax_size = "1G"\nfile_system_size = "2G"\ndefault_q_buffer_size = "1M"\n'
    )
    stores = load(text).stores
    assert [stores[name].limit for name in ("QMD1/A", "QMD1/B")] == [1 << 30, 1 << 30]  # type: ignore[union-attr]
    details = {row.store: (row.size, row.details) for row in summary(load(text))}
    assert details["QMD1/A"] == ("1G", "MAXFSIZE 2G, buffers 128K and 256K")
    assert details["QMD1/B"] == ("1G", "MAXFSIZE 1G, buffers 1M and 256K")


def test_a_page_set_is_summed_up_with_how_it_expands(load: Load) -> None:
    text = (
        'schema = 1\n[queue_manager.QM01]\nversion = "7.0"\n'
        '[page_set."QM01/1"]\npages = 1024\nsecondary_pages = 256\nmax_pages = 2048\nbuffer_pool = 3\n'
        '[page_set."QM01/2"]\npages = 1024\nexpand = "NONE"\nmax_pages = 2048\n'
    )
    details = {row.store: (row.size, row.details) for row in summary(load(text))}
    packed = "short messages share pages"
    assert details["QM01/PS01"] == ("4M", f"EXPAND(USER) by 1M up to 8M, buffer pool 3, {packed}")
    assert details["QM01/PS02"] == ("4M", f"EXPAND(NONE), buffer pool 0, {packed}")


def test_toml_nested_too_deep_is_named_by_line(refused: Refused) -> None:
    assert refused(GROUP + "x = " + "[" * 5_000 + "]" * 5_000 + "\n") == (
        "estate.toml:4: nested too deep to read; an estate needs three levels"
    )


def test_an_integer_of_too_many_digits_is_named_by_line(refused: Refused) -> None:
    assert refused(GROUP + "x = 1\ny = " + "9" * 5_000 + "\n").startswith(
        "estate.toml:5: an integer of more than 4300 digits; "
    )


@pytest.mark.parametrize("zone", ["Europe/Zurich", "+01:00", "UTC"])
def test_the_site_has_a_name_and_the_zone_in_which_people_read_times(tmp_path: Path, zone: str) -> None:
    path = tmp_path / "estate.toml"
    path.write_text(f'{EVERYTHING}\n[site]\nname = "Bank"\nzone = "{zone}"\n', encoding="utf-8")
    estate = load_estate(path)
    assert (estate.site.name, estate.site.zone) == ("Bank", zone)
    digest, saved = save_estate(estate)
    assert read_saved_estate(saved, "x").site == estate.site
    path.write_text(EVERYTHING, encoding="utf-8")
    assert save_estate(load_estate(path))[0] != digest


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('[site]\nzone = "Mars/Olympus"', 'site.zone = "Mars/Olympus": must be a name such as Europe/Berlin'),
        ("[site]\nzone = 1", "site.zone = 1: must be a name such as Europe/Berlin"),
        ('[site]\nzne = "UTC"', 'site: unknown key "zne"; did you mean'),
        ('site = "here"', "must be a table like [site]"),
        ('[site]\nname = ""', "must be a name of 1 to 64 characters"),
    ],
)
def test_a_wrong_site_is_said_in_one_line(tmp_path: Path, lines: str, words: str) -> None:
    path = tmp_path / "estate.toml"
    path.write_text(EVERYTHING.replace("schema = 1\n", f"schema = 1\n{lines}\n", 1), encoding="utf-8")
    with pytest.raises(EstateError) as caught:
        load_estate(path)
    assert words in str(caught.value) and "\n" not in str(caught.value)
