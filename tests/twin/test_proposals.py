"""Changes that alerts propose: only what mqtwin would write itself is one, and its effect is that of an ALTER."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support import asked_acts
from tests.support.alert_entries import alert
from tests.support.asked_acts import EXPAND, NOW, outlook, request, state
from tests.support.filling import STORE, Filling
from tests.support.runbooks import pool_actions
from twin.base.conditions import Pool, Resource
from twin.base.errors import UsageError
from twin.base.units import MIB, as_text
from twin.capacity import alter_rules, alter_size
from twin.estate import Estate, MessageStoreConfig, PageSet, QueueFile, Structure
from twin.planning.proposals import Change, changed_since, problem_of, propose, read_change, rebuilt, size_of
from twin.planning.whatif import what_if
from twin.records import Action, Step, read_alert_record

NEVER = ("CLEAR", "DELETE", "MOVE", "STOP", "FORCE", "RECOVER", "RESET")
HOSTILE = (
    *("'", '"', "''", "(", ")", "((", ")(", ";", "; CLEAR QLOCAL(A)", "\n", "\r\n", "\0", "\x1b[31m", "+", "-", "+\n"),
    *(",", " ", "\t", "\u202e", "\u2028", "\uff08", "$(reboot)", "`reboot`", "&& reboot", "| reboot", "{store}", "%s"),
    *(
        " FORCE",
        " CMDSCOPE(*)",
        " DESCR('x')",
        ",LOC=OTHER",
        "//JOB",
        "*",
        "NO",
        "ALTER ",
        "9" * 30,
        "-1",
        "0x10",
        "1E9",
    ),
    *NEVER,
)
TEMPLATES = {
    "alter-cfstruct": r"ALTER CFSTRUCT\([A-Z0-9]{1,12}\)( (OFFLD[123](TH\(\d+\)|SZ\(\d+K\))|DSEXPAND\((YES|NO)\)))+",
    "alter-psid": r"ALTER PSID\(\d{1,2}\) EXPAND\((SYSTEM|USER|NONE)\)",
    "alter-qlocal": r"ALTER QLOCAL\(([A-Z0-9./_%]{1,48}|'[A-Za-z0-9./_%]{1,48}')\) MAXFSIZE\(\d+\)",
    "setxcf-alter": r"SETXCF START,ALTER,STRNAME=[A-Z0-9@#$_]{1,16},SIZE=\d+[KMGT]",
}


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return asked_acts.estate(tmp_path_factory.mktemp("estate"))


@pytest.fixture(scope="module")
def stores(estate: Estate) -> list[MessageStoreConfig]:
    file = QueueFile(name="QMD1/Orders.%/_", queue_manager="QMD1", queue="Orders.%/_")
    app1, page_set = estate.stores["QSG1/APP1"], estate.stores["QM01/PS04"]
    assert isinstance(app1, Structure)
    assert isinstance(page_set, PageSet)
    return [app1, page_set, file]


@pytest.fixture(scope="module")
def filling(tmp_path_factory: pytest.TempPathFactory) -> Filling:
    return Filling(tmp_path_factory.mktemp("filling"))


def valid(config: MessageStoreConfig) -> list[str]:
    """Return statements that the runbook would write."""
    match config:
        case Structure():
            name = config.mqsc_object
            sizes = [alter_size(config.policy_name, 2 * MIB), alter_size(config.policy_name, 1536 * 1024)]
            return [
                alter_rules(config, config.rules),
                f"ALTER {name} DSEXPAND(YES)",
                f"ALTER {name} OFFLD1TH(55)",
                *sizes,
            ]
        case QueueFile():
            return [f"ALTER {config.mqsc_object} MAXFSIZE(4096)"]
    return [EXPAND, "ALTER PSID(4) EXPAND(NONE)"]


def test_each_template_is_read_and_written_again(stores: list[MessageStoreConfig]) -> None:
    kinds = {
        change.kind: change for config in stores for change in (read_change(text, config) for text in valid(config))
    }
    assert kinds.keys() == TEMPLATES.keys()
    assert {kind: (own.language, own.target, own.look) for kind, own in kinds.items()} == {
        "alter-cfstruct": ("MQSC", "QSG1", "DISPLAY CFSTRUCT(APP1) ALL"),
        "setxcf-alter": ("SETXCF", "QSG1", "D XCF,STR,STRNAME=QSG1APP1"),
        "alter-psid": ("MQSC", "QM01", "DISPLAY USAGE PSID(4)"),
        "alter-qlocal": ("MQSC", "QMD1", "DISPLAY QSTATUS('Orders.%/_') CURFSIZE CURMAXFS"),
    }
    for config in stores:
        for text in valid(config):
            assert read_change(text, config).statement == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "CLEAR QLOCAL(ORDERS)",
        "DELETE CFSTRUCT(APP1)",
        "ALTER CFSTRUCT(APP2) DSEXPAND(YES)",  # of another store
        "ALTER CFSTRUCT(APP1)",
        "alter cfstruct(APP1) dsexpand(yes)",
        "ALTER CFSTRUCT(APP1) DSEXPAND(YES) ",
        "ALTER CFSTRUCT(APP1)  DSEXPAND(YES)",
        "ALTER CFSTRUCT(APP1) DSEXPAND(YES);",
        "ALTER CFSTRUCT(APP1) DSEXPAND(YES)\nCLEAR QLOCAL(ORDERS)",
        "ALTER CFSTRUCT(APP1) DSEXPAND(YES) CMDSCOPE(*)",
        "ALTER CFSTRUCT(APP1) RECOVER(NO)",
        "ALTER CFSTRUCT(APP1) CFLEVEL(5)",  # no action of a runbook
        "ALTER CFSTRUCT(APP1) OFFLD1TH(101)",
        "ALTER CFSTRUCT('APP1') DSEXPAND(YES)",
        "ALTER SMDS(QM01) CFSTRUCT(APP1) DSEXPAND(YES)",
        "RESET SMDS(QM01) CFSTRUCT(APP1) ACCESS(ENABLED)",
        "SETXCF START,REBUILD,STRNAME=QSG1APP1",
        "SETXCF FORCE,STR,STRNAME=QSG1APP1",
        "SETXCF START,ALTER,STRNAME=QSG1APP2,SIZE=1M",
        "SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=1024K",  # which mqtwin writes as 1M
        "SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=1M,LOC=OTHER",
        "SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=1",
        "ALTER PSID(4) EXPAND(SYSTEM)",
        "A" * 100_000,
    ],
)
def test_a_statement_that_mqtwin_would_not_write_is_refused(text: str, stores: list[MessageStoreConfig]) -> None:
    with pytest.raises(UsageError, match=r"is not handed over; expected: ALTER CFSTRUCT\(APP1\) as") as error:
        read_change(text, stores[0])
    assert len(str(error.value)) < 400 and str(error.value).isprintable()


def mutated(chance: random.Random, text: str) -> str:
    """Return a statement that somebody has changed, at one to three places."""
    for _ in range(chance.randrange(1, 4)):
        place, hostile = chance.randrange(len(text) + 1), chance.choice(HOSTILE)
        match chance.randrange(6):
            case 4 | 5:  # other numbers
                text = re.sub("[0-9]", lambda _: chance.choice("0123456789"), text, count=chance.randrange(1, 9))
            case 0:
                text = text[:place] + hostile + text[place:]
            case 1:
                text = text[:place] + hostile + text[place + len(hostile) :]
            case 2:
                text = text[:place] + text[place + chance.randrange(1, 6) :]
            case 3:
                letter = chr(chance.randrange(chance.choice((128, 0x3000))))
                text = text[:place] + letter + text[place:]
    return text


def renamed(chance: random.Random, config: MessageStoreConfig) -> MessageStoreConfig:
    """Return the store under a name that an estate may have, the oddest included."""
    if isinstance(config, Structure):
        return replace(config, name=f"QSG1/{chance.choice(('APP1', *NEVER))}")
    if isinstance(config, QueueFile):
        letters = "ABCZabcz019./_%"
        queue = "".join(chance.choice(letters) for _ in range(chance.randrange(1, 49)))
        return replace(config, name=f"QMD1/{queue}", queue=queue)
    return config


def attack(stores: list[MessageStoreConfig], rounds: int, seed: int) -> int:
    """Read changed statements under odd names, check those that are read, and return their number."""
    chance, read = random.Random(seed), 0
    for _ in range(rounds):
        config = renamed(chance, chance.choice(stores))
        text = mutated(chance, chance.choice(valid(config)))
        try:
            change = read_change(text, config)
        except UsageError:
            continue
        read += 1
        check(change, text)
    return read


def check(change: Change, text: str) -> None:
    assert change.statement == text and re.fullmatch(TEMPLATES[change.kind], text), text
    name = change.config.name.rpartition("/")[2]
    words = set(re.findall("[A-Z]+", text.replace(name, "")))
    assert words.isdisjoint(NEVER), text
    assert read_change(text, change.config) == change


def test_no_changed_text_becomes_another_statement(stores: list[MessageStoreConfig]) -> None:
    assert attack(stores, 1_000, seed=1) > 10


@pytest.mark.nightly
def test_no_changed_text_becomes_another_statement_in_a_hundred_thousand(stores: list[MessageStoreConfig]) -> None:
    assert attack(stores, 100_000, seed=2) > 1_000


def test_every_statement_of_the_runbook_is_one_of_the_templates_or_refused(stores: list[MessageStoreConfig]) -> None:
    app1 = stores[0]
    assert isinstance(app1, Structure)
    texts = [
        step.statement
        for resource in (Resource(Pool.ENTRIES), Resource(Pool.ELEMENTS))
        for alterable in (True, False)
        for action in pool_actions(app1, resource, app1.size // 2, (), alterable=alterable)
        for step in action.steps
        if step.statement is not None
    ]
    read = []
    for text in texts:
        try:
            read.append(read_change(text, app1))
        except UsageError:
            assert not text.startswith("SETXCF START,ALTER"), text
    assert {change.kind for change in read} == {"alter-cfstruct", "setxcf-alter"}


# --- requests that somebody has written into the topic ----------------------------------------------------------------


def test_a_request_is_made_again_from_its_parameters(estate: Estate) -> None:
    config, own = estate.stores[asked_acts.STORE], request(estate)
    assert isinstance(config, PageSet)
    assert rebuilt(own, config).statement == EXPAND
    for changed in (
        {"statement": "ALTER PSID(4) EXPAND(NONE)"},
        {"statement": "CLEAR QLOCAL(A)"},
        {"settings": {"expand": "NONE"}},
        {"settings": {}},
        {"target": "QM02"},
        {"language": "SETXCF"},
        {"kind": "setxcf-alter"},
        {"sha256": "0" * 64},
        {"look": "CLEAR QLOCAL(A)"},
    ):
        with pytest.raises(UsageError, match="expected: ALTER PSID"):
            rebuilt(msgspec.structs.replace(own, **changed), config)


# --- proposals --------------------------------------------------------------------------------------------------------


def test_the_effect_is_that_of_the_alter(filling: Filling) -> None:
    own = propose(filling.alert(), "alter-size", None, filling.moment)
    assert (own.kind, own.step, own.store, own.settings) == ("setxcf-alter", 1, STORE, {"size": 8 * MIB})
    assert own.statement == "SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=8M"
    assert own.undo == "SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=4M"
    assert (own.present, own.size) == ({"size": 4 * MIB}, 4 * MIB)
    assert own.before.p50 is not None and own.before.p50 < 3600
    assert own.after.p50 is None or own.after.p50 > 3 * own.before.p50
    assert own.state_time == as_text(filling.time)
    assert filling.moment.twin.value_of("size") == 4 * MIB, "the twin stays as it is"
    assert propose(filling.alert(), "alter-size", 1, filling.moment) == own


def test_the_predicted_effect_is_what_the_alter_brings(tmp_path: Path) -> None:
    filling = Filling(tmp_path)
    own = propose(filling.alert(), "alter-size", None, filling.moment)
    filling.alter(STORE, size=8 * MIB)
    after = what_if(filling.moment).before
    assert (after.p50, after.probability) == (own.after.p50, own.after.probability)
    filling.fill(120)
    assert {own.id for alert in filling.alerts for own in alert.done} == {"alter-size"}


@pytest.mark.parametrize(
    ("change", "action", "step", "expected"),
    [
        ({}, "enlarge", None, 'action "enlarge": alert {id} has none of this id; expected: '),
        ({}, "alter-size", 2, "--step 2: alter-size has 1 steps; expected: one of them"),
        ({"store": "QSG1/APP2"}, "alter-size", None, "is of QSG1/APP2; expected: one of QSG1/APP1"),
        ({"runbook": ()}, "alter-size", None, "has none of this id; expected: none"),
    ],
)
def test_what_cannot_be_proposed_is_one_line(
    change: dict[str, Any], action: str, step: int | None, expected: str, filling: Filling
) -> None:
    record = filling.alert()
    own = msgspec.structs.replace(record, data=msgspec.structs.replace(record.data, **change))
    with pytest.raises(UsageError, match=re.escape(expected.replace("{id}", record.data.alert_id))):
        propose(own, action, step, filling.moment)


@pytest.mark.parametrize(
    ("statements", "step", "expected"),
    [
        ((None,), None, "action x has no command; expected: one that has"),
        ((None,), 1, "--step 1 of x has no command; expected: one with a command"),
        (("CLEAR QLOCAL(A)",), None, 'statement "CLEAR QLOCAL(A)" is not handed over; expected: '),
        (("CLEAR QLOCAL(A)",), 1, 'statement "CLEAR QLOCAL(A)" is not handed over; expected: '),
        (
            ("SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=8M", "SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=7M"),
            None,
            "action x has several changes; expected: --step 1 or 2",
        ),
        (
            ("SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=1M",),
            None,
            "QSG1/APP1 would refuse size = 1048576 as it is; expected: another step, or later",
        ),
    ],
)
def test_steps_that_are_no_change_say_why(
    statements: tuple[str | None, ...], step: int | None, expected: str, filling: Filling
) -> None:
    steps = tuple(Step("Type this", statement) for statement in statements)
    runbook = (Action(id="x", summary="y", steps=steps),)
    record = read_alert_record(alert(store=STORE, resource="entries", runbook=runbook).record())
    with pytest.raises(UsageError, match=re.escape(expected)):
        propose(record, "x", step, filling.moment)


def test_an_alert_that_has_cleared_proposes_nothing(filling: Filling) -> None:
    record = read_alert_record(alert("cleared", store=STORE, resource="entries").record())
    with pytest.raises(UsageError, match="has cleared; expected: one that is open"):
        propose(record, "getters", None, filling.moment)


# --- what a prediction is of ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age_s", "condition", "expected"),
    [
        (0, "threshold", ""),
        (60, "threshold", ""),
        (61, "threshold", "the state of QM01/PS04 is 61 s old; expected: at most 60 s"),
        (-61, "threshold", "the state of QM01/PS04 is 61 s ahead of this clock; expected: clocks that agree"),
        (0, "drift", "drift of QM01/PS04 is open since"),
        (0, "source-silent", "source-silent of QM01/PS04 is open since"),
    ],
)
def test_nothing_is_predicted_of_a_past_or_doubtful_state(age_s: int, condition: str, expected: str) -> None:
    alerts = [asked_acts.alert_record(condition=condition)]
    problem = problem_of(asked_acts.STORE, state(), alerts, NOW + age_s * 1_000_000)
    assert problem.startswith(expected) and bool(problem) == bool(expected)
    assert problem_of("QM01/PS05", state(), alerts, NOW) == ""
    cleared = [read_alert_record(alert("cleared", store=asked_acts.STORE, condition="drift").record())]
    assert problem_of(asked_acts.STORE, state(), cleared, NOW) == ""
    assert "has no state; expected: a job" in problem_of(asked_acts.STORE, None, (), NOW)


@pytest.mark.parametrize(
    ("former", "after_s", "p50", "expected"),
    [
        (1800.0, 0, 1800.0, ""),
        (1800.0, 600, 1200.0, ""),  # as expected, ten minutes later
        (1800.0, 600, 1800.0, ""),  # within its interval
        (1800.0, 600, 3000.0, "is full 30 min later than was expected"),
        (1800.0, 0, 600.0, "is full 20 min earlier than was expected"),
        (1800.0, 600, None, "is full not within the horizon, it was in 30 min"),
        (None, 600, 1800.0, "is full in 30 min, it was not within the horizon"),
        (None, 600, None, ""),
        (0.0, 800, 0.0, ""),  # full all the time
        (0.0, 600, 1800.0, "later than was expected"),
    ],
)
def test_a_forecast_that_has_moved_ends_a_request(
    former: float | None, after_s: int, p50: float | None, expected: str, estate: Estate
) -> None:
    own = request(estate, forecast=outlook(former))
    problem = changed_since(own, state(NOW + after_s * 1_000_000, p50=p50), is_open=True)
    assert expected in problem and bool(problem) == bool(expected)


def test_another_size_or_the_end_of_the_alert_ends_a_request(estate: Estate) -> None:
    own = request(estate)
    assert changed_since(own, state(), is_open=False) == "its alert is over"
    grown = state(pages_total=12_000, pages_max=12_000)
    assert size_of(grown) == 12_000
    assert changed_since(own, grown, is_open=True) == "the size of QM01/PS04 is 12000, it was 10000"
