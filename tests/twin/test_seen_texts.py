"""Every text that a person sees of a recording of each scenario: alerts, runbooks, and the output of commands."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from deploy.cli import main
from deploy.show.alerts import alert_block, alert_line, incident_block, incident_line
from kernels import layout
from tests.support import seen
from tests.support.estates import small_estate
from tests.tools.score.scenarios import STORIES
from tests.twin.simulation import test_memory_stories as memory
from tests.twin.simulation import test_other_stores as others
from twin import simulation
from twin.alerts.episodes import Alert
from twin.base.conditions import CLEARED, CRITICAL, Condition, Pool, Resource
from twin.base.units import as_microseconds
from twin.estate import Estate, load_estate
from twin.playback.replays import Replayed, decoded_chunks, replay
from twin.records import Change, Incidents, read_alert_record
from twin.simulation import SCENARIOS, simulate

BY_DAY = ("getter-outage", "queue-file-growth")
FILLING = (Condition.THRESHOLD, Condition.FULL, Condition.FULL_FORECAST, Condition.CANNOT_EXPAND)
LONG = 500_000  # events of a recording
EVERY_KIND = {**SCENARIOS, **STORIES}
EVERY = [pytest.param(name, marks=() if name in BY_DAY else pytest.mark.nightly, id=name) for name in EVERY_KIND]


def estate_for(name: str, folder: Path) -> Path:
    """Write a small estate on which a scenario can be played."""
    if name in ("page-set-expand-none", "queue-file-growth"):
        text = others.MIXED.format(expand="NONE")
        if name.startswith("queue-file"):
            begin = text.index("[queue_manager.QMD1]")
            text = "schema = 1\n" + text[begin:]
    elif name == "uniform-cluster-ramp":
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
    simulate(EVERY_KIND[request.param](), load_estate(path), recording, seed=1)
    return path, recording, replay(recording, load_estate(path), course=False)


def test_alerts(played: tuple[Path, Path, Replayed]) -> None:
    wrong = []
    for alert in played[2].alerts:
        texts = [alert.cause, *alert.actions, *alert.evidence]
        texts += [line for action in alert.runbook for line in action.lines]
        wrong += seen.offences(texts, is_distributed=is_distributed(alert))
        statements = [step.statement for action in alert.runbook for step in action.steps if step.statement]
        wrong += [f"a placeholder: {statement}" for statement in statements if seen.has_gap(statement)]
        assert alert.runbook or alert.change == CLEARED or "falling since" in alert.cause, alert.cause
        if alert.condition in FILLING and "alert cleared" not in alert.cause:
            assert f": {alert.usage_pct:.1f} % in use" in alert.cause, alert.cause
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


@pytest.mark.nightly
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


# --- the way out of a crisis -----------------------------------------------------------------------------------------

MINUTE_US = 60_000_000
CLEARLY = 1.2  # times as many gets as puts: whatever a tick more or less counts


@pytest.fixture(scope="module")
def traffic(played: tuple[Path, Path, Replayed]) -> dict[str, np.ndarray]:
    """Return f8[n, 4] by store: time, puts, gets and refused puts of every queue operation; refused ones are puts."""
    estate = load_estate(played[0])
    rows: dict[str, list[np.ndarray]] = {}
    for decoded in decoded_chunks(played[1], estate):
        for block in decoded.blocks(estate):
            events = block.events
            puts, refused = events["op"] == layout.PUT, np.isin(events["reason"], (2192, 2056))
            gets = (events["op"] == layout.GET) & (events["reason"] == 0)
            counts = events["count"][:, np.newaxis] * np.stack([puts, gets, puts & refused], axis=1)
            rows.setdefault(block.store, []).append(np.column_stack([events["time"], counts]))
    return {store: np.concatenate(own) for store, own in rows.items()}


def flows(traffic: np.ndarray, time: int, minutes: int) -> tuple[float, float, float]:
    """Return puts, gets and refused puts of the last minutes before a time."""
    is_recent = (traffic[:, 0] <= time) & (traffic[:, 0] > time - minutes * MINUTE_US)
    puts, gets, refused = traffic[is_recent, 1:].sum(axis=0).tolist()
    return puts, gets, refused


def empties(traffic: np.ndarray, time: int) -> bool:
    return all(gets > CLEARLY * puts for puts, gets, _ in (flows(traffic, time, minutes) for minutes in (3, 4, 5, 6)))


def test_no_record_says_when_it_is_full_while_gets_exceed_puts(
    played: tuple[Path, Path, Replayed], traffic: dict[str, np.ndarray]
) -> None:
    for alert in played[2].alerts:
        is_unlikely = alert.condition == Condition.FULL_FORECAST and (alert.full_probability or 0.0) < 0.3
        falls = alert.store in traffic and empties(traffic[alert.store], alert.time)
        if not falls and not is_unlikely:
            continue
        assert alert.time_to_full_s is None, alert
        assert alert.severity != CRITICAL or alert.condition == Condition.FULL, alert
        texts = [alert.cause, *alert.actions, *alert.evidence, *alert.brief]
        assert not [text for text in texts if re.search(r"full in\b|full ~|stopped .* ago|at the present rate", text)]
        if falls:
            assert not any(action.id == "getters" for action in alert.runbook), alert


def is_any_full(incidents: Incidents, alert: Alert) -> bool:
    """Return True if the incident of an alert has an open `full`."""
    incident = incidents.by_id[alert.incident.id]
    return any(other.data.condition == Condition.FULL for other in incident.alerts.values())


def test_puts_that_succeed_again_are_said_once_an_incident(
    played: tuple[Path, Path, Replayed], traffic: dict[str, np.ndarray]
) -> None:
    incidents, notices, ended = Incidents(), Counter[str](), set()
    recovered = Counter(alert.incident.id for alert in played[2].alerts if "uts succeed again" in alert.cause)
    for alert in played[2].alerts:
        for incident, change, _ in incidents.take(read_alert_record(alert.record())):
            if change is Change.RECOVERED:
                notices[incident.id] += 1
                assert alert.incident.role == "root"
                assert flows(traffic[alert.store], alert.time, 10)[2] == 0
        if alert.condition == Condition.FULL and alert.change == CLEARED and not is_any_full(incidents, alert):
            began = as_microseconds(alert.incident.opened)
            own = traffic[alert.store]
            if own[(own[:, 0] >= began) & (own[:, 0] <= alert.time), 3].any():
                ended.add(alert.incident.id)
    assert notices == recovered
    assert set(notices.values()) <= {1}
    assert ended <= set(notices)


def test_a_brief_is_three_short_lines(played: tuple[Path, Path, Replayed]) -> None:
    for alert in played[2].alerts:
        assert 1 <= len(alert.brief) <= 3
        statements = {step.statement for action in alert.runbook for step in action.steps}
        assert all(len(line) <= 100 for line in alert.brief if line not in statements), alert.brief
        assert not any("\n" in line for line in alert.brief)
