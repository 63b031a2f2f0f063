"""`mqtwin replay`: files and standard output, exit statuses, one line an error."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from deploy.cli import main
from tests.support.traffic import BAD_LINES, lines_of, traffic, write_estate, write_lines, write_recording
from twin.estate import load_estate
from twin.playback.replays import dead_letter, replay


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_estate(tmp_path_factory.mktemp("estate"))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("recording") / "t.ndjson", [*lines_of(traffic(2000)), *BAD_LINES])


def test_files_hold_the_records_of_the_topics(
    estate: Path, recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"--{name}={tmp_path / name}" for name in ("alerts", "state", "dlq")]
    assert main(["replay", str(recording), "--estate", str(estate), *names]) == 0
    expected = replay(recording, load_estate(estate))
    assert (tmp_path / "alerts").read_bytes().splitlines() == [alert.record() for alert in expected.alerts]
    lines = (tmp_path / "state").read_bytes().splitlines()
    assert lines == [msgspec.json.encode(state) for state in expected.states.values()]
    assert (tmp_path / "dlq").read_bytes().splitlines() == [
        msgspec.json.encode(dead_letter(r)) for r in expected.rejects
    ]
    out, err = capsys.readouterr()
    assert out == ""
    summary = err.splitlines()[-1]
    assert summary.startswith(f"2,000 events, {len(BAD_LINES)} dead letters, {len(expected.alerts)} alerts, ")
    assert "; dead letters: not-json 2, " in summary
    assert f"; first: line {expected.rejects[0].index + 1:,}: {expected.rejects[0].reason}: " in summary
    table = [line.split("\t") for line in err.splitlines() if "\t" in line]
    assert [line[0] for line in table] == ["store", "QM01/PS04", "QSG1/APP1", "QSG1/APP2"]


def test_a_hyphen_is_standard_output(estate: Path, recording: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["replay", str(recording), "--estate", str(estate), "--state", "-"]) == 0
    states = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [state["store"] for state in states] == ["QM01/PS04", "QSG1/APP1", "QSG1/APP2"]


MIXED = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[coupling_facility.CF01]
size = "64G"
scm = "16G"
[structure."QSG1/APP1"]
size = "1M"
coupling_facility = "CF01"
scm_max_size = "1G"
[queue."QSG1/SHARED"]
structure = "APP1"
[page_set."QM01/4"]
pages = 102
expand = "SYSTEM"
[storage_class."QM01/DEFAULT"]
page_set = 4
[queue."QM01/LOCAL"]
storage_class = "DEFAULT"
[queue_file."QMD1/INVOICES"]
max_size = "1M"
[uniform_cluster.UC01]
queue_managers = ["QMD1"]
messages_per_second = 1000
"""


def test_a_mixed_estate_shows_the_state_of_every_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "estate.toml").write_text(MIXED)
    puts = [
        {"time": 1_795_176_000_000_000 + second * 1_000_000, "qmgr": qmgr, "op": "PUT", "queue": queue, "length": 1000}
        for second in range(30)
        for qmgr, queue in (("QM01", "SHARED"), ("QM01", "LOCAL"), ("QMD1", "INVOICES"))
    ]
    recording = write_lines(tmp_path / "mixed.ndjson", lines_of(put | {"count": 10} for put in puts))
    assert main(["replay", str(recording), "--estate", str(tmp_path / "estate.toml"), "--state", "-"]) == 0
    out, err = capsys.readouterr()
    states = {state["store"]: state for state in map(json.loads, out.splitlines())}
    assert list(states) == ["CF01", "QM01/PS04", "QMD1", "QMD1/INVOICES", "QSG1/APP1", "UC01"]
    assert (states["QM01/PS04"]["pages_used"], states["QM01/PS04"]["expansions"]) == (300, 13)
    assert (states["QMD1/INVOICES"]["blocks_nonpersistent"], states["QMD1/INVOICES"]["file_bytes"]) == (900, 645 * 512)
    table = {line.split("\t")[0]: line.split("\t")[1:] for line in err.splitlines() if "\t" in line}
    assert table["store"] == ["kind", "messages", "used", "total", "unit", "usage", "forecast"]
    assert table["QM01/PS04"] == ["page set", "300", "300", "340", "pages", "88.2 %", ""]
    assert table["QMD1/INVOICES"] == ["queue file", "300", "645", "2,048", "file blocks", "31.5 %", ""]
    assert table["QSG1/APP1"] == ["structure", "300", "300", "455", "entries", "65.9 %", ""]
    augmented = [f"{8 * 2**20:,}", "68,718,428,160", "bytes of augmented space", "0.0 %", ""]
    assert table["CF01"] == ["coupling facility", "0", *augmented]
    assert table["UC01"][3:5] == ["1,000", "messages/s"]
    assert "QMD1" not in table, "nothing of a queue manager can be full"
    assert "QMD1: 0 log records since its last checkpoint" in err


