"""A real Prometheus scrapes the exporter, checks the rules and answers every query of the dashboards."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from deploy.metrics.catalogue import CATALOGUE
from deploy.metrics.collector import Health, TwinCollector, metrics_server
from docs.dashboards import BOARDS, OUT, make
from streams.query.status import JobStatus
from tests.support.processes import free_port
from tests.support.surfaces import fetch, filling, latest_of, program, running, wait_until
from tests.tools.panels import Prometheus, answered, boards, draw
from twin.testing import Driver

RULES = Path(__file__).resolve().parents[2] / "deploy" / "prometheus"
DASHBOARDS = boards()
METRIC = re.compile(r"\b((?:mqtwin|ibmmq)_\w+)")
OF_MQ = {"ibmmq_pageset_pages_unused", "ibmmq_pageset_pages_total"}
# A page set as mq_prometheus shows it: name and labels of its README and of mqmetric/usage.go.
PAGES_TOTAL, PAGES_UNUSED = 8000, 1000
IBMMQ = "".join(
    f'# TYPE {name} gauge\n{name}{{bufferpool="3",pageset="4",platform="ZOS",qmgr="QM01"}} {value}\n'
    for name, value in (("ibmmq_pageset_pages_total", PAGES_TOTAL), ("ibmmq_pageset_pages_unused", PAGES_UNUSED))
)


def queries(board: dict[str, Any]) -> list[str]:
    """Return the PromQL of all panels, and of the variables as queries of their metric."""
    expressions = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    variables = [variable["query"] for variable in board["templating"]["list"] if variable["type"] == "query"]
    return expressions + [re.fullmatch(r"label_values\((.*), \w+\)", text)[1] for text in variables]


# --- without a Prometheus --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOARDS)
def test_a_dashboard_made_again_is_the_committed_one(name: str) -> None:
    committed = (OUT / f"mqtwin-{name}.json").read_text(encoding="utf-8")
    assert committed == make(name), "make it anew: python -m docs.dashboards"


def test_every_committed_dashboard_is_made_from_code() -> None:
    assert set(DASHBOARDS) == {f"mqtwin-{name}" for name in BOARDS}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_queries_of_a_dashboard_name_metrics_that_exist(name: str) -> None:
    named = {metric for query in queries(DASHBOARDS[name]) for metric in METRIC.findall(query)}
    assert named
    assert named - OF_MQ <= set(CATALOGUE)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_what_is_nearest_is_ranked_from_below_and_what_is_fullest_from_above(name: str) -> None:
    for panel in DASHBOARDS[name]["panels"]:
        for target in panel.get("targets", []):
            if "nearest" in panel["title"] or ("time_to_full" in target["expr"] and "topk" in target["expr"]):
                assert "bottomk(" in target["expr"], panel["title"]
            if "fullest" in panel["title"]:
                assert "topk(" in target["expr"], panel["title"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_take_the_data_source_from_the_variable(name: str) -> None:
    board = DASHBOARDS[name]
    assert board["templating"]["list"][0]["name"] == "datasource"
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
    assert {target["datasource"]["uid"] for panel in panels for target in panel["targets"]} == {"${datasource}"}
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in board["panels"])


def test_rules_name_metrics_that_exist() -> None:
    for path in RULES.glob("*.rules.yml"):
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            for rule in group["rules"]:
                assert set(METRIC.findall(rule["expr"])) - OF_MQ <= set(CATALOGUE), rule["alert"]


# --- with the programs of Prometheus ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(RULES.glob("*.rules.yml")), ids=lambda path: path.name)
def test_promtool_takes_the_rules(path: Path) -> None:
    done = subprocess.run([program("promtool"), "check", "rules", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_fire_when_they_should() -> None:
    command = [program("promtool"), "test", "rules", RULES / "mqtwin.test.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_has_a_test() -> None:
    tested = yaml.safe_load((RULES / "mqtwin.test.yml").read_text(encoding="utf-8"))
    raised = {
        check["alertname"] for test in tested["tests"] for check in test["alert_rule_test"] if check["exp_alerts"]
    }
    rules = {
        rule["alert"]
        for path in RULES.glob("*.rules.yml")
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
    }
    assert raised == rules


def test_promtool_takes_the_configuration_of_compose(tmp_path: Path) -> None:
    text = (RULES / "prometheus.yml").read_text(encoding="utf-8").replace("/etc/prometheus", str(RULES))
    (tmp_path / "prometheus.yml").write_text(text, encoding="utf-8")
    command = [program("promtool"), "check", "config", tmp_path / "prometheus.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 rule files found" in done.stdout


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return filling(tmp_path_factory.mktemp("filling"))


@pytest.fixture(scope="module")
def mq_port() -> Iterator[int]:
    """A server of metrics as those of mq_prometheus."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(IBMMQ.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


