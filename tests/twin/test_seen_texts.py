"""Every text that a person sees of a recording of each scenario: alerts, runbooks, and the output of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.cli import main
from deploy.show.alerts import alert_block, alert_line, incident_block, incident_line
from tests.support import seen
from tests.support.estates import small_estate
from tests.twin.simulation import test_memory_stories as memory
from tests.twin.simulation import test_other_stores as others
from twin import simulation
from twin.alerts.episodes import Alert
from twin.conditions import CLEARED, Condition, Pool, Resource
from twin.estate import Estate, load_estate
from twin.playback.replays import Replayed, replay
from twin.records import Incidents, read_alert_record
from twin.simulation import SCENARIOS, make_scenario, simulate

BY_DAY = ("getter-outage", "queue-file-growth")
FILLING = (Condition.THRESHOLD, Condition.FULL, Condition.FULL_FORECAST, Condition.CANNOT_EXPAND)
LONG = 500_000  # events of a recording
EVERY = [pytest.param(name, marks=() if name in BY_DAY else pytest.mark.nightly, id=name) for name in SCENARIOS]


def estate_for(name: str, folder: Path) -> Path:
    """Write a small estate on which a scenario can be played."""
    module = SCENARIOS[name].__module__.rpartition(".")[2]
    if module == "private":
        text = others.MIXED.format(expand="NONE")
        if name.startswith("queue-file"):
            begin = text.index("[queue_manager.QMD1]")
            text = "schema = 1\n" + text[begin:]
    elif module == "cluster":
        members = ", ".join(f'"UC01QM{number:02}"' for number in range(1, 13))
        text = others.CLUSTER.replace("{members}", members)
    elif name == "scm-day":
        text = Path(simulation.__file__).with_name("scm.toml").read_text(encoding="utf-8")
    elif name in ("scm-fills-behind", "scm-over-committed", "priority-inversion"):
        text = memory.ESTATE.replace("{scm}", "24M") + memory.SMDS
    else:
        return small_estate(folder)
    path = folder / "estate.toml"
    path.write_text(text, encoding="utf-8")
    return path


def is_distributed(alert: Alert) -> bool:
    return Resource.parse(alert.resource).pool in (Pool.FILE, Pool.BLOCKS)


@pytest.fixture(scope="module", params=EVERY)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Replayed]:
    """Return estate, recording and replay of a scenario."""
    folder = tmp_path_factory.mktemp("seen")
    path = estate_for(request.param, folder)
    recording = folder / "seen.arrow"
    simulate(make_scenario(request.param), load_estate(path), recording, seed=1)
    return path, recording, replay(recording, load_estate(path), course=False)


def test_alerts(played: tuple[Path, Path, Replayed]) -> None:
    wrong = []
    for alert in played[2].alerts:
        texts = [alert.cause, *alert.actions, *alert.evidence]
        texts += [line for action in alert.runbook for line in action.lines]
        wrong += seen.offences(texts, is_distributed=is_distributed(alert))
        statements = [step.statement for action in alert.runbook for step in action.steps if step.statement]
        wrong += [f"a placeholder: {statement}" for statement in statements if seen.has_gap(statement)]
        is_over = alert.change == CLEARED or "not expected to be full" in alert.cause
        assert alert.runbook or is_over, alert.cause
        if alert.condition in FILLING and "alert cleared" not in alert.cause:
            present = f"{alert.usage_pct:.1f} %"
            assert f": {present} in use" in alert.cause, alert.cause
    assert wrong == []


def test_alerts_on_a_terminal_and_in_a_pipe(played: tuple[Path, Path, Replayed]) -> None:
    incidents, lines = Incidents(), []
    for alert in played[2].alerts:
        record = read_alert_record(alert.record())
        assert record.data.runbook == alert.runbook
        lines += [alert_line(record), " ".join(alert_block(record).plain.splitlines())]
        for change in incidents.take(record):
            lines += [incident_line(change), " ".join(incident_block(change).plain.splitlines())]
    assert seen.offences(lines, is_table=True) == []


def test_commands(played: tuple[Path, Path, Replayed], capsys: pytest.CaptureFixture[str]) -> None:
    estate, recording, replayed = played
    commands = [["estate", "check", str(estate)], ["replay", str(recording), "--estate", str(estate)]]
    commands += [  # these replay a day of 800,000 events again and again, for minutes
        [command, store, "--estate", str(estate), "--recording", str(recording)]
        for store in list(can_be_full(load_estate(estate)))[:1]
        for command in ("whatif", "advise")
        if replayed.events < LONG
    ]
    assert replayed.events > 0
    for command in commands:
        main(command)
        output = capsys.readouterr()
        is_of_files = all(store.kind == "queue_file" for store in load_estate(estate).stores.values())
        lines = (output.out + output.err).splitlines()
        assert lines
        assert seen.offences(lines, is_distributed=is_of_files, is_table=True) == [], command


def can_be_full(estate: Estate) -> list[str]:
    return [name for name, store in estate.stores.items() if store.kind in ("structure", "page_set", "queue_file")]
