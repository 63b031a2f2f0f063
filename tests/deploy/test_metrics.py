"""The exporter: samples of every kind of store, labels, health, the HTTP server."""

from __future__ import annotations

import math
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from deploy.cli import main
from deploy.metrics.catalogue import CATALOGUE, resource_labels, store_labels
from deploy.metrics.collector import Health, TwinCollector, metrics_server, samples_of
from streams.kafka.topic_reader import Latest
from streams.kafka.topics import Topics
from streams.query.status import JobStatus, trigger_seconds
from tests.support.alert_entries import OPENED_US, alert, topic_record
from tests.support.surfaces import filling, latest_of, wait_until
from twin.base.conditions import CLEARED, FULL, INFO, UPDATED
from twin.base.errors import UsageError
from twin.base.units import percent
from twin.records import (
    DeepQueue,
    ForecastScores,
    HorizonScore,
    IncidentRole,
    IntervalScore,
    PageScore,
    QueueCoverage,
    ResourceForecast,
    SeenShare,
    StateForecast,
    StateRecord,
)
from twin.testing import Driver

STATUS = JobStatus(
    started_s=1000.0,
    beat_s=2000.0,
    batches=3,
    sums={"records": 30, "events": 300, "alerts": 2, "dead_letters": 1},
    batch_s=1990.0,
    behind=7,
    figures={"batch_ms": 400, "run_ms": 250, "plan_ms": 40, "offsets_ms": 5, "log_ms": 9, "commit_ms": 8}
    | {"state_bytes": 4096, "jvm_rss_bytes": 1 << 20},
)

Samples = dict[str, list[tuple[dict[str, str], float]]]


def collector(latest: Latest, status: JobStatus | None = STATUS) -> TwinCollector:
    return TwinCollector(latest, threading.Lock(), lambda: status, lambda: True)


def samples(latest: Latest, status: JobStatus | None = STATUS) -> Samples:
    """Return (labels, value) of all samples by name, by way of the text that Prometheus reads."""
    registry = CollectorRegistry()
    registry.register(collector(latest, status))
    read: Samples = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            read.setdefault(sample.name, []).append((sample.labels, sample.value))
    return read


def value(read: Samples, name: str, **labels: str) -> float:
    """Return the value of the only sample with these labels."""
    (number_of_sample,) = [
        number for own, number in read[f"mqtwin_{name}"] if all(own[key] == text for key, text in labels.items())
    ]
    return number_of_sample


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return filling(tmp_path_factory.mktemp("filling"))


@pytest.fixture(scope="module")
def read(driver: Driver) -> Samples:
    return samples(latest_of(driver.states().values(), driver.alerts))


SCORES = ForecastScores(
    days=12,
    horizons=(
        HorizonScore(horizon_s=900, looks=40, full=4, brier=0.05, climatology=0.09, bins=()),
        HorizonScore(horizon_s=3600, looks=38, full=9, brier=0.1, climatology=0.18, bins=()),
    ),
    intervals=IntervalScore(count=24, inside=18, coverage=0.75, width=1.3),
    pages=PageScore(right=3, late=1, false=2),
)

COVERAGE = {
    "ORDERS": QueueCoverage(
        puts_seen=SeenShare(share=0.21, low=0.18, high=0.25), gets_seen=None, since="2026-11-20T12:00:00.000000Z"
    ),
    "PAYMENTS": QueueCoverage(
        puts_seen=None, gets_seen=SeenShare(share=0.0, low=0.0, high=0.08), since="2026-11-20T12:00:00.000000Z"
    ),
}


def test_every_metric_of_the_catalogue_has_samples(driver: Driver, read: Samples) -> None:
    queues = (DeepQueue(name="ORDERS", depth=3, bytes=300, getters=2, puts_per_s=1.0, gets_per_s=1.0),)
    own = {"forecast_scores": SCORES, "fidelity": 0.9, "queues": queues, "coverage": COVERAGE}
    scored = msgspec.structs.replace(driver.state("QM01/PS04"), **own)
    measured = msgspec.structs.replace(driver.state("CF01"), storage_measured=1 << 30)
    assert set(CATALOGUE) - set(read) - set(samples(latest_of([scored, measured]))) == set()


