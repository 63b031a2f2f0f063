"""An estate of what data show, and its differences from an existing one."""

from __future__ import annotations

import json
import tomllib

import pytest

from tests.twin.feeds.read import read
from tests.twin.feeds.samples import DISPLAYS, POLICY, SYSPRINT, USAGE_ROWS
from tests.twin.feeds.smf_made import data_set, queue_statistics, record
from twin.base.errors import UsageError
from twin.estate import load_estate
from twin.feeds import FeedOptions, Page
from twin.feeds.estate_import import differences, estate_text, look_at, unverified

CFRM = """
DATA TYPE(CFRM)
DEFINE POLICY NAME(P)
  CF NAME(CF01)
  STRUCTURE NAME(QSG1CSQ_ADMIN) SIZE(65536) PREFLIST(CF01)
  STRUCTURE NAME(QSG1APP1) SIZE(2G) INITSIZE(1G) PREFLIST(CF01)
  STRUCTURE NAME(QSG1APP2) SIZE(1G) PREFLIST(CF01)
  STRUCTURE NAME(ISGLOCK) SIZE(1G) PREFLIST(CF01)
"""


@pytest.fixture
def files(tmp_path):
    """Return (format, path, owner) of data of one queue manager."""
    contents = {
        "display": (DISPLAYS + SYSPRINT).encode(),
        "smf": record(216, [queue_statistics(), queue_statistics(queue="L", flags=0, page_set=4, structure="")])
        + record(2, [data_set(blocks_total=100, blocks_used=10, blocks_free=90)]),
        "cfrm": CFRM.encode(),
    }
    paths = []
    for name, content in contents.items():
        paths.append((name, tmp_path / f"{name}.txt", ""))
        paths[-1][1].write_bytes(content)
    return paths


def facts_of(files, estate=None):
    return look_at(files, FeedOptions(), estate).facts


def test_what_was_seen_is_an_estate_that_can_be_loaded(tmp_path, files):
    result = estate_text(facts_of(files))
    path = tmp_path / "seen.toml"
    path.write_text(result.text, encoding="utf-8")
    estate = load_estate(path)
    structure = estate.stores["QSG1/APP1"]
    assert (structure.size, structure.init_size, structure.offld1_sz) == (2 << 30, 1 << 30, 32 << 10)
    assert structure.queues == ("ORDERS",)
    assert estate.stores["QM01/PS04"].pages == 1080
    assert estate.stores["QM01/PS04"].queues == ("L",)
    administration = estate.stores["QSG1/CSQ_ADMIN"]
    assert (administration.size, administration.holds_queues) == (64 << 20, False)
    assert estate.queue_managers["QM01"].version == "9.4"


def test_an_object_without_what_it_needs_is_a_comment_and_a_warning(files):
    result = estate_text(facts_of([file for file in files if file[0] == "smf"]))
    assert 'structure "' not in result.text
    assert '# [structure."QSG1/APP1"]' in result.text
    assert any(warning.startswith("structure QSG1/APP1: its size was not seen") for warning in result.warnings)
    assert set(tomllib.loads(result.text)) <= {"schema", "queue_sharing_group", "queue_manager"}


def test_capacities_that_nothing_has_shown_are_named(files):
    lines = list(unverified(facts_of(files)))
    assert any(line.startswith("page set QM01/PS04: EXPAND(SYSTEM), and the space on its volumes") for line in lines)
    without_sizes = facts_of(files)
    del without_sizes.objects["smds", "QSG1/APP1/QM01"]
    lines = list(unverified(without_sizes))
    assert any(line.startswith("SMDS of QM01 for QSG1/APP1: its size was not seen") for line in lines)
    assert not any("size differs" in line or "QSG1/APP1: its size 2G" in line for line in lines)


def test_a_size_that_is_not_from_initsize_to_size_differs(files):
    (policy,) = [path for name, path, _ in files if name == "cfrm"]
    policy.write_text(CFRM.replace("SIZE(2G) INITSIZE(1G)", "SIZE(768M)"), encoding="utf-8")
    lines = list(unverified(facts_of(files)))
    assert any(line.startswith("structure QSG1/APP1: size differs: 1G in ") and ", 768M in " in line for line in lines)


