"""Conclusions of `make bench` from its figures: the steady state, the cause of a slow batch, costs of a cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from kernels import ids
from streams.kafka.publish import PublishResult
from tests.tools.bench import history, rules
from tests.tools.bench.growth import BOTH, CORES, SINGLE, WORKERS, Growth, Measured, fit
from tests.tools.bench.latency import Latency
from tests.tools.bench.report import Report
from tests.tools.bench.rig import Span
from tests.tools.bench.throughput import Round, Way
from tests.tools.bench.timeline import Timeline
from twin.base.errors import UsageError
from twin.sizing.cluster import COSTS

CALM = {"batch_ms": 200.0, "run_ms": 150.0, "plan_ms": 20.0, "commit_ms": 10.0, "collector_ms": 0.0, "records": 200.0}


def span(rate: float, compilers: float = 0.0) -> Span:
    """Return a second of events at a rate, with a share of the CPU time for the JVM's compilers."""
    return Span(round(rate), round(rate), 1, 1.0, {"spark": 1.0, "compilers": compilers}, {})


def way(*compilers: float) -> Way:
    rounds = [Round(span(1000), span(900), span(100 * n, share)) for n, share in enumerate(compilers, 1)]
    return Way("JSON", PublishResult(), rounds, None, Timeline("JSON", 0, 0.0, []))


def test_the_steady_state_is_the_median_of_the_last_rounds():
    measured = way(0.4, 0.2, 0.1, 0.02, 0.01)
    assert measured.is_steady and not way(0.4, 0.2).is_steady
    assert (measured.first.job.rate, measured.job.rate, measured.of_ceiling) == (100, 400, 0.4)
    assert measured.first.compilers == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("slow", "cause"),
    [
        ({"run_ms": 450.0, "collector_ms": 260.0}, "the JVM's garbage collector"),
        ({"plan_ms": 300.0}, "planning"),
        ({"commit_ms": 310.0}, "commit log"),
        ({"run_ms": 450.0, "state_commit_ms": 280.0}, "commit of the state stores"),
        ({"run_ms": 450.0, "open_us": 200_000.0, "apply_us": 90_000.0}, "twins: opening, applying, writing"),
        ({"run_ms": 450.0, "records": 900.0}, "more records, behind a slow batch"),
        ({"run_ms": 450.0}, "tasks, none of these"),
        ({"run_ms": 240.0, "plan_ms": 110.0, "commit_ms": 100.0}, "several of these"),
    ],
)
def test_a_slow_batch_is_named_by_what_took_most_of_what_it_took_more(slow: dict[str, float], cause: str):
    measured = Latency(1000, batches=[CALM] * 9 + [CALM | {"batch_ms": 500.0} | slow])
    assert [(batch.milliseconds, batch.cause) for batch in measured.slow_batches()] == [(500.0, cause)]
    assert Latency(1000, batches=[CALM] * 9).slow_batches() == []


def test_the_costs_of_a_cluster_are_found_on_two_cores_and_predict_the_rest():
    truth = Growth([], replace(COSTS, store_ms=1.5, arrow_us=0.8))
    batches = [Measured(where, stores, 1e6, 0.0) for stores in (4, 1_000) for where in (SINGLE, BOTH, WORKERS)]
    batches = [replace(batch, seconds=truth.predicted(batch)) for batch in batches]
    growth = Growth(batches, fit(batches))
    assert (growth.costs.store_ms, growth.costs.arrow_us) == pytest.approx((1.5, 0.8))
    assert growth.largest_error() == pytest.approx(0, abs=1e-9) and set(CORES) == {SINGLE, BOTH, WORKERS}
    slower = [replace(batch, seconds=2 * batch.seconds) if batch.where == SINGLE else batch for batch in batches]
    assert Growth(slower, growth.costs).largest_error() == pytest.approx(0.5)


def test_the_dearest_rule_comes_first_and_the_bare_loop_has_none():
    costs = [rules.Cost("cheap", rules.PLAIN, 25, 24), rules.Cost("dear", rules.PLAIN, 27, 20)]
    measured = rules.Rules([*costs, rules.Cost(rules.ALL.name, rules.PLAIN, 26, 10)], {rules.PLAIN: 3.0})
    assert [cost.rule for cost in measured.costs_of(rules.PLAIN)] == [rules.ALL.name, "dear", "cheap"]
    assert (measured.whole(rules.PLAIN), measured.bare(rules.PLAIN)) == (26, 10)
    assert all(kernel not in rules.ALL.replaced for kernel in (ids.find, ids.enter, ids.leave))


DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_the_page_has_the_history_of_its_file(tmp_path: Path):
    releases = history.read(DOCS)
    assert len({release.version for release in releases}) == len(releases) >= 2
    assert history.section(releases) in (DOCS / "performance.md").read_text(encoding="utf-8")
    (tmp_path / "images").mkdir()
    history.draw(releases, tmp_path)
    drawn = (tmp_path / history.PICTURE).read_text(encoding="utf-8")
    assert drawn == (DOCS / history.PICTURE).read_text(encoding="utf-8")


def test_a_release_is_one_line_however_often_it_is_measured(tmp_path: Path):
    first, second = history.read(DOCS)[:2]
    for release in (first, second, replace_json(second, 500_000.0)):
        history.append(release, tmp_path)
    assert history.read(tmp_path) == [first, replace_json(second, 500_000.0)]


def replace_json(release: history.Release, rate: float) -> history.Release:
    return msgspec.structs.replace(release, json=rate)


def test_a_part_of_a_run_is_no_release():
    with pytest.raises(UsageError, match="needs a whole run"):
        history.of_report(Report("make bench", quick=False), "1.0.0")