def test_a_site_is_a_label_of_every_sample_and_else_of_none(driver: Driver) -> None:
    latest = latest_of(driver.states().values(), driver.alerts)
    named = TwinCollector(latest, threading.Lock(), lambda: STATUS, lambda: True, "prod")
    sites = {sample.labels.get("site") for family in named.collect() for sample in family.samples}
    assert sites == {"prod"}
    assert not [family for family in collector(latest).collect() for own in family.samples if "site" in own.labels]


def test_the_site_is_that_of_the_record_that_was_written_last_unless_it_is_given(driver: Driver) -> None:
    first, second = (driver.state(store) for store in ("QM01/PS04", "CF01"))
    latest = Latest(Topics(), derive=samples_of)

    def take(state: StateRecord, written_s: float, site: str) -> set[str | None]:
        named = msgspec.structs.replace(state, site=site) if site else state
        latest.apply(topic_record(Topics().state, msgspec.json.encode(named), written_s))
        read = collector(latest).collect()
        return {sample.labels.get("site") for family in read for sample in family.samples}

    assert take(first, 1000.0, "") == {None}
    assert take(second, 2000.0, "prod") == {"prod"}
    assert take(first, 1500.0, "before") == {"prod"}  # read later, of another partition
    assert take(first, 3000.0, "renamed") == {"renamed"}
    own = TwinCollector(latest, threading.Lock(), lambda: STATUS, lambda: True, "mine")
    assert {sample.labels["site"] for family in own.collect() for sample in family.samples} == {"mine"}


def test_the_time_in_which_a_queue_drains_and_the_getters_that_it_wants(driver: Driver) -> None:
    queues = (
        DeepQueue(name="ORDERS", depth=6_000, bytes=1, puts_per_s=50.0, gets_per_s=20.0, getters=4),
        DeepQueue(name="STUCK", depth=5, bytes=1, puts_per_s=1.0, gets_per_s=0.0, getters=0),
        DeepQueue(name="MEASURED", depth=4, bytes=None, getters=3),
    )
    read = samples(latest_of([msgspec.structs.replace(driver.state("QSG1/APP1"), queues=queues)]))
    of_queue = {own["queue"]: number for own, number in read["mqtwin_queue_drain_seconds"]}
    assert of_queue == {"ORDERS": 300.0, "STUCK": math.inf}  # nothing is said where gets are not reported
    assert value(read, "queue_gets_per_second", queue="ORDERS", store="QSG1/APP1") == 20.0
    assert value(read, "queue_getters_wanted", queue="ORDERS") == 4 * (50 + 6_000 / 300) / 20
    assert len(read["mqtwin_queue_getters_wanted"]) == 1


def test_labels_of_a_structure_of_another_program_have_no_group() -> None:
    labels = store_labels("LOGSTR1", "structure")
    assert (labels["qsg"], labels["structure"], labels["platform"]) == ("", "LOGSTR1", "ZOS")


def test_the_fidelity_of_a_store_and_none_while_it_is_not_known(driver: Driver) -> None:
    state = driver.state("QM01/PS04")
    read = samples(latest_of([msgspec.structs.replace(state, fidelity=0.9896)]))
    assert value(read, "fidelity_ratio", store="QM01/PS04", pageset="4") == 0.9896
    assert "mqtwin_fidelity_ratio" not in samples(latest_of([msgspec.structs.replace(state, fidelity=None)]))


def test_the_share_of_the_puts_and_gets_that_is_seen_by_queue(driver: Driver) -> None:
    read = samples(latest_of([msgspec.structs.replace(driver.state("QSG1/APP1"), coverage=COVERAGE)]))
    assert {(own["store"], own["queue"], own["calls"], share) for own, share in read["mqtwin_seen_ratio"]} == {
        ("QSG1/APP1", "ORDERS", "puts", 0.21),
        ("QSG1/APP1", "PAYMENTS", "gets", 0.0),
    }
    assert "mqtwin_seen_ratio" not in samples(latest_of([driver.state("QSG1/APP1")]))


