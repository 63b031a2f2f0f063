"""`mqtwin start`: files of a site, their estate, their recording, and what is missing."""

from __future__ import annotations

import builtins
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from deploy.cli import main
from deploy.live import LiveSettings, LiveTwin
from deploy.show.morning import Answer
from tests.mqweb import MqwebServer, User
from tests.support.queue_managers import System
from tests.twin.feeds.samples import DISPLAYS, REST, RMF_PRINT, STATISTICS, SYSPRINT, json_text
from tests.twin.feeds.smf_made import data_set, queue_statistics, record
from tests.twin.feeds.test_estate_import import CFRM
from twin import demo_estate
from twin.base.errors import UsageError
from twin.base.outputs import locked
from twin.estate import load_estate
from twin.feeds import site as site_module
from twin.feeds.importing import recorded
from twin.feeds.protocol import FeedFact, FeedOptions
from twin.feeds.site import recognise

DISPLAY = (DISPLAYS + SYSPRINT).encode()
SMF = record(216, [queue_statistics(), queue_statistics(queue="L", flags=0, page_set=4, structure="")]) + record(
    2, [data_set(blocks_total=100, blocks_used=10, blocks_free=90)]
)
ROOT = Path(__file__).parents[2]
FILES = {"qm01.joblog": DISPLAY, "monday.smf": SMF, "policy.txt": CFRM.encode()}


@pytest.fixture
def site(tmp_path: Path) -> list[str]:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return [str(tmp_path / name) for name in FILES]


def start(*arguments: object) -> int:
    return main(["start", *map(str, arguments), "--no-console"])


