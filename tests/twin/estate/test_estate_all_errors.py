"""Every error of an estate at once, each at its place, and mistakes that were reported wrongly or not at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deploy.cli import main
from tests.twin.estate.conftest import GROUP, Load
from twin.base.units import KIB
from twin.estate import Estate, EstateError, Structure

MQSC = '[[import]]\nmqsc = "qsg1.mqsc"\nqueue_sharing_group = "QSG1"\n'
POLICY = '[[import]]\ncfrm = "cfrm.txt"\n'
SMDS = '[smds."QSG1/APP1/QM01"]\nsize = "10G"\n[smds."QSG1/APP1/QM02"]\nsize = "10G"\n'


def errors(load: Load, toml: str, **files: str) -> list[str]:
    """Return all errors, with the file names alone."""
    with pytest.raises(EstateError) as caught:
        load(toml, **files)
    messages = [str(caught.value), *caught.value.others]
    return [re.sub("^/[^:]*/", "", message) for message in messages]


def warnings(load: Load, toml: str, **files: str) -> list[str]:
    return [re.sub("^/[^:]*/", "", warning) for warning in load(toml, **files).warnings]


def structure(estate: Estate) -> Structure:
    config = estate.stores["QSG1/APP1"]
    assert isinstance(config, Structure)
    return config


# -- all errors at once


def test_all_errors_of_the_texts_are_reported_at_once(load: Load) -> None:
    mqsc = "DEFINE CFSTRUCT(APP1) CFLEVEL(9) DSBLOCK(3K)\nDEFINE STGCLASS(X) PSID(100)\n"
    cfrm = "STRUCTURE NAME(QSG1APP1) SIZE(4X) FULLTHRESHOLD(200)\n"
    toml = GROUP + MQSC + POLICY + '[structure."QSG1/APP2"]\nsise = "4G"\nfull_threshold = 101\n'
    result = errors(load, toml, qsg1_mqsc=mqsc, cfrm_txt=cfrm)
    parts = ["sise", "full_threshold = 101", "CFLEVEL(9)", "DSBLOCK(3K)", "PSID(100)", "SIZE(4X)", "FULLTHRESHOLD(200)"]
    assert len(result) == len(parts)
    assert [part for part, message in zip(parts, result, strict=True) if part not in message] == []
    assert [message.split(":")[1] for message in result[2:]] == ["1", "1", "2", "1", "1"]


def test_errors_that_only_follow_from_others_are_not_reported(load: Load) -> None:
    queues = "\nDEFINE QLOCAL(A) QSGDISP(SHARED) CFSTRUCT(APP1)"
    (result,) = errors(load, GROUP + MQSC + SMDS, qsg1_mqsc="DEFINE CFSTRUCT(APP1) CFLEVEL(9)" + queues)
    assert "CFLEVEL(9)" in result


def test_queues_without_a_store_are_reported_at_once(load: Load) -> None:
    queues = "\n".join(f"DEFINE QLOCAL({name}) QSGDISP(SHARED) CFSTRUCT(NONE{name})" for name in "AB")
    result = errors(load, GROUP + MQSC + '[structure."QSG1/APP1"]\nsize = "1G"\n', qsg1_mqsc=queues)
    assert [message.split(":")[1] for message in result] == ["1", "2"]


# -- the right words at the right line


def test_a_continuation_that_lacks_its_plus_is_no_attribute(load: Load) -> None:
    mqsc = "DEFINE QUEUE('ORD.IN') MAXDEPTH(5) CFSTRUCT(APP1)"
    (result,) = errors(load, GROUP + MQSC, qsg1_mqsc=mqsc)
    assert "DEFINE QUEUE: no MQSC object; did you mean QLOCAL?" in result


def test_a_plus_too_many_is_named_where_the_next_command_begins(load: Load) -> None:
    mqsc = "DEFINE CFSTRUCT(APP1) CFLEVEL(4) +\nDEFINE QLOCAL(A)"
    (result,) = errors(load, GROUP + MQSC, qsg1_mqsc=mqsc)
    assert result.startswith("qsg1.mqsc:2: DEFINE begins a command within DEFINE CFSTRUCT(APP1); ")
    assert "a + or - too many" in result


def test_a_storage_class_without_psid_is_reported_at_its_own_line(load: Load) -> None:
    """PAGESET is no attribute of STGCLASS, so the class leads nowhere."""
    mqsc = "DEFINE PSID(3)\nDEFINE STGCLASS(DEFAULT) PAGESET(03)\nDEFINE QLOCAL(A)"
    toml = 'schema = 1\n[queue_manager.QM01]\n[[import]]\nmqsc = "qm.mqsc"\nqueue_manager = "QM01"\n'
    toml += '[page_set."QM01/3"]\npages = 1000\n'
    (result,) = errors(load, toml, qm_mqsc=mqsc)
    assert result == "qm.mqsc:2: STGCLASS(DEFAULT) has no PSID, so queue QM01/A has no store; give it one"


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ('size = "2G"', "known are pages, expand, secondary_pages, buffer_pool, max_pages and 7 more"),
        ('pages = "2G"', 'must be an integer of 2 to 16777216, or of CYL or TRK, like "3000 CYL"'),
    ],
)
def test_the_error_of_a_page_set_says_how_its_size_is_written(load: Load, attribute: str, expected: str) -> None:
    (result,) = errors(load, f'schema = 1\n[queue_manager.QM01]\n[page_set."QM01/3"]\n{attribute}\n')
    assert result.endswith(expected)


def test_a_wrong_size_of_a_data_set_names_cylinders(load: Load) -> None:
    toml = GROUP + '[structure."QSG1/APP1"]\nsize = "1G"\n[smds."QSG1/APP1/QM01"]\nsize = "3000 CYLS"\n'
    (result,) = errors(load, toml)
    assert "or of K, M, G, T, CYL or TRK" in result


def test_replace_may_stand_before_the_object(load: Load) -> None:
    mqsc = "DEFINE REPLACE CFSTRUCT(APP1)"
    assert "QSG1/APP1" in load(GROUP + MQSC + '[structure."QSG1/APP1"]\nsize = "4G"\n', qsg1_mqsc=mqsc).stores


def test_swapped_letters_are_recognised(load: Load) -> None:
    (result,) = errors(load, GROUP + MQSC, qsg1_mqsc="DEFINE CFSTRUCT(APP1) OFFLDTH2(80)")
    assert "did you mean OFFLD2TH?" in result


def test_cfstruct_without_qsgdisp_shared(load: Load) -> None:
    mqsc = "DEFINE CFSTRUCT(APP1)\nDEFINE QLOCAL(ORD.IN) +\n CFSTRUCT(APP1)"
    (result, _) = errors(load, GROUP + MQSC + '[structure."QSG1/APP1"]\nsize = "4G"\n', qsg1_mqsc=mqsc)
    assert "mqsc:3: " in result and "without QSGDISP(SHARED)" in result


def test_an_unknown_page_set_is_reported_at_the_storage_class(load: Load) -> None:
    mqsc = "DEFINE STGCLASS(FAST) PSID(03)\nDEFINE QLOCAL(A) STGCLASS(FAST)"
    toml = '\nschema = 1\n[[import]]\nmqsc = "qm.mqsc"\nqueue_manager = "QM01"\n[queue_manager.QM01]\n'
    (result,) = errors(load, toml, qm_mqsc=mqsc)
    assert "mqsc:1: " in result and "PSID(03)" in result and '[page_set."QM01/3"]' in result


def test_the_algorithm_of_scm_is_keypriority1(load: Load) -> None:
    cfrm = "STRUCTURE NAME(QSG1APP1) SIZE(4G)\n SCMALGORITHM(KEYPRIORITY) SCMMAXSIZE(8G)"
    (result,) = errors(load, GROUP + POLICY, cfrm_txt=cfrm)
    assert "cfrm.txt:2: " in result and "KEYPRIORITY1" in result


# -- OFFLOAD(DB2)


@pytest.mark.parametrize(
    ("mqsc", "offload", "sizes"),
    [
        ("DEFINE CFSTRUCT(APP1) CFLEVEL(5)", "SMDS", (32 * KIB, 4 * KIB, 0)),
        ("DEFINE CFSTRUCT(APP1) CFLEVEL(5) OFFLOAD(DB2)", "DB2", (64 * KIB,) * 3),
        ("DEFINE CFSTRUCT(APP1) CFLEVEL(5) OFFLOAD(DB2) OFFLD2SZ(8K)", "DB2", (64 * KIB, 8 * KIB, 64 * KIB)),
        ("DEFINE CFSTRUCT(APP1) CFLEVEL(4)\nALTER CFSTRUCT(APP1) CFLEVEL(5)", "DB2", (64 * KIB,) * 3),
        ("DEFINE CFSTRUCT(APP1)\nALTER CFSTRUCT(APP1) CFLEVEL(5) OFFLOAD(SMDS)", "SMDS", (32 * KIB, 4 * KIB, 0)),
    ],
)
def test_offload_db2_has_defaults_of_its_own(load: Load, mqsc: str, offload: str, sizes: tuple[int, ...]) -> None:
    """DEFINE CFSTRUCT, syntax diagram: OFFLD1SZ(32K/64K), OFFLD2SZ(4K/64K), OFFLD3SZ(0K/64K)."""
    config = structure(load(GROUP + MQSC + '[structure."QSG1/APP1"]\nsize = "4G"\n', qsg1_mqsc=mqsc))
    assert (config.offload, tuple(rule.sz for rule in config.rules)) == (offload, sizes)


# -- mistakes that are valid


def policy_warnings(load: Load, parameters: str, mqsc: str = "", more: str = "") -> str:
    define = "DEFINE CFSTRUCT(APP1) CFLEVEL(5) DSGROUP('A.*.B')\nDEFINE QLOCAL(A) QSGDISP(SHARED) CFSTRUCT(APP1)"
    cfrm = f"CF NAME(CF01)\nSTRUCTURE NAME(QSG1APP1) {parameters}"
    return "\n".join(warnings(load, GROUP + MQSC + POLICY + SMDS + more, qsg1_mqsc=mqsc or define, cfrm_txt=cfrm))


def test_a_sound_policy_has_no_warnings(load: Load) -> None:
    assert policy_warnings(load, "SIZE(4G) INITSIZE(3G) MINSIZE(2G) FULLTHRESHOLD(65) ALLOWAUTOALT(YES)") == ""


@pytest.mark.parametrize(
    ("parameters", "warning"),
    [
        ("SIZE(8G) INITSIZE(3G)", "SIZE 8G is more than twice INITSIZE 3G"),
        ("SIZE(4G) INITSIZE(3G) MINSIZE(3500M)", "MINSIZE(3500M): above INITSIZE(3G)"),
        ("SIZE(4G) MINSIZE(5G)", "MINSIZE(5G): above SIZE(4G)"),
        ("SIZE(4G) FULLTHRESHOLD(0)", "FULLTHRESHOLD(0): its fullness is not monitored"),
        (
            "SIZE(4G) FULLTHRESHOLD(85) ALLOWAUTOALT(YES)",
            "risk: QSG1/APP1 offloads at 70 %, before automatic alter enlarges it at 85 %",
        ),
        ("SIZE(4G) SCMALGORITHM(KEYPRIORITY1)", "SCMALGORITHM(KEYPRIORITY1): QSG1APP1 uses no storage class memory"),
        (
            "SIZE(4G) PREFLIST(CF01) SCMALGORITHM(KEYPRIORITY1) SCMMAXSIZE(8G)",
            "give scm in [coupling_facility.CF01]",
        ),
        (
            "SIZE(4G) SCMALGORITHM(KEYPRIORITY1) SCMMAXSIZE(8G) ALLOWAUTOALT(YES)",
            "ALLOWAUTOALT(YES) beside SCM",
        ),
    ],
)
def test_a_policy_that_is_valid_but_unwise(load: Load, parameters: str, warning: str) -> None:
    assert warning in policy_warnings(load, parameters)


def test_a_coupling_facility_smaller_than_its_structures(load: Load) -> None:
    more = '[coupling_facility.CF01]\nsize = "3G"\n'
    result = policy_warnings(load, "SIZE(4G) PREFLIST(CF01)", more=more)
    assert "CF01: its structures may grow to 4G, it has 3G" in result


@pytest.mark.parametrize(
    ("mqsc", "warning"),
    [
        ("DEFINE CFSTRUCT(APP1) CFLEVEL(5)", "OFFLOAD(SMDS) without DSGROUP"),
        ("DEFINE CFSTRUCT(APP1) CFLEVEL(5) DSGROUP('A.B')", "DSGROUP('A.B'): expected: one asterisk"),
        ("DEFINE CFSTRUCT(APP1) CFLEVEL(5) DSGROUP('*.*')", "DSGROUP('*.*'): expected: one asterisk"),
    ],
)
def test_data_sets_need_a_group_with_one_asterisk(load: Load, mqsc: str, warning: str) -> None:
    assert warning in policy_warnings(load, "SIZE(4G)", mqsc)


@pytest.mark.parametrize(("cf_level", "effect"), [(4, "are stored in Db2"), (3, "cannot be put, with 2366")])
def test_messages_over_63_kb_below_cflevel_5(load: Load, cf_level: int, effect: str) -> None:
    queue = "DEFINE QLOCAL(A) QSGDISP(SHARED) CFSTRUCT(APP1) MAXMSGL(1000000)"
    result = policy_warnings(load, "SIZE(4G)", f"DEFINE CFSTRUCT(APP1) CFLEVEL({cf_level})\n{queue}")
    assert f"CFLEVEL({cf_level}): messages over 63 KB {effect}" in result


# -- the command


def test_estate_check_prints_every_error_and_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "estate.toml"
    file.write_text(GROUP + '[structure."QSG1/APP1"]\nsise = "4G"\nfull_threshold = 101\n', encoding="utf-8")
    assert main(["estate", "check", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 2 and all(line.startswith("mqtwin: ") for line in err.splitlines())