def test_the_scores_of_forecasts_and_pages(driver: Driver) -> None:
    state = msgspec.structs.replace(driver.state("QM01/PS04"), forecast_scores=SCORES)
    read = samples(latest_of([state]))
    of_store = {"store": "QM01/PS04", "pageset": "4"}
    assert value(read, "forecast_looks", **of_store, horizon="3600") == 38
    assert value(read, "forecast_brier_score", **of_store, horizon="900") == 0.05
    assert value(read, "forecast_climatology_score", **of_store, horizon="900") == 0.09
    assert value(read, "forecast_intervals", **of_store) == 24
    assert value(read, "forecast_coverage_ratio", **of_store) == 0.75
    assert value(read, "forecast_width_ratio", **of_store) == 1.3
    outcomes = {labels["outcome"]: number for labels, number in read["mqtwin_forecast_pages"]}
    assert outcomes == {"right": 3, "late": 1, "false": 2}
    without = samples(latest_of([msgspec.structs.replace(state, forecast_scores=None)]))
    assert not [name for name in without if name.startswith("mqtwin_forecast_")]
    unfilled = msgspec.structs.replace(SCORES.intervals, count=0, inside=0, coverage=None)
    state = msgspec.structs.replace(state, forecast_scores=msgspec.structs.replace(SCORES, intervals=unfilled))
    assert "mqtwin_forecast_coverage_ratio" not in samples(latest_of([state]))


def test_a_structure_has_its_entries_elements_and_data_sets(driver: Driver, read: Samples) -> None:
    state = driver.state("QSG1/APP1")
    of_store = {"store": "QSG1/APP1", "qsg": "QSG1", "structure": "APP1", "platform": "ZOS"}
    assert value(read, "entries", **of_store) == state.ents_max
    entries = percent(state.ents_used, state.ents_max) / 100
    assert value(read, "usage_ratio", **of_store, resource="entries") == entries
    dataset = state.smds["QM01"]
    assert value(read, "smds_blocks_used", **of_store, qmgr="QM01") == dataset.blocks_used > 1
    usage = percent(dataset.blocks_used, dataset.blocks_total) / 100
    assert value(read, "usage_ratio", **of_store, resource="smds/QM01", qmgr="QM01") == usage
    assert value(read, "queue_messages", **of_store, queue="ORDERS") == state.messages


def test_a_page_set_has_the_labels_of_mq_prometheus(driver: Driver, read: Samples) -> None:
    state = driver.state("QM01/PS04")
    labels = {"qmgr": "QM01", "pageset": "4", "platform": "ZOS"}
    assert value(read, "pageset_pages_used", **labels) == state.pages_used > 0
    assert value(read, "usage_ratio", **labels, resource="pages") == pytest.approx(state.usage_pct / 100)
    assert value(read, "bufferpool_usage_ratio", **labels, bufferpool="3") == 0.4
    assert value(read, "drift_ratio", **labels) == 0.0


def test_the_demand_is_in_the_unit_of_the_store(driver: Driver, read: Samples) -> None:
    demand = driver.state("QSG1/APP1").demand
    assert value(read, "demand_puts_per_second", store="QSG1/APP1") == demand.puts_per_s > 0
    assert value(read, "demand_units_per_second", store="QSG1/APP1", unit="elements") == demand.elements_per_s
    pages, blocks = driver.state("QM01/PS04").demand, driver.state("QMD1/INVOICES").demand
    assert value(read, "demand_units_per_second", store="QM01/PS04", unit="pages") == pages.pages_per_s
    assert value(read, "demand_units_per_second", store="QMD1/INVOICES", unit="blocks") == blocks.blocks_per_s


def test_a_forecast_has_a_probability_and_three_times(driver: Driver, read: Samples) -> None:
    resources = [
        (store, outlook)
        for store, state in driver.states().items()
        for outlook in (() if state.forecast is None else state.forecast.resources)
    ]
    assert resources
    for store, outlook in resources:
        labels = {"store": store, "resource": outlook.resource}
        assert value(read, "full_probability", **labels) == outlook.full_probability
        times = outlook.time_to_full_s
        for field, quantile in (("p10", "0.1"), ("p50", "0.5"), ("p90", "0.9")):
            expected = getattr(times, field, None)
            time_s = value(read, "time_to_full_seconds", **labels, quantile=quantile)
            assert time_s == (math.inf if expected is None else expected)


