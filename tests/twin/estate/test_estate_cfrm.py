"""CFRM policies: the input of IXCMIAPU, as in z/OS MVS Setting Up a Sysplex, "CFRM parameters"."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from twin.estate import Estate

Load = Callable[..., Estate]
Refused = Callable[..., str]

TOML = """
schema = 1
[[import]]
cfrm = "cfrm.txt"
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[structure."QSG1/APP1"]
full_threshold = 66
"""

POLICY = """
DATA TYPE(CFRM) REPORT(YES)
DEFINE POLICY NAME(PROD01) REPLACE(YES)
  /* coupling facilities,
     described over two lines: STRUCTURE NAME(NONE */
  CF NAME(CF01) TYPE(003931) MFG(IBM) PLANT(02) DUMPSPACE(2G)
  cf name(cf02) type(003931)
  STRUCTURE NAME(QSG1CSQ_ADMIN) SIZE(65536) PREFLIST(CF09)
  STRUCTURE NAME(DSNDB0G_LOCK1) SIZE(64M) DUPLEX(ENABLED,SAMESITEONLY)
  STRUCTURE NAME(QSG1APP1) SIZE(4194304) /* KB */ INITSIZE(2G) MINSIZE(1G)
     FULLTHRESHOLD(75) ALLOWAUTOALT(YES) PREFLIST(CF02,CF01)
     SCMALGORITHM(KEYPRIORITY1) SCMMAXSIZE(8G) REBUILDPERCENT(5)
"""


def load_policy(load: Load, policy: str, toml: str = TOML) -> Estate:
    return load(toml, cfrm_txt=policy)


def test_a_structure_of_the_policy_is_group_and_structure_name_together(load: Load) -> None:
    app1 = load_policy(load, POLICY).stores["QSG1/APP1"]
    assert (app1.size, app1.init_size) == (4 << 30, 2 << 30)
    assert (app1.allow_auto_alter, app1.coupling_facility, app1.scm_max_size) == (True, "CF02", 8 << 30)


def test_toml_beats_the_policy(load: Load) -> None:
    assert load_policy(load, POLICY).stores["QSG1/APP1"].full_threshold == 66


def test_structures_of_others_are_left_out(load: Load) -> None:
    assert list(load_policy(load, POLICY).stores) == ["CF02", "QSG1/APP1"]


def test_a_group_name_of_fewer_than_four_characters_is_padded_with_at_signs(load: Load) -> None:
    policy = POLICY.replace("QSG1APP1", "Q1@@APP1")
    assert load_policy(load, policy, TOML.replace("QSG1", "Q1")).stores["Q1/APP1"].size == 4 << 30


def test_defaults_of_the_policy_are_those_of_zos(load: Load) -> None:
    toml = TOML.replace("full_threshold = 66", "")
    app1 = load_policy(load, "STRUCTURE NAME(QSG1APP1) SIZE(1G)", toml).stores["QSG1/APP1"]
    assert (app1.full_threshold, app1.allow_auto_alter, app1.init_size, app1.coupling_facility) == (
        80,
        False,
        None,
        None,
    )


def test_columns_73_to_80_may_hold_sequence_numbers(load: Load) -> None:
    numbered = "\n".join(
        f"{line:72}{number:08d}" if len(line) <= 72 else line for number, line in enumerate(POLICY.splitlines())
    )
    assert load_policy(load, numbered) == load_policy(load, POLICY)


def test_the_policy_may_stand_in_its_job(load: Load) -> None:
    job = f"//CFRM EXEC PGM=IXCMIAPU\n//SYSIN DD *\n{POLICY}/*\n//\n"
    assert load_policy(load, job) == load_policy(load, POLICY)


def test_policies_of_other_types_are_left_out(load: Load) -> None:
    others = "DATA TYPE(SFM)\nDEFINE POLICY NAME(S)\n SYSTEM NAME(*) ISOLATETIME(0)\n SYSTEM NAME(A) WEIGHT(5)\n"
    assert load_policy(load, others + POLICY) == load_policy(load, POLICY)


def test_scm_counts_only_with_its_algorithm(load: Load) -> None:
    estate = load_policy(load, POLICY.replace("SCMALGORITHM(KEYPRIORITY1)", ""))
    assert estate.stores["QSG1/APP1"].scm_max_size is None
    assert any("QSG1APP1 uses no storage class memory without SCMALGORITHM" in warning for warning in estate.warnings)


@pytest.mark.parametrize(
    ("find", "put", "message"),
    [
        ("SIZE(4194304)", "SIZE(4XB)", "cfrm.txt:10: STRUCTURE NAME(QSG1APP1) SIZE(4XB): must be a whole number of KB"),
        ("SIZE(4194304)", "SISE(4)", "SISE(4): no such parameter; did you mean SIZE?"),
        ("SIZE(4194304)", "SIZE()", "SIZE(): must have one value"),
        ("SIZE(4194304)", "SIZE(1,2)", "SIZE(1,2): must have one value"),
        (
            "SIZE(4194304)",
            "",
            "structure QSG1/APP1 has no size; import the CFRM policy that has STRUCTURE NAME(QSG1APP1)",
        ),
        ("INITSIZE(2G)", "INITSIZE(5G)", "cfrm.txt:10: STRUCTURE NAME(QSG1APP1) INITSIZE(5G): init_size, 5G, must"),
        ("FULLTHRESHOLD(75)", "FULLTHRESHOLD(101)", "FULLTHRESHOLD(101): must be a number of 0 to 100"),
        ("ALLOWAUTOALT(YES)", "ALLOWAUTOALT(ON)", "ALLOWAUTOALT(ON): must be YES or NO"),
        (
            "PREFLIST(CF02,CF01)",
            "PREFLIST(CF07)",
            "cfrm.txt:11: STRUCTURE NAME(QSG1APP1) PREFLIST(CF07): unknown coupling",
        ),
        ("PREFLIST(CF02,CF01)", "SIZE(1)", "cfrm.txt:11: SIZE is repeated in this STRUCTURE statement"),
        ("REBUILDPERCENT(5)", "REBUILDPERCENT(5", "cfrm.txt:12: REBUILDPERCENT( has no closing parenthesis"),
        ("REBUILDPERCENT(5)", "/* no end", "cfrm.txt:12: the comment /* has no end"),
        ("REBUILDPERCENT(5)", "STRUCTURE SIZE(1)", "cfrm.txt:12: STRUCTURE without a name; write STRUCTURE NAME(...)"),
        ("REBUILDPERCENT(5)", "STRUCTURE NAME(QSG1APP1)", "NAME(QSG1APP1) is defined already (cfrm.txt:10)"),
        (
            "DATA TYPE(CFRM) REPORT(YES)",
            "DATE TYPE(CFRM)",
            "cfrm.txt:2: DATE where a statement must be; did you mean DATA?",
        ),
        ("SCMMAXSIZE(8G)", "SCMMAXSIZE(0)", "must be at least 1"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_line(refused: Refused, find: str, put: str, message: str) -> None:
    assert POLICY.count(find) == 1
    assert message in refused(TOML, cfrm_txt=POLICY.replace(find, put))
