"""`source-silent`: opened by the job's heartbeat, cleared by the next event; the same however records are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.traffic import ESTATE, SECOND_US, START_US
from twin.alerts.episodes import Alert
from twin.base.conditions import Condition
from twin.estate import Estate, EstateError, load_estate
from twin.events import Decoded, Decoder
from twin.playback.replays import Player, replay
from twin.recordings.files import RecordingWriter
from twin.stores.message_store import MessageStore
from twin.stores.open import open_message_store
from twin.stores.watches import heartbeat, watched_queue_managers

STORE = "QSG1/APP1"


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return load_estate(written(tmp_path_factory.mktemp("estate")))


def written(folder: Path, text: str = ESTATE) -> Path:
    path = folder / "estate.toml"
    path.write_text(text)
    return path


def put(second: float, qmgr: str = "QM01", **other: Any) -> bytes:
    event = {"time": START_US + int(second * SECOND_US), "qmgr": qmgr, "op": "PUT", "queue": "ORDERS", "length": 1000}
    return msgspec.json.encode(event | other)


def silent(second: float, silent_s: int, qmgr: str = "QM01", store: str = STORE) -> bytes:
    return heartbeat(qmgr, store, START_US + int(second * SECOND_US), silent_s)


def play(estate: Estate, lines: list[bytes], size: int = 1_000_000) -> tuple[list[Alert], dict[str, Any]]:
    """Return the alerts and the states that these events bring when `size` of them are fed at once."""
    player, decoder = Player(estate), Decoder(estate)
    alerts: list[Alert] = []
    for start in range(0, len(lines), size):
        decoded = decoder.json(lines[start : start + size])
        assert not decoded.rejects
        alerts += player.feed(decoded)
    return alerts, player.states()


def silences(alerts: list[Alert]) -> list[tuple[str, str, float]]:
    silent = [alert for alert in alerts if alert.condition == Condition.SOURCE_SILENT]
    return [(alert.change, alert.resource, (alert.time - START_US) / SECOND_US) for alert in silent]


def test_a_heartbeat_of_silence_opens_a_watch_and_the_next_event_clears_it(estate: Estate) -> None:
    alerts, states = play(estate, [put(0), silent(300, 300), put(420), put(430)])
    opened, cleared = alerts
    assert silences(alerts) == [("opened", "source/QM01", 300), ("cleared", "source/QM01", 420)]
    data = opened.data()
    assert (data.severity, data.level, data.usage_pct, data.fillers) == ("info", "watch", None, ())
    assert data.cause == (
        "QM01: no event for 5 min, since 2026-11-20 12:00:00 UTC. The twin shows QSG1/APP1 as of that time; the current"
        " usage is not known."
    )
    assert "DISPLAY QMGR" in data.actions[0]
    assert cleared.data().cause == "QM01: events arrive again, alert cleared."
    assert cleared.alert_id == opened.alert_id == f"{STORE}/source-silent/source/QM01/{START_US + 300 * SECOND_US}"
    assert (cleared.number, cleared.actions) == (1, ())
    assert states[STORE].messages == 3


def test_it_opens_once_and_moves_the_clock_each_time(estate: Estate) -> None:
    lines = [put(0), silent(300, 300), silent(600, 600), silent(900, 900)]
    alerts, states = play(estate, lines)
    assert silences(alerts) == [("opened", "source/QM01", 300)]
    assert states[STORE].time == "2026-11-20T12:15:00.000000Z"


def test_only_events_of_that_queue_manager_clear_it(estate: Estate) -> None:
    alerts, _ = play(estate, [put(0), silent(300, 300), put(310, "QM02"), put(320, "QM02")])
    assert silences(alerts) == [("opened", "source/QM01", 300)]


@pytest.mark.parametrize(
    "event",
    [
        put(310, seq=0),  # a duplicate
        put(310, reason=2030),
        msgspec.json.encode({"time": START_US + 310 * SECOND_US, "qmgr": "QM01", "op": "HEARTBEAT", "store": STORE}),
        msgspec.json.encode(
            {
                "time": START_US + 310 * SECOND_US,
                "qmgr": "QM01",
                "op": "MEASURE",
                "store": STORE,
                "measured": {"messages": 1},
            }
        ),
    ],
)
def test_whatever_the_queue_manager_sends_clears_it(estate: Estate, event: bytes) -> None:
    alerts, _ = play(estate, [put(0, seq=0), silent(300, 300), event])
    assert [change for change, *_ in silences(alerts)] == ["opened", "cleared"]


def test_two_silent_queue_managers_are_two_alerts(estate: Estate) -> None:
    lines = [put(0), put(0, "QM02"), silent(300, 300), silent(300, 300, "QM02"), put(310, "QM02"), put(320)]
    alerts, _ = play(estate, lines)
    assert silences(alerts) == [
        ("opened", "source/QM01", 300),
        ("opened", "source/QM02", 300),
        ("cleared", "source/QM02", 310),
        ("cleared", "source/QM01", 320),
    ]


def test_time_advances_while_a_source_is_silent(estate: Estate) -> None:
    """Clear a `threshold` alert whose getters caught up before the silence clears in it."""
    lines = [put(0, count=400), put(1, op="GET", count=400), silent(700, 699)]
    alerts, _ = play(estate, lines)
    changes = [(alert.change, alert.condition) for alert in alerts]
    assert changes[-1] == ("opened", Condition.SOURCE_SILENT)
    assert ("cleared", "threshold") in changes[:-1]


ROUNDS = [
    line
    for second in range(0, 6000, 600)
    for line in (
        put(second, count=40),
        put(second + 1, "QM02", count=40),
        silent(second + 300, 299),
        silent(second + 301, 299, "QM02"),
        put(second + 302, "QM02"),
        silent(second + 400, 399),
        put(second + 500, op="GET", count=60),
    )
]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 11])
def test_cuts_change_nothing(estate: Estate, size: int) -> None:
    assert play(estate, ROUNDS, size) == play(estate, ROUNDS)
    assert len(silences(play(estate, ROUNDS)[0])) == 40


def test_an_open_alert_survives_a_restart_from_the_header(estate: Estate) -> None:
    whole, _ = play(estate, ROUNDS)
    alerts: list[Alert] = []
    decoder = Decoder(estate)
    twin = open_message_store(estate, STORE)
    pages: dict[int, bytes] = {}
    for line in ROUNDS:
        alerts += apply(twin, decoder.json([line]), estate)
        pages |= dict(twin.dirty_pages())
        twin = open_message_store(estate, STORE, None, twin.header(), pages.items())
    assert alerts == whole


def apply(twin: MessageStore, decoded: Decoded, estate: Estate) -> list[Alert]:
    (block,) = decoded.blocks(estate)
    return twin.apply(block)


def test_an_alert_of_a_queue_manager_that_left_the_estate_ends(estate: Estate, tmp_path: Path) -> None:
    twin = open_message_store(estate, STORE)
    lines = [put(0), put(0, "QM02"), silent(300, 300, "QM02")]
    alerts = apply(twin, Decoder(estate).json(lines), estate)
    assert silences(alerts) == [("opened", "source/QM02", 300)]
    text = ESTATE.replace('["QM01", "QM02"]', '["QM01"]')
    smaller = load_estate(written(tmp_path, "\n".join(without(text.splitlines(), "/QM02"))))
    twin = open_message_store(smaller, STORE, None, twin.header(), list(twin.dirty_pages()))
    alerts = apply(twin, Decoder(smaller).json([put(310)]), smaller)
    assert silences(alerts) == [("cleared", "source/QM02", 310)]
    assert "QM02: the estate no longer has it" in alerts[0].cause


def without(lines: list[str], table: str) -> list[str]:
    """Leave out the tables whose name has that text, each with the line after it."""
    heads = {number for number, line in enumerate(lines) if table in line}
    return [line for number, line in enumerate(lines) if number not in heads and number - 1 not in heads]


@pytest.mark.parametrize("suffix", ["ndjson", "arrow"])
def test_a_recording_keeps_the_heartbeat(estate: Estate, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{suffix}"
    with RecordingWriter(path) as writer:
        writer.write([msgspec.json.decode(line) for line in ROUNDS])
    replayed = replay(path, estate)
    alerts, states = play(estate, ROUNDS)
    assert (replayed.alerts, replayed.states) == (alerts, states)


@pytest.mark.parametrize(
    ("event", "reason", "detail"),
    [
        ({"measured": {"silent_s": "5"}}, "wrong-type", "measured.silent_s"),
        (
            {"measured": {"silent_s": 0}},
            "bad-value",
            "measured.silent_s is 0; expected: an integer from 1 to 1000000000",
        ),
        ({"measured": {"silent_s": 5}, "store": None}, "missing-field", "store"),
    ],
)
def test_a_wrong_heartbeat_is_a_dead_letter(estate: Estate, event: dict[str, Any], reason: str, detail: str) -> None:
    sent = {"time": START_US, "qmgr": "QM01", "op": "HEARTBEAT", "store": STORE} | event
    (reject,) = Decoder(estate).json([msgspec.json.encode(sent)]).rejects
    assert reject.reason == reason and detail in reject.detail


def test_the_estate_says_who_is_watched(tmp_path: Path) -> None:
    text = ESTATE.replace("[queue_manager.QM01]\n", "[queue_manager.QM01]\nsilence_s = 300\n")
    assert watched_queue_managers(load_estate(written(tmp_path, text))) == {"QM01": 300.0}
    with pytest.raises(EstateError, match=r"queue_manager\.QM01\.silence_s = 0: must be a number above 0"):
        load_estate(written(tmp_path, text.replace("300", "0")))