def test_beyond_the_horizon_the_time_to_full_is_infinite(driver: Driver) -> None:
    outlook = ResourceForecast(resource="pages", usage_pct=50.0, full_probability=0.0, time_to_full_s=None)
    forecast = StateForecast(time="2026-11-20T12:00:00Z", resources=(outlook,))
    state = msgspec.structs.replace(driver.state("QM01/PS04"), forecast=forecast)
    assert value(samples(latest_of([state])), "time_to_full_seconds", quantile="0.9") == math.inf


def test_an_open_alert_is_one_and_a_cleared_alert_is_gone(driver: Driver, read: Samples) -> None:
    still_open = {alert.alert_id: alert for alert in driver.alerts}
    still_open = {key: alert for key, alert in still_open.items() if alert.change != "cleared"}
    assert still_open
    open_now = {
        (own["store"], own["condition"], own["resource"], own["severity"]) for own, _ in read["mqtwin_alert_open"]
    }
    assert open_now == {(alert.store, alert.condition, alert.resource, alert.severity) for alert in still_open.values()}
    assert {number for _, number in read["mqtwin_alert_open"]} == {1.0}


def test_a_store_has_the_urgency_of_its_incident_until_it_is_over(driver: Driver) -> None:
    states = driver.states().values()
    reference = IncidentRole(id="QM01/PS04/1", role="root", opened="2026-11-20T01:33:40.000000Z")
    of_pages = {"store": "QM01/PS04", "resource": "pages", "incident": reference}
    story = [
        alert(severity=INFO, **of_pages),
        alert(UPDATED, 1, **of_pages),
        alert(condition="full", severity=FULL, **of_pages),
        alert(UPDATED, 1, condition="full", severity=FULL, **of_pages),
        alert(CLEARED, 2, condition="full", severity=FULL, **of_pages),
        alert(UPDATED, 3, **of_pages),
        alert(CLEARED, 4, **of_pages),
    ]
    urgencies = []
    for count in range(len(story) + 1):
        read = samples(latest_of(states, story[:count]))
        urgencies.append(value(read, "incident_urgency", store="QM01/PS04", pageset="4", platform="ZOS"))
        opened = [labels["store"] for labels, _ in read.get("mqtwin_incident_opened_time_seconds", [])]
        assert opened == (["QM01/PS04"] if urgencies[-1] else [])
        if opened:
            assert value(read, "incident_opened_time_seconds", store="QM01/PS04") == OPENED_US / 1e6
    assert urgencies == [0, 1, 2, 4, 4, 4, 4, 0]
    assert len(samples(latest_of(states))["mqtwin_incident_urgency"]) == len(states)


def test_the_root_of_an_incident_is_marked(read: Samples) -> None:
    assert {labels["role"] for labels, _ in read["mqtwin_alert_open"]} <= {"root", "part"}
    roots = [labels["store"] for labels, _ in read["mqtwin_alert_open"] if labels["role"] == "root"]
    assert len(roots) == len(set(roots)) > 0


def test_labels_of_a_store_are_the_same_in_all_its_metrics(read: Samples) -> None:
    for name in ("usage_ratio", "alert_open", "event_time_seconds", "store_messages"):
        (of_structure,) = {
            (own["kind"], own["qsg"], own["structure"], own["platform"])
            for own, _ in read[f"mqtwin_{name}"]
            if own["store"] == "QSG1/APP1"
        }
        assert of_structure == ("structure", "QSG1", "APP1", "ZOS")


def test_the_job_has_its_figures(read: Samples) -> None:
    assert value(read, "behind_records") == 7
    assert value(read, "batch_duration_seconds") == 0.4
    assert value(read, "batch_phase_seconds", phase="run") == 0.25
    assert value(read, "job_events_total") == 300


def test_without_a_status_there_are_no_metrics_of_the_job(driver: Driver) -> None:
    without = samples(latest_of(driver.states().values()), None)
    assert "mqtwin_behind_records" not in without and "mqtwin_entries" in without


