"""`mqtwin size`: tables, JSON, sizes from an estate, wrong use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deploy.cli import main
from deploy.show.sizes import pasteable
from tests.support.traffic import write_estate
from twin.estate import load_estate
from twin.sizing import ClusterLoad, plan_cluster

MILLION = "1000000"
CLUSTER = ["cluster", "--rate", "1M", "--stores", "1000"]
WITH_MAX_DEPTHS = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[structure."QSG1/APP1"]
size = "1M"
[queue."QSG1/ORDERS"]
structure = "APP1"
max_depth = 700
[queue."QSG1/OTHER"]
structure = "APP1"
[page_set."QM01/4"]
pages = 1000
[storage_class."QM01/DEFAULT"]
page_set = 4
[queue."QM01/FIRST"]
storage_class = "DEFAULT"
max_depth = 300
[queue."QM01/SECOND"]
storage_class = "DEFAULT"
max_depth = 400
"""


@pytest.fixture
def run_size(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `mqtwin size`; return the cells of each line."""

    def run(*words: str) -> list[list[str]]:
        assert main(["size", *words]) == 0
        return [line.split("\t") for line in capsys.readouterr().out.splitlines()]

    return run


@pytest.fixture
def plan_json(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `mqtwin size --json`; return the object and the warnings."""

    def run(*words: str) -> tuple[dict[str, Any], list[str]]:
        assert main(["size", *words, "--json"]) == 0
        printed = capsys.readouterr()
        return json.loads(printed.out), printed.err.splitlines()

    return run


@pytest.fixture
def estate(tmp_path: Path) -> list[str]:
    return ["--estate", str(write_estate(tmp_path)), "--store"]


def test_a_structure_is_a_line_for_each_place_of_the_data(run_size: Any) -> None:
    headings, *lines = run_size("structure", "--messages", f"2048:{MILLION}", "--messages", "64K:5000")
    assert headings == ["data", "ratio", "entries", "elements", "bytes", "SIZE"]
    assert [line[0] for line in lines] == [
        "in the structure",
        "offloaded",
        "offloaded",
        "by the document",
        "by its rules",
    ]
    assert lines[0] == ["in the structure", "1:6", "1,005,000", "10,010,000", "3,261,035,000", "3550M"]


def test_with_a_size_it_says_how_many_messages_fit(run_size: Any) -> None:
    headings, in_structure, *_ = run_size("structure", "--messages", "2048", "--size", "4G")
    assert (headings[-1], in_structure[-1]) == ("fit in 4G", "1,155,078")


def test_on_a_terminal_it_is_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["size", "structure", "--messages", "2048"]) == 0
    out = capsys.readouterr().out
    assert "\t" not in out and "in the structure" in out


def test_a_threshold_comes_with_its_mqsc(run_size: Any) -> None:
    lines = dict(run_size("threshold", "--backlog", MILLION, "--size", "10G")[1:])
    assert lines["maximum OFFLD3TH"] == "92"
    assert lines["OFFLD3TH for up to 90 % usage"] == "around 80 (exactly 82.85)"
    assert lines["MQSC"] == (
        "ALTER CFSTRUCT(NAME) OFFLD1TH(59) OFFLD1SZ(32K) OFFLD2TH(69) OFFLD2SZ(4K) OFFLD3TH(79) OFFLD3SZ(0K)"
    )


def test_on_a_terminal_the_commands_of_a_threshold_are_there_to_be_pasted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["size", "threshold", "--backlog", MILLION, "--size", "10G"]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "",
        "ALTER CFSTRUCT(NAME) OFFLD1TH(59) OFFLD1SZ(32K) OFFLD2TH(69) +",
        "    OFFLD2SZ(4K) OFFLD3TH(79) OFFLD3SZ(0K)",
    ]


def test_setxcf_is_a_line_of_its_own() -> None:
    text = "ALTER CFSTRUCT(APP1) OFFLD3TH(0) OFFLD3SZ(0K), then SETXCF START,REBUILD,STRNAME=QSG1APP1"
    assert pasteable(text).splitlines() == [
        "ALTER CFSTRUCT(APP1) OFFLD3TH(0) OFFLD3SZ(0K)",
        "SETXCF START,REBUILD,STRNAME=QSG1APP1",
    ]


def test_a_backlog_may_have_a_letter(plan_json: Any) -> None:
    assert plan_json("threshold", "--backlog", "1M", "--size", "10G") == plan_json(
        "threshold", "--backlog", MILLION, "--size", "10G"
    )


