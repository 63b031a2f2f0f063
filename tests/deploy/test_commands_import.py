"""`mqtwin import` and `mqtwin estate import` on the command line."""

from __future__ import annotations

import pytest

from deploy.cli import main
from tests.twin.feeds.conftest import ESTATE
from tests.twin.feeds.samples import STATUS_PAIRS, SYSPRINT, numbered
from tests.twin.feeds.smf_made import queue_statistics, record, section
from twin.estate import load_estate
from twin.feeds.smf_layout import QEST_SLOT

STATUS = f"CSQM201I QM01 CSQMDRTC  DISPLAY CFSTATUS DETAILS\n{STATUS_PAIRS}\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "estate.toml").write_text(ESTATE, encoding="utf-8")
    sections = [queue_statistics(), queue_statistics(queue="NEW")]
    (tmp_path / "day.smf").write_bytes(record(216, sections))
    (tmp_path / "usage.txt").write_text(SYSPRINT, encoding="utf-8")
    return tmp_path


def run(folder, *words):
    return main([word.replace("DIR", str(folder)) for word in words])


def run_import(folder, *words):
    return run(folder, "import", *words, "--estate", "DIR/estate.toml", "-o", "DIR/out.ndjson")


def test_an_import_reports_coverage_and_unknown_names_on_standard_error(folder, capsys):
    assert run_import(folder, "smf", "DIR/day.smf") == 0
    out, err = capsys.readouterr()
    assert out == f"{len((folder / 'out.ndjson').read_text().splitlines())} events in {folder}/out.ndjson\n"
    lines = err.splitlines()
    (unknown,) = [line for line in lines if line.startswith("mqtwin: unknown: QM01/NEW")]
    assert unknown.endswith('add [queue."QSG1/NEW"] structure = "APP1"')
    (covered,) = [line.split("\t") for line in lines if line.startswith("QQST\tQM01\tORDERS")]
    assert covered[3:] == ["2026-11-20 11:59:00 UTC", "2026-11-20 12:00:00 UTC", "1", "60 s", "0 s", "100", "90", "22"]


def test_an_imported_recording_is_one_of_mqtwin_replay(folder, capsys):
    assert run_import(folder, "smf", "DIR/day.smf") == 0
    assert run(folder, "replay", "DIR/out.ndjson", "--estate", "DIR/estate.toml") == 0
    assert "26 events, 0 dead letters" in capsys.readouterr().err


def test_peaks_that_a_queue_manager_saw_are_reported(folder, capsys):
    slot = section(QEST_SLOT, 64, structure="APP1", max_entries=34, max_elements=64)[:64]
    header = b"\0" * 4 + "QEST".encode("cp037")
    slot = "APP1".ljust(12).encode("cp037") + slot[12:]
    (folder / "day.smf").write_bytes(record(2, [header + slot + bytes(64)]))
    assert run_import(folder, "smf", "DIR/day.smf") == 1
    err = capsys.readouterr().err
    assert "QSG1/APP1: at least 34 entries and 64 elements were in use, at the latest 2026-11-20 12:00:00 UTC" in err


def test_an_import_without_events_fails(folder, capsys):
    assert run_import(folder, "amqsevt", "DIR/day.smf") == 1
    assert "no event was made, " in capsys.readouterr().out
    (folder / "out.ndjson").write_text("earlier")
    assert run_import(folder, "amqsevt", "DIR/day.smf") == 1
    assert "no event was made; " in capsys.readouterr().out
    assert (folder / "out.ndjson").read_text() == "earlier"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["cobol", "DIR/day.smf"], "cobol: no such format; expected: amqsevt, "),
        (["smf", "DIR/missing"], "cannot be read"),
        (["smf", "DIR/day.smf", "--zone", "Nowhere/City"], "--zone Nowhere/City; expected: a name"),
        (["smf", "DIR/day.smf", "--zone", "+25:00"], "--zone +25:00; expected: a name"),
        (["smf", "DIR/day.smf", "--date", "tomorrow"], "--date tomorrow; expected: YYYY-MM-DD"),
        (["smf", "DIR/day.smf", "--slice-s", "0"], "--slice-s 0; expected: 0.1 to 3600 seconds"),
        (["smf", "DIR/day.smf", "--prefix", "QM01"], "--prefix has no =; expected: --prefix KEY=VALUE"),
        (["smf", "DIR/day.smf", "--aside", "DIR/aside.txt"], "aside.txt is no recording by its name"),
    ],
)
def test_wrong_use_is_one_line_and_status_2_and_leaves_no_recording(folder, capsys, words, text):
    assert run_import(folder, *words) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if "warning" not in line]
    assert len(errors) == 1
    assert text in errors[0]
    assert not (folder / "out.ndjson").exists()


