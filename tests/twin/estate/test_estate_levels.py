"""Structures that hold no queues in an estate, and the storage of a coupling facility: docs/estate.md."""

from __future__ import annotations

import pytest

from tests.twin.estate.conftest import Load
from twin.base.units import GIB, MIB
from twin.estate import CouplingFacility, EstateError, Structure

GROUP = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[structure."QSG1/APP1"]
size = "4G"
cf_level = 4
{more}
[queue."QSG1/ORDERS"]
structure = "APP1"
"""
IMPORT = '[[import]]\ncfrm = "cfrm.txt"\n'
POLICY = """
DATA TYPE(CFRM)
DEFINE POLICY NAME(PROD01)
  CF NAME(CF01) DUMPSPACE(2048)
  CF NAME(CF02)
  STRUCTURE NAME(QSG1CSQ_ADMIN) SIZE(64M) INITSIZE(40M) ALLOWAUTOALT(YES) FULLTHRESHOLD(70) PREFLIST(CF01,CF02)
     SCMALGORITHM(KEYPRIORITY1) SCMMAXSIZE(1G)
  STRUCTURE NAME(QSG1APP1) SIZE(4G) PREFLIST(CF01,CF02)
  STRUCTURE NAME(DB1G_LOCK1) SIZE(3G) PREFLIST(CF01)
  STRUCTURE NAME(LOGSTR1) SIZE(1G) PREFLIST(CF02)
"""


def cf(size: str, name: str = "CF01", more: str = "") -> str:
    return f'[coupling_facility.{name}]\nsize = "{size}"\n{more}\n'


def test_an_administration_structure_takes_what_its_policy_says(load: Load) -> None:
    estate = load((GROUP + IMPORT).format(more='[structure."QSG1/CSQ_ADMIN"]'), cfrm_txt=POLICY)
    admin = estate.stores["QSG1/CSQ_ADMIN"]
    assert isinstance(admin, Structure)
    assert (admin.size, admin.init_size, admin.full_threshold, admin.allow_auto_alter) == (64 * MIB, 40 * MIB, 70, True)
    assert (admin.policy_name, admin.cfrm_policy, admin.scm_max_size) == ("QSG1CSQ_ADMIN", "PROD01", None)
    assert (admin.holds_queues, admin.is_administration, admin.queue_managers) == (False, True, ("QM01", "QM02"))
    assert not any("is not watched" in warning for warning in estate.warnings)


def test_one_that_is_in_the_policy_alone_is_named(load: Load) -> None:
    estate = load((GROUP + IMPORT).format(more=""), cfrm_txt=POLICY)
    [text] = [warning for warning in estate.warnings if "watched" in warning]
    assert text == (
        "QSG1: QSG1CSQ_ADMIN of its CFRM policy is not watched; when it is full, queue managers fail: describe"
        ' [structure."QSG1/CSQ_ADMIN"]'
    )


def test_a_structure_of_another_program_is_of_all_queue_managers_on_zos(load: Load) -> None:
    more = '[queue_manager.QMD1]\nplatform = "distributed"\n[queue_manager.QM09]\n[other_structure.DB1G_LOCK1]'
    other = load((GROUP + IMPORT).format(more=more), cfrm_txt=POLICY).stores["DB1G_LOCK1"]
    assert isinstance(other, Structure)
    assert (other.size, other.coupling_facility, other.policy_name) == (3 * GIB, "CF01", "DB1G_LOCK1")
    assert (other.holds_queues, other.is_administration) == (False, False)
    assert other.queue_managers == ("QM01", "QM02", "QM09")


def test_a_coupling_facility_knows_the_rest_of_its_policy(load: Load) -> None:
    facility = load((GROUP + IMPORT).format(more=""), cfrm_txt=POLICY).stores["CF01"]
    assert isinstance(facility, CouplingFacility)
    assert facility.others == {"DB1G_LOCK1": 3 * GIB, "QSG1CSQ_ADMIN": 64 * MIB}
    assert facility.dump_space == 2 * MIB


def health(load: Load, toml: str, policy: str | None = None) -> list[str]:
    """Return the warnings that a check of z/OS Health Checker would raise, too."""
    estate = load(toml) if policy is None else load(toml, cfrm_txt=policy)
    return [warning for warning in estate.warnings if "health check" in warning]


ON_CF01 = 'coupling_facility = "CF01"\n'


@pytest.mark.parametrize(
    ("size", "more", "expected"),
    [
        ("7G", "", []),
        ("4G", "", []),
        ("4095M", "", ["CF01: its structures may grow to 4G, it has 4095M"]),
        ("7G", 'dump_space = "3G"', []),
        ("7G", 'dump_space = "3073M"', ["CF01: its structures may grow to 4G, dump space is 3073M, it has 7G"]),
    ],
)
def test_maxspace_sums_what_structures_may_have(load: Load, size: str, more: str, expected: list[str]) -> None:
    texts = [text for text in health(load, GROUP.format(more=ON_CF01) + cf(size, more=more)) if "MAXSPACE" in text]
    assert [text[: len(expected[i])] for i, text in enumerate(texts)] == expected
    assert all(text.endswith("(health check XCF_CF_STR_MAXSPACE)") for text in texts)


def test_maxspace_counts_structures_of_the_policy_that_are_no_stores(load: Load) -> None:
    toml = (GROUP + IMPORT).format(more="") + cf("7G")
    [text] = [text for text in health(load, toml, POLICY) if "MAXSPACE" in text]
    assert text.startswith(
        "CF01: its structures may grow to 4G, 2 more of its CFRM policy to 3136M, dump space is 2M, it"
    )


@pytest.mark.parametrize(("init_size", "is_warned"), [("2G", False), ("2047M", True)])
def test_policysize_is_initsize_below_half_of_size(load: Load, init_size: str, is_warned: bool) -> None:
    texts = [text for text in health(load, GROUP.format(more=f'init_size = "{init_size}"')) if "POLICYSIZE" in text]
    assert bool(texts) == is_warned


@pytest.mark.parametrize(("size", "is_warned"), [("6828M", False), ("6826M", True), ("4G", True), ("3G", False)])
def test_memory_utilization_is_what_is_allocated_above_sixty_percent(load: Load, size: str, is_warned: bool) -> None:
    """4G of 6827M are 60 %; what does not fit at all is the other check's."""
    texts = [text for text in health(load, GROUP.format(more=ON_CF01) + cf(size)) if "MEMORY_UTILIZATION" in text]
    assert bool(texts) == is_warned