Query = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def prometheus(driver: Driver, mq_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Prometheus that has scraped the exporter and mq_prometheus."""
    binary, folder, now_s = program("prometheus"), tmp_path_factory.mktemp("prometheus"), time.time()
    latest = latest_of(driver.states().values(), driver.alerts)
    sums = {"records": 30, "events": 300, "alerts": 2, "dead_letters": 1}
    figures = {"batch_ms": 400, "run_ms": 250, "state_bytes": 4096, "jvm_rss_bytes": 1 << 20}
    status = JobStatus(started_s=now_s, beat_s=now_s, batch_s=now_s, behind=7, sums=sums, figures=figures)
    registry = CollectorRegistry()
    registry.register(TwinCollector(latest, threading.Lock(), lambda: status, lambda: True))
    health = Health(lambda: status, has_status=True, is_caught_up=lambda: True)
    with metrics_server("127.0.0.1", 0, registry, health) as port:
        targets = [{"targets": [f"127.0.0.1:{port}", f"127.0.0.1:{mq_port}"]}]
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "scrape_configs": [{"job_name": "mqtwin", "static_configs": targets}],
            "rule_files": [str(RULES / "mqtwin-stores.rules.yml")],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
        url = f"http://127.0.0.1:{free_port()}"
        command = [binary, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
        command += [f"--web.listen-address={url.removeprefix('http://')}", "--log.level=warn"]

        with running(command, folder / "log"):
            wait_until(lambda: _ask(url, "count_over_time(mqtwin_build_info[1m]) >= 3"), 60)
            wait_until(lambda: _ask(url, "ibmmq_pageset_pages_total"))
            yield url


@pytest.fixture
def query(prometheus: str) -> Query:
    return partial(_ask, prometheus)


def _ask(url: str, expression: str) -> list[dict[str, Any]]:
    answer = fetch(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
    assert answer["status"] == "success"
    result: list[dict[str, Any]] = answer["data"]["result"]
    return result


EXAMPLES = re.findall(
    r"^```promql\n(.*?)^```$",
    (RULES.parents[1] / "docs" / "surfaces.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.nightly
def test_prometheus_scrapes_everything(query: Query, driver: Driver) -> None:
    assert [float(series["value"][1]) for series in query("up")] == [1.0, 1.0]
    (entries,) = query('mqtwin_entries_used{qsg="QSG1", structure="APP1"}')
    assert float(entries["value"][1]) == driver.state("QSG1/APP1").ents_used


def test_metrics_join_with_those_of_mq_prometheus(query: Query, driver: Driver) -> None:
    """The drift of a page set: the first example of docs/surfaces.md."""
    (series,) = query(EXAMPLES[0])
    expected = driver.state("QM01/PS04").usage_pct / 100 - (1 - PAGES_UNUSED / PAGES_TOTAL)
    assert float(series["value"][1]) == pytest.approx(expected)
    assert (series["metric"]["qmgr"], series["metric"]["pageset"]) == ("QM01", "4")


def test_the_skill_of_the_forecast_is_that_of_the_state_record(query: Query, driver: Driver) -> None:
    """The second example of docs/surfaces.md."""
    scores = driver.state("QM01/PS04").forecast_scores
    assert scores is not None
    expected = {str(score.horizon_s): score.skill for score in scores.horizons if score.skill is not None}
    answer = {
        series["metric"]["horizon"]: float(series["value"][1])
        for series in query(EXAMPLES[1])
        if series["metric"]["store"] == "QM01/PS04" and series["value"][1] not in ("NaN", "-Inf")
    }
    assert answer == pytest.approx(expected)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_panel_has_data_or_a_text_that_says_why_not(name: str, prometheus: str) -> None:
    source = Prometheus(prometheus, time.time() - 60, time.time())
    panels = [panel for panel in answered(DASHBOARDS[name], source) if panel.panel["type"] != "row"]
    assert [panel.title for panel in panels if not panel.series and not panel.panel.get("description")] == []
    draw(DASHBOARDS[name], panels, source)


def test_each_store_with_an_incident_has_one_alert_from_the_metrics(query: Query, driver: Driver) -> None:
    incidents = {alert.store: alert for alert in driver.alerts if alert.incident.role == "root"}
    assert {alert.change for alert in incidents.values()} <= {"opened", "updated"}
    firing = wait_until(lambda: query('ALERTS{alertname=~"Mqtwin(Full|Page|Watch)", alertstate="firing"}'))
    assert sorted(series["metric"]["store"] for series in firing) == sorted(incidents)
    urgencies = query("mqtwin_incident_urgency > 0")
    assert sorted(series["metric"]["store"] for series in urgencies) == sorted(incidents)
