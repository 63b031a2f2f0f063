"""History of an estate: what is learned from a recording, and what a new twin begins with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deploy.cli import main
from kernels.meter_rows import TOTAL_TIDE
from tests.tools.score.scenarios.turning import Sawtooth
from twin.estate import EstateError, load_estate
from twin.estate.planned import PastPuts, PastRise, StoreHistory, history_text, read_history
from twin.forecast.rises import kept_rises
from twin.playback.replays import learn
from twin.simulation import simulate
from twin.state.arrays import MemoryArrays
from twin.stores.open import open_message_store

STORE = "QSG1/APP1"
ESTATE = """
schema = 1
{history}
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]

[structure."QSG1/APP1"]
size = "24M"
cf_level = 4

[queue."QSG1/ORDERS"]
structure = "APP1"
"""
DAY = 86_400_000_000


@pytest.fixture(scope="module")
def teeth(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return (recording of four teeth, estate file)."""
    folder = tmp_path_factory.mktemp("history")
    estate = folder / "estate.toml"
    estate.write_text(ESTATE.format(history=""), encoding="utf-8")
    recording = folder / "teeth.arrow"
    scenario = Sawtooth(hours=4.2, peak=0.6)
    simulate(scenario, load_estate(estate), recording, 3)
    return recording, estate


def past(ended: int, **changed: Any) -> PastRise:
    """Return a rise of half an hour."""
    values: dict[str, Any] = {
        "low": 0.1,
        "top": 0.9,
        "usage": 0.8,
        "refused": 0,
        "puts": 1_000,
        "stayed": 900,
    } | changed
    return PastRise(began=ended - 1_800_000_000, ended=ended, **values)


def with_history(folder: Path, rises: tuple[PastRise, ...]) -> Path:
    """Return an estate file with a history of its store."""
    (folder / "past.json").write_bytes(history_text({STORE: StoreHistory(rises)}))
    estate = folder / "estate.toml"
    estate.write_text(ESTATE.format(history='history = "past.json"'), encoding="utf-8")
    return estate


def test_each_tooth_of_a_recording_is_a_rise_that_turned(teeth: tuple[Path, Path]) -> None:
    recording, estate = teeth
    rises = learn([recording], load_estate(estate))[STORE].rises
    assert len(rises) == 4
    assert [rise.refused for rise in rises] == [0] * 4
    assert all(35 * 60 < (rise.ended - rise.began) / 1e6 < 45 * 60 for rise in rises)
    assert all(0.3 < rise.usage < 0.7 for rise in rises)


def test_the_recordings_of_two_days_teach_the_rises_of_both(teeth: tuple[Path, Path]) -> None:
    recording, estate = teeth
    once = learn([recording], load_estate(estate))[STORE].rises
    twice = learn([recording, recording], load_estate(estate))[STORE].rises
    assert len(twice) == 2 * len(once)
    assert [rise.top for rise in twice] == 2 * [rise.top for rise in once]


def test_a_new_store_remembers_the_rises_of_its_history_before_any_event(tmp_path: Path) -> None:
    monday = 2_800 * 7 * DAY
    rises = (past(monday + DAY), past(monday + 2 * DAY, usage=0.7))
    twin = open_message_store(load_estate(with_history(tmp_path, rises)), STORE)
    known = kept_rises(twin.tables.store, twin.qmgrs)
    assert [(rise.usage, rise.top) for rise in known] == [(0.8, 0.9), (0.7, 0.9)]
    assert [rise.ended % (7 * DAY) for rise in known] == [DAY, 2 * DAY]  # the same time of the week
    assert known[-1].ended < 7 * DAY  # before any event


def test_a_store_that_has_state_keeps_its_own_past(tmp_path: Path) -> None:
    estate = load_estate(with_history(tmp_path, (past(DAY),)))
    twin = open_message_store(estate, STORE)
    pages = list(twin.dirty_pages())
    changed = load_estate(with_history(tmp_path, (past(DAY), past(2 * DAY))))
    again = open_message_store(changed, STORE, MemoryArrays(), twin.header(), pages)
    assert int(again.tables.store.tides[TOTAL_TIDE]["rises"]) == 1


def test_rises_of_a_data_set_are_those_of_its_queue_manager(tmp_path: Path) -> None:
    rises = (past(DAY), past(2 * DAY, data_set="QM01", top=0.5), past(3 * DAY, data_set="QM99"))
    twin = open_message_store(load_estate(with_history(tmp_path, rises)), STORE)
    known = kept_rises(twin.tables.store, twin.qmgrs)
    assert [(rise.data_set, rise.top) for rise in known] == [("", 0.9), ("QM01", 0.5)]


def test_of_more_rises_than_a_store_keeps_it_remembers_the_last(tmp_path: Path) -> None:
    rises = tuple(past(DAY + number * 3_600_000_000, top=number / 100) for number in range(40))
    known = kept_rises(open_message_store(load_estate(with_history(tmp_path, rises)), STORE).tables.store, ["QM01"])
    assert [rise.top for rise in known] == [number / 100 for number in range(8, 40)]


def test_the_command_writes_a_history_that_an_estate_can_name(
    teeth: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording, estate = teeth
    output = tmp_path / "past.json"
    assert main(["warm", "--recording", str(recording), "--estate", str(estate), "-o", str(output)]) == 0
    assert "4 rises of 1 store written" in capsys.readouterr().out
    assert read_history(output) == learn([recording], load_estate(estate))


def test_a_history_carries_the_puts_of_each_half_hour(teeth: tuple[Path, Path], tmp_path: Path) -> None:
    recording, estate = teeth
    learned = learn([recording], load_estate(estate))
    puts = learned[STORE].puts
    assert puts is not None
    assert len(puts.counts) == 8  # of 4.2 hours
    assert min(puts.counts[1:]) > 0
    (tmp_path / "past.json").write_bytes(history_text(learned))
    described = tmp_path / "estate.toml"
    described.write_text(ESTATE.format(history='history = "past.json"'), encoding="utf-8")
    twin = open_message_store(load_estate(described), STORE)
    assert twin.monitor.memory.puts.as_history() == PastPuts(until=puts.until % (7 * DAY), counts=puts.counts)


def test_a_history_of_the_version_before_has_no_puts(tmp_path: Path) -> None:
    (tmp_path / "past.json").write_bytes(b'{"schema": 1, "stores": {"QSG1/APP1": []}}')
    assert read_history(tmp_path / "past.json") == {STORE: StoreHistory()}


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (None, "cannot be read"),
        (b"[]", "Expected `object`"),
        (b'{"schema": 2, "stores": {}}', "schema 2; expected: 1"),
        (b'{"\xff": 1}', "decode byte 0xff"),
    ],
)
def test_a_file_that_is_no_history_is_an_error_of_the_estate(tmp_path: Path, content: bytes | None, wrong: str) -> None:
    estate = with_history(tmp_path, ())
    if content is None:
        (tmp_path / "past.json").unlink()
    else:
        (tmp_path / "past.json").write_bytes(content)
    with pytest.raises(EstateError, match=wrong):
        load_estate(estate)