def test_a_page_set_whose_extent_nothing_has_shown_does_not_expand_as_the_warning_says(tmp_path):
    intake = look_at([], FeedOptions())
    intake.facts.add("queue_manager", "QM01", "display.txt", platform="zos")
    intake.facts.add("page_set", "QM01/4", "display.txt", pages=1080, expand="USER")
    (line,) = unverified(intake.facts)
    assert line.startswith(
        "page set QM01/PS04: EXPAND(USER), and its secondary extent was not seen: it does not expand"
    )
    path = tmp_path / "seen.toml"
    path.write_text(estate_text(intake.facts).text, encoding="utf-8")
    (warning,) = load_estate(path).warnings
    assert "without secondary_pages cannot expand" in warning


def test_differences_from_an_estate_name_both_values_and_the_source(estate, files):
    lines = list(differences(facts_of(files, estate), estate))
    assert any(line.startswith("QSG1/APP1: size differs: 4G in the estate, 2G seen (") for line in lines)
    assert any(line.startswith("QM01/PS04: pages differs: 20000 in the estate, 1080 seen (") for line in lines)
    assert any(line.startswith("QSG1/APP2: seen (") and line.endswith("not in the estate") for line in lines)
    assert any(line.startswith("queue QM01/L: seen (") for line in lines)
    assert not [line for line in lines if "ORDERS" in line]


@pytest.mark.parametrize(("kilobytes", "differs"), [(4, False), (6, False), (8, False), (3, True), (9, True)])
def test_an_allocated_size_from_initsize_to_size_is_no_difference(tmp_path, kilobytes, differs):
    """SIZEMAX of CFSTATUS is what is allocated, which automatic alter moves between the two."""
    text = """schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[structure."QSG1/APP1"]
size = "8G"
init_size = "4G"
allow_auto_alter = true
[queue."QSG1/ORDERS"]
structure = "APP1"
"""
    (tmp_path / "estate.toml").write_text(text, encoding="utf-8")
    estate = load_estate(tmp_path / "estate.toml")
    status = SYSPRINT.replace("SIZEMAX(1048576)", f"SIZEMAX({kilobytes << 20})")
    (tmp_path / "status.txt").write_text(status, encoding="utf-8")
    lines = list(differences(facts_of([("display", tmp_path / "status.txt", "")], estate), estate))
    assert any("QSG1/APP1: size differs" in line for line in lines) == differs


def test_groups_that_nothing_names_may_be_given(tmp_path):
    path = tmp_path / "cfrm.txt"
    path.write_text(CFRM, encoding="utf-8")
    unknown = look_at([("cfrm", path, "")], FeedOptions())
    assert "expected: DISPLAY QMGR QSGNAME in front of it, --group QSG1=QM01,QM02" in unknown.complaints[0].text
    intake = look_at([("cfrm", path, "")], FeedOptions(), groups={"QSG1": ["QM01", "QM02"]})
    assert intake.facts.value("structure", "QSG1/APP1", "size") == 2 << 30
    assert intake.facts.value("queue_sharing_group", "QSG1", "queue_managers") == ["QM01", "QM02"]


def test_a_store_that_was_not_seen_is_named(estate, tmp_path):
    path = tmp_path / "cfrm.txt"
    path.write_text(CFRM.replace("QSG1APP1", "QSG1APP9"), encoding="utf-8")
    lines = list(differences(facts_of([("cfrm", path, "")], estate), estate))
    assert "QSG1/APP1: in the estate, not seen" in lines


def test_a_page_set_of_a_damaged_name_is_named_as_it_was_seen(estate):
    intake = look_at([], FeedOptions(), estate)
    intake.facts.add("page_set", "QM01/o$4", "display.txt", pages=1080)
    assert "QM01/o$4: seen (display.txt), not in the estate" in list(differences(intake.facts, estate))


def test_structures_of_other_products_are_named_and_left_out(files):
    intake = look_at(files, FeedOptions())
    assert not [c for c in intake.complaints if "ISGLOCK" in c.text]
    assert intake.passed_over["structure of other products"].kinds == {"ISGLOCK": 1}


