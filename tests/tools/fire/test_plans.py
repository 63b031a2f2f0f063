"""The parts of the runner that need neither Spark nor Kafka: plans, seams, the oracle, how plans get shorter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import msgspec
import pytest

from streams import seams
from streams.query.report_records import read_mark, report_records
from tests.system.harness import Record
from tests.tools.fire import life_page, oracle
from tests.tools.fire.clock import Clock
from tests.tools.fire.instants import instant_of
from tests.tools.fire.life import DATA, Facts, Fault, with_records
from tests.tools.fire.oracle import Outputs, Segment
from tests.tools.fire.page import Outcomes, missing_instants
from tests.tools.fire.plan import (
    ACTIONS,
    INSTANTS,
    JAVA_INSTANTS,
    KINDS,
    LONG_FAULTS,
    LONG_KINDS,
    Action,
    Flaw,
    Form,
    Plan,
    is_long,
    make_life,
    make_plan,
    needs,
)
from tests.tools.fire.run import Outcome, Recovery
from tests.tools.fire.samples import Sample
from tests.tools.fire.shorten import shorten
from tests.tools.fire.traffic import CONTENT_TYPES, ESTATES, Traffic, write_estate
from twin.estate import load_estate
from twin.playback.replays import replay
from twin.recordings.files import RecordingWriter

SEEDS = range(1, 60)
PLANS = Path(__file__).with_name("plans")
TOPIC = "fire.events"
LETTER_BYTES = 1 << 20


def test_a_seed_has_one_plan_and_another_seed_another_one() -> None:
    assert [make_plan(seed) for seed in SEEDS] == [make_plan(seed) for seed in SEEDS]
    assert len({msgspec.json.encode(make_plan(seed).actions) for seed in SEEDS}) == len(SEEDS)


def test_a_plan_is_the_same_after_it_was_written_and_read() -> None:
    assert msgspec.json.decode(msgspec.json.encode(make_plan(7)), type=Plan) == make_plan(7)


def test_plans_keep_what_their_actions_require() -> None:
    for plan in map(make_plan, SEEDS):
        assert needs(plan) == ""
        assert plan.actions[-1].kind == "validate"
        assert sum(map(is_long, plan.actions)) == LONG_FAULTS
        assert sum(action.kind != "validate" for action in plan.actions) == ACTIONS


def test_an_action_too_early_is_named() -> None:
    assert needs(Plan(seed=1, actions=(Action(kind="fault"),))) == "action 0: fault requires state"
    assert needs(Plan(seed=1, actions=(Action(kind="dance"),))).startswith("action 0: dance; expected: publish, ")


def test_all_kinds_and_a_long_kill_at_each_instant_come_within_some_seeds() -> None:
    actions = [action for seed in SEEDS for action in make_plan(seed).actions]
    assert {action.kind for action in actions} == set(KINDS)
    some = [action for seed in range(1, 15) for action in make_plan(seed).actions]
    assert {action.instant for action in some if is_long(action) and action.kind == "fault"} >= set(INSTANTS)
    more = [action for seed in range(1, 25) for action in make_plan(seed).actions]
    counts = Counter(action.kind for action in more)
    assert [counts[kind] for kind in LONG_KINDS] == [3] * len(LONG_KINDS)
    assert counts["partitions"] >= 7
    assert set(INSTANTS) == {*JAVA_INSTANTS, *seams.POINTS} - {seams.SENDING}


def publish(
    folder: Path, actions: list[Action], estates: int = 1
) -> tuple[dict[int, list[Record]], list[Segment], int]:
    """Return the records of some actions on two partitions, a segment for each, and the number of events."""
    traffic, events = Traffic(3), 0
    records: dict[int, list[Record]] = defaultdict(list)
    segments: list[Segment] = []
    for number, action in enumerate(actions):
        for record in traffic.records(action):
            partition = len(record.key) % 2
            headers = {"content-type": CONTENT_TYPES[record.form]}
            place = len(records[partition])
            records[partition].append(Record(partition, place, record.key.encode(), record.value, headers))
            events += record.events
        estate = load_estate(write_estate(folder, number % estates))
        segments.append(Segment(estate, {partition: len(part) for partition, part in records.items()}))
    return records, segments, events


def test_the_oracle_is_the_replay_of_a_recording(tmp_path: Path) -> None:
    records, segments, _ = publish(tmp_path, [Action(kind="publish", events=600)])
    expected = oracle.expect(records, TOPIC, segments, LETTER_BYTES)
    recording = tmp_path / "events.ndjson"
    with RecordingWriter(recording) as writer:
        writer.write_lines([record.value for part in records.values() for record in part])
    replayed = replay(recording, segments[0].estate)
    values = [value for _, value in report_records(expected.reports, LETTER_BYTES)]
    values.append(read_mark("QMD1", caught_up=True))
    reports = [Record(0, offset, b"QMD1", value, {}) for offset, value in enumerate(values)]
    oracle.add_shared(expected.outputs, {0: reports}, {0: {0: 1}, 1: {0: len(reports)}}, segments)
    assert expected.outputs.states == {name: msgspec.json.encode(state) for name, state in replayed.states.items()}
    assert {alert.record() for alert in replayed.alerts} == set(expected.outputs.alerts.values())
    assert "QMD1" in expected.outputs.states
    assert expected.outputs.alerts
    assert len(expected.outputs.letters) == replayed.dead_letters


def test_the_oracle_continues_with_another_estate_and_counts_everything_once(tmp_path: Path) -> None:
    flaws: tuple[Flaw, ...] = ("", "repeat", "shuffle", "poison", "clock", "huge", "two")
    forms: tuple[Form, ...] = ("json", "ndjson", "arrow")
    actions = [Action(kind="publish", events=80, flaw=flaw, form=forms[i % 3]) for i, flaw in enumerate(flaws)]
    records, segments, events = publish(tmp_path, actions, ESTATES)
    expected = oracle.expect(records, TOPIC, segments, LETTER_BYTES)
    published = Counter({part: expected.events[part] + expected.letters[part] for part in records})
    assert published.total() == events
    assert oracle.ledger_problems(published, expected, expected.outputs) == []
    published[0] += 1
    assert oracle.ledger_problems(published, expected, expected.outputs)
    assert {dict(headers)["reason"] for _, headers in expected.outputs.letters.values()} > {"not-json", "missing-field"}
    alone = oracle.expect(records, TOPIC, segments[-1:], LETTER_BYTES)
    assert oracle.differences(expected.outputs, alone.outputs)


@pytest.mark.parametrize("number", range(4))
def test_a_planted_difference_of_any_kind_is_seen(tmp_path: Path, number: int) -> None:
    records, segments, _ = publish(tmp_path, [Action(kind="publish", events=400, flaw="poison")])
    outputs = oracle.expect(records, TOPIC, segments, LETTER_BYTES).outputs
    assert oracle.differences(outputs, outputs) == []
    assert oracle.differences(oracle.plant(outputs, number), outputs)


def test_a_job_that_is_down_may_have_written_a_part_of_the_planned_batch_and_no_more() -> None:
    least = Outputs(alerts={"a": b"1"}, states={"s": b'{"events":1}'})
    upmost = Outputs(alerts={"a": b"1", "b": b"2"}, states={"s": b'{"events":2}'})
    for seen in (least, upmost, Outputs(alerts=upmost.alerts, states=least.states)):
        assert oracle.differences(seen, least, upmost) == []
    beyond = Outputs(alerts=upmost.alerts | {"c": b"3"}, states={"s": b'{"events":3}'})
    assert oracle.differences(beyond, least, upmost) == [
        "alerts: c is beyond the prefix",
        "states: s is events 3, not 1",
    ]
    assert oracle.differences(Outputs(states=least.states), least, upmost) == ["alerts: a is missing"]
    twice = Outputs(alerts=least.alerts, states=least.states, clashes=["a"])
    assert oracle.differences(twice, least) == ["a came twice with different content"]


def test_outcomes_are_the_same_after_they_were_written_and_read() -> None:
    outcome = Outcome(1, recoveries=[Recovery("kill java", "sink", 12.5)])
    outcome.actions["kill java"] = 1
    outcomes = Outcomes([outcome])
    assert msgspec.json.decode(msgspec.json.encode(outcomes), type=Outcomes) == outcomes
    assert missing_instants([outcome]) == list(INSTANTS)


def test_a_failing_plan_loses_all_that_does_not_matter() -> None:
    plan = make_plan(1)

    def difference_of(shorter: Plan) -> str:
        assert needs(shorter) == ""
        labels = [action.label for action in shorter.actions]
        return "wrong" if "kill broker" in labels else ""

    assert difference_of(plan)
    shorter = shorten(plan, difference_of, max_runs=200)
    assert len(shorter.actions) <= 4
    assert shorter.difference == "wrong"


def test_kept_plans_can_be_run() -> None:
    for path in PLANS.glob("*.json"):
        plan = msgspec.json.decode(path.read_bytes(), type=Plan)
        assert needs(plan) == ""
        assert plan.commit and plan.difference


def test_without_its_variable_there_are_no_seams() -> None:
    assert seams.ACTIVE is None


def test_an_order_is_taken_once(tmp_path: Path) -> None:
    active = seams.Seams(tmp_path)
    active.reach(seams.READING)
    (tmp_path / seams.READING).write_text("raise")
    with pytest.raises(seams.SeamError, match=r"^a test asked for an error: reading$"):
        active.reach(seams.READING)
    active.reach(seams.READING)
    (tmp_path / seams.WRITING).write_text("delay 0.01")
    active.reach(seams.WRITING)
    assert seams.Seams.renamed(tmp_path, seams.WRITING).exists()


def test_a_process_kills_itself_at_a_seam(tmp_path: Path) -> None:
    (tmp_path / seams.APPLYING).write_text("kill")
    program = "from streams import seams; seams.ACTIVE.reach(seams.READING); seams.ACTIVE.reach(seams.APPLYING)"
    environment = {seams.VARIABLE: str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL


def test_the_files_of_a_checkpoint_say_where_a_batch_is(tmp_path: Path) -> None:
    for name in ("offsets", "commits", "state/0/0"):
        (tmp_path / name).mkdir(parents=True)
    offsets = 'v1\n{"conf":{}}\n{"t":{"0":1}}'

    def state_after(name: str) -> str:
        (tmp_path / name).write_text(offsets)
        return instant_of(tmp_path)

    assert instant_of(tmp_path) == ""
    assert state_after("offsets/.0.abc.tmp") == "planning"
    (tmp_path / "offsets/.0.abc.tmp").unlink()
    assert state_after("offsets/0") == "running"
    assert state_after("state/0/0/1.changelog") == "state commit"
    assert state_after("commits/.0.abc.tmp") == "offset commit"
    (tmp_path / "commits/.0.abc.tmp").unlink()
    assert state_after("commits/0") == ""


def test_a_long_life_has_every_kind_of_kill_and_is_the_same_each_time() -> None:
    life = make_life(1000, 30)
    assert life == make_life(1000, 30)
    labels = Counter(action.label for action in life.actions)
    assert {"restart", "lose-mirror", "kill java", "kill driver", "kill all", "kill broker", "kill daemon"} <= set(
        labels
    )
    assert all(action.max_records >= 50_000 for action in life.actions if action.kind == "restart")


def test_a_clock_is_set_for_a_process_that_runs(tmp_path: Path) -> None:
    if not Clock.is_possible():
        pytest.skip("a clock of its own needs Linux and a C compiler")
    clock = Clock(tmp_path)
    script = (
        "import time\nfor line in iter(input, ''): time.sleep(0.01); print(time.time(), time.monotonic(), flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ | clock.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for seconds in (0, 3600, -3600):
            clock.set(seconds)
            print("now", file=process.stdin, flush=True)
            wall, monotonic = map(float, process.stdout.readline().split())
            assert wall - time.time() == pytest.approx(seconds, abs=60)
            assert monotonic == pytest.approx(time.monotonic(), abs=60)
        print(file=process.stdin, flush=True)


def test_a_queue_that_is_moved_takes_its_key_along() -> None:
    """A store reads from one partition; the plan of seed 27 sent a moved queue to another one."""
    traffic, moved = Traffic(27), Traffic(27)
    moved.use_estate(3)
    for flaw in ("", "huge"):
        action = Action(kind="publish", events=400, flaw=flaw)
        before, after = traffic.records(action), moved.records(action)
        stores = {record.key: b"".join(other.value for other in after if other.key == record.key) for record in after}
        assert b"PAYMENTS" in b"".join(record.value for record in before if record.key == "QSG1/APP1")
        assert b"PAYMENTS" not in stores["QSG1/APP1"] and b"PAYMENTS" in stores["QSG1/APP2"]
        assert sum(record.events for record in before) == sum(record.events for record in after)


def test_a_partition_without_records_is_no_difference_to_the_replay() -> None:
    assert with_records({0: 5, 1: 7, 2: 0}) == {0: 5, 1: 7}


def test_the_page_of_a_long_life_is_written_of_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rss = dict.fromkeys(("driver", "spark", "workers", "broker", "sender"), 100 << 20)
    samples = [Sample(5.0 * n, rss, 5, 300, 10, 900, 800, 1 << 20, 40, 1 << 20) for n in range(500)]
    batches = [{"seconds": 5.0 * n, "batch_ms": 700 + n % 3, "behind": 0, "events": 9} for n in range(500)]
    outcome = Outcome(5, actions={"kill java": 2, "publish (two)": 9}, validations=1, events=10, alerts=7)
    facts = Facts(5, 2, 40.0, peak=50_000.0, rate=12_000.0, load_events=1_000_000, faults=[Fault(9.0, "x", "y")])
    facts.outcome = outcome
    data = {"facts": facts, "samples": samples, "batches": batches, "kills": [600.0]}
    (tmp_path / DATA).write_bytes(msgspec.json.encode(data))
    (tmp_path / "soak.md").write_text(f"# Soak\n\n{life_page.HEADING}\n\nearlier text\n", encoding="utf-8")
    monkeypatch.setattr(life_page, "PAGE", tmp_path / "soak.md")
    monkeypatch.setattr(life_page, "PICTURE", tmp_path / "life.svg")
    life_page.write(tmp_path)
    text = (tmp_path / "soak.md").read_text(encoding="utf-8")
    assert text.startswith(f"# Soak\n\n{life_page.HEADING}\n\n`make fire") and "earlier text" not in text
    assert "1 faults: kill java 2.\n- 1,000,010 events (1,000,000 of the load, 12,000/s), 7 alerts" in text
    assert "equal those of the replay.**\n- Not done by the runner: x: y\n" in text
    assert "| memory of Spark's JVM | 100 MB | 100 MB | 100 MB | yes |" in text
    assert (tmp_path / "life.svg").read_text(encoding="utf-8").startswith("<?xml")