def test_a_zone_can_be_an_offset_or_a_name(folder, capsys):
    (folder / "job.log").write_text(numbered(SYSPRINT), encoding="utf-8")
    times = []
    for zone in ("+01:00", "Europe/Berlin", "-0500"):
        assert run_import(folder, "display", "DIR/job.log", "--zone", zone) == 0
        times.append((folder / "out.ndjson").read_text().split('"time":')[1].split(",")[0])
    assert times[0] == times[1]
    assert int(times[2]) - int(times[0]) == 6 * 3_600_000_000
    capsys.readouterr()


def test_an_estate_is_written_and_can_be_loaded(folder, capsys):
    (folder / "policy.txt").write_text("DATA TYPE(CFRM)\nSTRUCTURE NAME(QSG1APP1) SIZE(2G)\n", encoding="utf-8")
    words = ["display:DIR/usage.txt", "smf:DIR/day.smf", "cfrm:DIR/policy.txt"]
    assert run(folder, "estate", "import", *words, "-o", "DIR/seen.toml") == 0
    assert load_estate(folder / "seen.toml").stores["QSG1/APP1"].size == 2 << 30
    assert "its size 2G is of" in capsys.readouterr().err


def test_an_estate_goes_to_standard_output(folder, capsys):
    assert run(folder, "estate", "import", "display:DIR/usage.txt") == 0
    assert '[page_set."QM01/4"]' in capsys.readouterr().out


def test_differences_are_lines_and_status_1(folder, capsys):
    assert run(folder, "estate", "import", "display:DIR/usage.txt", "--against", "DIR/estate.toml") == 1
    out = capsys.readouterr().out.splitlines()
    assert any(line.startswith("QM01/PS04: pages differs: 20000 in the estate, 1080 seen (") for line in out)


@pytest.mark.parametrize("more", [[], ["-o", "DIR/seen.toml"], ["--against", "DIR/estate.toml"]])
def test_files_that_show_no_object_are_wrong_use(folder, capsys, more):
    (folder / "notes.txt").write_text("Nothing of MQ is in here.\n", encoding="utf-8")
    assert run(folder, "estate", "import", "display:DIR/notes.txt", *more) == 2
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if "warning" not in line]
    assert out == "" and len(lines) == 1 and not (folder / "seen.toml").exists()
    assert "notes.txt: nothing of an estate was found; expected: " in lines[0]


def test_a_first_import_takes_the_group_from_an_option(folder, capsys):
    (folder / "status.txt").write_text(STATUS, encoding="utf-8")
    (folder / "policy.txt").write_text("STRUCTURE NAME(QSG1APP1) SIZE(2G)\n", encoding="utf-8")
    words = ["estate", "import", "display:DIR/status.txt", "cfrm:DIR/policy.txt"]
    assert run(folder, *words) == 2
    assert "expected: DISPLAY QMGR QSGNAME in front of it, --group QSG1=QM01,QM02" in capsys.readouterr().err
    assert run(folder, *words, "--group", "QSG1=QM01,QM02", "-o", "DIR/seen.toml") == 0
    assert 'queue_managers = ["QM01", "QM02"]' in (folder / "seen.toml").read_text(encoding="utf-8")
    assert '[structure."QSG1/APP1"]' in (folder / "seen.toml").read_text(encoding="utf-8")
    assert run(folder, *words, "--group", "QSG1=,") == 2
    assert "--group QSG1=,; expected: its queue managers, such as QSG1=QM01,QM02" in capsys.readouterr().err


def test_a_group_alone_is_nothing_of_an_estate(folder, capsys):
    (folder / "notes.txt").write_text("Nothing of MQ is in here.\n", encoding="utf-8")
    assert run(folder, "estate", "import", "display:DIR/notes.txt", "--group", "QSG1=QM01") == 2
    assert "nothing of an estate was found" in capsys.readouterr().err


def test_a_file_without_its_format_is_wrong_use(folder, capsys):
    assert run(folder, "estate", "import", "DIR/usage.txt") == 2
    assert "expected: FORMAT:FILE, such as smf:day.dat" in capsys.readouterr().err
