"""Folders of results: what their command did not write, or what was changed since, stays."""

from __future__ import annotations

import shlex
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from deploy.cli import main
from deploy.commands.advise import write_plans
from deploy.show.terminal import command_line, kinds, printable
from tests.support.traffic import lines_of, traffic, write_estate, write_lines
from tests.twin.feeds.smf_made import queue_statistics, record, section
from twin.base.errors import UsageError
from twin.base.outputs import OwnFolder
from twin.estate import load_estate
from twin.estate.sources import toml_string
from twin.feeds.importing import recorded
from twin.feeds.smf_layout import QIS1
from twin.planning.advise import Plan

SMF = record(216, [queue_statistics(), queue_statistics(queue="L", flags=0, page_set=4, structure="")]) + record(
    201, [section(QIS1, 104, page_set=4, total=1078, unused=1000, persistent=78)]
)
AWKWARD = [
    "a'b",
    'a"b',
    "x;touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "a\nb",
    "a\x1b[31mb",
    "a\\b",
    "a b",
    "ü\u202e",
]


def start(*arguments: object) -> int:
    return main(["start", *map(str, arguments), "--no-console"])


@pytest.fixture
def smf(tmp_path: Path) -> Path:
    path = tmp_path / "monday.smf"
    path.write_bytes(SMF)
    return path


def test_results_are_replaced_until_somebody_changes_them(tmp_path: Path) -> None:
    results = OwnFolder(tmp_path / "site")
    path = results.write("estate.toml", "one")
    assert results.write("estate.toml", "two") == path and path.read_text() == "two"
    path.write_text("by hand")
    second = results.write("estate.toml", "three")
    assert second.name == "estate.new.toml" and path.read_text() == "by hand"
    assert results.write("estate.toml", "four") == second and second.read_text() == "four"
    second.write_text("by hand, too")
    assert results.write("estate.toml", "five").name == "estate.new2.toml"
    assert results.write("estate.toml", "by hand") == path
    assert (path.read_text(), second.read_text()) == ("by hand", "by hand, too")


def test_files_that_are_read_and_files_of_others_stay(tmp_path: Path) -> None:
    (tmp_path / "recording.arrow").touch()
    assert OwnFolder(tmp_path).free("recording.arrow").name == "recording.new.arrow"
    results = OwnFolder(tmp_path)
    results.note_written(tmp_path / "recording.arrow")
    assert results.free("recording.arrow").name == "recording.arrow"
    reading = OwnFolder(tmp_path, [tmp_path / "." / "recording.arrow"])
    assert reading.free("recording.arrow").name == "recording.new.arrow"
    (tmp_path / ".mqtwin-written.json").write_text("damaged")
    assert results.free("recording.arrow").name == "recording.new.arrow"


def test_a_file_is_no_folder(smf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="it is a file; expected: a folder"):
        OwnFolder(smf).free("estate.toml")
    assert start(smf, "-o", smf) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"mqtwin: --output {smf} is a file; expected: a folder"
    assert smf.read_bytes() == SMF


def test_start_on_its_own_results_keeps_the_recording(tmp_path: Path, smf: Path) -> None:
    site = tmp_path / "site"
    assert start(smf, "-o", site) == 0
    recording, estate = site / "recording.arrow", site / "estate.toml"
    before = recording.read_bytes(), estate.read_bytes()
    assert start(recording, estate, "-o", site) == 0
    assert (recording.read_bytes(), estate.read_bytes()) == before
    assert start(recording, smf, estate, "-o", site) == 0
    assert (recording.read_bytes(), estate.read_bytes()) == before
    both = list(recorded(site / "recording.new.arrow"))
    assert len(both) == 2 * len(list(recorded(recording)))