def test_structures_of_a_group_of_mq_that_is_not_known_are_a_complaint(tmp_path, files):
    policy = tmp_path / "policy"
    policy.write_text(CFRM + "  STRUCTURE NAME(QSG7CSQ_ADMIN) SIZE(1G)\n  STRUCTURE NAME(QSG7APP1) SIZE(1G)\n")
    intake = look_at([*files[:2], ("cfrm", policy, "")], FeedOptions())
    [complaint] = [c for c in intake.complaints if c.code == "no-group"]
    assert "QSG7CSQ_ADMIN, QSG7APP1;" in complaint.text


def test_a_policy_alone_has_the_groups_of_its_administration_structures(tmp_path, files):
    facts = facts_of(files[2:])
    assert (facts.value("structure", "QSG1/APP2", "size"), facts.memberless) == (1 << 30, {"QSG1"})
    policy = tmp_path / "policy"
    policy.write_text(CFRM.replace("CSQ_ADMIN", "ADMIN"))
    intake = look_at([("cfrm", policy, "")], FeedOptions())
    assert [c.code for c in intake.complaints if "ISGLOCK" in c.text] == ["no-group"]


BLOCKS = "CSQE280I QM01 SMDS usage ...\n_APP1   123   {}   9998   12    0%   NO\n"
MEMBER = "CSQE005I QM01 CSQECONN Structure APP1 connected as\nCSQEQSG1QM0102, version=DE928A95A9012381 00020001\n"
DEFINED = "CSQM201I QM01 CSQMDRTC  DISPLAY CFSTRUCT DETAILS\nCFSTRUCT(APP1)\nOFFLOAD(SMDS)\nDSBLOCK({})\n"


@pytest.mark.parametrize(
    ("texts", "size"),
    [
        ((MEMBER, DEFINED.format("64K"), BLOCKS.format(10_000)), 10_000 << 16),
        ((MEMBER, BLOCKS.format(10_000), DEFINED.format("64K")), 10_000 << 16),
        ((MEMBER, BLOCKS.format(10_000), BLOCKS.format(12_000), DEFINED.format("64K")), 12_000 << 16),
        ((MEMBER, BLOCKS.format(12_000), DEFINED.format("64K"), BLOCKS.format(10_000)), 12_000 << 16),
        ((MEMBER, BLOCKS.format(10_000)), 10_000 << 18),
    ],
)
def test_the_size_of_a_data_set_is_its_blocks_in_any_order_of_files(tmp_path, texts, size):
    files = []
    for number, text in enumerate(texts):
        files.append(("display", tmp_path / f"{number}.txt", ""))
        files[-1][1].write_text(text)
    facts = facts_of(files)
    assert facts.value("smds", "QSG1/APP1/QM01", "size") == size
    assumed = any("DSBLOCK was not seen" in line for line in estate_text(facts).warnings)
    assert assumed == ("DSBLOCK" not in "".join(texts))


@pytest.mark.parametrize("sizes", [(1 << 20, 1 << 21), (1 << 21, 1 << 20)])
def test_sizes_that_were_measured_at_two_times_do_not_differ(tmp_path, sizes):
    files = [*_status_files(tmp_path, sizes)]
    facts = facts_of(files)
    assert facts.value("structure", "QSG1/APP1", "size") == 2 << 30
    assert not [line for line in unverified(facts) if "differs" in line]


def _status_files(folder, sizes):
    (folder / "member.txt").write_text(MEMBER)
    yield "display", folder / "member.txt", ""
    for number, size in enumerate(sizes):
        path = folder / f"status{number}.txt"
        path.write_text(SYSPRINT.replace("SIZEMAX(1048576)", f"SIZEMAX({size})"))
        yield "display", path, ""


def test_a_policy_in_a_display_is_a_fact_like_one_in_a_file(estate, tmp_path):
    path = tmp_path / "d.txt"
    path.write_text(POLICY, encoding="utf-8")
    lines = list(differences(facts_of([("display", path, "")], estate), estate))
    assert any(line.startswith("QSG1/APP1: size differs: 4G in the estate, 2G seen") for line in lines)


