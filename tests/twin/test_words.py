"""One word back: what people say of a page, and what the next one of its kind needs (docs/incidents.md)."""

from typing import Any

import msgspec
import pytest

from tests.twin.test_alerts_forecast import MINUTE_US, RecordedStory
from twin.alerts.episodes import Alert
from twin.base.conditions import CLEARED, FULL, INFO, OPENED, WARNING
from twin.estate import ForecastSettings
from twin.forecast import rule
from twin.forecast.outcomes import Outcomes
from twin.forecast.rule import Situation
from twin.records import ACTED, NONE, USEFUL, USELESS, AlertRecord, NotedAlert, event_of, new_note, opened_of
from twin.records import read_alert_record as read_alert

START = 1_795_176_000_000_000
STORE = "QSG1/APP1"
DAY_US = 86_400_000_000


def record(opened: int, time: int, change: str = OPENED, severity: str = WARNING, **fields: Any) -> Alert:
    own = {"condition": "full-forecast", "resource": "entries", "store": STORE} | fields
    return Alert(
        change=change,  # type: ignore[arg-type]
        number=0,
        alert_id=f"{STORE}/{own['condition']}/entries/{opened}",
        severity=severity,  # type: ignore[arg-type]
        time=time,
        usage_pct=None,
        time_to_full_s=None,
        full_probability=None,
        fillers=(),
        cause="entries will be full",
        **own,
    )


def paged(count: int, situation: str = "usual") -> tuple[Outcomes, list[int]]:
    """Return the outcomes of a store that was paged some times without being full, and when."""
    outcomes, times = Outcomes(), [START + number * 3600_000_000 for number in range(count)]
    for time in times:
        outcomes.note_alert(record(time, time), situation)
        outcomes.note_alert(record(time, time + MINUTE_US, CLEARED))
    return outcomes, times


# --- what words are worth ---------------------------------------------------------------------------------------------


def test_useless_pages_raise_what_the_next_one_needs_and_useful_ones_lower_it_within_bounds() -> None:
    outcomes, times = paged(12)
    config = ForecastSettings()
    assert rule.needed(Situation.USUAL, config, outcomes.worth) == rule.PAGE_PROBABILITY
    needed = []
    for time in times:
        outcomes.take_word(time, USELESS)
        needed.append(round(100 * rule.needed(Situation.USUAL, config, outcomes.worth)))
    assert needed[:5] == [83, 87, 90, 91, 92]
    assert needed[-1] == 92  # four times the odds, however many there are
    for time in times:
        outcomes.take_word(time, USEFUL)
    assert outcomes.worth(Situation.USUAL) == 2.0
    assert round(100 * rule.needed(Situation.USUAL, config, outcomes.worth)) == 60


def test_words_are_about_pages_of_their_situation_alone() -> None:
    outcomes, times = paged(1, "turned")
    outcomes.take_word(times[0], USELESS)
    assert outcomes.worth("turned") < 1.0
    assert [outcomes.worth(other) for other in Situation if other != "turned"] == [1.0] * 5


def test_a_later_word_replaces_the_earlier_and_none_takes_it_back() -> None:
    outcomes, [time] = paged(1)
    for word, counts in ((USELESS, (0, 1)), (USEFUL, (1, 0)), (USELESS, (0, 1)), (NONE, (0, 0))):
        outcomes.take_word(time, word)
        assert outcomes.words("usual") == counts
    assert outcomes.worth("usual") == 1.0


def test_a_store_remembers_its_last_pages_only() -> None:
    outcomes, times = paged(40)
    outcomes.take_word(times[7], USELESS)
    assert outcomes.words("usual") == (0, 0)
    outcomes.take_word(times[8], USELESS)
    assert outcomes.words("usual") == (0, 1)
    assert len(outcomes.calls) == 32
    assert len(msgspec.msgpack.encode(outcomes.calls)) < 1200


def test_a_useful_page_that_turned_is_saved_and_not_false() -> None:
    outcomes, times = paged(3)
    now = times[-1] + DAY_US
    outcomes.take_word(times[0], USEFUL)
    outcomes.take_word(times[2], USEFUL)  # nothing has settled the last one yet

    def counts() -> tuple[int, Any]:
        scores = outcomes.scores(now)
        assert scores is not None
        return scores.pages.false, scores.pages.saved

    assert counts() == (1, 2)
    outcomes.take_word(times[0], USELESS)
    assert counts() == (2, 1)
    outcomes.take_word(times[2], NONE)
    assert counts() == (3, msgspec.UNSET)


