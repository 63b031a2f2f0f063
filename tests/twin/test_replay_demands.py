"""`replay(..., demands=True)`: the puts of a recording as requests, on the same estate and on a changed one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import twin
from deploy.cli import main
from tests.support.estates import small_estate
from tests.support.traffic import write_lines

STORE = "QSG1/APP1"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("asked")
    estate = twin.load_estate(small_estate(folder))
    twin.simulate(twin.make_scenario("getter-outage"), estate, folder / "outage.arrow", seed=3)
    return folder / "outage.arrow"


def asked(recording: Path, estate: Path) -> twin.Replayed:
    return twin.replay(recording, estate, demands=True)


def test_on_the_same_estate_the_same_puts_are_refused(recording: Path, tmp_path: Path) -> None:
    """The recording was decided by the same kernels."""
    estate = small_estate(tmp_path)
    replayed, as_facts = asked(recording, estate), twin.replay(recording, estate)
    outcome = replayed.refusals[STORE]
    assert outcome.recorded.full > 0
    assert outcome.replayed == outcome.recorded
    assert outcome.unserved_gets == 0
    assert replayed.states == as_facts.states
    assert [alert.alert_id for alert in replayed.alerts] == [alert.alert_id for alert in as_facts.alerts]


def test_on_a_larger_estate_none_is_refused(recording: Path, tmp_path: Path) -> None:
    replayed = asked(recording, small_estate(tmp_path, size="96M", smds="64M"))
    outcome = replayed.refusals[STORE]
    assert outcome.recorded.full > 0 and outcome.recorded.first_full is not None
    assert (outcome.replayed.full, outcome.replayed.first_full) == (0, None)
    state = replayed.states[STORE]
    assert (state.full_puts, state.overfull_puts) == (0, 0)
    assert not [alert for alert in replayed.alerts if alert.condition == "full"]


def test_never_full_passes_and_fails_by_the_estate(recording: Path, tmp_path: Path) -> None:
    assert asked(recording, small_estate(tmp_path, size="96M", smds="64M")).never_full(STORE)
    replayed = asked(recording, small_estate(tmp_path, size="24M", smds="8M"))
    for stores in ((), (STORE,)):
        with pytest.raises(AssertionError, match=rf"^{STORE}: [0-9,]+ of [0-9,]+ puts are refused, the first at 20"):
            replayed.never_full(*stores)


def test_never_full_needs_demands_and_a_store_with_puts(recording: Path, tmp_path: Path) -> None:
    estate = small_estate(tmp_path, size="96M", smds="64M")
    with pytest.raises(twin.UsageError, match="expected: demands=True"):
        twin.replay(recording, estate).never_full(STORE)
    with pytest.raises(twin.UsageError, match="no put of QSG1/APP9; did you mean QSG1/APP1"):
        asked(recording, estate).never_full("QSG1/APP9")


def test_on_a_smaller_estate_more_are_refused_sooner(recording: Path, tmp_path: Path) -> None:
    outcome = asked(recording, small_estate(tmp_path, size="24M", smds="8M")).refusals[STORE]
    assert outcome.replayed.full > outcome.recorded.full
    assert outcome.replayed.first_full is not None and outcome.recorded.first_full is not None
    assert outcome.replayed.first_full < outcome.recorded.first_full
    assert outcome.unserved_gets > 0


def test_maxdepth_refuses_with_2053(recording: Path, tmp_path: Path) -> None:
    file = small_estate(tmp_path)
    text = file.read_text(encoding="utf-8")
    orders = '"QSG1/ORDERS" = {structure = "APP1"}'
    assert orders in text
    file.write_text(text.replace(orders, orders.replace("}", ", max_depth = 50}")), encoding="utf-8")
    outcome = asked(recording, file).refusals[STORE]
    assert outcome.replayed.queue_full > 0 and outcome.replayed.full == 0


def test_a_put_of_many_is_asked_message_by_message(tmp_path: Path) -> None:
    event = {"time": "2026-11-20T12:00:00Z", "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "seq": 1}
    path = write_lines(tmp_path / "many.ndjson", [json.dumps(event | {"length": 60_000, "count": 5_000}).encode()])
    replayed = asked(path, small_estate(tmp_path, size="8M", smds="2M"))
    outcome, state = replayed.refusals[STORE], replayed.states[STORE]
    assert 0 < outcome.replayed.full < 5_000
    assert state.messages + outcome.replayed.full == 5_000 and state.overfull_puts == 0
    assert (state.duplicates, state.gaps) == (0, 0)


def test_puts_of_a_distributed_queue_manager_refused_with_2056_are_asked_again(tmp_path: Path) -> None:
    (tmp_path / "estate.toml").write_text(
        'schema = 1\n[queue_manager.QMD1]\nplatform = "distributed"\n[queue_file."QMD1/INVOICES"]\n', encoding="utf-8"
    )
    event = {"time": "2026-11-20T12:00:00Z", "qmgr": "QMD1", "op": "PUT", "queue": "INVOICES", "seq": 1}
    refused = json.dumps(event | {"length": 1_000, "reason": 2056, "count": 3}).encode()
    replayed = asked(write_lines(tmp_path / "refused.ndjson", [refused]), tmp_path / "estate.toml")
    outcome = replayed.refusals["QMD1/INVOICES"]
    assert (outcome.recorded.full, outcome.replayed.full) == (3, 0)
    assert outcome.recorded.first_full is not None
    assert replayed.states["QMD1/INVOICES"].messages == 3


def test_the_command_shows_both_outcomes(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estate = small_estate(tmp_path, size="96M", smds="64M")
    assert main(["replay", str(recording), "--estate", str(estate), "--demands"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().err.splitlines()]
    rows = {line[1]: line[2:] for line in lines if len(line) == 6 and line[0] == STORE}
    first = rows["recorded"][1]
    assert first.startswith("2026-11-20 ") and first.endswith(" UTC") and rows["this estate"][:2] == ["0", "none"]


def test_puts_refused_with_2056_are_requests_too(tmp_path: Path) -> None:
    estate = tmp_path / "estate.toml"
    estate.write_text(
        'schema = 1\n[queue_manager.QMD1]\nplatform = "distributed"\n[queue_file."QMD1/BATCH"]\nmax_size = "100M"\n',
        encoding="utf-8",
    )
    put = {
        "time": "2026-11-20T12:00:00Z",
        "qmgr": "QMD1",
        "op": "PUT",
        "queue": "BATCH",
        "length": 3000,
        "reason": 2056,
    }
    path = write_lines(tmp_path / "full.ndjson", [json.dumps(put | {"count": 7}).encode()])
    outcome = asked(path, estate).refusals["QMD1/BATCH"]
    assert (outcome.recorded.puts, outcome.recorded.full) == (7, 7)
    assert (outcome.replayed.puts, outcome.replayed.full) == (7, 0)
