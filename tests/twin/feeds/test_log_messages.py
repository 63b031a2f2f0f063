"""Messages of job logs that are events, answers of members, failures, and sentences in other languages."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tests.twin.feeds.read import read
from tests.twin.feeds.samples import RUNMQSC, SYSPRINT, USAGE_ROWS, numbered, syslog
from twin.feeds import Page, measurements

DAY = datetime(2026, 11, 26, tzinfo=UTC)


def us_at(text: str) -> int:
    """Return a time of the day in microseconds since 1970."""
    hour, minute, second = map(int, text.split("."))
    return int(DAY.timestamp() + 3600 * hour + 60 * minute + second) * 1_000_000


def log(*lines: str, qmgr: str = "QM01") -> str:
    """Return a job log of lines of a time, an id and a text, which gets the prefix of the queue manager."""
    rows = [line.split(" ", maxsplit=2) for line in lines]
    body = [f" {clock} STC04711  {message} +{qmgr} {text}" for clock, message, text in rows]
    return "\n".join([" 00.00.00 STC04711  ---- THURSDAY,  26 NOV 2026 ----", *body]) + "\n"


def display(*texts: str, **options):
    pages = [Page(text.encode(), f"text {number}", us_at("23.00.00")) for number, text in enumerate(texts)]
    return read("display", *pages, **{"zone": UTC, **options})


# --- restarts --------------------------------------------------------------------------------------------------------

STOP = ("20.30.00 CSQY009I ' STOP QMGR' COMMAND ACCEPTED", "20.30.55 CSQ3104I CSQ3EC0X - TERMINATION COMPLETE")
START = ("20.41.00 CSQY000I IBM MQ for z/OS V9.4.0", "20.41.00 CSQY001I QUEUE MANAGER STARTING")
BEGUN, READY = "20.41.00 CSQR001I RESTART INITIATED", "20.41.31 CSQY022I QUEUE MANAGER INITIALIZATION COMPLETE"
LATER = tuple(line.replace("20.", "21.", 1) for line in (*START, BEGUN, READY))


@pytest.mark.parametrize(
    ("texts", "times"),
    [
        ([(*STOP, *START, BEGUN, READY)], ["20.41.00"]),
        ([(BEGUN,)], ["20.41.00"]),
        ([(READY,)], ["20.41.31"]),
        ([STOP], []),
        ([START], []),  # it may yet fail
        ([(BEGUN, READY), (BEGUN, READY)], ["20.41.00"]),  # job log and SYSLOG
        ([(READY,), (BEGUN, READY)], ["20.41.31"]),
        ([(BEGUN,), (READY,)], ["20.41.00"]),
        ([(BEGUN, READY, *LATER)], ["20.41.00", "21.41.00"]),
        ([(*LATER,), (BEGUN, READY)], ["20.41.00", "21.41.00"]),
        ([(BEGUN, *LATER)], ["20.41.00", "21.41.00"]),  # the first did not come to its end
    ],
)
def test_one_restart_is_one_event_whatever_messages_and_files_tell_of_it(estate, texts, times):
    events, intake = display(*(log(*lines) for lines in texts), estate=estate)
    assert sorted((event["time"], event["qmgr"], event["op"]) for event in events) == [
        (us_at(clock), "QM01", "RESTART") for clock in times
    ]
    assert intake.passed_over.keys() <= {"line of other messages"}
    assert not {"CSQR001I", "CSQY022I", "CSQY009I"} & intake.passed_over["line of other messages"].kinds.keys()


# --- sizes -----------------------------------------------------------------------------------------------------------


def altered(message: str, structure: str, size: str, *, words: str = "COMPLETED. TARGET ATTAINED.") -> str:
    begin = {"IXC590I": "AUTOMATIC ALTER PROCESSING FOR STRUCTURE"}.get(message, "SETXCF REQUEST TO ALTER STRUCTURE")
    return f"{message} {begin} {structure}\n{words}\nCURRENT SIZE:       {size}  TARGET:       {size}\n"


@pytest.mark.parametrize("message", ["IXC533I", "IXC534I", "IXC590I"])
@pytest.mark.parametrize("size", ["1048576 K", "1024 M", "1 G"])
@pytest.mark.parametrize("words", ["COMPLETED. TARGET ATTAINED.", "COMPLETED. TARGET NOT ATTAINED.", "KANRYO SHITA."])
@pytest.mark.parametrize("wrap", [numbered, syslog])
def test_the_end_of_an_alter_is_one(estate, message, size, words, wrap):
    events, _ = display(wrap(altered(message, "QSG1APP1", size, words=words)), estate=estate)
    assert [(event["op"], event["qmgr"], event["store"], event["attributes"]) for event in events] == [
        ("ALTER", "QM01", "QSG1/APP1", {"size": 1 << 30})
    ]


# --- rows of reports -------------------------------------------------------------------------------------------------

SMDS = "CSQE280I QM01 SMDS usage ...\nApplication  Offloaded\nstructure    messages\n{}\n End of SMDS report\n"
PAGES = "CSQI010I QM01 Page set usage ...\n{}\n End of page set report\n"


@pytest.mark.parametrize(
    ("report", "row", "is_read"),
    [
        (SMDS, "_APP1   123   9999   9998   12    0%", True),
        (SMDS, "_APP1   123   9999   9998   12    0%   YES", True),
        (SMDS, "_APP1   123   9999   9998   12    0%   YES  ACTIVE", False),
        (SMDS, "_APP1   123   99999998   12    0%", False),
        (SMDS, "_APP1   123   9999   ****   12    0%", False),
        (SMDS, "_APP1   not available", False),
        (PAGES, "_  4     3     1078     1070          5          3 SYSTEM     2    NO", True),
        (PAGES, "_  4     3     1078     1070          5          3 SYSTEM     2    NO   more", False),
        (PAGES, "_  4     3     10781070          5          3 SYSTEM     2    NO", False),
        (PAGES, "_  4     3     ******   1070          5          3 SYSTEM     2    NO", False),
    ],
)
def test_a_row_that_is_not_read_is_a_complaint(estate, report, row, is_read):
    events, intake = display(report.format(row), estate=estate)
    assert len(events) == is_read
    assert intake.counts["not-understood"] == (not is_read)


# --- sentences in other languages ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (
            RUNMQSC,
            (
                ("Display queue status details.", "Details zum Warteschlangenstatus anzeigen."),
                ("Starting MQSC for queue manager QMD1.", "MQSC für WS-Manager QMD1 wird gestartet."),
                ("One MQSC command read.", "Ein MQSC-Befehl gelesen."),
            ),
        ),
        (
            RUNMQSC,
            (
                ("Display queue status details.", "Afficher les détails de l'état de la file d'attente."),
                ("Starting MQSC for queue manager QMD1.", "Démarrage de MQSC pour le gestionnaire QMD1."),
            ),
        ),
        (
            RUNMQSC,
            (
                ("Display queue status details.", "キュー状況の詳細を表示します。"),
                ("Starting MQSC for queue manager QMD1.", "キュー・マネージャー QMD1 に対して MQSC を開始しています。"),
            ),
        ),
        (
            SYSPRINT,
            (
                ("Page set usage ...", "SEITENGRUPPEN"),
                ("SMDS usage ...", "GEMEINSAME DATEIEN"),
                (" End of page set report", " ENDE DES BERICHTS"),
                (" End of SMDS report", " ENDE DES BERICHTS"),
                ("DISPLAY CFSTATUS DETAILS", "ANZEIGE VON CFSTATUS"),
                (" END CFSTATUS DETAILS", " ENDE VON CFSTATUS"),
            ),
        ),
    ],
)
def test_a_message_is_its_id_and_its_fields_in_any_language(estate, text, changes):
    translated = text
    for before, after in changes:
        assert before in translated
        translated = translated.replace(before, after)
    assert display(translated, estate=estate)[0] == display(text, estate=estate)[0] != []


# --- commands that fail ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "has_failed"),
    [
        ("AMQ8149S: IBM MQ object damaged.", True),
        ("AMQ8149: WebSphere MQ object damaged.", True),
        ("AMQ8147E: IBM MQ object X0 not found.", True),
        ("AMQ8147S: IBM MQ-Objekt X0 nicht gefunden.", True),
        ("AMQ8405I: Syntax error detected at or near end of command segment below:-", True),
        ("AMQ8118E: IBM MQ queue manager does not exist.", True),
        ("CSQ9023E QM01 CSQMDRTC ' DISPLAY QSTATUS' ABNORMAL COMPLETION", True),
        ("CSQM125E QM01 CSQMDRTC QLOCAL(X0) OBJECT DAMAGED", True),
        ("CSQ9022I QM01 CSQMDRTC ' DISPLAY QSTATUS' NORMAL COMPLETION", False),
        ("CSQM297I QM01 CSQMDRTC NO QSTATUS FOUND MATCHING REQUEST CRITERIA", False),
        ("CSQX599E QM01 CSQXRCTL Channel TO.QM02 ended abnormally", False),
    ],
)
def test_a_command_that_failed_is_said_and_the_rest_is_read(estate, line, has_failed):
    is_zos = line.startswith("CSQ")
    text = f"{line}\n{SYSPRINT}" if is_zos else RUNMQSC.replace("AMQ8450I: D", f"{line}\nAMQ8450I: D", 1)
    events, intake = display(text, estate=estate)
    assert {event["store"] for event in events} >= {"QSG1/APP1" if is_zos else "QMD1/INVOICES"}
    assert intake.counts["command-failed"] == has_failed
    if has_failed:
        [complaint] = [own for own in intake.complaints if own.code == "command-failed"]
        assert line.split()[0].strip(":") in complaint.text


# --- answers of members ----------------------------------------------------------------------------------------------


def status(clock: str, getters: int, *, prefix: str = "QM01", depth: int = 40, number: int = 101) -> str:
    pairs = ("QSTATUS(ORDERS)", "TYPE(QUEUE)", "OPPROCS(0)", f"IPPROCS({getters})", f"CURDEPTH({depth})")
    first = f" {clock} STC04711  CSQM201I +{prefix} CSQMDRTC  DISPLAY QSTATUS DETAILS  {number}\n"
    return first + "".join(f"   {number}             {pair}\n" for pair in (*pairs, " END QSTATUS DETAILS"))


def member(clock: str, qmgr: str, words: str = "'DISPLAY QSTATUS' command responses from {} -") -> str:
    return f" {clock} STC04711  CSQN121I +QM01 {words.format(qmgr)}\n"


def ended(clock: str) -> str:
    return f" {clock} STC04711  CSQ9022I +QM01 CSQMDRTC ' DISPLAY QSTATUS' NORMAL COMPLETION\n"


DATED = " 10.00.00 STC04711  ---- THURSDAY,  26 NOV 2026 ----\n"


def handles(events):
    """Return time of day, messages, handles and who was asked, by measurement of the queue."""
    return [
        (
            (event["time"] - us_at("00.00.00")) // 1_000_000,
            event["measured"].get("messages"),
            event["measured"]["queues"][0].get("getters"),
            event["measured"]["asked"],
        )
        for event in events
    ]


@pytest.mark.parametrize(
    "words", ["'DISPLAY QSTATUS' command responses from {} -", "'DISPLAY QSTATUS' ANTWORTEN VON {} -"]
)
@pytest.mark.parametrize("second", ["10.17.03", "10.17.05"])
def test_answers_to_cmdscope_are_of_the_member_that_gives_them(estate, words, second):
    text = DATED + member("10.17.03", "QM01", words) + status("10.17.03", 1) + ended("10.17.03")
    text += member(second, "QM02", words) + status(second, 2, number=102) + ended(second)
    events, intake = display(text, estate=estate)
    assert handles(events)[-1] == (10 * 3600 + 17 * 60 + int(second[-2:]), 40, 3, ["QM01", "QM02"])
    assert "CSQN121I" not in intake.passed_over["line of other messages"].kinds


@pytest.mark.parametrize("is_first", [True, False])
def test_logs_of_two_members_show_the_handles_of_both_in_any_order_of_files(estate, is_first):
    """A later answer replaces an earlier one of the same queue manager only, for a quarter of an hour."""
    first = DATED + status("10.00.00", 1) + status("10.10.00", 0, number=102) + status("11.00.00", 0, number=103)
    second = DATED + status("10.05.00", 2, prefix="QM02")
    texts = (first, second) if is_first else (second, first)
    asked = ["QM01", "QM02"]
    assert handles(sorted(display(*texts, estate=estate)[0], key=lambda event: event["time"])) == [
        (36_000, 40, 1, ["QM01"]),
        (36_300, 40, 3, asked),
        (36_600, 40, 2, asked),
        (39_600, 40, None, ["QM01"]),
    ]


# --- times -----------------------------------------------------------------------------------------------------------

USAGE = f"CSQI010I QM01 Page set usage ...\n{USAGE_ROWS}\n"


@pytest.mark.parametrize(
    ("first", "second", "store"),
    [
        (USAGE, USAGE.replace("1070           5          3", "1069           5          4"), "QM01/PS04"),
        (SYSPRINT, SYSPRINT.replace("ENTSUSED(6372)", "ENTSUSED(6373)"), "QSG1/APP1"),
        (RUNMQSC, RUNMQSC.replace("CURDEPTH(17)", "CURDEPTH(18)"), "QMD1/INVOICES"),
    ],
)
def test_two_measurements_of_one_store_without_times_are_said_and_kept(estate, first, second, store):
    events, intake = display(first + second, estate=estate)
    own = [event for event in events if event["store"] == store]
    assert len(own) == 2
    assert [event["time"] for event in own] == sorted(event["time"] for event in own)
    assert [complaint.text.partition(" ")[0] for complaint in intake.complaints if complaint.code == "same-time"] == [
        store
    ]
    assert not display(first + first, estate=estate)[1].counts["same-time"]


@pytest.mark.parametrize(
    "record",
    [
        {"@timestamp": "2026-11-26T10:17:05Z", "message": "TEXT"},
        {"time": 1795688225, "event": "TEXT"},
        {"time": "1795688225.000", "event": {"line": "TEXT"}},
        {"result": {"_time": "2026-11-26T10:17:05.000+00:00", "_raw": "TEXT"}},
        {"_time": "2026-11-26T10:17:05Z", "_msg": "TEXT"},
        {"_source": {"@timestamp": "2026-11-26T10:17:05Z", "message": "TEXT"}},
        {"hits": {"hits": [{"_source": {"@timestamp": "2026-11-26T10:17:05Z", "message": "TEXT"}}]}},
        {"streams": [{"stream": {}, "values": [["1795688225000000000", "TEXT"]]}]},
        {"timestamp": 1795688225000, "log": "TEXT"},
    ],
)
@pytest.mark.parametrize("is_list", [True, False])
def test_a_line_without_a_time_has_that_of_its_record(estate, record, is_list):
    value = json.dumps([record] if is_list else record).replace('"TEXT"', json.dumps(USAGE))
    events, intake = display(value, estate=estate)
    assert [(event["time"], event["store"]) for event in events] == [(us_at("10.17.05"), "QM01/PS04")]
    assert not intake.counts


def test_a_log_with_more_than_is_kept_loses_nothing(estate, monkeypatch):
    monkeypatch.setattr(measurements, "_MAX_STATUSES", 20)
    answer = "CSQM401I QM01 QSTATUS(LOCAL) TYPE(QUEUE) CURDEPTH({0}) IPPROCS(1)"
    lines = [f"12.{number // 60:02}.{number % 60:02} STC08037  {answer.format(number)}" for number in range(100)]
    events, _ = display("\n".join(lines), estate=estate, date="2026-11-20")
    assert [event["measured"]["messages"] for event in events] == [*range(100)]
