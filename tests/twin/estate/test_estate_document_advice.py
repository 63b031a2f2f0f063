"""Advice that the documents give about an estate."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.scm import PRESTAGE_ABOVE
from tests.support.runbooks import pool_actions
from tests.twin.estate.test_estate_advice import TOML, warnings
from twin.base.conditions import ELEMENTS, ENTRIES
from twin.base.units import GIB, KIB
from twin.capacity import with_all_offloaded_above
from twin.estate import Estate, Structure, load_estate
from twin.estate.model import PRESTAGES_ABOVE_PCT
from twin.records import sentences_of
from twin.sizing import plan_threshold

Load = Callable[..., Estate]


def advice(load: Load, app1: str = "", more: str = "") -> str:
    """Return the only warning about QSG1/APP1, "" for none."""
    lines = [line for line in warnings(load, app1, more) if line.startswith("QSG1/APP1: ")]
    assert len(lines) <= 1
    return lines[0] if lines else ""


# --- Specifying offload options for shared messages -------------------------------------------------------------------


def test_offload_to_db2_is_for_migration_and_slower_above_63_kb(load: Load) -> None:
    lines = warnings(load, 'offload = "DB2"')
    assert any("primarily for migration" in line and "63 KB OFFLOAD(SMDS)" in line for line in lines)
    assert not any("migration" in line for line in warnings(load))


@pytest.mark.parametrize(
    ("version", "warned"), [("7.0.1", True), ("7.0", True), ("6.0", True), ("7.1", False), ("9.4", False)]
)
def test_cf_level_5_needs_every_queue_manager_at_7_1(load: Load, version: str, warned: bool) -> None:
    more = f'[queue_manager.QM02]\nversion = "{version}"\n[queue_manager.QM01]\nversion = "9.4"\n'
    line = advice(load, more=more)
    assert bool(line) == warned
    if warned:
        assert f"CFLEVEL(5), but QM02 ({version}) cannot connect" in line and "7.1 or higher" in line
    lower = [line for line in warnings(load, "cf_level = 4", more) if "cannot connect" in line]
    assert lower == [], "any queue manager connects to CFLEVEL(4)"


def test_without_rule_2_the_ratio_changes_all_at_once(load: Load) -> None:
    assert "rule 2 is off, so at 90 % usage" in advice(load, 'offld2_sz = "64K"')
    assert advice(load, 'offld2_sz = "64K"\noffld3_sz = "64K"') == ""
    assert advice(load, 'offld1_sz = "64K"\noffld2_sz = "64K"') == ""


# --- How storage class memory works ----------------------------------------------------------------------------------


def test_a_structure_with_scm_cannot_be_altered_automatically(load: Load) -> None:
    scm = 'scm_max_size = "2G"\noffld3_th = 85\n'
    alters = "full_threshold = 60\nallow_auto_alter = true"  # it grows before it offloads
    assert advice(load, scm) == ""
    assert "ALLOWAUTOALT(YES) beside SCM" in advice(load, scm + alters)
    assert advice(load, alters) == ""


def test_beside_scm_a_rule_from_90_percent_on_can_never_fire(load: Load) -> None:
    assert PRESTAGES_ABOVE_PCT == PRESTAGE_ABOVE
    scm = 'scm_max_size = "2G"\n'
    assert "rule 3, OFFLD3TH(90) OFFLD3SZ(0), can never fire while SCM has room" in advice(load, scm)
    assert advice(load, scm + "offld3_th = 89") == ""
    assert "rule 3, OFFLD3TH(95)" in advice(load, scm + "offld3_th = 95")
    assert advice(load, scm + 'offld3_sz = "64K"') == "", "off"
    assert advice(load) == "", "no SCM"


# --- WebSphere MQ internals ------------------------------------------------------------------------------------------

DISTRIBUTED = '[queue_manager.QMD1]\nplatform = "distributed"\n'


def test_a_queue_file_larger_than_the_document_s_maximum_is_warned_of(load: Load) -> None:
    file = DISTRIBUTED + '[queue_file."QMD1/INVOICES"]\nmax_size = "{}M"\n'
    assert not any("QMD1/INVOICES" in line for line in warnings(load, more=file.format(2_097_151)))
    (line,) = (line for line in warnings(load, more=file.format(2_097_152)) if "QMD1/INVOICES" in line)
    assert "more than a queue file can have, 2097151M" in line


def test_persistent_messages_belong_inside_syncpoint(load: Load) -> None:
    imports = DISTRIBUTED + '[[import]]\nmqsc = "qmd1.mqsc"\nqueue_manager = "QMD1"\n'
    text = "DEFINE QLOCAL(INVOICES) DEFPSIST(YES)\nDEFINE QLOCAL(NOTES) DEFPSIST(NO)\n"
    text += "DEFINE QALIAS(I) DEFPSIST(YES) TARGET(NOTES)\n"
    lines = load(TOML.format(app1="", more=imports), qmd1_mqsc=text).warnings
    assert [line.partition(":")[0] for line in lines if "inside syncpoint" in line] == ["QMD1/INVOICES"]


# --- remedies are whole ----------------------------------------------------------------------------------------------

SIZES = st.sampled_from([0, 1, 2, 3, 4, 6, 16, 32, 62, 63, 64])
THRESHOLDS = st.sampled_from([0, 1, 5, 10, 50, 60, 69, 70, 71, 80, 89, 90, 91, 99, 100])
RULES = st.tuples(*[st.tuples(THRESHOLDS, SIZES)] * 3)


def defined(rules: tuple[tuple[int, int], ...]) -> str:
    values = " ".join(f"OFFLD{n}TH({th}) OFFLD{n}SZ({sz}K)" for n, (th, sz) in enumerate(rules, 1))
    return f"DEFINE CFSTRUCT(APP1) CFLEVEL(5) OFFLOAD(SMDS) {values}\n"


def checked(folder: Path, text: str, *, scm: bool) -> Estate:
    """Return the estate of an MQSC text, as `mqtwin estate check` reads it."""
    more = '[[import]]\nmqsc = "a.mqsc"\nqueue_sharing_group = "QSG1"\n'
    (folder / "a.mqsc").write_text(text, encoding="utf-8")
    toml = TOML.format(app1='scm_max_size = "2G"' if scm else "", more=more)
    path = folder / "estate.toml"
    path.write_text(toml, encoding="utf-8")
    return load_estate(path)


def commands(texts: tuple[str, ...]) -> list[str]:
    """Return the MQSC commands in texts that set an offload rule."""
    return [text[text.index("ALTER CFSTRUCT") :] for text in texts if "OFFLD" in text and "ALTER CFSTRUCT" in text]


@given(rules=RULES, scm=st.booleans(), backlog=st.sampled_from([1, 100_000, 1_000_000, 4_000_000]))
def test_every_command_that_is_printed_sets_six_values_and_passes_the_check(
    tmp_path_factory: pytest.TempPathFactory, rules: tuple[tuple[int, int], ...], scm: bool, backlog: int
) -> None:
    folder = tmp_path_factory.mktemp("remedy")
    estate = checked(folder, defined(rules), scm=scm)
    config = estate.stores["QSG1/APP1"]
    assert isinstance(config, Structure)
    printed = commands(sentences_of(pool_actions(config, ELEMENTS, config.size, (), alterable=True)))
    printed += commands((plan_threshold(config, backlog).mqsc or "",))  # nothing where the backlog does not fit
    for command in (text.partition(", then ")[0] for text in printed):
        values = command.partition("(APP1) ")[2].split(" ")
        assert [value.partition("(")[0] for value in values] == [
            f"OFFLD{n}{what}" for n in (1, 2, 3) for what in ("TH", "SZ")
        ]
        altered = checked(folder, defined(rules) + command + "\n", scm=scm)
        assert set(altered.warnings) <= set(estate.warnings), command


@given(rules=RULES, threshold=st.integers(0, 99))
def test_thresholds_rise_and_sizes_fall(rules: tuple[tuple[int, int], ...], threshold: int) -> None:
    values = {
        f"offld{n}_{what}": value
        for n, (th, sz) in enumerate(rules, 1)
        for what, value in (("th", th), ("sz", sz * KIB))
    }
    config = Structure(
        name="QSG1/APP1", queue_sharing_group="QSG1", queue_managers=("QM01",), size=GIB, cf_level=5, **values
    )
    new = with_all_offloaded_above(config, threshold)
    assert (new[2].th, new[2].sz) == (threshold, 0)
    on = [rule for rule in new if not rule.off]
    assert all(before.th < after.th and before.sz > after.sz for before, after in pairwise(on))
    assert new[0].off or not new[1].off, "rule 2 cushions where rule 1 is on"


@pytest.mark.parametrize(
    ("rules", "offered"),
    [
        (((70, 32), (80, 4), (90, 0)), True),
        (((70, 32), (80, 4), (60, 64)), True),  # rule 3 is off, whatever its threshold
        (((70, 32), (80, 4), (70, 0)), False),
        (((0, 0), (80, 4), (90, 0)), False),
    ],
)
def test_offloading_sooner_is_offered_where_it_changes_anything(
    tmp_path: Path, rules: tuple[tuple[int, int], ...], offered: bool
) -> None:
    config = checked(tmp_path, defined(rules), scm=False).stores["QSG1/APP1"]
    assert isinstance(config, Structure)
    assert bool(commands(sentences_of(pool_actions(config, ELEMENTS, config.size, (), alterable=True)))) == offered
    assert commands(sentences_of(pool_actions(config, ENTRIES, config.size, (), alterable=True))) == []


def test_no_other_place_prints_offload_values() -> None:
    root = Path(__file__).resolve().parents[3]
    files = [file for room in ("twin", "deploy", "streams") for file in (root / room).rglob("*.py")]
    writers = {file.name for file in files if "SZ({" in file.read_text(encoding="utf-8")}
    assert writers <= {"capacity.py", "advice.py"}, "the last is a warning"
