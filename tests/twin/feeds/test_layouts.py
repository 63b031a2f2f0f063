"""The same objects and messages in every form, layout, line end and code page: the same estate and the same events."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC

import pytest

from tests.twin.feeds.read import read
from tests.twin.feeds.samples import USAGE_ROWS
from twin.estate import Estate
from twin.feeds import Intake, Page
from twin.feeds.estate_import import estate_text

MORNING = 1_795_600_801_000_000  # 2026-11-25T10:00:01Z
OBJECTS: list[dict[str, object]] = [
    {"QMNAME": "QM01", "QSGNAME": "QSG1", "CMDLEVEL": 944, "PLATFORM": "MVS"},
    {
        "CFSTRUCT": "APP1",
        "CFLEVEL": 5,
        "OFFLOAD": "SMDS",
        "DESCR": "Orders (all) :-)",
        "OFFLD1TH": 70,
        "OFFLD1SZ": "32K",
    },
    {"CFSTATUS": "APP1", "TYPE": "SUMMARY", "SIZEMAX": 1048576, "ENTSMAX": 14599, "ENTSUSED": 6372, "FAILTIME": ""},
    {"QUEUE": "ORDERS", "TYPE": "QLOCAL", "QSGDISP": "SHARED", "CFSTRUCT": "APP1", "CURDEPTH": 7, "MAXDEPTH": 100_000},
    {
        "QUEUE": "LOCAL",
        "TYPE": "QLOCAL",
        "DESCR": "It's TYPE(X) (old",
        "STGCLASS": "DEFAULT",
        "CURDEPTH": 0,
        "MAXDEPTH": 5,
    },
    {"STGCLASS": "DEFAULT", "QSGDISP": "QMGR", "PSID": 4},
]
Message = tuple[str, list[str]]  # first line and further ones
USAGE: Message = ("CSQI010I +QM01 Page set usage ...", USAGE_ROWS.splitlines())
POLICY: Message = (
    "IXC360I  10.00.01  DISPLAY XCF",
    [
        "STRNAME: QSG1APP1",
        " STATUS: ALLOCATED",
        " POLICY INFORMATION:",
        "  POLICY SIZE    : 1 G",
        "  FULLTHRESHOLD  : 85",
        "",
        " ACTIVE STRUCTURE",
        " ----------------",
        "  CFNAME         : CF01",
        "  SPACE USAGE       IN-USE        TOTAL    %",
        "   ENTRIES:           6372        14599   44",
        "   ELEMENTS:         12000        24000   50",
    ],
)


def several_lines(objects: list[dict[str, object]]) -> list[Message]:
    """Return objects as answers on the console: a pair a line."""
    answers = []
    for fields in objects:
        kind = next(iter(fields))
        pairs = [f"{word}({value})" for word, value in fields.items()]
        answers.append((f"CSQM201I +QM01 CSQMDRTC  DISPLAY {kind} DETAILS", [*pairs, f" END {kind} DETAILS"]))
    return answers


def side_by_side(objects: list[dict[str, object]]) -> list[Message]:
    """Return objects as answers of the command server: padded, numbers to the right."""
    answers: list[Message] = []
    for number, fields in enumerate(objects):
        values = (f"{value:>10}" if isinstance(value, int) else f"{value:<12}" for value in fields.values())
        pairs = " ".join(f"{word}({value})" for word, value in zip(fields, values, strict=True))
        answers.append((f"CSQM4{number:02}I +QM01 {pairs}", []))
    return answers


def plain(messages: list[Message]) -> list[str]:
    return [line for first, further in messages for line in (first, *further)]


def printed(messages: list[Message]) -> list[str]:
    """Return a print with carriage control and a page of seven lines."""
    lines = []
    for number, line in enumerate(plain(messages)):
        if number % 7 == 0:
            lines += [f"1CSQUTIL   IBM MQ FOR Z/OS{' ' * 40}PAGE {number // 7 + 1:>4}", f"+{'_' * 60}"]
        lines.append(f"0{line}" if number % 7 == 3 else f" {line}")
    return lines


def job_log(messages: list[Message], gap: str = "  ") -> list[str]:
    lines = ["10.00.00 STC08037  ---- WEDNESDAY, 25 NOV 2026 ----"]
    for number, (first, further) in enumerate(messages, 101):
        lines.append(f"10.00.01 STC08037  +{first}{f'{gap}{number}' if further else ''}")
        lines += [f"   {number}             {line}" for line in further]
    return lines


def syslog(messages: list[Message], day: str = "26329", gap: str = " ", begin: int = 0) -> list[str]:
    lines = []
    for number, (first, further) in enumerate(messages, 601):
        end = f"{gap}{number}" if further else ""
        kind = "M" if further else "N"
        lines.append(f"{kind} 0000000 SYS1     {day} 10:00:01.44 STC08037 00000090  {first}{end}"[begin:])
        kinds = ["E" if line is further[-1] else "D" for line in further]
        lines += [f"{k}{number:>44} 00000090  {line}"[begin:] for k, line in zip(kinds, further, strict=True)]
    return lines


def interleaved(messages: list[Message]) -> list[str]:
    """Return SYSLOG in which lines of other messages stand between those of each."""
    lines = []
    for line in syslog(messages):
        lines += [line, "N 0000000 SYS1     26329 10:00:01.44          00000290  IEF196I IGD103I SMS ALLOCATED 1"]
    return lines


def responses(messages: list[Message]) -> list[str]:
    return [f"RESPONSE=SYS1      {line}" for line in plain(messages)]


def user_log(messages: list[Message]) -> list[str]:
    """Return what SDSF and zos_operator show: fields before the first line only."""
    lines = ["SYS1      2026329  10:00:01.43            -+QM01 DISPLAY USAGE"]
    for number, (first, further) in enumerate(messages, 948):
        lines.append(f"SYS1      2026329  10:00:01.44             {first}{f' {number}' if further else ''}")
        lines += [f"         {line}" for line in further]
    return lines


def time_first(messages: list[Message], fields: str = "2026-11-25 10:00:01.440", further_fields: str = "") -> list[str]:
    lines = []
    for first, further in messages:
        lines.append(f"{fields} {first}")
        lines += [f"{further_fields or '   '} {line}" for line in further]
    return lines


LAYOUTS: dict[str, Callable[[list[Message]], list[str]]] = {
    "SYSPRINT": plain,
    "carriage control": printed,
    "job log": job_log,
    "job log, one blank": lambda messages: job_log(messages, " "),
    "job log, printed": lambda messages: [
        f"1{' ' * 20}J E S 2  J O B  L O G",
        *(f" {line}" for line in job_log(messages)),
    ],
    "SYSLOG": syslog,
    "SYSLOG of four digits": lambda messages: syslog(messages, "2026329", "  "),
    "SYSLOG from its time on": lambda messages: syslog(messages, begin=25),
    "SYSLOG without its columns": lambda messages: [
        " ".join(line.split()) if line[0] in "MN" else line for line in syslog(messages)
    ],
    "SYSLOG, mixed": interleaved,
    "OPERLOG": responses,
    "user log": user_log,
    "date first": time_first,
    "UTC": lambda messages: time_first(messages, "2026-11-25T10:00:01.440Z SYS1 STC08037"),
    "date on each line": lambda messages: time_first(messages, further_fields="2026-11-25 10:00:01.440"),
    "fields on each line": lambda messages: time_first(messages, "10:00:01 SYS1 STC08037", "10:00:01 SYS1 STC08037"),
    "time first": lambda messages: time_first(messages, "10:00:01 SYS1"),
}
NO_TIMES = {"SYSPRINT", "carriage control", "OPERLOG"}
ENDS: dict[str, Callable[[list[str]], bytes]] = {
    "LF": lambda lines: "\n".join(lines).encode(),
    "CR LF": lambda lines: "\r\n".join(lines).encode(),
    "UTF-16": lambda lines: "\r\n".join(lines).encode("utf-16"),
    "CR": lambda lines: "\r".join(lines).encode(),
    "NEL": lambda lines: "\x85".join(lines).encode(),
    "NEL of one byte": lambda lines: "\x85".join(lines).encode("latin-1"),
    "EBCDIC, X'15'": lambda lines: b"\x15".join(line.encode("cp037") for line in lines),
    "EBCDIC, X'25'": lambda lines: b"\x25".join(line.encode("cp500") for line in lines),
    "EBCDIC, X'0D25'": lambda lines: b"\x0d\x25".join(line.encode("cp273") for line in lines),
    "EBCDIC records": lambda lines: b"".join(f"{line:<133.132}".encode("cp1140") for line in lines),
}


def seen(data: bytes, estate: Estate, **options: object) -> tuple[list[object], str, Intake]:
    """Return measurements, the estate as text, and the intake of a text."""
    events, intake = read("display", Page(data, "text", MORNING), estate=estate, zone=UTC, **options)
    measured = [(event["time"], event["qmgr"], event["store"], event["measured"]) for event in events]
    return (
        measured,
        estate_text(read("display", Page(data, "text", MORNING), zone=UTC, **options)[1].facts).text,
        intake,
    )


@pytest.fixture
def expected(estate: Estate) -> tuple[list[object], str]:
    measured, text, _ = seen("\n".join(plain([*several_lines(OBJECTS), USAGE, POLICY])).encode(), estate)
    assert [(time, store) for time, _, store, _ in measured] == [(MORNING, "QM01/PS04"), (MORNING, "QSG1/APP1")]
    for line in (
        '[structure."QSG1/APP1"]',
        "full_threshold = 85",
        'offload = "SMDS"',
        "max_depth = 100000",
        "page_set = 4",
    ):
        assert line in text
    return measured, text


@pytest.mark.parametrize("form", [several_lines, side_by_side])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_estate_and_events(estate, expected, form, layout):
    lines = LAYOUTS[layout]([*form(OBJECTS), USAGE, POLICY])
    measured, text, intake = seen("\n".join(lines).encode(), estate)
    assert (measured, text) == expected
    assert intake.counts.keys() == ({"no-time"} if layout in NO_TIMES else set())


@pytest.mark.parametrize("layout", ["SYSPRINT", "carriage control", "job log", "SYSLOG", "user log"])
@pytest.mark.parametrize("end", ENDS)
def test_every_end_of_a_line_and_code_page_gives_the_same(estate, expected, layout, end):
    data = ENDS[end](LAYOUTS[layout]([*several_lines(OBJECTS), USAGE, POLICY]))
    assert seen(data, estate)[:2] == expected


def rest(responses: list[dict[str, object]]) -> bytes:
    return json.dumps({"commandResponse": responses, "overallCompletionCode": 0, "overallReasonCode": 0}).encode()


@pytest.mark.parametrize(
    "data",
    [
        rest(
            [
                {"completionCode": 0, "reasonCode": 0, "parameters": {w.lower(): v for w, v in o.items()}}
                for o in OBJECTS
            ]
        ),
        rest([{"completionCode": 0, "reasonCode": 0, "text": plain(side_by_side(OBJECTS))}]),
        rest([{"completionCode": 0, "reasonCode": 0, "message": plain(several_lines(OBJECTS))}]),
    ],
    ids=["runCommandJSON", "runCommand", "runCommand, several lines"],
)
def test_objects_of_the_rest_interface_are_the_same(estate, data):
    whole, text, _ = seen("\n".join(plain(several_lines(OBJECTS))).encode(), estate)
    page = Page(data, "answer.json", MORNING)
    events, intake = read("rest", page, estate=estate, qmgr="QM01")
    assert [(event["time"], event["qmgr"], event["store"], event["measured"]) for event in events] == whole
    assert estate_text(read("rest", page, qmgr="QM01")[1].facts).text == text
    assert not intake.counts


@pytest.mark.parametrize(
    "wrap",
    [
        lambda lines: {"cmd-response-key": "C1", "cmd-response": "\r".join(lines)},
        lambda lines: {"changed": True, "cmds": [{"content": lines}]},
    ],
    ids=["z/OSMF", "zos_operator"],
)
def test_the_text_within_the_json_of_a_program_is_read(estate, expected, wrap):
    lines = plain([*several_lines(OBJECTS), USAGE, POLICY])
    assert seen(json.dumps(wrap(lines)).encode(), estate)[:2] == expected


@pytest.mark.parametrize("mark", [*".(*&+-|!;$)%_?'\"=¬@#¢][{}§Ä£", "", "!!", "MQ."])
def test_the_prefix_is_what_stands_between_id_and_module(mark):
    text = "\n".join(plain([*several_lines(OBJECTS), USAGE])).replace(
        "+QM01", f"{mark}QM01" if len(mark) < 3 else "QM01"
    )
    events, intake = read("display", Page(text.encode(), "text", MORNING), zone=UTC)
    assert {event["qmgr"] for event in events} == {"QM01"}
    assert intake.counts.keys() == {"no-time"}
    assert intake.facts.group_of("QM01") == "QSG1"


def test_a_prefix_that_cannot_be_derived_proposes_the_option(estate):
    text = "\n".join(plain([USAGE])).replace("+QM01", "?")
    events, intake = read("display", Page(text.encode(), "text", MORNING), estate=estate, zone=UTC)
    assert not events
    [complaint] = [str(own) for own in intake.complaints if own.code == "no-prefix"]
    assert "--prefix '?=QM01'" in complaint
    events, _ = read("display", Page(text.encode(), "text", MORNING), estate=estate, zone=UTC, prefixes={"?": "QM01"})
    assert [event["qmgr"] for event in events] == ["QM01"]


def test_a_prefix_is_that_of_the_queue_manager_that_answers_with_it():
    objects = plain(several_lines(OBJECTS))
    _, intake = read("display", Page("\n".join(objects).replace("+QM01", ";Z9").encode(), "text", MORNING), zone=UTC)
    assert ("page_set", "Z9/4") not in intake.facts.objects
    assert ("queue", "QM01/LOCAL") in intake.facts.objects


def test_lines_whose_first_one_is_missing_are_counted(estate):
    lines = syslog([USAGE, POLICY])[3:]
    measured, _, intake = seen("\n".join(lines).encode(), estate)
    assert [store for _, _, store, _ in measured] == ["QSG1/APP1"]
    [complaint] = intake.complaints
    assert (complaint.code, complaint.text.split(" of ", maxsplit=1)[0]) == ("unjoined", "3 lines")
    own = job_log([USAGE, POLICY])
    del own[1]
    _, _, intake = seen("\n".join(own[4:] + own[1:4]).encode(), estate)
    assert intake.counts == {"unjoined": 3}


def test_every_message_is_read_or_passed_over_by_its_kind(estate):
    text = "\n".join(interleaved([USAGE]))
    _, _, intake = seen(text.encode(), estate)
    assert intake.lines_for_passed_over() == ["6 lines of other messages (6 of IEF196I)"]


def test_an_answer_without_a_pair_is_a_complaint(estate):
    _, _, intake = seen(b"CSQM401I +QM01 QUEUE PAY.IN TYPE QLOCAL\nCSQM401I +QM01 QUEUE(LOCAL) CURDEPTH(1)\n", estate)
    assert intake.counts == {"no-time": 1, "not-understood": 1}


def test_a_queue_whose_group_is_not_known_is_a_complaint():
    lines = plain(several_lines(OBJECTS[3:4]))
    _, intake = read("display", Page("\n".join(lines).encode(), "text", MORNING), zone=UTC)
    assert intake.counts == {"no-time": 1, "no-group": 1}


def test_a_value_cut_anywhere_by_the_end_of_a_line_is_put_together(estate):
    [(line, _)] = side_by_side(OBJECTS[4:5])
    whole = seen(line.encode(), estate)[1]
    for cut in range(line.index("LOCAL"), len(line)):
        text = f"{line[:cut]}\n{line[cut:]}\n"
        assert "storage_class" in whole
        if line[cut - 1] != " " and not line[cut - 1 : cut + 1].isupper() and line[cut] not in "( ":
            assert seen(text.encode(), estate)[1] == whole, text


def test_a_channel_with_the_name_of_a_queue_manager_is_none(estate):
    _, _, intake = seen(b"CSQM416I ]MQ21 CHANNEL(SYSTEM.DEF.CLNTCONN ) CHLTYPE(CLNTCONN) QMNAME(XX  )\n", estate)
    assert ("queue_manager", "XX") not in intake.facts.objects
    assert intake.lines_for_passed_over() == ["1 object of DISPLAY that is not read (1 of CHANNEL)"]


def test_a_master_of_the_group_is_no_queue(estate):
    _, _, intake = seen(b"CSQM401I QM01 QUEUE(NEW) TYPE(QLOCAL) QSGDISP(GROUP) STGCLASS(DEFAULT)\n", estate)
    assert ("queue", "QM01/NEW") not in intake.facts.objects


def test_a_line_that_was_too_long_for_syslog_is_continued(estate):
    first, rest = "CSQM401I +QM01 CFSTATUS(APP1) TYPE(SUMMARY) ENTSMAX(14599)", "ENTSUSED(6372)"
    lines = [f"N 0000000 SYS1     26329 10:00:01.44 STC08037 00000090  {first}", f"S{' ' * 55}{rest}"]
    measured, _, _ = seen("\n".join(lines).encode(), estate)
    assert [own["ents_used"] for *_, own in measured] == [6372]


def test_the_date_of_a_jes3_log_is_that_of_its_message(estate):
    [(line, _)] = side_by_side(OBJECTS[2:3])
    text = f"09:00:00 ---- IAT6853 THE CURRENT DATE IS WEDNESDAY,  25 NOV 2026\n10:00:01 {line}\n"
    measured, _, intake = seen(text.encode(), estate, date="2026-01-01")
    assert [time for time, *_ in measured] == [MORNING]
    assert not intake.counts
