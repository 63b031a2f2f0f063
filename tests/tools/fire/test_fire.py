"""Plans that failed once, and fresh seeds: the job under faults is equal to replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from deploy.java.broker import Broker
from tests.support.java import quick_java
from tests.tools.fire.clock import Clock
from tests.tools.fire.plan import Action, Plan
from tests.tools.fire.run import run_plan

pytestmark = [pytest.mark.system, pytest.mark.nightly]

PLANS = sorted(Path(__file__).with_name("plans").glob("*.json"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that is killed now and then."""
    broker = Broker(data=tmp_path_factory.mktemp("kafka") / "data")
    with quick_java():
        broker.start()
        with broker:
            yield broker


def fresh(seed: int) -> Plan:
    """Return a plan of a minute: a kill at three instants, one of which takes Java along, and a clock that jumps."""
    instant = ("planning", "sink", "offset commit")[seed % 3]
    return Plan(
        seed=seed,
        max_records=50,
        faked_clock=Clock.is_possible(),
        actions=(
            Action(kind="publish", events=200, form="arrow"),
            Action(kind="validate"),
            Action(kind="fault", whom="worker", instant="writing", events=100),
            Action(kind="fault", whom="daemon", instant="applying", events=100, form="ndjson"),
            Action(kind="lose-mirror", events=50),
            *([Action(kind="clock", number=(-3600, 3600)[seed % 2], events=50)] if Clock.is_possible() else []),
            Action(kind="validate"),
            Action(kind="fault", whom=("java", "driver", "all")[seed % 3], instant=instant, events=200),
            Action(kind="publish", events=100, flaw="poison"),
            Action(kind="validate"),
        ),
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_a_fresh_seed(broker: Broker, topic_prefix: str, temporary: Path, seed: int) -> None:
    outcome = run_plan(fresh(seed), broker, topic_prefix, temporary / "run", print)
    assert outcome.difference == ""
    assert outcome.validated == 6 + Clock.is_possible()
    assert sum(outcome.hits.values()) + outcome.missed == 3
    assert outcome.missed == 0


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_plan_that_failed_once(broker: Broker, topic_prefix: str, temporary: Path, path: Path) -> None:
    plan = msgspec.json.decode(path.read_bytes(), type=Plan)
    assert run_plan(plan, broker, topic_prefix, temporary / "run", print).difference == ""