@pytest.mark.parametrize("figures", [{"batch_ms": "fast"}, {"run_ms": {}}, {"state_bytes": 10**400}])
def test_a_status_file_with_odd_figures_costs_the_metrics_of_the_job_only(driver: Driver, figures: Any) -> None:
    odd = msgspec.structs.replace(STATUS, figures=figures)
    with capture_logs() as lines:
        read = samples(latest_of(driver.states().values()), odd)
    assert "mqtwin_behind_records" not in read and "mqtwin_entries" in read
    assert [line["event"] for line in lines] == ["no metrics of the job"]


def test_ready_reports_how_many_records_could_not_be_read(driver: Driver) -> None:
    latest = latest_of(driver.states().values())
    latest.apply(topic_record("mqtwin.state", b"[" * 5000))
    registry = CollectorRegistry()
    registry.register(collector(latest))
    health = Health(lambda: None, has_status=False, is_caught_up=lambda: True, unreadable=lambda: latest.unreadable)
    with metrics_server("127.0.0.1", 0, registry, health) as port:
        url = f"http://127.0.0.1:{port}"
        assert get(f"{url}/readyz")[::2] == (200, "ok\n1 records of the topics are neither states nor alerts\n")
        assert "mqtwin_unreadable_records_total 1.0" in get(f"{url}/metrics")[2]


def test_a_defect_costs_a_scrape_and_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = CollectorRegistry()
    registry.register(collector(Latest(Topics())))
    monkeypatch.setattr(TwinCollector, "collect", lambda _: 1 / 0)
    with capture_logs() as lines, metrics_server("127.0.0.1", 0, registry, Clock().health()) as port:
        assert get(f"http://127.0.0.1:{port}/metrics")[0] == 500
    assert lines[0]["why"] == "ZeroDivisionError: division by zero"


@pytest.mark.nightly
def test_slow_clients_do_not_keep_prometheus_out(monkeypatch: pytest.MonkeyPatch, served: tuple[str, Clock]) -> None:
    monkeypatch.setattr("deploy.metrics.collector._TIMEOUT_S", 0.5)
    address = ("127.0.0.1", int(served[0].rpartition(":")[2]))
    with ExitStack() as parts:
        slow = [parts.enter_context(socket.create_connection(address, timeout=10)) for _ in range(80)]
        began = time.monotonic()
        while time.monotonic() < began + 1.5:  # three deadlines long, a byte at a time
            for connection in slow:
                with suppress(OSError):
                    connection.sendall(b"G")
            time.sleep(0.05)
        assert get(f"{served[0]}/metrics")[0] == 200


def test_a_server_that_ends_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_server: object) -> None:
        raise OSError("out of descriptors")

    failures: list[Exception] = []
    monkeypatch.setattr("deploy.metrics.collector._Server.serve_forever", fail)
    monkeypatch.setattr("deploy.metrics.collector._Server.shutdown", lambda _: None)
    with metrics_server("127.0.0.1", 0, CollectorRegistry(), Clock().health(), failures.append):
        wait_until(lambda: failures)
    assert str(failures[0]) == "out of descriptors"


def test_dead_letters_begin_at_zero_for_every_reason(read: Samples) -> None:
    assert value(read, "dead_letters_total", reason="not-json") == 0
    assert value(read, "dead_letters_total", reason="unknown-queue") == 0


def test_a_queue_file_and_a_coupling_facility_have_their_labels() -> None:
    of_file = store_labels("QMD1/INVOICES", "queue_file")
    assert (of_file["qmgr"], of_file["queue"], of_file["platform"]) == ("QMD1", "INVOICES", "")
    assert store_labels("CF01", "coupling_facility")["qsg"] == ""
    assert resource_labels("source/QM01") == {"resource": "source/QM01", "qmgr": "QM01"}
    assert resource_labels("entries") == {"resource": "entries"}
    assert resource_labels("queue/ORDERS") == {"resource": "queue/ORDERS"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0 seconds", 0), ("2 seconds", 2), ("1 minute 30 seconds", 90), ("interval 500 milliseconds", 0.5)],
)
def test_a_trigger_is_read_as_spark_reads_it(text: str, seconds: float) -> None:
    assert trigger_seconds(text) == seconds