@pytest.mark.parametrize(
    ("other", "homeless"), [("8G", []), ("4G", ["QSG1/CSQ_ADMIN"]), ("30M", ["QSG1/APP1, QSG1/CSQ_ADMIN"]), (None, [])]
)
def test_white_space_is_in_the_next_of_preflist(load: Load, other: str | None, homeless: list[str]) -> None:
    """APP1 takes 4G, CSQ_ADMIN 40M at INITSIZE; of a coupling facility of unknown size nothing is said."""
    toml = (GROUP + IMPORT).format(more='[structure."QSG1/CSQ_ADMIN"]') + cf("64G")
    texts = health(load, toml + (cf(other, "CF02") if other else ""), POLICY)
    assert [text for text in texts if "fails" in text] == [
        f"CF01: if it fails, {names} cannot be rebuilt: CF02 of their PREFLIST have no white space for them"
        " (health check XCF_CF_MEMORY_UTILIZATION)"
        for names in homeless
    ]


@pytest.mark.parametrize(
    ("sizes", "cflevel", "expected"),
    [
        ('size = "20M"', None, None),
        ('size = "14M"', None, "SIZE 14M is below the 15M that 2 queue managers need at CFLEVEL 21"),
        (
            'size = "64M"\ninit_size = "20M"',
            25,
            "INITSIZE 20M is below the 23M that 2 queue managers need at CFLEVEL 25",
        ),
        ('size = "64M"\ninit_size = "20M"\nallow_auto_alter = true', 25, None),
    ],
)
def test_an_administration_structure_must_fit_its_queue_managers(
    load: Load, sizes: str, cflevel: int | None, expected: str | None
) -> None:
    """With ALLOWAUTOALT(YES) the entries are counted at SIZE [IBM: swg21264321]."""
    admin = f'[structure."QSG1/CSQ_ADMIN"]\n{sizes}\ncoupling_facility = "CF01"'
    level = "" if cflevel is None else f"cflevel = {cflevel}"
    estate = load(GROUP.format(more=admin) + cf("64G", more=level))
    texts = [warning for warning in estate.warnings if "CSQE022E" in warning]
    assert [warning.partition(": ")[2][: len(expected or "")] for warning in texts] == ([expected] if expected else [])


def test_a_name_is_of_one_store(load: Load) -> None:
    with pytest.raises(EstateError, match="there is a coupling facility LOGSTR1 too"):
        load(GROUP.format(more='[other_structure.LOGSTR1]\nsize = "1G"') + cf("64G", "LOGSTR1"))