def test_warnings_of_the_estate_are_one_line_before_a_plan(plan_json: Any, estate: list[str]) -> None:
    file = Path(estate[1])
    unwise = file.read_text(encoding="utf-8").replace('size = "1M"', 'size = "1M"\nallow_auto_alter = true', 1)
    file.write_text(unwise, encoding="utf-8")
    count = len(load_estate(file).warnings)
    assert count > 1
    _, warnings = plan_json("structure", "--messages", "1K:10", *estate, "QSG1/APP2")
    assert warnings == [f"mqtwin: warning: {file}: {count} warnings, see mqtwin estate check {file}"]


def test_a_threshold_of_a_store_names_it_and_takes_its_size(plan_json: Any, estate: list[str]) -> None:
    plan, _ = plan_json("threshold", "--backlog", "100", *estate, "QSG1/APP1")
    assert plan["size"] == 1 << 20
    assert plan["mqsc"].startswith("ALTER CFSTRUCT(APP1) ")
    larger, _ = plan_json("threshold", "--backlog", "100", *estate, "QSG1/APP1", "--size", "4G")
    assert larger["size"] == 4 << 30


def test_a_data_set_is_printed_in_records_and_cylinders(run_size: Any) -> None:
    headings, *lines = run_size("smds", "--messages", "64K:5000", "--ds-block", "512K")
    assert headings == ["data set", "DSBLOCK(512K)"]
    assert ["smallest data set", "80,128 records, 446 cylinders, 313M"] in lines


def test_the_data_sets_of_a_store_are_compared_with_what_is_needed(plan_json: Any, estate: list[str]) -> None:
    plan, _ = plan_json("smds", "--messages", "64K:5", *estate, "QSG1/APP1")
    assert plan["ds_block"] == 256 << 10
    assert sorted(plan["used_pct"]) == ["QM01", "QM02"]
    assert all(0 < pct < 100 for pct in plan["used_pct"].values())


def test_a_page_set_has_room_for_gets_that_are_delayed(plan_json: Any, run_size: Any) -> None:
    words = ["page-set", "--rate", "2048:50", "--delay", "2h", "--messages", "20000:100"]
    plan, _ = plan_json(*words)
    assert plan["pages"] == 360_000 + 700
    assert plan["lengths"][0]["n"] == 6 and plan["lengths"][0]["c"] == 38
    assert ["message pages", "360,700"] in run_size(*words)


@pytest.mark.parametrize(("command", "store"), [("page-set", "QM01/PS04"), ("structure", "QSG1/APP1")])
def test_the_worst_case_of_a_store_is_every_queue_at_its_maxdepth(
    plan_json: Any, tmp_path: Path, command: str, store: str
) -> None:
    path = tmp_path / "estate.toml"
    path.write_text(WITH_MAX_DEPTHS, encoding="utf-8")
    words = ["--estate", str(path), "--store", store]
    plan, warnings = plan_json(command, "--at-max-depth", "2K", *words)
    counted, _ = plan_json(command, "--messages", "2K:700", *words)
    assert plan == counted
    unknown = "mqtwin: warning: no max_depth in the estate, so no messages counted: OTHER"
    assert (unknown in warnings) == (command == "structure")


def test_a_worst_case_needs_an_estate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["size", "page-set", "--at-max-depth", "2K"]) == 2
    assert "--at-max-depth 2K: give --estate and --store" in capsys.readouterr().err


def test_a_queue_manager_before_7_0_1_needs_fewer_pages(plan_json: Any) -> None:
    words = ["page-set", "--messages", "100:1000"]
    assert plan_json(*words)[0]["pages"] == 1_000
    assert plan_json(*words, "--mq-version", "7.0.0")[0]["pages"] == 125


def test_a_page_set_of_the_estate_is_compared_with_what_is_needed(
    plan_json: Any, run_size: Any, estate: list[str]
) -> None:
    words = ["page-set", "--messages", "100:499", *estate, "QM01/PS04"]
    assert plan_json(*words)[0]["used_pct"] == pytest.approx(50.0)
    assert ["used of QM01/PS04, 998 pages", "50.0 %"] in run_size(*words)


def test_scm_comes_with_its_cfrm_and_warns_where_it_is_over_committed(plan_json: Any, run_size: Any) -> None:
    words = ["scm", "--messages", "2048:2500000", "--size", "4G"]
    plans, warnings = plan_json(*words, "--scm-total", "2G")
    assert [plan["data"] for plan in plans["plans"]] == ["in the structure", "offloaded"]
    assert plans["plans"][0]["cfrm"].endswith("SCMALGORITHM(KEYPRIORITY1) SCMMAXSIZE(4006M)")
    [warning] = warnings
    assert warning.startswith("mqtwin: warning: in the structure: SCM would be over-committed: 4006M, there are 2G")
    assert plan_json(*words, "--scm-total", "8G")[1] == []
    assert ["SCMMAXSIZE", "4006M", "601M"] in run_size(*words)


