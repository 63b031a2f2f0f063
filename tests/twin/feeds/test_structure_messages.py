"""IXC585E and IXC586I in their layouts, and the usage of D XCF,STR: texts of our own after those that IBM publishes."""

from __future__ import annotations

import pytest

from tests.twin.feeds.read import read
from tests.twin.feeds.samples import numbered, responses
from tests.twin.feeds.samples import syslog as as_syslog
from tests.twin.feeds.test_live_formats import COLUMNS, answer, report, structure
from twin.estate import Estate, load_estate
from twin.feeds import Intake, Page, make_feed

NOON = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z
QUARTER_TO_FOUR = (3 * 3600 + 45 * 60 + 58) * 1_000_000  # from the time in IXC360I, 08.14.02, to noon
JANUARY = 1_706_550_234_000_000  # 2024-01-29T17:43:54Z
FULL = {"ents_used": 5210, "ents_max": 41_000, "elems_used": 82_490, "elems_max": 82_500}


def older(structure: str) -> str:
    """Return IXC585E with the words IN USE and TOTAL in each line."""
    return (
        f"IXC585E STRUCTURE {structure} IN COUPLING FACILITY CF01,\n"
        "PHYSICAL STRUCTURE VERSION C1D2E3F4 01234567,\n"
        "IS AT OR ABOVE STRUCTURE FULL MONITORING THRESHOLD OF 85%.\n"
        "ENTRIES:  IN USE:     5210 TOTAL:    41000,  12% FULL\n"
        "ELEMENTS: IN USE:    82490 TOTAL:    82500,  99% FULL\n"
    )


def newer(structure: str) -> str:
    """Return IXC585E with a column each for what is in use, the total and the percentage."""
    return (
        f"IXC585E STRUCTURE {structure} IN COUPLING FACILITY CF01,\n"
        "PHYSICAL STRUCTURE VERSION C1D2E3F4 01234567,\n"
        "IS AT OR ABOVE STRUCTURE FULL MONITORING THRESHOLD OF 85%:\n"
        "  SPACE USAGE     IN-USE       TOTAL    %\n"
        "   ENTRIES:         5210       41000   12\n"
        "   ELEMENTS:       82490       82500   99\n"
        "   EMCS:              12        9000    0\n"
    )


def below(structure: str) -> str:
    return (
        f"IXC586I STRUCTURE {structure} IN COUPLING FACILITY CF01,\n"
        "PHYSICAL STRUCTURE VERSION C1D2E3F4 01234567,\n"
        "IS NOW BELOW STRUCTURE FULL MONITORING THRESHOLD.\n"
    )


DISPLAYED = """\
IXC360I  08.14.02  DISPLAY XCF 593
STRNAME: QSG1CSQ_ADMIN
 STATUS: ALLOCATED
 TYPE: LIST
 POLICY INFORMATION:
  POLICY SIZE    : 64 M
  POLICY INITSIZE: 40 M
  FULLTHRESHOLD  : 85
  ALLOWAUTOALT   : YES

 ACTIVE STRUCTURE
 ----------------
  ALLOCATION TIME: 11/20/2026 06:02:11
  CFNAME         : CF01
  ACTUAL SIZE    : 48 M
  SPACE USAGE     IN-USE       TOTAL    %
   ENTRIES:         5210       41000   12
   ELEMENTS:       82490       82500   99
   EMCS:              12        9000    0
"""


@pytest.fixture
def site(tmp_path) -> Estate:
    path = tmp_path / "site.toml"
    path.write_text(
        "schema = 1\n[queue_sharing_group.QSG1]\nqueue_managers = ['QM01', 'QM02']\n"
        "[structure.'QSG1/CSQ_ADMIN']\nsize = '64M'\n[structure.'QSG1/APP1']\nsize = '1G'\n"
        "[queue.'QSG1/ORDERS']\nstructure = 'APP1'\n[other_structure.LOG_STR1]\nsize = '16M'\n",
        encoding="utf-8",
    )
    return load_estate(path)


def display(text: str, estate: Estate | None, **options):
    events, intake = read("display", Page(text.encode(), "text", NOON), estate=estate, **options)
    return [(event["time"], event["qmgr"], event["store"], event["measured"]) for event in events], intake


@pytest.mark.parametrize(("wrap", "time"), [(str, NOON), (numbered, JANUARY), (responses, NOON), (as_syslog, JANUARY)])
@pytest.mark.parametrize("layout", [older, newer])
def test_the_counts_of_a_structure_at_its_threshold_are_measured(site: Estate, layout, wrap, time: int) -> None:
    for name, store in (("QSG1CSQ_ADMIN", "QSG1/CSQ_ADMIN"), ("QSG1APP1", "QSG1/APP1"), ("LOG_STR1", "LOG_STR1")):
        assert display(wrap(layout(name)), site)[0] == [(time, "QM01", store, FULL)]


def test_a_highlighted_message_is_the_same(site: Estate) -> None:
    assert display(f"*{newer('QSG1CSQ_ADMIN')}", site)[0] == [(NOON, "QM01", "QSG1/CSQ_ADMIN", FULL)]


