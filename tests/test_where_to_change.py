"""The table "Where do I change what" of CONTRIBUTING.md: rows done on a copy of the tree, by their files alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]


class Edit(NamedTuple):
    """Lines that are put in front of others in a file; of a new file they are all it has."""

    lines: str
    before: str = ""


class Change(NamedTuple):
    """A change: edits by file, a program that shows it, what that prints, and what it fails with before the last."""

    edits: dict[str, Edit]
    code: str
    output: str
    failure: str = ""


OPENED = """
from pathlib import Path
from twin.events import Decoder
from twin.stores.open import open_store
SITE = 'schema = 1\\n[queue_manager.QM01]\\nplatform = "zos"\\n[page_set."QM01/4"]\\npages = 100\\n'
Path("estate.toml").write_text(SITE + ATTRIBUTE)
twin = open_store("estate.toml", "QM01/PS04")
def apply(**event):
    text = msgspec.json.encode({"time": "2026-11-20T12:00:00Z", "qmgr": "QM01", "store": twin.name, **event})
    decoded = Decoder(twin.estate).json([text])
    assert not decoded.rejects, decoded.rejects
    [block] = decoded.blocks(twin.estate)
    twin.apply(block)
    return twin.state()
"""
CHANGES = {
    "an alert condition": Change(
        {
            "twin/base/conditions.py": Edit(
                '    QUEUE_SLOW = "queue-slow", Rule(DATA, 99, TICK, INFO, OWN_RULES, (Pool.QUEUE,))\n',
                '    FULL = "full", Rule(',
            ),
            "twin/stores/watches.py": Edit(
                "SLOW = Finding(\n"
                '    condition=Condition.QUEUE_SLOW, resource=Resource("queue", "Q"), severity="info", cause="Slow."\n'
                ")\n",
                "_LEAST_GROWING = ",
            ),
            "twin/alerts/runbook.toml": Edit(
                '[[action]]\nid = "slow"\nfor = ["queue-slow"]\nsay = "Look at {store}"\n\n',
                '[[action]]\nid = "getters"',
            ),
        },
        """
import msgspec
from twin.alerts.episodes import Episodes
from twin.alerts.texts import Facts
from twin.stores.watches import SLOW
episodes = Episodes("S")
runbook = episodes.runbook.actions(SLOW.condition, Facts().adding(store="S"))
[opened] = episodes.open(msgspec.structs.replace(SLOW, runbook=runbook), 1)
[cleared] = episodes.clear(next(iter(episodes)), SLOW, 2)
print(opened.condition, opened.incident.role, *opened.actions, cleared.change)
""",
        "queue-slow root Look at S cleared",
        "condition queue-slow lacks an action; expected: ",
    ),
    "an attribute of a store": Change(
        {
            "twin/stores/page_set.py": Edit(
                '        if self.buffer_pool_pct < self.config.quiet_below:\n            return "none"\n',
                "        if self.buffer_pool_pct >= _SYNCHRONOUS_FROM:",
            ),
            "twin/estate/model.py": Edit(
                '    quiet_below: int = attribute(whole(0, 99), default=0, mqsc="QUIET")\n',
                '    expand: Literal["SYSTEM", "USER", "NONE"] = attribute(',
            ),
        },
        'import msgspec\nATTRIBUTE = "quiet_below = 90\\n"'
        + OPENED
        + """
before = apply(op="MEASURE", measured={"buffer_pool_pct": 86})
after = apply(op="ALTER", attributes={"quiet_below": 50})
print(before.buffer_pool_writes, after.buffer_pool_writes, twin.config.rows["quiet_below"].statement(50))
""",
        "none asynchronous QUIET(50)",
    ),
    "a field of a state record": Change(
        {
            "twin/stores/page_set.py": Edit("            spare=7,\n", "            pages_max=int("),
            "twin/records/states.py": Edit(
                "    spare: MeasuredCount = 0\n",
                '    status: ExpandStatus\n    """FAILED: the last expansion',
            ),
        },
        'import msgspec\nATTRIBUTE = ""'
        + OPENED
        + """
print(apply(op="MEASURE", measured={"spare": 5}).spare)
""",
        "7",
    ),
    "a metric of a field": Change(
        {
            "deploy/metrics/catalogue.py": Edit(
                '    pages_max=("pageset_pages_at_most", "Pages of a page set after all expansions."),\n',
                '    pages_used=("pageset_pages_used"',
            )
        },
        'import msgspec\nATTRIBUTE = ""'
        + OPENED
        + """
from deploy.metrics.collector import state_samples
from streams.kafka.topic_reader import StateEntry
samples = {name: value for name, _, value in state_samples(StateEntry(twin.state(), 0.0))}
print(samples["pageset_pages_at_most"] == twin.state().pages_max)
""",
        "True",
    ),
    "a feed": Change(
        {
            "twin/feeds/csv_levels.py": Edit("""
from twin.feeds.protocol import Feed
class CsvFeed(Feed):
    reads = "rows of a store and its entries"
    def take(self, page):
        for line in bytes(page.data).decode().splitlines():
            self.object_count += 1
            store, used, largest = line.split(",")
            measured = {"ents_used": int(used), "ents_max": int(largest)}
            yield {"time": page.time, "qmgr": "QM01", "op": "MEASURE", "store": store, "measured": measured}
"""),
            "twin/feeds/protocol.py": Edit(
                '    "csv": Format("csv_levels:CsvFeed", (), (LEVELS,), topic=ANY_TOPIC),\n', '    "rmf": Format('
            ),
        },
        """
from twin.feeds import FORMATS, FeedOptions, Intake, Page, make_feed
feed = make_feed("csv", Intake(None), FeedOptions())
[event] = feed.intake.sift(feed.take(Page(b"QSG1/APP1,3,9", "page", 1_763_640_000_000_000)))
print(FORMATS["csv"].is_live, event["measured"])
""",
        "True {'ents_used': 3, 'ents_max': 9}",
        "csv",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_needs_the_files_of_its_row(name: str, tmp_path: Path) -> None:
    change = CHANGES[name]
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Where do I change what")[2]
    [files] = re.findall(rf"^\| {name} \| (.+?) \|", table, re.MULTILINE)
    named = [own for own in re.findall(r"`([^`]+)`", files) if "/" in own]
    assert len(change.edits) == len(named)
    for file in change.edits:
        assert any(file == own or (own.endswith("/") and file.startswith(own)) for own in named), file
    # With their compiled files, which are good for copies of the same age.
    for package in {file.partition("/")[0] for file in change.edits}:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("static"))

    def run() -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-c", change.code]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    for file, edit in change.edits.items():
        if change.failure and file == list(change.edits)[-1]:
            assert change.failure in run().stderr.splitlines()[-1]
        path = tmp_path / file
        text = path.read_text(encoding="utf-8") if edit.before else ""
        assert edit.before in text, f"{file}: {edit.before}"
        path.write_text(text.replace(edit.before, edit.lines + edit.before, 1), encoding="utf-8")
    done = run()
    assert done.stdout == f"{change.output}\n", done.stderr
