"""The made night of a bank, as its systems print it: right from job logs alone, and with its SMF 115 beside them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from deploy.cli import main
from twin.feeds.importing import recorded

LOGS = ("policy.txt", "mqsc:BKQ1={}/bkq1.mqsc", "mqsc:BK1A={}/bk1a.mqsc", "bk1a.joblog", "bk1b.joblog", "sysa.syslog")
WITH_SMF = (*LOGS, "mq.smf115")
BLOCKS, PER_BLOCK, PAGES, ELEMENTS_OF_PAY = 1_600, 6, 50_035, 10


@pytest.fixture
def night(shared: Path) -> Path:
    return shared / "fixtures" / "night"


def truth(night: Path) -> dict[str, tuple[float, float]]:
    """Return the percentage and the hours until full of what fills, as truth.json and its README have them."""
    last = json.loads((night / "truth.json").read_text())[-1][1]
    elements = last["pay_max"][1]
    return {
        "BK1A/PS03 pages": (100 * last["aud"] / PAGES, 28 / 60),
        "BKQ1/PAY elements": (100 * ELEMENTS_OF_PAY * last["pay"] / elements, 1.7),
        "BKQ1/BAT smds/BK1A": (100 * last["bat_smds"] / PER_BLOCK / BLOCKS, 2.0),
    }


def replayed(folder: Path, recording: Path, estate: Path) -> dict[str, tuple[float, float]]:
    """Return the percentage and the hours until full by store and resource of a recording's last states."""
    file = folder / "states.ndjson"
    assert main(["replay", str(recording), "--estate", str(estate), "--state", str(file)]) == 0
    states = {}
    for state in map(json.loads, file.read_text().splitlines()):
        smds = (state.get("smds") or {}).get("BK1A") or {}
        if smds.get("blocks_used") is not None and state["store"] == "BKQ1/BAT":
            states["BKQ1/BAT smds/BK1A"] = 100 * smds["blocks_used"] / smds["blocks_total"], math.nan
        for name in ("pages", "elements"):
            states[f"{state['store']} {name}"] = state.get("usage_pct") or 0.0, math.nan
        for resource in (state.get("forecast") or {}).get("resources") or ():
            key = f"{state['store']} {resource['resource']}"
            if resource["time_to_full_s"] is not None and key in states:
                states[key] = states[key][0], resource["time_to_full_s"]["p50"] / 3600
    return states


@pytest.mark.nightly
@pytest.mark.parametrize("files", [LOGS, WITH_SMF, WITH_SMF[::-1]])
def test_the_night_is_right_from_job_logs_alone_and_with_smf_in_any_order_of_files(tmp_path, night, files):
    site = tmp_path / "site"
    names = [name.format(night) if ":" in name else str(night / name) for name in files]
    group = ("--group", "BKQ1=BK1A,BK1B")
    assert main(["start", *names, "-o", str(site), "--zone", "Europe/Zurich", *group, "--no-console"]) == 0
    states = replayed(tmp_path, site / "recording.arrow", site / "estate.toml")
    for name, (pct, hours) in truth(night).items():
        assert states[name][0] == pytest.approx(pct, abs=1.5), name
        assert states[name][1] == pytest.approx(hours, rel=1 / 3), name


@pytest.mark.nightly
def test_the_job_logs_of_the_night_imported_by_hand_are_right(tmp_path, night):
    site, recording = tmp_path / "site", tmp_path / "logs.ndjson.zst"
    names = [name.format(night) if ":" in name else str(night / name) for name in LOGS]
    group = ("--group", "BKQ1=BK1A,BK1B")
    assert main(["start", *names, "-o", str(site), "--zone", "Europe/Zurich", *group, "--no-console"]) == 0
    logs = [str(night / name) for name in LOGS if name.endswith("log")]
    estate = site / "estate.toml"
    options = ("--estate", str(estate), "--zone", "Europe/Zurich", "--resync", "-o", str(recording))
    assert main(["import", "display", *logs, *options]) == 0
    states = replayed(tmp_path, recording, estate)
    for name, (pct, hours) in truth(night).items():
        assert states[name][0] == pytest.approx(pct, abs=1.5), name
        assert states[name][1] == pytest.approx(hours, rel=1 / 3), name
    events = list(recorded(recording))
    assert [(event["qmgr"], event["time"]) for event in events if event["op"] == "RESTART"] == [
        ("BK1A", 1_795_722_060_000_000)  # 20:41:00 local time
    ]
    [alter] = [event for event in events if event["op"] == "ALTER"]
    assert (alter["store"], alter["attributes"]) == ("BKQ1/PAY", {"size": 1 << 30})