def test_the_queue_manager_of_the_log_is_kept_where_it_is_of_the_group(site: Estate) -> None:
    for qmgr, reporter in (("QM02", "QM02"), ("QM77", "QM01")):
        [(_, seen, _, _)], _ = display(newer("QSG1CSQ_ADMIN"), site, qmgr=qmgr)
        assert seen == reporter


def test_a_percentage_of_other_counts_is_a_complaint(site: Estate) -> None:
    events, intake = display(newer("QSG1CSQ_ADMIN").replace("   99\n", "   55\n"), site)
    assert events == []
    assert intake.counts["bad-value"] == 1


def test_more_in_use_than_there_is_is_a_complaint(site: Estate) -> None:
    events, intake = display(newer("QSG1CSQ_ADMIN").replace("82490       82500   99", "83000       82500  100"), site)
    assert events == []
    assert intake.counts["inconsistent"] == 1


def test_back_below_is_three_points_below_where_nothing_else_says_so(site: Estate) -> None:
    later = numbered(below("QSG1CSQ_ADMIN"), 106).replace("17.43.5", "17.48.5")
    events, _ = display(numbered(newer("QSG1CSQ_ADMIN")) + later, site)
    bound = {**FULL, "elems_used": 82_500 * 82 // 100}
    assert [(time, measured) for time, _, _, measured in events] == [(JANUARY, FULL), (JANUARY + 300_000_000, bound)]


@pytest.mark.parametrize("wrap", [numbered, as_syslog])
@pytest.mark.parametrize("layout", [older, newer])
def test_live_both_are_measured_with_the_line_that_shows_them(site: Estate, layout, wrap) -> None:
    intake = Intake(site)
    feed = make_feed("display", intake)
    full, back = (wrap(text("QSG1CSQ_ADMIN"), number).splitlines() for text, number in ((layout, 105), (below, 106)))
    elements = []
    for number, line in enumerate([*full, *back]):
        events = list(intake.sift(feed.take(Page(line.encode(), f"t/0@{number}", JANUARY, stream="t/0/"))))
        elements += [(line, event["measured"]["elems_used"]) for event in events]
    first = next(line for line in full if "ELEMENTS" in line)
    second = next(line for line in back if "IXC586I" in line)
    assert elements == [(first, 82_490), (second, 82_500 * 82 // 100)]
    assert not feed.begun_in


def test_back_below_of_a_structure_with_queues_is_passed_over(site: Estate) -> None:
    events, intake = display(below("QSG1APP1"), site)
    assert events == []
    assert intake.lines_for_passed_over() == ["1 message without counts (1 of IXC586I)"]


def test_structures_of_others_are_passed_over(site: Estate) -> None:
    events, intake = display(newer("ISGLOCK"), site)
    assert events == []
    assert intake.lines_for_passed_over() == ["1 structure of no group of the estate (1 of ISGLOCK)"]


def test_usage_and_size_that_are_displayed_are_measured(site: Estate) -> None:
    events, intake = display(DISPLAYED, site)
    assert events == [(NOON - QUARTER_TO_FOUR, "QM01", "QSG1/CSQ_ADMIN", {**FULL, "size": 48 << 20})]
    assert intake.facts.value("structure", "QSG1/CSQ_ADMIN", "init_size") == 40 << 20


def test_entries_of_cfstatus_are_measured_of_an_administration_structure_too(site: Estate) -> None:
    text = (
        "CSQM201I QM01 CSQMDRTC  DISPLAY CFSTATUS DETAILS\nCFSTATUS(CSQ_ADMIN)\nTYPE(SUMMARY)\nCFTYPE(ADMIN)\n"
        "STATUS(ACTIVE)\nSIZEMAX(65536)\nSIZEUSED(12)\nENTSMAX(41000)\nENTSUSED(5210)\n END CFSTATUS DETAILS\n"
    )
    measured = {"ents_max": 41_000, "ents_used": 5210, "size": 64 << 20, "usage_pct": 12}
    assert display(text, site)[0] == [(NOON, "QM01", "QSG1/CSQ_ADMIN", measured)]


@pytest.mark.parametrize(("name", "store"), [("QSG1CSQ_ADMIN", "QSG1/CSQ_ADMIN"), ("LOG_STR1", "LOG_STR1")])
def test_rmf_measures_structures_without_queues(site: Estate, name: str, store: str) -> None:
    events, intake = read("dds", answer(report("CFACT", COLUMNS, structure(name))), estate=site)
    [event] = events
    assert (event["op"], event["store"]) == ("MEASURE", store)
    assert {"ents_used", "ents_max", "elems_used", "elems_max"} <= event["measured"].keys()
    assert intake.lines_for_unknown() == []


@pytest.mark.parametrize("layout", [older, newer])
@pytest.mark.parametrize("digits", [16, 400, 5000])
def test_a_number_of_many_digits_is_a_bad_value(site, layout, digits):
    text = layout("QSG1CSQ_ADMIN").replace("5210", "9" * digits)
    events, intake = read("display", Page(as_syslog(text).encode(), "log", NOON), estate=site)
    assert events == []
    assert intake.counts["bad-value"] == 1 and intake.counts["reader-failed"] == 0