def test_start_keeps_an_estate_that_was_corrected(
    tmp_path: Path, smf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "site"
    assert start(smf, "-o", site) == 0
    assert start(smf, "-o", site) == 0
    assert not list(site.glob("*.new*"))
    estate = site / "estate.toml"
    estate.write_text(corrected := "# by hand\n" + estate.read_text())
    capsys.readouterr()
    assert start(smf, "-o", site) == 0
    printed = capsys.readouterr().err
    assert estate.read_text() == corrected
    assert f"{estate} is read, or not as `mqtwin start` wrote it: it stays; see {site / 'estate.new.toml'}" in printed
    assert f"  mqtwin start {smf} -o {site} --no-console {estate}\n" in printed
    recording = site / "recording.arrow"
    recording.write_bytes(b"of somebody else")
    assert start(smf, estate, "-o", site) == 0
    assert recording.read_bytes() == b"of somebody else" and (site / "recording.new.arrow").exists()


def test_without_an_event_an_earlier_recording_stays(
    tmp_path: Path, smf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "site"
    assert start(smf, "-o", site) == 0
    before = (site / "recording.arrow").read_bytes()
    zeros = tmp_path / "zeros.smf"
    zeros.write_bytes(b"\0" * 1000)
    assert start(f"smf:{zeros}", site / "estate.toml", "-o", site) == 1
    assert f"{zeros}: no event was made" in capsys.readouterr().err
    assert (site / "recording.arrow").read_bytes() == before


def test_plans_do_not_replace_the_estate_that_they_change(tmp_path: Path) -> None:
    own = write_estate(tmp_path)
    estate = own.rename(tmp_path / "plan-1.toml")
    before = estate.read_text()
    plan = cast("Plan", SimpleNamespace(mqsc="", cfrm=""))
    with pytest.raises(UsageError, match=f"would replace {estate}, which is read; expected: another folder"):
        write_plans(tmp_path, estate, load_estate(estate), "QSG1/APP1", [plan])
    assert estate.read_text() == before


@pytest.mark.parametrize("name", AWKWARD)
def test_a_command_that_is_printed_is_one_command(name: str) -> None:
    text = command_line(["printf", "%s|", name, "end"])
    assert text.isprintable()
    run = subprocess.run(["bash", "-c", text], capture_output=True, check=True)
    assert run.stdout.decode() == f"{name}|end|"


@pytest.mark.parametrize("name", AWKWARD)
def test_start_prints_and_writes_names_that_stay_names(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "monday.smf").write_bytes(SMF)
    definitions = tmp_path / f"{name}.mqsc"
    definitions.write_text("DEFINE QLOCAL(AUDIT) STGCLASS(NONE)\n")
    assert start(f"mqsc:QM01={name}.mqsc", "monday.smf") == 2  # its storage class is not described
    out, err = capsys.readouterr()
    assert all(line.isprintable() for line in (out + err).split("\n"))
    command = next(line for line in err.splitlines() if line.startswith("  mqtwin start "))
    printed = subprocess.run(
        ["bash", "-c", command.replace("mqtwin", "printf '%s\\0'", 1)], capture_output=True, check=True
    )
    words = printed.stdout.decode().split("\0")[:-1]
    assert words == ["start", f"mqsc:QM01={name}.mqsc", "monday.smf", "--no-console", "mqtwin-site/estate.toml"]
    (text,) = tomllib.loads((tmp_path / "mqtwin-site" / "estate.toml").read_text())["import"]
    assert text == {"mqsc": f"../{name}.mqsc", "queue_manager": "QM01"}
    assert not (tmp_path / "pwned").exists()


def test_strings_of_toml() -> None:
    for text in (*AWKWARD, "\x7f", "\x00\x1f", "\N{GRINNING FACE}"):
        assert tomllib.loads(f"value = {toml_string(text)}") == {"value": text}
    with pytest.raises(UsageError, match="not UTF-8"):
        toml_string("a\udcffb")


def test_names_that_are_not_unicode_can_be_pasted() -> None:
    text = command_line(["printf", "%s", "a\udcffb"])
    assert text == "printf %s $'a\\xffb'" and printable("a\x1bb") == "a\\x1bb"
    assert shlex.split(command_line(["a", "b c"])) == ["a", "b c"]


def test_lines_of_a_kind_are_one_line() -> None:
    page_sets = [f"MQ1A/PS{number:02d}: EXPAND(USER) cannot expand" for number in range(39)]
    offline = [f"/d/a.dat, byte {n}: the SMDS of MQ1{n} for TEST{n} is not open (offline)" for n in range(5)]
    lines = kinds([*page_sets, *offline, offline[0], "MQ1A/PS01: another thing", "SMF 116: no statistics"])
    assert len(lines) == 4
    assert lines[0].startswith("MQ1A/PS00, MQ1A/PS01, ") and " and 31 more: EXPAND(USER) cannot expand" in lines[0]
    assert lines[1] == f"{offline[0]} (and 4 more like it)"


POLICY = """DATA TYPE(CFRM)
DEFINE POLICY NAME(P)
CF NAME(CF01)
STRUCTURE NAME(MQP1CSQ_ADMIN) SIZE(64M) PREFLIST(CF01)
STRUCTURE NAME(MQP1PAYM) SIZE(1G) INITSIZE(512M) ALLOWAUTOALT(YES) FULLTHRESHOLD(80) PREFLIST(CF01)
"""
DEFINITIONS = "DEFINE CFSTRUCT(PAYM) CFLEVEL(5) OFFLOAD(SMDS) OFFLD1TH(70) OFFLD1SZ(32K)\n"
JOB_LOG = """ 10.00.00 S0001  ---- SUNDAY,    29 NOV 2026 ----
 10.00.00 S0001  CSQM201I !MQ1A CSQMDRTC  DISPLAY CFSTATUS DETAILS 123
   123             CFSTATUS(PAYM)
   123             TYPE(SUMMARY)
   123             CFTYPE(APPL)
   123             STATUS(ACTIVE)
   123             SIZEMAX(524288)
   123             SIZEUSED(41)
   123             ENTSMAX(240641)
   123             ENTSUSED(98211)
   123             END CFSTATUS DETAILS
"""


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.txt").write_text(POLICY)
    (tmp_path / "qm.mqsc").write_text(DEFINITIONS)
    (tmp_path / "mq1a.joblog").write_text(JOB_LOG)
    return tmp_path


@pytest.mark.parametrize(
    "files",
    [
        ["policy.txt", "mqsc:MQP1=qm.mqsc", "mq1a.joblog"],
        ["mqsc:MQP1=qm.mqsc", "mq1a.joblog"],
        ["mq1a.joblog", "policy.txt"],
    ],
)
def test_a_group_without_members_is_the_cause_and_the_command_follows(
    files: list[str], group: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(*files, "-o", "site") == 2
    cause, command = capsys.readouterr().err.splitlines()
    assert cause.startswith("mqtwin: no file names the members of MQP1: add --group MQP1=MQ1A")
    assert command == f"  mqtwin start {' '.join(files)} -o site --no-console --group MQP1=MQ1A"
    assert not (group / "site").exists()


def test_sizes_from_initsize_to_size_are_no_difference(group: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["policy.txt", "mqsc:MQP1=qm.mqsc", "mq1a.joblog"]
    assert start(*files, "-o", "site", "--group", "MQP1=MQ1A,MQ1B", "--zone", "+01:00") == 0
    printed = capsys.readouterr().err
    assert "size differs" not in printed
    assert "MQP1/PAYM: its size" not in printed and "MQP1/CSQ_ADMIN: its size 64M is of policy.txt" in printed
    assert "mqtwin: risk: MQP1/PAYM offloads at 70 %, before automatic alter enlarges it at 80 %" in printed
    lines = (group / "site" / "missing.txt").read_text().splitlines()
    assert len(lines) == len(set(lines))


def test_a_size_beyond_the_policy_is_a_difference(group: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (group / "policy.txt").write_text(POLICY.replace("SIZE(1G) INITSIZE(512M)", "SIZE(400M)"))
    assert start("policy.txt", "mq1a.joblog", "-o", "site", "--group", "MQP1=MQ1A,MQ1B") == 0
    assert "size differs: 512M in CFSTATUS" in capsys.readouterr().err


def test_definitions_of_a_queue_manager_without_data_are_enough(tmp_path: Path, smf: Path) -> None:
    definitions = tmp_path / "qm07.mqsc"
    definitions.write_text("DEFINE QALIAS(A) TARGET(B)\n")
    recording = write_lines(tmp_path / "r.ndjson", lines_of(traffic(5)))
    assert start(smf, recording, f"mqsc:QM07={definitions}", "-o", tmp_path / "site") == 0
    assert "QM07" in load_estate(tmp_path / "site" / "estate.toml").queue_managers