def test_scm_of_a_store_counts_what_the_other_structures_may_use(plan_json: Any, shared: Path) -> None:
    path = str(shared / "fixtures" / "estates" / "estate.toml")
    words = ["scm", "--messages", "2048:9000000", "--estate", path, "--store", "QSG1/APP2"]
    plans, warnings = plan_json(*words)
    assert plans["plans"][0]["cfrm"].startswith("STRUCTURE NAME(QSG1APP2) SIZE(2G) INITSIZE(1G) ")
    assert any("over-committed" in warning and "there are 16G" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["structure"], "no messages; expected: how many of which length"),
        (["structure", "--messages", "x"], "--messages x; expected: a length in bytes"),
        (["structure", "--messages", "1", "--size", "0"], "--size 0; expected: bytes, or a number with K"),
        (
            ["structure", "--messages", "1", "--store", "QSG1/APP1"],
            "--store QSG1/APP1 without --estate; expected: --estate, too",
        ),
        (["threshold", "--backlog", "5"], "--size is missing; expected: a size such as 4G"),
        (["threshold", "--backlog", "0", "--size", "4G"], "--backlog 0; expected: a number of messages from 1"),
        (["threshold", "--backlog", "5X", "--size", "4G"], "--backlog 5X; expected: a number of messages from 1"),
        (["threshold", "--backlog", "5", "--size", "1"], "more than 90 %; expected: SIZE(1M) or more"),
        (["smds", "--messages", "100:5"], "expected: lengths above 140 bytes"),
        (["page-set", "--rate", "2048:50"], "--rate and --delay"),
        (["page-set", "--messages", "5:5", "--delay", "2h"], "--rate and --delay"),
        (["page-set", "--rate", "2048:50", "--delay", "soon"], "--delay soon"),
        (["scm", "--messages", "2048:50"], "--size is missing; expected: a size such as 4G"),
        (["scm", "--messages", "2048:50", "--size", "4G", "--scm-total", "much"], "--scm-total much"),
        (["queue-file"], "--messages or --persistent is missing; expected: LENGTH:COUNT"),
        (["cluster", "--stores", "4"], "--rate requires an argument"),
        (
            ["cluster", "--rate", "2G", "--stores", "4"],
            "--rate 2G; expected: a number from 1 to 1,000,000,000, such as 5000 or 5K",
        ),
        (
            ["cluster", "--rate", "5", "--stores", "0"],
            "--stores 0; expected: a number from 1 to 10,000,000",
        ),
        (["cluster", "--rate", "5", "--stores", "4", "--latency", "0"], "--latency. Must be > 0"),
        (["data-set"], "data-set"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_is_one_line_and_status_2(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["size", *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1
    assert complaint in err


def test_a_store_that_is_not_there_is_answered_with_those_that_are(
    estate: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["size", "structure", "--messages", "1", *estate, "QM01/PS04"]) == 2
    assert "; expected: QSG1/APP1, QSG1/APP2" in capsys.readouterr().err
    assert main(["size", "page-set", "--messages", "1", *estate[:2]]) == 2
    assert "--store is missing" in capsys.readouterr().err


WITH_INIT_SIZE = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[structure."QSG1/APP1"]
size = "8G"
init_size = "4G"
[smds."QSG1/APP1/QM01"]
size = "10G"
[queue."QSG1/ORDERS"]
structure = "APP1"
"""


def test_size_and_initsize_are_apart_and_the_rebuild_that_helps_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "estate.toml"
    file.write_text(WITH_INIT_SIZE, encoding="utf-8")
    assert main(["size", "structure", "--messages", "3K:5M", "--estate", str(file), "--store", "QSG1/APP1"]) == 0
    out, err = capsys.readouterr()
    headings, *lines = (line.split("\t") for line in out.splitlines())
    assert headings[-2:] == ["fit in INITSIZE 4G", "fit in SIZE 8G"]
    assert lines[-1][0] == "by its rules" and lines[-1][-1] == "2,640,179"
    assert "7,116,764 fit instead of 2,640,179" in err
    assert "OFFLD3TH(0) OFFLD3SZ(0K), then SETXCF START,REBUILD,STRNAME=QSG1APP1" in err


def test_no_digit_is_cut_on_a_terminal_of_80_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "80")
    file = tmp_path / "estate.toml"
    file.write_text(WITH_INIT_SIZE, encoding="utf-8")
    for source in (["--size", "8G"], ["--estate", str(file), "--store", "QSG1/APP1"]):
        assert main(["size", "structure", "--messages", "3K:5M", *source]) == 0
        out = capsys.readouterr().out
        assert "7,116,764" in out and "11,184,810" in out
        assert max(map(len, out.splitlines())) <= 80


def test_a_data_set_over_4_gb_needs_extended_addressability(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["size", "smds", "--messages", "3K:5M"]) == 0
    assert "extended addressability" in capsys.readouterr().err
    assert main(["size", "page-set", "--messages", "3K:5M"]) == 0
    assert "extended addressability" in capsys.readouterr().err
    assert main(["size", "smds", "--messages", "3K:1000"]) == 0
    assert "extended addressability" not in capsys.readouterr().err


def test_an_administration_structure_is_planned_by_its_queue_managers(plan_json: Any) -> None:
    plan, warnings = plan_json("structure", "--admin", "--queue-managers", "8", "--cflevel", "24")
    assert warnings == []
    assert (plan["entries"], plan["init_size"], plan["size"]) == (8000, 21 << 20, 42 << 20)
    assert plan["cfrm"] == "STRUCTURE NAME(QSG1CSQ_ADMIN) SIZE(42M) INITSIZE(21M)"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--admin",), "--queue-managers is missing"),
        (("--admin", "--queue-managers", "4", "--messages", "1K:5"), "holds no messages"),
        (("--queue-managers", "4", "--messages", "1K:5"), "without --admin"),
    ],
)
def test_options_of_an_administration_structure_go_together(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], expected: str
) -> None:
    assert main(["size", "structure", *arguments]) == 2
    assert expected in capsys.readouterr().err


def test_a_structure_without_queues_is_planned_by_its_estate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "estate.toml"
    path.write_text(WITH_MAX_DEPTHS + '[structure."QSG1/CSQ_ADMIN"]\nsize = "10M"\n', encoding="utf-8")
    store = ["--estate", str(path), "--store", "QSG1/CSQ_ADMIN"]
    assert main(["size", "structure", "--admin", *store]) == 0
    assert "QSG1/CSQ_ADMIN is allocated with 10M, less than 23M" in capsys.readouterr().err
    assert main(["size", "smds", *store, "--messages", "1K:5"]) == 2
    assert "it holds no queues; expected: mqtwin size structure --admin" in capsys.readouterr().err


def test_a_cluster_is_printed_with_the_parts_of_a_batch(run_size: Any) -> None:
    plan = plan_cluster(ClusterLoad(1e6, 1_000))
    lines = run_size(*CLUSTER)
    assert lines[0] == ["1,000 stores", "1,000,000 events/s, json"]
    cells = dict(lines)
    assert (cells["cores"], cells["state partitions"]) == (str(plan.cores), str(plan.partitions))
    assert cells["a batch"] == f"{plan.batch_s:.2f} s"
    assert cells["one machine of 16 cores"] == "enough"
    assert dict(run_size(*CLUSTER, "--machine-cores", "2"))["one machine of 2 cores"].startswith("not enough")


def test_a_cluster_of_which_one_store_has_too_many_events_is_warned_of(plan_json: Any) -> None:
    plan, warnings = plan_json("cluster", "--rate", "900M", "--stores", "1")
    assert not plan["is_one_machine"] and plan["batch_s"] > plan["latency_s"]
    assert "most of it is driver" in warnings[0] and "no cluster helps it" in warnings[1]


def test_a_page_set_says_which_number_to_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["size", "page-set", "--messages", "6K:2000000"]) == 0
    rows = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert rows["order this: does not expand"].startswith("6,667,080 records")
    assert rows["by the document, before MQ 7.0.1"] == "4,012,696"


def test_what_is_far_too_small_is_said_as_a_factor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estate = tmp_path / "estate.toml"
    estate.write_text(
        'schema = 1\n[queue_sharing_group.QSG1]\nqueue_managers = ["QM01"]\n'
        '[structure."QSG1/APP1"]\nsize = "512M"\noffload = "SMDS"\n[smds."QSG1/APP1/QM01"]\nsize = "400M"\n'
        '[page_set."QM01/4"]\npages = 1000\n',
        encoding="utf-8",
    )
    of_data_set = ["size", "smds", "--estate", str(estate), "--store", "QSG1/APP1", "--messages"]
    of_page_set = ["size", "page-set", "--estate", str(estate), "--store", "QM01/PS04", "--messages"]
    for words, name, expected in (
        ([*of_data_set, "250K:62500"], "blocks used in QM01's data set", "39 times too small"),
        ([*of_data_set, "250K:800"], "blocks used in QM01's data set", "50.1 %"),
        ([*of_page_set, "2K:40000"], "used of QM01/PS04, 998 pages", "40 times too small"),
    ):
        assert main([*words]) == 0
        rows = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
        assert rows[name] == expected
