"""`mqtwin demo` from beginning to end, as a script runs it: a broker and a job of its own, and no terminal."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.system, pytest.mark.nightly]


def test_the_demo_tells_its_story_and_its_last_commands_work(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "deploy", "demo", "--no-console", "--seconds", "20"]
    run = subprocess.run(
        command, check=False, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900
    )
    assert run.returncode == 0, run.stdout[-2_000:] + run.stderr[-2_000:]
    assert re.search(
        r"The full-forecast alert opened \d+ min before the first 2192 \(03:01:20 on QSG1/APP2\)", run.stdout
    )
    frames = re.findall(r"^(\S+)  forecast  .*QSG1/APP2", run.stdout, re.MULTILINE)
    assert len(frames) >= 4 and frames[0][11:16] < "01:30"  # the story is not over when the job begins to read
    printed = [
        shlex.split(line) for line in run.stdout.splitlines() if re.match(r"  \S.* mqtwin-demo/demo\.arrow", line)
    ]
    assert len(printed) == 3
    for words in printed:
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    assert (tmp_path / "mqtwin-demo" / "advice.html").exists()