@pytest.mark.parametrize(("suffix", "unit"), [("ndjson", "line"), ("arrow", "row")])
def test_an_estate_of_other_queues_is_one_line_with_the_reasons_and_status_1(
    suffix: str, unit: str, estate: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [event for event in traffic(500) if event["op"] in ("PUT", "GET")]
    recording = write_recording(tmp_path / f"t.{suffix}", events)
    other = tmp_path / "other.toml"
    other.write_text(estate.read_text().replace("QSG1/ORDERS", "QSG1/OTHER").replace("QSG1/BILLS", "QSG1/MORE"))
    dlq = tmp_path / "dlq.ndjson"
    assert main(["replay", str(recording), "--estate", str(other), "--dlq", str(dlq)]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"mqtwin: {recording}: not one event was accepted, {len(events)} dead letters; ")
    assert f"dead letters: unknown-queue {len(events)}; first: {unit} 1: unknown-queue: " in last
    assert f'no queue "{events[0]["queue"]}"' in last
    assert len(dlq.read_bytes().splitlines()) == len(events)


def test_the_wrong_estate_is_reported_long_before_the_end(
    estate: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [event for event in traffic(6_000) if event["op"] in ("PUT", "GET")]
    recording = write_recording(tmp_path / "t.ndjson", events)
    other = tmp_path / "other.toml"
    other.write_text(estate.read_text().replace("QSG1/ORDERS", "QSG1/OTHER").replace("QSG1/BILLS", "QSG1/MORE"))
    monkeypatch.setattr("twin.recordings.files._CHUNK_BYTES", 200_000)
    assert main(["replay", str(recording), "--estate", str(other)]) == 1
    (warning,) = [line for line in capsys.readouterr().err.splitlines() if "accepted so far" in line]
    number = int(warning.partition(": not one of ")[2].partition(" ")[0].replace(",", ""))
    assert 1_000 <= number < len(events)
    assert "the first: unknown-queue: " in warning
    assert main(["replay", str(recording), "--estate", str(estate)]) == 0
    assert "accepted so far" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.ndjson"], "is not a file"),
        (["estate.toml"], "no recording by its name"),
        (["t.ndjson", "--estate", "nowhere.toml"], "nowhere.toml"),
        (["t.ndjson", "--alerts", "no/such/folder"], "its folder does not exist"),
        (["t.ndjson", "--alerts", "one", "--dlq", "one"], "a file for each"),
        (["t.ndjson", "--alerts", "--dlq"], "--dlq is an option"),
        ([], "RECORDING"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(
    arguments: list[str],
    message: str,
    estate: Path,
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.ndjson").symlink_to(recording)
    (tmp_path / "estate.toml").write_bytes(estate.read_bytes())
    if "--estate" not in arguments:
        arguments = [*arguments, "--estate", str(estate)]
    assert main(["replay", *arguments]) == 2
    out, err = capsys.readouterr()
    errors = [line for line in err.splitlines() if not line.startswith("mqtwin: warning: ")]
    assert out == "" and len(errors) == 1 and message in errors[0] and errors[0].startswith("mqtwin: ")