def test_files_of_a_site_become_an_estate_and_a_recording(
    tmp_path: Path, site: list[str], capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "site"
    assert start(*site, "-o", out) == 0
    printed = capsys.readouterr()
    assert [line.rpartition(": ")[2] for line in printed.out.splitlines()[:3]] == ["display", "smf", "cfrm"]
    estate = load_estate(out / "estate.toml")
    assert "QSG1/APP1" in estate.stores
    events = list(recorded(out / "recording.arrow"))
    assert {event["op"] for event in events} >= {"PUT", "MEASURE"}
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    missing = (out / "missing.txt").read_text(encoding="utf-8").splitlines()
    assert (
        missing
        and f"{len(missing)} lines about what is not known" in printed.out
        and f"not known: {missing[0]}" in printed.err
    )


def test_the_recording_replays_without_a_dead_letter(tmp_path: Path, site: list[str]):
    out = tmp_path / "site"
    assert start(*site, "-o", out) == 0
    assert main(["replay", str(out / "recording.arrow"), "--estate", str(out / "estate.toml"), "--dlq", "-"]) == 0


def test_levels_alone_are_taken_over(tmp_path: Path, site: list[str]):
    out = tmp_path / "site"
    assert start(site[0], site[2], "-o", out) == 0
    measures = [event for event in recorded(out / "recording.arrow") if event["op"] == "MEASURE"]
    assert measures and all(event["measured"].get("resync") for event in measures)


def test_an_estate_that_is_given_is_used_as_it_is(tmp_path: Path, site: list[str]):
    first, second = tmp_path / "first", tmp_path / "second"
    assert start(*site, "-o", first) == 0
    assert start(site[1], first / "estate.toml", "-o", second) == 0
    assert not (second / "estate.toml").exists() and (second / "recording.arrow").exists()
    assert start(second / "recording.arrow", first / "estate.toml", "-o", tmp_path / "third") == 0


def test_mqsc_needs_to_say_whose_it_is(tmp_path: Path, site: list[str], capsys: pytest.CaptureFixture[str]):
    definitions = tmp_path / "qm01.mqsc"
    definitions.write_text("DEFINE QLOCAL(AUDIT) STGCLASS(S)\n", encoding="utf-8")
    assert start(*site, definitions, "-o", tmp_path / "site") == 2
    assert "expected: mqsc:QM01=qm01.mqsc" in capsys.readouterr().err
    assert start(*site, f"mqsc:QM01={definitions}", "-o", tmp_path / "site") in {0, 2}
    assert 'mqsc = "../qm01.mqsc"\nqueue_manager = "QM01"' in (tmp_path / "site" / "estate.toml").read_text("utf-8")


WRONG = {
    "empty.txt": (b"", "an empty file"),
    "letter.txt": (b"Dear operator, the queue is full.\n", 'text that begins with "Dear operator'),
    "page.html": (b"<html></html>", "HTML or XML"),
    "picture.png": (b"\x89PNG\r\n\x1a\n\0\0", "binary data that begins with 89 50"),
    "monday.gz": (b"\x1f\x8b\x08\0", "a gzip file: unpack it first"),
    "other.json": (b'{"a": 1}', 'JSON with "a"'),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_in_a_line(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]):
    content, expected = WRONG[name]
    (tmp_path / name).write_bytes(content)
    assert start(tmp_path / name, "-o", tmp_path / "site") == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1 and f"it looks like {expected}" in printed and "expected: " in printed
    assert not (tmp_path / "site").exists()


def test_any_one_file_is_a_beginning(site: list[str], capsys: pytest.CaptureFixture[str]):
    """A policy has structures, and a member that is assumed; what else to bring is said."""
    log, _, policy = site
    for name in (log, policy):
        out = Path(f"{name}.site")
        assert start(name, "-o", out) == 0
        assert load_estate(out / "estate.toml").stores
        assert (out / "recording.arrow").exists() == (name == log)
    printed = capsys.readouterr().err
    assert "queue managers of QSG1: QM01 is assumed; add --group QSG1=QM01,QM02" in printed
    assert "no file shows what they hold: add a job log" in printed


def test_what_is_not_read_is_a_line_and_the_rest_is_read(
    tmp_path: Path, site: list[str], capsys: pytest.CaptureFixture[str]
):
    for name, (content, _) in WRONG.items():
        (tmp_path / name).write_bytes(content)
    out = tmp_path / "site"
    assert start(*(tmp_path / name for name in WRONG), *site, "-o", out) == 0
    printed = capsys.readouterr().err
    for name, (_, expected) in WRONG.items():
        assert f"not read: {tmp_path / name}: it looks like {expected}" in printed
    assert (out / "recording.arrow").exists()
    assert start(*(tmp_path / name for name in WRONG), "-o", tmp_path / "other") == 2


HEADINGS = {
    "* CSQUTIL MAKEDEF QM01 private\n": "QM01",
    "****\n* CSQUTIL COMMAND MAKEDEF  QSG1 shared\n****\n": "QSG1",
    "* Script generated on 2026-11-26   at 11.27.09\n* Queue manager name: PAY.QM1\n"
    "* Queue manager platform: UNIX\n* Queue manager command level: (942/942)\n": "PAY.QM1",
    "": "",
}


@pytest.mark.parametrize("heading", HEADINGS)
def test_definitions_are_of_the_owner_in_their_heading(tmp_path: Path, heading: str):
    path = tmp_path / "definitions.txt"
    path.write_text(f"{heading}DEFINE QLOCAL('AUDIT') REPLACE\n")
    assert recognise(path, FeedOptions()) == ("mqsc", path, HEADINGS[heading])


def test_definitions_of_a_distributed_queue_manager_are_a_beginning(tmp_path: Path):
    path = tmp_path / "qm1.mqsc"
    heading = next(text for text, owner in HEADINGS.items() if owner == "PAY.QM1")
    path.write_text(f"{heading}DEFINE QLOCAL('AUDIT') REPLACE\n")
    assert start(path, "-o", tmp_path / "site") == 0
    assert set(load_estate(tmp_path / "site" / "estate.toml").stores) >= {"PAY.QM1/AUDIT"}


@pytest.mark.parametrize("is_first", [True, False])
def test_blocks_of_a_data_set_are_of_the_size_in_the_definitions(tmp_path: Path, site: list[str], is_first: bool):
    Path(site[0]).write_bytes(DISPLAY.replace(b"DSBLOCK(256K)\n", b""))
    definitions = tmp_path / "qsg1.mqsc"
    definitions.write_text(
        "* CSQUTIL MAKEDEF QSG1 shared\nDEFINE CFSTRUCT('APP1') CFLEVEL(5) OFFLOAD(SMDS) DSBLOCK(64K)\n"
    )
    names = [definitions, site[0], site[2]]
    assert start(*(names if is_first else names[::-1]), "-o", tmp_path / "site") == 0
    assert load_estate(tmp_path / "site" / "estate.toml").stores["QSG1/APP1"].smds["QM01"].size == 9999 << 16


def test_wrong_use_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert start(tmp_path / "nothing.smf") == 2
    assert "cannot be read" in capsys.readouterr().err
    assert start("a.toml", "b.toml") == 2
    assert "several estates" in capsys.readouterr().err


def test_what_is_no_regular_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    os.mkfifo(tmp_path / "pipe")
    for name, kind in (("pipe", "a named pipe"), (".", "a folder"), ("/dev/null", "a device")):
        assert start(tmp_path / name, "-o", tmp_path / "site") == 2
        assert f"is {kind}; expected: a file" in capsys.readouterr().err


def test_a_sparse_file_of_zeros_is_refused_without_trying_readers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    with (tmp_path / "zeros").open("wb") as file:
        file.truncate(8 << 30)
    monkeypatch.setattr(site_module, "_objects", None)
    assert start(tmp_path / "zeros", "-o", tmp_path / "site") == 2
    assert "it looks like binary data that begins with 00" in capsys.readouterr().err


def test_of_several_policies_one_is_named(tmp_path: Path, site: list[str], capsys: pytest.CaptureFixture[str]):
    policies = f"DEFINE POLICY NAME(OLD)\nSTRUCTURE NAME(QSG1APP1) SIZE(512M)\n{CFRM}"
    Path(site[2]).write_text(policies, encoding="utf-8")
    assert start(*site, "-o", tmp_path / "site") == 2
    assert "2 policies by line: OLD (1), P (" in capsys.readouterr().err
    assert start(*site[:2], f"cfrm:OLD={site[2]}", "-o", tmp_path / "site") == 0
    assert "policy.txt: cfrm of OLD" in capsys.readouterr().out


def test_formats_are_recognised_by_their_content(tmp_path: Path):
    contents = {"rest": REST.encode(), "amqsevt": json_text(STATISTICS), "display": DISPLAY, "smf": SMF}
    for name, content in contents.items():
        path = tmp_path / f"{name}.data"
        path.write_bytes(content)
        assert recognise(path, FeedOptions()).format_name == name
    with pytest.raises(UsageError, match="cannot be read"):
        recognise(tmp_path / "absent", FeedOptions())


def test_without_files_it_asks(tmp_path: Path, site: list[str], monkeypatch: pytest.MonkeyPatch):
    answers = iter([site[0], "no such file", site[1], site[2], "", str(tmp_path / "asked")])
    monkeypatch.setattr(builtins, "input", lambda _: next(answers))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert start() == 0
    assert (tmp_path / "asked" / "estate.toml").exists()


def test_without_files_and_a_terminal_it_says_what_it_needs(capsys: pytest.CaptureFixture[str]):
    assert start() == 2
    assert "there is no file to start with; expected: mqtwin start FILE" in capsys.readouterr().err


# --- the answer ------------------------------------------------------------------------------------------------------


def rising_log(
    *, hour: int = 10, qmgr: str = "QM01", minutes: int = 40, entries: int = 60_000, more: int = 3_500
) -> str:
    """Return a job log that shows APP1 every minute, each time with more entries."""
    lines = [DISPLAYS] if qmgr == "QM01" else []
    for minute in range(minutes):
        clock = f"{hour + minute // 60:02}.{minute % 60:02}.07"
        lines.append(
            f"{clock} STC01234  CSQM293I {qmgr} CSQMDRTC 1 CFSTATUS FOUND MATCHING REQUEST CRITERIA\n"
            f"{clock} STC01234  CSQM201I {qmgr} CSQMDRTC  DIS CFSTATUS DETAILS\n"
            f" CFSTATUS(APP1)\n TYPE(SUMMARY)\n CFTYPE(APPL)\n STATUS(ACTIVE)\n SIZEMAX(524288)\n"
            f" SIZEUSED(40)\n ENTSMAX(240000)\n ENTSUSED({entries + more * minute})\n END CFSTATUS DETAILS\n"
        )
    return "".join(lines)


@pytest.fixture
def rising(tmp_path: Path) -> list[str]:
    """A log in which APP1 is full in about 12 minutes, at 11:51 in Berlin."""
    (tmp_path / "qm01.joblog").write_text(rising_log(), encoding="utf-8")
    (tmp_path / "policy.txt").write_text(CFRM, encoding="utf-8")
    facts = ("--date", "2026-11-20", "--zone", "Europe/Berlin", "--qmgr", "QM01")
    return [str(tmp_path / "qm01.joblog"), str(tmp_path / "policy.txt"), *facts, "-o", str(tmp_path / "site")]


def test_the_answer_is_a_line_a_store_with_time_cause_and_first_action(
    rising: list[str], capsys: pytest.CaptureFixture[str]
):
    assert start(*rising) == 0
    lines = capsys.readouterr().out.splitlines()
    heading = lines.index("store\tusage\tfull at\tcause\tfirst action")
    store, usage, full_at, cause, action = lines[heading + 1].split("\t")
    assert (store, usage) == ("QSG1/APP1", "81.9 % of entries in use")
    assert re.match(r"10:5[0-9] CET, in 1[0-9] min \(.*probability [0-9]+ %\)$", full_at)
    assert cause and action
    assert lines[heading - 1] == "At 2026-11-20 10:39 CET:"
    assert any(line.startswith("Next: SMF 115 with queue statistics") for line in lines)


def test_the_answer_as_json_is_typed_and_alone_on_standard_output(
    tmp_path: Path, rising: list[str], capsys: pytest.CaptureFixture[str]
):
    assert main(["start", *rising, "--json"]) == 0
    answer = msgspec.json.decode(capsys.readouterr().out, type=Answer, strict=True)
    (own,) = (store for store in answer.stores if store.store == "QSG1/APP1")
    assert (own.level, own.resource, own.usage_pct, own.is_full) == ("page", "entries", 81.875, False)
    assert own.full_at is not None and "2026-11-20T09:45" < own.full_at < "2026-11-20T09:57"
    assert answer.zone == "Europe/Berlin" and answer.estate == str(tmp_path / "site" / "estate.toml")
    assert load_estate(answer.estate).site.zone == "Europe/Berlin"
    assert answer.clocks == answer.not_read == ()


def test_the_report_says_what_fills_next_and_when(
    tmp_path: Path, rising: list[str], capsys: pytest.CaptureFixture[str]
):
    assert start(*rising) == 0
    capsys.readouterr()
    recording, estate = tmp_path / "site" / "recording.arrow", tmp_path / "site" / "estate.toml"
    assert main(["report", "--recording", str(recording), "--estate", str(estate)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.match(r"Full next: QSG1/APP1, 10:5[0-9] CET, in 1[0-9] min \(", lines[2])
    headings = next(line for line in lines if line.startswith("store\t")).split("\t")
    row = next(line for line in lines if line.startswith("QSG1/APP1\t")).split("\t")
    assert row[headings.index("full at")] in lines[2]


def test_a_single_level_is_no_calm(tmp_path: Path, rising: list[str], capsys: pytest.CaptureFixture[str]):
    (tmp_path / "qm01.joblog").write_text(rising_log(minutes=1), encoding="utf-8")
    assert start(*rising) == 0
    printed = capsys.readouterr().out
    assert "\tnot known yet, 1 of 5 levels\t" in printed and "No store rises" not in printed


def test_a_printed_report_of_rmf_alone_is_a_beginning(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "rmf.txt").write_text(RMF_PRINT.replace("QSG1APP2", "QSG1CSQ_ADMIN"), encoding="utf-8")
    assert start(tmp_path / "rmf.txt", "--zone", "+01:00", "-o", tmp_path / "site") == 0
    printed = capsys.readouterr()
    assert f"{tmp_path / 'rmf.txt'}: rmf\n" in printed.out and "QSG1/APP1\t" in printed.out
    assert "queue managers of QSG1: QM01 is assumed" in printed.err
    assert "Next: the CFRM policy" in printed.out


def test_a_file_of_mq_that_shows_no_store_is_a_beginning(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    contents = {
        "qm.ini": "#* Module Name: qm.ini                                             *#\nLog:\n   LogPrimaryFiles=3\n",
        "AMQERR01.LOG": "11/26/2026 09:58:01 AM - Process(4711.1) User(mqm) Program(amqzxma0)\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert start(tmp_path / name, "-o", tmp_path / "site") == 0
        printed = capsys.readouterr()
        assert f"not read: {tmp_path / name}: it looks like " in printed.err
        assert (
            printed.out
            == "Next: the output of runmqsc with DISPLAY QLOCAL(*) ALL and DISPLAY QSTATUS(*) TYPE(QUEUE) ALL\n"
        )
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(("zone", "is_right"), [("+01:00", False), ("+00:00", True)])
def test_a_log_that_was_read_in_the_wrong_zone_is_named(
    tmp_path: Path, rising: list[str], zone: str, is_right: bool, capsys: pytest.CaptureFixture[str]
):
    """The clock of QM02's system is at UTC, that of QM01's an hour ahead: both show the same levels."""
    (tmp_path / "qm01.joblog").write_text(rising_log(minutes=100, entries=2_000, more=2_000), encoding="utf-8")
    other = tmp_path / "qm02.joblog"
    other.write_text(rising_log(hour=9, qmgr="QM02", minutes=100, entries=2_000, more=2_000), encoding="utf-8")
    assert start(other, *rising, "--group", "QSG1=QM01,QM02", "--zone", f"qm02.joblog={zone}") == 0
    line = "QM02: one hour off: its levels (ents_used of QSG1/APP1) are those of QM01 one hour later"
    assert (line in capsys.readouterr().err) != is_right


def test_one_zone_is_that_of_all_other_files(rising: list[str], capsys: pytest.CaptureFixture[str]):
    assert start(*rising, "--zone", "+02:00") == 2
    assert "expected: one, and --zone FILE=ZONE of other files" in capsys.readouterr().err
    assert start(*rising, "--zone", "qm01.joblog=Mars") == 2
    assert "Mars; expected: a name such as Europe/Berlin" in capsys.readouterr().err


# --- live ------------------------------------------------------------------------------------------------------------

USER = ("--user", "ann")


@pytest.fixture
def system() -> System:
    """Two queue managers with two structures: nobody reads ORDERS."""
    system = System(demo_estate())
    system.levels["QSG1/APP1"]["ents_used"] = 120_000
    system.queue("QSG1", "ORDERS").depth = 120_000
    system.queue("QSG1", "ORDERS").putters = {"QM01": 2}
    system.queue("QSG1", "PAYMENTS").getters = {"QM02": 1}
    return system


@pytest.fixture
def mqweb(system: System, tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """The arguments for a server that needs a password."""
    (tmp_path / "password").write_text("secret\n")
    (tmp_path / "password").chmod(0o600)
    with MqwebServer(system, users={"ann": User("secret")}) as server:
        words = ("--live", server.url, "--qmgr", "QM01,QM02", *USER, "--password-file", str(tmp_path / "password"))
        yield (*words, "-o", str(tmp_path / "site"))


def once(*arguments: str) -> int:
    return main(["start", *arguments, "--once"])


def test_the_zone_that_is_given_is_that_of_the_site(tmp_path: Path, mqweb: tuple[str, ...]):
    assert once(*mqweb, "--zone", "Europe/Zurich") == 0
    assert load_estate(tmp_path / "site" / "estate.toml").site.zone == "Europe/Zurich"


def test_one_round_shows_the_stores_and_how_to_go_live(
    tmp_path: Path, mqweb: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    assert once(*mqweb) == 0
    printed = capsys.readouterr()
    heading, *rows = [line.split("\t") for line in printed.out.splitlines() if "\t" in line]
    assert heading == ["store", "kind", "messages", "used", "total", "unit", "usage"]
    by_store = {row[0]: row for row in rows}
    assert by_store["QSG1/APP1"][3:5] == ["120,000", "240,641"] and by_store["QSG1/APP1"][-1] == "49.9 %"
    assert set(by_store) >= {"QSG1/APP1", "QSG1/APP2", "QM01/PS00"}
    estate = load_estate(tmp_path / "site" / "estate.toml")
    assert "ORDERS" in estate.stores["QSG1/APP1"].queues
    missing = (tmp_path / "site" / "missing.txt").read_text(encoding="utf-8")
    assert "IXCMIAPU with DATA TYPE(CFRM) REPORT(YES)" in missing
    assert not any(path.name not in RESULTS for path in (tmp_path / "site").iterdir())
    assert printed.err.splitlines()[-1].startswith("  mqtwin start --live http://") and "secret" not in printed.err
    assert "--once" not in printed.err.splitlines()[-1]
    cost = (
        r"live, a round each 30 s \(--interval-s\): this will be 14 commands and 0\.0 MB a minute; --max-commands-per"
    )
    assert re.search(cost, printed.err)


def test_each_of_several_servers_has_its_queue_managers(
    tmp_path: Path, system: System, capsys: pytest.CaptureFixture[str], runs: list[LiveSettings]
):
    words = ("--qmgr", "QM01,QM02", "-o", str(tmp_path / "site"))
    with (
        MqwebServer(system, reaches=frozenset(("QM01",))) as first,
        MqwebServer(system, reaches=frozenset(("QM02",))) as second,
    ):
        assert once("--live", first.url, "--live", second.url, *words) == 0
        assert "warning" not in capsys.readouterr().err
        assert main(["start", "--live", f"{first.url},{second.url}", *words]) == 0
        assert f"--url={first.url},{second.url}" in runs[0].collect


RESULTS = {"estate.toml", "missing.txt", ".mqtwin-written.json"}


def test_a_queue_that_nobody_reads_is_named(mqweb: tuple[str, ...], capsys: pytest.CaptureFixture[str]):
    assert once(*mqweb) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "nobody has it" in line]
    assert line == ("QSG1/APP1, queue ORDERS: 120,000 messages, and nobody has it open for input (QM01, QM02 asked)")


def test_one_round_needs_neither_kafka_nor_spark_nor_java(tmp_path: Path, mqweb: tuple[str, ...]):
    bare = {"PATH": "", "HOME": os.environ["HOME"]}
    command = [sys.executable, "-m", "deploy", "start", *mqweb, "--once"]
    done = subprocess.run(command, env=bare, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "QSG1/APP1\tstructure" in done.stdout
    assert not any(path.is_dir() for path in (tmp_path / "site").iterdir())  # neither a broker nor a checkpoint


def test_an_estate_that_was_changed_stays_and_is_used(
    tmp_path: Path, mqweb: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    assert once(*mqweb) == 0
    estate = tmp_path / "site" / "estate.toml"
    changed = estate.read_text().replace('size = "512M"', 'size = "1G"')
    estate.write_text(changed)
    assert once(*mqweb) == 0
    assert estate.read_text() == changed and (tmp_path / "site" / "estate.new.toml").exists()
    assert f"{estate} is read, or not as `mqtwin start` wrote it: it stays" in capsys.readouterr().err


def test_a_new_queue_is_in_the_estate_of_the_next_start(tmp_path: Path, mqweb: tuple[str, ...], system: System):
    assert once(*mqweb) == 0
    before = (tmp_path / "site" / "estate.toml").read_text()
    system.system_queues = (*system.system_queues, "SYSTEM.NEW.QUEUE")
    assert once(*mqweb) == 0
    after = (tmp_path / "site" / "estate.toml").read_text()
    assert "SYSTEM.NEW.QUEUE" in after and "SYSTEM.NEW.QUEUE" not in before


def test_a_policy_beside_the_queue_managers_says_how_far_structures_grow(
    tmp_path: Path, mqweb: tuple[str, ...], site: list[str], capsys: pytest.CaptureFixture[str]
):
    for _ in range(2):
        assert once(*mqweb, site[2]) == 0
        assert "of before stays" not in capsys.readouterr().err
    assert "init_size" in (tmp_path / "site" / "estate.toml").read_text()
    assert "CFRM policy: INITSIZE, SIZE, ALLOWAUTOALT and FULLTHRESHOLD of QSG1/APP1," not in (
        tmp_path / "site" / "missing.txt"
    ).read_text(encoding="utf-8")


def test_a_queue_manager_that_does_not_answer_is_named_and_stays_in_an_estate(
    tmp_path: Path, mqweb: tuple[str, ...], system: System
):
    system.inactive = {"QM02"}
    assert once(*mqweb) == 0
    missing, estate = tmp_path / "site" / "missing.txt", tmp_path / "site" / "estate.toml"
    assert "QM02 did not answer: nothing of it is in the estate" in missing.read_text(encoding="utf-8")
    system.inactive.clear()
    assert once(*mqweb) == 0
    whole = estate.read_text()
    assert "QM02/0" in whole
    system.inactive = {"QM02"}
    assert once(*mqweb) == 0
    assert estate.read_text() == whole


def test_a_structure_that_an_answer_lacks_stays_in_the_estate_of_before(
    tmp_path: Path, mqweb: tuple[str, ...], system: System, capsys: pytest.CaptureFixture[str]
):
    assert once(*mqweb) == 0
    before = (tmp_path / "site" / "estate.toml").read_text()
    system.levels["QSG1/APP1"]["ents_used"] = system.levels["QSG1/APP1"]["ents_max"] + 1
    assert once(*mqweb) == 0
    assert (tmp_path / "site" / "estate.toml").read_text() == before
    assert "estate.toml of before stays: no answer shows QSG1/APP1; remove it to begin anew" in capsys.readouterr().err


def test_members_that_were_not_named_are_asked_through_one_that_was(
    tmp_path: Path, mqweb: tuple[str, ...], system: System, capsys: pytest.CaptureFixture[str]
):
    system.queue("QSG1", "ORDERS").getters = {"QM02": 1}
    words = [word.replace("QM01,QM02", "QM01") for word in mqweb]
    assert once(*words) == 0
    printed = capsys.readouterr()
    assert "nobody has it" not in printed.out and "asking QM01 at http://" in printed.err
    estate = load_estate(tmp_path / "site" / "estate.toml")
    assert estate.queue_managers.keys() == {"QM01", "QM02"} and "QM02/PS00" in estate.stores


def test_a_login_that_is_refused_is_one_line(
    tmp_path: Path, mqweb: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "password").write_text("wrong\n")
    assert once(*mqweb) == 1
    _, line = capsys.readouterr().err.splitlines()
    assert "the login fails: 401" in line and "wrong" not in line
    assert not (tmp_path / "site").exists()


WRONG_USE = {
    "--once": "are of a live twin; expected: --live URL",
    "--bootstrap-servers k:1": "are of a live twin; expected: --live URL",
    "--spans a.json": "are of a live twin; expected: --live URL",
    "--live https://h:1 --qmgr QM01 --spans a.json": "--spans a.json is not a file; expected: a file that grows, or",
    "--live https://h:1 --qmgr QM01 --smf topic:": "--smf topic:; expected: topic:NAME, or a file that grows",
    "--live https://h:1 --qmgr QM01 --dds https://h:2": "--dds has no =; expected: --dds KEY=VALUE",
    "--live https://h:1 --qmgr QM01 --dds PLEX1=h:2": "--url h:2; expected: http://HOST:PORT or https://HOST:PORT",
    "--live https://h:1 --qmgr QM01 --smf topic:smf": "a topic of which Kafka? Expected: --bootstrap-servers",
    f"--live https://h:1 --qmgr QM01 --smf {__file__} --smf {__file__}": "a source twice; expected: each once",
    "--live https://h:1": "no queue manager to ask; expected: --qmgr QM01,QM02",
    "--live h:1 --qmgr QM01": "expected: http://HOST:PORT or https://HOST:PORT",
    "--live https://h:1 --qmgr QM01 --listen 0.0.0.0:1": "can be reached by others",
    "--live https://h:1 --qmgr QM01 --user ann": "--user and --password-file belong together",
}


@pytest.mark.parametrize("words", WRONG_USE)
def test_wrong_use_of_the_live_twin_is_a_line(words: str, capsys: pytest.CaptureFixture[str]):
    assert main(["start", *words.split()]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert WRONG_USE[words] in line


def test_a_password_that_others_may_read_is_warned_about(
    tmp_path: Path, mqweb: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "password").chmod(0o644)
    assert once(*mqweb) == 0
    assert capsys.readouterr().err.startswith(
        f"mqtwin: warning: --password-file {tmp_path / 'password'} can be read by"
    )


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("start", ("--qmgr", "QM01", "--live")),
        ("collect rest", ("--qmgr", "QM01", "--bootstrap-servers", "k:1", "--url")),
        ("collect dds", ("--bootstrap-servers", "k:1", "--sysplex", "PLEX1", "--url")),
    ],
)
def test_a_password_is_not_sent_in_clear_to_another_machine(
    tmp_path: Path, command: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "password").write_text("secret\n")
    (tmp_path / "password").chmod(0o600)
    (tmp_path / "e.toml").write_text('schema = 1\n[page_set."QM01/4"]\npages = 1080\n[queue_manager.QM01]\n')
    login = (*USER, "--password-file", str(tmp_path / "password"))
    own = ("--estate", str(tmp_path / "e.toml"), "--position", str(tmp_path / "position"))
    own = ("-o", str(tmp_path / "site")) if command == "start" else own
    assert main([*command.split(), *words, "http://192.0.2.1:9080", *login, *own]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line.endswith("http://192.0.2.1:9080 would send a secret in clear; expected: https, or --allow-http")


def test_secrets_of_kafka_are_refused_before_anything_starts(
    mqweb: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    assert main(["start", *mqweb, "--bootstrap-servers", "k:1", "--kafka", "sasl.password=hush"]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "--kafka sasl.password=...; expected: --kafka-file" in line


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[LiveSettings]:
    """The live twins that would run."""
    settings: list[LiveSettings] = []

    def run(self: LiveTwin) -> None:
        settings.append(self._settings)

    monkeypatch.setattr(LiveTwin, "run", run)
    return settings


def test_the_collector_asks_as_the_command_line_says(
    tmp_path: Path, mqweb: tuple[str, ...], runs: list[LiveSettings], capsys: pytest.CaptureFixture[str]
):
    assert main(["start", *mqweb, "--interval-s", "5", "--queues", "O*", "--no-console"]) == 0
    (settings,) = runs
    format_name, *words = settings.collect
    assert format_name == "rest" and words[0] == f"--url={mqweb[1]}"
    assert set(words[1:]) == {
        "--qmgr=QM01,QM02",
        "--user=ann",
        f"--password-file={tmp_path}/password",
        "--interval-s=5.0",
        "--queues=O*",
        "--resync",
    }
    assert (settings.kafka, settings.listen, settings.estate) == (None, None, tmp_path / "site" / "estate.toml")
    printed = capsys.readouterr()
    assert "2 structures" in printed.out and "to continue, run" in printed.out
    assert printed.err.splitlines()[-1].startswith("  mqtwin start --live")


def test_a_zone_of_local_times_is_that_of_the_round_and_of_the_collector(
    mqweb: tuple[str, ...], system: System, runs: list[LiveSettings], capsys: pytest.CaptureFixture[str]
):
    system.queue("QSG1", "PAYMENTS").last_put = system.time - 60_000_000
    assert once(*mqweb) == 0
    (line,) = [
        line for line in capsys.readouterr().err.splitlines() if line.endswith("(no-zone)") and "warning" in line
    ]
    assert "no answer shows their zone; they are taken as UTC. Expected: --zone" in line and "Europe/Berlin" in line
    assert once(*mqweb, "--zone", "UTC") == 0
    assert "no-zone" not in capsys.readouterr().err
    assert main(["start", *mqweb, "--zone", "+01:00", "--no-console"]) == 0
    assert "--zone=+01:00" in runs[0].collect


def test_without_an_answer_a_later_start_uses_the_estate_of_before(
    tmp_path: Path, mqweb: tuple[str, ...], runs: list[LiveSettings], capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "password").write_text("wrong\n")
    assert main(["start", *mqweb]) == 1 and not runs
    (tmp_path / "password").write_text("secret\n")
    assert main(["start", *mqweb]) == 0
    (tmp_path / "password").write_text("wrong\n")
    assert main(["start", *mqweb]) == 0
    assert len(runs) == 2 and runs[0] == runs[1]
    assert "401" in capsys.readouterr().err


def test_a_folder_in_which_a_live_twin_runs_is_not_touched(
    tmp_path: Path, mqweb: tuple[str, ...], runs: list[LiveSettings], capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "position.json").write_text('{"source":"https://before:9443"}')
    with locked(folder / ".live.lock", "busy", "none"):
        assert main(["start", *mqweb]) == 2 and not runs
    assert f"{folder}: a live twin runs in it (pid {os.getpid()}); expected: another folder" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == [".live.lock", "position.json"]


def test_a_position_in_another_server_is_removed(
    tmp_path: Path, mqweb: tuple[str, ...], runs: list[LiveSettings], capsys: pytest.CaptureFixture[str]
):
    position = tmp_path / "site" / "position.json"
    position.parent.mkdir()
    position.write_text('{"source":"https://before:9443"}')
    assert main(["start", *mqweb]) == 0 and runs
    assert "is of https://before:9443" in capsys.readouterr().out and not position.exists()
    own = f'{{"source":"{mqweb[1]}"}}'
    position.write_text(own)
    assert main(["start", *mqweb]) == 0 and position.read_text() == own


def test_without_resync_measurements_test_the_twin(mqweb: tuple[str, ...], runs: list[LiveSettings]):
    assert main(["start", *mqweb, "--no-resync"]) == 0
    assert "--resync" not in runs[0].collect


def test_spans_and_smf_join_the_levels_in_one_command(
    tmp_path: Path, mqweb: tuple[str, ...], runs: list[LiveSettings], capsys: pytest.CaptureFixture[str]
):
    """Measurements are observations then: none asks to be believed at once."""
    for name in ("spans.json", "more.json"):
        (tmp_path / name).touch()
    spans = [f"--spans={tmp_path / name}" for name in ("spans.json", "more.json")]
    kafka = ("--bootstrap-servers", "k:1")
    smf = ("--smf", "topic:smf115", "--flows", "accounting", "--zone", "+01:00", *kafka)
    for words in (spans, [*reversed(spans), *smf]):
        assert main(["start", *mqweb, *words]) == 0
        assert ("count its messages twice" in capsys.readouterr().out) == ("--smf" in words)
    first, second = runs
    assert "--resync" not in first.collect
    assert [(own.name, own.collect) for own in first.feeds] == [
        ("spans", ("otlp", f"--follow={tmp_path / 'spans.json'}")),
        ("spans-2", ("otlp", f"--follow={tmp_path / 'more.json'}")),
    ]
    assert main(["start", *mqweb, spans[0], "--sampled", "0.05", "--dds", "PLEX1=https://rmf:1"]) == 0
    assert [own.collect for own in runs.pop().feeds] == [
        ("otlp", "--sampled=0.05", f"--follow={tmp_path / 'spans.json'}"),
        ("dds", "--sysplex=PLEX1", "--url=https://rmf:1"),
    ]
    *again, last = second.feeds
    assert (last.name, last.collect) == ("smf", ("smf", "--flows=accounting", "--zone=+01:00", "--topic=smf115"))
    assert [own.position for own in again] == [own.position for own in reversed(first.feeds)]
    assert len({own.position for own in second.feeds}) == 3


PAGE = (ROOT / "docs" / "live.md").read_text(encoding="utf-8")


JOINED = (ROOT / "docs" / "feeds-joined.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("line", re.findall(r"^\$ mqtwin (start .*)$", PAGE + JOINED, re.MULTILINE))
def test_the_commands_of_the_page_run(
    line: str,
    tmp_path: Path,
    mqweb: tuple[str, ...],
    runs: list[LiveSettings],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mona.pw").write_text("secret\n")
    (tmp_path / "policy.txt").write_text(CFRM)
    (tmp_path / "spans.json").touch()
    words = line.replace("https://mqweb.site:9443", mqweb[1]).replace("mona ", "ann ").split()
    assert main(words) == 0
    assert (tmp_path / "mqtwin-site" / "estate.toml").is_file()
    assert bool(runs) == ("--once" not in words)
    assert [own.name for run in runs for own in run.feeds] == [
        name for name in ("spans", "dds") if f"--{name}" in words
    ]
    if runs and "policy.txt" not in words:
        (text,) = [own for own in capsys.readouterr().out.splitlines() if "estate.toml: " in own]
        assert text.partition("  ")[2] == re.findall(r"Z  (mqtwin-site/estate.toml: .*)", PAGE)[0]


def test_the_table_of_the_page_is_what_feeds_show():
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \|$", PAGE[PAGE.index("## What it cannot know") :], re.MULTILINE)
    assert set(FeedFact) - {FeedFact.READERS, FeedFact.PRIORITIES} <= set(rows)
