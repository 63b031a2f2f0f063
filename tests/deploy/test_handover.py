"""Handing over: each request at most once, whatever dies when; refusals; what came of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deploy.bridge import Command, Ended
from deploy.handover import COMMAND_S, Runner
from tests.support.alert_entries import alert
from tests.support.asked_acts import (
    ACTIONS,
    ID,
    NOW,
    STORE,
    MemoryLog,
    actions,
    alert_record,
    approval,
    estate,
    request,
    state,
)
from twin.base.errors import MqtwinError, UsageError
from twin.base.units import as_text
from twin.estate import Estate
from twin.records import ActRecord, Handed, Resulted, Withdrawn, hash_of, read_alert_record

SECOND = 1_000_000
OTHER = "fedcba9876543210"


class Clock:
    """A clock that tests set, seconds since 1970."""

    def __init__(self) -> None:
        self.time_s = NOW / SECOND + 120

    def __call__(self) -> float:
        return self.time_s


class Bench:
    """A runner of a script that appends what it gets to a file.

    Attributes:
        log, clock, out: what it reads and writes, its clock, the file.
    """

    def __init__(self, folder: Path, *records: ActRecord, program: str = "", text: str = ACTIONS) -> None:
        self.folder, self.out = folder, folder / "out"
        self.estate: Estate = estate(folder)
        self.actions = actions(folder, text)
        script = folder / "runner.py"
        script.write_text(f"import sys\nopen(sys.argv[1], 'a').write(sys.stdin.read())\n{program}\n", encoding="utf-8")
        self.command = f"{sys.executable} {script} {self.out}"
        asked = request(self.estate)
        self.log, self.clock = MemoryLog(*(records or (asked, approval(asked)))), Clock()
        self.log.states[STORE] = state(NOW + 100 * SECOND, p50=1700.0)

    def runner(self, name: str = "host", timeout_s: float = 30.0) -> Runner:
        return Runner(self.log, Command(self.command, timeout_s), self.estate, self.actions, name, clock=self.clock)

    @property
    def ran(self) -> list[dict[str, Any]]:
        """The requests that the script got."""
        return [json.loads(line) for line in self.out.read_text().splitlines()] if self.out.exists() else []

    def status(self, act_id: str = ID) -> str:
        return self.log.read()[act_id].status

    def text(self, act_id: str = ID) -> str:
        """Return why a request ended, or its result."""
        act = self.log.read()[act_id]
        return str(getattr(act.result or act.end, "text", ""))


def test_the_script_gets_what_was_approved_once_and_its_result_is_written(tmp_path: Path) -> None:
    bench = Bench(tmp_path, program="print('CSQP001I done')")
    runner = bench.runner()
    for _ in range(3):
        runner.look()
    [content] = bench.ran
    asked = bench.log.read()[ID].request
    same = ("id", "sha256", "language", "target", "statement", "undo", "look", "store", "alert_id", "expires")
    assert {name: content[name] for name in same} == {name: getattr(asked, name) for name in same}
    assert (content["requested_by"], content["approved_by"]) == ("ann", ["bob"])
    assert (bench.status(), bench.text(), runner.handed) == ("ok", "CSQP001I done", 1)
    result = bench.log.read()[ID].result
    assert result is not None and result.who == "runner host"


@pytest.mark.parametrize(
    ("program", "status", "text"),
    [
        ("sys.exit(0)", "ok", ""),
        ("sys.exit('no right to ALTER PSID' * 0 or 10)", "failed", "exit status 10:"),
        ("sys.exit(1)", "unknown", "look by: DISPLAY USAGE PSID(4); exit status 1:"),
        ("import os; os.kill(os.getpid(), 9)", "unknown", "look by: DISPLAY USAGE PSID(4); exit status -9:"),
        ("print('x\\x1b[31m'); sys.exit(1)", "unknown", "exit status 1: x\\x1b[31m"),
        ("print('x' * 5000)", "ok", "x" * 500),
    ],
)
def test_the_exit_status_says_what_became_of_it(program: str, status: str, text: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, program=program)
    bench.runner().look()
    assert (bench.status(), len(bench.ran)) == (status, 1)
    assert text in bench.text() and bench.text().isprintable()


def test_a_script_that_hangs_is_ended_and_its_result_unknown(tmp_path: Path) -> None:
    bench = Bench(tmp_path, program="import time; time.sleep(600)")
    bench.runner(timeout_s=3.0).look()
    assert bench.status() == "unknown" and "no end after 3 s" in bench.text() and len(bench.ran) == 1


def test_a_script_that_cannot_be_started_has_an_unknown_result(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    runner = bench.runner()
    program = tmp_path / "gone"
    program.write_text("#!/nowhere/else\n")
    program.chmod(0o755)
    runner._command = Command(str(program), 30.0)
    runner.look()
    assert bench.status() == "unknown" and "cannot be started" in bench.text()


# --- crashes ----------------------------------------------------------------------------------------------------------


class KilledError(BaseException):
    """The runner dies here."""


def dies_before(kind: type) -> Callable[[Bench], None]:
    def prepare(bench: Bench) -> None:
        def on_write(record: ActRecord) -> None:
            if isinstance(record, kind):
                raise KilledError

        bench.log.on_write = on_write

    return prepare


def dies_behind(kind: type) -> Callable[[Bench], None]:
    def prepare(bench: Bench) -> None:
        def on_written(record: ActRecord) -> None:
            if isinstance(record, kind):
                raise KilledError

        bench.log.on_written = on_written

    return prepare


def dies_meanwhile(bench: Bench) -> None:
    class Killed(Command):
        def run(self, value: bytes, variables: Mapping[str, str]) -> Ended:
            super().run(value, variables)
            raise KilledError

    bench_runner = bench.runner
    bench.runner = lambda *a, **k: with_command(bench_runner(*a, **k), Killed(bench.command, 30.0))  # type: ignore[method-assign]


def with_command(runner: Runner, command: Command) -> Runner:
    runner._command = command
    return runner


@pytest.mark.parametrize(
    ("dies", "ran", "status", "ran_again"),
    [
        (dies_before(Handed), 0, "ok", 1),  # nothing was written, nothing has run: it is handed over now
        (dies_behind(Handed), 0, "unknown", 0),  # nobody can know that it has not run
        (dies_meanwhile, 1, "unknown", 1),
        (dies_before(Resulted), 1, "unknown", 1),
        (dies_behind(Resulted), 1, "ok", 1),
    ],
    ids=["before handed", "behind handed", "while it runs", "before its result", "behind its result"],
)
def test_a_runner_that_dies_hands_over_at_most_once(
    dies: Callable[[Bench], None], ran: int, status: str, ran_again: int, tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    start = bench.runner
    dies(bench)
    with pytest.raises(KilledError):
        bench.runner().look()
    assert len(bench.ran) == ran
    bench.log.on_write = bench.log.on_written = bool
    for _ in range(3):  # a new process, of the same name
        start().look()
    assert (bench.status(), len(bench.ran)) == (status, ran_again)
    if status == "unknown":
        assert bench.text() == "the runner ended before it said what became of it; look by: DISPLAY USAGE PSID(4)"


def test_what_another_process_has_in_hand_is_left_alone_until_it_cannot_run_any_more(tmp_path: Path) -> None:
    asked = request(estate(tmp_path))
    handed = Handed(id=ID, sha256=asked.sha256, time=as_text(NOW + 110 * SECOND), runner="b", token="0" * 32)
    bench = Bench(tmp_path, asked, approval(asked), handed)
    bench.runner("a").look()
    assert bench.status() == "handed" and not bench.ran
    bench.clock.time_s += COMMAND_S + 60
    bench.runner("a").look()
    assert bench.status() == "unknown" and not bench.ran


def test_of_two_runners_at_once_one_hands_over(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    first, second = bench.runner("a"), bench.runner("b")

    def on_write(record: ActRecord) -> None:
        if isinstance(record, Handed) and record.runner == "a":
            second.look()

    bench.log.on_write = on_write
    first.look()
    assert (first.handed, second.handed, len(bench.ran)) == (0, 1, 1)
    result = bench.log.read()[ID].result
    assert result is not None and result.who == "runner b"


def test_a_result_that_kafka_does_not_take_is_written_at_the_next_look(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    def on_write(record: ActRecord) -> None:
        if isinstance(record, Resulted):
            raise MqtwinError("no Kafka answers")

    bench.log.on_write = on_write
    runner = bench.runner()
    for _ in range(2):
        with pytest.raises(MqtwinError, match="no Kafka answers"):
            runner.look()
    bench.log.on_write = bool
    runner.look()
    assert (bench.status(), len(bench.ran)) == ("ok", 1)


def test_a_handing_over_that_may_not_be_delivered_does_not_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    def on_written(record: ActRecord) -> None:  # it is in the topic, and nobody says so
        if isinstance(record, Handed):
            raise MqtwinError("no answer")

    bench.log.on_written = on_written
    runner = bench.runner()
    runner.look()
    assert (bench.status(), bench.ran, runner.handed) == ("handed", [], 0)
    runner.look()
    assert (bench.status(), bench.ran) == ("unknown", [])


# --- refusals ---------------------------------------------------------------------------------------------------------


def waits(bench: Bench) -> bool:
    bench.runner().look()
    return bench.log.read()[ID].is_waiting and not bench.ran


def ends(bench: Bench) -> str:
    bench.runner().look()
    assert bench.status() == "expired" and not bench.ran
    return bench.text()


@pytest.mark.parametrize("condition", ["drift", "source-silent"])
def test_it_waits_while_the_twin_is_in_doubt(condition: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    other = alert_record(condition=condition)
    bench.log.alerts[other.data.alert_id] = other
    assert waits(bench)
    del bench.log.alerts[other.data.alert_id]
    bench.runner().look()
    assert bench.status() == "ok"


def test_it_waits_while_the_state_is_old_or_missing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.log.states[STORE] = state(NOW + 59 * SECOND, p50=1700.0)
    assert waits(bench)
    bench.log.states.clear()
    assert waits(bench)


def test_it_waits_for_as_many_approvals_as_the_list_of_the_runner_asks_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path, text=ACTIONS.replace("per_hour", "approvers = 2\nper_hour", 1))
    assert waits(bench)
    bench.log.records.append(approval(bench.log.read()[ID].request, "eve"))
    bench.runner().look()
    assert bench.status() == "ok"


def test_it_waits_outside_of_its_windows(tmp_path: Path) -> None:
    text = ACTIONS.replace("per_hour", 'windows = ["Fri 12:05-13:00"]\nper_hour', 1)
    bench = Bench(tmp_path, text=text)
    assert waits(bench)
    bench.clock.time_s += 240
    bench.log.states[STORE] = state(NOW + 350 * SECOND, p50=1450.0)
    bench.runner().look()
    assert bench.status() == "ok"


def test_it_waits_when_the_clock_has_gone_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.clock.time_s = NOW / SECOND - 30
    bench.log.states[STORE] = state(NOW - 40 * SECOND)
    assert waits(bench)


def test_a_request_that_has_expired_is_not_revived_by_a_clock_that_goes_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    later = request(bench.estate, OTHER, NOW + 1200 * SECOND)
    bench.log.records.append(later)
    assert ends(bench).startswith("not handed over until 2026-11-20T12:15:00")


def test_it_expires(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.clock.time_s = NOW / SECOND + 900
    assert ends(bench).startswith("not handed over until 2026-11-20T12:15:00")


def test_one_that_nobody_has_approved_expires_too(tmp_path: Path) -> None:
    asked = request(estate(tmp_path))
    bench = Bench(tmp_path, asked)
    assert waits(bench)
    bench.clock.time_s = NOW / SECOND + 900
    assert ends(bench)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda bench: bench.log.states.update({STORE: state(NOW + 100 * SECOND, p50=100.0)}), "earlier than was"),
        (lambda bench: bench.log.states.update({STORE: state(NOW + 100 * SECOND, p50=None)}), "not within the horizon"),
        (
            lambda bench: bench.log.states.update({STORE: state(NOW + 100 * SECOND, p50=1700.0, pages_max=12_000)}),
            "the size of QM01/PS04 is 12000, it was 10000",
        ),
        (lambda bench: bench.log.alerts.clear(), "its alert is over"),
        (lambda bench: bench.actions.write_text(""), "alter-psid of QM01/PS04 is not allowed; expected: "),
    ],
    ids=["forecast", "no forecast", "size", "alert", "list"],
)
def test_what_has_changed_since_the_request_ends_it(
    change: Callable[[Bench], object], expected: str, tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    change(bench)
    assert expected in ends(bench)


def test_an_alert_that_has_cleared_ends_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    cleared = read_alert_record(alert("cleared", 1, store=STORE, resource="pages", condition="threshold").record())
    bench.log.alerts = {alert_record().data.alert_id: cleared}
    assert ends(bench) == "its alert is over"


@pytest.mark.parametrize(
    "changed",
    [
        {"statement": "CLEAR QLOCAL(ORDERS)"},
        {"statement": "ALTER PSID(4) EXPAND(NONE)"},
        {"settings": {"expand": "NONE"}},
        {"target": "QM02"},
        {"store": "QM01/PS05"},
        {"store": "CF01"},
        {"kind": "setxcf-alter"},
        {"look": "CLEAR QLOCAL(ORDERS)"},
    ],
    ids=str,
)
def test_a_request_that_somebody_wrote_into_the_topic_is_never_handed_over(
    changed: dict[str, Any], tmp_path: Path
) -> None:
    asked = msgspec.structs.replace(request(estate(tmp_path)), **changed)
    asked = msgspec.structs.replace(asked, sha256=hash_of(asked.language, asked.target, asked.statement))
    bench = Bench(tmp_path, asked, approval(asked))
    assert "expected: " in ends(bench)


def test_a_store_has_one_change_at_a_time(tmp_path: Path) -> None:
    bench = Bench(tmp_path, program="sys.exit(1)")
    other = request(bench.estate, OTHER)
    bench.log.records += [other, approval(other)]
    runner = bench.runner()
    for _ in range(3):
        runner.look()
    assert (bench.status(), bench.status(OTHER), len(bench.ran)) == ("unknown", "approved", 1)
    ok = Resulted(id=ID, sha256=other.sha256, time=as_text(NOW + 125 * SECOND), status="ok", who="bob", text="")
    bench.log.write(ok)
    runner.look()
    assert bench.status(OTHER) == "approved", "the state does not show yet what the first one did"
    bench.clock.time_s += 20
    bench.log.states[STORE] = state(NOW + 130 * SECOND, p50=1650.0)
    runner.look()
    assert (bench.status(OTHER), len(bench.ran)) == ("unknown", 2)


def test_no_more_in_an_hour_than_the_list_says(tmp_path: Path) -> None:
    bench = Bench(tmp_path, text=ACTIONS.replace("per_hour = 2", "per_hour = 1"))
    bench.runner().look()
    other = request(bench.estate, OTHER)
    bench.log.records += [other, approval(other)]
    bench.clock.time_s += 20
    bench.log.states[STORE] = state(NOW + 135 * SECOND, p50=1650.0)
    bench.runner().look()
    assert (bench.status(), bench.status(OTHER)) == ("ok", "approved")


def test_what_was_withdrawn_meanwhile_is_not_handed_over(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    asked = bench.log.read()[ID].request

    def on_write(record: ActRecord) -> None:
        if isinstance(record, Handed):
            own = Withdrawn(id=ID, sha256=asked.sha256, time=as_text(NOW + 119 * SECOND), who="ann")
            bench.log.records.append(own)

    bench.log.on_write = on_write
    bench.runner().look()
    assert (bench.status(), bench.ran) == ("withdrawn", [])


def test_without_a_list_there_is_no_runner(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.actions.chmod(0o644)
    with pytest.raises(UsageError, match="can be used by others"):
        bench.runner()
    bench.actions.unlink()
    with pytest.raises(UsageError, match="cannot be read"):
        bench.runner()


# --- what came of it --------------------------------------------------------------------------------------------------


def test_what_the_state_shows_5_and_30_minutes_later_is_written_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    runner = bench.runner()
    runner.look()
    done = {"id": "ps-expand", "time": as_text(NOW + 130 * SECOND), "text": "EXPAND changed from USER to SYSTEM"}
    content = msgspec.to_builtins(alert_record().data) | {"done": [done]}
    own = msgspec.structs.replace(alert_record(), data=msgspec.convert(content, type(alert_record().data)))
    bench.log.alerts = {own.data.alert_id: own}
    for after_s, p50 in ((200, 1600.0), (430, 9000.0), (440, 9000.0), (1930, None)):
        bench.clock.time_s = NOW / SECOND + after_s
        bench.log.states[STORE] = state(NOW + (after_s - 5) * SECOND, p50=p50, pages_max=11_000)
        runner.look()
    measured = bench.log.read()[ID].measured
    assert list(measured) == [300, 1800]
    first, second = measured.values()
    assert (first.size, first.full_s, first.alert) == (11_000, 9000.0, "open")
    assert first.done is not None and first.done.startswith("EXPAND changed from USER to SYSTEM at ")
    assert (second.full_s, second.probability, second.usage_pct) == (None, 0.8, pytest.approx(7000 / 110, rel=0.2))


def test_what_has_failed_or_is_a_day_old_is_not_measured(tmp_path: Path) -> None:
    failed = Bench(tmp_path, program="sys.exit(10)")
    failed.runner().look()
    failed.clock.time_s += 600
    failed.log.states[STORE] = state(NOW + 710 * SECOND)
    failed.runner().look()
    assert failed.log.read()[ID].measured == {}
