"""Sound but unwise: warnings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from twin.estate import Estate

Load = Callable[..., Estate]

TOML = """
schema = 1
[coupling_facility.CF01]
size = "64G"
scm = "10G"
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[structure."QSG1/APP1"]
size = "4G"
coupling_facility = "CF01"
{app1}
[queue."QSG1/ORDERS"]
structure = "APP1"
[smds."QSG1/APP1/QM01"]
size = "10G"
[smds."QSG1/APP1/QM02"]
size = "10G"
{more}
"""


def warnings(load: Load, app1: str = "", more: str = "") -> tuple[str, ...]:
    return load(TOML.format(app1=app1, more=more)).warnings


def test_a_wise_estate_has_none(load: Load) -> None:
    assert warnings(load) == ()


def test_scm_may_be_over_committed(load: Load) -> None:
    app2 = '[structure."QSG1/APP2"]\nsize = "4G"\ncoupling_facility = "CF01"\nscm_max_size = "8G"\ncf_level = 4\n'
    app2 += '[queue."QSG1/AUDIT"]\nstructure = "APP2"\n'
    low = "\noffld3_th = 85"  # a rule that fires before pre-staging begins
    assert warnings(load, 'scm_max_size = "2G"' + low, app2) == ()
    (warning,) = warnings(load, 'scm_max_size = "4G"' + low, app2)
    assert warning == (
        "CF01: SCM is over-committed: QSG1/APP1, QSG1/APP2 may use 12G, it has 10G; 2192 may come unexpectedly"
        " (health check XCF_CF_STR_MAXSCM)"
    )


AUGMENTED = """
schema = 1
[coupling_facility.CF01]
{facility}
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[structure."QSG1/APP1"]
size = "4G"
coupling_facility = "CF01"
{app1}
cf_level = 4
[queue."QSG1/ORDERS"]
structure = "APP1"
"""


@pytest.mark.parametrize(
    ("facility", "scm", "expected"),
    [
        (
            'size = "4100M"\nscm = "1T"',
            '"1T"',
            "CF01: its structures take 4G and 8M of fixed augmented space for SCM, it has 4100M: not all of them fit",
        ),
        (
            'size = "4200M"\nscm = "1T"',
            '"1T"',
            "CF01: dynamic augmented space, 2 % of SCM, may reach 20972M, 96M are left: 2192 comes at 4800M of SCM",
        ),
        ('size = "4200M"\nscm = "4G"', '"1T"', None),
        ('size = "4200M"\nscm = "1T"', '"4G"', None),
    ],
)
def test_augmented_space_counts_beside_the_structures(
    load: Load, facility: str, scm: str, expected: str | None
) -> None:
    text = AUGMENTED.format(facility=facility, app1=f"scm_max_size = {scm}")
    of_storage = [warning for warning in load(text).warnings if "augmented space" in warning]
    assert of_storage == ([] if expected is None else [expected])


def test_fixed_augmented_space_is_of_each_structure_with_scm(load: Load) -> None:
    """Of 14M, two structures of 2.3 MB take 4.6 MB and 16M of fixed augmented space."""
    app1 = 'scm_max_size = "1G"'
    text = AUGMENTED.format(facility='size = "14M"\nscm = "64G"', app1=app1).replace('"4G"', '"2300K"')
    text += f'[structure."QSG1/APP2"]\nsize = "2300K"\ncoupling_facility = "CF01"\ncf_level = 4\n{app1}\n'
    assert any("take 4600K and 16M of fixed augmented space" in warning for warning in load(text).warnings)


def test_scmmaxsize_on_a_coupling_facility_without_scm(load: Load) -> None:
    text = AUGMENTED.format(facility='size = "64G"', app1='scm_max_size = "8G"')
    (warning,) = load(text).warnings
    assert warning == (
        "CF01: it has no SCM, so SCMMAXSIZE of QSG1/APP1 only takes 3 % of the entries and elements; give scm in"
        " [coupling_facility.CF01]"
    )


@pytest.mark.parametrize(
    ("rules", "warning"),
    [
        (
            "offld2_th = 100",
            "offload rule 2, OFFLD2TH(100) OFFLD2SZ(4K), can never fire: a structure is never more than",
        ),
        (
            "offld2_th = 60\noffld2_sz = 4096",
            "offload rule 1, OFFLD1TH(70) OFFLD1SZ(32K), can never fire: rule 2 offloads",
        ),
        ("offld3_th = 70\noffld3_sz = '32K'", "offload rule 3, OFFLD3TH(70) OFFLD3SZ(32K), can never fire: rule 1"),
        ("offld1_sz = '63K'", "offload rule 1, OFFLD1TH(70) OFFLD1SZ(63K), can never fire: data of more than 63 KB is"),
    ],
)
def test_a_rule_may_never_fire(load: Load, rules: str, warning: str) -> None:
    [message] = warnings(load, rules)
    assert message.startswith(f"QSG1/APP1: {warning}")


def test_a_rule_that_is_switched_off_is_no_mistake(load: Load) -> None:
    assert warnings(load, "offld1_th = 0\noffld1_sz = '64K'\noffld3_th = 100\noffld3_sz = '64K'") == ()


def test_data_sets_that_are_not_described_are_assumed_large(load: Load) -> None:
    estate = load(TOML.format(app1="", more="").replace('[smds."QSG1/APP1/QM02"]\nsize = "10G"', ""))
    assert estate.stores["QSG1/APP1"].smds["QM02"].size == 16 << 40
    assert estate.warnings == (
        (
            "QSG1/APP1: OFFLOAD(SMDS), but the data sets of QM02 are not described: 16T assumed;"
            ' describe [smds."QSG1/APP1/QM02"]'
        ),
    )


def test_data_sets_are_not_used_with_db2(load: Load) -> None:
    warning, migration = warnings(load, 'offload = "DB2"')
    assert "migration" in migration
    assert "OFFLOAD(DB2) does not use the data sets described for QM01, QM02" in warning


def test_a_structure_without_queues(load: Load) -> None:
    app2 = '[structure."QSG1/APP2"]\nsize = "4G"\ncf_level = 3\n'
    assert warnings(load, more=app2) == ("QSG1/APP2: no queue of the estate is in it",)


@pytest.mark.parametrize(
    ("page_set", "warning"),
    [
        ('expand = "NONE"', "EXPAND(NONE), puts fail with 2192 when it is full"),
        ("", "EXPAND(USER) without secondary_pages cannot expand"),
        ('expand = "SYSTEM"', None),
        ("secondary_pages = 100", None),
    ],
)
def test_a_page_set_that_cannot_expand(load: Load, page_set: str, warning: str | None) -> None:
    values = warnings(load, more=f'[page_set."QM01/4"]\npages = 1000\n{page_set}\n')
    assert [item.partition(": ")[2].partition(";")[0].split(",")[0] for item in values] == (
        [] if warning is None else [warning.split(",", maxsplit=1)[0]]
    )


def test_a_coupling_facility_without_scm_for_its_structures_is_named_with_them(load: Load) -> None:
    low = 'scm_max_size = "2G"\noffld3_th = 85'
    text = TOML.format(app1=low, more="")
    head = "[coupling_facility.CF01]\n"
    assert head in text
    assert load(text.replace(head, f"{head}cflevel = 25\n")).warnings == ()
    (warning,) = load(text.replace(head, f"{head}cflevel = 26\n")).warnings
    assert warning.startswith("CF01: CFLEVEL 26 has no storage class memory, so QSG1/APP1 cannot have its SCMMAXSIZE")
    assert "mqtwin advise QSG1/APP1 --set scm_max_size=0" in warning
    without = TOML.format(app1=low.replace('"2G"', "0"), more="").replace(head, f"{head}cflevel = 26\n")
    assert load(without).warnings == ()