def test_an_unknown_format_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="no such format"):
        look_at([("cobol", tmp_path / "x", "")], FeedOptions())


def test_the_policy_of_an_estate_does_not_differ_from_it(shared):
    folder = shared / "fixtures" / "estates"
    estate = load_estate(folder / "estate.toml")
    [line] = differences(facts_of([("cfrm", folder / "cfrm.txt", "")], estate), estate)
    assert line.startswith("QSG1/CSQ_ADMIN: seen (") and line.endswith(", not in the estate")


TWO = "DEFINE POLICY NAME(OLD)\n STRUCTURE NAME(QSG1APP1) SIZE(1G)\nDEFINE POLICY NAME(NEW)\n{}"
ACTIVE = "IXC364I  12.27.28  DISPLAY XCF 562\nTYPE: CFRM\n  POLNAME:      {}\n  STARTED:      11/20/2026 06:02:11\n"


@pytest.mark.parametrize(
    ("name", "active", "size"), [("OLD", "", 1), ("NEW", "OLD", 4), ("", "NEW", 4), ("", "OLD", 1)]
)
def test_of_several_policies_the_active_or_the_named_one_is_taken(tmp_path, name, active, size):
    path, display = tmp_path / "policy.txt", tmp_path / "active.txt"
    path.write_text(TWO.format(" STRUCTURE NAME(QSG1APP1) SIZE(4G)\n"))
    display.write_text(ACTIVE.format(active))
    intake = look_at([("cfrm", path, name), ("display", display, "")], FeedOptions(), groups={"QSG1": ["QM01"]})
    assert intake.facts.value("structure", "QSG1/APP1", "size") == size << 30


@pytest.mark.parametrize("active", ["", "OTHER"])
def test_of_several_policies_none_is_taken_unasked(tmp_path, active):
    path, display = tmp_path / "policy.txt", tmp_path / "active.txt"
    path.write_text(TWO.format(" STRUCTURE NAME(QSG1APP1) SIZE(4G)\n"))
    display.write_text(ACTIVE.format(active))
    with pytest.raises(UsageError, match=r"2 policies by line: OLD \(1\), NEW \(3\); expected: .* cfrm:NAME=FILE"):
        look_at([("cfrm", path, ""), ("display", display, "")], FeedOptions(), groups={"QSG1": []})


def test_what_is_wrong_in_a_policy_is_a_complaint(tmp_path):
    path = tmp_path / "policy.txt"
    path.write_text(TWO.format("").replace("1G", "1XB"))
    intake = look_at([("cfrm", path, "")], FeedOptions(), groups={"QSG1": ["QM01"]})
    assert intake.counts == {"bad-value": 1}


def test_a_group_without_members_is_a_comment(tmp_path):
    path = tmp_path / "policy.txt"
    path.write_text(TWO.format(""))
    seen = estate_text(look_at([("cfrm", path, "")], FeedOptions(), groups={"QSG1": []}).facts)
    assert "# [queue_sharing_group.QSG1]" in seen.text
    assert '# [structure."QSG1/APP1"]' in seen.text
    assert "queue_sharing_group QSG1: its queue_managers was not seen; expected: DISPLAY QMGR" in seen.warnings[0]


@pytest.mark.parametrize("psid", [4, "04"])
def test_a_queue_shows_the_page_set_of_its_storage_class(psid):
    """DISPLAY QUEUE with PSID: the storage class needs no answer of its own."""
    fields = {"queue": "LOCAL", "type": "QLOCAL", "stgclass": "DEFAULT", "psid": psid}
    usage = ["CSQI010I +QM01 Page set usage ...", *USAGE_ROWS.splitlines()]
    answers = [{"parameters": fields}, {"message": usage}]
    answer = {"commandResponse": [{"completionCode": 0, "reasonCode": 0, **own} for own in answers]}
    page = Page(json.dumps(answer).encode(), "answer.json", 1_795_176_000_000_000)
    text = estate_text(read("rest", page, qmgr="QM01")[1].facts).text
    assert '[storage_class."QM01/DEFAULT"]\npage_set = 4' in text
