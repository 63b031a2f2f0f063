"""Definitions that MQSC commands leave: DEFINE, ALTER, DELETE, LIKE, REPLACE, dispositions, defaults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from twin.estate import Estate, EstateError, load_estate

Load = Callable[..., Estate]
Refused = Callable[..., str]

TWO_GROUPS = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[queue_manager.QM09]
[queue_manager.QMD1]
platform = "distributed"
[structure."QSG1/APP1"]
size = "4G"
[structure."QSG1/APP2"]
size = "4G"
[page_set."QM01/1"]
pages = 1000
[page_set."QM01/2"]
pages = 1000
[page_set."QM02/1"]
pages = 1000
[storage_class."QM01/DEFAULT"]
page_set = 1
[storage_class."QM02/DEFAULT"]
page_set = 1
[[import]]
mqsc = "a.mqsc"
"""
OF_GROUP = TWO_GROUPS + 'queue_sharing_group = "QSG1"\n'
OF_QM01 = TWO_GROUPS + 'queue_manager = "QM01"\n'
OF_QMD1 = TWO_GROUPS + 'queue_manager = "QMD1"\n'
OF_QM09 = TWO_GROUPS + 'queue_manager = "QM09"\n'


def places(estate: Estate) -> dict[str, tuple[str, ...]]:
    """Queues by store, where it has some."""
    return {name: store.queues for name, store in estate.stores.items() if getattr(store, "queues", ())}


def app1(estate: Estate) -> object:
    return estate.stores["QSG1/APP1"]


# --- CFSTRUCT


def test_define_cfstruct_without_cflevel_is_at_level_3_and_does_not_offload(qsg1: Load) -> None:
    assert (app1(qsg1("DEFINE CFSTRUCT(APP1)")).cf_level, app1(qsg1("DEFINE CFSTRUCT(APP1)")).offload) == (3, "NONE")


def test_define_cfstruct_gives_every_attribute_that_storage_depends_on(qsg1: Load) -> None:
    defined = app1(
        qsg1("""DEFINE CFSTRUCT(APP1) CFLEVEL(5) OFFLOAD(DB2) RECOVER(YES) DESCR('x') +
                OFFLD1TH(10) OFFLD1SZ(1K) OFFLD2TH(20) OFFLD2SZ(64k) OFFLD3TH(30) OFFLD3SZ('0K') +
                DSGROUP('A.*') DSBLOCK(1M) DSBUFS(9) DSEXPAND(NO)""")
    )
    assert (defined.cf_level, defined.offload, defined.ds_block, defined.ds_expand) == (5, "DB2", 1 << 20, False)
    assert [(rule.th, rule.sz, rule.off) for rule in defined.rules] == [
        (10, 1024, False),
        (20, 65536, True),
        (30, 0, False),
    ]


def test_alter_changes_only_what_it_names(qsg1: Load) -> None:
    altered = app1(
        qsg1("DEFINE CFSTRUCT(APP1) CFLEVEL(5) OFFLD1TH(10) OFFLD2TH(20)\nALT CFSTRUCT('APP1') OFFLD1TH(60)")
    )
    assert (altered.cf_level, altered.offld1_th, altered.offld2_th) == (5, 60, 20)


def test_define_replace_sets_every_attribute_anew(qsg1: Load) -> None:
    again = app1(qsg1("DEFINE CFSTRUCT(APP1) CFLEVEL(5) OFFLD1TH(10)\nDEFINE CFSTRUCT(APP1) CFLEVEL(5) REPLACE"))
    assert again.offld1_th == 70


def test_define_of_what_exists_has_no_effect_and_warns(qsg1: Load) -> None:
    estate = qsg1("DEFINE CFSTRUCT(APP1) CFLEVEL(5)\nDEFINE CFSTRUCT(APP1) CFLEVEL(4)")
    assert app1(estate).cf_level == 5
    assert any("qsg1.mqsc:2: DEFINE CFSTRUCT(APP1) has no effect" in warning for warning in estate.warnings)


def test_noreplace_says_that_it_is_meant(qsg1: Load) -> None:
    estate = qsg1("DEFINE CFSTRUCT(APP1) CFLEVEL(5)\nDEFINE CFSTRUCT(APP1) CFLEVEL(4) NOREPLACE")
    assert app1(estate).cf_level == 5
    assert not any("no effect" in warning for warning in estate.warnings)


