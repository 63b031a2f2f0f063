"""`mqtwin drift` of the events topic of a real broker: the same lines as of the recording that was published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deploy.cli import main
from tests.support.traffic import traffic, write_estate, write_recording

STORE = "QSG1/APP1"


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_estate(tmp_path_factory.mktemp("estate"))


def measured(folder: Path) -> Path:
    """Write a recording with three measurements, of which the later two find more than the model holds."""
    events = list(traffic(900))
    for number, used in ((300, 500), (600, 2000), (899, 5000)):
        event = {"time": events[number]["time"], "qmgr": "QM01", "op": "MEASURE", "store": STORE}
        events.insert(number + 1, event | {"measured": {"ents_used": used, "ents_max": 100_000}})
    return write_recording(folder / "measured.ndjson", events)


@pytest.mark.parametrize("arguments", [[], ["--points"], ["--json"], ["--store", STORE]])
def test_drift_of_the_topic_is_that_of_the_recording(
    arguments: list[str],
    estate: Path,
    kafka: str,
    topic_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recording = measured(tmp_path)
    client = ["--bootstrap-servers", kafka, "--topic-prefix", topic_prefix]
    assert main(["publish", str(recording), "--estate", str(estate), *client, "--create-topics"]) == 0
    capsys.readouterr()
    assert main(["drift", str(recording), "--estate", str(estate), *arguments]) == 0
    of_recording = capsys.readouterr().out
    assert main(["drift", "--estate", str(estate), *client, *arguments]) == 0
    assert capsys.readouterr().out == of_recording
    assert "APP1" in of_recording
    if arguments == ["--json"]:
        (entries,) = (entry for entry in map(json.loads, of_recording.splitlines()) if entry["resource"] == "entries")
        assert [point["measured"] for point in entries["points"]] == [500, 2000, 5000]


def test_drift_takes_a_recording_or_a_topic_and_says_if_nothing_was_measured(
    estate: Path, kafka: str, topic_prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = write_recording(tmp_path / "plain.ndjson", traffic(50))
    client = ["--bootstrap-servers", kafka, "--topic-prefix", topic_prefix]
    assert main(["drift", str(recording), "--estate", str(estate), *client]) == 2
    assert "expected: one of them" in capsys.readouterr().err
    assert main(["publish", str(recording), "--estate", str(estate), *client, "--create-topics"]) == 0
    assert main(["drift", "--estate", str(estate), *client]) == 1
    assert "no measurement of a store" in capsys.readouterr().err