class Clock:
    """Wall clock, monotonic clock, status and progress of an exporter."""

    def __init__(self) -> None:
        self.wall = 2000.0
        self.monotonic = 0.0
        self.status: JobStatus | None = STATUS
        self.is_caught_up = True
        self.missing: list[str] = []

    def health(self, *, has_status: bool = True) -> Health:
        return Health(
            lambda: self.status,
            has_status=has_status,
            is_caught_up=lambda: self.is_caught_up,
            missing=lambda: self.missing,
            wall=lambda: self.wall,
            monotonic=lambda: self.monotonic,
        )


def test_a_job_is_alive_while_its_beats_come() -> None:
    clock = Clock()
    health = clock.health()
    clock.wall = 2119.0
    assert health.not_live() == []
    clock.wall = 2121.0
    assert health.not_live() == ["the job's last beat was 121 s ago, limit 120 s"]
    clock.status = None
    assert health.not_live() == ["the job has no status file"]


def test_a_job_with_a_long_trigger_has_ten_of_them() -> None:
    clock = Clock()
    clock.status = JobStatus(started_s=0, beat_s=2000.0, trigger="1 minute")
    clock.wall = 2599.0
    assert clock.health().not_live() == []
    clock.wall = 2601.0
    assert clock.health().not_live()


def test_an_exporter_that_does_not_read_is_not_alive() -> None:
    clock = Clock()
    health = clock.health(has_status=False)
    clock.monotonic = 61.0
    assert health.not_live() == ["the exporter has not read Kafka for 61 s"]
    health.on_read()
    assert health.not_live() == []


def test_ready_means_caught_up() -> None:
    clock = Clock()
    assert clock.health().not_ready() == ["the job is 7 records per partition behind"]
    clock.status = JobStatus(started_s=0, beat_s=2000.0, behind=0)
    assert clock.health().not_ready() == []
    clock.is_caught_up = False
    assert clock.health().not_ready() == ["the exporter has not read its topics to their ends"]
    clock.is_caught_up, clock.missing = True, ["mqtwin.state"]
    assert clock.health().not_ready() == ["mqtwin.state does not exist yet"]


@pytest.fixture
def served(driver: Driver) -> Iterator[tuple[str, Clock]]:
    registry = CollectorRegistry()
    registry.register(collector(latest_of(driver.states().values(), driver.alerts)))
    clock = Clock()
    with metrics_server("127.0.0.1", 0, registry, clock.health()) as port:
        yield f"http://127.0.0.1:{port}", clock


def get(url: str) -> tuple[int, str, str]:
    """Return status, content type and text of a page."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def test_metrics_and_health_are_served(served: tuple[str, Clock]) -> None:
    url, clock = served
    status, content_type, text = get(f"{url}/metrics")
    assert status == 200 and content_type.startswith("text/plain")
    assert "mqtwin_usage_ratio{" in text
    assert get(f"{url}/healthz") == (200, "text/plain; charset=utf-8", "ok\n")
    assert get(f"{url}/readyz")[0] == 503
    clock.status = None
    assert get(f"{url}/healthz")[::2] == (503, "the job has no status file\n")
    assert get(f"{url}/else")[0] == 404


@pytest.mark.parametrize("listen", ["9746", "localhost:", "localhost:70000"])
def test_a_wrong_address_is_wrong_use(listen: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--bootstrap-servers", "127.0.0.1:9", "--listen", listen]) == 2
    assert capsys.readouterr().err == f"mqtwin: --listen {listen}; expected: HOST:PORT, such as 127.0.0.1:9746\n"


def test_an_address_in_use_is_wrong_use(served: tuple[str, Clock]) -> None:
    port = int(served[0].rpartition(":")[2])
    with (
        pytest.raises(UsageError, match=rf"--listen 127\.0\.0\.1:{port}: .*in use"),
        metrics_server("127.0.0.1", port, CollectorRegistry(), Clock().health()),
    ):
        pass