def test_like_copies_attributes(qsg1: Load) -> None:
    like = app1(qsg1("DEFINE CFSTRUCT(BASE) CFLEVEL(5) DSBLOCK(64K)\nDEFINE CFSTRUCT(APP1) LIKE(BASE) OFFLD1TH(5)"))
    assert (like.cf_level, like.ds_block, like.offld1_th) == (5, 65536, 5)


def test_toml_beats_mqsc_attribute_by_attribute(qsg1: Load) -> None:
    both = app1(qsg1("DEFINE CFSTRUCT(APP1) CFLEVEL(5) OFFLD1TH(10) OFFLD2TH(20)", "offld1_th = 33"))
    assert (both.offld1_th, both.offld2_th) == (33, 20)


def test_alter_may_change_what_only_toml_describes(qsg1: Load) -> None:
    altered = app1(qsg1("ALTER CFSTRUCT(APP1) OFFLD1TH(44)"))
    assert (altered.cf_level, altered.offld1_th) == (5, 44)


def test_a_structure_that_no_text_sizes_and_no_queue_uses_is_left_out_with_a_warning(qsg1: Load) -> None:
    estate = qsg1("DEFINE CFSTRUCT(SPARE) CFLEVEL(5)")
    assert "QSG1/SPARE" not in estate.stores
    assert any("structure QSG1/SPARE has no size" in warning for warning in estate.warnings)


def test_offload_rules_below_cf_level_5_are_without_effect(qsg1: Load) -> None:
    estate = qsg1("DEFINE CFSTRUCT(APP1) CFLEVEL(4) OFFLD1TH(10)")
    assert app1(estate).offload == "NONE"
    assert any("without effect, QSG1/APP1 is at CFLEVEL(4)" in warning for warning in estate.warnings)


# --- queues of a group


def test_a_shared_queue_is_in_its_structure_for_every_queue_manager_of_the_group(load: Load) -> None:
    estate = load(OF_GROUP, a_mqsc="DEFINE QLOCAL(ORDERS) QSGDISP(SHARED) CFSTRUCT(APP1)")
    assert places(estate) == {"QSG1/APP1": ("ORDERS",)}
    for qmgr in ("QM01", "QM02"):
        assert estate.routes[estate.route_of_queue(qmgr, "ORDERS")].store == "QSG1/APP1"


def test_names_without_quotes_are_folded_and_quoted_ones_kept(load: Load) -> None:
    text = "def ql(orders) qsgdisp(shared) cfstruct(app1)\ndef ql('Orders') qsgdisp(shared) cfstruct(app1)"
    assert places(load(OF_GROUP, a_mqsc=text)) == {"QSG1/APP1": ("ORDERS", "Orders")}


def test_a_qmgr_queue_in_the_text_of_a_group_is_private_to_each_queue_manager(load: Load) -> None:
    estate = load(OF_GROUP, a_mqsc="DEFINE QLOCAL(LOCAL)")
    assert places(estate) == {"QM01/PS01": ("LOCAL",), "QM02/PS01": ("LOCAL",)}


def test_cmdscope_says_which_queue_manager(load: Load) -> None:
    assert places(load(OF_GROUP, a_mqsc="DEFINE QLOCAL(LOCAL) CMDSCOPE(QM02)")) == {"QM02/PS01": ("LOCAL",)}
    everywhere = {"QM01/PS01": ("LOCAL",), "QM02/PS01": ("LOCAL",)}
    assert places(load(OF_QM01, a_mqsc="DEFINE QLOCAL(LOCAL) CMDSCOPE('*')")) == everywhere
    assert places(load(OF_QM01, a_mqsc="DEFINE QLOCAL(LOCAL) CMDSCOPE(' ')")) == {"QM01/PS01": ("LOCAL",)}


def test_the_text_of_one_queue_manager_may_define_shared_queues_of_its_group(load: Load) -> None:
    estate = load(OF_QM01, a_mqsc="DEFINE QLOCAL(ORDERS) QSGDISP(SHARED) CFSTRUCT(APP1)\nDEFINE QLOCAL(LOCAL)")
    assert places(estate) == {"QM01/PS01": ("LOCAL",), "QSG1/APP1": ("ORDERS",)}


def test_a_group_object_gives_every_queue_manager_a_copy(load: Load) -> None:
    assert places(load(OF_QM01, a_mqsc="DEFINE QLOCAL(LOCAL) QSGDISP(GROUP)")) == {
        "QM01/PS01": ("LOCAL",),
        "QM02/PS01": ("LOCAL",),
    }


