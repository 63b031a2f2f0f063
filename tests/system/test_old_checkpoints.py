"""Checkpoints of earlier releases, opened by this one: the job continues, and ends as a replay of everything does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from streams.query.stored_state import count_older, read_states
from tests.checkpoints.archives import OTHER_RULES, SUFFIX, Opened, archive_files, unpack
from tests.system.harness import by_id, check_equal
from twin.base.conditions import CLEARED
from twin.playback.replays import Replayed, replay
from twin.records import StateRecord, StructureState
from twin.stores.headers import READ_FORMATS, STATE_FORMAT

pytestmark = [pytest.mark.system, pytest.mark.nightly, pytest.mark.ci]


def test_every_format_that_is_read_has_a_checkpoint() -> None:
    formats = [path.name.partition("-")[0] for path in archive_files()]
    assert sorted(set(formats)) == sorted(READ_FORMATS)
    assert all(path.stat().st_size < 1_000_000 for path in archive_files())


@pytest.mark.parametrize("path", archive_files(), ids=lambda path: path.name.removesuffix(SUFFIX))
def test_a_job_resumes_from_the_checkpoint_of_a_release(
    path: Path, kafka: str, spark: SparkSession, tmp_path: Path
) -> None:
    opened = unpack(path, tmp_path / "contents", kafka, spark)
    stream, state_format, name = opened.stream, opened.contents.state_format, path.name.removesuffix(SUFFIX)
    check_middle(opened, list(read_states(stream.checkpoint, stream.estate, session=spark)))
    written = stream.alerts()
    older = count_older(stream.checkpoint, session=spark)
    assert older == (older.stores if state_format != STATE_FORMAT else 0, len(stream.estate.stores))

    opened.send_rest()
    stream.run(max_records=300)
    replayed = replay(opened.whole(), stream.estate)
    if name in OTHER_RULES:
        check_equal_but(stream.states(), stream.alerts(), replayed, OTHER_RULES[name])
    else:
        check_equal(stream, replayed, written)
    assert count_older(stream.checkpoint, session=spark).older == 0


def check_middle(opened: Opened, states: list[StateRecord]) -> None:
    """Assert that a checkpoint is in the middle of everything."""
    kinds = {state.kind for state in states}
    assert kinds == {*("structure", "page_set", "queue_file", "queue_manager", "coupling_facility", "uniform_cluster")}
    (app,) = (state for state in states if state.store == "QSG1/APP1")
    assert isinstance(app, StructureState) and app.scm is not None
    assert min(app.scm.used, app.in_doubt, app.uncommitted - app.in_doubt, app.gaps, app.unmatched_gets) > 0
    assert min(app.offloaded_messages, app.scm.prefetched) > 0
    open_alerts = {condition for _, condition, _ in open_of(opened.stream.alerts().values())}
    assert open_alerts >= {"threshold", "full-forecast", "capacity"}


def open_of(alerts: Iterable[Mapping[str, Any]]) -> set[tuple[str, str, str]]:
    """Return (store, condition, resource) of the alerts that are open after these records, in their order."""
    last = {alert["data"]["alert_id"]: alert for alert in alerts}
    data = [alert["data"] for alert in last.values() if not alert["type"].endswith(CLEARED)]
    return {(alert["store"], alert["condition"], alert["resource"]) for alert in data}


def check_equal_but(
    states: Mapping[str, StateRecord],
    alerts: Mapping[str, Any],
    replayed: Replayed,
    other_rules: Mapping[str, frozenset[str]],
) -> None:
    """Assert that states equal those of a replay but for some fields, and that the same alerts are open."""
    assert states.keys() == replayed.states.keys()
    for name, state in states.items():
        own, expected = (msgspec.to_builtins(record) for record in (state, replayed.states[name]))
        left_out = other_rules[""] | other_rules.get(state.kind, frozenset())
        assert {key: value for key, value in own.items() if key not in left_out} == {
            key: value for key, value in expected.items() if key not in left_out
        }
    assert open_of(alerts.values()) == open_of(by_id(replayed.alerts).values())
