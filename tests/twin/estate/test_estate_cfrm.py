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


HEADING = "1ADMINISTRATIVE DATA UTILITY:  {} PAGE   {}\n+{}\n"
CARDS = " DATE  11/25/2026  LINE #  CONTROL CARDS\n"


def report(policy: str = POLICY, control: bool = True) -> str:
    """Return what IXCMIAPU prints with REPORT(YES): control cards, messages, then the policies, five lines a page."""
    echo = "".join(f" {number:>23}  {line}\n" for number, line in enumerate(policy.splitlines(), 1))
    text = HEADING.format("MESSAGES", 1, "_" * 40) + CARDS + echo + " IXC163I UTILITY RAN SUCCESSFULLY\n"
    lines = policy.replace(" REPLACE(YES)", "").splitlines()
    for page in range(0, len(lines), 5):
        text += HEADING.format("POLICY REPORT", page // 5 + 1, "_" * 40)
        text += "".join(f" {line}\n" for line in lines[page : page + 5])
    return text if control else "\n".join(line[1:] for line in text.split("\n"))


@pytest.mark.parametrize("control", [True, False])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85"])
def test_the_report_of_the_utility_is_a_policy(load: Load, control: bool, end: str) -> None:
    text = report(control=control).replace("\n", end)
    assert load_policy(load, text).stores == load_policy(load, POLICY).stores


def test_a_print_without_a_report_has_its_control_cards(load: Load) -> None:
    cards = report().partition("1ADMINISTRATIVE DATA UTILITY:  POLICY REPORT")[0]
    assert load_policy(load, cards).stores == load_policy(load, POLICY).stores


def test_lines_of_a_print_keep_their_numbers(refused: Refused) -> None:
    text = report(POLICY.replace("SIZE(4194304)", "SIZE(4XB)"))
    number = 1 + text.split("\n").index("   STRUCTURE NAME(QSG1APP1) SIZE(4XB) /* KB */ INITSIZE(2G) MINSIZE(1G)", 20)
    assert f"cfrm.txt:{number}: STRUCTURE NAME(QSG1APP1) SIZE(4XB)" in refused(TOML, cfrm_txt=text)


OLDER = POLICY.replace("PROD01", "PROD00").replace("4194304", "1048576").replace("INITSIZE(2G) MINSIZE(1G)", "")


@pytest.mark.parametrize("text", [OLDER + POLICY, report(OLDER + POLICY)], ids=["cards", "report"])
def test_of_several_policies_one_is_named(load: Load, refused: Refused, text: str) -> None:
    message = refused(TOML, cfrm_txt=text)
    assert message.startswith("cfrm.txt: 2 policies by line: PROD00 (")
    assert 'cfrm:NAME=FILE, or policy = "NAME" in [[import]]' in message
    chosen = TOML.replace('cfrm = "cfrm.txt"', 'cfrm = "cfrm.txt"\npolicy = "PROD01"')
    assert load_policy(load, text, chosen).stores == load_policy(load, POLICY).stores
    older = load_policy(load, text, chosen.replace("PROD01", "PROD00"))
    assert older.stores["QSG1/APP1"].size == 1 << 30
    assert "no policy PROD02; expected: one of PROD00 (" in refused(chosen.replace("PROD01", "PROD02"), cfrm_txt=text)


def test_a_policy_that_is_deleted_is_none(load: Load) -> None:
    delete = "DATA TYPE(CFRM)\nDELETE POLICY NAME(PROD00)\n"
    assert load_policy(load, delete + POLICY).stores == load_policy(load, POLICY).stores


def test_a_policy_is_named_only_beside_a_policy_text(refused: Refused) -> None:
    toml = TOML.replace('cfrm = "cfrm.txt"', 'mqsc = "a.mqsc"\nqueue_manager = "QM01"\npolicy = "PROD01"')
    assert "goes with cfrm, not with mqsc" in refused(toml, a_mqsc="")