def test_a_copy_may_be_altered_away_from_its_master_and_an_own_object_stays(load: Load) -> None:
    text = """
DEFINE STGCLASS(OTHER) PSID(2)
DEFINE QLOCAL(OWN) STGCLASS(OTHER)
DEFINE QLOCAL(OWN) QSGDISP(GROUP)
DEFINE QLOCAL(COPIED) QSGDISP(GROUP)
ALTER QLOCAL(COPIED) QSGDISP(COPY) STGCLASS(OTHER)
"""
    assert places(load(OF_QM01, a_mqsc=text)) == {
        "QM01/PS02": ("COPIED", "OWN"),
        "QM02/PS01": ("COPIED", "OWN"),
    }


def test_deleting_the_master_deletes_the_copies_and_no_own_object(load: Load) -> None:
    text = """
DEFINE QLOCAL(OWN)
DEFINE QLOCAL(OWN) QSGDISP(GROUP)
DELETE QLOCAL(OWN) QSGDISP(GROUP)
"""
    assert places(load(OF_QM01, a_mqsc=text)) == {"QM01/PS01": ("OWN",)}


def test_define_copy_is_like_the_master(load: Load) -> None:
    text = """
DEFINE STGCLASS(OTHER) PSID(2)
DEFINE QLOCAL(A) QSGDISP(GROUP) STGCLASS(OTHER) CMDSCOPE(QM01)
DELETE QLOCAL(A) QSGDISP(COPY) CMDSCOPE('*')
DEFINE QLOCAL(A) QSGDISP(COPY)
"""
    assert places(load(OF_QM01, a_mqsc=text)) == {"QM01/PS02": ("A",)}


def test_the_default_object_of_the_text_is_what_define_starts_from(load: Load) -> None:
    text = """
DEFINE STGCLASS(OTHER) PSID(2)
DEFINE QLOCAL(SYSTEM.DEFAULT.LOCAL.QUEUE) STGCLASS(OTHER)
DEFINE QLOCAL(A)
DEFINE QLOCAL(B) STGCLASS(DEFAULT)
DEFINE QLOCAL(C) LIKE(B)
"""
    assert places(load(OF_QM01, a_mqsc=text)) == {
        "QM01/PS01": ("B", "C"),
        "QM01/PS02": ("A", "SYSTEM.DEFAULT.LOCAL.QUEUE"),
    }


def test_delete_then_define(load: Load) -> None:
    text = "DELETE QLOCAL(A) PURGE\nDEFINE QLOCAL(A)\nDELETE QLOCAL(A)\nDEFINE QLOCAL(B)"
    assert places(load(OF_QM01, a_mqsc=text)) == {"QM01/PS01": ("B",)}


def test_on_zos_the_object_need_not_come_second(load: Load) -> None:
    text = "DEFINE REPLACE QLOCAL(ORDERS) QSGDISP(SHARED) CFSTRUCT(APP1)"
    assert places(load(OF_GROUP, a_mqsc=text)) == {"QSG1/APP1": ("ORDERS",)}


def test_toml_beats_where_a_queue_is(load: Load) -> None:
    estate = load(
        OF_GROUP + '[queue."QSG1/ORDERS"]\nstructure = "APP2"\n',
        a_mqsc="DEFINE QLOCAL(ORDERS) QSGDISP(SHARED) CFSTRUCT(APP1)",
    )
    assert places(estate) == {"QSG1/APP2": ("ORDERS",)}


def test_a_later_import_alters_what_an_earlier_one_defined(load: Load) -> None:
    estate = load(
        OF_GROUP + '[[import]]\nmqsc = "b.mqsc"\nqueue_manager = "QM02"\n',
        a_mqsc="DEFINE QLOCAL(ORDERS) QSGDISP(SHARED) CFSTRUCT(APP1)",
        b_mqsc="ALTER QLOCAL(ORDERS) QSGDISP(SHARED) CFSTRUCT(APP2)",
    )
    assert places(estate) == {"QSG1/APP2": ("ORDERS",)}


# --- page sets and distributed queue managers


def test_a_page_set_takes_pages_from_toml_and_the_rest_from_mqsc(load: Load) -> None:
    page_set = load(OF_QM01, a_mqsc="DEFINE PSID(02) BUFFPOOL(3) EXPAND(SYSTEM)").stores["QM01/PS02"]
    assert (page_set.pages, page_set.buffer_pool, page_set.expand) == (1000, 3, "SYSTEM")