def test_a_page_before_full_stays_right_whatever_is_said() -> None:
    outcomes = Outcomes()
    outcomes.note_alert(record(START, START), "usual")
    full = START + 20 * MINUTE_US
    outcomes.note_alert(record(full, full, severity=FULL, condition="full"))
    for time, opened, condition in ((full, START, "full-forecast"), (full, full, "full")):
        outcomes.note_alert(record(opened, time + MINUTE_US, CLEARED, condition=condition))
    outcomes.take_word(START, USELESS)
    scores = outcomes.scores(full + DAY_US)
    assert scores is not None and (scores.pages.right, scores.pages.false) == (1, 0)


# --- in a store -------------------------------------------------------------------------------------------------------


class Answered(RecordedStory):
    """A store of which people say what its pages were worth."""

    def say(self, word: str, opened: int | None = None) -> None:
        paged = opened or self.called()[-1]
        self.apply({"time": self.time, "qmgr": "ann", "op": "NOTE", "store": STORE} | note(paged, word))

    def called(self) -> list[int]:
        """Return when the alerts opened that became pages."""
        own = (alert for alert in self.foreseen() if alert.severity != INFO)
        return list(dict.fromkeys(opened for alert in own if (opened := opened_of(alert.alert_id)) is not None))


def note(opened: Any, word: Any, **others: Any) -> dict[str, Any]:
    return {"attributes": {"opened": opened, "word": word} | others}


def filled() -> Answered:
    """Return a store whose getters stopped until it was paged, and got all before it was full."""
    story = Answered()
    story.go_on(30, puts=10, gets=10)
    story.go_on(80, puts=10, gets=0)
    story.go_on(30, puts=10, gets=40)
    return story


def test_the_state_record_and_the_next_page_say_what_was_said() -> None:
    story = filled()
    assert len(story.called()) == 1
    assert "words" not in story.state()
    story.say(USELESS)
    [words] = story.state()["words"]
    assert (words["useful"], words["useless"]) == (0, 1)
    situation = Situation(words["situation"])
    assert words["needed_pct"] == pytest.approx(
        100 * rule.needed(situation, ForecastSettings(), lambda _: 0.615), abs=0.1
    )
    assert story.twin.monitor.memory.outcomes.words(situation) == (0, 1)
    header = msgspec.msgpack.encode(story.twin.monitor.memory.outcomes)
    assert msgspec.msgpack.decode(header, type=Outcomes).words(situation) == (0, 1)
    story.say(NONE)
    assert "words" not in story.state()


def test_a_word_on_a_page_that_is_not_known_changes_nothing() -> None:
    story = filled()
    before = msgspec.msgpack.encode(story.twin.monitor.memory)
    story.say(USELESS, story.called()[0] + 1)
    assert msgspec.msgpack.encode(story.twin.monitor.memory) == before


# --- the note ---------------------------------------------------------------------------------------------------------


def test_a_note_on_a_page_of_the_forecast_is_a_word_for_its_store() -> None:
    page = read_alert(record(START, START).record())
    noted = NotedAlert.after(None, page)

    def word(kind: str, alert: NotedAlert = noted, **fields: Any) -> Any:
        event = event_of(new_note(page.data.alert_id, kind, "ann", "2026-11-20T12:30:00Z", **fields), alert)
        return event and msgspec.json.decode(event)["attributes"]

    assert word(USELESS) == {"opened": START, "word": USELESS}
    assert word(ACTED, action="getters") == {"opened": START, "word": USEFUL}  # whoever acted had a use for it
    assert word("acknowledged") is word("comment", text="on it") is None
    assert word(USELESS, NotedAlert.after(None, watch())) is None


def watch() -> AlertRecord:
    return read_alert(record(START, START, severity=INFO).record())


@pytest.mark.parametrize(
    ("alert_id", "opened"),
    [
        (f"{STORE}/full-forecast/smds/QM01/{START}", START),
        (f"{STORE}/full-forecast/entries/{START}/3", START),
        ("QSG1/APP1/threshold/entries/1", None),
        ("", None),
    ],
)
def test_the_id_of_an_alert_says_when_it_opened(alert_id: str, opened: int | None) -> None:
    assert opened_of(alert_id) == opened


def test_state_from_before_words_is_read_and_has_none() -> None:
    outcomes, times = paged(2)
    outcomes.scores(times[-1] + DAY_US)
    outcomes.note_alert(record(times[-1] + DAY_US, times[-1] + DAY_US))  # it settles the pages before it
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(outcomes))
    del state["calls"]
    state["days"] = [day[:8] for day in state["days"]]
    read = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=Outcomes)
    assert (read.calls, read.days) == ([], outcomes.days)
    assert read.days[0].false == 2