def test_of_several_define_psid_the_last_counts(load: Load) -> None:
    text = "DEFINE PSID(02) BUFFPOOL(3) EXPAND(SYSTEM)\nDEFINE PSID(2) BUFFPOOL(1)"
    page_set = load(OF_QM01, a_mqsc=text).stores["QM01/PS02"]
    assert (page_set.buffer_pool, page_set.expand) == (1, "USER")


def test_a_page_set_without_pages_that_no_queue_uses_is_left_out_with_a_warning(load: Load) -> None:
    estate = load(OF_QM01, a_mqsc="DEFINE PSID(00)")
    assert "QM01/PS00" not in estate.stores
    assert any("page set QM01/PS00 has no pages" in warning for warning in estate.warnings)


def test_a_storage_class_of_a_page_set_that_is_not_there_matters_only_to_its_queues(
    load: Load, refused: Refused
) -> None:
    assert load(OF_QM01, a_mqsc="DEFINE STGCLASS(X) PSID(7)")
    message = refused(OF_QM01, a_mqsc="DEFINE STGCLASS(X) PSID(7)\nDEFINE QLOCAL(A) STGCLASS(X)")
    where = "a.mqsc:1: DEFINE STGCLASS(X) PSID(7)"
    assert message.startswith(f"{where}: queue QM01/A has no store: its storage class leads to page set 7")


def test_every_local_queue_of_a_distributed_queue_manager_is_a_queue_file(load: Load) -> None:
    text = "DEFINE QLOCAL(INVOICES) MAXFSIZE(1024);\nDEFINE QLOCAL(OTHER)"
    estate = load(OF_QMD1 + '[queue_file."QMD1/THIRD"]\n', a_mqsc=text)
    sizes = {store.name: store.max_size for store in estate.stores.values() if store.kind == "queue_file"}
    default = 2_088_960 << 20
    assert sizes == {"QMD1/INVOICES": 1 << 30, "QMD1/OTHER": default, "QMD1/THIRD": default}
    assert estate.routes[estate.route_of_queue("QMD1", "THIRD")].store == "QMD1/THIRD"


# --- what is not needed, and what is wrong


def test_commands_about_other_things_are_skipped(load: Load) -> None:
    text = """
DEFINE CHANNEL(TO.QM2) CHLTYPE(SDR) CONNAME(host(1414)) XMITQ('QM2')
DEFINE TOPIC(T) TOPICSTR('x')
DEF PROCESS(P) APPLICID('x')
DEFINE BUFFPOOL(3) BUFFERS(50000)
SET CHLAUTH('*') TYPE(BLOCKUSER) USERLIST('*MQADMIN')
DISPLAY QLOCAL(*) WHERE(CURDEPTH GT 0)
ALTER QMGR DEADQ(SYSTEM.DEAD.LETTER.QUEUE)
START CHINIT
DEFINE QMODEL(M) DEFTYPE(TEMPDYN)
DEFINE QREMOTE(R) RNAME(X) RQMNAME(Y) XMITQ(Z)
DEFINE QLOCAL(ORDERS) QSGDISP(SHARED) CFSTRUCT(APP1)
"""
    assert places(load(OF_GROUP, a_mqsc=text)) == {"QSG1/APP1": ("ORDERS",)}


JCL = """\
//DEFINES  JOB (ACCT),'MQ',CLASS=A
//*        structures of the group
//STEP1    EXEC PGM=CSQUTIL,PARM='QM01'
//SYSIN    DD *
 COMMAND DDNAME(CMDINP) MAKEDEF(OUTPUT1)
/*
//CMDINP   DD *
DEFINE QLOCAL(A) +
  STGCLASS(DEFAULT)
/*
"""


def test_jcl_around_the_commands_is_read_over(load: Load) -> None:
    estate = load(OF_QM01, a_mqsc=JCL)
    assert estate.stores["QM01/PS01"].queues == ("A",)
    assert not [warning for warning in estate.warnings if "a.mqsc" in warning]


@pytest.mark.parametrize(
    "text",
    [
        "CSQM201I QM01 CSQMDRTC  DISPLAY CFSTRUCT DETAILS\nCFSTRUCT(APP1)\nCFLEVEL(5)\n END CFSTRUCT DETAILS\n",
        "17.43.54 STC08037  CSQN205I   COUNT=       3, RETURN=00000000\nCFSTRUCT(APP1)\n",
        "AMQ8409I: Display queue details.\n   QUEUE(A)  TYPE(QLOCAL)\n",
        "CFSTRUCT(APP1)\nCFLEVEL(5)\nDESCR( )\n",
    ],
)
def test_the_output_of_display_is_one_error_that_names_the_command_for_it(refused: Refused, text: str) -> None:
    error = refused(OF_QM01, a_mqsc=text)
    assert "a.mqsc:1: output of DISPLAY, no MQSC command; expected: the commands" in error
    assert "mqtwin estate import display:" in error


def test_an_attribute_of_a_newer_mq_is_ignored_with_one_warning(load: Load) -> None:
    text = "DEFINE QLOCAL(A) SOMENEWTHING(1)\nDEFINE QLOCAL(B) SOMENEWTHING(1)"
    warnings = [warning for warning in load(OF_QM01, a_mqsc=text).warnings if "SOMENEWTHING" in warning]
    assert len(warnings) == 1
    assert "a.mqsc:1: DEFINE QLOCAL(A) SOMENEWTHING(1): SOMENEWTHING is not known here and ignored" in warnings[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DEFI QLOCAL(A)", "a.mqsc:1: 'DEFI' is no MQSC command; did you mean DEFINE?"),
        (
            "DEFINE QLOCAL(A)\n  DESCR('x')",
            "'DESCR' is no MQSC command; does the line before lack a + or - at its end?",
        ),
        ("DEFINE QLOCL(A)", "a.mqsc:1: DEFINE QLOCL: no MQSC object; did you mean QLOCAL?"),
        ("DEFINE", "DEFINE needs an object like QLOCAL(NAME)"),
        ("DEFINE QLOCAL", "a.mqsc:1: QLOCAL: must have one value, like QLOCAL(VALUE)"),
        ("DEFINE QLOCAL(A B)", "QLOCAL(A B): must have one value"),
        ("DEFINE QLOCAL('A?')", "DEFINE QLOCAL('A?'): must be a queue name"),
        ("DEFINE QLOCAL(A) STGCLAS(X)", "STGCLAS(X): no such attribute; did you mean STGCLASS?"),
        (
            "DEFINE CFSTRUCT(APP1) +\n CFLEVEL(5) +\n OFFLD1TH(170)",
            "a.mqsc:3: DEFINE CFSTRUCT(APP1) OFFLD1TH(170): must be a number of 0 to 100",
        ),
        ("DEFINE CFSTRUCT(APP1) CFLEVEL(9)", "CFLEVEL(9): must be a number of 1 to 5"),
        ("DEFINE CFSTRUCT(APP1) OFFLD1SZ(32)", "OFFLD1SZ(32): must be 0K to 64K"),
        ("DEFINE CFSTRUCT(APP1) OFFLD1SZ(65K)", "OFFLD1SZ(65K): must be 0K to 64K"),
        ("DEFINE CFSTRUCT(APP1) DSBLOCK(100K)", "DSBLOCK(100K): must be 8K, 16K"),
        ("DEFINE CFSTRUCT(APP1) DSEXPAND(MAYBE)", "DSEXPAND(MAYBE): must be YES or NO"),
        ("DEFINE CFSTRUCT(APP1) CFLEVEL(4) OFFLOAD(SMDS)", "a.mqsc:1: DEFINE CFSTRUCT(APP1) OFFLOAD(SMDS): offload"),
        ("DEFINE CFSTRUCT(app1) OFFLOAD(SMDS)", "needs cf_level 5, it is 3"),
        ("DEFINE CFSTRUCT(CSQ_ADMIN)", "must be the name of a CFSTRUCT"),
        ("DEFINE QLOCAL(A) QSGDISP(SHARED)", "shared queue QSG1/A has no store; give it a structure"),
        ("DEFINE QLOCAL(A) QSGDISP(SHARED) CFSTRUCT(' ')", "shared queue QSG1/A has no store"),
        ("DEFINE QLOCAL(A) QSGDISP(SHARED) CFSTRUCT(APP9)", "unknown structure QSG1/APP9; did you mean QSG1/APP1?"),
        ("DEFINE QLOCAL(A) QSGDISP(SHARD)", "QSGDISP(SHARD): must be one of SHARED, QMGR, COPY, GROUP"),
        ("DEFINE QALIAS(A) QSGDISP(SHARED)", "must be one of QMGR, COPY, GROUP"),
        ("DEFINE QLOCAL(A) CMDSCOPE(QM05)", "CMDSCOPE(QM05): must be one of QM01, QM02, or '*'"),
        ("DEFINE QLOCAL(A) STGCLASS(NONE)", "unknown storage class QM01/NONE"),
        ("DEFINE QLOCAL(A) LIKE(B)", "DEFINE QLOCAL(A) LIKE(B): no QLOCAL of that name is defined before it"),
        (
            "DEFINE QLOCAL(A)\nDEFINE QALIAS(A) TARGET(B)",
            "a.mqsc:2: DEFINE QALIAS(A): A is a QLOCAL already (a.mqsc:1)",
        ),
        ("DEFINE QLOCAL(A)\nALTER QALIAS(A) TARGET(B)", "a.mqsc:2: ALTER QALIAS(A): A is a QLOCAL (a.mqsc:1)"),
        ("ALTER QLOCAL(A) STGCLASS(B)", "ALTER QLOCAL(A): it is not defined before"),
        ("DEFINE QLOCAL(AB) QSGDISP(SHARED) CFSTRUCT(APP1)\nALTER QLOCAL(AB) MAXDEPTH(9)", "say QSGDISP(SHARED)"),
        ("DEFINE PSID(100)", "must be a number of 0 to 99"),
        ("DEFINE PSID(4) EXPAND(YES)", "must be SYSTEM, USER or NONE"),
        ("DEFINE QALIAS(A) TARGET(B) TARGQ(B)", "target is given twice"),
        ("DEFINE QLOCAL(A) QSGDISP(SHARED) CFSTRUCT(APP1)\nDEFINE QLOCAL(A)", "QM01 has A twice, the other at"),
        ("DEFINE QLOCAL(A) QSGDISP(SHARED) CFSTRUCT(APP1)\nDEFINE QALIAS(A) TARGET(A)", "QM01 has A twice"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_line(refused: Refused, text: str, message: str) -> None:
    refusal = refused(OF_GROUP, a_mqsc=text)
    assert refusal.startswith("a.mqsc:")
    assert message in refusal.replace("\n", " ")


def test_shared_objects_need_a_group(refused: Refused) -> None:
    message = refused(OF_QM09, a_mqsc="DEFINE QLOCAL(A) QSGDISP(SHARED) CFSTRUCT(APP1)")
    assert "QM09 is in no queue-sharing group" in message


def test_structures_and_page_sets_are_of_zos(refused: Refused) -> None:
    assert "valid only on z/OS; leave it out for QMD1" in refused(OF_QMD1, a_mqsc="DEFINE PSID(1)")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85"])
@pytest.mark.parametrize("code_page", ["utf-8", "cp037", "cp500", "cp273"])
def test_every_end_of_a_line_and_code_page_is_read(load: Load, tmp_path: Path, code_page: str, end: str) -> None:
    load(OF_QM01, a_mqsc="")
    lines = ["* made up", "DEFINE QLOCAL('A') +", "  DESCR('a, b')", "DEFINE QLOCAL(B.C_%/D)"]
    (tmp_path / "a.mqsc").write_bytes(end.join(lines).encode(code_page))
    assert places(load_estate(tmp_path / "estate.toml")) == {"QM01/PS01": ("A", "B.C_%/D")}


def test_ebcdic_without_lines_is_an_error(load: Load, tmp_path: Path) -> None:
    load(OF_QM01, a_mqsc="")
    (tmp_path / "a.mqsc").write_bytes("DEFINE QLOCAL(A)  DEFINE QLOCAL(B)".encode("cp037"))
    with pytest.raises(EstateError, match=r"EBCDIC without ends of lines .*; transfer it as text"):
        load_estate(tmp_path / "estate.toml")


def test_a_print_of_definitions_is_read(load: Load) -> None:
    lines = ["1LIST OF MEMBER QM01                 PAGE    1", "+___________", " * made up", "0DEFINE QLOCAL(A) +"]
    lines += ["1LIST OF MEMBER QM01                 PAGE    2", "    DESCR('a')", "-DEFINE QLOCAL(B)"]
    assert places(load(OF_QM01, a_mqsc="\n".join(lines))) == {"QM01/PS01": ("A", "B")}


def test_a_description_may_be_in_an_older_code_page(load: Load, tmp_path: Path) -> None:
    load(OF_QM01, a_mqsc="")
    (tmp_path / "a.mqsc").write_bytes("DEFINE QLOCAL(A) DESCR('f\xfcr')\n".encode("iso-8859-1"))
    assert places(load_estate(tmp_path / "estate.toml")) == {"QM01/PS01": ("A",)}
